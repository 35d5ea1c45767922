//! Takes pictures of the built page's screens, wide and narrow, light and dark: `screenshot <folder> [group]`, where a
//! group is `tools`, `tasks`, `live`, `installed` or `machine`.
#![expect(clippy::print_stdout, reason = "a command line program reports on its standard output")]

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use e2e::thirtyfour::By;
use e2e::{Browser, ColorScheme, Companion, Page};
use serde_json::json;

/// A screen: its name, the page to open, what goes into its fields, and what shows when it is there.
struct Screen {
    name: &'static str,
    page: &'static str,
    texts: &'static [&'static str],
    shown: &'static str,
}

const OLD: &str = "# Release 7\n\nA shelf is a directory with a manifest.\nTools import nothing.\n\n## Limits\n\ntime: 5 s\nmemory: 32 MiB\noutput: 2 MiB\ncalls: 4\n";
const NEW: &str = "# Release 8\n\nA shelf is a folder with a manifest.\nEvery entry pins the SHA-256 of its module.\nTools import nothing.\n\n## Limits\n\ntime: 5 s\nmemory: 64 MiB\noutput: 2 MiB\ncalls: 4\n";

const SCREENS: [Screen; 4] = [
    Screen { name: "start", page: "", texts: &[], shown: ".tool__open" },
    Screen { name: "hash", page: "#/extensions/hash", texts: &["abc"], shown: ".result__digest" },
    Screen { name: "diff", page: "#/extensions/diff", texts: &[OLD, NEW], shown: ".diff" },
    Screen { name: "same", page: "#/extensions/diff", texts: &[OLD, OLD], shown: ".note--ok" },
];

/// The screens of tasks and environments: name, panel, the element to go to first, and what shows when it is there.
const PANELS: [(&str, &str, Option<&str>, &str); 3] = [
    ("tasks", "#/tasks", None, "form.run"),
    ("task", "#/tasks", Some(".task__open[title^='# Release']"), ".line"),
    ("environments", "#/environments", None, ".entry"),
];

/// Stands in for the browser's model, so that a task can be at work for as long as it is looked at.
const MODEL: &str = "
    const value = class {
        static async availability() { return 'available'; }
        static async create() { return new this(); }
        prompt(text, { signal }) {
            return new Promise((_, fail) => signal.addEventListener('abort', () => fail(signal.reason)));
        }
        destroy() {}
    };
    Object.defineProperty(globalThis, 'LanguageModel', { value, configurable: true });";

/// Says something in the Live panel.
const SAY: &str = "
    const field = document.querySelector('#live-text');
    field.value = arguments[0];
    field.dispatchEvent(new Event('input', { bubbles: true }));
    field.form.requestSubmit()";

/// Delegates tasks that come to different ends. The two texts are arguments.
const TASKS: &str = "
    const find = (selector) => document.querySelector(selector);
    const until = async (test) => { while (!test()) await new Promise((done) => setTimeout(done, 20)); };
    const set = (field, value, event) => {
        field.value = value;
        field.dispatchEvent(new Event(event, { bubbles: true }));
    };
    const delegate = async (agent, given, out, is_done) => {
        const count = document.querySelectorAll('li.task').length;
        set(find('#agent'), agent, 'change');
        for (const [name, text] of Object.entries(given)) {
            await until(() => find('#given-' + name));
            set(find('#given-' + name), text, 'input');
        }
        if (find('#task-out')) set(find('#task-out'), out, 'input');
        find('form.run').requestSubmit();
        await until(() => document.querySelectorAll('li.task').length > count);
        await until(() => find('li.task[data-task=' + is_done + ']'));
    };
    await until(() => find('#agent option[value=diff]') && find('#task-folder option'));
    const [before, after] = arguments;
    await delegate('diff', { a: before, b: after }, '', 'completed');
    await delegate('hash', { input: before }, 'out/release-7.sha256', 'completed');
    await delegate('browser-model', { task: 'Which of the two releases has the lower limits?' }, '', 'running');
    find('.task__stop').click();
    await until(() => find('li.task[data-task=cancelled]'));
    set(find('#agent'), 'hash', 'change');
    await until(() => find('#given-input'));
    document.querySelectorAll('[name=given-input-kind]')[1].click();
    await until(() => find('input#given-input'));
    await delegate('hash', { input: 'notes/release-9.md' }, '', 'failed');
    await delegate('browser-model', { task: 'Summarise what changed between the releases' }, '', 'running');
    set(find('#agent'), 'hash', 'change');";

