//! Tasks and environments for everybody: by keyboard alone, for assistive technology, on a narrow screen, in the dark.

use anyhow::Result;
use e2e::Page;
use thirtyfour::Key;

use super::access::{assert_accessible, press, tab_to};
use super::delegating::{
    MODEL, cancel, choose_agent, delegate, give_file, go_to, import_files, open_task, open_with_model,
    press_delegate, show, wait_for_none, wait_for_row,
};
use super::person::Folder;

#[tokio::test(flavor = "multi_thread")]
async fn the_keyboard_alone_suffices_to_stop_and_clear_tasks_and_to_change_panels() -> Result<()> {
    let page = open_with_model("#/tasks").await?;
    tab_to(&page, "#agent").await?;
    press(&page, "Browser").await?;
    page.wait_for("#given-task").await?;
    tab_to(&page, "#given-task").await?;
    press(&page, "wait").await?;
    press(&page, Key::Control + Key::Enter).await?;
    wait_for_row(&page, "wait", "Running").await?;
    tab_to(&page, ".task__stop").await?;
    press(&page, Key::Enter).await?;
    wait_for_row(&page, "wait", "Cancelled").await?;
    page.wait_for_text("[data-announcement]", "Cancelled").await?;
    tab_to(&page, ".tasks__foot .btn").await?;
    press(&page, Key::Enter).await?;
    page.wait_for_text(".tasks", "No tasks yet").await?;
    tab_to(&page, ".toast .btn").await?;
    press(&page, Key::Enter).await?;
    wait_for_row(&page, "wait", "Cancelled").await?;

    for panel in ["environments", "extensions", "tasks"] {
        tab_to(&page, &format!(".nav a[href='#/{panel}']")).await?;
        press(&page, Key::Enter).await?;
        let at_head =
            "return location.hash === '#/' + arguments[0] && document.activeElement.id === 'panel-h'
            && document.activeElement.textContent.toLowerCase() === arguments[0]";
        page.wait_until("the panel's head to be in focus", at_head, vec![panel.into()]).await?;
    }
    page.assert_clean().await?;
    page.quit().await
}

/// Walks through the screens at one width.
async fn walk(width: u32) -> Result<()> {
    let name = format!("accessible-{width}");
    let files =
        Folder::new(&name, &[("a file with a rather long name that has to be cut somewhere.txt", b"abc")])?;
    let page = open_with_model("#/tasks").await?;
    page.set_viewport(width, 900).await?;
    assert_accessible(&page, "no tasks").await?;

    delegate(&page, MODEL, "wait for a reload").await?;
    wait_for_row(&page, "wait for a reload", "Running").await?;
    show(&page, "#/tasks").await?;
    wait_for_row(&page, "wait for a reload", "Interrupted").await?;
    delegate(&page, MODEL, "wait for the deadline").await?;
    delegate(&page, MODEL, "wait to be stopped").await?;
    cancel(&page, "wait to be stopped").await?;
    wait_for_row(&page, "wait to be stopped", "Cancelled").await?;
    delegate(&page, MODEL, "a question").await?;
    choose_agent(&page, "hash").await?;
    give_file(&page, "input", "nowhere.txt").await?;
    press_delegate(&page).await?;
    wait_for_row(&page, "nowhere.txt", "Failed").await?;
    give_file(&page, "input", "../outside.txt").await?;
    press_delegate(&page).await?;
    page.wait_for("form .note--bad").await?;
    assert_accessible(&page, "tasks in several states, and a refusal").await?;

    for title in ["wait for the deadline", "a question", "nowhere.txt", "wait for a reload"] {
        show_list(&page).await?;
        open_task(&page, title).await?;
        assert_accessible(&page, title).await?;
    }

    go_to(&page, "environments").await?;
    assert_accessible(&page, "environments, an empty folder").await?;
    import_files(&page, &files, &["a file with a rather long name that has to be cut somewhere.txt"]).await?;
    page.wait_for(".entry").await?;
    assert_accessible(&page, "environments, a file").await?;
    page.wait_for("button[aria-label^='Delete a file']").await?.click().await?;
    page.wait_for("dialog[open]").await?;
    assert_accessible(&page, "a question before a file is deleted").await?;
    page.assert_clean().await?;
    page.quit().await
}

/// Goes back to the list where the task stands in its place.
async fn show_list(page: &Page) -> Result<()> {
    let back = "const back = [...document.querySelectorAll('.back')].find((back) => back.offsetParent);
        if (back) back.click()";
    page.run_js(back, vec![]).await?;
    wait_for_none(page, ".facts").await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_screen_of_tasks_is_accessible_on_a_desk() -> Result<()> {
    walk(1280).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_screen_of_tasks_is_accessible_on_a_narrow_phone() -> Result<()> {
    walk(320).await
}
