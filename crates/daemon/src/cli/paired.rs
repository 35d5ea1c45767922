//! `toolshelf pair`, `pairings` and `environments`.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};
use toolshelf_core::refusal::{Code, Refusal};

use super::companion;
use super::outcome::Outcome;
use super::paired_args::{EnvironmentsCommand, PairArgs, PairingsCommand};
use super::show::{Style, printable, table};
use crate::frames::session::ADMIN;

async fn ask(command: &str, args: Value) -> Result<Value, Refusal> {
    companion::ask(None, &format!("{ADMIN}{command}"), &args).await
}

pub(super) async fn pair(pair: PairArgs, style: Style) -> Result<Outcome, Refusal> {
    let PairArgs { name, scopes, expires } = pair;
    // A code is held by the companion that is served: one of this process would be gone with it.
    let mut running = companion::running().await.ok_or_else(|| {
        let why = "no companion is served here; start `toolshelf serve`, and pair while it runs";
        Refusal::new(Code::MachineUnreachable, why)
    })?;
    let args = json!({ "name": name, "scopes": scopes, "lifeMs": expires.map(|expires| expires.0) });
    let answer = running.client.ask(&format!("{ADMIN}pairings.offer"), &args).await?;
    let text = |field: &str| answer[field].as_str().unwrap_or_default().to_owned();
    let minutes = answer["expiresInMs"].as_u64().unwrap_or_default() / 60_000;
    let mut shown = format!("Code:  {}\n\n{}\n\n", style.bold(&text("code")), text("qr"));
    let _ = write!(
        shown,
        "On the other computer:\n\n  toolshelf environments add '{}'\n\n\
         The code holds for {minutes} minutes and can be used once. `toolshelf pairings list` shows who was let in.\n",
        text("link")
    );
    Ok(Outcome::done(answer, shown))
}

pub(super) async fn pairings(command: PairingsCommand, style: Style) -> Result<Outcome, Refusal> {
    match command {
        PairingsCommand::List => {
            let answer = ask("pairings.list", json!({})).await?;
            let mut rows = Vec::new();
            for pairing in answer["pairings"].as_array().into_iter().flatten() {
                let scopes: Vec<_> = pairing["scopes"].as_array().into_iter().flatten().map(cell).collect();
                let whose =
                    if pairing["origin"].is_null() { String::new() } else { cell(&pairing["origin"]) };
                rows.push(vec![
                    cell(&pairing["id"]),
                    cell(&pairing["name"]),
                    cell(&pairing["state"]),
                    scopes.join(","),
                    whose,
                ]);
            }
            let none = "nobody was paired; `toolshelf pair` makes a code\n";
            let text = if rows.is_empty() { none.to_owned() } else { table(&rows, style) };
            Ok(Outcome::done(answer, text))
        }
        PairingsCommand::Revoke { pairing } => {
            let answer = ask("pairings.revoke", json!({ "id": pairing })).await?;
            let text = format!("revoked {}\n", cell(&answer["pairing"]["name"]));
            Ok(Outcome::done(answer, text))
        }
    }
}

pub(super) async fn environments(command: EnvironmentsCommand, style: Style) -> Result<Outcome, Refusal> {
    match command {
        EnvironmentsCommand::List => {
            let answer = ask("environments.list", json!({})).await?;
            let mut rows = Vec::new();
            for known in answer["environments"].as_array().into_iter().flatten() {
                rows.push(["key", "label", "state", "address"].map(|field| cell(&known[field])).into());
            }
            let none = "no other computer is known; `toolshelf pair` there prints the link to add\n";
            let text = if rows.is_empty() { none.to_owned() } else { table(&rows, style) };
            Ok(Outcome::done(answer, text))
        }
        EnvironmentsCommand::Add { link, name, ca } => {
            let ca = ca.map(absolute).transpose()?;
            let args = json!({ "link": link, "name": name, "authorities": ca });
            let answer = ask("environments.add", args).await?;
            let added = &answer["environment"];
            let text = format!("added {} ({})\n", cell(&added["label"]), cell(&added["key"]));
            Ok(Outcome::done(answer, text))
        }
        EnvironmentsCommand::Remove { environment } => {
            let answer = ask("environments.remove", json!({ "key": environment })).await?;
            Ok(Outcome::done(answer, "removed; its token still holds there until it is revoked\n".to_owned()))
        }
        EnvironmentsCommand::Revoke { environment } => {
            let answer = ask("environments.revoke", json!({ "key": environment })).await?;
            Ok(Outcome::done(answer, "revoked there, and removed here\n".to_owned()))
        }
    }
}

/// The companion has another working folder.
fn absolute(path: PathBuf) -> Result<PathBuf, Refusal> {
    path.canonicalize().map_err(|err| {
        Refusal::new(Code::FileUnavailable, format!("{} cannot be read: {err}", path.display()))
    })
}

fn cell(value: &Value) -> String {
    printable(value.as_str().unwrap_or("-"))
}
