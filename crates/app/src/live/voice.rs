//! Speech, where the browser has it.

use std::rc::Rc;

use leptos::prelude::*;
use toolshelf_browser::speech::{self, Heard, Listening};

use super::answer;
use super::desk::{Desk, Kind};
use crate::state::State;

/// The button that listens; where the browser recognises no speech, a word about that.
pub(super) fn ears(state: State, desk: Desk) -> AnyView {
    if !speech::can_listen() {
        return view! { <p class="run__hint">"This browser recognises no speech."</p> }.into_any();
    }
    let toggle = move |_| match desk.listening.get_untracked() {
        true => stop(desk),
        false => start(state, desk),
    };
    view! {
        <button
            class="btn"
            type="button"
            aria-pressed=move || desk.listening.get().to_string()
            title="Your browser may send what it hears to its maker"
            on:click=toggle
        >
            {move || if desk.listening.get() { "Listening…" } else { "Speak" }}
        </button>
    }
    .into_any()
}

/// The choice whether answers are read aloud.
pub(super) fn mouth(desk: Desk) -> AnyView {
    let toggle = move |_| {
        desk.aloud.update(|aloud| *aloud = !*aloud);
        speech::hush();
    };
    view! {
        <label class="live__aloud">
            <input type="checkbox" prop:checked=move || desk.aloud.get() on:change=toggle/>
            " Read answers aloud"
        </label>
    }
    .into_any()
}

fn start(state: State, desk: Desk) {
    // What is read aloud would be heard.
    speech::hush();
    let hear = move |heard| match heard {
        Heard::SoFar(words) => desk.draft.set(words),
        Heard::Said(words) => {
            desk.draft.set(String::new());
            stop(desk);
            answer::say(state, desk, &words);
        }
        Heard::Ended(why) => {
            desk.listening.set(false);
            if let Some(why) = why {
                let words = match &*why {
                    "not-allowed" | "service-not-allowed" => {
                        "the browser does not let this page listen".to_owned()
                    }
                    "network" => "the browser's speech service cannot be reached".to_owned(),
                    "audio-capture" => "there is no microphone".to_owned(),
                    other => other.to_owned(),
                };
                let words = ["Speech was not recognised: ", &words].concat();
                state.announce(words.clone());
                desk.add(Kind::Note(words));
            }
        }
    };
    match Listening::start(hear) {
        Ok(listening) => {
            desk.ears.set_value(Some(Rc::new(listening)));
            desk.listening.set(true);
            state.announce("Listening");
        }
        Err(why) => desk.add(Kind::Note(["Speech was not recognised: ", &why].concat())),
    }
}

/// Listens no more.
pub(super) fn stop(desk: Desk) {
    if let Some(ears) = desk.ears.get_value() {
        ears.stop();
    }
    desk.listening.set(false);
}
