//! How a tool has fared in this session: what its latency badge, its small chart and its counts are drawn from.

use std::collections::VecDeque;

use toolshelf_browser::core::call::Timing;
use toolshelf_browser::core::live::CallOrigin;

/// Calls that the chart shows.
pub(crate) const SHOWN: usize = 20;
/// Height of the chart, in its own units.
pub(crate) const CHART_HEIGHT: u32 = 24;

/// How one call ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Call {
    /// When it ended, in milliseconds since the epoch.
    pub(crate) at_ms: f64,
    /// How long it took, in milliseconds.
    pub(crate) duration_ms: f64,
    /// Whether it ended with an answer.
    pub(crate) ok: bool,
    /// Where the time went, if the call ended well and that is known.
    pub(crate) timing: Option<Timing>,
    /// Where it came from, if not from this page.
    pub(crate) from: Option<CallOrigin>,
}

/// The calls of one tool in this session.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct History {
    /// Calls that ended with an answer.
    pub(crate) ok: u32,
    /// Calls that ended with a refusal.
    pub(crate) failed: u32,
    recent: VecDeque<Call>,
}

/// One bar of the chart, in the chart's own units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bar {
    /// Its height.
    pub(crate) height: u32,
    /// What it stands for, as a class: nothing, an empty place, a failure, or the last call.
    pub(crate) class: &'static str,
}

impl History {
    /// Remembers one more call.
    pub(crate) fn push(&mut self, call: Call) {
        let count = if call.ok { &mut self.ok } else { &mut self.failed };
        *count += 1;
        self.recent.push_back(call);
        if self.recent.len() > SHOWN {
            self.recent.pop_front();
        }
    }

    /// Says where the time of this page's own last call went, if that is not known yet.
    pub(crate) fn explain(&mut self, timing: Timing) {
        let own = |call: &&mut Call| call.ok && call.from.is_none() && call.timing.is_none();
        if let Some(call) = self.recent.iter_mut().rev().find(own) {
            call.timing = Some(timing);
        }
    }

    /// The last call.
    pub(crate) fn last(&self) -> Option<&Call> {
        self.recent.back()
    }

    /// The shortest and the longest of the calls that the chart shows, in milliseconds.
    pub(crate) fn range(&self) -> Option<(f64, f64)> {
        let durations = self.recent.iter().map(|call| call.duration_ms);
        durations.fold(None, |range, ms| match range {
            None => Some((ms, ms)),
            Some((low, high)) => Some((ms.min(low), ms.max(high))),
        })
    }

    /// The bars of the chart, oldest first; places that no call fills yet come first.
    pub(crate) fn bars(&self) -> [Bar; SHOWN] {
        let longest = self.range().map_or(1.0, |(_, high)| high.max(0.001));
        let empty = SHOWN - self.recent.len();
        std::array::from_fn(|place| {
            let Some(call) = place.checked_sub(empty).and_then(|at| self.recent.get(at)) else {
                return Bar { height: 2, class: "is-empty" };
            };
            let height = ((call.duration_ms / longest) * f64::from(CHART_HEIGHT - 2)).round() as u32;
            let class = match call.ok {
                false => "is-failed",
                true if place == SHOWN - 1 => "is-last",
                true => "",
            };
            Bar { height: height.clamp(3, CHART_HEIGHT - 2), class }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(duration_ms: f64, ok: bool) -> Call {
        Call { at_ms: 0.0, duration_ms, ok, timing: None, from: None }
    }

    #[test]
    fn only_the_last_calls_are_drawn_but_all_are_counted() {
        let mut history = History::default();
        for ms in 0..50 {
            history.push(call(f64::from(ms), ms % 2 == 0));
        }
        assert_eq!((history.ok, history.failed), (25, 25));
        assert_eq!(history.range(), Some((30.0, 49.0)));
        assert_eq!(history.last().map(|call| call.duration_ms), Some(49.0));
    }

    #[test]
    fn only_an_own_call_is_explained_and_only_once() {
        let mut history = History::default();
        history.push(call(1.0, true));
        history.push(call(2.0, false));
        history.push(Call { from: Some(CallOrigin::Http), ..call(3.0, true) });
        history.explain(Timing { run_ms: 1.0, ..Timing::default() });
        history.explain(Timing::default());
        let run = |call: &Call| call.timing.map(|timing| timing.run_ms);
        assert_eq!(history.recent.iter().map(run).collect::<Vec<_>>(), [Some(1.0), None, None]);
    }

    #[test]
    fn bars_stay_inside_the_chart_whatever_the_durations_are() {
        let mut history = History::default();
        assert!(history.bars().iter().all(|bar| bar.class == "is-empty"));
        for ms in [0.0, -3.0, 1e12, f64::NAN, 5_000.0] {
            history.push(call(ms, ms != 5_000.0));
        }
        let bars = history.bars();
        assert!(bars.iter().all(|bar| bar.height <= CHART_HEIGHT));
        assert_eq!(bars[SHOWN - 1].class, "is-failed");
        history.push(call(1.0, true));
        assert_eq!(history.bars()[SHOWN - 1].class, "is-last");
    }
}
