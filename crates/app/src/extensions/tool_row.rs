//! One tool in the list.

use leptos::prelude::*;
use toolshelf_browser::core::Abi;
use toolshelf_browser::core::live::CallOrigin;
use toolshelf_browser::core::shelf::Tool;

use crate::history::Call;
use crate::route::{self, Place};
use crate::state::{State, tool_key, use_state};
use crate::text;
use crate::ui::rich::rich;

/// Why an admitted tool cannot be called.
pub(super) const NO_ABI: &str = "its ABI is not one this page can drive";

/// A tool: what it is, whether it can be called, and how its last call went. The whole row is a link.
#[component]
pub(crate) fn ToolRow(
    /// Whose it is.
    place: Place,
    /// The tool.
    tool: Tool,
    /// Key of its shelf, where the id alone may name another tool.
    shelf: Option<String>,
) -> impl IntoView {
    let state = use_state();
    let Tool { id, description, verdict, .. } = tool;
    let key = tool_key(place, &id);
    let address = route::to_tool(place, &id, shelf.as_deref());
    let current = {
        let (id, shelf) = (id.clone(), shelf.clone());
        let is_refused = verdict.is_err();
        move || {
            let is_named = state.route.with(|route| {
                route.place == place
                    && route.tool.as_ref() == Some(&id)
                    && route.shelf.as_ref().is_none_or(|key| Some(key) == shelf.as_ref())
            });
            // A refused entry is not what the bare id names while another shelf has the tool.
            let is_other =
                is_refused && shelf.is_some() && state.selected().is_some_and(|one| one.tool.verdict.is_ok());
            (is_named && !is_other).then_some("true")
        }
    };
    let open = view! { <a class="tool__open" href=address aria-current=current>{id.clone()}</a> };
    let description = view! { <p class="tool__desc">{description}</p> };
    match verdict {
        Err(refusal) => view! {
            <li class="tool" data-state="refused" data-tool=id>
                <span class="dot" aria-hidden="true"></span>
                {open}
                {description}
                <p class="tool__state">
                    <b>"Refused"</b>" "<code class="chip chip--code">{refusal.code.as_str()}</code>
                </p>
                <p class="tool__why">{rich(&refusal.why)}</p>
            </li>
        }
        .into_any(),
        Ok(admitted) => view! {
            <Admitted id=id key=key.clone() abi=admitted.abi>
                {open}
                <Latency key=key/>
                {description}
            </Admitted>
        }
        .into_any(),
    }
}

/// The parts of an admitted tool's row that change while it is used.
#[component]
fn Admitted(
    /// The tool's id.
    #[prop(into)]
    id: String,
    /// Under what the page keeps what it knows of it.
    key: String,
    /// How it is called.
    abi: Option<Abi>,
    /// The parts that stay.
    children: Children,
) -> impl IntoView {
    let state = use_state();
    let waiting = {
        let key = key.clone();
        Memo::new(move |_| state.waiting(&key))
    };
    let kind = move || match (waiting.with(Option::is_some), abi) {
        (true, _) => "running",
        (false, Some(_)) => "callable",
        (false, None) => "idle",
    };
    let is_waiting = Memo::new(move |_| waiting.with(Option::is_some));
    let words = move || match (is_waiting.get(), abi) {
        (true, _) => {
            let time = move || text::tenths(waiting.get().unwrap_or_default() / 1_000.0);
            view! { <span>"Running"</span>" · "{time}" s" }.into_any()
        }
        (false, Some(_)) => view! { <b>"Callable now"</b>" · "<LastRun key=key.clone()/> }.into_any(),
        (false, None) => view! { <span>"Admitted, not callable"</span>" · "{NO_ABI} }.into_any(),
    };
    view! {
        <li class="tool" data-state=kind data-tool=id>
            <span class="dot" aria-hidden="true"></span>
            {children()}
            <p class="tool__state">{words}</p>
            <p class="tool__chips">
                <span class="chip">{abi.map_or("no known ABI", |abi| abi.layout().name)}</span>
                <span class="chip">"0 imports"</span>
            </p>
        </li>
    }
}

fn last_call(state: State, key: &str) -> Option<Call> {
    state.histories.with(|histories| histories.get(key)?.last().copied())
}

/// How the last call went, and how long ago.
#[component]
fn LastRun(
    /// Under what the page keeps its calls.
    key: String,
) -> impl IntoView {
    let state = use_state();
    let last = Memo::new(move |_| last_call(state, &key));
    move || match last.get() {
        None => "not yet run in this session".into_any(),
        Some(call) => {
            let age = move || text::age(state.now.get() - call.at_ms);
            let how = match call.ok {
                true => "last run ok".into_any(),
                false => view! { <span class="bad">"last run failed"</span> }.into_any(),
            };
            let from = call.from.map(|origin| [" · ", from(origin)].concat());
            view! { {how}" · "{age}{from} }.into_any()
        }
    }
}

/// Where a call came from, in words.
pub(crate) fn from(origin: CallOrigin) -> &'static str {
    match origin {
        CallOrigin::Live => "in a live session",
        CallOrigin::Http => "over HTTP",
        CallOrigin::Cli => "from the command line",
        CallOrigin::Task => "by a task",
        CallOrigin::Mcp => "by an agent",
        CallOrigin::Agent => "by the browser's agent",
    }
}

/// How long the last call took. It lights up for a moment when it changes.
#[component]
pub(crate) fn Latency(
    /// Under what the page keeps its calls.
    key: String,
) -> impl IntoView {
    let state = use_state();
    let is_fresh = {
        let key = key.clone();
        Memo::new(move |_| state.fresh.with(|fresh| fresh.as_ref() == Some(&key)))
    };
    let last = Memo::new(move |_| last_call(state, &key));
    let title = move || {
        last.get()?
            .timing
            .map(|timing| ["Last call: ", &split(timing.worker_ms, timing.run_ms, ", ")].concat())
    };
    view! {
        <span
            class="lat"
            data-fresh=move || is_fresh.get()
            data-empty=move || last.get().is_none()
            aria-hidden=move || last.get().is_none().then_some("true")
            title=title
        >
            {move || last.get().map_or_else(|| "–".to_owned(), |call| text::millis(call.duration_ms))}
        </span>
    }
}

/// `worker 0.3 · run 0.9`, in milliseconds.
pub(super) fn split(worker_ms: f64, run_ms: f64, between: &str) -> String {
    ["worker ", &text::tenths(worker_ms), between, "run ", &text::tenths(run_ms)].concat()
}
