//! Facts by their names: prefixes as folders, entities in them, and the facts of one entity.

use futures::future::abortable;
use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use leptos::task::spawn_local;
use toolshelf_browser::companion::Facts;
use toolshelf_browser::companion::facts::{FOUND_MAX, Fact, Name, Names};

use super::desk::Desk;
use super::place::{self, Named, crumbs};
use super::receipts::save;
use super::{fact, parts, words};
use crate::route::PANEL;
use crate::state::State;
use crate::text::{counted, thousands};
use crate::ui::icon::Icon;

/// Longest value in a list, in characters.
const PREVIEW_MAX: usize = 160;

/// Does something with the companion's facts, once there is a companion.
pub(super) fn with(state: State, act: impl AsyncFnOnce(Facts) + 'static) {
    if let Some(host) = state.machine.host.get_value() {
        spawn_local(async move { act(Facts::new(host.client())).await });
    }
}

/// What the address names of facts.
pub(super) fn facts(state: State, desk: Desk, named: Memo<Named>) -> AnyView {
    let what = desk.facts;
    // Read anew with each address, with each choice of what is shown, and when the connection is open again.
    Effect::new(move || {
        let private = what.with_private.get();
        if state.machine.is_connected() {
            read(state, desk, named.get(), private);
        }
    });
    // Private facts are hidden again with the next visit.
    on_cleanup(move || {
        what.with_private.set(false);
        what.found.set(None);
        if let Some((_, stop)) = what.export.get_untracked() {
            stop.abort();
        }
    });
    let body = move || match named.get() {
        Named::Below(prefix) => below(state, desk, prefix),
        Named::Entity(entity) => entity_view(desk, entity),
        Named::Fact(entity, key) => fact::versions(state, desk, entity, key),
        Named::Nothing | Named::Extension(_) => ().into_any(),
    };
    view! {
        <article class="detail inst" aria-labelledby="detail-h">
            <header class="detail__head">
                <a class="back" href=PANEL><Icon name="#i-back"/>"All tools"</a>
                <h2 id="detail-h" tabindex="-1">"Facts"</h2>
                <p class="detail__desc">
                    "What extensions and programs have stored on this companion, by name. Every version is kept until it is \
                    deleted; the newest one holds."
                </p>
            </header>
            <div class="part">
                {bar(state, desk, named)}
                {body}
            </div>
        </article>
    }
    .into_any()
}

/// Reads what an address names.
pub(super) fn read(state: State, desk: Desk, named: Named, private: bool) {
    let what = desk.facts;
    let address = place::address(&named);
    with(state, async move |facts| match named {
        Named::Below(prefix) => {
            let names = facts.browse(&prefix, None, private).await;
            what.names.set(Some((prefix, names)));
        }
        Named::Entity(entity) => {
            let read = facts.of_entity(&entity).await;
            what.facts.set(Some((address, read)));
        }
        Named::Fact(entity, key) => {
            let read = facts.history(&entity, &key).await;
            what.facts.set(Some((address, read)));
        }
        Named::Nothing | Named::Extension(_) => {}
    });
}

/// The prefix that is looked at, or that the entity is in.
fn prefix_of(named: &Named) -> String {
    let name = match named {
        Named::Below(prefix) => return prefix.clone(),
        Named::Entity(entity) | Named::Fact(entity, _) => entity,
        Named::Nothing | Named::Extension(_) => return String::new(),
    };
    let end = name.rfind("::").map_or(0, |at| at + 2);
    name[..end].to_owned()
}

