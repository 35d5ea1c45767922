//! Facts in one file, by `redb`.
//!
//! | table | from | to |
//! |---|---|---|
//! | `latest` | entity, NUL, key | the newest version |
//! | `history` | entity, NUL, key, NUL, version | a version that is superseded |
//! | `ids` | number of a version | when it was stored, its version, entity and key |
//! | `meta` | a word | a number |
//!
//! Names hold no NUL, so the order of the keys is the order of entities, and all that lies below a prefix lies together:
//! a query costs what it looks at, not what the store holds. A write is one transaction and is on the disk when it is
//! acknowledged. A file has one store; a second one is refused.
//!
//! `redb` writes pages anew and leaves the old ones as they are until they are used again, so what is deleted would
//! stand in the file for long. [`delete`](RedbStore) therefore ends with the file being written afresh (`erase`).
//!
//! A file that has failed is opened again by whoever comes next (`current`). A write that failed at its very last step may
//! be there then, as a whole.

mod browse;
mod current;
mod erase;
mod record;
mod snapshot;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use ::redb::{ReadableTable, TableDefinition};
use toolshelf_core::refusal::cut;

use self::current::Current;
use self::erase::Missing;
use self::record::{Place, Record};
use crate::browse::{BrowseRequest, Names};
use crate::fact::{Fact, Moment, NewFact};
use crate::port::{Deleted, ExportRequest, Exported, FactError, FactStore, Found, Query};
use crate::privacy::PrivacyRule;
use crate::rules::{Page, Previous, check_bulk, id_of, next_version, seq_of};

type Bytes = TableDefinition<'static, &'static [u8], &'static [u8]>;
const LATEST: Bytes = TableDefinition::new("latest");
const HISTORY: Bytes = TableDefinition::new("history");
const IDS: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("ids");
const META: TableDefinition<'static, &str, u64> = TableDefinition::new("meta");

/// Which form the file has.
const FORMAT: (&str, u64) = ("format", 1);
/// The number that the next version gets.
const NEXT_SEQ: &str = "next_seq";
/// When the last version was stored.
const LAST_STORED_AT: &str = "last_stored_at";
/// There while something is deleted and not yet erased.
const ERASE_PENDING: &str = "erase_pending";

/// Pages that the engine keeps in memory at most, in bytes. It takes what it reads, no more. Tests go to the file.
const CACHE_BYTES: usize = if cfg!(test) { 64 * 1024 } else { 256 * 1024 * 1024 };

/// A store in a file.
#[derive(Debug)]
pub struct RedbStore {
    path: PathBuf,
    privacy: PrivacyRule,
    current: RwLock<Current>,
    /// Whether the file has failed, so that it must be opened again before it is used.
    faulted: AtomicBool,
    /// Held while something is written. How many deletions there were.
    deletions: Mutex<u64>,
    /// Held while the file is erased, and taken before `deletions`. How many deletions are erased.
    erased: Mutex<u64>,
}

impl RedbStore {
    /// Opens the store in the file at `path`, or makes one that only its owner can read. The folder must be there.
    /// What was being deleted when the process ended is erased now.
    ///
    /// # Errors
    /// [`FactError::Unavailable`]: not a store, one of another form, one that is open already, or a folder without room
    /// or rights.
    pub fn open(path: &Path, privacy: PrivacyRule) -> Result<Self, FactError> {
        let database = erase::database(path, Missing::Make)?;
        let transaction = database.begin_write()?;
        {
            let mut meta = transaction.open_table(META)?;
            let format = meta.get(FORMAT.0)?.map(|format| format.value());
            match format {
                Some(format) => check_format(format)?,
                None => drop(meta.insert(FORMAT.0, FORMAT.1)?),
            }
            transaction.open_table(LATEST)?;
            transaction.open_table(HISTORY)?;
            transaction.open_table(IDS)?;
        }
        transaction.commit()?;

        let store = Self {
            path: path.to_owned(),
            privacy,
            current: RwLock::new(Current::of(database)),
            faulted: AtomicBool::new(false),
            deletions: Mutex::new(0),
            erased: Mutex::new(0),
        };
        store.finish_erasing()?;
        Ok(store)
    }

