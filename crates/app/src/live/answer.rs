//! Who answers, and how.

use std::rc::Rc;
use std::sync::Arc;

use futures::future::abortable;
use leptos::prelude::*;
use leptos::task::spawn_local;
use toolshelf_browser::companion::talk::{Talk, Told};
use toolshelf_browser::core::live::{LinkState, TurnState};
use toolshelf_browser::core::refusal::{Code, Refusal};
use toolshelf_browser::core::resolver::{Intent, resolve, words};
use toolshelf_browser::live_model::OnCall;
use toolshelf_browser::texts::TextCall;
use toolshelf_browser::{Toolshelf, live_model, speech};

use super::desk::{Called, Desk, Kind, Who};
use crate::state::State;
use crate::ui::preference;

/// Looks whether the browser has a model, once.
pub(super) fn look(desk: Desk) {
    if desk.model.with_untracked(Option::is_none) {
        spawn_local(async move {
            let model = toolshelf_browser::tasks::Model::find().await;
            desk.model.set(Some(model.is_there()));
        });
    }
}

/// Says something to whoever answers.
pub(super) fn say(state: State, desk: Desk, text: &str) {
    let text = text.trim();
    let Some(shelf) = state.service.get_value().filter(|_| !text.is_empty()) else { return };
    // Whoever speaks interrupts.
    stop_here(desk);
    speech::hush();
    desk.last.set_value(text.to_owned());
    desk.add(Kind::Person(text.to_owned()));
    desk.busy.set(true);
    state.announce("");
    let who = desk.who.get_untracked();
    let text = text.to_owned();
    if who == Who::Companion {
        talk(state, desk).say(&text);
        return;
    }
    let (work, stop) = abortable(async move {
        match who {
            Who::Model => by_model(state, desk, &shelf, &text).await,
            _ => by_script(state, desk, &shelf, &text).await,
        }
    });
    desk.stop.set_value(Some(stop));
    spawn_local(async move {
        if work.await.is_err() {
            desk.add(Kind::Note("Stopped".to_owned()));
        } else {
            desk.busy.set(false);
        }
    });
}

/// Stops the answer that is awaited or being given.
pub(super) fn stop(desk: Desk) {
    speech::hush();
    if !desk.busy.get_untracked() {
        return;
    }
    match desk.talk.get_value().filter(|_| desk.who.get_untracked() == Who::Companion) {
        Some(talk) => talk.cancel(),
        None => stop_here(desk),
    }
    desk.busy.set(false);
}

fn stop_here(desk: Desk) {
    let stop = desk.stop.try_update_value(Option::take).flatten();
    if desk.busy.get_untracked()
        && let Some(stop) = stop
    {
        stop.abort();
    }
}

/// An answer that is whole.
fn answer(state: State, desk: Desk, who: Who, text: String) {
    read_out(state, desk, &text);
    desk.add(Kind::Words(who, ArcRwSignal::new(text)));
}

/// Tells a screen reader, and reads aloud where that is wanted.
fn read_out(state: State, desk: Desk, text: &str) {
    state.announce(text);
    if desk.aloud.get_untracked() {
        speech::speak(text);
    }
}

fn fault(state: State, desk: Desk, refusal: Refusal) {
    state.announce(refusal.to_string());
    desk.add(Kind::Fault(refusal));
}

async fn by_script(state: State, desk: Desk, shelf: &Toolshelf, text: &str) {
    let mut tools = shelf.known_declarations();
    if tools.is_empty() {
        // Whoever is this quick comes before the shelves were read; what stands against that is shown elsewhere.
        let _ = shelf.read().await;
        tools = shelf.known_declarations();
    }
    let said = match resolve(text, &tools) {
        Intent::List => words::list(&tools),
        Intent::Help => words::help(&tools),
        Intent::Unclear(why) => why,
        Intent::Call { tool, args } => {
            let call = shelf.call_texts(&tool, &args.into(), None).await;
            let said = match &call.result {
                Ok(answer) => words::answered(answer),
                Err(refusal) => words::refused(&tool, refusal),
            };
            desk.add(Kind::Call(Arc::new(Called::here(&tool, call))));
            said
        }
    };
    answer(state, desk, Who::Script, said);
}

async fn by_model(state: State, desk: Desk, shelf: &Toolshelf, text: &str) {
    let told: OnCall = Rc::new(move |tool: &str, call: TextCall| {
        desk.add(Kind::Call(Arc::new(Called::here(tool, call))));
    });
    match live_model::ask(shelf, text, told).await {
        Ok(said) => answer(state, desk, Who::Model, said),
        Err(refusal) => fault(state, desk, refusal),
    }
}

/// The session with the companion; a new one where there is none.
fn talk(state: State, desk: Desk) -> Rc<Talk> {
    if let Some(talk) = desk.talk.get_value() {
        return talk;
    }
    let origin = window().location().origin().unwrap_or_default();
    let bearer = preference::token().unwrap_or_default();
    let growing = StoredValue::new(None::<ArcRwSignal<String>>);
    let talk = Rc::new(Talk::open(&origin, &bearer, move |told| hear(state, desk, growing, told)));
    desk.talk.set_value(Some(Rc::clone(&talk)));
    talk
}

/// Hears what the companion's session tells. `growing` are the words of the answer that is being given.
fn hear(state: State, desk: Desk, growing: StoredValue<Option<ArcRwSignal<String>>>, told: Told) {
    let is_model = || desk.provider.with_untracked(Option::is_some);
    match told {
        Told::Ready(provider) => {
            desk.provider.set(provider.map(|(model, name)| [&*model, " (", &name, ")"].concat()));
        }
        Told::Partial(more) => match growing.get_value() {
            Some(words) => words.update(|words| words.push_str(&more)),
            None => {
                let words = ArcRwSignal::new(more);
                growing.set_value(Some(words.clone()));
                desk.add(Kind::Words(Who::Companion, words));
            }
        },
        Told::Text(text) => {
            match growing.try_update_value(Option::take).flatten() {
                Some(words) => {
                    read_out(state, desk, &text);
                    words.set(text);
                }
                None => answer(state, desk, Who::Companion, text),
            }
            // A script has no more to say; a model says itself when it is done.
            if !is_model() {
                desk.busy.set(false);
            }
        }
        Told::Calls(calls) => {
            // What it says next comes below the call.
            growing.set_value(None);
            for call in calls {
                desk.add(Kind::Call(Arc::new(Called::there(call))));
            }
        }
        Told::Turn(TurnState::Started) => desk.busy.set(true),
        Told::Turn(end) => {
            growing.set_value(None);
            if end == TurnState::Interrupted {
                desk.add(Kind::Note("Interrupted".to_owned()));
            } else {
                desk.busy.set(false);
            }
        }
        Told::Link(LinkState::Connecting) => state.announce("Connecting to the model"),
        Told::Link(LinkState::Ready | LinkState::Closed) => {}
        Told::Fault(refusal) => fault(state, desk, refusal),
        Told::Over(refusal) => {
            growing.set_value(None);
            desk.talk.set_value(None);
            if desk.busy.get_untracked() {
                desk.busy.set(false);
                let why = ["the live session is over: ", &refusal.why].concat();
                let code =
                    if refusal.code == Code::BearerRefused { refusal.code } else { Code::MachineUnreachable };
                fault(state, desk, Refusal::new(code, why));
            }
        }
    }
}
