// Toolshelf for pages, workers and Node. What everything does is written in `index.d.ts`.

import { core, tables, variables, wire, wireArguments } from "./core.js";

export { createBrowserTaskHost, createPlacementDispatcher } from "./hosts.js";
export { connectTaskHost, serveTaskHost } from "./port.js";
export {
  addShelf,
  callWasmTool,
  createShelfExecutor,
  descriptors,
  liveToolDeclarations,
  readShelf,
  removeShelf,
} from "./shelf.js";

export const version = tables.version;
export const PLACEMENT_BOUNDS = tables.placementBounds;
export const MEASURED_ABI = tables.measuredAbi;
export const RESERVED_NAMES = tables.reservedNames;
export const TASK_TOOLS = tables.taskTools;
export const TASK_STATES = tables.taskStates;
export const refusalCodes = tables.refusalCodes;
export const {
  WASM_CALL_DEADLINE_MS,
  WASM_MODULE_MAX_BYTES,
  WASM_CHILD_MAX_STDOUT_BYTES,
  WASM_CHILD_WATCHDOG_MS,
  WASM_MEMORY_MAX_BYTES,
  WASM_MAX_CONCURRENT_WORKERS,
  WASM_MAX_QUEUE_DEPTH,
  MANIFEST_MAX_BYTES,
  SHELF_MAX_TOOLS,
  TASK_MAX_BYTES,
  AGENT_MAX_CHARS,
  CALL_ID_MAX_CHARS,
  ADDRESS_MAX_CHARS,
  NOTE_MAX_CHARS,
} = tables.limits;

export const placementForEnvironment = (environment) => core.placementForEnvironment(wire(environment));
export const validatePlacementBounds = (placement, bounds) =>
  core.validatePlacementBounds(String(placement), wire(bounds));
export const taskInput = (args) => core.taskInput(wireArguments(args));
export const taskBounds = (bounds) => core.taskBounds(wire(bounds));
export const reduceTask = (entries, address) => core.reduceTask(wire(entries), String(address));
export const taskView = (record) => core.taskView(wire(record));
export const outcomeFor = (task) => core.outcomeFor(String(task?.state ?? task));
export const rootContainment = (root, placement) =>
  core.rootContainment(wire(root), typeof placement === "string" ? placement : undefined);
export const redactSecrets = (text) => (typeof text === "string" ? core.redactSecrets(text, variables()) : text);
export const redactObject = (value) => core.redactObject(wire(value), variables());
