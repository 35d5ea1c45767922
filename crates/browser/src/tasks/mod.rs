//! Tasks in a browser tab: the engine of `toolshelf-host` over WebCrypto, IndexedDB, Web Locks and the page's folders.
//!
//! | module | idea |
//! |---|---|
//! | [`listing`] | what the page shows of its tasks |
//! | [`folders`] | the folders that tasks work in; over `directory` (the browser's file system), `flat` (IndexedDB) and `picked` |
//! | [`executor`] | tools of the shelf and, through [`model`], the browser's own model |
//! | [`sealer`] | the key that seals addresses |
//! | [`life`] | whether another tab still runs a task |
//! | [`kept`] | where tasks are kept: `journal` in IndexedDB, or memory |
//! | [`store`] | the layout of the database |
//! | [`platform`] | all of it as the ports of the task host |
//! | [`export`] | a person's data in one file |
//! | `clear` | taking tasks out of the journal |
//! | `tabs` | what the tabs of a browser tell each other |
//!
//! Two tabs see the same tasks: whoever writes tells the others on a channel, and each tab runs only what it admitted.

mod clear;
mod directory;
pub mod executor;
pub mod export;
mod flat;
pub mod folders;
mod journal;
pub mod kept;
pub mod life;
pub mod listing;
pub mod model;
mod picked;
pub mod platform;
pub mod sealer;
pub mod store;
mod tabs;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::{Rc, Weak};

use futures::FutureExt as _;
use serde_json::{Value, json};
use toolshelf_core::digest::to_hex;
use toolshelf_core::placement::Placement;
use toolshelf_core::redact::redact;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::task::{TaskState, TaskView};
use toolshelf_host::task_host::{Batch, Listed, Redact};
use toolshelf_host::task_ports::{Roots as _, SelectedRoot};
use toolshelf_host::{Caller, Reply, TaskHost, TaskHostConfig, Wish};
use wasm_bindgen::prelude::*;
use web_sys::MessageEvent;

pub use self::clear::Cleared;
pub use self::export::Imported;
pub use self::folders::{Access, Entry, Folder, Folders, Stored};
pub use self::listing::{Delegation, Detail, Environment, Filter, Moment, Page, Row};

use self::executor::PageExecutor;
use self::kept::PageJournal;
use self::life::PageLife;
pub use self::model::Model;
use self::platform::PagePlatform;
use self::sealer::{WebSealer, random_bytes};
use self::store::TaskStore;
use self::tabs::{Heard, Tabs};
use crate::Toolshelf;
use crate::listeners::Listeners;

/// The agent that stands for the browser's own model.
pub const MODEL_AGENT: &str = "browser-model";
/// Name of the database of tasks.
pub const DATABASE: &str = "toolshelf-tasks";

/// Who delegates from the page: the person in front of it.
const OWNER: &str = "page";

/// So many rows are read at a time where all are gone through.
const BATCH: usize = 200;

type Host = TaskHost<PagePlatform<PageExecutor, Folders>>;

/// The tasks of this tab. Clones share them.
#[derive(Clone)]
pub struct Tasks {
    inner: Rc<Inner>,
}

struct Inner {
    /// The host, or why there can be none.
    host: Result<Host, Refusal>,
    journal: PageJournal,
    folders: Folders,
    shelf: Toolshelf,
    model: Model,
    damaged: RefCell<Vec<String>>,
    listeners: Rc<Listeners<Option<String>>>,
    /// What other tabs have said of the progress of their tasks.
    notes: RefCell<BTreeMap<String, String>>,
    tabs: Tabs,
    _on_message: Closure<dyn FnMut(MessageEvent)>,
}

