//! What the page offers to the browser's own agent: found through `getTools`, called through `executeTool`.

use anyhow::Result;
use e2e::Page;
use serde_json::{Value, json};

use super::delegating::{add_spinning_tool, before_each_page};
use super::person::count;

/// Calls a tool as the agent does. The arguments are its name and what it is given.
const EXECUTE: &str = "
    const tools = await document.modelContext.getTools();
    const tool = tools.find(({ name }) => name === arguments[0]);
    return JSON.parse(await document.modelContext.executeTool(tool, arguments[1]));";

async fn start() -> Result<Page> {
    Page::with_switches(&["--enable-features=WebMCP"]).await
}

/// Waits until the browser lists just these tools of the page.
async fn wait_for_tools(page: &Page, names: &[&str]) -> Result<()> {
    let listed = "
        document.modelContext.getTools().then((tools) => { globalThis.listed = tools.map(({ name }) => name).sort(); });
        return JSON.stringify(globalThis.listed) === JSON.stringify(arguments[0])";
    let mut names = names.to_vec();
    names.sort_unstable();
    page.wait_until("the tools of the page", listed, vec![json!(names)]).await
}

const SHIPPED: [&str; 6] = ["hash", "diff", "diff-loose", "delegate_task", "task_status", "cancel_task"];

