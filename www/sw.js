// The service worker: keeps one version of the page, whole and checked, so that it opens without a network.
// What it keeps is filled in when the page is built: see tools/xtask/src/offline.rs.
const VERSION = "";
const FILES = {};

// Several copies of the page may live on one origin, each in a folder of its own: each has caches of its own.
const SCOPE = registration.scope;
const CACHES = `toolshelf ${SCOPE} `;
const OWN = CACHES + VERSION;

// The tab that asked for this version; it reloads at once.
let asker;

addEventListener("install", (event) => event.waitUntil(fill()));

// A new version waits until a person asks for it, or until no tab is left.
addEventListener("message", (event) => {
  if (event.data === "activate") {
    asker = event.source.id;
    skipWaiting();
  }
});

addEventListener("activate", (event) => event.waitUntil(sweep()));

addEventListener("fetch", (event) => {
  const { request } = event;
  const url = request.url.replace(/[?#].*/, "");
  if (request.method !== "GET" || !url.startsWith(SCOPE)) return;
  const name = url.slice(SCOPE.length).replace(/^index\.html$/, "");
  // Folders below this one may hold pages that have nothing to do with this one.
  if (request.mode === "navigate" && name !== "") return;
  event.respondWith(answer(request, SCOPE + name));
});

// Nothing is kept before everything is there and is what was built.
async function fill() {
  const files = await Promise.all(Object.entries(FILES).map(async ([name, digest]) => [name, await load(name, digest)]));
  const cache = await caches.open(OWN);
  await Promise.all(files.map(([name, response]) => cache.put(SCOPE + name, response)));
}

// The browser has just loaded most files, so its own cache is asked first; it may hold an old copy of some.
async function load(name, digest) {
  for (const cache of ["default", "reload"]) {
    const response = await fetch(SCOPE + name, { cache });
    const bytes = await response.arrayBuffer();
    // A new response, because one that was redirected must not answer a navigation.
    if (response.ok && (await sha256(bytes)) === digest) return new Response(bytes, { headers: response.headers });
  }
  throw new Error(`toolshelf: ${name || "the page"} is not what version ${VERSION} was built with`);
}

async function sha256(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// The html comes from this version. What it asks for carries its hash in its name, so that a tab that still shows an
// older version finds its own files in the cache of that version, and never newer ones.
async function answer(request, key) {
  const own = await caches.match(key, { cacheName: OWN });
  if (own || request.mode === "navigate") return own ?? fetch(request);
  for (const cacheName of await versions()) {
    const older = await caches.match(key, { cacheName });
    if (older) return older;
  }
  return fetch(request);
}

// Older versions go once no tab shows them.
async function sweep() {
  const tabs = await clients.matchAll();
  if (tabs.some((tab) => tab.id !== asker)) return;
  await Promise.all((await versions()).map((name) => caches.delete(name)));
}

async function versions() {
  return (await caches.keys()).filter((name) => name.startsWith(CACHES) && name !== OWN);
}
