//! The Extensions panel: the shelves on one side, the tool that the address names on the other.

mod add_shelf;
mod drop;
mod field;
mod pace;
mod places;
mod refused;
mod remove_shelf;
mod run_form;
pub(crate) mod shelf_list;
mod teach;
mod tool_detail;
pub(crate) mod tool_row;
mod verdicts;

use leptos::prelude::*;
use toolshelf_browser::core::shelf::Tool;

use self::add_shelf::AddShelf;
use self::drop::Veil;
use self::remove_shelf::RemoveShelf;
use self::run_form::Limits;
use self::shelf_list::ShelfList;
use self::teach::Teach;
use self::tool_detail::{ToolDetail, Unknown};
use self::verdicts::VerdictTable;
use crate::companion;
use crate::installed;
use crate::result::refusal::RefusalNote;
use crate::route;
use crate::state::{Shelves, State, use_state};
use crate::text::counted;
use crate::ui::arriving::arriving;
use crate::ui::dom;

/// The panel.
#[component]
pub(crate) fn Extensions() -> impl IntoView {
    let state = use_state();
    follow_selection(state);
    let body = move || {
        state.shelves.with(|shelves| match shelves {
            Shelves::Opening => view! { <Skeleton/> }.into_any(),
            Shelves::Failed(refusal) => view! { <RefusalNote refusal=refusal.clone()/> }.into_any(),
            Shelves::Read(_) => ().into_any(),
        })
    };
    let is_read = Memo::new(move |_| state.shelves.with(|shelves| matches!(shelves, Shelves::Read(_))));
    view! {
        <main class="page" id="main" tabindex="-1">
            <div class="panel__head">
                <h1 id="panel-h" tabindex="-1">"Extensions"</h1>
                <p class="muted num">{move || summary(state)}</p>
            </div>
            <VerdictTable/>
            {body}
            <Show when=move || is_read.get()>
                <div class="panel__cols" data-open=move || state.route.with(|route| route.installed.is_some())>
                    <div class="panel__list" id="shelves">
                        <ShelfList/>
                        {installed_list(state)}
                        {on_machine(state)}
                        <AddShelf/>
                    </div>
                    <Detail/>
                </div>
            </Show>
        </main>
        <RemoveShelf/>
        <Limits/>
        <Veil/>
    }
}

/// The companion's tools, where there is one.
fn on_machine(state: State) -> impl IntoView {
    move || state.machine.is_wanted.get().then(|| arriving(move || companion::shelves_view(state)))
}

/// The companion's extensions and facts, or the way to them.
fn installed_list(state: State) -> impl IntoView {
    move || {
        match state.machine.is_wanted.get() {
        true => arriving(move || installed::list_view(state)),
        false => view! {
            <p class="muted beyond">
                <a href=installed::INSTALLED>"Installed extensions"</a>" and "<a href=installed::FACTS>"facts"</a>
                " come with a companion."
            </p>
        }
        .into_any(),
    }
    }
}

/// What the address names: a tool, nothing, or something that is not there.
#[component]
fn Detail() -> impl IntoView {
    let state = use_state();
    let selected = Memo::new(move |_| state.selected());
    let is_installed = Memo::new(move |_| state.route.with(|route| route.installed.is_some()));
    // Within what is installed the address changes without all of it being drawn anew.
    let tool = Memo::new(move |_| state.route.with(|route| route.tool.clone()));
    move || match (selected.get(), tool.get()) {
        (None, None) if is_installed.get() => arriving(move || installed::place_view(state)),
        (Some(selected), _) => view! { <ToolDetail selected=selected/> }.into_any(),
        // The companion has not told yet what it has.
        (None, Some(_)) if state.is_awaited() => ().into_any(),
        (None, Some(id)) => view! { <Unknown id=id/> }.into_any(),
        (None, None) => view! { <Teach/> }.into_any(),
    }
}

/// What is shown while the shelf opens.
#[component]
fn Skeleton() -> impl IntoView {
    let lines = |classes: &'static [&'static str]| {
        classes.iter().map(|class| view! { <i class=*class></i> }).collect_view()
    };
    view! {
        <div class="panel__cols" role="status" aria-label="Loading the shelves">
            <div class="skel skel--list" aria-hidden="true">
                {lines(&["is-title", "", "is-mid", "is-short", "", "is-mid"])}
            </div>
            <div class="skel skel--detail" aria-hidden="true">
                {lines(&["is-title", "is-mid", "", "is-tall", "is-short"])}
            </div>
        </div>
    }
}

/// `2 shelves · 3 tools callable · 2 refused`.
fn summary(state: State) -> String {
    state.shelves.with(|shelves| {
        let Shelves::Read(readings) = shelves else { return String::new() };
        let tools = || {
            readings.iter().filter_map(|reading| reading.shelf.as_ref().ok()).flat_map(|shelf| &shelf.tools)
        };
        let callable = tools().filter(|tool| is_callable(tool)).count() as u64;
        let refused = tools().filter(|tool| tool.verdict.is_err()).count() as u64;
        let shelves = counted(readings.len() as u64, "shelf", "shelves");
        let mut summary = [&shelves, " · ", &counted(callable, "tool", "tools"), " callable"].concat();
        if refused > 0 {
            summary.extend([" · ", &refused.to_string(), " refused"]);
        }
        summary
    })
}

/// Whether a tool was admitted and has an ABI that the page drives.
fn is_callable(tool: &Tool) -> bool {
    tool.verdict.as_ref().is_ok_and(|admitted| admitted.abi.is_some())
}

/// Keeps the title of the document and the focus in step with the address.
fn follow_selection(state: State) {
    Effect::new(move |before: Option<route::Route>| {
        let route = state.route.get();
        // Another panel is on its way, and sets its own title.
        if route.panel != route::Panel::Extensions {
            return route;
        }
        document().set_title(&match &route.tool {
            // It sets its own title.
            None if route.installed.is_some() => return route,
            Some(id) => [id, " · Toolshelf"].concat(),
            None => "Toolshelf".to_owned(),
        });
        // The first address is where the page begins; only what a person chooses later moves the focus.
        if let Some(before) = before.filter(|before| before.panel == route.panel && *before != route) {
            move_focus(&before, &route);
        }
        route
    });
}

fn move_focus(before: &route::Route, now: &route::Route) {
    match (&before.tool, &now.tool) {
        (_, Some(_)) if dom::is_narrow() => dom::focus_soon("#detail-h".to_owned()),
        (_, Some(_)) => request_animation_frame(|| {
            // The list stays in sight beside the tool, and so must the tool's head.
            window().scroll_to_with_x_and_y(0.0, 0.0);
        }),
        (Some(id), None) => {
            let address = route::to_tool(before.place, id, before.shelf.as_deref());
            dom::focus_soon(["a.tool__open[href=\"", &address, "\"]"].concat());
        }
        (None, None) => {}
    }
}
