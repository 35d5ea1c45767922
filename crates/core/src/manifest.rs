//! Reading `manifest.json`: the file that names a shelf's tools and pins their digests.
//!
//! Three forms are read (DESIGN 3.1): the canonical `{name?, version?, tools: [entry]}`, a bare array of entries, and
//! one bare entry. A fault of the whole file refuses the shelf; a fault of one entry refuses that entry alone, so that
//! one bad line never hides the other tools.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::limits::{
    DESCRIPTION_MAX_CHARS, MANIFEST_MAX_BYTES, SHELF_MAX_TOOLS, SHELF_NAME_MAX_CHARS, SHELF_PATH_MAX_BYTES,
    TOOL_ID_MAX_CHARS,
};
use crate::refusal::{Code, Refusal, cut};
use crate::shelf::Tool;

/// Name of the file.
pub const MANIFEST_FILE: &str = "manifest.json";
/// Id under which an entry without one is shown.
pub const UNNAMED: &str = "(unnamed)";

/// A manifest that could be read; its entries are not yet judged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Manifest {
    /// The shelf's name, where given.
    pub name: Option<String>,
    /// The shelf's version, where given.
    pub version: Option<String>,
    /// The entries in the order of the file.
    pub entries: Vec<Entry>,
}

/// One entry as it stands in the file. A field that is missing or no string is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Entry {
    /// The tool's id.
    pub id: Option<String>,
    /// Path of the module, relative to the shelf's folder.
    pub wasm: Option<String>,
    /// The pinned digest.
    pub digest: Option<String>,
    /// What the tool does.
    pub description: String,
    /// A free word that groups tools; it grants nothing.
    pub capability: String,
    /// Name of the ABI.
    pub abi: Option<String>,
}

