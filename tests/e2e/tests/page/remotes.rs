//! Two companions: the page of one pairs with the other, gives it tasks, and lets it go; a page pairs by a link alone.

use anyhow::{Context as _, Result, ensure};
use e2e::{Browser, Companion};
use serde_json::json;

use super::access::assert_accessible;
use super::delegating::{delegate, go_to, press_button, wait_for_row};
use super::person::count;

const PANEL: &str = ".remotes";

/// The link for a new code of `remote`.
async fn link(remote: &Companion) -> Result<String> {
    let offer = remote.post("/v1/pairings", &json!({ "name": "the page's machine" })).await?;
    Ok(offer["link"].as_str().context("an offer without a link")?.to_owned())
}

/// The page of `local`, at its panel of environments.
async fn visit(local: &Companion) -> Result<Browser> {
    let browser = Browser::start().await?;
    browser.goto(&local.link()).await?;
    browser.wait_for("main .tool__open").await?;
    go_to(&browser, "environments").await?;
    browser.wait_for("#pair-link").await?;
    Ok(browser)
}

async fn pair(browser: &Browser, link: &str) -> Result<()> {
    browser.wait_for("#pair-link").await?.send_keys(link).await?;
    press_button(browser, "Pair").await
}

async fn answer(browser: &Browser, word: &str) -> Result<()> {
    let press = "const button = [...document.querySelectorAll('dialog[open] button')]
        .find((button) => button.textContent.trim() === arguments[0]);
        if (!button) return false; button.click(); return true;";
    browser.wait_until("the dialog has the button", press, vec![word.into()]).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_is_paired_used_and_let_go() -> Result<()> {
    let (local, mut remote) = (Companion::start().await?, Companion::start().await?);
    let browser = visit(&local).await?;
    browser.wait_for_text(PANEL, "None yet").await?;
    pair(&browser, "no link").await?;
    browser.wait_for_text(PANEL, "A link for pairing looks like").await?;
    browser.run_js("document.querySelector('#pair-link').value = ''", vec![]).await?;
    browser.wait_for("#pair-link").await?.clear().await?;
    pair(&browser, &link(&remote).await?).await?;
    browser.wait_for_text(PANEL, "1 of 1 connected").await?;
    for words in ["1 min, up to 1 h", "0 of 8", "tasks, shelf", "the page's machine"] {
        browser.wait_for_text(".remote", words).await?;
    }
    assert_accessible(&browser, "a paired remote").await?;

    // Its tasks are chosen from there, and from the form.
    press_button(&browser, "Use for tasks").await?;
    browser.wait_for("#agent option[value='slow']").await?;
    delegate(&browser, "hash", "abc").await?;
    wait_for_row(&browser, "abc", "Completed").await?;
    ensure!(count(&browser, ".tasks__place label").await? == 3, "browser, machine and remote");
    let own = local.post("/v1/commands/list_tasks", &json!({})).await?;
    ensure!(own["rows"] == json!([]), "it ran on the remote: {own}");

    // A remote that is gone is said to be, and comes back by itself.
    go_to(&browser, "environments").await?;
    remote.kill().await?;
    browser.wait_for_text(".remote", "Unreachable").await?;
    remote.start_again().await?;
    browser.wait_for_text(".remote", "Connected").await?;

    let pairings = remote.get("/v1/pairings").await?;
    let id = pairings["pairings"][0]["id"].as_str().context("a pairing")?.to_owned();
    remote.post(&format!("/v1/pairings/{id}/revoke"), &json!({})).await?;
    browser.wait_for_text(".remote", "Revoked").await?;
    browser.wait_for_text(".remote", "pairing-revoked").await?;
    press_button(&browser, "Remove…").await?;
    answer(&browser, "Remove").await?;
    browser.wait_for_text(PANEL, "None yet").await?;
    browser.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_gets_in_by_the_link_of_a_pairing_alone() -> Result<()> {
    let remote = Companion::start().await?;
    let (link, browser) = (link(&remote).await?, Browser::start().await?);
    browser.goto(&link).await?;
    browser.wait_for("main .tool__open").await?;
    go_to(&browser, "environments").await?;
    browser.wait_for_text(".env:has(#env-machine)", "Connected").await?;
    let address = browser.run_js("return location.href", vec![]).await?;
    ensure!(!address.to_string().contains("pair="), "the code has left the address: {address}");
    let pairings = remote.get("/v1/pairings").await?;
    ensure!(pairings["pairings"][0]["state"] == "active", "{pairings}");

    // The same link again is of no use to anybody.
    let other = Browser::start().await?;
    other.goto(&link).await?;
    other.wait_for("main .tool__open").await?;
    go_to(&other, "environments").await?;
    other.wait_for_text(".env:has(#env-machine)", "pairing-code-refused").await?;
    other.quit().await?;
    browser.quit().await
}
