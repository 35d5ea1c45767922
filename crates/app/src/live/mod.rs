//! The Live panel: a person types or speaks, and what answers calls tools as it goes.
//!
//! | module | idea |
//! |---|---|
//! | `desk` | what is kept while other panels are looked at |
//! | `answer` | who answers: the script of this page, the browser's model, or the companion's live session |
//! | `compose` | the field, the choice of who answers, the voice |
//! | `lines` | what was said, and each call with what it came back with |
//! | `voice` | speech, where the browser has it |

mod answer;
mod compose;
mod desk;
mod lines;
mod voice;

use leptos::prelude::*;
use leptos::wasm_split::{SplitLoaderError, wasm_split};
use toolshelf_browser::speech;

pub(crate) use self::desk::Desk;
use crate::route::Panel;
use crate::state::State;
use crate::text::counted;
use crate::ui::copy::CopyButton;
use crate::ui::icon::Icon;

/// The panel, fetched when it is first shown.
#[wasm_split(live, wasm_split_path = leptos::wasm_split, fallible)]
pub(crate) fn live_view(state: State) -> Result<AnyView, SplitLoaderError> {
    let desk = Desk::of(state);
    answer::look(desk);
    Effect::new(move || {
        // Another panel is on its way, and sets its own title.
        if state.route.with(|route| route.panel) == Panel::Live {
            document().set_title("Live · Toolshelf");
        }
    });
    on_cleanup(move || {
        voice::stop(desk);
        speech::hush();
    });
    let is_empty = Memo::new(move |_| desk.lines.with(Vec::is_empty));
    let body = move || match is_empty.get() {
        true => lines::teach(state, desk),
        false => lines::lines(desk),
    };
    let actions = move || {
        (!is_empty.get()).then(|| {
            let text = Signal::derive(move || desk.transcript());
            view! {
                <CopyButton text=text words="Copy" class="btn btn--quiet copy"/>
                <button class="btn btn--quiet" type="button" on:click=move |_| desk.clear(state)>
                    <Icon name="#i-trash"/>
                    "Clear"
                </button>
            }
        })
    };
    let agent = move || {
        let count = state.offered.get().filter(|count| *count > 0)?;
        let tools = counted(count as u64, "call", "calls");
        Some(
            view! { <p class="live__agent muted">"The browser's own agent is offered "{tools}" of this page."</p> },
        )
    };
    let panel = view! {
        <main class="page live" id="main" tabindex="-1">
            <div class="panel__head">
                <h1 id="panel-h" tabindex="-1">"Live"</h1>
                <div class="row live__tools">{actions}</div>
            </div>
            <div class="live__body">
                {body}
                {compose::compose(state, desk)}
                {agent}
            </div>
        </main>
    };
    Ok(panel.into_any())
}
