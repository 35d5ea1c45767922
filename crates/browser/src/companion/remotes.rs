//! Other machines, as the companion knows them: those that it reaches, and those that it lets in.

use serde_json::{Value, json};
use toolshelf_core::live::MachineEnvironment;
use toolshelf_core::refusal::Refusal;

use super::client::{Client, known};
use super::wire;

/// How long pairing may take, in milliseconds: the remote is connected twice for it.
const PAIR_PATIENCE_MS: u32 = 40_000;

/// A remote that the companion was paired with.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteInfo {
    /// Its environment's key.
    pub key: String,
    /// What it is called.
    pub label: String,
    /// Where it is.
    pub address: String,
    /// What the companion is called there.
    pub name: String,
    /// How it stands: `connected`, `connecting`, `unreachable`, `revoked`, `refused` or `idle`.
    pub state: String,
    /// Why it is not connected.
    pub refusal: Option<Refusal>,
    /// What its token may be used for.
    pub scopes: Vec<String>,
    /// What it last said of itself.
    pub environment: Option<MachineEnvironment>,
    /// Ids of the tools of its shelf.
    pub tools: Vec<String>,
}

/// Somebody who was paired with the companion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairingInfo {
    /// Its id.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// Whether it is `active`, `revoked` or `expired`.
    pub state: String,
}

/// A one-time code for somebody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The code.
    pub code: String,
    /// The link that has it.
    pub link: String,
}

/// Other machines. Clones share the companion.
#[derive(Debug, Clone)]
pub struct Remotes {
    client: Client,
}

impl Remotes {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    /// The remotes.
    ///
    /// # Errors
    /// What the companion refuses.
    pub async fn list(&self) -> Result<Vec<RemoteInfo>, Refusal> {
        let answer = self.client.get("/v1/environments").await?;
        known(wire::list(&answer, "environments", wire::remote))
    }

    /// Who was paired with the companion, the newest first.
    ///
    /// # Errors
    /// What the companion refuses.
    pub async fn pairings(&self) -> Result<Vec<PairingInfo>, Refusal> {
        let answer = self.client.get("/v1/pairings").await?;
        known(wire::list(&answer, "pairings", wire::pairing))
    }

    /// Pairs with the remote of a link.
    ///
    /// # Errors
    /// What the companion or the remote refuses.
    pub async fn add(&self, link: &str) -> Result<(), Refusal> {
        let body = json!({ "link": link });
        self.client.post_within("/v1/environments", &body, PAIR_PATIENCE_MS).await.map(drop)
    }

    /// Makes a code for somebody else.
    ///
    /// # Errors
    /// What the companion refuses.
    pub async fn offer(&self) -> Result<Offer, Refusal> {
        let answer = self.client.post("/v1/pairings", &Value::Object(Default::default())).await?;
        Ok(Offer { code: known(wire::text(&answer, "code"))?, link: known(wire::text(&answer, "link"))? })
    }

    /// Does one of `remove`, `revoke` and `retry` with a remote.
    ///
    /// # Errors
    /// What the companion or the remote refuses.
    pub async fn act(&self, key: &str, what: &str) -> Result<(), Refusal> {
        self.post_to("/v1/environments/", key, what).await
    }

    /// Lets somebody in no more.
    ///
    /// # Errors
    /// What the companion refuses.
    pub async fn revoke(&self, pairing: &str) -> Result<(), Refusal> {
        self.post_to("/v1/pairings/", pairing, "revoke").await
    }

    /// Keys and ids have nothing in them that would have to be escaped.
    async fn post_to(&self, under: &str, id: &str, what: &str) -> Result<(), Refusal> {
        let path = [under, id, "/", what].concat();
        self.client.post_within(&path, &Value::Object(Default::default()), PAIR_PATIENCE_MS).await.map(drop)
    }
}
