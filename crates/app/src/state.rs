//! What the page knows, as signals. One copyable value, handed down as context.

use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use futures::future::AbortHandle;
use leptos::prelude::*;
use toolshelf_browser::core::Abi;
use toolshelf_browser::core::call::Answer;
use toolshelf_browser::core::refusal::Refusal;
use toolshelf_browser::core::shelf::Tool;
use toolshelf_browser::tasks::{Environment, Tasks};
use toolshelf_browser::{Added, BUILTIN, Reading, Removed, Toolshelf};

use crate::companion::Link;
use crate::history::History;
use crate::installed::Desk as InstalledDesk;
use crate::live;
use crate::result::diff_rows::View;
use crate::route::{Place, Route};
use crate::tasks::Desk;
use crate::ui::preference;

/// A run that is shorter than this shows no sign of waiting: it would only flicker.
const PATIENCE_MS: f64 = 150.0;

/// Everything that the page knows.
#[derive(Clone, Copy)]
pub(crate) struct State {
    /// The shelf itself, once it is open.
    pub(crate) service: StoredValue<Option<Toolshelf>, LocalStorage>,
    /// What was last read of the shelves.
    pub(crate) shelves: RwSignal<Shelves>,
    /// What the address names.
    pub(crate) route: RwSignal<Route>,
    /// The companion, where one serves the page.
    pub(crate) machine: Link,
    /// How each tool has fared, by its key.
    pub(crate) histories: RwSignal<HashMap<String, History>>,
    /// Key of the tool whose latency has just changed.
    pub(crate) fresh: RwSignal<Option<String>>,
    /// Milliseconds since the epoch, moved on once a second.
    pub(crate) now: RwSignal<f64>,
    /// The runs that are on their way.
    pub(crate) running: RwSignal<Vec<Running>>,
    /// The same clock, moved on ten times a second while something runs.
    pub(crate) beat: RwSignal<f64>,
    /// What was decided about the folder that was added last.
    pub(crate) verdicts: RwSignal<Option<Verdicts>>,
    /// Whether a folder is being read.
    pub(crate) adding: RwSignal<bool>,
    /// The shelf that a person is asked about before it is removed.
    pub(crate) removing: RwSignal<Option<Removing>>,
    /// Messages with an undo.
    pub(crate) toasts: RwSignal<Vec<Toast>, LocalStorage>,
    /// What a screen reader is told.
    pub(crate) announcement: RwSignal<String>,
    /// Whether what is added stays after a reload.
    pub(crate) persistent: RwSignal<bool>,
    /// How a diff is laid out.
    pub(crate) diff_view: RwSignal<View>,
    /// What a drag over the page would do.
    pub(crate) drag: RwSignal<Drag>,
    /// The tasks of this tab, once a panel has asked for them.
    pub(crate) tasks: StoredValue<Option<Tasks>, LocalStorage>,
    /// What they say of this browser as an environment; nothing before they are open.
    pub(crate) environment: RwSignal<Option<Environment>>,
    /// What is kept of the panels of tasks and environments while others are looked at.
    pub(crate) desk: StoredValue<Option<Desk>>,
    /// What is kept of the conversation while other panels are looked at.
    pub(crate) live: StoredValue<Option<live::Desk>>,
    /// How many calls of this page the browser lists for its own agent, where it has one.
    pub(crate) offered: RwSignal<Option<usize>>,
    /// What is kept of extensions and facts.
    pub(crate) installed: StoredValue<Option<InstalledDesk>>,
    /// Owns what outlives a panel.
    pub(crate) owner: StoredValue<Option<Owner>>,
    forms: StoredValue<HashMap<String, Form>>,
}

/// What was read of the shelves.
#[derive(Debug, Clone)]
pub(crate) enum Shelves {
    /// Nothing yet.
    Opening,
    /// Each shelf, or why it could not be read.
    Read(Vec<Reading>),
    /// The place where shelves are kept could not even be listed.
    Failed(Refusal),
}

/// A run on its way.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    /// Key of the tool.
    pub(crate) key: String,
    /// When it began, in milliseconds since the epoch.
    pub(crate) since: f64,
    /// Ends it.
    pub(crate) stop: AbortHandle,
}

/// What came of adding a folder.
#[derive(Debug, Clone)]
pub(crate) enum Verdicts {
    /// A verdict for each entry.
    Read(Added),
    /// The whole folder was refused.
    Refused(Refusal),
}

