//! The extension host: what is installed, who may call it, and what happens when it is called.
//!
//! [`Extensions`] is one value for all interfaces (HTTP, the command line, MCP). Its methods say yes with a value or no
//! with an [`ExtError`]; nothing here knows requests or arguments of commands. Most methods read or write files and so
//! block their thread: on an event loop, go through [`Extensions::on_thread`]. Calls are asynchronous by themselves.
//!
//! | part | idea |
//! |---|---|
//! | [`registry`] | install, list, show, uninstall, take out of use |
//! | [`index`] | looking extensions up in a registry, and installing them from there |
//! | [`grants`] | who may call what, and reach which facts and secrets |
//! | [`dispatch`] | one call, from the passport to the outcome |
//! | [`external`] | the call of an external tool |
//! | `ports` | facts, secrets and receipts as the sandbox asks for them |
//! | [`facts_api`] | facts, as clients read and write them |
//! | [`records`] | extensions and grants as facts |
//! | [`keys`], [`vault`], [`receipts`], [`audit`] | the files: trusted publishers, secrets, what was put on record, what happened |
//! | [`vault_key`] | where the key of the secrets lies |
//! | [`download`], [`outbound`] | how modules come, and where requests may go |
//! | [`store`] | where facts are kept |
//! | [`schema`] | arguments against `input_schema` |
//! | `notice` | how watchers hear of a call |
//! | [`look`] | what is looked at before and after something is done |
//! | [`config`] | settings, read anew for each call |
//! | [`error`] | every "no" |
//! | `files` | files that are whole or not there |
//!
//! What is kept in the data folder: `facts.redb` (held by one program at a time), `extensions/<id>/extension.wasm`,
//! `extensions/trusted-keys.json`, `vault.json` and `vault.key`, `receipts.jsonl` with head and keys,
//! `integrations/audit.jsonl`.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use toolshelf_core::extension::ExtensionError;
use toolshelf_core::extension::keyring::{Keyring, TrustedKey};
use toolshelf_core::rate::RateWindow;
use toolshelf_facts::PrivacyRule;
use toolshelf_sandbox::{CodeCache, WorkerProgram, private};
use zeroize::Zeroizing;

use self::audit::{AuditAction, AuditEvent, AuditLog};
use self::config::Variables;
use self::keys::KeyFile;
use self::outbound::Authorities;
use self::receipts::ReceiptLog;
use self::schema::Schemas;
use self::store::{Facts, SharedFacts};
use self::vault::{SecretInfo, Vault};
use self::vault_key::KeyAt;

pub(crate) mod audit;
pub(crate) mod config;
pub(crate) mod dispatch;
pub(crate) mod download;
pub(crate) mod error;
pub(crate) mod external;
pub(crate) mod facts_api;
mod files;
pub(crate) mod grants;
pub(crate) mod index;
pub(crate) mod keys;
pub(crate) mod look;
mod notice;
pub(crate) mod outbound;
#[cfg(feature = "wasm-extensions")]
mod ports;
pub(crate) mod receipts;
pub(crate) mod records;
pub(crate) mod registry;
pub(crate) mod schema;
pub(crate) mod store;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub(crate) mod vault;
pub(crate) mod vault_key;

pub(crate) use self::error::ExtError;

/// Certificates of a company's own authority are not larger.
const CA_FILE_MAX_BYTES: u64 = 1024 * 1024;

/// What an extension host is made of.
#[derive(Debug)]
pub(crate) struct ExtensionsOptions {
    /// The data folder.
    pub(crate) data: PathBuf,
    /// What workers that compile are started from.
    pub(crate) program: WorkerProgram,
    /// Where compiled code is kept.
    pub(crate) cache: Option<CodeCache>,
    /// Where settings come from.
    pub(crate) variables: Variables,
    /// Whom certificates may come from; the settings say where this does not.
    pub(crate) authorities: Option<Authorities>,
    /// What the time is.
    pub(crate) clock: Clock,
    /// Where facts are, where it is not the data folder.
    pub(crate) shared_facts: Option<SharedFacts>,
}

impl ExtensionsOptions {
    /// Those of this program, with the data folder `data`.
    pub(crate) fn of_process(data: PathBuf, program: WorkerProgram, cache: Option<CodeCache>) -> Self {
        let variables = Variables::of_process();
        let (authorities, shared_facts) = (None, None);
        Self { data, program, cache, variables, authorities, clock: Clock::of_system(), shared_facts }
    }
}

/// What the time is, in milliseconds since the beginning of 1970.
#[derive(Clone)]
pub(crate) struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Clock {
    /// The time of this computer.
    pub(crate) fn of_system() -> Self {
        Self(Arc::new(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        }))
    }

    fn now(&self) -> u64 {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}

