//! Extensions of a companion: installing, granting, calling, what they put on record, their facts; and what of it is
//! refused.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use e2e::{Browser, Companion, Page};
use serde_json::{Value, json};
use thirtyfour::{By, Key};

use super::access::assert_accessible;
use super::companion::Visit;
use super::delegating::{download_to, downloaded, press_button, wait_for_none};
use super::person::{Folder, count, text};

/// The note summariser.
const NOTE: &str = "ext.example.note-summary";

pub(super) fn example(name: &str) -> PathBuf {
    e2e::workspace().join("tools/guests").join(name)
}

fn manifest(name: &str) -> Result<Value> {
    Ok(serde_json::from_slice(&fs::read(example(name).join("manifest.json"))?)?)
}

/// A page of a companion that takes what nobody has signed.
pub(super) async fn visit() -> Result<Visit> {
    Visit::of(Companion::for_development().await?).await
}

pub(super) async fn go(browser: &Browser, address: &str) -> Result<()> {
    browser.run_js("location.hash = arguments[0]", vec![json!(address)]).await.map(drop)
}

/// Picks files for the form that installs.
pub(super) async fn pick(browser: &Browser, paths: &[PathBuf]) -> Result<()> {
    go(browser, "#/installed").await?;
    browser.wait_for("#files-h").await?;
    let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    browser.session().find(By::Css("#install-files")).await?.send_keys(paths.join("\n")).await?;
    browser.wait_for("dialog#install[open] #install-h").await.map(drop)
}

/// Picks manifest and module of an example, and installs it.
pub(super) async fn install(browser: &Browser, name: &str) -> Result<()> {
    let module = manifest(name)?["wasm_module_path"].as_str().context("a path")?.to_owned();
    pick(browser, &[example(name).join("manifest.json"), example(name).join(module)]).await?;
    browser.wait_for("#install .btn--primary:enabled").await?.click().await?;
    browser.wait_for("article[data-extension]").await.map(drop)
}

/// Types into a field by its id, in the place of what was there.
pub(super) async fn fill(browser: &Browser, id: &str, text: &str) -> Result<()> {
    let field = browser.wait_for(&format!("#{id}")).await?;
    field.clear().await?;
    field.send_keys(text).await.map_err(Into::into)
}

/// Fills in the form for a grant, and sends it.
pub(super) async fn grant(browser: &Browser, passport: &str, read: &str, write: &str) -> Result<()> {
    if count(browser, ".give[open]").await? == 0 {
        browser.wait_for(".give > summary").await?.click().await?;
    }
    fill(browser, "grant-passport", passport).await?;
    fill(browser, "grant-read", read).await?;
    fill(browser, "grant-write", write).await?;
    press_button(browser, "Give the grant").await
}

/// The id of the field of an argument.
pub(super) async fn argument(browser: &Browser, name: &str) -> Result<String> {
    let find = "return [...document.querySelectorAll('.inst .run label')]
        .find((label) => label.firstChild.textContent === arguments[0])?.htmlFor";
    let id = browser.run_js(find, vec![json!(name)]).await?;
    id.as_str().map(str::to_owned).with_context(|| format!("there is no field {name}"))
}

pub(super) async fn run(browser: &Browser) -> Result<()> {
    // Not below a message at the foot of the page.
    let button = browser.wait_for(".inst .run button[type=submit]").await?;
    browser
        .run_js(
            "document.querySelector('.inst .run button[type=submit]').scrollIntoView({ block: 'center' })",
            vec![],
        )
        .await?;
    button.click().await.map_err(Into::into)
}

/// Ends the visit. What is refused the browser tells on the console itself; nothing else may be there.
async fn quit_after_refusals(visit: Visit) -> Result<()> {
    let mut errors = visit.browser.console_errors().await?;
    errors.retain(|error| !error.contains("Failed to load resource"));
    ensure!(errors.is_empty(), "the page reported errors: {errors:#?}");
    visit.browser.quit().await
}

