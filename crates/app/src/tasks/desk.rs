//! What the page keeps of its tasks and folders while another panel is looked at.

use std::collections::HashMap;

use leptos::prelude::*;
use toolshelf_browser::core::RootDescriptor;
use toolshelf_browser::core::refusal::{Code, Refusal};
use toolshelf_browser::tasks::{Detail, Filter, Folder, Page, Row};

use crate::route::Place;
use crate::state::State;

/// The signals of both panels.
#[derive(Clone, Copy)]
pub(crate) struct Desk {
    /// Whose tasks are listed.
    pub(super) place: StoredValue<Place>,
    /// What was read of the other place's.
    pub(super) kept: StoredValue<Rows>,
    /// Which tasks are listed.
    pub(super) filter: RwSignal<Filter>,
    /// The tasks that were read.
    pub(super) rows: RwSignal<Rows>,
    /// The task that has just been delegated.
    pub(super) fresh: RwSignal<Option<String>>,
    /// The task that was read for the address, under that address.
    pub(super) detail: RwSignal<Option<(String, Result<Detail, Refusal>)>>,
    /// The folders, once they were read.
    pub(crate) folders: RwSignal<Option<Result<Vec<Folder>, Refusal>>>,
    /// Moved on with each change inside of the folders.
    pub(crate) folders_changed: RwSignal<u32>,
    /// The form that delegates.
    pub(super) form: TaskForm,
    /// Whether the tasks are being opened, or are open.
    pub(super) opened: StoredValue<bool>,
    /// Whether rows of each place are being read, and how many are to be read after that.
    pub(super) reading: [StoredValue<(bool, usize)>; 2],
}

/// The tasks that were read, the newest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Rows {
    /// Whose they are.
    pub(super) place: Place,
    /// The filter that they were read with; nothing before the first reading.
    pub(super) filter: Option<Filter>,
    /// The tasks.
    pub(super) rows: Vec<Row>,
    /// Where the next older ones begin.
    pub(super) older: Option<u64>,
    /// Why they could not be read.
    pub(super) refusal: Option<Refusal>,
}

/// What is in the form.
#[derive(Clone, Copy)]
pub(super) struct TaskForm {
    /// Id of the chosen agent; empty for the first that there is.
    pub(super) agent: RwSignal<String>,
    /// The chosen folder; nothing, or one of another place, for the one that new tasks get.
    pub(super) root: RwSignal<Option<RootDescriptor>>,
    /// The deadline, in milliseconds; nothing, or one that is not on offer, for the usual one.
    pub(super) deadline_ms: RwSignal<Option<u32>>,
    /// Where the answer is written to.
    pub(super) out: RwSignal<String>,
    /// Why the last delegation was refused.
    pub(super) refusal: RwSignal<Option<Refusal>>,
    /// Whether a delegation is on its way.
    pub(super) sending: RwSignal<bool>,
    given: StoredValue<HashMap<&'static str, Given>>,
}

/// What is given for one argument.
#[derive(Clone, Copy)]
pub(super) struct Given {
    /// The text.
    pub(super) text: RwSignal<String>,
    /// The path of a file.
    pub(super) path: RwSignal<String>,
    /// Whether the file is given, and not the text.
    pub(super) is_file: RwSignal<bool>,
}

impl Desk {
    /// The desk of the page. It is made once, and outlives the panels.
    pub(crate) fn of(state: State) -> Self {
        if let Some(desk) = state.desk.get_value() {
            return desk;
        }
        let desk = owned(state, || Self {
            place: StoredValue::default(),
            kept: StoredValue::default(),
            filter: RwSignal::default(),
            rows: RwSignal::default(),
            fresh: RwSignal::new(None),
            detail: RwSignal::new(None),
            folders: RwSignal::new(None),
            folders_changed: RwSignal::new(0),
            form: TaskForm {
                agent: RwSignal::default(),
                root: RwSignal::new(None),
                deadline_ms: RwSignal::new(None),
                out: RwSignal::default(),
                refusal: RwSignal::new(None),
                sending: RwSignal::new(false),
                given: StoredValue::default(),
            },
            opened: StoredValue::new(false),
            reading: [StoredValue::new((false, 0)), StoredValue::new((false, 0))],
        });
        state.desk.set_value(Some(desk));
        desk
    }

    /// Lists the tasks of a place; of the other one's, what was read is kept.
    pub(super) fn show(self, place: Place) {
        if self.place.get_value() != place {
            self.place.set_value(place);
            let mut rows = self.kept.get_value();
            rows.place = place;
            self.kept.set_value(self.rows.get_untracked());
            self.rows.set(rows);
        }
    }

    /// How many rows there are.
    pub(super) fn shown(self) -> usize {
        self.rows.with_untracked(|rows| rows.rows.len())
    }
}

impl TaskForm {
    /// What is given for the argument of that name. Agents with an argument of the same name share it.
    pub(super) fn given(self, state: State, name: &'static str) -> Given {
        if let Some(given) = self.given.with_value(|given| given.get(name).copied()) {
            return given;
        }
        let given = owned(state, || Given {
            text: RwSignal::default(),
            path: RwSignal::default(),
            is_file: RwSignal::new(false),
        });
        self.given.update_value(|all| {
            all.insert(name, given);
        });
        given
    }

    /// Empties it, but for the agent, the folder and the deadline.
    pub(super) fn clear(self) {
        self.given.with_value(|given| {
            for given in given.values() {
                given.text.set(String::new());
                given.path.set(String::new());
            }
        });
        self.out.set(String::new());
        self.refusal.set(None);
    }
}

impl Rows {
    /// What is known when they could not be read: what was, where only nobody answers.
    pub(super) fn failed(&self, place: Place, filter: Filter, refusal: Refusal) -> Self {
        if refusal.code == Code::MachineUnreachable && self.filter == Some(filter) && self.place == place {
            return self.clone();
        }
        Self { place, filter: Some(filter), refusal: Some(refusal), ..Self::default() }
    }

    /// What is known after the newest were read again: those, and the older ones that were read before.
    pub(super) fn after(&self, place: Place, filter: Filter, page: Page) -> Self {
        let (mut rows, mut older) = (page.rows, page.next);
        // Where as many were read as are shown, nothing of before is needed, and it could have gaps by now.
        if let Some(last) = rows.last().map(|row| row.position).filter(|_| older.is_some())
            && (self.filter, self.place) == (Some(filter), place)
            && rows.len() < self.rows.len()
        {
            older = self.older;
            rows.extend(self.rows.iter().filter(|row| row.position < last).cloned());
        }
        Self { place, filter: Some(filter), rows, older, refusal: None }
    }

    /// The task at a place in the journal. Places fall along the list.
    pub(super) fn at(&self, position: u64) -> Option<&Row> {
        let at = self.rows.binary_search_by(|row| position.cmp(&row.position)).ok()?;
        self.rows.get(at)
    }
}

/// Makes something that is owned by the page, and not by the panel that asks for it.
fn owned<T>(state: State, make: impl FnOnce() -> T) -> T {
    match state.owner.get_value() {
        Some(owner) => owner.with(make),
        None => make(),
    }
}
