//! `toolshelf ext`, `keys`, `secret` and `receipts`: what only who sits at this computer sets up. What agents see as well
//! is in `ext`.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;

use serde_json::{Value, json};
use toolshelf_core::refusal::{Code, Refusal};

use super::args::{Ext, Grant, Keys};
use super::args_kept::{Receipts, Secret};
use super::companion;
use super::ext;
use super::ext_new;
use super::outcome::Outcome;
use super::show::{Style, printable, table};
use crate::extensions::ExtError;
use crate::extensions::receipts::chain::{public_key, verify};
use crate::frames::session::ADMIN;
use crate::settings;

/// Longest secret that is read from the input, in bytes; the vault has its own bound below it.
const SECRET_READ_MAX_BYTES: u64 = 1024 * 1024;

async fn ask(command: &str, args: Value) -> Result<Value, Refusal> {
    companion::ask(None, &format!("{ADMIN}{command}"), &args).await
}

pub(super) async fn extensions(
    shelf: Option<PathBuf>,
    command: Ext,
    style: Style,
) -> Result<Outcome, Refusal> {
    match command {
        Ext::List => ext::list(shelf, style).await,
        Ext::Call { name, args } => ext::call(shelf, name, &args, style).await,
        Ext::New { name, dir } => ext_new::run(&name, dir),
        Ext::Install { from } => {
            let args = if from.contains("://") {
                json!({ "url": from })
            } else {
                json!({ "path": absolute(&from)? })
            };
            let answer = ask("ext.install", args).await?;
            let text = shown_extension(&answer["extension"], style);
            Ok(Outcome::done(answer, text))
        }
        Ext::Installed => {
            let answer = ask("ext.list", json!({})).await?;
            let text = shown_extensions(&answer, style);
            Ok(Outcome::done(answer, text))
        }
        Ext::Show { id } => {
            let answer = ask("ext.show", json!({ "id": id })).await?;
            let mut text = shown_extension(&answer["extension"], style);
            for grant in answer["grants"].as_array().into_iter().flatten() {
                let _ = writeln!(
                    text,
                    "  granted to {}",
                    printable(grant["passport_fpr"].as_str().unwrap_or("-"))
                );
            }
            Ok(Outcome::done(answer, text))
        }
        Ext::Remove { id } => done("ext.remove", json!({ "id": id }), "removed").await,
        Ext::Quarantine { id, reason } => {
            done(
                "ext.lifecycle",
                json!({ "id": id, "state": "quarantined", "reason": reason }),
                "quarantined",
            )
            .await
        }
        Ext::Activate { id, reason } => {
            done("ext.lifecycle", json!({ "id": id, "state": "active", "reason": reason }), "active").await
        }
        Ext::Grant(grant) => done("ext.grant", granted(&grant), "granted").await,
        Ext::Revoke { id, passport } => {
            done("ext.revoke", json!({ "id": id, "passport": passport }), "revoked").await
        }
        Ext::Invoke { id, tool, passport, args } => {
            let args: Value = serde_json::from_str(&args).map_err(|err| {
                Refusal::new(Code::InvalidArgument, format!("the arguments are no JSON: {err}"))
            })?;
            let call = json!({ "id": id, "tool": tool, "passport": passport, "args": args });
            let answer = ask("ext.invoke", call).await?;
            let text = shown_outcome(&answer, style);
            Ok(Outcome::done(answer, text))
        }
    }
}

pub(super) async fn keys(command: Keys, style: Style) -> Result<Outcome, Refusal> {
    match command {
        Keys::List => {
            let answer = ask("keys.list", json!({})).await?;
            let rows = rows(
                &answer["keys"],
                &[("PUBLISHER", "passport_fpr"), ("TIER", "trust_tier"), ("KEY", "public_key_hex")],
            );
            let text = or_hint(rows, "no publisher is trusted yet: toolshelf keys add PASSPORT KEY", style);
            Ok(Outcome::done(answer, text))
        }
        Keys::Add { passport, key, tier } => {
            done("keys.add", json!({ "passport": passport, "public_key": key, "tier": tier }), "trusted")
                .await
        }
        Keys::Remove { passport } => {
            done("keys.remove", json!({ "id": passport }), "no longer trusted").await
        }
    }
}

pub(super) async fn secret(command: Secret, style: Style) -> Result<Outcome, Refusal> {
    match command {
        Secret::List => {
            let answer = ask("secret.list", json!({})).await?;
            let rows = rows(&answer["secrets"], &[("SECRET", "id")]);
            let text = or_hint(rows, "no secret is kept: printf %s VALUE | toolshelf secret set ID", style);
            Ok(Outcome::done(answer, text))
        }
        Secret::Set { id } => {
            let value = piped()?;
            done("secret.set", json!({ "id": id, "value": value }), "kept").await
        }
        Secret::Remove { id } => done("secret.remove", json!({ "id": id }), "removed").await,
    }
}

