// What the module asks of the platform. Its glue imports this file.

export const isNode = typeof globalThis.process?.versions?.node === "string";

/** A built-in module of Node. The name is put together here, so that no bundler looks for it. */
export const builtin = (name) => import(/* @vite-ignore */ /* webpackIgnore: true */ `node:${name}`);

const threads = isNode && typeof globalThis.Worker !== "function" ? await builtin("worker_threads") : null;

/** Starts a worker from a `data:` URL: the browser's own, or a thread of Node with the same methods. */
export function startWorker(url) {
  return threads ? new ThreadWorker(url) : new Worker(url);
}

/** An async function, so that what an executor throws at once is thrown like all else. */
export async function runExecutor(executor, task) {
  return executor.run(task);
}

// What a script for a browser's worker finds missing in a thread.
const PRELUDE = `{
  const { parentPort } = require("node:worker_threads");
  globalThis.postMessage = (data) => parentPort.postMessage(data);
  globalThis.onmessage = null;
  parentPort.on("message", (data) => globalThis.onmessage({ data }));
}
`;

class ThreadWorker {
  onmessage = null;
  onerror = null;
  #thread;

  constructor(url) {
    const script = decodeURIComponent(url.slice(url.indexOf(",") + 1));
    this.#thread = new threads.Worker(PRELUDE + script, {
      eval: true,
      // A thread gets nothing of this process but its job.
      argv: [],
      env: {},
      execArgv: [],
      // The heap of its scripts; a module's own memory is bounded in the module.
      resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16 },
    });
    this.#thread.on("message", (data) => this.onmessage?.({ data }));
    this.#thread.on("error", ({ message }) => this.onerror?.({ message, preventDefault() {} }));
    // A thread that waits for work does not keep the process alive; a call has a timer that does. Listening would
    // bring the thread back, so this comes last, and again once it runs.
    this.#thread.unref();
    this.#thread.on("online", () => this.#thread.unref());
  }

  postMessage(data) {
    this.#thread.postMessage(data);
  }

  terminate() {
    // It answers later how it went, which nobody asks.
    this.#thread.terminate().catch(() => {});
  }
}
