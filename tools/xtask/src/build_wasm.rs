//! Builds the shipped shelf: `www/shelf/`, its modules and the manifest that pins them.
//!
//! The modules are committed, so that nobody needs a second toolchain to build the page, and so that their digests stay
//! what they are. `--check` proves that what is committed is what the sources say.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use toolshelf_core::Digest;

use crate::{pins, sh};

/// Version of the shelf, as its manifest tells it.
const SHELF_VERSION: &str = "1";

/// The compiler that the committed Rust tools come from. Another one makes other bytes of the same source, so with
/// another one they are neither rebuilt nor compared.
const RUSTC: &str = "rustc 1.95.0 (59807616e 2026-04-14)";

/// A tool on the shelf. Its source is `tools/guests/<id>/`: `<id>.wat`, or else a Rust package named like it.
struct Tool {
    id: &'static str,
    description: &'static str,
    capability: &'static str,
    abi: &'static str,
}

/// What is shipped, in the order of the manifest.
const TOOLS: [Tool; 3] = [
    Tool {
        id: "hash",
        description: "Compute the SHA-256 digest of up to 8,192 bytes",
        capability: "hash",
        abi: "buffer-abi/1",
    },
    Tool {
        id: "diff",
        description: "Compare two texts line by line, with the fewest possible edits",
        capability: "diff",
        abi: "buffer-abi/diff",
    },
    Tool {
        id: "diff-loose",
        description: "Compare two texts line by line, ignoring changes of white space",
        capability: "diff",
        abi: "buffer-abi/diff",
    },
];

/// Builds the shelf; with `check`, writes nothing and fails if a file is not what its source says.
pub(crate) fn run(check: bool) -> Result<()> {
    let shelf = sh::root().join("www/shelf");
    let mut differing = Vec::new();
    let mut settle = |file: &str, bytes: &[u8]| -> Result<()> {
        let path = shelf.join(file);
        if fs::read(&path).is_ok_and(|there| there == bytes) {
            return Ok(());
        }
        if check {
            differing.push(format!("www/shelf/{file}"));
            return Ok(());
        }
        println!("writing www/shelf/{file}, {} bytes", bytes.len());
        fs::create_dir_all(&shelf)?;
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
    };

    let mut entries = Vec::new();
    for tool in &TOOLS {
        let file = format!("{}.wasm", tool.id);
        let bytes = match compile(tool)? {
            Some(bytes) => bytes,
            None => fs::read(shelf.join(&file)).with_context(|| format!("www/shelf/{file} is missing"))?,
        };
        settle(&file, &bytes)?;
        entries.push(entry(tool, &file, &Digest::of(&bytes)));
    }
    settle("manifest.json", manifest(&entries).as_bytes())?;

    if !differing.is_empty() {
        bail!("not what the sources say: {}; run `cargo xtask build-wasm`", differing.join(", "));
    }
    Ok(())
}

/// The module that a tool's source makes, or nothing if this machine's compiler would make another one.
fn compile(tool: &Tool) -> Result<Option<Vec<u8>>> {
    let source = sh::root().join("tools/guests").join(tool.id);
    let text = source.join(tool.id).with_extension("wat");
    if text.is_file() {
        return Ok(Some(wat::parse_file(text)?));
    }
    let rustc = sh::output(sh::program("rustc").arg("--version"))?;
    if rustc.trim() != RUSTC {
        println!("note: {} is left as it is: built by {RUSTC}, and here is {}", tool.id, rustc.trim());
        return Ok(None);
    }
    cargo_build(tool, &source).map(Some)
}

