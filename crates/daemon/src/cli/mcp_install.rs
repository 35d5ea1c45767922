//! `toolshelf mcp install`: the shelf in the configuration of a client. What is in the file stays as it is and where it
//! is; a copy of the file is kept beside it. A file that is not plain JSON (some clients allow comments) is not touched.

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;
use serde_json::{Value, json};
use toolshelf_core::refusal::{Code, Refusal, cut};

use super::mcp_clients::Client;
use super::ordered::Node;
use super::outcome::Outcome;
use super::show::printable;
use crate::files::{self, Found};
use crate::settings::{CACHE_DIR, CONFIG, DATA_DIR, SHELF_DIR};

/// The name of the server.
const NAME: &str = "toolshelf";
/// What a copy of a file is called, behind the file's own name.
const COPY: &str = ".before-toolshelf";
/// Largest configuration that is read, in bytes. Claude Code keeps its history in it.
const FILE_MAX_BYTES: u64 = 256 * 1024 * 1024;

pub(super) fn run(
    shelf: Option<PathBuf>,
    client: Client,
    file: Option<PathBuf>,
    print: bool,
    remove: bool,
) -> Result<Outcome, Refusal> {
    let path = file.map_or_else(|| usual(client), Ok)?;
    // What is replaced is the file, not a link that leads to it.
    let path = path.canonicalize().unwrap_or(path);
    let entry = entry(client, shelf)?;
    let shown = json!({ client.servers(): { NAME: &entry } });
    if print {
        let pretty = serde_json::to_string_pretty(&shown).unwrap_or_default();
        let text =
            format!("{} reads {}:\n\n{pretty}\n", client.title(), printable(&path.display().to_string()));
        return Ok(Outcome::done(json!({ "ok": true, "file": path, "configuration": shown }), text));
    }
    let before = read(&path)?;
    let after = if remove {
        without(client, &path, before.as_deref())?
    } else {
        Some(with(client, &path, before.as_deref(), &entry)?)
    };
    let changed = after.is_some() && after != before;
    if let Some(after) = after.filter(|_| changed) {
        if let Some(before) = &before {
            files::replace(&copy_of(&path), before)?;
        } else if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|err| files::unavailable(folder, &err))?;
        }
        files::replace(&path, &after)?;
    }
    let what = match (remove, changed) {
        (false, true) => "written to",
        (false, false) => "is already in",
        (true, true) => "taken out of",
        (true, false) => "is not in",
    };
    let mut text = format!("toolshelf {what} {}\n", printable(&path.display().to_string()));
    if changed {
        text.push_str(&format!("Restart {} to see it.\n", client.title()));
    }
    Ok(Outcome::done(json!({ "ok": true, "file": path, "changed": changed, "configuration": shown }), text))
}

fn usual(client: Client) -> Result<PathBuf, Refusal> {
    let none = || {
        Refusal::new(Code::StorageUnavailable, "there is no home folder; name the client's file with --file")
    };
    let home = std::env::home_dir().ok_or_else(none)?;
    let config = etcetera::base_strategy::choose_base_strategy().map_err(|_| none())?.config_dir();
    Ok(client.file(&home, &config))
}

/// How the client starts this program, with the folders that are set here: the client does not know them.
fn entry(client: Client, shelf: Option<PathBuf>) -> Result<Value, Refusal> {
    let program = std::env::current_exe().map_err(|err| {
        Refusal::new(Code::FileUnavailable, format!("this program does not find itself: {err}"))
    })?;
    let mut args = vec!["mcp".to_owned()];
    if let Some(shelf) = shelf {
        let shelf = std::path::absolute(&shelf).map_err(|err| files::unavailable(&shelf, &err))?;
        args = vec!["--shelf".to_owned(), shelf.display().to_string(), "mcp".to_owned()];
    }
    let mut entry = json!({ "command": program, "args": args });
    if let Some((key, value)) = client.kind() {
        entry[key] = value.into();
    }
    let env: serde_json::Map<String, Value> = [&SHELF_DIR, &DATA_DIR, &CACHE_DIR, &CONFIG]
        .into_iter()
        .filter_map(|setting| Some((setting.name.to_owned(), setting.value()?.1.into_string().ok()?.into())))
        .collect();
    if !env.is_empty() {
        entry["env"] = Value::Object(env);
    }
    Ok(entry)
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, Refusal> {
    if !path.exists() {
        return Ok(None);
    }
    match files::read(path, FILE_MAX_BYTES)? {
        Found::Whole(bytes) => Ok(Some(bytes)),
        Found::TooLong(bytes) => Err(Refusal::new(
            Code::OverBudget,
            format!("{} has {bytes} bytes, which is too much", path.display()),
        )),
    }
}

/// The file with the entry; as it is where the entry is there already.
fn with(client: Client, path: &Path, before: Option<&[u8]>, entry: &Value) -> Result<Vec<u8>, Refusal> {
    let mut root = parsed(client, path, before)?;
    let wanted = node(entry);
    if root.get_mut(client.servers()).is_none() {
        root.set(client.servers(), Node::Object(Vec::new()));
    }
    let servers = servers(client, path, &mut root)?;
    if servers.get_mut(NAME).is_some_and(|known| *known == wanted) {
        return Ok(before.unwrap_or_default().to_vec());
    }
    servers.set(NAME, wanted);
    Ok(written(&root))
}

/// The file without the entry; `None` where it is not there.
fn without(client: Client, path: &Path, before: Option<&[u8]>) -> Result<Option<Vec<u8>>, Refusal> {
    let mut root = parsed(client, path, before)?;
    if root.get_mut(client.servers()).is_none() || servers(client, path, &mut root)?.remove(NAME).is_none() {
        return Ok(None);
    }
    Ok(Some(written(&root)))
}

fn servers<'r>(client: Client, path: &Path, root: &'r mut Node) -> Result<&'r mut Node, Refusal> {
    match root.get_mut(client.servers()) {
        Some(servers @ Node::Object(_)) => Ok(servers),
        _ => Err(unfit(client, path, &format!("`{}` is no object", client.servers()))),
    }
}

