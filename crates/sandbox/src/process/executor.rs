//! The engine's port: every module is compiled in one worker, every call is run in another.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures::channel::oneshot;
use tokio::time::timeout;
use toolshelf_core::abi::Abi;
use toolshelf_core::call::RunEnd;
use toolshelf_core::digest::Digest;
use toolshelf_core::limits::{WASM_CALL_DEADLINE_MS, WASM_MAX_CONCURRENT_WORKERS};
use toolshelf_core::module::Module;
use toolshelf_host::{CompileFault, Executor, Run};

use super::isolation::Isolation;
use super::keeper::{Keeper, Trial, Worker, WorkerProgram};
use super::lease::Lease;
use super::wire::{JobHeader, Said, What};
use super::{COMPILED_MAX_BYTES, Kind};
use crate::cache::CodeCache;

const DEADLINE: Duration = Duration::from_millis(WASM_CALL_DEADLINE_MS as u64);

/// Workers that stand ready: one for each call that may run. A copy of the nursery costs next to no memory, and with
/// fewer, callers at the same time wait for theirs to start.
const IDLE_WORKERS: usize = WASM_MAX_CONCURRENT_WORKERS;

/// A module that gives back what it is given, as small as one can be whose memory holds the ABI's buffers:
/// `(module (memory (export "memory") 1) (func (export "sha256") (param i32) (result i32) (local.get 0)))`.
const TRIAL: &[u8] = b"\0asm\x01\0\0\0\x01\x06\x01\x60\x01\x7f\x01\x7f\x03\x02\x01\0\x05\x03\x01\0\x01\
    \x07\x13\x02\x06memory\x02\0\x06sha256\0\0\x0a\x06\x01\x04\0\x20\0\x0b";

/// Runs modules in single-use worker processes. Clones share it; the last one to go ends every process.
///
/// It lives on one thread, with a Tokio runtime.
#[derive(Debug, Clone)]
pub struct ProcessExecutor {
    inner: Rc<Inner>,
}

struct Inner {
    idle: RefCell<VecDeque<oneshot::Receiver<io::Result<Worker>>>>,
    ahead: usize,
    cache: Option<CodeCache>,
    isolation: Cell<Option<Isolation>>,
    /// What idle workers do first; empty until it is compiled.
    trial: OnceCell<Trial>,
    // Behind `idle`: the workers that wait are given back before the thread that ends them stops.
    keeper: Keeper,
}

/// Compiled code. Clones share it.
#[derive(Debug, Clone)]
pub struct Compiled {
    code: Rc<Vec<u8>>,
    starts: bool,
}

/// A worker that has its job, or how the call ended before it began.
#[derive(Debug)]
pub struct Prepared {
    lease: Result<Lease, RunEnd>,
    worker_ms: f64,
}

impl ProcessExecutor {
    /// An executor that starts `program` as its workers, and keeps as many ready as the host's limits say.
    ///
    /// # Errors
    /// When no thread can be had.
    pub fn new(program: WorkerProgram, cache: Option<CodeCache>) -> io::Result<Self> {
        let executor = Self::over(Keeper::new(program, true)?, cache, IDLE_WORKERS);
        executor.refill();
        Ok(executor)
    }

    /// An executor for a program that makes one call and ends: one worker is started now, and none in its place.
    ///
    /// # Errors
    /// When no thread can be had.
    pub fn for_one_call(program: WorkerProgram, cache: Option<CodeCache>) -> io::Result<Self> {
        let executor = Self::over(Keeper::new(program, false)?, cache, 0);
        executor.inner.idle.borrow_mut().push_back(executor.inner.keeper.start(Kind::Run, None));
        Ok(executor)
    }

    /// An executor that keeps no worker ready: every call waits for its own to start.
    ///
    /// # Errors
    /// When no thread can be had.
    pub fn cold(program: WorkerProgram, cache: Option<CodeCache>) -> io::Result<Self> {
        Ok(Self::over(Keeper::new(program, true)?, cache, 0))
    }

    fn over(keeper: Keeper, cache: Option<CodeCache>, ahead: usize) -> Self {
        let (idle, isolation, trial) = (RefCell::default(), Cell::new(None), OnceCell::new());
        Self { inner: Rc::new(Inner { idle, ahead, cache, isolation, trial, keeper }) }
    }

    /// By which means workers are shut in, as the last one that was called said.
    #[must_use]
    pub fn isolation(&self) -> Option<Isolation> {
        self.inner.isolation.get()
    }

    fn refill(&self) {
        let mut idle = self.inner.idle.borrow_mut();
        while idle.len() < self.inner.ahead {
            let trial = self.inner.trial.get().cloned().flatten();
            idle.push_back(self.inner.keeper.start(Kind::Run, trial));
        }
    }

    /// Compiles the trial, once, where workers wait long enough to do one.
    async fn prepare_trial(&self) {
        if self.inner.ahead == 0 || self.inner.trial.get().is_some() {
            return;
        }
        let code = self.code_of(TRIAL).await.ok();
        let trial = code.and_then(|code| {
            let header = JobHeader::new(What::Trial, &[], &code)?;
            Some([&header.write()[..], &code].concat().into())
        });
        // One that cannot be compiled is not tried again: it only saves time.
        let _ = self.inner.trial.set(trial);
    }

