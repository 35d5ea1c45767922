//! The log of tasks in IndexedDB. A task's record is kept beside its entries, so that nothing reads a log to go on with
//! it; where that record cannot be read, the log is reduced again.
//!
//! Source: DESIGN 3.8. An entry's key is its task's address and its number in that task's log, so two tabs never write two
//! ends of one task: the second finds the key taken, and nothing of its transaction is written.
//! `archive` takes tasks out of the log and puts them in.

mod archive;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use idb::{Index, KeyRange, ObjectStore, Query};
use js_sys::{Array, Object};
use serde::de::DeserializeOwned;
use toolshelf_core::task::{LogEntry, ReduceFault, Reducer, TaskEvent, TaskRecord, reduce_task};
use toolshelf_host::task_ports::{CallKey, Draft, Durability, Journal, JournalFault, Placed};
use wasm_bindgen::JsValue;

use super::listing::Moment;
use super::store::{BY_ADDRESS, CALLS, DAMAGED, ENTRIES, TASKS, TaskStore};
use crate::database::{Writing, is_collision, reading_one};
use crate::js;

pub(super) use archive::Removed;

/// How often another writer may come first before a write gives up.
const MAX_COLLISIONS: usize = 16;

/// The log. Clones share it.
#[derive(Debug, Clone)]
pub struct IdbJournal {
    pub(super) store: Rc<TaskStore>,
    known: Rc<RefCell<Known>>,
}

/// What this page believes of the log. A write that rests on an error here collides, and nothing of it is written.
#[derive(Debug, Default)]
struct Known {
    /// The greatest position.
    last: Option<u64>,
    /// The tasks that this page admitted and that go on.
    live: BTreeMap<String, Kept>,
}

/// What is kept of one task beside its entries.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) position: f64,
    pub(super) changes: u64,
    pub(super) call: Option<String>,
    pub(super) record: TaskRecord,
}

impl Kept {
    fn read(value: &JsValue) -> Option<Self> {
        Some(Self {
            position: js::get(value, "position").as_f64()?,
            changes: js::get(value, "changes").as_f64()? as u64,
            call: js::get(value, "call").as_string(),
            record: parsed(value, "record")?,
        })
    }

    fn value(&self) -> Object {
        js::object(&[
            ("address", (&*self.record.address).into()),
            ("position", self.position.into()),
            ("changes", (self.changes as f64).into()),
            ("call", self.call.as_deref().map_or(JsValue::NULL, JsValue::from_str)),
            ("record", text(&self.record)),
        ])
    }

    /// The newest task has the least key.
    fn key(&self) -> JsValue {
        JsValue::from_f64(-self.position)
    }

    /// What is kept after `draft`, unless that cannot follow.
    fn after(self, draft: &Draft) -> Result<Self, JournalFault> {
        let changes = self.changes + 1;
        let record = draft.record_after(Reducer::resume(self.record, self.changes), changes)?;
        Ok(Self { changes, record, ..self })
    }

    fn created(draft: &Draft, call: &CallKey, position: u64) -> Result<Self, JournalFault> {
        let record = draft.record_after(Reducer::new(&*draft.event.address), 1)?;
        Ok(Self { position: position as f64, changes: 1, call: Some(call.as_str().to_owned()), record })
    }
}

impl IdbJournal {
    /// The log in `store`.
    #[must_use]
    pub fn new(store: Rc<TaskStore>) -> Self {
        Self { store, known: Rc::default() }
    }

