//! The page without a network, and the way from one version of it to the next.

use anyhow::Result;
use e2e::{Page, Site};
use serde_json::{Value, json};

use super::delegating::{delegate, go_to, wait_for_row};
use super::person::{choose, run, type_text};
use super::release::{NEW_SHEET, Release};

const PREFIX: &str = "/some/sub/path/";
const NOTICE: &str = "A new version is ready";

/// Waits until the page is kept whole by a service worker of its own folder.
async fn kept(page: &Page) -> Result<()> {
    let script = "
        for (;;) {
            const registration = await navigator.serviceWorker.getRegistration();
            const own = registration?.scope === new URL('./', location).href;
            if (own && registration.active?.state === 'activated' && !registration.installing) return;
            await new Promise((done) => setTimeout(done, 50));
        }";
    page.run_async_js(script, Vec::new()).await.map(drop)
}

/// Which release the html and the style sheet of the open page are of.
async fn shown(page: &Page) -> Result<Value> {
    let script = "
        const words = document.querySelector('meta[name=description]').content.split(':');
        const sheet = getComputedStyle(document.documentElement).getPropertyValue('--release');
        return [words[0] === 'Second' ? 2 : 1, sheet.trim() === 'second' ? 2 : 1]";
    page.run_js(script, Vec::new()).await
}

async fn caches(page: &Page) -> Result<usize> {
    let names = page.run_async_js("return await caches.keys()", Vec::new()).await?;
    Ok(names.as_array().map_or(0, Vec::len))
}

async fn hash_abc(page: &Page) -> Result<()> {
    choose(page, "hash").await?;
    type_text(page, 0, "abc").await?;
    run(page).await?;
    page.wait_for_text(".result__digest .digest", "ba7816bf").await
}

async fn press_reload(page: &Page) -> Result<()> {
    page.wait_for_text(".toasts", NOTICE).await?;
    page.run_js("globalThis.before = true", Vec::new()).await?;
    page.wait_for(".toasts .toast:has(> :nth-child(3)) > button").await?.click().await?;
    let reloaded = "return !globalThis.before && !!document.querySelector('.tool__open')";
    page.wait_until("the page to reload", reloaded, Vec::new()).await
}

async fn open_first(name: &str) -> Result<(Release, Page)> {
    let release = Release::first(name)?;
    let page = Page::at(Site::of(release.path().to_owned(), PREFIX).await?).await?;
    page.open("").await?;
    kept(&page).await?;
    Ok((release, page))
}

