//! Facts, secrets and receipts as the sandbox asks for them. Who calls, and in whose words facts are signed, is fixed
//! for each call. The sandbox has asked the grant before it asks here.

use std::sync::Arc;

use toolshelf_core::extension::envelope::FactReply;
use toolshelf_core::redact::redact;
use toolshelf_facts::privacy::check_client_write;
use toolshelf_facts::{Fact, FactError, FactStore as _, Moment, Query};
use toolshelf_sandbox::crux::ports::{
    CallIdentity, FactAccess, FactQuery, NewFact, NewReceipt, PortFault, Receipts, Secrets, WallClock,
};

use super::receipts::{self, ReceiptLog, ReceiptsError};
use super::store::Facts;
use super::vault::{Vault, VaultError};
use super::{Clock, wait};

/// The facts of one call.
pub(super) struct CallFacts {
    pub(super) facts: Arc<Facts>,
    pub(super) actor: String,
    pub(super) clock: Clock,
}

impl FactAccess for CallFacts {
    fn read(&self, _: &CallIdentity, entity: &str, key: &str) -> Result<Option<FactReply>, PortFault> {
        let fact = wait(self.facts.latest(entity, key)).map_err(fault)?;
        // What is private is not shown to strangers, whatever a grant has come to cover.
        Ok(fact.filter(|fact| !fact.private).map(reply))
    }

    fn store(&self, _: &CallIdentity, new: NewFact<'_>) -> Result<FactReply, PortFault> {
        let fact = toolshelf_facts::NewFact {
            confidence: new.confidence,
            actor: Some(self.actor.clone()),
            ..toolshelf_facts::NewFact::new(new.entity, new.key, new.value)
        };
        check_client_write(&fact).map_err(fault)?;
        let at = Moment::from_unix_ms(self.clock.now());
        wait(self.facts.store(fact, at)).map(reply).map_err(fault)
    }

    fn query(&self, _: &CallIdentity, query: FactQuery<'_>) -> Result<Vec<FactReply>, PortFault> {
        let query = Query {
            prefix: Some(query.prefix.to_owned()),
            text: query.text.map(str::to_owned),
            top_k: Some(query.top_k),
            ..Query::default()
        };
        let found = wait(self.facts.query(&query)).map_err(fault)?;
        Ok(found.facts.into_iter().map(reply).collect())
    }
}

fn reply(fact: Fact) -> FactReply {
    FactReply {
        fact_id: fact.fact_id,
        entity: fact.entity,
        key: fact.key,
        value: fact.value,
        confidence: fact.confidence,
        stored_at_unix_ms: fact.stored_at.unix_ms(),
    }
}

fn fault(err: FactError) -> PortFault {
    match err {
        FactError::Reserved(_) | FactError::PrivateFromClient => PortFault::OutOfScope(err.to_string()),
        FactError::Invalid(_) | FactError::TooLarge { .. } => PortFault::Refused(err.to_string()),
        err => PortFault::Failed(err.to_string()),
    }
}

/// The vault.
pub(super) struct CallSecrets(pub(super) Arc<Vault>);

impl Secrets for CallSecrets {
    fn reveal(&self, _: &CallIdentity, id: &str) -> Result<Option<String>, PortFault> {
        match self.0.get(id) {
            Ok(secret) => match std::str::from_utf8(&secret) {
                Ok(text) => Ok(Some(text.to_owned())),
                Err(_) => Err(PortFault::Refused(format!("secret '{id}' is no text"))),
            },
            Err(VaultError::Unknown(_)) => Ok(None),
            Err(err) => Err(PortFault::Failed(err.to_string())),
        }
    }
}

/// The log of receipts.
pub(super) struct CallReceipts {
    pub(super) log: Arc<ReceiptLog>,
    pub(super) clock: Clock,
}

impl Receipts for CallReceipts {
    fn emit(&self, call: &CallIdentity, receipt: NewReceipt<'_>) -> Result<String, PortFault> {
        let new = receipts::NewReceipt {
            extension_id: &call.extension,
            tool: &call.tool,
            passport_fpr: &call.passport,
            request_id: &call.request_id,
            action: &redact(receipt.action),
            // What is on record for good must not hold a secret.
            payload: &redact(receipt.payload),
        };
        let receipt = self.log.append(new, self.clock.now()).map_err(|err| match err {
            ReceiptsError::TooLong { .. } => PortFault::Refused(err.to_string()),
            err => PortFault::Failed(err.to_string()),
        })?;
        serde_json::to_string(&receipt).map_err(|err| PortFault::Failed(err.to_string()))
    }
}

impl WallClock for Clock {
    fn now_unix_ms(&self) -> u64 {
        self.now()
    }
}
