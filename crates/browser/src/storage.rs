//! Shelves in IndexedDB: one record for each manifest, one for each module. A small module has a second copy in
//! `localStorage`, which is read ten times faster. Browsers write that one to the disk late, so after a crash it may be
//! missing, and the database has what was lost. A copy that is there is the one that is read.
//!
//! Every call reads its module from here again, so a copy that somebody changed is refused by name. Where the browser
//! gives no database (some private windows), shelves live in memory, and [`Storage::persistent`] says so.

use std::cell::RefCell;
use std::collections::BTreeMap;

use futures::FutureExt as _;
use idb::{Database, KeyRange, ObjectStoreParams, Query};
use js_sys::{Array, Uint8Array};
use toolshelf_core::digest::Digest;
use toolshelf_core::module::check_size;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::shelf::{FileFault, Hashed};
use toolshelf_host::ShelfStore;
use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::IdbDatabase;

use crate::database::{self, Writing};
use crate::js;
use crate::small::SmallModules;

/// Name of the database.
pub const DATABASE: &str = "toolshelf";
/// Store of the manifests. Key: the shelf's key. Value: `{order, manifest}`.
pub const SHELVES: &str = "shelves";
/// Store of the modules. Key: `[shelf's key, path]`. Value: the bytes.
pub const FILES: &str = "files";

/// Above this size the browser's own SHA-256 is faster than ours, the way to it included.
const NATIVE_DIGEST_FROM: usize = 16 * 1024;

/// A shelf with everything that belongs to it.
#[derive(Debug, Clone)]
pub struct ShelfRecord {
    /// Its key.
    pub key: String,
    /// Its place among the shelves; earlier shelves claim ids first.
    pub order: f64,
    /// The bytes of `manifest.json`.
    pub manifest: Vec<u8>,
    /// The modules by their path.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// The place where shelves are kept.
#[derive(Debug)]
pub struct Storage {
    backend: Backend,
}

#[derive(Debug)]
enum Backend {
    Database(IdbDatabase, Option<SmallModules>),
    Memory(RefCell<BTreeMap<String, ShelfRecord>>),
}

impl Storage {
    /// Opens the database, or falls back to memory.
    pub async fn open() -> Self {
        let backend = match database::open(DATABASE, add_stores).await {
            Ok(database) => Backend::Database(database, SmallModules::open()),
            Err(_) => Backend::Memory(RefCell::default()),
        };
        Self { backend }
    }

    /// Storage in memory, forgotten with the page.
    #[must_use]
    pub fn in_memory() -> Self {
        Self { backend: Backend::Memory(RefCell::default()) }
    }

    /// Whether what is stored is there after a reload.
    #[must_use]
    pub fn persistent(&self) -> bool {
        matches!(self.backend, Backend::Database(..))
    }

    /// Writes a shelf in one transaction: all of it, or nothing. One of the same key is replaced.
    ///
    /// # Errors
    /// [`Code::StorageUnavailable`].
    pub async fn put(&self, record: &ShelfRecord) -> Result<(), Refusal> {
        match &self.backend {
            Backend::Memory(shelves) => {
                shelves.borrow_mut().insert(record.key.clone(), record.clone());
                Ok(())
            }
            Backend::Database(database, small) => put(database, small.as_ref(), record).await,
        }
    }

    /// The shelf of that key, whole.
    ///
    /// # Errors
    /// [`Code::StorageUnavailable`].
    pub async fn get(&self, key: &str) -> Result<Option<ShelfRecord>, Refusal> {
        match &self.backend {
            Backend::Memory(shelves) => Ok(shelves.borrow().get(key).cloned()),
            Backend::Database(database, small) => {
                let record = get(database, key).boxed_local().await.map_err(unavailable)?;
                Ok(record.map(|mut record| {
                    record.files.extend(small.iter().flat_map(|small| small.all(key)));
                    record
                }))
            }
        }
    }

    /// Deletes a shelf in one transaction.
    ///
    /// # Errors
    /// [`Code::StorageUnavailable`].
    pub async fn delete(&self, key: &str) -> Result<(), Refusal> {
        match &self.backend {
            Backend::Memory(shelves) => {
                shelves.borrow_mut().remove(key);
                Ok(())
            }
            Backend::Database(database, small) => {
                delete(database, key).await.map_err(unavailable)?;
                small.iter().for_each(|small| small.delete(key));
                Ok(())
            }
        }
    }

