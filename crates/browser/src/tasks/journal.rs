//! The log of tasks in IndexedDB. A task's record is kept beside its entries, so that nothing reads a log to go on with
//! it; where that record cannot be read, the log is reduced again.
//!
//! Source: DESIGN 3.8. Each method is one transaction, so two tabs never write two ends of one task.

use std::rc::Rc;

use idb::{Index, KeyRange, ObjectStore, Query};
use js_sys::Object;
use serde::de::DeserializeOwned;
use toolshelf_core::task::{LogEntry, Reducer, TaskEvent, TaskRecord, reduce_task};
use toolshelf_host::task_ports::{CallKey, Draft, Durability, Journal, JournalFault, Placed};
use wasm_bindgen::JsValue;

use super::listing::Moment;
use super::store::{BY_ADDRESS, CALLS, DAMAGED, ENTRIES, TASKS, TaskStore};
use crate::database::{Writing, reading_one};
use crate::js;

/// The log.
#[derive(Debug, Clone)]
pub struct IdbJournal {
    pub(super) store: Rc<TaskStore>,
}

/// What is kept of one task beside its entries.
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

    /// Writes it where it belongs: the newest task has the least key.
    pub(super) fn put(&self, tasks: &ObjectStore) -> Result<(), idb::Error> {
        tasks.put(&self.value(), Some(&JsValue::from_f64(-self.position))).map(drop)
    }
}

impl IdbJournal {
    async fn create(&self, draft: &Draft, call: &CallKey) -> Result<Result<(), JournalFault>, idb::Error> {
        let address = &draft.event.address;
        let mut reducer = Reducer::new(&**address);
        let entry = match draft.entry(&reducer, 1).and_then(|entry| reducer.apply(&entry)) {
            Ok(()) => reducer.into_record(),
            Err(fault) => return Ok(Err(fault.into())),
        };
        let Some(record) = entry else { return Ok(Err(JournalFault::Failed("nothing to write".to_owned()))) };
        let writing = Writing::strict(&self.store.database, &[ENTRIES, TASKS, CALLS])?;
        let calls = writing.store(CALLS)?;
        let taken = calls.get(JsValue::from_str(call.as_str()))?;
        let added = writing.store(ENTRIES)?.add(&entry_value(draft), None)?;
        if let Some(taken) = taken.await? {
            return Ok(Err(JournalFault::CallTaken(taken.as_string().unwrap_or_default())));
        }
        let position = added.await?.as_f64().unwrap_or_default();
        let call = call.as_str();
        Kept { position, changes: 1, call: Some(call.to_owned()), record }.put(&writing.store(TASKS)?)?;
        calls.add(&JsValue::from_str(address), Some(&call.into()))?;
        writing.commit().await.map(Ok)
    }

    async fn change(
        &self,
        draft: &Draft,
        durability: Durability,
    ) -> Result<Result<TaskRecord, JournalFault>, idb::Error> {
        let stores = [ENTRIES, TASKS];
        let writing = match durability {
            Durability::Strict => Writing::strict(&self.store.database, &stores)?,
            Durability::Quiet => Writing::quiet(&self.store.database, &stores)?,
        };
        let tasks = writing.store(TASKS)?;
        let value = by_address(&tasks, &draft.event.address)?.1.await?;
        let kept = value.as_ref().and_then(Kept::read);
        let Some(kept) = kept else {
            return Ok(Err(match value {
                None => toolshelf_core::task::ReduceFault::NoLiveAdmission.into(),
                Some(_) => JournalFault::Failed("the record of the task is damaged".to_owned()),
            }));
        };
        let Kept { position, changes, call, record } = kept;
        let mut reducer = Reducer::resume(record, changes);
        let changes = changes + 1;
        if let Err(fault) = draft.entry(&reducer, changes).and_then(|entry| reducer.apply(&entry)) {
            return Ok(Err(fault.into()));
        }
        let Some(record) = reducer.into_record() else {
            return Ok(Err(JournalFault::Failed("nothing to write".to_owned())));
        };
        writing.store(ENTRIES)?.add(&entry_value(draft), None)?;
        let kept = Kept { position, changes, call, record };
        kept.put(&tasks)?;
        writing.commit().await?;
        Ok(Ok(kept.record))
    }

