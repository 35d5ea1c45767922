//! The folder that a task works in: which kinds there are, who can reach them, and which files inside are allowed.
//!
//! Source: the seed of tasks, section 2.1, and the reference facts, B1 and B6.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::manifest::contained_path;
use crate::placement::Placement;
use crate::refusal::{Code, Refusal, cut};

/// Folder inside a machine's root that holds the journal. No tool and no executor touches it.
pub const AUDIT_FOLDER: &str = ".audit";
/// Longest path, id or label in a descriptor, in bytes.
const FIELD_MAX_BYTES: usize = 4_096;

/// A root, on the wire `{kind: "opfs", path}`, `{kind: "handle", id, label?}` or `{kind: "machine", path, environment?}`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum RootDescriptor {
    /// A folder of the page's origin private file system.
    Opfs {
        /// Its path there.
        path: String,
    },
    /// A folder that a person picked in the browser.
    Handle {
        /// Under which the page keeps the handle.
        id: String,
        /// What the page calls it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
    },
    /// A folder of a machine.
    Machine {
        /// Its path there.
        path: String,
        /// The environment that the machine is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        environment: Option<String>,
    },
}

/// Why a root cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RootFault {
    /// Nothing, or nothing that describes a root.
    #[error("no root is declared: {0}")]
    NotDeclared(String),
    /// A root of another placement.
    #[error(
        "{root} cannot be reached from the {from} placement; a root of the kind {kind} is reached from {reached_from}"
    )]
    NotReachable {
        /// The root, as its containment string.
        root: String,
        /// Its kind.
        kind: &'static str,
        /// Where it was asked for.
        from: Placement,
        /// Where it can be reached.
        reached_from: &'static str,
    },
    /// A path inside the journal's folder.
    #[error("{0:?} is in the journal's folder, which no tool touches")]
    ProtectedAudit(String),
}

impl From<RootFault> for Refusal {
    fn from(fault: RootFault) -> Self {
        let code = match fault {
            RootFault::NotDeclared(_) => Code::RootNotDeclared,
            RootFault::NotReachable { .. } => Code::RootNotReachableFromHere,
            RootFault::ProtectedAudit(_) => Code::ProtectedAudit,
        };
        Self::new(code, fault.to_string())
    }
}

impl RootDescriptor {
    /// Reads a descriptor from its wire form.
    ///
    /// # Errors
    /// [`RootFault::NotDeclared`] for anything that names no root: an unknown kind, an empty or endless field, a path in
    /// the origin private file system that is not contained there.
    pub fn read(value: &Value) -> Result<Self, RootFault> {
        let fault = |why: String| RootFault::NotDeclared(why);
        let root: Self = Self::deserialize(value).map_err(|err| fault(cut(&err.to_string(), 120)))?;
        let (field, text) = match &root {
            Self::Opfs { path } => {
                contained_path(path).map_err(|refusal| fault(refusal.why))?;
                ("path", path)
            }
            Self::Handle { id, .. } => ("id", id),
            Self::Machine { path, .. } => ("path", path),
        };
        if text.trim().is_empty() || text.len() > FIELD_MAX_BYTES || text.chars().any(char::is_control) {
            return Err(fault(format!("`{field}` is empty, too long or has control characters")));
        }
        Ok(root)
    }

    /// The kind's name on the wire.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Opfs { .. } => "opfs",
            Self::Handle { .. } => "handle",
            Self::Machine { .. } => "machine",
        }
    }

    /// The word in front of the containment string, and what follows it.
    fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Opfs { path } => ("opfs", path),
            Self::Handle { id, .. } => ("picked", id),
            Self::Machine { path, .. } => ("machine", path),
        }
    }

    /// Whether `text` is this root's containment string: what [`Display`](fmt::Display) writes. Allocates nothing.
    #[must_use]
    pub fn is_contained_in(&self, text: &str) -> bool {
        let (word, rest) = self.parts();
        text.strip_prefix(word).and_then(|text| text.strip_prefix(':')) == Some(rest)
    }

    /// Checks that a task of `placement` can reach this root: a page reaches its own storage and picked folders, a
    /// machine reaches its folders.
    ///
    /// # Errors
    /// [`RootFault::NotReachable`].
    pub fn check_reachable(&self, placement: Placement) -> Result<(), RootFault> {
        let reached_from = match self {
            Self::Opfs { .. } | Self::Handle { .. } => "browser",
            Self::Machine { .. } => "machine and remote",
        };
        if matches!(self, Self::Machine { .. }) == (placement != Placement::Browser) {
            return Ok(());
        }
        let (root, kind) = (cut(&self.to_string(), 120), self.kind());
        Err(RootFault::NotReachable { root, kind, from: placement, reached_from })
    }
}

