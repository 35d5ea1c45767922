//! The time of this computer.

use std::future::Future;
use std::time::{Duration, Instant, SystemTime};

use toolshelf_host::{Clock, TaskClock};

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

impl TaskClock for HostClock {
    fn unix_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since.map_or(0, |since| since.as_millis() as u64)
    }

    /// Takes its timer back when it is dropped.
    fn sleep(&self, ms: u32) -> impl Future<Output = ()> {
        tokio::time::sleep(Duration::from_millis(ms.into()))
    }
}