fn parsed(client: Client, path: &Path, before: Option<&[u8]>) -> Result<Node, Refusal> {
    let Some(bytes) = before.filter(|bytes| !bytes.trim_ascii().is_empty()) else {
        return Ok(Node::Object(Vec::new()));
    };
    match serde_json::from_slice(bytes) {
        Ok(root @ Node::Object(_)) => Ok(root),
        Ok(_) => Err(unfit(client, path, "it is no object")),
        Err(err) => Err(unfit(client, path, &cut(&err.to_string(), 120))),
    }
}

fn unfit(client: Client, path: &Path, why: &str) -> Refusal {
    let why = format!(
        "{} is not changed: {why}; `toolshelf mcp install --print` shows what to write into it for {}",
        path.display(),
        client.title()
    );
    Refusal::new(Code::ConfigInvalid, why)
}

fn node(value: &Value) -> Node {
    match value {
        Value::Object(object) => {
            Node::Object(object.iter().map(|(key, value)| (key.clone(), node(value))).collect())
        }
        Value::Array(values) => Node::Array(values.iter().map(node).collect()),
        plain => Node::Plain(plain.clone()),
    }
}

fn written(root: &Node) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(root).unwrap_or_default();
    text.push(b'\n');
    text
}

fn copy_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(COPY);
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn install(client: Client, path: &Path, remove: bool) -> Result<Outcome, Refusal> {
        run(None, client, Some(path.to_owned()), false, remove)
    }

    #[test]
    fn every_client_gets_the_shelf_and_keeps_what_it_has() {
        for client in Client::ALL {
            let dir = tempfile::tempdir().unwrap();
            let path = client.file(dir.path(), &dir.path().join("config"));
            assert_eq!(install(client, &path, false).unwrap().json["changed"], true, "{client:?}");
            let made: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            let args = made[client.servers()][NAME]["args"].as_array().unwrap();
            assert_eq!(args.last().unwrap(), "mcp");
            assert_eq!(install(client, &path, false).unwrap().json["changed"], false, "{client:?}");

            let kept = format!(
                r#"{{"zebra": 1, "{}": {{"other": {{"command": "x"}}}}, "apple": 2}}"#,
                client.servers()
            );
            fs::write(&path, &kept).unwrap();
            install(client, &path, false).unwrap();
            assert_eq!(fs::read_to_string(copy_of(&path.canonicalize().unwrap())).unwrap(), kept);
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.find("zebra") < text.find("apple") && text.contains("\"other\""), "{text}");
            install(client, &path, true).unwrap();
            let without: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            assert_eq!(without, serde_json::from_str::<Value>(&kept).unwrap());
            assert_eq!(install(client, &path, true).unwrap().json["changed"], false);
        }
    }

    #[test]
    fn what_is_no_plain_json_is_not_touched() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("settings.json");
        for text in ["// a comment\n{}", "[1]", r#"{"context_servers": 7}"#, "{"] {
            fs::write(&path, text).unwrap();
            let refused = install(Client::Zed, &path, false).map(|_| ()).unwrap_err();
            assert!(refused.code == Code::ConfigInvalid && refused.why.contains("--print"), "{refused}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }
}
