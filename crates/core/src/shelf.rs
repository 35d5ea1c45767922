//! Admission: a verdict for each entry of a manifest.
//!
//! Admission is a verdict about one moment. The digest is checked again on every call (DESIGN 3.2).

use std::collections::HashMap;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::abi::Abi;
use crate::digest::Digest;
use crate::hidden::check_visible;
use crate::limits::WASM_MEMORY_MAX_PAGES;
use crate::manifest::{Entry, Manifest};
use crate::module::{Module, ModuleFault, check_size};
use crate::refusal::{Code, Refusal, cut};

/// A shelf whose manifest could be read. On the wire `{ok: true, dir, name, version, tools}`.
#[derive(Debug, Clone, PartialEq)]
pub struct Shelf {
    /// Where the shelf is.
    pub dir: String,
    /// Its name; by default the folder's.
    pub name: String,
    /// Its version; by default `"0"`.
    pub version: String,
    /// One tool for each entry, in the order of the manifest.
    pub tools: Vec<Tool>,
}

/// One entry with its verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// The tool's id, or `(unnamed)`.
    pub id: String,
    /// The digest as the manifest writes it.
    pub digest: Option<String>,
    /// The module's path inside the shelf, as the manifest writes it.
    pub wasm_path: String,
    /// What the tool does.
    pub description: String,
    /// A free word that groups tools.
    pub capability: String,
    /// Whether it may be called.
    pub verdict: Result<Admitted, Refusal>,
}

/// What is known of a module that was admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admitted {
    /// Digest of the module.
    pub digest: Digest,
    /// How it is called; `None` for a tool of no known ABI, which is shown but cannot be called.
    pub abi: Option<Abi>,
    /// Size of the module, in bytes.
    pub bytes: u64,
    /// Pages of linear memory at the start.
    pub memory_pages: u64,
    /// Pages that the memory may grow to: the module's own maximum or the host's ceiling.
    pub memory_max_pages: u64,
}

/// Why the bytes of a module could not be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileFault {
    /// There is no such file.
    Missing,
    /// The file is of that many bytes, more than the host reads.
    TooLarge(u64),
    /// The platform could not read it and says why.
    Unreadable(String),
}

impl FileFault {
    /// The refusal for the file at `path`.
    #[must_use]
    pub fn refusal(&self, path: &str) -> Refusal {
        let shown = cut(path, 120);
        match self {
            Self::Missing => {
                Refusal::new(Code::WasmUnreadable, format!("{shown:?} is not in the shelf's folder"))
            }
            Self::TooLarge(bytes) => ModuleFault::TooLarge(*bytes).into(),
            Self::Unreadable(why) => {
                Refusal::new(Code::WasmUnreadable, format!("{shown:?} cannot be read: {}", cut(why, 120)))
            }
        }
    }
}

/// Bytes together with the digest that was computed from them just now.
#[derive(Debug, Clone)]
pub struct Hashed {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Their digest.
    pub digest: Digest,
}

impl Hashed {
    /// Hashes `bytes`.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        let digest = Digest::of(&bytes);
        Self { bytes, digest }
    }
}

/// Judges the entries of one manifest.
#[derive(Debug)]
pub struct Admission<'a> {
    manifest: &'a Manifest,
    uses: HashMap<&'a str, usize>,
    taken: &'a HashMap<String, String>,
}

impl<'a> Admission<'a> {
    /// Prepares the judgement of `manifest`. `taken` maps ids that are in use to the name of the shelf that holds them.
    #[must_use]
    pub fn new(manifest: &'a Manifest, taken: &'a HashMap<String, String>) -> Self {
        let mut uses = HashMap::new();
        for id in manifest.entries.iter().filter_map(|entry| entry.id.as_deref()) {
            *uses.entry(id).or_default() += 1;
        }
        Self { manifest, uses, taken }
    }

