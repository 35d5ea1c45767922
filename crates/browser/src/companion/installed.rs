//! The extensions of the companion: what is installed, who may call it, calls, receipts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use toolshelf_core::extension::TrustTier;
use toolshelf_core::extension::envelope::HostLogEntry;
use toolshelf_core::grant::Grant;
use toolshelf_core::refusal::Refusal;

use super::client::{Client, PATIENCE_MS};
use super::installed_wire as wire;
use super::problem::{Problem, ask, escaped, known};
use super::wire::list;

/// How long a download on the other side may take, in milliseconds: two of them, each with thirty seconds.
const DOWNLOAD_PATIENCE_MS: u32 = 70_000;
/// How long a call may take, in milliseconds: it may have to be compiled, and to wait for its place.
const CALL_PATIENCE_MS: u32 = 120_000;
/// How long checking the whole log of receipts may take, in milliseconds.
const VERIFY_PATIENCE_MS: u32 = 300_000;
/// Receipts of an extension that are listed.
pub const RECEIPTS_LISTED: usize = 100;

/// A manifest, as far as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// The manifest itself, as the companion has read it.
    pub whole: Value,
    /// Name of the extension for machines.
    pub id: String,
    /// Name of the extension for people.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Whose key signs it.
    pub publisher: String,
    /// What it does.
    pub summary: String,
    /// What it is: `wasm`, `external_tool`, or a kind that is never called.
    pub kind: String,
    /// What it would like to do.
    pub capabilities: Vec<String>,
    /// Whom it calls.
    pub hosts: Vec<String>,
    /// Whether it needs a token of the user.
    pub requires_user_token: bool,
    /// Whether it would like to see contents.
    pub content_preview: bool,
    /// Whether it would like to see private facts.
    pub private_facts: bool,
    /// Longest call of an external tool, in milliseconds; 0 leaves it to the companion.
    pub max_runtime_ms: u64,
    /// Longest answer of an external tool, in bytes; 0 leaves it to the companion.
    pub max_output_bytes: u64,
    /// Who has signed it.
    pub signed_by: Option<String>,
    /// Where an external tool answers.
    pub endpoint: Option<String>,
    /// The tools that can be called.
    pub tools: Vec<Tool>,
    /// Path of the module beside the manifest.
    pub module_path: Option<String>,
    /// Where the module is downloaded from.
    pub module_url: Option<String>,
    /// The module's SHA-256, in digits.
    pub module_sha256: Option<String>,
}

/// A tool of an extension.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
    /// Under which id the companion keeps the secret that it is called with.
    pub secret: Option<String>,
}

/// An extension that is installed.
#[derive(Debug, Clone, PartialEq)]
pub struct Extension {
    /// Its manifest.
    pub manifest: Manifest,
    /// `blake3:` and the hash of what was signed.
    pub manifest_hash: String,
    /// How far its publisher is trusted.
    pub trust: TrustTier,
    /// When it was installed, in milliseconds since 1970.
    pub installed_at_ms: u64,
    /// Whether it was taken out of use.
    pub is_quarantined: bool,
    /// Since when it stands as it does, in milliseconds since 1970.
    pub since_ms: u64,
    /// Why.
    pub reason: Option<String>,
}

/// All that is installed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Listed {
    /// The extensions, by their ids.
    pub extensions: Vec<Extension>,
    /// Whether manifests without a signature are taken.
    pub allow_unsigned: bool,
}

/// What one call of a module is held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// Fuel.
    pub fuel: u64,
    /// Linear memory, in bytes.
    pub memory_bytes: u64,
    /// Time, in milliseconds.
    pub wall_ms: u64,
}

/// What was found out about a manifest that is not installed.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspected {
    /// The manifest; none where it cannot be read.
    pub manifest: Option<Manifest>,
    /// How far its publisher is trusted, where its signature is in order.
    pub trust: Option<TrustTier>,
    /// Whether manifests without a signature are taken.
    pub allow_unsigned: bool,
    /// Which version is installed under the same id.
    pub installed_version: Option<String>,
    /// What a call is held to.
    pub limits: Option<CallLimits>,
    /// Why it would not be installed.
    pub refusal: Option<Refusal>,
}

/// What a call gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What the tool says.
    pub result: Value,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
    /// How much fuel it used; none for an external tool.
    pub fuel_consumed: Option<u64>,
    /// What it logged.
    pub log: Vec<HostLogEntry>,
    /// Names the call.
    pub request_id: String,
    /// Why facts that an external tool proposed were not written.
    pub drop_reasons: Vec<String>,
}

/// A receipt.
#[derive(Debug, Clone, PartialEq)]
pub struct Receipt {
    /// The receipt itself.
    pub whole: Value,
    /// Its number.
    pub seq: u64,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Which tool.
    pub tool: String,
    /// On whose behalf.
    pub passport: String,
    /// In which call.
    pub request_id: String,
    /// What was done, in the extension's words.
    pub action: String,
    /// What belongs to it, in the extension's words.
    pub payload: String,
}

/// Whether the log of receipts is as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// How many receipts it has, and whether nothing is known to be missing at its end; or what is wrong with it.
    pub whole: Result<(u64, bool), Refusal>,
    /// The key that it was verified with, in digits.
    pub public_key: String,
}

/// Where a manifest is that is looked at.
#[derive(Debug, Clone, PartialEq)]
pub enum Candidate {
    /// Here.
    Manifest(Value),
    /// At an https address, from which the companion fetches it.
    Link(String),
}

