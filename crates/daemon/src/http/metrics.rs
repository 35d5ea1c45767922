//! What the companion counts, for Prometheus and what reads its format.
//!
//! A label has few values: codes, states, and the ids of tools that the shelf has admitted. What a caller makes up is
//! counted under [`UNKNOWN`].

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use serde_json::Value;
use tokio::sync::broadcast;
use toolshelf_core::live::CallNotice;
use toolshelf_core::refusal::Code;
use toolshelf_core::task::{TaskState, TaskView};
use toolshelf_host::gate::Stats;

use crate::service::Event;

/// The media type of what [`Metrics::text`] gives.
pub(crate) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The label of a name that no admitted tool has.
pub(crate) const UNKNOWN: &str = "(unknown)";
/// Tools that are known at a time, over all changes of the shelf.
const TOOLS_KEPT: usize = 1_024;
/// Bounds of the buckets of a call's time, in seconds; a call has five seconds, and may wait before.
const CALL_SECONDS: [f64; 12] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];

/// The counters.
pub(crate) struct Metrics {
    registry: Registry,
    started: Instant,
    calls: Family<Call, Counter>,
    call_seconds: Family<Tool, Histogram, fn() -> Histogram>,
    tasks: Family<Task, Counter>,
    requests: Family<Request, Counter>,
    refusals: Family<Refused, Counter>,
    gate_active: Gauge,
    gate_queued: Gauge,
    tasks_active: Gauge,
    live_sessions: Gauge,
    uptime: Gauge<f64, AtomicU64>,
    memory: Gauge,
    files: Gauge,
    seen: Mutex<Seen>,
}

/// What has to be remembered for counting.
#[derive(Debug, Default)]
struct Seen {
    /// Ids of tools that were admitted.
    tools: HashSet<String>,
    /// Where each task that has not ended stands.
    tasks: HashMap<String, TaskState>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    tool: String,
    outcome: String,
    from: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Tool {
    tool: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Task {
    state: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Refused {
    code: &'static str,
}

/// What is measured when somebody asks, and not counted as it happens.
#[derive(Debug)]
pub(crate) struct Now {
    /// The gate of the shelf.
    pub(crate) gate: Stats,
    /// Tasks that hold a place.
    pub(crate) active_tasks: i64,
    /// Live sessions and streams of events.
    pub(crate) sessions: usize,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            started: Instant::now(),
            calls: Family::default(),
            call_seconds: Family::new_with_constructor(|| Histogram::new(CALL_SECONDS)),
            tasks: Family::default(),
            requests: Family::default(),
            refusals: Family::default(),
            gate_active: Gauge::default(),
            gate_queued: Gauge::default(),
            tasks_active: Gauge::default(),
            live_sessions: Gauge::default(),
            uptime: Gauge::default(),
            memory: Gauge::default(),
            files: Gauge::default(),
            seen: Mutex::default(),
        };
        let to = &mut metrics.registry;
        to.register("toolshelf_calls", "Calls of tools that have ended", metrics.calls.clone());
        to.register_with_unit(
            "toolshelf_call_duration",
            "Time of whole calls that answered",
            Unit::Seconds,
            metrics.call_seconds.clone(),
        );
        to.register("toolshelf_gate_active", "Calls that run", metrics.gate_active.clone());
        to.register("toolshelf_gate_queued", "Calls that wait", metrics.gate_queued.clone());
        to.register("toolshelf_task_states", "Changes of tasks to a state", metrics.tasks.clone());
        to.register("toolshelf_tasks_active", "Tasks that hold a place", metrics.tasks_active.clone());
        to.register(
            "toolshelf_live_sessions",
            "Live sessions and event streams",
            metrics.live_sessions.clone(),
        );
        to.register("toolshelf_http_requests", "Requests that were answered", metrics.requests.clone());
        to.register(
            "toolshelf_http_refusals",
            "Requests that were refused, by code",
            metrics.refusals.clone(),
        );
        to.register_with_unit(
            "toolshelf_uptime",
            "Age of this process",
            Unit::Seconds,
            metrics.uptime.clone(),
        );
        to.register_with_unit(
            "process_resident_memory",
            "Resident memory",
            Unit::Bytes,
            metrics.memory.clone(),
        );
        to.register("process_open_fds", "Open file descriptors", metrics.files.clone());
        metrics
    }

    /// Counts what happens, until nothing more can.
    pub(crate) async fn listen(&self, mut events: broadcast::Receiver<Event>) {
        loop {
            match events.recv().await {
                Ok(Event::Call(notice)) => self.call(&notice),
                Ok(Event::Task { view, .. }) => self.task(&view),
                Ok(Event::Shelf(declarations)) => self.admitted(&declarations),
                // Some were missed; the next ones count.
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return,
            }
        }
    }

    /// Takes the ids of `declarations` as labels.
    pub(crate) fn admitted(&self, declarations: &[Value]) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for id in declarations.iter().filter_map(|tool| tool["name"].as_str()) {
            if seen.tools.len() < TOOLS_KEPT {
                seen.tools.insert(id.to_owned());
            }
        }
    }