    /// Writes without reading first: where the call, the task or the position is there already, nothing is written.
    async fn create(&self, draft: &Draft, call: &CallKey) -> Result<Result<(), JournalFault>, idb::Error> {
        let address = &draft.event.address;
        for _ in 0..MAX_COLLISIONS {
            let kept = match Kept::created(draft, call, self.last().await? + 1) {
                Ok(kept) => kept,
                Err(fault) => return Ok(Err(fault)),
            };
            let writing = Writing::strict(&self.store.database, &[ENTRIES, TASKS, CALLS])?;
            writing.store(ENTRIES)?.add(&entry_value(draft), Some(&entry_key(address, 1)))?;
            writing.store(TASKS)?.add(&kept.value(), Some(&kept.key()))?;
            writing.store(CALLS)?.add(&JsValue::from_str(address), Some(&call.as_str().into()))?;
            match writing.commit().await {
                Ok(()) => {
                    let mut known = self.known.borrow_mut();
                    known.last = Some(kept.position as u64);
                    known.live.insert(address.clone(), kept);
                    return Ok(Ok(()));
                }
                Err(fault) if is_collision(&fault) => self.known.borrow_mut().last = None,
                Err(fault) => return Err(fault),
            }
            if let Some(taken) = self.taken(call).await? {
                return Ok(Err(JournalFault::CallTaken(taken)));
            }
        }
        Ok(Err(JournalFault::Failed("others wrote first each time".to_owned())))
    }

    async fn taken(&self, call: &CallKey) -> Result<Option<String>, idb::Error> {
        let taken = reading_one(&self.store.database, CALLS)?.get(JsValue::from_str(call.as_str()))?.await?;
        Ok(taken.and_then(|address| address.as_string()))
    }

    /// The greatest position.
    async fn last(&self) -> Result<u64, idb::Error> {
        let known = self.known.borrow().last;
        if let Some(last) = known {
            return Ok(last);
        }
        let keys = reading_one(&self.store.database, TASKS)?.get_all_keys(None, Some(1))?.await?;
        Ok(keys.first().and_then(JsValue::as_f64).map_or(0, |key| -key as u64))
    }

    /// Writes on top of what this page knows of the task; where another page has written meanwhile, the entry's key is
    /// there already, nothing is written, and what is written is read.
    async fn change(
        &self,
        draft: &Draft,
        durability: Durability,
    ) -> Result<Result<TaskRecord, JournalFault>, idb::Error> {
        let address = &draft.event.address;
        for _ in 0..MAX_COLLISIONS {
            let known = self.known.borrow().live.get(address).cloned();
            let found = match known {
                Some(kept) => Ok(Some(kept)),
                None => self.find(address).await?,
            };
            let after = found.and_then(|kept| kept.ok_or(ReduceFault::NoLiveAdmission)?.after(draft));
            let kept = match after {
                Ok(kept) => kept,
                Err(fault) => return Ok(Err(fault)),
            };
            let stores = [ENTRIES, TASKS];
            let writing = match durability {
                Durability::Strict => Writing::strict(&self.store.database, &stores)?,
                Durability::Quiet => Writing::quiet(&self.store.database, &stores)?,
            };
            writing.store(ENTRIES)?.add(&entry_value(draft), Some(&entry_key(address, kept.changes)))?;
            writing.store(TASKS)?.put(&kept.value(), Some(&kept.key()))?;
            match writing.commit().await {
                Ok(()) => {
                    let record = kept.record.clone();
                    self.learn(kept);
                    return Ok(Ok(record));
                }
                Err(fault) if is_collision(&fault) => drop(self.known.borrow_mut().live.remove(address)),
                Err(fault) => return Err(fault),
            }
        }
        Ok(Err(JournalFault::Failed("others wrote first each time".to_owned())))
    }

    /// Keeps in mind what was written of a task that this page admitted, while it goes on.
    fn learn(&self, kept: Kept) {
        let live = &mut self.known.borrow_mut().live;
        if let Some(known) = live.get_mut(&kept.record.address) {
            if kept.record.state.is_terminal() {
                live.remove(&kept.record.address);
            } else {
                *known = kept;
            }
        }
    }

