//! What a person does, in the words of the tests: open a tool, give it text or files, run it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result};
use e2e::{Browser, Page};
use serde_json::{Value, json};
use thirtyfour::By;

/// The page, opened and with its shelves read.
pub(crate) async fn open() -> Result<Page> {
    let page = Page::start().await?;
    page.open("").await?;
    page.wait_for(".tool__open").await?;
    Ok(page)
}

/// Opens the page of a tool.
pub(crate) async fn choose(page: &Browser, tool: &str) -> Result<()> {
    let selector = format!(".tool__open[href$='/{tool}']");
    page.wait_for(&selector).await?.click().await?;
    page.wait_for_text("#detail-h", tool).await
}

/// Types into the input field at `index`.
pub(crate) async fn type_text(page: &Browser, index: usize, text: &str) -> Result<()> {
    let fields = page.session().find_all(By::Css(".run .input__text")).await?;
    fields.get(index).context("there is no such field")?.send_keys(text).await.map_err(Into::into)
}

/// Picks a file for the input field at `index`, through the file chooser's own element.
pub(crate) async fn pick_file(page: &Browser, index: usize, path: &Path) -> Result<()> {
    let inputs = page.session().find_all(By::Css(".run input[type=file]")).await?;
    let input = inputs.get(index).context("there is no such field")?;
    input.send_keys(path.display().to_string()).await?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    page.wait_for_text(".run", &name).await
}

/// Presses Run.
pub(crate) async fn run(page: &Browser) -> Result<()> {
    page.wait_for(".run button[type=submit]").await?.click().await.map_err(Into::into)
}

/// The text of the first element that matches.
pub(crate) async fn text(page: &Browser, selector: &str) -> Result<String> {
    let text = page
        .run_js("return document.querySelector(arguments[0])?.textContent ?? null", vec![json!(selector)])
        .await?;
    text.as_str().map(str::to_owned).with_context(|| format!("there is no `{selector}`"))
}

/// How many elements match.
pub(crate) async fn count(page: &Browser, selector: &str) -> Result<u64> {
    let count =
        page.run_js("return document.querySelectorAll(arguments[0]).length", vec![json!(selector)]).await?;
    count.as_u64().context("a length is a number")
}

/// Picks a folder in the page's "Add a shelf".
pub(crate) async fn add_shelf(page: &Browser, folder: &Path) -> Result<()> {
    let picker = page.session().find(By::Css("input[type=file][webkitdirectory]")).await?;
    picker.send_keys(folder.display().to_string()).await?;
    page.wait_for(".verdicts").await.map(drop)
}

/// A folder that is deleted with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str, files: &[(&str, &[u8])]) -> Result<Self> {
        // Two tests may want a folder of the same name at the same time.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("toolshelf-e2e-{process}-f{count}")).join(name);
        fs::create_dir_all(&path)?;
        for (file, bytes) in files {
            fs::write(path.join(file), bytes)?;
        }
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The parent is this test's own, too.
        let _ = fs::remove_dir_all(self.0.parent().unwrap_or(&self.0));
    }
}

/// A shelf with the shipped `hash` under another id, and an entry whose digest is another module's.
pub(crate) fn sample_shelf(name: &str) -> Result<Folder> {
    let shipped = e2e::workspace().join("www/shelf");
    let hash = fs::read(shipped.join("hash.wasm"))?;
    let manifest: Value = serde_json::from_slice(&fs::read(shipped.join("manifest.json"))?)?;
    let digest = |id: &str| {
        let tools = manifest["tools"].as_array().into_iter().flatten();
        tools.filter(|tool| tool["id"] == id).map(|tool| tool["digest"].clone()).next().unwrap_or_default()
    };
    let manifest = json!({ "name": name, "version": "7", "tools": [
        { "id": "fingerprint", "wasm": "hash.wasm", "digest": digest("hash"), "description": "Mine", "abi": "buffer-abi/1" },
        { "id": "swapped", "wasm": "hash.wasm", "digest": digest("diff"), "description": "Not what it was", "abi": "buffer-abi/1" },
    ]});
    Folder::new(name, &[("manifest.json", manifest.to_string().as_bytes()), ("hash.wasm", &hash)])
}
