// What is admitted and what is refused, in which order, and how often a call runs.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  admitted, bounds, caller, delegate, executor, host, later, pause, seen, status, terms, toolshelf, work,
} from "./support.mjs";

const refused = async (answer, code) => {
  const { ok, refused, why } = await answer;
  assert.deepEqual([ok, refused], [false, code], why);
  assert.ok(why.length > 0);
  return why;
};

test("a host is there at once and says where it is", async () => {
  const page = host({ environment: "env_tab" });
  assert.equal(page.placement, "browser");
  assert.equal(page.environment, "env_tab");
  assert.equal(page.persistent, false);
  assert.deepEqual(await page.ready(), { ok: true, persistent: false });
  assert.equal(host().environment, "env_browser_local");
});

test("a task is queued, then runs, and completes as a claim", async () => {
  const page = host({ executor: () => executor(async ({ input }) => `answer to ${input.task}`) });
  const answer = await delegate(page);
  assert.equal(answer.ok, true);
  assert.equal(answer.existing, false);
  assert.equal(answer.task.state, "queued");
  assert.equal(answer.task.placement, "browser");
  assert.deepEqual(answer.task.root, { kind: "opfs", path: "v1/tasks" });
  assert.match(answer.task.address, /^task_[\w-]+\.[0-9a-f]{64}$/);
  const task = await seen(page, answer.task.address);
  assert.equal(task.state, "completed");
  assert.equal(task.answer, "answer to do it");
  assert.deepEqual(task.outcome, { class: "claimed-complete", basis: "executor-claimed" });
  for (const secret of ["owner", "input", "callId", "bounds", "boot"]) assert.ok(!(secret in task), secret);
});

test("what an executor is given is the task, its root and its bounds, and a real signal", async () => {
  const given = [];
  const page = host({
    environment: "env_given",
    root: () => ({ kind: "opfs", path: "v1/projects/atlas", environment: "env_given" }),
    executor: {
      check(asked) {
        given.push(asked);
        asked.root.path = "elsewhere";
        return terms;
      },
      async run(task) {
        given.push(task);
        return "done";
      },
    },
  });
  await seen(page, await admitted(page));
  const [asked, task] = given;
  assert.deepEqual(Object.keys(asked), ["input", "root", "environment", "placement"]);
  assert.deepEqual(asked.input, { ...work, context: [] });
  assert.deepEqual([asked.environment, asked.placement], ["env_given", "browser"]);
  assert.deepEqual(task.input, { ...work, context: [] });
  assert.deepEqual(task.bounds, bounds);
  assert.deepEqual(task.root, { kind: "opfs", path: "v1/projects/atlas" });
  assert.ok(task.signal instanceof AbortSignal && !task.signal.aborted);
  assert.doesNotThrow(() => task.report("long after the end"));
});

test("the rules of an input are kept in their order", async () => {
  const page = host();
  const long = "x".repeat(16_385);
  const cases = [
    [null, "invalid-task"], [undefined, "invalid-task"], ["text", "invalid-task"], [[work], "invalid-task"],
    [new Map(Object.entries(work)), "invalid-task"], [() => work, "invalid-task"],
    [{ owner: 1, agent: "", task: "", context: 1 }, "task-authority-field"],
    [{ ...work, bounds: undefined }, "task-authority-field"],
    [JSON.parse('{"agent": "a", "task": "t", "__proto__": 1}'), "task-authority-field"],
    [{ agent: "", task: "", context: 1 }, "agent-required"], [{ agent: "a b", task: "t" }, "agent-required"],
    [{ agent: "a".repeat(81), task: "t" }, "agent-required"], [{ task: "t" }, "agent-required"],
    [{ agent: "a", task: " \n\ufeff", context: 1 }, "invalid-task"], [{ agent: "a", task: 7 }, "invalid-task"],
    [{ agent: "a", task: long, context: 1 }, "task-input-over-budget"],
    [{ agent: "a", task: "é".repeat(8_193) }, "task-input-over-budget"],
    [{ agent: "a", task: "t", context: {} }, "invalid-task-context"],
    [{ agent: "a", task: "t", context: null }, "invalid-task-context"],
    [{ agent: "a", task: "t", context: ["x"] }, "task-context-unavailable"],
    [{ agent: "a", get task() { throw new Error("no"); } }, "invalid-task"],
    [new Proxy({}, { ownKeys() { throw new Error("no"); } }), "invalid-task"],
  ];
  for (const [args, code] of cases) {
    await refused(page.call("delegate_task", args, {}), "task-owner-unverified");
    await refused(page.call("delegate_task", args, { owner: "ann" }), code);
  }
  assert.match(await refused(delegate(page, { ...work, pid: 1 }), "task-authority-field"), /"pid"/);
  await refused(delegate(page, work, { owner: "ann" }), "task-call-id-required");
  for (const callId of ["", "a b", "a\0b", "x".repeat(161), 7]) {
    await refused(delegate(page, work, { owner: "ann", callId }), "task-call-id-required");
  }
  for (const owner of [undefined, null, "", "  ", 7, "\ud800"]) {
    await refused(delegate(page, work, { owner, callId: "1" }), "task-owner-unverified");
  }
  await refused(page.call("delegate", work, caller()), "unknown-tool");
  await refused(page.call(undefined, work, caller()), "unknown-tool");
  const whole = { agent: "a", task: "x".repeat(16_384), context: undefined };
  assert.equal((await delegate(page, whole)).ok, true);
});

