//! A call in an isolate of its own, ended at its deadline.

use std::rc::Rc;

use futures::FutureExt as _;
use futures::future::{Either, select};
use gloo_timers::future::TimeoutFuture;
use js_sys::{Array, Uint8Array, WebAssembly};
use toolshelf_core::abi::{Abi, Output};
use toolshelf_core::call::RunEnd;
use toolshelf_core::limits::WASM_CALL_DEADLINE_MS;
use toolshelf_core::module::Module;
use toolshelf_host::{Clock as _, CompileFault, Executor, Run};
use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::JsFuture;

use crate::clock::PageClock;
use crate::isolate::{Isolates, Lease};
use crate::js;

/// Runs modules in single-use workers.
#[derive(Debug, Clone)]
pub struct WorkerExecutor {
    isolates: Rc<Isolates>,
    clock: PageClock,
}

impl WorkerExecutor {
    /// An executor that has its first idle workers started.
    #[must_use]
    pub fn new() -> Self {
        let isolates = Rc::new(Isolates::new(trial()));
        isolates.refill();
        Self { isolates, clock: PageClock::new() }
    }
}

impl Default for WorkerExecutor {
    fn default() -> Self {
        Self::new()
    }
}

impl Executor for WorkerExecutor {
    type Compiled = Compiled;
    type Prepared = Prepared;

    async fn compile(&self, bounded: Vec<u8>) -> Result<Self::Compiled, CompileFault> {
        let bytes = Uint8Array::from(&bounded[..]);
        // What cannot be read is taken for a module that starts by itself, and left to the engine to refuse.
        let starts = Module::read(&bounded).map_or(true, |module| module.has_start());
        // The engine compiles in threads of its own; the page goes on meanwhile.
        let compiling = JsFuture::from(WebAssembly::compile(&bytes));
        match select(compiling, TimeoutFuture::new(WASM_CALL_DEADLINE_MS)).await {
            Either::Left((Ok(module), _)) => Ok(Compiled { module: module.unchecked_into(), starts }),
            Either::Left((Err(thrown), _)) => Err(CompileFault::Invalid(js::message(&thrown))),
            Either::Right(_) => Err(CompileFault::DeadlinePassed),
        }
    }

    async fn prepare(&self, compiled: Self::Compiled, abi: Abi, inputs: Vec<Vec<u8>>) -> Prepared {
        let start = self.clock.now_ms();
        let mut taking = Box::pin(self.isolates.take());
        // No clock is needed where a worker is ready, as it mostly is.
        let taken = match (&mut taking).now_or_never() {
            Some(taken) => taken,
            None => match select(taking, TimeoutFuture::new(WASM_CALL_DEADLINE_MS)).await {
                Either::Left((taken, _)) => taken,
                Either::Right(_) => Err("it did not become ready in time".to_owned()),
            },
        };
        let lease = taken.and_then(|lease| lease.give(&job(&compiled, abi, &inputs)).map(|()| lease));
        Prepared { lease, worker_ms: self.clock.now_ms() - start }
    }

    async fn run(&self, prepared: Prepared, deadline_ms: u32) -> Run {
        let Prepared { lease, worker_ms } = prepared;
        let start = self.clock.now_ms();
        let ended = |end| Run { end, worker_ms, run_ms: self.clock.now_ms() - start };
        // The worker runs while the clock for it is set.
        let mut lease = match lease.and_then(|lease| lease.start().map(|()| lease)) {
            Ok(lease) => lease,
            Err(why) => return ended(RunEnd::Silent(format!("no worker could be had: {why}"))),
        };
        match select(Box::pin(lease.answer()), TimeoutFuture::new(deadline_ms)).await {
            Either::Left((Ok(answer), _)) => ended(end_of(&answer, deadline_ms)),
            Either::Left((Err(why), _)) => ended(RunEnd::Silent(why)),
            Either::Right(_) => ended(RunEnd::DeadlinePassed),
        }
    }
}

/// Compiled code, and whether the module has a start function: one that has is not instantiated ahead.
#[derive(Debug, Clone)]
pub struct Compiled {
    module: WebAssembly::Module,
    starts: bool,
}

/// A worker that has its job, or why there is none.
#[derive(Debug)]
pub struct Prepared {
    lease: Result<Lease, String>,
    worker_ms: f64,
}

/// The job that makes an isolate ready: a module that gives back what it is given, as small as one can be.
fn trial() -> JsValue {
    // (module (memory (export "memory") 1) (func (export "f") (param i32) (result i32) (local.get 0)))
    const MODULE: &[u8] = b"\0asm\x01\0\0\0\x01\x06\x01\x60\x01\x7f\x01\x7f\x03\x02\x01\0\x05\x03\x01\0\x01\
        \x07\x0e\x02\x06memory\x02\0\x01f\0\0\x0a\x06\x01\x04\0\x20\0\x0b";
    let Ok(module) = WebAssembly::Module::new(&Uint8Array::from(MODULE)) else {
        // Without WebAssembly no call comes this far; the worker's answer to this is an answer all the same.
        return JsValue::NULL;
    };
    let output = Output { addr: 0, max_bytes: 8, fixed: true };
    message(&Compiled { module, starts: false }, "f", 0, &[(0, MODULE)], output)
}

/// The one job that an isolate is given.
fn job(compiled: &Compiled, abi: Abi, inputs: &[Vec<u8>]) -> JsValue {
    let layout = abi.layout();
    let buffers: Vec<_> =
        layout.inputs.iter().zip(inputs).map(|(input, bytes)| (input.addr, &bytes[..])).collect();
    message(compiled, layout.export, abi.memory_required(), &buffers, layout.output)
}

/// A job as `worker.js` reads it. `buffers` are the inputs with their addresses.
fn message(
    compiled: &Compiled,
    export: &str,
    needed: u64,
    buffers: &[(u32, &[u8])],
    output: Output,
) -> JsValue {
    let inputs = buffers.iter().map(|(addr, bytes)| {
        js::object(&[("addr", (*addr).into()), ("bytes", Uint8Array::from(*bytes).into())])
    });
    let output = js::object(&[
        ("addr", output.addr.into()),
        ("maxBytes", output.max_bytes.into()),
        ("fixed", output.fixed.into()),
    ]);
    let job = js::object(&[
        ("module", (&compiled.module).into()),
        ("starts", compiled.starts.into()),
        ("export", export.into()),
        ("needed", (needed as f64).into()),
        ("inputs", inputs.collect::<Array>().into()),
        ("output", output.into()),
    ]);
    job.into()
}

/// Reads an isolate's answer. Timers of a page in the background come late, so its own clock decides whether the
/// answer was in time.
fn end_of(answer: &JsValue, deadline_ms: u32) -> RunEnd {
    if js::get(answer, "elapsed").as_f64().is_none_or(|elapsed| elapsed > f64::from(deadline_ms)) {
        return RunEnd::DeadlinePassed;
    }
    let message = || js::get(answer, "message").as_string().unwrap_or_default();
    match js::get(answer, "end").as_string().as_deref() {
        Some("returned") => match js::get(answer, "returned").as_f64() {
            Some(returned) => RunEnd::Returned {
                returned: returned as i32,
                output: Uint8Array::new(&js::get(answer, "output")).to_vec(),
            },
            None => RunEnd::Unfit("the export returned no number".to_owned()),
        },
        Some("unfit") => RunEnd::Unfit(message()),
        Some("out-of-memory") => RunEnd::OutOfMemory(message()),
        Some("trapped") => RunEnd::Trapped(message()),
        _ => RunEnd::Silent("the answer has no form that is known".to_owned()),
    }
}