    /// Stores all facts in one transaction.
    fn store_all(&self, facts: Vec<NewFact>, at: Moment) -> Result<Vec<Fact>, FactError> {
        check_bulk(&facts)?;
        let writer = lock(&self.deletions);
        let transaction = self.write(&writer)?;
        let mut stored = Vec::with_capacity(facts.len());
        {
            let mut latest = transaction.open_table(LATEST)?;
            let mut history = transaction.open_table(HISTORY)?;
            let mut ids = transaction.open_table(IDS)?;
            let mut meta = transaction.open_table(META)?;
            let mut seq = number(&meta, NEXT_SEQ)?;
            // A clock that is set back does not bring the order of storing out of order.
            let at = at.max(Moment::from_unix_ms(number(&meta, LAST_STORED_AT)?));
            for new in facts {
                let name = name_key(&new.entity, &new.key);
                let previous = latest.get(name.as_slice())?.map(|bytes| bytes.value().to_vec());
                let fact = match &previous {
                    Some(bytes) => {
                        let mut record = Record::read(bytes)?;
                        let id = id_of(record.seq);
                        let previous = Previous { id: &id, version: record.version, private: record.private };
                        let fact = next_version(new, seq, at, Some(previous), &self.privacy);
                        record.superseded_by = Some(seq);
                        history.insert(
                            version_key(&name, record.version).as_slice(),
                            record.bytes()?.as_slice(),
                        )?;
                        fact
                    }
                    None => next_version(new, seq, at, None, &self.privacy),
                };
                latest.insert(name.as_slice(), Record::of(&fact)?.bytes()?.as_slice())?;
                let place = Place { stored_at: at, version: fact.version, name: &name };
                ids.insert(seq, place.bytes()?.as_slice())?;
                seq += 1;
                stored.push(fact);
            }
            meta.insert(NEXT_SEQ, seq)?;
            meta.insert(LAST_STORED_AT, at.unix_ms())?;
        }
        self.commit(transaction)?;
        Ok(stored)
    }

    /// Takes what an id stands for out of every table. Its bytes are still in the file.
    fn remove(&self, id: &str, writer: &MutexGuard<'_, u64>) -> Result<Deleted, FactError> {
        let not_found = || FactError::NotFound(cut(id, 100));
        let wanted = seq_of(id).ok_or_else(not_found)?;
        let transaction = self.write(writer)?;
        let mut versions = 0;
        {
            let mut latest = transaction.open_table(LATEST)?;
            let mut history = transaction.open_table(HISTORY)?;
            let mut ids = transaction.open_table(IDS)?;
            let place = ids.remove(wanted)?.map(|place| place.value().to_vec()).ok_or_else(not_found)?;
            let place = Place::read(&place)?;
            let newest = latest.get(place.name)?.map(|bytes| bytes.value().to_vec());
            let newest = newest.as_deref().map(Record::read).transpose()?;
            if newest.is_some_and(|newest| newest.seq == wanted) {
                latest.remove(place.name)?;
                versions += 1;
                let (from, to) = (version_key(place.name, 0), version_key(place.name, u64::MAX));
                for older in history.extract_from_if(from.as_slice()..=to.as_slice(), |_, _| true)? {
                    ids.remove(Record::read(older?.1.value())?.seq)?;
                    versions += 1;
                }
            } else {
                history.remove(version_key(place.name, place.version).as_slice())?;
                versions += 1;
            }
            transaction.open_table(META)?.insert(ERASE_PENDING, 1)?;
        }
        self.commit(transaction)?;
        Ok(Deleted { versions })
    }

    /// Erases what was deleted up to now, unless somebody else has done so meanwhile: deletions that come together share
    /// one pass.
    fn erase_up_to(&self, deletion: u64) -> Result<(), FactError> {
        let mut erased = lock(&self.erased);
        if *erased < deletion {
            let deletions = lock(&self.deletions);
            self.replace_file(&deletions)?;
            *erased = *deletions;
        }
        Ok(())
    }

