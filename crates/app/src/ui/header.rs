//! The head of the page.

use leptos::prelude::*;

use super::icon::Icon;
use super::{dom, preference};
use crate::route::{ENVIRONMENTS, LIVE, PANEL, Panel, TASKS};
use crate::state::use_state;

const THEMES: [(&str, &str, &str); 3] = [
    ("system", "#i-system", "Same as the system"),
    ("light", "#i-sun", "Light"),
    ("dark", "#i-moon", "Dark"),
];

/// The sign of the page: three books on a board.
#[component]
pub(crate) fn Mark() -> impl IntoView {
    view! {
        <svg class="brand__mark" viewBox="0 0 22 22" aria-hidden="true">
            <rect x="3" y="4" width="4" height="13" rx=".75"></rect>
            <rect x="8.5" y="7" width="3.5" height="10" rx=".75"></rect>
            <rect class="is-accent" x="13.5" y="2" width="5" height="15" rx=".75"></rect>
            <rect class="is-board" x="1" y="18" width="20" height="2" rx="1"></rect>
        </svg>
    }
}

/// Name, panels and theme, and the link past them.
#[component]
pub(crate) fn Header() -> impl IntoView {
    // The address names a panel, so the link must not change it.
    let skip = |event: leptos::ev::MouseEvent| {
        event.prevent_default();
        dom::focus_soon("#main".to_owned());
    };
    let state = use_state();
    let current = move |panel| move || state.route.with(|route| route.panel == panel).then_some("page");
    // Before the tasks are open, none is active in this tab.
    let active = Memo::new(move |_| {
        let here = state.environment.with(|here| here.as_ref().map_or(0, |here| here.active));
        here + state.machine.environment.with(|known| known.as_ref().map_or(0, |known| known.active))
    });
    let count = move || {
        let active = Some(active.get()).filter(|active| *active > 0)?;
        Some(view! { <span class="nav__count">{active.to_string()}<span class="vh">" active"</span></span> })
    };
    let tagline = move || match state.machine.is_wanted.get() {
        true => "Digest-pinned WebAssembly tools, run in this tab or on your own computer.",
        false => "Digest-pinned WebAssembly tools, run in this tab. Nothing leaves it.",
    };
    let chosen = preference::theme();
    let theme = |(value, icon, title): (&'static str, &'static str, &'static str)| {
        view! {
            <label class="seg__item" title=title>
                <input
                    type="radio"
                    name="theme"
                    value=value
                    checked=value == chosen
                    on:change=move |_| preference::set_theme(value)
                />
                <Icon name=icon/>
                <span class="vh">{title}</span>
            </label>
        }
    };
    view! {
        <a class="skip" href="#main" on:click=skip>"Skip to the panel"</a>
        <header class="top">
            <div class="top__in">
                <a class="brand" href=PANEL><Mark/>"Toolshelf"</a>
                <nav class="nav" aria-label="Panels">
                    <a href=PANEL aria-current=current(Panel::Extensions)>"Extensions"</a>
                    <a href=TASKS aria-current=current(Panel::Tasks)>"Tasks"{count}</a>
                    <a href=LIVE aria-current=current(Panel::Live)>"Live"</a>
                    <a href=ENVIRONMENTS aria-current=current(Panel::Environments)>"Environments"</a>
                </nav>
                <p class="tagline">{tagline}</p>
                <fieldset class="seg">
                    <legend class="vh">"Theme"</legend>
                    {THEMES.map(theme).collect_view()}
                </fieldset>
            </div>
        </header>
    }
}
