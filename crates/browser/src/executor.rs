//! A call in an isolate of its own, ended at its deadline.

use std::rc::Rc;

use futures::future::{Either, select};
use gloo_timers::future::TimeoutFuture;
use js_sys::{Array, Uint8Array, WebAssembly};
use toolshelf_core::abi::Abi;
use toolshelf_core::call::RunEnd;
use toolshelf_core::limits::WASM_CALL_DEADLINE_MS;
use toolshelf_host::{Clock as _, CompileFault, Executor, Run};
use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::JsFuture;

use crate::clock::PageClock;
use crate::isolate::Isolates;
use crate::js;

/// Runs modules in single-use workers.
#[derive(Debug, Clone, Default)]
pub struct WorkerExecutor {
    isolates: Rc<Isolates>,
    clock: PageClock,
}

impl WorkerExecutor {
    /// An executor that has its first idle workers started.
    #[must_use]
    pub fn new() -> Self {
        let executor = Self::default();
        executor.isolates.refill();
        executor
    }

    async fn run_in_isolate(
        &self,
        compiled: &WebAssembly::Module,
        abi: Abi,
        inputs: Vec<Vec<u8>>,
        deadline_ms: u32,
    ) -> Run {
        let start = self.clock.now_ms();
        let taken = select(Box::pin(self.isolates.take()), TimeoutFuture::new(deadline_ms)).await;
        let ready = self.clock.now_ms();
        let run = |end| Run { end, worker_ms: ready - start, run_ms: self.clock.now_ms() - ready };
        let mut isolate = match taken {
            Either::Left((Ok(isolate), _)) => isolate,
            Either::Left((Err(why), _)) => {
                return run(RunEnd::Silent(format!("no worker could be started: {why}")));
            }
            Either::Right(_) => return run(RunEnd::Silent("no worker became ready in time".to_owned())),
        };
        let job = job(compiled, abi, &inputs);
        match select(Box::pin(isolate.run(&job)), TimeoutFuture::new(deadline_ms)).await {
            Either::Left((Ok(answer), _)) => run(end_of(&answer, deadline_ms)),
            Either::Left((Err(why), _)) => run(RunEnd::Silent(why)),
            Either::Right(_) => run(RunEnd::DeadlinePassed),
        }
    }
}

impl Executor for WorkerExecutor {
    type Compiled = WebAssembly::Module;

    async fn compile(&self, bounded: Vec<u8>) -> Result<Self::Compiled, CompileFault> {
        let bytes = Uint8Array::from(&bounded[..]);
        // The engine compiles in threads of its own; the page goes on meanwhile.
        let compiling = JsFuture::from(WebAssembly::compile(&bytes));
        match select(compiling, TimeoutFuture::new(WASM_CALL_DEADLINE_MS)).await {
            Either::Left((Ok(module), _)) => Ok(module.unchecked_into()),
            Either::Left((Err(thrown), _)) => Err(CompileFault::Invalid(js::message(&thrown))),
            Either::Right(_) => Err(CompileFault::DeadlinePassed),
        }
    }

    async fn run(&self, compiled: Self::Compiled, abi: Abi, inputs: Vec<Vec<u8>>, deadline_ms: u32) -> Run {
        // The isolate is dropped, and so ended, before the next ones are started.
        let run = self.run_in_isolate(&compiled, abi, inputs, deadline_ms).await;
        self.isolates.refill();
        run
    }
}

/// The one message that an isolate is given.
fn job(compiled: &WebAssembly::Module, abi: Abi, inputs: &[Vec<u8>]) -> JsValue {
    let layout = abi.layout();
    let buffers = layout.inputs.iter().zip(inputs).map(|(input, bytes)| {
        js::object(&[("addr", input.addr.into()), ("bytes", Uint8Array::from(&bytes[..]).into())])
    });
    let output = js::object(&[
        ("addr", layout.output.addr.into()),
        ("maxBytes", layout.output.max_bytes.into()),
        ("fixed", layout.output.fixed.into()),
    ]);
    let job = js::object(&[
        ("module", compiled.into()),
        ("export", layout.export.into()),
        ("needed", (abi.memory_required() as f64).into()),
        ("inputs", buffers.collect::<Array>().into()),
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
