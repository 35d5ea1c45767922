//! What is kept of extensions and facts while other panels are looked at.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use futures::future::AbortHandle;
use leptos::prelude::*;
use toolshelf_browser::companion::Problem;
use toolshelf_browser::companion::facts::{Fact, Names};
use toolshelf_browser::companion::installed::{Extension, Inspected, Listed, Outcome, Receipt, Verdict};
use toolshelf_browser::core::grant::Grant;
use toolshelf_browser::core::refusal::Refusal;

use super::schema::Fault;
use crate::state::State;

/// What was read, or why not; nothing before that.
pub(super) type Read<T> = RwSignal<Option<Result<T, Problem>>>;
/// The same, and where it was read.
pub(super) type ReadAt<T> = RwSignal<Option<(String, Result<T, Problem>)>>;
/// The same for each extension, by its id.
pub(super) type ReadOfEach<T> = RwSignal<BTreeMap<String, Result<T, Problem>>>;

/// Everything that is kept.
#[derive(Clone, Copy)]
pub(crate) struct Desk {
    /// What is installed.
    pub(super) listed: Read<Listed>,
    /// Who may call it.
    pub(super) grants: ReadOfEach<Vec<Grant>>,
    /// What it has put on record.
    pub(super) receipts: ReadOfEach<Vec<Receipt>>,
    /// Whether the log of all receipts is whole.
    pub(super) verdict: Read<Verdict>,
    /// Whether it is being checked.
    pub(super) verifying: RwSignal<bool>,
    /// Ends the wait for a manifest that is fetched.
    pub(super) looking: RwSignal<Option<AbortHandle>>,
    /// The manifest that a person is asked about.
    pub(super) seen: RwSignal<Option<Seen>>,
    /// Whether it is being installed.
    pub(super) installing: RwSignal<bool>,
    /// What a person is asked before it is done.
    pub(super) question: RwSignal<Option<Question>, LocalStorage>,
    /// On whose behalf tools were last called.
    pub(super) passport: RwSignal<String>,
    /// Facts.
    pub(super) facts: FactsDesk,
    runs: StoredValue<BTreeMap<String, Run>>,
}

/// What is kept of facts.
#[derive(Clone, Copy)]
pub(super) struct FactsDesk {
    /// The names below the prefix that is looked at.
    pub(super) names: ReadAt<Names>,
    /// The facts of the entity that is looked at, or the versions of the fact.
    pub(super) facts: ReadAt<Vec<Fact>>,
    /// What a search has found.
    pub(super) found: Read<Vec<Fact>>,
    /// What is searched for.
    pub(super) words: RwSignal<String>,
    /// Whether private facts are shown.
    pub(super) with_private: RwSignal<bool>,
    /// Whether one is being deleted, which costs as much as the store holds.
    pub(super) deleting: RwSignal<bool>,
    /// How many facts an export has so far, and what ends it.
    pub(super) export: RwSignal<Option<(usize, AbortHandle)>>,
}

/// A manifest that is not installed yet.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    /// Where it comes from, in words.
    pub(super) from: String,
    /// What was found out about it; or why nothing was.
    pub(super) about: Result<Inspected, Problem>,
    /// The module that was picked with it.
    pub(super) module: Option<Module>,
    /// Why it was not installed.
    pub(super) end: Option<Problem>,
}

/// A module that was picked.
#[derive(Debug, Clone)]
pub(super) struct Module {
    /// Its file's name.
    pub(super) name: String,
    /// Its bytes.
    pub(super) bytes: Arc<[u8]>,
    /// Their SHA-256, in digits.
    pub(super) digits: String,
}

/// Something that is asked before it is done.
#[derive(Clone)]
pub(super) struct Question {
    /// What would be done, as a question.
    pub(super) title: String,
    /// What follows from it.
    pub(super) words: String,
    /// What the button says that does it.
    pub(super) verb: &'static str,
    /// Whether something is lost by it.
    pub(super) is_danger: bool,
    /// Whether a reason is asked for, and whether there must be one.
    pub(super) reason: Option<bool>,
    /// Does it.
    pub(super) act: Rc<dyn Fn(String)>,
}

/// What is kept of the form of one tool.
#[derive(Clone, Copy)]
pub(super) struct Run {
    /// What is typed, by the ids of the fields.
    pub(super) typed: RwSignal<BTreeMap<String, String>>,
    /// Whether all arguments are written as JSON.
    pub(super) is_json: RwSignal<bool>,
    /// What is wrong with the fields.
    pub(super) faults: RwSignal<Vec<Fault>>,
    /// What the last call came back with.
    pub(super) end: RwSignal<Option<Arc<End>>>,
}

/// What a call came back with.
#[derive(Debug)]
pub(super) enum End {
    /// An answer.
    Answered(Outcome),
    /// A "no".
    Failed(Problem),
    /// A person gave it up after so many milliseconds.
    Stopped(f64),
}

impl Desk {
    /// The desk of the page, made when it is first asked for.
    pub(super) fn of(state: State) -> Self {
        if let Some(desk) = state.installed.get_value() {
            return desk;
        }
        let desk = owned(state, || Self {
            listed: RwSignal::new(None),
            grants: RwSignal::default(),
            receipts: RwSignal::default(),
            verdict: RwSignal::new(None),
            verifying: RwSignal::new(false),
            looking: RwSignal::new(None),
            seen: RwSignal::new(None),
            installing: RwSignal::new(false),
            question: RwSignal::new_local(None),
            passport: RwSignal::default(),
            facts: FactsDesk {
                names: RwSignal::new(None),
                facts: RwSignal::new(None),
                found: RwSignal::new(None),
                words: RwSignal::default(),
                with_private: RwSignal::new(false),
                deleting: RwSignal::new(false),
                export: RwSignal::new(None),
            },
            runs: StoredValue::default(),
        });
        state.installed.set_value(Some(desk));
        desk
    }

    /// The form of a tool.
    pub(super) fn run(self, state: State, extension: &str, tool: &str) -> Run {
        let key = key(extension, tool);
        if let Some(run) = self.runs.with_value(|runs| runs.get(&key).copied()) {
            return run;
        }
        let run = owned(state, || Run {
            typed: RwSignal::default(),
            is_json: RwSignal::new(false),
            faults: RwSignal::default(),
            end: RwSignal::new(None),
        });
        self.runs.update_value(|runs| {
            runs.insert(key, run);
        });
        run
    }

    /// An extension that is installed.
    pub(super) fn extension(self, id: &str) -> Option<Extension> {
        self.listed.with(|listed| {
            let listed = listed.as_ref()?.as_ref().ok()?;
            listed.extensions.iter().find(|one| one.manifest.id == id).cloned()
        })
    }
}

impl Seen {
    /// Why it cannot be installed, as far as that is known.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        match &self.about {
            Ok(inspected) => inspected.refusal.clone(),
            Err(problem) => Some(problem.refusal.clone()),
        }
    }
}

/// What the companion calls a tool of an extension when it tells of calls. No id has a slash.
pub(super) fn key(extension: &str, tool: &str) -> String {
    [extension, "/", tool].concat()
}

/// Makes something that is owned by the page, and not by the panel that asks for it.
fn owned<T>(state: State, make: impl FnOnce() -> T) -> T {
    match state.owner.get_value() {
        Some(owner) => owner.with(make),
        None => make(),
    }
}