    /// The record at `address`, mended from the log where it is damaged.
    async fn find(&self, address: &str) -> Result<Result<Option<TaskRecord>, JournalFault>, idb::Error> {
        let tasks = reading_one(&self.store.database, TASKS)?;
        let (key, value) = by_address(&tasks, address)?;
        let (key, value) = (key.await?, value.await?);
        let (Some(key), Some(value)) = (key, value) else { return Ok(Ok(None)) };
        match Kept::read(&value) {
            Some(kept) => Ok(Ok(Some(kept.record))),
            None => Ok(match self.mend(&key, &value).await? {
                Some(kept) => Ok(Some(kept.record)),
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
            Some(kept) => kept.put(&tasks)?,
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
        let (drafts, keys) = self.drafts(address).await?;
        let created = drafts.first().and_then(|draft| draft.as_ref()?.event.created.clone());
        let entry = |(draft, key): (Option<Draft>, JsValue)| {
            let (draft, created) = (draft?, created.as_deref()?);
            Some(LogEntry::of(created, key.as_f64()? as u64, draft.at, draft.event))
        };
        Ok(drafts.into_iter().zip(keys).map(entry).collect())
    }

    /// What was written of one task, in order, with the keys; `None` where a value cannot be read.
    async fn drafts(&self, address: &str) -> Result<(Vec<Option<Draft>>, Vec<JsValue>), idb::Error> {
        let index = reading_one(&self.store.database, ENTRIES)?.index(BY_ADDRESS)?;
        let query = || Some(Query::from(JsValue::from_str(address)));
        let (keys, values) = (index.get_all_keys(query(), None)?, index.get_all(query(), None)?);
        let (keys, values) = (keys.await?, values.await?);
        Ok((values.iter().map(draft_of).collect(), keys))
    }

    /// The changes of a task's state, in order.
    pub(super) async fn moments(&self, address: &str) -> Result<Vec<Moment>, idb::Error> {
        let drafts = self.drafts(address).await?.0.into_iter().flatten();
        Ok(drafts
            .map(|Draft { at, event }| Moment { at, state: event.state, reason: event.reason })
            .collect())
    }

    /// Everything that was written of a task.
    pub(super) async fn log(&self, address: &str) -> Result<Vec<Draft>, idb::Error> {
        Ok(self.drafts(address).await?.0.into_iter().flatten().collect())
    }

    /// Addresses of the tasks whose records were damaged beyond mending.
    pub(super) async fn damaged(&self) -> Result<Vec<String>, idb::Error> {
        let values = reading_one(&self.store.database, DAMAGED)?.get_all(None, None)?.await?;
        Ok(values.iter().map(|value| js::get(value, "address").as_string().unwrap_or_default()).collect())
    }

    /// Takes tasks out of the journal, with all that was written of them.
    pub(super) async fn remove(&self, rows: &[Kept]) -> Result<Vec<Removed>, idb::Error> {
        let writing = Writing::strict(&self.store.database, &[ENTRIES, TASKS, CALLS])?;
        let (entries, tasks) = (writing.store(ENTRIES)?, writing.store(TASKS)?);
        let calls = writing.store(CALLS)?;
        let index = entries.index(BY_ADDRESS)?;
        let mut removed = Vec::new();
        for kept in rows {
            let query = || Some(Query::from(JsValue::from_str(&kept.record.address)));
            let (keys, values) = (index.get_all_keys(query(), None)?, index.get_all(query(), None)?);
            let written: Vec<_> = keys.await?.into_iter().zip(values.await?).collect();
            for (key, _) in &written {
                entries.delete(key.clone())?;
            }
            tasks.delete(JsValue::from_f64(-kept.position))?;
            if let Some(call) = &kept.call {
                calls.delete(JsValue::from_str(call))?;
            }
            removed.push(Removed { row: kept.value(), entries: written });
        }
        writing.commit().await?;
        Ok(removed)
    }

    /// Puts removed tasks back where they were.
    pub(super) async fn restore(&self, removed: Vec<Removed>) -> Result<(), idb::Error> {
        let writing = Writing::strict(&self.store.database, &[ENTRIES, TASKS, CALLS])?;
        let (entries, tasks) = (writing.store(ENTRIES)?, writing.store(TASKS)?);
        let calls = writing.store(CALLS)?;
        for Removed { row, entries: written } in removed {
            for (key, value) in written {
                entries.put(&value, Some(&key))?;
            }
            let position = js::get(&row, "position").as_f64().unwrap_or_default();
            tasks.put(&row, Some(&JsValue::from_f64(-position)))?;
            let call = js::get(&row, "call");
            if call.is_string() {
                calls.put(&js::get(&row, "address"), Some(&call))?;
            }
        }
        writing.commit().await
    }

    /// Takes over a task of another browser, whose log must reduce; `false` when its address is there already.
    pub(super) async fn adopt(&self, record: TaskRecord, log: &[Draft]) -> Result<bool, idb::Error> {
        let writing = Writing::strict(&self.store.database, &[ENTRIES, TASKS])?;
        let (entries, tasks) = (writing.store(ENTRIES)?, writing.store(TASKS)?);
        if by_address(&tasks, &record.address)?.1.await?.is_some() {
            return Ok(false);
        }
        let mut added =
            log.iter().map(|draft| entries.add(&entry_value(draft), None)).collect::<Result<Vec<_>, _>>()?;
        if added.is_empty() {
            return Ok(false);
        }
        let position = added.swap_remove(0).await?.as_f64().unwrap_or_default();
        Kept { position, changes: log.len() as u64, call: None, record }.put(&tasks)?;
        writing.commit().await?;
        Ok(true)
    }
}

/// A task that was taken out of the journal.
#[derive(Debug, Clone)]
pub(super) struct Removed {
    row: Object,
    entries: Vec<(JsValue, JsValue)>,
}

impl Journal for IdbJournal {
    async fn admit(&self, draft: &Draft, call: &CallKey) -> Result<(), JournalFault> {
        self.create(draft, call).await.unwrap_or_else(|fault| Err(failed(&fault)))
    }

    async fn append(&self, draft: &Draft, durability: Durability) -> Result<TaskRecord, JournalFault> {
        self.change(draft, durability).await.unwrap_or_else(|fault| Err(failed(&fault)))
    }

    async fn record(&self, address: &str) -> Result<Option<TaskRecord>, JournalFault> {
        self.find(address).await.unwrap_or_else(|fault| Err(failed(&fault)))
    }

    async fn address_of(&self, call: &CallKey) -> Result<Option<String>, JournalFault> {
        let read =
            async { reading_one(&self.store.database, CALLS)?.get(JsValue::from_str(call.as_str()))?.await };
        Ok(read.await.map_err(|fault| failed(&fault))?.and_then(|address| address.as_string()))
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

fn entry_value(draft: &Draft) -> Object {
    js::object(&[
        ("address", (&*draft.event.address).into()),
        ("at", (&*draft.at).into()),
        ("event", text(&draft.event)),
    ])
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
    serde_json::from_str(&js::get(value, key).as_string()?).ok()
}

fn failed(fault: &idb::Error) -> JournalFault {
    JournalFault::Failed(fault.to_string())
}
