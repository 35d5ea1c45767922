//! What only who sits at this computer asks for: installing, granting, keys, secrets, receipts. None of it is offered to
//! agents.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolshelf_core::digest::to_hex;
use toolshelf_core::extension::keyring::TrustedKey;
use toolshelf_core::extension::manifest::TrustTier;
use toolshelf_core::live::CallOrigin;
use toolshelf_core::refusal::{Code, Refusal, cut};

use super::commands::read;
use super::{Event, Service};
use crate::extensions::dispatch::{Invocation, Outcome};
use crate::extensions::download::MANIFEST_MAX_BYTES;
use crate::extensions::error::InvokeError;
use crate::extensions::grants::GrantRequest;
use crate::extensions::index::RegistryEntry;
use crate::extensions::records::LifecycleState;
use crate::extensions::registry::ModuleSource;
use crate::extensions::vault_key::KeyAt;
use crate::extensions::{ExtError, Extensions};
use crate::files::{self, Found};

/// Receipts that are listed when nobody says how many.
const RECEIPTS: usize = 20;

/// What is to be installed: a manifest's file, its address, or an id of the registry.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Install {
    path: Option<PathBuf>,
    url: Option<String>,
    id: Option<String>,
    index: Option<String>,
    #[serde(default)]
    staged: bool,
}

#[derive(Deserialize)]
struct Search {
    #[serde(default)]
    query: String,
    index: Option<String>,
}

#[derive(Deserialize)]
struct MoveKey {
    to: KeyAt,
}

#[derive(Deserialize)]
struct Named {
    id: String,
}

#[derive(Deserialize)]
struct Granted {
    id: String,
    #[serde(flatten)]
    request: GrantRequest,
}

#[derive(Deserialize)]
struct Revoked {
    id: String,
    passport: String,
}

