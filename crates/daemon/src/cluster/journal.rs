//! The journal of a cluster's tasks, in key-value buckets.
//!
//! An admission is one write, that of the call: it has the whole task in it. What follows (the task's own entry, and its
//! order in the queue) is done by whoever finds it missing, should the one who admits end in between.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use futures::future::{join, join_all};
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::task::listing::Moment;
use toolshelf_core::task::time::iso_time;
use toolshelf_core::task::{ReduceFault, TaskEvent, TaskRecord, TaskState};
use toolshelf_host::Journal;
use toolshelf_host::task_ports::{CallKey, Draft, Durability, JournalFault, Placed};

use super::connection::{ClusterFault, Connection};
use super::stored::{Claim, Stored, WorkOf, call_key, task_key};

/// How often another writer may come first before a write gives up. A task has no longer log than this.
const MAX_ATTEMPTS: usize = 8;
/// Most workers that run one task, one after the other.
const MOST_ATTEMPTS: u32 = 2;
/// Admissions that are looked at for one page before it is answered as it is.
const MOST_MISSING: u64 = 1_000;

/// The journal. Clones share it.
#[derive(Clone)]
pub(crate) struct NatsJournal {
    inner: Rc<Inner>,
}

struct Inner {
    connection: Connection,
    /// The life of the worker that writes; `None` for who admits.
    worker: Option<String>,
    work_of: WorkOf,
    /// The tasks that the worker runs, as they stand; by their keys. Saves reading what nobody else may write.
    held: RefCell<HashMap<String, (u64, Stored)>>,
}

/// What came of a worker's try to have a task.
#[derive(Debug)]
pub(crate) enum Claimed {
    /// It is the worker's.
    Mine(Box<Stored>),
    /// Another has it.
    Anothers(Box<Stored>),
    /// It has ended.
    Ended,
    /// There is no such task yet.
    Missing,
}

impl NatsJournal {
    /// The journal of who admits; `work_of` says what a task takes.
    pub(crate) fn of_front(connection: Connection, work_of: WorkOf) -> Self {
        Self::new(connection, None, work_of)
    }

    /// The journal of the worker whose life has that name.
    pub(crate) fn of_worker(connection: Connection, worker: String) -> Self {
        Self::new(connection, Some(worker), Rc::new(|_| Default::default()))
    }

    fn new(connection: Connection, worker: Option<String>, work_of: WorkOf) -> Self {
        Self { inner: Rc::new(Inner { connection, worker, work_of, held: RefCell::default() }) }
    }

    fn connection(&self) -> &Connection {
        &self.inner.connection
    }

    /// The task of a key, and its revision.
    pub(crate) async fn stored(&self, key: &str) -> Result<Option<(u64, Stored)>, ClusterFault> {
        let Some(message) = self.connection().tasks.get(key).await? else { return Ok(None) };
        let stored = serde_json::from_slice(&message.payload);
        let damaged =
            |err: serde_json::Error| ClusterFault::Failed(format!("a task's entry is damaged: {err}"));
        stored.map(|stored| Some((message.sequence, stored))).map_err(damaged)
    }

    /// Every change of a task's state, in order.
    pub(crate) async fn moments(&self, address: &str) -> Result<Vec<Moment>, ClusterFault> {
        let stored = self.stored(&task_key(address)).await?;
        Ok(stored.map(|(_, stored)| stored.moments).unwrap_or_default())
    }

    /// Takes the task for the worker, if it waits. One that `gone` had is taken over, where it may be run again; where
    /// not, it is interrupted.
    pub(crate) async fn claim(
        &self,
        key: &str,
        gone: Option<&Claim>,
        at: u64,
    ) -> Result<Claimed, ClusterFault> {
        let Some(worker) = &self.inner.worker else {
            return Err(ClusterFault::Failed("only workers take tasks".to_owned()));
        };
        for _ in 0..MAX_ATTEMPTS {
            let Some((revision, stored)) = self.stored(key).await? else { return Ok(Claimed::Missing) };
            if stored.has_ended() {
                return Ok(Claimed::Ended);
            }
            let next = match &stored.claim {
                // What was written although nobody said so.
                Some(claim) if claim.worker == *worker && gone != Some(claim) => {
                    self.inner.held.borrow_mut().insert(key.to_owned(), (revision, stored.clone()));
                    return Ok(Claimed::Mine(Box::new(stored)));
                }
                Some(claim) if gone == Some(claim) => {
                    let attempt = claim.attempt + 1;
                    let may_run = stored.work.repeatable && attempt <= MOST_ATTEMPTS;
                    if may_run && stored.record.state == TaskState::Running {
                        let claim = Some(Claim { worker: worker.clone(), attempt });
                        Stored { claim, entries: stored.entries + 1, ..stored }
                    } else {
                        interrupted(&stored, at)?
                    }
                }
                Some(_) => return Ok(Claimed::Anothers(Box::new(stored))),
                None if stored.waits() => {
                    let event = TaskEvent::to(&*stored.record.address, TaskState::Running);
                    let after = stored.after(&Draft { at: iso_time(at), event }).map_err(contradiction)?;
                    Stored { claim: Some(Claim { worker: worker.clone(), attempt: 1 }), ..after }
                }
                None => interrupted(&stored, at)?,
            };
            match self.connection().tasks.update(key, next.bytes(), revision).await {
                Ok(_) if next.has_ended() => return Ok(Claimed::Ended),
                Ok(revision) => {
                    self.inner.held.borrow_mut().insert(key.to_owned(), (revision, next.clone()));
                    return Ok(Claimed::Mine(Box::new(next)));
                }
                // Where nobody says what came of it, the entry does.
                Err(ClusterFault::Stale | ClusterFault::Slow) => {}
                Err(fault) => return Err(fault),
            }
        }
        Err(ClusterFault::Stale)
    }

