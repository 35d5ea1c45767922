//! How often a passport may call an extension: a window of a minute that slides.

use std::collections::VecDeque;

/// Most calls in a minute that a grant may allow.
pub const RATE_LIMIT_MAX_PER_MIN: u32 = 60_000;
/// Calls in a minute where the grant says nothing.
pub const RATE_LIMIT_DEFAULT_PER_MIN: u32 = 10;
/// Length of the window in which calls are counted, in milliseconds.
pub const RATE_WINDOW_MS: u64 = 60_000;

/// One call too many.
#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
#[error("rate limited (cap {cap}/min)")]
pub struct RateLimited {
    /// Calls in a minute.
    pub cap: u32,
    /// When the next call may be tried, in milliseconds from now.
    pub retry_after_ms: u64,
}

/// The calls of the last minute: one window for each pair of extension and passport.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RateWindow {
    /// Moments of the calls, in milliseconds, the oldest first. Never more than the cap.
    calls: VecDeque<u64>,
}

impl RateWindow {
    /// Counts a call at `now_ms`, before its request is built: a call that fails later has been one all the same.
    /// A clock that is set back counts as one that stands still.
    ///
    /// # Errors
    /// [`RateLimited`]; the call is not counted then.
    pub fn record(&mut self, now_ms: u64, cap: u32) -> Result<(), RateLimited> {
        let now_ms = self.calls.back().map_or(now_ms, |last| now_ms.max(*last));
        while self.calls.front().is_some_and(|first| now_ms - first >= RATE_WINDOW_MS) {
            self.calls.pop_front();
        }
        let cap_calls = cap.min(RATE_LIMIT_MAX_PER_MIN) as usize;
        if self.calls.len() < cap_calls {
            self.calls.push_back(now_ms);
            return Ok(());
        }
        // Under a cap that was lowered, more than one call has to leave the window first.
        let leaves = self.calls.get(self.calls.len() - cap_calls).or(self.calls.back());
        let retry_after_ms = leaves.map_or(RATE_WINDOW_MS, |call| call + RATE_WINDOW_MS - now_ms);
        Err(RateLimited { cap, retry_after_ms })
    }

    /// Has the window no calls at `now_ms`? Such a window can be forgotten.
    #[must_use]
    pub fn is_empty(&self, now_ms: u64) -> bool {
        self.calls.back().is_none_or(|last| now_ms.saturating_sub(*last) >= RATE_WINDOW_MS)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_window_slides() {
        let mut window = RateWindow::default();
        assert_eq!(window.record(0, 2), Ok(()));
        assert_eq!(window.record(10_000, 2), Ok(()));
        assert_eq!(window.record(59_999, 2), Err(RateLimited { cap: 2, retry_after_ms: 1 }));
        assert_eq!(window.record(60_000, 2), Ok(()));
        assert_eq!(window.record(60_001, 2), Err(RateLimited { cap: 2, retry_after_ms: 9_999 }));
        assert!(!window.is_empty(119_999) && window.is_empty(120_000));
        // A cap of zero lets nothing through, and a clock that is set back gives no more calls.
        assert_eq!(RateWindow::default().record(5, 0), Err(RateLimited { cap: 0, retry_after_ms: 60_000 }));
        assert!(window.record(0, 2).is_err());
        // Under a lowered cap the last calls have to leave.
        assert_eq!(window.record(60_001, 1), Err(RateLimited { cap: 1, retry_after_ms: 59_999 }));
    }

    proptest! {
        #[test]
        fn no_minute_has_more_calls_than_the_cap(steps in prop::collection::vec(0_u64..30_000, 0..60), cap in 0_u32..6) {
            let mut window = RateWindow::default();
            let (mut now, mut taken) = (0, Vec::new());
            for step in steps {
                now += step;
                match window.record(now, cap) {
                    Ok(()) => taken.push(now),
                    Err(limited) => {
                        prop_assert!((1..=RATE_WINDOW_MS).contains(&limited.retry_after_ms));
                        let mut later = window.clone();
                        prop_assert!(cap == 0 || later.record(now + limited.retry_after_ms, cap).is_ok());
                    }
                }
            }
            for start in &taken {
                let inside = taken.iter().filter(|call| (*start..start + RATE_WINDOW_MS).contains(call)).count();
                prop_assert!(inside <= cap as usize);
            }
        }
    }
}
