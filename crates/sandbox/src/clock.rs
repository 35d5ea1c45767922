//! The time of this computer.

use std::time::{Duration, Instant};

use toolshelf_host::Clock;

/// A monotonic clock; timers run on the Tokio runtime of the thread.
#[derive(Debug, Clone, Copy)]
pub struct HostClock {
    start: Instant,
}

impl HostClock {
    /// A clock that starts at zero.
    #[must_use]
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for HostClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for HostClock {
    fn now_ms(&self) -> f64 {
        self.start.elapsed().as_secs_f64() * 1_000.0
    }

    fn after(&self, ms: u32, then: Box<dyn FnOnce()>) {
        tokio::task::spawn_local(async move {
            tokio::time::sleep(Duration::from_millis(ms.into())).await;
            then();
        });
    }
}
