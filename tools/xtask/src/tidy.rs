//! The rules of the workspace that the compiler does not check. They run as a test as well.
//!
//! Crates point downwards only, adapters never see each other, every crate says what it is for, files stay short, the
//! pins agree, and every style sheet is linked.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::{pins, sh};

/// Which crates of this workspace each crate may depend on. A crate that is not listed is refused, so that whoever
/// adds one decides where it belongs.
const LAYERS: &[(&str, &[&str])] = &[
    // Rules and engine.
    ("toolshelf-core", &[]),
    ("toolshelf-host", &["toolshelf-core"]),
    // Adapters: down to the engine, never to each other.
    ("toolshelf-browser", &["toolshelf-core", "toolshelf-host"]),
    ("toolshelf-sandbox", &["toolshelf-core", "toolshelf-host"]),
    ("toolshelf-facts", &["toolshelf-core", "toolshelf-host"]),
    // Apps put adapters together.
    ("toolshelf-app", &["toolshelf-core", "toolshelf-host", "toolshelf-browser"]),
    ("toolshelf", &["toolshelf-core", "toolshelf-host", "toolshelf-sandbox", "toolshelf-facts"]),
    // What authors of tools depend on drags in nothing of the host.
    ("toolshelf-guest", &[]),
    // On the side.
    ("toolshelf-serve", &[]),
    ("xtask", &["toolshelf-core"]),
    ("toolshelf-conformance", &["toolshelf-core", "toolshelf-host"]),
    ("tools-tests", &["toolshelf-core", "toolshelf-guest", "toolshelf-conformance"]),
    ("e2e", &["toolshelf-core", "toolshelf-serve"]),
    ("toolshelf-nats", &[]),
];

/// What tests of any crate may use besides.
const TEST_CRATES: [&str; 3] = ["toolshelf-conformance", "toolshelf-nats", "toolshelf-serve"];

/// Source files longer than this are reported: they may hold more than one idea.
const LONG_FILE: usize = 400;
/// Rust files longer than this are refused.
const TOO_LONG_FILE: usize = 500;
const SOURCE_EXTENSIONS: [&str; 5] = ["rs", "js", "ts", "css", "html"];
/// A file with this in its first lines is written by a program.
const GENERATED: &str = "@generated";
const SKIPPED_FOLDERS: [&str; 5] = [".git", "target", "dist", "dist-single", "node_modules"];

/// Reports long files and fails with all problems at once.
pub(crate) fn run() -> Result<()> {
    let root = sh::root();
    for (path, lines) in long_files(root)? {
        println!("note: {} has {lines} lines, more than {LONG_FILE}", path.display());
    }
    let problems = problems(root)?;
    if !problems.is_empty() {
        bail!("the workspace is not tidy:\n  {}", problems.join("\n  "));
    }
    println!("the workspace is tidy");
    Ok(())
}

fn problems(root: &Path) -> Result<Vec<String>> {
    let packages = packages()?;
    let mut problems = Vec::new();
    for package in &packages {
        problems.extend(forbidden_edges(package));
        problems.extend(missing_docs(package)?);
        problems.extend(wrong_pin_in_manifest(package));
    }
    for (path, lines) in long_files(root)? {
        if lines > TOO_LONG_FILE && path.extension().is_some_and(|extension| extension == "rs") {
            problems.push(format!("{} has {lines} lines, the limit is {TOO_LONG_FILE}", path.display()));
        }
    }
    problems.extend(wrong_pins_in_lock_files(root)?);
    problems.extend(unlinked_style_sheets(root)?);
    Ok(problems)
}

/// The packages of the workspace as Cargo sees them.
fn packages() -> Result<Vec<Value>> {
    let metadata =
        sh::output(sh::cargo().args(["metadata", "--no-deps", "--format-version", "1", "--offline"]))?;
    let mut metadata: Value =
        serde_json::from_str(&metadata).context("`cargo metadata` did not print JSON")?;
    match metadata["packages"].take() {
        Value::Array(packages) => Ok(packages),
        _ => bail!("`cargo metadata` lists no packages"),
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

/// Dependencies inside the workspace that point upwards or sideways.
fn forbidden_edges(package: &Value) -> Vec<String> {
    let name = text(package, "name");
    let Some((_, allowed)) = LAYERS.iter().find(|(listed, _)| *listed == name) else {
        return vec![format!(
            "{name} has no place in the layers: add it to LAYERS in tools/xtask/src/tidy.rs"
        )];
    };
    list(package, "dependencies")
        .filter(|dependency| dependency["path"].is_string())
        .filter(|dependency| {
            let target = text(dependency, "name");
            let for_tests = dependency["kind"] == "dev" && TEST_CRATES.contains(&target);
            !allowed.contains(&target) && !for_tests
        })
        .map(|dependency| format!("{name} must not depend on {}", text(dependency, "name")))
        .collect()
}

/// Libraries and programs that do not say in their first line what they are for.
fn missing_docs(package: &Value) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let is_shipped = |target: &&Value| {
        list(target, "kind")
            .any(|kind| ["lib", "bin", "cdylib", "rlib"].iter().any(|shipped| kind == shipped))
    };
    for target in list(package, "targets").filter(is_shipped) {
        let path = text(target, "src_path");
        let source = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
        if !source.starts_with("//!") {
            problems.push(format!("the crate {} does not begin with its docs", text(target, "name")));
        }
    }
    Ok(problems)
}

fn wrong_pin_in_manifest(package: &Value) -> Option<String> {
    let pin = format!("={}", pins::WASM_BINDGEN);
    let wrong = list(package, "dependencies")
        .find(|dependency| text(dependency, "name") == "wasm-bindgen" && text(dependency, "req") != pin)?;
    Some(format!("{} asks for wasm-bindgen {}, not {pin}", text(package, "name"), text(wrong, "req")))
}

/// Lock files, also of folders outside the workspace, that hold another wasm-bindgen than the pinned one.
fn wrong_pins_in_lock_files(root: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for path in files(root)? {
        if path.file_name().is_some_and(|name| name == "Cargo.lock") {
            let lock = std::fs::read_to_string(root.join(&path))?;
            problems.extend(
                locked_versions(&lock, "wasm-bindgen")
                    .filter(|version| *version != pins::WASM_BINDGEN)
                    .map(|version| format!("{} holds wasm-bindgen {version}", path.display())),
            );
        }
    }
    Ok(problems)
}

fn locked_versions<'a>(lock: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let wanted = format!("name = \"{name}\"");
    lock.split("[[package]]").filter(move |package| package.lines().any(|line| line == wanted)).filter_map(
        |package| package.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"')),
    )
}

