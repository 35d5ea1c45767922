//! One call, from the passport to the outcome.
//!
//! In this order: who calls; the extension; the grant; the lifecycle; the grant's tools; the kind; the manifest's tools; the
//! rate; the arguments. Only then is a module read, or a request built. Record, grant, module and settings are read
//! anew for each call.

use serde::Serialize;
use serde_json::Value;
use toolshelf_core::extension::envelope::{ToolRequest, WasmDispatchOutcome, request_id};
use toolshelf_core::extension::external::{ExternalFault, filter_writes};
use toolshelf_core::extension::manifest::ExtensionTool;
use toolshelf_core::extension::{EntryKind, ExtensionError};
use toolshelf_core::grant::Grant;
use toolshelf_core::refusal::cut;
use toolshelf_facts::privacy::check_client_write;
use toolshelf_facts::{FactStore as _, Moment, NewFact};
use zeroize::Zeroizing;

use super::audit::{AuditAction, AuditEvent};
use super::config::ExternalLimits;
use super::error::InvokeError;
use super::external::{Attribution, ExternalCall, ExternalOutcome};
use super::records::{InstallRecord, LifecycleState};
use super::vault::VaultError;
use super::{ExtError, Extensions, guard, wait};

/// Windows of calls that are kept before those without calls are forgotten.
const RATES_KEPT: usize = 1_024;

/// What a call gives.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Outcome {
    /// From a module.
    Wasm(WasmDispatchOutcome),
    /// From an external tool.
    External(ExternalOutcome),
}

/// What is called.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Invocation {
    /// Id of the extension.
    pub(crate) extension: String,
    /// Name of the tool.
    pub(crate) tool: String,
    /// Its arguments.
    pub(crate) args: Value,
    /// On whose behalf.
    pub(crate) passport: Option<String>,
    /// Names the call; made here where the caller has no name for it.
    pub(crate) request_id: Option<String>,
}

/// How far a call has come.
enum Step {
    /// To its end.
    Done(Box<Result<Outcome, InvokeError>>),
    /// To a module whose code is not in memory.
    #[cfg(feature = "wasm-extensions")]
    Compile(Box<module::Waiting>),
}

/// What the audit log says of a call besides its end.
struct CallRow {
    extension: String,
    version: String,
    tool: String,
    passport: String,
}

impl CallRow {
    fn of(call: &Invocation) -> Self {
        let passport = call.passport.as_deref().unwrap_or_default();
        Self {
            extension: cut(&call.extension, 128),
            version: String::new(),
            tool: cut(&call.tool, 100),
            passport: cut(passport, 512),
        }
    }

    /// Rows of what is not there are held together, or a caller who makes up names could write any number.
    fn of_nothing(&mut self) {
        self.tool = format!("{} {}", std::mem::take(&mut self.extension), self.tool);
    }
}

/// A call that may be made.
struct Admitted {
    record: InstallRecord,
    grant: Grant,
    passport: String,
    request_id: String,
}

impl Extensions {
    /// Calls a tool of an extension.
    ///
    /// # Errors
    /// An [`InvokeError`]: why there is no result, and what the call has logged and used.
    pub(crate) async fn invoke(&self, call: Invocation) -> Result<Outcome, InvokeError> {
        match self.on_thread(move |extensions| Ok(extensions.begin(call))).await? {
            Step::Done(end) => *end,
            #[cfg(feature = "wasm-extensions")]
            Step::Compile(waiting) => self.compile_and_call(*waiting).await,
        }
    }

    /// All of a call that needs no code to be compiled first.
    fn begin(&self, call: Invocation) -> Step {
        let mut row = CallRow::of(&call);
        let admitted = match self.admit(&call) {
            Ok(admitted) => admitted,
            Err(err) => {
                if let ExtError::Extension(
                    ExtensionError::NotInstalled(_) | ExtensionError::PassportRequired,
                ) = err
                {
                    row.of_nothing();
                }
                return self.done(&row, Err(err.into()));
            }
        };
        row.version.clone_from(&admitted.record.manifest.version);
        match admitted.record.manifest.entry.kind {
            EntryKind::Wasm => self.call_module(row, admitted, call),
            _ => {
                let end = self.call_external(&admitted, &call);
                self.done(&row, end.map(Outcome::External).map_err(InvokeError::from))
            }
        }
    }

