//! What the calls of these tests have: a store of facts, a vault, a log of receipts and a clock, all in memory.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use toolshelf_core::extension::envelope::FactReply;
use toolshelf_core::grant::Grant;
use toolshelf_sandbox::crux::engine::EPOCH_TICK_MS;
use toolshelf_sandbox::crux::ports::{
    CallIdentity, FactAccess, FactQuery, NewFact, NewReceipt, PortFault, Ports, Receipts, Secrets, WallClock,
};
use toolshelf_sandbox::crux::{CallFault, Extension, Extensions, ModuleBytes};
use toolshelf_sandbox::{CodeCache, WorkerProgram};

/// Extensions whose modules are compiled by this program.
pub(crate) fn extensions(cache: Option<&CodeCache>) -> Extensions {
    let program = WorkerProgram::this().unwrap();
    Extensions::start(program, cache, Duration::from_millis(EPOCH_TICK_MS)).unwrap()
}

/// Hashes a module and gets it ready.
pub(crate) fn prepare(extensions: &Extensions, module: &[u8]) -> Result<Extension, CallFault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(extensions.prepare(&ModuleBytes::hash(module.to_vec())))
}

/// How a store of facts behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Good,
    /// Fails whatever it is asked.
    Failing,
    /// Lets another writer be faster, always.
    Conflicting,
    /// Takes nothing.
    Refusing,
    /// Says that all is out of scope.
    Forbidding,
    /// Answers a query with all that it has.
    Loose,
    /// Takes its time.
    Slow,
}

/// A store of facts in memory.
#[derive(Debug)]
pub(crate) struct Facts {
    manner: Manner,
    kept: Mutex<Vec<FactReply>>,
    /// The largest count that a query has asked for.
    pub(crate) asked: Mutex<usize>,
}

impl Facts {
    pub(crate) fn new(manner: Manner, facts: &[(&str, &str, &str, f64)]) -> Arc<Self> {
        let store = Self { manner, kept: Mutex::default(), asked: Mutex::default() };
        for (entity, key, value, confidence) in facts {
            store.keep(NewFact { entity, key, value, confidence: *confidence });
        }
        Arc::new(store)
    }

    fn keep(&self, fact: NewFact<'_>) -> FactReply {
        let mut kept = self.kept.lock().unwrap();
        let number = kept.len() as u64 + 1;
        let stored = FactReply {
            fact_id: format!("fact-{number}"),
            entity: fact.entity.to_owned(),
            key: fact.key.to_owned(),
            value: fact.value.to_owned(),
            confidence: fact.confidence,
            stored_at_unix_ms: 1_000 + number,
        };
        kept.push(stored.clone());
        stored
    }

    /// The newest value of a fact.
    pub(crate) fn value(&self, entity: &str, key: &str) -> Option<String> {
        self.newest(entity, key).map(|fact| fact.value)
    }

    fn newest(&self, entity: &str, key: &str) -> Option<FactReply> {
        let kept = self.kept.lock().unwrap();
        kept.iter().rev().find(|fact| fact.entity == entity && fact.key == key).cloned()
    }

    fn manner(&self) -> Result<(), PortFault> {
        match self.manner {
            Manner::Good | Manner::Loose => Ok(()),
            Manner::Slow => {
                std::thread::sleep(Duration::from_millis(20));
                Ok(())
            }
            Manner::Failing => Err(PortFault::Failed("the disk is gone".to_owned())),
            Manner::Conflicting => Err(PortFault::Failed("another writer was faster".to_owned())),
            Manner::Refusing => Err(PortFault::Refused("too long".to_owned())),
            Manner::Forbidding => Err(PortFault::OutOfScope("reserved".to_owned())),
        }
    }
}

impl FactAccess for Facts {
    fn read(&self, _: &CallIdentity, entity: &str, key: &str) -> Result<Option<FactReply>, PortFault> {
        self.manner().map(|()| self.newest(entity, key))
    }

    fn store(&self, _: &CallIdentity, fact: NewFact<'_>) -> Result<FactReply, PortFault> {
        self.manner().map(|()| self.keep(fact))
    }

    fn query(&self, _: &CallIdentity, query: FactQuery<'_>) -> Result<Vec<FactReply>, PortFault> {
        self.manner()?;
        let mut asked = self.asked.lock().unwrap();
        *asked = query.top_k.max(*asked);
        let loose = self.manner == Manner::Loose;
        let wanted = |fact: &&FactReply| {
            let text = query.text.map(str::to_lowercase);
            let all = format!("{} {} {}", fact.value, fact.key, fact.entity).to_lowercase();
            loose || fact.entity.starts_with(query.prefix) && text.is_none_or(|text| all.contains(&text))
        };
        let most = if loose { usize::MAX } else { query.top_k };
        Ok(self.kept.lock().unwrap().iter().rev().filter(wanted).take(most).cloned().collect())
    }
}

/// A vault with one secret, or one that fails.
#[derive(Debug)]
pub(crate) struct Vault {
    pub(crate) fails: bool,
}

impl Secrets for Vault {
    fn reveal(&self, _: &CallIdentity, id: &str) -> Result<Option<String>, PortFault> {
        if self.fails {
            return Err(PortFault::Failed("the vault is locked".to_owned()));
        }
        Ok((id == "api-key").then(|| "opensesame-7".to_owned()))
    }
}

/// A log of receipts that numbers them, or does not take them for a reason.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) fault: Option<PortFault>,
    pub(crate) count: Mutex<u64>,
}

impl Receipts for Log {
    fn emit(&self, call: &CallIdentity, receipt: NewReceipt<'_>) -> Result<String, PortFault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let mut count = self.count.lock().unwrap();
        *count += 1;
        let NewReceipt { action, payload } = receipt;
        let CallIdentity { extension, passport, .. } = call;
        Ok(json!({"seq": *count, "action": action, "payload": payload, "extension": extension, "passport": passport})
            .to_string())
    }
}

/// A clock that stands still.
#[derive(Debug)]
pub(crate) struct Still;

impl WallClock for Still {
    fn now_unix_ms(&self) -> u64 {
        1_753_440_000_000
    }
}

/// The grant of most calls.
pub(crate) fn grant() -> Grant {
    Grant {
        extension_id: "ext.test".into(),
        passport_fpr: "p_alice".into(),
        allowed_prefixes_read: vec!["notes::".into()],
        allowed_prefixes_write: vec!["notes::sum::".into()],
        allowed_secret_ids: vec!["api-key".into(), "lost-key".into()],
        granted_at_unix_ms: 1,
        ..Grant::default()
    }
}

pub(crate) fn identity(passport: &str, request_id: &str) -> CallIdentity {
    CallIdentity {
        extension: "ext.test".to_owned(),
        tool: "ext.test.run".to_owned(),
        passport: passport.to_owned(),
        request_id: request_id.to_owned(),
    }
}

/// Ports with nothing but a clock.
pub(crate) fn bare() -> Ports {
    Ports { facts: None, secrets: None, receipts: None, clock: Arc::new(Still) }
}
