//! `toolshelf ext new`: the project of an extension, ready to be built.
//!
//! The project needs nothing but the registry of crates: the library that extensions are written with comes along as a folder of its
//! own, for it is on no registry.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;
use toolshelf_core::refusal::{Code, Refusal};

use super::outcome::Outcome;
use crate::files::unavailable;

/// Longest id of an extension, in bytes; the companion installs none with a longer one.
const ID_MAX_BYTES: usize = 128;

macro_rules! template {
    ($path:literal) => {
        ($path, include_str!(concat!("../../templates/extension/", $path)))
    };
}

macro_rules! guest {
    ($path:literal) => {
        (concat!("toolshelf-guest/src/", $path), include_str!(concat!("../../../guest/src/", $path)))
    };
}

/// The project's files, with `{{…}}` where the name goes.
const FILES: [(&str, &str); 24] = [
    template!("README.md"),
    template!("Cargo.toml"),
    ("Cargo.lock", include_str!("../../../../tools/guests/note-summary/Cargo.lock")),
    template!("manifest.json"),
    template!("src/lib.rs"),
    template!(".cargo/config.toml"),
    template!(".gitignore"),
    template!("toolshelf-guest/Cargo.toml"),
    guest!("buffers.rs"),
    guest!("extension/call.rs"),
    guest!("extension/facts.rs"),
    guest!("extension/failure.rs"),
    guest!("extension/host.rs"),
    guest!("extension/imports.rs"),
    guest!("extension/log.rs"),
    guest!("extension/mod.rs"),
    guest!("extension/placed.rs"),
    guest!("extension/rc.rs"),
    guest!("extension/reply.rs"),
    guest!("layout.rs"),
    guest!("lib.rs"),
    guest!("linker.rs"),
    guest!("refusal.rs"),
    guest!("script.rs"),
];
/// The package whose lock file has what a new project needs: the same versions that are tested here.
const LOCKED_PACKAGE: &str = "note-summary";

/// Writes the project of the extension `name` into a new folder: `dir`, or one of that name.
///
/// # Errors
/// [`Code::InvalidArgument`] for a name that is no id and for a folder in which there is something already;
/// [`Code::FileUnavailable`].
pub(crate) fn run(name: &str, dir: Option<PathBuf>) -> Result<Outcome, Refusal> {
    check_name(name)?;
    let dir = dir.unwrap_or_else(|| PathBuf::from(name));
    check_folder(&dir)?;
    let files = files(name);
    for (path, contents) in &files {
        let file = dir.join(path);
        write_new(&file, contents).map_err(|err| match err.kind() {
            ErrorKind::AlreadyExists => taken(&file),
            _ => unavailable(&file, &err),
        })?;
    }
    let paths: Vec<_> = files.iter().map(|(path, _)| path).collect();
    let text = format!(
        "{} is written, {} files\nBuild it there: cargo build --target wasm32-unknown-unknown --release\n",
        super::show::printable(&dir.to_string_lossy()),
        files.len()
    );
    Ok(Outcome::done(json!({ "ok": true, "id": name, "dir": dir, "files": paths }), text))
}

/// The project's files: paths within it, and what is in them.
pub(crate) fn files(name: &str) -> Vec<(&'static str, String)> {
    let package = package(name);
    let filled = |path: &str, template: &str| match path {
        "Cargo.lock" => template.replace(&format!("\"{LOCKED_PACKAGE}\""), &format!("\"{package}\"")),
        // The library is taken as it is.
        _ if path.starts_with("toolshelf-guest/src/") => template.to_owned(),
        _ => template
            .replace("{{id}}", name)
            .replace("{{package}}", &package)
            .replace("{{version}}", env!("CARGO_PKG_VERSION")),
    };
    FILES.iter().map(|(path, template)| (*path, filled(path, template))).collect()
}

/// The name of the package. Not every id is one: Cargo takes no dots, no digit in front, and no name that a dependency
/// has.
fn package(name: &str) -> String {
    format!("ext-{}", name.replace('.', "-"))
}

/// A manifest's id is made of letters, digits, `.`, `_` and `-`. What is installed has no capitals, and a folder of its
/// name, so that it cannot begin with a dot.
fn check_name(name: &str) -> Result<(), Refusal> {
    let wrong = |why: &str| {
        let name: String = name.chars().take(ID_MAX_BYTES).collect();
        Err(Refusal::new(Code::InvalidArgument, format!("'{name}' is no name for an extension: {why}")))
    };
    let is_id = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    match name.as_bytes() {
        [] => wrong("it is empty"),
        bytes if bytes.len() > ID_MAX_BYTES => {
            wrong(&format!("it has {} bytes, {ID_MAX_BYTES} are allowed", bytes.len()))
        }
        bytes if !bytes.iter().copied().all(is_id) => {
            wrong("only letters, digits, '.', '_' and '-' are allowed")
        }
        [first, ..] if !first.is_ascii_alphanumeric() => wrong("it has to begin with a letter or a digit"),
        bytes if bytes.iter().any(u8::is_ascii_uppercase) => wrong("capitals are not installed"),
        _ => Ok(()),
    }
}

/// Something that is there already is left alone: the folder has to be new, or empty.
fn check_folder(dir: &Path) -> Result<(), Refusal> {
    match fs::read_dir(dir) {
        Ok(mut entries) => entries.next().map_or(Ok(()), |_| Err(taken(dir))),
        Err(err) if err.kind() == ErrorKind::NotFound => Ok(()),
        Err(err) if err.kind() == ErrorKind::NotADirectory => Err(taken(dir)),
        Err(err) => Err(unavailable(dir, &err)),
    }
}

fn taken(path: &Path) -> Refusal {
    Refusal::new(
        Code::InvalidArgument,
        format!("{} is there already, and is not overwritten", path.display()),
    )
}

/// Writes a file that must not be there yet, and the folders above it.
fn write_new(path: &Path, contents: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::File::create_new(path)?.write_all(contents.as_bytes())
}

#[cfg(test)]
#[path = "ext_new_tests.rs"]
mod tests;
