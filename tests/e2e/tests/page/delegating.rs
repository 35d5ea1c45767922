//! What a person does with tasks, in the words of the tests: delegate, look at the list, go to another panel.

use anyhow::{Context as _, Result, bail};
use e2e::{Browser, Page};
use serde_json::{Value, json};
use thirtyfour::By;
use thirtyfour::extensions::query::ElementQueryable as _;

use super::person::{Folder, add_shelf};

/// A page that has another panel than the first one open.
pub(crate) async fn open_at(address: &str) -> Result<Page> {
    let page = Page::start().await?;
    show(&page, address).await?;
    Ok(page)
}

/// The same in a browser that has a model of its own to ask, or what stands in for one.
pub(crate) async fn open_with_model(address: &str) -> Result<Page> {
    let page = Page::start().await?;
    with_model(&page).await?;
    show(&page, address).await?;
    Ok(page)
}

/// Opens an address of the page anew, as a reload would, and waits until the tasks and folders were read.
pub(crate) async fn show(page: &Page, address: &str) -> Result<()> {
    // Otherwise only the part behind `#` would change, and nothing be loaded.
    page.goto("about:blank").await?;
    page.open(address).await?;
    settled(page).await
}

/// Waits until the panel has read what it shows.
pub(crate) async fn settled(page: &Browser) -> Result<()> {
    let read = "
        const panel = document.querySelector('#main:has(#panel-h)');
        return !!panel && !/Opening|Reading the/.test(panel.innerText)
            && (!panel.querySelector('form.run') || !!panel.querySelector('#task-folder option'))
            && (!panel.querySelector('.folders') || !!panel.querySelector('.folder'))";
    page.wait_until("the panel to be read", read, Vec::new()).await
}

/// Goes to another panel by its link.
pub(crate) async fn go_to(page: &Browser, panel: &str) -> Result<()> {
    page.wait_for(&format!(".nav a[href='#/{panel}']")).await?.click().await?;
    let there = "return location.hash === '#/' + arguments[0]
        && document.title.toLowerCase().startsWith(arguments[0])";
    page.wait_until("the panel to be shown", there, vec![json!(panel)]).await?;
    settled(page).await
}

/// Chooses who gets the task.
pub(crate) async fn choose_agent(page: &Browser, agent: &str) -> Result<()> {
    page.wait_for(&format!("#agent option[value='{agent}']:not(:disabled)")).await?.click().await?;
    Ok(())
}

/// Chooses among the options of a field by the words that they begin with.
pub(crate) async fn choose_option(page: &Browser, field: &str, words: &str) -> Result<()> {
    for option in page.session().find_all(By::Css(format!("{field} option"))).await? {
        if option.text().await?.starts_with(words) {
            return option.click().await.map_err(Into::into);
        }
    }
    bail!("`{field}` does not offer {words:?}")
}

/// Types the text of an argument, in the place of what was there.
pub(crate) async fn give_text(page: &Browser, argument: &str, text: &str) -> Result<()> {
    let field = page.wait_for(&format!("#given-{argument}")).await?;
    field.clear().await?;
    field.send_keys(text).await.map_err(Into::into)
}

/// Gives a file of the folder for an argument.
pub(crate) async fn give_file(page: &Browser, argument: &str, path: &str) -> Result<()> {
    let way = format!(".seg__item:last-child > input[name='given-{argument}-kind']");
    page.session().find(By::Css(way)).await?.click().await?;
    page.wait_for(&format!("input#given-{argument}")).await?;
    give_text(page, argument, path).await
}

/// Presses Delegate.
pub(crate) async fn press_delegate(page: &Browser) -> Result<()> {
    page.wait_for("form.run button[type=submit]:enabled").await?.click().await.map_err(Into::into)
}

/// Delegates a text.
pub(crate) async fn delegate(page: &Browser, agent: &str, text: &str) -> Result<()> {
    choose_agent(page, agent).await?;
    let argument = if agent == MODEL { "task" } else { "input" };
    give_text(page, argument, text).await?;
    press_delegate(page).await?;
    page.wait_for(&row(text)).await.map(drop)
}

/// The selector of a task in the list.
pub(crate) fn row(title: &str) -> String {
    format!("li.task:has(> .task__open[title='{title}'])")
}

/// Waits until the list says something of a task.
pub(crate) async fn wait_for_row(page: &Browser, title: &str, words: &str) -> Result<()> {
    page.wait_for_text(&row(title), words).await
}

/// Waits until nothing matches any more.
pub(crate) async fn wait_for_none(page: &Browser, selector: &str) -> Result<()> {
    let what = format!("`{selector}` to go");
    page.wait_until(&what, "return !document.querySelector(arguments[0])", vec![json!(selector)]).await
}

