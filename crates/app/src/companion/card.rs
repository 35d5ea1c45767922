//! The machine among the environments, and how the connection to it stands.

use leptos::prelude::*;
use toolshelf_browser::companion::Connection;
use toolshelf_browser::core::RootDescriptor;
use toolshelf_browser::core::live::{AgentInfo, MachineEnvironment, MachineRoot};

use super::{disconnect, retry};
use crate::environments::{connect, grants, row};
use crate::result::refusal::RefusalNote;
use crate::state::State;
use crate::tasks::words;
use crate::ui::copy::CopyButton;
use crate::ui::dom;
use crate::ui::icon::Icon;
use crate::ui::rich::rich;

/// The machine: how it is connected, what it grants, its folders and its agents.
pub(super) fn card(state: State) -> AnyView {
    let link = state.machine;
    let standing = Memo::new(move |_| link.connection.with(standing));
    let known = move || match (link.unreadable.get(), link.environment.get()) {
        (Some(refusal), _) => view! { <RefusalNote refusal=refusal/> }.into_any(),
        (None, Some(known)) => facts(known),
        (None, None) => ().into_any(),
    };
    // Another token is of use only where this one was refused.
    let is_refused = Memo::new(move |_| link.connection.with(|now| matches!(now, Connection::Refused(_))));
    let other = move || is_refused.get().then(|| connect::field(state));
    let leave = move |_| {
        disconnect(state);
        dom::focus_soon("#env-machine".to_owned());
    };
    view! {
        <section class="env" aria-labelledby="env-machine">
            <div class="env__head">
                <h2 id="env-machine" tabindex="-1">{move || link.label()}</h2>
                <span class="state" data-state=move || standing.get().0>
                    <span class="dot" aria-hidden="true"></span>
                    {move || standing.get().1}
                </span>
            </div>
            {lost(state)}
            {other}
            {known}
            <div class="row env__foot">
                <button
                    class="btn btn--quiet"
                    type="button"
                    title="Forget the token; tasks go on without this page"
                    on:click=leave
                >
                    "Disconnect"
                </button>
            </div>
        </section>
    }
    .into_any()
}

/// How the connection stands: its colour and its word.
fn standing(connection: &Connection) -> (&'static str, &'static str) {
    match connection {
        Connection::Connected => ("callable", "Connected"),
        Connection::Connecting => ("running", "Connecting"),
        Connection::Waiting { .. } => ("idle", "Reconnecting"),
        Connection::Refused(_) => ("refused", "Refused"),
        Connection::Off => ("idle", "Not connected"),
    }
}

/// What is wrong with the connection, and a way to try again; nothing while it is open. A try that is short changes
/// nothing of what is seen.
pub(super) fn lost(state: State) -> AnyView {
    let link = state.machine;
    let shown = Memo::new(move |before: Option<&Connection>| match link.connection.get() {
        Connection::Connecting => match before {
            Some(lost @ (Connection::Waiting { .. } | Connection::Refused(_))) => lost.clone(),
            _ => Connection::Connecting,
        },
        // The time of the next try is no reason to draw the note again.
        Connection::Waiting { why, .. } => Connection::Waiting { until_ms: 0.0, why },
        now => now,
    });
    let again = move || {
        view! {
            <div class="row">
                <button class="btn" type="button" on:click=move |_| retry(state)>"Try again now"</button>
            </div>
        }
    };
    let note = move || {
        match shown.get() {
        Connection::Connected | Connection::Connecting | Connection::Off => ().into_any(),
        Connection::Refused(refusal) => {
            view! { <div class="lost"><RefusalNote refusal=refusal/>{again()}</div> }.into_any()
        }
        Connection::Waiting { why, .. } => view! {
            <div class="note note--warn lost" data-lost="">
                <Icon name="#i-bolt"/>
                <h4>"Not connected to "{move || link.label()}</h4>
                <p>
                    "What is shown is how it was last. The page tries again by itself, and tasks go on without it. \
                    If the companion was ended, start it with "<code>"toolshelf serve"</code>"."
                </p>
                <details class="raw"><summary><Icon name="#i-chevron"/>"Why"</summary><p>{rich(&why.to_string())}</p></details>
                {again()}
            </div>
        }
        .into_any(),
    }
    };
    note.into_any()
}

fn facts(known: MachineEnvironment) -> AnyView {
    let MachineEnvironment { key, placement, bounds, active, roots, agents, version, .. } = known;
    let active = [&active.to_string(), " of ", &bounds.max_active_tasks.to_string()].concat();
    let no_agents = agents.is_empty().then(|| {
        view! {
            <p class="muted">"None besides the tools of its shelf. They are set up in "<code>"toolshelf.toml"</code>"."</p>
        }
    });
    view! {
        <p class="env__key">
            <code>{key.clone()}</code>
            <CopyButton text=key label="Copy the environment's key"/>
        </p>
        <dl>
            {row("Placement", placement.as_str().to_owned())}
            {grants(bounds)}
            {row("Active now", active)}
            {row("Tasks without this page", "go on".to_owned())}
            {row("Version", version)}
        </dl>
        <h3>"Folders"</h3>
        <ul class="env__list" role="list">{roots.into_iter().map(root).collect_view()}</ul>
        <h3>"Agents"</h3>
        {no_agents}
        <ul class="env__list" role="list">{agents.into_iter().map(agent).collect_view()}</ul>
    }
    .into_any()
}

fn root(root: MachineRoot) -> AnyView {
    let path = match root.root {
        RootDescriptor::Machine { path, .. } => path,
        other => other.to_string(),
    };
    let gone = (!root.available).then(|| view! { <span class="chip chip--code">"gone"</span> });
    view! { <li><Icon name="#i-folder"/><code>{path}</code>{gone}</li> }.into_any()
}

fn agent(agent: AgentInfo) -> AnyView {
    let AgentInfo { name, description, deadline_ms } = agent;
    let about = match description.is_empty() {
        true => ["deadline ", &words::span(deadline_ms)].concat(),
        false => [&description, " · deadline ", &words::span(deadline_ms)].concat(),
    };
    view! { <li><Icon name="#i-play"/><span><b>{name}</b><small>{about}</small></span></li> }.into_any()
}
