//! A person adds, removes and restores shelves; somebody tampers with a stored module.

use anyhow::Result;
use serde_json::{Value, json};

use super::person::{Folder, add_shelf, choose, count, open, run, sample_shelf, text, type_text};

#[tokio::test(flavor = "multi_thread")]
async fn an_added_folder_gets_a_verdict_for_each_entry_and_stays_after_a_reload() -> Result<()> {
    let folder = sample_shelf("release-tools")?;
    let page = open().await?;
    add_shelf(&page, folder.path()).await?;
    let verdicts = text(&page, ".verdicts").await?;
    assert!(verdicts.contains("digest-mismatch") && verdicts.contains("but the manifest pins"), "{verdicts}");
    choose(&page, "fingerprint").await?;
    type_text(&page, 0, "abc").await?;
    run(&page).await?;
    page.wait_for_text(".result", "ba7816bf").await?;

    page.open("").await?;
    page.wait_for(".tool__open[href$='/fingerprint']").await?;
    assert_eq!(count(&page, ".tool__open[href$='/swapped']").await?, 0);
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn removing_a_shelf_asks_first_and_can_be_undone() -> Result<()> {
    let folder = sample_shelf("to-remove")?;
    let page = open().await?;
    add_shelf(&page, folder.path()).await?;
    let fingerprint = ".tool__open[href$='/fingerprint']";
    page.wait_for(fingerprint).await?;
    page.wait_for("button[aria-label^='Remove the shelf']").await?.click().await?;
    page.wait_for("dialog[open] .btn--danger").await?.click().await?;
    let gone = "return !document.querySelector(arguments[0])";
    page.wait_until("the tool to go", gone, vec![json!(fingerprint)]).await?;
    page.wait_for_text(".toasts", "to-remove").await?;
    let undo =
        "[...document.querySelectorAll('.toast')].find((toast) => toast.textContent.includes('Removed'))
        .querySelector('button').click()";
    page.run_js(undo, Vec::new()).await?;
    page.wait_for(fingerprint).await?;
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_no_shelf_is_refused_with_what_to_do_next() -> Result<()> {
    let page = open().await?;
    for (name, manifest, code) in
        [("not-json", &b"{"[..], "shelf-unreadable"), ("huge", &[b' '; 1_048_577][..], "over-budget")]
    {
        let folder = Folder::new(name, &[("manifest.json", manifest)])?;
        let picker = page.session().find(thirtyfour::By::Css("input[type=file][webkitdirectory]")).await?;
        picker.send_keys(folder.path().display().to_string()).await?;
        page.wait_for_text("#main", code).await?;
    }
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_module_that_somebody_changed_is_refused_by_name_and_can_be_restored() -> Result<()> {
    let page = open().await?;
    choose(&page, "hash").await?;
    run(&page).await?;
    page.wait_for(".result__digest").await?;
    let tamper = "
        const key = 'toolshelf/builtin/hash.wasm';
        const stored = localStorage.getItem(key);
        localStorage.setItem(key, stored.slice(0, 300) + (stored[300] === 'A' ? 'B' : 'A') + stored.slice(301));";
    page.run_async_js(tamper, Vec::new()).await?;
    run(&page).await?;
    page.wait_for_text("#main", "bytes changed since admission").await?;
    page.wait_for_text(".tool[data-state=refused]", "digest-mismatch").await?;

    // A reload does not repair it behind the person's back.
    page.open("").await?;
    page.wait_for_text(".tool[data-state=refused]", "but the manifest pins").await?;
    let restore = "[...document.querySelectorAll('button')]
        .find((button) => button.textContent.includes('Restore the built-in tools'))?.click()";
    choose(&page, "hash").await?;
    page.run_js(restore, Vec::new()).await?;
    let whole = "return !document.querySelector('.tool[data-state=refused]')";
    page.wait_until("the built-in tools to be whole", whole, Vec::new()).await?;
    run(&page).await?;
    page.wait_for(".result__digest").await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_crash_takes_out_of_local_storage_is_not_lost() -> Result<()> {
    let folder = sample_shelf("before-a-crash")?;
    let page = open().await?;
    add_shelf(&page, folder.path()).await?;
    page.wait_for(".tool__open[href$='/fingerprint']").await?;
    // Browsers write it to the disk seconds later than the database.
    page.run_js("localStorage.clear()", Vec::new()).await?;
    page.open("").await?;
    for tool in ["hash", "fingerprint"] {
        choose(&page, tool).await?;
        run(&page).await?;
        page.wait_for_text(".result", "e3b0c442").await?;
    }
    assert_eq!(count(&page, ".tool[data-state=refused]").await?, 0);
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_spins_is_ended_by_name_while_the_page_goes_on() -> Result<()> {
    let page = open().await?;
    let spin = toolshelf_conformance::modules().into_iter().find(|case| case.name == "loops-forever");
    let Some(spin) = spin.map(|case| case.folder()) else { anyhow::bail!("the contract lost a case") };
    let files: Vec<_> = spin.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])).collect();
    let folder = Folder::new("spinning", &files)?;
    add_shelf(&page, folder.path()).await?;
    choose(&page, "case").await?;
    run(&page).await?;
    page.wait_for(".wait progress").await?;
    let script = "
        let ticks = 0;
        const timer = setInterval(() => ticks++, 50);
        const spin = toolshelf.callWasmTool('case', {});
        const meanwhile = await toolshelf.callWasmTool('hash', { input: 'abc' });
        const end = await spin;
        clearInterval(timer);
        const after = await toolshelf.callWasmTool('hash', { input: 'abc' });
        return { meanwhile: meanwhile.ok, end: end.refused, after: after.ok, ticks };";
    let seen: Value = page.run_async_js(script, Vec::new()).await?;
    assert_eq!(
        (&seen["meanwhile"], &seen["end"], &seen["after"]),
        (&json!(true), &json!("time-exceeded"), &json!(true))
    );
    // Five seconds of a frozen page would leave next to none.
    assert!(seen["ticks"].as_u64() >= Some(20), "{seen}");
    page.wait_for_text(".result", "time-exceeded").await?;
    page.quit().await
}
