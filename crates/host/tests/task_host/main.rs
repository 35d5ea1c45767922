//! The task host over ports whose every answer a test chooses: admission, runs, cancellation, restarts, forgeries.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod addresses;
mod adopt;
mod cancel;
mod delegate;
mod dispatch;
mod lives;
mod persistence;
mod ports;
mod run;
mod storm;
mod world;