impl Tasks {
    /// Opens the journal and the key of this page. What is missing shows in [`environment`](Self::environment).
    pub async fn open(shelf: &Toolshelf) -> Self {
        let store = TaskStore::open(DATABASE).await.ok().map(Rc::new);
        let folders = Folders::open(store.clone()).await;
        let listeners: Rc<Listeners<Option<String>>> = Rc::default();
        let tabs = Tabs::open(store.is_some());
        let written = {
            let (tabs, listeners) = (tabs.clone(), Rc::clone(&listeners));
            Rc::new(move |address: &str| {
                tabs.say_written(address);
                listeners.tell(&Some(address.to_owned()));
            })
        };
        let journal = PageJournal::new(store.clone(), written);
        let model = Model::find().await;
        let host = match WebSealer::open(store.as_deref()).await {
            Ok(sealer) => {
                let platform = PagePlatform {
                    sealer,
                    journal: journal.clone(),
                    executor: PageExecutor::new(shelf.clone(), folders.clone(), model),
                    clock: crate::clock::PageClock::new(),
                    life: PageLife::begin(None).await,
                    roots: folders.clone(),
                };
                let scrub: Redact = Rc::new(|text: &str| redact(text).into_owned());
                Ok(TaskHost::new(TaskHostConfig::browser(scrub), platform))
            }
            Err(refusal) => Err(refusal),
        };
        // A shelf that was never read knows no tools; what stands against reading it shows in its own panel.
        if shelf.known_tools().is_empty() {
            let _ = shelf.read().await;
        }
        let inner = Rc::new_cyclic(|inner: &Weak<Inner>| {
            let inner = inner.clone();
            let _on_message = tabs.listen(move |heard| {
                if let Some(inner) = inner.upgrade() {
                    inner.heard(heard);
                }
            });
            let (damaged, notes, shelf) = (RefCell::default(), RefCell::default(), shelf.clone());
            Inner { host, journal, folders, shelf, model, damaged, listeners, notes, tabs, _on_message }
        });
        let tasks = Self { inner };
        tasks.note_damage().await;
        tasks
    }

    /// Whether tasks are there after a reload.
    #[must_use]
    pub fn persistent(&self) -> bool {
        self.inner.journal.database().is_some()
    }

    /// The environment that this page is.
    #[must_use]
    pub fn environment(&self) -> Environment {
        let host = self.inner.host.as_ref();
        Environment {
            key: host.map_or("env_browser_local", |host| &host.config().environment).to_owned(),
            placement: Placement::Browser,
            bounds: Placement::Browser.bounds(),
            active: host.map_or(0, TaskHost::active_tasks),
            persistent: self.persistent(),
            model: self.inner.model.is_there(),
            damaged: self.inner.damaged.borrow().clone(),
            unavailable: self.inner.host.as_ref().err().cloned(),
        }
    }

    /// Delegates a task.
    ///
    /// # Errors
    /// Each refusal of `delegate_task`, and [`Code::TaskRootUnavailable`] for a folder that cannot be used now.
    pub async fn delegate(&self, delegation: Delegation) -> Result<TaskView, Refusal> {
        let Delegation { agent, task, deadline_ms, root } = delegation;
        let selected = self.inner.folders.selected();
        let root = root.or_else(|| selected.map(|selected| selected.descriptor));
        let root = root.ok_or_else(|| Refusal::new(Code::TaskRootUnavailable, "no folder is selected"))?;
        self.inner.folders.check(&root).await?;
        let root = Some(SelectedRoot { descriptor: root, identity: None });
        let call_id = to_hex(&random_bytes());
        let caller = Caller { wish: Wish { root, deadline_ms }, ..Caller::new(OWNER, call_id) };
        match self.call("delegate_task", json!({ "agent": agent, "task": task }), caller).await? {
            Reply::Delegated { task, .. } => Ok(task),
            Reply::Status { .. } | Reply::Cancelled { .. } => Err(unexpected()),
        }
    }

    /// Asks a task to stop; answers its state, and whether it was seen to end.
    ///
    /// # Errors
    /// Each refusal of `cancel_task`.
    pub async fn cancel(&self, address: &str) -> Result<(TaskState, bool), Refusal> {
        match self.call("cancel_task", json!({ "address": address }), Caller::new(OWNER, "")).await? {
            Reply::Cancelled { state, observed } => Ok((state, observed)),
            Reply::Status { .. } | Reply::Delegated { .. } => Err(unexpected()),
        }
    }

    /// Does one of the three calls for somebody else than the page. A delegation gets a call id of its own.
    ///
    /// # Errors
    /// Each refusal of the call.
    pub async fn command(&self, name: &str, args: Value) -> Result<Value, Refusal> {
        if name == "delegate_task" {
            let text = |key: &str| args[key].as_str().unwrap_or_default().to_owned();
            let (agent, task) = (text("agent"), text("task"));
            let task = self.delegate(Delegation { agent, task, deadline_ms: None, root: None }).await?;
            return Ok(json!({ "ok": true, "task": task }));
        }
        Ok(json!(self.call(name, args, Caller::new(OWNER, "")).await?))
    }

    /// Calls one of the three tools. The future is boxed, so that it is in the page once.
    async fn call(&self, tool: &str, args: Value, caller: Caller) -> Result<Reply, Refusal> {
        self.host()?.call(tool, &args, &caller).boxed_local().await
    }

