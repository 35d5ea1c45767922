//! Texts with secrets, and ordinary texts, for whoever redacts.
//!
//! The secrets are made up, in the shapes that vendors publish, and stand in the data in two pieces each, so that no
//! scanner of repositories takes them for real ones.

use serde::Deserialize;

/// The corpus.
#[derive(Debug, Deserialize)]
pub struct Corpus {
    /// Texts with one secret each.
    pub secrets: Vec<Sample>,
    /// Texts that must stay as they are, byte for byte.
    pub ordinary: Vec<String>,
    /// Ordinary texts that the floor of the rules takes something out of, and what is left: what safety costs.
    pub price: Vec<(String, String)>,
}

/// A text with a secret.
#[derive(Debug, Deserialize)]
pub struct Sample {
    /// Name of the shape and of what it stands in.
    pub name: String,
    /// Does the floor of the rules ask for it?
    pub floor: bool,
    /// What stands before the secret.
    pub before: String,
    /// The secret, in pieces.
    pub secret: Vec<String>,
    /// What stands behind it.
    pub after: String,
}

impl Sample {
    /// The secret.
    #[must_use]
    pub fn secret(&self) -> String {
        self.secret.concat()
    }

    /// The whole text.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}{}{}", self.before, self.secret(), self.after)
    }
}

/// The corpus of redaction.
///
/// # Panics
/// When the data is not of the form that this crate reads.
#[must_use]
pub fn corpus() -> Corpus {
    serde_json::from_str(include_str!("../cases/redaction.json"))
        .unwrap_or_else(|err| panic!("the corpus of redaction cannot be read: {err}"))
}
