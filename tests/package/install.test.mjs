// The packed file is installed and imported as anybody would.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const packageFolder = fileURLToPath(new URL("../../target/package", import.meta.url));

test("the packed file is installed without a network and imported by its name", async (context) => {
  const folder = await mkdtemp(join(tmpdir(), "toolshelf-package-"));
  context.after(() => rm(folder, { recursive: true, force: true }));
  await run("npm", ["pack", packageFolder, "--pack-destination", folder, "--offline", "--ignore-scripts"], { cwd: folder });
  const [packed] = (await readdir(folder)).filter((name) => name.endsWith(".tgz"));
  await writeFile(join(folder, "package.json"), '{"type": "module", "private": true}');
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts", `./${packed}`], { cwd: folder });

  const installed = join(folder, "node_modules/toolshelf");
  const files = (await readdir(installed)).sort();
  for (const file of ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "index.d.ts", "index.js", "package.json", "toolshelf_bg.wasm"]) {
    assert.ok(files.includes(file), `${file} of ${files}`);
  }
  const manifest = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
  assert.deepEqual([manifest.type, manifest.license, manifest.sideEffects], ["module", "MIT OR Apache-2.0", false]);
  assert.deepEqual(manifest.dependencies, undefined);

  const script = `
    const before = Object.getOwnPropertyNames(globalThis).sort().join();
    const { callWasmTool, createBrowserTaskHost } = await import("toolshelf");
    const after = Object.getOwnPropertyNames(globalThis).sort().join();
    const { output } = await callWasmTool("hash", { input: "abc" });
    const host = createBrowserTaskHost({ executor: {
      check: () => ({ ok: true, mechanism: "m", bounds: { deadlineMs: 1000, maxOutputBytes: 10 } }), run: async () => "done" } });
    const { ok } = await host.call("delegate_task", { agent: "a", task: "t" }, { owner: "o", callId: "c" });
    console.log(JSON.stringify({ same: before === after, output, ok }));`;
  await writeFile(join(folder, "main.js"), script);
  // It ends by itself: nothing that waits keeps the process alive.
  const { stdout, stderr } = await run(process.execPath, ["main.js"], { cwd: folder, timeout: 30_000 });
  assert.equal(stderr, "");
  assert.deepEqual(JSON.parse(stdout), {
    same: true, ok: true, output: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  });
});