async fn execute(page: &Page, name: &str, arguments: Value) -> Result<Value> {
    page.run_async_js(EXECUTE, vec![name.into(), arguments]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agent_finds_the_tools_and_calls_them() -> Result<()> {
    let page = start().await?;
    page.open("").await?;
    wait_for_tools(&page, &SHIPPED).await?;
    let about = "
        const tool = (await document.modelContext.getTools()).find(({ name }) => name === 'hash');
        return [tool.description, tool.inputSchema, tool.annotations.readOnlyHint]";
    let about = page.run_async_js(about, vec![]).await?;
    assert!(about[0].as_str().is_some_and(|text| !text.is_empty()), "{about}");
    let schema: Value = match &about[1] {
        Value::String(text) => serde_json::from_str(text)?,
        other => other.clone(),
    };
    assert_eq!((&schema["required"], &about[2]), (&json!(["input"]), &json!(true)));

    let answer = execute(&page, "hash", json!({"input": "abc"})).await?;
    assert_eq!((&answer["ok"], &answer["tool"]), (&json!(true), &json!("hash")));
    assert!(answer["output"].as_str().is_some_and(|output| output.starts_with("ba7816bf")), "{answer}");
    // The page shows who called.
    page.wait_for_text(".tool[data-tool='hash']", "by the browser's agent").await?;
    for (arguments, code) in [
        (json!({"input": 7}), "invalid-argument"),
        (json!({"text": "x"}), "invalid-argument"),
        (json!({"input": {"file": "notes.txt"}}), "invalid-argument"),
        (json!({"input": "x".repeat(9_000)}), "over-budget"),
    ] {
        let refused = execute(&page, "hash", arguments).await?;
        assert_eq!((&refused["ok"], &refused["refused"]), (&json!(false), &json!(code)), "{refused}");
    }
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_the_agent_gives_up_ends_its_worker() -> Result<()> {
    let page = start().await?;
    add_spinning_tool(&page).await?;
    let mut names = SHIPPED.to_vec();
    names.push("case");
    wait_for_tools(&page, &names).await?;
    let script = "
        const tool = (await document.modelContext.getTools()).find(({ name }) => name === 'case');
        const stop = new AbortController();
        setTimeout(() => stop.abort(), 300);
        const end = await document.modelContext.executeTool(tool, { input: 'x' }, { signal: stop.signal })
            .then((answer) => JSON.parse(answer).refused, ({ name }) => name);
        const good = await toolshelf.callWasmTool('hash', { input: 'abc' });
        return [end, good.ok]";
    let seen = page.run_async_js(script, vec![]).await?;
    assert!(seen == json!(["AbortError", true]) || seen == json!(["task-cancelled", true]), "{seen}");
    // Given up, it is no run that ended: nothing is told of a deadline.
    assert_eq!(count(&page, ".tool[data-tool='case'] .bad").await?, 0);
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_offered_follows_the_shelf() -> Result<()> {
    let page = start().await?;
    page.open("").await?;
    wait_for_tools(&page, &SHIPPED).await?;
    let changes = "globalThis.changes = 0;
        document.modelContext.addEventListener('toolchange', () => { globalThis.changes += 1; })";
    page.run_js(changes, vec![]).await?;
    add_spinning_tool_here(&page).await?;
    let mut names = SHIPPED.to_vec();
    names.push("case");
    wait_for_tools(&page, &names).await?;
    page.wait_until("a toolchange", "return globalThis.changes > 0", vec![]).await?;
    page.run_async_js("await toolshelf.removeShelf(addedShelf)", vec![]).await?;
    wait_for_tools(&page, &SHIPPED).await?;
    page.run_js("location.hash = '#/live'", vec![]).await?;
    page.wait_for_text(".live__agent", "6 calls").await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_another_script_has_is_taken_over_when_it_is_free() -> Result<()> {
    let page = start().await?;
    let other = "
        globalThis.other = new AbortController();
        const tool = { name: 'hash', description: 'of another script', execute: () => ({ of: 'another' }) };
        document.modelContext.registerTool(tool, { signal: other.signal })";
    before_each_page(&page, other).await?;
    page.open("").await?;
    wait_for_tools(&page, &SHIPPED).await?;
    assert_eq!(execute(&page, "hash", json!({"input": "abc"})).await?["of"], "another");
    page.run_js("other.abort()", vec![]).await?;
    let ours = "
        document.modelContext.getTools().then((tools) => {
            const tool = tools.find(({ name }) => name === 'hash');
            globalThis.ours = tool && tool.description !== 'of another script';
        });
        return globalThis.ours === true";
    page.wait_until("the page's own tool", ours, vec![]).await?;
    assert_eq!(execute(&page, "hash", json!({"input": "abc"})).await?["ok"], true);
    page.quit().await
}

/// Adds a shelf by the interface for scripts, without loading the page anew.
async fn add_spinning_tool_here(page: &Page) -> Result<()> {
    let spin = toolshelf_conformance::modules().into_iter().find(|case| case.name == "loops-forever");
    let Some(spin) = spin else { anyhow::bail!("the contract lost a case") };
    let script = "
        const files = Object.fromEntries(Object.entries(arguments[0]).map(([name, bytes]) => [name, new Uint8Array(bytes)]));
        const added = await toolshelf.addShelf(files);
        globalThis.addedShelf = added.dir;
        return added.ok";
    assert_eq!(page.run_async_js(script, vec![json!(spin.folder())]).await?, true);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agent_delegates_a_task_and_asks_for_it() -> Result<()> {
    let page = start().await?;
    page.open("").await?;
    wait_for_tools(&page, &SHIPPED).await?;
    let delegated = execute(&page, "delegate_task", json!({"agent": "hash", "task": "abc"})).await?;
    assert_eq!(delegated["ok"], true, "{delegated}");
    let address = delegated["task"]["address"].clone();
    let script = "
        const tool = (await document.modelContext.getTools()).find(({ name }) => name === 'task_status');
        for (let tries = 0; tries < 300; tries += 1) {
            const answer = JSON.parse(await document.modelContext.executeTool(tool, { address: arguments[0] }));
            if (!answer.ok || answer.task.state === 'completed') return answer;
            await new Promise((done) => setTimeout(done, 100));
        }";
    let status = page.run_async_js(script, vec![address.clone()]).await?;
    assert_eq!(status["task"]["state"], "completed", "{status}");
    assert!(
        status["task"]["answer"].as_str().is_some_and(|answer| answer.starts_with("ba7816bf")),
        "{status}"
    );
    let cancelled = execute(&page, "cancel_task", json!({"address": address})).await?;
    assert_eq!(cancelled["refused"], "task-not-running", "{cancelled}");
    let bad = execute(&page, "task_status", json!({"address": "x"})).await?;
    assert_eq!((&bad["ok"], &bad["refused"]), (&json!(false), &json!("invalid-task-address")));
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_without_an_agent_loads_nothing_of_this() -> Result<()> {
    let page = Page::start().await?;
    page.open("").await?;
    page.wait_for(".tool__open").await?;
    assert_eq!(page.run_js("return 'modelContext' in document", vec![]).await?, false);
    page.run_js("location.hash = '#/live'", vec![]).await?;
    page.wait_for("#live-text").await?;
    assert_eq!(count(&page, ".live__agent").await?, 0);
    page.assert_clean().await?;
    page.quit().await
}
