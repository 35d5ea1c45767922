// The pure functions: bounds, placements, inputs, the reducer, redaction, the dispatcher.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Area, caller, executor, host, key, seen, admitted, stored, toolshelf, work } from "./support.mjs";

const { createPlacementDispatcher, reduceTask, validatePlacementBounds } = toolshelf;

test("the bounds of the placements are the documented ones, and nobody changes them", () => {
  const machine = { defaultDeadlineMs: 60_000, maxDeadlineMs: 3_600_000, maxOutputBytes: 65_536, maxActiveTasks: 8 };
  const browser = { defaultDeadlineMs: 30_000, maxDeadlineMs: 300_000, maxOutputBytes: 65_536, maxActiveTasks: 4 };
  assert.deepEqual(toolshelf.PLACEMENT_BOUNDS, { browser, machine, remote: machine });
  assert.throws(() => { toolshelf.PLACEMENT_BOUNDS.browser.maxActiveTasks = 99; }, TypeError);
});

test("bounds are taken up to the placement's maximum", () => {
  const most = { deadlineMs: 300_000, maxOutputBytes: 65_536 };
  assert.deepEqual(validatePlacementBounds("browser", most), { ok: true, bounds: most });
  const over = validatePlacementBounds("browser", { ...most, deadlineMs: 300_001 });
  assert.equal(over.refused, "unbounded-executor");
  assert.match(over.why, /exceeds the browser placement maximum/);
  assert.equal(validatePlacementBounds("machine", { ...most, deadlineMs: 3_600_000 }).ok, true);
  for (const placement of ["cloud", "", null, undefined, "toString"]) {
    assert.equal(validatePlacementBounds(placement, most).refused, "unbounded-executor");
  }
  for (const bad of [null, undefined, {}, [], "x", { ...most, deadlineMs: NaN }, { ...most, deadlineMs: 10n }]) {
    assert.equal(validatePlacementBounds("browser", bad).refused, "unbounded-executor");
  }
  assert.deepEqual(toolshelf.taskBounds({ deadlineMs: 3_600_000, maxOutputBytes: 1 }), { deadlineMs: 3_600_000, maxOutputBytes: 1 });
  assert.equal(toolshelf.taskBounds({ deadlineMs: 3_600_001, maxOutputBytes: 1 }), null);
});

test("an environment has the placement of its descriptor or its name, and an unknown one has none", () => {
  const cases = [
    [{ kind: "browser" }, "browser"], [{ kind: "server" }, "machine"], [{ kind: "fence" }, "machine"],
    [{ kind: "browser", reach: "paired" }, "remote"], [{ reach: "paired" }, "remote"], [{ kind: "x" }, null],
    ["browser", "browser"], ["server", "machine"], ["machine", "machine"], ["remote_fleet", "remote"],
    ["elsewhere", null], ["", null], [null, null], [undefined, null], [7, null], [["browser"], null],
  ];
  for (const [environment, placement] of cases) assert.equal(toolshelf.placementForEnvironment(environment), placement);
});

test("an input is read, or refused with a reason", () => {
  assert.deepEqual(toolshelf.taskInput(work), { ok: true, value: { ...work, context: [] } });
  assert.equal(toolshelf.taskInput({ ...work, boot: 1 }).refused, "task-authority-field");
  const half = toolshelf.taskInput({ agent: "a", task: "half \ud83d" });
  assert.equal(half.value.task, "half \ufffd");
});

test("roots have their containment strings, or a reason why not", () => {
  const { rootContainment } = toolshelf;
  assert.equal(rootContainment({ kind: "opfs", path: "v1/x" }), "opfs:v1/x");
  assert.equal(rootContainment({ kind: "handle", id: "h1" }, "browser"), "picked:h1");
  assert.equal(rootContainment({ kind: "machine", path: "/srv" }), "machine:/srv");
  assert.equal(rootContainment(null).refused, "root-not-declared");
  assert.equal(rootContainment({ kind: "machine", path: "/srv" }, "browser").refused, "root-not-reachable-from-here");
});

const record = {
  address: "task_x", environment: "env_1", placement: "browser", owner: "ann", root: { kind: "handle", id: "h1" },
  project: "p", instance: "tab", callId: "c", input: { ...work, context: [] }, mechanism: "m", boot: "b",
  bounds: { deadlineMs: 1, maxOutputBytes: 1 }, state: "queued",
  createdAt: "2026-01-01T00:00:00.000Z", updatedAt: "2026-01-01T00:00:00.000Z",
};
const entry = (seq, task, more = {}) => ({
  kind: "task", seq, instance: "tab", project: "p", root: "picked:h1", turn: "c",
  at: `2026-01-01T00:00:0${seq}.000Z`, task: { address: "task_x", ...task }, ...more,
});
const created = entry(1, { state: "queued", created: record });

test("a log in any order becomes the record of its task", () => {
  const log = [
    entry(3, { state: "completed", answer: "", progress: undefined }), { kind: "presence", seq: 9 }, created,
    entry(2, { state: "running", task: 1 }), entry(2, { address: "task_y", state: "nonsense" }),
  ];
  const reduced = reduceTask(log, "task_x");
  assert.deepEqual([reduced.state, reduced.answer, reduced.updatedAt], ["completed", "", "2026-01-01T00:00:03.000Z"]);
  assert.deepEqual(reduced.outcome, { class: "claimed-complete", basis: "executor-claimed" });
  assert.equal(reduceTask(log, "task_z"), null);
  assert.equal(reduceTask([], "task_x"), null);
  const view = toolshelf.taskView(reduced);
  assert.deepEqual([view.agent, view.answer, view.owner, view.placement], ["worker", "", undefined, "browser"]);
});

