//! The Environments panel: where tasks can run, the folders that they work in, and a person's data.
//!
//! | module | idea |
//! |---|---|
//! | `connect` | the way to a companion |
//! | `remotes` | other machines |
//! | `folders` | the folders, and which one new tasks get |
//! | `files` | what is in that one |
//! | `data` | everything of a person in one file |

pub(crate) mod connect;
mod data;
mod files;
mod folders;
mod remotes;

use leptos::prelude::*;
use leptos::wasm_split::{SplitLoaderError, wasm_split};
use toolshelf_browser::companion::remotes::RemoteInfo;
use toolshelf_browser::core::placement::{Placement, PlacementBounds};
use toolshelf_browser::tasks::Environment;

use crate::companion;
use crate::result::refusal::RefusalNote;
use crate::route::Panel;
use crate::state::State;
use crate::tasks::{Desk, service, words};
use crate::text::thousands;
use crate::ui::arriving::arriving;

/// The panel, fetched when it is first shown.
#[wasm_split(tasks, wasm_split_path = leptos::wasm_split, fallible)]
pub(crate) fn environments_view(state: State) -> Result<AnyView, SplitLoaderError> {
    let desk = Desk::of(state);
    service::open(state);
    Effect::new(move || {
        if state.route.with(|route| route.panel == Panel::Environments) {
            document().set_title("Environments · Toolshelf");
        }
    });
    let here = move || match state.environment.get() {
        Some(here) => this_browser(here),
        None => view! {
            <section class="env" aria-labelledby="env-here">
                <div class="env__head"><h2 id="env-here">"This browser"</h2></div>
                <p role="status">"Opening…"</p>
            </section>
        }
        .into_any(),
    };
    let summary = move || {
        let is_ready =
            state.environment.with(|here| here.as_ref().is_some_and(|here| here.unavailable.is_none()));
        let connected =
            |remotes: &Vec<RemoteInfo>| remotes.iter().filter(|remote| remote.state == "connected").count();
        match (is_ready, state.machine.is_connected(), state.machine.remotes.with(connected)) {
            (true, true, 0) => "2 ready · 1 not connected".to_owned(),
            (true, true, remotes) => [&(2 + remotes).to_string(), " ready"].concat(),
            (true, false, _) => "1 ready · 2 not connected".to_owned(),
            (false, ..) => String::new(),
        }
    };
    let machine = move || match state.machine.is_wanted.get() {
        true => arriving(move || companion::card_view(state)),
        false => connect::away(state),
    };
    let others = move || match state.machine.is_wanted.get() {
        true => arriving(move || remotes::remotes_view(state)),
        false => remote(),
    };
    let panel = view! {
        <main class="page" id="main" tabindex="-1">
            <div class="panel__head">
                <h1 id="panel-h" tabindex="-1">"Environments"</h1>
                <p class="muted num">{summary}</p>
            </div>
            <div class="panel__cols">
                <div class="panel__list">
                    {here}
                    {machine}
                    {others}
                </div>
                <div class="here">
                    {folders::folders(state, desk)}
                    {data::data(state)}
                </div>
            </div>
        </main>
    };
    Ok(panel.into_any())
}

/// The environment that the page itself is.
fn this_browser(here: Environment) -> AnyView {
    let Environment { key, bounds, active, persistent, model, damaged, unavailable, .. } = here;
    let (kind, word) = match &unavailable {
        None => ("callable", "Ready"),
        Some(_) => ("refused", "Unavailable"),
    };
    let refusal = unavailable.map(|refusal| view! { <RefusalNote refusal=refusal/> });
    let missing = (!persistent).then_some(
        "This browser keeps nothing for this page: tasks and their answers are gone when the tab closes.",
    );
    let active = [&active.to_string(), " of ", &bounds.max_active_tasks.to_string()].concat();
    let damaged = (!damaged.is_empty()).then(|| {
        let count = damaged.len().to_string();
        let names = damaged.into_iter().map(|name| view! { <li><code>{name}</code></li> });
        view! {
            <details class="raw">
                <summary>"Damaged records, set aside "<span class="muted">{count}</span></summary>
                <ul class="raw__body">{names.collect_view()}</ul>
            </details>
        }
    });
    view! {
        <section class="env" aria-labelledby="env-here">
            <div class="env__head">
                <h2 id="env-here">"This browser"</h2>
                <span class="state" data-state=kind><span class="dot" aria-hidden="true"></span>{word}</span>
            </div>
            <code class="env__key">{key}</code>
            {refusal}
            <dl>
                {grants(bounds)}
                {row("Active in this tab", active)}
                {row("Tasks after a reload", if persistent { "kept" } else { "gone" }.to_owned())}
                {row("Browser's model", if model { "can be asked" } else { "none here" }.to_owned())}
            </dl>
            {missing.map(|missing| view! { <p>{missing}</p> })}
            {damaged}
        </section>
    }
    .into_any()
}

/// Hosts that are not connected.
fn remote() -> AnyView {
    let bounds = Placement::Remote.bounds();
    view! {
        <section class="env env--away" aria-labelledby="env-remote">
            <div class="env__head">
                <h2 id="env-remote">"Paired remote hosts"</h2>
                <span class="state" data-state="idle"><span class="dot" aria-hidden="true"></span>"Not connected"</span>
            </div>
            <p>"Needs a host that was paired through the Toolshelf companion, and this page sees none."</p>
            <dl>{grants(bounds)}{row("At the same time", bounds.max_active_tasks.to_string())}</dl>
        </section>
    }
    .into_any()
}

/// What a placement grants to each task.
pub(crate) fn grants(bounds: PlacementBounds) -> AnyView {
    let (usual, longest) = (words::span(bounds.default_deadline_ms), words::span(bounds.max_deadline_ms));
    let output = [&thousands(bounds.max_output_bytes.into()), " bytes"].concat();
    view! {
        {row("Deadline", [&usual, ", up to ", &longest].concat())}
        {row("Longest answer", output)}
    }
    .into_any()
}

pub(crate) fn row(name: &'static str, value: String) -> AnyView {
    view! { <dt>{name}</dt><dd>{value}</dd> }.into_any()
}