#[derive(Deserialize)]
struct Lifecycle {
    id: String,
    state: LifecycleState,
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Invoke {
    id: String,
    tool: String,
    passport: String,
    #[serde(default)]
    args: Value,
}

#[derive(Deserialize)]
struct Key {
    passport: String,
    public_key: String,
    tier: Option<TrustTier>,
}

#[derive(Deserialize)]
struct Secret {
    id: String,
    value: String,
}

#[derive(Deserialize)]
struct Receipts {
    limit: Option<usize>,
    extension: Option<String>,
}

impl Service {
    /// Does what `name` asks for.
    ///
    /// | command | answer |
    /// |---|---|
    /// | `ext.install {path}`, `{url}` or `{id, index?}`, with `staged?` | `{ok, extension}` |
    /// | `ext.search {query?, index?}` | `{ok, source, stale, entries}` |
    /// | `ext.list`, `ext.show {id}`, `ext.remove {id}` | `{ok, extensions}`, `{ok, extension, grants}`, `{ok}` |
    /// | `ext.lifecycle {id, state, reason?}` | `{ok, …}` |
    /// | `ext.grant {id, passport_fpr, …}`, `ext.revoke {id, passport}` | `{ok, grant}`, `{ok}` |
    /// | `ext.invoke {id, tool, passport, args}` | `{ok, result, …}` |
    /// | `keys.list`, `keys.add {passport, public_key, tier?}`, `keys.remove {id}` | `{ok, keys}`, `{ok}`, `{ok}` |
    /// | `secret.list`, `secret.set {id, value}`, `secret.remove {id}` | `{ok, secrets}`, `{ok}`, `{ok}` |
    /// | `secret.move-key {to: "keyring" or "file"}` | `{ok, from, to}` |
    /// | `receipts.list {limit?, extension?}` | `{ok, public_key, receipts}` |
    /// | `definitions.list`, `definitions.approve {names}` | `{ok, definitions}`, `{ok, approved}` |
    /// | `pairings.…`, `environments.…` | as [`Remote::admin`](crate::remote::Remote::admin) lists them |
    ///
    /// # Errors
    /// The refusal of what was asked for.
    pub(crate) async fn admin(&self, name: &str, args: &Map<String, Value>) -> Result<Value, Refusal> {
        match name {
            "definitions.list" => return self.definitions().await,
            "definitions.approve" => return self.approve_definitions(args).await,
            _ => {}
        }
        let machine = self.machine().environment();
        if let Some(answer) = self.remote().admin(name, args, &machine.key, &machine.label).await {
            return answer;
        }
        let host = self.extensions()?;
        if name == "ext.invoke" {
            return self.invoke(&host, read(args)?).await;
        }
        let (name, args) = (name.to_owned(), args.clone());
        // Files, downloads and the fact store block their thread.
        let work = move |host: &Extensions| Ok(administer(host, &name, &args));
        host.on_thread(work).await?
    }
}

fn administer(host: &Extensions, name: &str, args: &Map<String, Value>) -> Result<Value, Refusal> {
    let done = |()| json!({ "ok": true });
    Ok(match name {
        "ext.install" => json!({ "ok": true, "extension": install(host, read(args)?)? }),
        "ext.search" => {
            let Search { query, index } = read(args)?;
            let index = host.registry(index.as_deref(), false)?;
            let entries: Vec<Value> = index.search(&query).into_iter().map(shown_entry).collect();
            json!({ "ok": true, "source": index.source, "stale": index.stale, "entries": entries })
        }
        "ext.list" => json!({ "ok": true, "extensions": host.list()? }),
        "ext.show" => {
            let Named { id } = read(args)?;
            json!({ "ok": true, "extension": host.show(&id)?, "grants": host.grants(&id)? })
        }
        "ext.remove" => {
            let Named { id } = read(args)?;
            done(host.uninstall(&id, None)?)
        }
        "ext.lifecycle" => {
            let Lifecycle { id, state, reason } = read(args)?;
            let mut answer = json!(host.set_lifecycle(&id, state, reason.as_deref(), None)?);
            answer["ok"] = true.into();
            answer
        }
        "ext.grant" => {
            let Granted { id, request } = read(args)?;
            json!({ "ok": true, "grant": host.issue_grant(&id, request, None)? })
        }
        "ext.revoke" => {
            let Revoked { id, passport } = read(args)?;
            done(host.revoke_grant(&id, &passport, None)?)
        }
        "keys.list" => {
            let keyring = host.keys()?;
            json!({ "ok": true, "keys": keyring.keys().collect::<Vec<_>>() })
        }
        "keys.add" => {
            let Key { passport, public_key, tier } = read(args)?;
            let trust_tier = tier.unwrap_or(TrustTier::LocallySigned);
            let key =
                TrustedKey { passport_fpr: passport, public_key_hex: public_key, trust_tier, added_by: None };
            done(host.add_key(key, None)?)
        }
        "keys.remove" => {
            let Named { id } = read(args)?;
            done(host.remove_key(&id, None)?)
        }
        "secret.list" => json!({ "ok": true, "secrets": host.secrets()? }),
        "secret.set" => {
            let Secret { id, value } = read(args)?;
            done(host.set_secret(&id, value.as_bytes(), None)?)
        }
        "secret.move-key" => {
            let MoveKey { to } = read(args)?;
            json!({ "ok": true, "from": host.move_vault_key(to, None)?, "to": to })
        }
        "secret.remove" => {
            let Named { id } = read(args)?;
            done(host.remove_secret(&id, None)?)
        }
        "receipts.list" => {
            let Receipts { limit, extension } = read(args)?;
            let receipts = host.receipts().newest(limit.unwrap_or(RECEIPTS), extension.as_deref());
            let public_key = to_hex(host.receipts().public_key().as_bytes());
            json!({ "ok": true, "public_key": public_key, "receipts": receipts.map_err(ExtError::from)? })
        }
        _ => return Err(Refusal::new(Code::UnknownTool, format!("there is no command {:?}", cut(name, 60)))),
    })
}

impl Service {
    /// Tells watchers of a call of an extension that took so many milliseconds, and gives its end back.
    pub(crate) fn tell_invoked(
        &self,
        call: &Invocation,
        end: Result<Outcome, InvokeError>,
        took_ms: f64,
        from: CallOrigin,
    ) -> Result<Outcome, InvokeError> {
        let notice = self.extensions().ok().and_then(|host| host.notice(call, &end, took_ms, from));
        if let Some(notice) = notice {
            self.tell(Event::Call(notice));
        }
        end
    }

