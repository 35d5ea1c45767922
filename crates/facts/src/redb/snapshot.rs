//! The tables as they are at one moment, and what is looked up across them.

use std::sync::Arc;

use ::redb::{Database, ReadableDatabase as _};

use super::record::{Place, Record};
use super::{HISTORY, IDS, LATEST, META, NEXT_SEQ, name_key, number, version_key};
use crate::fact::{Fact, Moment};
use crate::port::{ExportRequest, Exported, FactError, Found, LISTED_MAX, Query};
use crate::rules::{Page, Selection, id_of};

type ReadOnly<K> = ::redb::ReadOnlyTable<K, &'static [u8]>;

/// The tables as they are at one moment.
pub(super) struct Snapshot {
    pub(super) latest: ReadOnly<&'static [u8]>,
    pub(super) history: ReadOnly<&'static [u8]>,
    pub(super) ids: ReadOnly<u64>,
    next_seq: u64,
    /// A database that is dropped closes its file, also under those who still read. Last, so that it is dropped last.
    _database: Arc<Database>,
}

impl Snapshot {
    pub(super) fn of(database: Arc<Database>) -> Result<Self, FactError> {
        let transaction = database.begin_read()?;
        Ok(Self {
            latest: transaction.open_table(LATEST)?,
            history: transaction.open_table(HISTORY)?,
            ids: transaction.open_table(IDS)?,
            next_seq: number(&transaction.open_table(META)?, NEXT_SEQ)?,
            _database: database,
        })
    }

    /// The version of that number.
    pub(super) fn fact(&self, seq: u64) -> Result<Option<Fact>, FactError> {
        let Some(place) = self.ids.get(seq)? else { return Ok(None) };
        let place = Place::read(place.value())?;
        if let Some(bytes) = self.latest.get(place.name)? {
            let record = Record::read(bytes.value())?;
            if record.seq == seq {
                return Ok(Some(record.fact()));
            }
        }
        let older = self.history.get(version_key(place.name, place.version).as_slice())?;
        older.map(|bytes| Ok(Record::read(bytes.value())?.fact())).transpose()
    }

    /// The number from which on all versions were stored at `since` or later. Numbers and moments rise together.
    pub(super) fn first_since(&self, since: Moment) -> Result<u64, FactError> {
        let (mut low, mut high) = (0, self.next_seq);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.ids.range(middle..high)?.next() {
                Some(entry) => {
                    let (seq, place) = entry?;
                    if Place::read(place.value())?.stored_at < since {
                        low = seq.value() + 1;
                    } else {
                        high = middle;
                    }
                }
                None => high = middle,
            }
        }
        Ok(low)
    }

    /// The newest of the superseded versions that were stored at `as_of` or earlier.
    pub(super) fn older(&self, name: &[u8], as_of: Moment) -> Result<Option<Vec<u8>>, FactError> {
        let (from, to) = (version_key(name, 0), version_key(name, u64::MAX));
        for entry in self.history.range(from.as_slice()..=to.as_slice())?.rev() {
            let bytes = entry?.1;
            if Record::read(bytes.value())?.stored_at <= as_of {
                return Ok(Some(bytes.value().to_vec()));
            }
        }
        Ok(None)
    }

    /// The newest versions of an entity's facts.
    pub(super) fn of_entity(&self, entity: &str) -> Result<Vec<Fact>, FactError> {
        let prefix = name_key(entity, "");
        let mut facts = Vec::new();
        for entry in self.latest.range(prefix.as_slice()..)? {
            let (name, bytes) = entry?;
            if !name.value().starts_with(&prefix) || facts.len() == LISTED_MAX {
                break;
            }
            facts.push(Record::read(bytes.value())?.fact());
        }
        Ok(facts)
    }

    /// What matches a query.
    pub(super) fn query(&self, query: &Query) -> Result<Found, FactError> {
        let mut selection = Selection::new(query);
        let prefix = match selection.entity() {
            Some(entity) => name_key(entity, ""),
            None => selection.prefix().as_bytes().to_vec(),
        };
        for entry in self.latest.range(prefix.as_slice()..)? {
            let (name, bytes) = entry?;
            if !name.value().starts_with(&prefix) {
                break;
            }
            let record = Record::read(bytes.value())?;
            match query.as_of {
                Some(as_of) if record.stored_at > as_of => {
                    if let Some(bytes) = self.older(name.value(), as_of)? {
                        let record = Record::read(&bytes)?;
                        selection.offer(record.candidate(), || Ok(record.fact()))?;
                    }
                }
                _ => selection.offer(record.candidate(), || Ok(record.fact()))?,
            }
        }
        Ok(selection.finish())
    }

    /// Every version of a fact, the newest first.
    pub(super) fn versions(&self, entity: &str, key: &str) -> Result<Vec<Fact>, FactError> {
        let name = name_key(entity, key);
        let mut facts = Vec::new();
        // A name that could not have been stored might look like a part of another one's keys.
        if let Some(newest) = self.latest.get(name.as_slice())? {
            facts.push(Record::read(newest.value())?.fact());
            let (from, to) = (version_key(&name, 0), version_key(&name, u64::MAX));
            for older in self.history.range(from.as_slice()..=to.as_slice())?.rev().take(LISTED_MAX - 1) {
                facts.push(Record::read(older?.1.value())?.fact());
            }
        }
        Ok(facts)
    }

    /// One page of an export.
    pub(super) fn page(&self, request: &ExportRequest, page: &Page) -> Result<Exported, FactError> {
        let since = request.since.map(|since| self.first_since(since)).transpose()?;
        let from = page.from.unwrap_or(0).max(since.unwrap_or(0));
        let mut exported = Exported::default();
        for (looked_at, entry) in self.ids.range(from..)?.enumerate() {
            let seq = entry?.0.value();
            if exported.facts.len() == page.limit || looked_at == page.scanned {
                (exported.next_cursor, exported.has_more) = (Some(id_of(seq)), true);
                break;
            }
            exported.facts.extend(self.fact(seq)?.filter(|fact| !fact.private));
        }
        Ok(exported)
    }
}
