//! IndexedDB in a few steps: open, begin, commit.

use idb::{Database, DatabaseEvent as _, Factory, ObjectStore, Transaction};
use js_sys::{Array, Promise};
use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{IdbDatabase, IdbTransaction};

use crate::js;

/// Opens the database `name`; `upgrade` gives an empty one its stores.
pub(crate) async fn open(name: &str, upgrade: fn(&Database)) -> Result<IdbDatabase, idb::Error> {
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
    // They hear the browser as long as the page lives.
    database.forget_callbacks();
    Ok(database.into())
}

/// A transaction that writes all of what it is given or nothing: dropped before its commit, it is taken back.
#[derive(Debug)]
pub(crate) struct Writing {
    transaction: IdbTransaction,
    committed: bool,
}

impl Writing {
    /// One whose commit is on the disk when it is done, as surely as the browser can.
    pub(crate) fn strict(database: &IdbDatabase, stores: &[&str]) -> Result<Self, idb::Error> {
        Self::begin(database, stores, "strict")
    }

    /// One that is written as it comes.
    pub(crate) fn quiet(database: &IdbDatabase, stores: &[&str]) -> Result<Self, idb::Error> {
        Self::begin(database, stores, "relaxed")
    }

    fn begin(database: &IdbDatabase, stores: &[&str], durability: &str) -> Result<Self, idb::Error> {
        let stores: Array = stores.iter().map(|store| JsValue::from_str(store)).collect();
        let options = js::object(&[("durability", durability.into())]);
        let begun = js::call(database, "transaction", &[stores.into(), "readwrite".into(), options.into()]);
        let transaction = begun.map_err(idb::Error::TransactionOpenFailed)?.unchecked_into();
        Ok(Self { transaction, committed: false })
    }

    pub(crate) fn store(&self, name: &str) -> Result<ObjectStore, idb::Error> {
        self.transaction.object_store(name).map(Into::into).map_err(idb::Error::ObjectStoreNotFound)
    }

    /// Writes it, and waits until it is written.
    ///
    /// The library's own future takes the error of a request for one of the transaction, so this listens itself.
    pub(crate) async fn commit(mut self) -> Result<(), idb::Error> {
        let end = Promise::new(&mut |ended, _| {
            self.transaction.set_oncomplete(Some(&ended));
            self.transaction.set_onabort(Some(&ended));
        });
        js::call(&self.transaction, "commit", &[]).map_err(idb::Error::TransactionCommitError)?;
        self.committed = true;
        let end = JsFuture::from(end).await.unwrap_or_default();
        if js::get(&end, "type").as_string().as_deref() == Some("complete") {
            return Ok(());
        }
        // An aborted write (a full disk, say) left nothing behind.
        let why = self.transaction.error().map(Into::into);
        Err(idb::Error::TransactionAbortError(why.unwrap_or_else(|| "the write was taken back".into())))
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if !self.committed {
            // One that has ended by itself cannot be aborted, and need not be.
            let _ = self.transaction.abort();
        }
    }
}

/// A transaction that only reads.
pub(crate) fn reading(database: &IdbDatabase, stores: &[&str]) -> Result<Transaction, idb::Error> {
    let stores: Array = stores.iter().map(|store| JsValue::from_str(store)).collect();
    let begun = database.transaction_with_str_sequence(&stores);
    begun.map(Into::into).map_err(idb::Error::TransactionOpenFailed)
}

/// A store in a transaction of its own, to read from.
pub(crate) fn reading_one(database: &IdbDatabase, store: &str) -> Result<ObjectStore, idb::Error> {
    reading(database, &[store])?.object_store(store)
}

/// Whether a write failed because something was there already.
pub(crate) fn is_collision(fault: &idb::Error) -> bool {
    matches!(fault, idb::Error::TransactionAbortError(why) if js::error_name(why) == "ConstraintError")
}
