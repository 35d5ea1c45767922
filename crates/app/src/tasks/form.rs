//! Delegating a task.

use leptos::ev::{KeyboardEvent, SubmitEvent};
use leptos::prelude::*;
use toolshelf_browser::core::Abi;
use toolshelf_browser::core::task::input::TASK_MAX_BYTES;
use toolshelf_browser::tasks::{Access, Delegation, MODEL_AGENT};

use super::desk::Desk;
use super::{fields, service, words};
use crate::result::refusal::RefusalNote;
use crate::state::{Shelves, State};
use crate::text::thousands;
use crate::ui::dom;
use crate::ui::icon::Icon;

/// The deadlines on offer, in milliseconds. The last one is the placement's longest.
const DEADLINES_MS: [u32; 4] = [5_000, 30_000, 60_000, 300_000];

/// A tool that can be given a task.
#[derive(Debug, Clone, PartialEq)]
struct Agent {
    id: String,
    description: String,
    abi: Abi,
}

/// The form.
pub(super) fn form(state: State, desk: Desk) -> AnyView {
    let form = desk.form;
    let agents = Memo::new(move |_| agents(state));
    let has_model =
        Memo::new(move |_| state.environment.with(|here| here.as_ref().is_some_and(|here| here.model)));
    // The id, and the ABI where it is a tool.
    let chosen = Memo::new(move |_| {
        let wanted = form.agent.get();
        let model = has_model.get().then(|| (MODEL_AGENT.to_owned(), None));
        let tool = agents.with(|agents| {
            let tool = agents.iter().find(|agent| agent.id == wanted).or(agents.first())?;
            Some((tool.id.clone(), Some(tool.abi)))
        });
        if wanted == MODEL_AGENT { model.or(tool) } else { tool.or(model) }
    });
    let abi = Memo::new(move |_| chosen.get().map(|(_, abi)| abi));
    let size = Memo::new(move |_| abi.get().map_or(0, |abi| fields::task(state, desk, abi).len()));
    let unavailable = Memo::new(move |_| {
        state.environment.with(|here| here.as_ref().and_then(|here| here.unavailable.clone()))
    });
    let is_open = Memo::new(move |_| state.environment.with(Option::is_some));
    let is_off = Memo::new(move |_| {
        !is_open.get() || abi.get().is_none() || size.get() > TASK_MAX_BYTES || unavailable.get().is_some()
    });

    let send = move || {
        let Some((agent, abi)) = chosen.get_untracked() else { return };
        if is_off.get_untracked() || form.sending.get_untracked() {
            return;
        }
        let task = untrack(|| fields::task(state, desk, abi));
        let root = untrack(|| fields::folder(desk)).map(|folder| folder.root);
        let deadline_ms = Some(form.deadline_ms.get_untracked());
        service::delegate(state, Delegation { agent, task, deadline_ms, root });
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
        agents
            .get()
            .into_iter()
            .map(|agent| {
                let Agent { id, description, .. } = agent;
                let words = [&id, ": ", &description].concat();
                let value = id.clone();
                let is_chosen =
                    move || chosen.with(|chosen| chosen.as_ref().is_some_and(|chosen| chosen.0 == id));
                view! { <option value=value prop:selected=is_chosen>{words}</option> }
            })
            .collect_view()
    };
    let is_model =
        move || chosen.with(|chosen| chosen.as_ref().is_some_and(|chosen| chosen.0 == MODEL_AGENT));
    let model = move || match has_model.get() {
        true => "Browser's model: answers in words",
        false => "Browser's model: this browser has none to ask",
    };
    let given = move || {
        match abi.get() {
        Some(abi) => fields::fields(state, desk, abi),
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
                    {fields::path_field(state, desk, "task-out".to_owned(), form.out, "out/answer.txt")}
                </div>
            }
        })
    };
    let cols = move || if abi.get().flatten().is_some() { "3" } else { "2" };
    let deadline = |ms: u32| {
        let is_chosen = move || form.deadline_ms.get() == ms;
        view! { <option value=ms.to_string() prop:selected=is_chosen>{words::span(ms)}</option> }
    };
    let set_deadline = move |event| {
        if let Ok(ms) = event_target_value(&event).parse() {
            form.deadline_ms.set(ms);
        }
    };
    let is_over = move || size.get() > TASK_MAX_BYTES;
    let count =
        move || [&thousands(size.get() as u64), " / ", &thousands(TASK_MAX_BYTES as u64), " bytes"].concat();
    let refusal = move || {
        let refusal = unavailable.get().or_else(|| form.refusal.get())?;
        Some(view! { <RefusalNote refusal=refusal/> })
    };
    view! {
        <article class="detail work" aria-labelledby="detail-h">
            <header class="detail__head">
                <h2 id="detail-h" tabindex="-1">"Delegate a task"</h2>
                <p class="detail__desc">
                    "A tool or the browser's model works on it beside the page, under a deadline. It stays in the \
                    list with its answer and everything that happened to it."
                </p>
            </header>
            <form class="run" aria-labelledby="detail-h" on:submit=submit on:keydown=keys>
                <div class="opt">
                    <label for="agent">"Agent"</label>
                    <select
                        class="field"
                        id="agent"
                        on:change=move |event| form.agent.set(event_target_value(&event))
                    >
                        {options}
                        <option value=MODEL_AGENT disabled=move || !has_model.get() prop:selected=is_model>{model}</option>
                    </select>
                </div>
                <div class="run__fields" data-pair=is_pair>{given}</div>
                <div class="opts" data-cols=cols>
                    {folder_choice(desk)}
                    <div class="opt">
                        <label for="task-deadline">"Deadline"</label>
                        <select class="field" id="task-deadline" on:change=set_deadline>
                            {DEADLINES_MS.map(deadline).collect_view()}
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
fn folder_choice(desk: Desk) -> AnyView {
    // The place in the list stands for the folder: descriptors are no short texts.
    let choose = move |event| {
        let at = event_target_value(&event).parse::<usize>().ok();
        let root = desk.folders.with_untracked(|folders| {
            let folders = folders.as_ref()?.as_ref().ok()?;
            Some(folders.get(at?)?.root.clone())
        });
        desk.form.root.set(root);
    };
    let options = move || {
        let chosen = fields::folder(desk);
        let folders = desk.folders.get().and_then(Result::ok).unwrap_or_default();
        let option = |(at, folder): (usize, toolshelf_browser::tasks::Folder)| {
            let is_chosen = chosen.as_ref().is_some_and(|chosen| chosen.root == folder.root);
            let access = match folder.access {
                Access::Granted => "",
                Access::Ask => " (to be allowed again)",
                Access::Denied => " (not allowed)",
                Access::Gone => " (gone)",
            };
            view! { <option value=at.to_string() prop:selected=is_chosen>{folder.label}{access}</option> }
        };
        folders.into_iter().enumerate().map(option).collect_view()
    };
    view! {
        <div class="opt">
            <label for="task-folder">"Folder"</label>
            <select class="field" id="task-folder" on:change=choose>{options}</select>
        </div>
    }
    .into_any()
}

/// The tools that can be called.
fn agents(state: State) -> Vec<Agent> {
    state.shelves.with(|shelves| {
        let Shelves::Read(readings) = shelves else { return Vec::new() };
        let shelves = readings.iter().filter_map(|reading| reading.shelf.as_ref().ok());
        let agent = |tool: &toolshelf_browser::core::shelf::Tool| {
            let abi = tool.verdict.as_ref().ok()?.abi?;
            Some(Agent { id: tool.id.clone(), description: tool.description.clone(), abi })
        };
        shelves.flat_map(|shelf| &shelf.tools).filter_map(agent).collect()
    })
}
