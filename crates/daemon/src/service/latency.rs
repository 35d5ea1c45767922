//! How each tool's calls have gone in this life of the companion.

use std::collections::{HashMap, VecDeque};

use toolshelf_core::inventory::Latency;
use toolshelf_core::live::CallNotice;

/// Calls of a tool whose times are kept.
const TIMES_KEPT: usize = 64;
/// Tools that are known at a time. Names come from callers, so that they must not grow without end.
const TOOLS_KEPT: usize = 1_024;

/// What is known of every tool that was called.
#[derive(Debug, Default)]
pub(super) struct Latencies {
    tools: HashMap<String, Times>,
}

#[derive(Debug, Default)]
struct Times {
    calls: u64,
    last_ok: bool,
    last: VecDeque<f64>,
}

impl Latencies {
    /// Counts a call that has ended.
    pub(super) fn note(&mut self, notice: &CallNotice) {
        if self.tools.len() >= TOOLS_KEPT && !self.tools.contains_key(&notice.name) {
            return;
        }
        let times = self.tools.entry(notice.name.clone()).or_default();
        times.calls += 1;
        times.last_ok = notice.ok;
        if times.last.len() == TIMES_KEPT {
            times.last.pop_front();
        }
        times.last.push_back(notice.duration_ms);
    }

    /// How the calls of `id` have gone; `None` when there were none.
    pub(super) fn of(&self, id: &str) -> Option<Latency> {
        let times = self.tools.get(id)?;
        let mut sorted: Vec<f64> = times.last.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        Some(Latency {
            calls: times.calls,
            last_ok: times.last_ok,
            last_ms: *times.last.back()?,
            median_ms: *sorted.get((sorted.len() - 1) / 2)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use toolshelf_core::live::CallOrigin;

    use super::*;

    #[test]
    fn the_median_is_of_the_last_calls() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.of("hash"), None);
        for ms in 0..100 {
            latencies.note(&CallNotice {
                name: "hash".into(),
                ok: ms != 99,
                output: String::new(),
                duration_ms: f64::from(ms),
                from: CallOrigin::Http,
                digest: None,
                refused: None,
                why: None,
                session: None,
            });
        }
        let expected = Latency { calls: 100, last_ok: false, last_ms: 99.0, median_ms: 67.0 };
        assert_eq!(latencies.of("hash"), Some(expected));
    }
}
