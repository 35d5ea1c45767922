//! How extensions and facts say no: a problem document, with what a failed call has used and logged.

use serde_json::Value;
use toolshelf_core::extension::envelope::HostLogEntry;
use toolshelf_core::refusal::{Code, Refusal};

use super::client::{Client, invalid, unreachable};
use super::wire::{self, Read};

/// What a failed call has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remains {
    /// Names the call.
    pub request_id: String,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
    /// How much fuel it used.
    pub fuel_consumed: u64,
    /// What it logged.
    pub log: Vec<HostLogEntry>,
}

/// A "no".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The HTTP status; 0 where there was no answer.
    pub status: u16,
    /// The refusal: its code, and what happened here.
    pub refusal: Refusal,
    /// What the call has left, where it had begun.
    pub remains: Option<Remains>,
    /// After how many milliseconds the same may be asked again.
    pub retry_after_ms: Option<u64>,
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self { status: 0, refusal, remains: None, retry_after_ms: None }
    }
}

impl Problem {
    /// Reads the "no" in an answer; nothing where it is none that a companion says.
    fn read(status: u16, value: &Value) -> Option<Self> {
        if let Some(refusal) = wire::refusal(value) {
            return Some(Self { status, ..refusal.into() });
        }
        let code = value.get("code").and_then(Value::as_str).and_then(Code::parse);
        let why = wire::maybe_text(value, "detail").or_else(|| wire::maybe_text(value, "title"))?;
        Some(Self {
            status,
            refusal: Refusal::new(code.unwrap_or(Code::InvalidFrame), why),
            remains: remains(value).ok(),
            retry_after_ms: value.get("retry_after_ms").and_then(Value::as_u64),
        })
    }
}

fn remains(value: &Value) -> Read<Remains> {
    Ok(Remains {
        request_id: wire::text(value, "request_id")?,
        elapsed_ms: wire::whole(value, "elapsed_ms")?,
        fuel_consumed: wire::whole(value, "fuel_consumed")?,
        log: wire::list(value, "log", log_entry)?,
    })
}

pub(super) fn log_entry(value: &Value) -> Read<HostLogEntry> {
    Ok(HostLogEntry {
        level: wire::text(value, "level")?,
        message: wire::text(value, "message")?,
        at_unix_ms: wire::whole(value, "at_unix_ms")?,
    })
}

/// What was asked for, or the problem; nothing (`null`) for an answer without a body.
pub(super) fn answered(status: u16, bytes: &[u8]) -> Result<Value, Problem> {
    let value = match bytes.is_empty() {
        true => Ok(Value::Null),
        false => serde_json::from_slice(bytes),
    };
    if (200..300).contains(&status) {
        return value.map_err(|err| invalid(&err.to_string()).into());
    }
    let problem = value.ok().as_ref().and_then(|value| Problem::read(status, value));
    Err(problem.unwrap_or_else(|| {
        let status = status.to_string();
        unreachable(&["what serves this page is none: it answers with status ", &status].concat()).into()
    }))
}

/// Asks, and reads what is answered.
pub(super) async fn ask(
    client: &Client,
    method: &str,
    path: &str,
    body: Option<&Value>,
    patience_ms: u32,
) -> Result<Value, Problem> {
    let (status, bytes) = client.send(method, path, body.map(Value::to_string), patience_ms).await?;
    answered(status, &bytes)
}

/// What was read of an answer, or the problem that names the field.
pub(super) fn known<T>(read: Read<T>) -> Result<T, Problem> {
    Ok(super::client::known(read)?)
}

/// A part of a path, or a value of a query, with everything escaped that could mean something there.
pub(super) fn escaped(text: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push('%');
            escaped.push(char::from(DIGITS[usize::from(byte >> 4)]));
            escaped.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolshelf_core::extension::ExtensionError;
    use toolshelf_core::problem::{Problem as Document, ProblemKind};

    use super::*;

    #[test]
    fn a_problem_has_its_status_code_and_what_the_call_has_left() {
        let error = ExtensionError::FuelExhausted;
        let mut document = json!(Document::new(error.kind(), error.to_string()));
        document["code"] = error.code().as_str().into();
        let problem = answered(408, document.to_string().as_bytes()).unwrap_err();
        assert_eq!((problem.status, problem.refusal.why.as_str()), (408, "EXT_WASM_FUEL_EXHAUSTED"));
        assert_eq!((problem.refusal.code, problem.remains), (error.code(), None));
        let log = vec![HostLogEntry { level: "info".into(), message: "m".into(), at_unix_ms: 1 }];
        for (name, value) in [
            ("request_id", json!("req-1")),
            ("elapsed_ms", json!(7)),
            ("fuel_consumed", json!(9)),
            ("log", json!(log)),
            ("retry_after_ms", json!(30)),
        ] {
            document[name] = value;
        }
        let problem = answered(408, document.to_string().as_bytes()).unwrap_err();
        let remains = Remains { request_id: "req-1".into(), elapsed_ms: 7, fuel_consumed: 9, log };
        assert_eq!((problem.remains, problem.retry_after_ms), (Some(remains), Some(30)));
    }

    #[test]
    fn every_no_is_read_and_what_is_none_is_told() {
        let code =
            |status, text: &str| answered(status, text.as_bytes()).map_err(|no| (no.status, no.refusal.code));
        assert_eq!(code(204, ""), Ok(Value::Null));
        assert_eq!(code(200, "<html>"), Err((0, Code::InvalidFrame)));
        let refused = r#"{"ok":false,"refused":"bearer-refused","why":"no token"}"#;
        assert_eq!(code(401, refused), Err((401, Code::BearerRefused)));
        assert_eq!(code(404, "<html>"), Err((0, Code::MachineUnreachable)));
        let bare = json!(Document::new(ProblemKind::Conflict, "taken")).to_string();
        assert_eq!(code(409, &bare), Err((409, Code::InvalidFrame)));
    }

    #[test]
    fn nothing_in_a_path_means_anything() {
        assert_eq!(escaped("a::b/c?d#é%"), "a%3A%3Ab%2Fc%3Fd%23%C3%A9%25");
        assert_eq!(escaped("ext.a-b_c~1"), "ext.a-b_c~1");
    }
}
