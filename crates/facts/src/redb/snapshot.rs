//! The tables as they are at one moment, and what is looked up across them.

use ::redb::ReadTransaction;

use super::record::{Place, Record};
use super::{HISTORY, IDS, LATEST, META, NEXT_SEQ, number, version_key};
use crate::fact::{Fact, Moment};
use crate::port::FactError;

type ReadOnly<K> = ::redb::ReadOnlyTable<K, &'static [u8]>;

/// The tables as they are at one moment.
pub(super) struct Snapshot {
    pub(super) latest: ReadOnly<&'static [u8]>,
    pub(super) history: ReadOnly<&'static [u8]>,
    pub(super) ids: ReadOnly<u64>,
    next_seq: u64,
}

impl Snapshot {
    pub(super) fn of(transaction: &ReadTransaction) -> Result<Self, FactError> {
        Ok(Self {
            latest: transaction.open_table(LATEST)?,
            history: transaction.open_table(HISTORY)?,
            ids: transaction.open_table(IDS)?,
            next_seq: number(&transaction.open_table(META)?, NEXT_SEQ)?,
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
}
