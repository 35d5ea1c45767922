//! Files that are sent along with a task, because the remote does not have the folder that the task's text names them
//! of.
//!
//! They are put into a folder of the remote's root that is named after the call and after what was sent, so that no
//! file of anybody is overwritten, and the same call with other files is another call. The task's text then names them
//! there.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::abi::Abi;
use crate::digest::Digest;
use crate::refusal::{Code, Refusal, cut};
use crate::root::file_in_root;

/// Most files of one task.
pub const SENT_FILES_MAX: usize = 4;
/// The folder of a root that holds what was sent.
pub const SENT_FOLDER: &str = "sent";
/// The key of an argument that is read from a file.
const FILE: &str = "file";

/// Most bytes of a file: what the largest buffer of a tool takes.
#[must_use]
pub fn sent_file_max_bytes() -> usize {
    let buffers = Abi::ALL.into_iter().flat_map(|abi| abi.layout().inputs);
    buffers.map(|input| input.max_bytes as usize).max().unwrap_or_default()
}

/// A file on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentFile {
    /// Its path, as the task's text has it.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256, 64 lowercase hexadecimal digits.
    pub sha256: String,
    /// Its bytes in base64.
    pub content: String,
}

impl SentFile {
    /// The file at `path` with those bytes.
    #[must_use]
    pub fn of(path: &str, content: &[u8]) -> Self {
        Self {
            path: path.to_owned(),
            bytes: content.len() as u64,
            sha256: Digest::of(content).to_string(),
            content: STANDARD.encode(content),
        }
    }

    /// Its bytes, when they are what its size and digest say.
    ///
    /// # Errors
    /// [`Code::OverBudget`] and [`Code::FileMismatch`], and what [`file_in_root`] says of its path.
    pub fn open(&self) -> Result<Vec<u8>, Refusal> {
        file_in_root(&self.path)?;
        let most = sent_file_max_bytes();
        let shown = cut(&self.path, 120);
        if self.bytes > most as u64 || self.content.len() > most.div_ceil(3) * 4 {
            let why = format!("{shown:?} is sent with {} bytes, and {most} are taken", self.bytes);
            return Err(Refusal::new(Code::OverBudget, why));
        }
        let mismatch = |why: String| Refusal::new(Code::FileMismatch, format!("{shown:?}: {why}"));
        let bytes = STANDARD.decode(&self.content).map_err(|_| mismatch("it is not in base64".to_owned()))?;
        if bytes.len() as u64 != self.bytes {
            return Err(mismatch(format!("{} bytes came, and {} were announced", bytes.len(), self.bytes)));
        }
        let (found, said) = (Digest::of(&bytes), Digest::parse(&self.sha256));
        if said != Some(found) {
            let why = format!("its SHA-256 is {found}, and {} was announced", cut(&self.sha256, 64));
            return Err(mismatch(why));
        }
        Ok(bytes)
    }
}

/// The paths of the files that the text of a task for a tool names, each once, in their order.
///
/// # Errors
/// [`Code::OverBudget`] for too many, and what [`file_in_root`] says of a path.
pub fn named(task: &str) -> Result<Vec<String>, Refusal> {
    let mut paths: Vec<String> = Vec::new();
    if let Ok(Value::Object(arguments)) = serde_json::from_str(task) {
        for path in arguments.values().filter_map(file_of) {
            file_in_root(path)?;
            if !paths.iter().any(|known| known == path) {
                paths.push(path.to_owned());
            }
        }
    }
    if paths.len() > SENT_FILES_MAX {
        let why = format!("the task names {} files, and {SENT_FILES_MAX} are sent at most", paths.len());
        return Err(Refusal::new(Code::OverBudget, why));
    }
    Ok(paths)
}

/// What is to be written for a task that came with files, and its text with the places where they are then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The task's text.
    pub task: String,
    /// Paths in the root, and bytes.
    pub files: Vec<(String, Vec<u8>)>,
}

/// Checks the files that came with the call `call_id` of `owner`, and says where they go.
///
/// # Errors
/// [`Code::FileMismatch`] for one that the task does not name, names but did not send, or that came twice; and what
/// [`SentFile::open`] says.
pub fn place(task: &str, files: &[SentFile], owner: &str, call_id: &str) -> Result<Placed, Refusal> {
    let named = named(task)?;
    let mismatch =
        |path: &str, why: &str| Err(Refusal::new(Code::FileMismatch, format!("{:?} {why}", cut(path, 120))));
    let mut identity = format!("{owner}\0{call_id}");
    let mut opened: Vec<(&str, Vec<u8>)> = Vec::new();
    for file in files {
        if !named.contains(&file.path) {
            return mismatch(&file.path, "was sent, but the task does not name it");
        }
        if opened.iter().any(|(path, _)| *path == file.path) {
            return mismatch(&file.path, "was sent twice");
        }
        opened.push((&file.path, file.open()?));
    }
    for path in &named {
        let Some(file) = files.iter().find(|file| file.path == *path) else {
            return mismatch(path, "is named by the task, but was not sent");
        };
        identity.extend(["\0", path, "\0", &file.sha256]);
    }
    let folder = [SENT_FOLDER, "/", &Digest::of(identity.as_bytes()).prefix(), "/"].concat();
    let place = |path: &str| file_in_root(path).map(|path| [&*folder, &path].concat());
    let files = opened
        .into_iter()
        .map(|(path, bytes)| Ok((place(path)?, bytes)))
        .collect::<Result<Vec<_>, Refusal>>()?;
    let mut arguments: Value = serde_json::from_str(task).unwrap_or_default();
    for value in arguments.as_object_mut().into_iter().flat_map(serde_json::Map::values_mut) {
        if let Some(path) = file_of(value) {
            *value = serde_json::json!({ FILE: place(path)? });
        }
    }
    let task = if files.is_empty() { task.to_owned() } else { arguments.to_string() };
    Ok(Placed { task, files })
}

