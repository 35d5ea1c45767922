//! The extensions in the list of shelves, and the way to facts.

use leptos::prelude::*;
use toolshelf_browser::companion::installed::Extension;

use super::desk::{Desk, key};
use super::place::{self, FACTS, INSTALLED, Named};
use super::{parts, service, words};
use crate::extensions::tool_row::Latency;
use crate::route::Place;
use crate::state::{State, tool_key};
use crate::text::counted;
use crate::ui::icon::Icon;

/// What is installed. It is read again when the connection is open again, and when somebody looks at the page again.
pub(super) fn list(state: State, desk: Desk) -> AnyView {
    Effect::new(move || {
        if state.machine.is_connected() {
            service::reload(state, desk);
        }
    });
    let again = window_event_listener_untyped("visibilitychange", move |_| {
        if !document().hidden() {
            service::reload(state, desk);
        }
    });
    on_cleanup(move || again.remove());
    let count = move || {
        let count = desk.listed.with(|listed| Some(listed.as_ref()?.as_ref().ok()?.extensions.len()));
        count.map(|count| [&count.to_string(), " installed"].concat())
    };
    let all = move || {
        desk.listed.with(|listed| {
            let listed = listed.as_ref().and_then(|listed| listed.as_ref().ok());
            listed.map(|listed| listed.extensions.clone()).unwrap_or_default()
        })
    };
    // One that did not change keeps its elements, and with them the focus.
    let print = |one: &Extension| {
        (one.manifest.id.clone(), one.manifest_hash.clone(), one.is_quarantined, one.installed_at_ms)
    };
    let instead = move || {
        desk.listed.with(|listed| match listed {
            Some(Err(no)) => parts::problem(no),
            Some(Ok(listed)) if listed.extensions.is_empty() => view! {
                <p class="shelf__empty">"Nothing is installed yet."</p>
            }
            .into_any(),
            _ => ().into_any(),
        })
    };
    let current = move |address: &'static str| {
        move || {
            let is_here = state.route.with(|route| {
                route.installed.as_ref().is_some_and(|named| match place::parse(named) {
                    Named::Nothing => address == INSTALLED,
                    Named::Extension(_) => false,
                    _ => address == FACTS,
                })
            });
            is_here.then_some("true")
        }
    };
    view! {
        <section class="installed" aria-labelledby="installed-h">
            <div class="machine__head">
                <h2 id="installed-h">"Extensions on "{move || state.machine.label()}</h2>
                <p class="muted num">{count}</p>
            </div>
            <div class="shelf">
                {instead}
                <ul role="list"><For each=all key=print let(one)>{row(state, one)}</For></ul>
                <div class="installed__foot">
                    <a class="btn btn--quiet" href=INSTALLED aria-current=current(INSTALLED)>
                        <Icon name="#i-download"/>"Install…"
                    </a>
                    <a class="btn btn--quiet" href=FACTS aria-current=current(FACTS)>
                        <Icon name="#i-file"/>"Facts"
                    </a>
                </div>
            </div>
        </section>
    }
    .into_any()
}

fn row(state: State, one: Extension) -> AnyView {
    let named = Named::Extension(one.manifest.id.clone());
    let address = place::address(&named);
    let current = move || {
        let is_named = state
            .route
            .with(|route| route.installed.as_ref().is_some_and(|address| place::parse(address) == named));
        is_named.then_some("true")
    };
    let (kind, standing) = match one.is_quarantined {
        false => ("callable", view! { <b>"Active"</b> }.into_any()),
        true => ("idle", view! { <span class="warn">"Quarantined"</span> }.into_any()),
    };
    // With more than one tool there is no one latency.
    let only = <[_; 1]>::try_from(one.manifest.tools.clone()).ok();
    let latency = only.map(|[tool]| {
        let key = tool_key(Place::Machine, &key(&one.manifest.id, &tool.name));
        view! { <Latency key=key/> }
    });
    let tools = counted(one.manifest.tools.len() as u64, "tool", "tools");
    view! {
        <li class="tool" data-state=kind data-extension=one.manifest.id.clone()>
            <span class="dot" aria-hidden="true"></span>
            <a class="tool__open" href=address aria-current=current>{words::name(&one.manifest.name)}</a>
            {latency}
            <p class="tool__desc">{words::shown(&one.manifest.summary, 200)}</p>
            <p class="tool__state">{standing}" · "{words::trust(one.trust)}</p>
            <p class="tool__chips">
                <span class="chip">{words::shown(&one.manifest.version, 20)}</span>
                <span class="chip">{kind_of(&one.manifest.kind)}</span>
                <span class="chip">{tools}</span>
            </p>
        </li>
    }
    .into_any()
}

/// What an extension is, in a word or two.
pub(super) fn kind_of(kind: &str) -> &'static str {
    match kind {
        "wasm" => "module",
        "external_tool" => "external service",
        _ => "never called",
    }
}
