//! Modules on their way from the shelf of who admits to the workers.
//!
//! A module lies in the object store under its digest. A worker hashes what arrives, and writes it to a shelf of its own
//! only if it is what was admitted; every call hashes it again, as on any shelf.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::json;
use tokio::io::AsyncReadExt as _;
use toolshelf_core::Digest;
use toolshelf_core::limits::WASM_MODULE_MAX_BYTES;
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_host::ShelfStore as _;
use toolshelf_sandbox::private;

use super::connection::{Connection, failed};
use super::stored::ToolPin;
use crate::files;
use crate::shelf::Shelf;

/// So much of a tool's id stands in the id that it has on a worker.
const LOCAL_ID_MAX_CHARS: usize = 40;
const MANIFEST: &str = "manifest.json";

/// What was published from here.
#[derive(Debug, Default)]
pub(super) struct Publisher {
    published: RefCell<HashSet<String>>,
}

impl Publisher {
    /// The tool of that name as it is admitted here now.
    pub(super) async fn pin(&self, shelf: &Shelf, tool: &str) -> Option<(ToolPin, String, String)> {
        let readings = shelf.read().await.ok()?;
        let read = readings.iter().filter_map(|reading| Some((&reading.key, reading.shelf.as_ref().ok()?)));
        let mut tools = read.flat_map(|(key, shelf)| shelf.tools.iter().map(move |tool| (key, tool)));
        let (key, found) = tools.find(|(_, found)| found.id == tool)?;
        let admitted = found.verdict.as_ref().ok()?;
        let pin =
            ToolPin { digest: admitted.digest.to_string(), abi: admitted.abi?.layout().name.to_owned() };
        Some((pin, key.clone(), found.wasm_path.clone()))
    }

    /// Sees to it that the module of `tool` is in the object store.
    ///
    /// # Errors
    /// What the shelf or the cluster says.
    pub(super) async fn publish(
        &self,
        connection: &Connection,
        shelf: &Shelf,
        tool: &str,
    ) -> Result<Option<ToolPin>, Refusal> {
        let Some((pin, key, path)) = self.pin(shelf, tool).await else { return Ok(None) };
        if self.published.borrow().contains(&pin.digest) {
            return Ok(Some(pin));
        }
        if connection.modules.info(&*pin.digest).await.is_err() {
            let module = shelf.store().module(&key, &path).await.map_err(|_| {
                Refusal::new(Code::WasmUnreadable, format!("the module of {tool:?} cannot be read"))
            })?;
            if module.digest.to_string() != pin.digest {
                let why = format!("the module of {tool:?} is not the one that was admitted");
                return Err(Refusal::new(Code::DigestMismatch, why));
            }
            connection.modules.put(&*pin.digest, &mut &*module.bytes).await.map_err(failed)?;
        }
        self.published.borrow_mut().insert(pin.digest.clone());
        Ok(Some(pin))
    }
}

/// The shelf of a worker: a folder that is filled as modules are needed.
#[derive(Debug)]
pub(super) struct Arrived {
    folder: PathBuf,
    /// By id: the digest and the ABI.
    tools: RefCell<BTreeMap<String, ToolPin>>,
}

impl Arrived {
    /// An empty shelf in `folder`, which must be the worker's own.
    ///
    /// # Errors
    /// [`Code::StorageUnavailable`].
    pub(super) fn empty(folder: &Path) -> Result<Self, Refusal> {
        let arrived = Self { folder: folder.to_owned(), tools: RefCell::default() };
        private::make_folder(folder).map_err(|err| unavailable(folder, &err))?;
        arrived.write_manifest()?;
        Ok(arrived)
    }

    /// Sees to it that the tool of `pin` is on the shelf. Answers the id that it has there: that of `tool` and the
    /// beginning of its digest, so that two versions of one tool can be run side by side.
    ///
    /// # Errors
    /// [`Code::DigestMismatch`] for a module that is another than was admitted; what the cluster says.
    pub(super) async fn fetch(
        &self,
        connection: &Connection,
        shelf: &Shelf,
        tool: &str,
        pin: &ToolPin,
    ) -> Result<String, Refusal> {
        let digest = Digest::parse(&pin.digest)
            .ok_or_else(|| Refusal::new(Code::DigestMismatch, "what was admitted has no digest"))?;
        let local = format!("{}-{}", cut_id(tool), digest.prefix());
        match self.tools.borrow().get(&local) {
            Some(known) if known == pin => return Ok(local),
            Some(_) => {
                let why = format!("another module has the name {local:?} on this worker");
                return Err(Refusal::new(Code::DigestMismatch, why));
            }
            None => {}
        }
        let path = self.folder.join(module_file(&pin.digest));
        if !path.is_file() {
            let bytes = download(connection, &pin.digest).await?;
            check_module(&bytes, digest, tool)?;
            files::replace(&path, &bytes)?;
        }
        self.tools.borrow_mut().insert(local.clone(), pin.clone());
        self.write_manifest()?;
        shelf.forget();
        shelf.read().await?;
        Ok(local)
    }

    fn write_manifest(&self) -> Result<(), Refusal> {
        let tools = self.tools.borrow();
        let entry = |(id, pin): (&String, &ToolPin)| json!({ "id": id, "wasm": module_file(&pin.digest), "digest": pin.digest, "abi": pin.abi });
        let manifest = json!({ "name": "cluster", "tools": tools.iter().map(entry).collect::<Vec<_>>() });
        let path = self.folder.join(MANIFEST);
        files::replace(&path, manifest.to_string().as_bytes())
    }
}

/// What arrives is what was admitted, or it is refused.
fn check_module(bytes: &[u8], admitted: Digest, tool: &str) -> Result<(), Refusal> {
    let found = Digest::of(bytes);
    if found == admitted {
        return Ok(());
    }
    let why =
        format!("the module of {tool:?} that arrived has the digest {found}, not the admitted {admitted}");
    Err(Refusal::new(Code::DigestMismatch, why))
}

async fn download(connection: &Connection, digest: &str) -> Result<Vec<u8>, Refusal> {
    let gone = |err: &dyn std::fmt::Display| {
        let why = format!("the module {} cannot be had from the cluster: {err}", cut(digest, 64));
        Refusal::new(Code::WasmUnreadable, cut(&why, 300))
    };
    let object = connection.modules.get(digest).await.map_err(|err| gone(&err))?;
    let mut bytes = Vec::new();
    let most = WASM_MODULE_MAX_BYTES as u64 + 1;
    object.take(most).read_to_end(&mut bytes).await.map_err(|err| gone(&err))?;
    Ok(bytes)
}

/// The beginning of a tool's id, so that a digest's beginning fits behind it. Ids are ASCII.
fn cut_id(tool: &str) -> &str {
    tool.get(..LOCAL_ID_MAX_CHARS).unwrap_or(tool)
}

fn module_file(digest: &str) -> String {
    format!("{digest}.wasm")
}

fn unavailable(path: &Path, err: &std::io::Error) -> Refusal {
    Refusal::new(Code::StorageUnavailable, format!("{} cannot be used: {err}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_is_another_than_was_admitted_is_refused() {
        let admitted = Digest::of(b"module");
        assert_eq!(check_module(b"module", admitted, "t"), Ok(()));
        assert_eq!(check_module(b"modulf", admitted, "t").unwrap_err().code, Code::DigestMismatch);
    }
}
