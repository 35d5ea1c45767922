//! The path of a call over ports whose every answer a test chooses: order, refusals, queueing and what is kept.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use futures::FutureExt as _;
use futures::channel::oneshot;
use futures::executor::block_on;
use futures::future::join_all;
use toolshelf_core::abi::Abi;
use toolshelf_core::call::{Answer, RunEnd};
use toolshelf_core::digest::Digest;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::shelf::{FileFault, Hashed};
use toolshelf_host::{Clock, CompileFault, Executor, Run, ShelfHost, ShelfStore};

/// Files by their path.
type Folder = BTreeMap<String, Vec<u8>>;
/// The inputs of one call.
type Inputs = Vec<Vec<u8>>;

/// Shelves in memory. `reads` counts how often a module was read.
#[derive(Clone, Default)]
struct Store {
    shelves: Rc<RefCell<BTreeMap<String, Folder>>>,
    reads: Rc<Cell<usize>>,
}

impl Store {
    fn write(&self, shelf: &str, path: &str, bytes: impl Into<Vec<u8>>) {
        self.shelves.borrow_mut().entry(shelf.into()).or_default().insert(path.into(), bytes.into());
    }
}

impl ShelfStore for Store {
    async fn shelves(&self) -> Result<Vec<String>, Refusal> {
        Ok(self.shelves.borrow().keys().cloned().collect())
    }

    async fn manifest(&self, shelf: &str) -> Result<Vec<u8>, Refusal> {
        let file = self.shelves.borrow()[shelf].get("manifest.json").cloned();
        file.ok_or_else(|| Refusal::new(Code::ShelfUnavailable, "no manifest.json"))
    }

    async fn module(&self, shelf: &str, path: &str) -> Result<Hashed, FileFault> {
        self.reads.set(self.reads.get() + 1);
        self.shelves.borrow()[shelf].get(path).cloned().map(Hashed::new).ok_or(FileFault::Missing)
    }
}

/// Ends every run as the test says, once the test lets it; records what it was given.
#[derive(Clone)]
struct Isolates {
    compile: Result<(), CompileFault>,
    end: RunEnd,
    compiled: Rc<Cell<usize>>,
    given: Rc<RefCell<Vec<Inputs>>>,
    held: Rc<RefCell<Vec<oneshot::Receiver<()>>>>,
}

impl Default for Isolates {
    fn default() -> Self {
        let end = RunEnd::Returned { returned: 32, output: vec![7; 32] };
        Self { compile: Ok(()), end, compiled: Rc::default(), given: Rc::default(), held: Rc::default() }
    }
}

impl Executor for Isolates {
    type Compiled = ();
    type Prepared = Inputs;

    async fn compile(&self, _bounded: Vec<u8>) -> Result<(), CompileFault> {
        self.compiled.set(self.compiled.get() + 1);
        self.compile.clone()
    }

    async fn prepare(&self, (): (), _abi: Abi, inputs: Inputs) -> Inputs {
        inputs
    }

    async fn run(&self, inputs: Inputs, _deadline_ms: u32) -> Run {
        self.given.borrow_mut().push(inputs);
        let held = self.held.borrow_mut().pop();
        if let Some(held) = held {
            let _ = held.await;
        }
        Run { end: self.end.clone(), worker_ms: 1.0, run_ms: 2.0 }
    }
}

type Timer = Box<dyn FnOnce()>;

/// A clock that stands still; timers fire when the test says.
#[derive(Clone, Default)]
struct Stopped {
    timers: Rc<RefCell<Vec<Timer>>>,
}

impl Clock for Stopped {
    fn now_ms(&self) -> f64 {
        0.0
    }

    fn after(&self, _ms: u32, then: Box<dyn FnOnce()>) {
        self.timers.borrow_mut().push(then);
    }
}

fn module(more: &str) -> Vec<u8> {
    let text = format!(
        r#"(module (memory (export "memory") 2) {more} (func (export "sha256") (param i32) (result i32) i32.const 32))"#
    );
    wat::parse_str(text).unwrap()
}

fn manifest(id: &str, module: &[u8]) -> String {
    format!(
        r#"{{"tools":[{{"id":"{id}","wasm":"m.wasm","digest":"{}","abi":"buffer-abi/1"}}]}}"#,
        Digest::of(module)
    )
}

