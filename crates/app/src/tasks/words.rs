//! States, outcomes, times and answers in words.

use leptos::prelude::*;
use toolshelf_browser::core::refusal::Code;
use toolshelf_browser::core::task::TaskState;
use toolshelf_browser::core::task::record::{Outcome, OutcomeClass};

use crate::text::{thousands, visible};

/// The icon of a state, and its word.
pub(super) fn of_state(state: TaskState) -> (&'static str, &'static str) {
    match state {
        TaskState::Queued => ("#i-clock", "Queued"),
        TaskState::Running => ("#i-play", "Running"),
        TaskState::CancelRequested => ("#i-stop", "Asked to stop"),
        TaskState::Cancelled => ("#i-stop", "Cancelled"),
        TaskState::CancelUnconfirmed => ("#i-stop", "Not seen to stop"),
        TaskState::Completed => ("#i-check", "Completed"),
        TaskState::Failed => ("#i-alert", "Failed"),
        TaskState::Interrupted => ("#i-bolt", "Interrupted"),
    }
}

/// How a task ended and who says so.
pub(super) fn of_outcome(outcome: Outcome) -> &'static str {
    match outcome.class {
        OutcomeClass::ClaimedComplete => "says it is complete",
        OutcomeClass::ObservedFailure => "seen to fail",
        OutcomeClass::ObservedInterruption => "seen to be interrupted",
        OutcomeClass::ObservedCancellation => "seen to be cancelled",
    }
}

/// What a reason means, where it is a code that is known here.
pub(super) fn meaning(reason: &str) -> Option<&'static str> {
    Code::ALL.iter().find(|code| code.as_str() == reason).map(|code| code.meaning())
}

/// A reason as code, with what it means.
pub(super) fn reason(reason: String) -> AnyView {
    view! { <code title=meaning(&reason)>{reason.clone()}</code> }.into_any()
}

/// A length of time in whole units: `30 s`, `5 min`, `1 h`.
pub(crate) fn span(ms: u32) -> String {
    let (number, unit) = match ms {
        ms if ms >= 3_600_000 && ms.is_multiple_of(3_600_000) => (ms / 3_600_000, " h"),
        ms if ms >= 60_000 && ms.is_multiple_of(60_000) => (ms / 60_000, " min"),
        ms => (ms.div_ceil(1_000), " s"),
    };
    thousands(number.into()) + unit
}

/// What is left until a moment: `21 s left`, `4 min 05 s left`.
pub(super) fn left(ms: f64) -> String {
    let seconds = (ms.max(0.0) / 1_000.0).ceil() as u64;
    let mut text = String::new();
    if seconds >= 60 {
        text.push_str(&(seconds / 60).to_string());
        text.push_str(if seconds % 60 < 10 { " min 0" } else { " min " });
    }
    text.push_str(&(seconds % 60).to_string());
    text.push_str(" s left");
    text
}

/// The size of a file: `312 bytes`, `12 KiB`, `4 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    let (number, unit) = match bytes {
        0..10_000 => (bytes, " bytes"),
        10_000..10_000_000 => (bytes.div_ceil(1 << 10), " KiB"),
        _ => (bytes.div_ceil(1 << 20), " MiB"),
    };
    thousands(number) + unit
}

/// Untrusted text of several lines, in which nothing hides.
pub(super) fn visible_lines(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(|line| visible(line.as_bytes())).collect();
    lines.join("\n")
}

/// Whether a text is 64 hex digits.
pub(super) fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Valid JSON with a line for each value. Numbers and texts stay as they were written, which no parser would promise.
pub(super) fn pretty(json: &str) -> String {
    let mut pretty = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let (mut in_text, mut is_escaped) = (false, false);
    let mut letters = json.chars().peekable();
    let line = |pretty: &mut String, depth: usize| {
        pretty.push('\n');
        pretty.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(letter) = letters.next() {
        if in_text {
            pretty.push(letter);
            in_text = is_escaped || letter != '"';
            is_escaped = letter == '\\' && !is_escaped;
            continue;
        }
        match letter {
            '{' | '[' => {
                pretty.push(letter);
                while letters.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                match letters.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => pretty.push(end),
                    None => {
                        depth += 1;
                        line(&mut pretty, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut pretty, depth);
                pretty.push(letter);
            }
            ',' => {
                pretty.push(letter);
                line(&mut pretty, depth);
            }
            ':' => pretty.push_str(": "),
            letter if letter.is_ascii_whitespace() => {}
            letter => {
                in_text = letter == '"';
                pretty.push(letter);
            }
        }
    }
    pretty
}

/// A moment of ISO 8601, in milliseconds since 1970.
pub(super) fn moment(iso: &str) -> f64 {
    js_sys::Date::parse(iso)
}

/// The time of day of a moment, where the person is: `14:02:11.204`.
pub(super) fn time_of_day(ms: f64) -> String {
    let date = js_sys::Date::new(&ms.into());
    let digits = |number: u32, count: usize| (1_000 + number).to_string().split_off(4 - count);
    let (hours, minutes) = (digits(date.get_hours(), 2), digits(date.get_minutes(), 2));
    let (seconds, rest) = (digits(date.get_seconds(), 2), digits(date.get_milliseconds(), 3));
    [&hours, ":", &minutes, ":", &seconds, ".", &rest].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_in_units_that_divide_them() {
        let shown = [1, 5_000, 30_000, 60_000, 90_000, 300_000, 3_600_000].map(span);
        assert_eq!(shown, ["1 s", "5 s", "30 s", "1 min", "90 s", "5 min", "1 h"]);
        let shown = [-3.0, 0.0, 1.0, 20_400.0, 60_000.0, 245_000.0].map(left);
        let expected =
            ["0 s left", "0 s left", "1 s left", "21 s left", "1 min 00 s left", "4 min 05 s left"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn sizes_are_as_precise_as_they_deserve() {
        let shown = [0, 9_999, 10_000, 12_288, 20_000_000].map(size);
        assert_eq!(shown, ["0 bytes", "9,999 bytes", "10 KiB", "12 KiB", "20 MiB"]);
    }

    #[test]
    fn json_is_laid_out_without_being_changed() {
        let json = r#"{"a":[1,12345678901234567890.0,{}], "b" : "x,\"{\\", "c":[ ]}"#;
        let expected = "{\n  \"a\": [\n    1,\n    12345678901234567890.0,\n    {}\n  ],\n  \"b\": \"x,\\\"{\\\\\",\n  \
                        \"c\": []\n}";
        assert_eq!(pretty(json), expected);
    }

    #[test]
    fn a_digest_is_told_from_other_texts() {
        assert!(is_digest(&"0f".repeat(32)));
        assert!(!is_digest(&"0F".repeat(32)) && !is_digest("0f"));
    }

    #[test]
    fn only_known_codes_have_a_meaning() {
        assert!(meaning("task-deadline").is_some());
        assert_eq!(meaning("made-up"), None);
    }
}
