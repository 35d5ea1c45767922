// How tasks end: by their answers, their deadlines, their owners' word, and their faults.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  admitted, bounds, cancel, caller, ended, executor, host, later, pause, seen, status, terms, toolshelf,
} from "./support.mjs";

const running = ({ state }) => state === "running";
const end = ({ state, reason, answer }) => [state, reason, answer];

test("past its deadline a task is interrupted, its signal aborted, and its late answer not heard", async () => {
  const late = later();
  let signal;
  const page = host({
    executor: executor((task) => {
      signal = task.signal;
      task.report("half way");
      return late.promise;
    }, { deadlineMs: 60 }),
  });
  const address = await admitted(page);
  const task = await seen(page, address);
  assert.deepEqual(end(task), ["interrupted", "task-deadline", undefined]);
  assert.deepEqual(task.outcome, { class: "observed-interruption", basis: "host-observed" });
  assert.equal(task.progress, "half way");
  assert.equal(signal.aborted, true);
  late.resolve("too late");
  await pause(30);
  assert.deepEqual((await status(page, address)).task, task);
});

test("a task that stops when it is told to is seen to be cancelled", async () => {
  const page = host({
    executor: executor(({ signal }) => new Promise((_, no) => {
      signal.addEventListener("abort", () => no(signal.reason));
    })),
  });
  const address = await admitted(page);
  await seen(page, address, running);
  assert.deepEqual(await cancel(page, address), { ok: true, state: "cancelled", observed: true });
  const { task } = await status(page, address);
  assert.deepEqual(task.outcome, { class: "observed-cancellation", basis: "host-observed" });
  assert.equal((await cancel(page, address)).refused, "task-not-running");
});

test("an executor may say by code that it was cancelled", async () => {
  const page = host({
    executor: executor(({ signal }) => new Promise((_, no) => {
      signal.onabort = () => no(Object.assign(new Error("stopped"), { refused: "task-cancelled" }));
    })),
  });
  const address = await admitted(page);
  await seen(page, address, running);
  assert.equal((await cancel(page, address)).state, "cancelled");
});

test("a task that does not listen is not claimed to have stopped, and may still end", async () => {
  const deaf = later();
  const page = host({ executor: executor(() => deaf.promise) });
  const address = await admitted(page);
  await seen(page, address, running);
  const asked = Date.now();
  assert.deepEqual(await cancel(page, address), { ok: true, state: "cancel_unconfirmed", observed: false });
  assert.ok(Date.now() - asked >= 1_400);
  assert.equal((await status(page, address)).task.outcome, undefined);
  deaf.resolve("done after all");
  assert.deepEqual(end(await seen(page, address)), ["completed", undefined, "done after all"]);
});

test("who claims to be cancelled though nobody asked has failed", async () => {
  const page = host({ executor: executor(async () => { throw new DOMException("stop", "AbortError"); }) });
  assert.deepEqual(end(await ended(page)), ["failed", "task-cancelled", undefined]);
});

test("an answer fits into its bytes or is none", async () => {
  const says = (text, maxOutputBytes = 65_536) => ended(host({ executor: executor(async () => text, { maxOutputBytes }) }));
  assert.equal((await says("x".repeat(65_536))).answer.length, 65_536);
  assert.deepEqual(end(await says("x".repeat(65_537))), ["failed", "task-output-over-budget", undefined]);
  assert.equal((await says("é".repeat(5), 10)).state, "completed");
  assert.deepEqual(end(await says("é".repeat(5) + "x", 10)), ["failed", "task-output-over-budget", undefined]);
  assert.deepEqual(end(await says("x".repeat(50_000_000))), ["failed", "task-output-over-budget", undefined]);
  assert.equal((await says("")).answer, "");
});

test("an answer that is no text is none", async () => {
  for (const answer of [undefined, null, 7, {}, ["x"], new String("x"), Symbol("x")]) {
    assert.deepEqual(end(await ended(host({ executor: executor(async () => answer) }))), ["failed", "task-invalid-result", undefined]);
  }
});

test("a fault is a failure, with its code where it has one and its words where it has none", async () => {
  const throws = (thrown) => executor(() => { throw thrown; });
  const rejects = (thrown) => executor(async () => { throw thrown; });
  for (const make of [throws, rejects]) {
    const named = await ended(host({ executor: make(Object.assign(new Error("x"), { refused: "file-unavailable" })) }));
    assert.deepEqual(end(named), ["failed", "file-unavailable", undefined]);
    const foreign = await ended(host({ executor: make(Object.assign(new Error("full"), { refused: "quota" })) }));
    assert.deepEqual([...end(foreign), foreign.progress], ["failed", "executor-failed", undefined, "quota: full"]);
    const plain = await ended(host({ executor: make(new TypeError("no such model")) }));
    assert.deepEqual([...end(plain), plain.progress], ["failed", "executor-failed", undefined, "no such model"]);
    for (const odd of [undefined, null, "text", 7, Object.create(null)]) {
      assert.deepEqual(end(await ended(host({ executor: make(odd) }))), ["failed", "executor-failed", undefined]);
    }
  }
});

