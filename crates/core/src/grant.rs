//! Grants: what one passport lets one extension do, and the decisions that follow.
//!
//! Source: the seed, section 6.5, and the reference facts, C4. Beyond them a grant may end at a moment and may name
//! secrets. Each decision is one function; none looks at a clock.

use serde::{Deserialize, Serialize};

use crate::extension::validate::check_install_id;
use crate::rate::RATE_LIMIT_MAX_PER_MIN;
use crate::refusal::cut;
use crate::reserved::{overlap, reserved_prefixes};

/// Longest prefix, passport, tool name or secret id in a grant, in bytes.
pub const GRANT_TEXT_MAX_BYTES: usize = 512;
/// Most prefixes, tools or secrets that one grant may name.
pub const GRANT_LIST_MAX: usize = 128;

/// A grant. There is one for each pair of extension and passport.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Grant {
    /// The extension.
    pub extension_id: String,
    /// On whose behalf.
    pub passport_fpr: String,
    /// The tools that may be called; none means all.
    #[serde(default)]
    pub allowed_tool_names: Vec<String>,
    /// Entities that begin like one of these may be read.
    #[serde(default)]
    pub allowed_prefixes_read: Vec<String>,
    /// Entities that begin like one of these may be written.
    #[serde(default)]
    pub allowed_prefixes_write: Vec<String>,
    /// Calls in a minute; [`RATE_LIMIT_DEFAULT_PER_MIN`](crate::rate::RATE_LIMIT_DEFAULT_PER_MIN) where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit_per_min: Option<u32>,
    /// When it was given, in milliseconds since the beginning of 1970.
    pub granted_at_unix_ms: u64,
    /// By whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted_by_passport: Option<String>,
    /// When it ends, in milliseconds since the beginning of 1970; never where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_unix_ms: Option<u64>,
    /// Ids of the secrets that may be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_secret_ids: Vec<String>,
}

/// Why a grant is not given.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum GrantFault {
    /// Nobody is named.
    #[error("invalid passport_fpr '{0}': cannot be empty")]
    EmptyPassport(String),
    /// Not the id of an extension.
    #[error("invalid extension_id '{0}'")]
    ExtensionId(String),
    /// A prefix that shares entities with a reserved one.
    #[error("invalid prefix '{0}': community extensions cannot grant access to a privacy-gated prefix")]
    ReservedPrefix(String),
    /// A prefix, a tool or a secret that is the empty text, which every text begins with.
    #[error("invalid {0} '': cannot be empty")]
    Empty(&'static str),
    /// An end before the beginning.
    #[error("invalid expires_at_unix_ms '{0}': must be later than granted_at_unix_ms")]
    Expiry(u64),
    /// Something that is larger than its bound.
    #[error("invalid {field}: exceeds its bound of {bound}")]
    Beyond {
        /// What.
        field: &'static str,
        /// Its bound.
        bound: u64,
    },
}

impl Grant {
    /// Checks a grant before it is given. `private` are the prefixes that this host has made private besides the
    /// reserved ones.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self, private: &[String]) -> Result<(), GrantFault> {
        if self.passport_fpr.trim().is_empty() {
            return Err(GrantFault::EmptyPassport(cut(&self.passport_fpr, 100)));
        }
        check_length("passport_fpr", &self.passport_fpr)?;
        check_install_id(&self.extension_id)
            .map_err(|_| GrantFault::ExtensionId(cut(&self.extension_id, 200)))?;
        for (prefixes, field) in [
            (&self.allowed_prefixes_read, "allowed_prefixes_read"),
            (&self.allowed_prefixes_write, "allowed_prefixes_write"),
        ] {
            check_list(field, "prefix", prefixes)?;
            if let Some(reserved) = prefixes.iter().find(|prefix| overlaps_reserved(prefix, private)) {
                return Err(GrantFault::ReservedPrefix(cut(reserved, 200)));
            }
        }
        check_list("allowed_tool_names", "tool name", &self.allowed_tool_names)?;
        check_list("allowed_secret_ids", "secret id", &self.allowed_secret_ids)?;
        if self.rate_limit_per_min.is_some_and(|cap| cap > RATE_LIMIT_MAX_PER_MIN) {
            let bound = u64::from(RATE_LIMIT_MAX_PER_MIN);
            return Err(GrantFault::Beyond { field: "rate_limit_per_min", bound });
        }
        match self.expires_at_unix_ms {
            Some(end) if end <= self.granted_at_unix_ms => Err(GrantFault::Expiry(end)),
            _ => Ok(()),
        }
    }

    /// May the tool be called?
    #[must_use]
    pub fn may_call(&self, tool: &str) -> bool {
        self.allowed_tool_names.is_empty() || self.allowed_tool_names.iter().any(|name| name == tool)
    }

    /// May facts of the entity be read?
    #[must_use]
    pub fn may_read(&self, entity: &str) -> bool {
        covers(&self.allowed_prefixes_read, entity)
    }

    /// May facts of the entity be written?
    #[must_use]
    pub fn may_write(&self, entity: &str) -> bool {
        covers(&self.allowed_prefixes_write, entity)
    }

    /// May all facts below the prefix be read? It must be as specific as a granted one; the empty one never is.
    #[must_use]
    pub fn may_query(&self, prefix: &str) -> bool {
        covers(&self.allowed_prefixes_read, prefix) && !overlaps_reserved(prefix, &[])
    }

    /// May the secret be read?
    #[must_use]
    pub fn may_read_secret(&self, id: &str) -> bool {
        !id.is_empty() && self.allowed_secret_ids.iter().any(|allowed| allowed == id)
    }

    /// Has the grant ended at that moment?
    #[must_use]
    pub fn is_expired(&self, unix_ms: u64) -> bool {
        self.expires_at_unix_ms.is_some_and(|end| unix_ms >= end)
    }

    /// Calls in a minute.
    #[must_use]
    pub fn rate_limit(&self, default_per_min: u32) -> u32 {
        self.rate_limit_per_min.unwrap_or(default_per_min).min(RATE_LIMIT_MAX_PER_MIN)
    }
}

