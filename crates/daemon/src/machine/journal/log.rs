//! One log: what is known of it, catching up with what others have written, and writing.
//!
//! Of a task that goes on its reducer is kept; of one that has ended, where its lines are. Catching up reads what is new
//! and nothing else. A line that cannot be read, or an entry that cannot follow, and the log is not believed any more:
//! nothing is read from it and nothing written.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::de::Error as _;
use serde_json::Value;
use toolshelf_core::address::Sealed;
use toolshelf_core::task::listing::Moment;
use toolshelf_core::task::{LogEntry, ReduceFault, Reducer, TaskRecord};
use toolshelf_host::task_ports::{CallKey, Draft};
use toolshelf_sandbox::folder::Identity;

use super::Writer;
use super::file::{Access, LogFault, LogFile, LogPlace};
use super::index::{Index, RootNumber};

/// Longest line with its end, in bytes. An answer and a partial answer of 64 KiB each, every byte of them escaped, are below it.
const LINE_MAX_BYTES: usize = 2 * 1024 * 1024;
/// So much is read at a time.
const CHUNK_BYTES: usize = 64 * 1024;
/// So much of what was read last is compared each time, to notice a log that was written over.
const TAIL_BYTES: usize = 64;

/// A task among others: the MAC of its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TaskKey(pub(super) [u8; 32]);

impl TaskKey {
    /// The key of the task at `address`; `None` when that is no address.
    pub(super) fn of(address: &str) -> Option<Self> {
        Sealed::split(address).ok().map(|sealed| Self(sealed.mac))
    }
}

/// Where a line is: its first byte, and its bytes without the end of the line.
type Span = (u64, usize);

/// One log.
#[derive(Debug)]
pub(super) struct Log {
    place: LogPlace,
    /// Its root's number and containment string.
    root: RootNumber,
    contained: String,
    writer: Writer,
    known: Known,
}

/// What was read of a log.
#[derive(Debug, Default)]
struct Known {
    root_identity: Option<Identity>,
    identity: Option<Identity>,
    /// All lines before this byte were taken.
    end: u64,
    /// The last bytes before `end`.
    tail: Vec<u8>,
    last_seq: u64,
    last_position: u64,
    lines: HashMap<TaskKey, Vec<Span>>,
    live: HashMap<TaskKey, Reducer>,
    /// Entries that were found, not written, by this process.
    found: u64,
    /// Bytes that were read from the file.
    bytes_read: u64,
}

impl Log {
    /// The log of the root in the folder `path`, whose containment string is `contained`. Nothing is opened yet.
    pub(super) fn new(path: PathBuf, root: RootNumber, contained: String, writer: &Writer) -> Self {
        let place = LogPlace::new(path, &contained, &writer.instance);
        Self { place, root, contained, writer: writer.clone(), known: Known::default() }
    }

    /// Entries that other processes have written and this one has found.
    pub(super) fn found(&self) -> u64 {
        self.known.found
    }

    #[cfg(test)]
    pub(super) fn bytes_read(&self) -> u64 {
        self.known.bytes_read
    }

    /// Reads what is new.
    pub(super) fn catch_up(&mut self, index: &Mutex<Index>) -> Result<(), LogFault> {
        self.open(Access::Read, index).map(drop)
    }

    /// Writes the entry that `draft` is. Answers the record as it is from now on.
    pub(super) fn append(&mut self, draft: &Draft, index: &Mutex<Index>) -> Result<TaskRecord, LogFault> {
        let address = &draft.event.address;
        let key = TaskKey::of(address).ok_or(ReduceFault::InvalidCreation)?;
        // Only a creation makes a log.
        let access = if draft.event.created.is_some() { Access::Make } else { Access::Write };
        let Some(mut log) = self.open(access, index)? else {
            return Err(ReduceFault::NoLiveAdmission.into());
        };
        self.cut_off_unfinished(&mut log)?;
        let new = Reducer::new(&**address);
        let reducer = match self.known.live.get(&key) {
            Some(reducer) => reducer,
            None if self.known.lines.contains_key(&key) => return Err(ReduceFault::NoLiveAdmission.into()),
            None => &new,
        };
        let entry = draft.entry(reducer, self.known.last_seq + 1)?;
        self.check_writer(&entry)?;
        let mut line = serde_json::to_vec(&entry).map_err(|err| LogFault::Write(err.to_string()))?;
        line.push(b'\n');
        if line.len() > LINE_MAX_BYTES {
            return Err(LogFault::TooLong);
        }
        let at = log.size;
        log.append(&line)?;
        self.known.moved_to(log.size, &line);
        Ok(self.take(&entry, (at, line.len() - 1), index)?)
    }

