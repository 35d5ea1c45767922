//! The companion's tools in the Extensions panel.

use leptos::prelude::*;
use toolshelf_browser::Reading;
use toolshelf_browser::companion::Connection;

use crate::extensions::shelf_list::fingerprint;
use crate::extensions::tool_row::ToolRow;
use crate::result::refusal::RefusalNote;
use crate::route::{ENVIRONMENTS, Place};
use crate::state::State;
use crate::text::counted;

/// The shelves on the machine. One that did not change keeps its elements, and with them the focus.
pub(super) fn shelves(state: State) -> AnyView {
    let link = state.machine;
    let readings = move || link.shelves.get().and_then(Result::ok).unwrap_or_default();
    let refusal = move || {
        let refusal = link.shelves.with(|shelves| shelves.as_ref()?.as_ref().err().cloned())?;
        Some(view! { <RefusalNote refusal=refusal/> })
    };
    let standing = Memo::new(move |_| {
        let is_read = link.shelves.with(Option::is_some);
        link.connection.with(|connection| match connection {
            Connection::Connected => "",
            Connection::Refused(_) => "refused",
            Connection::Off => "not connected",
            Connection::Connecting | Connection::Waiting { .. } if is_read => "reconnecting",
            Connection::Connecting | Connection::Waiting { .. } => "connecting",
        })
    });
    let about = move || {
        let words = standing.get();
        (!words.is_empty()).then(|| view! { <a href=ENVIRONMENTS>{words}</a> })
    };
    view! {
        <section class="machine" aria-labelledby="machine-h">
            <div class="machine__head">
                <h2 id="machine-h">"On "{move || link.label()}</h2>
                <p class="muted">{about}</p>
            </div>
            {refusal}
            <For each=readings key=fingerprint let(reading)>{shelf(reading)}</For>
        </section>
    }
    .into_any()
}

fn shelf(reading: Reading) -> AnyView {
    let Reading { key, shelf } = reading;
    let heading = ["m-", &key].concat();
    let shelf = match shelf {
        Ok(shelf) => shelf,
        Err(refusal) => {
            return view! {
                <section class="shelf" aria-labelledby=heading.clone() data-machine-shelf=key.clone()>
                    <div class="shelf__head">
                        <h3 class="shelf__name" id=heading.clone()>{key.clone()}</h3>
                        <p class="shelf__meta">"could not be read"</p>
                    </div>
                    <RefusalNote refusal=refusal/>
                </section>
            }
            .into_any();
        }
    };
    let count = shelf.tools.len();
    let tools = counted(count as u64, "tool", "tools");
    let meta = match shelf.dir.is_empty() || shelf.dir == shelf.name {
        true => tools,
        false => [&tools, " · ", &shelf.dir].concat(),
    };
    let rows = shelf.tools.into_iter().map(|tool| {
        // An id that another shelf has as well needs its shelf in the address.
        let shelf = tool.verdict.is_err().then(|| key.clone());
        view! { <ToolRow place=Place::Machine tool=tool shelf=shelf/> }
    });
    let rows = rows.collect_view();
    view! {
        <section class="shelf" aria-labelledby=heading.clone() data-machine-shelf=key.clone()>
            <div class="shelf__head">
                <h3 class="shelf__name" id=heading.clone()>
                    {shelf.name}" "<span class="version">"version "{shelf.version}</span>
                </h3>
                <p class="shelf__meta">{meta}</p>
            </div>
            {(count == 0).then(|| view! { <p class="shelf__empty">"Its manifest lists no tools."</p> })}
            <ul role="list">{rows}</ul>
        </section>
    }
    .into_any()
}