/// The extension host. Clones share it.
#[derive(Clone)]
pub(crate) struct Extensions {
    inner: Arc<Inner>,
}

struct Inner {
    data: PathBuf,
    variables: Variables,
    authorities: Authorities,
    clock: Clock,
    facts: Arc<Facts>,
    privacy: PrivacyRule,
    vault: Arc<Vault>,
    receipts: Arc<ReceiptLog>,
    keys: KeyFile,
    audit: AuditLog,
    schemas: Schemas,
    rates: Mutex<HashMap<(String, String), RateWindow>>,
    changing: Mutex<HashMap<String, Arc<Mutex<()>>>>,
    numbers: AtomicU64,
    /// Changes of what is installed and granted, in this process.
    revision: AtomicU64,
    #[cfg(feature = "wasm-extensions")]
    engine: Result<Arc<toolshelf_sandbox::crux::Extensions>, String>,
}

impl Extensions {
    /// Opens what the data folder holds, and clears away what a crash has left.
    ///
    /// An engine that cannot be had is no error here: calls of modules answer 503 then, and all else works.
    ///
    /// # Errors
    /// An [`ExtError`] when a file cannot be opened; facts are held by one program at a time.
    pub(crate) fn open(options: ExtensionsOptions) -> Result<Self, ExtError> {
        let ExtensionsOptions { data, program, cache, variables, authorities, clock, shared_facts } = options;
        private::make_folder(&data).map_err(ExtError::io(&data))?;
        let authorities = match authorities {
            Some(authorities) => authorities,
            None => configured_authorities(&variables)?,
        };
        let (added, shared) = variables.private_prefixes();
        let privacy = PrivacyRule::new(&added, &shared);
        let facts = Arc::new(Facts::open(&data.join("facts.redb"), shared_facts, privacy.clone())?);
        #[cfg(not(feature = "wasm-extensions"))]
        drop((program, cache));
        let inner = Inner {
            vault: Arc::new(Vault::of(&data, variables.vault_key())),
            receipts: Arc::new(ReceiptLog::open(&data)?),
            keys: KeyFile::of(&data),
            audit: AuditLog::of(&data),
            #[cfg(feature = "wasm-extensions")]
            engine: toolshelf_sandbox::crux::Extensions::start(program, cache.as_ref(), variables.tick())
                .map(Arc::new)
                .map_err(|err| err.to_string()),
            data,
            variables,
            authorities,
            clock,
            facts,
            privacy,
            schemas: Schemas::default(),
            rates: Mutex::default(),
            changing: Mutex::default(),
            numbers: AtomicU64::default(),
            revision: AtomicU64::default(),
        };
        let extensions = Self { inner: Arc::new(inner) };
        extensions.clear_away()?;
        Ok(extensions)
    }

