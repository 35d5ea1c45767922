//! Where tasks run, the folders that they work in, and a person's data in one file.

use anyhow::{Context as _, Result};
use e2e::Page;
use serde_json::{Value, json};
use thirtyfour::{By, Key};

use super::access::press;
use super::delegating::{
    MODEL, before_each_page, choose_agent, delegate, download_to, downloaded, give_file, go_to, import_files,
    open_at, open_task, open_with_model, press_button, press_delegate, row, show, wait_for_files,
    wait_for_none, wait_for_row,
};
use super::person::{Folder, add_shelf, count, sample_shelf};

#[tokio::test(flavor = "multi_thread")]
async fn each_environment_says_what_it_grants_and_whether_it_is_there() -> Result<()> {
    let page = open_with_model("#/environments").await?;
    let card = |name: &str| format!(".env:has(#env-{name})");
    for (name, words) in [
        ("here", &["Ready", "env_browser_local", "30 s, up to 5 min", "65,536 bytes", "0 of 4", "kept"][..]),
        (
            "machine",
            &["Not connected", "Needs the Toolshelf companion", "1 min, up to 1 h", "At the same time"][..],
        ),
        ("remote", &["Not connected", "Needs a host that was paired", "At the same time"][..]),
    ] {
        for word in words {
            page.wait_for_text(&card(name), word).await?;
        }
    }
    page.wait_for_text(".panel__head", "1 ready · 2 not connected").await?;
    // It counts what runs, also while another panel is looked at.
    go_to(&page, "tasks").await?;
    delegate(&page, MODEL, "wait").await?;
    go_to(&page, "environments").await?;
    page.wait_for_text(&card("here"), "1 of 4").await?;
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_imported_replaced_downloaded_and_deleted_and_nothing_is_lost_unasked() -> Result<()> {
    let folder = Folder::new("to-import", &[("a.txt", b"abc"), ("b.bin", &[0, 159, 146, 150, 13, 10, 0])])?;
    let downloads = Folder::new("downloads-files", &[])?;
    let page = open_at("#/environments").await?;
    download_to(&page, &downloads).await?;
    page.wait_for_text(".files", "Nothing in here yet").await?;
    import_files(&page, &folder, &["a.txt", "b.bin"]).await?;
    wait_for_files(&page, &["a.txt", "b.bin"]).await?;
    page.wait_for_text(".entry:first-child", "3 bytes").await?;

    // A folder comes into being where a task writes into it, and takes files as well.
    go_to(&page, "tasks").await?;
    choose_agent(&page, "hash").await?;
    give_file(&page, "input", "a.txt").await?;
    page.wait_for("#task-out").await?.send_keys("notes/digest.txt").await?;
    press_delegate(&page).await?;
    wait_for_row(&page, "a.txt \u{2192} notes/digest.txt", "Completed").await?;
    go_to(&page, "environments").await?;
    wait_for_files(&page, &["notes", "a.txt", "b.bin"]).await?;
    page.wait_for("button.entry__name").await?.click().await?;
    wait_for_files(&page, &["digest.txt"]).await?;
    import_files(&page, &folder, &["a.txt"]).await?;
    wait_for_files(&page, &["a.txt", "digest.txt"]).await?;
    page.wait_for(".crumbs button").await?.click().await?;
    wait_for_files(&page, &["notes", "a.txt", "b.bin"]).await?;

    page.wait_for("button[aria-label='Download b.bin']").await?.click().await?;
    let downloaded = std::fs::read(downloaded(&downloads, "b.bin").await?)?;
    assert_eq!(downloaded, std::fs::read(folder.file("b.bin"))?);

    // What is there already is asked about before it is written over.
    std::fs::write(folder.file("a.txt"), "longer than before")?;
    import_files(&page, &folder, &["a.txt"]).await?;
    page.wait_for_text("dialog[open]", "Replace 1 file?").await?;
    press(&page, Key::Escape).await?;
    wait_for_none(&page, "dialog[open]").await?;
    page.wait_for_text(".entry:nth-child(2)", "3 bytes").await?;
    import_files(&page, &folder, &["a.txt"]).await?;
    page.wait_for("dialog[open] .btn--danger").await?.click().await?;
    page.wait_for_text(".entry:nth-child(2)", "18 bytes").await?;

    page.wait_for("button[aria-label='Delete notes']").await?.click().await?;
    page.wait_for_text("dialog[open]", "Delete the folder “notes”?").await?;
    press_button(&page, "Keep it").await?;
    wait_for_none(&page, "dialog[open]").await?;
    wait_for_files(&page, &["notes", "a.txt", "b.bin"]).await?;
    page.wait_for("button[aria-label='Delete notes']").await?.click().await?;
    page.wait_for("dialog[open] .btn--danger").await?.click().await?;
    wait_for_files(&page, &["a.txt", "b.bin"]).await?;
    show(&page, "#/environments").await?;
    wait_for_files(&page, &["a.txt", "b.bin"]).await?;
    page.assert_clean().await?;
    page.quit().await
}

/// A page in which a directory of the private file system stands in for the one that a person picks in the dialog: it
/// has the same interface. What the browser says of the permission is what the session says.
async fn with_dialog() -> Result<Page> {
    let page = Page::start().await?;
    let dialog = "
        globalThis.showDirectoryPicker = async () => {
            if (sessionStorage.permission === 'closed') throw new DOMException('closed', 'AbortError');
            const top = await navigator.storage.getDirectory();
            return top.getDirectoryHandle('project', { create: true });
        };
        FileSystemHandle.prototype.queryPermission = async () => sessionStorage.permission ?? 'granted';
        FileSystemHandle.prototype.requestPermission = async () => {
            sessionStorage.permission = sessionStorage.answer ?? 'granted';
            return sessionStorage.permission;
        };";
    before_each_page(&page, dialog).await?;
    show(&page, "#/environments").await?;
    Ok(page)
}

async fn pick(page: &Page) -> Result<()> {
    press_button(page, "Pick a folder…").await?;
    page.wait_for_text(PROJECT, "project").await?;
    page.wait_until(
        "the folder to be chosen",
        "return document.querySelector(arguments[0]).checked",
        vec![json!(format!("{PROJECT} input"))],
    )
    .await
}

const PROJECT: &str = ".folder:nth-child(2)";

#[tokio::test(flavor = "multi_thread")]
async fn a_picked_folder_is_used_after_a_reload_and_when_it_is_gone_the_page_says_so() -> Result<()> {
    let files = Folder::new("for-project", &[("a.txt", b"abc")])?;
    let page = with_dialog().await?;
    // Whoever closes the dialog is asked nothing more.
    page.run_js("sessionStorage.permission = 'closed'", vec![]).await?;
    press_button(&page, "Pick a folder…").await?;
    page.run_js("delete sessionStorage.permission", vec![]).await?;
    pick(&page).await?;
    page.wait_for_text(PROJECT, "on your disk").await?;
    page.wait_for_text(".files", "Nothing in here yet").await?;
    import_files(&page, &files, &["a.txt"]).await?;
    wait_for_files(&page, &["a.txt"]).await?;

    show(&page, "#/environments").await?;
    wait_for_files(&page, &["a.txt"]).await?;
    go_to(&page, "tasks").await?;
    choose_agent(&page, "hash").await?;
    give_file(&page, "input", "a.txt").await?;
    press_delegate(&page).await?;
    wait_for_row(&page, "a.txt", "Completed").await?;
    open_task(&page, "a.txt").await?;
    page.wait_for_text(".result__digest .digest", "ba7816bf").await?;
    page.wait_for_text(".facts", "project").await?;

    let delete = "(await navigator.storage.getDirectory()).removeEntry('project', { recursive: true })";
    page.run_async_js(&format!("await {delete}"), vec![]).await?;
    show(&page, "#/environments").await?;
    page.wait_for_text(PROJECT, "it was moved or deleted").await?;
    page.wait_for_text(".files", "shows when it can be used again").await?;
    go_to(&page, "tasks").await?;
    choose_agent(&page, "hash").await?;
    give_file(&page, "input", "a.txt").await?;
    press_delegate(&page).await?;
    page.wait_for_text("form .note--bad", "task-root-unavailable").await?;
    assert_eq!(count(&page, "li.task").await?, 1);

    // Forgetting it goes back to the page's own folder.
    go_to(&page, "environments").await?;
    page.wait_for("button[aria-label='Forget project']").await?.click().await?;
    wait_for_none(&page, PROJECT).await?;
    page.wait_for_text(".files", "Nothing in here yet").await?;
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_the_browser_wants_to_ask_about_is_allowed_again_with_one_click() -> Result<()> {
    let page = with_dialog().await?;
    pick(&page).await?;
    page.run_js("sessionStorage.permission = 'prompt'; sessionStorage.answer = 'denied'", vec![]).await?;
    show(&page, "#/environments").await?;
    page.wait_for_text(PROJECT, "the browser wants to ask you again").await?;
    go_to(&page, "tasks").await?;
    page.wait_for_text("#task-folder option:checked", "project (to be allowed again)").await?;
    choose_agent(&page, "hash").await?;
    give_file(&page, "input", "a.txt").await?;
    press_delegate(&page).await?;
    page.wait_for_text("form .note--bad", "task-root-unavailable").await?;
    page.wait_for_text("form .note--bad", "must be allowed again, under Environments").await?;

    go_to(&page, "environments").await?;
    press_button(&page, "Allow again").await?;
    page.wait_for_text(PROJECT, "you did not allow it").await?;
    page.run_js("sessionStorage.answer = 'granted'", vec![]).await?;
    press_button(&page, "Allow again").await?;
    page.wait_for_text(".files", "Nothing in here yet").await?;
    wait_for_none(&page, &format!("{PROJECT} .row .btn:not(.btn--icon)")).await?;
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_of_a_person_goes_into_another_browser_and_a_changed_letter_is_refused() -> Result<()> {
    let shelf = sample_shelf("to-carry")?;
    let files = Folder::new("to-carry-files", &[("a.txt", b"abc")])?;
    let downloads = Folder::new("downloads-all", &[])?;
    let page = super::person::open().await?;
    download_to(&page, &downloads).await?;
    add_shelf(&page, shelf.path()).await?;
    page.wait_for(".tool__open[href$='/fingerprint']").await?;
    go_to(&page, "tasks").await?;
    delegate(&page, "fingerprint", "carried along").await?;
    wait_for_row(&page, "carried along", "Completed").await?;
    go_to(&page, "environments").await?;
    import_files(&page, &files, &["a.txt"]).await?;
    wait_for_files(&page, &["a.txt"]).await?;
    press_button(&page, "Export everything").await?;
    let exported = downloaded(&downloads, ".json").await?;
    page.assert_clean().await?;
    page.quit().await?;

    let whole = std::fs::read_to_string(&exported)?;
    let export: Value = serde_json::from_str(&whole)?;
    let kinds: Vec<_> = export["items"].as_array().into_iter().flatten().map(|item| &item["kind"]).collect();
    for kind in ["shelf", "task", "file"] {
        assert!(kinds.contains(&&json!(kind)), "{kinds:?}");
    }
    let changed = downloads.file("changed.json");
    std::fs::write(&changed, whole.replacen("carried along", "carried Along", 1))?;

    let page = open_at("#/environments").await?;
    import_data(&page, &changed).await?;
    page.wait_for_text(".data .note--bad", "digest-mismatch").await?;
    assert_eq!(count(&page, ".entry").await?, 0);
    go_to(&page, "tasks").await?;
    page.wait_for_text(".tasks", "No tasks yet").await?;
    assert_eq!(count(&page, "#agent option[value=fingerprint]").await?, 0);

    go_to(&page, "environments").await?;
    import_data(&page, &exported).await?;
    page.wait_for_text(".data .note--ok", "1 shelf, 1 task, 1 file").await?;
    wait_for_files(&page, &["a.txt"]).await?;
    // A second time there is nothing new in it.
    import_data(&page, &exported).await?;
    page.wait_for_text(".data .note--ok", "Nothing new; 3 things were there already and stay as they are.")
        .await?;
    go_to(&page, "tasks").await?;
    open_task(&page, "carried along").await?;
    page.wait_for_text(".facts", "fingerprint").await?;
    page.wait_for(".result__digest .digest").await?;
    page.wait_for(".detail .only-wide").await?.click().await?;
    delegate(&page, "fingerprint", "runs here as well").await?;
    wait_for_row(&page, "runs here as well", "Completed").await?;
    assert_eq!(count(&page, &row("carried along")).await?, 1);
    page.assert_clean().await?;
    page.quit().await
}

/// Picks a file for "Import…".
async fn import_data(page: &Page, file: &std::path::Path) -> Result<()> {
    let chooser = page.session().find(By::Css(".data input[type=file]")).await?;
    let path = file.to_str().context("a path is text")?;
    chooser.send_keys(path).await.map_err(Into::into)
}
