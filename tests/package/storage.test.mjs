// Tasks in an object like `localStorage`: what is written, what happens when it cannot be, and what a later life reads.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Area, admitted, cancel, caller, delegate, ended, executor, host, key, later, pause, seen, status, stored, toolshelf, work,
} from "./support.mjs";

const SECRET = "sk-live-abcdefghijklmnop0123456789";

test("a record and a call are written, under their names", async () => {
  const area = new Area();
  const page = stored(area, { environment: "env_names" });
  assert.equal(page.persistent, true);
  const by = { owner: "ann", callId: "turn:1" };
  const address = await admitted(page, work, by);
  await seen(page, address);
  const keys = [...area.map.keys()].sort();
  assert.equal(keys.length, 2);
  assert.match(keys[0], /^vb_call_env_names\0[0-9a-f]{16}\0ann\0turn:1$/);
  assert.equal(area.map.get(keys[0]), address);
  assert.equal(keys[1], `vb_task_${address}`);
  const [record] = area.records();
  assert.deepEqual([record.state, record.owner, record.callId, record.answer], ["completed", "ann", "turn:1", "done"]);
  assert.deepEqual(record.input, { ...work, context: [] });
});

test("secrets are taken out before anything is written", async () => {
  const area = new Area();
  const go = later();
  const page = stored(area, {
    executor: executor(async ({ report, partial }) => {
      report(`the key is ${SECRET}`);
      partial(`part ${SECRET}`);
      await go.promise;
      return `the answer kept ${SECRET} in prose`;
    }),
  });
  const address = await admitted(page);
  const task = await seen(page, address, ({ progress }) => progress !== undefined);
  assert.equal(task.progress, "the key is [redacted]");
  assert.equal(task.partial, "part [redacted]");
  go.resolve();
  assert.equal((await seen(page, address)).answer, "the answer kept [redacted] in prose");
  const failing = stored(area, { executor: executor(() => { throw new Error(`no: ${SECRET}`); }) });
  await ended(failing);
  assert.ok(![...area.map.values()].join().includes("abcdefghijklmnop"));
});

test("a storage that does not take the admission lets nothing run, and no place is lost", async () => {
  for (const failing of ["vb_task_", "vb_call_"]) {
    const area = new Area();
    let runs = 0;
    const page = stored(area, { executor: executor(async () => `${++runs}`) });
    area.fails = (key) => key.startsWith(failing);
    const bys = Array.from({ length: 6 }, () => caller());
    for (const by of bys) assert.equal((await delegate(page, work, by)).refused, "task-persistence-failed");
    await pause(20);
    assert.equal(runs, 0);
    assert.equal(area.map.size, 0, "nothing is left behind");
    area.fails = () => false;
    const again = await Promise.all(bys.slice(0, 4).map((by) => delegate(page, work, by)));
    assert.ok(again.every(({ ok, existing }) => ok && !existing));
    await Promise.all(again.map(({ task }) => seen(page, task.address)));
    assert.equal(runs, 4);
  }
});

test("whichever write fails, what is answered is true and nothing runs twice", async () => {
  for (let failing = 1; failing <= 5; failing += 1) {
    const area = new Area();
    let runs = 0;
    const page = stored(area, { executor: executor(async () => `${++runs}`) });
    area.fails = (_key, count) => count === failing;
    const by = caller();
    const answer = await delegate(page, work, by);
    if (failing <= 2) {
      assert.equal(answer.refused, "task-persistence-failed");
      assert.equal(runs, 0);
      continue;
    }
    const task = await seen(page, answer.task.address);
    // The word that it runs is the third write; without it nothing runs.
    const expected = failing === 3 ? ["failed", "task-persistence-failed", 0] : ["completed", undefined, 1];
    assert.deepEqual([task.state, task.reason, runs], expected);
    assert.equal((await delegate(page, work, by)).existing, true);
    await seen(page, answer.task.address);
    assert.equal(area.records()[0].state, task.state, "written in the end");
    assert.equal(runs, expected[2]);
  }
});