    async fn invoke(&self, host: &Extensions, call: Invoke) -> Result<Value, Refusal> {
        let Invoke { id, tool, passport, args } = call;
        let args = if args.is_null() { json!({}) } else { args };
        let call = Invocation { extension: id, tool, args, passport: Some(passport), request_id: None };
        let start = Instant::now();
        let end = host.invoke(call.clone()).await;
        let took = start.elapsed().as_secs_f64() * 1_000.0;
        invoked(self.tell_invoked(&call, end, took, CallOrigin::Cli))
    }
}

fn invoked(end: Result<Outcome, InvokeError>) -> Result<Value, Refusal> {
    match end {
        Ok(outcome) => {
            let mut answer = json!(outcome);
            answer["ok"] = true.into();
            Ok(answer)
        }
        // What the module has logged says more than the refusal can.
        Err(err) => {
            let log = err.log.iter().map(|entry| format!("\n{}: {}", entry.level, entry.message));
            let log: String = log.collect();
            let refusal = Refusal::from(*err.error);
            Err(Refusal::new(refusal.code, format!("{}{}", refusal.why, cut(&log, 4_000))))
        }
    }
}

/// Installs from a manifest's file, whose module is in the same folder, from an https URL, or from the registry.
fn install(host: &Extensions, from: Install) -> Result<Value, Refusal> {
    let Install { path, url, id, index, staged } = from;
    let state = if staged { LifecycleState::Staged } else { LifecycleState::Active };
    let (manifest, module) = match (path, url, id) {
        (None, Some(url), None) => (host.fetch_manifest(&url)?, ModuleSource::Manifest),
        (None, None, Some(id)) => {
            let install = host.install_from_registry(&id, index.as_deref(), state, None)?;
            return Ok(json!(install.installed));
        }
        (Some(path), None, None) => {
            let manifest: Value =
                serde_json::from_slice(&bounded(&path, MANIFEST_MAX_BYTES)?).map_err(|err| {
                    Refusal::new(Code::ExtensionInvalid, format!("{} is no manifest: {err}", path.display()))
                })?;
            let module = match manifest["wasm_module_path"].as_str() {
                Some(module) => module_beside(&path, module)?,
                None => ModuleSource::Manifest,
            };
            (manifest, module)
        }
        _ => {
            let why = "ext.install wants one of `path`, `url` and `id`";
            return Err(Refusal::new(Code::InvalidArgument, why));
        }
    };
    Ok(json!(host.install(&manifest, module, state, None)?))
}

/// An entry of the registry, as people read it.
fn shown_entry(entry: &RegistryEntry) -> Value {
    let RegistryEntry { id, version, name, summary, publisher_passport_fpr: publisher, .. } = entry;
    json!({ "id": id, "version": version, "name": name, "summary": summary, "publisher": publisher })
}

/// The module at `module` beside the manifest. A path that leaves the folder is left to the manifest's own rules.
fn module_beside(manifest: &Path, module: &str) -> Result<ModuleSource, Refusal> {
    let Ok(contained) = toolshelf_core::manifest::contained_path(module) else {
        return Ok(ModuleSource::Manifest);
    };
    let folder = manifest.parent().unwrap_or(Path::new("."));
    let limit = toolshelf_core::extension::errors::WASM_MODULE_DOWNLOAD_LIMIT_BYTES;
    Ok(ModuleSource::Bytes(bounded(&folder.join(contained), limit)?))
}

fn bounded(path: &Path, limit: u64) -> Result<Vec<u8>, Refusal> {
    match files::read(path, limit)? {
        Found::Whole(bytes) => Ok(bytes),
        Found::TooLong(size) => {
            let why = format!("{} has {size} bytes or more; at most {limit} are read", path.display());
            Err(Refusal::new(Code::OverBudget, why))
        }
    }
}
