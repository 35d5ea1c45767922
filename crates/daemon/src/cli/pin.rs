//! `toolshelf pin`: the digests of a shelf's modules, written into its manifest.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde_json::json;
use toolshelf_core::manifest::{Entry, MANIFEST_FILE, Manifest};
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::shelf::{Admission, FileFault, Hashed, Tool};
use toolshelf_sandbox::store::{read_manifest, read_module};

use super::inspect::Report;
use super::ordered::Node;
use super::outcome::{Exit, Outcome};
use super::pin_extension;
use super::show::{Style, printable};
use crate::files;

pub(crate) fn run(dir: &Path, style: Style) -> Result<Outcome, Refusal> {
    let dir = fs::canonicalize(dir).map_err(|err| files::unavailable(dir, &err))?;
    let mut manifest = match read_manifest(&dir) {
        // A manifest is read by the same rules as on the shelf before it is written again.
        Ok(bytes) => {
            let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes);
            if let Ok(manifest) = serde_json::from_slice(bytes)
                && pin_extension::is_of_extension(&manifest)
            {
                return pin_extension::run(&dir, &manifest, bytes, style);
            }
            Manifest::read(bytes)?;
            serde_json::from_slice(bytes)
                .map_err(|err| Refusal::new(Code::ShelfUnreadable, err.to_string()))?
        }
        Err(refusal) if refusal.code == Code::ShelfUnavailable => of_modules_in(&dir)?,
        Err(refusal) => return Err(refusal),
    };
    let before = serde_json::to_vec(&manifest).unwrap_or_default();
    let modules = pin(&dir, &mut manifest)?;
    let tools = judge(&manifest, &modules)?;

    let refused = tools.iter().filter(|tool| tool.verdict.is_err()).count();
    let changed = serde_json::to_vec(&manifest).unwrap_or_default() != before;
    let write = refused == 0 && (changed || !dir.join(MANIFEST_FILE).exists());
    if write {
        let mut bytes = serde_json::to_vec_pretty(&manifest)
            .map_err(|err| Refusal::new(Code::ShelfUnreadable, err.to_string()))?;
        bytes.push(b'\n');
        files::replace(&dir.join(MANIFEST_FILE), &bytes)?;
    }
    let json = json!({ "ok": refused == 0, "dir": dir, "written": write, "tools": tools });
    Ok(Outcome { json, text: shown(&tools, refused, write, style), exit: exit(refused) })
}

fn exit(refused: usize) -> Exit {
    if refused == 0 { Exit::Done } else { Exit::Refused }
}

/// What was read, by its path in the manifest.
type Modules = HashMap<String, Result<Hashed, FileFault>>;

/// Reads the modules that the manifest names, and writes their digests into its entries.
fn pin(dir: &Path, manifest: &mut Node) -> Result<Modules, Refusal> {
    let entries = entries_of(manifest)?;
    let mut modules = Modules::new();
    for (node, entry) in manifest.entries().into_iter().zip(&entries) {
        let Ok((_, path)) = entry.locate() else { continue };
        let module = modules.entry(path.clone()).or_insert_with(|| read_module(dir, &path).map(Hashed::new));
        if let Ok(module) = module {
            node.set("digest", Node::text(module.digest.to_string()));
        }
    }
    Ok(modules)
}

/// The verdicts that the shelf would give: one that cannot be given is no reason to write.
fn judge(manifest: &Node, modules: &Modules) -> Result<Vec<Tool>, Refusal> {
    let bytes = serde_json::to_vec(manifest).unwrap_or_default();
    let manifest = Manifest::read(&bytes)?;
    let taken = HashMap::new();
    let admission = Admission::new(&manifest, &taken);
    let judge = |entry: &'_ Entry| {
        let module = entry.locate().ok().and_then(|(_, path)| Some((modules.get(&path)?, path)));
        match module {
            // A module that cannot be read has no digest, but that is not what is wrong with its entry.
            Some((Err(fault), path)) => admission.judge(entry, Err(fault.refusal(&path)), Err(fault.clone())),
            Some((Ok(module), _)) => admission.judge(entry, admission.locate(entry), Ok(module.clone())),
            None => admission.judge(entry, admission.locate(entry), Err(FileFault::Missing)),
        }
    };
    Ok(admission.entries().iter().map(judge).collect())
}

fn entries_of(manifest: &Node) -> Result<Vec<Entry>, Refusal> {
    let bytes = serde_json::to_vec(manifest).unwrap_or_default();
    Ok(Manifest::read(&bytes)?.entries)
}

/// A manifest of the modules that lie in the folder, each under its file's name and the ABI that it fits.
fn of_modules_in(dir: &Path) -> Result<Node, Refusal> {
    let unavailable = |err| files::unavailable(dir, &err);
    let mut names: Vec<String> = fs::read_dir(dir)
        .map_err(unavailable)?
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".wasm"))
        .collect();
    names.sort();
    if names.is_empty() {
        let why = format!("there is neither a {MANIFEST_FILE} nor a .wasm file in {}", dir.display());
        return Err(Refusal::new(Code::ShelfUnavailable, why));
    }
    let entry = |name: &String| {
        let id = name.trim_end_matches(".wasm").to_owned();
        let mut entry = Node::Object(vec![
            ("id".to_owned(), Node::text(id)),
            ("wasm".to_owned(), Node::text(name)),
            ("digest".to_owned(), Node::text("")),
            ("description".to_owned(), Node::text("")),
        ]);
        let fits = read_module(dir, name).map(|module| Report::of(&module).fits).unwrap_or_default();
        if let Some(abi) = fits.first() {
            entry.set("abi", Node::text(abi.layout().name));
        }
        entry
    };
    let shelf = dir.file_name().map_or("my-shelf".into(), |name| name.to_string_lossy().into_owned());
    Ok(Node::Object(vec![
        ("name".to_owned(), Node::text(shelf)),
        ("version".to_owned(), Node::text("1")),
        ("tools".to_owned(), Node::Array(names.iter().map(entry).collect())),
    ]))
}

fn shown(tools: &[Tool], refused: usize, written: bool, style: Style) -> String {
    let mut lines: Vec<String> = tools
        .iter()
        .map(|tool| match &tool.verdict {
            Ok(admitted) => format!("{} {}", admitted.digest, printable(&tool.id)),
            Err(refusal) => format!("{}: {}", printable(&tool.id), style.refusal(refusal)),
        })
        .collect();
    lines.push(match (refused, written) {
        (0, true) => style.good(&format!("{MANIFEST_FILE} is written")),
        (0, false) => format!("{MANIFEST_FILE} pins these already"),
        _ => style.bad(&format!("{refused} of {} are refused, so nothing is written", tools.len())),
    });
    lines.join("\n") + "\n"
}
