//! The folders that tasks can work in: the page's own, and those that a person picked.
//!
//! A picked folder's handle is kept in IndexedDB; after a restart the browser wants to ask the person again.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use js_sys::{Array, Uint8Array};
use toolshelf_core::RootDescriptor;
use toolshelf_core::abi::Input;
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_core::root::file_in_root;
use toolshelf_host::task_ports::{Roots, SelectedRoot};
use wasm_bindgen::{JsCast as _, JsValue};
use web_sys::{Blob, File};

use super::directory::{Directory, Fault, content};
use super::flat::Flat;
use super::picked::{PickedFolder, PickedFolders};
use super::store::TaskStore;
use super::unreadable;
use crate::listeners::Listeners;
use crate::{PickedFile, js, pick};

/// The page's own folder, below the origin's private file system.
pub const OWN_PATH: &str = "v1/tasks";
/// Where the choice of the folder for new tasks is kept: beside the page's other settings.
const SELECTED: &str = "toolshelf.root";

/// The folders. Clones share them.
#[derive(Clone)]
pub struct Folders {
    inner: Rc<Inner>,
}

struct Inner {
    picked: PickedFolders,
    flat: Flat,
    private: Option<Directory>,
    selected: RefCell<RootDescriptor>,
    listeners: Listeners<()>,
}

/// One folder that tasks can work in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// The root.
    pub root: RootDescriptor,
    /// What a person calls it.
    pub label: String,
    /// Whether it can be used now.
    pub access: Access,
    /// Whether new tasks get it.
    pub selected: bool,
    /// Where its files are.
    pub stored: Stored,
}

/// Where the files of a folder are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// In the origin private file system.
    Private,
    /// In IndexedDB, where the browser gives no private file system (a page opened from disk).
    Database,
    /// In the memory of this tab.
    Memory,
    /// On the person's disk.
    Disk,
}

/// Whether a folder can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It can.
    Granted,
    /// The browser wants to ask the person again.
    Ask,
    /// It was refused.
    Denied,
    /// It was moved or deleted.
    Gone,
}

/// A file or folder inside a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its path in the root.
    pub path: String,
    /// Its size in bytes; `None` for a folder.
    pub size: Option<u64>,
}

impl Entry {
    pub(super) fn at(folder: &str, name: String, size: Option<u64>) -> Self {
        let path = if folder.is_empty() { name.clone() } else { [folder, "/", &name].concat() };
        Self { name, path, size }
    }
}

/// Where a root is.
enum Place {
    Directory(Directory),
    Flat(Flat),
}

impl Folders {
    pub(crate) async fn open(store: Option<Rc<TaskStore>>) -> Self {
        let flat = store.clone().map_or_else(|| Flat::Memory(Rc::default()), Flat::Database);
        let selected = setting()
            .and_then(|text| RootDescriptor::read(&serde_json::from_slice(text.as_bytes()).ok()?).ok());
        let inner = Inner {
            picked: PickedFolders { store },
            flat,
            private: Directory::private().await,
            selected: RefCell::new(selected.unwrap_or_else(own)),
            listeners: Listeners::default(),
        };
        Self { inner: Rc::new(inner) }
    }

    /// Whether folders of the disk can be picked here.
    #[must_use]
    pub fn can_pick(&self) -> bool {
        self.inner.picked.store.is_some() && js::global("showDirectoryPicker").is_function()
    }

    /// All folders, the page's own first.
    ///
    /// # Errors
    /// [`Code::StorageUnavailable`].
    pub async fn list(&self) -> Result<Vec<Folder>, Refusal> {
        let stored = match (&self.inner.private, &self.inner.flat) {
            (Some(_), _) => Stored::Private,
            (None, Flat::Database(_)) => Stored::Database,
            (None, Flat::Memory(_)) => Stored::Memory,
        };
        let mut folders = vec![self.folder(own(), "This page's files".to_owned(), Access::Granted, stored)];
        for picked in self.inner.picked.all().await? {
            let access = picked.access().await;
            folders.push(self.picked(&picked, access));
        }
        Ok(folders)
    }

    fn picked(&self, picked: &PickedFolder, access: Access) -> Folder {
        self.folder(picked.root(), picked.label.clone(), access, Stored::Disk)
    }

    fn folder(&self, root: RootDescriptor, label: String, access: Access, stored: Stored) -> Folder {
        let selected = same(&root, &self.inner.selected.borrow());
        Folder { root, label, access, selected, stored }
    }

