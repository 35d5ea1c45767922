//! What is given to the agent: for each argument a text, or a file of the folder.

use leptos::prelude::*;
use toolshelf_browser::core::Abi;

use super::compose::{Argument, for_tool};
use super::desk::{Desk, Given};
use super::places;
use super::service::with_tasks;
use crate::route::Place;
use crate::state::State;
use crate::text::capitalised;

/// The list of paths that fields suggest.
pub(super) const PATHS: &str = "task-paths";
/// Most paths that are suggested.
const MAX_PATHS: usize = 200;
/// What is given to an agent that is no tool.
const PROMPT: &str = "task";

/// The fields for a tool of that ABI, or for the browser's model.
pub(super) fn fields(state: State, desk: Desk, place: Place, abi: Option<Abi>) -> AnyView {
    let field = |name, label, can_be_file| field(state, desk, place, name, label, can_be_file);
    let Some(abi) = abi else { return field(PROMPT, "What to do".to_owned(), false) };
    let inputs = abi.layout().inputs;
    let fields = inputs.iter().map(|input| {
        let label = if inputs.len() == 1 { "Input".to_owned() } else { capitalised(input.description) };
        field(input.arguments[0], label, true)
    });
    fields.collect_view().into_any()
}

fn field(
    state: State,
    desk: Desk,
    place: Place,
    name: &'static str,
    label: String,
    can_be_file: bool,
) -> AnyView {
    let Given { text, path, is_file } = desk.form.given(state, name);
    let id = ["given-", name].concat();
    let about = match place {
        Place::Browser => "A path in the folder. Typing suggests what is there.",
        Place::Machine if state.machine.aim.with(Option::is_some) => {
            "A path in the companion's first folder; the file is sent along."
        }
        Place::Machine => "A path in the folder on that machine.",
    };
    let content = {
        let id = id.clone();
        move || match is_file.get() && can_be_file {
            false => view! {
                <div class="input__box">
                    <textarea
                        class="input__text"
                        id=id.clone()
                        spellcheck="false"
                        autocapitalize="off"
                        autocomplete="off"
                        prop:value=move || text.get()
                        on:input=move |event| text.set(event_target_value(&event))
                    ></textarea>
                </div>
            }
            .into_any(),
            true => view! {
                <div class="input__path">
                    {path_field(state, desk, place, id.clone(), path, "notes/old.txt")}
                    <p>{about}</p>
                </div>
            }
            .into_any(),
        }
    };
    let ways = can_be_file.then(|| {
        let group = [&id, "-kind"].concat();
        let way = |(file, word): (bool, &'static str)| {
            view! {
                <label class="seg__item">
                    <input
                        type="radio"
                        name=group.clone()
                        prop:checked=move || is_file.get() == file
                        on:change=move |_| is_file.set(file)
                    />
                    <span>{word}</span>
                </label>
            }
        };
        view! {
            <fieldset class="seg">
                <legend class="vh">{[&label, ": how it is given"].concat()}</legend>
                {[(false, "Text"), (true, "File")].map(way).collect_view()}
            </fieldset>
        }
    });
    view! {
        <div class="input">
            <div class="input__head"><label for=id>{label}</label>{ways}</div>
            {content}
        </div>
    }
    .into_any()
}

/// A field for a path in the folder, which suggests what is there.
pub(super) fn path_field(
    state: State,
    desk: Desk,
    place: Place,
    id: String,
    path: RwSignal<String>,
    hint: &'static str,
) -> AnyView {
    let paths = RwSignal::new(Vec::<String>::new());
    let list = [PATHS, "-", &id].concat();
    let input = move |event| {
        path.set(event_target_value(&event));
        suggest(state, desk, place, path, paths);
    };
    let options =
        move || paths.get().into_iter().map(|path| view! { <option value=path></option> }).collect_view();
    view! {
        <input
            class="field field--path"
            id=id
            list=list.clone()
            placeholder=hint
            spellcheck="false"
            autocapitalize="off"
            autocomplete="off"
            prop:value=move || path.get()
            on:input=input
            on:focus=move |_| suggest(state, desk, place, path, paths)
        />
        <datalist id=list>{options}</datalist>
    }
    .into_any()
}

/// Looks into the folder that the path is in.
fn suggest(state: State, desk: Desk, place: Place, path: RwSignal<String>, paths: RwSignal<Vec<String>>) {
    // Nobody lists the files of a machine for a page.
    if place == Place::Machine {
        return;
    }
    let folder =
        path.with_untracked(|path| path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned());
    let Some(root) = untrack(|| places::root(state, desk, place)) else { return };
    with_tasks(state, async move |tasks| {
        // A folder that is not there suggests nothing; the task itself says what is wrong with the path.
        let entries = tasks.folders().entries(&root, &folder).await.unwrap_or_default();
        let spelled = entries.into_iter().take(MAX_PATHS).map(|entry| {
            let end = if entry.size.is_none() { "/" } else { "" };
            entry.path + end
        });
        let now: Vec<_> = spelled.collect();
        if paths.try_with_untracked(|before| *before != now) == Some(true) {
            paths.set(now);
        }
    });
}

/// The text of the task.
pub(super) fn task(state: State, desk: Desk, abi: Option<Abi>) -> String {
    let argument = |name| {
        let Given { text, path, is_file } = desk.form.given(state, name);
        let is_file = is_file.get();
        let text = if is_file { path.get().trim().to_owned() } else { text.get() };
        Argument { name, text, is_file }
    };
    match abi {
        Some(abi) => {
            let arguments: Vec<_> =
                abi.layout().inputs.iter().map(|input| argument(input.arguments[0])).collect();
            for_tool(&arguments, desk.form.out.get().trim())
        }
        None => desk.form.given(state, PROMPT).text.get(),
    }
}