fn unlinked_style_sheets(root: &Path) -> Result<Vec<String>> {
    let page = std::fs::read_to_string(root.join("index.html")).context("cannot read index.html")?;
    let sheets = files(root)?.into_iter().filter(|path| {
        path.parent() == Some(Path::new("www"))
            && path.extension().is_some_and(|extension| extension == "css")
    });
    Ok(sheets
        .map(|path| path.display().to_string())
        .filter(|path| !page.contains(&format!("href=\"{path}\"")))
        .map(|path| format!("index.html does not link {path}"))
        .collect())
}

/// Source files with more lines than a reader likes, without those that a program wrote.
fn long_files(root: &Path) -> Result<Vec<(PathBuf, usize)>> {
    let mut long = Vec::new();
    for path in files(root)? {
        let is_source = path
            .extension()
            .and_then(|extension| extension.to_str())
            .is_some_and(|extension| SOURCE_EXTENSIONS.contains(&extension));
        if !is_source {
            continue;
        }
        let source = std::fs::read_to_string(root.join(&path))
            .with_context(|| format!("cannot read {}", path.display()))?;
        let lines = source.lines().count();
        let generated = source.lines().take(5).any(|line| line.contains(GENERATED));
        if lines > LONG_FILE && !generated {
            long.push((path, lines));
        }
    }
    Ok(long)
}

/// All files below a folder, relative to it and sorted, without what is built or fetched.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    fn collect(root: &Path, folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
        let entries =
            std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                if !SKIPPED_FOLDERS.iter().any(|skipped| entry.file_name() == *skipped) {
                    collect(root, &path, found)?;
                }
            } else {
                found.push(path.strip_prefix(root).unwrap_or(&path).to_owned());
            }
        }
        Ok(())
    }
    let mut found = Vec::new();
    collect(root, root, &mut found)?;
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_workspace_is_tidy() {
        assert_eq!(problems(sh::root()).unwrap(), [""; 0]);
    }

    #[test]
    fn the_layers_have_no_edge_upwards() {
        // Each crate only names crates that are listed before it, so that there is no cycle.
        for (index, (name, allowed)) in LAYERS.iter().enumerate() {
            for target in *allowed {
                assert!(LAYERS[..index].iter().any(|(listed, _)| listed == target), "{name} -> {target}");
            }
        }
    }

    fn package(name: &str, dependency: &str, kind: Option<&str>) -> Value {
        json!({ "name": name, "dependencies": [{ "name": dependency, "path": "/w", "kind": kind, "req": "*" }] })
    }

    #[test]
    fn a_forbidden_edge_is_named_and_tests_may_use_the_test_crates() {
        for (from, to, kind, refused) in [
            ("toolshelf-host", "toolshelf-core", None, false),
            ("toolshelf-core", "toolshelf-host", None, true),
            ("toolshelf-browser", "toolshelf-sandbox", None, true),
            ("toolshelf-host", "toolshelf-conformance", Some("dev"), false),
            ("toolshelf-host", "toolshelf-conformance", None, true),
            ("toolshelf-new", "toolshelf-core", None, true),
        ] {
            assert_eq!(
                !forbidden_edges(&package(from, to, kind)).is_empty(),
                refused,
                "{from} -> {to} {kind:?}"
            );
        }
    }

    #[test]
    fn another_wasm_bindgen_is_found_in_manifests_and_lock_files() {
        let mut manifest = package("toolshelf-browser", "wasm-bindgen", None);
        assert!(wrong_pin_in_manifest(&manifest).is_some());
        manifest["dependencies"][0]["req"] = json!(format!("={}", pins::WASM_BINDGEN));
        assert_eq!(wrong_pin_in_manifest(&manifest), None);

        let lock = "[[package]]\nname = \"wasm-bindgen\"\nversion = \"0.2.1\"\n\n[[package]]\nname = \"wasm-bindgen-macro\"\nversion = \"0.2.2\"\n";
        assert!(locked_versions(lock, "wasm-bindgen").eq(["0.2.1"]));
    }

    #[test]
    fn the_workspace_itself_pins_wasm_bindgen() {
        let manifest = std::fs::read_to_string(sh::root().join("Cargo.toml")).unwrap();
        assert!(manifest.contains(&format!("wasm-bindgen = \"={}\"", pins::WASM_BINDGEN)));
    }
}
