//! What an extension has put on record, and whether the log of it is whole.

use js_sys::Array;
use leptos::prelude::*;
use serde_json::{Value, json};
use toolshelf_browser::companion::installed::{RECEIPTS_LISTED, Receipt, Verdict};
use toolshelf_browser::core::refusal::Refusal;
use web_sys::Blob;

use super::desk::Desk;
use super::{parts, service, words};
use crate::state::State;
use crate::text::{counted, thousands};
use crate::ui::copy::CopyButton;
use crate::ui::dom;
use crate::ui::icon::Icon;

/// The receipts of an extension, the newest first.
pub(super) fn section(state: State, desk: Desk, id: &str) -> AnyView {
    let id = id.to_owned();
    let name = StoredValue::new(["receipts-", &id, ".json"].concat());
    let receipts = Memo::new(move |_| desk.receipts.with(|all| all.get(&id).cloned()));
    let count = move || {
        receipts.with(|receipts| {
            let count = receipts.as_ref()?.as_ref().ok()?.len();
            let most = if count == RECEIPTS_LISTED { ", the newest" } else { "" };
            Some([&count.to_string(), most].concat())
        })
    };
    let is_any = Memo::new(move |_| {
        receipts.with(|receipts| {
            receipts.as_ref().and_then(|read| read.as_ref().ok()).is_some_and(|all| !all.is_empty())
        })
    });
    let export = move |_| {
        let Some(Ok(receipts)) = receipts.get_untracked() else { return };
        let key =
            desk.verdict.with_untracked(|verdict| Some(verdict.as_ref()?.as_ref().ok()?.public_key.clone()));
        let whole: Vec<Value> = receipts.into_iter().map(|receipt| receipt.whole).collect();
        save(&json!({ "public_key": key, "receipts": whole }), &name.get_value());
        state.announce("Exported");
    };
    let shown = move || {
        parts::read(receipts.get(), |receipts| match receipts.is_empty() {
            true => view! { <p class="muted">"It has put nothing on record."</p> }.into_any(),
            false => {
                view! { <ol class="receipts" role="list">{receipts.into_iter().map(row).collect_view()}</ol> }
                    .into_any()
            }
        })
    };
    let verdict = move || {
        desk.verdict.get().map(|verdict| match verdict {
            Ok(verdict) => of_verdict(verdict),
            Err(no) => parts::problem(&no),
        })
    };
    view! {
        <section class="part" aria-labelledby="receipts-h">
            <div class="part__head">
                <h3 id="receipts-h">"Receipts"</h3>
                <span class="muted num">{count}</span>
                <span class="grow"></span>
                <button
                    class="btn btn--quiet"
                    type="button"
                    aria-busy=move || desk.verifying.get().then_some("true")
                    on:click=move |_| service::verify(state, desk)
                >
                    <Icon name="#i-check"/>
                    <span class="btn__swap"><span>"Verify"</span><span class="is-busy">"Verifying…"</span></span>
                </button>
                <Show when=move || is_any.get()>
                    <button class="btn btn--quiet" type="button" on:click=export><Icon name="#i-download"/>"Export"</button>
                </Show>
            </div>
            {verdict}
            {shown}
        </section>
    }
    .into_any()
}

/// Whether the log is whole.
fn of_verdict(verdict: Verdict) -> AnyView {
    let Verdict { whole, public_key } = verdict;
    match whole {
        Ok((receipts, is_confirmed)) => {
            let end = if is_confirmed || receipts == 0 {
                "and none is missing at its end."
            } else {
                "but whether some are missing at its end is not known: the log has lost its head."
            };
            let all = match receipts {
                1 => "The one receipt of this companion is as it was written, ".to_owned(),
                more => ["All ", &thousands(more), " receipts of this companion are as they were written, "]
                    .concat(),
            };
            view! {
                <div class="note note--ok" data-verified="">
                    <Icon name="#i-check"/>
                    <h4>"Verified"</h4>
                    <p>{all}{end}</p>
                    <p class="key">
                        "Signed with the key "<code>{public_key.clone()}</code>
                        <CopyButton text=public_key label="Copy the public key"/>
                    </p>
                </div>
            }
            .into_any()
        }
        Err(refusal) => {
            let why = words::shown(&refusal.why, words::TEXT_MAX);
            parts::problem(&Refusal::new(refusal.code, why).into())
        }
    }
}

fn row(receipt: Receipt) -> AnyView {
    let copied = receipt.whole.to_string();
    let payload = parts::lines(&receipt.payload);
    let size = counted(receipt.payload.len() as u64, "byte", "bytes");
    let payload = (!receipt.payload.is_empty()).then(|| {
        view! {
            <details class="raw">
                <summary><Icon name="#i-chevron"/>"Payload "<span class="muted">{size}</span></summary>
                <div class="raw__body"><pre><code>{payload}</code></pre></div>
            </details>
        }
    });
    view! {
        <li class="receipt">
            <span class="chip num">{receipt.seq.to_string()}</span>
            <b>{words::name(&receipt.action)}</b>
            <CopyButton text=copied label="Copy the receipt with its signature"/>
            <p class="muted">
                {parts::date(receipt.at_ms)}" · for "<code>{words::name(&receipt.passport)}</code>" · "
                <code>{words::name(&receipt.tool)}</code>" · "<code>{words::name(&receipt.request_id)}</code>
            </p>
            {payload}
        </li>
    }
    .into_any()
}

/// Hands JSON to the person as a file.
pub(super) fn save(value: &Value, name: &str) {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    if let Ok(file) = Blob::new_with_str_sequence(&Array::of1(&text.into())) {
        dom::save(&file, name);
    }
}