test("promises with traps in them end as faults", async () => {
  const trap = { get then() { throw new Error("trap"); } };
  const hostile = Object.assign(Promise.resolve("x"), {});
  Object.defineProperty(hostile, "constructor", { get() { throw new Error("trap"); } });
  for (const answer of [trap, hostile]) {
    const page = host({ executor: executor(() => answer) });
    assert.equal((await ended(page)).state, "failed");
    assert.equal((await ended(host())).state, "completed", "another host goes on");
  }
});

test("a note is the latest text that says something, and is short", async () => {
  const go = later();
  let say;
  const page = host({ executor: executor(({ report, partial }) => ((say = { report, partial }), go.promise)) });
  const address = await admitted(page);
  await seen(page, address, running);
  const progress = async () => (await status(page, address)).task.progress;
  for (const nothing of ["", "  \n", 7, null, undefined, { toString: () => "x" }]) say.report(nothing);
  assert.equal(await progress(), undefined);
  say.report("first");
  say.report("second");
  assert.equal(await progress(), "second");
  say.report("é".repeat(1_000_000));
  assert.equal(await progress(), "é".repeat(300));
  for (let count = 0; count < 10_000; count += 1) say.report(`${count} ${"x".repeat(100)}`);
  assert.match(await progress(), /^9999 x+$/);
  say.partial("so far");
  assert.equal((await status(page, address)).task.partial, "so far");
  go.resolve("all");
  const task = await seen(page, address);
  say.report("too late");
  assert.match((await status(page, address)).task.progress, /^9999/);
  assert.deepEqual([task.answer, task.partial], ["all", undefined]);
});

test("addresses that were forged, cut or are another's open nothing", async () => {
  const page = host({ keyBytes: new Uint8Array(32).fill(1) });
  const address = await admitted(page);
  const codes = new Set();
  const tried = async (bad, by) => {
    const answer = await status(page, bad, by);
    assert.equal(answer.ok, false, `${bad}`);
    codes.add(answer.refused);
    const asked = await cancel(page, bad, by);
    assert.equal(asked.refused, answer.refused);
  };
  const flip = (text, at) => text.slice(0, at) + (text[at] === "a" ? "b" : "a") + text.slice(at + 1);
  for (let at = 5; at < address.length; at += 1) await tried(flip(address, at));
  for (let length = 0; length < address.length; length += 7) await tried(address.slice(0, length));
  for (const bad of [undefined, null, 7, {}, [], "", "task_", `${address} `, address.toUpperCase(), `x${address}`, "x".repeat(9_000)]) {
    await tried(bad);
  }
  for (const owner of ["bob", "ann ", "Ann", "ann\0"]) await tried(address, { owner });
  const payload = btoa('{"environment":"env_browser_local"}').replaceAll("=", "");
  await tried(`task_${payload}.${"0".repeat(64)}`);
  assert.deepEqual([...codes].sort(), ["invalid-task-address", "task-owner-mismatch"]);
  assert.equal((await page.call("task_status", { address, more: 1 }, { owner: "ann" })).refused, "invalid-task-address");
  assert.equal((await status(page, address)).ok, true);
});

test("an address of another key, another environment or another journal opens nothing", async () => {
  const keyBytes = new Uint8Array(32).fill(1);
  const address = await admitted(host({ keyBytes }));
  const code = async (options) => (await status(host(options), address)).refused;
  assert.equal(await code({ keyBytes: new Uint8Array(32).fill(2) }), "task-owner-mismatch");
  assert.equal(await code({ keyBytes, environment: "env_other" }), "task-environment-changed");
  assert.equal(await code({ keyBytes }), "task-not-found");
});

test("no part of the key is in an address", async () => {
  const address = await admitted(host({ keyBytes: new Uint8Array(32).fill(0xab) }));
  const locator = JSON.parse(atob(address.slice(5).split(".")[0].replaceAll("-", "+").replaceAll("_", "/")));
  assert.match(locator.keyEpoch, /^[0-9a-f]{16}$/);
  assert.ok(!locator.keyEpoch.includes("abab"));
});

test("an executor may use its host while it runs", async () => {
  let page;
  const inner = caller();
  page = host({
    executor: {
      check: () => terms,
      run: async ({ input, signal }) => {
        if (input.task === "inner") return "inner";
        signal.addEventListener("abort", () => void status(page, "task_x.y"));
        return seen(page, await admitted(page, { agent: "a", task: "inner" }, inner)).then(({ answer }) => answer);
      },
    },
  });
  assert.equal((await ended(page, { agent: "a", task: "outer" })).answer, "inner");
  assert.equal(toolshelf.PLACEMENT_BOUNDS.browser.maxActiveTasks, 4);
  assert.equal(bounds.deadlineMs, 10_000);
});