/// A shelf that may be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Removing {
    /// Its key.
    pub(crate) key: String,
    /// Its name.
    pub(crate) name: String,
    /// How many tools leave with it.
    pub(crate) tools: usize,
}

/// A message at the foot of the page.
#[derive(Debug, Clone)]
pub(crate) struct Toast {
    /// Tells it from the others.
    pub(crate) id: u64,
    /// What happened.
    pub(crate) verb: &'static str,
    /// What it happened to.
    pub(crate) name: String,
    /// How it is undone.
    pub(crate) undo: Option<Undo>,
}

/// How something is undone.
#[derive(Debug, Clone)]
pub(crate) enum Undo {
    /// A shelf was added: remove it.
    Remove(String),
    /// A shelf was removed or replaced: put it back.
    Restore(Removed),
    /// What a panel does, so that the part of the program that can do it stays with that panel.
    Call(Call),
}

/// Something to do.
#[derive(Clone)]
pub(crate) struct Call(pub(crate) Rc<dyn Fn()>);

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Call")
    }
}

/// What a drag over the page would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drag {
    /// Nothing is dragged.
    None,
    /// It would add a shelf.
    Page,
    /// It would fill that field of the form.
    Field(usize),
    /// It would fill the form, wherever it is dropped.
    Form,
}

/// What is in one field of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Field {
    /// What a person typed.
    Text(String),
    /// A file; its bytes are missing when it is too large to be read.
    File {
        /// Its name.
        name: String,
        /// Its size, in bytes.
        size: u64,
        /// Its bytes.
        bytes: Option<Arc<[u8]>>,
    },
}

impl Field {
    /// How many bytes it comes to.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::File { size, .. } => *size,
        }
    }

    /// The bytes, unless they were not read.
    pub(crate) fn bytes(&self) -> Option<Arc<[u8]>> {
        match self {
            Self::Text(text) => Some(text.as_bytes().into()),
            Self::File { bytes, .. } => bytes.clone(),
        }
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_empty())
    }
}

/// What is kept of a tool's form while others are looked at.
#[derive(Debug, Clone)]
pub(crate) struct Form {
    /// The fields, in the order of the ABI's buffers.
    pub(crate) fields: Vec<ArcRwSignal<Field>>,
    /// What the last run came back with.
    pub(crate) outcome: ArcRwSignal<Option<Arc<Outcome>>>,
}

/// What a run came back with.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// How it ended.
    pub(crate) end: End,
    /// What the tool was given.
    pub(crate) inputs: Vec<Arc<[u8]>>,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) enum End {
    /// With an answer.
    Answered(Answer),
    /// With a refusal.
    Refused(Refusal),
    /// A person stopped it after that many milliseconds.
    Stopped(f64),
}

/// The tool that the address names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Selected {
    /// Whose it is.
    pub(crate) place: Place,
    /// Key of its shelf.
    pub(crate) shelf_key: String,
    /// Name of its shelf.
    pub(crate) shelf_name: String,
    /// The tool.
    pub(crate) tool: Tool,
}

impl Selected {
    /// Whether the tool came with the page.
    pub(crate) fn is_builtin(&self) -> bool {
        self.place == Place::Browser && self.shelf_key == BUILTIN
    }

    /// Under what the page keeps what it knows of the tool.
    pub(crate) fn key(&self) -> String {
        tool_key(self.place, &self.tool.id)
    }

    /// How the tool is called, if it can be.
    pub(crate) fn abi(&self) -> Option<Abi> {
        self.tool.verdict.as_ref().ok().and_then(|admitted| admitted.abi)
    }
}

impl State {
    /// What a page knows that has just begun.
    pub(crate) fn new() -> Self {
        Self {
            service: StoredValue::new_local(None),
            shelves: RwSignal::new(Shelves::Opening),
            machine: Link::new(),
            route: RwSignal::new(Route::default()),
            histories: RwSignal::default(),
            fresh: RwSignal::new(None),
            now: RwSignal::new(0.0),
            running: RwSignal::default(),
            beat: RwSignal::new(0.0),
            verdicts: RwSignal::new(None),
            adding: RwSignal::new(false),
            removing: RwSignal::new(None),
            toasts: RwSignal::new_local(Vec::new()),
            announcement: RwSignal::default(),
            persistent: RwSignal::new(true),
            diff_view: RwSignal::new(preference::diff_view()),
            drag: RwSignal::new(Drag::None),
            tasks: StoredValue::new_local(None),
            environment: RwSignal::new(None),
            desk: StoredValue::new(None),
            live: StoredValue::new(None),
            offered: RwSignal::new(None),
            installed: StoredValue::new(None),
            owner: StoredValue::new(Owner::current()),
            forms: StoredValue::default(),
        }
    }

