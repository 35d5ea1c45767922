//! The fact store: its port, its rules, and the backends that keep facts.
//!
//! A fact says one thing of an entity: `(entity, key)` and a value. Storing the same pair again makes a new version, and
//! the newest version is the one that holds. Nothing here knows who asks: whether a caller may see or write an entity is
//! decided before (`core::grant`), except for privacy, which no write can get around.
//!
//! | module | idea |
//! |---|---|
//! | [`fact`] | a fact, and what is asked to be stored; bounds and wire forms |
//! | [`port`] | what every backend does, and how it says no |
//! | [`browse`] | which names stand directly below a prefix |
//! | [`privacy`] | which facts are private, and which entities no client writes |
//! | [`memory`] | facts that end with the process |
//! | [`redb`] | facts in one file; deleting leaves no readable copy in it |
//! | [`nats`] | facts in a bucket that many companions share |
//!
//! `versions` holds facts in memory, `rules` holds what all backends decide alike: versions, order, selection. `conformance` is the suite that each
//! backend is run against.

pub mod browse;
pub mod fact;
pub mod memory;
#[cfg(feature = "cluster")]
pub mod nats;
pub mod port;
pub mod privacy;
pub mod redb;

mod rules;
mod versions;

#[cfg(test)]
mod conformance;

pub use browse::{BrowseRequest, Name, Names};
pub use fact::{Fact, HorizonClass, Moment, NewFact};
pub use memory::MemoryStore;
#[cfg(feature = "cluster")]
pub use nats::{NatsOptions, NatsStore};
pub use port::{Deleted, ExportRequest, Exported, FactError, FactStore, Found, Query};
pub use privacy::PrivacyRule;
pub use redb::RedbStore;
