//! Which facts are private, and which entities no client writes.
//!
//! Source: the reference facts, C7. A store holds the rule itself, so that no way of writing gets around it: what is
//! born private is private, and what was private once stays so in every later version.

use toolshelf_core::refusal::cut;
use toolshelf_core::reserved::{BORN_PRIVATE_PREFIXES, NO_CLIENT_WRITE_PREFIXES};

use crate::fact::NewFact;
use crate::port::FactError;

/// Which entities' facts are private.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivacyRule {
    prefixes: Vec<String>,
}

impl Default for PrivacyRule {
    fn default() -> Self {
        Self::new("", "")
    }
}

impl PrivacyRule {
    /// The rule with the built-in prefixes, those of the comma list `added`, and without those of `shared`. A prefix of
    /// `shared` takes away that prefix alone, as it is spelt.
    #[must_use]
    pub fn new(added: &str, shared: &str) -> Self {
        fn listed(list: &str) -> impl Iterator<Item = &str> {
            list.split(',').map(str::trim).filter(|prefix| !prefix.is_empty())
        }
        let prefixes = BORN_PRIVATE_PREFIXES.into_iter().chain(listed(added));
        let kept = prefixes.filter(|prefix| listed(shared).all(|shared| shared != *prefix));
        Self { prefixes: kept.map(str::to_owned).collect() }
    }

    /// The prefixes whose facts are private. No grant may overlap them.
    #[must_use]
    pub fn prefixes(&self) -> &[String] {
        &self.prefixes
    }

    /// Are facts of the entity private from the first version on?
    #[must_use]
    pub fn is_born_private(&self, entity: &str) -> bool {
        self.prefixes.iter().any(|prefix| entity.starts_with(prefix.as_str()))
    }
}

/// Checks what a client (over HTTP, or a module) asks to be stored. The system's own writes do not come this way.
///
/// # Errors
/// [`FactError::Reserved`] and [`FactError::PrivateFromClient`].
pub fn check_client_write(fact: &NewFact) -> Result<(), FactError> {
    if NO_CLIENT_WRITE_PREFIXES.iter().any(|prefix| fact.entity.starts_with(prefix)) {
        return Err(FactError::Reserved(cut(&fact.entity, 200)));
    }
    if fact.private { Err(FactError::PrivateFromClient) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_added_and_taken_away() {
        let rule = PrivacyRule::default();
        assert!(rule.is_born_private("github::org/repo") && rule.is_born_private("__coord__::x"));
        assert!(!rule.is_born_private("notes::x") && !rule.is_born_private("github"));

        let rule = PrivacyRule::new(" mine:: , ,diary::", "github::,mine,");
        assert!(rule.is_born_private("mine::a") && rule.is_born_private("diary::"));
        assert!(!rule.is_born_private("github::org") && rule.is_born_private("decisions::1"));
        // An empty part of the list is no prefix; it would be one of everything.
        assert!(!rule.is_born_private("notes::x"));
    }

    #[test]
    fn clients_write_neither_evidence_nor_rights_nor_private_facts() {
        for entity in ["__legal_hold__::1", "__incident__::1", "__extension_grant__::a::b"] {
            let fault = check_client_write(&NewFact::new(entity, "k", "v")).unwrap_err();
            assert_eq!((fault.kind().status(), fault), (403, FactError::Reserved(entity.into())));
        }
        let private = NewFact { private: true, ..NewFact::new("notes::a", "k", "v") };
        assert_eq!(check_client_write(&private), Err(FactError::PrivateFromClient));
        assert_eq!(check_client_write(&NewFact::new("__agent::a", "k", "v")), Ok(()));
    }
}