/// Where one is, the search, and what is shown.
fn bar(state: State, desk: Desk, named: Memo<Named>) -> AnyView {
    let what = desk.facts;
    let find = move |event: SubmitEvent| {
        event.prevent_default();
        let words = what.words.get_untracked().trim().to_owned();
        if words.is_empty() {
            return what.found.set(None);
        }
        let prefix = named.with_untracked(prefix_of);
        let private = what.with_private.get_untracked();
        with(state, async move |facts| {
            let found = facts.find(&prefix, &words, private).await;
            state.announce(match &found {
                Ok(found) => [&counted(found.len() as u64, "fact", "facts"), " found"].concat(),
                Err(_) => "The search failed".to_owned(),
            });
            what.found.set(Some(found));
        });
    };
    // A search is about the place where it was made.
    Effect::new(move |before: Option<String>| {
        let now = named.with(prefix_of);
        if before.is_some_and(|before| before != now) {
            what.found.set(None);
        }
        now
    });
    let export = move |_| match what.export.get_untracked() {
        Some((_, stop)) => stop.abort(),
        None => start_export(state, desk, named.with_untracked(prefix_of)),
    };
    let exporting = move || match what.export.with(|export| export.as_ref().map(|export| export.0)) {
        Some(count) => [&thousands(count as u64), " so far · Stop"].concat(),
        None => "Export".to_owned(),
    };
    let is_exporting = move || what.export.with(Option::is_some).then_some("true");
    view! {
        <div class="files__bar">
            <nav class="crumbs" aria-label="Where this is">{move || trail(&named.get())}</nav>
            <button
                class="btn btn--quiet"
                type="button"
                title="Every version of every fact here that is not private"
                aria-busy=is_exporting
                on:click=export
            >
                <Icon name="#i-download"/>{exporting}
            </button>
        </div>
        <form class="row find" role="search" on:submit=find>
            <label class="vh" for="find">"Words to look for"</label>
            <input
                class="field grow"
                id="find"
                type="search"
                placeholder="Words in names and values"
                autocomplete="off"
                prop:value=move || what.words.get()
                on:input=move |event| {
                    let words = event_target_value(&event);
                    if words.is_empty() {
                        what.found.set(None);
                    }
                    what.words.set(words);
                }
            />
            <button class="btn" type="submit">"Find"</button>
            <label class="tick">
                <input
                    type="checkbox"
                    prop:checked=move || what.with_private.get()
                    on:change=move |event| what.with_private.set(event_target_checked(&event))
                />
                "Private facts too"
            </label>
        </form>
        {move || what.found.get().map(|found| parts::read(Some(found), found_view))}
    }
    .into_any()
}

/// The way from all facts to here.
fn trail(named: &Named) -> AnyView {
    let step = |name: String, address: Option<String>| match address {
        Some(address) => view! { <li><a class="btn btn--quiet" href=address>{name}</a></li> }.into_any(),
        None => view! { <li><span aria-current="page">{name}</span></li> }.into_any(),
    };
    let (name, key, is_prefix) = match named {
        Named::Below(prefix) => (prefix.as_str(), None, true),
        Named::Entity(entity) => (entity.as_str(), None, false),
        Named::Fact(entity, key) => (entity.as_str(), Some(key), false),
        Named::Nothing | Named::Extension(_) => ("", None, true),
    };
    let root = (!name.is_empty()).then(|| place::address(&Named::Below(String::new())));
    let mut steps = vec![step("All facts".to_owned(), root)];
    for (part, end) in crumbs(name) {
        let is_last = end == name.len();
        let here = &name[..end];
        let address = match (is_last, is_prefix, key) {
            (true, true, _) | (true, false, None) => None,
            (true, false, Some(_)) => Some(Named::Entity(here.to_owned())),
            (false, ..) => Some(Named::Below(here.to_owned())),
        };
        steps.push(step(words::name(part), address.as_ref().map(place::address)));
    }
    steps.extend(key.map(|key| step(words::name(key), None)));
    view! { <ol>{steps}</ol> }.into_any()
}

/// The names below a prefix.
fn below(state: State, desk: Desk, prefix: String) -> AnyView {
    let what = desk.facts;
    let names = {
        let prefix = prefix.clone();
        Memo::new(move |_| {
            what.names
                .with(|names| names.as_ref().filter(|names| names.0 == prefix).map(|names| names.1.clone()))
        })
    };
    let shown = move || {
        let prefix = prefix.clone();
        parts::read(names.get(), move |page| listed(state, desk, prefix, page))
    };
    shown.into_any()
}

fn listed(state: State, desk: Desk, prefix: String, page: Names) -> AnyView {
    let Names { names, next } = page;
    if names.is_empty() && next.is_none() {
        return view! {
            <div class="files">
                <div class="files__none">
                    <b>"No facts here"</b>
                    <p>
                        "Extensions write them, and programs do by "<code>"PUT /v1/facts"</code>". Private ones are shown \
                        only when you ask for them."
                    </p>
                </div>
            </div>
        }
        .into_any();
    }
    let entry = |name: Name| {
        let short =
            words::name(name.name.get(prefix.len()..).filter(|rest| !rest.is_empty()).unwrap_or(&name.name));
        let (icon, named) = match name.is_prefix {
            true => ("#i-folder", Named::Below(name.name)),
            false => ("#i-file", Named::Entity(name.name)),
        };
        view! {
            <li class="entry">
                <Icon name=icon/>
                <a class="entry__name" href=place::address(&named)>{short}</a>
            </li>
        }
    };
    let entries = names.into_iter().map(entry).collect_view();
    let more = next.map(|after| {
        let prefix = prefix.clone();
        let more = move |_| more(state, desk, prefix.clone(), after.clone());
        view! { <p class="files__more"><button class="btn" type="button" on:click=more>"Show more"</button></p> }
    });
    view! { <div class="files"><ul class="files__list" role="list">{entries}</ul>{more}</div> }.into_any()
}

