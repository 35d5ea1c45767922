//! The folders that a person picked. Their handles are kept in IndexedDB: a handle is no text.

use std::collections::BTreeMap;
use std::rc::Rc;

use toolshelf_core::RootDescriptor;
use toolshelf_core::digest::to_hex;
use toolshelf_core::refusal::{Code, Refusal};
use wasm_bindgen::JsValue;

use super::directory::Directory;
use super::folders::Access;
use super::sealer::random_bytes;
use super::store::{HANDLES, TaskStore};
use super::unreadable;
use crate::database::{Writing, reading_one};
use crate::js;

/// The picked folders.
#[derive(Debug, Clone)]
pub(super) struct PickedFolders {
    pub(super) store: Option<Rc<TaskStore>>,
}

/// One of them.
#[derive(Debug, Clone)]
pub(super) struct PickedFolder {
    pub(super) id: String,
    pub(super) label: String,
    pub(super) handle: Directory,
}

impl PickedFolder {
    /// The folder as it is kept under `id`.
    fn read(id: String, value: &JsValue) -> Self {
        let label = js::get(value, "label").as_string().unwrap_or_default();
        Self { id, label, handle: Directory(js::get(value, "handle")) }
    }

    pub(super) fn root(&self) -> RootDescriptor {
        RootDescriptor::Handle { id: self.id.clone(), label: Some(self.label.clone()) }
    }

    /// What the browser says now, without asking the person.
    pub(super) async fn access(&self) -> Access {
        self.ask("queryPermission").await
    }

    /// Asks the person, in whose click this must be called.
    pub(super) async fn request(&self) -> Access {
        self.ask("requestPermission").await
    }

    async fn ask(&self, method: &str) -> Access {
        let options = js::object(&[("mode", "readwrite".into())]);
        match js::call_async(&self.handle.0, method, &[options.into()]).await {
            Ok(state) => match state.as_string().as_deref() {
                Some("granted") if self.handle.exists().await => Access::Granted,
                Some("granted") => Access::Gone,
                Some("prompt") => Access::Ask,
                _ => Access::Denied,
            },
            Err(thrown) if js::error_name(&thrown) == "NotFoundError" => Access::Gone,
            Err(_) => Access::Denied,
        }
    }
}

impl PickedFolders {
    /// All of them, the oldest first.
    pub(super) async fn all(&self) -> Result<Vec<PickedFolder>, Refusal> {
        let Some(store) = &self.store else { return Ok(Vec::new()) };
        let read = async {
            let handles = reading_one(&store.database, HANDLES)?;
            let (keys, values) = (handles.get_all_keys(None, None)?, handles.get_all(None, None)?);
            Ok((keys.await?, values.await?))
        };
        let (keys, values) = read.await.map_err(unreadable)?;
        let found = keys.into_iter().zip(values).filter_map(|(key, value)| {
            let order = js::get(&value, "order").as_f64().unwrap_or_default() as u64;
            let folder = PickedFolder::read(key.as_string()?, &value);
            Some(((order, folder.id.clone()), folder))
        });
        let mut sorted = BTreeMap::new();
        sorted.extend(found);
        Ok(sorted.into_values().collect())
    }

    /// The folder that `root` names.
    pub(super) async fn find(&self, root: &RootDescriptor) -> Result<PickedFolder, Refusal> {
        let RootDescriptor::Handle { id, .. } = root else {
            return Err(Refusal::new(Code::InvalidArgument, "this is no picked folder"));
        };
        let value = match &self.store {
            Some(store) => {
                let read = async { reading_one(&store.database, HANDLES)?.get(JsValue::from_str(id))?.await };
                read.await.map_err(unreadable)?
            }
            None => None,
        };
        value.map(|value| PickedFolder::read(id.clone(), &value)).ok_or_else(|| {
            Refusal::new(Code::TaskRootUnavailable, "the folder is not known any more; pick it again")
        })
    }

    /// Keeps the handle of a folder; one that is known already is the same folder.
    pub(super) async fn keep(&self, handle: JsValue) -> Result<PickedFolder, Refusal> {
        for folder in self.all().await? {
            let same = js::call_async(&folder.handle.0, "isSameEntry", std::slice::from_ref(&handle)).await;
            if same.is_ok_and(|same| same.is_truthy()) {
                return Ok(folder);
            }
        }
        let label = js::get(&handle, "name").as_string().unwrap_or_default();
        let value = js::object(&[
            ("handle", handle.clone()),
            ("label", (&*label).into()),
            ("order", js_sys::Date::now().into()),
        ]);
        let id = to_hex(&random_bytes());
        let store = self.store()?;
        let write = async {
            let writing = Writing::strict(&store.database, &[HANDLES])?;
            writing.store(HANDLES)?.put(&value, Some(&(&*id).into()))?;
            writing.commit().await
        };
        write.await.map_err(unreadable)?;
        Ok(PickedFolder { id, label, handle: Directory(handle) })
    }

    /// Forgets a folder.
    pub(super) async fn forget(&self, id: &str) -> Result<(), Refusal> {
        let store = self.store()?;
        let delete = async {
            let writing = Writing::strict(&store.database, &[HANDLES])?;
            writing.store(HANDLES)?.delete(JsValue::from_str(id))?;
            writing.commit().await
        };
        delete.await.map_err(unreadable)
    }

    fn store(&self) -> Result<&TaskStore, Refusal> {
        self.store.as_deref().ok_or_else(|| {
            let why = "the browser gives this page no database to keep folders in";
            Refusal::new(Code::StorageUnavailable, why)
        })
    }
}
