//! The database of tasks, and its key.
//!
//! | store | key | value |
//! |---|---|---|
//! | `entries` | `[address, number of the change]` | `{at, event}`, the event as JSON |
//! | `tasks` | the task's position, negated: the newest come first | `{address, position, changes, call, record}` |
//! | `calls` | the call's key | the task's address |
//! | `damaged` | given by the database | `{address, why, record}`: what could not be read |
//! | `keys` | `seal` | the page's `CryptoKey` |
//! | `handles` | the id of a picked folder | `{handle, label, order}` |
//! | `files` | `[folder, path]` | the bytes, where there is no private file system |

use idb::{Database, IndexParams, KeyPath, ObjectStoreParams};
use wasm_bindgen::JsValue;
use web_sys::IdbDatabase;

use crate::database::{self, Writing};

pub(super) const ENTRIES: &str = "entries";
pub(super) const TASKS: &str = "tasks";
pub(super) const CALLS: &str = "calls";
pub(super) const DAMAGED: &str = "damaged";
pub(super) const HANDLES: &str = "handles";
pub(super) const FILES: &str = "files";
const KEYS: &str = "keys";
/// The index over addresses.
pub(super) const BY_ADDRESS: &str = "address";
/// The one key.
const SEAL: &str = "seal";

/// The open database.
#[derive(Debug)]
pub struct TaskStore {
    pub(super) database: IdbDatabase,
}

impl TaskStore {
    /// Opens the database `name`.
    ///
    /// # Errors
    /// What the browser says when it gives no database.
    pub async fn open(name: &str) -> Result<Self, idb::Error> {
        Ok(Self { database: database::open(name, add_stores).await? })
    }

    pub(super) async fn key(&self) -> Result<Option<JsValue>, idb::Error> {
        database::reading_one(&self.database, KEYS)?.get(JsValue::from_str(SEAL))?.await
    }

    /// Keeps `made` unless there is a key already; answers the key that is kept.
    pub(super) async fn keep_key(&self, made: &JsValue) -> Result<JsValue, idb::Error> {
        let writing = Writing::strict(&self.database, &[KEYS])?;
        let store = writing.store(KEYS)?;
        if let Some(kept) = store.get(JsValue::from_str(SEAL))?.await? {
            return Ok(kept);
        }
        store.put(made, Some(&SEAL.into()))?;
        writing.commit().await?;
        Ok(made.clone())
    }
}

fn add_stores(database: &Database) {
    for store in [ENTRIES, CALLS, KEYS, HANDLES, FILES] {
        let _ = database.create_object_store(store, ObjectStoreParams::new());
    }
    let mut numbered = ObjectStoreParams::new();
    numbered.auto_increment(true);
    let _ = database.create_object_store(DAMAGED, numbered);
    if let Ok(tasks) = database.create_object_store(TASKS, ObjectStoreParams::new()) {
        let mut index = IndexParams::new();
        index.unique(true);
        let _ = tasks.create_index(BY_ADDRESS, KeyPath::new_single(BY_ADDRESS), Some(index));
    }
}
