//! The page that a companion serves: its machine among the environments, its tools, its tasks, and a connection that
//! comes and goes.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use e2e::{Browser, Companion, Page};
use serde_json::json;

use super::access::assert_accessible;
use super::delegating::{
    cancel, choose_agent, give_file, go_to, history, open_task, press_button, press_delegate, settled,
    wait_for_none, wait_for_row,
};
use super::person::{count, run, text, type_text};

/// The row of the companion's tool `hash`.
const HASH: &str = ".machine .tool[data-tool='hash']";

/// A browser that looks at the page of a companion.
pub(crate) struct Visit {
    pub(crate) companion: Companion,
    pub(crate) browser: Browser,
}

impl Visit {
    /// Starts both, and opens the link.
    async fn start() -> Result<Self> {
        Self::of(Companion::start().await?).await
    }

    /// Starts a browser for a companion, and opens its link.
    pub(crate) async fn of(companion: Companion) -> Result<Self> {
        let browser = Browser::start().await?;
        let visit = Self { companion, browser };
        visit.open(&visit.companion.link()).await?;
        visit.wait_for_connection("Connected").await?;
        Ok(visit)
    }

    /// Loads the page from an address, and goes to the panel of environments.
    async fn open(&self, address: &str) -> Result<()> {
        let browser = &self.browser;
        browser.goto("about:blank").await?;
        browser.goto(address).await?;
        browser.wait_for("main .tool__open").await?;
        go_to(browser, "environments").await
    }

    async fn wait_for_connection(&self, word: &str) -> Result<()> {
        self.browser.wait_for_text(".env:has(#env-machine) .env__head", word).await
    }

    /// Goes to the companion's tasks by the choice above the list.
    async fn go_to_tasks(&self) -> Result<()> {
        let browser = &self.browser;
        go_to(browser, "tasks").await?;
        press_place(browser, 2).await?;
        browser
            .wait_until("the address of the machine", "return location.hash === '#/tasks/machine'", vec![])
            .await?;
        browser.wait_for("#agent option[value='slow']").await?;
        settled(browser).await
    }

    /// Fails when the page reported an error, or asked anybody else. A lost connection is told on the console by the
    /// browser itself.
    async fn assert_clean(&self) -> Result<()> {
        let mut errors = self.browser.console_errors().await?;
        errors.retain(|error| !error.contains("ERR_CONNECTION_"));
        ensure!(errors.is_empty(), "the page reported errors: {errors:#?}");
        let (own, live) = (self.companion.url(""), self.companion.url("live").replace("http:", "ws:"));
        let foreign = self.browser.requests().await?;
        let inside = ["data:", "blob:", "about:", "chrome:", &own, &live];
        let foreign: Vec<_> =
            foreign.iter().filter(|url| !inside.iter().any(|own| url.starts_with(own))).collect();
        ensure!(foreign.is_empty(), "the page asked elsewhere: {foreign:#?}");
        Ok(())
    }

    pub(crate) async fn quit(self) -> Result<()> {
        self.assert_clean().await?;
        self.browser.quit().await
    }
}

/// Goes to the panel of tools by its link.
async fn go_to_extensions(browser: &Browser) -> Result<()> {
    browser.wait_for(".nav a[href='#/extensions']").await?.click().await?;
    browser.wait_for("main .tool__open").await.map(drop)
}

