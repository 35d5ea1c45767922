//! Two machines that were paired: what one shows to be let in, and the frames between them.
//!
//! | module | idea |
//! |---|---|
//! | [`link`] | the link that a person carries from one machine to the other, and the code in it |
//! | [`frame`] | the frames of `/channel` |
//! | [`scope`] | what a paired token may ask for |
//! | [`sent`] | files that are sent along with a task |
//!
//! Source: the reference facts, B8. The side that is asked is the *remote*; it issues tokens and runs tasks in the
//! placement `remote`. The side that asks keeps a connection to it.

pub mod frame;
pub mod link;
pub mod scope;
pub mod sent;

use crate::digest::Digest;
use crate::placement::PlacementBounds;

/// Version of the frames.
pub const CHANNEL_VERSION: u32 = 1;
/// How long a connection may take to say hello, in milliseconds.
pub const CHANNEL_HELLO_MS: u32 = crate::live::LIVE_HELLO_MS;
/// Longest frame, in bytes.
pub const CHANNEL_FRAME_MAX_BYTES: usize = crate::live::LIVE_FRAME_MAX_BYTES;

/// Digits of a pairing code.
pub const CODE_DIGITS: usize = 8;
/// How long a code holds, in milliseconds.
pub const CODE_LIFE_MS: u64 = 10 * 60 * 1_000;
/// So many wrong tries end a code.
pub const CODE_TRIES: u32 = 5;
/// So many tries are looked at in a minute, whatever codes there are meanwhile.
pub const CODE_TRIES_PER_MIN: u32 = 10;
/// Longest name of a pairing, in characters.
pub const NAME_MAX_CHARS: usize = 60;

/// What can be called over a channel. `delegate_task` is the only one that changes what it is repeated for; it is told
/// apart by its call id.
pub const CHANNEL_TOOLS: [&str; 7] = [
    "delegate_task",
    "task_status",
    "cancel_task",
    "list_tasks",
    "task_detail",
    "environment",
    // The caller gives up its own token.
    "revoke_pairing",
];

/// The name under which `tool` of an environment with those bounds is called. It changes with each of them, so that a
/// call of one that was declared otherwise is noticed.
#[must_use]
pub fn descriptor_id(environment: &str, tool: &str, bounds: &PlacementBounds) -> String {
    let PlacementBounds { default_deadline_ms, max_deadline_ms, max_output_bytes, max_active_tasks } = bounds;
    let parts = format!(
        "{CHANNEL_VERSION}\0{environment}\0{tool}\0{default_deadline_ms}\0{max_deadline_ms}\0{max_output_bytes}\0\
         {max_active_tasks}"
    );
    ["tool_", &Digest::of(parts.as_bytes()).prefix()].concat()
}

/// A name as it may stand in a list: without what is no printable text, without blanks around it, and not too long.
/// `None` when nothing is left.
#[must_use]
pub fn name(given: &str) -> Option<String> {
    let plain: String = given.chars().filter(|letter| !letter.is_control()).take(NAME_MAX_CHARS).collect();
    let plain = plain.trim();
    (!plain.is_empty()).then(|| plain.to_owned())
}

/// Whether that is an environment's key: `env_` and 16 hexadecimal digits.
#[must_use]
pub fn is_environment_key(text: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.strip_prefix("env_").is_some_and(|digits| digits.len() == 16 && digits.bytes().all(is_digit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::Placement;

    #[test]
    fn a_descriptor_s_name_changes_with_all_that_it_says() {
        let bounds = Placement::Remote.bounds();
        let one = descriptor_id("env_a", "task_status", &bounds);
        assert_eq!(one, descriptor_id("env_a", "task_status", &bounds));
        let less = PlacementBounds { max_output_bytes: 1, ..bounds };
        for other in [
            descriptor_id("env_b", "task_status", &bounds),
            descriptor_id("env_a", "cancel_task", &bounds),
            descriptor_id("env_a", "task_status", &less),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn names_are_printable_and_short() {
        assert_eq!(name("  ann's\u{7} laptop\n").as_deref(), Some("ann's laptop"));
        assert_eq!(name(" \u{1b} "), None);
        assert_eq!(name(&"x".repeat(1_000)).unwrap().len(), NAME_MAX_CHARS);
        assert!(is_environment_key("env_0123456789abcdef"));
        for bad in ["", "env_", "env_0123456789ABCDEF", "env_0123456789abcdef0", "0123456789abcdef"] {
            assert!(!is_environment_key(bad), "{bad}");
        }
    }
}