/// Why a whole manifest is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ManifestFault {
    /// Larger than [`MANIFEST_MAX_BYTES`].
    #[error("the manifest is {0} bytes; the host reads at most {MANIFEST_MAX_BYTES}")]
    TooLarge(u64),
    /// Not JSON.
    #[error("the manifest is not JSON: {0}")]
    NotJson(String),
    /// JSON, but neither an object nor an array.
    #[error("the manifest is {0}; it must be an object with a `tools` array")]
    WrongForm(&'static str),
    /// `tools` is there and is no array.
    #[error("the manifest's `tools` is {0}; it must be an array")]
    ToolsNotArray(&'static str),
    /// More than [`SHELF_MAX_TOOLS`] entries.
    #[error("the manifest lists {0} tools; a shelf holds at most {SHELF_MAX_TOOLS}")]
    TooManyTools(usize),
}

impl From<ManifestFault> for Refusal {
    fn from(fault: ManifestFault) -> Self {
        let code = match fault {
            ManifestFault::TooLarge(_) | ManifestFault::TooManyTools(_) => Code::OverBudget,
            ManifestFault::NotJson(_) | ManifestFault::WrongForm(_) | ManifestFault::ToolsNotArray(_) => {
                Code::ShelfUnreadable
            }
        };
        Self::new(code, fault.to_string())
    }
}

impl Manifest {
    /// Reads the bytes of a `manifest.json`.
    ///
    /// # Errors
    /// A [`ManifestFault`] when the file as a whole is of no use.
    pub fn read(bytes: &[u8]) -> Result<Self, ManifestFault> {
        if bytes.len() > MANIFEST_MAX_BYTES {
            return Err(ManifestFault::TooLarge(bytes.len() as u64));
        }
        // Editors on some platforms put a byte-order mark in front of what they save.
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let value = serde_json::from_slice(bytes)
            .map_err(|err| ManifestFault::NotJson(cut(&err.to_string(), 120)))?;
        match value {
            Value::Array(tools) => Self::with_tools(None, None, tools),
            Value::Object(mut object) => match object.remove("tools") {
                Some(Value::Array(tools)) => {
                    Self::with_tools(label(&object, "name"), label(&object, "version"), tools)
                }
                Some(other) => Err(ManifestFault::ToolsNotArray(kind(&other))),
                None if object.contains_key("wasm") || object.contains_key("id") => {
                    Self::with_tools(None, None, vec![Value::Object(object)])
                }
                None => Self::with_tools(label(&object, "name"), label(&object, "version"), Vec::new()),
            },
            other => Err(ManifestFault::WrongForm(kind(&other))),
        }
    }

    /// The manifest that is kept of a shelf that was added: the entries that `tools`, one for each entry, has admitted.
    #[must_use]
    pub fn admitted_only(&self, name: &str, version: &str, tools: &[Tool]) -> Vec<u8> {
        let admitted = self.entries.iter().zip(tools).filter(|(_, tool)| tool.verdict.is_ok());
        let entries: Vec<_> = admitted.map(|(entry, _)| entry).collect();
        json!({ "name": name, "version": version, "tools": entries }).to_string().into_bytes()
    }

    /// The bytes of a `manifest.json` in the canonical form, with every entry.
    #[must_use]
    pub fn written(&self) -> Vec<u8> {
        json!({ "name": self.name, "version": self.version, "tools": self.entries }).to_string().into_bytes()
    }

    fn with_tools(
        name: Option<String>,
        version: Option<String>,
        tools: Vec<Value>,
    ) -> Result<Self, ManifestFault> {
        if tools.len() > SHELF_MAX_TOOLS {
            return Err(ManifestFault::TooManyTools(tools.len()));
        }
        Ok(Self { name, version, entries: tools.iter().map(Entry::read).collect() })
    }
}

impl Entry {
    fn read(value: &Value) -> Self {
        let Value::Object(entry) = value else { return Self::default() };
        Self {
            id: text(entry, "id"),
            wasm: text(entry, "wasm"),
            digest: text(entry, "digest"),
            description: cut(&text(entry, "description").unwrap_or_default(), DESCRIPTION_MAX_CHARS),
            capability: label(entry, "capability").unwrap_or_default(),
            abi: text(entry, "abi"),
        }
    }

    /// The id, or [`UNNAMED`].
    #[must_use]
    pub fn label(&self) -> &str {
        self.id.as_deref().unwrap_or(UNNAMED)
    }

    /// The id and the module's path inside the shelf's folder, both checked.
    ///
    /// # Errors
    /// [`Code::WasmUnreadable`] when one of them is missing, [`Code::BadToolName`] and [`Code::OutsideRoot`].
    pub fn locate(&self) -> Result<(&str, String), Refusal> {
        let missing = |field: &str| Refusal::new(Code::WasmUnreadable, format!("the entry has no `{field}`"));
        let id = self.id.as_deref().ok_or_else(|| missing("id"))?;
        let wasm = self.wasm.as_deref().ok_or_else(|| missing("wasm"))?;
        check_tool_id(id)?;
        Ok((id, contained_path(wasm)?))
    }
}

/// Checks that `id` can be the name of a tool in every interface, a model's function calls included.
///
/// # Errors
/// [`Code::BadToolName`].
pub fn check_tool_id(id: &str) -> Result<(), Refusal> {
    let fits = (1..=TOOL_ID_MAX_CHARS).contains(&id.len());
    if fits && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)) {
        return Ok(());
    }
    let shown = cut(id, TOOL_ID_MAX_CHARS);
    Err(Refusal::new(
        Code::BadToolName,
        format!("{shown:?} is no tool id: 1 to 64 letters, digits, `_` and `-`"),
    ))
}

/// Checks that `path` stays inside the folder that it is relative to, and spells it without `.` segments.
///
/// # Errors
/// [`Code::OutsideRoot`] for absolute paths, `..`, back slashes, drive letters, empty segments and control characters.
pub fn contained_path(path: &str) -> Result<String, Refusal> {
    let outside = |reason: &str| {
        let shown = cut(path, 120);
        Err(Refusal::new(Code::OutsideRoot, format!("the path {shown:?} {reason}")))
    };
    if path.is_empty() || path.len() > SHELF_PATH_MAX_BYTES {
        return outside("is empty or too long");
    }
    if path.chars().any(|char| char == '\\' || char == ':' || char.is_control()) {
        return outside("has a back slash, a colon or a control character");
    }
    let mut kept = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" => return outside("is absolute or has an empty segment"),
            ".." => return outside("leaves the folder that it is in"),
            "." => {}
            name => kept.push(name),
        }
    }
    if kept.is_empty() { outside("names no file") } else { Ok(kept.join("/")) }
}

/// A short text that is only shown.
fn label(object: &Map<String, Value>, key: &str) -> Option<String> {
    Some(cut(&text(object, key)?, SHELF_NAME_MAX_CHARS))
}