    /// Keys of all shelves with their places.
    ///
    /// # Errors
    /// [`Code::StorageUnavailable`].
    pub async fn keys(&self) -> Result<Vec<(String, f64)>, Refusal> {
        let keys: Vec<(String, f64)> = match &self.backend {
            Backend::Memory(shelves) => {
                shelves.borrow().values().map(|record| (record.key.clone(), record.order)).collect()
            }
            Backend::Database(database, _) => keys(database).await.map_err(unavailable)?,
        };
        // The keys come in their own order, and a handful of them: a sort of the library would be the larger code.
        let mut sorted: Vec<(String, f64)> = Vec::with_capacity(keys.len());
        for (key, order) in keys {
            let at = sorted.partition_point(|(_, other)| *other <= order);
            sorted.insert(at, (key, order));
        }
        Ok(sorted)
    }
}

impl ShelfStore for Storage {
    async fn shelves(&self) -> Result<Vec<String>, Refusal> {
        Ok(self.keys().await?.into_iter().map(|(key, _)| key).collect())
    }

    async fn manifest(&self, shelf: &str) -> Result<Vec<u8>, Refusal> {
        let manifest = match &self.backend {
            Backend::Memory(shelves) => shelves.borrow().get(shelf).map(|record| record.manifest.clone()),
            Backend::Database(database, _) => {
                let record = read(database, SHELVES, JsValue::from_str(shelf)).await.map_err(unavailable)?;
                record.and_then(|record| bytes_of(&js::get(&record, "manifest")))
            }
        };
        manifest.ok_or_else(|| {
            Refusal::new(Code::ShelfUnavailable, format!("the shelf {shelf:?} has no manifest.json"))
        })
    }