/// Opens a task of the list.
pub(crate) async fn open_task(page: &Browser, title: &str) -> Result<()> {
    page.wait_for(&format!(".task__open[title='{title}']")).await?.click().await?;
    page.wait_for_text("#detail-h", title).await
}

/// Presses Cancel beside a task of the list.
pub(crate) async fn cancel(page: &Browser, title: &str) -> Result<()> {
    page.wait_for(&format!("{} > .task__stop", row(title))).await?.click().await.map_err(Into::into)
}

/// Presses the button of that name.
pub(crate) async fn press_button(page: &Browser, name: &str) -> Result<()> {
    let named = format!("//button[contains(normalize-space(.), '{name}')]");
    page.session().query(By::XPath(named)).and_displayed().first().await?.click().await?;
    Ok(())
}

/// Picks files for the folder that is looked at.
pub(crate) async fn import_files(page: &Browser, folder: &Folder, names: &[&str]) -> Result<()> {
    let paths: Vec<_> = names.iter().map(|name| folder.file(name).display().to_string()).collect();
    page.session().find(By::Css(".files__bar input[type=file]")).await?.send_keys(paths.join("\n")).await?;
    Ok(())
}

/// Waits until the chosen folder holds just these.
pub(crate) async fn wait_for_files(page: &Browser, names: &[&str]) -> Result<()> {
    let same = "return [...document.querySelectorAll('.entry__name')]
        .map((name) => name.textContent).join('\\n') === arguments[0].join('\\n')";
    page.wait_until(&format!("the files {names:?}"), same, vec![json!(names)]).await
}

/// Lets downloads land in a folder.
pub(crate) async fn download_to(page: &Browser, folder: &Folder) -> Result<()> {
    let wish = json!({ "behavior": "allow", "downloadPath": folder.path() });
    page.devtools("Browser.setDownloadBehavior", wish).await.map(drop)
}

/// The file that was downloaded, once it is whole.
pub(crate) async fn downloaded(folder: &Folder, end: &str) -> Result<std::path::PathBuf> {
    for _ in 0..600 {
        for entry in std::fs::read_dir(folder.path())? {
            let path = entry?.path();
            // What is still being written has another ending.
            if path.to_string_lossy().ends_with(end) {
                return Ok(path);
            }
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    bail!("nothing was downloaded that ends in {end}")
}

/// The agent of the browser's own model.
pub(crate) const MODEL: &str = "browser-model";

/// Puts an object in the place of the browser's model, in each page that is opened from now on: it is what a task can
/// work at for as long as a test wants. It counts how often it is asked, where all tabs of the browser count.
pub(crate) async fn with_model(page: &Browser) -> Result<()> {
    let model = "
        const value = class {
            static async availability() { return 'available'; }
            static async create() { return new this(); }
            async prompt(text, { signal }) {
                localStorage.setItem('asked', Number(localStorage.getItem('asked')) + 1);
                if (!text.startsWith('wait')) return 'an answer to ' + text;
                return new Promise((_, fail) => signal.addEventListener('abort', () => fail(signal.reason)));
            }
            destroy() {}
        };
        Object.defineProperty(globalThis, 'LanguageModel', { value, configurable: true })";
    before_each_page(page, model).await
}

/// Runs a script in each page that is opened from now on, before the page's own.
pub(crate) async fn before_each_page(page: &Browser, script: &str) -> Result<()> {
    // A blank page, such as a new tab's, has no storage; the script is not for that one.
    let script = format!("if (location.protocol !== 'about:') {{ {script} }}");
    page.devtools("Page.addScriptToEvaluateOnNewDocument", json!({ "source": script })).await.map(drop)
}

/// How often the model was asked.
pub(crate) async fn asked(page: &Browser) -> Result<u64> {
    let asked = page.run_js("return Number(localStorage.getItem('asked'))", Vec::new()).await?;
    asked.as_u64().context("a count is a number")
}

/// Adds a shelf whose one tool, `case`, never ends by itself.
pub(crate) async fn add_spinning_tool(page: &Page) -> Result<()> {
    let spin = toolshelf_conformance::modules().into_iter().find(|case| case.name == "loops-forever");
    let spin = spin.context("the contract lost a case")?.folder();
    let files: Vec<_> = spin.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])).collect();
    let folder = Folder::new("spinning", &files)?;
    page.open("").await?;
    page.wait_for(".tool__open").await?;
    add_shelf(page, folder.path()).await?;
    page.wait_for(".tool__open[href$='/case']").await.map(drop)
}

/// Which states the history of the task that is looked at names, in order.
pub(crate) async fn history(page: &Browser) -> Result<Value> {
    page.run_js("return [...document.querySelectorAll('.line > li')].map((li) => li.dataset.task)", vec![])
        .await
}