    /// The form of a tool. It outlives the component that shows it.
    pub(crate) fn form(&self, key: &str, abi: Abi) -> Form {
        let count = abi.layout().inputs.len();
        let known = self.forms.with_value(|forms| forms.get(key).cloned());
        if let Some(form) = known.filter(|form| form.fields.len() == count) {
            return form;
        }
        let field = || ArcRwSignal::new(Field::Text(String::new()));
        let fields = std::iter::repeat_with(field).take(count).collect();
        let form = Form { fields, outcome: ArcRwSignal::new(None) };
        self.forms.update_value(|forms| {
            forms.insert(key.to_owned(), form.clone());
        });
        form
    }

    /// What the last run of a tool came back with, if it has been run.
    pub(crate) fn outcome(&self, key: &str) -> Option<ArcRwSignal<Option<Arc<Outcome>>>> {
        let outcome = self.forms.with_value(|forms| forms.get(key).map(|form| form.outcome.clone()));
        outcome.filter(|outcome| outcome.with_untracked(Option::is_some))
    }

    /// How long a tool has been running, in milliseconds, once that is long enough to be shown.
    pub(crate) fn waiting(&self, key: &str) -> Option<f64> {
        let since = self.running.with(|running| Some(running.iter().find(|run| run.key == key)?.since))?;
        Some(self.beat.get() - since).filter(|&ms| ms >= PATIENCE_MS)
    }

    /// Whether a tool is running.
    pub(crate) fn is_running(&self, key: &str) -> bool {
        self.running.with(|running| running.iter().any(|run| run.key == key))
    }

    /// The tool that the address names. An admitted one goes before an entry of the same id that was refused.
    pub(crate) fn selected(&self) -> Option<Selected> {
        let route = self.route.get();
        let id = route.tool?;
        self.with_readings(route.place, |readings| {
            let named =
                readings.iter().filter(|reading| route.shelf.as_ref().is_none_or(|key| *key == reading.key));
            let tools = named.filter_map(|reading| Some((&reading.key, reading.shelf.as_ref().ok()?)));
            let tools =
                tools.flat_map(|(key, shelf)| shelf.tools.iter().map(move |tool| (key, &shelf.name, tool)));
            let found =
                tools.filter(|(.., tool)| tool.id == id).min_by_key(|(.., tool)| tool.verdict.is_err());
            found.map(|(key, name, tool)| Selected {
                place: route.place,
                shelf_key: key.clone(),
                shelf_name: name.clone(),
                tool: tool.clone(),
            })
        })
    }

    /// Whether the address names a tool of the companion, which has not told of its tools yet.
    pub(crate) fn is_awaited(&self) -> bool {
        self.route.with(|route| route.place == Place::Machine)
            && self.machine.is_wanted.get()
            && self.machine.shelves.with(Option::is_none)
    }

    /// Looks at what was read of somebody's shelves; nothing before that.
    pub(crate) fn with_readings<T>(&self, place: Place, look: impl FnOnce(&[Reading]) -> T) -> T {
        match place {
            Place::Browser => self.shelves.with(|shelves| match shelves {
                Shelves::Read(readings) => look(readings),
                Shelves::Opening | Shelves::Failed(_) => look(&[]),
            }),
            Place::Machine => self.machine.shelves.with(|shelves| match shelves {
                Some(Ok(readings)) => look(readings),
                Some(Err(_)) | None => look(&[]),
            }),
        }
    }

    /// Tells a screen reader something.
    pub(crate) fn announce(&self, text: impl Into<String>) {
        self.announcement.set(text.into());
    }
}

/// Under what the page keeps what it knows of a tool. No id has a slash.
pub(crate) fn tool_key(place: Place, id: &str) -> String {
    match place {
        Place::Browser => id.to_owned(),
        Place::Machine => ["machine/", id].concat(),
    }
}

/// The page's state, from the context.
pub(crate) fn use_state() -> State {
    expect_context()
}
