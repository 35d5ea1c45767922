//! The page for everybody: by keyboard alone, for assistive technology, on a narrow screen, in the dark.

use anyhow::Result;
use e2e::{Browser, ColorScheme};
use thirtyfour::{By, Key, TypingData};

use super::person::{add_shelf, choose, open, run, sample_shelf, text, type_text};

pub(crate) async fn press(page: &Browser, keys: impl Into<TypingData>) -> Result<()> {
    page.session().active_element().await?.send_keys(keys.into()).await.map_err(Into::into)
}

/// Presses Tab until the element in focus matches, at most as often as a person would bear.
pub(crate) async fn tab_to(page: &Browser, selector: &str) -> Result<()> {
    for _ in 0..40 {
        press(page, Key::Tab).await?;
        let there =
            page.run_js("return document.activeElement.matches(arguments[0])", vec![selector.into()]).await?;
        if there == true {
            return Ok(());
        }
    }
    anyhow::bail!("Tab never comes to `{selector}`")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keyboard_alone_suffices_to_choose_a_tool_and_run_it() -> Result<()> {
    let page = open().await?;
    tab_to(&page, ".tool__open[href$='/hash']").await?;
    press(&page, Key::Enter).await?;
    page.wait_for_text("#detail-h", "hash").await?;
    tab_to(&page, ".run textarea").await?;
    press(&page, "abc").await?;
    press(&page, Key::Control + Key::Enter).await?;
    page.wait_for(".result__digest .digest").await?;
    assert!(text(&page, ".result__digest .digest").await?.starts_with("ba7816bf"));
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keyboard_alone_suffices_to_remove_a_shelf() -> Result<()> {
    let folder = sample_shelf("by-keyboard")?;
    let page = open().await?;
    add_shelf(&page, folder.path()).await?;
    page.wait_for(".tool__open[href$='/fingerprint']").await?;
    tab_to(&page, "button[aria-label^='Remove the shelf']").await?;
    press(&page, Key::Enter).await?;
    page.wait_for("dialog[open]").await?;
    // Escape keeps it.
    press(&page, Key::Escape).await?;
    page.wait_until("the dialog to close", "return !document.querySelector('dialog[open]')", Vec::new())
        .await?;
    page.wait_for(".tool__open[href$='/fingerprint']").await?;
    page.quit().await
}

pub(crate) async fn assert_accessible(page: &Browser, screen: &str) -> Result<()> {
    for scheme in [ColorScheme::Light, ColorScheme::Dark] {
        page.set_color_scheme(scheme).await?;
        // A badge that was just updated is still changing its colour. The sign of what is at work never ends.
        page.run_async_js(
            "const ending = document.getAnimations().filter(({ effect }) => effect.getTiming().iterations !== Infinity);
            await Promise.allSettled(ending.map(({ finished }) => finished))",
            Vec::new(),
        )
        .await?;
        let findings = page.axe().await?;
        assert!(findings.is_empty(), "{screen}, {scheme:?}: {findings:#?}");
    }
    let wider = page.run_js("return document.documentElement.scrollWidth > innerWidth", Vec::new()).await?;
    assert_eq!(wider, false, "{screen} scrolls sideways");
    Ok(())
}

/// Walks through the screens at one width.
async fn walk(width: u32) -> Result<()> {
    let folder = sample_shelf(&format!("at-{width}"))?;
    let page = open().await?;
    page.set_viewport(width, 900).await?;
    let show_list =
        "const back = document.querySelector('.back'); if (back && back.offsetParent) back.click()";
    assert_accessible(&page, "start").await?;
    choose(&page, "hash").await?;
    assert_accessible(&page, "a tool").await?;
    type_text(&page, 0, "abc").await?;
    run(&page).await?;
    page.wait_for(".result__digest").await?;
    assert_accessible(&page, "a digest").await?;

    page.run_js(show_list, Vec::new()).await?;
    choose(&page, "diff").await?;
    type_text(&page, 0, "one\ntwo\nthree\n").await?;
    type_text(&page, 1, "one\n2\nthree\n").await?;
    run(&page).await?;
    page.wait_for(".diff").await?;
    assert_accessible(&page, "a diff").await?;

    page.run_js(show_list, Vec::new()).await?;
    add_shelf(&page, folder.path()).await?;
    assert_accessible(&page, "verdicts").await?;
    page.session().find(By::Css("button[aria-label^='Remove the shelf']")).await?.click().await?;
    page.wait_for("dialog[open]").await?;
    assert_accessible(&page, "a question").await?;
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_screen_is_accessible_on_a_desk() -> Result<()> {
    walk(1280).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_screen_is_accessible_on_a_narrow_phone() -> Result<()> {
    walk(320).await
}
