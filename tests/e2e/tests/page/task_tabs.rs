//! Several tabs of one browser, and what becomes of a task whose tab, page or browser ends.

use anyhow::Result;
use e2e::{Page, Site};
use serde_json::json;
use thirtyfour::WindowHandle;

use super::delegating::{
    MODEL, asked, cancel, delegate, history, open_task, open_with_model, row, settled, show, wait_for_none,
    wait_for_row, with_model,
};
use super::person::{Folder, count};

const ENDED: &str =
    "Interrupted · browser-model · seen to be interrupted · environment-ended-outcome-unknown";

/// The page with its tasks in two tabs. The second one is in front.
async fn two_tabs() -> Result<(Page, WindowHandle, WindowHandle)> {
    let page = open_with_model("#/tasks").await?;
    let first = page.session().window().await?;
    let second = page.session().new_tab().await?;
    page.session().switch_to_window(second.clone()).await?;
    with_model(&page).await?;
    show(&page, "#/tasks").await?;
    Ok((page, first, second))
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tabs_see_the_same_tasks_live_and_each_runs_only_its_own() -> Result<()> {
    let (page, first, second) = two_tabs().await?;
    let go = async |tab: &WindowHandle| page.session().switch_to_window(tab.clone()).await;
    delegate(&page, MODEL, "wait here").await?;
    wait_for_row(&page, "wait here", "Running").await?;
    page.wait_for_text(".nav__count", "1").await?;

    go(&first).await?;
    wait_for_row(&page, "wait here", "Running").await?;
    wait_for_row(&page, "wait here", "in another tab").await?;
    // How far it is comes from the tab that knows.
    wait_for_row(&page, "wait here", "Waiting for the browser's model").await?;
    assert_eq!(count(&page, ".nav__count").await?, 0, "none is active in this tab");
    delegate(&page, "hash", "abc").await?;
    wait_for_row(&page, "abc", "Completed").await?;
    go(&second).await?;
    wait_for_row(&page, "abc", "Completed").await?;
    assert_eq!(asked(&page).await?, 1);
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tab_can_stop_what_another_one_runs_and_both_see_it_stopped() -> Result<()> {
    let (page, first, second) = two_tabs().await?;
    let go = async |tab: &WindowHandle| page.session().switch_to_window(tab.clone()).await;
    delegate(&page, MODEL, "wait for the other").await?;
    wait_for_row(&page, "wait for the other", "Running").await?;
    go(&first).await?;
    wait_for_row(&page, "wait for the other", "in another tab").await?;
    cancel(&page, "wait for the other").await?;
    let stopped = "Cancelled · browser-model · seen to be cancelled";
    for tab in [&first, &second] {
        go(tab).await?;
        wait_for_row(&page, "wait for the other", stopped).await?;
    }
    wait_for_none(&page, ".nav__count").await?;
    open_task(&page, "wait for the other").await?;
    assert_eq!(history(&page).await?, json!(["queued", "running", "cancel_requested", "cancelled"]));
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_tab_lives_is_left_alone_and_ends_with_its_tab() -> Result<()> {
    let (page, first, second) = two_tabs().await?;
    delegate(&page, MODEL, "wait for ever").await?;
    wait_for_row(&page, "wait for ever", "Running").await?;
    page.session().switch_to_window(first.clone()).await?;
    // A page that opens now finds a task that is not its own, and touches nothing.
    show(&page, "#/tasks").await?;
    wait_for_row(&page, "wait for ever", "in another tab").await?;
    open_task(&page, "wait for ever").await?;
    page.wait_for_text(".task__head", "It runs in another tab").await?;
    assert_eq!(history(&page).await?, json!(["queued", "running"]));

    page.session().switch_to_window(second).await?;
    page.session().close_window().await?;
    page.session().switch_to_window(first).await?;
    wait_for_row(&page, "wait for ever", ENDED).await?;
    page.wait_for_text(".task__head", "environment-ended-outcome-unknown").await?;
    page.wait_until(
        "the end in its history",
        "return document.querySelectorAll('.line > li').length === 3",
        vec![],
    )
    .await?;
    assert_eq!(history(&page).await?, json!(["queued", "running", "interrupted"]));
    show(&page, "#/tasks").await?;
    wait_for_row(&page, "wait for ever", ENDED).await?;
    assert_eq!(asked(&page).await?, 1, "it was never run again");
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_in_the_middle_of_a_task_interrupts_it() -> Result<()> {
    let page = open_with_model("#/tasks").await?;
    delegate(&page, MODEL, "wait for a reload").await?;
    wait_for_row(&page, "wait for a reload", "Running").await?;
    page.session().refresh().await?;
    settled(&page).await?;
    wait_for_row(&page, "wait for a reload", ENDED).await?;
    assert_eq!(count(&page, &format!("{} .task__stop", row("wait for a reload"))).await?, 0);
    assert_eq!(asked(&page).await?, 1);
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_is_killed_in_the_middle_of_a_task_loses_nothing_and_runs_nothing_twice() -> Result<()>
{
    let profile = Folder::new("killed", &[])?;
    let page = Page::with_profile(Site::start().await?, profile.path()).await?;
    with_model(&page).await?;
    show(&page, "#/tasks").await?;
    delegate(&page, "hash", "abc").await?;
    wait_for_row(&page, "abc", "Completed").await?;
    delegate(&page, MODEL, "wait for the end").await?;
    wait_for_row(&page, "wait for the end", "Waiting for the browser's model").await?;
    let site = page.kill().await?;

    let page = Page::with_profile(site, profile.path()).await?;
    show(&page, "#/tasks").await?;
    wait_for_row(&page, "wait for the end", ENDED).await?;
    open_task(&page, "abc").await?;
    page.wait_for_text(".result__digest .digest", "ba7816bf").await?;
    assert_eq!(history(&page).await?, json!(["queued", "running", "completed"]));
    page.wait_for(".detail .only-wide").await?.click().await?;
    delegate(&page, "hash", "after the end").await?;
    wait_for_row(&page, "after the end", "Completed").await?;
    assert_eq!(count(&page, "li.task").await?, 3);
    page.assert_clean().await?;
    page.quit().await
}
