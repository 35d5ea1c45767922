//! Files on both ends: read here to be sent along, and written where they came to.

use serde_json::{Map, Value, json};
use toolshelf_core::RootDescriptor;
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_core::remote::sent::{SentFile, named, place, sent_file_max_bytes};
use toolshelf_core::task::check_call_id;

use crate::machine::Machine;

/// The argument that has the files.
pub(super) const FILES: &str = "files";

/// Puts the files that the task names into `args`, read from the folder `root` of this machine.
///
/// # Errors
/// What [`named`] says, and what stands against reading one.
pub(super) async fn attach(
    machine: &Machine,
    root: Option<&str>,
    args: &mut Map<String, Value>,
) -> Result<(), Refusal> {
    let task = args.get("task").and_then(Value::as_str).unwrap_or_default();
    let paths = named(task)?;
    if paths.is_empty() {
        return Ok(());
    }
    let root = machine.root(root)?.descriptor;
    let mut files = Vec::new();
    for path in paths {
        let bytes = machine.roots().read_within(&root, &path, sent_file_max_bytes()).await?;
        files.push(SentFile::of(&path, &bytes));
    }
    args.insert(FILES.to_owned(), json!(files));
    Ok(())
}

/// Takes the files out of the arguments of a delegation, writes them into its folder, and lets the task name them there.
///
/// # Errors
/// [`Code::InvalidArgument`] for what are no files, what [`place`] says, and what stands against writing them.
pub(super) async fn receive(
    machine: &Machine,
    args: &mut Map<String, Value>,
    owner: &str,
) -> Result<(), Refusal> {
    let Some(files) = args.remove(FILES) else { return Ok(()) };
    let files: Vec<SentFile> = serde_json::from_value(files).map_err(|err| {
        Refusal::new(Code::InvalidArgument, format!("`files`: {}", cut(&err.to_string(), 120)))
    })?;
    let text = |name: &str| args.get(name).and_then(Value::as_str);
    let call_id = check_call_id(text("callId"))?;
    let placed = place(text("task").unwrap_or_default(), &files, owner, call_id)?;
    let root: RootDescriptor = machine.root(text("root"))?.descriptor;
    for (path, bytes) in &placed.files {
        machine.roots().write(&root, path, bytes).await?;
    }
    args.insert("task".to_owned(), placed.task.into());
    Ok(())
}
