//! The field, the choice of who answers, and the voice.

use leptos::ev::{KeyboardEvent, SubmitEvent};
use leptos::prelude::*;
use toolshelf_browser::speech;

use super::desk::{Desk, Who};
use super::{answer, voice};
use crate::state::State;
use crate::ui::icon::Icon;

/// The form at the foot of the conversation.
pub(super) fn compose(state: State, desk: Desk) -> AnyView {
    let send = move || {
        let text = desk.draft.get_untracked();
        if !text.trim().is_empty() {
            desk.draft.set(String::new());
            answer::say(state, desk, &text);
        }
    };
    let on_key = move |event: KeyboardEvent| match &*event.key() {
        "Enter" if !event.shift_key() && !event.is_composing() => {
            event.prevent_default();
            send();
        }
        "Escape" if desk.busy.get_untracked() || desk.listening.get_untracked() => {
            event.prevent_default();
            voice::stop(desk);
            answer::stop(desk);
        }
        // What was said last, to say it again or better.
        "ArrowUp" if desk.draft.with_untracked(String::is_empty) => {
            event.prevent_default();
            desk.draft.set(desk.last.get_value());
        }
        _ => {}
    };
    let on_submit = move |event: SubmitEvent| {
        event.prevent_default();
        send();
    };
    let stop = move || {
        desk.busy.get().then(|| {
            view! {
                <button class="btn" type="button" on:click=move |_| answer::stop(desk)>
                    <Icon name="#i-stop"/>
                    "Stop"
                </button>
            }
        })
    };
    view! {
        <form class="live__form" on:submit=on_submit>
            {who(state, desk)}
            <label class="vh" for="live-text">"What you want"</label>
            <div class="input__box">
                <textarea
                    class="input__text"
                    id="live-text"
                    rows="2"
                    placeholder="hash hello"
                    spellcheck="false"
                    prop:value=move || desk.draft.get()
                    on:input=move |event| desk.draft.set(event_target_value(&event))
                    on:keydown=on_key
                ></textarea>
            </div>
            <div class="run__actions">
                <button class="btn btn--primary" type="submit">"Send"</button>
                {stop}
                {voice::ears(state, desk)}
                <p class="run__hint"><kbd>"Enter"</kbd>" sends, "<kbd>"Shift"</kbd>" "<kbd>"Enter"</kbd>" is a new line"</p>
                {speech::can_speak().then(|| voice::mouth(desk))}
            </div>
        </form>
    }
    .into_any()
}

/// The choice of who answers, and what that means.
fn who(state: State, desk: Desk) -> AnyView {
    let has_model = move || desk.model.get() == Some(true);
    let has_companion = move || state.machine.is_wanted.get();
    let choice = move |who: Who, word: &'static str, is_there: Signal<bool>| {
        view! {
            <label class="seg__item" data-off=move || !is_there.get()>
                <input
                    type="radio"
                    name="live-who"
                    prop:checked=move || desk.who.get() == who
                    disabled=move || !is_there.get()
                    on:change=move |_| {
                        answer::stop(desk);
                        desk.who.set(who);
                    }
                />
                {word}
            </label>
        }
    };
    let about = move || match desk.who.get() {
        Who::Script => {
            "A script reads what you type: a tool's name and its texts. Nothing leaves this tab.".to_owned()
        }
        Who::Model => "The browser's own model, on this device. It calls the tools of this tab.".to_owned(),
        Who::Companion => match desk.provider.get() {
            Some(model) => {
                ["The companion passes what you say to ", &model, ". It calls the companion's tools."]
                    .concat()
            }
            None => "The companion's live session. It calls the companion's tools.".to_owned(),
        },
    };
    let missing = move || {
        let model = (desk.model.get() == Some(false))
            .then_some("This browser has no model of its own that pages can ask.");
        let companion = (!has_companion()).then_some("No companion is connected.");
        let words = [model, companion].into_iter().flatten().collect::<Vec<_>>().join(" ");
        (!words.is_empty()).then_some(words)
    };
    view! {
        <fieldset class="live__who" aria-describedby="live-about">
            <legend>"Who answers"</legend>
            <div class="seg">
                {choice(Who::Script, "This page", Signal::derive(|| true))}
                {choice(Who::Model, "Browser's model", Signal::derive(has_model))}
                {choice(Who::Companion, "Companion", Signal::derive(has_companion))}
            </div>
            <p class="muted" id="live-about">{about}" "{missing}</p>
        </fieldset>
    }
    .into_any()
}
