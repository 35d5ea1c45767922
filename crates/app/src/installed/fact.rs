//! One fact: every version of it, who wrote it and when, and the way to delete it.

use std::rc::Rc;

use leptos::prelude::*;
use toolshelf_browser::companion::facts::Fact;

use super::desk::{Desk, Question};
use super::place::{self, Named};
use super::{facts, parts, service, value, words};
use crate::actions;
use crate::state::State;
use crate::text::{counted, thousands};
use crate::ui::copy::CopyButton;
use crate::ui::icon::Icon;

/// How sure a fact is: `certain`, `80 % sure`.
pub(super) fn sureness(confidence: f64) -> String {
    match (confidence.clamp(0.0, 1.0) * 100.0).round() as u64 {
        100 => "certain".to_owned(),
        hundredths => [&hundredths.to_string(), " % sure"].concat(),
    }
}

/// A moment of ISO 8601, where the person is.
pub(super) fn when(iso: &str) -> String {
    let at = js_sys::Date::parse(iso);
    if at.is_finite() { parts::date(at as u64) } else { words::name(iso) }
}

/// Every version of a fact, the newest first.
pub(super) fn versions(state: State, desk: Desk, entity: String, key: String) -> AnyView {
    let what = desk.facts;
    let address = place::address(&Named::Fact(entity.clone(), key.clone()));
    let read = Memo::new(move |_| {
        what.facts
            .with(|facts| facts.as_ref().filter(|facts| facts.0 == address).map(|facts| facts.1.clone()))
    });
    let shown = move || {
        let with_private = what.with_private.get();
        let (entity, key) = (entity.clone(), key.clone());
        parts::read(read.get(), move |versions| {
            if versions.iter().any(|version| version.is_private) && !with_private {
                return view! { <p class="muted">"This fact is private. Ask for private facts above to see it."</p> }.into_any();
            }
            let Some(newest) = versions.first().cloned() else {
                return view! { <p class="muted">"There is no such fact; it may have been deleted."</p> }
                    .into_any();
            };
            let count = versions.len();
            let older = versions
                .into_iter()
                .enumerate()
                .map(|(at, version)| version_view(state, desk, version, at == 0));
            view! {
                {head(state, desk, &newest, count, &entity, &key)}
                <h3>"History"</h3>
                <ol class="line versions" role="list">{older.collect_view()}</ol>
            }
            .into_any()
        })
    };
    let deleting =
        move || what.deleting.get().then(|| parts::waiting("Deleting, so that nothing readable is left"));
    view! { {deleting}{shown} }.into_any()
}

/// The value that holds.
fn head(state: State, desk: Desk, newest: &Fact, count: usize, entity: &str, key: &str) -> AnyView {
    let private = newest.is_private.then(|| view! { <span class="chip chip--warn">"private"</span> });
    let parsed = serde_json::from_str(&newest.value)
        .ok()
        .filter(|value: &serde_json::Value| value.is_object() || value.is_array());
    let value = value::shown(&parsed.unwrap_or_else(|| newest.value.clone().into()));
    let title = ["Delete `", &words::name(key), "` of `", &words::name(entity), "`?"].concat();
    let all = counted(count as u64, "version", "versions");
    let words = ["All of it goes: ", &all, ". Nothing readable is left, and it cannot be undone."].concat();
    let id = newest.id.clone();
    let to = Named::Entity(entity.to_owned());
    let ask = move |_| {
        let (id, to) = (id.clone(), to.clone());
        ask_to_delete(desk, title.clone(), words.clone(), move || {
            delete(state, desk, id.clone(), Some(to.clone()));
        });
    };
    view! {
        <div class="part__head">
            <h3 class="mono">{words::name(key)}</h3>
            {private}
            <span class="grow"></span>
            <button class="btn" type="button" on:click=ask><Icon name="#i-trash"/>"Delete…"</button>
        </div>
        {value}
    }
    .into_any()
}

fn version_view(state: State, desk: Desk, version: Fact, is_newest: bool) -> AnyView {
    let number = thousands(version.version);
    let standing = match (is_newest, &version.superseded_by) {
        (true, _) => "holds now".to_owned(),
        (false, Some(by)) => ["superseded by ", &words::name(by)].concat(),
        (false, None) => "superseded".to_owned(),
    };
    let writer = version.actor.as_deref().map_or_else(|| "a client of this companion".to_owned(), writer);
    let source = version.source.as_deref().map(|source| [" · from ", &words::name(source)].concat());
    let delete = (!is_newest).then(|| {
        let (id, number) = (version.id.clone(), number.clone());
        let label = ["Delete version ", &number].concat();
        let ask = move |_| {
            let id = id.clone();
            let title = ["Delete version ", &number, "?"].concat();
            let words = "The other versions stay. Nothing readable of this one is left.".to_owned();
            ask_to_delete(desk, title, words, move || {
                delete(state, desk, id.clone(), None);
            });
        };
        view! {
            <button class="btn btn--quiet btn--icon" type="button" aria-label=label title="Delete this version" on:click=ask>
                <Icon name="#i-trash"/>
            </button>
        }
    });
    let state_word = if is_newest { "completed" } else { "queued" };
    view! {
        <li data-task=state_word>
            <div class="version">
                <p><b>"Version "{number}</b>" · "{standing}" · "{sureness(version.confidence)}</p>
                <p class="version__value mono">{words::shown(&version.value, 300)}</p>
                <p class="muted">
                    {when(&version.stored_at)}" · by "{writer}{source}" · "<code>{words::name(&version.id)}</code>
                </p>
            </div>
            <div class="row">
                <CopyButton text=version.value.clone() label="Copy the value of this version"/>
                {delete}
            </div>
        </li>
    }
    .into_any()
}

/// Who wrote a version: `pack:<id>@<version>#<hash>` is an extension.
fn writer(actor: &str) -> String {
    let pack = actor.strip_prefix("pack:").and_then(|rest| Some(rest.split_once('#')?.0));
    pack.map_or_else(|| words::name(actor), |pack| ["the extension ", &words::name(pack)].concat())
}

fn ask_to_delete(desk: Desk, title: String, words: String, act: impl Fn() + 'static) {
    desk.question.set(Some(Question {
        title: title.replace('`', ""),
        words,
        verb: "Delete for good",
        is_danger: true,
        reason: None,
        act: Rc::new(move |_| act()),
    }));
}

fn delete(state: State, desk: Desk, id: String, then: Option<Named>) {
    let what = desk.facts;
    what.deleting.set(true);
    facts::with(state, async move |all| {
        let deleted = all.delete(&id).await;
        what.deleting.set(false);
        match deleted {
            Ok(()) => {
                actions::toast(state, "Deleted", words::name(&id), None);
                match then {
                    Some(to) => service::go(&to),
                    None => desk.facts.facts.update(|read| {
                        if let Some((_, Ok(versions))) = read {
                            versions.retain(|version| version.id != id);
                        }
                    }),
                }
            }
            Err(no) => service::failed(state, no),
        }
    });
}
