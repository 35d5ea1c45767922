// What a task costs in a page, beside the writes that it cannot do without, and how a page with many tasks starts.
//
// "Bare" means: the same three transactions with values of the same size (the admission and the start as surely as the
// browser can, the end as it comes), one after the other, and nothing else.
const TASKS = 200;
const ROUND = 20;
const VERIFICATIONS = 2000;
const STORED = [1, 1000, 10000, 20000];
const STARTS = 5;

const { createBrowserTaskHost } = await import(new URL("package/index.js", location.href));
const at = (values, share) => values.toSorted((a, b) => a - b)[Math.floor(values.length * share)];
const rows = [];

// A host whose executor returns at once. What counts is when its third transaction is written: the end.
const writes = { done: 0 };
const begin = IDBDatabase.prototype.transaction;
IDBDatabase.prototype.transaction = function (...args) {
  const transaction = begin.apply(this, args);
  if (this.name === "bench-tasks" && args[1] === "readwrite") {
    transaction.addEventListener("complete", () => ++writes.done === 3 && writes.ended());
  }
  return transaction;
};
const executor = {
  check: () => ({ ok: true, mechanism: "at once", bounds: { deadlineMs: 30000, maxOutputBytes: 65536 } }),
  run: async () => "done",
};
const host = createBrowserTaskHost({ storage: "bench-tasks", executor });
const owner = "bench";
await host.ready();
let calls = 0;
const delegate = async () => {
  writes.done = 0;
  const ended = new Promise((resolve) => (writes.ended = resolve));
  const answer = await host.call("delegate_task", { agent: "hash", task: "x".repeat(200) }, { owner, callId: `c${calls++}` });
  if (!answer.ok) throw new Error(answer.why);
  await ended;
  return answer.task.address;
};
const first = await delegate();

// The same writes, bare. The values are those of the first task.
const opened = (name) => new Promise((resolve, reject) => {
  const request = indexedDB.open(name);
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});
const asked = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});
const done = (transaction) => new Promise((resolve, reject) => {
  transaction.oncomplete = resolve;
  transaction.onabort = () => reject(transaction.error);
});
const real = await opened("bench-tasks");
const reading = real.transaction(["entries", "tasks"]);
const entries = await asked(reading.objectStore("entries").getAll());
const [row] = await asked(reading.objectStore("tasks").getAll());
const bare = await new Promise((resolve) => {
  const request = indexedDB.open("bench-bare");
  request.onupgradeneeded = () => {
    for (const name of ["entries", "calls"]) request.result.createObjectStore(name);
    request.result.createObjectStore("tasks").createIndex("address", "address", { unique: true });
  };
  request.onsuccess = () => resolve(request.result);
});
let number = 0;
const write = async () => {
  const mine = ++number;
  const address = row.address.slice(0, -8) + String(mine).padStart(8, "0");
  for (const [index, durability] of ["strict", "strict", "relaxed"].entries()) {
    const transaction = bare.transaction(index === 0 ? ["entries", "tasks", "calls"] : ["entries", "tasks"], "readwrite", { durability });
    transaction.objectStore("entries").add(entries[index], [address, index + 1]);
    transaction.objectStore("tasks").put({ ...row, address }, -mine);
    if (index === 0) transaction.objectStore("calls").add(address, `call ${mine}`);
    transaction.commit();
    await done(transaction);
  }
};

const subjects = { "bare IndexedDB loop": write, "toolshelf": delegate };
const times = Object.fromEntries(Object.keys(subjects).map((name) => [name, []]));
for (let begun = 0; begun < TASKS + ROUND; begun += ROUND) {
  for (const [name, run] of Object.entries(subjects)) {
    for (let index = 0; index < ROUND; index++) {
      const start = performance.now();
      await run();
      // The first round warms up.
      if (begun > 0) times[name].push(performance.now() - start);
    }
  }
}
for (const [label, share] of [["delegated to completed, median", 0.5], ["delegated to completed, p95", 0.95]]) {
  for (const name of Object.keys(subjects)) rows.push({ case: label, subject: name, value: at(times[name], share), unit: "ms" });
}

// Addresses whose MAC is wrong: nothing is read for them, so this is what verifying costs.
const key = await crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
const bytes = new TextEncoder().encode(first);
const mac = await crypto.subtle.sign("HMAC", key, bytes);
const forged = first.slice(0, -1) + (first.endsWith("0") ? "1" : "0");
const verifying = {
  "bare subtle.verify": async () => crypto.subtle.verify("HMAC", key, mac, bytes),
  "toolshelf, a forged address": async () => {
    const answer = await host.call("task_status", { address: forged }, { owner });
    if (answer.refused !== "task-owner-mismatch") throw new Error(JSON.stringify(answer));
  },
};
for (const [name, verify] of Object.entries(verifying)) {
  const start = performance.now();
  for (let index = 0; index < VERIFICATIONS; index++) await verify();
  rows.push({ case: "HMAC verifications, one after the other", subject: name, value: (VERIFICATIONS * 1000) / (performance.now() - start), unit: "/s" });
}

// A page with many tasks: copies of the first one under other addresses.
const frame = () => document.body.appendChild(Object.assign(document.createElement("iframe"), { width: 1280, height: 800 }));
const until = async (what, test) => {
  for (const start = performance.now(); performance.now() - start < 60000; await new Promise((resolve) => setTimeout(resolve, 1))) {
    if (test()) return;
  }
  throw new Error(`waited in vain for ${what}`);
};
const show = async () => {
  const inside = frame();
  const start = performance.now();
  inside.src = "index.html#/tasks";
  await until("the tasks", () => inside.contentDocument?.querySelector(".task"));
  const opening = performance.now() - start;
  // And once the page is there: from another panel to the list.
  inside.contentWindow.location.hash = "#/extensions";
  await until("the other panel", () => !inside.contentDocument.querySelector(".task"));
  const again = performance.now();
  inside.contentWindow.location.hash = "#/tasks";
  await until("the tasks again", () => inside.contentDocument.querySelector(".task"));
  const switching = performance.now() - again;
  inside.remove();
  return { opening, switching };
};
// The page makes its database, and this fills it.
const maker = frame();
maker.src = "index.html#/tasks";
await until("the panel", () => maker.contentDocument?.querySelector(".tasks__none b"));
maker.remove();
const kept = await opened("toolshelf-tasks");
let have = 0;
for (const wanted of STORED) {
  while (have < wanted) {
    const transaction = kept.transaction(["entries", "tasks"], "readwrite");
    const [log, tasks] = ["entries", "tasks"].map((name) => transaction.objectStore(name));
    for (const end = Math.min(wanted, have + 1000); have < end; have++) {
      const address = row.address.slice(0, -8) + String(have).padStart(8, "0");
      const rename = (json) => json.replaceAll(row.address, address).replaceAll('"owner":"bench"', '"owner":"page"');
      entries.slice(0, 3).forEach((entry, index) => log.add({ ...entry, event: rename(entry.event) }, [address, index + 1]));
      tasks.put({ ...row, address, position: have + 1, call: `call ${have}`, record: rename(row.record) }, -(have + 1));
    }
    await done(transaction);
  }
  const starts = [];
  await show();
  for (let index = 0; index < STARTS; index++) starts.push(await show());
  const subject = wanted === 1 ? "1 stored task" : `${wanted} stored tasks`;
  for (const [name, what] of [["opening", "from nothing to the list, page load included"], ["switching", "from another panel to the list"]]) {
    rows.push({ case: what, subject, value: at(starts.map((start) => start[name]), 0.5), unit: "ms" });
  }
}
return { rows };