    /// Lets the person pick a folder of the disk, and keeps its handle; `None` when they changed their mind. Must be
    /// called in a person's click.
    ///
    /// # Errors
    /// [`Code::TaskRootUnavailable`] when the browser gives none, [`Code::StorageUnavailable`] when it cannot be kept.
    pub async fn pick(&self) -> Result<Option<Folder>, Refusal> {
        let options = js::object(&[("mode", "readwrite".into()), ("id", "toolshelf".into())]);
        let picked = js::call_async(&js_sys::global(), "showDirectoryPicker", &[options.into()]).await;
        match picked {
            Ok(handle) => {
                let kept = self.inner.picked.keep(handle).await?;
                self.changed();
                Ok(Some(self.picked(&kept, Access::Granted)))
            }
            Err(thrown) if js::error_name(&thrown) == "AbortError" => Ok(None),
            Err(thrown) => Err(Refusal::new(Code::TaskRootUnavailable, js::message(&thrown))),
        }
    }

    /// Asks the person for a picked folder again. Must be called in a person's click.
    ///
    /// # Errors
    /// [`Code::TaskRootUnavailable`] when the folder is not known.
    pub async fn allow(&self, root: &RootDescriptor) -> Result<Access, Refusal> {
        let access = self.inner.picked.find(root).await?.request().await;
        self.changed();
        Ok(access)
    }

    /// Forgets a picked folder. Its files stay on the disk.
    ///
    /// # Errors
    /// [`Code::StorageUnavailable`].
    pub async fn forget(&self, root: &RootDescriptor) -> Result<(), Refusal> {
        let RootDescriptor::Handle { id, .. } = root else {
            return Err(Refusal::new(Code::InvalidArgument, "only a picked folder can be forgotten"));
        };
        self.inner.picked.forget(id).await?;
        if same(root, &self.inner.selected.borrow()) {
            self.select(&own());
        }
        self.changed();
        Ok(())
    }

    /// Gives new tasks this folder.
    pub fn select(&self, root: &RootDescriptor) {
        *self.inner.selected.borrow_mut() = root.clone();
        if let (Some(area), Ok(text)) = (js::local_storage(), serde_json::to_string(root)) {
            // Without room for it, the choice holds until the page is gone.
            let _ = area.set_item(SELECTED, &text);
        }
        self.changed();
    }

    /// What is in `folder` of a root (`""` is the root itself): folders first, then by name.
    ///
    /// # Errors
    /// [`Code::TaskRootUnavailable`] and [`Code::FileUnavailable`].
    pub async fn entries(&self, root: &RootDescriptor, folder: &str) -> Result<Vec<Entry>, Refusal> {
        let folder = if folder.is_empty() { String::new() } else { file_in_root(folder)? };
        let found = match self.place(root).await? {
            Place::Directory(directory) => directory.entries(&folder).await?,
            Place::Flat(flat) => flat.entries(&folder).await.map_err(unreadable)?,
        };
        let mut sorted = BTreeMap::new();
        sorted.extend(found.into_iter().map(|entry| ((entry.size.is_some(), entry.name.clone()), entry)));
        Ok(sorted.into_values().collect())
    }

    /// The file at `path`, for a download.
    ///
    /// # Errors
    /// As [`entries`](Self::entries).
    pub async fn file(&self, root: &RootDescriptor, path: &str) -> Result<Blob, Refusal> {
        let path = file_in_root(path)?;
        match self.place(root).await? {
            Place::Directory(directory) => Ok(directory.file(&path).await?.into()),
            Place::Flat(flat) => {
                let bytes = flat.read(&path).await.map_err(unreadable)?;
                let bytes = bytes.ok_or_else(|| missing(&path))?;
                Blob::new_with_u8_array_sequence(&Array::of1(&bytes))
                    .map_err(|thrown| Refusal::new(Code::FileUnavailable, js::message(&thrown)))
            }
        }
    }

    /// The bytes of the file at `path` for a tool's `input`. One that is larger than that buffer is not read.
    pub(super) async fn read(
        &self,
        root: &RootDescriptor,
        path: &str,
        input: &Input,
    ) -> Result<Vec<u8>, Refusal> {
        let file = self.file(root, path).await?;
        input.check_size(file.size() as u64)?;
        pick::read(&file).await
    }

