//! A person delegates tasks, watches them, stops them and clears them away.

use anyhow::Result;
use e2e::Page;
use serde_json::json;
use thirtyfour::{By, Key};

use super::access::{press, tab_to};
use super::delegating::{
    MODEL, add_spinning_tool, cancel, choose_agent, choose_option, delegate, download_to, downloaded,
    give_file, give_text, go_to, history, import_files, open_at, open_task, open_with_model, press_button,
    press_delegate, row, show, wait_for_files, wait_for_none, wait_for_row,
};
use super::person::{Folder, count, open, text};

const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

#[tokio::test(flavor = "multi_thread")]
async fn the_keyboard_alone_suffices_to_delegate_a_text_and_read_its_answer_and_history() -> Result<()> {
    let page = open().await?;
    tab_to(&page, ".nav a[href='#/tasks']").await?;
    press(&page, Key::Enter).await?;
    // The panel's head is where reading goes on.
    page.wait_until("the head to be in focus", "return document.activeElement.id === 'panel-h'", vec![])
        .await?;
    page.wait_for_text(".tasks", "No tasks yet").await?;
    page.wait_for("#agent option[value=hash]").await?;
    tab_to(&page, "#agent").await?;
    press(&page, "h").await?;
    tab_to(&page, "#given-input").await?;
    press(&page, "abc").await?;
    press(&page, Key::Control + Key::Enter).await?;
    wait_for_row(&page, "abc", "Completed · hash · says it is complete").await?;
    page.wait_for_text("[data-announcement]", "Delegated to hash").await?;

    tab_to(&page, ".task__open").await?;
    press(&page, Key::Enter).await?;
    page.wait_for_text("#detail-h", "abc").await?;
    assert_eq!(text(&page, ".result__digest .digest").await?, ABC);
    assert_eq!(history(&page).await?, json!(["queued", "running", "completed"]));
    page.wait_for_text(".task__head", "That is its word: nobody else has checked the answer.").await?;
    page.wait_for_text(".facts", "the shelf's tool hash in a worker of its own").await?;

    // And back to the form, for the next one.
    tab_to(&page, ".detail .only-wide").await?;
    press(&page, Key::Enter).await?;
    page.wait_until("the form to be in focus", "return document.activeElement.id === 'agent'", vec![])
        .await?;
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn diff_of_two_files_is_written_into_the_folder_and_can_be_downloaded() -> Result<()> {
    let folder = Folder::new("to-diff", &[("old.txt", b"alpha\nbeta\n"), ("new.txt", b"alpha\ngamma\n")])?;
    let downloads = Folder::new("downloads-diff", &[])?;
    let page = open_at("#/environments").await?;
    download_to(&page, &downloads).await?;
    import_files(&page, &folder, &["old.txt", "new.txt"]).await?;
    page.wait_for_text(".toasts", "Imported 2 files").await?;

    go_to(&page, "tasks").await?;
    choose_agent(&page, "diff").await?;
    give_file(&page, "a", "old.txt").await?;
    give_file(&page, "b", "new.txt").await?;
    page.wait_for("#task-out").await?.send_keys("out/changes.patch").await?;
    press_delegate(&page).await?;
    let title = "old.txt new.txt \u{2192} out/changes.patch";
    wait_for_row(&page, title, "Completed").await?;
    open_task(&page, title).await?;
    page.wait_for_text(".answer", "out/changes.patch").await?;

    go_to(&page, "environments").await?;
    wait_for_files(&page, &["out", "new.txt", "old.txt"]).await?;
    page.wait_for("button.entry__name").await?.click().await?;
    wait_for_files(&page, &["changes.patch"]).await?;
    page.wait_for("button[aria-label='Download changes.patch']").await?.click().await?;
    let written = std::fs::read_to_string(downloaded(&downloads, "changes.patch").await?)?;
    assert!(written.starts_with("--- old\n+++ new\n@@ "), "{written}");
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_done_is_refused_by_name_with_what_to_do_next() -> Result<()> {
    let page = open_at("#/tasks").await?;
    choose_agent(&page, "hash").await?;
    give_file(&page, "input", "../secret.txt").await?;
    press_delegate(&page).await?;
    page.wait_for_text("form .note--bad", "outside-root").await?;
    page.wait_for_text("form .note--bad", "What to do: ").await?;
    page.wait_for_text("[data-announcement]", "Not delegated").await?;
    page.wait_for_text(".tasks", "No tasks yet").await?;

    // A file that is not there shows when it is read.
    give_text(&page, "input", "notes/nowhere.txt").await?;
    press_delegate(&page).await?;
    wait_for_row(&page, "notes/nowhere.txt", "Failed · hash · seen to fail · file-unavailable").await?;
    wait_for_none(&page, "form .note--bad").await?;
    open_task(&page, "notes/nowhere.txt").await?;
    page.wait_for_text(".task__head", "A file of the task's folder is not there").await?;
    assert_eq!(history(&page).await?, json!(["queued", "running", "failed"]));

    // A text that no tool takes cannot even be sent.
    page.wait_for(".detail .only-wide").await?.click().await?;
    page.wait_for("#given-input").await?;
    let too_long = "
        document.querySelector('[name=given-input-kind]').click();
        await new Promise((done) => setTimeout(done));
        const field = document.querySelector('textarea#given-input');
        field.value = 'x'.repeat(16385);
        field.dispatchEvent(new Event('input', { bubbles: true }))";
    page.run_async_js(too_long, vec![]).await?;
    page.wait_for("form.run button[type=submit]:disabled").await?;
    page.wait_for_text("form.run", "16,385 / 16,384 bytes").await?;
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_tool_that_can_be_called_the_form_says_where_to_look() -> Result<()> {
    let page = open().await?;
    let tamper = "
        for (const key of Object.keys(localStorage).filter((key) => key.endsWith('.wasm'))) {
            const stored = localStorage.getItem(key);
            localStorage.setItem(key, stored.slice(0, 300) + (stored[300] === 'A' ? 'B' : 'A') + stored.slice(301));
        }";
    page.run_js(tamper, vec![]).await?;
    show(&page, "#/tasks").await?;
    page.wait_for_text("form .note", "Nobody to delegate to").await?;
    page.wait_for("form.run button[type=submit]:disabled").await?;
    page.wait_for("form .note a").await?.click().await?;
    page.wait_for(".tool[data-state=refused]").await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_spins_shows_what_is_left_of_its_time_and_is_cancelled() -> Result<()> {
    let page = open_at("#/tasks").await?;
    add_spinning_tool(&page).await?;
    go_to(&page, "tasks").await?;
    delegate(&page, "case", "spins").await?;
    wait_for_row(&page, "spins", "Running · case · ").await?;
    let falls = "
        const [, left] = /(\\d+) s left/.exec(document.querySelector(arguments[0]).innerText) ?? [];
        globalThis.most ??= left;
        return Number(left) < Number(globalThis.most)";
    page.wait_until("the time that is left to fall", falls, vec![json!(row("spins"))]).await?;
    // A tool is ended after five seconds anyway, so there is no time to look at anything else.
    cancel(&page, "spins").await?;
    wait_for_row(&page, "spins", "Cancelled · case · seen to be cancelled").await?;
    wait_for_none(&page, ".nav__count").await?;
    open_task(&page, "spins").await?;
    assert_eq!(history(&page).await?, json!(["queued", "running", "cancel_requested", "cancelled"]));

    // The page is as quick as before.
    page.wait_for(".detail .only-wide").await?.click().await?;
    delegate(&page, "hash", "abc").await?;
    wait_for_row(&page, "abc", "Completed").await?;
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_outlives_its_deadline_is_interrupted() -> Result<()> {
    let page = open_at("#/tasks").await?;
    add_spinning_tool(&page).await?;
    go_to(&page, "tasks").await?;
    choose_option(&page, "#task-deadline", "5 s").await?;
    delegate(&page, "case", "too long").await?;
    wait_for_row(&page, "too long", "Interrupted · case · seen to be interrupted · task-deadline").await?;
    open_task(&page, "too long").await?;
    page.wait_for_text(".facts", "5 s").await?;
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fifth_task_at_a_time_is_refused_by_name_until_one_of_the_four_ends() -> Result<()> {
    let page = open_with_model("#/tasks").await?;
    for name in ["wait 1", "wait 2", "wait 3", "wait 4"] {
        delegate(&page, MODEL, name).await?;
        wait_for_row(&page, name, "Waiting for the browser's model").await?;
    }
    page.wait_for_text(".panel__head", "4 tasks active in this tab").await?;
    page.wait_for_text(".nav__count", "4").await?;
    give_text(&page, "task", "wait 5").await?;
    press_delegate(&page).await?;
    page.wait_for_text("form .note--bad", "task-capacity-exhausted").await?;
    page.wait_for_text("form .note--bad", "Wait for one to end, or cancel one.").await?;
    assert_eq!(count(&page, "li.task").await?, 4);

    cancel(&page, "wait 2").await?;
    wait_for_row(&page, "wait 2", "Cancelled").await?;
    page.wait_for_text(".panel__head", "3 tasks active in this tab").await?;
    press_delegate(&page).await?;
    wait_for_row(&page, "wait 5", "Running").await?;
    assert_eq!(count(&page, "form .note--bad").await?, 0);
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_filtered_by_how_they_stand_and_cleared_with_a_way_back() -> Result<()> {
    let page = open_with_model("#/tasks").await?;
    delegate(&page, MODEL, "wait to be stopped").await?;
    wait_for_row(&page, "wait to be stopped", "Running").await?;
    cancel(&page, "wait to be stopped").await?;
    wait_for_row(&page, "wait to be stopped", "Cancelled").await?;
    delegate(&page, MODEL, "a question").await?;
    wait_for_row(&page, "a question", "Completed · browser-model · says it is complete").await?;
    delegate(&page, MODEL, "wait on").await?;
    wait_for_row(&page, "wait on", "Running").await?;

    let all = ["wait on", "a question", "wait to be stopped"];
    for (filter, titles) in
        [("Active", &all[..1]), ("Completed", &all[1..2]), ("Unsuccessful", &all[2..]), ("All", &all[..])]
    {
        choose_filter(&page, filter).await?;
        wait_for_titles(&page, titles).await?;
    }

    // Only what the filter shows is cleared, and what is at work stays.
    choose_filter(&page, "Unsuccessful").await?;
    wait_for_titles(&page, &all[2..]).await?;
    press_button(&page, "Clear ended").await?;
    page.wait_for_text(".tasks", "No task has come to a bad end").await?;
    choose_filter(&page, "All").await?;
    wait_for_titles(&page, &all[..2]).await?;
    press_button(&page, "Clear ended").await?;
    wait_for_titles(&page, &all[..1]).await?;
    page.wait_for_text(".toasts", "Cleared 1 ended task").await?;
    for undone in [2, 3] {
        page.wait_for(".toast:last-child button").await?.click().await?;
        wait_for_titles(&page, &all[..undone]).await?;
    }
    // They are back for good.
    show(&page, "#/tasks").await?;
    wait_for_titles(&page, &all).await?;
    wait_for_row(&page, "a question", "Completed").await?;
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn many_tasks_come_in_pages_and_each_has_an_address_that_outlives_a_reload() -> Result<()> {
    let page = open_at("#/tasks").await?;
    choose_agent(&page, "hash").await?;
    let many = "
        const field = document.querySelector('#given-input');
        for (let number = 1; number <= 60; number++) {
            field.value = 'number ' + number;
            field.dispatchEvent(new Event('input', { bubbles: true }));
            document.querySelector('form.run').requestSubmit();
            const done = `li.task[data-task=completed] > [title='number ${number}']`;
            while (!document.querySelector(done)) await new Promise((done) => setTimeout(done, 5));
        }";
    page.run_async_js(many, vec![]).await?;
    let listed = |number: u64| format!("return document.querySelectorAll('li.task').length === {number}");
    show(&page, "#/tasks").await?;
    page.wait_until("the newest 50 to be listed", &listed(50), vec![]).await?;
    assert_eq!(text(&page, "li.task:last-child .task__open").await?, "number 11");
    press_button(&page, "Show older").await?;
    page.wait_until("all to be listed", &listed(60), vec![]).await?;
    assert_eq!(text(&page, "li.task:last-child .task__open").await?, "number 1");
    assert!(!text(&page, ".tasks").await?.contains("Show older"));
    // A new task does not take the older ones away.
    delegate(&page, "hash", "one more").await?;
    wait_for_row(&page, "one more", "Completed").await?;
    assert_eq!(count(&page, "li.task").await?, 61);

    open_task(&page, "number 3").await?;
    let address = page.run_js("return location.hash", vec![]).await?;
    let address = address.as_str().unwrap_or_default();
    show(&page, address).await?;
    page.wait_for_text("#detail-h", "number 3").await?;
    page.wait_for_text(".task__head", "Completed").await?;
    page.wait_for(".result__digest .digest").await?;
    assert_eq!(count(&page, ".line > li").await?, 3);
    let position = address.trim_start_matches("#/tasks/");
    assert_eq!(page.session().title().await?, format!("Task {position} · Toolshelf"));
    for unknown in ["#/tasks/99999", "#/tasks/none"] {
        show(&page, unknown).await?;
        page.wait_for_text("#detail-h", "No such task").await?;
        page.wait_for_text(".detail .note--bad", "task-not-found").await?;
    }
    page.assert_clean().await?;
    page.quit().await
}

async fn choose_filter(page: &Page, name: &str) -> Result<()> {
    let label = format!("//section[@aria-label='Your tasks']//label[span='{name}']");
    page.session().find(By::XPath(label)).await?.click().await.map_err(Into::into)
}

async fn wait_for_titles(page: &Page, titles: &[&str]) -> Result<()> {
    let same = "return [...document.querySelectorAll('.task__open')]
        .map((link) => link.title).join('\\n') === arguments[0].join('\\n')";
    page.wait_until(&format!("the tasks {titles:?}"), same, vec![json!(titles)]).await
}
