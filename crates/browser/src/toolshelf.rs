//! The shelf of this tab, as the page and the console use it.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::rc::{Rc, Weak};

use futures::FutureExt as _;
use gloo_timers::callback::Timeout;
use toolshelf_core::abi::Abi;
use toolshelf_core::call::{Answer, Timing};
use toolshelf_core::limits::{MANIFEST_MAX_BYTES, WASM_MODULE_MAX_BYTES};
use toolshelf_core::live::CallOrigin;
use toolshelf_core::manifest::{MANIFEST_FILE, Manifest, contained_path};
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::shelf::{FileFault, Hashed, Shelf, Tool};
use toolshelf_host::gate::Stats;
use toolshelf_host::{Clock as _, Reading, ShelfHost, admit_all};
use wasm_bindgen::prelude::*;
use web_sys::{BroadcastChannel, MessageEvent};

use crate::builtin::{self, BUILTIN};
use crate::clock::PageClock;
use crate::executor::WorkerExecutor;
use crate::listeners::Listeners;
use crate::pick::{self, PickedFile};
use crate::storage::{ShelfRecord, Storage};

/// Name of the channel on which tabs tell each other that the shelves changed.
const CHANNEL: &str = "toolshelf-shelves";

/// The shelf of this tab. Clones share it.
#[derive(Clone)]
pub struct Toolshelf {
    inner: Rc<Inner>,
}

struct Inner {
    host: ShelfHost<Storage, WorkerExecutor, PageClock>,
    clock: PageClock,
    known: RefCell<Vec<(String, String, Abi)>>,
    call_listeners: Listeners<CallEvent>,
    change_listeners: Listeners<()>,
    channel: Option<BroadcastChannel>,
    _on_message: Closure<dyn FnMut(MessageEvent)>,
}

/// A call that ended, whoever made it.
#[derive(Debug, Clone)]
pub struct CallEvent {
    /// The tool's id.
    pub tool: String,
    /// When it ended, in milliseconds since 1970.
    pub at_ms: f64,
    /// How long it took, in milliseconds.
    pub duration_ms: f64,
    /// How it ended: where the time of an answer went, or the refusal.
    pub result: Result<Timing, Refusal>,
    /// Where it came from, if not from the page itself.
    pub from: Option<CallOrigin>,
}

/// A shelf that was added.
#[derive(Debug, Clone)]
pub struct Added {
    /// Its key.
    pub key: String,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The verdict for each entry.
    pub tools: Vec<Tool>,
    /// How many tools joined the shelf; with 0 nothing was stored.
    pub stored: usize,
    /// The shelf of the same name that was there before.
    pub replaced: Option<Removed>,
}

/// A shelf that was removed, and can be put back.
#[derive(Debug, Clone)]
pub struct Removed {
    /// Its name.
    pub name: String,
    record: ShelfRecord,
}

impl Toolshelf {
    /// Opens the storage and stores the built-in shelf where it is missing or of another version of the page.
    pub async fn open() -> Self {
        let shelf = Self::over(Storage::open().await);
        // A storage that cannot be written shows when the shelves are read.
        let _ = shelf.seed_builtin().await;
        shelf
    }

    /// A shelf over `storage`, which may be empty.
    #[must_use]
    pub fn over(storage: Storage) -> Self {
        let channel = storage.persistent().then(|| BroadcastChannel::new(CHANNEL).ok()).flatten();
        let inner = Rc::new_cyclic(|inner: &Weak<Inner>| {
            let inner = inner.clone();
            let on_message = Closure::new(move |_: MessageEvent| {
                if let Some(inner) = inner.upgrade() {
                    inner.heard_of_change();
                }
            });
            if let Some(channel) = &channel {
                channel.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
            }
            let clock = PageClock::new();
            Inner {
                host: ShelfHost::new(storage, WorkerExecutor::new(), clock.clone()),
                clock,
                known: RefCell::default(),
                call_listeners: Listeners::default(),
                change_listeners: Listeners::default(),
                channel,
                _on_message: on_message,
            }
        });
        Self { inner }
    }

    async fn seed_builtin(&self) -> Result<(), Refusal> {
        let storage = self.storage();
        let shipped = builtin::record();
        // Only another version of the page may replace what is stored: a changed module must stay there to be refused.
        let stored = storage.get(BUILTIN).await?;
        if stored.is_some_and(|stored| stored.manifest == shipped.manifest) {
            return Ok(());
        }
        storage.put(&shipped).await
    }

    fn storage(&self) -> &Storage {
        self.inner.host.store()
    }

    /// Whether added shelves are there after a reload.
    #[must_use]
    pub fn persistent(&self) -> bool {
        self.storage().persistent()
    }