    /// What stands behind the last whole line was never finished, and nobody writes now: it is of a process that is
    /// gone, and nobody was told that it was written.
    fn cut_off_unfinished(&self, log: &mut LogFile) -> Result<(), LogFault> {
        if log.size > self.known.end {
            let (log_file, bytes) = (self.place.path(), log.size - self.known.end);
            tracing::warn!(log = %log_file.display(), bytes, "an entry that was never finished is cut off");
            log.cut(self.known.end)?;
        }
        Ok(())
    }

    /// The record of a task.
    pub(super) fn record(
        &mut self,
        key: TaskKey,
        index: &Mutex<Index>,
    ) -> Result<Option<TaskRecord>, LogFault> {
        let Some(log) = self.open(Access::Read, index)? else { return Ok(None) };
        if let Some(reducer) = self.known.live.get(&key) {
            return Ok(reducer.record().cloned());
        }
        let mut reducer: Option<Reducer> = None;
        for entry in self.entries(&log, key)? {
            reducer.get_or_insert_with(|| Reducer::new(&*entry.task.address)).apply(&entry)?;
        }
        Ok(reducer.and_then(Reducer::into_record))
    }

    /// Every change of a task's state, in order.
    pub(super) fn moments(&mut self, key: TaskKey, index: &Mutex<Index>) -> Result<Vec<Moment>, LogFault> {
        let Some(log) = self.open(Access::Read, index)? else { return Ok(Vec::new()) };
        let entries = self.entries(&log, key)?.into_iter();
        let moment =
            |entry: LogEntry| Moment { at: entry.at, state: entry.task.state, reason: entry.task.reason };
        Ok(entries.map(moment).collect())
    }

    /// The entries of one task, read again.
    fn entries(&mut self, log: &LogFile, key: TaskKey) -> Result<Vec<LogEntry>, LogFault> {
        let spans = self.known.lines.get(&key).cloned().unwrap_or_default();
        let mut entries = Vec::with_capacity(spans.len());
        for (at, bytes) in spans {
            let line = self.known.read(log, at, bytes)?;
            let fault = |why: String| LogFault::Line(at, why);
            let entry: LogEntry = serde_json::from_slice(&line).map_err(|err| fault(err.to_string()))?;
            if TaskKey::of(&entry.task.address) != Some(key) {
                return Err(fault("it is of another task than before".to_owned()));
            }
            entries.push(entry);
        }
        Ok(entries)
    }

    /// Opens and locks the log, and reads what is new.
    fn open(&mut self, access: Access, index: &Mutex<Index>) -> Result<Option<LogFile>, LogFault> {
        let opened = self.place.open(access)?;
        if self.known.root_identity.is_some_and(|known| known != opened.root_identity) {
            // The folder is another one, and so is its log: what was known is of the one before.
            lock(index).forget(self.root);
            self.known = Known::default();
        }
        self.known.root_identity = Some(opened.root_identity);
        let Some(log) = opened.log else {
            return if self.known.identity.is_some() { Err(LogFault::Replaced) } else { Ok(None) };
        };
        // A log that was removed and made again by this very opening has nothing of what was known.
        if self.known.identity.is_some_and(|known| known != log.identity) || log.size < self.known.end {
            return Err(LogFault::Replaced);
        }
        let tail_at = self.known.end - self.known.tail.len() as u64;
        if self.known.read(&log, tail_at, self.known.tail.len())? != self.known.tail {
            return Err(LogFault::Replaced);
        }
        self.known.identity = Some(log.identity);
        self.read_new(&log, index)?;
        Ok(Some(log))
    }

    /// Takes every whole line behind the known end.
    fn read_new(&mut self, log: &LogFile, index: &Mutex<Index>) -> Result<(), LogFault> {
        let mut unfinished: Vec<u8> = Vec::new();
        let mut at = self.known.end;
        while at < log.size {
            let most = CHUNK_BYTES.min((log.size - at) as usize);
            let chunk = self.known.read(log, at, most)?;
            if chunk.is_empty() {
                break;
            }
            at += chunk.len() as u64;
            for part in chunk.split_inclusive(|byte| *byte == b'\n') {
                unfinished.extend_from_slice(part);
                if unfinished.len() > LINE_MAX_BYTES {
                    return Err(LogFault::Line(self.known.end, "it is too long".to_owned()));
                }
                if unfinished.ends_with(b"\n") {
                    let line = std::mem::take(&mut unfinished);
                    self.take_line(&line, index)?;
                }
            }
        }
        Ok(())
    }

