//! Files that a person picked or dropped.

use std::future::Future;

use futures::channel::oneshot;
use js_sys::{Array, Uint8Array};
use toolshelf_core::refusal::{Code, Refusal};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    Blob, DataTransfer, File, FileSystemDirectoryEntry, FileSystemDirectoryReader, FileSystemEntry,
    FileSystemFileEntry, HtmlInputElement,
};

use crate::js;

/// Most files that are looked at in a dropped folder. A shelf needs few; a home folder dropped by mistake has many.
const MAX_FILES: usize = 4_096;
/// Deepest folder that is walked into.
const MAX_DEPTH: usize = 16;

/// A file, and where it lies in what was picked, for example `my-shelf/assets/hash.wasm`.
#[derive(Debug, Clone)]
pub struct PickedFile {
    /// The path, with `/` between its parts.
    pub path: String,
    /// The file. It is not read yet.
    pub file: File,
}

/// The files of an input element; with `webkitdirectory` they carry their paths.
#[must_use]
pub fn from_input(input: &HtmlInputElement) -> Vec<PickedFile> {
    let Some(list) = input.files() else { return Vec::new() };
    (0..list.length()).filter_map(|index| list.item(index)).map(picked).collect()
}

/// A file under the path that the browser gives it.
#[must_use]
pub fn picked(file: File) -> PickedFile {
    let path = js::get(&file, "webkitRelativePath").as_string().filter(|path| !path.is_empty());
    PickedFile { path: path.unwrap_or_else(|| file.name()), file }
}

/// The files of a drop, those in dropped folders too. The entries are taken when this is called, since the browser
/// empties the transfer when the event is over; the folders are walked when the future runs.
pub fn from_drop(transfer: &DataTransfer) -> impl Future<Output = Vec<PickedFile>> + use<> {
    let items = transfer.items();
    let entries: Vec<_> = (0..items.length())
        .filter_map(|index| items.get(index))
        .filter_map(|item| item.webkit_get_as_entry().ok().flatten())
        .collect();
    walk(entries)
}

async fn walk(entries: Vec<FileSystemEntry>) -> Vec<PickedFile> {
    let mut files = Vec::new();
    let mut pending: Vec<_> = entries.into_iter().map(|entry| (entry, 0)).collect();
    while let Some((entry, depth)) = pending.pop() {
        if files.len() >= MAX_FILES {
            break;
        }
        if entry.is_file() {
            if let Some(file) = file_of(entry.unchecked_ref()).await {
                let path = entry.full_path().trim_start_matches('/').to_owned();
                files.push(PickedFile { path, file });
            }
        } else if depth < MAX_DEPTH {
            let reader = entry.unchecked_ref::<FileSystemDirectoryEntry>().create_reader();
            pending.extend(children(&reader).await.into_iter().map(|child| (child, depth + 1)));
        }
    }
    files
}

/// The reader hands out about a hundred entries a time, and none when it is done.
async fn children(reader: &FileSystemDirectoryReader) -> Vec<FileSystemEntry> {
    let mut entries = Vec::new();
    while entries.len() < MAX_FILES {
        let (found, failed) = callbacks();
        let asked = reader.read_entries_with_callback_and_callback(found.function(), failed.function());
        let Some(batch) = asked.ok().map(|()| race(found, failed)) else { break };
        let Some(batch) = batch.await.map(|batch| Array::from(&batch)).filter(|batch| batch.length() > 0)
        else {
            break;
        };
        entries.extend(batch.iter().map(JsCast::unchecked_into));
    }
    entries
}

async fn file_of(entry: &FileSystemFileEntry) -> Option<File> {
    let (found, failed) = callbacks();
    entry.file_with_callback_and_callback(found.function(), failed.function());
    race(found, failed).await?.dyn_into().ok()
}

/// A JavaScript callback that hands over the one value that it is called with.
struct Callback {
    function: Closure<dyn FnMut(JsValue)>,
    value: oneshot::Receiver<JsValue>,
}

impl Callback {
    fn new() -> Self {
        let (sender, value) = oneshot::channel();
        let mut sender = Some(sender);
        let function = Closure::new(move |value| {
            if let Some(sender) = sender.take() {
                let _ = sender.send(value);
            }
        });
        Self { function, value }
    }

    fn function(&self) -> &js_sys::Function {
        self.function.as_ref().unchecked_ref()
    }
}

fn callbacks() -> (Callback, Callback) {
    (Callback::new(), Callback::new())
}

async fn race(found: Callback, failed: Callback) -> Option<JsValue> {
    let Callback { function: _found, value: found } = found;
    let Callback { function: _failed, value: failed } = failed;
    match futures::future::select(found, failed).await {
        futures::future::Either::Left((value, _)) => value.ok(),
        futures::future::Either::Right(_) => None,
    }
}

/// Reads a whole file. Its size is to be checked before.
///
/// # Errors
/// [`Code::InvalidArgument`] when the browser cannot read it: moved, deleted, or changed since it was picked.
pub async fn read(file: &Blob) -> Result<Vec<u8>, Refusal> {
    match JsFuture::from(file.array_buffer()).await {
        Ok(buffer) => Ok(Uint8Array::new(&buffer).to_vec()),
        Err(thrown) => {
            let why = format!("the file cannot be read: {}; pick it again", js::message(&thrown));
            Err(Refusal::new(Code::InvalidArgument, why))
        }
    }
}
