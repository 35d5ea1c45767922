//! `toolshelf build`: from WebAssembly text to a module.

use std::path::{Path, PathBuf};

use serde_json::json;
use toolshelf_core::limits::WASM_MODULE_MAX_BYTES;
use toolshelf_core::refusal::{Code, Refusal};

use super::inspect::Report;
use super::outcome::{Exit, Outcome};
use super::show::{Style, printable};
use crate::files::{self, Found};

/// Longest text that is read, in bytes.
const TEXT_MAX_BYTES: u64 = 4 * WASM_MODULE_MAX_BYTES as u64;

pub(crate) fn run(path: &Path, output: Option<PathBuf>, style: Style) -> Result<Outcome, Refusal> {
    let text = match files::read(path, TEXT_MAX_BYTES)? {
        Found::Whole(text) => text,
        Found::TooLong(bytes) => {
            let why =
                format!("{} is {bytes} bytes; a text of at most {TEXT_MAX_BYTES} is read", path.display());
            return Err(Refusal::new(Code::OverBudget, why));
        }
    };
    let module = wat::Parser::new()
        .parse_bytes(Some(path), &text)
        .map_err(|err| Refusal::new(Code::WasmInvalid, printable_lines(&err.to_string())))?;
    let output = output.unwrap_or_else(|| path.with_extension("wasm"));
    if output == path {
        return Err(Refusal::new(
            Code::InvalidArgument,
            "the module would replace its own text; name another with -o",
        ));
    }
    files::replace(&output, &module)?;
    // The file is written whatever a shelf would say: it is valid, and what is wrong is told.
    let Outcome { json: mut report, text, .. } = Report::of(&module).outcome(style);
    let admitted = report["ok"] == true;
    report["ok"] = true.into();
    report["written"] = json!(output);
    report["admissible"] = admitted.into();
    let text = format!("{} {}\n{text}", style.dim("written "), printable(&output.to_string_lossy()));
    Ok(Outcome { json: report, text, exit: Exit::Done })
}

fn printable_lines(text: &str) -> String {
    text.lines().map(printable).collect::<Vec<_>>().join("\n")
}
