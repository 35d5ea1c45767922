//! A person's data in one file: shelves, tasks, settings and the files of the page's own folder; never the key.
//!
//! The file is JSON: `{format, exportedAt, items: [{kind, sha256, data}]}`. `data` is a text, `sha256` the digest of that
//! very text. All digests are checked before anything is taken over, and nothing that is there already is overwritten.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use js_sys::Array;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toolshelf_core::Digest;
use toolshelf_core::address::Sealed;
use toolshelf_core::manifest::Manifest;
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_core::task::time::iso_time;
use toolshelf_core::task::{LogEntry, TaskEvent, TaskRecord, reduce_task};
use toolshelf_host::task_ports::Draft;
use web_sys::{Blob, File};

use super::folders::own;
use super::{BATCH, Tasks, unreadable};
use crate::storage::ShelfRecord;
use crate::{js, pick};

/// What the file says it is.
const FORMAT: &str = "toolshelf-export/1";
/// Largest file that is taken, in bytes.
const MAX_BYTES: u64 = 268_435_456;
/// What the names of the page's settings begin with.
const SETTINGS: &str = "toolshelf.";

/// What an import brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Shelves that are new.
    pub shelves: usize,
    /// Tasks that are new.
    pub tasks: usize,
    /// Files that are new in the page's own folder.
    pub files: usize,
    /// What was there already and stays as it is.
    pub skipped: usize,
}

#[derive(Deserialize)]
struct Export {
    format: String,
    items: Vec<Item>,
}

#[derive(Serialize, Deserialize)]
struct Item {
    kind: String,
    sha256: String,
    data: String,
}

#[derive(Serialize, Deserialize)]
struct ShelfData {
    key: String,
    order: f64,
    manifest: String,
    files: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
struct Written {
    at: String,
    event: TaskEvent,
}

#[derive(Serialize, Deserialize)]
struct FileData {
    path: String,
    content: String,
}

/// An item that was checked and is ready to be taken over.
enum Checked {
    Shelf(ShelfRecord),
    Task(Box<TaskRecord>, Vec<Draft>),
    File(String, Vec<u8>),
    Setting(String, String),
}

impl Tasks {
    /// Everything of a person in one file.
    ///
    /// # Errors
    /// [`Code::StorageUnavailable`] and what reading a file answers.
    pub async fn export(&self) -> Result<Blob, Refusal> {
        let now = iso_time(js_sys::Date::now() as u64);
        let parts =
            Array::of1(&format!("{{\"format\":\"{FORMAT}\",\"exportedAt\":\"{now}\",\"items\":[\n").into());
        let add = |kind: &str, data: String| {
            let item = Item { kind: kind.to_owned(), sha256: Digest::of(data.as_bytes()).to_string(), data };
            if parts.length() > 1 {
                parts.push(&",\n".into());
            }
            parts.push(&json(&item).into());
        };
        for ShelfRecord { key, order, manifest, files } in self.inner.shelf.own_records().await? {
            let mut encoded = BTreeMap::new();
            encoded.extend(files.into_iter().map(|(path, bytes)| (path, STANDARD.encode(bytes))));
            let manifest = STANDARD.encode(manifest);
            add("shelf", json(&ShelfData { key, order, manifest, files: encoded }));
        }
        for (path, content) in self.own_files().await? {
            add("file", json(&FileData { path, content: STANDARD.encode(content) }));
        }
        for (name, value) in settings() {
            add("setting", json(&(name, value)));
        }
        self.each_log(|log| add("task", json(&log))).await?;
        parts.push(&"\n]}\n".into());
        Blob::new_with_str_sequence(&parts)
            .map_err(|thrown| Refusal::new(Code::StorageUnavailable, js::message(&thrown)))
    }

    /// Hands over the log of each task, the newest first.
    async fn each_log(&self, mut take: impl FnMut(Vec<Written>)) -> Result<(), Refusal> {
        let Some(journal) = self.inner.journal.database() else { return Ok(()) };
        let mut before = None;
        loop {
            let rows = journal.rows(before, BATCH).await.map_err(unreadable)?;
            let Some(last) = rows.last() else { return Ok(()) };
            before = Some(last.position as u64);
            for row in &rows {
                let log = journal.log(&row.record.address).await.map_err(unreadable)?;
                take(log.into_iter().map(|Draft { at, event }| Written { at, event }).collect());
            }
        }
    }

    /// All files of the page's own folder.
    async fn own_files(&self) -> Result<Vec<(String, Vec<u8>)>, Refusal> {
        let (folders, root) = (&self.inner.folders, own());
        let (mut files, mut pending) = (Vec::new(), vec![String::new()]);
        while let Some(folder) = pending.pop() {
            for entry in folders.entries(&root, &folder).await? {
                if entry.size.is_some() {
                    files.push((
                        entry.path.clone(),
                        pick::read(&folders.file(&root, &entry.path).await?).await?,
                    ));
                } else {
                    pending.push(entry.path);
                }
            }
        }
        Ok(files)
    }