/// Does one of the prefixes cover the text? A grant that was kept from another time, or written by other means, may hold
/// prefixes that are not given any more; so the reserved ones are looked at again.
fn covers(prefixes: &[String], text: &str) -> bool {
    prefixes.iter().any(|prefix| !prefix.is_empty() && text.starts_with(prefix.as_str()))
        && !reserved_prefixes().any(|reserved| text.starts_with(reserved))
}

fn overlaps_reserved(prefix: &str, private: &[String]) -> bool {
    reserved_prefixes().any(|reserved| overlap(prefix, reserved))
        || private.iter().any(|private| !private.is_empty() && overlap(prefix, private))
}

fn check_list(field: &'static str, item: &'static str, texts: &[String]) -> Result<(), GrantFault> {
    if texts.len() > GRANT_LIST_MAX {
        return Err(GrantFault::Beyond { field, bound: GRANT_LIST_MAX as u64 });
    }
    if texts.iter().any(String::is_empty) {
        return Err(GrantFault::Empty(item));
    }
    texts.iter().try_for_each(|text| check_length(field, text))
}

fn check_length(field: &'static str, text: &str) -> Result<(), GrantFault> {
    if text.len() <= GRANT_TEXT_MAX_BYTES {
        return Ok(());
    }
    Err(GrantFault::Beyond { field, bound: GRANT_TEXT_MAX_BYTES as u64 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rate::RATE_LIMIT_DEFAULT_PER_MIN;

    fn grant() -> Grant {
        Grant {
            extension_id: "ext.a".into(),
            passport_fpr: "p_alice".into(),
            allowed_tool_names: vec!["ext.a.note".into()],
            allowed_prefixes_read: vec!["notes::".into()],
            allowed_prefixes_write: vec!["notes::sum::".into()],
            granted_at_unix_ms: 1_000,
            ..Grant::default()
        }
    }

    #[test]
    fn a_grant_has_its_wire_form() {
        let json = serde_json::to_string(&grant()).unwrap();
        assert_eq!(
            json,
            r#"{"extension_id":"ext.a","passport_fpr":"p_alice","allowed_tool_names":["ext.a.note"],"allowed_prefixes_read":["notes::"],"allowed_prefixes_write":["notes::sum::"],"granted_at_unix_ms":1000}"#
        );
        assert_eq!(serde_json::from_str::<Grant>(&json).unwrap(), grant());
    }

    #[test]
    fn rules_have_their_texts() {
        let with = |change: fn(&mut Grant)| {
            let mut grant = grant();
            change(&mut grant);
            grant.check(&["mine::".into()]).unwrap_err().to_string()
        };
        assert_eq!(grant().check(&[]), Ok(()));
        assert_eq!(with(|g| g.passport_fpr = " ".into()), "invalid passport_fpr ' ': cannot be empty");
        assert_eq!(with(|g| g.extension_id = "A/b".into()), "invalid extension_id 'A/b'");
        assert_eq!(
            with(|g| g.allowed_prefixes_read.push(String::new())),
            "invalid prefix '': cannot be empty"
        );
        assert_eq!(
            with(|g| g.allowed_tool_names.push(String::new())),
            "invalid tool name '': cannot be empty"
        );
        assert_eq!(
            with(|g| g.expires_at_unix_ms = Some(1_000)),
            "invalid expires_at_unix_ms '1000': must be later than granted_at_unix_ms"
        );
        assert_eq!(
            with(|g| g.rate_limit_per_min = Some(60_001)),
            "invalid rate_limit_per_min: exceeds its bound of 60000"
        );
        assert_eq!(
            with(|g| g.allowed_prefixes_write = vec!["a".into(); 129]),
            "invalid allowed_prefixes_write: exceeds its bound of 128"
        );
        for reserved in ["__", "git", "github::", "github::org", "__extension_grant__::x", "m", "mine::x"] {
            let mut grant = grant();
            grant.allowed_prefixes_write = vec![reserved.into()];
            assert_eq!(
                grant.check(&["mine::".into()]).unwrap_err().to_string(),
                format!(
                    "invalid prefix '{reserved}': community extensions cannot grant access to a privacy-gated prefix"
                )
            );
        }
    }

    #[test]
    fn tools_are_those_that_are_named_or_all() {
        assert!(grant().may_call("ext.a.note") && !grant().may_call("ext.a.other"));
        let all = Grant { allowed_tool_names: Vec::new(), ..grant() };
        assert!(all.may_call("anything"));
    }

    #[test]
    fn reading_and_writing_have_prefixes_of_their_own() {
        let grant = grant();
        assert!(grant.may_read("notes::a") && grant.may_read("notes::") && !grant.may_read("notes:"));
        assert!(grant.may_write("notes::sum::a") && !grant.may_write("notes::a"));
        assert!(!Grant::default().may_read("a") && !Grant::default().may_write(""));
    }

    #[test]
    fn a_query_is_at_least_as_specific_as_the_grant() {
        let grant = grant();
        assert!(grant.may_query("notes::") && grant.may_query("notes::x"));
        assert!(!grant.may_query("") && !grant.may_query("note"));
    }

    #[test]
    fn a_kept_grant_that_is_too_broad_reaches_nothing_reserved() {
        let broad = Grant { allowed_prefixes_read: vec!["__".into(), String::new()], ..grant() };
        assert!(!broad.may_read("__passport__::p") && !broad.may_query("__") && !broad.may_query("__pass"));
        assert!(!broad.may_read("anything"));
    }

    #[test]
    fn secrets_are_named_one_by_one() {
        let grant = Grant { allowed_secret_ids: vec!["api".into(), String::new()], ..grant() };
        assert!(grant.may_read_secret("api"));
        assert!(!grant.may_read_secret("api2") && !grant.may_read_secret("") && !grant.may_read_secret("ap"));
    }

    #[test]
    fn a_grant_ends_at_its_moment() {
        let ends = Grant { expires_at_unix_ms: Some(2_000), ..grant() };
        assert!(!ends.is_expired(1_999) && ends.is_expired(2_000));
        assert!(!grant().is_expired(u64::MAX));
    }

    #[test]
    fn a_grant_without_a_rate_has_the_default() {
        assert_eq!(grant().rate_limit(RATE_LIMIT_DEFAULT_PER_MIN), 10);
        assert_eq!(Grant { rate_limit_per_min: Some(3), ..grant() }.rate_limit(10), 3);
        assert_eq!(grant().rate_limit(u32::MAX), RATE_LIMIT_MAX_PER_MIN);
    }

    /// Prefixes near the reserved ones: cut, extended, or anything.
    fn prefix() -> impl Strategy<Value = String> {
        let reserved: Vec<_> = reserved_prefixes().collect();
        prop_oneof![
            (proptest::sample::select(reserved), 0_usize..30, "[a-z_:]{0,4}")
                .prop_map(|(text, keep, more)| { format!("{}{more}", &text[..keep.min(text.len())]) }),
            "[a-z_:]{0,8}",
        ]
    }

    proptest! {
        #[test]
        fn no_prefix_that_is_given_shares_an_entity_with_a_reserved_one(prefix in prefix(), more in "[a-z_:]{0,6}") {
            let given = Grant { allowed_prefixes_read: vec![prefix.clone()], ..grant() };
            if given.check(&[]).is_ok() {
                let below = format!("{prefix}{more}");
                prop_assert!(!prefix.is_empty());
                for reserved in reserved_prefixes() {
                    prop_assert!(!prefix.starts_with(reserved) && !reserved.starts_with(&prefix));
                    let entity = format!("{reserved}{more}");
                    prop_assert!(!given.may_read(&entity));
                }
                prop_assert!(given.may_read(&below) && given.may_query(&below));
            }
        }
    }
}