pub(super) async fn note(companion: &Companion, entity: &str, text: &str) -> Result<()> {
    let fact = json!({ "entity": entity, "key": "text", "value": text });
    let stored = companion.send("PUT", "/v1/facts", &fact).await?;
    ensure!(stored["version"].is_u64(), "{stored}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_is_installed_granted_run_revoked_and_taken_away() -> Result<()> {
    let visit = visit().await?;
    let browser = &visit.browser;
    note(&visit.companion, "notes::1", "Tools import nothing. Each tool is pinned. Lunch is at noon.")
        .await?;

    // What it asks for is told in plain words before anything is installed.
    let module = example("note-summary").join("note-summary.wasm");
    pick(browser, &[example("note-summary").join("manifest.json"), module]).await?;
    for words in [
        "Install “Note summary”",
        "It wants to read and to write facts. Which ones, each grant says",
        "without files and without a network; each call has at most 1,000 ms, 16 MB of memory and 1,000,000 units",
        "Nobody has signed it",
        "has the pinned digest",
    ] {
        browser.wait_for_text("#install", words).await?;
    }
    let listed = visit.companion.send("GET", "/v1/extensions", &json!({})).await?;
    assert_eq!(listed["count"], 0);
    browser.wait_for("#install .btn--primary:enabled").await?.click().await?;
    browser.wait_for_text(".installed li[data-extension]", "Note summary").await?;
    browser.wait_for_text("#detail-h", "Note summary").await?;
    browser.wait_for_text(".inst .digest", "f5835236").await?;
    wait_for_none(browser, "dialog[open]").await?;

    // A grant that reaches too far is refused beside its field.
    grant(browser, "p_ann", "notes::", "__extension__::").await?;
    browser.wait_for_text("#grant-write-fault", "privacy-gated prefix").await?;
    assert_eq!(count(browser, "#grant-write[aria-invalid]").await?, 1);
    grant(browser, "p_ann", "notes::", "notes::").await?;
    browser.wait_for_text(".grant", "Reads facts whose names begin with notes::").await?;
    browser.wait_for_text(".grant", "Until it is revoked").await?;

    // The form holds the arguments to the schema.
    let (entity, sentences) = (argument(browser, "entity").await?, argument(browser, "sentences").await?);
    run(browser).await?;
    browser.wait_for_text(&format!("#{entity}-fault"), "This is needed").await?;
    fill(browser, &entity, "notes::1").await?;
    fill(browser, &sentences, "11").await?;
    run(browser).await?;
    browser.wait_for_text(&format!("#{sentences}-fault"), "At most 10").await?;
    fill(browser, &sentences, "1").await?;
    browser.session().active_element().await?.send_keys(Key::Control + Key::Enter).await?;
    browser.wait_for_text(".inst .tree", "summary").await?;
    let result = text(browser, ".inst .result").await?;
    for part in ["Time", "Fuel", "req-", "notes::1: 1 of 3 sentences", "info"] {
        assert!(result.contains(part), "{part}: {result}");
    }
    browser.wait_for(".installed .lat:not([data-empty])").await?;

    // The facts are there, with who wrote them.
    go(browser, "#/facts").await?;
    browser.wait_for("a.entry__name[href='#/facts/below/notes%3A%3A']").await?.click().await?;
    browser.wait_for("a.entry__name[href='#/facts/of/notes%3A%3A1']").await?.click().await?;
    browser.wait_for("a[href='#/facts/of/notes%3A%3A1/summary']").await?.click().await?;
    browser.wait_for_text(".versions", &format!("the extension {NOTE}@0.1.0")).await?;

    // A call that takes too long is given up.
    go(browser, &format!("#/installed/{NOTE}")).await?;
    browser.wait_for(".inst .run").await?;
    visit.companion.stand_still(true).await?;
    run(browser).await?;
    browser.wait_for(".inst .result .wait .btn").await?.click().await?;
    browser.wait_for_text(".inst .result", "You gave the call up").await?;
    visit.companion.stand_still(false).await?;

    // Revoking holds from the next call on, and can be undone.
    go(browser, &format!("#/installed/{NOTE}")).await?;
    press_button(browser, "Revoke").await?;
    browser.wait_for_text(".inst", "Nobody may call it yet").await?;
    run(browser).await?;
    browser.wait_for_text(".inst .result", "not-granted").await?;
    browser.wait_for_text(".inst .result", "Status 403").await?;
    browser.wait_for_text(".inst .result", "What to do").await?;
    press_button(browser, "Undo").await?;
    browser.wait_for(".grant").await?;
    run(browser).await?;
    browser.wait_for(".inst .tree").await?;

    // Out of use and into it again, which wants a reason.
    browser.run_js("scrollTo(0, 0)", vec![]).await?;
    press_button(browser, "Quarantine…").await?;
    browser.wait_for("#ask[open] .btn--primary").await?.click().await?;
    browser.wait_for_text(".inst .detail__head", "Quarantined").await?;
    run(browser).await?;
    browser.wait_for_text(".inst .result", "is quarantined").await?;
    browser.run_js("scrollTo(0, 0)", vec![]).await?;
    press_button(browser, "Activate…").await?;
    browser.wait_for("#ask[open] .btn--primary").await?.click().await?;
    assert_eq!(count(browser, "#ask[open]").await?, 1, "a reason is needed");
    fill(browser, "ask-why", "looked at it").await?;
    browser.wait_for("#ask[open] .btn--primary").await?.click().await?;
    browser.wait_for_text(".inst .detail__head", "Active").await?;

    browser.run_js("scrollTo(0, 0)", vec![]).await?;
    press_button(browser, "Uninstall…").await?;
    browser.wait_for("#ask[open] .btn--danger").await?.click().await?;
    browser.wait_for_text(".installed", "Nothing is installed yet").await?;
    let listed = visit.companion.send("GET", "/v1/extensions", &json!({})).await?;
    assert_eq!(listed["count"], 0);
    quit_after_refusals(visit).await
}

#[tokio::test(flavor = "multi_thread")]
async fn receipts_are_listed_verified_and_exported_and_calls_of_others_are_seen() -> Result<()> {
    let visit = visit().await?;
    let browser = &visit.browser;
    install(browser, "every-import").await?;
    browser.wait_for_text(".inst", "It has put nothing on record").await?;
    grant(browser, "p_ann", "notes::", "notes::").await?;
    browser.wait_for(".grant").await?;

    // Somebody else calls it: badge and receipts follow by themselves.
    let id = "ext.example.every-import";
    let args = json!({"entity": "notes::1", "key": "k", "value": "v", "prefix": "notes::", "secret": "none"});
    let call = json!({ "args": args, "passport_fpr": "p_ann" });
    let called = visit.companion.post(&format!("/v1/extensions/{id}/tools/{id}.run/invoke"), &call).await?;
    assert!(called["result"].is_object(), "{called}");
    browser.wait_for(".installed .lat:not([data-empty])").await?;
    browser.wait_for(".receipt").await?;
    browser.wait_for_text(".receipt", "p_ann").await?;
    press_button(browser, "Verify").await?;
    browser
        .wait_for_text("[data-verified]", "The one receipt of this companion is as it was written")
        .await?;

    // As JSON, with what is no JSON told.
    press_button(browser, "As JSON").await?;
    fill(browser, "arg-json", "{\"entity\": ").await?;
    run(browser).await?;
    browser.wait_for_text("#arg-json-fault", "This is no JSON").await?;
    fill(browser, "arg-json", &args.to_string()).await?;
    run(browser).await?;
    browser.wait_for(".inst .tree").await?;
    browser
        .wait_until("a second receipt", "return document.querySelectorAll('.receipt').length === 2", vec![])
        .await?;

    let folder = Folder::new("receipts", &[])?;
    download_to(browser, &folder).await?;
    press_button(browser, "Export").await?;
    let exported: Value = serde_json::from_slice(&fs::read(downloaded(&folder, ".json").await?)?)?;
    assert_eq!(exported["receipts"].as_array().map(Vec::len), Some(2));
    assert_eq!(exported["receipts"][0]["body"]["extension_id"], id);
    assert_eq!(exported["public_key"].as_str().map(str::len), Some(64));
    visit.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn facts_are_browsed_searched_exported_and_deleted_and_private_ones_are_asked_for() -> Result<()> {
    let visit = visit().await?;
    let browser = &visit.browser;
    for text in ["first", "second", "third"] {
        note(&visit.companion, "notes::work::1", text).await?;
    }
    note(&visit.companion, "notes::home", "a lamp").await?;
    note(&visit.companion, "github::org", "a secret place").await?;
    go(browser, "#/facts").await?;
    browser.wait_for_text(".files", "notes::").await?;
    assert!(!text(browser, ".files").await?.contains("github"), "private facts are not shown unasked");
    browser.wait_for(".find input[type=checkbox]").await?.click().await?;
    browser.wait_for_text(".files", "github::").await?;
    browser.wait_for(".find input[type=checkbox]").await?.click().await?;

    fill(browser, "find", "lamp").await?;
    press_button(browser, "Find").await?;
    browser.wait_for_text(".found", "1 fact found").await?;
    browser.wait_for_text(".found", "a lamp").await?;

    go(browser, "#/facts/of/notes%3A%3Awork%3A%3A1/text").await?;
    browser.wait_for_text(".versions li:first-child", "Version 3 · holds now · certain").await?;
    browser.wait_for_text(".versions li:last-child", "superseded by fact_").await?;
    assert_eq!(count(browser, ".versions li").await?, 3);
    browser.wait_for("button[aria-label='Delete version 1']").await?.click().await?;
    browser.wait_for("#ask[open] .btn--danger").await?.click().await?;
    browser
        .wait_until("two versions", "return document.querySelectorAll('.versions li').length === 2", vec![])
        .await?;

    let folder = Folder::new("facts", &[])?;
    download_to(browser, &folder).await?;
    press_button(browser, "Export").await?;
    let exported: Value = serde_json::from_slice(&fs::read(downloaded(&folder, ".json").await?)?)?;
    let values: Vec<_> =
        exported["facts"].as_array().into_iter().flatten().map(|fact| &fact["value"]).collect();
    assert_eq!(values, ["second", "third"], "what is below the place that is looked at");

    press_button(browser, "Delete…").await?;
    browser.wait_for_text("#ask", "All of it goes: 2 versions").await?;
    browser.wait_for("#ask[open] .btn--danger").await?.click().await?;
    browser.wait_for_text(".inst", "It has no facts").await?;
    let left =
        visit.companion.send("GET", "/v1/facts/history?entity=notes::work::1&key=text", &json!({})).await?;
    assert_eq!(left["facts"], json!([]));
    visit.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_says_so_with_its_code_and_installs_nothing() -> Result<()> {
    // Not for development: what nobody has signed is refused.
    let visit = Visit::of(Companion::start().await?).await?;
    let browser = &visit.browser;
    let refused = async |bytes: Vec<u8>, code: &str, words: &str| {
        let folder = Folder::new("refused", &[("manifest.json", &bytes)])?;
        pick(browser, &[folder.file("manifest.json")]).await?;
        browser.wait_for_text("#install", code).await?;
        browser.wait_for_text("#install", words).await?;
        browser.wait_for_text("#install", "What to do").await?;
        assert_eq!(count(browser, "#install .btn--primary").await?, 0);
        press_button(browser, "Close").await?;
        wait_for_none(browser, "dialog[open]").await
    };
    let with = |change: &dyn Fn(&mut Value)| {
        let mut manifest = manifest("note-summary")?;
        change(&mut manifest);
        anyhow::Ok(manifest.to_string().into_bytes())
    };
    refused(with(&|_| {})?, "extension-untrusted", "signature is required").await?;
    refused(
        with(&|manifest| manifest["wasm_module_path"] = "../x.wasm".into())?,
        "extension-invalid",
        "must be relative",
    )
    .await?;
    refused(b"{ no json".to_vec(), "extension-invalid", "is no JSON").await?;
    refused(b"[]".to_vec(), "extension-invalid", "crux.integration.v1").await?;

    go(browser, "#/installed").await?;
    fill(browser, "install-link", "http://127.0.0.1:9/manifest.json").await?;
    press_button(browser, "Look at it").await?;
    browser.wait_for_text("#install", "upstream-failed").await?;
    browser.wait_for_text("#install", "https://").await?;
    press_button(browser, "Close").await?;
    assert_eq!(count(browser, ".installed li[data-extension]").await?, 0);
    quit_after_refusals(visit).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_that_is_not_the_pinned_one_cannot_be_installed() -> Result<()> {
    let visit = visit().await?;
    let browser = &visit.browser;
    pick(browser, &[example("note-summary").join("manifest.json"), example("ext-echo").join("echo.wasm")])
        .await?;
    browser.wait_for_text("#install .bad", "and the manifest pins f5835236").await?;
    browser.wait_for("#install .btn--primary:disabled").await?;
    let module = example("note-summary").join("note-summary.wasm");
    browser.session().find(By::Css("#install-module")).await?.send_keys(module.display().to_string()).await?;
    browser.wait_for("#install .btn--primary:enabled").await?.click().await?;
    browser.wait_for(".installed li[data-extension]").await?;
    visit.quit().await
}

/// A manifest whose every text would like to be something else.
fn hostile(long: usize) -> Result<Value> {
    let mut manifest = manifest("ext-echo")?;
    let markup = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>";
    manifest["name"] = format!("{markup}\u{202e}gpj").into();
    manifest["summary"] = format!("`</p>{markup}`\u{2066}\u{0}").into();
    manifest["capabilities"] = json!(["facts:read"]);
    let name = "x".repeat(long);
    manifest["tools"][0]["description"] = markup.into();
    manifest["tools"][0]["input_schema"] = json!({"type": "object", "required": [name], "properties": {
        name.clone(): {"type": "string", "description": format!("{markup}{name}"), "default": name},
        "\u{202e}<b>": {"enum": [markup, name]},
    }});
    Ok(manifest)
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_texts_of_a_manifest_are_cut_and_do_nothing() -> Result<()> {
    let visit = visit().await?;
    let browser = &visit.browser;
    // A name of 100,000 letters is none that is read.
    let mut long = hostile(10)?;
    long["name"] = "x".repeat(100_000).into();
    let folder = Folder::new("long", &[("manifest.json", long.to_string().as_bytes())])?;
    pick(browser, &[folder.file("manifest.json")]).await?;
    browser.wait_for_text("#install", "over-budget").await?;
    assert!(text(browser, "#install").await?.len() < 3_000);
    press_button(browser, "Close").await?;

    // Nor is a schema that has them, and what is told of it is cut.
    let folder = Folder::new("schema", &[("manifest.json", hostile(100_000)?.to_string().as_bytes())])?;
    pick(browser, &[folder.file("manifest.json")]).await?;
    browser.wait_for_text("#install", "extension-invalid").await?;
    assert!(text(browser, "#install").await?.len() < 6_000);
    press_button(browser, "Close").await?;

    // One whose schema just fits is, and it is cut where it is shown.
    let module = fs::read(example("ext-echo").join("echo.wasm"))?;
    let bytes = hostile(10_000)?.to_string();
    let folder = Folder::new("hostile", &[("manifest.json", bytes.as_bytes()), ("echo.wasm", &module)])?;
    pick(browser, &[folder.file("manifest.json"), folder.file("echo.wasm")]).await?;
    browser.wait_for_text("#install-h", "<img src=x").await?;
    browser.wait_for_text("#install-h", "‹U+202E›gpj").await?;
    browser.wait_for("#install .btn--primary:enabled").await?.click().await?;
    browser.wait_for("article[data-extension] .run").await?;
    let shown = text(browser, "body").await?.len();
    assert!(shown < 20_000, "{shown} letters are shown");
    assert_eq!(count(browser, "main img, main script, dialog img").await?, 0);
    assert!(!browser.session().title().await?.contains("owned"));
    for width in [1280, 320] {
        browser.set_viewport(width, 900).await?;
        assert_accessible(browser, "a hostile extension").await?;
    }
    visit.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_companion_the_page_says_how_to_get_one() -> Result<()> {
    let page = Page::start().await?;
    page.open("").await?;
    for (link, words) in [("#/installed", "Installed extensions"), ("#/facts", "Facts")] {
        page.wait_for(&format!(".beyond a[href='{link}']")).await?.click().await?;
        page.wait_for_text("#detail-h", words).await?;
        page.wait_for_text(".teach", "toolshelf serve --open").await?;
        for width in [320, 1280] {
            page.set_viewport(width, 900).await?;
            assert_accessible(&page, words).await?;
        }
    }
    page.assert_clean().await?;
    page.quit().await
}