#[tokio::main]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().context("usage: screenshot <folder> [group]")?);
    // One group alone, while it is worked on.
    let only = args.next();
    let wanted = |group: &str| only.as_deref().is_none_or(|only| only == group);
    for (width, height) in [(1280, 900), (320, 700)] {
        for (scheme, scheme_name) in [(ColorScheme::Light, "light"), (ColorScheme::Dark, "dark")] {
            let picture = async |page: &Browser, name: &str| {
                // Fonts, transitions and flashes come to rest.
                tokio::time::sleep(Duration::from_millis(1_100)).await;
                let path = folder.join(format!("{name}-{width}-{scheme_name}.png"));
                page.screenshot(&path).await?;
                println!("{}", path.display());
                anyhow::Ok(())
            };
            let start = async || {
                let page = Page::start().await?;
                page.set_viewport(width, height).await?;
                page.set_color_scheme(scheme).await?;
                anyhow::Ok(page)
            };
            let browser = async || {
                let browser = Browser::start().await?;
                browser.set_viewport(width, height).await?;
                browser.set_color_scheme(scheme).await?;
                anyhow::Ok(browser)
            };
            if wanted("tools") {
                for screen in &SCREENS {
                    let page = start().await?;
                    show(&page, screen).await?;
                    picture(&page, screen.name).await?;
                    page.quit().await?;
                }
            }
            if wanted("tasks") {
                let page = start().await?;
                tasks(&page, picture).await?;
                page.quit().await?;
            }
            if wanted("live") {
                let page = start().await?;
                live(&page, picture).await?;
                page.quit().await?;
            }
            if wanted("installed") {
                let (companion, browser) = (Companion::for_development().await?, browser().await?);
                installed(&companion, &browser, picture).await?;
                browser.quit().await?;
            }
            if wanted("machine") {
                let (companion, browser) = (Companion::start().await?, browser().await?);
                served(companion, &browser, picture).await?;
                browser.quit().await?;
            }
        }
    }
    Ok(())
}

/// The screens of tasks and environments.
async fn tasks(page: &Page, picture: impl AsyncFn(&Browser, &str) -> Result<()>) -> Result<()> {
    page.devtools("Page.addScriptToEvaluateOnNewDocument", json!({ "source": MODEL })).await?;
    page.open("#/tasks").await?;
    page.run_async_js(TASKS, vec![json!(OLD), json!(NEW)]).await?;
    for (name, panel, first, shown) in PANELS {
        page.run_js("location.hash = arguments[0]", vec![json!(panel)]).await?;
        if let Some(first) = first {
            page.wait_for(first).await?.click().await?;
        }
        page.wait_for(shown).await?;
        picture(page, name).await?;
    }
    Ok(())
}

