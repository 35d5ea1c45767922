//! Where a task runs, and how much it may ask for there.
//!
//! Source: the seed of tasks, sections 1 and 2, and the reference facts, B1 and B4.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::refusal::{Code, Refusal, cut};
use crate::task::TaskBounds;

/// One of the three places where tasks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// A page of a browser.
    Browser,
    /// The machine at hand.
    Machine,
    /// A paired remote machine.
    Remote,
}

/// What one placement grants to tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacementBounds {
    /// The deadline that an executor gets when it does not name one, in milliseconds.
    pub default_deadline_ms: u32,
    /// The longest deadline, in milliseconds.
    pub max_deadline_ms: u32,
    /// Most bytes of an answer.
    pub max_output_bytes: u32,
    /// Tasks whose executors have not settled.
    pub max_active_tasks: usize,
}

/// The bounds of every placement. Nothing that a caller or an executor says raises them.
pub const PLACEMENT_BOUNDS: [(Placement, PlacementBounds); 3] = [
    (Placement::Browser, bounds(30_000, 300_000, 4)),
    (Placement::Machine, bounds(60_000, 3_600_000, 8)),
    (Placement::Remote, bounds(60_000, 3_600_000, 8)),
];

const fn bounds(default_deadline_ms: u32, max_deadline_ms: u32, max_active_tasks: usize) -> PlacementBounds {
    PlacementBounds { default_deadline_ms, max_deadline_ms, max_output_bytes: 65_536, max_active_tasks }
}

/// Why bounds are refused; always [`Code::UnboundedExecutor`].
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BoundsFault {
    /// No such placement.
    #[error("{0:?} is no placement: browser, machine or remote")]
    UnknownPlacement(String),
    /// Not two whole numbers above zero.
    #[error("an executor must name its bounds: `deadlineMs` and `maxOutputBytes`, whole numbers above zero")]
    Malformed,
    /// A deadline over the placement's.
    #[error("the deadline of {found} ms exceeds the {placement} placement maximum of {max} ms")]
    Deadline {
        /// The placement.
        placement: Placement,
        /// What was asked for.
        found: u64,
        /// What is granted.
        max: u32,
    },
    /// More output than the placement's.
    #[error("the output of {found} bytes exceeds the {placement} placement maximum of {max} bytes")]
    Output {
        /// The placement.
        placement: Placement,
        /// What was asked for.
        found: u64,
        /// What is granted.
        max: u32,
    },
}

impl From<BoundsFault> for Refusal {
    fn from(fault: BoundsFault) -> Self {
        Self::new(Code::UnboundedExecutor, fault.to_string())
    }
}

impl Placement {
    /// All placements.
    pub const ALL: [Self; 3] = [Self::Browser, Self::Machine, Self::Remote];