    /// Writes the file at `path`.
    pub(super) async fn write(&self, root: &RootDescriptor, path: &str, bytes: &[u8]) -> Result<(), Refusal> {
        self.put(root, path, &content(bytes)).await?;
        self.changed();
        Ok(())
    }

    async fn put(&self, root: &RootDescriptor, path: &str, content: &JsValue) -> Result<(), Refusal> {
        let path = file_in_root(path)?;
        match self.place(root).await? {
            Place::Directory(directory) => Ok(directory.write(&path, content).await?),
            Place::Flat(flat) => {
                let bytes = match content.dyn_ref::<Blob>() {
                    Some(blob) => Uint8Array::from(&pick::read(blob).await?[..]),
                    None => content.clone().unchecked_into(),
                };
                flat.write(&path, &bytes).await.map_err(unreadable)
            }
        }
    }

    /// Writes picked files into `folder` of a root, under their paths. Answers how many.
    ///
    /// # Errors
    /// As [`entries`](Self::entries); the files before the one that failed are written.
    pub async fn import(
        &self,
        root: &RootDescriptor,
        folder: &str,
        files: Vec<PickedFile>,
    ) -> Result<usize, Refusal> {
        let count = files.len();
        for PickedFile { path, file } in files {
            let path = Entry::at(folder, path, None).path;
            self.put(root, &path, file.unchecked_ref::<File>()).await?;
        }
        self.changed();
        Ok(count)
    }

    /// Deletes a file or a whole folder.
    ///
    /// # Errors
    /// As [`entries`](Self::entries).
    pub async fn delete(&self, root: &RootDescriptor, path: &str) -> Result<(), Refusal> {
        let path = file_in_root(path)?;
        match self.place(root).await? {
            Place::Directory(directory) => directory.delete(&path).await?,
            Place::Flat(flat) => flat.delete(&path).await.map_err(unreadable)?,
        }
        self.changed();
        Ok(())
    }

    /// Hears of every change of the folders.
    pub fn on_change(&self, listener: impl Fn() + 'static) {
        self.inner.listeners.add(move |()| listener());
    }

    /// Refuses a root that cannot be used now.
    pub(super) async fn check(&self, root: &RootDescriptor) -> Result<(), Refusal> {
        match self.place(root).await? {
            Place::Directory(directory) if !directory.exists().await => Err(Fault::RootGone.into()),
            _ => Ok(()),
        }
    }

    async fn place(&self, root: &RootDescriptor) -> Result<Place, Refusal> {
        match root {
            RootDescriptor::Opfs { path } => match &self.inner.private {
                Some(private) => Ok(Place::Directory(private.below(path, true).await?)),
                None => Ok(Place::Flat(self.inner.flat.clone())),
            },
            RootDescriptor::Handle { label, .. } => {
                let picked = self.inner.picked.find(root).await?;
                match picked.access().await {
                    Access::Granted => Ok(Place::Directory(picked.handle)),
                    Access::Gone => Err(Fault::RootGone.into()),
                    Access::Ask | Access::Denied => {
                        let label = cut(label.as_deref().unwrap_or_default(), 60);
                        let why = format!("the folder {label:?} must be allowed again, under Environments");
                        Err(Refusal::new(Code::TaskRootUnavailable, why))
                    }
                }
            }
            RootDescriptor::Machine { .. } => {
                Err(Refusal::new(Code::TaskRootUnavailable, "a page does not reach a machine's folder"))
            }
        }
    }

    fn changed(&self) {
        self.inner.listeners.tell(&());
    }
}

impl Roots for Folders {
    fn selected(&self) -> Option<SelectedRoot> {
        Some(SelectedRoot { descriptor: self.inner.selected.borrow().clone(), identity: None })
    }
}

impl fmt::Debug for Folders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Folders").field("selected", &self.inner.selected).finish_non_exhaustive()
    }
}

/// The page's own folder.
pub(super) fn own() -> RootDescriptor {
    RootDescriptor::Opfs { path: OWN_PATH.to_owned() }
}

/// A label may change; the folder is the same.
fn same(one: &RootDescriptor, other: &RootDescriptor) -> bool {
    one.is_contained_in(&other.to_string())
}

fn setting() -> Option<String> {
    js::local_storage()?.get_item(SELECTED).ok()?
}

fn missing(path: &str) -> Refusal {
    Refusal::new(Code::FileUnavailable, format!("{:?} is not in the folder", cut(path, 120)))
}
