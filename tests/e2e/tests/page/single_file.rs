//! The page as one file, opened from the disk.

use anyhow::{Result, ensure};
use e2e::Page;

use super::delegating::{
    delegate, give_file, go_to, import_files, open_task, press_delegate, settled, wait_for_files,
    wait_for_row,
};
use super::person::{Folder, add_shelf, choose, run, sample_shelf, text, type_text};

/// The one file, beside the folder of the page under test.
fn address() -> Result<String> {
    let file = e2e::dist().with_file_name("dist-single").join("toolshelf.html");
    ensure!(file.is_file(), "there is no {}: run `cargo xtask build` first", file.display());
    Ok(format!("file://{}", file.display()))
}

async fn open() -> Result<Page> {
    let page = Page::start().await?;
    page.open_from(&address()?).await?;
    page.wait_for(".tool__open").await?;
    Ok(page)
}

/// It reported no error, and asked for nothing but itself.
async fn assert_alone(page: &Page) -> Result<()> {
    let errors = page.console_errors().await?;
    ensure!(errors.is_empty(), "the page reported errors: {errors:#?}");
    let mut asked = page.requests().await?;
    let address = address()?;
    asked.retain(|url| !["data:", "blob:", &address].iter().any(|own| url.starts_with(own)));
    ensure!(asked.is_empty(), "the page asked for {asked:#?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_file_runs_the_tools() -> Result<()> {
    let page = open().await?;
    choose(&page, "hash").await?;
    type_text(&page, 0, "abc").await?;
    run(&page).await?;
    page.wait_for_text(".result__digest .digest", "ba7816bf").await?;
    choose(&page, "diff").await?;
    type_text(&page, 0, "alpha\nbeta\n").await?;
    type_text(&page, 1, "alpha\ngamma\nbeta\n").await?;
    run(&page).await?;
    page.wait_for_text(".result", "gamma").await?;
    assert!(text(&page, ".result").await?.contains("alpha"));
    assert_alone(&page).await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_file_keeps_the_shelves_of_its_visitor() -> Result<()> {
    let folder = sample_shelf("from-disk")?;
    let page = open().await?;
    add_shelf(&page, folder.path()).await?;
    page.wait_for(".tool__open[href$='/fingerprint']").await?;
    page.open_from(&address()?).await?;
    choose(&page, "fingerprint").await?;
    type_text(&page, 0, "abc").await?;
    run(&page).await?;
    page.wait_for_text(".result", "ba7816bf").await?;
    assert_alone(&page).await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_file_runs_tasks_on_files_of_its_own_and_keeps_both() -> Result<()> {
    let folder = Folder::new("for-one-file", &[("a.txt", b"abc")])?;
    let page = open().await?;
    go_to(&page, "environments").await?;
    // What a page from the disk is not given is said.
    page.wait_for_text(".folders", "it gives this page no private file system").await?;
    page.wait_for_text(".detail", "Pick a folder…").await?;
    import_files(&page, &folder, &["a.txt"]).await?;
    wait_for_files(&page, &["a.txt"]).await?;
    go_to(&page, "tasks").await?;
    delegate(&page, "hash", "a text").await?;
    wait_for_row(&page, "a text", "Completed").await?;
    give_file(&page, "input", "a.txt").await?;
    page.wait_for("#task-out").await?.send_keys("out/digest.txt").await?;
    press_delegate(&page).await?;
    let title = "a.txt \u{2192} out/digest.txt";
    wait_for_row(&page, title, "Completed").await?;

    page.session().refresh().await?;
    settled(&page).await?;
    open_task(&page, title).await?;
    // The digest is of the answer, which is the digest of the file.
    page.wait_for_text(".answer", "dfe7a23fefeea519e9bbfdd1a6be94c4b2e4529dd6b7cbea83f9959c2621b13c").await?;
    go_to(&page, "environments").await?;
    wait_for_files(&page, &["out", "a.txt"]).await?;
    assert_alone(&page).await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_file_runs_no_script_but_its_own() -> Result<()> {
    let page = open().await?;
    let policy = "return document.querySelector('meta[http-equiv=Content-Security-Policy]').content";
    let policy = page.run_js(policy, Vec::new()).await?;
    let policy = policy.as_str().unwrap_or_default();
    assert!(policy.starts_with("default-src 'none'; script-src 'wasm-unsafe-eval' 'sha256-"), "{policy}");
    for forbidden in ["unsafe-inline", "'unsafe-eval'", "'self'", "*", "http", "file:"] {
        assert!(!policy.contains(forbidden), "{policy}");
    }
    let inline = "const script = document.createElement('script');
        script.textContent = 'window.ran = true';
        document.head.append(script);
        return window.ran === true";
    assert_eq!(page.run_js(inline, Vec::new()).await?, false);
    page.quit().await
}