    /// The entries to be judged.
    #[must_use]
    pub fn entries(&self) -> &'a [Entry] {
        &self.manifest.entries
    }

    /// What can be said before the module is read: its path inside the shelf and the pinned digest.
    ///
    /// # Errors
    /// The refusal of an entry that lacks an id, a path or a digest, leaves the folder, or shares its id.
    pub fn locate(&self, entry: &'a Entry) -> Result<(String, Digest), Refusal> {
        let (id, path) = entry.locate()?;
        if let Some(count) = self.uses.get(id).filter(|&&count| count > 1) {
            let why =
                format!("the manifest lists {count} tools with the id {id:?}; none of them is admitted");
            return Err(Refusal::new(Code::DuplicateTool, why));
        }
        let digest = entry.digest.as_deref().unwrap_or_default();
        let pinned = Digest::parse(digest).ok_or_else(|| {
            let found =
                if digest.is_empty() { "nothing".to_owned() } else { format!("{:?}", cut(digest, 80)) };
            let why = format!("`digest` must be 64 lowercase hexadecimal digits; the entry has {found}");
            Refusal::new(Code::UnderDeclared, why)
        })?;
        Ok((path, pinned))
    }

    /// The verdict for `entry`, given what [`locate`](Self::locate) said and what reading its module gave.
    #[must_use]
    pub fn judge(
        &self,
        entry: &Entry,
        located: Result<(String, Digest), Refusal>,
        file: Result<Hashed, FileFault>,
    ) -> Tool {
        let verdict = located.and_then(|(path, pinned)| self.admit(entry, &path, pinned, file));
        Tool {
            id: entry.label().to_owned(),
            digest: entry.digest.clone(),
            wasm_path: entry.wasm.clone().unwrap_or_default(),
            description: entry.description.clone(),
            capability: entry.capability.clone(),
            verdict,
        }
    }

    fn admit(
        &self,
        entry: &Entry,
        path: &str,
        pinned: Digest,
        file: Result<Hashed, FileFault>,
    ) -> Result<Admitted, Refusal> {
        check_visible("description", &entry.description)?;
        let file = file.map_err(|fault| fault.refusal(path))?;
        check_size(file.bytes.len() as u64)?;
        if file.digest != pinned {
            let why = format!(
                "{path:?} hashes {}… but the manifest pins {}…",
                file.digest.prefix(),
                pinned.prefix()
            );
            return Err(Refusal::new(Code::DigestMismatch, why));
        }
        let module = Module::read(&file.bytes)?;
        let abi = match &entry.abi {
            Some(name) => Some(Abi::named(name).ok_or_else(|| {
                let why = format!("the ABI {:?} is none that the host drives", cut(name, 60));
                Refusal::new(Code::UnsupportedAbi, why)
            })?),
            None => Abi::of_known_id(entry.label()),
        };
        module.check_bounds()?;
        if let Some(abi) = abi {
            module.check_abi(abi)?;
        }
        if let Some(shelf) = self.taken.get(entry.label()) {
            let why = format!("the id {:?} is taken by the shelf {:?}", entry.label(), cut(shelf, 60));
            return Err(Refusal::new(Code::DuplicateTool, why));
        }
        let memory = module.memory();
        Ok(Admitted {
            digest: pinned,
            abi,
            bytes: file.bytes.len() as u64,
            memory_pages: memory.map_or(0, |memory| memory.min),
            memory_max_pages: memory
                .and_then(|memory| memory.max)
                .map_or(WASM_MEMORY_MAX_PAGES, |max| max.min(WASM_MEMORY_MAX_PAGES)),
        })
    }
}

/// Checks, in a call, that the bytes just read are those that were admitted.
///
/// # Errors
/// [`Code::DigestMismatch`] with both digests.
pub fn check_unchanged(tool: &str, read: Digest, admitted: Digest) -> Result<(), Refusal> {
    if read == admitted {
        return Ok(());
    }
    let (read, admitted) = (read.prefix(), admitted.prefix());
    let why = format!(
        "the bytes changed since admission: {tool:?} now hashes {read}… but {admitted}… was admitted"
    );
    Err(Refusal::new(Code::DigestMismatch, why))
}