    /// What goes on at the gate in front of the workers.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.inner.host.stats()
    }

    /// Reads and judges all shelves again.
    ///
    /// # Errors
    /// [`Code::StorageUnavailable`].
    pub async fn read(&self) -> Result<Vec<Reading>, Refusal> {
        // Boxed, so that this large future is in the page once and not in each of its callers.
        let readings = self.inner.host.read().boxed_local().await?;
        let tools =
            readings.iter().filter_map(|reading| reading.shelf.as_ref().ok()).flat_map(|shelf| &shelf.tools);
        let known = |tool: &Tool| Some((tool.id.clone(), tool.description.clone(), tool.driven()?.1));
        *self.inner.known.borrow_mut() = tools.filter_map(known).collect();
        Ok(readings)
    }

    /// The tools that could be called when the shelves were last read: id, description and ABI. Every call reads again.
    #[must_use]
    pub fn known_tools(&self) -> Vec<(String, String, Abi)> {
        self.inner.known.borrow().clone()
    }

    /// The ABI of such a tool.
    #[must_use]
    pub fn known_abi(&self, id: &str) -> Option<Abi> {
        self.inner.known.borrow().iter().find(|(known, ..)| known == id).map(|(.., abi)| *abi)
    }

    /// Calls a tool. Dropping the future ends its worker.
    ///
    /// # Errors
    /// The refusal that names what ended the call.
    pub async fn call(&self, id: &str, arguments: Vec<(String, Vec<u8>)>) -> Result<Answer, Refusal> {
        self.call_from(id, arguments, None).await
    }

    /// [`call`](Self::call), made by somebody else than the page.
    ///
    /// # Errors
    /// As there.
    pub async fn call_from(
        &self,
        id: &str,
        arguments: Vec<(String, Vec<u8>)>,
        from: Option<CallOrigin>,
    ) -> Result<Answer, Refusal> {
        let start = self.inner.clock.now_ms();
        let mut arguments: HashMap<_, _> = arguments.into_iter().collect();
        let result = self.inner.host.call(id, |name| arguments.remove(name)).boxed_local().await;
        let duration_ms =
            result.as_ref().map_or_else(|_| self.inner.clock.now_ms() - start, |answer| answer.duration_ms);
        let event = CallEvent {
            tool: id.to_owned(),
            at_ms: js_sys::Date::now(),
            duration_ms,
            result: result.as_ref().map(|answer| answer.timing).map_err(Clone::clone),
            from,
        };
        // In a moment of its own: the caller does not wait for those who listen.
        let inner = Rc::clone(&self.inner);
        Timeout::new(0, move || inner.call_listeners.tell(&event)).forget();
        result
    }

    /// Adds the shelf in `files`: judges every entry of its manifest and stores the tools that are admitted. A shelf of
    /// the same name is replaced.
    ///
    /// # Errors
    /// The refusal of the whole: no manifest, none that can be read, or no place to store it.
    pub async fn add(&self, files: Vec<PickedFile>) -> Result<Added, Refusal> {
        let folder = Folder::of(files)?;
        let manifest = folder.manifest().await?;
        let parsed = Manifest::read(&manifest)?;
        let name = parsed.name.clone().unwrap_or_else(|| folder.name.clone());
        let version = parsed.version.clone().unwrap_or_else(|| "0".to_owned());
        let key = format!("own/{name}");

        let taken = self.ids_taken_by_others(&key).await?;
        let read = RefCell::new(BTreeMap::new());
        let tools = admit_all(&parsed, &taken, async |path: &str| {
            let bytes = folder.module(path).await?;
            read.borrow_mut().insert(path.to_owned(), bytes.clone());
            Ok(Hashed::new(bytes))
        })
        .await;

        let stored = tools.iter().filter(|tool| tool.verdict.is_ok()).count();
        let mut replaced = None;
        if stored > 0 {
            let admitted = tools.iter().filter(|tool| tool.verdict.is_ok());
            let kept: Vec<_> = admitted.filter_map(|tool| contained_path(&tool.wasm_path).ok()).collect();
            let mut files = read.into_inner();
            files.retain(|path, _| kept.contains(path));
            replaced = self.storage().get(&key).await?;
            let order = replaced.as_ref().map_or_else(js_sys::Date::now, |record| record.order);
            let manifest = parsed.admitted_only(&name, &version, &tools);
            self.storage().put(&ShelfRecord { key: key.clone(), order, manifest, files }).await?;
            self.changed();
        }
        let replaced = replaced.map(|record| Removed { name: name.clone(), record });
        Ok(Added { key, name, version, tools, stored, replaced })
    }

    /// Removes a shelf that a person added.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] for the built-in shelf and for one that is not there.
    pub async fn remove(&self, key: &str) -> Result<Removed, Refusal> {
        let refuse = |why: &str| Err(Refusal::new(Code::InvalidArgument, format!("the shelf {key:?} {why}")));
        if key == BUILTIN {
            return refuse("comes with the page and cannot be removed");
        }
        let Some(record) = self.storage().get(key).await? else { return refuse("is not there") };
        self.storage().delete(key).await?;
        self.changed();
        Ok(Removed { name: key.trim_start_matches("own/").to_owned(), record })
    }

    /// Puts a removed shelf back.
    ///
    /// # Errors
    /// [`Code::StorageUnavailable`].
    pub async fn restore(&self, removed: Removed) -> Result<(), Refusal> {
        self.storage().put(&removed.record).await?;
        self.changed();
        Ok(())
    }

    /// The shelves that a person added, whole.
    pub(crate) async fn own_records(&self) -> Result<Vec<ShelfRecord>, Refusal> {
        let mut records = Vec::new();
        for (key, _) in self.storage().keys().await? {
            if key != BUILTIN {
                records.extend(self.storage().get(&key).await?);
            }
        }
        Ok(records)
    }

    /// Stores a shelf of another browser; `false` when one of its key is there already.
    pub(crate) async fn take_over(&self, record: &ShelfRecord) -> Result<bool, Refusal> {
        if self.storage().get(&record.key).await?.is_some() {
            return Ok(false);
        }
        self.storage().put(record).await?;
        self.changed();
        Ok(true)
    }

    /// Writes the files of the built-in shelf anew.
    ///
    /// # Errors
    /// [`Code::StorageUnavailable`].
    pub async fn reset_builtin(&self) -> Result<(), Refusal> {
        self.storage().put(&builtin::record()).await?;
        self.changed();
        Ok(())
    }

    /// Hears of the end of every call, those made from the console too.
    pub fn on_call(&self, listener: impl Fn(&CallEvent) + 'static) {
        self.inner.call_listeners.add(listener);
    }

    /// Hears of every change of the shelves, in this tab or in another.
    pub fn on_change(&self, listener: impl Fn() + 'static) {
        self.inner.change_listeners.add(move |()| listener());
    }

    fn changed(&self) {
        if let Some(channel) = &self.inner.channel {
            // A tab that misses this message still refuses what is gone: every call reads from the storage.
            let _ = channel.post_message(&JsValue::NULL);
        }
        self.inner.heard_of_change();
    }

    async fn ids_taken_by_others(&self, key: &str) -> Result<HashMap<String, String>, Refusal> {
        let others = self.read().await?.into_iter().filter(|reading| reading.key != key);
        let shelves: Vec<_> = others.filter_map(|reading| reading.shelf.ok()).collect();
        Ok(shelves.iter().flat_map(Shelf::held_ids).collect())
    }
}

