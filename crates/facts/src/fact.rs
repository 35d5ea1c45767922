//! A fact, and what is asked to be stored: fields, bounds and wire forms.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toolshelf_core::task::time::{iso_time, read_time};

use crate::port::FactError;

/// Longest entity or key, in bytes.
pub const FACT_NAME_MAX_BYTES: usize = 512;
/// Longest value, in bytes.
pub const FACT_VALUE_MAX_BYTES: usize = 262_144;
/// Longest actor or receipt, in bytes.
pub const FACT_NOTE_MAX_BYTES: usize = 1_024;
/// The tenant of every fact.
pub const TENANT: &str = "default";

/// A moment, in milliseconds since the beginning of 1970. In JSON a text of RFC 3339.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Moment(u64);

impl Moment {
    /// The moment that lies so many milliseconds after the beginning of 1970.
    #[must_use]
    pub const fn from_unix_ms(unix_ms: u64) -> Self {
        Self(unix_ms)
    }

    /// Milliseconds since the beginning of 1970.
    #[must_use]
    pub const fn unix_ms(self) -> u64 {
        self.0
    }

    /// Reads a text of RFC 3339; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        read_time(text).map(Self)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&iso_time(self.0))
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return u64::deserialize(deserializer).map(Self);
        }
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("a moment is a text of RFC 3339"))
    }
}

/// How soon a fact grows old.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HorizonClass {
    /// Soon.
    Volatile,
    /// In time.
    Medium,
    /// Hardly ever.
    Stable,
    /// Nobody has said.
    #[default]
    None,
}

/// One version of a fact, in the order of its keys on the wire.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// Names this version; no other ever gets the same.
    pub fact_id: String,
    /// [`TENANT`].
    pub tenant_hash: String,
    /// Of what.
    pub entity: String,
    /// Which property.
    pub key: String,
    /// The value.
    pub value: String,
    /// Where it comes from.
    pub source_receipt: Option<String>,
    /// How sure it is, from 0 to 1.
    pub confidence: f64,
    /// When it was stored. Never earlier than what was stored before.
    pub stored_at: Moment,
    /// About how many tokens of a language model the value takes: [`tokens_of`].
    pub tokens: u32,
    /// Always false: what is deleted is gone.
    pub deleted: bool,
    /// From 1 on for each pair of entity and key.
    pub version: u64,
    /// Id of the version before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<String>,
    /// Is it left out of exports and of what strangers see?
    pub private: bool,
    /// How soon it grows old.
    pub horizon_class: HorizonClass,
    /// When somebody looked whether it still holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverified_at: Option<Moment>,
    /// Id of the version after; none in the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    /// Who stored it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// From when on it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<Moment>,
    /// Until when it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_to: Option<Moment>,
    /// How often it was read, where that is counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub access_count: u64,
    /// When it was read last, where that is written down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_accessed_at: Option<Moment>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What is asked to be stored. Fields that are not known are ignored; the tenant is the store's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewFact {
    /// Of what.
    pub entity: String,
    /// Which property.
    pub key: String,
    /// The value.
    pub value: String,
    /// Where it comes from.
    #[serde(default)]
    pub source_receipt: Option<String>,
    /// How sure it is, from 0 to 1.
    #[serde(default = "certain")]
    pub confidence: f64,
    /// Is it to be private? It may be so all the same.
    #[serde(default)]
    pub private: bool,
    /// How soon it grows old.
    #[serde(default)]
    pub horizon_class: HorizonClass,
    /// Who stores it.
    #[serde(default)]
    pub actor: Option<String>,
}

fn certain() -> f64 {
    1.0
}

impl NewFact {
    /// A certain fact without anything that may be left out.
    pub fn new(entity: impl Into<String>, key: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            entity: entity.into(),
            key: key.into(),
            value: value.into(),
            source_receipt: None,
            confidence: certain(),
            private: false,
            horizon_class: HorizonClass::None,
            actor: None,
        }
    }

    /// Checks form and bounds. Every backend does so before it stores.
    ///
    /// # Errors
    /// [`FactError::Invalid`] and [`FactError::TooLarge`].
    pub fn check(&self) -> Result<(), FactError> {
        check_name("entity", &self.entity)?;
        check_name("key", &self.key)?;
        check_size("value", self.value.len(), FACT_VALUE_MAX_BYTES)?;
        for (field, note) in [("source_receipt", &self.source_receipt), ("actor", &self.actor)] {
            check_size(field, note.as_ref().map_or(0, String::len), FACT_NOTE_MAX_BYTES)?;
        }
        if !(0.0..=1.0).contains(&self.confidence) {
            return Err(FactError::Invalid("confidence must be from 0 to 1".to_owned()));
        }
        Ok(())
    }
}

