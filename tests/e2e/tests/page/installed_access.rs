//! Extensions and facts for everybody: by the keyboard alone, at both widths, in both themes.

use anyhow::Result;
use thirtyfour::Key;

use super::access::{assert_accessible, press, tab_to};
use super::delegating::press_button;
use super::installed::{argument, example, fill, go, grant, install, note, pick, run, visit};

#[tokio::test(flavor = "multi_thread")]
async fn the_keyboard_alone_suffices_to_grant_and_run() -> Result<()> {
    let visit = visit().await?;
    let browser = &visit.browser;
    note(&visit.companion, "notes::1", "One. Two.").await?;
    install(browser, "note-summary").await?;
    browser.wait_for(".give[open]").await?;
    browser.run_js("document.querySelector('#detail-h').focus()", vec![]).await?;
    tab_to(browser, "#grant-passport").await?;
    press(browser, "p_ann").await?;
    for (field, text) in [("#grant-read", "notes::"), ("#grant-write", "notes::")] {
        tab_to(browser, field).await?;
        press(browser, text).await?;
    }
    tab_to(browser, ".give button[type=submit]").await?;
    press(browser, Key::Enter).await?;
    browser.wait_for(".grant").await?;
    browser.run_js("document.querySelector('#detail-h').focus()", vec![]).await?;
    let entity = argument(browser, "entity").await?;
    tab_to(browser, &format!("#{entity}")).await?;
    press(browser, "notes::1").await?;
    press(browser, Key::Control + Key::Enter).await?;
    browser.wait_for_text(".inst .tree", "One. Two.").await?;
    visit.quit().await
}

/// Walks through the screens at one width.
async fn walk(width: u32) -> Result<()> {
    let visit = visit().await?;
    let browser = &visit.browser;
    browser.set_viewport(width, 900).await?;
    note(&visit.companion, "notes::1", "Tools import nothing. Each is pinned.").await?;
    go(browser, "#/installed").await?;
    browser.wait_for("#files-h").await?;
    assert_accessible(browser, "installing").await?;
    let module = example("note-summary").join("note-summary.wasm");
    pick(browser, &[example("note-summary").join("manifest.json"), module]).await?;
    browser.wait_for("#install .btn--primary:enabled").await?;
    assert_accessible(browser, "the question").await?;
    browser.wait_for("#install .btn--primary").await?.click().await?;
    browser.wait_for("article[data-extension]").await?;
    assert_accessible(browser, "an extension without grants").await?;
    grant(browser, "p_ann", "notes::", "notes::").await?;
    browser.wait_for(".grant").await?;
    run(browser).await?;
    browser.wait_for(".opt .bad").await?;
    assert_accessible(browser, "a form with a fault").await?;
    let entity = argument(browser, "entity").await?;
    fill(browser, &entity, "notes::1").await?;
    run(browser).await?;
    browser.wait_for(".inst .tree").await?;
    press_button(browser, "Verify").await?;
    browser.wait_for("[data-verified]").await?;
    assert_accessible(browser, "an answer").await?;
    browser.run_js("scrollTo(0, 0)", vec![]).await?;
    press_button(browser, "Uninstall…").await?;
    browser.wait_for("#ask[open]").await?;
    assert_accessible(browser, "a question").await?;
    press_button(browser, "Keep it as it is").await?;
    for (address, shown) in [
        ("#/facts", ".entry"),
        ("#/facts/of/notes%3A%3A1", ".kept__fact"),
        ("#/facts/of/notes%3A%3A1/summary", ".versions"),
    ] {
        go(browser, address).await?;
        browser.wait_for(shown).await?;
        assert_accessible(browser, address).await?;
    }
    visit.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_screen_of_extensions_is_accessible_on_a_desk() -> Result<()> {
    walk(1280).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_screen_of_extensions_is_accessible_on_a_narrow_phone() -> Result<()> {
    walk(320).await
}
