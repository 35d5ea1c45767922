//! Tokens for agents, each with its tools. A token is told once, when it is made; kept is its hash.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;
use toolshelf_core::Digest;
use toolshelf_core::digest::to_hex;
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_sandbox::private;
use zeroize::Zeroizing;

use super::who::Who;
use crate::files::{self, Found};

/// The file, in the data folder.
const NAME: &str = "mcp-tokens.json";
/// Held by whoever writes it.
const WRITER: &str = "mcp-tokens.writer";
/// What every token begins with, so that one that was lost is known for what it is.
const PREFIX: &str = "tsmcp_";
const TOKEN_BYTES: usize = 32;
const FILE_MAX_BYTES: u64 = 4 * 1024 * 1024;
/// Most tokens.
const TOKENS_MAX: usize = 256;
const NAME_MAX_CHARS: usize = 64;
/// Most tools in a list.
const TOOLS_MAX: usize = 1_024;

/// What is kept of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kept {
    /// SHA-256 of the token. It has 256 random bits, so that a slow hash would protect nothing.
    sha256: Digest,
    /// Its tools; all where there is no list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<BTreeSet<String>>,
    /// When it was made, in milliseconds since the beginning of 1970.
    pub(crate) made_at_unix_ms: u64,
}

type Stamp = Option<(u64, u64, i64, i64)>;
type All = BTreeMap<String, Kept>;

/// The tokens of a data folder.
#[derive(Debug)]
pub(crate) struct Tokens {
    path: PathBuf,
    writer: PathBuf,
    read: RefCell<Option<(Stamp, All)>>,
}

impl Tokens {
    pub(crate) fn in_folder(data: &Path) -> Self {
        Self { path: data.join(NAME), writer: data.join(WRITER), read: RefCell::default() }
    }

    /// Whose token that is.
    ///
    /// # Errors
    /// When the file is of no use: nobody gets in by it then.
    pub(crate) fn who(&self, token: &str) -> Result<Option<Who>, Refusal> {
        if !token.starts_with(PREFIX) {
            return Ok(None);
        }
        let given = Digest::of(token.as_bytes()).to_string();
        let stamp = self.stamp();
        let known = self.read.borrow().as_ref().is_some_and(|(before, _)| *before == stamp);
        if !known {
            self.read.replace(Some((stamp, self.all()?)));
        }
        let read = self.read.borrow();
        let all = read.iter().flat_map(|(_, all)| all);
        // Every hash is compared, so that the time says nothing of which.
        Ok(all.fold(None, |found, (name, kept)| {
            let same = kept.sha256.to_string().as_bytes().ct_eq(given.as_bytes());
            if same.into() { Some(Who::agent(name, kept.tools.clone())) } else { found }
        }))
    }

    /// All tokens, by their names.
    ///
    /// # Errors
    /// When the file is of no use.
    pub(crate) fn all(&self) -> Result<All, Refusal> {
        match files::read(&self.path, FILE_MAX_BYTES) {
            Ok(Found::Whole(bytes)) => {
                serde_json::from_slice(&bytes).map_err(|err| self.damaged(&cut(&err.to_string(), 120)))
            }
            Ok(Found::TooLong(_)) => Err(self.damaged("it is too long")),
            Err(_) if !self.path.exists() => Ok(All::new()),
            Err(refusal) => Err(refusal),
        }
    }

    /// Makes a token, and tells it this one time.
    ///
    /// # Errors
    /// For a name that is taken or is none, too many tokens, or a file that cannot be written.
    pub(crate) fn add(
        &self,
        name: &str,
        tools: Option<BTreeSet<String>>,
    ) -> Result<Zeroizing<String>, Refusal> {
        check_name(name)?;
        if tools.as_ref().is_some_and(|tools| tools.len() > TOOLS_MAX) {
            return Err(Refusal::new(Code::OverBudget, format!("a token has at most {TOOLS_MAX} tools")));
        }
        let mut bytes = Zeroizing::new([0; TOKEN_BYTES]);
        private::fill_random(&mut *bytes).map_err(|err| self.unwritable(&err))?;
        let token = Zeroizing::new([PREFIX, &to_hex(&*bytes)].concat());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let kept = Kept {
            sha256: Digest::of(token.as_bytes()),
            tools,
            made_at_unix_ms: u64::try_from(now).unwrap_or(u64::MAX),
        };
        self.change(|all| {
            if all.contains_key(name) {
                let why = format!("there is a token {name:?}; remove it first, or choose another name");
                return Err(Refusal::new(Code::InvalidArgument, why));
            }
            if all.len() >= TOKENS_MAX {
                return Err(Refusal::new(
                    Code::OverBudget,
                    format!("there are {TOKENS_MAX} tokens; remove one first"),
                ));
            }
            all.insert(name.to_owned(), kept);
            Ok(())
        })?;
        Ok(token)
    }

