//! The parts of the program that are loaded when they are first needed, as the splitter writes them, made fit for any
//! static host.

use std::convert::Infallible;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest as _, Sha384};
use wasm_encoder::Module;
use wasm_encoder::reencode::{self, Reencode};
use wasmparser::{CustomSectionReader, Parser};

use crate::app::{LINK, Profile};

/// What the splitter calls a chunk: after its `wasm_split`, or by number where several have it in common.
const PREFIXES: [&str; 2] = ["split_", "chunk_"];

/// How the splitter's script asks for a chunk, before and after its name.
const FETCH: (&str, &str) = ("fetch(new URL(\"./", "\", import.meta.url))");

/// How that script starts a chunk. It wants the media type `application/wasm`, which not every host sends.
const STREAMING: &str = "WebAssembly.instantiateStreaming(src, imports)";
const BUFFERED: &str =
    "src.then((answer) => answer.arrayBuffer()).then((bytes) => WebAssembly.instantiate(bytes, imports))";

/// Whether a file of this name is fetched only when it is needed.
pub(crate) fn is_chunk(name: &str) -> bool {
    name.ends_with(".wasm") && PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Puts the chunks of the folder `from`, and the script that loads them, into the folder `to`.
pub(crate) fn finish(profile: Profile, from: &Path, to: &Path) -> Result<()> {
    for entry in std::fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
        let path = entry?.path();
        let name = path.file_name().context("a chunk without a name")?;
        if is_chunk(&name.to_string_lossy()) {
            let module = std::fs::read(&path)?;
            let module = if profile == Profile::Release { shortened(&module)? } else { module };
            std::fs::write(to.join(name), module)?;
        }
    }
    let script = std::fs::read_to_string(from.join(LINK)).context("the splitter wrote no script")?;
    let script = linked(&script, |name| {
        let path = to.join(name);
        std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
    })?;
    std::fs::write(to.join(LINK), script)?;
    Ok(())
}

/// The script with the digest of every chunk, and independent of media types.
///
/// Not in a pattern of the splitter's own options: it has none for this. A script that does not look as expected is
/// refused, so a newer splitter is noticed when the page is built.
fn linked(script: &str, read: impl Fn(&str) -> Result<Vec<u8>>) -> Result<String> {
    let (open, close) = FETCH;
    let mut parts = script.split(open);
    let mut text = parts.next().unwrap_or_default().to_owned();
    let mut chunks = 0;
    for part in parts {
        let (name, rest) =
            part.split_once(close).context("the splitter's script asks for a chunk in a new way")?;
        let integrity = integrity(&read(name)?);
        text += &format!("{open}{name}\", import.meta.url), {{ integrity: \"{integrity}\" }}){rest}");
        chunks += 1;
    }
    ensure!(
        text.matches("fetch(").count() == chunks && text.matches(STREAMING).count() == chunks,
        "the splitter's script loads its chunks in a new way"
    );
    Ok(text.replace(STREAMING, BUFFERED))
}

/// The digest of a file as browsers check it.
pub(crate) fn integrity(bytes: &[u8]) -> String {
    format!("sha384-{}", BASE64_STANDARD.encode(Sha384::digest(bytes)))
}

/// The module as short as it can be written.
///
/// The linker writes every number that may be relocated with five bytes, and the splitter keeps them.
/// wasm-bindgen does this for the main module.
fn shortened(module: &[u8]) -> Result<Vec<u8>> {
    /// Writes everything anew but the sections that only debuggers read.
    struct Shorten;

    impl Reencode for Shorten {
        type Error = Infallible;

        fn parse_custom_section(
            &mut self,
            _: &mut Module,
            _: CustomSectionReader<'_>,
        ) -> Result<(), reencode::Error<Infallible>> {
            Ok(())
        }
    }

    let mut short = Module::new();
    Shorten
        .parse_core_module(&mut short, Parser::new(0), module)
        .context("a chunk is no WebAssembly module")?;
    Ok(short.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "const a = () => {\n    const src = fetch(new URL(\"./split_x.wasm\", import.meta.url));\n    return async (imports) => (WebAssembly.instantiateStreaming(src, imports));\n}";

    #[test]
    fn each_chunk_is_fetched_by_its_digest_and_whatever_its_media_type() {
        let script = linked(SCRIPT, |name| Ok(name.into())).unwrap();
        let digest = integrity(b"split_x.wasm");
        assert!(
            script.contains(&format!(
                "fetch(new URL(\"./split_x.wasm\", import.meta.url), {{ integrity: \"{digest}\" }});"
            )),
            "{script}"
        );
        assert!(!script.contains("instantiateStreaming"), "{script}");
    }

    #[test]
    fn a_script_of_another_shape_is_refused_and_one_without_chunks_is_not() {
        assert!(linked(&SCRIPT.replace("new URL", "new  URL"), |_| Ok(Vec::new())).is_err());
        assert!(linked(&SCRIPT.replace("Streaming", ""), |_| Ok(Vec::new())).is_err());
        assert_eq!(linked("export {};", |_| Ok(Vec::new())).unwrap(), "export {};");
    }

    #[test]
    fn a_chunk_is_told_by_its_name() {
        assert!(is_chunk("split_diff.wasm") && is_chunk("chunk_3.wasm"));
        assert!(!is_chunk("app_bg.wasm") && !is_chunk(LINK));
    }

    #[test]
    fn numbers_become_short_and_what_only_debuggers_read_is_left_out() {
        let header = b"\0asm\x01\0\0\0";
        let module = [&header[..], &[0, 3, 1, b'n', 9], &[3, 2, 0x80, 0]].concat();
        assert_eq!(
            shortened(&[&header[..], &[1, 5, 0x80, 0x80, 0x80, 0x80, 0]].concat()).unwrap(),
            [&header[..], &[1, 1, 0]].concat()
        );
        assert!(!shortened(&module).unwrap().contains(&b'n'));
        assert!(shortened(b"<html>").is_err());
    }
}
