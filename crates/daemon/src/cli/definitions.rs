//! `toolshelf definitions`: what agents are shown of tools, compared with what was admitted.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Map, Value, json};
use toolshelf_core::refusal::{Code, Refusal};

use super::args_mcp::Definitions;
use super::companion;
use super::outcome::{Exit, Outcome};
use super::show::{Style, printable, table};
use crate::frames::session::ADMIN;

pub(super) async fn run(
    shelf: Option<PathBuf>,
    command: Definitions,
    style: Style,
) -> Result<Outcome, Refusal> {
    let ask = async |command: &str, args: Value| {
        companion::ask(shelf.clone(), &format!("{ADMIN}definitions.{command}"), &args).await
    };
    let listed = ask("list", json!({})).await?;
    let rows = listed["definitions"].as_array().cloned().unwrap_or_default();
    match command {
        Definitions::List => {
            let text = listing(&rows, style);
            Ok(Outcome::done(listed, text))
        }
        Definitions::Diff { names } => {
            let wanted = wanted(&rows, &names)?;
            let changed: Vec<_> = wanted.into_iter().filter(|row| row["diff"] != "").collect();
            let mut text = String::new();
            for row in &changed {
                let _ =
                    writeln!(text, "{}", style.bold(&printable(row["name"].as_str().unwrap_or_default())));
                for line in row["diff"].as_str().unwrap_or_default().lines() {
                    let line = printable(line);
                    let line = match line.bytes().next() {
                        Some(b'+') => style.good(&line),
                        Some(b'-') => style.bad(&line),
                        _ => line,
                    };
                    let _ = writeln!(text, "{line}");
                }
            }
            if changed.is_empty() {
                text.push_str("every tool is as it was admitted\n");
            }
            // As with other programs that compare: 1 when there is a difference.
            let exit = if changed.is_empty() { Exit::Done } else { Exit::Refused };
            Ok(Outcome { json: json!({ "ok": true, "definitions": changed }), text, exit })
        }
        Definitions::Approve { names } => {
            let wanted = wanted(&rows, &names)?;
            // Only what is there at this moment is meant, not what may be there in the next.
            let hashes: Map<String, Value> = wanted
                .iter()
                .filter_map(|row| Some((row["name"].as_str()?.to_owned(), row["found"]["sha256"].clone())))
                .collect();
            let answer = ask("approve", json!({ "names": names, "sha256": hashes })).await?;
            let text = format!("approved {}\n", printable(&names.join(", ")));
            Ok(Outcome::done(answer, text))
        }
    }
}

fn wanted<'r>(rows: &'r [Value], names: &[String]) -> Result<Vec<&'r Value>, Refusal> {
    if names.is_empty() {
        return Ok(rows.iter().collect());
    }
    let find = |name: &String| {
        rows.iter().find(|row| row["name"] == *name).ok_or_else(|| {
            Refusal::new(
                Code::UnknownTool,
                format!("no tool {name:?} is known; `toolshelf definitions list` shows them"),
            )
        })
    };
    names.iter().map(find).collect()
}

fn listing(rows: &[Value], style: Style) -> String {
    let text = |value: &Value| printable(value.as_str().unwrap_or("-"));
    let mut cells = vec![["NAME", "STATE", "ADMITTED BY", "FROM"].map(str::to_owned).to_vec()];
    cells.extend(rows.iter().map(|row| {
        vec![text(&row["name"]), text(&row["state"]), text(&row["pinned"]["by"]), text(&row["key"])]
    }));
    table(&cells, style)
}
