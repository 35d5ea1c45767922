//! One extension; or, where the address names none, how one is installed.

use std::rc::Rc;

use leptos::prelude::*;
use toolshelf_browser::companion::installed::Extension;
use toolshelf_browser::core::refusal::{Code, Refusal};

use super::desk::{Desk, Question};
use super::list::kind_of;
use super::place::Named;
use super::{grants, install, parts, receipts, run, service, words};
use crate::result::refusal::RefusalNote;
use crate::route::PANEL;
use crate::state::State;
use crate::ui::copy::CopyButton;
use crate::ui::icon::Icon;
use crate::ui::pin::Pin;
use crate::ui::rich::{DigestText, fact, rich};

/// What the address names of extensions.
pub(super) fn extensions(state: State, desk: Desk, named: Memo<Named>) -> AnyView {
    let id = Memo::new(move |_| {
        named.with(|named| match named {
            Named::Extension(id) => Some(id.clone()),
            _ => None,
        })
    });
    // One that changes is drawn anew; what is read of it beside that is not.
    let one = Memo::new(move |_| id.with(|id| id.as_deref().and_then(|id| desk.extension(id))));
    let is_read = Memo::new(move |_| desk.listed.with(Option::is_some));
    let shown = move || match (id.get(), one.get(), is_read.get()) {
        (None, ..) => ways(state, desk),
        (Some(_), Some(one), _) => detail(state, desk, one),
        (Some(_), None, false) => view! { <p class="muted" role="status">"Reading…"</p> }.into_any(),
        (Some(id), None, true) => missing(&id),
    };
    view! { {shown}{install::dialog(state, desk)} }.into_any()
}

fn back() -> AnyView {
    view! { <a class="back" href=PANEL><Icon name="#i-back"/>"All tools"</a> }.into_any()
}

fn ways(state: State, desk: Desk) -> AnyView {
    view! {
        <article class="detail inst" aria-labelledby="detail-h">
            <header class="detail__head">
                {back()}
                <h2 id="detail-h" tabindex="-1">"Install an extension"</h2>
                <p class="detail__desc">
                    "An extension is a module that agents call with JSON. It reads and writes facts, asks for secrets and \
                    leaves receipts, as far as a grant lets it, and its digest is checked again on every call."
                </p>
            </header>
            {install::ways(state, desk)}
        </article>
    }
    .into_any()
}

fn missing(id: &str) -> AnyView {
    let id = words::name(id);
    let why = ["no extension `", &id.replace('`', "'"), "` is installed"].concat();
    view! {
        <article class="detail inst" aria-labelledby="detail-h">
            <header class="detail__head">{back()}<h2 id="detail-h" tabindex="-1">{id}</h2></header>
            <div><RefusalNote refusal=Refusal::new(Code::ExtensionNotInstalled, why)/></div>
        </article>
    }
    .into_any()
}

fn detail(state: State, desk: Desk, one: Extension) -> AnyView {
    let id = one.manifest.id.clone();
    // Others may have changed them while nobody listened.
    let read = id.clone();
    Effect::new(move || {
        if state.machine.is_connected() {
            service::read_grants(state, desk, read.clone());
            service::read_receipts(state, desk, read.clone());
        }
    });
    // Calls that others make leave receipts, too.
    let begin = ["machine/", &id, "/"].concat();
    Effect::new(move |is_later: Option<()>| {
        let is_own = state.fresh.with(|fresh| fresh.as_ref().is_some_and(|key| key.starts_with(&begin)));
        if is_own && is_later.is_some() {
            service::read_receipts(state, desk, id.clone());
        }
    });
    view! {
        <article class="detail inst" aria-labelledby="detail-h" data-extension=one.manifest.id.clone()>
            {head(state, desk, &one)}
            {facts(&one)}
            {run::section(state, desk, &one)}
            {grants::section(state, desk, &one)}
            {receipts::section(state, desk, &one.manifest.id)}
        </article>
    }
    .into_any()
}

