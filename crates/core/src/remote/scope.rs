//! What a paired token may ask for. Setting a machine up is in no scope: that is for who sits at it.

use serde::{Deserialize, Serialize};

/// One thing that a token may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// To delegate, watch and cancel tasks of one's own.
    Tasks,
    /// To list and call the tools of the shelf.
    Shelf,
}

impl Scope {
    /// Every scope; what a token gets where nobody says.
    pub const ALL: [Self; 2] = [Self::Tasks, Self::Shelf];

    /// The scope's name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tasks => "tasks",
            Self::Shelf => "shelf",
        }
    }

    /// The scope that a command of a live session or of `/v1/commands` is in; `None` for what every token may ask for.
    #[must_use]
    pub fn of_command(name: &str) -> Option<Self> {
        match name {
            "environment" | "revoke_pairing" => None,
            "delegate_task" | "task_status" | "cancel_task" | "list_tasks" | "task_detail" => {
                Some(Self::Tasks)
            }
            // All else is a tool, or is refused as an unknown one.
            _ => Some(Self::Shelf),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_scope_and_the_machine_itself_in_none() {
        for tool in super::super::CHANNEL_TOOLS {
            let every = ["environment", "revoke_pairing"].contains(&tool);
            let expected = (!every).then_some(Scope::Tasks);
            assert_eq!(Scope::of_command(tool), expected, "{tool}");
        }
        for tool in ["list_extensions", "call_extension", "hash", "ext.install"] {
            assert_eq!(Scope::of_command(tool), Some(Scope::Shelf), "{tool}");
        }
        for scope in Scope::ALL {
            assert_eq!(serde_json::to_value(scope).unwrap(), scope.as_str());
        }
    }
}