    /// The placement's name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Browser => "browser",
            Self::Machine => "machine",
            Self::Remote => "remote",
        }
    }

    /// The placement of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|placement| placement.as_str() == name)
    }

    /// What this placement grants.
    #[must_use]
    pub const fn bounds(self) -> PlacementBounds {
        // In the order of the enum; a test holds that.
        PLACEMENT_BOUNDS[self as usize].1
    }

    /// Checks bounds as they came from an executor.
    ///
    /// # Errors
    /// A [`BoundsFault`] other than an unknown placement.
    pub fn check_bounds(self, deadline_ms: u64, max_output_bytes: u64) -> Result<TaskBounds, BoundsFault> {
        let max = self.bounds();
        if deadline_ms == 0 || max_output_bytes == 0 {
            return Err(BoundsFault::Malformed);
        }
        let deadline = u32::try_from(deadline_ms).ok().filter(|&found| found <= max.max_deadline_ms);
        let output = u32::try_from(max_output_bytes).ok().filter(|&found| found <= max.max_output_bytes);
        let deadline_ms = deadline.ok_or(BoundsFault::Deadline {
            placement: self,
            found: deadline_ms,
            max: max.max_deadline_ms,
        })?;
        let max_output_bytes = output.ok_or(BoundsFault::Output {
            placement: self,
            found: max_output_bytes,
            max: max.max_output_bytes,
        })?;
        Ok(TaskBounds { deadline_ms, max_output_bytes })
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The placement of an environment, given as its descriptor (`{kind, reach?}`) or as its name.
///
/// A paired environment is remote, whatever its kind. What is unknown has no placement: a guess would run a task where
/// nobody asked for it.
#[must_use]
pub fn placement_for_environment(environment: &Value) -> Option<Placement> {
    match environment {
        Value::String(name) => placement_of_name(name),
        Value::Object(descriptor) => {
            let field = |name: &str| descriptor.get(name).and_then(Value::as_str);
            if field("reach") == Some("paired") {
                return Some(Placement::Remote);
            }
            match field("kind")? {
                "browser" => Some(Placement::Browser),
                "server" | "fence" => Some(Placement::Machine),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The placement of an environment that is given by its name.
#[must_use]
pub fn placement_of_name(name: &str) -> Option<Placement> {
    match name {
        "browser" => Some(Placement::Browser),
        "server" | "fence" | "machine" => Some(Placement::Machine),
        "remote" => Some(Placement::Remote),
        _ => name.starts_with("remote_").then_some(Placement::Remote),
    }
}

/// Checks bounds in their wire form, `{deadlineMs, maxOutputBytes}`, against those of the placement of that name.
///
/// # Errors
/// A [`BoundsFault`].
pub fn validate_placement_bounds(placement: &str, bounds: &Value) -> Result<TaskBounds, BoundsFault> {
    let known =
        Placement::named(placement).ok_or_else(|| BoundsFault::UnknownPlacement(cut(placement, 60)))?;
    let (deadline_ms, max_output_bytes) = TaskBounds::numbers(bounds).ok_or(BoundsFault::Malformed)?;
    known.check_bounds(deadline_ms, max_output_bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_placement_has_its_own_row() {
        for (index, placement) in Placement::ALL.into_iter().enumerate() {
            assert_eq!(PLACEMENT_BOUNDS[index].0, placement);
            assert_eq!(Placement::named(placement.as_str()), Some(placement));
        }
        let json = serde_json::to_value(Placement::Browser.bounds()).unwrap();
        let documented = json!({
            "defaultDeadlineMs": 30000, "maxDeadlineMs": 300_000, "maxOutputBytes": 65536, "maxActiveTasks": 4
        });
        assert_eq!(json, documented);
        assert_eq!(Placement::Remote.bounds(), Placement::Machine.bounds());
    }

    #[test]
    fn an_environment_has_the_placement_of_its_descriptor_or_name() {
        let cases = [
            (json!({"kind": "browser"}), Some(Placement::Browser)),
            (json!({"kind": "server"}), Some(Placement::Machine)),
            (json!({"kind": "fence"}), Some(Placement::Machine)),
            (json!({"kind": "browser", "reach": "paired"}), Some(Placement::Remote)),
            (json!({"reach": "paired"}), Some(Placement::Remote)),
            (json!({"kind": "machine"}), None),
            (json!({}), None),
            (json!("browser"), Some(Placement::Browser)),
            (json!("server"), Some(Placement::Machine)),
            (json!("fence"), Some(Placement::Machine)),
            (json!("machine"), Some(Placement::Machine)),
            (json!("remote"), Some(Placement::Remote)),
            (json!("remote_fleet"), Some(Placement::Remote)),
            (json!("remotely"), None),
            (json!(""), None),
            (json!(null), None),
            (json!(["browser"]), None),
        ];
        for (environment, placement) in cases {
            assert_eq!(placement_for_environment(&environment), placement, "{environment}");
        }
    }

    #[test]
    fn bounds_up_to_the_placement_s_are_taken_and_others_refused_with_the_reason() {
        let check = |placement: &str, deadline: Value, output: Value| {
            validate_placement_bounds(placement, &json!({"deadlineMs": deadline, "maxOutputBytes": output}))
                .map_err(Refusal::from)
        };
        let bounds = check("browser", json!(300_000), json!(65_536)).unwrap();
        assert_eq!((bounds.deadline_ms, bounds.max_output_bytes), (300_000, 65_536));
        assert!(check("machine", json!(3_600_000), json!(1)).is_ok());
        assert!(check("browser", json!(1000.0), json!(1)).is_ok(), "1000.0 is a whole number");

        for deadline in [300_001_u64, 3_600_001, u64::MAX >> 12] {
            let refusal = check("browser", json!(deadline), json!(1)).unwrap_err();
            assert_eq!(refusal.code, Code::UnboundedExecutor);
            assert!(refusal.why.contains("exceeds the browser placement maximum"), "{}", refusal.why);
        }
        let refusal = check("remote", json!(1), json!(65_537)).unwrap_err();
        assert!(refusal.why.contains("exceeds the remote placement maximum"), "{}", refusal.why);
        for bad in [json!(0), json!(-1), json!(1.5), json!("1"), json!(null), json!(1e300)] {
            assert_eq!(check("browser", bad.clone(), json!(1)).unwrap_err().code, Code::UnboundedExecutor);
            assert_eq!(check("browser", json!(1), bad).unwrap_err().code, Code::UnboundedExecutor);
        }
        assert_eq!(check("cloud", json!(1), json!(1)).unwrap_err().code, Code::UnboundedExecutor);
        assert_eq!(validate_placement_bounds("browser", &json!(null)), Err(BoundsFault::Malformed));
    }
}