    fn delete_all_of(&self, id: &str) -> Result<Deleted, FactError> {
        let (deleted, deletion) = {
            let mut deletions = lock(&self.deletions);
            let deleted = self.remove(id, &deletions)?;
            *deletions += 1;
            (deleted, *deletions)
        };
        self.erase_up_to(deletion).map_err(|err| FactError::NotErased(err.to_string()))?;
        Ok(deleted)
    }
}

impl FactStore for RedbStore {
    async fn store(&self, fact: NewFact, at: Moment) -> Result<Fact, FactError> {
        let stored = self.store_bulk(vec![fact], at).await?;
        stored.into_iter().next().ok_or_else(|| FactError::Unavailable("nothing was stored".to_owned()))
    }

    async fn store_bulk(&self, facts: Vec<NewFact>, at: Moment) -> Result<Vec<Fact>, FactError> {
        if facts.is_empty() {
            return Ok(Vec::new());
        }
        self.noticing(|| self.store_all(facts, at))
    }

    async fn latest(&self, entity: &str, key: &str) -> Result<Option<Fact>, FactError> {
        self.read(|snapshot| {
            let newest = snapshot.latest.get(name_key(entity, key).as_slice())?;
            newest.map(|bytes| Ok(Record::read(bytes.value())?.fact())).transpose()
        })
    }

    async fn get(&self, id: &str) -> Result<Option<Fact>, FactError> {
        match seq_of(id) {
            Some(seq) => self.read(|snapshot| snapshot.fact(seq)),
            None => Ok(None),
        }
    }

    async fn by_entity(&self, entity: &str) -> Result<Vec<Fact>, FactError> {
        self.read(|snapshot| snapshot.of_entity(entity))
    }

    async fn query(&self, query: &Query) -> Result<Found, FactError> {
        self.read(|snapshot| snapshot.query(query))
    }

    async fn browse(&self, request: &BrowseRequest) -> Result<Names, FactError> {
        self.read(|snapshot| browse::browse(snapshot, request))
    }

    async fn history(&self, entity: &str, key: &str) -> Result<Vec<Fact>, FactError> {
        self.read(|snapshot| snapshot.versions(entity, key))
    }

    async fn delete(&self, id: &str) -> Result<Deleted, FactError> {
        self.noticing(|| self.delete_all_of(id))
    }

    async fn export(&self, request: &ExportRequest) -> Result<Exported, FactError> {
        let page = Page::of(request)?;
        self.read(|snapshot| snapshot.page(request, &page))
    }
}

fn name_key(entity: &str, key: &str) -> Vec<u8> {
    [entity.as_bytes(), b"\0", key.as_bytes()].concat()
}

fn version_key(name: &[u8], version: u64) -> Vec<u8> {
    [name, b"\0", &version.to_be_bytes()].concat()
}

fn number(meta: &impl ReadableTable<&'static str, u64>, word: &str) -> Result<u64, FactError> {
    Ok(meta.get(word)?.map_or(0, |number| number.value()))
}

fn check_format(format: u64) -> Result<(), FactError> {
    if format == FORMAT.1 {
        return Ok(());
    }
    Err(FactError::Unavailable(format!("its file has the form {format}")))
}

fn lock(mutex: &Mutex<u64>) -> MutexGuard<'_, u64> {
    // It holds a count; what is in the file is whole, whatever ended in a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

macro_rules! unavailable {
    ($($fault:ty,)*) => {
        $(impl From<$fault> for FactError {
            fn from(fault: $fault) -> Self {
                Self::Unavailable(cut(&fault.to_string(), 200))
            }
        })*
    };
}

unavailable! {
    ::redb::CommitError,
    ::redb::DatabaseError,
    ::redb::StorageError,
    ::redb::TableError,
    ::redb::TransactionError,
    std::io::Error,
    postcard::Error,
}

#[cfg(test)]
mod faults;
#[cfg(test)]
mod tests;
