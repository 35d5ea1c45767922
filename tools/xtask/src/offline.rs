//! Fills in the service worker of a staged page: which files make up this version, and what each must hash to.
//!
//! `www/sw.js` is the whole program but for two values.
//! The version is a digest over the list and the program, so a page that differs in anything is another version.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use toolshelf_core::Digest;

use crate::{sh, size};

/// The service worker, beside the page: it can only look after what is in its own folder.
pub(crate) const WORKER: &str = "sw.js";
pub(crate) const MANIFEST: &str = "manifest.webmanifest";
/// Pictures for the home screen. The page itself shows none of them.
pub(crate) const ICONS: &str = "icons/";

/// What `www/sw.js` leaves to be filled in.
const VERSION: &str = "const VERSION = \"\";";
const FILES: &str = "const FILES = {};";

/// What is served while developing: a page that was kept would hide what was just changed.
const IDLE: &str = "// Keeps nothing.\n";

/// Writes the service worker of the page in `folder`.
pub(crate) fn write_worker(folder: &Path, is_served_for_development: bool) -> Result<()> {
    let worker =
        if is_served_for_development { IDLE.to_owned() } else { filled(&template()?, &list(folder)?)? };
    std::fs::write(folder.join(WORKER), worker).context("cannot write the staged service worker")
}

fn template() -> Result<String> {
    let path = sh::root().join("www").join(WORKER);
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// The digest of each file of the page, by its address below the page's.
fn list(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut list = BTreeMap::new();
    for path in size::files_in(folder)? {
        let bytes = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let parts = path.strip_prefix(folder).unwrap_or(&path).iter();
        let name = parts.map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/");
        if let Some(address) = address(&name)? {
            list.insert(address.to_owned(), Digest::of(&bytes).to_string());
        }
    }
    Ok(list)
}

/// Where a file of the folder is asked for; `None` for the worker, which the browser keeps by itself.
fn address(name: &str) -> Result<Option<&str>> {
    match name {
        WORKER => return Ok(None),
        "index.html" => return Ok(Some("")),
        _ => {}
    }
    // In a tab that still shows an older version, a name must not lead to a newer file of the page.
    let is_for_installing = name == MANIFEST || name.starts_with(ICONS);
    ensure!(
        is_for_installing || carries_hash(name),
        "{name} must carry a hash in its name to be kept offline"
    );
    Ok(Some(name))
}

/// Trunk writes hashes as up to 16 digits, without zeros in front.
fn carries_hash(name: &str) -> bool {
    let words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    words.into_iter().any(|word| word.len() >= 12 && word.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// The service worker of a version, without the comments, which nobody reads there.
fn filled(template: &str, list: &BTreeMap<String, String>) -> Result<String> {
    for value in [VERSION, FILES] {
        ensure!(template.matches(value).count() == 1, "www/{WORKER} must hold `{value}` exactly once");
    }
    let files = serde_json::to_string(list)?;
    let version = Digest::of(format!("{template}{files}").as_bytes()).prefix();
    let lines =
        template.lines().filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with("//"));
    let program = lines.collect::<Vec<_>>().join("\n") + "\n";
    Ok(program
        .replace(VERSION, &format!("const VERSION = \"{version}\";"))
        .replace(FILES, &format!("const FILES = {files};")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str = "// Words.\nconst VERSION = \"\";\nconst FILES = {};\n\n  // More.\nrun();\n";

    fn of(files: &[(&str, &str)]) -> String {
        let list = files.iter().map(|(name, digest)| ((*name).to_owned(), (*digest).to_owned())).collect();
        filled(TEMPLATE, &list).unwrap()
    }

    fn version(worker: &str) -> &str {
        worker.split('"').nth(1).unwrap()
    }

    #[test]
    fn the_worker_holds_the_list_and_a_version_that_stands_for_it() {
        let worker = of(&[("", "aa"), ("a-1.css", "bb")]);
        let version = version(&worker);
        assert_eq!(version.len(), 16);
        let files = r#"{"":"aa","a-1.css":"bb"}"#;
        assert_eq!(worker, format!("const VERSION = \"{version}\";\nconst FILES = {files};\nrun();\n"));
    }

    #[test]
    fn whatever_differs_is_another_version_and_the_same_is_the_same() {
        let first = of(&[("", "aa")]);
        assert_eq!(first, of(&[("", "aa")]));
        for other in [of(&[("", "ab")]), of(&[("", "aa"), ("b", "bb")])] {
            assert_ne!(version(&first), version(&other));
        }
        let program = filled(&TEMPLATE.replace("run", "walk"), &BTreeMap::new()).unwrap();
        assert_ne!(version(&program), version(&of(&[])));
    }

    #[test]
    fn what_the_page_is_made_of_is_listed_and_must_carry_a_hash() {
        for (name, wanted) in [
            ("index.html", Some("")),
            (MANIFEST, Some(MANIFEST)),
            ("app-7f09661a6a6f61ef_bg.wasm", Some("app-7f09661a6a6f61ef_bg.wasm")),
            ("theme-598d14ab1d90191.js", Some("theme-598d14ab1d90191.js")),
            ("sw.js", None),
            ("icons/icon-192.png", Some("icons/icon-192.png")),
        ] {
            assert_eq!(address(name).unwrap(), wanted, "{name}");
        }
        for name in ["app.css", "beef-cafe.js"] {
            assert!(address(name).unwrap_err().to_string().starts_with(name), "{name}");
        }
    }

    #[test]
    fn the_worker_of_this_workspace_can_be_filled_in() {
        let worker = filled(&template().unwrap(), &BTreeMap::new()).unwrap();
        assert!(!worker.contains("//"), "{worker}");
        assert!(filled("", &BTreeMap::new()).is_err());
    }

    #[test]
    fn the_manifest_names_icons_that_are_there_and_colours_that_the_page_has() {
        let www = sh::root().join("www");
        let manifest = std::fs::read_to_string(www.join(MANIFEST)).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        for icon in manifest["icons"].as_array().unwrap() {
            let path = icon["src"].as_str().unwrap();
            assert!(path.starts_with(ICONS) && www.join(path).is_file(), "{path}");
        }
        let tokens = std::fs::read_to_string(www.join("tokens.css")).unwrap();
        for key in ["theme_color", "background_color"] {
            assert!(
                tokens.contains(&format!("--bg: light-dark({},", manifest[key].as_str().unwrap())),
                "{key}"
            );
        }
    }
}
