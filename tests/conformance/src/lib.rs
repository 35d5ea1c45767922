//! The contract of the shelf as data: what each host must answer to each module, manifest and call.
//!
//! The cases live in `cases/*.json`; this crate turns them into bytes. Hosts are no dependency of it: each host's tests
//! run the cases against itself, so that two hosts cannot drift apart.

pub mod redaction;
pub mod suite;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use toolshelf_core::digest::Digest;

/// A module and what calling it must answer, at admission or in the call.
#[derive(Debug, Deserialize)]
pub struct ModuleCase {
    /// Name of the case.
    pub name: String,
    /// What is special about the module.
    pub about: String,
    /// The module.
    pub module: Source,
    /// The ABI that its entry names.
    #[serde(default = "buffer_abi_1")]
    pub abi: String,
    /// What must come.
    pub expect: Expected,
}

/// A folder and the verdicts that it must get.
#[derive(Debug, Deserialize)]
pub struct ManifestCase {
    /// Name of the case.
    pub name: String,
    /// What is special about the folder.
    pub about: String,
    /// The files. A manifest may say `{digest:FILE}` where the digest of a file of the folder belongs.
    pub files: BTreeMap<String, Source>,
    /// What must come.
    pub expect: Verdicts,
}

/// A call of a shipped tool.
#[derive(Debug, Deserialize)]
pub struct CallCase {
    /// Name of the case.
    pub name: String,
    /// Id of the tool.
    pub tool: String,
    /// The arguments.
    pub args: BTreeMap<String, Source>,
    /// What must come.
    pub expect: Expected,
}

/// What a call must answer: a refusal, or the fields of a success value.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Expected {
    /// Code of the refusal.
    pub refused: Option<String>,
    /// Evidence that its sentence must hold.
    pub why: Vec<String>,
    /// What the export returned.
    pub returned: Option<i64>,
    /// The output, in hexadecimal digits.
    pub output: Option<String>,
    /// Bytes of all inputs.
    pub input_bytes: Option<u64>,
    /// The decoded script.
    pub blocks: Option<Value>,
}

/// What admission must say: a refusal of the whole, or a word for each id: `admitted` or a code.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Verdicts {
    /// Code of the refusal of the whole.
    pub refused: Option<String>,
    /// Evidence that its sentence must hold.
    pub why: Vec<String>,
    /// The verdict for each id.
    pub tools: BTreeMap<String, String>,
}

/// Where bytes come from.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Source {
    text: Option<String>,
    wat: Option<String>,
    hex: Option<String>,
    /// A shipped module, which `truncate` cuts and `flip` changes: `[byte, bit]` each.
    shelf: Option<String>,
    truncate: Option<usize>,
    flip: Vec<(usize, u8)>,
    /// `[before, unit, count, after]`.
    repeat: Option<(String, String, usize, String)>,
    zeros: Option<usize>,
    /// Noise from this number, `bytes` long, behind a module's header.
    random: Option<u64>,
    bytes: usize,
}

fn buffer_abi_1() -> String {
    "buffer-abi/1".to_owned()
}

/// Cases of modules.
///
/// # Panics
/// When the data is not of the form that this crate reads.
#[must_use]
pub fn modules() -> Vec<ModuleCase> {
    read(include_str!("../cases/modules.json"))
}

/// Cases of folders.
///
/// # Panics
/// When the data is not of the form that this crate reads.
#[must_use]
pub fn manifests() -> Vec<ManifestCase> {
    read(include_str!("../cases/manifests.json"))
}

/// Cases of calls.
///
/// # Panics
/// When the data is not of the form that this crate reads.
#[must_use]
pub fn calls() -> Vec<CallCase> {
    read(include_str!("../cases/calls.json"))
}

fn read<T: for<'de> Deserialize<'de>>(text: &str) -> Vec<T> {
    serde_json::from_str(text).unwrap_or_else(|err| panic!("a conformance case cannot be read: {err}"))
}

impl Source {
    /// The bytes.
    ///
    /// # Panics
    /// When the source is not written as it should be.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        if let Some(text) = &self.text {
            text.clone().into_bytes()
        } else if let Some(wat) = &self.wat {
            wat::parse_str(wat).unwrap_or_else(|err| panic!("{err}"))
        } else if let Some(hex) = &self.hex {
            from_hex(hex)
        } else if let Some(name) = &self.shelf {
            let mut bytes = shipped(name).to_vec();
            bytes.truncate(self.truncate.unwrap_or(bytes.len()));
            self.flip.iter().for_each(|(at, bit)| bytes[*at] ^= 1 << bit);
            bytes
        } else if let Some((before, unit, count, after)) = &self.repeat {
            [before.as_str(), &unit.repeat(*count), after].concat().into_bytes()
        } else if let Some(zeros) = self.zeros {
            vec![0; zeros]
        } else if let Some(seed) = self.random {
            noise(seed, self.bytes)
        } else {
            panic!("a source of bytes without one: {self:?}")
        }
    }
}