    /// The record at `address`, mended from the log where it is damaged.
    async fn find(&self, address: &str) -> Result<Result<Option<Kept>, JournalFault>, idb::Error> {
        let tasks = reading_one(&self.store.database, TASKS)?;
        let (key, value) = by_address(&tasks, address)?;
        let (key, value) = (key.await?, value.await?);
        let (Some(key), Some(value)) = (key, value) else { return Ok(Ok(None)) };
        match Kept::read(&value) {
            Some(kept) => {
                self.learn(kept.clone());
                Ok(Ok(Some(kept)))
            }
            None => Ok(match self.mend(&key, &value).await? {
                Some(kept) => Ok(Some(kept)),
                None => Err(JournalFault::Failed("the record was damaged and is set aside".to_owned())),
            }),
        }
    }

    /// Rows of tasks below `before`, the newest first. Damaged ones are mended or set aside, so the answer is short only
    /// at the end of the journal.
    pub(super) async fn rows(&self, before: Option<u64>, limit: usize) -> Result<Vec<Kept>, idb::Error> {
        let mut rows = Vec::new();
        let mut after = before.map(|before| -(before as f64));
        loop {
            let wanted = limit - rows.len();
            let tasks = reading_one(&self.store.database, TASKS)?;
            let range = || -> Result<Option<Query>, idb::Error> {
                let bound = |after: f64| KeyRange::lower_bound(&after.into(), Some(true));
                Ok(after.map(bound).transpose()?.map(Query::from))
            };
            let (keys, values) = (
                tasks.get_all_keys(range()?, Some(wanted as u32))?,
                tasks.get_all(range()?, Some(wanted as u32))?,
            );
            let (keys, values) = (keys.await?, values.await?);
            after = keys.last().and_then(JsValue::as_f64);
            let got = keys.len();
            for (key, value) in keys.iter().zip(&values) {
                rows.extend(match Kept::read(value) {
                    Some(kept) => Some(kept),
                    None => self.mend(key, value).await?,
                });
            }
            if got < wanted || rows.len() >= limit {
                return Ok(rows);
            }
        }
    }

    /// Makes a record again that cannot be read, out of the log; or else sets it aside.
    async fn mend(&self, key: &JsValue, value: &JsValue) -> Result<Option<Kept>, idb::Error> {
        let address = js::get(value, "address").as_string().unwrap_or_default();
        let entries = self.entries(&address).await?;
        let changes = entries.as_ref().map_or(0, |entries| entries.len() as u64);
        let reduced = entries.and_then(|entries| reduce_task(&entries, &address).ok().flatten());
        let writing = Writing::quiet(&self.store.database, &[TASKS, DAMAGED])?;
        let tasks = writing.store(TASKS)?;
        let call = js::get(value, "call").as_string();
        let mended =
            reduced.zip(key.as_f64()).map(|(record, key)| Kept { position: -key, changes, call, record });
        match &mended {
            Some(kept) => drop(tasks.put(&kept.value(), Some(key))?),
            None => {
                let aside = js::object(&[("address", address.into()), ("value", value.clone())]);
                writing.store(DAMAGED)?.add(&aside, None)?;
                tasks.delete(key.clone())?;
            }
        }
        writing.commit().await?;
        Ok(mended)
    }

    /// The log of one task; `None` when it cannot be read.
    async fn entries(&self, address: &str) -> Result<Option<Vec<LogEntry>>, idb::Error> {
        let drafts = self.drafts(address).await?;
        let created = drafts.first().and_then(|draft| draft.as_ref()?.event.created.clone());
        let entry = |(at, draft): (usize, Option<Draft>)| {
            let Draft { at: moment, event } = draft?;
            Some(LogEntry::of(created.as_deref()?, at as u64 + 1, moment, event))
        };
        Ok(drafts.into_iter().enumerate().map(entry).collect())
    }

    /// What was written of one task, in order; `None` where a value cannot be read.
    async fn drafts(&self, address: &str) -> Result<Vec<Option<Draft>>, idb::Error> {
        let entries = reading_one(&self.store.database, ENTRIES)?;
        let values = entries.get_all(Some(entries_of(address)?), None)?.await?;
        Ok(values.iter().map(draft_of).collect())
    }