pub(super) async fn receipts(command: Receipts, style: Style) -> Result<Outcome, Refusal> {
    match command {
        Receipts::List { limit } => {
            let answer = ask("receipts.list", json!({ "limit": limit })).await?;
            let columns =
                [("SEQ", "seq"), ("EXTENSION", "extension_id"), ("ACTION", "action"), ("AT", "at_unix_ms")];
            let text = or_hint(rows(&answer["receipts"], &columns), "nothing is on record yet", style);
            Ok(Outcome::done(answer, text))
        }
        // Reads two files and asks nobody.
        Receipts::Verify { file, key } => {
            let data = settings::data_dir().unwrap_or_default();
            let file = file.unwrap_or_else(|| data.join("receipts.jsonl"));
            let key = match key {
                Some(key) => key,
                None => std::fs::read_to_string(file.with_extension("pub")).map_err(|err| {
                    let why = format!(
                        "{} cannot be read: {err}; name the key with --key",
                        file.with_extension("pub").display()
                    );
                    Refusal::new(Code::FileUnavailable, why)
                })?,
            };
            let verified = public_key(&key).and_then(|key| verify(&file, &key)).map_err(ExtError::from)?;
            let end = if verified.end_confirmed {
                ""
            } else {
                "; without a head beside it, a cut end would not show"
            };
            let text = format!("{}: {} receipts{end}\n", style.good("whole"), verified.receipts);
            let mut answer = json!(verified);
            answer["ok"] = true.into();
            Ok(Outcome::done(answer, text))
        }
    }
}

async fn done(command: &str, args: Value, what: &str) -> Result<Outcome, Refusal> {
    Ok(Outcome::done(ask(command, args).await?, format!("{what}\n")))
}

fn granted(grant: &Grant) -> Value {
    json!({
        "id": grant.id,
        "passport_fpr": grant.passport,
        "allowed_tool_names": grant.tools,
        "allowed_prefixes_read": grant.read,
        "allowed_prefixes_write": grant.write,
        "allowed_secret_ids": grant.secrets,
        "rate_limit_per_min": grant.rate,
        "expires_at_unix_ms": grant.until,
    })
}

/// The companion may run in another folder.
fn absolute(path: &str) -> Result<PathBuf, Refusal> {
    let path = PathBuf::from(path);
    let path = if path.is_dir() { path.join("manifest.json") } else { path };
    path.canonicalize().map_err(|err| {
        Refusal::new(Code::FileUnavailable, format!("{} cannot be read: {err}", path.display()))
    })
}

fn piped() -> Result<String, Refusal> {
    let input = std::io::stdin();
    if input.is_terminal() {
        let why =
            "pipe the secret in, so that it is in no command line: printf %s VALUE | toolshelf secret set ID";
        return Err(Refusal::new(Code::MissingArgument, why));
    }
    let mut text = String::new();
    let read = input.take(SECRET_READ_MAX_BYTES).read_to_string(&mut text);
    read.map_err(|err| Refusal::new(Code::InvalidArgument, format!("the secret is no text: {err}")))?;
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

/// A table of the objects in `list`: each column's head and the field that it shows.
fn rows(list: &Value, columns: &[(&str, &str)]) -> Vec<Vec<String>> {
    let mut rows = vec![columns.iter().map(|(head, _)| (*head).to_owned()).collect()];
    for entry in list.as_array().into_iter().flatten() {
        let cell = |(_, field): &(&str, &str)| match &entry[*field] {
            Value::String(text) => printable(text),
            Value::Null => "-".to_owned(),
            other => other.to_string(),
        };
        rows.push(columns.iter().map(cell).collect());
    }
    rows
}

fn or_hint(rows: Vec<Vec<String>>, hint: &str, style: Style) -> String {
    if rows.len() > 1 { table(&rows, style) } else { format!("{hint}\n") }
}

fn shown_extensions(answer: &Value, style: Style) -> String {
    let mut rows = vec![["EXTENSION", "VERSION", "STATE", "TRUST", "TOOLS"].map(String::from).to_vec()];
    for extension in answer["extensions"].as_array().into_iter().flatten() {
        let manifest = &extension["manifest"];
        let text = |value: &Value| printable(value.as_str().unwrap_or("-"));
        let tools = manifest["tools"].as_array().map_or(0, Vec::len).to_string();
        rows.push(vec![
            text(&manifest["id"]),
            text(&manifest["version"]),
            text(&extension["lifecycle"]["state"]),
            text(&extension["trust_tier"]),
            tools,
        ]);
    }
    or_hint(rows, "nothing is installed: toolshelf ext install FOLDER, or toolshelf ext new NAME", style)
}

/// What an extension is and asks for, in plain words.
fn shown_extension(extension: &Value, style: Style) -> String {
    let manifest = &extension["manifest"];
    let text = |value: &Value| printable(value.as_str().unwrap_or("-"));
    let mut shown = format!(
        "{} {}  {}\n  by {}, trusted as {}, {}\n",
        style.bold(&text(&manifest["id"])),
        text(&manifest["version"]),
        text(&manifest["summary"]),
        text(&manifest["publisher_passport_fpr"]),
        text(&extension["trust_tier"]),
        text(&extension["lifecycle"]["state"]),
    );
    for tool in manifest["tools"].as_array().into_iter().flatten() {
        let _ = writeln!(shown, "  {}  {}", text(&tool["name"]), text(&tool["description"]));
    }
    shown
}

/// The result, and for a person what it took and what was logged.
fn shown_outcome(answer: &Value, style: Style) -> String {
    let mut text = format!("{:#}\n", answer["result"]);
    if style.terminal {
        for entry in answer["log"].as_array().into_iter().flatten() {
            let part = |name: &str| printable(entry[name].as_str().unwrap_or_default());
            let _ = writeln!(text, "{}", style.dim(&format!("{}: {}", part("level"), part("message"))));
        }
        let cost = format!("{} ms, fuel {}", answer["elapsed_ms"], answer["fuel_consumed"]);
        let _ = writeln!(text, "{}", style.dim(&cost));
    }
    text
}
