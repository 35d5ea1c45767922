// An isolate: it is given one module and one input, answers once, and is ended by the page.
// It runs from a `data:` URL, so its origin is opaque: no storage, no cache, no network.
"use strict";

onmessage = ({ data }) => {
  onmessage = null;
  const answer = run(data);
  postMessage(answer, answer.output ? [answer.output] : []);
};

function run({ module, export: name, needed, inputs, output }) {
  const started = performance.now();
  const end = (end, rest) => ({ end, elapsed: performance.now() - started, ...rest });

  let instance;
  try {
    instance = new WebAssembly.Instance(module);
  } catch (error) {
    const starved = error instanceof RangeError && /memory/i.test(error.message);
    return end(starved ? "out-of-memory" : "trapped", { message: String(error) });
  }

  const { memory, [name]: call } = instance.exports;
  if (!(memory instanceof WebAssembly.Memory) || typeof call !== "function") {
    return end("unfit", { message: `the instance exports no \`memory\` or no function \`${name}\`` });
  }
  if (memory.buffer.byteLength < needed) {
    const message = `memory is ${memory.buffer.byteLength} bytes but the declared ABI needs ${needed}`;
    return end("unfit", { message });
  }

  try {
    for (const { addr, bytes } of inputs) new Uint8Array(memory.buffer, addr, bytes.length).set(bytes);
    const returned = call(...inputs.map(({ bytes }) => bytes.length));
    // A length that cannot be is the page's to refuse; nothing is read for it.
    const length = output.fixed ? output.maxBytes : returned;
    const believable = length >= 0 && length <= output.maxBytes;
    const bytes = memory.buffer.slice(output.addr, output.addr + (believable ? length : 0));
    return end("returned", { returned, output: bytes });
  } catch (error) {
    return end("trapped", { message: String(error) });
  }
}

postMessage("ready");
