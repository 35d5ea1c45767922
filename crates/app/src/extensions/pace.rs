//! How fast a tool has been in this session.

use leptos::prelude::*;

use super::tool_row::{from, split};
use crate::history::{CHART_HEIGHT, Call, History, SHOWN};
use crate::state::use_state;
use crate::text::{counted, millis};

/// The last latency, the last twenty as a chart, and the counts.
#[component]
pub(super) fn Pace(
    /// Under what the page keeps its calls.
    key: String,
) -> impl IntoView {
    let state = use_state();
    let history = Memo::new(move |_| {
        state.histories.with(|histories| histories.get(&key).cloned()).unwrap_or_default()
    });
    let last = move || {
        history.with(|history| history.last().map_or_else(|| "–".to_owned(), |call| millis(call.duration_ms)))
    };
    let parts = move || {
        history.with(|history| match history.last() {
            None => "not yet run".to_owned(),
            Some(Call { ok: false, .. }) => "last run failed".to_owned(),
            Some(Call { timing: Some(timing), .. }) => split(timing.worker_ms, timing.run_ms, " · "),
            Some(call) => call.from.map_or("last run ok", from).to_owned(),
        })
    };
    let counts = move || {
        history.with(|history| {
            let calls = counted(u64::from(history.ok) + u64::from(history.failed), "call", "calls");
            let ok = (history.ok > 0).then(|| [" · ", &history.ok.to_string(), " ok"].concat());
            let failed = (history.failed > 0).then(|| {
                view! { " · "<span class="bad">{history.failed.to_string()}" failed"</span> }
            });
            view! { {calls}{ok}{failed} }
        })
    };
    view! {
        <div class="pace">
            <h3 class="vh">"Latency"</h3>
            <p class="pace__last"><b>{last}</b><span class="pace__split">{parts}</span></p>
            {move || history.with(chart)}
            <p class="pace__count">{counts}</p>
        </div>
    }
}

fn chart(history: &History) -> impl IntoView + use<> {
    let label = match history.range() {
        None => "No calls yet".to_owned(),
        Some((low, high)) => {
            let count = counted(u64::from(history.ok + history.failed).min(SHOWN as u64), "call", "calls");
            ["Last ", &count, ", from ", &millis(low), " to ", &millis(high)].concat()
        }
    };
    let bars = history.bars().into_iter().enumerate().map(|(place, bar)| {
        let (x, y) = ((place * 6).to_string(), (CHART_HEIGHT - bar.height).to_string());
        let class = Some(bar.class).filter(|class| !class.is_empty());
        view! { <rect class=class x=x y=y width="4" height=bar.height.to_string()></rect> }
    });
    view! { <svg class="spark" viewBox="0 0 118 24" role="img" aria-label=label>{bars.collect_view()}</svg> }
}