    /// Some tasks, the newest first, from `before` on downwards.
    ///
    /// # Errors
    /// [`Code::TaskAuditUnavailable`] when the journal cannot be read.
    pub async fn list(&self, filter: Filter, before: Option<u64>, limit: usize) -> Result<Page, Refusal> {
        let caller = Caller::new(OWNER, "");
        let Batch { tasks, next } = self.host()?.list(&caller, filter, before, limit).boxed_local().await?;
        if next.is_none() {
            self.note_damage().await;
        }
        Ok(Page { rows: tasks.into_iter().map(|listed| self.row(listed)).collect(), next })
    }

    fn row(&self, listed: Listed) -> Row {
        let Listed { position, record, mut view, here } = listed;
        if !here && !view.state.is_terminal() {
            view.progress = self.inner.notes.borrow().get(&view.address).cloned().or(view.progress);
        }
        let ends_at_ms = (view.state == TaskState::Running)
            .then(|| js_sys::Date::parse(&record.updated_at) + f64::from(record.bounds.deadline_ms));
        Row {
            position,
            view,
            title: listing::title(&record.input.task),
            bounds: record.bounds,
            ends_at_ms,
            here,
        }
    }

    /// All that is known of one task.
    ///
    /// # Errors
    /// [`Code::TaskNotFound`] and [`Code::TaskAuditUnavailable`].
    pub async fn detail(&self, position: u64) -> Result<Detail, Refusal> {
        let caller = Caller::new(OWNER, "");
        let batch = self.host()?.recent(&caller, Some(position + 1), 1).boxed_local().await?;
        let listed = batch.tasks.into_iter().find(|listed| listed.position == position);
        let listed = listed.ok_or_else(|| {
            Refusal::new(Code::TaskNotFound, "the journal has no such task; it may have been cleared")
        })?;
        let record = &listed.record;
        let (task, mechanism, call_id) =
            (record.input.task.clone(), record.mechanism.clone(), record.call_id.clone());
        let moments = match self.inner.journal.database() {
            Some(journal) => journal.moments(&record.address).await.map_err(unreadable)?,
            None => Vec::new(),
        };
        Ok(Detail { row: self.row(listed), task, mechanism, call_id, moments })
    }

    /// Hears of every change of a task, in this tab or in another: its address, or `None` when many have changed.
    pub fn on_change(&self, listener: impl Fn(Option<&str>) + 'static) {
        self.inner.listeners.add(move |address: &Option<String>| listener(address.as_deref()));
    }

    /// Tells the other tabs how far the tasks of this one are. The page calls it about once a second.
    pub fn tell_progress(&self, rows: &[Row]) {
        for row in rows.iter().filter(|row| row.here && !row.view.state.is_terminal()) {
            if let Some(note) = &row.view.progress {
                self.inner.tabs.say_note(&row.view.address, note);
            }
        }
    }

    /// The folders that tasks can work in.
    #[must_use]
    pub fn folders(&self) -> &Folders {
        &self.inner.folders
    }

    fn host(&self) -> Result<&Host, Refusal> {
        self.inner.host.as_ref().map_err(Clone::clone)
    }

    async fn note_damage(&self) {
        if let Some(journal) = self.inner.journal.database() {
            *self.inner.damaged.borrow_mut() = journal.damaged().await.unwrap_or_default();
        }
    }

    fn many_changed(&self) {
        self.inner.tabs.say_many();
        self.inner.listeners.tell(&None);
    }
}

impl Inner {
    fn heard(self: Rc<Self>, heard: Heard) {
        match heard {
            Heard::Many => self.listeners.tell(&None),
            Heard::Note(address, note) => {
                self.notes.borrow_mut().insert(address.clone(), note);
                self.listeners.tell(&Some(address));
            }
            Heard::Written(address) => wasm_bindgen_futures::spawn_local(async move {
                // It may be the wish to end a task that runs here.
                if let Ok(host) = &self.host {
                    host.heed(&address).await;
                }
                self.listeners.tell(&Some(address));
            }),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.tabs.close();
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").field("environment", &self.environment()).finish_non_exhaustive()
    }
}

fn unexpected() -> Refusal {
    Refusal::new(Code::TaskAdmissionFailed, "the host answered something else than was asked")
}

fn unreadable(err: idb::Error) -> Refusal {
    Refusal::new(Code::StorageUnavailable, format!("the browser's database answers: {err}"))
}
