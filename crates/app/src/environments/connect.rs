//! The way to a companion, for whoever has none connected.

use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use toolshelf_browser::core::placement::Placement;

use super::{grants, row};
use crate::companion;
use crate::companion::token::{self, Entered};
use crate::state::State;
use crate::ui::copy::CopyButton;
use crate::ui::icon::Icon;

/// The command that starts a companion.
const COMMAND: &str = "toolshelf serve";

/// The machine that is not connected: what a companion is, how it is started, and where its token goes.
pub(super) fn away(state: State) -> AnyView {
    let bounds = Placement::Machine.bounds();
    view! {
        <section class="env env--away" aria-labelledby="env-machine">
            <div class="env__head">
                <h2 id="env-machine" tabindex="-1">"This machine"</h2>
                <span class="state" data-state="idle"><span class="dot" aria-hidden="true"></span>"Not connected"</span>
            </div>
            <p>
                "Needs the Toolshelf companion: a program on your own computer that serves this page to it. Its tasks \
                go on when the tab is closed, work in folders of the disk, and can be given to agents of yours."
            </p>
            <dl>{grants(bounds)}{row("At the same time", bounds.max_active_tasks.to_string())}</dl>
            <details class="raw connect">
                <summary><Icon name="#i-chevron"/>"Connect to a companion"</summary>
                <div class="connect__body">
                    <p>"Start it in a terminal, and open the link that it prints:"</p>
                    <div class="sample">
                        <div class="sample__head">
                            <code>{COMMAND}</code>
                            <CopyButton text=COMMAND.to_owned() words="Copy" class="btn btn--quiet copy"/>
                        </div>
                    </div>
                    {field(state)}
                </div>
            </details>
        </section>
    }
    .into_any()
}

/// The field for a token, or for the link that has it.
pub(crate) fn field(state: State) -> AnyView {
    let entered = RwSignal::new(String::new());
    let is_neither = RwSignal::new(false);
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        let location = window().location();
        match token::read(&entered.get_untracked(), &location.origin().unwrap_or_default()) {
            Entered::Token(token) => companion::enter(state, &token),
            // The page may ask nobody but whoever served it, so that one has to serve it.
            Entered::Link(link) => drop(location.assign(&link)),
            Entered::Neither => {
                is_neither.set(true);
                state.announce("That is neither a token nor the link that has it");
            }
        }
    };
    let fault = move || {
        is_neither.get().then(|| {
            view! {
                <p class="bad" id="token-fault">
                    "That is neither a token nor the link that has it. The link looks like "
                    <code>"http://127.0.0.1:14800/#token=…"</code>
                </p>
            }
        })
    };
    view! {
        <form class="connect__form" on:submit=submit>
            <label for="token">"Token, or the link that it prints"</label>
            <div class="row">
                <input
                    class="field field--path grow"
                    id="token"
                    spellcheck="false"
                    autocapitalize="off"
                    autocomplete="off"
                    aria-invalid=move || is_neither.get().then_some("true")
                    aria-describedby=move || is_neither.get().then_some("token-fault")
                    prop:value=move || entered.get()
                    on:input=move |event| {
                        entered.set(event_target_value(&event));
                        is_neither.set(false);
                    }
                />
                <button class="btn" type="submit">"Connect"</button>
            </div>
            {fault}
        </form>
    }
    .into_any()
}