/// Chooses whose tasks are listed.
async fn press_place(browser: &Browser, at: usize) -> Result<()> {
    let way = format!(".tasks__place label:nth-of-type({at})");
    browser.wait_for(&way).await?.click().await.map_err(Into::into)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_link_connects_the_page_and_leaves_the_address() -> Result<()> {
    let visit = Visit::start().await?;
    let browser = &visit.browser;
    let address = browser.run_js("return location.href", vec![]).await?;
    assert_eq!(address, visit.companion.url("#/environments").as_str());
    let card = ".env:has(#env-machine)";
    let root = visit.companion.root().display().to_string();
    let shown = [&*root, "slow", "Works until it is stopped", "deadline 2 min", "1 min, up to 1 h", "0 of 8"];
    for words in shown {
        browser.wait_for_text(card, words).await?;
    }
    browser.wait_for_text(".panel__head", "2 ready · 1 not connected").await?;
    // The token stays with the page, under a key that is not exported with a person's settings.
    let keys = "return Object.keys(localStorage).filter((key) => localStorage.getItem(key) === arguments[0])";
    assert_eq!(browser.run_js(keys, vec![Companion::TOKEN.into()]).await?, json!(["toolshelf-token"]));

    // From now on it connects without the link.
    visit.open(&visit.companion.url("")).await?;
    visit.wait_for_connection("Connected").await?;
    visit.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_without_a_token_asks_for_no_companion_and_says_how_to_get_one() -> Result<()> {
    let page = Page::start().await?;
    page.open("").await?;
    page.wait_for(".tool__open").await?;
    for panel in ["tasks", "environments"] {
        go_to(&page, panel).await?;
    }
    assert_eq!(count(&page, ".machine, .tasks__place, #task-place").await?, 0);
    page.wait_for(".connect summary").await?.click().await?;
    page.wait_for_text(".connect__body", "toolshelf serve").await?;
    let asked = page.requests().await?;
    let of_companion = ["/v1/", "/live", "split_companion"];
    let asked: Vec<_> =
        asked.iter().filter(|url| of_companion.iter().any(|part| url.contains(part))).collect();
    assert!(asked.is_empty(), "{asked:?}");

    page.wait_for("#token").await?.send_keys("no token at all").await?;
    press_button(&page, "Connect").await?;
    page.wait_for_text("#token-fault", "neither a token nor the link").await?;
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_is_entered_on_another_page_leads_to_the_companions_own() -> Result<()> {
    let companion = Companion::start().await?;
    let page = Page::start().await?;
    page.open("#/environments").await?;
    page.wait_for(".connect summary").await?.click().await?;
    page.wait_for("#token").await?.send_keys(companion.link()).await?;
    press_button(&page, "Connect").await?;
    page.wait_for(".machine .tool__open").await?;
    let address = page.run_js("return location.href", vec![]).await?;
    assert_eq!(address, companion.url("").as_str());
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_token_is_refused_by_name_and_another_one_can_be_entered() -> Result<()> {
    let (companion, browser) = (Companion::start().await?, Browser::start().await?);
    let visit = Visit { companion, browser };
    let browser = &visit.browser;
    visit.open(&visit.companion.url("#token=0123456789abcdef0123456789abcdef")).await?;
    visit.wait_for_connection("Refused").await?;
    browser.wait_for_text(".env .note--bad", "bearer-refused").await?;
    browser.wait_for_text(".env .note--bad", "What to do").await?;
    browser.wait_for("#token").await?.send_keys(Companion::TOKEN).await?;
    press_button(browser, "Connect").await?;
    visit.wait_for_connection("Connected").await?;
    wait_for_none(browser, ".env .note--bad").await?;

    press_button(browser, "Disconnect").await?;
    browser.wait_for(".connect").await?;
    assert_eq!(browser.run_js("return localStorage.getItem('toolshelf-token')", vec![]).await?, json!(null));
    go_to_extensions(browser).await?;
    assert_eq!(count(browser, ".machine").await?, 0);
    visit.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_with_a_file_of_the_machine_is_delegated_and_seen_to_complete() -> Result<()> {
    let visit = Visit::start().await?;
    let browser = &visit.browser;
    fs::write(visit.companion.root().join("abc.txt"), "abc")?;
    visit.go_to_tasks().await?;
    browser.wait_for_text("#task-deadline", "1 h").await?;
    choose_agent(browser, "hash").await?;
    give_file(browser, "input", "abc.txt").await?;
    press_delegate(browser).await?;
    wait_for_row(browser, "abc.txt", "Completed").await?;
    open_task(browser, "abc.txt").await?;
    browser.wait_for_text(".result__digest", "ba7816bf").await?;
    browser.wait_for_text(".facts", &visit.companion.root().display().to_string()).await?;
    assert_eq!(history(browser).await?, json!(["queued", "running", "completed"]));

    // Back and forward go through the places as well, and each place has its own tasks.
    press_place(browser, 1).await?;
    browser.wait_for_text(".tasks", "No tasks yet").await?;
    browser.session().back().await?;
    wait_for_row(browser, "abc.txt", "Completed").await?;
    browser.wait_for(".result__digest").await?;
    browser.session().forward().await?;
    browser.wait_for_text(".tasks", "No tasks yet").await?;
    visit.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_at_work_says_how_far_it_is_and_can_be_stopped() -> Result<()> {
    let visit = Visit::start().await?;
    let browser = &visit.browser;
    visit.go_to_tasks().await?;
    delegate_slow(browser, "for long").await?;
    browser.wait_for_text(".task__note", "at work").await?;
    browser.wait_for_text(".panel__head", "1 task active on").await?;
    browser.wait_for_text(".nav__count", "1").await?;
    cancel(browser, "for long").await?;
    wait_for_row(browser, "for long", "Cancelled").await?;
    wait_for_none(browser, ".nav__count").await?;
    // What another program delegates is seen without a reload.
    let foreign = json!({ "agent": "hash", "task": "by another program", "callId": "foreign-1" });
    visit.companion.post("/v1/tasks", &foreign).await?;
    wait_for_row(browser, "by another program", "Completed").await?;
    visit.quit().await
}

async fn delegate_slow(browser: &Browser, task: &str) -> Result<()> {
    choose_agent(browser, Companion::AGENT).await?;
    browser.wait_for("textarea#given-task").await?.send_keys(task).await?;
    press_delegate(browser).await?;
    wait_for_row(browser, task, "Running").await
}

#[tokio::test(flavor = "multi_thread")]
async fn badges_move_with_every_call_and_say_where_it_came_from() -> Result<()> {
    let visit = Visit::start().await?;
    let browser = &visit.browser;
    go_to_extensions(browser).await?;
    browser.wait_for_text(HASH, "not yet run in this session").await?;
    let answer = visit.companion.hash("abc").await?;
    ensure!(answer["ok"] == true, "{answer}");
    browser.wait_for_text(HASH, "last run ok").await?;
    browser.wait_for_text(HASH, "over HTTP").await?;
    browser.wait_for_text(&format!("{HASH} .lat"), "ms").await?;
    // The browser's own tool of that id is another one, with calls of its own.
    browser
        .wait_for_text(".shelf[data-shelf] .tool[data-tool='hash']", "not yet run in this session")
        .await?;
    visit.companion.post("/v1/tasks", &json!({ "agent": "hash", "task": "x", "callId": "one" })).await?;
    browser.wait_for_text(HASH, "by a task").await?;
    let refused = visit.companion.hash(&"x".repeat(8_193)).await?;
    assert_eq!(refused["refused"], "over-budget");
    browser.wait_for_text(HASH, "last run failed").await?;
    visit.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_runs_on_the_machine_or_in_the_browser_with_the_same_answer() -> Result<()> {
    let visit = Visit::start().await?;
    let browser = &visit.browser;
    go_to_extensions(browser).await?;
    browser.wait_for(&format!("{HASH} .tool__open")).await?.click().await?;
    browser.wait_for("#detail-h").await?;
    type_text(browser, 0, "abc").await?;
    run(browser).await?;
    browser.wait_for(".result__digest .digest").await?;
    let there = text(browser, ".result__digest .digest").await?;
    browser.wait_for_text(HASH, "last run ok").await?;
    assert!(!text(browser, &format!("{HASH} .tool__state")).await?.contains("HTTP"), "its own call");
    browser.wait_for_text(".pace", "worker").await?;

    browser.wait_for(".places label:first-of-type").await?.click().await?;
    browser.wait_until("the browser's own", "return location.hash === '#/extensions/hash'", vec![]).await?;
    browser.wait_for_text(".result", "Nothing has run yet").await?;
    type_text(browser, 0, "abc").await?;
    run(browser).await?;
    browser.wait_for(".result__digest .digest").await?;
    assert_eq!(text(browser, ".result__digest .digest").await?, there);
    assert!(there.starts_with("ba7816bf"), "{there}");
    visit.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shelf_that_changes_on_the_machine_changes_in_the_page() -> Result<()> {
    let visit = Visit::start().await?;
    let browser = &visit.browser;
    go_to_extensions(browser).await?;
    browser.wait_for_text(".machine", "Its manifest lists no tools").await?;
    let sample = super::person::sample_shelf("seen-later")?;
    fs::copy(sample.file("hash.wasm"), visit.companion.shelf().join("hash.wasm"))?;
    fs::copy(sample.file("manifest.json"), visit.companion.shelf().join("manifest.json"))?;
    browser.wait_for(".machine .tool[data-tool='fingerprint'][data-state='callable']").await?;
    browser.wait_for_text(".machine .tool[data-tool='swapped']", "digest-mismatch").await?;
    visit.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_companion_that_is_killed_and_started_again_is_found_again() -> Result<()> {
    let mut visit = Visit::start().await?;
    visit.go_to_tasks().await?;
    delegate_slow(&visit.browser, "cut short").await?;
    visit.companion.kill().await?;
    let browser = &visit.browser;
    browser.wait_for("[data-lost]").await?;
    browser.wait_for_text("[data-announcement]", "lost").await?;
    // What was known stays in sight, and what is typed stays too.
    wait_for_row(browser, "cut short", "Running").await?;
    browser.wait_for("textarea#given-task").await?.send_keys(" and typed since").await?;
    visit.companion.start_again().await?;
    // It is found without a word too, only later.
    browser.run_js("document.querySelector('[data-lost] .btn')?.click()", vec![]).await?;
    wait_for_none(browser, "[data-lost]").await?;
    browser.wait_for_text("[data-announcement]", "Connected").await?;
    wait_for_row(browser, "cut short", "Interrupted").await?;
    let typed = browser.run_js("return document.querySelector('#given-task').value", vec![]).await?;
    assert!(typed.as_str().context("a text")?.ends_with("and typed since"), "{typed}");
    // Everything works as before.
    choose_agent(browser, "hash").await?;
    browser.wait_for("#given-input").await?.send_keys("after that").await?;
    press_delegate(browser).await?;
    wait_for_row(browser, "after that", "Completed").await?;
    visit.quit().await
}

/// Walks through the screens at one width.
async fn walk(width: u32) -> Result<()> {
    let visit = Visit::start().await?;
    let browser = &visit.browser;
    browser.set_viewport(width, 900).await?;
    assert_accessible(browser, "a machine among the environments").await?;
    visit.companion.hash("abc").await?;
    go_to_extensions(browser).await?;
    browser.wait_for(HASH).await?;
    assert_accessible(browser, "tools of the machine").await?;
    browser.wait_for(&format!("{HASH} .tool__open")).await?.click().await?;
    browser.wait_for(".places").await?;
    assert_accessible(browser, "a tool of the machine").await?;
    browser.run_js("location.hash = '#/tasks/machine'", vec![]).await?;
    browser.wait_for("#agent option[value='slow']").await?;
    settled(browser).await?;
    assert_accessible(browser, "no tasks on the machine").await?;
    delegate_slow(browser, "a while").await?;
    assert_accessible(browser, "a task at work on the machine").await?;
    open_task(browser, "a while").await?;
    assert_accessible(browser, "one task of the machine").await?;
    visit.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_screen_of_a_companion_is_accessible_on_a_desk() -> Result<()> {
    walk(1280).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_screen_of_a_companion_is_accessible_on_a_narrow_phone() -> Result<()> {
    walk(320).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_and_a_refused_one_are_accessible() -> Result<()> {
    let mut visit = Visit::start().await?;
    visit.companion.kill().await?;
    for width in [1280, 320] {
        visit.browser.set_viewport(width, 900).await?;
        visit.browser.wait_for("[data-lost]").await?;
        assert_accessible(&visit.browser, "a lost connection").await?;
    }
    visit.companion.start_again().await?;
    visit.open(&visit.companion.url("#token=0123456789abcdef0123456789abcdef")).await?;
    visit.wait_for_connection("Refused").await?;
    assert_accessible(&visit.browser, "a refused connection").await?;
    visit.quit().await
}