    /// Takes over what a page exported, once all of it was checked.
    ///
    /// # Errors
    /// [`Code::OverBudget`], [`Code::InvalidArgument`] for a file of another form, [`Code::DigestMismatch`] for one that
    /// was changed: nothing is taken over then. [`Code::StorageUnavailable`] when there is no room for all of it.
    pub async fn import(&self, file: File) -> Result<Imported, Refusal> {
        let bytes = file.size() as u64;
        if bytes > MAX_BYTES {
            let why = format!("the file has {bytes} bytes; at most {MAX_BYTES} are read");
            return Err(Refusal::new(Code::OverBudget, why));
        }
        let export: Export = read(&String::from_utf8_lossy(&pick::read(&file).await?))?;
        if export.format != FORMAT {
            return Err(invalid(&format!("the format {:?} is not {FORMAT}", cut(&export.format, 60))));
        }
        let checked = export.items.iter().enumerate().map(|(at, item)| item.check(at));
        // The newest task stands first, so the oldest is taken over first and gets the least position.
        let checked = checked.rev().collect::<Result<Vec<_>, _>>()?;
        let mut imported = Imported::default();
        for item in checked {
            let (taken, count) = match item {
                Checked::Shelf(shelf) => (self.inner.shelf.take_over(&shelf).await?, &mut imported.shelves),
                Checked::File(path, bytes) => (self.take_file(&path, &bytes).await?, &mut imported.files),
                Checked::Task(record, log) => (self.take_task(*record, &log).await?, &mut imported.tasks),
                Checked::Setting(name, value) => {
                    set(&name, &value);
                    continue;
                }
            };
            *(if taken { count } else { &mut imported.skipped }) += 1;
        }
        self.many_changed();
        Ok(imported)
    }

    async fn take_file(&self, path: &str, bytes: &[u8]) -> Result<bool, Refusal> {
        let (folders, root) = (&self.inner.folders, own());
        match folders.file(&root, path).await {
            Ok(_) => Ok(false),
            Err(refusal) if refusal.code == Code::FileUnavailable => {
                folders.write(&root, path, bytes).await.map(|()| true)
            }
            Err(refusal) => Err(refusal),
        }
    }

    async fn take_task(&self, record: TaskRecord, log: &[Draft]) -> Result<bool, Refusal> {
        match self.inner.journal.database() {
            Some(journal) => journal.adopt(record, log).await.map_err(unreadable),
            None => Err(Refusal::new(Code::StorageUnavailable, "the browser gives this page no database")),
        }
    }
}

impl Item {
    /// Checks the digest, then the form.
    fn check(&self, at: usize) -> Result<Checked, Refusal> {
        let found = Digest::of(self.data.as_bytes()).to_string();
        if found != self.sha256 {
            let (kind, told) = (cut(&self.kind, 20), cut(&self.sha256, 64));
            let why = format!("item {at} ({kind}) has the digest {found}; the file says {told}");
            return Err(Refusal::new(Code::DigestMismatch, why));
        }
        match &*self.kind {
            "shelf" => read::<ShelfData>(&self.data)?.check(),
            "task" => check_log(read(&self.data)?),
            "file" => {
                let FileData { path, content } = read(&self.data)?;
                let path = toolshelf_core::root::file_in_root(&path)?;
                Ok(Checked::File(path, decoded(&content)?))
            }
            "setting" => {
                let (name, value): (String, String) = read(&self.data)?;
                if !name.starts_with(SETTINGS) {
                    return Err(invalid(&format!("{:?} is no setting of the page", cut(&name, 60))));
                }
                Ok(Checked::Setting(name, value))
            }
            kind => Err(invalid(&format!("item {at} is of the unknown kind {:?}", cut(kind, 20)))),
        }
    }
}

impl ShelfData {
    fn check(self) -> Result<Checked, Refusal> {
        let Self { key, order, manifest, files } = self;
        if !key.starts_with("own/") {
            return Err(invalid(&format!("{:?} is no shelf that a person added", cut(&key, 60))));
        }
        let manifest = decoded(&manifest)?;
        Manifest::read(&manifest)?;
        let mut read = BTreeMap::new();
        for (path, content) in files {
            read.insert(path, decoded(&content)?);
        }
        Ok(Checked::Shelf(ShelfRecord { key, order, manifest, files: read }))
    }
}

/// A log is taken when it reduces to a record.
fn check_log(log: Vec<Written>) -> Result<Checked, Refusal> {
    let created = log.first().and_then(|first| first.event.created.clone());
    let created = created.ok_or_else(|| invalid("a task's log does not begin with its creation"))?;
    Sealed::split(&created.address)?;
    let entry = |(at, written): (usize, &Written)| {
        LogEntry::of(&created, at as u64 + 1, written.at.clone(), written.event.clone())
    };
    let entries: Vec<_> = log.iter().enumerate().map(entry).collect();
    let record = reduce_task(&entries, &created.address)?;
    let record = record.ok_or_else(|| invalid("a task's log is of another task"))?;
    let log = log.into_iter().map(|Written { at, event }| Draft { at, event }).collect();
    Ok(Checked::Task(Box::new(record), log))
}

fn settings() -> Vec<(String, String)> {
    let Some(area) = js::local_storage() else { return Vec::new() };
    let keys = (0..area.length().unwrap_or_default()).filter_map(|index| area.key(index).ok().flatten());
    let keys = keys.filter(|key| key.starts_with(SETTINGS));
    keys.filter_map(|key| Some((key.clone(), area.get_item(&key).ok()??))).collect()
}

/// A choice that was made here stays.
fn set(name: &str, value: &str) {
    if let Some(area) = js::local_storage().filter(|area| matches!(area.get_item(name), Ok(None))) {
        let _ = area.set_item(name, value);
    }
}

fn json(value: &impl Serialize) -> String {
    // Nothing here is a map whose keys are no texts.
    serde_json::to_string(value).unwrap_or_default()
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, Refusal> {
    serde_json::from_slice(text.as_bytes()).map_err(|err| invalid(&cut(&err.to_string(), 120)))
}

fn decoded(text: &str) -> Result<Vec<u8>, Refusal> {
    STANDARD.decode(text).map_err(|err| invalid(&err.to_string()))
}

fn invalid(why: &str) -> Refusal {
    Refusal::new(Code::InvalidArgument, format!("this is no file that Toolshelf exported: {why}"))
}