/// Names are not empty, bounded, and without control characters: keys in files and subjects on a wire are made of them.
fn check_name(field: &'static str, name: &str) -> Result<(), FactError> {
    if name.is_empty() {
        return Err(FactError::Invalid(format!("{field} cannot be empty")));
    }
    check_size(field, name.len(), FACT_NAME_MAX_BYTES)?;
    if name.chars().any(char::is_control) {
        return Err(FactError::Invalid(format!("{field} has control characters")));
    }
    Ok(())
}

fn check_size(field: &'static str, bytes: usize, bound: usize) -> Result<(), FactError> {
    if bytes > bound { Err(FactError::TooLarge { field, bytes, bound }) } else { Ok(()) }
}

/// About how many tokens of a language model a value takes: a quarter of its characters, at least one.
#[must_use]
pub fn tokens_of(value: &str) -> u32 {
    u32::try_from(value.chars().count().div_ceil(4)).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_has_its_keys_in_their_order() {
        let fact = Fact {
            fact_id: "fact_1".into(),
            tenant_hash: TENANT.into(),
            entity: "e".into(),
            key: "k".into(),
            value: "v".into(),
            source_receipt: None,
            confidence: 1.0,
            stored_at: Moment::from_unix_ms(1_500),
            tokens: 1,
            deleted: false,
            version: 1,
            supersedes: None,
            private: false,
            horizon_class: HorizonClass::None,
            reverified_at: None,
            superseded_by: Some("fact_2".into()),
            actor: None,
            valid_from: None,
            valid_to: None,
            access_count: 0,
            last_accessed_at: None,
        };
        let json = serde_json::to_string(&fact).unwrap();
        assert_eq!(
            json,
            r#"{"fact_id":"fact_1","tenant_hash":"default","entity":"e","key":"k","value":"v","source_receipt":null,"confidence":1.0,"stored_at":"1970-01-01T00:00:01.500Z","tokens":1,"deleted":false,"version":1,"private":false,"horizon_class":"none","superseded_by":"fact_2"}"#
        );
        assert_eq!(serde_json::from_str::<Fact>(&json).unwrap(), fact);
    }

    #[test]
    fn what_is_left_out_of_a_request_has_its_defaults() {
        let fact: NewFact = serde_json::from_str(
            r#"{"entity":"e","key":"k","value":"v","tenant_hash":"mine","horizon_class":"stable"}"#,
        )
        .unwrap();
        assert_eq!(fact, NewFact { horizon_class: HorizonClass::Stable, ..NewFact::new("e", "k", "v") });
    }

    #[test]
    fn bounds_are_held() {
        let long = "x".repeat(FACT_NAME_MAX_BYTES + 1);
        let with = |confidence| NewFact { confidence, ..NewFact::new("e", "k", "v") };
        assert_eq!(with(0.0).check(), Ok(()));
        for bad in [
            NewFact::new("", "k", "v"),
            NewFact::new("e", "", "v"),
            NewFact::new("e\0", "k", "v"),
            NewFact::new("e", "k\n", "v"),
            with(f64::NAN),
            with(1.1),
            with(-0.1),
        ] {
            assert!(matches!(bad.check(), Err(FactError::Invalid(_))), "{bad:?}");
        }
        for bad in [
            NewFact::new(&long, "k", "v"),
            NewFact::new("e", &long, "v"),
            NewFact::new("e", "k", "x".repeat(FACT_VALUE_MAX_BYTES + 1)),
            NewFact { actor: Some("x".repeat(FACT_NOTE_MAX_BYTES + 1)), ..NewFact::new("e", "k", "v") },
        ] {
            assert!(matches!(bad.check(), Err(FactError::TooLarge { .. })));
        }
    }

    #[test]
    fn tokens_are_a_quarter_of_the_characters() {
        assert_eq!([tokens_of(""), tokens_of("abcd"), tokens_of("abcde"), tokens_of("éééé")], [1, 1, 2, 1]);
    }
}
