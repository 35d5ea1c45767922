//! One field of the form: a text, or a file in its place.

use leptos::prelude::*;
use toolshelf_browser::core::abi::Input;
use toolshelf_browser::pick;

use crate::actions;
use crate::state::{Drag, Field, use_state};
use crate::text::{capitalised, thousands};
use crate::ui::icon::Icon;

/// A field with its size, which is counted as the module will see it: in bytes of UTF-8.
#[component]
pub(super) fn FieldInput(
    /// Its place in the form.
    at: usize,
    /// How many fields there are.
    count: usize,
    /// The buffer that it fills.
    input: &'static Input,
    /// What is in it.
    field: ArcRwSignal<Field>,
) -> impl IntoView {
    let state = use_state();
    let kept = field.clone();
    let field = RwSignal::from(field);
    let id = ["in-", input.arguments[0]].concat();
    let counter = [&id, "-count"].concat();
    let label = if count == 1 { "Input".to_owned() } else { capitalised(input.description) };
    let max = u64::from(input.max_bytes);
    let size = Memo::new(move |_| field.with(Field::size));
    let is_over = Memo::new(move |_| size.get() > max);
    let words = move || {
        let size = size.get();
        let mut words = [&thousands(size), " / ", &thousands(max), " bytes"].concat();
        if size > max {
            words.extend([" · ", &thousands(size - max), " over"]);
        }
        words
    };
    let is_dragged = move || match state.drag.get() {
        Drag::Field(place) => place == at,
        Drag::Form => true,
        Drag::None | Drag::Page => false,
    };
    let chooser = NodeRef::<leptos::html::Input>::new();
    let choose = move |_| {
        if let Some(chooser) = chooser.get() {
            chooser.click();
        }
    };
    let chosen = move |_| {
        let Some(chooser) = chooser.get() else { return };
        if let Some(picked) = pick::from_input(&chooser).into_iter().next() {
            actions::fill(state, kept.clone(), input, picked.file);
        }
        // The same file can be chosen again.
        chooser.set_value("");
    };
    let file_name = Memo::new(move |_| {
        field.with(|field| match field {
            Field::File { name, .. } => Some(name.clone()),
            Field::Text(_) => None,
        })
    });
    let content = {
        let (id, counter) = (id.clone(), counter.clone());
        move || match file_name.get() {
            Some(name) => view! { <FileChip name=name field=field id=id.clone()/> }.into_any(),
            None => {
                let text = move || {
                    field.with(|field| match field {
                        Field::Text(text) => text.clone(),
                        Field::File { .. } => String::new(),
                    })
                };
                view! {
                    <textarea
                        class="input__text"
                        id=id.clone()
                        spellcheck="false"
                        autocapitalize="off"
                        autocomplete="off"
                        aria-describedby=counter.clone()
                        aria-invalid=move || is_over.get().then_some("true")
                        prop:value=text
                        on:input=move |event| field.set(Field::Text(event_target_value(&event)))
                    ></textarea>
                }
                .into_any()
            }
        }
    };
    view! {
        <div
            class="input"
            data-field=at.to_string()
            data-over-limit=move || is_over.get()
            data-drag=is_dragged
        >
            <div class="input__head">
                <label for=id>{label}</label>
                <span class="input__count" id=counter>{words}</span>
            </div>
            <div class="input__box">
                {content}
                <progress
                    class="input__fill"
                    max=max.to_string()
                    prop:value=move || size.get().min(max) as f64
                    aria-hidden="true"
                ></progress>
            </div>
            <div class="input__foot">
                <button class="btn btn--quiet" type="button" on:click=choose><Icon name="#i-file"/>"Choose file"</button>
                <span class="fine-only">"or drop one here"</span>
                <input class="vh" type="file" tabindex="-1" aria-hidden="true" node_ref=chooser on:change=chosen/>
            </div>
        </div>
    }
}

/// A file in the place of the text.
#[component]
fn FileChip(
    /// Its name.
    name: String,
    /// The field that it fills.
    field: RwSignal<Field>,
    /// Id of the field, which its label names.
    id: String,
) -> impl IntoView {
    let label = ["Remove ", &name].concat();
    let about = move || {
        let is_read = field.with(|field| matches!(field, Field::File { bytes: Some(_), .. }));
        if is_read { "bytes are used as they are" } else { "too large for the buffer, so it was not read" }
    };
    view! {
        <div class="input__file">
            <Icon name="#i-file"/>
            <span class="grow"><b>{name}</b><small>{about}</small></span>
            <button
                class="btn btn--quiet btn--icon"
                id=id
                type="button"
                aria-label=label
                on:click=move |_| {
                    field.set(Field::Text(String::new()));
                    crate::ui::dom::focus_soon(".run .input__text".to_owned());
                }
            >
                <Icon name="#i-cross"/>
            </button>
        </div>
    }
}
