// Task hosts of this page, and the way from an environment to its host.

import { core, isWellFormed, refusalOf, tables, variables, wire, wireArguments } from "./core.js";
import { isNode } from "./platform.js";
import { shelfOpening } from "./shelf.js";

/** Name of the database of hosts that are given no storage. */
const DATABASE = "toolshelf-host";
const ROOT = Object.freeze({ kind: "opfs", path: "v1/tasks" });

export function createBrowserTaskHost(options) {
  const {
    environment = "env_browser_local",
    instance = "browser-tab",
    project = "browser-project",
    boot,
    root = ROOT,
    executor = null,
    keyBytes,
    storage,
  } = options ?? {};
  const place = placeOf(storage);
  const key = keyBytes == null ? undefined : bytesOf(keyBytes);
  const settings = { environment, instance, project, boot, root, executor, key, ...place };
  const expected = place.database !== undefined || (place.area !== undefined && key !== undefined);

  let opening;
  let opened;
  const open = () =>
    (opening ??= core.openTaskHost({ ...settings, variables: variables() }).then(
      (host) => (opened = host),
      (refused) => {
        // The next call tries again: a database may have been blocked.
        opening = undefined;
        throw refused;
      },
    ));

  return Object.freeze({
    placement: "browser",
    environment,
    get persistent() {
      return opened?.persistent ?? expected;
    },
    async ready() {
      try {
        return { ok: true, persistent: (await open()).persistent };
      } catch (thrown) {
        return refusalOf(thrown, "task-admission-failed");
      }
    },
    async call(tool, args, caller) {
      try {
        // Written down now: what the caller changes later is not what was asked.
        const asked = wireArguments(args);
        const owner = textOf(caller?.owner);
        const callId = textOf(caller?.callId);
        await shelfOpening();
        return await (await open()).call(textOf(tool) ?? "", asked, owner, callId);
      } catch (thrown) {
        return refusalOf(thrown, "task-admission-failed");
      }
    },
  });
}

/** A text that is the same in every encoding; two that would become one are none. */
const textOf = (value) => (typeof value === "string" && isWellFormed(value) ? value : undefined);

function placeOf(storage) {
  if (storage == null) {
    if (globalThis.indexedDB) return { database: DATABASE, orMemory: true };
    const area = globalArea();
    return area ? { area } : { shared: true };
  }
  if (storage === "memory") return {};
  if (typeof storage === "string" && storage !== "") return { database: storage };
  if (isArea(storage)) return { area: storage };
  throw new TypeError('`storage` must be the name of a database, "memory", or an object like localStorage');
}

const isArea = (value) => ["getItem", "setItem", "removeItem"].every((name) => typeof value?.[name] === "function");

function globalArea() {
  // Node has one of its own that warns when it is looked at and was not asked for.
  const own = Object.getOwnPropertyDescriptor(globalThis, "localStorage");
  if (isNode && !own?.value) return undefined;
  try {
    return isArea(globalThis.localStorage) ? globalThis.localStorage : undefined;
  } catch {
    return undefined;
  }
}

/** A copy. What is no bytes is too short a key, and is refused as one. */
function bytesOf(key) {
  if (ArrayBuffer.isView(key)) return new Uint8Array(key.buffer, key.byteOffset, key.byteLength).slice();
  return key instanceof ArrayBuffer ? new Uint8Array(key.slice(0)) : new Uint8Array(0);
}

export function createPlacementDispatcher(hosts) {
  const given = hosts ?? {};
  const map = typeof given.hosts === "object" && given.hosts !== null ? given.hosts : given;

  const dispatch = (environment) => {
    const serves = {};
    for (const placement of Object.keys(tables.placementBounds)) {
      if (map[placement]) serves[placement] = String(map[placement].environment ?? "");
    }
    const chosen = core.dispatch(wire(serves), wire(environment));
    return chosen.ok ? { ...chosen, host: map[chosen.placement] } : chosen;
  };

  return Object.freeze({
    dispatch,
    async call(environment, tool, args, caller) {
      const chosen = dispatch(environment);
      if (!chosen.ok) return chosen;
      try {
        return await chosen.host.call(tool, args, caller);
      } catch (thrown) {
        return refusalOf(thrown, "task-admission-failed");
      }
    },
  });
}