impl ModuleCase {
    /// A folder whose only tool is this module, under the id `case`, with its true digest.
    #[must_use]
    pub fn folder(&self) -> BTreeMap<String, Vec<u8>> {
        let module = self.module.bytes();
        let entry = serde_json::json!({
            "id": "case", "wasm": "case.wasm", "digest": Digest::of(&module).to_string(), "abi": self.abi,
        });
        let manifest = serde_json::json!({ "name": self.name, "tools": [entry] }).to_string().into_bytes();
        BTreeMap::from([("manifest.json".to_owned(), manifest), ("case.wasm".to_owned(), module)])
    }
}

impl ManifestCase {
    /// The folder, with the digests written in.
    #[must_use]
    pub fn folder(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files: BTreeMap<_, _> =
            self.files.iter().map(|(path, source)| (path.clone(), source.bytes())).collect();
        let digests: Vec<_> = files
            .iter()
            .map(|(path, bytes)| (format!("{{digest:{path}}}"), Digest::of(bytes).to_string()))
            .collect();
        if let Some(manifest) = files.get_mut("manifest.json")
            && manifest.len() < 100_000
        {
            let text = String::from_utf8_lossy(manifest).into_owned();
            *manifest =
                digests.iter().fold(text, |text, (mark, digest)| text.replace(mark, digest)).into_bytes();
        }
        files
    }
}

/// The wire form of a call's answer or refusal, as any host gives it.
impl Expected {
    /// Says how `answer` differs from what must come; `None` when it does not.
    #[must_use]
    pub fn differs(&self, answer: &Value) -> Option<String> {
        if let Some(code) = &self.refused {
            let why = answer["why"].as_str().unwrap_or_default();
            if answer["ok"] != false || answer["refused"] != code.as_str() {
                return Some(format!("expected the refusal {code}, got {answer}"));
            }
            let missing = self.why.iter().find(|evidence| !why.contains(evidence.as_str()))?;
            return Some(format!("the refusal lacks {missing:?}: {why}"));
        }
        let fields = [
            ("ok", Some(Value::from(true))),
            ("returned", self.returned.map(Value::from)),
            ("output", self.output.clone().map(Value::from)),
            ("inputBytes", self.input_bytes.map(Value::from)),
            ("blocks", self.blocks.clone()),
        ];
        let wrong = fields.into_iter().find_map(|(name, wanted)| {
            wanted.filter(|wanted| answer[name] != *wanted).map(|wanted| (name, wanted))
        });
        wrong.map(|(name, wanted)| format!("expected {name} = {wanted}, got {answer}"))
    }
}

fn shipped(name: &str) -> &'static [u8] {
    match name {
        "hash.wasm" => include_bytes!("../../../www/shelf/hash.wasm"),
        "diff.wasm" => include_bytes!("../../../www/shelf/diff.wasm"),
        other => panic!("{other} is no shipped module"),
    }
}

fn from_hex(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// A xorshift generator: the same noise on every host.
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    b"\0asm\x01\0\0\0".iter().copied().chain(std::iter::repeat_with(&mut next)).take(bytes).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use toolshelf_core::refusal::Code;

    use super::*;

    #[test]
    fn cases_have_names_of_their_own_and_expect_codes_that_exist() {
        let codes: HashSet<_> = Code::ALL.iter().map(|code| code.as_str().to_owned()).collect();
        let (modules, manifests, calls) = (modules(), manifests(), calls());
        assert!(modules.len() + manifests.len() >= 30);
        let names: Vec<_> = (modules.iter().map(|case| &case.name))
            .chain(manifests.iter().map(|case| &case.name))
            .chain(calls.iter().map(|case| &case.name))
            .collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        let expected = modules.iter().filter_map(|case| case.expect.refused.clone());
        let expected = expected.chain(calls.iter().filter_map(|case| case.expect.refused.clone()));
        let verdicts = manifests
            .iter()
            .flat_map(|case| case.expect.tools.values().cloned().chain(case.expect.refused.clone()));
        for code in expected.chain(verdicts.filter(|verdict| verdict != "admitted")) {
            assert!(codes.contains(&code), "{code}");
        }
    }

    #[test]
    fn every_source_gives_bytes() {
        for case in modules() {
            assert!(case.folder().contains_key("case.wasm"), "{}", case.name);
        }
        for case in manifests() {
            assert_eq!(case.folder().len(), case.files.len(), "{}", case.name);
        }
    }
}
