//! What is kept of the conversation while other panels are looked at.

use std::rc::Rc;
use std::sync::Arc;

use futures::future::AbortHandle;
use leptos::prelude::*;
use toolshelf_browser::companion::talk::Talk;
use toolshelf_browser::core::live::CallNotice;
use toolshelf_browser::core::refusal::Refusal;
use toolshelf_browser::core::task::tool_call::answer_text;
use toolshelf_browser::speech::Listening;
use toolshelf_browser::texts::TextCall;

use crate::actions;
use crate::state::{Call, End, Outcome, State, Undo};
use crate::text;

/// Lines that are kept; the oldest go first.
const LINES_MAX: usize = 400;

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    /// The script of this page.
    Script,
    /// The browser's own model.
    Model,
    /// The companion's live session.
    Companion,
}

impl Who {
    /// What it is called where it says something.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Script => "Script",
            Self::Model => "Browser's model",
            Self::Companion => "Companion",
        }
    }
}

/// One line of the conversation.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// Tells it from the others.
    pub(super) id: u64,
    /// What it is.
    pub(super) kind: Kind,
}

/// What a line is.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// What the person said.
    Person(String),
    /// An answer; it may still grow.
    Words(Who, ArcRwSignal<String>),
    /// A call.
    Call(Arc<Called>),
    /// Something went wrong.
    Fault(Refusal),
    /// What happened otherwise.
    Note(String),
}

/// A call, and what it came back with.
#[derive(Debug)]
pub(super) struct Called {
    pub(super) name: String,
    pub(super) duration_ms: f64,
    /// Where it ran, in words.
    pub(super) place: &'static str,
    pub(super) shown: Shown,
}

/// What a call came back with.
#[derive(Debug)]
pub(super) enum Shown {
    /// As this page has it.
    Outcome(Arc<Outcome>),
    /// As the companion tells of it: the beginning of its output.
    Output(String),
    /// A "no".
    Refused(Refusal),
}

impl Called {
    pub(super) fn is_ok(&self) -> bool {
        match &self.shown {
            Shown::Outcome(outcome) => matches!(outcome.end, End::Answered(_)),
            Shown::Output(_) => true,
            Shown::Refused(_) => false,
        }
    }

    /// A call that ran in this tab.
    pub(super) fn here(name: &str, call: TextCall) -> Self {
        let TextCall { inputs, result, duration_ms } = call;
        let shown = match result {
            Ok(answer) => {
                let inputs = inputs.into_iter().map(Arc::from).collect();
                Shown::Outcome(Arc::new(Outcome { end: End::Answered(answer), inputs }))
            }
            Err(refusal) => Shown::Refused(refusal),
        };
        Self { name: name.to_owned(), duration_ms, place: "in this tab", shown }
    }

    /// A call that the companion told of.
    pub(super) fn there(notice: CallNotice) -> Self {
        let CallNotice { name, output, duration_ms, refused, why, .. } = notice;
        let code = refused.and_then(|code| toolshelf_browser::core::refusal::Code::parse(&code));
        let shown = match code {
            Some(code) => Shown::Refused(Refusal::new(code, why.unwrap_or_default())),
            None => Shown::Output(output),
        };
        Self { name, duration_ms, place: "on the companion", shown }
    }

    /// Its output as a text.
    fn output(&self) -> String {
        match &self.shown {
            Shown::Outcome(outcome) => match &outcome.end {
                End::Answered(answer) => {
                    answer_text(answer, outcome.inputs.iter().map(|input| input.to_vec()).collect())
                }
                _ => String::new(),
            },
            Shown::Output(output) => output.clone(),
            Shown::Refused(refusal) => refusal.to_string(),
        }
    }
}

/// The signals of the panel.
#[derive(Clone, Copy)]
pub(crate) struct Desk {
    pub(super) lines: RwSignal<Vec<Line>>,
    pub(super) who: RwSignal<Who>,
    pub(super) draft: RwSignal<String>,
    /// Whether an answer is awaited or being given.
    pub(super) busy: RwSignal<bool>,
    /// Whether answers are read aloud.
    pub(super) aloud: RwSignal<bool>,
    pub(super) listening: RwSignal<bool>,
    /// What the person said last.
    pub(super) last: StoredValue<String>,
    /// Whether the browser has a model; nothing before that is known.
    pub(super) model: RwSignal<Option<bool>>,
    /// What answers in the companion's session, once that is known.
    pub(super) provider: RwSignal<Option<String>>,
    pub(super) talk: StoredValue<Option<Rc<Talk>>, LocalStorage>,
    pub(super) ears: StoredValue<Option<Rc<Listening>>, LocalStorage>,
    /// Ends what this page is doing for an answer.
    pub(super) stop: StoredValue<Option<AbortHandle>>,
    count: StoredValue<u64>,
}

impl Desk {
    /// The desk of the page. It is made once, and outlives the panel.
    pub(crate) fn of(state: State) -> Self {
        if let Some(desk) = state.live.get_value() {
            return desk;
        }
        let make = || Self {
            lines: RwSignal::default(),
            who: RwSignal::new(Who::Script),
            draft: RwSignal::default(),
            busy: RwSignal::new(false),
            aloud: RwSignal::new(false),
            listening: RwSignal::new(false),
            last: StoredValue::default(),
            model: RwSignal::new(None),
            provider: RwSignal::new(None),
            talk: StoredValue::new_local(None),
            ears: StoredValue::new_local(None),
            stop: StoredValue::new(None),
            count: StoredValue::default(),
        };
        let desk = match state.owner.get_value() {
            Some(owner) => owner.with(make),
            None => make(),
        };
        state.live.set_value(Some(desk));
        desk
    }

    /// Adds a line.
    pub(super) fn add(self, kind: Kind) {
        let id = self.count.try_update_value(|count| {
            *count += 1;
            *count
        });
        self.lines.update(|lines| {
            lines.push(Line { id: id.unwrap_or_default(), kind });
            let surplus = lines.len().saturating_sub(LINES_MAX);
            lines.drain(..surplus);
        });
    }

    /// The whole conversation as a text.
    pub(super) fn transcript(self) -> String {
        let line = |line: &Line| match &line.kind {
            Kind::Person(words) => format!("You: {words}"),
            Kind::Words(who, words) => format!("{}: {}", who.name(), words.get_untracked()),
            Kind::Call(call) => {
                let ok = if call.is_ok() { "ok" } else { "refused" };
                let (name, took, place) = (&call.name, text::millis(call.duration_ms), call.place);
                format!("[{name}, {ok}, {took}, {place}]\n{}", call.output())
            }
            Kind::Fault(refusal) => format!("[{refusal}]"),
            Kind::Note(words) => format!("[{words}]"),
        };
        self.lines.with(|lines| lines.iter().map(line).collect::<Vec<_>>().join("\n\n"))
    }

    /// Takes everything away, and offers to put it back.
    pub(super) fn clear(self, state: State) {
        super::answer::stop(self);
        // Nothing of it is remembered in the companion's session either.
        self.talk.set_value(None);
        let lines = std::mem::take(&mut *self.lines.write());
        let count = text::counted(lines.len() as u64, "line", "lines");
        let undo = Call(Rc::new(move || {
            let mut kept = lines.clone();
            self.lines.update(|now| {
                kept.append(now);
                *now = kept;
            });
        }));
        actions::toast(state, "Cleared", count, Some(Undo::Call(undo)));
        crate::ui::dom::focus_soon("#live-text".to_owned());
    }
}
