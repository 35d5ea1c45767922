// A task host at the other end of a port.

import assert from "node:assert/strict";
import { test } from "node:test";
import { MessageChannel, Worker } from "node:worker_threads";
import { caller, delegate, executor, host, later, pause, seen, status, toolshelf, work } from "./support.mjs";

const { connectTaskHost, serveTaskHost } = toolshelf;

function pair(served, owner = "widget") {
  const { port1, port2 } = new MessageChannel();
  const server = serveTaskHost(served, port1, { owner });
  return { server, port: port2, close: () => server.close() };
}

test("a task is delegated, watched and cancelled through a port", async () => {
  const page = host({ environment: "env_served", executor: executor(async ({ input }) => `did ${input.task}`) });
  const { port, close } = pair(page);
  const far = connectTaskHost(port);
  assert.equal(far.environment, null);
  assert.deepEqual(await far.ready(), { ok: true, persistent: false });
  assert.deepEqual([far.placement, far.environment, far.persistent], ["browser", "env_served", false]);
  const { task } = await far.call("delegate_task", work, { callId: "1" });
  assert.equal((await seen(far, task.address)).answer, "did do it");
  assert.equal((await far.call("cancel_task", { address: task.address })).refused, "task-not-running");
  assert.equal((await far.call("nonsense", {})).refused, "unknown-tool");
  const dispatcher = toolshelf.createPlacementDispatcher({ browser: far });
  assert.equal(dispatcher.dispatch({ kind: "browser", key: "env_served" }).host, far);
  close();
});

test("the owner is the port's, whatever the caller says", async () => {
  const page = host();
  const [one, other] = [pair(page, "one"), pair(page, "other")];
  const [far, stranger] = [connectTaskHost(one.port), connectTaskHost(other.port)];
  const { task } = await far.call("delegate_task", work, { owner: "admin", callId: "1" });
  assert.equal((await status(page, task.address, { owner: "one" })).ok, true);
  assert.equal((await status(page, task.address, { owner: "admin" })).refused, "task-owner-mismatch");
  assert.equal((await status(stranger, task.address, { owner: "one" })).refused, "task-owner-mismatch");
  one.close();
  other.close();
  for (const owner of [undefined, "", " ", 7]) {
    assert.throws(() => serveTaskHost(page, new MessageChannel().port1, { owner }), TypeError);
  }
});

test("frames that are none get a refusal, and the port goes on", async () => {
  const { port, close } = pair(host());
  const answers = [];
  port.on("message", (frame) => answers.push(frame));
  const good = { toolshelf: 1, id: 1, tool: "task_status", args: {}, callId: "1" };
  const bad = [
    null, 7, "text", [], {}, { ...good, toolshelf: 2 }, { ...good, id: undefined }, { ...good, id: -1 }, { ...good, id: 1.5 },
    { ...good, id: "x".repeat(65) }, { ...good, id: {} }, { ...good, tool: 7 }, { ...good, tool: undefined },
    { ...good, callId: 7 }, { ...good, owner: "admin" }, { ...good, more: 1 },
  ];
  for (const frame of bad) port.postMessage(frame);
  port.postMessage(good);
  while (answers.length < bad.length + 1) await pause(5);
  for (const { toolshelf, answer } of answers.slice(0, -1)) {
    assert.deepEqual([toolshelf, answer.refused], [1, "invalid-argument"]);
  }
  const last = answers.at(-1);
  assert.deepEqual([last.id, last.answer.refused], [1, "invalid-task-address"]);
  port.postMessage({ toolshelf: 1, id: 5, answer: {} });
  await pause(20);
  assert.equal(answers.length, bad.length + 1, "answers are not answered");
  close();
});

test("a port that closes ends its open calls with a refusal", async () => {
  const stuck = { placement: "browser", environment: "e", call: () => later().promise };
  for (const end of [({ server }) => server.close(), ({ port }) => port.close(), ({ far }) => far.close()]) {
    const ends = pair(stuck);
    const far = connectTaskHost(ends.port);
    await far.ready();
    const open = [far.call("task_status", {}), far.call("task_status", {})];
    await pause(10);
    end({ ...ends, far });
    for (const answer of await Promise.all(open)) assert.equal(answer.refused, "placement-unavailable");
    assert.equal((await far.call("task_status", {})).refused, "placement-unavailable");
    ends.close();
  }
});

test("an answer that does not come in time is a refusal, and one that comes later is not heard", async () => {
  const slow = later();
  const { port, close } = pair({ placement: "browser", environment: "e", call: () => slow.promise });
  const far = connectTaskHost(port, { timeoutMs: 50 });
  const answer = await far.call("task_status", {});
  assert.equal(answer.refused, "placement-unavailable");
  assert.match(answer.why, /50 ms/);
  slow.resolve({ ok: true });
  await pause(20);
  close();
});

test("a host that throws or answers what no message can carry is a refusal", async () => {
  const answers = [() => { throw new Error("broken"); }, async () => ({ ok: true, run() {} }), async () => "text"];
  const codes = [];
  for (const call of answers) {
    const { port, close } = pair({ placement: "browser", environment: "e", call });
    codes.push((await connectTaskHost(port).call("task_status", {})).refused);
    close();
  }
  assert.deepEqual(codes, ["task-admission-failed", "task-admission-failed", "placement-unavailable"]);
});

test("a port has sixty-four open calls, and no more", async () => {
  const slow = later();
  const { port, close } = pair({ placement: "browser", environment: "e", call: () => slow.promise });
  const far = connectTaskHost(port);
  await far.ready();
  const calls = Array.from({ length: 70 }, () => far.call("task_status", {}));
  await pause(50);
  slow.resolve({ ok: true });
  const answers = await Promise.all(calls);
  assert.equal(answers.filter(({ ok }) => ok).length, 64);
  assert.equal(answers.filter(({ refused }) => refused === "over-budget").length, 6);
  close();
});

test("a thread delegates to the host of its parent", async () => {
  const page = host({ executor: executor(async ({ input }) => input.task.toUpperCase()) });
  const entry = new URL("../../target/package/index.js", import.meta.url).href;
  const thread = new Worker(`
    const { parentPort } = require("node:worker_threads");
    import(${JSON.stringify(entry)}).then(async ({ connectTaskHost }) => {
      const host = connectTaskHost(parentPort);
      const { task } = await host.call("delegate_task", { agent: "a", task: "from a thread" }, { callId: "1" });
      let view = task;
      while (!view.outcome) ({ task: view } = await host.call("task_status", { address: task.address }));
      parentPort.postMessage({ done: view.answer });
    });`, { eval: true });
  const done = later();
  thread.on("message", (frame) => frame.done && done.resolve(frame.done));
  thread.on("error", done.reject);
  const server = serveTaskHost(page, thread, { owner: "thread" });
  assert.equal(await done.promise, "FROM A THREAD");
  await thread.terminate();
  server.close();
  assert.equal((await delegate(page, work, caller())).ok, true);
});