/// The containment string: `opfs:<path>`, `picked:<id>` or `machine:<path>`.
impl fmt::Display for RootDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, rest) = self.parts();
        write!(f, "{word}:{rest}")
    }
}

/// Checks a path inside a root and spells it without `.` segments.
///
/// # Errors
/// [`Code::OutsideRoot`] for what leaves the root, [`Code::ProtectedAudit`] for the journal's folder. That one is
/// protected in roots of every kind: a picked folder may be a machine's root as well.
pub fn file_in_root(path: &str) -> Result<String, Refusal> {
    let path = contained_path(path)?;
    let first = path.split('/').next().unwrap_or_default();
    // File systems that ignore case would open the folder under another spelling; some ignore trailing dots and blanks.
    if first.trim_end_matches(['.', ' ']).eq_ignore_ascii_case(AUDIT_FOLDER) {
        return Err(RootFault::ProtectedAudit(cut(&path, 120)).into());
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> RootDescriptor {
        RootDescriptor::read(value).unwrap()
    }

    #[test]
    fn every_kind_has_its_wire_form_and_its_containment_string() {
        let cases = [
            (json!({"kind": "opfs", "path": "v1/tasks"}), "opfs:v1/tasks"),
            (json!({"kind": "handle", "id": "h1", "label": "Notes"}), "picked:h1"),
            (json!({"kind": "handle", "id": "h1"}), "picked:h1"),
            (json!({"kind": "machine", "path": "/srv/x", "environment": "env_1"}), "machine:/srv/x"),
            (json!({"kind": "machine", "path": "/srv/x"}), "machine:/srv/x"),
        ];
        for (wire, contained) in cases {
            let root = read(&wire);
            assert_eq!(root.to_string(), contained);
            assert!(root.is_contained_in(contained) && !root.is_contained_in(&contained[1..]));
            assert!(!root.is_contained_in(&format!("{contained}x")));
            assert_eq!(serde_json::to_value(&root).unwrap(), wire);
        }
    }

    #[test]
    fn what_names_no_root_is_not_declared() {
        let bad = [
            json!(null),
            json!("opfs:v1"),
            json!({}),
            json!({"kind": "cloud", "path": "x"}),
            json!({"kind": "opfs"}),
            json!({"kind": "opfs", "path": ""}),
            json!({"kind": "opfs", "path": "../x"}),
            json!({"kind": "handle", "id": "  "}),
            json!({"kind": "handle", "id": 7}),
            json!({"kind": "machine", "path": "/a\u{0}b"}),
            json!({"kind": "machine", "path": "a".repeat(FIELD_MAX_BYTES + 1)}),
        ];
        for value in bad {
            let refusal = Refusal::from(RootDescriptor::read(&value).unwrap_err());
            assert_eq!(refusal.code, Code::RootNotDeclared, "{value}");
        }
    }

    #[test]
    fn a_page_reaches_its_own_roots_and_a_machine_reaches_its_own() {
        let page = [json!({"kind": "opfs", "path": "v1"}), json!({"kind": "handle", "id": "h"})];
        let machine = read(&json!({"kind": "machine", "path": "/srv"}));
        for root in page {
            assert_eq!(read(&root).check_reachable(Placement::Browser), Ok(()));
            for placement in [Placement::Machine, Placement::Remote] {
                let refusal = Refusal::from(read(&root).check_reachable(placement).unwrap_err());
                assert_eq!(refusal.code, Code::RootNotReachableFromHere);
            }
        }
        assert_eq!(machine.check_reachable(Placement::Machine), Ok(()));
        assert_eq!(machine.check_reachable(Placement::Remote), Ok(()));
        assert!(machine.check_reachable(Placement::Browser).is_err());
    }

    #[test]
    fn files_stay_in_the_root_and_out_of_the_journal() {
        assert_eq!(file_in_root("./notes/a.txt").unwrap(), "notes/a.txt");
        assert_eq!(file_in_root("notes/.audit").unwrap(), "notes/.audit");
        for path in ["../x", "/etc/passwd", ""] {
            assert_eq!(file_in_root(path).unwrap_err().code, Code::OutsideRoot, "{path}");
        }
        for path in [".audit", ".audit/log", "./.audit/log", ".AUDIT/log", ".audit./log", ".audit /log"] {
            assert_eq!(file_in_root(path).unwrap_err().code, Code::ProtectedAudit, "{path}");
        }
    }
}