    /// The changes of a task's state, in order.
    pub(super) async fn moments(&self, address: &str) -> Result<Vec<Moment>, idb::Error> {
        let drafts = self.drafts(address).await?.into_iter().flatten();
        Ok(drafts
            .map(|Draft { at, event }| Moment { at, state: event.state, reason: event.reason })
            .collect())
    }

    /// Everything that was written of a task.
    pub(super) async fn log(&self, address: &str) -> Result<Vec<Draft>, idb::Error> {
        Ok(self.drafts(address).await?.into_iter().flatten().collect())
    }

    /// Addresses of the tasks whose records were damaged beyond mending.
    pub(super) async fn damaged(&self) -> Result<Vec<String>, idb::Error> {
        let values = reading_one(&self.store.database, DAMAGED)?.get_all(None, None)?.await?;
        Ok(values.iter().map(|value| js::get(value, "address").as_string().unwrap_or_default()).collect())
    }
}

impl Journal for IdbJournal {
    async fn admit(&self, draft: &Draft, call: &CallKey) -> Result<(), JournalFault> {
        self.create(draft, call).await.unwrap_or_else(|fault| Err(failed(&fault)))
    }

    async fn append(&self, draft: &Draft, durability: Durability) -> Result<TaskRecord, JournalFault> {
        self.change(draft, durability).await.unwrap_or_else(|fault| Err(failed(&fault)))
    }

    async fn record(&self, address: &str) -> Result<Option<TaskRecord>, JournalFault> {
        let found = self.find(address).await.unwrap_or_else(|fault| Err(failed(&fault)))?;
        Ok(found.map(|kept| kept.record))
    }

    async fn address_of(&self, call: &CallKey) -> Result<Option<String>, JournalFault> {
        self.taken(call).await.map_err(|fault| failed(&fault))
    }

    async fn recent(&self, before: Option<u64>, limit: usize) -> Result<Vec<Placed>, JournalFault> {
        let rows = self.rows(before, limit).await.map_err(|fault| failed(&fault))?;
        let placed = |kept: Kept| Placed { position: kept.position as u64, record: kept.record };
        Ok(rows.into_iter().map(placed).collect())
    }
}

fn by_address(
    tasks: &ObjectStore,
    address: &str,
) -> Result<(idb::request::GetKeyStoreRequest, idb::request::GetStoreRequest), idb::Error> {
    let index: Index = tasks.index(BY_ADDRESS)?;
    Ok((index.get_key(JsValue::from_str(address))?, index.get(JsValue::from_str(address))?))
}

/// Where the change of that number is written. The keys of one task lie together, in order.
fn entry_key(address: &str, change: u64) -> JsValue {
    Array::of2(&address.into(), &(change as f64).into()).into()
}

/// The keys of all entries of a task: an array sorts after every number.
fn entries_of(address: &str) -> Result<Query, idb::Error> {
    let end = Array::of2(&address.into(), &Array::new());
    Ok(KeyRange::bound(&Array::of1(&address.into()), &end, None, None)?.into())
}

fn entry_value(draft: &Draft) -> Object {
    js::object(&[("at", (&*draft.at).into()), ("event", text(&draft.event))])
}

fn draft_of(value: &JsValue) -> Option<Draft> {
    let event: TaskEvent = parsed(value, "event")?;
    Some(Draft { at: js::get(value, "at").as_string()?, event })
}

fn text(value: &impl serde::Serialize) -> JsValue {
    // Records and events hold nothing that JSON cannot.
    serde_json::to_string(value).unwrap_or_default().into()
}

fn parsed<T: DeserializeOwned>(value: &JsValue, key: &str) -> Option<T> {
    serde_json::from_slice(js::get(value, key).as_string()?.as_bytes()).ok()
}

fn failed(fault: &idb::Error) -> JournalFault {
    JournalFault::Failed(fault.to_string())
}
