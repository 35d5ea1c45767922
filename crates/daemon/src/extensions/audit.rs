//! The audit log of extensions: who installed, granted, revoked or called what, and how it ended.
//!
//! `<data>/integrations/audit.jsonl`, one row in each line. An extension that is called in a loop does not flood it:
//! of each extension at most 60 rows a minute are kept, and one that says that more were left out.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use toolshelf_core::refusal::cut;
use toolshelf_sandbox::private;

/// Most rows of one extension in a minute.
pub(crate) const AUDIT_MAX_PER_MINUTE: u32 = 60;
/// Size at which the log is moved to `audit.1.jsonl`, in bytes.
pub(crate) const AUDIT_MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Longest detail of a row, in characters.
const DETAIL_MAX_CHARS: usize = 300;
const MINUTE_MS: u64 = 60_000;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AuditAction {
    Install,
    Uninstall,
    Lifecycle,
    KeyAdded,
    KeyRemoved,
    SecretSet,
    SecretRemoved,
    VaultKeyMoved,
    GrantIssued,
    GrantRevoked,
    Invoke,
    AuditSuppressed,
}

/// A row, without its time.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct AuditEvent<'e> {
    /// What happened.
    pub(crate) action: AuditAction,
    /// Who did it: a passport.
    pub(crate) actor: &'e str,
    /// Which extension; empty where none is concerned.
    pub(crate) pack_id: &'e str,
    /// In which version; empty where it is not known.
    pub(crate) version: &'e str,
    /// `ok`, or the code of the refusal.
    pub(crate) outcome: &'e str,
    /// What else there is to say.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) detail: &'e str,
}

#[derive(Serialize)]
struct Row<'r> {
    ts_unix_ms: u64,
    #[serde(flatten)]
    event: AuditEvent<'r>,
    /// Rows before this one that could not be written.
    #[serde(skip_serializing_if = "is_zero")]
    missed: u64,
}

/// The log of a data folder.
#[derive(Debug)]
pub(crate) struct AuditLog {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Of each extension: the minute, and its rows in it.
    minutes: HashMap<String, (u64, u32)>,
    missed: u64,
}

impl AuditLog {
    /// The log of the data folder `data`.
    pub(crate) fn of(data: &Path) -> Self {
        Self { path: data.join("integrations/audit.jsonl"), state: Mutex::default() }
    }

    /// Writes a row. What cannot be written does not stop what it tells of; the next row says how many are missing.
    pub(crate) fn note(&self, event: AuditEvent<'_>, now_unix_ms: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let event = match state.count(event.pack_id, now_unix_ms / MINUTE_MS) {
            count if count <= AUDIT_MAX_PER_MINUTE => event,
            count if count == AUDIT_MAX_PER_MINUTE + 1 => AuditEvent {
                action: AuditAction::AuditSuppressed,
                outcome: "suppressed",
                detail: "more rows of this extension in this minute are left out",
                ..event
            },
            _ => return,
        };
        let detail = cut(event.detail, DETAIL_MAX_CHARS);
        let row = Row {
            ts_unix_ms: now_unix_ms,
            event: AuditEvent { detail: &detail, ..event },
            missed: state.missed,
        };
        state.missed = match self.append(&row) {
            Ok(()) => 0,
            Err(_) => state.missed + 1,
        };
    }

    fn append(&self, row: &Row<'_>) -> io::Result<()> {
        let mut line = serde_json::to_vec(row)?;
        line.push(b'\n');
        if let Some(folder) = self.path.parent() {
            private::make_folder(folder)?;
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600);
        options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
        let mut file = options.open(&self.path)?;
        if file.metadata()?.len() >= AUDIT_MAX_BYTES {
            fs::rename(&self.path, self.path.with_extension("1.jsonl"))?;
            file = options.open(&self.path)?;
        }
        // One write, so that rows of several programs do not mix.
        file.write_all(&line)
    }
}

impl State {
    /// Counts a row of the minute, and says how many there are with it.
    fn count(&mut self, pack: &str, minute: u64) -> u32 {
        if !self.minutes.contains_key(pack) {
            self.minutes.retain(|_, (of, _)| *of == minute);
            self.minutes.insert(pack.to_owned(), (minute, 0));
        }
        let Some((of, rows)) = self.minutes.get_mut(pack) else { return 1 };
        if *of != minute {
            (*of, *rows) = (minute, 0);
        }
        *rows = rows.saturating_add(1);
        *rows
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn event(pack_id: &str) -> AuditEvent<'_> {
        let action = AuditAction::GrantIssued;
        AuditEvent { action, actor: "p_alice", pack_id, version: "1", outcome: "ok", detail: "" }
    }

    fn rows(log: &AuditLog) -> Vec<Value> {
        let text = fs::read_to_string(&log.path).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_row_has_its_wire_form() {
        let dir = tempfile::tempdir().unwrap();
        let log = AuditLog::of(dir.path());
        log.note(event("ext.a"), 7);
        assert_eq!(
            fs::read_to_string(dir.path().join("integrations/audit.jsonl")).unwrap(),
            "{\"ts_unix_ms\":7,\"action\":\"grant_issued\",\"actor\":\"p_alice\",\"pack_id\":\"ext.a\",\"version\":\"1\",\
             \"outcome\":\"ok\"}\n"
        );
    }

    #[test]
    fn a_flood_is_held_and_said_once_and_others_are_not_touched() {
        let dir = tempfile::tempdir().unwrap();
        let log = AuditLog::of(dir.path());
        for at in 0..100 {
            log.note(event("ext.a"), at);
        }
        log.note(event("ext.b"), 100);
        let rows_of = |pack: &str| rows(&log).iter().filter(|row| row["pack_id"] == pack).count();
        assert_eq!((rows_of("ext.a"), rows_of("ext.b")), (61, 1));
        assert_eq!(rows(&log)[60]["action"], "audit_suppressed");
        log.note(event("ext.a"), MINUTE_MS);
        assert_eq!(rows_of("ext.a"), 62);
    }

    #[test]
    fn rows_that_could_not_be_written_are_counted_in_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let log = AuditLog::of(dir.path());
        fs::write(dir.path().join("integrations"), "a file where the folder should be").unwrap();
        log.note(event("ext.a"), 1);
        log.note(event("ext.a"), 2);
        fs::remove_file(dir.path().join("integrations")).unwrap();
        log.note(event("ext.a"), 3);
        log.note(event("ext.a"), 4);
        let rows = rows(&log);
        assert_eq!(rows.len(), 2);
        assert_eq!((&rows[0]["missed"], &rows[1]["missed"]), (&2.into(), &Value::Null));
    }

    #[test]
    fn hostile_texts_make_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let log = AuditLog::of(dir.path());
        let long = "x\n".repeat(10_000);
        log.note(AuditEvent { actor: "a\nb", detail: &long, ..event("ext.a") }, 1);
        assert_eq!(rows(&log).len(), 1);
        assert!(rows(&log)[0]["detail"].as_str().unwrap().len() < 400);
    }

    #[test]
    fn the_minutes_that_are_remembered_do_not_grow() {
        let mut state = State::default();
        for number in 0..10_000 {
            state.count(&format!("ext.{number}"), number);
        }
        assert_eq!(state.minutes.len(), 1);
    }
}
