//! The same from the console, and what tools run in.

use anyhow::{Context as _, Result};
use serde_json::json;

use super::person::open;

#[tokio::test(flavor = "multi_thread")]
async fn the_line_in_the_readme_works_as_it_stands() -> Result<()> {
    let readme = std::fs::read_to_string(e2e::workspace().join("README.md"))?;
    let line = readme
        .lines()
        .find(|line| line.contains("toolshelf.callWasmTool("))
        .context("the README has no line")?;
    let page = open().await?;
    let blocks = page.run_async_js(&format!("return {line}"), Vec::new()).await?;
    assert_eq!(blocks[1], json!({"op": "insert", "aLine": 0, "aCount": 0, "bLine": 1, "bCount": 1}));
    page.quit().await
}

/// A worker of the kind that tools run in is asked what it can reach.
#[tokio::test(flavor = "multi_thread")]
async fn the_worker_around_a_tool_reaches_no_storage_and_no_network() -> Result<()> {
    let page = open().await?;
    let probe = r#"
        const script = `
            const tried = async (name, reach) => { try { await reach(); return name; } catch { return null; } };
            const open = () => new Promise((yes, no) => {
                const request = indexedDB.open("toolshelf"); request.onsuccess = yes; request.onerror = no; });
            Promise.all([
                tried("indexedDB", open),
                tried("opfs", () => navigator.storage.getDirectory()),
                tried("caches", () => caches.open("x")),
                tried("the page's own files", () => fetch("${location.href}")),
                tried("another origin", () => fetch("http://127.0.0.1:9/", { mode: "no-cors" })),
                tried("eval", () => eval("1")),
            ]).then((reached) => postMessage({ origin, reached: reached.filter(Boolean) }));`;
        const worker = new Worker("data:text/javascript," + encodeURIComponent(script));
        return await new Promise((yes, no) => {
            worker.onmessage = ({ data }) => yes(data);
            worker.onerror = () => no(new Error("the worker did not start"));
        });"#;
    let seen = page.run_async_js(probe, Vec::new()).await?;
    assert_eq!(seen, json!({ "origin": "null", "reached": [] }));
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn forty_calls_at_once_are_four_running_thirty_two_waiting_and_four_refused() -> Result<()> {
    let page = open().await?;
    let script = "
        const calls = Array.from({ length: 40 }, () => toolshelf.callWasmTool('hash', { input: 'abc' }));
        const answers = await Promise.all(calls);
        return [answers.filter((answer) => answer.ok).length, answers.filter((answer) => answer.refused === 'over-budget').length];";
    assert_eq!(page.run_async_js(script, Vec::new()).await?, json!([36, 4]));
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_module_of_the_contract_that_ends_gets_its_answer_in_the_built_page() -> Result<()> {
    let page = open().await?;
    for case in toolshelf_conformance::modules() {
        // Those that spin have a test of their own, and files of 16 MiB do not fit through a driver.
        if case.expect.refused.as_deref() == Some("time-exceeded") || case.name == "oversize" {
            continue;
        }
        let folder = case.folder();
        let script = "
            const files = Object.fromEntries(Object.entries(arguments[0]).map(([name, bytes]) => [name, new Uint8Array(bytes)]));
            const added = await toolshelf.addShelf(files);
            const tool = added.tools?.[0];
            const answer = tool?.admitted
                ? await toolshelf.callWasmTool('case', { input: 'abc', a: 'x', b: 'y' })
                : { ok: false, refused: tool?.refused ?? added.refused, why: tool?.why ?? added.why };
            const good = await toolshelf.callWasmTool('hash', { input: 'abc' });
            if (tool?.admitted) await toolshelf.removeShelf(added.dir);
            return [answer, good.ok];";
        let seen = page.run_async_js(script, vec![json!(folder)]).await?;
        assert_eq!(case.expect.differs(&seen[0]), None, "{}: {}", case.name, case.about);
        assert_eq!(seen[1], true, "a good call after {}", case.name);
    }
    page.assert_clean().await?;
    page.quit().await
}