/// Reads the next page of names.
fn more(state: State, desk: Desk, prefix: String, after: String) {
    let what = desk.facts;
    let private = what.with_private.get_untracked();
    with(state, async move |facts| {
        let page = facts.browse(&prefix, Some(&after), private).await;
        what.names.update(|names| {
            let Some((_, Ok(before))) = names.as_mut().filter(|names| names.0 == prefix) else { return };
            match page {
                Ok(page) if before.next.as_ref() == Some(&after) => {
                    before.names.extend(page.names);
                    before.next = page.next;
                }
                Ok(_) => {}
                Err(no) => super::service::failed(state, no),
            }
        });
    });
}

/// The facts of an entity.
fn entity_view(desk: Desk, entity: String) -> AnyView {
    let what = desk.facts;
    let address = place::address(&Named::Entity(entity));
    let read = Memo::new(move |_| {
        what.facts
            .with(|facts| facts.as_ref().filter(|facts| facts.0 == address).map(|facts| facts.1.clone()))
    });
    let shown = move || {
        let with_private = what.with_private.get();
        parts::read(read.get(), move |facts| {
            let hidden = facts.iter().filter(|fact| fact.is_private && !with_private).count();
            let facts: Vec<_> = facts.into_iter().filter(|fact| with_private || !fact.is_private).collect();
            let hidden = (hidden > 0).then(|| {
                view! { <p class="muted">{counted(hidden as u64, "private fact is", "private facts are")}" not shown."</p> }
            });
            let none = facts.is_empty() && hidden.is_none();
            let none = none.then(|| view! { <p class="muted">"It has no facts."</p> });
            let rows = facts.into_iter().map(|fact| row(fact, false)).collect_view();
            view! { <ul class="kept" role="list">{rows}</ul>{none}{hidden} }.into_any()
        })
    };
    shown.into_any()
}

/// What a search has found.
fn found_view(found: Vec<Fact>) -> AnyView {
    let count = match found.len() {
        FOUND_MAX => [&FOUND_MAX.to_string(), " facts found, the surest ones of more"].concat(),
        count => [&counted(count as u64, "fact", "facts"), " found"].concat(),
    };
    let rows = found.into_iter().map(|fact| row(fact, true)).collect_view();
    view! { <section class="found" aria-label="Found"><p class="muted num">{count}</p><ul class="kept" role="list">{rows}</ul></section> }
        .into_any()
}

/// One fact in a list.
fn row(fact: Fact, with_entity: bool) -> AnyView {
    let address = place::address(&Named::Fact(fact.entity.clone(), fact.key.clone()));
    let entity = with_entity.then(|| view! { <span class="muted">{words::name(&fact.entity)}" · "</span> });
    let private = fact.is_private.then(|| view! { <span class="chip chip--warn">"private"</span> });
    let about = ["version ", &thousands(fact.version), ", ", &fact::sureness(fact.confidence)].concat();
    view! {
        <li class="kept__fact">
            <p class="kept__name">{entity}<a class="mono" href=address>{words::name(&fact.key)}</a>" "{private}</p>
            <p class="kept__value">{words::shown(&fact.value, PREVIEW_MAX)}</p>
            <p class="muted num">{about}" · "{fact::when(&fact.stored_at)}</p>
        </li>
    }
    .into_any()
}

/// Writes all facts below a prefix that are not private into a file.
fn start_export(state: State, desk: Desk, prefix: String) {
    let what = desk.facts;
    with(state, async move |facts| {
        let told = move |count| {
            what.export.update(|export| {
                if let Some(export) = export {
                    export.0 = count;
                }
            });
        };
        let (all, stop) = abortable(facts.export(&prefix, told));
        what.export.set(Some((0, stop)));
        let all = all.await;
        what.export.set(None);
        match all {
            Ok(Ok(all)) => {
                let count = counted(all.len() as u64, "version", "versions");
                let date = String::from(js_sys::Date::new_0().to_iso_string());
                let told = serde_json::json!({ "prefix": prefix, "facts": all });
                save(&told, &["facts-", &date[..10], ".json"].concat());
                state.announce(["Exported ", &count].concat());
            }
            Ok(Err(no)) => super::service::failed(state, no),
            Err(_) => state.announce("The export was stopped"),
        }
    });
}
