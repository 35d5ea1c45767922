//! The page's own folder where the browser gives no private file system: files in IndexedDB, or in memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use idb::{KeyRange, Query};
use js_sys::{Array, Uint8Array};
use wasm_bindgen::{JsCast as _, JsValue};

use super::folders::Entry;
use super::store::{FILES, TaskStore};
use crate::database::{Writing, reading_one};

/// The folder's name in the store's keys.
const OWN: &str = "own";

/// The files.
#[derive(Debug, Clone)]
pub(super) enum Flat {
    /// In IndexedDB.
    Database(Rc<TaskStore>),
    /// In memory.
    Memory(Rc<RefCell<BTreeMap<String, Vec<u8>>>>),
}

impl Flat {
    /// The bytes at `path`.
    pub(super) async fn read(&self, path: &str) -> Result<Option<Uint8Array>, idb::Error> {
        match self {
            Self::Memory(files) => Ok(files.borrow().get(path).map(|bytes| Uint8Array::from(&bytes[..]))),
            Self::Database(store) => {
                let value = reading_one(&store.database, FILES)?.get(key(path))?.await?;
                Ok(value.and_then(|value| value.dyn_into().ok()))
            }
        }
    }

    pub(super) async fn write(&self, path: &str, bytes: &Uint8Array) -> Result<(), idb::Error> {
        match self {
            Self::Memory(files) => {
                files.borrow_mut().insert(path.to_owned(), bytes.to_vec());
                Ok(())
            }
            Self::Database(store) => {
                let writing = Writing::strict(&store.database, &[FILES])?;
                writing.store(FILES)?.put(bytes, Some(&key(path)))?;
                writing.commit().await
            }
        }
    }

    /// Deletes a file, or all files below a folder.
    pub(super) async fn delete(&self, path: &str) -> Result<(), idb::Error> {
        let below = [path, "/"].concat();
        match self {
            Self::Memory(files) => {
                files.borrow_mut().retain(|other, _| other != path && !other.starts_with(&below));
                Ok(())
            }
            Self::Database(store) => {
                let writing = Writing::strict(&store.database, &[FILES])?;
                let files = writing.store(FILES)?;
                files.delete(key(path))?;
                files.delete(range(&below)?)?;
                writing.commit().await
            }
        }
    }

    /// What is in a folder, in no order.
    pub(super) async fn entries(&self, folder: &str) -> Result<Vec<Entry>, idb::Error> {
        let prefix = if folder.is_empty() { String::new() } else { [folder, "/"].concat() };
        let mut entries: Vec<Entry> = Vec::new();
        for (path, size) in self.below(&prefix).await? {
            match path[prefix.len()..].split_once('/') {
                None => entries.push(Entry::at(folder, path[prefix.len()..].to_owned(), Some(size))),
                Some((name, _)) if entries.iter().any(|entry| entry.size.is_none() && entry.name == name) => {
                }
                Some((name, _)) => entries.push(Entry::at(folder, name.to_owned(), None)),
            }
        }
        Ok(entries)
    }

    async fn below(&self, prefix: &str) -> Result<Vec<(String, u64)>, idb::Error> {
        match self {
            Self::Memory(files) => {
                let files = files.borrow();
                let below = files.iter().filter(|(path, _)| path.starts_with(prefix));
                Ok(below.map(|(path, bytes)| (path.clone(), bytes.len() as u64)).collect())
            }
            Self::Database(store) => {
                let files = reading_one(&store.database, FILES)?;
                let (keys, values) = (
                    files.get_all_keys(Some(range(prefix)?), None)?,
                    files.get_all(Some(range(prefix)?), None)?,
                );
                let (keys, values) = (keys.await?, values.await?);
                let pairs = keys.into_iter().zip(values);
                let sized = pairs.filter_map(|(key, value)| {
                    let path = Array::from(&key).get(1).as_string()?;
                    Some((path, value.dyn_into::<Uint8Array>().ok()?.length().into()))
                });
                Ok(sized.collect())
            }
        }
    }
}

fn key(path: &str) -> JsValue {
    Array::of2(&OWN.into(), &path.into()).into()
}

/// All paths that begin with `prefix`: no path has a character after U+FFFF's.
fn range(prefix: &str) -> Result<Query, idb::Error> {
    let end = [prefix, "\u{ffff}"].concat();
    Ok(KeyRange::bound(&key(prefix), &key(&end), None, None)?.into())
}