test("a storage that forgets, answers later or answers nonsense has not taken anything", async () => {
  const forgets = { getItem: () => null, setItem() {}, removeItem() {} };
  assert.equal((await delegate(stored(forgets))).refused, "task-persistence-failed");
  const map = new Map();
  const promises = {
    getItem: async (name) => map.get(name) ?? null,
    setItem: async (name, value) => void map.set(name, value),
    removeItem: async (name) => void map.delete(name),
  };
  assert.equal((await delegate(stored(promises))).refused, "task-audit-unavailable");
  const throws = { getItem() { throw new Error("denied"); }, setItem() {}, removeItem() {} };
  assert.equal((await delegate(stored(throws))).refused, "task-audit-unavailable");
});

test("a later life knows the calls and reads the ends", async () => {
  const area = new Area();
  const by = caller();
  const address = await admitted(stored(area), work, by);
  await pause(30);
  let runs = 0;
  const later = stored(area, { executor: executor(async () => `${++runs}`) });
  assert.equal((await status(later, address)).task.answer, "done");
  const again = await delegate(later, work, by);
  assert.deepEqual([again.existing, again.task.address], [true, address]);
  assert.equal((await delegate(later, { ...work, task: "x" }, by)).refused, "task-call-id-conflict");
  assert.equal(runs, 0);
});

test("a task of a life that nobody can ask about keeps its state and is stale", async () => {
  const area = new Area();
  const never = later();
  const by = caller();
  const first = stored(area, { boot: "boot-1", executor: executor(() => never.promise) });
  const address = await admitted(first, work, by);
  await seen(first, address, ({ state }) => state === "running");
  const second = stored(area, { boot: "boot-2" });
  const { task } = await status(second, address);
  assert.deepEqual([task.state, task.stale, task.staleReason, task.outcome], ["running", true, "generation-unconfirmed", undefined]);
  assert.equal((await delegate(second, work, by)).task.stale, true);
  // The request is written down; the life that has the task obeys when it looks.
  assert.deepEqual(await cancel(second, address), { ok: true, state: "cancel_unconfirmed", observed: false });
  assert.equal((await status(first, address)).task.state, "cancel_unconfirmed");
  never.resolve("done");
  assert.equal((await seen(first, address)).state, "completed");
  assert.equal((await status(second, address)).task.stale, undefined);
});

test("the list of calls can be made again from the tasks", async () => {
  const area = new Area();
  const by = caller();
  const address = await admitted(stored(area), work, by);
  await pause(30);
  for (const name of [...area.map.keys()]) if (name.startsWith("vb_call_")) area.removeItem(name);
  const again = await delegate(stored(area), work, by);
  assert.deepEqual([again.existing, again.task.address], [true, address]);
});

test("a record that was changed by hand is not believed, and others are not hurt", async () => {
  const area = new Area();
  const page = stored(area);
  const [bad, good] = [await admitted(page), await admitted(page)];
  await seen(page, bad);
  await seen(page, good);
  for (const text of ["{", "null", "7", "{}", area.map.get(`vb_task_${good}`)]) {
    area.map.set(`vb_task_${bad}`, text);
    assert.equal((await status(stored(area), bad)).refused, "task-audit-unavailable", text);
    assert.equal((await status(stored(area), good)).ok, true);
  }
  const stolen = { ...JSON.parse(area.map.get(`vb_task_${good}`)), owner: "bob" };
  area.map.set(`vb_task_${good}`, JSON.stringify(stolen));
  assert.equal((await status(stored(area), good)).refused, "task-owner-mismatch");
});

test("without a key that lasts, a storage does not make a host persistent", async () => {
  const area = new Area();
  const page = host({ storage: area });
  const address = await admitted(page);
  assert.equal(page.persistent, false);
  assert.deepEqual(await page.ready(), { ok: true, persistent: false });
  assert.equal((await status(host({ storage: area }), address)).refused, "task-owner-mismatch");
});

test("without a storage a host takes localStorage where there is one, and the memory of the page where there is none", async () => {
  const { createBrowserTaskHost } = toolshelf;
  const options = { keyBytes: key, executor: executor() };
  const area = new Area();
  Object.defineProperty(globalThis, "localStorage", { value: area, configurable: true });
  const page = createBrowserTaskHost(options);
  delete globalThis.localStorage;
  await ended(page);
  assert.equal(area.records().length, 1);
  assert.equal(page.persistent, true);
  const [one, other] = [createBrowserTaskHost(options), createBrowserTaskHost(options)];
  const address = await admitted(one);
  await seen(one, address);
  assert.equal((await status(other, address)).task.answer, "done");
  assert.equal(one.persistent, false);
});
