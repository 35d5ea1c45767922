//! Characters that a person does not see, in texts that agents read.
//!
//! A description is read twice: by the person who admits a tool, and by the agent that calls it. Invisible characters, and
//! those that turn the direction of writing around, let the two read different things. What else a text says is not
//! judged here: it is data, and shown as it is.

use crate::refusal::{Code, Refusal};

/// The first character of `text` that a person would not see, or that shows others in another order than they are read.
/// Line ends and tabs are seen well enough.
#[must_use]
pub fn hidden_character(text: &str) -> Option<char> {
    text.chars().find(|&character| match character {
        '\n' | '\r' | '\t' => false,
        // The soft hyphen, and marks, overrides and isolates of the direction of writing.
        '\u{ad}'
        | '\u{61c}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}' => true,
        // Without width, or without any sign at all.
        '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' => true,
        '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' => true,
        '\u{3164}' | '\u{fe00}'..='\u{fe0e}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' => true,
        // Notations that are not drawn; tags, in which whole sentences can be hidden; selectors of variants.
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        other => other.is_control(),
    })
}

/// Checks that all of `text` is seen. `what` names it.
///
/// # Errors
/// [`Code::HiddenCharacters`] with the character's number.
pub fn check_visible(what: &str, text: &str) -> Result<(), Refusal> {
    match hidden_character(text) {
        None => Ok(()),
        Some(character) => {
            let number = u32::from(character);
            let why = format!("the {what} has the character U+{number:04X}, which a person does not see");
            Err(Refusal::new(Code::HiddenCharacters, why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_every_script_are_seen() {
        for text in [
            "Hashes a text.\n\tTwice.",
            "Größe – naïve",
            "计算摘要",
            "تجزئة النص",
            "हैश",
            "done \u{2713} \u{1f600} \u{2764}\u{fe0f}",
        ] {
            assert_eq!(hidden_character(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_not_seen_is_named() {
        for hidden in [
            '\u{202e}',
            '\u{2066}',
            '\u{200b}',
            '\u{200d}',
            '\u{feff}',
            '\u{e0041}',
            '\0',
            '\u{1b}',
            '\u{85}',
            '\u{ad}',
        ] {
            assert_eq!(hidden_character(&format!("a{hidden}b")), Some(hidden), "{:x}", u32::from(hidden));
        }
        let refused = check_visible("description", "a\u{202e}b").unwrap_err();
        assert!(refused.code == Code::HiddenCharacters && refused.why.contains("U+202E"), "{refused}");
    }
}
