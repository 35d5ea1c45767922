//! What a call came back with, shown as what it is.

pub(crate) mod blocks;
pub(crate) mod compare;
pub(crate) mod diff_dom;
pub(crate) mod diff_rows;
pub(crate) mod diff_view;
pub(crate) mod digest;
pub(crate) mod hexdump;
pub(crate) mod refusal;

use std::sync::Arc;

use leptos::prelude::*;
use toolshelf_browser::core::call::Answer;
use toolshelf_browser::core::limits::WASM_CALL_DEADLINE_MS;
use toolshelf_browser::core::script::Op;

use self::blocks::RawJson;
use self::diff_view::diff_result;
use self::digest::DigestResult;
use self::refusal::RefusalNote;
use crate::actions;
use crate::state::{End, Outcome, use_state};
use crate::text;
use crate::ui::arriving::arriving;
use crate::ui::icon::Icon;

/// The result of the last run of a tool, or the wait for it.
#[component]
pub(crate) fn ResultPanel(
    /// Under what the page keeps what it knows of the tool.
    key: String,
    /// What the last run came back with.
    outcome: RwSignal<Option<Arc<Outcome>>>,
) -> impl IntoView {
    let state = use_state();
    let waiting = {
        let key = key.clone();
        Memo::new(move |_| state.waiting(&key).is_some())
    };
    let body = move || match (waiting.get(), outcome.get()) {
        (true, _) => view! { <Wait key=key.clone()/> }.into_any(),
        (false, Some(outcome)) => shown(&outcome),
        (false, None) => view! { <p class="result__none">"Nothing has run yet."</p> }.into_any(),
    };
    let about = move || outcome.with(|outcome| outcome.as_deref().filter(|_| !waiting.get()).and_then(about));
    view! {
        <section class="result" aria-labelledby="result-h" aria-busy=move || waiting.get().then_some("true")>
            <div class="result__head"><h3 id="result-h">"Result"</h3><span class="muted">{about}</span></div>
            {body}
        </section>
    }
}

/// One line about a result, beside its heading.
fn about(outcome: &Outcome) -> Option<String> {
    let End::Answered(answer) = &outcome.end else { return None };
    let bytes = text::counted(answer.input_bytes as u64, "byte", "bytes");
    Some(match &answer.blocks {
        Some(_) => [&bytes, " compared"].concat(),
        // Any module may export the function that the ABI calls; only this one is known to be what it says.
        None if answer.tool == "hash" => ["SHA-256 of ", &bytes].concat(),
        None => ["32 bytes for ", &bytes, " of input"].concat(),
    })
}

/// What a run came back with.
pub(crate) fn shown(outcome: &Arc<Outcome>) -> AnyView {
    match &outcome.end {
        End::Refused(refusal) => view! { <RefusalNote refusal=refusal.clone()/> }.into_any(),
        End::Stopped(after_ms) => {
            let after = text::millis(*after_ms);
            view! {
                <div class="note">
                    <Icon name="#i-cross"/>
                    <h4>"Stopped"</h4>
                    <p>"You stopped the run after "{after}"; its worker was ended."</p>
                </div>
            }
            .into_any()
        }
        End::Answered(answer) => answered(answer, outcome),
    }
}

fn answered(answer: &Answer, outcome: &Arc<Outcome>) -> AnyView {
    match &answer.blocks {
        None => view! { <DigestResult digits=answer.output.clone()/> }.into_any(),
        Some(blocks) if blocks.iter().any(|block| matches!(block.op, Op::Unknown(_))) => {
            view! { <RawJson blocks=blocks.clone()/> }.into_any()
        }
        Some(blocks) => {
            let (outcome, blocks, bytes) = (Arc::clone(outcome), blocks.clone(), answer.output.len() / 2);
            let text = move |at: usize| outcome.inputs.get(at).cloned().unwrap_or_default();
            arriving(move || diff_result(text(0), text(1), blocks.clone(), bytes))
        }
    }
}

/// The time that a run has taken of its deadline, and a way to end it.
#[component]
fn Wait(
    /// Under what the page keeps what it knows of the tool.
    key: String,
) -> impl IntoView {
    let state = use_state();
    let deadline = f64::from(WASM_CALL_DEADLINE_MS);
    let time = {
        let key = key.clone();
        Memo::new(move |_| state.waiting(&key).unwrap_or_default().min(deadline))
    };
    let words = move || {
        [&text::tenths(time.get() / 1_000.0), " of ", &text::tenths(deadline / 1_000.0), " s"].concat()
    };
    view! {
        <div class="wait">
            <div class="row"><span>"Running in a fresh worker"</span><span class="muted">{words}</span></div>
            <progress
                max=WASM_CALL_DEADLINE_MS.to_string()
                prop:value=move || time.get()
                aria-label="Time used of the deadline"
            ></progress>
            <div class="row">
                <button class="btn" type="button" on:click=move |_| actions::stop(state, &key)>"Stop"</button>
            </div>
        </div>
    }
}
