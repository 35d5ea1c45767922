//! The log of tasks in a storage like `localStorage`: `vb_task_<address>` holds a record as JSON, and `vb_call_<call>`
//! the address of the task that a call delegated.
//!
//! Source: the reference facts, B5. Each method is done in one go, without an await, so that nothing of this page comes
//! between. A write counts when it can be read again: a storage that drops what it is given has not taken it.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use toolshelf_core::address::Sealed;
use toolshelf_core::task::{ReduceFault, Reducer, TaskRecord};
use toolshelf_host::Journal;
use toolshelf_host::task_ports::{CallKey, Draft, Durability, JournalFault, Placed};
use wasm_bindgen::JsValue;

use crate::js;

const TASK: &str = "vb_task_";
const CALL: &str = "vb_call_";

/// The log.
#[derive(Debug, Clone)]
pub struct AreaJournal {
    area: JsValue,
    /// Calls of which only the task was found when this page began, by their keys.
    unlisted: Rc<OnceCell<BTreeMap<String, String>>>,
}

impl AreaJournal {
    /// The log in `area`.
    #[must_use]
    pub fn new(area: JsValue) -> Self {
        Self { area, unlisted: Rc::default() }
    }

    fn read(&self, key: &str) -> Result<Option<String>, JournalFault> {
        let value = js::call(&self.area, "getItem", &[key.into()]).map_err(|thrown| failed(&thrown))?;
        if value.is_null() || value.is_undefined() {
            return Ok(None);
        }
        let text = value.as_string();
        text.map(Some).ok_or_else(|| fault("the storage answers something that is no text"))
    }

    fn write(&self, key: &str, text: &str) -> Result<(), JournalFault> {
        js::call(&self.area, "setItem", &[key.into(), text.into()]).map_err(|thrown| failed(&thrown))?;
        if self.read(key)?.as_deref() == Some(text) {
            return Ok(());
        }
        Err(fault("the storage does not have what was written into it"))
    }

    fn find(&self, address: &str) -> Result<Option<TaskRecord>, JournalFault> {
        let Some(text) = self.read(&[TASK, address].concat())? else { return Ok(None) };
        let record: Option<TaskRecord> = serde_json::from_str(&text).ok();
        let its_own = record.filter(|record| record.address == address);
        its_own.map(Some).ok_or_else(|| fault("the record of the task is damaged"))
    }

    fn find_call(&self, call: &str) -> Result<Option<String>, JournalFault> {
        let listed = self.read(&[CALL, call].concat())?;
        Ok(listed.or_else(|| self.unlisted.get_or_init(|| self.look_for_unlisted()).get(call).cloned()))
    }

    /// The list of calls can be told from the tasks. What cannot be read is left out here and refused where it is used.
    fn look_for_unlisted(&self) -> BTreeMap<String, String> {
        let mut unlisted = BTreeMap::new();
        for record in self.records() {
            let Some(call) = call_of(&record) else { continue };
            if self.read(&[CALL, &call].concat()).is_ok_and(|listed| listed.is_none()) {
                unlisted.insert(call, record.address);
            }
        }
        unlisted
    }

    /// All records that can be read.
    fn records(&self) -> Vec<TaskRecord> {
        let count = js::get(&self.area, "length").as_f64().unwrap_or_default() as u32;
        let keys = (0..count).filter_map(|index| {
            js::call(&self.area, "key", &[index.into()]).ok().and_then(|key| key.as_string())
        });
        let addresses: Vec<_> = keys.filter_map(|key| key.strip_prefix(TASK).map(str::to_owned)).collect();
        addresses.iter().filter_map(|address| self.find(address).ok().flatten()).collect()
    }

    fn create(&self, draft: &Draft, call: &str) -> Result<(), JournalFault> {
        if let Some(taken) = self.find_call(call)? {
            return Err(JournalFault::CallTaken(taken));
        }
        let address = &draft.event.address;
        let record = draft.record_after(Reducer::new(&**address), 1)?;
        let task = [TASK, address].concat();
        self.write(&task, &text(&record)?)?;
        self.write(&[CALL, call].concat(), address).inspect_err(|_| {
            // All of it, or nothing.
            for key in [&task, &[CALL, call].concat()] {
                let _ = js::call(&self.area, "removeItem", &[key.as_str().into()]);
            }
        })
    }

    fn change(&self, draft: &Draft) -> Result<TaskRecord, JournalFault> {
        let address = &draft.event.address;
        let record = self.find(address)?.ok_or(ReduceFault::NoLiveAdmission)?;
        // The storage holds no positions; the record's state says what can follow.
        let record = draft.record_after(Reducer::resume(record, 0), 1)?;
        self.write(&[TASK, address].concat(), &text(&record)?)?;
        Ok(record)
    }
}

impl Journal for AreaJournal {
    async fn admit(&self, draft: &Draft, call: &CallKey) -> Result<(), JournalFault> {
        self.create(draft, call.as_str())
    }

    async fn append(&self, draft: &Draft, _durability: Durability) -> Result<TaskRecord, JournalFault> {
        self.change(draft)
    }

    async fn record(&self, address: &str) -> Result<Option<TaskRecord>, JournalFault> {
        self.find(address)
    }

    async fn address_of(&self, call: &CallKey) -> Result<Option<String>, JournalFault> {
        self.find_call(call.as_str())
    }

    /// Reads all there is: such a storage has no order.
    async fn recent(&self, before: Option<u64>, limit: usize) -> Result<Vec<Placed>, JournalFault> {
        let mut records = self.records();
        records.sort_by(|a, b| (&a.created_at, &a.address).cmp(&(&b.created_at, &b.address)));
        let placed = (1..).zip(records).map(|(position, record)| Placed { position, record });
        let below = placed.filter(|placed| before.is_none_or(|before| placed.position < before));
        let below: Vec<_> = below.collect();
        Ok(below.into_iter().rev().take(limit).collect())
    }
}

/// The key of the call that delegated a task: the address says which key sealed it.
fn call_of(record: &TaskRecord) -> Option<String> {
    let epoch = Sealed::split(&record.address).ok()?.locator().ok()?.key_epoch;
    let call = CallKey::new(&record.environment, &epoch, &record.owner, &record.call_id);
    Some(call.as_str().to_owned())
}

fn text(record: &TaskRecord) -> Result<String, JournalFault> {
    serde_json::to_string(record).map_err(|err| fault(&err.to_string()))
}

fn fault(why: &str) -> JournalFault {
    JournalFault::Failed(why.to_owned())
}

fn failed(thrown: &JsValue) -> JournalFault {
    fault(&js::message(thrown))
}
