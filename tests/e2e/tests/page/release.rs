//! Releases of the page in a folder, one after the other, as somebody would put them on a static host.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, json};
use toolshelf_core::Digest;

/// The name under which the second release has the style sheet that it changes.
pub(crate) const NEW_SHEET: &str = "style-0123456789abcdef.css";

/// A copy of the built page that a test may change; deleted with the test.
pub(crate) struct Release(PathBuf);

impl Release {
    /// The page as it was built.
    pub(crate) fn first(name: &str) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("toolshelf-release-{}-{name}", std::process::id()));
        copy(&e2e::dist(), &path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The same page once more in a folder below, described in other words.
    pub(crate) fn nest(&self, folder: &str) -> Result<()> {
        let nested = self.0.join(folder);
        copy(&e2e::dist(), &nested)?;
        edit(&nested.join("index.html"), "content=\"Runs ", "content=\"Nested: Runs ")?;
        seal(&nested)
    }

    /// Makes the app throw as it starts, or, where the page checks what it loads, makes it fail to load.
    pub(crate) fn break_app(&self, is_checked: bool) -> Result<()> {
        let page = self.0.join("index.html");
        if !is_checked {
            fs::write(&page, fs::read_to_string(&page)?.replace(" integrity=", " data-unchecked="))?;
        }
        fs::write(self.0.join(name_of_glue(&self.0)?), "throw new Error('broken');")?;
        seal(&self.0)
    }

    /// Puts the second release in place of the first: other words in the html, and another style sheet.
    pub(crate) fn second(&self) -> Result<()> {
        let old = self.old_sheet()?;
        let sheet = fs::read_to_string(self.0.join(&old))? + "\n:root { --release: second }\n";
        fs::write(self.0.join(NEW_SHEET), sheet)?;
        let page = self.0.join("index.html");
        edit(&page, "content=\"Runs ", "content=\"Second: Runs ")?;
        let html = fs::read_to_string(&page)?;
        let (before, link) = html.split_once(&format!("./{old}\"")).context("the sheet is linked")?;
        let (_, after) = link.split_once('>').context("the link is closed")?;
        fs::write(&page, format!("{before}./{NEW_SHEET}\">{after}"))?;
        fs::remove_file(self.0.join(old))?;
        let glue = name_of_glue(&self.0)?;
        fs::copy(e2e::dist().join(&glue), self.0.join(glue))?;
        seal(&self.0)
    }

    /// The name of the style sheet that the second release changes, in the first one.
    pub(crate) fn old_sheet(&self) -> Result<String> {
        name_of(&self.0, |name| name.starts_with("style-") && name != NEW_SHEET)
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn name_of_glue(folder: &Path) -> Result<String> {
    Ok(name_of(folder, |name| name.starts_with("app-"))? + "/app.js")
}

fn name_of(folder: &Path, is_meant: impl Fn(&str) -> bool) -> Result<String> {
    let names = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let names = names.collect::<Result<Vec<_>>>()?;
    names.into_iter().find(|name| is_meant(name)).context("there is no such file")
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn edit(path: &Path, from: &str, to: &str) -> Result<()> {
    let text = fs::read_to_string(path)?;
    ensure!(text.matches(from).count() == 1, "{} holds {from:?} not exactly once", path.display());
    Ok(fs::write(path, text.replace(from, to))?)
}

/// Tells the service worker what the folder holds, as `cargo xtask build` does.
fn seal(folder: &Path) -> Result<()> {
    let mut files = Map::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(inside) = pending.pop() {
        for entry in fs::read_dir(inside)? {
            let path = entry?.path();
            let name = path.strip_prefix(folder)?.to_string_lossy().into_owned();
            if path.is_dir() {
                // A page in a folder below has a list of its own.
                if !path.join("index.html").is_file() {
                    pending.push(path);
                }
            } else if name != "sw.js" {
                let address = if name == "index.html" { String::new() } else { name };
                files.insert(address, json!(Digest::of(&fs::read(&path)?).to_string()));
            }
        }
    }
    let files = json!(files).to_string();
    let version = Digest::of(files.as_bytes()).prefix();
    let worker = fs::read_to_string(folder.join("sw.js"))?;
    let lines = worker.lines().map(|line| match line {
        line if line.starts_with("const VERSION = ") => format!("const VERSION = \"{version}\";"),
        line if line.starts_with("const FILES = ") => format!("const FILES = {files};"),
        line => line.to_owned(),
    });
    Ok(fs::write(folder.join("sw.js"), lines.collect::<Vec<_>>().join("\n"))?)
}
