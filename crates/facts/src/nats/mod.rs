//! Facts in a key-value bucket of NATS JetStream, for companions that share them.
//!
//! The bucket is a log that has one order, and every store keeps a copy of what it has read of it in memory:
//!
//! | key | value |
//! |---|---|
//! | `v.<number>` | the version of that number; of several that are stored at once it says where they begin |
//! | `c.<number>` | all versions that begin there are stored |
//! | `d.<number>` | versions that are deleted: their numbers, and what they came after, never their values |
//!
//! A write says after which entry it comes (compare and set); where another was faster, the store reads what that one
//! has written, plans anew and tries again. So versions, numbers and moments are as if there were one store. A read asks
//! the servers first how far the log goes, and answers from a copy that goes as far: it finds what anybody was told is
//! stored. It costs that question and what it finds; memory is taken by all facts.
//!
//! A deletion is written down, and then the servers overwrite the entries that had the values. Where a store ends in
//! between, the next one that is opened goes on.
//!
//! The connection lives in a runtime of the store's own, so that a caller may wait in any way.

mod copy;
mod entry;
mod log;
#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::ConnectOptions;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Mutex, MutexGuard};
use toolshelf_core::refusal::cut;

use self::copy::Copy;
use self::entry::{Entry, Gone};
use self::log::{AppendFault, Log};
use crate::browse::{BrowseRequest, Names};
use crate::fact::{Fact, Moment, NewFact};
use crate::port::{Deleted, ExportRequest, Exported, FactError, FactStore, Found, Query};
use crate::privacy::PrivacyRule;
use crate::rules::{check_bulk, seq_of};

/// How long a write is tried where others write too, or where no server answers.
const WRITE_PATIENCE: Duration = Duration::from_secs(10);
/// How long a write that others came before waits at most.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// Threads of a store's runtime: what it does is waiting.
const THREADS: usize = 1;

/// Where facts are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatsOptions {
    /// The servers, as `nats://` or `tls://` addresses with commas.
    pub servers: String,
    /// The bucket: letters, digits, `_` and `-`.
    pub bucket: String,
    /// On how many servers each fact is kept, where the bucket is not there yet.
    pub replicas: usize,
}

/// A store in a bucket.
pub struct NatsStore {
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

struct Shared {
    log: Log,
    privacy: PrivacyRule,
    copy: Mutex<Copy>,
}

impl NatsStore {
    /// Connects, makes the bucket where it is missing, reads it, and erases what was being deleted when a store ended.
    /// Waits for all that; not to be called where waiting is not allowed.
    ///
    /// # Errors
    /// [`FactError::Unavailable`] when no server answers, or one refuses.
    pub fn open(
        options: &NatsOptions,
        connect: ConnectOptions,
        privacy: PrivacyRule,
    ) -> Result<Self, FactError> {
        let runtime = Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
        let runtime = runtime.map_err(|err| FactError::Unavailable(err.to_string()))?;
        let options = options.clone();
        let opening = runtime.spawn(async move {
            let log = Log::open(&options, connect).await?;
            let shared = Shared { log, privacy, copy: Mutex::default() };
            let mut copy = shared.fresh().await?;
            shared.erase(&mut copy).await;
            drop(copy);
            Ok::<_, FactError>(Arc::new(shared))
        });
        let shared =
            futures::executor::block_on(opening).map_err(|err| FactError::Unavailable(err.to_string()))??;
        Ok(Self { shared, runtime: Some(runtime) })
    }

    /// Does work in the store's runtime, where its connection is.
    async fn there<T, F>(&self, work: impl FnOnce(Arc<Shared>) -> F) -> Result<T, FactError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, FactError>> + Send + 'static,
    {
        let ended = || FactError::Unavailable("the store has ended".to_owned());
        let runtime = self.runtime.as_ref().ok_or_else(ended)?;
        runtime.spawn(work(Arc::clone(&self.shared))).await.map_err(|_| ended())?
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Copy) -> T + Send + 'static,
    ) -> Result<T, FactError> {
        self.there(|shared| async move { Ok(read(&*shared.fresh().await?)) }).await
    }
}

