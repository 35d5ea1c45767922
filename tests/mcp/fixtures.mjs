// The tools that the conformance suite asks for by name, as extensions: real modules, built, pinned, installed and granted
// by the program under test.
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const SOUND = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

const image = { type: "image", data: PIXEL, mimeType: "image/png" };
const resource = { type: "resource", resource: { uri: "test://embedded-resource", mimeType: "text/plain", text: "embedded" } };
const text = (text) => ({ type: "text", text });
const anything = { type: "object", properties: {} };

/** Each with what it answers; `log` has lines that are logged before, `fails` ends in a trap. */
const FIXTURES = [
  { tool: "test_simple_text", result: "This is a simple text response for testing." },
  { tool: "test_image_content", result: { content: [image] } },
  { tool: "test_audio_content", result: { content: [{ type: "audio", data: SOUND, mimeType: "audio/wav" }] } },
  { tool: "test_embedded_resource", result: { content: [resource] } },
  { tool: "test_multiple_content_types", result: { content: [text("Multiple content types test:"), image, resource] } },
  { tool: "test_tool_with_logging", result: "logged", log: ["Tool execution started", "Tool processing data", "Tool execution completed"] },
  { tool: "test_tool_with_progress", result: "done" },
  { tool: "test_error_handling", fails: true },
  { tool: "test_reconnection", result: "done" },
  {
    tool: "json_schema_2020_12_tool",
    result: "done",
    schema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      $defs: { address: { type: "object", properties: { street: { type: "string" }, city: { type: "string" } } } },
      properties: { name: { type: "string" }, address: { $ref: "#/$defs/address" } },
      additionalProperties: false,
    },
  },
];

/** A text as WebAssembly text writes it. */
function data(text) {
  const escaped = [...Buffer.from(text)].map((byte) => "\\" + byte.toString(16).padStart(2, "0"));
  return `"${escaped.join("")}"`;
}

function module({ result, log = [], fails }) {
  const answer = JSON.stringify({ result: result ?? null });
  const lines = log.map((line, at) => ({ line, at: 70_000 + at * 1_000 }));
  const texts = lines.map(({ line, at }) => `(data (i32.const ${at}) ${data(line)})`);
  const calls = lines.map(
    ({ line, at }) => `(call $log (i32.const 69000) (i32.const 4) (i32.const ${at}) (i32.const ${Buffer.byteLength(line)}))`,
  );
  const length = Buffer.byteLength(answer);
  return `(module
    (import "crux" "log" (func $log (param i32 i32 i32 i32)))
    (memory (export "memory") 3)
    (data (i32.const 69000) "info")
    (data (i32.const 150000) ${data(answer)})
    ${texts.join("\n")}
    (func (export "extension_call") (param i32 i32 i32 i32) (result i32)
      ${calls.join("\n")}
      ${fails ? "(unreachable)" : `(memory.copy (local.get 2) (i32.const 150000) (i32.const ${length}))`}
      (i32.const ${length})))`;
}

/** Installs and grants them. `run` runs the program. */
export function install(folder, run) {
  for (const fixture of FIXTURES) {
    const id = `fixture.${fixture.tool.replaceAll("_", "-")}`;
    const place = join(folder, id);
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, "module.wat"), module(fixture));
    writeFileSync(
      join(place, "manifest.json"),
      JSON.stringify({
        schema: "crux.integration.v1",
        id,
        name: fixture.tool,
        version: "1",
        publisher_passport_fpr: "p_fixtures",
        summary: "A fixture of the conformance suite.",
        entry: { kind: "wasm", path: "manifest.json" },
        safety: { sandbox: "wasm", max_runtime_ms: 0, max_output_bytes: 0 },
        wasm_module_path: "module.wasm",
        tools: [{ name: fixture.tool, description: `The fixture ${fixture.tool}.`, input_schema: fixture.schema ?? anything }],
      }),
    );
    run(["build", join(place, "module.wat")]);
    run(["pin", place]);
    run(["ext", "install", place]);
    run(["ext", "grant", id, "--passport", "mcp"]);
  }
}

/** Runs the program to its end, and gives what it printed. */
export function runner(program, env) {
  return (args) => execFileSync(program, args, { env, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
}
