//! The thread that counts the epochs of an engine.
//!
//! Epochs end a call by the clock, so they must go on while every other thread is busy running modules: a timer that
//! lives among the calls would be late when it is needed most.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use wasmtime::Engine;

/// Shortest time between two ticks.
const TICK_MIN: Duration = Duration::from_millis(1);
/// Longest time between two ticks. A deadline is no finer than that.
const TICK_MAX: Duration = Duration::from_secs(60);

/// A running thread. Dropping it ends the thread.
#[derive(Debug)]
pub(super) struct Ticker {
    tick: Duration,
    // Closed to end the thread.
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Begins to count.
    pub(super) fn start(engine: &Engine, tick: Duration) -> io::Result<Self> {
        let tick = tick.clamp(TICK_MIN, TICK_MAX);
        let (stop, stopped) = mpsc::channel::<()>();
        let engine = engine.clone();
        let thread = std::thread::Builder::new().name("extension-epochs".to_owned()).spawn(move || {
            let mut next = Instant::now() + tick;
            while stopped.recv_timeout(next.saturating_duration_since(Instant::now()))
                == Err(RecvTimeoutError::Timeout)
            {
                // Where modules keep every core busy this thread wakes late; then it counts what it has slept through.
                while next <= Instant::now() {
                    engine.increment_epoch();
                    next += tick;
                }
            }
        })?;
        Ok(Self { tick, stop: Some(stop), thread: Some(thread) })
    }

    /// The time between two ticks, in whole milliseconds and never zero.
    pub(super) fn tick_ms(&self) -> u64 {
        u64::try_from(self.tick.as_millis()).unwrap_or(u64::MAX)
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
