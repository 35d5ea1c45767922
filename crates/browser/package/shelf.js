// The shelf of this page: in IndexedDB, or in memory where there is none.

import { core, refusal, wire } from "./core.js";

let opening;
let shelf;
let executing = false;

const open = () => (opening ??= core.openShelf().then((opened) => (shelf = opened)));
const api = async () => (await open()).api();

export const readShelf = async (key) => (await api()).readShelf(key);
export const callWasmTool = async (id, args) => (await api()).callWasmTool(id, args);
export const liveToolDeclarations = async (reserved) => (await api()).liveToolDeclarations(reserved);
export const descriptors = async () => (await api()).descriptors();
export const addShelf = (files) => change("addShelf", files);
export const removeShelf = (key) => change("removeShelf", key);

async function change(name, argument) {
  const functions = await api();
  const changed = await functions[name](argument);
  // An executor checks against what was last read.
  if (executing) await functions.readShelf();
  return changed;
}

/** The shelf's opening, once an executor waits for it. */
export const shelfOpening = () => (executing ? open() : undefined);

export function createShelfExecutor() {
  executing = true;
  const ready = open().then(() => undefined);
  return Object.freeze({
    ready,
    check({ input }) {
      if (!shelf) return refusal("executor-unavailable", "the shelf is not open yet: await the executor's `ready`");
      return shelf.check(wire(input));
    },
    async run({ input, root, report, signal }) {
      await ready;
      const ended = await shelf.run(wire(input), wire(root), report, signal);
      if (ended.ok) return ended.answer;
      throw Object.assign(new Error(ended.why), { refused: ended.refused });
    },
  });
}