type Host = ShelfHost<Store, Isolates, Stopped>;

/// A host with one shelf that holds one good tool, `hash`.
fn host(isolates: Isolates) -> (Host, Store, Stopped) {
    let (store, clock) = (Store::default(), Stopped::default());
    store.write("a", "manifest.json", manifest("hash", &module("")));
    store.write("a", "m.wasm", module(""));
    (ShelfHost::new(store.clone(), isolates, clock.clone()), store, clock)
}

fn call(host: &Host) -> Result<Answer, Refusal> {
    block_on(host.call("hash", |name| (name == "input").then(|| b"abc".to_vec())))
}

fn refused(host: &Host) -> Code {
    call(host).unwrap_err().code
}

#[test]
fn a_call_answers_with_the_digest_of_what_it_read() {
    let isolates = Isolates::default();
    let (host, ..) = host(isolates.clone());
    let answer = call(&host).unwrap();
    assert_eq!(answer.digest, Digest::of(&module("")));
    assert_eq!((answer.input_bytes, answer.timing.worker_ms, answer.timing.run_ms), (3, 1.0, 2.0));
    assert_eq!(*isolates.given.borrow(), [[b"abc".to_vec()]]);
}

#[test]
fn every_call_reads_again_and_compiles_once() {
    let isolates = Isolates::default();
    let (host, store, _) = host(isolates.clone());
    call(&host).unwrap();
    let reads = store.reads.get();
    call(&host).unwrap();
    call(&host).unwrap();
    assert_eq!((store.reads.get() - reads, isolates.compiled.get()), (2, 1));
}

#[test]
fn a_module_that_was_swapped_after_admission_does_not_run() {
    let isolates = Isolates::default();
    let (host, store, _) = host(isolates.clone());
    call(&host).unwrap();
    store.write("a", "m.wasm", module("(global i32 (i32.const 1))"));
    let refusal = call(&host).unwrap_err();
    assert_eq!(refusal.code, Code::DigestMismatch);
    assert!(refusal.why.contains("the bytes changed since admission"), "{}", refusal.why);
    assert_eq!(isolates.given.borrow().len(), 1);

    store.shelves.borrow_mut().get_mut("a").unwrap().remove("m.wasm");
    assert_eq!(refused(&host), Code::WasmUnreadable);
}