    /// Forgets a token. Whoever has it is refused from the next request on.
    ///
    /// # Errors
    /// [`Code::KeyUnknown`], or a file that cannot be written.
    pub(crate) fn remove(&self, name: &str) -> Result<(), Refusal> {
        self.change(|all| match all.remove(name) {
            Some(_) => Ok(()),
            None => Err(Refusal::new(
                Code::KeyUnknown,
                format!("there is no token {:?}", cut(name, NAME_MAX_CHARS)),
            )),
        })
    }

    fn change(&self, change: impl FnOnce(&mut All) -> Result<(), Refusal>) -> Result<(), Refusal> {
        let hold = || {
            if let Some(folder) = self.writer.parent() {
                private::make_folder(folder)?;
            }
            let file = File::options().create(true).truncate(false).write(true).open(&self.writer)?;
            file.lock().map(|()| file)
        };
        let _held = hold().map_err(|err| self.unwritable(&err))?;
        let mut all = self.all()?;
        change(&mut all)?;
        let text = serde_json::to_vec_pretty(&all).unwrap_or_default();
        if !self.path.exists() {
            // Closed to others from its first moment on; the replacement keeps that.
            let made = File::options().create_new(true).write(true).mode(0o600).open(&self.path);
            made.and_then(|mut file| file.write_all(b"{}")).map_err(|err| self.unwritable(&err))?;
        }
        files::replace(&self.path, &text)
    }

    fn stamp(&self) -> Stamp {
        let about = fs::symlink_metadata(&self.path).ok()?;
        Some((about.ino(), about.size(), about.mtime(), about.mtime_nsec()))
    }

    fn damaged(&self, why: &str) -> Refusal {
        Refusal::new(Code::ConfigInvalid, format!("{} cannot be read: {why}", self.path.display()))
    }

    fn unwritable(&self, err: &io::Error) -> Refusal {
        Refusal::new(Code::StorageUnavailable, format!("{} cannot be written: {err}", self.path.display()))
    }
}

fn check_name(name: &str) -> Result<(), Refusal> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if (1..=NAME_MAX_CHARS).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(());
    }
    let why = format!(
        "{:?} is no name of a token: 1 to {NAME_MAX_CHARS} letters, digits, `.`, `_` and `-`",
        cut(name, 80)
    );
    Err(Refusal::new(Code::InvalidArgument, why))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_token_is_told_once_and_kept_as_its_hash() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = Tokens::in_folder(dir.path());
        let tools = BTreeSet::from(["hash".to_owned()]);
        let token = tokens.add("desk", Some(tools)).unwrap();
        let path = dir.path().join(NAME);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!fs::read_to_string(&path).unwrap().contains(&token[PREFIX.len()..]));
        let who = tokens.who(&token).unwrap().unwrap();
        assert!(who.may("hash") && !who.may("diff"));
        let other = tokens.add("other", None).unwrap();
        assert!(tokens.who(&other).unwrap().unwrap().may("diff"));
        assert_eq!(tokens.add("desk", None).unwrap_err().code, Code::InvalidArgument);
        assert_eq!(tokens.add("a b", None).unwrap_err().code, Code::InvalidArgument);
        tokens.remove("desk").unwrap();
        assert_eq!(tokens.who(&token).unwrap(), None);
        assert_eq!(tokens.remove("desk").unwrap_err().code, Code::KeyUnknown);
        for wrong in ["", PREFIX, "tsmcp_00", &token.to_uppercase()] {
            assert_eq!(tokens.who(wrong).unwrap(), None);
        }
    }

    #[test]
    fn a_damaged_file_lets_nobody_in() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = Tokens::in_folder(dir.path());
        let token = tokens.add("desk", None).unwrap();
        fs::write(dir.path().join(NAME), "{").unwrap();
        assert_eq!(tokens.who(&token).unwrap_err().code, Code::ConfigInvalid);
        assert!(tokens.add("other", None).is_err());
    }
}