/// The path in `{"file": path}`, when that is all there is.
fn file_of(value: &Value) -> Option<&str> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    object.get(FILE)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: &str = r#"{"a": {"file": "./old.txt"}, "b": {"file": "n/new.txt"}, "out": "c.patch"}"#;

    fn files() -> [SentFile; 2] {
        [SentFile::of("./old.txt", b"x"), SentFile::of("n/new.txt", b"y")]
    }

    #[test]
    fn files_go_to_a_folder_of_their_call_and_content() {
        assert_eq!(named(TASK).unwrap(), ["./old.txt", "n/new.txt"]);
        let placed = place(TASK, &files(), "paired:a", "call").unwrap();
        let folder = placed.files[0].0.strip_suffix("old.txt").unwrap();
        assert!(folder.starts_with("sent/") && folder.len() == "sent/0123456789abcdef/".len());
        assert_eq!(placed.files[1], (format!("{folder}n/new.txt"), b"y".to_vec()));
        let task: Value = serde_json::from_str(&placed.task).unwrap();
        assert_eq!(task["a"]["file"], format!("{folder}old.txt"));
        assert_eq!(task["out"], "c.patch");
        assert_eq!(place(TASK, &files(), "paired:a", "call").unwrap(), placed, "a repeat is the same");
        let changed = [SentFile::of("./old.txt", b"z"), files()[1].clone()];
        for other in [
            place(TASK, &files(), "paired:b", "call"),
            place(TASK, &files(), "paired:a", "other"),
            place(TASK, &changed, "paired:a", "call"),
        ] {
            assert_ne!(other.unwrap().task, placed.task);
        }
    }

    #[test]
    fn a_task_without_files_stays_as_it_is() {
        for task in ["abc", "{broken", r#"{"input": "x"}"#, "[1]", ""] {
            assert_eq!(named(task).unwrap(), [""; 0]);
            assert_eq!(place(task, &[], "o", "c").unwrap(), Placed { task: task.into(), files: vec![] });
        }
    }

    #[test]
    fn what_does_not_match_is_refused() {
        let [old, new] = files();
        let code = |files: &[SentFile]| place(TASK, files, "o", "c").unwrap_err().code;
        assert_eq!(code(std::slice::from_ref(&old)), Code::FileMismatch, "one is missing");
        assert_eq!(code(&[old.clone(), old.clone(), new.clone()]), Code::FileMismatch, "twice");
        assert_eq!(
            code(&[old.clone(), new.clone(), SentFile::of("x", b"")]),
            Code::FileMismatch,
            "not named"
        );
        let with = |change: &dyn Fn(&mut SentFile)| {
            let mut bad = old.clone();
            change(&mut bad);
            code(&[bad, new.clone()])
        };
        assert_eq!(with(&|file| file.bytes = 2), Code::FileMismatch);
        assert_eq!(with(&|file| file.sha256 = new.sha256.clone()), Code::FileMismatch);
        assert_eq!(with(&|file| file.sha256 = file.sha256.to_uppercase()), Code::FileMismatch);
        assert_eq!(with(&|file| file.content = "*".into()), Code::FileMismatch);
        assert_eq!(with(&|file| file.content = "eg==".into()), Code::FileMismatch, "another byte");
        assert_eq!(with(&|file| file.bytes = u64::MAX), Code::OverBudget);
        let large = SentFile::of("./old.txt", &vec![0; sent_file_max_bytes() + 1]);
        assert_eq!(code(&[large, new.clone()]), Code::OverBudget);
        let outside = r#"{"a": {"file": "../x"}, "b": "y"}"#;
        assert_eq!(named(outside).unwrap_err().code, Code::OutsideRoot);
        let many: serde_json::Map<_, _> =
            (0..5).map(|n| (n.to_string(), serde_json::json!({ "file": n.to_string() }))).collect();
        assert_eq!(named(&Value::Object(many).to_string()).unwrap_err().code, Code::OverBudget);
    }
}