impl Shared {
    /// The copy, as far as the log goes now.
    async fn fresh(&self) -> Result<MutexGuard<'_, Copy>, FactError> {
        let mut copy = self.copy.lock().await;
        self.log.follow(&mut copy).await?;
        Ok(copy)
    }

    async fn store(&self, facts: Vec<NewFact>, at: Moment) -> Result<Vec<Fact>, FactError> {
        if facts.is_empty() {
            return Ok(Vec::new());
        }
        let mut copy = self.copy.lock().await;
        let plan = |copy: &Copy| {
            let planned = copy.facts().planned(facts.clone(), at, &self.privacy);
            Ok((Entry::of_versions(&planned), planned))
        };
        let stored = self.write(&mut copy, plan).await?;
        self.erase(&mut copy).await;
        Ok(stored)
    }

    async fn delete(&self, id: &str) -> Result<Deleted, FactError> {
        let mut copy = self.fresh().await?;
        let plan = |copy: &Copy| {
            let gone = copy.facts().goes_with(id);
            let gone = gone.ok_or_else(|| FactError::NotFound(cut(id, 100)))?;
            let gone: Vec<_> = gone
                .into_iter()
                .filter_map(|fact| Some(Gone { seq: seq_of(&fact.fact_id)?, after: fact.supersedes.clone() }))
                .collect();
            let versions = gone.len() as u64;
            let (next_seq, stored_at) = copy.facts().progress();
            Ok((vec![Entry::Deleted { gone, next_seq, stored_at }], Deleted { versions }))
        };
        let deleted = self.write(&mut copy, plan).await?;
        match self.erase(&mut copy).await {
            None => Ok(deleted),
            Some(fault) => Err(FactError::NotErased(fault)),
        }
    }

    /// Writes what `plan` makes of the facts as they are, after the last entry that is known. Where that was not the
    /// last one, plans again.
    async fn write<T>(
        &self,
        copy: &mut Copy,
        plan: impl Fn(&Copy) -> Result<(Vec<Entry>, T), FactError>,
    ) -> Result<T, FactError> {
        let writer = self.log.new_writer();
        let give_up = Instant::now() + WRITE_PATIENCE;
        let mut last_planned = None;
        let mut pause = Duration::from_millis(1);
        loop {
            let (entries, planned) = plan(copy)?;
            match self.log.append(copy.applied(), &entries, writer).await {
                Ok(()) => {
                    for (place, entry) in (copy.applied() + 1..).zip(entries) {
                        copy.apply(place, entry, writer);
                    }
                    return Ok(planned);
                }
                Err(AppendFault::Refused(why)) => return Err(FactError::Unavailable(why)),
                Err(AppendFault::Behind) => {}
                // It may have been written all the same; the log says so once it can be read.
                Err(AppendFault::Unknown(why)) if Instant::now() > give_up => {
                    let why = format!("{why}; it is not known whether it was written");
                    return Err(FactError::Unavailable(why));
                }
                Err(AppendFault::Unknown(_)) => {}
            }
            last_planned = Some(planned).or(last_planned);
            if let Err(fault) = self.log.follow(copy).await
                && Instant::now() > give_up
            {
                let why = format!("{fault}; it is not known whether it was written");
                return Err(FactError::Unavailable(why));
            }
            if copy.has_of(writer)
                && let Some(planned) = last_planned
            {
                return Ok(planned);
            }
            if Instant::now() > give_up {
                return Err(FactError::Unavailable("others wrote first each time".to_owned()));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Has the servers overwrite what is deleted. Answers what stood against it.
    async fn erase(&self, copy: &mut Copy) -> Option<String> {
        while let Some(place) = copy.next_doomed() {
            if let Err(fault) = self.log.erase(place).await {
                return Some(fault);
            }
            copy.erased(place);
        }
        None
    }
}

impl FactStore for NatsStore {
    async fn store(&self, fact: NewFact, at: Moment) -> Result<Fact, FactError> {
        let mut stored = self.store_bulk(vec![fact], at).await?;
        stored.pop().ok_or_else(|| FactError::Unavailable("nothing was stored".to_owned()))
    }

    async fn store_bulk(&self, facts: Vec<NewFact>, at: Moment) -> Result<Vec<Fact>, FactError> {
        check_bulk(&facts)?;
        self.there(move |shared| async move { shared.store(facts, at).await }).await
    }

    async fn latest(&self, entity: &str, key: &str) -> Result<Option<Fact>, FactError> {
        let (entity, key) = (entity.to_owned(), key.to_owned());
        self.read(move |copy| copy.facts().latest(&entity, &key)).await
    }

    async fn get(&self, id: &str) -> Result<Option<Fact>, FactError> {
        let Some(seq) = seq_of(id) else { return Ok(None) };
        self.read(move |copy| copy.facts().find(seq).cloned()).await
    }

    async fn by_entity(&self, entity: &str) -> Result<Vec<Fact>, FactError> {
        let entity = entity.to_owned();
        self.read(move |copy| copy.facts().by_entity(&entity)).await
    }

    async fn query(&self, query: &Query) -> Result<Found, FactError> {
        let query = query.clone();
        self.read(move |copy| copy.facts().query(&query)).await?
    }

    async fn browse(&self, request: &BrowseRequest) -> Result<Names, FactError> {
        let request = request.clone();
        self.read(move |copy| copy.facts().browse(&request)).await
    }

    async fn history(&self, entity: &str, key: &str) -> Result<Vec<Fact>, FactError> {
        let (entity, key) = (entity.to_owned(), key.to_owned());
        self.read(move |copy| copy.facts().history(&entity, &key)).await
    }

    async fn delete(&self, id: &str) -> Result<Deleted, FactError> {
        let id = id.to_owned();
        self.there(move |shared| async move { shared.delete(&id).await }).await
    }

    async fn export(&self, request: &ExportRequest) -> Result<Exported, FactError> {
        let request = request.clone();
        self.read(move |copy| copy.facts().export(&request)).await?
    }
}

impl Drop for NatsStore {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // What is dropped may be dropped where nothing may wait.
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for NatsStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsStore").field("bucket", &self.shared.log.bucket()).finish_non_exhaustive()
    }
}