impl Inner {
    fn heard_of_change(&self) {
        self.host.forget();
        self.change_listeners.tell(&());
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(channel) = &self.channel {
            channel.close();
        }
    }
}

impl fmt::Debug for Toolshelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Toolshelf").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// The folder that holds the manifest, among the files that were picked.
struct Folder {
    name: String,
    files: BTreeMap<String, web_sys::File>,
}

impl Folder {
    /// The manifest nearest to the top decides which folder is the shelf.
    fn of(files: Vec<PickedFile>) -> Result<Self, Refusal> {
        let depth = |path: &str| path.matches('/').count();
        let named = |path: &str| path.rsplit('/').next() == Some(MANIFEST_FILE);
        let manifests = || files.iter().map(|picked| &*picked.path).filter(|path| named(path));
        let Some(manifest) = manifests().min_by_key(|path| depth(path)) else {
            let why = format!("there is no {MANIFEST_FILE} among the {} files", files.len());
            return Err(Refusal::new(Code::ShelfUnavailable, why));
        };
        let mut others = manifests().filter(|path| *path != manifest && depth(path) == depth(manifest));
        if let Some(other) = others.next() {
            let why = format!("there are two shelves, {manifest:?} and {other:?}; add one at a time");
            return Err(Refusal::new(Code::InvalidArgument, why));
        }
        let base = manifest[..manifest.len() - MANIFEST_FILE.len()].to_owned();
        let name = base.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty());
        let name = name.unwrap_or("my-shelf").to_owned();
        let inside = files
            .into_iter()
            .filter_map(|picked| Some((picked.path.strip_prefix(&base)?.to_owned(), picked.file)));
        let mut files = BTreeMap::new();
        files.extend(inside);
        Ok(Self { name, files })
    }

    async fn manifest(&self) -> Result<Vec<u8>, Refusal> {
        let file = &self.files[MANIFEST_FILE];
        if file.size() > MANIFEST_MAX_BYTES as f64 {
            return Err(toolshelf_core::manifest::ManifestFault::TooLarge(file.size() as u64).into());
        }
        pick::read(file).await
    }

    async fn module(&self, path: &str) -> Result<Vec<u8>, FileFault> {
        let file = self.files.get(path).ok_or(FileFault::Missing)?;
        if file.size() > WASM_MODULE_MAX_BYTES as f64 {
            return Err(FileFault::TooLarge(file.size() as u64));
        }
        pick::read(file).await.map_err(|refusal| FileFault::Unreadable(refusal.why))
    }
}
