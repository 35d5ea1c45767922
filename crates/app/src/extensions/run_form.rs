//! The form that runs a tool, made from the ABI's buffers.

use leptos::ev::{KeyboardEvent, SubmitEvent};
use leptos::prelude::*;
use toolshelf_browser::core::Abi;
use toolshelf_browser::core::limits::{
    WASM_CALL_DEADLINE_MS, WASM_CHILD_MAX_STDOUT_BYTES, WASM_MAX_CONCURRENT_WORKERS, WASM_MAX_QUEUE_DEPTH,
    WASM_MEMORY_MAX_BYTES, WASM_MODULE_MAX_BYTES,
};

use super::field::FieldInput;
use crate::actions;
use crate::route::Place;
use crate::state::{Field, Form, tool_key, use_state};
use crate::text::thousands;
use crate::ui::dom;

/// One field for each buffer, and the buttons.
#[component]
pub(super) fn RunForm(
    /// Where it runs.
    place: Place,
    /// The tool's id.
    id: String,
    /// How it is called.
    abi: Abi,
    /// What is kept of it.
    form: Form,
) -> impl IntoView {
    let state = use_state();
    let inputs = abi.layout().inputs;
    let is_running = {
        let key = tool_key(place, &id);
        Memo::new(move |_| state.is_running(&key))
    };
    let is_over = {
        let fields = form.fields.clone();
        Memo::new(move |_| {
            let over = |(field, input): (&ArcRwSignal<Field>, &toolshelf_browser::core::abi::Input)| {
                field.with(|field| input.check_size(field.size()).is_err())
            };
            fields.iter().zip(inputs).any(over)
        })
    };
    let run = {
        let form = form.clone();
        move || actions::run(state, place, &id, abi, &form)
    };
    let submit = {
        let run = run.clone();
        move |event: SubmitEvent| {
            event.prevent_default();
            run();
        }
    };
    let keys = move |event: KeyboardEvent| {
        if event.key() == "Enter" && (event.ctrl_key() || event.meta_key()) && !event.is_composing() {
            event.prevent_default();
            run();
        }
    };
    let fields = form.fields.iter().zip(inputs).enumerate().map(|(at, (field, input))| {
        view! { <FieldInput at=at count=inputs.len() input=input field=field.clone()/> }
    });
    let fields = fields.collect_view();
    let clear = move |_| {
        form.fields.iter().for_each(|field| field.set(Field::Text(String::new())));
        form.outcome.set(None);
        dom::focus_soon(".run .input__text".to_owned());
    };
    view! {
        <form class="run" aria-label="Run this tool" on:submit=submit on:keydown=keys>
            <div class="run__fields" data-pair=inputs.len() == 2>{fields}</div>
            <div class="run__actions">
                <button
                    class="btn btn--primary"
                    type="submit"
                    aria-busy=move || is_running.get().then_some("true")
                    aria-disabled=move || is_running.get().then_some("true")
                    disabled=move || is_over.get()
                >
                    <span class="btn__swap"><span>"Run"</span><span class="is-busy">"Running…"</span></span>
                </button>
                <button class="btn btn--quiet" type="button" on:click=clear>"Clear"</button>
                <span class="run__hint"><kbd>{dom::control_key()}</kbd>" "<kbd>"Enter"</kbd>" runs it"</span>
                <span class="grow"></span>
                <button class="btn btn--quiet run__limits" type="button" popovertarget="limits">"Limits"</button>
            </div>
        </form>
    }
}

/// What no call may go beyond.
#[component]
pub(super) fn Limits() -> impl IntoView {
    let mib = |bytes: u64| [&thousands(bytes / (1024 * 1024)), " MiB"].concat();
    let number = |number: usize| thousands(number as u64);
    let limits = [
        ("Time", [&thousands(WASM_CALL_DEADLINE_MS.into()), " ms"].concat()),
        ("Linear memory", mib(WASM_MEMORY_MAX_BYTES)),
        ("Module file", mib(WASM_MODULE_MAX_BYTES as u64)),
        ("Output", mib(WASM_CHILD_MAX_STDOUT_BYTES as u64)),
        (
            "At the same time",
            [&number(WASM_MAX_CONCURRENT_WORKERS), ", then ", &number(WASM_MAX_QUEUE_DEPTH), " waiting"]
                .concat(),
        ),
    ];
    let rows = limits.map(|(name, value)| view! { <dt>{name}</dt><dd>{value}</dd> });
    view! {
        <div class="pop" id="limits" popover="auto">
            <h3>"Limits of a call"</h3>
            <dl>{rows.collect_view()}</dl>
            <p>"The page sets them. No manifest can raise them."</p>
        </div>
    }
}