    fn done(&self, row: &CallRow, end: Result<Outcome, InvokeError>) -> Step {
        self.note(row, &end);
        Step::Done(Box::new(end))
    }

    /// Writes down how a call ended.
    fn note(&self, row: &CallRow, end: &Result<Outcome, InvokeError>) {
        let event = AuditEvent {
            action: AuditAction::Invoke,
            actor: &row.passport,
            pack_id: &row.extension,
            version: &row.version,
            outcome: end.as_ref().err().map_or("ok", |err| err.error.kind().slug()),
            detail: &row.tool,
        };
        self.inner.audit.note(event, self.now());
    }

    /// Says whether a call may be made, and counts it.
    fn admit(&self, call: &Invocation) -> Result<Admitted, ExtError> {
        let passport = call.passport.as_deref().map(str::trim).filter(|passport| !passport.is_empty());
        let passport = passport.ok_or(ExtensionError::PassportRequired)?;
        let record = self.extension_record(&call.extension)?;
        let record = record.ok_or_else(|| ExtensionError::NotInstalled(cut(&call.extension, 200)))?;
        let manifest = &record.manifest;
        let grant = self.grant_in_force(&call.extension, passport)?;
        match record.lifecycle.state {
            LifecycleState::Active => {}
            LifecycleState::Staged => return Err(ExtensionError::Staged(manifest.id.clone()).into()),
            LifecycleState::Quarantined => {
                return Err(ExtensionError::Quarantined(manifest.id.clone()).into());
            }
        }
        if !grant.may_call(&call.tool) {
            return Err(ExtensionError::ToolNotGranted(cut(&call.tool, 200)).into());
        }
        let kind = manifest.entry.kind;
        let default_rate = match kind {
            EntryKind::Wasm => None,
            EntryKind::ExternalTool => Some(self.external_limits(&record).rate_per_min),
            kind => return Err(ExtensionError::UnsupportedKind { id: manifest.id.clone(), kind }.into()),
        };
        let tool = self.tool(&record, &call.tool)?;
        self.count(&grant, default_rate)?;
        self.inner
            .schemas
            .check(&tool.input_schema, &call.args)
            .map_err(|why| ExtensionError::ArgsMismatch { tool: cut(&call.tool, 200), why })?;
        let request_id = match &call.request_id {
            Some(id) => id.clone(),
            None => request_id(u128::from(self.now()) * 1_000_000 + u128::from(self.next_number())),
        };
        Ok(Admitted { grant, passport: passport.to_owned(), request_id, record })
    }