test("a log that contradicts itself is thrown out, with the words for it", () => {
  const running = entry(2, { state: "running" });
  const ended = entry(3, { state: "failed", reason: "executor-failed" });
  const cases = [
    [[created, entry(1, { state: "running" })], "duplicate task event position"],
    [[created, entry(2, { state: "queued", created: record })], "invalid task creation"],
    [[entry(1, { state: "running", created: record })], "invalid task creation"],
    [[entry(1, { state: "queued", created: { ...record, address: "task_y" } })], "invalid task creation"],
    [[entry(1, { state: "queued", created: { ...record, state: "running" } })], "invalid task creation"],
    [[entry(1, { state: "queued", created: {} })], "invalid task creation"],
    [[running], "task event without a live admission"],
    [[created, running, ended, entry(4, { state: "completed" })], "task event without a live admission"],
    [[created, entry(2, { state: "completed" })], "invalid task transition"],
    [[created, entry(2, { state: "cancel_requested" })], "invalid task transition"],
    [[created, running, entry(3, { state: "cancelled" })], "invalid task transition"],
    [[created, entry(2, { state: "flying" })], "invalid task transition"],
    [[created, { ...running, instance: "other" }], "task writer or root mismatch"],
    [[created, { ...running, root: "opfs:h1" }], "task writer or root mismatch"],
    [[{ ...created, root: "handle:h1" }], "task writer or root mismatch"],
  ];
  for (const [log, message] of cases) assert.throws(() => reduceTask(log, "task_x"), { name: "Error", message });
  assert.throws(() => toolshelf.taskView({ state: "queued" }), /no record of a task/);
});

test("states have their outcomes, and those that are not the end have none", () => {
  const classes = toolshelf.TASK_STATES.map((state) => toolshelf.outcomeFor(state)?.class ?? null);
  assert.deepEqual(classes, [
    null, null, null, "observed-cancellation", null, "claimed-complete", "observed-failure", "observed-interruption",
  ]);
  assert.equal(toolshelf.outcomeFor({ state: "failed" }).basis, "host-observed");
  assert.equal(toolshelf.outcomeFor("flying"), null);
});

test("secrets are redacted, those of the environment too, and what is no text stays", () => {
  const { redactObject, redactSecrets } = toolshelf;
  process.env.TOOLSHELF_TEST_TOKEN = "quite-an-ordinary-word";
  assert.equal(redactSecrets("say quite-an-ordinary-word and ghp_abcdefghijklmnopqrstuvwxyz0123456789"), "say [redacted] and [redacted]");
  delete process.env.TOOLSHELF_TEST_TOKEN;
  assert.equal(redactSecrets("say quite-an-ordinary-word"), "say quite-an-ordinary-word");
  const object = {};
  assert.equal(redactSecrets(object), object);
  assert.equal(redactSecrets(null), null);
  assert.deepEqual(redactObject({ password: { a: 1 }, list: ["Bearer abc123def456ghi789jkl"] }), { password: "[redacted]", list: ["Bearer [redacted]"] });
});

test("a dispatcher goes to the host of the placement, and to no other", async () => {
  const page = stored(new Area(), { environment: "env_page" });
  const far = { placement: "remote", environment: "env_far", call: async (tool, args, by) => ({ ok: true, tool, args, by }) };
  for (const hosts of [{ browser: page, remote: far }, { hosts: { browser: page, remote: far } }]) {
    const dispatcher = createPlacementDispatcher(hosts);
    assert.deepEqual(dispatcher.dispatch({ kind: "browser", key: "env_page" }), { ok: true, placement: "browser", host: page });
    assert.equal(dispatcher.dispatch("browser").host, page);
    assert.equal(dispatcher.dispatch({ kind: "server", reach: "paired", key: "env_far" }).host, far);
    assert.equal(dispatcher.dispatch({ kind: "server" }).refused, "placement-unavailable");
    assert.equal(dispatcher.dispatch({ kind: "moon" }).refused, "placement-unavailable");
    assert.equal(dispatcher.dispatch({ kind: "browser", key: "env_other" }).refused, "environment-mismatch");
    const by = caller();
    const { task } = await dispatcher.call("browser", "delegate_task", work, by);
    assert.equal((await seen(page, task.address)).state, "completed");
    assert.deepEqual(await dispatcher.call("remote", "task_status", 1, 2), { ok: true, tool: "task_status", args: 1, by: 2 });
    assert.equal((await dispatcher.call("machine", "task_status", {}, by)).refused, "placement-unavailable");
  }
  for (const nothing of [undefined, null, {}, { hosts: {} }]) {
    assert.equal(createPlacementDispatcher(nothing).dispatch("browser").refused, "placement-unavailable");
  }
  const broken = createPlacementDispatcher({ remote: { environment: "x", call() { throw new Error("down"); } } });
  assert.equal((await broken.call("remote", "task_status", {}, {})).refused, "task-admission-failed");
});

test("two hosts with one key in one page see each other's tasks, and other keys do not", async () => {
  const area = new Area();
  const address = await admitted(stored(area), work);
  const other = host({ storage: area, keyBytes: new Uint8Array(key).fill(9), executor: executor() });
  assert.equal((await other.call("task_status", { address }, { owner: "ann" })).refused, "task-owner-mismatch");
});
