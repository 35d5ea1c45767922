//! What a client hears while it waits: how far its call is, and what is logged.

#![expect(deprecated, reason = "clients of the revisions before 2026-07-28 hear what is logged")]

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use serde_json::Value;
use toolshelf_core::limits::WASM_CALL_DEADLINE_MS;

/// Time between two notices of a call that runs.
pub(super) const PACE: Duration = Duration::from_millis(250);
/// A call is over at 1; before that it never gets beyond this.
const ALMOST: f64 = 0.99;
/// Nothing is logged to a client that has not asked for it, where the protocol says so.
const NOTHING: u8 = u8::MAX;

/// The notices of one call. A client that named no token gets none.
pub(super) struct Progress {
    token: Option<ProgressToken>,
    peer: Peer<RoleServer>,
}

impl Progress {
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Self {
        Self { token: context.meta.get_progress_token(), peer: context.peer.clone() }
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.token.is_some()
    }

    /// The call was taken.
    pub(super) async fn taken(&self) {
        self.say(0.0, "taken").await;
    }

    /// The call has been running for that long: the part of the deadline that has passed.
    pub(super) async fn running(&self, time: Duration) {
        let part = time.as_secs_f64() * 1_000.0 / f64::from(WASM_CALL_DEADLINE_MS);
        // Beyond the deadline, as tasks and extensions may be, it comes nearer to the end without reaching it.
        let part = if part <= 0.5 { part } else { 1.0 - 0.25 / part };
        self.say(part.clamp(f64::EPSILON, ALMOST), "running").await;
    }

    /// The call is over.
    pub(super) async fn over(&self) {
        self.say(1.0, "over").await;
    }

    async fn say(&self, part: f64, message: &str) {
        let Some(token) = &self.token else { return };
        let notice =
            ProgressNotificationParam::new(token.clone(), part).with_total(1.0).with_message(message);
        // A client that has gone hears nothing.
        let _ = self.peer.notify_progress(notice).await;
    }
}

/// How loud something must be to be told to a client.
#[derive(Debug)]
pub(super) struct Loudness {
    least: AtomicU8,
}

impl Loudness {
    pub(super) fn new() -> Self {
        Self { least: AtomicU8::new(rank(LoggingLevel::Info)) }
    }

    pub(super) fn set(&self, level: LoggingLevel) {
        self.least.store(rank(level), Ordering::Relaxed);
    }

    /// Tells the client of `context`, if it wants to hear something of that level.
    pub(super) async fn tell(
        &self,
        context: &RequestContext<RoleServer>,
        level: LoggingLevel,
        logger: &str,
        data: Value,
    ) {
        let asked = context.meta.log_level().map(rank);
        // Without a session, each request says what it wants to hear, or nothing.
        let usual = if context.meta.protocol_version().is_some() {
            NOTHING
        } else {
            self.least.load(Ordering::Relaxed)
        };
        if rank(level) < asked.unwrap_or(usual) {
            return;
        }
        let message = LoggingMessageNotificationParam::new(level, data).with_logger(logger);
        let _ = context.peer.notify_logging_message(message).await;
    }
}

fn rank(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