test("a call runs once, however often it is repeated", async () => {
  let runs = 0;
  const page = host({ executor: executor(async () => `run ${++runs}`) });
  const by = caller();
  const both = await Promise.all([delegate(page, work, by), delegate(page, work, by)]);
  assert.deepEqual(both.map(({ existing }) => existing).sort(), [false, true]);
  await seen(page, both[0].task.address);
  const again = await delegate(page, { ...work, context: [] }, by);
  assert.equal(again.existing, true);
  assert.equal(again.task.answer, "run 1");
  assert.equal(runs, 1);
  await refused(delegate(page, { ...work, task: "another" }, by), "task-call-id-conflict");
  assert.equal(runs, 1);
});

test("owner and call id are told apart, whatever is in them", async () => {
  const page = host();
  const one = await admitted(page, work, { owner: "a:b", callId: "c" });
  const other = await admitted(page, work, { owner: "a", callId: "b:c" });
  assert.notEqual(one, other);
  assert.equal((await status(page, one, { owner: "a:b" })).ok, true);
  await refused(status(page, one, { owner: "a" }), "task-owner-mismatch");
});

test("four tasks run, and a place is held until its executor has settled", async () => {
  const running = [1, 2, 3, 4].map(later);
  let started = 0;
  const page = host({ executor: executor(() => running[started++]?.promise ?? "at once", { deadlineMs: 50 }) });
  const bys = running.map(() => caller());
  const addresses = await Promise.all(bys.map((by) => admitted(page, work, by)));
  await refused(delegate(page), "task-capacity-exhausted");
  // A known call still answers.
  assert.equal((await delegate(page, work, bys[0])).existing, true);
  const late = await Promise.all(addresses.map((address) => seen(page, address)));
  for (const task of late) assert.deepEqual([task.state, task.reason], ["interrupted", "task-deadline"]);
  await refused(delegate(page), "task-capacity-exhausted");
  running[0].resolve("too late");
  await pause(20);
  const next = await admitted(page);
  assert.equal((await seen(page, next)).answer, "at once");
  const after = await status(page, addresses[0]);
  assert.deepEqual([after.task.state, after.task.answer], ["interrupted", undefined]);
  running.forEach(({ resolve }) => resolve(""));
});

