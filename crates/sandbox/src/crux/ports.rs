//! What a call needs from outside: facts, secrets, receipts and the time.
//!
//! The functions are called from inside a running module, so they are synchronous, and a call runs on a thread that may
//! block. Whether the caller may do what it asks for is decided before they are called, by its grant; an adapter keeps
//! what is right for everybody (such as which facts are private).
//!
//! While an adapter works, no fuel is used and no epoch ends the call; the call ends when the adapter comes back. So an
//! adapter that may wait for long bounds that itself, and answers [`PortFault::Failed`].

use std::fmt;
use std::sync::Arc;

use toolshelf_core::extension::envelope::FactReply;

/// Who calls, and for what. Adapters write it beside what they keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallIdentity {
    /// Id of the extension.
    pub extension: String,
    /// The tool that is called.
    pub tool: String,
    /// The passport that the call is bound to.
    pub passport: String,
    /// Id of the request.
    pub request_id: String,
}

/// A fact to store.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NewFact<'c> {
    /// What it is about.
    pub entity: &'c str,
    /// Which of the entity's facts it is.
    pub key: &'c str,
    /// What it says.
    pub value: &'c str,
    /// How sure its writer is, from 0 to 1.
    pub confidence: f64,
}

/// Which facts are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactQuery<'c> {
    /// How their entities begin.
    pub prefix: &'c str,
    /// Terms of which one must be in the value, the key or the entity; `None` asks for all.
    pub text: Option<&'c str>,
    /// Most facts that are wanted: 1 to 256.
    pub top_k: usize,
}

/// What a module gives to be put on record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewReceipt<'c> {
    /// What was done.
    pub action: &'c str,
    /// What belongs to it, as the module wrote it.
    pub payload: &'c str,
}

/// Why an adapter did not do it. The text goes into the call's log, so whoever calls reads it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PortFault {
    /// What was asked for is of no form that can be kept; the module sees -11.
    #[error("refused: {0}")]
    Refused(String),
    /// The entity is one that no extension reaches; the module sees -3.
    #[error("out of scope: {0}")]
    OutOfScope(String),
    /// The adapter failed; the module sees -10.
    #[error("failed: {0}")]
    Failed(String),
}

/// Facts.
pub trait FactAccess: Send + Sync {
    /// The newest version of a fact.
    ///
    /// # Errors
    /// A [`PortFault`].
    fn read(&self, call: &CallIdentity, entity: &str, key: &str) -> Result<Option<FactReply>, PortFault>;

    /// Stores a fact and gives it back as it was stored.
    ///
    /// # Errors
    /// A [`PortFault`]; then nothing is stored.
    fn store(&self, call: &CallIdentity, fact: NewFact<'_>) -> Result<FactReply, PortFault>;

    /// The newest versions of the facts that are asked for, the best first.
    ///
    /// # Errors
    /// A [`PortFault`].
    fn query(&self, call: &CallIdentity, query: FactQuery<'_>) -> Result<Vec<FactReply>, PortFault>;
}

/// A vault.
pub trait Secrets: Send + Sync {
    /// The value of a secret, decrypted.
    ///
    /// # Errors
    /// A [`PortFault`].
    fn reveal(&self, call: &CallIdentity, id: &str) -> Result<Option<String>, PortFault>;
}

/// A log of receipts.
pub trait Receipts: Send + Sync {
    /// Puts something on record, and gives the receipt as JSON.
    ///
    /// # Errors
    /// A [`PortFault`]; then nothing is on record.
    fn emit(&self, call: &CallIdentity, receipt: NewReceipt<'_>) -> Result<String, PortFault>;
}

/// The time of day.
pub trait WallClock: Send + Sync {
    /// Milliseconds since 1970.
    fn now_unix_ms(&self) -> u64;
}

/// What the calls of a host have. Clones share it.
#[derive(Clone)]
pub struct Ports {
    /// Facts; without them fact functions answer -5.
    pub facts: Option<Arc<dyn FactAccess>>,
    /// The vault; without one `get_secret_decrypted` answers -6.
    pub secrets: Option<Arc<dyn Secrets>>,
    /// The log of receipts; without one `emit_receipt` answers -6.
    pub receipts: Option<Arc<dyn Receipts>>,
    /// The time.
    pub clock: Arc<dyn WallClock>,
}

impl Ports {
    /// Nothing but the clock of this computer.
    #[must_use]
    pub fn none() -> Self {
        Self { facts: None, secrets: None, receipts: None, clock: Arc::new(SystemWallClock) }
    }
}

impl fmt::Debug for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ports")
            .field("facts", &self.facts.is_some())
            .field("secrets", &self.secrets.is_some())
            .field("receipts", &self.receipts.is_some())
            .finish_non_exhaustive()
    }
}

/// The clock of this computer.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemWallClock;

impl WallClock for SystemWallClock {
    fn now_unix_ms(&self) -> u64 {
        // A clock before 1970 says 1970.
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}