/// Asks the companion for its extensions. Dropping a future gives its request up.
#[derive(Debug, Clone)]
pub struct Installed {
    client: Client,
}

impl Installed {
    /// Those of the companion that `client` asks.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    async fn get(&self, path: &str) -> Result<Value, Problem> {
        ask(&self.client, "GET", path, None, PATIENCE_MS).await
    }

    async fn post(&self, path: &str, body: &Value, patience_ms: u32) -> Result<Value, Problem> {
        ask(&self.client, "POST", path, Some(body), patience_ms).await
    }

    /// All that is installed.
    ///
    /// # Errors
    /// A [`Problem`], as with everything here.
    pub async fn list(&self) -> Result<Listed, Problem> {
        known(wire::listed(&self.get("/v1/extensions").await?))
    }

    /// What a manifest asks for, and whether it would be installed.
    ///
    /// # Errors
    /// A [`Problem`].
    pub async fn inspect(&self, candidate: &Candidate) -> Result<Inspected, Problem> {
        let body = match candidate {
            Candidate::Manifest(manifest) => json!({ "manifest": manifest }),
            Candidate::Link(url) => json!({ "url": url }),
        };
        known(wire::inspected(&self.post("/v1/extensions/inspect", &body, DOWNLOAD_PATIENCE_MS).await?))
    }

    /// Installs an extension, with its module where the manifest names a path.
    ///
    /// # Errors
    /// A [`Problem`]; nothing is installed then.
    pub async fn install(&self, manifest: &Value, module: Option<&[u8]>) -> Result<Extension, Problem> {
        let mut body = Map::new();
        body.insert("manifest".to_owned(), manifest.clone());
        if let Some(module) = module {
            body.insert("module".to_owned(), json!({ "base64": STANDARD.encode(module) }));
        }
        let answer = self.post("/v1/extensions/register", &body.into(), DOWNLOAD_PATIENCE_MS).await?;
        known(wire::extension(&answer))
    }

    /// Takes an extension away, with its module and its grants.
    ///
    /// # Errors
    /// A [`Problem`].
    pub async fn uninstall(&self, id: &str) -> Result<(), Problem> {
        ask(&self.client, "DELETE", &at(id, ""), None, PATIENCE_MS).await.map(drop)
    }

    /// Takes an extension out of use, or back into it.
    ///
    /// # Errors
    /// A [`Problem`].
    pub async fn quarantine(&self, id: &str, is_out: bool, reason: &str) -> Result<(), Problem> {
        let state = if is_out { "quarantined" } else { "active" };
        let body = json!({ "state": state, "reason": reason });
        self.post(&at(id, "/lifecycle"), &body, PATIENCE_MS).await.map(drop)
    }

    /// The grants of an extension, by their passports.
    ///
    /// # Errors
    /// A [`Problem`].
    pub async fn grants(&self, id: &str) -> Result<Vec<Grant>, Problem> {
        known(list(&self.get(&at(id, "/grants")).await?, "grants", wire::grant))
    }

    /// Gives a grant. Who gives it, and when, is said by the companion.
    ///
    /// # Errors
    /// A [`Problem`]; its sentence names the field that is wrong.
    pub async fn grant(&self, grant: &Grant) -> Result<Grant, Problem> {
        let path = at(&grant.extension_id, "/grants");
        known(wire::grant(&self.post(&path, &wire::grant_request(grant), PATIENCE_MS).await?))
    }

    /// Takes a grant back.
    ///
    /// # Errors
    /// A [`Problem`].
    pub async fn revoke(&self, id: &str, passport: &str) -> Result<(), Problem> {
        let path = at(id, &["/grants/", &escaped(passport)].concat());
        ask(&self.client, "DELETE", &path, None, PATIENCE_MS).await.map(drop)
    }

    /// Calls a tool on behalf of a passport.
    ///
    /// # Errors
    /// A [`Problem`], with what the call has left.
    pub async fn invoke(
        &self,
        id: &str,
        tool: &str,
        passport: &str,
        args: &Value,
    ) -> Result<Outcome, Problem> {
        let path = at(id, &["/tools/", &escaped(tool), "/invoke"].concat());
        let body = json!({ "args": args, "passport_fpr": passport });
        known(wire::outcome(&self.post(&path, &body, CALL_PATIENCE_MS).await?))
    }

    /// What an extension has put on record, the newest first; at most [`RECEIPTS_LISTED`].
    ///
    /// # Errors
    /// A [`Problem`].
    pub async fn receipts(&self, id: &str) -> Result<Vec<Receipt>, Problem> {
        let limit = RECEIPTS_LISTED.to_string();
        let path = ["/v1/extensions/receipts?limit=", &limit, "&extension=", &escaped(id)].concat();
        known(list(&self.get(&path).await?, "receipts", wire::receipt))
    }

    /// Has the log of all receipts checked from its beginning.
    ///
    /// # Errors
    /// A [`Problem`].
    pub async fn verify_receipts(&self) -> Result<Verdict, Problem> {
        let path = "/v1/extensions/receipts/verify";
        known(wire::verdict(&ask(&self.client, "GET", path, None, VERIFY_PATIENCE_MS).await?))
    }
}

fn at(id: &str, rest: &str) -> String {
    ["/v1/extensions/", &escaped(id), rest].concat()
}