    fn tool<'r>(&self, record: &'r InstallRecord, tool: &str) -> Result<&'r ExtensionTool, ExtError> {
        record.manifest.tool(tool).ok_or_else(|| {
            let (tool, extension) = (cut(tool, 200), record.manifest.id.clone());
            ExtensionError::ToolNotDeclared { tool, extension }.into()
        })
    }

    /// Counts a call in the window of its grant. Modules have a rate where the grant names one.
    fn count(&self, grant: &Grant, default_per_min: Option<u32>) -> Result<(), ExtError> {
        let Some(default_per_min) = default_per_min.or(grant.rate_limit_per_min) else { return Ok(()) };
        let (cap, now) = (grant.rate_limit(default_per_min), self.now());
        let mut rates = guard(&self.inner.rates);
        if rates.len() >= RATES_KEPT {
            rates.retain(|_, window| !window.is_empty(now));
        }
        let window = rates.entry((grant.extension_id.clone(), grant.passport_fpr.clone())).or_default();
        window.record(now, cap).map_err(ExtensionError::from)?;
        Ok(())
    }

    fn external_limits(&self, record: &InstallRecord) -> ExternalLimits {
        let safety = &record.manifest.safety;
        self.inner.variables.external().tightened(safety.max_runtime_ms, safety.max_output_bytes)
    }

    fn call_external(&self, admitted: &Admitted, call: &Invocation) -> Result<ExternalOutcome, ExtError> {
        let Admitted { record, grant, passport, request_id } = admitted;
        let answered = ExternalCall {
            manifest: &record.manifest,
            request: ToolRequest {
                tool: &call.tool,
                args: &call.args,
                calling_passport_id: passport,
                request_id,
            },
            secret: self.shared_secret(record, grant, &call.tool)?,
            limits: self.external_limits(record),
            authorities: self.inner.authorities.clone(),
        }
        .make()
        .map_err(ExtensionError::from)?;
        let mut writes = filter_writes(answered.response.fact_writes, grant);
        let mut accepted_fact_writes = 0;
        for write in writes.accepted {
            let fact = NewFact {
                confidence: if write.confidence.is_nan() { 0.0 } else { write.confidence.clamp(0.0, 1.0) },
                actor: Some(record.actor()),
                ..NewFact::new(write.entity, write.key, write.value)
            };
            let entity = cut(&fact.entity, 200);
            let at = Moment::from_unix_ms(self.now());
            match check_client_write(&fact).and_then(|()| wait(self.inner.facts.store(fact, at))) {
                Ok(_) => accepted_fact_writes += 1,
                Err(err) => {
                    writes.drop_reasons.push(format!("fact of entity '{entity}' was not stored: {err}"))
                }
            }
        }
        Ok(ExternalOutcome {
            result: answered.response.result,
            accepted_fact_writes,
            dropped_fact_writes: writes.drop_reasons.len(),
            drop_reasons: writes.drop_reasons,
            upstream_status: answered.status,
            elapsed_ms: answered.elapsed_ms,
            request_id: request_id.clone(),
            attribution: Attribution {
                extension_id: record.manifest.id.clone(),
                extension_version: record.manifest.version.clone(),
                manifest_hash: record.manifest_hash.clone(),
            },
        })
    }

    /// The secret that the manifest names for the tool. Naming it is a wish; the grant decides.
    fn shared_secret(
        &self,
        record: &InstallRecord,
        grant: &Grant,
        tool: &str,
    ) -> Result<Option<Zeroizing<String>>, ExtError> {
        let Some(id) = self.tool(record, tool)?.auth_shared_secret_id.as_deref() else { return Ok(None) };
        if !grant.may_read_secret(id) {
            return Err(ExtensionError::ScopeViolation.into());
        }
        let secret = self.inner.vault.get(id)?;
        let text = std::str::from_utf8(&secret).map_err(|_| VaultError::BadLength)?;
        // A header is one line.
        if text.chars().any(char::is_control) {
            let why = format!("secret '{id}' cannot be sent in a header");
            return Err(ExtensionError::from(ExternalFault::Transport(why)).into());
        }
        Ok(Some(Zeroizing::new(text.to_owned())))
    }
}

#[cfg(not(feature = "wasm-extensions"))]
impl Extensions {
    fn call_module(&self, row: CallRow, _: Admitted, _: Invocation) -> Step {
        self.done(&row, Err(ExtensionError::NotBuilt.into()))
    }
}

#[cfg(feature = "wasm-extensions")]
mod module {
    use std::sync::Arc;

    use toolshelf_core::extension::{ExtensionError, IntegrationManifest};
    use toolshelf_sandbox::crux;
    use toolshelf_sandbox::crux::{Call, CallIdentity, FailedCall, ModuleBytes, Ports};

    use super::super::error::InvokeError;
    use super::super::ports::{CallFacts, CallReceipts, CallSecrets};
    use super::super::{ExtError, Extensions};
    use super::{Admitted, CallRow, Invocation, Outcome, Step};

