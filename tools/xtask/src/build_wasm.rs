//! Builds the shipped shelf (`www/shelf/`, its modules and the manifest that pins them) and the example extensions.
//!
//! | module | idea |
//! |---|---|
//! | [`compile`] | from a source to the bytes of a module, the same ones wherever that is done |
//! | [`extensions`] | the example extensions, each with the manifest that pins it |
//! | [`settle`] | writing what differs, or telling of it |
//!
//! The modules are committed, so that nobody needs a second toolchain to build the page, and so that their digests stay
//! what they are. `--check` proves that what is committed is what the sources say.

mod compile;
mod extensions;
mod settle;

use anyhow::Result;
use toolshelf_core::Digest;

use settle::Settling;

/// Version of the shelf, as its manifest tells it.
const SHELF_VERSION: &str = "1";

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

/// Where the shelf is, from the repository's root.
const SHELF: &str = "www/shelf";

/// Builds shelf and extensions; with `check`, writes nothing and fails if a file is not what its source says.
pub(crate) fn run(check: bool) -> Result<()> {
    let mut settling = Settling::new(check);
    shelf(&mut settling)?;
    extensions::build(&mut settling)?;
    settling.end()
}

fn shelf(settling: &mut Settling) -> Result<()> {
    let mut entries = Vec::new();
    for tool in &TOOLS {
        let file = format!("{}.wasm", tool.id);
        let path = format!("{SHELF}/{file}");
        let bytes = compile::module_or_committed(tool.id, &format!("{}.wat", tool.id), &path)?;
        settling.settle(&path, &bytes)?;
        entries.push(entry(tool, &file, &Digest::of(&bytes)));
    }
    settling.settle(&format!("{SHELF}/manifest.json"), manifest(&entries).as_bytes())
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
    use crate::sh;

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
}
