//! Grants: who may call an extension, and what it reaches on their behalf.
//!
//! Nothing of a grant is remembered between two calls, so what is revoked or has expired is over with the next one.

use serde::Deserialize;
use toolshelf_core::extension::ExtensionError;
use toolshelf_core::grant::Grant;
use toolshelf_core::refusal::cut;

use super::audit::AuditAction;
use super::records::{grant_facts, grant_gone};
use super::{ExtError, Extensions};

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub(crate) struct GrantRequest {
    /// On whose behalf.
    pub(crate) passport_fpr: String,
    /// The tools that may be called; none means all.
    #[serde(default)]
    pub(crate) allowed_tool_names: Vec<String>,
    /// Entities that begin like one of these may be read.
    #[serde(default)]
    pub(crate) allowed_prefixes_read: Vec<String>,
    /// Entities that begin like one of these may be written.
    #[serde(default)]
    pub(crate) allowed_prefixes_write: Vec<String>,
    /// Calls in a minute.
    #[serde(default)]
    pub(crate) rate_limit_per_min: Option<u32>,
    /// When it ends, in milliseconds since the beginning of 1970.
    #[serde(default)]
    pub(crate) expires_at_unix_ms: Option<u64>,
    /// Ids of the secrets that may be read.
    #[serde(default)]
    pub(crate) allowed_secret_ids: Vec<String>,
}

impl Extensions {
    /// Gives a grant. One that has expired may be replaced.
    ///
    /// # Errors
    /// An [`ExtError`]: [`ExtensionError::NotFound`], a [`GrantFault`](toolshelf_core::grant::GrantFault), or
    /// [`ExtensionError::GrantExists`].
    pub(crate) fn issue_grant(
        &self,
        id: &str,
        request: GrantRequest,
        by: Option<&str>,
    ) -> Result<Grant, ExtError> {
        let passport = request.passport_fpr.clone();
        let mut version = String::new();
        let end = self.changing(id, || {
            version = self.show(id)?.manifest.version;
            let now = self.now();
            let grant = Grant {
                extension_id: id.to_owned(),
                passport_fpr: request.passport_fpr,
                allowed_tool_names: request.allowed_tool_names,
                allowed_prefixes_read: request.allowed_prefixes_read,
                allowed_prefixes_write: request.allowed_prefixes_write,
                rate_limit_per_min: request.rate_limit_per_min,
                granted_at_unix_ms: now,
                granted_by_passport: by.map(str::to_owned),
                expires_at_unix_ms: request.expires_at_unix_ms,
                allowed_secret_ids: request.allowed_secret_ids,
            };
            grant.check(self.inner.privacy.prefixes())?;
            let facts = grant_facts(&grant)?;
            let earlier = self.grant_record(id, &grant.passport_fpr)?;
            if earlier.is_some_and(|earlier| !earlier.is_expired(now)) {
                return Err(ExtensionError::GrantExists.into());
            }
            self.check_room_for_grant(id)?;
            self.write_records(facts)?;
            Ok(grant)
        });
        self.audit(AuditAction::GrantIssued, by, (id, &version), &passport, &end);
        end
    }

    /// The grant of a passport, also one that has expired.
    ///
    /// # Errors
    /// An [`ExtError`]: [`ExtensionError::NotFound`] or [`ExtensionError::GrantNotFound`].
    pub(crate) fn grant(&self, id: &str, passport: &str) -> Result<Grant, ExtError> {
        self.show(id)?;
        self.grant_record(id, passport)?.ok_or_else(|| grant_not_found(id, passport))
    }

    /// All grants of an extension, by their passports, also those that have expired.
    ///
    /// # Errors
    /// An [`ExtError`]; [`ExtensionError::NotFound`] where the extension is not installed.
    pub(crate) fn grants(&self, id: &str) -> Result<Vec<Grant>, ExtError> {
        self.show(id)?;
        self.grant_records(id)
    }

    /// Takes a grant back. A call that runs keeps what it was given.
    ///
    /// # Errors
    /// An [`ExtError`]: [`ExtensionError::NotFound`] or [`ExtensionError::GrantNotFound`].
    pub(crate) fn revoke_grant(&self, id: &str, passport: &str, by: Option<&str>) -> Result<(), ExtError> {
        let mut version = String::new();
        let end = self.changing(id, || {
            version = self.show(id)?.manifest.version;
            match self.grant_record(id, passport) {
                // What cannot be read can still be taken away.
                Ok(Some(_)) | Err(ExtError::Damaged { .. }) => {}
                Ok(None) => return Err(grant_not_found(id, passport)),
                Err(err) => return Err(err),
            }
            self.write_records(grant_gone(id, passport).into())
        });
        self.audit(AuditAction::GrantRevoked, by, (id, &version), passport, &end);
        end
    }

    /// The grant that a call is made under.
    ///
    /// # Errors
    /// [`ExtensionError::NoGrant`] and [`ExtensionError::GrantExpired`].
    pub(crate) fn grant_in_force(&self, id: &str, passport: &str) -> Result<Grant, ExtError> {
        match self.grant_record(id, passport)? {
            Some(grant) if grant.is_expired(self.now()) => {
                let (extension, passport) = (id.to_owned(), cut(passport, 200));
                Err(ExtensionError::GrantExpired { extension, passport }.into())
            }
            // The record's place says whose it is; a record that says otherwise is none.
            Some(grant) if grant.extension_id == id && grant.passport_fpr == passport => Ok(grant),
            _ => {
                let (extension, passport) = (id.to_owned(), cut(passport, 200));
                Err(ExtensionError::NoGrant { passport, extension }.into())
            }
        }
    }
}

pub(super) fn grant_not_found(id: &str, passport: &str) -> ExtError {
    ExtensionError::GrantNotFound { extension: cut(id, 200), passport: cut(passport, 200) }.into()
}