    fn call(&self, notice: &CallNotice) {
        let known = self.seen.lock().unwrap_or_else(PoisonError::into_inner).tools.contains(&notice.name);
        let tool = if known { notice.name.clone() } else { UNKNOWN.to_owned() };
        let code = notice.refused.as_deref().and_then(Code::parse);
        let outcome = if notice.ok { "ok" } else { code.map_or("refused", Code::as_str) }.to_owned();
        let from = serde_json::to_value(notice.from).ok();
        let from = from.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        if notice.ok {
            self.call_seconds
                .get_or_create(&Tool { tool: tool.clone() })
                .observe(notice.duration_ms / 1_000.0);
        }
        self.calls.get_or_create(&Call { tool, outcome, from }).inc();
    }

    /// A task is told of many times in one state; each state counts once.
    fn task(&self, view: &TaskView) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let before = if view.state.is_terminal() {
            seen.tasks.remove(&view.address)
        } else {
            seen.tasks.insert(view.address.clone(), view.state)
        };
        drop(seen);
        if before != Some(view.state) {
            let state = serde_json::to_value(view.state).ok();
            let state = state.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
            self.tasks.get_or_create(&Task { state }).inc();
        }
    }

    /// Counts a request that was answered with `status`.
    pub(crate) fn request(&self, status: u16, refused: Option<Code>) {
        self.requests.get_or_create(&Request { status }).inc();
        if let Some(code) = refused {
            self.refusals.get_or_create(&Refused { code: code.as_str() }).inc();
        }
    }

    /// How long this has been counting.
    pub(crate) fn uptime_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// All counts as text.
    pub(crate) fn text(&self, now: &Now) -> String {
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.gate_active.set(count(now.gate.active));
        self.gate_queued.set(count(now.gate.queued));
        self.tasks_active.set(now.active_tasks);
        self.live_sessions.set(count(now.sessions));
        self.uptime.set(self.started.elapsed().as_secs_f64());
        self.memory.set(resident_bytes().unwrap_or(0));
        self.files.set(open_files().unwrap_or(0));
        let mut text = String::new();
        // Writing to a text does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// The memory of this process, in bytes, where the system tells it.
fn resident_bytes() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<i64>().ok()? * 1_024)
}

fn open_files() -> Option<i64> {
    let open = std::fs::read_dir("/proc/self/fd").ok()?.count();
    // One of them is for counting them.
    i64::try_from(open.saturating_sub(1)).ok()
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("started", &self.started).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolshelf_core::live::CallOrigin;
    use toolshelf_core::refusal::Refusal;

    use super::*;

    #[test]
    fn names_that_callers_make_up_share_one_label() {
        let metrics = Metrics::new();
        metrics.admitted(&[json!({"name": "hash"})]);
        let refused = || Err(Refusal::new(Code::UnknownTool, ""));
        for name in ["hash", "made-up-1", "made-up-2"] {
            metrics.call(&CallNotice::of(name, &refused(), Vec::new(), 1.0, CallOrigin::Http));
        }
        let gate = toolshelf_host::Gate::new(4, 32).stats();
        let text = metrics.text(&Now { gate, active_tasks: 0, sessions: 2 });
        let unknown = "toolshelf_calls_total{tool=\"(unknown)\",outcome=\"unknown-tool\",from=\"http\"} 2";
        assert!(text.contains(unknown), "{text}");
        assert!(text.contains("tool=\"hash\"") && !text.contains("made-up"), "{text}");
        assert!(text.contains("toolshelf_live_sessions 2") && text.ends_with("# EOF\n"), "{text}");
    }
}
