//! What the calls have: facts, a vault and a log of receipts in memory, which check what reaches them.

use std::sync::{Arc, Mutex};

use toolshelf_core::extension::envelope::{FactReply, QUERY_TOP_K_MAX};
use toolshelf_core::grant::Grant;
use toolshelf_sandbox::crux::ports::{
    CallIdentity, FactAccess, FactQuery, NewFact, NewReceipt, PortFault, Ports, Receipts, Secrets,
    SystemWallClock,
};

/// What is in the vault, and in no log.
pub const SECRET: &str = "opensesame-7";

/// The grant of each call.
pub fn grant() -> Grant {
    Grant {
        extension_id: "ext.fuzz".into(),
        passport_fpr: "p_a".into(),
        allowed_prefixes_read: vec!["notes::".into()],
        allowed_prefixes_write: vec!["notes::sum::".into()],
        allowed_secret_ids: vec!["api-key".into()],
        granted_at_unix_ms: 1,
        ..Grant::default()
    }
}

/// The ports of one call.
#[derive(Clone, Default)]
pub struct World(Arc<Mutex<Vec<FactReply>>>);

impl World {
    pub fn new() -> Self {
        let world = Self::default();
        let mut facts = world.0.lock().expect("nobody has panicked");
        facts.push(fact(0, "notes::sum::a", "text", "Alpha"));
        facts.push(fact(1, "plans::x", "text", "hidden"));
        drop(facts);
        world
    }

    pub fn ports(&self) -> Ports {
        let shared = Arc::new(self.clone());
        Ports {
            facts: Some(shared.clone()),
            secrets: Some(shared.clone()),
            receipts: Some(shared),
            clock: Arc::new(SystemWallClock),
        }
    }

    /// Nothing is there that the grant does not cover, but what was there before.
    pub fn check(&self) {
        let facts = self.0.lock().expect("nobody has panicked");
        let stored = facts.iter().skip(2);
        for fact in stored {
            assert!(fact.entity.starts_with("notes::sum::"), "{fact:?}");
            assert!((0.0..=1.0).contains(&fact.confidence), "{fact:?}");
        }
    }
}

fn fact(number: usize, entity: &str, key: &str, value: &str) -> FactReply {
    let [fact_id, entity, key, value] = [&format!("fact-{number}"), entity, key, value].map(str::to_owned);
    FactReply { fact_id, entity, key, value, confidence: 1.0, stored_at_unix_ms: 1 }
}

impl FactAccess for World {
    fn read(&self, _: &CallIdentity, entity: &str, key: &str) -> Result<Option<FactReply>, PortFault> {
        assert!(entity.starts_with("notes::"), "{entity:?} is read");
        let facts = self.0.lock().expect("nobody has panicked");
        Ok(facts.iter().rev().find(|fact| fact.entity == entity && fact.key == key).cloned())
    }

    fn store(&self, _: &CallIdentity, new: NewFact<'_>) -> Result<FactReply, PortFault> {
        assert!(new.entity.starts_with("notes::sum::"), "{:?} is written", new.entity);
        let mut facts = self.0.lock().expect("nobody has panicked");
        let stored =
            FactReply { confidence: new.confidence, ..fact(facts.len(), new.entity, new.key, new.value) };
        facts.push(stored.clone());
        Ok(stored)
    }

    fn query(&self, _: &CallIdentity, query: FactQuery<'_>) -> Result<Vec<FactReply>, PortFault> {
        assert!(query.prefix.starts_with("notes::"), "{:?} is queried", query.prefix);
        assert!((1..=QUERY_TOP_K_MAX).contains(&query.top_k));
        // Loose on purpose: what leaves it must be filtered by the sandbox.
        Ok(self.0.lock().expect("nobody has panicked").clone())
    }
}

impl Secrets for World {
    fn reveal(&self, _: &CallIdentity, id: &str) -> Result<Option<String>, PortFault> {
        assert_eq!(id, "api-key", "a secret that is not granted is asked for");
        Ok(Some(SECRET.to_owned()))
    }
}

impl Receipts for World {
    fn emit(&self, _: &CallIdentity, receipt: NewReceipt<'_>) -> Result<String, PortFault> {
        Ok(serde_json::json!({ "action": receipt.action, "payload": receipt.payload }).to_string())
    }
}
