//! The token: what the page, programs and people show to get in.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use subtle::ConstantTimeEq as _;
use toolshelf_core::digest::to_hex;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_sandbox::private;
use zeroize::Zeroizing;

use crate::settings::TOKEN;

/// The file of the token, in the data folder.
pub(crate) const TOKEN_FILE: &str = "token";
const TOKEN_BYTES: usize = 32;
/// A token that a person has set is at least so long; shorter ones can be guessed.
const TOKEN_MIN_CHARS: usize = 16;
const TOKEN_MAX_CHARS: usize = 512;
/// The longest token with the end of its line.
const FILE_MAX_BYTES: usize = TOKEN_MAX_CHARS + 2;

/// The token. It is never printed but in the link for its owner.
#[derive(Clone)]
pub(crate) struct Token {
    text: String,
}

impl Token {
    /// The token of the setting; else the one in the data folder, which is made at the first start. With the file that it
    /// is in.
    ///
    /// # Errors
    /// [`Code::ConfigInvalid`] for a token that can be guessed or that others can read,
    /// [`Code::StorageUnavailable`] when it can be neither read nor written.
    pub(crate) fn of_settings(data: &Path) -> Result<(Self, Option<PathBuf>), Refusal> {
        if let Some((name, value)) = TOKEN.value() {
            let text = value.into_string().unwrap_or_default();
            let token = Self::of_text(&text).ok_or_else(|| unfit(&format!("`{name}`")))?;
            return Ok((token, None));
        }
        let path = data.join(TOKEN_FILE);
        let text = read_or_make(&path)?;
        let token =
            Self::of_text(text.trim()).ok_or_else(|| unfit(&format!("the token in {}", path.display())))?;
        Ok((token, Some(path)))
    }

    /// A token of that text, unless it is too short or not made of visible characters.
    pub(crate) fn of_text(text: &str) -> Option<Self> {
        let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        let fit = visible && (TOKEN_MIN_CHARS..=TOKEN_MAX_CHARS).contains(&text.len());
        fit.then(|| Self { text: text.to_owned() })
    }

    /// Whether that is the token. Takes as long for every text of its length.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.text.as_bytes().ct_eq(text.as_bytes()).into()
    }

    /// The text, for the link and for what takes secrets out of logs.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

fn unfit(what: &str) -> Refusal {
    let why = format!("{what} must be {TOKEN_MIN_CHARS} to {TOKEN_MAX_CHARS} visible ASCII characters");
    Refusal::new(Code::ConfigInvalid, why)
}

/// The text of the file, which is made where it is missing. What others could read or have chosen is no secret.
fn read_or_make(path: &Path) -> Result<String, Refusal> {
    let bytes = private::secret(path, FILE_MAX_BYTES, make).map_err(|err| {
        let code = match err.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidData => Code::ConfigInvalid,
            _ => Code::StorageUnavailable,
        };
        Refusal::new(code, format!("the token in {} cannot be had: {err}", path.display()))
    })?;
    // What is no text is no token either, as the caller finds.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn make() -> io::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = [0; TOKEN_BYTES];
    private::fill_random(&mut bytes)?;
    Ok(Zeroizing::new(format!("{}\n", to_hex(&bytes)).into_bytes()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_token_is_made_once_and_closed_to_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(TOKEN_FILE);
        let made = read_or_make(&path).unwrap();
        assert_eq!(made.trim().len(), 2 * TOKEN_BYTES);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(read_or_make(&path).unwrap().trim(), made.trim());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_token_that_others_can_read_or_choose_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(TOKEN_FILE);
        fs::write(&path, "0123456789abcdef").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(read_or_make(&path).unwrap_err().code, Code::ConfigInvalid);
        let link = dir.path().join("link");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&path, &link).unwrap();
        assert_eq!(read_or_make(&link).unwrap_err().code, Code::ConfigInvalid);
        assert_eq!(read_or_make(dir.path()).unwrap_err().code, Code::ConfigInvalid);
    }

    #[test]
    fn a_token_is_compared_whole() {
        let token = Token::of_text("0123456789abcdef").unwrap();
        assert!(token.is("0123456789abcdef"));
        for wrong in ["", "0123456789abcde", "0123456789abcdeg", "0123456789abcdef0"] {
            assert!(!token.is(wrong), "{wrong}");
        }
        assert!(Token::of_text("short").is_none() && Token::of_text("0123456789 abcdef").is_none());
        assert_eq!(format!("{token:?}"), "Token");
    }
}
