//! Files that are dragged over the page: a folder becomes a shelf, files go into the form.

use leptos::ev::DragEvent;
use leptos::prelude::*;
use leptos::task::spawn_local;
use toolshelf_browser::core::manifest::MANIFEST_FILE;
use toolshelf_browser::{PickedFile, pick};
use wasm_bindgen::JsCast as _;
use web_sys::{DataTransfer, Element};

use crate::actions;
use crate::state::{Drag, Field, State, use_state};
use crate::ui::dom::has_files;
use crate::ui::icon::Icon;

/// What lies over the page while a folder is dragged over it.
#[component]
pub(super) fn Veil() -> impl IntoView {
    let state = use_state();
    let listeners = [
        window_event_listener(leptos::ev::dragenter, move |event| over(state, &event)),
        window_event_listener(leptos::ev::dragover, move |event| over(state, &event)),
        window_event_listener(leptos::ev::dragleave, move |event| {
            // Only leaving the window has nowhere to go.
            if event.related_target().is_none() {
                set(state, Drag::None);
            }
        }),
        window_event_listener(leptos::ev::drop, move |event| dropped(state, &event)),
    ];
    on_cleanup(move || listeners.into_iter().for_each(|listener| listener.remove()));
    view! {
        <Show when=move || state.drag.get() == Drag::Page>
            <div class="veil" role="status">
                <Icon name="#i-folder"/>
                <p>"Drop the folder to add a shelf"</p>
                <p>"Its manifest.json is read here, in this tab."</p>
            </div>
        </Show>
    }
}

fn set(state: State, drag: Drag) {
    if state.drag.get_untracked() != drag {
        state.drag.set(drag);
    }
}

fn over(state: State, event: &DragEvent) {
    if has_files(event) {
        event.prevent_default();
        set(state, aim(state, event));
    }
}

/// What letting go here would do, as far as a browser tells before: the number and the types of what is dragged, and
/// folders have no type.
fn aim(state: State, event: &DragEvent) -> Drag {
    if let Some(field) = field_under(event) {
        return Drag::Field(field);
    }
    let Some(items) = event.data_transfer().map(|transfer| transfer.items()) else { return Drag::Page };
    let mut kinds = (0..items.length()).filter_map(|at| items.get(at)).map(|item| item.type_());
    let looks_like_input = kinds.all(|kind| !kind.is_empty() && kind != "application/json");
    if looks_like_input && items.length() <= 2 && callable(state).is_some() { Drag::Form } else { Drag::Page }
}

fn field_under(event: &DragEvent) -> Option<usize> {
    let target = event.target()?.dyn_into::<Element>().ok()?;
    target.closest(".input[data-field]").ok()??.get_attribute("data-field")?.parse().ok()
}

/// Names of what is dropped, in its order.
fn names(transfer: &DataTransfer) -> Vec<String> {
    let Some(files) = transfer.files() else { return Vec::new() };
    (0..files.length()).filter_map(|at| files.get(at)).map(|file| file.name()).collect()
}

/// The selected tool, if it has a form.
fn callable(state: State) -> Option<(String, toolshelf_browser::core::Abi)> {
    untrack(|| state.selected()).and_then(|selected| Some((selected.tool.id.clone(), selected.abi()?)))
}

fn dropped(state: State, event: &DragEvent) {
    if !has_files(event) {
        return;
    }
    event.prevent_default();
    let field = field_under(event);
    set(state, Drag::None);
    let Some(transfer) = event.data_transfer() else { return };
    let order = names(&transfer);
    let files = pick::from_drop(&transfer);
    spawn_local(async move {
        let mut files = files.await;
        // Folders are walked in any order; plain files keep theirs, so that the first one is the old text.
        files.sort_by_key(|file| order.iter().position(|name| *name == file.path));
        let is_manifest = |file: &PickedFile| file.path.rsplit('/').next() == Some(MANIFEST_FILE);
        let is_shelf = files.iter().any(|file| file.path.contains('/') || is_manifest(file));
        match callable(state).filter(|_| files.len() <= 2 && (field.is_some() || !is_shelf)) {
            Some((id, abi)) if !files.is_empty() && !files.iter().any(|file| file.path.contains('/')) => {
                let inputs = abi.layout().inputs;
                let form = state.form(&id, abi);
                let is_empty = |at: &usize| form.fields[*at].with_untracked(Field::is_empty);
                // Two files go into two fields; a single one where it was dropped, or into the first that is free.
                let first = match field.filter(|field| *field < inputs.len() && files.len() == 1) {
                    Some(field) => field,
                    None if files.len() == 1 => (0..inputs.len()).find(is_empty).unwrap_or(0),
                    None => 0,
                };
                for ((file, field), input) in
                    files.into_iter().zip(&form.fields[first..]).zip(&inputs[first..])
                {
                    actions::fill(state, field.clone(), input, file.file);
                }
            }
            _ => actions::add(state, files),
        }
    });
}
