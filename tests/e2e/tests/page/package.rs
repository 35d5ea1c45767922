//! The npm package in a page that somebody else wrote: plain JavaScript, a strict policy, a worker.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use e2e::Browser;
use serde_json::{Value, json};
use toolshelf_serve::{Options, Server};

const PAGE: &str = "<!doctype html><html lang=en><meta charset=utf-8><title>embedder</title>
    <meta http-equiv=Content-Security-Policy content=\"default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; worker-src 'self' data:; img-src data:\">
    <link rel=icon href=data:,><main>An embedding page</main>";

/// Serves a host of its own, and calls the one of the page.
const WORKER: &str = r#"
    const executor = {
      check: () => ({ ok: true, mechanism: "the worker", bounds: { deadlineMs: 5000, maxOutputBytes: 100 } }),
      run: async ({ input }) => `the worker did ${input.task}`,
    };
    // A module that waits for its imports would miss the message.
    onmessage = async ({ data: { call, serve } }) => {
      const { connectTaskHost, createBrowserTaskHost, serveTaskHost } = await import("./toolshelf/index.js");
      serveTaskHost(createBrowserTaskHost({ environment: "env_worker", storage: "memory", executor }), serve, { owner: "page" });
      const host = connectTaskHost(call);
      const { task } = await host.call("delegate_task", { agent: "a", task: "the page's work" }, { owner: "root", callId: "w1" });
      let view = task;
      while (!view.outcome) ({ task: view } = await host.call("task_status", { address: task.address }));
      postMessage({ environment: host.environment, view });
    };"#;

/// What each script of these tests begins with.
const PRELUDE: &str = r#"
    const toolshelf = await import(new URL("toolshelf/index.js", location.href));
    const bounds = { deadlineMs: 60_000, maxOutputBytes: 1_000 };
    const executor = {
      check: () => ({ ok: true, mechanism: "the page", bounds }),
      run: ({ input, signal }) => input.task === "for ever"
        ? new Promise((_, no) => signal.addEventListener("abort", () => no(signal.reason)))
        : Promise.resolve(`did ${input.task}`),
    };
    const delegate = (host, task, callId) => host.call("delegate_task", { agent: "a", task }, { owner: "ann", callId });
    const status = async (host, address) => (await host.call("task_status", { address }, { owner: "ann" })).task;
    const until = async (host, address, ready) => {
      for (;;) {
        const task = await status(host, address);
        if (ready(task)) return task;
        await new Promise((next) => setTimeout(next, 10));
      }
    };
    const ended = (host, address) => until(host, address, ({ outcome }) => outcome);
"#;

struct Embedder {
    browser: Browser,
    server: Server,
    folder: PathBuf,
}

impl Embedder {
    async fn start(name: &str) -> Result<Self> {
        let package = e2e::workspace().join("target/package");
        ensure!(
            package.join("index.js").is_file(),
            "there is no package yet: run `cargo xtask package` first"
        );
        let folder = std::env::temp_dir().join(format!("toolshelf-embedder-{name}-{}", std::process::id()));
        let inside = folder.join("toolshelf");
        std::fs::create_dir_all(&inside)?;
        for entry in std::fs::read_dir(&package)? {
            let path = entry?.path();
            std::fs::copy(
                &path,
                inside.join(path.file_name().context("a file of the package has no name")?),
            )?;
        }
        std::fs::write(folder.join("index.html"), PAGE)?;
        std::fs::write(folder.join("worker.js"), WORKER)?;
        let options = Options { folder: folder.clone(), prefix: "/embedder/".into(), port: 0 };
        let embedder =
            Self { browser: Browser::start().await?, server: Server::start(options).await?, folder };
        embedder.open().await?;
        Ok(embedder)
    }

    /// Opens the page, or opens it again.
    async fn open(&self) -> Result<()> {
        self.browser.goto(&self.server.url()).await
    }