    /// Takes one line with its end.
    fn take_line(&mut self, line: &[u8], index: &Mutex<Index>) -> Result<(), LogFault> {
        let at = self.known.end;
        let fault = |why: String| LogFault::Line(at, why);
        let json = &line[..line.len() - 1];
        match read_entry(json).map_err(|err| fault(err.to_string()))? {
            Line::Task(entry) => {
                self.check_writer(&entry).map_err(|err| fault(err.to_string()))?;
                if entry.seq <= self.known.last_seq {
                    return Err(fault(ReduceFault::DuplicatePosition.to_string()));
                }
                self.take(&entry, (at, json.len()), index).map_err(|err| fault(err.to_string()))?;
                self.known.found += 1;
            }
            Line::Other(seq) => self.known.last_seq = self.known.last_seq.max(seq),
        }
        self.known.moved_to(at + line.len() as u64, line);
        Ok(())
    }

    /// Takes an entry that stands in the log.
    fn take(
        &mut self,
        entry: &LogEntry,
        span: Span,
        index: &Mutex<Index>,
    ) -> Result<TaskRecord, ReduceFault> {
        let key = TaskKey::of(&entry.task.address).ok_or(ReduceFault::InvalidCreation)?;
        let known = &mut self.known;
        if entry.task.created.is_some() {
            if known.lines.contains_key(&key) {
                return Err(ReduceFault::InvalidCreation);
            }
            let mut reducer = Reducer::new(&*entry.task.address);
            reducer.apply(entry)?;
            known.live.insert(key, reducer);
        } else {
            known.live.get_mut(&key).ok_or(ReduceFault::NoLiveAdmission)?.apply(entry)?;
        }
        let reducer = known.live.get(&key).and_then(|reducer| reducer.record());
        let record = reducer.cloned().ok_or(ReduceFault::NoLiveAdmission)?;
        if entry.task.created.is_some() {
            let Writer { environment, key_epoch, .. } = &self.writer;
            let call = CallKey::new(environment, key_epoch, &record.owner, &record.call_id);
            let position = lock(index).insert(self.root, key, &call, &record.created_at, known.last_position);
            known.last_position = position;
        }
        if record.state.is_terminal() {
            known.live.remove(&key);
        }
        known.lines.entry(key).or_default().push(span);
        known.last_seq = entry.seq;
        Ok(record)
    }

    /// A log has one writer and one root.
    fn check_writer(&self, entry: &LogEntry) -> Result<(), ReduceFault> {
        if entry.instance == self.writer.instance && entry.root == self.contained {
            Ok(())
        } else {
            Err(ReduceFault::WriterMismatch)
        }
    }
}

impl Known {
    fn read(&mut self, log: &LogFile, at: u64, most: usize) -> Result<Vec<u8>, LogFault> {
        let bytes = log.read_at(at, most)?;
        self.bytes_read += bytes.len() as u64;
        Ok(bytes)
    }

    /// All before `end` was taken; `line` is the last of it.
    fn moved_to(&mut self, end: u64, line: &[u8]) {
        self.end = end;
        self.tail.clear();
        self.tail.extend_from_slice(&line[line.len().saturating_sub(TAIL_BYTES)..]);
    }
}

/// A line of the log.
enum Line {
    Task(Box<LogEntry>),
    /// An entry of another kind, at that position.
    Other(u64),
}

fn read_entry(json: &[u8]) -> Result<Line, serde_json::Error> {
    // Nearly all are of tasks.
    if let Ok(entry) = serde_json::from_slice(json) {
        return Ok(Line::Task(entry));
    }
    let value: Value = serde_json::from_slice(json)?;
    if !value.get("kind").is_some_and(Value::is_string) {
        return Err(serde_json::Error::custom("it is no entry of any kind"));
    }
    let seq = value.get("seq").and_then(Value::as_u64).unwrap_or_default();
    Ok(match LogEntry::read(value)? {
        Some(entry) => Line::Task(Box::new(entry)),
        None => Line::Other(seq),
    })
}

fn lock(index: &Mutex<Index>) -> MutexGuard<'_, Index> {
    index.lock().unwrap_or_else(PoisonError::into_inner)
}