/// The screens of a conversation.
async fn live(page: &Page, picture: impl AsyncFn(&Browser, &str) -> Result<()>) -> Result<()> {
    page.open("#/live").await?;
    page.wait_for("#live-text").await?;
    picture(page, "live-empty").await?;
    for text in ["hash hello", "diff \"a\\nb\\nc\\n\" \"a\\nB\\nc\\n\"", "make me a sandwich"] {
        page.run_js(SAY, vec![json!(text)]).await?;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    page.wait_for(".live__call .diff").await?;
    picture(page, "live").await
}

/// The screens of a page that a companion serves.
async fn served(
    mut companion: Companion,
    browser: &Browser,
    picture: impl AsyncFn(&Browser, &str) -> Result<()>,
) -> Result<()> {
    browser.goto(&companion.link()).await?;
    browser.wait_for(".machine .tool__open").await?;
    for text in ["abc", "", "abc"] {
        companion.hash(text).await?;
    }
    let go = async |address: &str, shown: &str| {
        browser.run_js("location.hash = arguments[0]", vec![json!(address)]).await?;
        browser.wait_for(shown).await.map(drop)
    };
    picture(browser, "machine-tools").await?;
    go("#/extensions/hash/on/machine", ".places").await?;
    picture(browser, "machine-tool").await?;
    go("#/environments", "#env-machine").await?;
    picture(browser, "machine").await?;
    go("#/tasks/machine", "#agent option[value='slow']").await?;
    for (agent, task) in [("hash", "Release 7"), ("nobody", "x"), (Companion::AGENT, "Look after the notes")]
    {
        let body = json!({ "agent": agent, "task": task, "callId": format!("picture-{agent}") });
        companion.post("/v1/tasks", &body).await?;
    }
    browser.wait_for(".task__note").await?;
    picture(browser, "machine-tasks").await?;
    companion.kill().await?;
    browser.wait_for("[data-lost]").await?;
    picture(browser, "machine-lost").await
}

/// What is installed on a companion when its pictures are taken: its facts, and the fields of its forms.
const NOTE: &str = "Tools import nothing. Every entry pins the SHA-256 of its module. A call has five seconds and 64 MiB. \
                    Nothing that you give to a tool leaves the tab.";

/// The screens of extensions and facts.
async fn installed(
    companion: &Companion,
    browser: &Browser,
    picture: impl AsyncFn(&Browser, &str) -> Result<()>,
) -> Result<()> {
    for (entity, text) in
        [("notes::release-7", "A draft."), ("notes::release-7", NOTE), ("tags::2026", "[\"shelf\"]")]
    {
        let fact = json!({ "entity": entity, "key": "text", "value": text, "confidence": 0.9 });
        companion.send("PUT", "/v1/facts", &fact).await?;
    }
    browser.goto(&companion.link()).await?;
    let go = async |address: &str, shown: &str| {
        browser.run_js("location.hash = arguments[0]", vec![json!(address)]).await?;
        browser.wait_for(shown).await.map(drop)
    };
    browser.wait_for(".installed__foot").await?;
    go("#/installed", "#link-h").await?;
    picture(browser, "installing").await?;
    for name in ["every-import", "note-summary"] {
        let folder = e2e::workspace().join("tools/guests").join(name);
        let files = [folder.join("manifest.json"), folder.join(name).with_extension("wasm")];
        let files = files.map(|file| file.display().to_string()).join("\n");
        go("#/installed", "#link-h").await?;
        browser.session().find(By::Css("#install-files")).await?.send_keys(files).await?;
        browser.wait_for("#install .btn--primary:enabled").await?;
        if name == "note-summary" {
            picture(browser, "install-question").await?;
        }
        browser.wait_for("#install .btn--primary").await?.click().await?;
        browser.wait_for("article[data-extension] .give[open]").await?;
        if name == "note-summary" {
            picture(browser, "extension-new").await?;
        }
        let grant = json!({ "passport_fpr": "p_ann", "allowed_prefixes_read": ["notes::"],
            "allowed_prefixes_write": ["notes::"], "rate_limit_per_min": 30 });
        companion.post(&format!("/v1/extensions/ext.example.{name}/grants"), &grant).await?;
        go("#/facts", "#find").await?;
    }
    let args = json!({ "entity": "notes::release-7", "key": "k", "value": "v", "prefix": "notes::", "secret": "none" });
    let call = json!({ "args": args, "passport_fpr": "p_ann" });
    let every = "ext.example.every-import";
    companion.post(&format!("/v1/extensions/{every}/tools/{every}.run/invoke"), &call).await?;
    picture(browser, "facts").await?;
    // Loaded anew, so that the grants that others have given are seen.
    browser.goto("about:blank").await?;
    browser.goto(&companion.url(&format!("#/installed/{every}"))).await?;
    browser.wait_for(".receipt").await?;
    picture(browser, "extension-receipts").await?;
    go("#/installed/ext.example.note-summary", ".grant").await?;
    let fill = "const label = [...document.querySelectorAll('.inst .run label')]
            .find((label) => label.firstChild.textContent === 'entity');
        const field = document.getElementById(label.htmlFor);
        field.value = 'notes::release-7';
        field.dispatchEvent(new Event('input', { bubbles: true }))";
    browser.run_js(fill, vec![]).await?;
    browser.wait_for(".inst .run button[type=submit]").await?.click().await?;
    browser.wait_for(".inst .tree").await?;
    picture(browser, "extension").await?;
    go("#/facts/of/notes%3A%3Arelease-7", ".kept__fact").await?;
    picture(browser, "facts-of-one").await?;
    go("#/facts/of/notes%3A%3Arelease-7/text", ".versions").await?;
    picture(browser, "fact").await
}

async fn show(page: &Page, screen: &Screen) -> Result<()> {
    page.open(screen.page).await?;
    page.wait_for(".tool__open").await?;
    for (index, text) in screen.texts.iter().enumerate() {
        let fill = "const field = document.querySelectorAll('.run textarea')[arguments[0]];
            field.value = arguments[1];
            field.dispatchEvent(new Event('input', { bubbles: true }))";
        page.wait_for(".run textarea").await?;
        page.run_js(fill, vec![json!(index), json!(text)]).await?;
    }
    // Several times, so that the history has something to show.
    for _ in 0..if screen.texts.is_empty() { 0 } else { 5 } {
        page.wait_for(".run button[type=submit]").await?.click().await?;
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    page.wait_for(screen.shown).await.map(drop)
}
