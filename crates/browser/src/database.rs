//! IndexedDB in a few steps: open, begin, commit.

use idb::{Database, DatabaseEvent as _, Factory, ObjectStore, Transaction, TransactionMode};
use js_sys::Array;
use wasm_bindgen::{JsCast as _, JsValue};
use web_sys::{IdbDatabase, IdbTransaction};

use crate::js;

/// Opens the database `name`; `upgrade` gives an empty one its stores.
pub(crate) async fn open(name: &str, upgrade: fn(&Database)) -> Result<Database, idb::Error> {
    let mut request = Factory::new()?.open(name, Some(1))?;
    request.on_upgrade_needed(move |event| {
        if let Ok(database) = event.database() {
            // A store that cannot be made shows as an error of the first transaction.
            upgrade(&database);
        }
    });
    let mut database = request.await?;
    // Another tab with a newer page may change the layout; it must not wait for this one.
    database.on_version_change(|event| {
        if let Some(database) = event.target() {
            database.unchecked_into::<IdbDatabase>().close();
        }
    });
    Ok(database)
}

/// A transaction whose commit is on the disk when it is done, as surely as the browser can.
pub(crate) fn begin_strict(database: &IdbDatabase, stores: &[&str]) -> Result<Transaction, idb::Error> {
    let stores: Array = stores.iter().map(|store| JsValue::from_str(store)).collect();
    let options = js::object(&[("durability", "strict".into())]);
    let begun = js::call(database, "transaction", &[stores.into(), "readwrite".into(), options.into()]);
    begun
        .map(|begun| begun.unchecked_into::<IdbTransaction>().into())
        .map_err(idb::Error::TransactionOpenFailed)
}

/// A store in a transaction of its own, to read from.
pub(crate) fn reading(database: &Database, store: &str) -> Result<ObjectStore, idb::Error> {
    database.transaction(&[store], TransactionMode::ReadOnly)?.object_store(store)
}

/// Waits until what the transaction wrote is written.
pub(crate) async fn committed(transaction: Transaction) -> Result<(), idb::Error> {
    let result = transaction.await?;
    // An aborted write (a full disk, say) left nothing behind.
    if result.is_committed() {
        Ok(())
    } else {
        Err(idb::Error::TransactionAbortError(JsValue::from_str("the write was taken back")))
    }
}