test("an executor that promises nothing admits nothing", async () => {
  const run = async () => "";
  const answers = (answer) => ({ check: () => answer, run });
  const cases = [
    [null, "executor-unavailable"], [undefined, "executor-unavailable"], [() => null, "executor-unavailable"],
    [() => { throw new Error("gone"); }, "executor-unavailable"],
    [{ run }, "unbounded-executor"], [{ check: () => terms }, "unbounded-executor"], ["x", "unbounded-executor"],
    [{ check: async () => terms, run }, "unbounded-executor"], [answers(undefined), "unbounded-executor"],
    [answers({ ...terms, ok: 1 }), "unbounded-executor"], [answers({ ok: false }), "unbounded-executor"],
    [answers({ ok: false, refused: "agent-not-configured", why: "no such agent" }), "agent-not-configured"],
    [answers({ ok: false, refused: "agent-unavailable", why: "not here" }), "unbounded-executor"],
    [answers({ ok: true, mechanism: "m" }), "unbounded-executor"],
    [answers({ ...terms, mechanism: "" }), "unbounded-executor"],
    [answers({ ...terms, mechanism: undefined }), "unbounded-executor"],
    [{ check() { throw Object.assign(new Error("busy"), { refused: "agent-not-configured" }); }, run }, "agent-not-configured"],
    [{ check() { throw new Error("broken"); }, run }, "task-admission-failed"],
  ];
  for (const deadlineMs of [0, -1, 1.5, NaN, Infinity, "1", 300_001, 2 ** 53]) {
    cases.push([answers({ ...terms, bounds: { ...bounds, deadlineMs } }), "unbounded-executor"]);
  }
  for (const maxOutputBytes of [0, 65_537, null]) {
    cases.push([answers({ ...terms, bounds: { ...bounds, maxOutputBytes } }), "unbounded-executor"]);
  }
  for (const [executor, code] of cases) await refused(delegate(host({ executor })), code);
  const why = await refused(delegate(host({ executor: answers({ ok: false, refused: "agent-unavailable", why: "not here" }) })), "unbounded-executor");
  assert.equal(why, "agent-unavailable: not here");
  const over = answers({ ...terms, bounds: { ...bounds, deadlineMs: 300_001 } });
  assert.match(await refused(delegate(host({ executor: over })), "unbounded-executor"), /exceeds the browser placement maximum/);
  const most = answers({ ...terms, bounds: { deadlineMs: 300_000, maxOutputBytes: 65_536 } });
  assert.equal((await delegate(host({ executor: most }))).ok, true);
});

test("a refused task gives its place back", async () => {
  let no = true;
  const page = host({ executor: () => (no ? null : executor()) });
  for (let count = 0; count < 10; count += 1) await refused(delegate(page), "executor-unavailable");
  no = false;
  const four = await Promise.all([1, 2, 3, 4].map(() => delegate(page)));
  assert.ok(four.every(({ ok }) => ok));
});

test("a root must be there, and be a page's", async () => {
  const roots = [
    null, () => null, () => { throw new Error("no"); }, {}, { kind: "opfs", path: "../x" }, { kind: "opfs", path: "" },
    { kind: "machine", path: "/srv" }, { kind: "cloud", path: "x" },
  ];
  for (const root of roots) await refused(delegate(host({ root })), "task-root-unavailable");
  const picked = host({ root: { kind: "handle", id: "h1", label: "Notes" } });
  assert.deepEqual((await delegate(picked)).task.root, { kind: "handle", id: "h1", label: "Notes" });
});

test("a key of fewer than 32 bytes, and an environment that is none, serve nobody", async () => {
  for (const keyBytes of [new Uint8Array(31), new Uint8Array(0), "x".repeat(32), [1, 2, 3]]) {
    await refused(delegate(host({ keyBytes })), "task-environment-unverified");
  }
  for (const environment of ["", "a\0b", 7, null]) {
    await refused(delegate(host({ environment })), "task-environment-unverified");
  }
  assert.equal((await delegate(host({ keyBytes: new Uint8Array(64).buffer }))).ok, true);
  assert.throws(() => host({ storage: 7 }), TypeError);
});

test("a database that is asked for by name and is not there is refused, not replaced", async () => {
  const page = host({ storage: "a-database" });
  await refused(delegate(page), "storage-unavailable");
  assert.equal((await page.ready()).refused, "storage-unavailable");
});

test("the first of the refusals of a delegation wins", async () => {
  const nothing = { root: null, executor: null };
  await refused(delegate(host(nothing), work, { owner: "ann" }), "task-call-id-required");
  await refused(delegate(host(nothing)), "task-root-unavailable");
  const never = later();
  let closed = false;
  const busy = host({ executor: () => (closed ? null : executor(() => never.promise)) });
  for (let count = 0; count < 4; count += 1) await admitted(busy);
  closed = true;
  await refused(delegate(busy), "task-capacity-exhausted");
  never.resolve("");
});

test("refusals have the codes of the table, with a meaning and a remedy", () => {
  for (const [code, { meaning, remedy }] of Object.entries(toolshelf.refusalCodes)) {
    assert.match(code, /^[a-z-]+$/);
    assert.ok(meaning.length > 10 && remedy.length > 5, code);
  }
  assert.ok(Object.isFrozen(toolshelf.refusalCodes["task-deadline"]));
});