    /// Forgets a task that the worker does not run any more.
    pub(crate) fn let_go(&self, key: &str) {
        self.inner.held.borrow_mut().remove(key);
    }

    /// Writes what follows an admission: the task's entry, and its order. Does nothing where they are there.
    async fn complete(&self, stored: &Stored) -> Result<(), ClusterFault> {
        let key = task_key(&stored.record.address);
        let create = async {
            match self.connection().tasks.create(&key, stored.bytes()).await {
                Ok(_) | Err(ClusterFault::Stale) => Ok(()),
                Err(fault) => Err(fault),
            }
        };
        let (created, ordered) = join(create, self.connection().order(&key)).await;
        created.and(ordered)
    }

    /// Puts a task into the queue again that waits and may not be there: who admitted it ended in between.
    pub(crate) async fn order_again(&self, address: &str) -> Result<(), ClusterFault> {
        self.connection().order(&task_key(address)).await
    }

    /// The call's task, with all that follows its admission.
    async fn task_of(&self, call: &str) -> Result<Option<String>, JournalFault> {
        let Some(message) = self.connection().calls.get(call).await.map_err(refused)? else {
            return Ok(None);
        };
        let mut stored: Stored = serde_json::from_slice(&message.payload)
            .map_err(|err| JournalFault::Failed(format!("a call's entry is damaged: {err}")))?;
        stored.position = message.sequence;
        let address = stored.record.address.clone();
        let task = self.stored(&task_key(&address)).await.map_err(refused)?;
        if task.is_none_or(|(_, task)| task.waits()) {
            self.complete(&stored).await.map_err(refused)?;
        }
        Ok(Some(address))
    }

    /// Admissions at and below `from`, the newest first, of places where there are any.
    async fn admissions(&self, from: u64, count: usize) -> Result<Vec<(u64, Stored)>, JournalFault> {
        let places = (1..=from).rev().take(count);
        let calls = &self.connection().calls;
        let read = join_all(places.map(|place| async move { (place, calls.at(place).await) })).await;
        let mut admitted = Vec::new();
        for (place, message) in read {
            let Some(message) = message.map_err(refused)? else { continue };
            if let Ok(stored) = serde_json::from_slice(&message.payload) {
                admitted.push((place, stored));
            }
        }
        Ok(admitted)
    }
}

impl Journal for NatsJournal {
    async fn admit(&self, draft: &Draft, call: &CallKey) -> Result<(), JournalFault> {
        if !self.connection().is_connected() {
            return Err(refused(ClusterFault::Disconnected));
        }
        let created = draft.event.created.as_deref().ok_or(ReduceFault::InvalidCreation)?;
        let mut stored = Stored::created(draft, (self.inner.work_of)(&created.input))?;
        let call = call_key(call);
        stored.position = match self.connection().calls.create(&call, stored.bytes()).await {
            Ok(position) => position,
            Err(ClusterFault::Stale) => match self.task_of(&call).await? {
                // Its own word that nobody acknowledged is no other's.
                Some(address) if address == draft.event.address => return Ok(()),
                Some(address) => return Err(JournalFault::CallTaken(address)),
                None => return Err(JournalFault::Failed("the call was forgotten meanwhile".to_owned())),
            },
            Err(fault) => return Err(refused(fault)),
        };
        match self.complete(&stored).await {
            Ok(()) => Ok(()),
            Err(fault @ ClusterFault::Full { .. }) => {
                // Nothing has run; the call may be made again when there is room.
                let (_, _) = join(
                    self.connection().tasks.purge(&task_key(&draft.event.address)),
                    self.connection().calls.purge(&call),
                )
                .await;
                Err(refused(fault))
            }
            Err(fault) => Err(refused(fault)),
        }
    }

