// The module, loaded once, and how values get into it.

import init, * as core from "./toolshelf.js";
import { builtin, isNode } from "./platform.js";

const address = new URL("./toolshelf_bg.wasm", import.meta.url);
const isFile = isNode && address.protocol === "file:";
await init({ module_or_path: isFile ? await (await builtin("fs/promises")).readFile(address) : address });

export { core };

export const tables = freeze(core.tables());

function freeze(value) {
  if (typeof value === "object" && value !== null) Object.values(value).forEach(freeze);
  return Object.freeze(value);
}

/** The JSON of a value. What JSON does not have becomes `null`, and so does what cannot be read. */
export function wire(value) {
  try {
    return JSON.stringify(value, writable) ?? "null";
  } catch {
    return "null";
  }
}

function writable(_key, value) {
  if (typeof value === "string") return wellFormed(value);
  return ["undefined", "function", "symbol", "bigint"].includes(typeof value) ? null : value;
}

// Half a surrogate pair has no UTF-8.
const HALVES = /\p{Surrogate}/gu;
const wellFormed = (text) => text.replace(HALVES, "\ufffd");
export const isWellFormed = (text) => text.search(HALVES) < 0;

/** The JSON of a call's arguments. Only a plain object is one; every field counts, whatever is in it. */
export function wireArguments(args) {
  try {
    if (Object.prototype.toString.call(args) !== "[object Object]") return "null";
    // Without a prototype, a field of any name is a field.
    const fields = Object.create(null);
    for (const key of Object.keys(args)) {
      const value = args[key];
      if (key !== "context" || value !== undefined) fields[key] = value;
    }
    return wire(fields);
  } catch {
    return "null";
  }
}

/** A refusal. */
export const refusal = (code, why) => core.refusal(code, wellFormed(String(why)).slice(0, 400));

/** What was thrown, as a refusal: its own, or one with `code`. */
export function refusalOf(thrown, code) {
  if (thrown?.ok === false && typeof thrown.refused === "string") return thrown;
  const known = typeof thrown?.refused === "string" && Object.hasOwn(tables.refusalCodes, thrown.refused);
  return refusal(known ? thrown.refused : code, thrown?.message ?? thrown);
}

/** Names and values of the environment variables, in turn: the values of secret ones are redacted. */
export const variables = () =>
  Object.entries(globalThis.process?.env ?? {}).flat().filter((text) => typeof text === "string");