    /// The compiled code of the bounded copy of a module: kept, or compiled in a worker.
    async fn code_of(&self, bounded: &[u8]) -> Result<Vec<u8>, CompileFault> {
        let module = Digest::of(bounded);
        if let Some(code) = self.inner.cache.as_ref().and_then(|cache| cache.load(module)) {
            return Ok(code);
        }
        let compiling = in_time(DEADLINE, self.compile_in_worker(bounded));
        let code = compiling.await.ok_or(CompileFault::DeadlinePassed)??;
        if let Some(cache) = &self.inner.cache {
            cache.store(module, &code);
        }
        Ok(code)
    }

    /// The worker that waits longest, or a fresh one.
    async fn take(&self, kind: Kind) -> Result<Lease, RunEnd> {
        let ready = match kind {
            Kind::Run => self.inner.idle.borrow_mut().pop_front(),
            Kind::Compile | Kind::Nursery => None,
        };
        let started = ready.unwrap_or_else(|| self.inner.keeper.start(kind, None)).await;
        let started = started.map_err(|_| io::Error::other("nobody starts workers any more"));
        let lease = started.flatten().and_then(Lease::new);
        lease.map_err(|err| RunEnd::Exceeded(format!("no worker could be started: {err}")))
    }

    /// A worker that has the job. One that somebody ended while it was idle has run nothing, so another takes its
    /// place.
    async fn hand_over(
        &self,
        kind: Kind,
        what: What,
        inputs: &[Vec<u8>],
        code: &[u8],
    ) -> Result<Lease, RunEnd> {
        let header = JobHeader::new(what, inputs, code)
            .ok_or_else(|| RunEnd::Exceeded("the job is too large for a worker".to_owned()))?;
        for _ in 0..self.inner.ahead {
            let mut lease = self.take(kind).await?;
            if lease.give(header, inputs, code).await.is_ok() {
                return Ok(lease);
            }
        }
        let mut lease = self.take(kind).await?;
        match lease.give(header, inputs, code).await {
            Ok(()) => Ok(lease),
            Err(err) => Err(lease.end_without(super::lease::NoAnswer::Ended(err)).await),
        }
    }

    async fn finish(&self, mut lease: Lease, deadline: Duration) -> RunEnd {
        let answered = in_time(deadline, async {
            // A worker that ended before it got the word says so by its end.
            let _ = lease.go().await;
            lease.answer().await
        })
        .await;
        // The next worker starts when this one is done, so that the two do not share the processor.
        self.refill();
        match answered {
            None => RunEnd::DeadlinePassed,
            Some(Ok(said)) => {
                self.inner.isolation.set(lease.isolation);
                match said {
                    Said::Ended(end) => end,
                    _ => RunEnd::Silent("it answered another question".to_owned()),
                }
            }
            Some(Err(why)) => lease.end_without(why).await,
        }
    }

    async fn compile_in_worker(&self, bounded: &[u8]) -> Result<Vec<u8>, CompileFault> {
        let lost = |end| match end {
            RunEnd::Exceeded(why) => CompileFault::TooCostly(why),
            end => CompileFault::Silent(format!("{end:?}")),
        };
        let mut lease = self.hand_over(Kind::Compile, What::Compile, &[], bounded).await.map_err(lost)?;
        match lease.answer().await {
            Ok(Said::Code(code)) if code.len() <= COMPILED_MAX_BYTES => Ok(code),
            Ok(Said::Invalid(why)) => Err(CompileFault::Invalid(why)),
            Ok(_) => Err(CompileFault::Silent("it answered another question".to_owned())),
            Err(why) => Err(lost(lease.end_without(why).await)),
        }
    }
}

impl Executor for ProcessExecutor {
    // A process that was killed uses no core any more.
    const REAP_MS: u32 = 0;

    type Compiled = Compiled;
    type Prepared = Prepared;

    async fn compile(&self, bounded: Vec<u8>) -> Result<Compiled, CompileFault> {
        // What cannot be read is taken for a module that starts by itself, and left to the engine to refuse.
        let starts = Module::read(&bounded).map_or(true, |module| module.has_start());
        let code = self.code_of(&bounded).await?;
        // Once in the life of a host; from then on a call finds workers that have all at hand.
        self.prepare_trial().await;
        Ok(Compiled { code: Rc::new(code), starts })
    }

    async fn prepare(&self, compiled: Compiled, abi: Abi, inputs: Vec<Vec<u8>>) -> Prepared {
        let start = Instant::now();
        let what = What::Run { abi, starts: compiled.starts };
        let handing = in_time(DEADLINE, self.hand_over(Kind::Run, what, &inputs, &compiled.code));
        let lease = handing.await.unwrap_or(Err(RunEnd::DeadlinePassed));
        Prepared { lease, worker_ms: milliseconds(start) }
    }

    async fn run(&self, prepared: Prepared, deadline_ms: u32) -> Run {
        let Prepared { lease, worker_ms } = prepared;
        let start = Instant::now();
        let end = match lease {
            Ok(lease) => self.finish(lease, Duration::from_millis(deadline_ms.into())).await,
            Err(end) => end,
        };
        Run { end, worker_ms, run_ms: milliseconds(start) }
    }
}

async fn in_time<T>(deadline: Duration, work: impl Future<Output = T>) -> Option<T> {
    timeout(deadline, work).await.ok()
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1_000.0
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("idle", &self.idle.borrow().len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trial_is_the_module_that_its_text_says() {
        let text = r#"(module (memory (export "memory") 1)
            (func (export "sha256") (param i32) (result i32) (local.get 0)))"#;
        assert_eq!(wat::parse_str(text).unwrap(), TRIAL);
    }
}
