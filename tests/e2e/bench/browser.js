// What a call of the shelf costs, beside what the browser itself costs, in one run.
//
// "Bare" means: the compiled module and the input are posted, instantiated, run, and the answer is posted back, with no
// check of any kind. Every subject gets the same input, in turns, so that a busy moment of the machine hits all alike.
const CALLS = 200;
const ROUND = 20;
const INPUT_BYTES = 8192;

const input = new Uint8Array(INPUT_BYTES).map((_, index) => index % 251);
await toolshelf.readShelf();
const stored = atob(localStorage.getItem("toolshelf/builtin/hash.wasm"));
const bytes = Uint8Array.from(stored, (letter) => letter.charCodeAt(0));
const module = await WebAssembly.compile(bytes);
const expected = [...new Uint8Array(await crypto.subtle.digest("SHA-256", input))]
  .map((byte) => byte.toString(16).padStart(2, "0")).join("");

const script = `onmessage = ({ data: { module, input } }) => {
  const { memory, sha256 } = new WebAssembly.Instance(module).exports;
  new Uint8Array(memory.buffer, 0x400, input.length).set(input);
  sha256(input.length);
  postMessage(memory.buffer.slice(0x2400, 0x2420));
};
postMessage("ready");`;
const url = "data:text/javascript," + encodeURIComponent(script);

const hex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const message = (worker) => new Promise((resolve, reject) => {
  worker.onmessage = ({ data }) => resolve(data);
  worker.onerror = (event) => reject(new Error(event.message));
});
const check = (output) => {
  if (output !== expected) throw new Error(`wrong answer: ${output}`);
};

const readyWorker = async () => {
  const worker = new Worker(url);
  await message(worker);
  return worker;
};

const askWorker = async (worker) => {
  const answer = message(worker);
  worker.postMessage({ module, input });
  check(hex(await answer));
  worker.terminate();
};

// Each subject is prepared outside of the measured time; `call` is what is measured.
const subjects = {
  "bare ready-made worker": { prepare: readyWorker, call: askWorker },
  "toolshelf": {
    prepare: async () => {},
    call: async () => check((await toolshelf.callWasmTool("hash", { input })).output),
  },
  "bare fresh worker": { prepare: async () => {}, call: async () => askWorker(await readyWorker()) },
  "module on the main thread": {
    prepare: async () => {},
    call: async () => {
      const { memory, sha256 } = new WebAssembly.Instance(module).exports;
      new Uint8Array(memory.buffer, 0x400, input.length).set(input);
      sha256(input.length);
      check(hex(memory.buffer.slice(0x2400, 0x2420)));
    },
  },
};

const times = Object.fromEntries(Object.keys(subjects).map((name) => [name, []]));
const paced = async (name, count, keep) => {
  const { prepare, call } = subjects[name];
  for (let index = 0; index < count; index++) {
    const prepared = await prepare();
    // Long enough for workers that are started ahead to be ready.
    await pause(40);
    const start = performance.now();
    await call(prepared);
    if (keep) times[name].push(performance.now() - start);
  }
};

for (const name of Object.keys(subjects)) await paced(name, 10, false);
for (let done = 0; done < CALLS; done += ROUND) {
  for (const name of Object.keys(subjects)) await paced(name, ROUND, true);
}

const loops = { "bare fresh worker": [], "toolshelf": [] };
for (let done = 0; done < CALLS; done += ROUND) {
  for (const name of Object.keys(loops)) {
    const { prepare, call } = subjects[name];
    const start = performance.now();
    for (let index = 0; index < ROUND; index++) await call(await prepare());
    loops[name].push((ROUND * 1000) / (performance.now() - start));
    await pause(60);
  }
}

// The texts that a minimal line diff finds hardest, at the size that the ABI admits.
let state = 2463534242;
const random = () => {
  state ^= state << 13; state ^= state >>> 17; state ^= state << 5;
  return (state >>> 0) / 4294967296;
};
const textOf = (line) => {
  let text = "";
  for (let next = line(); text.length + next.length <= 65536; next = line()) text += next;
  return text;
};
const letters = (count) => () => String.fromCharCode(33 + Math.floor(random() * count)) + "\n";
const hardTexts = {
  "two letters": letters(2),
  "64 letters": letters(64),
  "half the lines empty": () => (random() < 0.5 ? "\n" : letters(2)()),
  "most lines empty": () => (random() < 0.9 ? "\n" : letters(20)()),
  "ordinary words": () => `${["let", "if", "return", "while"][Math.floor(random() * 4)]} value${Math.floor(random() * 300)};\n`,
};
const hard = [];
for (const [name, line] of Object.entries(hardTexts)) {
  const runs = [];
  for (let round = 0; round < 3; round++) {
    const answer = await toolshelf.callWasmTool("diff", { a: textOf(line), b: textOf(line) });
    if (!answer.ok) throw new Error(`${name}: ${answer.why}`);
    runs.push(answer.durationMs);
  }
  hard.push({ case: "diff of two texts of 65,536 bytes, the slowest of three", subject: name, value: Math.max(...runs), unit: "ms" });
}

const at = (values, share) => values.toSorted((a, b) => a - b)[Math.floor(values.length * share)];
const rows = [];
for (const [label, share] of [["median of a paced call", 0.5], ["p95 of a paced call", 0.95]]) {
  for (const name of Object.keys(subjects)) rows.push({ case: label, subject: name, value: at(times[name], share), unit: "ms" });
}
for (const name of Object.keys(loops)) {
  rows.push({ case: "closed loop, one caller", subject: name, value: at(loops[name], 0.5), unit: "/s" });
}
return { rows: [...rows, ...hard] };
