//! Redaction: secrets are taken out of a text before it is written anywhere.
//!
//! Source: the reference facts, B7, whose rules are the floor, and the shapes that vendors publish today. In order:
//!
//! 1. the values of secret environment variables, which the caller names ([`Redactor::from_variables`]);
//! 2. what its context gives away: blocks of private keys, header lines, `Bearer` and `Basic`, values given to a name
//!    such as `password`, and users with passwords in addresses;
//! 3. what its own shape gives away, such as `ghp_...`, where no letter or digit stands before it.
//!
//! A rule is a row of a table; the scanner reads a text once, in linear time, and what it gives is redacted already:
//! a second pass changes nothing. It rather takes out too much than too little: `key: value` loses its value.

mod assign;
mod pem;
mod rules;
mod scan;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::{Map, Value};

use rules::{SECRET_VARIABLES, SECRET_WORDS};

/// What stands where a secret stood.
pub const REDACTED: &str = "[redacted]";
/// A shorter value of an environment variable is no secret.
pub const VALUE_MIN_CHARS: usize = 6;

/// Takes secrets out of texts and values.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Values that are secret wherever they stand, the longest first.
    values: Vec<String>,
}

/// Says how many values there are, and none of them.
impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").field("values", &self.values.len()).finish()
    }
}

impl Redactor {
    /// A redactor that also knows the values of these environment variables, where [`is_secret_name`] says that they
    /// are secret.
    pub fn from_variables<N: AsRef<str>, V: AsRef<str>>(variables: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut values = Vec::new();
        for (name, value) in variables {
            let value = value.as_ref().trim();
            if is_secret_name(name.as_ref()) && value.chars().count() >= VALUE_MIN_CHARS {
                // Inside of JSON the value is written with escapes.
                let json = Value::from(value).to_string();
                values.push(json[1..json.len() - 1].to_owned());
                values.push(value.to_owned());
            }
        }
        values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        Self { values }
    }

    /// The text without its secrets.
    #[must_use]
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for value in &self.values {
            if text.contains(value.as_str()) {
                text = Cow::Owned(replace(&text, value));
            }
        }
        if let Some(scrubbed) = pem::scrub(&text) {
            text = Cow::Owned(scrubbed);
        }
        if let Some(scrubbed) = scan::scrub(&text).0 {
            text = Cow::Owned(scrubbed);
        }
        text
    }

    /// Takes the secrets out of every text in `value`. What an object keeps under a secret name goes as a whole.
    pub fn redact_value(&self, value: &mut Value) {
        // A stack of its own: a value may be nested deeper than calls can be.
        let mut left = vec![value];
        while let Some(value) = left.pop() {
            match value {
                Value::String(text) => {
                    if let Cow::Owned(redacted) = self.redact(text) {
                        *text = redacted;
                    }
                }
                Value::Array(items) => left.extend(items),
                Value::Object(object) => {
                    self.redact_names(object);
                    for (name, value) in object {
                        if is_secret_name(name) {
                            *value = Value::from(REDACTED);
                        } else {
                            left.push(value);
                        }
                    }
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
    }

    /// Names are texts too. Where two become one, the later ones are numbered.
    fn redact_names(&self, object: &mut Map<String, Value>) {
        if !object.keys().any(|name| matches!(self.redact(name), Cow::Owned(_))) {
            return;
        }
        let mut number = 2;
        for (name, value) in std::mem::take(object) {
            let redacted = self.redact(&name).into_owned();
            let mut free = redacted.clone();
            while object.contains_key(&free) {
                free = format!("{redacted} {number}");
                number += 1;
            }
            object.insert(free, value);
        }
    }
}

/// The text without its secrets, where no environment is known.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    Redactor::default().redact(text)
}

/// Takes the secrets out of a value, where no environment is known.
pub fn redact_value(value: &mut Value) {
    Redactor::default().redact_value(value);
}

/// Does something of this name, a variable or a field, hold a secret?
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
        || SECRET_VARIABLES.iter().any(|variable| variable.eq_ignore_ascii_case(&name))
}

/// Replaces `value` everywhere but in what stands for a secret already.
fn replace(text: &str, value: &str) -> String {
    let pieces: Vec<_> = text.split(REDACTED).map(|piece| piece.replace(value, REDACTED)).collect();
    pieces.join(REDACTED)
}
