//! Delegating a task.

use leptos::ev::{KeyboardEvent, SubmitEvent};
use leptos::prelude::*;
use toolshelf_browser::core::task::input::TASK_MAX_BYTES;
use toolshelf_browser::tasks::{Delegation, MODEL_AGENT};

use super::desk::Desk;
use super::places::{self, Agent, Root};
use super::{fields, service, words};
use crate::result::refusal::RefusalNote;
use crate::route::Place;
use crate::state::State;
use crate::text::thousands;
use crate::ui::dom;
use crate::ui::icon::Icon;

/// The form.
pub(super) fn form(state: State, desk: Desk, here: Memo<Place>) -> AnyView {
    let form = desk.form;
    let agents = Memo::new(move |_| places::agents(state, here.get()));
    let chosen = Memo::new(move |_| {
        let wanted = form.agent.get();
        agents.with(|agents| agents.iter().find(|agent| agent.id == wanted).or(agents.first()).cloned())
    });
    let abi = Memo::new(move |_| chosen.with(|chosen| chosen.as_ref().map(|agent| agent.abi)));
    let size = Memo::new(move |_| abi.get().map_or(0, |abi| fields::task(state, desk, abi).len()));
    let unavailable = Memo::new(move |_| match here.get() {
        Place::Browser => state.environment.with(|here| here.as_ref()?.unavailable.clone()),
        Place::Machine => None,
    });
    let is_open = Memo::new(move |_| match here.get() {
        Place::Browser => state.environment.with(Option::is_some),
        Place::Machine => state.machine.environment.with(Option::is_some),
    });
    let offered = Memo::new(move |_| {
        let bounds = places::bounds(state, here.get());
        chosen.with(|agent| places::deadlines(bounds, agent.as_ref()))
    });
    let deadline_ms = Memo::new(move |_| {
        let wanted = form.deadline_ms.get();
        offered.with(|(offered, usual)| wanted.filter(|wanted| offered.contains(wanted)).unwrap_or(*usual))
    });
    let is_off = Memo::new(move |_| {
        !is_open.get() || abi.get().is_none() || size.get() > TASK_MAX_BYTES || unavailable.get().is_some()
    });

    let send = move || {
        let Some(agent) = chosen.get_untracked() else { return };
        if is_off.get_untracked() || form.sending.get_untracked() {
            return;
        }
        let task = untrack(|| fields::task(state, desk, agent.abi));
        let root = untrack(|| places::root(state, desk, here.get()));
        let deadline_ms = Some(deadline_ms.get_untracked());
        service::delegate(state, Delegation { agent: agent.id, task, deadline_ms, root });
    };
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        send();
    };
    let keys = move |event: KeyboardEvent| {
        if event.key() == "Enter" && (event.ctrl_key() || event.meta_key()) && !event.is_composing() {
            event.prevent_default();
            send();
        }
    };
    let clear = move |_| {
        form.clear();
        dom::focus_soon(".run :is(.input__text, .field--path)".to_owned());
    };

    let options = move || {
        let option = |agent: Agent| {
            let Agent { id, description, .. } = agent;
            let name = if id == MODEL_AGENT { "Browser's model" } else { &id };
            let words =
                if description.is_empty() { name.to_owned() } else { [name, ": ", &description].concat() };
            let value = id.clone();
            let is_chosen =
                move || chosen.with(|chosen| chosen.as_ref().is_some_and(|chosen| chosen.id == id));
            view! { <option value=value prop:selected=is_chosen>{words}</option> }
        };
        agents.get().into_iter().map(option).collect_view()
    };
    // It is shown where it is missing too, so that it is known that there can be one.
    let no_model = move || {
        let has_model = agents.with(|agents| agents.iter().any(|agent| agent.id == MODEL_AGENT));
        (here.get() == Place::Browser && !has_model).then(|| {
            view! { <option value=MODEL_AGENT disabled>"Browser's model: this browser has none to ask"</option> }
        })
    };
    let given = move || {
        match abi.get() {
        Some(abi) => fields::fields(state, desk, here.get(), abi),
        None => view! {
            <div class="note">
                <Icon name="#i-alert"/>
                <h4>"Nobody to delegate to"</h4>
                <p>"No tool on the shelves can be called. "<a href=crate::route::PANEL>"Look at the shelves"</a></p>
            </div>
        }
        .into_any(),
    }
    };
    let is_pair = move || abi.get().flatten().is_some_and(|abi| abi.layout().inputs.len() == 2);
    let out = move || {
        let is_tool = abi.get().flatten().is_some();
        is_tool.then(|| {
            view! {
                <div class="opt">
                    <label for="task-out">"Write the answer to "<small>"optional"</small></label>
                    {fields::path_field(state, desk, here.get(), "task-out".to_owned(), form.out, "out/answer.txt")}
                </div>
            }
        })
    };
    let cols = move || if abi.get().flatten().is_some() { "3" } else { "2" };
    let deadline = move |ms: u32| {
        let is_chosen = move || deadline_ms.get() == ms;
        view! { <option value=ms.to_string() prop:selected=is_chosen>{words::span(ms)}</option> }
    };
    let deadlines = move || offered.with(|(offered, _)| offered.iter().copied().map(deadline).collect_view());
    let set_deadline = move |event| form.deadline_ms.set(event_target_value(&event).parse().ok());
    let is_over = move || size.get() > TASK_MAX_BYTES;
    let count =
        move || [&thousands(size.get() as u64), " / ", &thousands(TASK_MAX_BYTES as u64), " bytes"].concat();
    let refusal = move || {
        let refusal = unavailable.get().or_else(|| form.refusal.get())?;
        Some(view! { <RefusalNote refusal=refusal/> })
    };
    let about = move || match here.get() {
        Place::Browser => {
            "A tool or the browser's model works on it beside the page, under a deadline. It stays in the list with \
             its answer and everything that happened to it."
        }
        Place::Machine => {
            "A tool or an agent works on it on that machine, under a deadline. It goes on when this page is closed, \
             and stays in the list with its answer and everything that happened to it."
        }
    };
    view! {
        <article class="detail work" aria-labelledby="detail-h">
            <header class="detail__head">
                <h2 id="detail-h" tabindex="-1">"Delegate a task"</h2>
                <p class="detail__desc">{about}</p>
            </header>
            <form class="run" aria-labelledby="detail-h" on:submit=submit on:keydown=keys>
                <div class="opts opts--who">
                    {places::choice(state, here)}
                    <div class="opt">
                        <label for="agent">"Agent"</label>
                        <select
                            class="field"
                            id="agent"
                            on:change=move |event| form.agent.set(event_target_value(&event))
                        >
                            {options}
                            {no_model}
                        </select>
                    </div>
                </div>
                <div class="run__fields" data-pair=is_pair>{given}</div>
                <div class="opts" data-cols=cols>
                    {folder_choice(state, desk, here)}
                    <div class="opt">
                        <label for="task-deadline">"Deadline"</label>
                        <select class="field" id="task-deadline" on:change=set_deadline>
                            {deadlines}
                        </select>
                    </div>
                    {out}
                </div>
                <div class="run__actions">
                    <button
                        class="btn btn--primary"
                        type="submit"
                        aria-busy=move || form.sending.get().then_some("true")
                        aria-disabled=move || form.sending.get().then_some("true")
                        disabled=move || is_off.get()
                    >
                        <span class="btn__swap">
                            <span>"Delegate"</span><span class="is-busy">"Delegating…"</span>
                        </span>
                    </button>
                    <button class="btn btn--quiet" type="button" on:click=clear>"Clear"</button>
                    <span class="run__hint"><kbd>{dom::control_key()}</kbd>" "<kbd>"Enter"</kbd>" delegates it"</span>
                    <span class="grow"></span>
                    <span class="run__hint num" data-over=is_over>{count}</span>
                </div>
                {refusal}
            </form>
        </article>
    }
    .into_any()
}

/// The folder that the task works in.
fn folder_choice(state: State, desk: Desk, here: Memo<Place>) -> AnyView {
    let roots = Memo::new(move |_| places::roots(state, desk, here.get()));
    // The place in the list stands for the folder: descriptors are no short texts.
    let choose = move |event| {
        let at = event_target_value(&event).parse::<usize>().ok();
        desk.form.root.set(roots.with_untracked(|roots| Some(roots.get(at?)?.root.clone())));
    };
    let options = move || {
        let chosen = places::root(state, desk, here.get());
        let option = |(at, root): (usize, Root)| {
            let is_chosen = chosen.as_ref() == Some(&root.root);
            view! { <option value=at.to_string() prop:selected=is_chosen>{root.label}{root.about}</option> }
        };
        roots.get().into_iter().enumerate().map(option).collect_view()
    };
    view! {
        <div class="opt">
            <label for="task-folder">"Folder"</label>
            <select class="field" id="task-folder" on:change=choose>{options}</select>
        </div>
    }
    .into_any()
}
