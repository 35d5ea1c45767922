//! A diff as a diff.

use std::sync::Arc;

use leptos::prelude::*;
use leptos::wasm_split::{SplitLoaderError, wasm_split};
use toolshelf_browser::core::patch::unified;
use toolshelf_browser::core::script::Block;

use super::blocks::RawBlocks;
use super::diff_dom::Table;
use super::diff_rows::{Diff, View};
use crate::state::use_state;
use crate::text::{counted, thousands};
use crate::ui::copy::CopyButton;
use crate::ui::icon::Icon;
use crate::ui::preference;

/// [`DiffResult`], out of the chunk that only a diff needs.
#[wasm_split(diff, wasm_split_path = leptos::wasm_split, fallible)]
pub(crate) fn diff_result(
    old: Arc<[u8]>,
    new: Arc<[u8]>,
    blocks: Vec<Block>,
    bytes: usize,
) -> Result<AnyView, SplitLoaderError> {
    Ok(view! { <DiffResult old new blocks bytes/> }.into_any())
}

/// The difference between two texts, as a script of an untrusted module says.
#[component]
fn DiffResult(
    /// The old text.
    old: Arc<[u8]>,
    /// The new text.
    new: Arc<[u8]>,
    /// The script.
    blocks: Vec<Block>,
    /// Bytes of the script.
    bytes: usize,
) -> impl IntoView {
    let diff = Arc::new(Diff::new(old, new, &blocks));
    let body = match (diff.identical(), diff.faithful) {
        (true, _) => view! { <Identical diff=&diff/> }.into_any(),
        (false, true) => view! { <Changes diff=Arc::clone(&diff)/> }.into_any(),
        (false, false) => view! {
            <div class="note note--bad" data-unfaithful="">
                <Icon name="#i-alert"/>
                <h4>"The script does not match the texts"</h4>
                <p>
                    "What the module wrote does not turn the old text into the new one. What follows is as much of it \
                    as points at lines that exist; do not rely on it."
                </p>
            </div>
            <Changes diff=Arc::clone(&diff)/>
        }
        .into_any(),
    };
    view! { {body}<RawBlocks blocks=blocks bytes=bytes/> }
}

/// The notice that nothing differs.
#[component]
fn Identical<'a>(
    /// The diff.
    diff: &'a Diff,
) -> impl IntoView + use<> {
    let lines = counted(diff.new.len() as u64, "line", "lines");
    let bytes = counted(diff.new.bytes() as u64, "byte", "bytes");
    let loose = counted(diff.loose as u64, "line differs", "lines differ");
    let (title, words) = match diff.loose {
        0 => ("The texts are identical", [&lines, ", ", &bytes, ", no difference."].concat()),
        _ => (
            "The texts are the same but for white space",
            [&lines, ", of which ", &loose, " in white space."].concat(),
        ),
    };
    view! { <div class="note note--ok"><Icon name="#i-check"/><h4>{title}</h4><p>{words}</p></div> }
}

/// The changes as a table.
#[component]
fn Changes(
    /// The diff.
    diff: Arc<Diff>,
) -> impl IntoView {
    let state = use_state();
    let view = state.diff_view;
    let counts = diff.counts();
    let number = |count: usize| thousands(count as u64);
    let choose = |value: &'static str, words: &'static str, choice: View| {
        let choice_made = move |_| {
            view.set(choice);
            preference::set_diff_view(choice);
        };
        view! {
            <label class="seg__item">
                <input
                    type="radio"
                    name="view"
                    value=value
                    prop:checked=move || view.get() == choice
                    on:change=choice_made
                />
                {words}
            </label>
        }
    };
    let loose = (diff.loose > 0).then(|| {
        let lines = counted(diff.loose as u64, "differs", "differ");
        view! { <span class="muted">"of which "{lines}" in white space"</span> }
    });
    let copy = diff.faithful.then(|| {
        let diff = Arc::clone(&diff);
        let text = Signal::derive(move || unified(&diff));
        view! { <CopyButton text=text words="Copy patch" class="btn btn--quiet copy"/> }
    });
    let holder = NodeRef::<leptos::html::Div>::new();
    let table = Arc::new(Table::new(diff));
    Effect::new({
        let table = Arc::clone(&table);
        move || {
            let view = view.get();
            if let Some(holder) = holder.get() {
                table.draw(&holder, view);
            }
        }
    });
    view! {
        <div class="diff__bar">
            <p class="diff__sum">
                <span class="add">"+"{number(counts.added)}<span class="vh">" added"</span></span>
                <span class="del">"−"{number(counts.removed)}<span class="vh">" removed"</span></span>
                <span class="muted">{number(counts.unchanged)}" unchanged"</span>
                {loose}
            </p>
            <span class="grow"></span>
            <fieldset class="seg">
                <legend class="vh">"View"</legend>
                {choose("split", "Side by side", View::Split)}
                {choose("unified", "Unified", View::Unified)}
            </fieldset>
            {copy}
        </div>
        <div
            class="diff"
            data-view=move || if view.get() == View::Split { "split" } else { "unified" }
            tabindex="0"
            role="region"
            aria-label="Differences"
            node_ref=holder
            on:click=move |event| table.click(&event, view.get_untracked())
        ></div>
    }
}