    async fn run(&self, script: &str, arguments: Vec<Value>) -> Result<Value> {
        self.browser.run_async_js(&[PRELUDE, script].concat(), arguments).await
    }

    async fn quit(self) -> Result<()> {
        let errors = self.browser.console_errors().await?;
        ensure!(errors.is_empty(), "the page reported errors: {errors:#?}");
        let requests = self.browser.requests().await?;
        let own = self.server.url();
        let foreign: Vec<_> =
            requests.iter().filter(|url| !url.starts_with(&own) && !url.starts_with("data:")).collect();
        ensure!(foreign.is_empty(), "the page asked elsewhere: {foreign:?}");
        remove(&self.folder);
        self.browser.quit().await
    }
}

fn remove(folder: &Path) {
    // What is left of a test in the system's own folder for that does no harm.
    let _ = std::fs::remove_dir_all(folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn importing_the_package_touches_no_global_and_its_tools_run_under_a_strict_policy() -> Result<()> {
    let page = Embedder::start("tools").await?;
    let script = r#"
        const before = Object.getOwnPropertyNames(globalThis).join();
        await import(new URL("toolshelf/index.js?again", location.href));
        const same = Object.getOwnPropertyNames(globalThis).join() === before;
        const hash = await toolshelf.callWasmTool("hash", { input: new Blob(["abc"]) });
        const names = (await toolshelf.liveToolDeclarations()).map(({ name }) => name);
        return [same, hash.output.slice(0, 8), names, (await toolshelf.readShelf()).dir];"#;
    let seen = page.run(script, Vec::new()).await?;
    assert_eq!(seen, json!([true, "ba7816bf", ["hash", "diff", "diff-loose"], "indexeddb:toolshelf"]));
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_outlive_the_page_in_a_database_and_in_local_storage() -> Result<()> {
    let page = Embedder::start("reload").await?;
    let script = r#"
        const hosts = [
            toolshelf.createBrowserTaskHost({ executor }),
            toolshelf.createBrowserTaskHost({ executor, storage: localStorage, keyBytes: new Uint8Array(32).fill(7) }),
        ];
        const kept = [];
        for (const host of hosts) {
            const done = (await delegate(host, "it", "c1")).task.address;
            const running = (await delegate(host, "for ever", "c2")).task.address;
            const { answer } = await ended(host, done);
            await until(host, running, ({ state }) => state === "running");
            kept.push({ done, running, answer, persistent: host.persistent });
        }
        return kept;"#;
    let kept = page.run(script, Vec::new()).await?;
    for place in kept.as_array().context("a list was returned")? {
        assert_eq!((&place["answer"], &place["persistent"]), (&json!("did it"), &json!(true)));
    }
    page.open().await?;
    let script = r#"
        const hosts = [
            toolshelf.createBrowserTaskHost({ executor }),
            toolshelf.createBrowserTaskHost({ executor, storage: localStorage, keyBytes: new Uint8Array(32).fill(7) }),
        ];
        const seen = [];
        for (const [index, { done, running }] of arguments[0].entries()) {
            const { state, answer } = await status(hosts[index], done);
            const lost = await status(hosts[index], running);
            const again = await delegate(hosts[index], "it", "c1");
            const other = await delegate(hosts[index], "another", "c1");
            seen.push([state, answer, lost.state, lost.reason, again.existing, again.task.address === done, other.refused]);
        }
        return seen;"#;
    // The life that ran the second task is known to be over: its lock is free.
    let one = json!([
        "completed",
        "did it",
        "interrupted",
        "environment-ended-outcome-unknown",
        true,
        true,
        "task-call-id-conflict"
    ]);
    assert_eq!(page.run(script, vec![kept]).await?, json!([one, one]));
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_of_one_database_see_each_other_and_a_task_is_cancelled_through_either() -> Result<()> {
    let page = Embedder::start("two").await?;
    let script = r#"
        const make = (boot) => toolshelf.createBrowserTaskHost({ executor, storage: "embedder", boot });
        const [one, other] = [make("b1"), make("b2")];
        const address = (await delegate(one, "for ever", "c1")).task.address;
        await until(one, address, ({ state }) => state === "running");
        const stale = await status(other, address);
        const asked = await other.call("cancel_task", { address }, { owner: "ann" });
        const after = await ended(other, address);
        const sameName = await Promise.all([make("b3"), make("b3")].map((host) => host.ready()));
        return [stale.state, stale.stale, asked.ok, after.state, sameName.map(({ ok }) => ok)];"#;
    let seen = page.run(script, Vec::new()).await?;
    assert_eq!(seen, json!(["running", true, true, "cancelled", [true, true]]));
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn shelf_tools_work_on_the_files_of_a_task_s_root() -> Result<()> {
    let page = Embedder::start("files").await?;
    let script = r#"
        let folder = await navigator.storage.getDirectory();
        for (const name of ["v1", "atlas"]) folder = await folder.getDirectoryHandle(name, { create: true });
        const write = await (await folder.getFileHandle("in.txt", { create: true })).createWritable();
        await write.write("abc");
        await write.close();
        const host = toolshelf.createBrowserTaskHost({
            storage: "memory", root: { kind: "opfs", path: "v1/atlas" }, executor: toolshelf.createShelfExecutor() });
        const ask = (task) => host.call("delegate_task", { agent: "hash", task: JSON.stringify(task) }, { owner: "ann", callId: crypto.randomUUID() });
        const { task } = await ask({ input: { file: "in.txt" }, out: "out.txt" });
        const { state } = await ended(host, task.address);
        const written = await (await (await folder.getFileHandle("out.txt")).getFile()).text();
        const missing = await ended(host, (await ask({ input: { file: "none.txt" } })).task.address);
        const outside = await ask({ input: { file: "../secret" } });
        return [state, written.slice(0, 8), missing.state, missing.reason, outside.refused];"#;
    let seen = page.run(script, Vec::new()).await?;
    assert_eq!(seen, json!(["completed", "ba7816bf", "failed", "file-unavailable", "outside-root"]));
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_and_its_worker_delegate_to_each_other_through_ports() -> Result<()> {
    let page = Embedder::start("ports").await?;
    let script = r#"
        const mine = toolshelf.createBrowserTaskHost({ environment: "env_page", storage: "memory", executor });
        const [call, serve] = [new MessageChannel(), new MessageChannel()];
        const server = toolshelf.serveTaskHost(mine, call.port1, { owner: "worker" });
        const worker = new Worker(new URL("worker.js", location.href), { type: "module" });
        const said = new Promise((yes, no) => {
            worker.onmessage = ({ data }) => yes(data);
            worker.onerror = ({ message }) => no(new Error(message));
        });
        worker.postMessage({ call: call.port2, serve: serve.port1 }, [call.port2, serve.port1]);
        const { environment, view } = await said;
        const asked = async (owner) => (await mine.call("task_status", { address: view.address }, { owner })).refused ?? "shown";
        const owners = [await asked("worker"), await asked("root")];
        const far = toolshelf.connectTaskHost(serve.port2);
        await far.ready();
        const dispatcher = toolshelf.createPlacementDispatcher({ hosts: { browser: far } });
        const target = { kind: "browser", key: "env_worker" };
        const { task } = await dispatcher.call(target, "delegate_task", { agent: "a", task: "its work" }, { callId: "1" });
        const { answer } = await ended(far, task.address);
        far.close();
        server.close();
        const late = await far.call("task_status", { address: task.address });
        return [environment, view.answer, owners, answer, late.refused];"#;
    let seen = page.run(script, Vec::new()).await?;
    let owners = ["shown", "task-owner-mismatch"];
    let wanted = json!([
        "env_page",
        "did the page's work",
        owners,
        "the worker did its work",
        "placement-unavailable"
    ]);
    assert_eq!(seen, wanted);
    page.quit().await
}