impl Shelf {
    /// The ids that the shelf holds, each with the shelf's name: what [`Admission::new`] takes for the next one.
    pub fn held_ids(&self) -> impl Iterator<Item = (String, String)> {
        let admitted = self.tools.iter().filter(|tool| tool.verdict.is_ok());
        admitted.map(|tool| (tool.id.clone(), self.name.clone()))
    }
}

impl Tool {
    /// The ABI of a tool that can be called.
    #[must_use]
    pub fn driven(&self) -> Option<(Admitted, Abi)> {
        let admitted = self.verdict.as_ref().ok()?;
        Some((*admitted, admitted.abi?))
    }
}

impl Serialize for Shelf {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("ok", &true)?;
        map.serialize_entry("dir", &self.dir)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("version", &self.version)?;
        map.serialize_entry("tools", &self.tools)?;
        map.end()
    }
}

impl Serialize for Tool {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("digest", &self.digest)?;
        map.serialize_entry("admitted", &self.verdict.is_ok())?;
        map.serialize_entry("wasmPath", &self.wasm_path)?;
        map.serialize_entry("description", &self.description)?;
        map.serialize_entry("capability", &self.capability)?;
        match &self.verdict {
            Ok(admitted) => {
                map.serialize_entry("abi", &admitted.abi.map(Abi::row))?;
                map.serialize_entry("imports", &0)?;
                map.serialize_entry("bytes", &admitted.bytes)?;
                map.serialize_entry("memoryPages", &admitted.memory_pages)?;
                map.serialize_entry("memoryMaxPages", &admitted.memory_max_pages)?;
                if admitted.abi.is_none() {
                    map.serialize_entry(
                        "note",
                        "the entry names no ABI; the tool is admitted but cannot be called",
                    )?;
                }
            }
            Err(refusal) => {
                map.serialize_entry("refused", refusal.code.as_str())?;
                map.serialize_entry("why", &refusal.why)?;
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash_module() -> Vec<u8> {
        wat::parse_str(
            r#"(module (memory (export "memory") 2) (func (export "sha256") (param i32) (result i32) i32.const 32))"#,
        )
        .unwrap()
    }

    fn judge_all(manifest: &str, file: Result<Vec<u8>, FileFault>, taken: &[(&str, &str)]) -> Vec<Tool> {
        let manifest = Manifest::read(manifest.as_bytes()).unwrap();
        let taken = taken.iter().map(|(id, shelf)| ((*id).to_owned(), (*shelf).to_owned())).collect();
        let admission = Admission::new(&manifest, &taken);
        let judge = |entry| admission.judge(entry, admission.locate(entry), file.clone().map(Hashed::new));
        admission.entries().iter().map(judge).collect()
    }

    fn entry(id: &str, digest: &str, more: &str) -> String {
        format!(r#"{{"id":"{id}","wasm":"m.wasm","digest":"{digest}"{more}}}"#)
    }

    fn pinned() -> String {
        Digest::of(&hash_module()).to_string()
    }

    fn code(tools: &[Tool]) -> Code {
        tools[0].verdict.as_ref().unwrap_err().code
    }

    #[test]
    fn a_known_id_and_a_named_abi_are_driven_and_others_are_shown_with_a_note() {
        let judge =
            |id: &str, more: &str| judge_all(&entry(id, &pinned(), more), Ok(hash_module()), &[]).remove(0);
        assert_eq!(judge("hash", "").driven().unwrap().1, Abi::Buffer1);
        assert_eq!(judge("mine", r#","abi":"buffer-abi/1""#).driven().unwrap().1, Abi::Buffer1);
        let shown = judge("mine", "");
        assert!(shown.verdict.is_ok() && shown.driven().is_none());
        let json = serde_json::to_value(&shown).unwrap();
        assert!(json["admitted"] == true && json["abi"].is_null() && json["note"].is_string());
    }

    #[test]
    fn the_abi_of_the_entry_is_stronger_than_the_table_of_known_ids() {
        let more = r#","abi":"buffer-abi/diff""#;
        let tools = judge_all(&entry("hash", &pinned(), more), Ok(hash_module()), &[]);
        assert_eq!(code(&tools), Code::UnsupportedAbi);
        let tools = judge_all(&entry("hash", &pinned(), r#","abi":"wasi/preview2""#), Ok(hash_module()), &[]);
        assert_eq!(code(&tools), Code::UnsupportedAbi);
    }

    #[test]
    fn one_flipped_byte_is_refused_with_both_digests() {
        let mut bytes = hash_module();
        *bytes.last_mut().unwrap() ^= 1;
        let found = Digest::of(&bytes).prefix();
        let tools = judge_all(&entry("hash", &pinned(), ""), Ok(bytes), &[]);
        let refusal = tools[0].verdict.as_ref().unwrap_err();
        assert_eq!(refusal.code, Code::DigestMismatch);
        let evidence = format!("hashes {found}… but the manifest pins {}…", &pinned()[..16]);
        assert!(refusal.why.contains(&evidence), "{}", refusal.why);
    }

    #[test]
    fn an_entry_is_refused_by_the_name_of_what_it_lacks() {
        let ok = || Ok(hash_module());
        assert_eq!(code(&judge_all(&entry("hash", "", ""), ok(), &[])), Code::UnderDeclared);
        assert_eq!(
            code(&judge_all(&entry("hash", &pinned().to_uppercase(), ""), ok(), &[])),
            Code::UnderDeclared
        );
        assert_eq!(code(&judge_all(r#"{"id":"hash"}"#, ok(), &[])), Code::WasmUnreadable);
        assert_eq!(code(&judge_all(r#"[{"wasm":"x"}]"#, ok(), &[])), Code::WasmUnreadable);
        assert_eq!(code(&judge_all(r#"{"id":"hash","wasm":"../x"}"#, ok(), &[])), Code::OutsideRoot);
        assert_eq!(code(&judge_all(r#"{"id":"ha sh","wasm":"x"}"#, ok(), &[])), Code::BadToolName);
    }

    #[test]
    fn a_file_that_is_missing_too_large_or_broken_is_refused_by_name() {
        let judge = |fault| code(&judge_all(&entry("hash", &pinned(), ""), Err(fault), &[]));
        assert_eq!(judge(FileFault::Missing), Code::WasmUnreadable);
        assert_eq!(judge(FileFault::Unreadable("io".into())), Code::WasmUnreadable);
        assert_eq!(judge(FileFault::TooLarge(16_777_217)), Code::OverBudget);
        let empty = judge_all(&entry("hash", &Digest::of(b"").to_string(), ""), Ok(vec![]), &[]);
        assert_eq!(code(&empty), Code::WasmInvalid);
    }

    #[test]
    fn a_description_that_hides_something_is_refused() {
        let hidden = entry("hash", &pinned(), r#","description":"Hashes\u202e text""#);
        assert_eq!(code(&judge_all(&hidden, Ok(hash_module()), &[])), Code::HiddenCharacters);
    }

    #[test]
    fn ids_that_two_entries_or_two_shelves_share_are_refused() {
        let entry = entry("hash", &pinned(), "");
        let twice = judge_all(&format!("[{entry},{entry}]"), Ok(hash_module()), &[]);
        assert!(twice.iter().all(|tool| tool.verdict.as_ref().unwrap_err().code == Code::DuplicateTool));
        let taken = judge_all(&entry, Ok(hash_module()), &[("hash", "builtin")]);
        let refusal = taken[0].verdict.as_ref().unwrap_err();
        assert!(refusal.code == Code::DuplicateTool && refusal.why.contains("builtin"));
    }

    #[test]
    fn a_swap_after_admission_says_so() {
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        assert!(check_unchanged("hash", a, a).is_ok());
        let refusal = check_unchanged("hash", a, b).unwrap_err();
        assert!(refusal.why.contains("the bytes changed since admission"));
        assert!(refusal.why.contains(&a.prefix()) && refusal.why.contains(&b.prefix()));
    }
}
