// The shelf in Node: admission, calls, declarations, and its tools as an executor.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { admitted, delegate, ended, host, seen, cancel, status, toolshelf } from "./support.mjs";

const { addShelf, callWasmTool, createShelfExecutor, readShelf, removeShelf } = toolshelf;
const SHA_ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

// (memory (export "memory") 2) and the export "sha256" of one instruction sequence.
const module = (...body) => {
  const code = [0, ...body, 0x0b];
  return new Uint8Array([
    0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
    1, 6, 1, 0x60, 1, 0x7f, 1, 0x7f,
    3, 2, 1, 0,
    5, 3, 1, 0, 2,
    7, 19, 2, 6, ...Buffer.from("memory"), 2, 0, 6, ...Buffer.from("sha256"), 0, 0,
    10, code.length + 2, 1, code.length, ...code,
  ]);
};
const ECHO = module(0x20, 0);
const SPIN = module(0x03, 0x40, 0x0c, 0, 0x0b, 0x41, 0);
const TRAP = module(0x00);

const digest = async (bytes) => Buffer.from(await crypto.subtle.digest("SHA-256", bytes)).toString("hex");
const shelf = async (name, tools) => {
  const entries = await Promise.all(Object.entries(tools).map(async ([id, bytes]) => (
    { id, wasm: `${id}.wasm`, digest: await digest(bytes), description: id, abi: "buffer-abi/1" })));
  const files = Object.fromEntries(Object.entries(tools).map(([id, bytes]) => [`${id}.wasm`, bytes]));
  return { "manifest.json": JSON.stringify({ name, version: "1", tools: entries }), ...files };
};

test("the shelf is read, in memory", async () => {
  const read = await readShelf();
  assert.equal(read.ok, true);
  assert.equal(read.dir, "memory:toolshelf");
  assert.deepEqual(read.tools.map(({ id, admitted }) => [id, admitted]), [["hash", true], ["diff", true], ["diff-loose", true]]);
  assert.equal((await readShelf("none")).refused, "shelf-unavailable");
});

test("hash and diff answer what they must", async () => {
  const hash = await callWasmTool("hash", { input: "abc" });
  assert.deepEqual([hash.ok, hash.output, hash.returned, hash.inputBytes], [true, SHA_ABC, 32, 3]);
  assert.equal(typeof hash.durationMs, "number");
  assert.equal((await callWasmTool("hash", { input: Buffer.from("abc") })).output, SHA_ABC);
  const diff = await callWasmTool("diff", { a: "alpha\nbeta\n", b: "alpha\ngamma\nbeta\n" });
  assert.equal(diff.returned, 52);
  assert.deepEqual(diff.blocks, [
    { op: "equal", aLine: 0, aCount: 1, bLine: 0, bCount: 1 },
    { op: "insert", aLine: 0, aCount: 0, bLine: 1, bCount: 1 },
    { op: "equal", aLine: 1, aCount: 1, bLine: 2, bCount: 1 },
  ]);
  assert.equal((await callWasmTool("hash", { input: "x".repeat(8_193) })).refused, "over-budget");
  assert.equal((await callWasmTool("none", {})).refused, "unknown-tool");
  assert.equal((await callWasmTool(7)).refused, "invalid-argument");
});

test("forty calls at once are thirty-six answers and four refusals", async () => {
  const answers = await Promise.all(Array.from({ length: 40 }, () => callWasmTool("hash", { input: "abc" })));
  assert.equal(answers.filter(({ output }) => output === SHA_ABC).length, 36);
  assert.equal(answers.filter(({ refused }) => refused === "over-budget").length, 4);
});

test("a shelf is added, called, and removed; what has another digest is refused", async () => {
  const files = await shelf("mine", { echo: ECHO, trap: TRAP });
  const added = await addShelf(files);
  assert.deepEqual([added.ok, added.stored, added.name], [true, 2, "mine"]);
  assert.equal((await callWasmTool("echo", { input: "abcd" })).returned, 4);
  assert.equal((await callWasmTool("trap", { input: "" })).refused, "wasm-trapped");
  const names = (await toolshelf.liveToolDeclarations(["echo"])).map(({ name }) => name);
  assert.deepEqual(names, ["hash", "diff", "diff-loose", "trap"]);
  assert.ok((await toolshelf.descriptors()).some(({ id }) => id === "wasm-shelf-echo"));
  assert.equal((await removeShelf(added.dir)).ok, true);
  assert.equal((await callWasmTool("echo", { input: "" })).refused, "unknown-tool");
  const bad = await addShelf({ ...files, "echo.wasm": TRAP });
  const [echo] = bad.tools;
  assert.deepEqual([echo.id, echo.admitted, echo.refused], ["echo", false, "digest-mismatch"]);
  await removeShelf(bad.dir);
});