/// Name, state, what it does, and the way out of use.
fn head(state: State, desk: Desk, one: &Extension) -> AnyView {
    let (id, name) = (one.manifest.id.clone(), words::name(&one.manifest.name));
    let (kind, word) = match one.is_quarantined {
        false => ("callable", "Active"),
        true => ("idle", "Quarantined"),
    };
    let pin = one.manifest.module_sha256.clone().map(|digits| view! { <Pin digits=digits/> });
    let reason = one.is_quarantined.then(|| {
        let why = one.reason.as_deref().map(|why| [": ", &words::shown(why, 500)].concat());
        view! {
            <p class="inst__out">
                "Taken out of use on "{parts::date(one.since_ms)}{why}". Nobody can call it until it is active again."
            </p>
        }
    });
    view! {
        <header class="detail__head">
            {back()}
            <div class="detail__title">
                {pin}
                <h2 id="detail-h" tabindex="-1">{name.clone()}</h2>
                <span class="state" data-state=kind>
                    <span class="dot" aria-hidden="true"></span>{word}
                </span>
                <span class="grow"></span>
                <div class="row">
                    {lifecycle(state, desk, one, id.clone(), name.clone())}
                    {uninstall(state, desk, id, name)}
                </div>
            </div>
            <p class="detail__desc">{rich(&words::shown(&one.manifest.summary, words::TEXT_MAX))}</p>
            {reason}
        </header>
    }
    .into_any()
}

fn lifecycle(state: State, desk: Desk, one: &Extension, id: String, name: String) -> AnyView {
    let is_out = one.is_quarantined;
    let ask = move |_| {
        let (id, name) = (id.clone(), name.clone());
        let title = match is_out {
            false => ["Take “", &name, "” out of use?"].concat(),
            true => ["Use “", &name, "” again?"].concat(),
        };
        let words = match is_out {
            false => "Its calls are refused from the next one on. Module, grants and facts stay.",
            true => "Its grants hold again from the next call on.",
        };
        desk.question.set(Some(Question {
            title,
            words: words.to_owned(),
            verb: if is_out { "Activate" } else { "Quarantine" },
            is_danger: false,
            // Leaving quarantine wants a reason; so does whoever reads the audit log later.
            reason: Some(is_out),
            act: Rc::new(move |reason| {
                service::quarantine(state, desk, id.clone(), name.clone(), !is_out, reason);
            }),
        }));
    };
    let words = if is_out { "Activate…" } else { "Quarantine…" };
    view! { <button class="btn" type="button" on:click=ask>{words}</button> }.into_any()
}

fn uninstall(state: State, desk: Desk, id: String, name: String) -> AnyView {
    let ask = move |_| {
        let (id, name) = (id.clone(), name.clone());
        desk.question.set(Some(Question {
            title: ["Uninstall “", &name, "”?"].concat(),
            words: "Its module and all its grants go with it. Facts that it has written stay.".to_owned(),
            verb: "Uninstall",
            is_danger: true,
            reason: None,
            act: Rc::new(move |_| service::uninstall(state, desk, id.clone(), name.clone())),
        }));
    };
    view! {
        <button class="btn" type="button" on:click=ask><Icon name="#i-trash"/>"Uninstall…"</button>
    }
    .into_any()
}

/// What is known of it.
fn facts(one: &Extension) -> AnyView {
    let manifest = &one.manifest;
    let digest = manifest.module_sha256.clone().map(|digits| {
        view! {
            <div class="is-wide">
                <dt>"Pinned digest, checked again on every call"</dt>
                <dd class="facts__digest">
                    <DigestText digits=digits.clone()/>
                    <CopyButton text=digits label="Copy the digest"/>
                </dd>
            </div>
        }
    });
    let tools = manifest.tools.iter().map(|tool| {
        view! { <li><code>{words::name(&tool.name)}</code>" "{rich(&words::shown(&tool.description, 300))}</li> }
    });
    let wishes = words::wishes(manifest, None).into_iter().map(|wish| {
        let icon = if wish.is_weighty { "#i-alert" } else { "#i-check" };
        view! { <li data-weighty=wish.is_weighty><Icon name=icon/><span>{rich(&wish.words)}</span></li> }
    });
    view! {
        <div>
            <h3 class="vh">"About it"</h3>
            <dl class="facts">
                {digest}
                {fact("Version", words::shown(&manifest.version, 40))}
                {fact("Publisher", words::name(&manifest.publisher))}
                {fact("Trust", words::trust(one.trust).to_owned())}
                {fact("Runs as", kind_of(&manifest.kind).to_owned())}
                {fact("Installed", parts::date(one.installed_at_ms))}
                {fact("Id", words::name(&manifest.id))}
            </dl>
            <details class="raw inst__more">
                <summary>
                    <Icon name="#i-chevron"/>"What it asks for"
                </summary>
                <div class="raw__body">
                    <ul class="wishes" role="list">{wishes.collect_view()}</ul>
                    <ul class="wishes__tools" role="list">{tools.collect_view()}</ul>
                </div>
            </details>
        </div>
    }
    .into_any()
}