    async fn module(&self, shelf: &str, path: &str) -> Result<Hashed, FileFault> {
        let bytes = match &self.backend {
            Backend::Memory(shelves) => {
                shelves.borrow().get(shelf).and_then(|record| record.files.get(path)).cloned()
            }
            Backend::Database(database, small) => {
                match small.as_ref().and_then(|small| small.get(shelf, path)) {
                    Some(small) => Some(small?),
                    None => stored(database, shelf, path).await?,
                }
            }
        };
        hash(bytes.ok_or(FileFault::Missing)?).await
    }
}

/// A module in the database. Its size is checked before it is copied.
async fn stored(database: &IdbDatabase, shelf: &str, path: &str) -> Result<Option<Vec<u8>>, FileFault> {
    let value = read(database, FILES, file_key(shelf, path)).await;
    let value = value.map_err(|err| FileFault::Unreadable(err.to_string()))?;
    let Some(stored) = value.and_then(|value| value.dyn_into::<Uint8Array>().ok()) else { return Ok(None) };
    check_size(stored.length().into()).map_err(|_| FileFault::TooLarge(stored.length().into()))?;
    Ok(Some(stored.to_vec()))
}

/// Hashes the bytes that were just read: the very bytes that are compiled.
async fn hash(bytes: Vec<u8>) -> Result<Hashed, FileFault> {
    let digest = match native_digest(&bytes).await {
        Some(digest) => digest,
        None => Digest::of(&bytes),
    };
    Ok(Hashed { bytes, digest })
}

/// SHA-256 by the browser, outside the page's thread; `None` for small inputs and where there is none.
async fn native_digest(bytes: &[u8]) -> Option<Digest> {
    if bytes.len() < NATIVE_DIGEST_FROM {
        return None;
    }
    let subtle = web_sys::window()?.crypto().ok()?.subtle();
    let promise = subtle.digest_with_str_and_js_u8_array("SHA-256", &Uint8Array::from(bytes)).ok()?;
    let digest = Uint8Array::new(&JsFuture::from(promise).await.ok()?).to_vec();
    Some(Digest::from_bytes(digest.try_into().ok()?))
}

fn add_stores(database: &Database) {
    for store in [SHELVES, FILES] {
        let _ = database.create_object_store(store, ObjectStoreParams::new());
    }
}

fn unavailable(err: idb::Error) -> Refusal {
    Refusal::new(Code::StorageUnavailable, format!("the browser's database answers: {err}"))
}

fn file_key(shelf: &str, path: &str) -> JsValue {
    Array::of2(&shelf.into(), &path.into()).into()
}

fn bytes_of(value: &JsValue) -> Option<Vec<u8>> {
    Some(value.dyn_ref::<Uint8Array>()?.to_vec())
}

async fn read(database: &IdbDatabase, store: &str, key: JsValue) -> Result<Option<JsValue>, idb::Error> {
    database::reading_one(database, store)?.get(key)?.await
}

/// Keys of the modules of one shelf: arrays sort by their first element, and an array after every string.
fn files_of(shelf: &str) -> Result<Query, idb::Error> {
    let end = Array::of2(&shelf.into(), &Array::new());
    Ok(KeyRange::bound(&Array::of1(&shelf.into()), &end, None, None)?.into())
}

/// The copies of small modules go first and come back last: whenever the page ends in between, what is in the database
/// is whole, and no copy is of another version.
async fn put(
    database: &IdbDatabase,
    small: Option<&SmallModules>,
    record: &ShelfRecord,
) -> Result<(), Refusal> {
    let key = &record.key;
    small.iter().for_each(|small| small.delete(key));
    put_in_database(database, record).await.map_err(unavailable)?;
    for (path, bytes) in &record.files {
        small.iter().for_each(|small| small.put(key, path, bytes));
    }
    Ok(())
}

async fn put_in_database(database: &IdbDatabase, record: &ShelfRecord) -> Result<(), idb::Error> {
    let writing = Writing::quiet(database, &[SHELVES, FILES])?;
    let (shelves, files) = (writing.store(SHELVES)?, writing.store(FILES)?);
    files.delete(files_of(&record.key)?)?;
    for (path, bytes) in &record.files {
        files.put(&Uint8Array::from(&bytes[..]), Some(&file_key(&record.key, path)))?;
    }
    let manifest = Uint8Array::from(&record.manifest[..]);
    let value = js::object(&[("order", record.order.into()), ("manifest", manifest.into())]);
    shelves.put(&value, Some(&JsValue::from_str(&record.key)))?;
    writing.commit().await
}

async fn get(database: &IdbDatabase, key: &str) -> Result<Option<ShelfRecord>, idb::Error> {
    let transaction = database::reading(database, &[SHELVES, FILES])?;
    let Some(value) = transaction.object_store(SHELVES)?.get(JsValue::from_str(key))?.await? else {
        return Ok(None);
    };
    let store = transaction.object_store(FILES)?;
    // Both requests are made before the first is awaited: a transaction without one would end.
    let (paths, values) =
        (store.get_all_keys(Some(files_of(key)?), None)?, store.get_all(Some(files_of(key)?), None)?);
    let (paths, values) = (paths.await?, values.await?);
    let path_of = |key: JsValue| Array::from(&key).get(1).as_string();
    let pairs = paths.into_iter().zip(&values);
    let mut files = BTreeMap::new();
    files.extend(pairs.filter_map(|(key, value)| Some((path_of(key)?, bytes_of(value)?))));
    Ok(Some(ShelfRecord {
        key: key.to_owned(),
        order: js::get(&value, "order").as_f64().unwrap_or_default(),
        manifest: bytes_of(&js::get(&value, "manifest")).unwrap_or_default(),
        files,
    }))
}

async fn delete(database: &IdbDatabase, key: &str) -> Result<(), idb::Error> {
    let writing = Writing::quiet(database, &[SHELVES, FILES])?;
    writing.store(SHELVES)?.delete(JsValue::from_str(key))?;
    writing.store(FILES)?.delete(files_of(key)?)?;
    writing.commit().await
}

async fn keys(database: &IdbDatabase) -> Result<Vec<(String, f64)>, idb::Error> {
    let store = database::reading_one(database, SHELVES)?;
    let (keys, values) = (store.get_all_keys(None, None)?, store.get_all(None, None)?);
    let (keys, values) = (keys.await?, values.await?);
    let order = |value: &JsValue| js::get(value, "order").as_f64().unwrap_or_default();
    Ok(keys.iter().zip(&values).filter_map(|(key, value)| Some((key.as_string()?, order(value)))).collect())
}
