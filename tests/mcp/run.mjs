// Clients of the MCP server that are not of this project: the official conformance suite, the official inspector, and the
// client of the TypeScript SDK. `cargo xtask test mcp` runs this, with the program to test as its argument.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, request } from "node:http";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { install, runner } from "./fixtures.mjs";
import { check as checkSdk } from "./sdk.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const program = process.argv[2];
const data = mkdtempSync(join(tmpdir(), "toolshelf-mcp-"));
const env = {
  PATH: process.env.PATH,
  HOME: data,
  TOOLSHELF_DATA_DIR: data,
  TOOLSHELF_CACHE_DIR: join(data, "cache"),
  TOOLSHELF_EXTENSIONS_ALLOW_UNSIGNED: "true",
  TOOLSHELF_LOG: "error",
};

/** The suite sends no token, so that something in front of the companion adds it. All else goes through as it is. */
async function withToken(port, token) {
  const proxy = createServer((incoming, outgoing) => {
    const own = `:${proxy.address().port}`;
    const named = (text) => (text?.endsWith(own) ? text.slice(0, -own.length) + `:${port}` : text);
    const headers = { ...incoming.headers, host: named(incoming.headers.host), authorization: `Bearer ${token}` };
    if (headers.origin) headers.origin = named(headers.origin);
    const { method, url: path } = incoming;
    const asked = request({ host: "127.0.0.1", port, method, path, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode, answer.headers);
      outgoing.flushHeaders();
      answer.pipe(outgoing);
    });
    asked.on("error", () => outgoing.destroy());
    outgoing.on("close", () => asked.destroy());
    incoming.pipe(asked);
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  return proxy;
}

async function companion() {
  const args = ["--json", "serve", "--listen", "127.0.0.1:0", "--data", data];
  const child = spawn(program, args, { env, stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(createInterface(child.stdout), "line");
  const { url, tokenFile } = JSON.parse(line);
  return { child, port: Number(new URL(url).port), url, token: readFileSync(tokenFile, "utf8").trim() };
}

async function run(name, script, args, settings = {}) {
  const child = spawn(process.execPath, [join(here, "node_modules", script), ...args], {
    env: { ...env, ...settings },
    cwd: data,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (printed += chunk));
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${name} ended with ${code}:\n${printed}`);
  return printed;
}

const INSPECTOR = "@modelcontextprotocol/inspector/clients/launcher/build/index.js";
const CONFORMANCE = "@modelcontextprotocol/conformance/dist/index.js";
const ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

async function inspector(name, target) {
  const listed = await run(`${name} tools/list`, INSPECTOR, ["--cli", ...target, "--method", "tools/list"]);
  if (!listed.includes('"hash"')) throw new Error(`${name} lists no hash:\n${listed}`);
  const call = ["--method", "tools/call", "--tool-name", "hash", "--tool-arg", "input=abc"];
  const called = await run(`${name} tools/call`, INSPECTOR, ["--cli", ...target, ...call]);
  if (!called.includes(ABC)) throw new Error(`${name} computes something else:\n${called}`);
  console.log(`${name}: lists and calls`);
}

const toolshelf = runner(program, env);
const proxies = [];
let served;
try {
  install(join(data, "fixtures"), toolshelf);
  served = await companion();
  const proxy = await withToken(served.port, served.token);
  proxies.push(proxy);

  const expected = join(here, "expected-failures.yml");
  const url = `http://localhost:${proxy.address().port}/mcp`;
  const suite = ["server", "--url", url, "--suite", "all", "--expected-failures", expected];
  const said = await run("the conformance suite", CONFORMANCE, suite);
  console.log(said.slice(said.indexOf("=== SUMMARY")));

  const http = `${served.url}mcp`;
  const bearer = `Bearer ${served.token}`;
  await inspector("inspector over HTTP", [http, "--transport", "http", "--header", `Authorization: ${bearer}`]);
  await inspector("inspector over stdio", [program, "mcp"]);
  await checkSdk({ http, bearer, program, env, digest: ABC });
  console.log("TypeScript SDK: lists and calls, over HTTP and stdio");
} finally {
  proxies.forEach((proxy) => {
    proxy.closeAllConnections();
    proxy.close();
  });
  served?.child.kill();
  if (served) await once(served.child, "close");
  rmSync(data, { recursive: true, force: true });
}