    async fn append(&self, draft: &Draft, _durability: Durability) -> Result<TaskRecord, JournalFault> {
        let key = task_key(&draft.event.address);
        for _ in 0..MAX_ATTEMPTS {
            let known = self.inner.held.borrow().get(&key).cloned();
            let (revision, stored) = match known {
                Some(known) => known,
                None => self.stored(&key).await.map_err(refused)?.ok_or(ReduceFault::NoLiveAdmission)?,
            };
            if let Some(worker) = &self.inner.worker
                && stored.claim.as_ref().is_none_or(|claim| claim.worker != *worker)
            {
                tracing::warn!(task = key, "a word about a task came late, and is refused");
                return Err(ReduceFault::NoLiveAdmission.into());
            }
            let next = match stored.after(draft) {
                Ok(next) => next,
                // What was remembered may be old.
                Err(_) if self.inner.held.borrow_mut().remove(&key).is_some() => continue,
                Err(fault) => {
                    if self.inner.worker.is_some() {
                        tracing::warn!(task = key, "a word about a task came late, and is refused");
                    }
                    return Err(fault.into());
                }
            };
            match self.connection().tasks.update(&key, next.bytes(), revision).await {
                Ok(revision) => {
                    if self.inner.held.borrow().contains_key(&key) {
                        self.inner.held.borrow_mut().insert(key, (revision, next.clone()));
                    }
                    self.tell(&next.record).await;
                    return Ok(next.record);
                }
                Err(ClusterFault::Stale) => {
                    self.inner.held.borrow_mut().remove(&key);
                }
                Err(fault) => return Err(refused(fault)),
            }
        }
        Err(refused(ClusterFault::Stale))
    }

    async fn record(&self, address: &str) -> Result<Option<TaskRecord>, JournalFault> {
        let stored = self.stored(&task_key(address)).await.map_err(refused)?;
        Ok(stored.map(|(_, stored)| stored.record))
    }

    async fn address_of(&self, call: &CallKey) -> Result<Option<String>, JournalFault> {
        self.task_of(&call_key(call)).await
    }

    async fn recent(&self, before: Option<u64>, limit: usize) -> Result<Vec<Placed>, JournalFault> {
        let info = self.connection().calls.stream.get_info().await;
        let state = info.map_err(|err| refused(super::connection::failed(err)))?.state;
        let mut from =
            before.map_or(state.last_sequence, |before| before.saturating_sub(1).min(state.last_sequence));
        let mut placed = Vec::new();
        let give_up = from.saturating_sub(MOST_MISSING + limit as u64);
        while placed.len() < limit && from >= state.first_sequence.max(1) && from > give_up {
            let count = limit - placed.len();
            let admitted = self.admissions(from, count).await?;
            from = from.saturating_sub(count as u64);
            let read = admitted.into_iter().map(|(position, created)| async move {
                let task = self.stored(&task_key(&created.record.address)).await.map_err(refused)?;
                Ok::<_, JournalFault>(Placed {
                    position,
                    record: task.map_or(created.record, |(_, task)| task.record),
                })
            });
            for task in join_all(read).await {
                placed.push(task?);
            }
        }
        Ok(placed)
    }
}

impl NatsJournal {
    /// A cancellation is told to all workers; who has the task reads what is written.
    async fn tell(&self, record: &TaskRecord) {
        if matches!(record.state, TaskState::CancelRequested | TaskState::Cancelled)
            && self.inner.worker.is_none()
        {
            let connection = self.connection();
            let told = connection.client.publish(connection.cancels(), record.address.clone().into()).await;
            if let Err(err) = told {
                tracing::debug!(error = err.to_string(), "a cancellation was written but not told");
            }
        }
    }
}

/// The task, ended because who had it is gone.
fn interrupted(stored: &Stored, at: u64) -> Result<Stored, ClusterFault> {
    let mut event = TaskEvent::to(&*stored.record.address, TaskState::Interrupted);
    event.reason = Some(Code::EnvironmentEndedOutcomeUnknown.as_str().to_owned());
    stored.after(&Draft { at: iso_time(at), event }).map_err(contradiction)
}

fn contradiction(fault: ReduceFault) -> ClusterFault {
    ClusterFault::Failed(format!("the journal contradicts itself: {fault}"))
}

fn refused(fault: ClusterFault) -> JournalFault {
    JournalFault::Refused(Refusal::from(fault))
}

impl fmt::Debug for NatsJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsJournal").field("worker", &self.inner.worker).finish_non_exhaustive()
    }
}
