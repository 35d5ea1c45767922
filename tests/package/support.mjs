// What the tests of the package share: hosts, executors and storages that do as they are told.

export * as toolshelf from "../../target/package/index.js";
import { createBrowserTaskHost } from "../../target/package/index.js";

export const bounds = { deadlineMs: 10_000, maxOutputBytes: 65_536 };
export const terms = { ok: true, mechanism: "a test", bounds };
export const key = new Uint8Array(32).fill(7);

/** An executor that runs `run`, within `bounds`. */
export const executor = (run = async () => "done", more = {}) => ({
  check: () => ({ ...terms, bounds: { ...bounds, ...more } }),
  run,
});

/** A host in memory of its own. */
export const host = (options) => createBrowserTaskHost({ storage: "memory", executor: executor(), ...options });

let calls = 0;
export const caller = (owner = "ann") => ({ owner, callId: `call-${++calls}` });
export const work = { agent: "worker", task: "do it" };

export const delegate = (host, args = work, by = caller()) => host.call("delegate_task", args, by);
export const status = (host, address, by = caller()) => host.call("task_status", { address }, by);
export const cancel = (host, address, by = caller()) => host.call("cancel_task", { address }, by);

/** Delegates, and fails when that is refused. */
export async function admitted(host, args, by) {
  const answer = await delegate(host, args, by);
  if (!answer.ok) throw new Error(`${answer.refused}: ${answer.why}`);
  return answer.task.address;
}

/** The task's view once `ready` holds for it. */
export async function seen(host, address, ready = ({ outcome }) => outcome !== undefined, by = caller()) {
  for (let round = 0; round < 500; round += 1) {
    const answer = await status(host, address, by);
    if (!answer.ok) throw new Error(`${answer.refused}: ${answer.why}`);
    if (ready(answer.task)) return answer.task;
    await pause(10);
  }
  throw new Error("waited in vain for the task");
}

/** Runs one task to its end. */
export const ended = async (host, args) => seen(host, await admitted(host, args));

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** A promise that is settled from outside. */
export function later() {
  let resolve, reject;
  const promise = new Promise((yes, no) => ([resolve, reject] = [yes, no]));
  return { promise, resolve, reject };
}

/** A storage like `localStorage`. `fails(key, count)` says which writes throw. */
export class Area {
  map = new Map();
  writes = 0;
  fails = () => false;

  getItem(key) {
    return this.map.get(key) ?? null;
  }

  setItem(key, value) {
    this.writes += 1;
    if (this.fails(key, this.writes)) throw new DOMException("the quota is exceeded", "QuotaExceededError");
    this.map.set(key, String(value));
  }

  removeItem(key) {
    this.map.delete(key);
  }

  key(index) {
    return [...this.map.keys()][index] ?? null;
  }

  get length() {
    return this.map.size;
  }

  records() {
    return [...this.map].filter(([key]) => key.startsWith("vb_task_")).map(([, text]) => JSON.parse(text));
  }
}

/** A host over a storage, whose key is known. */
export const stored = (area, options) => host({ storage: area, keyBytes: key, ...options });