#[tokio::test(flavor = "multi_thread")]
async fn after_one_visit_the_page_opens_and_runs_its_tools_without_a_network() -> Result<()> {
    let page = Page::start().await?;
    page.open("").await?;
    kept(&page).await?;
    page.site().cut().await;
    let network = json!({ "offline": true, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1 });
    page.devtools("Network.emulateNetworkConditions", network).await?;
    for address in ["", "index.html", "?from=somewhere"] {
        page.goto("about:blank").await?;
        page.open(address).await?;
        hash_abc(&page).await?;
    }
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn panels_that_were_never_looked_at_open_without_a_network_and_run_tasks() -> Result<()> {
    let page = Page::start().await?;
    page.open("").await?;
    kept(&page).await?;
    page.site().cut().await;
    page.goto("about:blank").await?;
    page.open("").await?;
    go_to(&page, "tasks").await?;
    delegate(&page, "hash", "abc").await?;
    wait_for_row(&page, "abc", "Completed").await?;
    go_to(&page, "environments").await?;
    page.wait_for_text(".files", "Nothing in here yet").await?;
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_can_be_installed() -> Result<()> {
    let page = Page::start().await?;
    page.open("").await?;
    kept(&page).await?;
    let manifest = page.devtools("Page.getAppManifest", json!({})).await?;
    assert_eq!(manifest["errors"], json!([]), "{manifest}");
    assert!(manifest["data"].as_str().is_some_and(|text| text.contains("Toolshelf")), "{manifest}");
    let errors = page.devtools("Page.getInstallabilityErrors", json!({})).await?;
    assert_eq!(errors["installabilityErrors"], json!([]));
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_version_waits_until_it_is_asked_for_and_is_then_there_as_a_whole() -> Result<()> {
    let (release, page) = open_first("update").await?;
    release.second()?;
    page.open("").await?;
    assert_eq!(shown(&page).await?, json!([1, 1]));
    page.wait_for_text(".toasts", NOTICE).await?;
    // It goes on being the first release, also in a page that is opened now.
    hash_abc(&page).await?;
    page.open("index.html").await?;
    assert_eq!(shown(&page).await?, json!([1, 1]));

    press_reload(&page).await?;
    assert_eq!(shown(&page).await?, json!([2, 2]));
    assert_eq!(caches(&page).await?, 1);
    hash_abc(&page).await?;
    // It reloads once, says no more, and needs no network either.
    assert_eq!(page.run_js("return document.querySelector('.toasts').textContent", Vec::new()).await?, "");
    page.site().cut().await;
    page.open("").await?;
    assert_eq!(shown(&page).await?, json!([2, 2]));
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tab_that_did_not_ask_keeps_its_work_and_its_version_until_it_does() -> Result<()> {
    let (release, page) = open_first("two-tabs").await?;
    page.open("").await?;
    let old = release.old_sheet()?;
    choose(&page, "hash").await?;
    type_text(&page, 0, "not lost").await?;
    let first_tab = page.session().window().await?;
    let second_tab = page.session().new_tab().await?;
    release.second()?;
    page.session().switch_to_window(second_tab).await?;
    page.open("").await?;
    press_reload(&page).await?;
    assert_eq!(shown(&page).await?, json!([2, 2]));

    page.session().switch_to_window(first_tab).await?;
    page.wait_for_text(".toasts", NOTICE).await?;
    assert_eq!(shown(&page).await?, json!([1, 1]));
    let typed = "return document.querySelector('.run .input__text').value";
    assert_eq!(page.run_js(typed, Vec::new()).await?, "not lost");
    // What it may still ask for is its own, although the host has it no more.
    let ask = "return (await fetch(arguments[0])).status";
    assert_eq!(page.run_async_js(ask, vec![json!(format!("./{old}"))]).await?, 200);
    assert!(!release.path().join(&old).exists());

    press_reload(&page).await?;
    assert_eq!(shown(&page).await?, json!([2, 2]));
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_arrives_damaged_is_never_used() -> Result<()> {
    let (release, page) = open_first("damaged").await?;
    release.second()?;
    let sheet = release.path().join(NEW_SHEET);
    let whole = std::fs::read(&sheet)?;
    std::fs::write(&sheet, [&whole[..], b" "].concat())?;
    page.open("").await?;
    let ending = "
        const registration = await navigator.serviceWorker.getRegistration();
        const worker = await new Promise((found) => {
            const look = () => registration.installing && found(registration.installing);
            registration.addEventListener('updatefound', look);
            registration.update().catch(() => {}).then(look);
            look();
        });
        while (worker.state === 'installing') await new Promise((done) => setTimeout(done, 20));
        return [worker.state, registration.waiting]";
    assert_eq!(page.run_async_js(ending, Vec::new()).await?, json!(["redundant", null]));
    page.open("").await?;
    assert_eq!(shown(&page).await?, json!([1, 1]));
    assert_eq!(caches(&page).await?, 1);
    hash_abc(&page).await?;

    // Once it arrives whole, it is offered.
    std::fs::write(&sheet, whole)?;
    page.open("").await?;
    press_reload(&page).await?;
    assert_eq!(shown(&page).await?, json!([2, 2]));
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_cannot_start_offers_the_next_one() -> Result<()> {
    for is_checked in [false, true] {
        let release = Release::first("broken")?;
        release.break_app(is_checked)?;
        let page = Page::at(Site::of(release.path().to_owned(), PREFIX).await?).await?;
        page.goto(&page.site().url("")).await?;
        kept(&page).await?;
        release.second()?;
        page.goto(&page.site().url("")).await?;
        page.wait_for_text("body > .toast", NOTICE).await?;
        page.wait_for("body > .toast > button").await?.click().await?;
        page.wait_for(".tool__open").await?;
        assert_eq!(shown(&page).await?, json!([2, 2]));
        page.quit().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_in_several_folders_of_one_origin_do_not_get_in_each_others_way() -> Result<()> {
    let release = Release::first("folders")?;
    release.nest("below")?;
    let page = Page::at(Site::of(release.path().to_owned(), PREFIX).await?).await?;
    for address in ["", "below/"] {
        page.open(address).await?;
        kept(&page).await?;
    }
    assert_eq!(caches(&page).await?, 2);
    page.site().cut().await;
    for (address, word) in [("", "Runs"), ("below/", "Nested:"), ("below/index.html", "Nested:")] {
        page.open(address).await?;
        let words = "return document.querySelector('meta[name=description]').content.split(' ')[0]";
        assert_eq!(page.run_js(words, Vec::new()).await?, word, "{address}");
        hash_abc(&page).await?;
    }
    page.quit().await
}
