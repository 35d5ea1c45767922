//! The extension host against real files, real servers, the real fact store and, in `modules`, the real sandbox.

#[cfg(feature = "wasm-extensions")]
mod examples;
mod external;
mod facts;
mod grants;
mod index;
mod install;
#[cfg(feature = "wasm-extensions")]
mod modules;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolshelf_core::Digest;
use toolshelf_sandbox::WorkerProgram;

use super::config::Variables;
use super::dispatch::{Invocation, Outcome};
use super::error::InvokeError;
use super::grants::GrantRequest;
use super::outbound::Authorities;
use super::records::LifecycleState;
use super::registry::ModuleSource;
use super::{Clock, ExtError, Extensions, ExtensionsOptions};

/// A module that is one, and does nothing.
const EMPTY_MODULE: &[u8] = b"\0asm\x01\0\0\0";

/// An extension host in a folder of its own, with settings and a clock that the test sets.
struct Host {
    dir: TempDir,
    extensions: Extensions,
    variables: Arc<Mutex<HashMap<String, String>>>,
    clock: Arc<AtomicU64>,
}

impl Host {
    /// One that takes extensions without a signature, and trusts the authorities of a test's server.
    fn trusting(authorities: Option<Authorities>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        // The keyring of whoever runs the tests is none of theirs.
        let variables = HashMap::from([("TOOLSHELF_VAULT_KEY".to_owned(), "file".to_owned())]);
        let variables = Arc::new(Mutex::new(variables));
        let clock = Arc::new(AtomicU64::new(1_000_000));
        let extensions = open(dir.path().to_owned(), &variables, &clock, authorities).unwrap();
        let host = Self { dir, extensions, variables, clock };
        host.set("TOOLSHELF_EXTENSIONS_ALLOW_UNSIGNED", "true");
        host.set("TOOLSHELF_EXTENSIONS_ALLOW_PRIVATE_ADDRESSES", "true");
        host
    }

    fn new() -> Self {
        Self::trusting(None)
    }

    /// The same folder, opened again.
    fn reopened(self) -> Self {
        let Self { dir, extensions, variables, clock } = self;
        drop(extensions);
        let extensions = open(dir.path().to_owned(), &variables, &clock, None).unwrap();
        Self { dir, extensions, variables, clock }
    }

    fn set(&self, name: &str, value: &str) {
        self.variables.lock().unwrap().insert(name.to_owned(), value.to_owned());
    }

    fn after(&self, ms: u64) {
        self.clock.fetch_add(ms, Ordering::Relaxed);
    }

    /// The path of something in the data folder.
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn install(&self, manifest: &Value) -> Result<super::records::InstallRecord, ExtError> {
        self.extensions.install(manifest, ModuleSource::Manifest, LifecycleState::Active, Some("p_admin"))
    }

    /// Installs `module` as `ext.a`, and lets `p_alice` call it.
    fn with_module(&self, module: &[u8]) {
        let manifest = wasm_manifest("ext.a", module);
        self.extensions
            .install(&manifest, ModuleSource::Bytes(module.to_vec()), LifecycleState::Active, None)
            .unwrap();
        self.grant("ext.a", |_| {});
    }

    fn grant(&self, id: &str, change: impl FnOnce(&mut GrantRequest)) {
        let mut request = GrantRequest {
            passport_fpr: "p_alice".to_owned(),
            allowed_prefixes_read: vec!["notes::".to_owned()],
            allowed_prefixes_write: vec!["notes::sum::".to_owned()],
            ..GrantRequest::default()
        };
        change(&mut request);
        self.extensions.issue_grant(id, request, Some("p_admin")).unwrap();
    }

    /// Calls `ext.a.note` of `ext.a` for `p_alice`.
    async fn call(&self, args: Value) -> Result<Outcome, InvokeError> {
        self.extensions.invoke(invocation(args)).await
    }

    fn audit(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path("integrations/audit.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn open(
    data: PathBuf,
    variables: &Arc<Mutex<HashMap<String, String>>>,
    clock: &Arc<AtomicU64>,
    authorities: Option<Authorities>,
) -> Result<Extensions, ExtError> {
    let (variables, clock) = (Arc::clone(variables), Arc::clone(clock));
    Extensions::open(ExtensionsOptions {
        data,
        program: WorkerProgram::at(program()),
        cache: None,
        variables: Variables::from(move |name| variables.lock().unwrap().get(name).map(Into::into)),
        authorities,
        clock: Clock(Arc::new(move || clock.load(Ordering::Relaxed))),
        shared_facts: None,
    })
}

/// The program under test, which lies beside the tests: workers are started from it.
fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.ancestors().nth(2).unwrap().join("toolshelf");
    assert!(program.is_file(), "{} is built with all targets of the package", program.display());
    program
}

fn invocation(args: Value) -> Invocation {
    Invocation {
        extension: "ext.a".to_owned(),
        tool: "ext.a.note".to_owned(),
        args,
        passport: Some("p_alice".to_owned()),
        request_id: None,
    }
}

fn manifest(id: &str, kind: &str) -> Value {
    json!({
        "schema": "crux.integration.v1", "id": id, "name": "A", "version": "1.2.3",
        "publisher_passport_fpr": "p_pub", "summary": "", "entry": {"kind": kind, "path": "tools.json"},
        "tools": [{"name": "ext.a.note", "description": "Notes.", "input_schema": {"type": "object"}}],
    })
}

/// The manifest of a module, whose file lies in the extension's folder.
fn wasm_manifest(id: &str, module: &[u8]) -> Value {
    let mut manifest = manifest(id, "wasm");
    manifest["wasm_module_path"] = json!("module.wasm");
    manifest["wasm_module_sha256"] = json!(Digest::of(module).to_string());
    manifest
}

fn status(err: &ExtError) -> u16 {
    err.problem().status
}

#[cfg(not(feature = "wasm-extensions"))]
#[tokio::test]
async fn without_the_feature_modules_are_kept_and_not_called() {
    let host = Host::new();
    host.with_module(EMPTY_MODULE);
    let err = host.call(json!({})).await.unwrap_err();
    let text = "wasm extensions require building corecruxd with --features wasm-extensions";
    assert_eq!((status(&err.error), err.to_string().as_str()), (501, text));
}
