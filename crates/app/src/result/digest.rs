//! A digest as a digest: in groups, as a picture, to copy, to compare, and byte by byte.

use leptos::prelude::*;

use super::compare::{Match, compare};
use super::hexdump;
use crate::text;
use crate::ui::copy::CopyButton;
use crate::ui::icon::Icon;
use crate::ui::pin::Pin;
use crate::ui::rich::DigestText;

/// The 32 bytes that a tool answered.
#[component]
pub(crate) fn DigestResult(
    /// The bytes, in digits.
    digits: String,
) -> impl IntoView {
    view! {
        <div class="result__digest">
            <Pin digits=digits.clone()/>
            <DigestText digits=digits.clone() class="digest digest--big"/>
            <CopyButton text=digits.clone() words="Copy" class="btn copy"/>
        </div>
        <Compare digits=digits.clone()/>
        <Bytes digits=digits/>
    }
}

/// A field for a digest that somebody was given.
#[component]
fn Compare(
    /// The digest that was computed, in digits.
    digits: String,
) -> impl IntoView {
    let pasted = RwSignal::new(String::new());
    let total = digits.len() as u64;
    let matched = Memo::new(move |_| pasted.with(|pasted| compare(&digits, pasted)));
    let state = move || match matched.get() {
        Match::Yes => Some("yes"),
        Match::DiffersAt(_) | Match::TooLong => Some("no"),
        Match::Nothing | Match::SoFar(_) => None,
    };
    let words = move || {
        let number = |at: usize| text::thousands(at as u64);
        match matched.get() {
            Match::Nothing => ().into_any(),
            Match::Yes => view! { <Icon name="#i-check"/>" Match" }.into_any(),
            Match::SoFar(count) => {
                ["The same so far: ", &number(count), " of ", &text::thousands(total), " digits"]
                    .concat()
                    .into_any()
            }
            Match::DiffersAt(at) => {
                view! { <Icon name="#i-cross"/>" Differs from digit "{number(at)}" on" }.into_any()
            }
            Match::TooLong => {
                view! { <Icon name="#i-cross"/>" Longer than "{text::thousands(total)}" digits" }.into_any()
            }
        }
    };
    view! {
        <div class="compare" data-match=state>
            <label for="cmp">"Compare with a digest you were given"</label>
            <input
                class="field"
                id="cmp"
                placeholder="64 hex digits"
                spellcheck="false"
                autocapitalize="off"
                autocomplete="off"
                prop:value=move || pasted.get()
                on:input=move |event| pasted.set(event_target_value(&event))
            />
            <output for="cmp">{words}</output>
        </div>
    }
}

/// The bytes, as a hex dump that is opened on demand.
#[component]
fn Bytes(
    /// The bytes, in digits.
    digits: String,
) -> impl IntoView {
    let bytes = hexdump::from_hex(&digits);
    let size = text::counted(bytes.len() as u64, "byte", "bytes");
    let rows = hexdump::rows(&bytes).into_iter().map(|row| {
        view! { <span class="at">{row.at}</span>"  "{row.hex}"  "<span class="text">{row.text}</span>"\n" }
    });
    view! {
        <details class="raw">
            <summary><Icon name="#i-chevron"/>"Raw bytes "<span class="muted">{size}</span></summary>
            <div class="raw__body" tabindex="0" role="region" aria-label="Raw bytes">
                <pre class="hex">{rows.collect_view()}</pre>
            </div>
        </details>
    }
}