    /// Does work that blocks on a thread of its own.
    ///
    /// # Errors
    /// Those of the work.
    pub(crate) async fn on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, ExtError> + Send + 'static,
    ) -> Result<T, ExtError> {
        let extensions = self.clone();
        tokio::task::spawn_blocking(move || work(&extensions)).await.unwrap_or_else(|err| {
            Err(ExtensionError::Internal(format!("the work was not done: {err}")).into())
        })
    }

    /// Why modules cannot be called although this program was built for it.
    pub(crate) fn engine_fault(&self) -> Option<&str> {
        #[cfg(feature = "wasm-extensions")]
        return self.inner.engine.as_ref().err().map(String::as_str);
        #[cfg(not(feature = "wasm-extensions"))]
        None
    }

    /// May extensions be installed without a signature?
    pub(crate) fn allow_unsigned(&self) -> bool {
        self.inner.variables.allow_unsigned()
    }

    /// The publishers that are trusted.
    ///
    /// # Errors
    /// An [`ExtError`] when the keyring cannot be read.
    pub(crate) fn keys(&self) -> Result<Keyring, ExtError> {
        Ok(self.inner.keys.read()?)
    }

    /// Trusts a publisher's key; one of the same passport is replaced.
    ///
    /// # Errors
    /// An [`ExtError`]; then the keyring is as it was.
    pub(crate) fn add_key(&self, key: TrustedKey, by: Option<&str>) -> Result<(), ExtError> {
        let passport = key.passport_fpr.clone();
        let end = self.inner.keys.add(key).map_err(ExtError::from);
        self.audit(AuditAction::KeyAdded, by, ("", ""), &passport, &end);
        end
    }

    /// Trusts the key of a publisher no longer. What is installed stays.
    ///
    /// # Errors
    /// An [`ExtError`]: there is none, or the keyring cannot be written.
    pub(crate) fn remove_key(&self, passport_fpr: &str, by: Option<&str>) -> Result<(), ExtError> {
        let end = self.inner.keys.remove(passport_fpr).map_err(ExtError::from);
        self.audit(AuditAction::KeyRemoved, by, ("", ""), passport_fpr, &end);
        end
    }

    /// What there is in the vault; no secret is told.
    ///
    /// # Errors
    /// An [`ExtError`] when the vault cannot be read.
    pub(crate) fn secrets(&self) -> Result<Vec<SecretInfo>, ExtError> {
        Ok(self.inner.vault.list()?)
    }

    /// A secret, for what this program does itself.
    ///
    /// # Errors
    /// An [`ExtError`]: there is none, or the vault cannot be read.
    pub(crate) fn secret(&self, id: &str) -> Result<Zeroizing<Vec<u8>>, ExtError> {
        Ok(self.inner.vault.get(id)?)
    }

    /// Keeps a secret; one of the same id is replaced.
    ///
    /// # Errors
    /// An [`ExtError`]; then the vault is as it was.
    pub(crate) fn set_secret(&self, id: &str, secret: &[u8], by: Option<&str>) -> Result<(), ExtError> {
        let end = self.inner.vault.set(id, secret, self.now()).map_err(ExtError::from);
        self.audit(AuditAction::SecretSet, by, ("", ""), id, &end);
        end
    }

    /// Forgets a secret.
    ///
    /// # Errors
    /// An [`ExtError`]: there is none, or the vault cannot be written.
    pub(crate) fn remove_secret(&self, id: &str, by: Option<&str>) -> Result<(), ExtError> {
        let end = self.inner.vault.remove(id).map_err(ExtError::from);
        self.audit(AuditAction::SecretRemoved, by, ("", ""), id, &end);
        end
    }

    /// Puts the key of the secrets into the system's keyring or into its file, and says where it was.
    ///
    /// # Errors
    /// An [`ExtError`]; then it is where it was.
    pub(crate) fn move_vault_key(&self, to: KeyAt, by: Option<&str>) -> Result<KeyAt, ExtError> {
        let end = self.inner.vault.move_key(to).map_err(ExtError::from);
        self.audit(AuditAction::VaultKeyMoved, by, ("", ""), &format!("{to:?}"), &end);
        end
    }

    /// What was put on record.
    pub(crate) fn receipts(&self) -> &ReceiptLog {
        &self.inner.receipts
    }

    /// Another number than before, when something may have been installed, removed, granted or revoked since.
    pub(crate) fn revision(&self) -> u64 {
        self.inner.revision.load(Ordering::Relaxed)
    }

    fn now(&self) -> u64 {
        self.inner.clock.now()
    }

    /// A number that no other of a million calls has.
    fn next_number(&self) -> u64 {
        self.inner.numbers.fetch_add(1, Ordering::Relaxed) % 1_000_000
    }

    /// The folder of all extensions.
    fn folder(&self) -> PathBuf {
        self.inner.data.join("extensions")
    }

    /// Runs `work` while nobody else changes the extension.
    fn changing<T>(&self, id: &str, work: impl FnOnce() -> T) -> T {
        let lock = {
            let mut changing = guard(&self.inner.changing);
            changing.retain(|_, lock| Arc::strong_count(lock) > 1);
            Arc::clone(changing.entry(id.to_owned()).or_default())
        };
        let _held = guard(&lock);
        work()
    }

    /// Writes down how something ended.
    fn audit<T>(
        &self,
        action: AuditAction,
        actor: Option<&str>,
        pack: (&str, &str),
        detail: &str,
        end: &Result<T, ExtError>,
    ) {
        let code = end.as_ref().err().map(|err| err.kind().slug());
        let event = AuditEvent {
            action,
            actor: actor.unwrap_or_default(),
            pack_id: pack.0,
            version: pack.1,
            outcome: code.unwrap_or("ok"),
            detail,
        };
        self.inner.audit.note(event, self.now());
        self.inner.revision.fetch_add(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extensions").field("data", &self.inner.data).finish_non_exhaustive()
    }
}

fn configured_authorities(variables: &Variables) -> Result<Authorities, ExtError> {
    let Some(path) = variables.ca_file() else { return Ok(Authorities::Public) };
    let unusable = |why: String| ExtError::Setting { name: crate::settings::CA_FILE.name, why };
    let pem =
        files::read_bounded(Path::new(&path), CA_FILE_MAX_BYTES).map_err(|err| unusable(err.to_string()))?;
    let pem = pem.ok_or_else(|| unusable(format!("there is no file '{path}'")))?;
    Authorities::from_pem(&pem).map_err(unusable)
}

/// What is under the lock is whole at any moment, also where a thread that had it has panicked.
fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a store that does its work on this thread.
fn wait<T>(work: impl Future<Output = T>) -> T {
    futures::executor::block_on(work)
}