test("a tool that spins is ended at its deadline, and the next call answers", async () => {
  const added = await addShelf(await shelf("spinning", { spin: SPIN }));
  const started = Date.now();
  const answer = await callWasmTool("spin", { input: "" });
  assert.equal(answer.refused, "time-exceeded");
  assert.ok(Date.now() - started >= toolshelf.WASM_CALL_DEADLINE_MS - 50);
  assert.equal((await callWasmTool("hash", { input: "abc" })).output, SHA_ABC);
  await removeShelf(added.dir);
});

test("the tools of the shelf execute tasks", async () => {
  const page = host({ executor: createShelfExecutor() });
  const hashed = await ended(page, { agent: "hash", task: "abc" });
  assert.deepEqual([hashed.state, hashed.answer, hashed.progress], ["completed", SHA_ABC, "Running hash"]);
  const diffed = await ended(page, { agent: "diff", task: JSON.stringify({ a: "x\n", b: "y\n" }) });
  assert.equal(diffed.answer, "--- old\n+++ new\n@@ -1,1 +1,1 @@\n-x\n+y\n");
  assert.equal((await delegate(page, { agent: "none", task: "x" })).refused, "unknown-tool");
  assert.equal((await delegate(page, { agent: "diff", task: "x" })).refused, "invalid-argument");
  // Without a private file system there are no files, and nothing is written where nobody could read it.
  const file = { agent: "hash", task: JSON.stringify({ input: { file: "a.txt" } }) };
  assert.equal((await delegate(page, file)).refused, "file-unavailable");
  assert.equal((await delegate(page, { agent: "hash", task: '{"input": "x", "out": "y"}' })).refused, "file-unavailable");
});

test("a task whose tool spins is cancelled, and its thread ended", async () => {
  const added = await addShelf(await shelf("cancelled", { spin: SPIN }));
  const page = host({ executor: () => createShelfExecutor() });
  await readShelf();
  const address = await admitted(page, { agent: "spin", task: "x" });
  await seen(page, address, ({ progress }) => progress === "Running spin");
  assert.deepEqual(await cancel(page, address), { ok: true, state: "cancelled", observed: true });
  assert.equal((await status(page, address)).task.state, "cancelled");
  await removeShelf(added.dir);
});

test("an executor of one's own may hand on to the tools", async () => {
  const tools = createShelfExecutor();
  await tools.ready;
  const page = host({
    executor: {
      check: (asked) => tools.check({ ...asked, input: { ...asked.input, agent: "hash" } }),
      run: async (task) => `sha256 ${await tools.run({ ...task, input: { ...task.input, agent: "hash" } })}`,
    },
  });
  assert.equal((await ended(page, { agent: "any", task: "abc" })).answer, `sha256 ${SHA_ABC}`);
  await assert.rejects(tools.run({ input: { agent: "none", task: "x" }, root: { kind: "opfs", path: "x" } }), { refused: "unknown-tool" });
  const stopped = tools.run({ input: { agent: "hash", task: "x" }, root: { kind: "opfs", path: "x" }, signal: AbortSignal.abort() });
  await assert.rejects(stopped, { refused: "task-cancelled" });
});

test("the limits and the ABI are those of the host", () => {
  assert.equal(toolshelf.WASM_CALL_DEADLINE_MS, 5_000);
  assert.equal(toolshelf.WASM_MODULE_MAX_BYTES, 16 * 1024 * 1024);
  assert.deepEqual(toolshelf.MEASURED_ABI.hash.input, { addr: 1024, maxBytes: 8192 });
  assert.equal(toolshelf.MEASURED_ABI.diff.abi, "buffer-abi/diff");
  assert.ok(toolshelf.RESERVED_NAMES.includes("delegate_task"));
  const { version } = JSON.parse(readFileSync(new URL("../../target/package/package.json", import.meta.url)));
  assert.equal(toolshelf.version, version);
});