/// Builds a Rust tool, such that the bytes do not depend on where.
///
/// Two things would tell folders apart. Paths in panic messages are given other prefixes. And Cargo takes the path of a
/// dependency outside of the workspace into the names of all symbols, which changes their order: so the tool and
/// `toolshelf-guest` are copied into a workspace of their own.
fn cargo_build(tool: &Tool, source: &Path) -> Result<Vec<u8>> {
    let root = sh::root();
    let stage = root.join("target/guests").join(tool.id);
    if stage.exists() {
        fs::remove_dir_all(&stage)?;
    }
    copy(source, &stage)?;
    copy(&root.join("crates/guest"), &stage.join("guest"))?;
    fs::write(stage.join("Cargo.toml"), staged_manifest(source)?)?;

    let target = root.join("target/guests/target");
    let flags = [
        format!("--remap-path-prefix={}={}", stage.display(), tool.id),
        format!("--remap-path-prefix={}=crates", cargo_sources()?.display()),
    ];
    let flags = flags.map(|flag| serde_json::Value::from(flag).to_string()).join(", ");
    let mut cargo = sh::cargo();
    cargo
        .current_dir(&stage)
        .args(["build", "--quiet", "--release", "--locked", "--target", pins::WASM_TARGET, "--target-dir"])
        .arg(&target)
        .args(["--config", &format!("target.{}.rustflags = [{flags}]", pins::WASM_TARGET)]);
    // They would take the place of all the flags in configuration files.
    for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"] {
        cargo.env_remove(variable);
    }
    sh::run(&mut cargo)?;

    let file = target.join(pins::WASM_TARGET).join("release").join(tool.id.replace('-', "_"));
    let file = file.with_extension("wasm");
    fs::read(&file).with_context(|| format!("cannot read {}", file.display()))
}

/// The tool's manifest as that of a workspace: what `toolshelf-guest` inherits comes from this workspace's manifest.
fn staged_manifest(source: &Path) -> Result<String> {
    let tool = fs::read_to_string(source.join("Cargo.toml"))?;
    let ours = fs::read_to_string(sh::root().join("Cargo.toml"))?;
    let mut staged = tool.replace("../../../crates/guest", "guest");
    staged.push_str("\n[workspace]\nmembers = [\"guest\"]\n");
    let mut inherited = false;
    for line in ours.lines() {
        if line.starts_with('[') {
            inherited = line == "[workspace.package]" || line.starts_with("[workspace.lints.");
        }
        if inherited {
            staged.push_str(line);
            staged.push('\n');
        }
    }
    Ok(staged)
}

/// Copies a folder, without what was built in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        if entry.file_name() == "target" {
            continue;
        }
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy(&source, &target)?;
        } else {
            fs::copy(&source, &target).with_context(|| format!("cannot copy {}", source.display()))?;
        }
    }
    Ok(())
}

/// Where Cargo unpacks the crates it downloads.
fn cargo_sources() -> Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    Ok(home.context("there is no home folder, and CARGO_HOME is not set")?.join("registry/src"))
}

fn entry(tool: &Tool, file: &str, digest: &Digest) -> String {
    let digest = digest.to_string();
    let fields = [
        ("id", tool.id),
        ("wasm", file),
        ("digest", &digest),
        ("description", tool.description),
        ("capability", tool.capability),
        ("abi", tool.abi),
    ];
    let fields = fields.map(|(key, value)| format!("      \"{key}\": {}", serde_json::Value::from(value)));
    format!("    {{\n{}\n    }}", fields.join(",\n"))
}

/// Written by hand for the sake of the order: who and what first, then the rest.
fn manifest(entries: &[String]) -> String {
    format!(
        "{{\n  \"name\": \"toolshelf\",\n  \"version\": \"{SHELF_VERSION}\",\n  \"tools\": [\n{}\n  ]\n}}\n",
        entries.join(",\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_reads_back_in_the_order_it_was_written() {
        let digest = Digest::of(b"");
        let text =
            manifest(&[entry(&TOOLS[0], "hash.wasm", &digest), entry(&TOOLS[1], "diff.wasm", &digest)]);
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["tools"][1]["abi"], "buffer-abi/diff");
        assert_eq!(json["tools"][0]["digest"], digest.to_string());
        assert!(
            text.find("\"id\"") < text.find("\"wasm\"") && text.find("\"wasm\"") < text.find("\"digest\"")
        );
        assert!(text.ends_with("]\n}\n"));
    }

    #[test]
    fn every_tool_has_a_source() {
        for tool in &TOOLS {
            let source = sh::root().join("tools/guests").join(tool.id);
            let text = source.join(tool.id).with_extension("wat");
            assert!(text.is_file() || source.join("Cargo.toml").is_file(), "{}", tool.id);
        }
    }

    #[test]
    fn a_staged_tool_depends_on_the_copy_beside_it() {
        let staged = staged_manifest(&sh::root().join("tools/guests/diff-loose")).unwrap();
        assert!(staged.contains("path = \"guest\""));
        assert!(staged.contains("[workspace.package]") && staged.contains("[workspace.lints.rust]"));
        assert!(!staged.contains("[workspace.dependencies]"));
    }
}
