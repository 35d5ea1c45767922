//! A folder of the browser's file system: the private one of the origin, or one that a person picked.

use js_sys::{Promise, Uint8Array};
use toolshelf_core::refusal::{Code, Refusal, cut};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::File;

use super::folders::Entry;
use crate::js;

/// Most entries of one folder that are looked at.
const MAX_ENTRIES: usize = 2_000;

/// A `FileSystemDirectoryHandle`.
#[derive(Debug, Clone)]
pub(super) struct Directory(pub(super) JsValue);

/// What went wrong in a directory.
pub(super) enum Fault {
    /// The root itself is not there any more.
    RootGone,
    /// Anything else, with the path.
    Other(String),
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::RootGone => {
                let why = "the folder was moved or deleted, or may not be used any more";
                Self::new(Code::TaskRootUnavailable, why)
            }
            Fault::Other(why) => Self::new(Code::FileUnavailable, why),
        }
    }
}

impl Directory {
    /// The private file system of this origin; `None` where the browser gives none (a page opened from disk).
    pub(super) async fn private() -> Option<Self> {
        let storage = js::get(&js::global("navigator"), "storage");
        js::call_async(&storage, "getDirectory", &[]).await.ok().map(Self)
    }

    /// Whether the directory is there.
    pub(super) async fn exists(&self) -> bool {
        let walk = async { js::call_async(&js::call(&self.0, "values", &[])?, "next", &[]).await };
        walk.await.is_ok()
    }

    /// The directory at `path` below this one; `""` is this one.
    pub(super) async fn below(&self, path: &str, create: bool) -> Result<Self, Fault> {
        let mut directory = self.0.clone();
        let options: JsValue = js::object(&[("create", create.into())]).into();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            let found =
                js::call_async(&directory, "getDirectoryHandle", &[part.into(), options.clone()]).await;
            directory = match found {
                Ok(found) => found,
                Err(thrown) => return Err(self.fault(path, &thrown).await),
            };
        }
        Ok(Self(directory))
    }

    /// The file at `path`.
    pub(super) async fn file(&self, path: &str) -> Result<File, Fault> {
        let (folder, name) = split(path);
        let directory = self.below(folder, false).await?;
        let read = async {
            let handle = js::call_async(&directory.0, "getFileHandle", &[name.into()]).await?;
            js::call_async(&handle, "getFile", &[]).await
        };
        match read.await {
            Ok(file) => Ok(file.unchecked_into()),
            Err(thrown) => Err(self.fault(path, &thrown).await),
        }
    }

    /// Writes the file at `path`, and the folders above it. The old file stays until the new one is whole.
    pub(super) async fn write(&self, path: &str, content: &JsValue) -> Result<(), Fault> {
        let (folder, name) = split(path);
        let directory = self.below(folder, true).await?;
        let options = js::object(&[("create", true.into())]).into();
        let write = async {
            let handle = js::call_async(&directory.0, "getFileHandle", &[name.into(), options]).await?;
            let stream = js::call_async(&handle, "createWritable", &[]).await?;
            if let Err(thrown) = js::call_async(&stream, "write", std::slice::from_ref(content)).await {
                let _ = js::call_async(&stream, "abort", &[]).await;
                return Err(thrown);
            }
            js::call_async(&stream, "close", &[]).await
        };
        match write.await {
            Ok(_) => Ok(()),
            Err(thrown) => Err(self.fault(path, &thrown).await),
        }
    }

    /// Deletes a file or a whole folder.
    pub(super) async fn delete(&self, path: &str) -> Result<(), Fault> {
        let (folder, name) = split(path);
        let directory = self.below(folder, false).await?;
        let options = js::object(&[("recursive", true.into())]).into();
        match js::call_async(&directory.0, "removeEntry", &[name.into(), options]).await {
            Ok(_) => Ok(()),
            Err(thrown) => Err(self.fault(path, &thrown).await),
        }
    }

    /// What is in the folder at `path`, in no order.
    pub(super) async fn entries(&self, path: &str) -> Result<Vec<Entry>, Fault> {
        let directory = self.below(path, false).await?;
        let mut entries = Vec::new();
        let walk = async {
            let values = js::call(&directory.0, "values", &[])?;
            while entries.len() < MAX_ENTRIES {
                let next = js::call_async(&values, "next", &[]).await?;
                if js::get(&next, "done").is_truthy() {
                    break;
                }
                let handle = js::get(&next, "value");
                let name = js::get(&handle, "name").as_string().unwrap_or_default();
                let is_file = js::get(&handle, "kind").as_string().as_deref() == Some("file");
                let file: Option<Promise> = is_file
                    .then(|| js::call(&handle, "getFile", &[]))
                    .transpose()?
                    .map(JsCast::unchecked_into);
                let size = match file {
                    // A file that is gone by now has no size, and no place in the list.
                    Some(file) => match JsFuture::from(file).await {
                        Ok(file) => Some(js::get(&file, "size").as_f64().unwrap_or_default() as u64),
                        Err(_) => continue,
                    },
                    None => None,
                };
                entries.push(Entry::at(path, name, size));
            }
            Ok::<_, JsValue>(())
        };
        match walk.await {
            Ok(()) => Ok(entries),
            Err(thrown) => Err(self.fault(path, &thrown).await),
        }
    }

    /// Names what was thrown. A root that cannot be read any more is the reason, whatever was asked of it.
    async fn fault(&self, path: &str, thrown: &JsValue) -> Fault {
        let name = js::error_name(thrown);
        if matches!(&*name, "NotFoundError" | "NotAllowedError" | "NotReadableError") && !self.exists().await
        {
            return Fault::RootGone;
        }
        let path = cut(path, 120);
        Fault::Other(match &*name {
            "NotFoundError" => format!("{path:?} is not in the folder"),
            "TypeMismatchError" => {
                format!("{path:?} is a file where a folder is needed, or the other way round")
            }
            "QuotaExceededError" => format!("there is no room to write {path:?}"),
            _ => format!("{path:?}: {}", js::message(thrown)),
        })
    }
}

/// The folder and the name of a path.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Bytes as a stream takes them.
pub(super) fn content(bytes: &[u8]) -> JsValue {
    Uint8Array::from(bytes).into()
}
