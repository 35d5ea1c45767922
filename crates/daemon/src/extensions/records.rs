//! Extensions and grants as facts.
//!
//! An extension is the fact `record` of `__extension__::<id>`, a grant that of `__extension_grant__::<id>::<passport>`;
//! the value is JSON. What is taken away gets a version with an empty value, in which nothing is sure. The newest
//! version holds. The entities `__extension__::` and `__extension_grant__::<id>::` list what there is: one key for each
//! that there was (its value is empty where it is gone), so that listing does not look at all facts.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toolshelf_core::extension::{IntegrationManifest, TrustTier};
use toolshelf_core::grant::Grant;
use toolshelf_facts::port::LISTED_MAX;
use toolshelf_facts::{FactError, FactStore as _, Moment, NewFact};

use super::{ExtError, Extensions, wait};

const RECORD_KEY: &str = "record";
const EXTENSION_PREFIX: &str = "__extension__::";
const GRANT_PREFIX: &str = "__extension_grant__::";

/// Whether an extension may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LifecycleState {
    /// It may.
    #[default]
    Active,
    /// It was installed and is not in use yet.
    Staged,
    /// It was taken out of use.
    Quarantined,
}

/// Where an extension stands, and since when.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Lifecycle {
    /// The state.
    pub(crate) state: LifecycleState,
    /// When it was set, in milliseconds since the beginning of 1970.
    pub(crate) since_unix_ms: u64,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// By whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) changed_by_passport: Option<String>,
}

/// An extension that is installed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct InstallRecord {
    /// Its manifest; that of a module in the path form.
    pub(crate) manifest: IntegrationManifest,
    /// `blake3:` and the hash of what was signed.
    pub(crate) manifest_hash: String,
    /// How far its publisher is trusted.
    pub(crate) trust_tier: TrustTier,
    /// When it was installed, in milliseconds since the beginning of 1970.
    pub(crate) installed_at_unix_ms: u64,
    /// By whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) installed_by_passport: Option<String>,
    /// Whether it may be called.
    #[serde(default)]
    pub(crate) lifecycle: Lifecycle,
}

impl InstallRecord {
    /// Who facts say that they were written by, when the extension writes them.
    pub(super) fn actor(&self) -> String {
        format!("pack:{}@{}#{}", self.manifest.id, self.manifest.version, self.manifest_hash)
    }
}

/// The facts that a record and its listing become.
pub(super) fn extension_facts(record: &InstallRecord) -> Result<Vec<NewFact>, ExtError> {
    let entity = extension_entity(&record.manifest.id);
    facts_of(entity, EXTENSION_PREFIX.to_owned(), &record.manifest.id, record)
}

/// The same of a grant.
pub(super) fn grant_facts(grant: &Grant) -> Result<Vec<NewFact>, ExtError> {
    let Grant { extension_id, passport_fpr, .. } = grant;
    facts_of(grant_entity(extension_id, passport_fpr), grants_entity(extension_id), passport_fpr, grant)
}

/// Facts are checked before anything is written anywhere.
fn facts_of(
    entity: String,
    list: String,
    key: &str,
    record: &impl Serialize,
) -> Result<Vec<NewFact>, ExtError> {
    let damaged = |err: serde_json::Error| ExtError::Damaged { entity: entity.clone(), why: err.to_string() };
    let value = serde_json::to_string(record).map_err(damaged)?;
    let facts = [NewFact::new(entity.as_str(), RECORD_KEY, value), NewFact::new(list, key, RECORD_KEY)];
    facts.iter().try_for_each(NewFact::check)?;
    Ok(facts.into())
}

/// The facts that say that an extension is gone.
pub(super) fn extension_gone(id: &str) -> [NewFact; 2] {
    gone(extension_entity(id), EXTENSION_PREFIX.to_owned(), id)
}

/// The same of a grant.
pub(super) fn grant_gone(id: &str, passport: &str) -> [NewFact; 2] {
    gone(grant_entity(id, passport), grants_entity(id), passport)
}

fn gone(entity: String, list: String, key: &str) -> [NewFact; 2] {
    [(entity, RECORD_KEY), (list, key)]
        .map(|(entity, key)| NewFact { confidence: 0.0, ..NewFact::new(entity, key, "") })
}

fn extension_entity(id: &str) -> String {
    format!("{EXTENSION_PREFIX}{id}")
}

fn grant_entity(id: &str, passport: &str) -> String {
    format!("{GRANT_PREFIX}{id}::{passport}")
}

fn grants_entity(id: &str) -> String {
    format!("{GRANT_PREFIX}{id}::")
}

impl Extensions {
    pub(super) fn extension_record(&self, id: &str) -> Result<Option<InstallRecord>, ExtError> {
        self.record(extension_entity(id))
    }

    pub(super) fn grant_record(&self, id: &str, passport: &str) -> Result<Option<Grant>, ExtError> {
        self.record(grant_entity(id, passport))
    }

    /// All extensions, by their ids.
    pub(super) fn extension_records(&self) -> Result<Vec<InstallRecord>, ExtError> {
        self.records(EXTENSION_PREFIX, |id| self.extension_record(id))
    }

    /// All grants of an extension, by their passports.
    pub(super) fn grant_records(&self, id: &str) -> Result<Vec<Grant>, ExtError> {
        self.records(&grants_entity(id), |passport| self.grant_record(id, passport))
    }

    /// Makes sure that one more extension would still be listed.
    pub(super) fn check_room_for_extension(&self) -> Result<(), ExtError> {
        self.check_room("extensions", EXTENSION_PREFIX)
    }

    /// The same of a grant.
    pub(super) fn check_room_for_grant(&self, id: &str) -> Result<(), ExtError> {
        self.check_room("grants", &grants_entity(id))
    }

    fn check_room(&self, field: &'static str, list: &str) -> Result<(), ExtError> {
        let listed = wait(self.inner.facts.by_entity(list))?.len();
        if listed < LISTED_MAX {
            return Ok(());
        }
        Err(FactError::TooLarge { field, bytes: listed, bound: LISTED_MAX }.into())
    }

    /// Writes facts of the system, all or none.
    pub(super) fn write_records(&self, facts: Vec<NewFact>) -> Result<(), ExtError> {
        let at = Moment::from_unix_ms(self.now());
        wait(self.inner.facts.store_bulk(facts, at))?;
        Ok(())
    }

    fn record<T: DeserializeOwned>(&self, entity: String) -> Result<Option<T>, ExtError> {
        match wait(self.inner.facts.latest(&entity, RECORD_KEY))? {
            Some(fact) if !fact.value.is_empty() => serde_json::from_str(&fact.value)
                .map(Some)
                .map_err(|err| ExtError::Damaged { entity, why: err.to_string() }),
            _ => Ok(None),
        }
    }

    fn records<T>(
        &self,
        list: &str,
        record: impl Fn(&str) -> Result<Option<T>, ExtError>,
    ) -> Result<Vec<T>, ExtError> {
        self.listed(list)?.iter().filter_map(|key| record(key).transpose()).collect()
    }

    /// Passports that have grants, also those whose grant cannot be read.
    pub(super) fn granted_passports(&self, id: &str) -> Result<Vec<String>, ExtError> {
        self.listed(&grants_entity(id))
    }

    fn listed(&self, list: &str) -> Result<Vec<String>, ExtError> {
        let facts = wait(self.inner.facts.by_entity(list))?;
        Ok(facts.into_iter().filter(|fact| !fact.value.is_empty()).map(|fact| fact.key).collect())
    }
}
