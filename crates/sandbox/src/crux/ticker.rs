//! The thread that counts the epochs of an engine.
//!
//! Epochs end a call by the clock, so they must go on while every other thread is busy running modules: a timer that
//! lives among the calls would be late when it is needed most.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use wasmtime::Engine;

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
        let tick = tick.max(Duration::from_millis(1));
        let (stop, stopped) = mpsc::channel::<()>();
        let engine = engine.clone();
        let thread = std::thread::Builder::new().name("extension-epochs".to_owned()).spawn(move || {
            while stopped.recv_timeout(tick) == Err(RecvTimeoutError::Timeout) {
                engine.increment_epoch();
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