#[test]
fn a_tool_that_was_refused_answers_with_its_own_refusal() {
    let (host, store, _) = host(Isolates::default());
    let importing =
        wat::parse_str(r#"(module (import "env" "f" (func)) (memory (export "memory") 2))"#).unwrap();
    store.write("a", "manifest.json", manifest("hash", &importing));
    store.write("a", "m.wasm", importing);
    assert_eq!(refused(&host), Code::ImportUndeclared);
}

#[test]
fn the_abi_of_a_tool_is_known_once_the_shelf_was_read() {
    let (host, ..) = host(Isolates::default());
    assert_eq!(host.abi("hash").unwrap_err().code, Code::UnknownTool);
    block_on(host.read()).unwrap();
    assert_eq!(host.abi("hash"), Ok(Abi::Buffer1));
    assert_eq!(host.abi("nope").unwrap_err().code, Code::UnknownTool);
}

#[test]
fn an_unknown_tool_is_unknown() {
    let (host, ..) = host(Isolates::default());
    let refusal = block_on(host.call("nope", |_| None)).unwrap_err();
    assert_eq!(refusal.code, Code::UnknownTool);
}

#[test]
fn an_input_that_is_too_long_is_refused_before_anything_runs() {
    let isolates = Isolates::default();
    let (host, ..) = host(isolates.clone());
    let refusal = block_on(host.call("hash", |_| Some(vec![0; 8_193]))).unwrap_err();
    assert_eq!(refusal.code, Code::OverBudget);
    assert!(isolates.given.borrow().is_empty());
}

#[test]
fn a_module_that_does_not_compile_is_invalid_or_late() {
    let fault = |compile| refused(&host(Isolates { compile: Err(compile), ..Isolates::default() }).0);
    assert_eq!(fault(CompileFault::Invalid("bad body".into())), Code::WasmInvalid);
    assert_eq!(fault(CompileFault::DeadlinePassed), Code::TimeExceeded);
    assert_eq!(fault(CompileFault::TooCostly("memory".into())), Code::ResourceExceeded);
    assert_eq!(fault(CompileFault::Silent(String::new())), Code::WasmWorkerSilent);
}

#[test]
fn the_end_of_a_run_is_named() {
    let ending = |end| refused(&host(Isolates { end, ..Isolates::default() }).0);
    assert_eq!(ending(RunEnd::DeadlinePassed), Code::TimeExceeded);
    assert_eq!(ending(RunEnd::Trapped("unreachable".into())), Code::WasmTrapped);
    assert_eq!(ending(RunEnd::OutOfMemory(String::new())), Code::ResourceExceeded);
    assert_eq!(ending(RunEnd::Exceeded(String::new())), Code::ResourceExceeded);
    assert_eq!(ending(RunEnd::Silent(String::new())), Code::WasmWorkerSilent);
}

#[test]
fn four_run_thirty_two_wait_and_the_rest_are_refused() {
    let isolates = Isolates::default();
    let (release, held): (Vec<_>, Vec<_>) = (0..4).map(|_| oneshot::channel()).unzip();
    isolates.held.borrow_mut().extend(held);
    let (host, ..) = host(isolates.clone());
    let calls = (0..40).map(|_| host.call("hash", |_| None));
    let mut all = Box::pin(join_all(calls));
    assert!(all.as_mut().now_or_never().is_none(), "four calls are held");
    let stats = host.stats();
    assert_eq!((stats.active, stats.queued, isolates.given.borrow().len()), (4, 32, 4));
    release.into_iter().for_each(|release| release.send(()).unwrap());
    let answers = block_on(all);
    let refused: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().err()).collect();
    assert_eq!(refused.len(), 4);
    assert!(refused.iter().all(|refusal| refusal.code == Code::OverBudget));
    let stats = host.stats();
    assert_eq!((stats.active, stats.queued, stats.max_observed_active), (0, 0, 4));
}

#[test]
fn a_call_that_is_given_up_frees_its_permit() {
    let isolates = Isolates::default();
    let (_release, held) = oneshot::channel();
    isolates.held.borrow_mut().push(held);
    let (host, ..) = host(isolates);
    let mut given_up = Box::pin(host.call("hash", |_| None));
    assert!(given_up.as_mut().now_or_never().is_none());
    assert_eq!(host.stats().active, 1);
    drop(given_up);
    assert_eq!(host.stats().active, 0);
    call(&host).unwrap();
}

#[test]
fn workers_that_were_ended_in_a_loop_keep_places_for_a_while_but_calls_go_on() {
    let (host, _, clock) = host(Isolates { end: RunEnd::DeadlinePassed, ..Isolates::default() });
    for _ in 0..5 {
        assert_eq!(refused(&host), Code::TimeExceeded);
    }
    assert_eq!((host.stats().cooling, host.stats().active), (3, 0));
    let timers = clock.timers.take();
    timers.into_iter().for_each(|timer| timer());
    assert_eq!(host.stats().cooling, 0);
}

#[test]
fn an_id_belongs_to_the_first_shelf_that_has_it_admitted() {
    let (host, store, _) = host(Isolates::default());
    let other = module("(global i32 (i32.const 1))");
    store.write("b", "manifest.json", manifest("hash", &other));
    store.write("b", "m.wasm", other.clone());
    store.write("c", "manifest.json", "not json");
    let readings = block_on(host.read()).unwrap();
    let second = readings[1].shelf.as_ref().unwrap();
    assert_eq!(second.tools[0].verdict.as_ref().unwrap_err().code, Code::DuplicateTool);
    assert_eq!(readings[2].shelf.as_ref().unwrap_err().code, Code::ShelfUnreadable);
    assert_eq!(call(&host).unwrap().digest, Digest::of(&module("")));

    // When the first shelf's module breaks, the id is the second's.
    store.write("a", "m.wasm", "broken");
    block_on(host.read()).unwrap();
    assert_eq!(call(&host).unwrap().digest, Digest::of(&other));
}
