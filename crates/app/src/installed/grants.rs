//! Who may call an extension, and what it reaches for them.

use leptos::prelude::*;
use toolshelf_browser::companion::installed::Extension;
use toolshelf_browser::core::grant::Grant;

use super::desk::Desk;
use super::{grant_form, parts, service, words};
use crate::state::State;
use crate::ui::rich::rich;

/// The grants, and the form that gives one.
pub(super) fn section(state: State, desk: Desk, one: &Extension) -> AnyView {
    let id = one.manifest.id.clone();
    let grants = Memo::new(move |_| desk.grants.with(|all| all.get(&id).cloned()));
    let count = move || grants.with(|grants| Some(grants.as_ref()?.as_ref().ok()?.len().to_string()));
    let shown = move || {
        parts::read(grants.get(), |grants| {
            if grants.is_empty() {
                return view! { <p class="muted">"Nobody may call it yet."</p> }.into_any();
            }
            let grants = grants.into_iter().map(|grant| row(state, desk, grant));
            view! { <ul class="grants" role="list">{grants.collect_view()}</ul> }.into_any()
        })
    };
    view! {
        <section class="part" aria-labelledby="grants-h">
            <div class="part__head">
                <h3 id="grants-h">"Grants"</h3>
                <span class="muted num">{count}</span>
            </div>
            {shown}
            {grant_form::form(state, desk, one)}
        </section>
    }
    .into_any()
}

fn row(state: State, desk: Desk, grant: Grant) -> AnyView {
    let now = js_sys::Date::now() as u64;
    let passport = words::name(&grant.passport_fpr);
    let label = ["Revoke the grant of ", &passport].concat();
    let is_over = grant.is_expired(now).then(|| view! { <span class="chip chip--warn">"ended"</span> });
    let gives =
        words::gives(&grant, now, parts::date).into_iter().map(|words| view! { <li>{rich(&words)}</li> });
    let gives = gives.collect_view();
    let given = ["Given ", &parts::date(grant.granted_at_unix_ms)].concat();
    view! {
        <li class="grant">
            <div class="grant__head">
                <b class="mono">{passport}</b>
                {is_over}
                <span class="muted">{given}</span>
                <button
                    class="btn"
                    type="button"
                    aria-label=label
                    on:click=move |_| service::revoke(state, desk, grant.clone())
                >
                    "Revoke"
                </button>
            </div>
            <ul role="list">{gives}</ul>
        </li>
    }
    .into_any()
}
