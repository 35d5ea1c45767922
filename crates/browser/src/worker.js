// An isolate: it does a trial when it starts, then one job, and is ended by the page.
// It runs from a `data:` URL, so its origin is opaque: no storage, no cache, no network.
"use strict";

let job;
let ready;

onmessage = ({ data }) => {
  // The job comes first; the word to run it, when the module's bytes have been read and hashed once more.
  // A module that has no start function runs nothing when it is instantiated, so that much is done ahead.
  if (data !== "run") {
    job = data;
    ready = job.starts ? null : instantiate(job);
  } else {
    postMessage(run(job));
  }
};

function instantiate({ module, export: name, needed, inputs }) {
  let instance;
  try {
    instance = new WebAssembly.Instance(module);
  } catch (error) {
    const starved = error instanceof RangeError && /memory/i.test(error.message);
    return { end: starved ? "out-of-memory" : "trapped", message: String(error) };
  }
  const { memory, [name]: call } = instance.exports;
  if (!(memory instanceof WebAssembly.Memory) || typeof call !== "function") {
    return { end: "unfit", message: `the instance exports no \`memory\` or no function \`${name}\`` };
  }
  if (memory.buffer.byteLength < needed) {
    const message = `memory is ${memory.buffer.byteLength} bytes but the declared ABI needs ${needed}`;
    return { end: "unfit", message };
  }
  for (const { addr, bytes } of inputs) new Uint8Array(memory.buffer, addr, bytes.length).set(bytes);
  return { memory, call };
}

function run({ inputs, output }) {
  const started = performance.now();
  const end = (answer) => ({ ...answer, elapsed: performance.now() - started });
  const { memory, call, ...failed } = ready ?? instantiate(job);
  if (!call) return end(failed);
  try {
    const returned = call(...inputs.map(({ bytes }) => bytes.length));
    // A length that cannot be is the page's to refuse; nothing is read for it.
    const length = output.fixed ? output.maxBytes : returned;
    const believable = length >= 0 && length <= output.maxBytes;
    const bytes = memory.buffer.slice(output.addr, output.addr + (believable ? length : 0));
    return end({ end: "returned", returned, output: bytes });
  } catch (error) {
    return end({ end: "trapped", message: String(error) });
  }
}
