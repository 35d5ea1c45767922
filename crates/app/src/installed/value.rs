//! JSON as a tree, with what is not JSON inside of it shown as what it is.

use std::cell::Cell;

use leptos::prelude::*;
use serde_json::Value;

use super::parts::lines;
use super::words::{name, shown as cut};
use crate::text::counted;
use crate::ui::copy::CopyButton;
use crate::ui::icon::Icon;
use crate::ui::pin::Pin;
use crate::ui::rich::DigestText;

/// Values of a tree that are drawn; it can be copied whole.
const VALUES_MAX: usize = 1_000;
/// Levels that are open at first.
const OPEN: usize = 2;
/// Longest text in a tree, in characters.
const TEXT_MAX: usize = 2_000;

/// What a tool answered: a digest as a digest, a text as a text, all else as a tree.
pub(super) fn shown(value: &Value) -> AnyView {
    let (text, body) = match value {
        Value::String(text) if is_digest(text) => {
            let digest = view! {
                <div class="result__digest"><Pin digits=text.clone()/><DigestText digits=text.clone()/></div>
            };
            (text.clone(), digest.into_any())
        }
        Value::String(text) => {
            let laid_out = lines(text);
            let pre = view! {
                <pre class="answer" tabindex="0" role="region" aria-label="What it answered"><code>{laid_out}</code></pre>
            };
            (text.clone(), pre.into_any())
        }
        value => {
            let left = Cell::new(VALUES_MAX);
            let tree = view! { <div class="tree">{node(None, value, 0, &left)}</div> };
            let more = (left.get() == 0)
                .then(|| view! { <p class="muted">"There is more; copied, it is whole."</p> });
            (serde_json::to_string_pretty(value).unwrap_or_default(), view! { {tree}{more} }.into_any())
        }
    };
    let size = counted(text.len() as u64, "byte", "bytes");
    view! {
        <div class="shown">
            {body}
            <div class="row">
                <CopyButton text=text words="Copy" class="btn btn--quiet copy"/>
                <span class="muted num">{size}</span>
            </div>
        </div>
    }
    .into_any()
}

/// Whether a text is a SHA-256 as it is written here.
fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A value, under its name where it has one.
fn node(key: Option<String>, value: &Value, depth: usize, left: &Cell<usize>) -> AnyView {
    if left.get() == 0 {
        return ().into_any();
    }
    left.set(left.get() - 1);
    let label = key.map(|key| view! { <span class="tree__key">{key}</span> });
    let (count, below): (String, Vec<AnyView>) = match value {
        Value::Object(fields) if !fields.is_empty() => (
            counted(fields.len() as u64, "field", "fields"),
            fields.iter().map(|(key, value)| node(Some(name(key)), value, depth + 1, left)).collect(),
        ),
        Value::Array(values) if !values.is_empty() => {
            let values = values.iter().enumerate();
            let below = values.map(|(at, value)| node(Some(at.to_string()), value, depth + 1, left));
            let below: Vec<_> = below.collect();
            (counted(below.len() as u64, "value", "values"), below)
        }
        scalar => {
            let (class, text) = match scalar {
                Value::String(text) => ("tree__text", cut(text, TEXT_MAX)),
                Value::Object(_) => ("tree__word", "{}".to_owned()),
                Value::Array(_) => ("tree__word", "[]".to_owned()),
                other => ("tree__word", other.to_string()),
            };
            return view! { <div class="tree__leaf">{label}<span class=class>{text}</span></div> }.into_any();
        }
    };
    let is_open = depth < OPEN;
    view! {
        <details open=is_open>
            <summary><Icon name="#i-chevron"/>{label}<span class="muted">{count}</span></summary>
            <div class="tree__in">{below}</div>
        </details>
    }
    .into_any()
}
