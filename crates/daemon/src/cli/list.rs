//! `toolshelf list`: every shelf, every tool, every verdict.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};
use toolshelf_core::abi::Abi;
use toolshelf_core::refusal::{Refusal, cut};
use toolshelf_core::shelf::{Shelf, Tool};
use toolshelf_host::Reading;

use super::outcome::{Exit, Outcome};
use super::show::{Style, bytes, printable, table};
use crate::shelf;

pub(crate) async fn run(folder: Option<PathBuf>, style: Style) -> Result<Outcome, Refusal> {
    let readings = shelf::for_one_call(folder)?.read().await?;
    let (json, exit) = listed(&readings);
    let text = readings.iter().map(|reading| shown(reading, style)).collect::<Vec<_>>().join("\n");
    Ok(Outcome { json, text, exit })
}

/// The readings as one value for programs, and how a command that lists them ends.
pub(crate) fn listed(readings: &[Reading]) -> (Value, Exit) {
    let refused = |reading: &Reading| match &reading.shelf {
        Ok(shelf) => shelf.tools.iter().find_map(|tool| tool.verdict.as_ref().err()).map(|_| Exit::Refused),
        Err(refusal) => Some(refusal.code.into()),
    };
    let exit = readings.iter().find_map(refused).unwrap_or(Exit::Done);
    let shelves: Vec<Value> = readings.iter().map(wire).collect();
    (json!({ "ok": exit == Exit::Done, "shelves": shelves }), exit)
}

fn wire(reading: &Reading) -> Value {
    match &reading.shelf {
        Ok(shelf) => json!(shelf),
        Err(refusal) => {
            let mut value = json!(refusal);
            value["dir"] = reading.key.clone().into();
            value["tools"] = json!([]);
            value
        }
    }
}

fn shown(reading: &Reading, style: Style) -> String {
    match &reading.shelf {
        Ok(shelf) => shown_shelf(shelf, style),
        Err(refusal) => format!("{}\n{}\n", style.bold(&printable(&reading.key)), style.refusal(refusal)),
    }
}

fn shown_shelf(shelf: &Shelf, style: Style) -> String {
    let mut text = format!(
        "{} {}  {}\n",
        style.bold(&printable(&shelf.name)),
        printable(&shelf.version),
        style.dim(&printable(&shelf.dir))
    );
    if shelf.tools.is_empty() {
        text.push_str("  no tools\n");
        return text;
    }
    let mut rows =
        vec![["TOOL", "VERDICT", "ABI", "DIGEST", "SIZE", "DESCRIPTION"].map(String::from).to_vec()];
    rows.extend(shelf.tools.iter().map(row));
    text.push_str(&table(&rows, style));
    for tool in &shelf.tools {
        if let Err(refusal) = &tool.verdict {
            let _ = writeln!(text, "  {}: {}", printable(&tool.id), style.refusal(refusal));
        }
    }
    text
}

fn row(tool: &Tool) -> Vec<String> {
    let digest = cut(tool.digest.as_deref().unwrap_or("-"), 12);
    let (verdict, abi, size) = match &tool.verdict {
        Ok(admitted) => {
            ("admitted", admitted.abi.map_or("none", |abi: Abi| abi.layout().name), bytes(admitted.bytes))
        }
        Err(refusal) => (refusal.code.as_str(), "-", "-".to_owned()),
    };
    let description = cut(&tool.description, 60);
    [&tool.id, verdict, abi, &digest, &size, &description].map(printable).to_vec()
}