    /// A call whose module has to be compiled first.
    pub(super) struct Waiting {
        row: CallRow,
        module: ModuleBytes,
        call: Call,
    }

    impl Extensions {
        /// Reads the module, checks that it is the one that is pinned, and calls it where its code is in memory.
        pub(super) fn call_module(&self, row: CallRow, admitted: Admitted, call: Invocation) -> Step {
            let ready = self
                .engine()
                .map_err(InvokeError::from)
                .and_then(|engine| Ok((engine, self.module_of(&admitted.record.manifest)?)));
            let (engine, module) = match ready {
                Ok(ready) => ready,
                Err(err) => return self.done(&row, Err(err)),
            };
            let call = self.sandboxed(admitted, call);
            match engine.known(&module) {
                Some(extension) => self.done(&row, run(engine, &extension, call)),
                None => Step::Compile(Box::new(Waiting { row, module, call })),
            }
        }

        pub(super) async fn compile_and_call(&self, waiting: Waiting) -> Result<Outcome, InvokeError> {
            let engine = Arc::clone(self.engine()?);
            let Waiting { row, module, call } = waiting;
            let prepared = engine.prepare(&module).await;
            let extensions = self.clone();
            let called = tokio::task::spawn_blocking(move || {
                let end = match prepared {
                    Ok(extension) => run(&engine, &extension, call),
                    Err(fault) => Err(failed(FailedCall::before_it_began(fault, call.identity.request_id))),
                };
                extensions.note(&row, &end);
                end
            });
            let lost = |err| ExtensionError::Internal(format!("the call was lost: {err}"));
            called.await.unwrap_or_else(|err| Err(lost(err).into()))
        }

        fn module_of(&self, manifest: &IntegrationManifest) -> Result<ModuleBytes, ExtError> {
            let module = ModuleBytes::hash(self.module_in_folder(manifest)?);
            let (pinned, on_disk) = (manifest.wasm_module_sha256.clone(), module.digest().to_string());
            if pinned.as_ref() == Some(&on_disk) {
                return Ok(module);
            }
            let manifest = pinned.unwrap_or_default();
            Err(ExtensionError::ModuleMismatch { manifest, on_disk }.into())
        }

        fn engine(&self) -> Result<&Arc<crux::Extensions>, ExtensionError> {
            self.inner.engine.as_ref().map_err(|_| ExtensionError::EngineFailed)
        }

        fn sandboxed(&self, admitted: Admitted, call: Invocation) -> Call {
            let Admitted { record, grant, passport, request_id } = admitted;
            let inner = &self.inner;
            let facts = CallFacts {
                facts: Arc::clone(&inner.facts),
                actor: record.actor(),
                clock: inner.clock.clone(),
            };
            let receipts = CallReceipts { log: Arc::clone(&inner.receipts), clock: inner.clock.clone() };
            Call {
                identity: CallIdentity {
                    extension: record.manifest.id,
                    tool: call.tool,
                    passport,
                    request_id,
                },
                args: call.args,
                grant: Some(grant),
                ports: Ports {
                    facts: Some(Arc::new(facts)),
                    secrets: Some(Arc::new(CallSecrets(Arc::clone(&inner.vault)))),
                    receipts: Some(Arc::new(receipts)),
                    clock: Arc::new(inner.clock.clone()),
                },
                limits: inner.variables.limits(),
            }
        }
    }

    fn run(
        engine: &crux::Extensions,
        extension: &crux::Extension,
        call: Call,
    ) -> Result<Outcome, InvokeError> {
        engine.call(extension, call).map(Outcome::Wasm).map_err(failed)
    }

    fn failed(call: FailedCall) -> InvokeError {
        let FailedCall { fault, elapsed_ms, fuel_consumed, log, request_id } = call;
        let error = Box::new(ExtensionError::from(fault).into());
        InvokeError { error, request_id: Some(request_id), elapsed_ms, fuel_consumed, log }
    }
}
