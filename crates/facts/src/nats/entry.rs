//! What stands in the bucket: one line of JSON, and the value of the fact behind it as it is.

use serde::{Deserialize, Serialize};

use crate::fact::{Fact, Moment};
use crate::rules::{id_of, seq_of};

/// One entry of the log.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Entry {
    /// A version. One of several that are stored at once counts from the entry on that says that all are there.
    Version {
        /// The version.
        fact: Box<Fact>,
        /// The number of the first of them.
        group: Option<u64>,
    },
    /// All versions from that number on are there.
    Complete {
        /// The number of the first of them.
        group: u64,
    },
    /// Versions that are deleted.
    Deleted {
        /// Which.
        gone: Vec<Gone>,
        /// The number that the next version gets.
        next_seq: u64,
        /// When the last version was stored.
        stored_at: Moment,
    },
}

/// A version that is deleted, without anything of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Gone {
    /// Its number.
    pub(super) seq: u64,
    /// The id of the version that it came after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<String>,
}

/// The line.
#[derive(Serialize, Deserialize)]
struct Line {
    /// Which write it is of.
    writer: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fact: Option<Box<Fact>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gone: Vec<Gone>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    progress: Option<(u64, u64)>,
}

impl Entry {
    /// The entries that `planned` become.
    pub(super) fn of_versions(planned: &[Fact]) -> Vec<Self> {
        let first = planned.first().and_then(|fact| seq_of(&fact.fact_id));
        let group = first.filter(|_| planned.len() > 1);
        let versions = planned.iter().map(|fact| Self::Version { fact: Box::new(fact.clone()), group });
        versions.chain(group.map(|group| Self::Complete { group })).collect()
    }

    /// The key below which it stands.
    pub(super) fn key(&self) -> String {
        let (kind, seq) = match self {
            Self::Version { fact, .. } => ("v", seq_of(&fact.fact_id).unwrap_or_default()),
            Self::Complete { group } => ("c", *group),
            Self::Deleted { gone, .. } => ("d", gone.first().map_or(0, |gone| gone.seq)),
        };
        format!("{kind}.{}", id_of(seq))
    }

    /// Its bytes. The value of a fact comes last and as it is: JSON could make it six times as long.
    pub(super) fn bytes(&self, writer: u64) -> Vec<u8> {
        let mut line = Line { writer, fact: None, group: None, gone: Vec::new(), progress: None };
        let mut value = "";
        match self {
            Self::Version { fact, group } => {
                value = &fact.value;
                line.fact = Some(Box::new(Fact { value: String::new(), ..(**fact).clone() }));
                line.group = *group;
            }
            Self::Complete { group } => line.group = Some(*group),
            Self::Deleted { gone, next_seq, stored_at } => {
                line.gone.clone_from(gone);
                line.progress = Some((*next_seq, stored_at.unix_ms()));
            }
        }
        // Nothing in it can fail to be written.
        let mut bytes = serde_json::to_vec(&line).unwrap_or_default();
        bytes.push(b'\n');
        bytes.extend_from_slice(value.as_bytes());
        bytes
    }

    /// Reads an entry, and which write it is of; `None` for what no store has written.
    pub(super) fn read(bytes: &[u8]) -> Option<(Self, u64)> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let Line { writer, fact, group, gone, progress } = serde_json::from_slice(&bytes[..end]).ok()?;
        let entry = match (fact, group, progress) {
            (Some(mut fact), group, None) => {
                fact.value = String::from_utf8(bytes[end + 1..].to_vec()).ok()?;
                Self::Version { fact, group }
            }
            (None, Some(group), None) => Self::Complete { group },
            (None, None, Some((next_seq, stored_at))) => {
                Self::Deleted { gone, next_seq, stored_at: Moment::from_unix_ms(stored_at) }
            }
            _ => return None,
        };
        Some((entry, writer))
    }
}
