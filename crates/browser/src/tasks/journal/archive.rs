//! Taking tasks out of the log, putting them back, and taking over those of another browser.

use js_sys::Object;
use toolshelf_core::task::TaskRecord;
use toolshelf_host::task_ports::Draft;
use wasm_bindgen::JsValue;

use super::{IdbJournal, Kept, by_address, entries_of, entry_key, entry_value};
use crate::database::Writing;
use crate::js;
use crate::tasks::store::{CALLS, ENTRIES, TASKS};

/// A task that was taken out of the journal.
#[derive(Debug, Clone)]
pub(in crate::tasks) struct Removed {
    row: Object,
    entries: Vec<(JsValue, JsValue)>,
}

impl IdbJournal {
    /// Takes tasks out of the journal, with all that was written of them.
    pub(in crate::tasks) async fn remove(&self, rows: &[Kept]) -> Result<Vec<Removed>, idb::Error> {
        let writing = Writing::strict(&self.store.database, &[ENTRIES, TASKS, CALLS])?;
        let (entries, tasks) = (writing.store(ENTRIES)?, writing.store(TASKS)?);
        let calls = writing.store(CALLS)?;
        let mut removed = Vec::new();
        for kept in rows {
            let all = || Ok::<_, idb::Error>(Some(entries_of(&kept.record.address)?));
            let (keys, values) = (entries.get_all_keys(all()?, None)?, entries.get_all(all()?, None)?);
            let written = keys.await?.into_iter().zip(values.await?).collect();
            entries.delete(entries_of(&kept.record.address)?)?;
            tasks.delete(kept.key())?;
            if let Some(call) = &kept.call {
                calls.delete(JsValue::from_str(call))?;
            }
            removed.push(Removed { row: kept.value(), entries: written });
        }
        writing.commit().await?;
        Ok(removed)
    }

    /// Puts removed tasks back where they were.
    pub(in crate::tasks) async fn restore(&self, removed: Vec<Removed>) -> Result<(), idb::Error> {
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
    pub(in crate::tasks) async fn adopt(
        &self,
        record: TaskRecord,
        log: &[Draft],
    ) -> Result<bool, idb::Error> {
        let writing = Writing::strict(&self.store.database, &[ENTRIES, TASKS])?;
        let (entries, tasks) = (writing.store(ENTRIES)?, writing.store(TASKS)?);
        if by_address(&tasks, &record.address)?.1.await?.is_some() {
            return Ok(false);
        }
        for (at, draft) in log.iter().enumerate() {
            entries.add(&entry_value(draft), Some(&entry_key(&record.address, at as u64 + 1)))?;
        }
        let newest = tasks.get_all_keys(None, Some(1))?.await?;
        let position = 1.0 - newest.first().and_then(JsValue::as_f64).unwrap_or_default();
        let kept = Kept { position, changes: log.len() as u64, call: None, record };
        tasks.add(&kept.value(), Some(&kept.key()))?;
        writing.commit().await?;
        Ok(true)
    }
}