fn text(object: &Map<String, Value>, key: &str) -> Option<String> {
    object.get(key)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ENTRY: &str = r#"{"id":"hash","wasm":"hash.wasm","digest":"00","abi":"buffer-abi/1"}"#;

    fn refused(bytes: &[u8]) -> Code {
        Refusal::from(Manifest::read(bytes).unwrap_err()).code
    }

    #[test]
    fn the_object_the_array_and_the_bare_entry_name_the_same_tool() {
        let object =
            Manifest::read(format!(r#"{{"name":"n","version":"2","tools":[{ENTRY}]}}"#).as_bytes()).unwrap();
        assert_eq!((object.name.as_deref(), object.version.as_deref()), (Some("n"), Some("2")));
        for text in [format!("[{ENTRY}]"), ENTRY.to_owned(), format!("\u{feff}{ENTRY}")] {
            assert_eq!(Manifest::read(text.as_bytes()).unwrap().entries, object.entries, "{text}");
        }
    }

    #[test]
    fn a_shelf_without_tools_is_a_shelf() {
        for text in ["{}", "[]", r#"{"tools":[]}"#] {
            assert!(Manifest::read(text.as_bytes()).unwrap().entries.is_empty(), "{text}");
        }
    }

    #[test]
    fn what_is_no_manifest_is_refused_by_name() {
        for text in
            ["", "{", "nonsense", "\u{0}", "null", "3", "\"tools\"", r#"{"tools":{}}"#, r#"{"tools":7}"#]
        {
            assert_eq!(refused(text.as_bytes()), Code::ShelfUnreadable, "{text}");
        }
        assert_eq!(refused("[".repeat(100_000).as_bytes()), Code::ShelfUnreadable);
        assert_eq!(refused(&vec![b' '; MANIFEST_MAX_BYTES + 1]), Code::OverBudget);
        assert_eq!(refused(format!("[{}0]", "0,".repeat(SHELF_MAX_TOOLS)).as_bytes()), Code::OverBudget);
    }

    #[test]
    fn an_entry_that_is_no_object_is_kept_as_an_unnamed_one() {
        let manifest = Manifest::read(br#"{"tools":[7, {"id":8}]}"#).unwrap();
        assert_eq!(manifest.entries, [Entry::default(), Entry::default()]);
        assert_eq!(manifest.entries[0].label(), UNNAMED);
        assert_eq!(manifest.entries[0].locate().unwrap_err().code, Code::WasmUnreadable);
    }

    #[test]
    fn texts_that_are_only_shown_are_cut() {
        let long = "é".repeat(100_000);
        let manifest =
            format!(r#"{{"name":"{long}","tools":[{{"description":"{long}","capability":"{long}"}}]}}"#);
        let manifest = Manifest::read(manifest.as_bytes()).unwrap();
        let chars = |text: &str| text.chars().count();
        assert_eq!(manifest.name.as_deref().map(chars), Some(SHELF_NAME_MAX_CHARS + 1));
        assert_eq!(chars(&manifest.entries[0].description), DESCRIPTION_MAX_CHARS + 1);
        assert_eq!(chars(&manifest.entries[0].capability), SHELF_NAME_MAX_CHARS + 1);
    }

    #[test]
    fn paths_stay_inside_the_folder() {
        assert_eq!(contained_path("./assets/./hash.wasm").unwrap(), "assets/hash.wasm");
        assert_eq!(contained_path("a..b/..c").unwrap(), "a..b/..c");
        let long = "a".repeat(SHELF_PATH_MAX_BYTES + 1);
        for bad in [
            "",
            "..",
            "../x",
            "a/../../x",
            "/etc/passwd",
            "a//b",
            "a/",
            ".",
            "C:/x",
            "a\\..\\b",
            "a\0",
            &long,
        ] {
            assert_eq!(contained_path(bad).unwrap_err().code, Code::OutsideRoot, "{bad}");
        }
    }

    #[test]
    fn ids_are_names_that_every_interface_can_carry() {
        assert!(check_tool_id("diff-loose_2").is_ok());
        for bad in ["", "a b", "a/b", "ä", "a\u{202e}b", &"a".repeat(65)] {
            assert_eq!(check_tool_id(bad).unwrap_err().code, Code::BadToolName, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes: Vec<u8>) {
            let _ = Manifest::read(&bytes);
        }

        #[test]
        fn an_accepted_path_has_only_plain_segments(path in r"[./\\a:]{0,12}") {
            if let Ok(path) = contained_path(&path) {
                prop_assert!(path.split('/').all(|part| !part.is_empty() && part != "." && part != ".."));
            }
        }
    }
}
