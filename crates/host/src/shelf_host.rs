//! Admission over a store, and the path of one call.
//!
//! The path, in order (reference facts, A4, adapted): a place at the gate; read the stored bytes, hash, compare with
//! what was admitted; pre-flight and bounded copy, kept by digest; the inputs' bounds; the turn; a fresh isolate; the
//! answer. Whatever ends the path early is a [`Refusal`].

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};

use futures::FutureExt as _;
use futures::future::try_join;
use toolshelf_core::abi::Abi;
use toolshelf_core::call::{Answer, Ran, RunEnd, Timing};
use toolshelf_core::digest::Digest;
use toolshelf_core::limits::{WASM_CALL_DEADLINE_MS, WASM_MAX_CONCURRENT_WORKERS, WASM_MAX_QUEUE_DEPTH};
use toolshelf_core::manifest::{Manifest, contained_path};
use toolshelf_core::module::{Module, bounded};
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_core::shelf::{Admission, Admitted, FileFault, Hashed, Shelf, Tool, check_unchanged};

use crate::gate::{Gate, Permit, Stats};
use crate::ports::{Clock, CompileFault, Executor, ShelfStore};

/// Compiled modules that are kept. The oldest makes room for a new one.
const COMPILED_KEPT: usize = 64;

/// One shelf as it was read: its key, and its tools or the refusal of the whole.
#[derive(Debug, Clone)]
pub struct Reading {
    /// Key of the shelf in the store.
    pub key: String,
    /// What was read.
    pub shelf: Result<Shelf, Refusal>,
}

/// The engine.
#[derive(Debug)]
pub struct ShelfHost<S, E: Executor, C> {
    store: S,
    executor: E,
    clock: C,
    gate: Gate,
    readings: RefCell<Option<Vec<Reading>>>,
    compiled: RefCell<Kept<E::Compiled>>,
}

/// Judges every entry of `manifest`, reading modules with `read`.
///
/// `taken` maps ids that are in use to the shelf that holds them.
pub async fn admit_all(
    manifest: &Manifest,
    taken: &HashMap<String, String>,
    read: impl AsyncFn(&str) -> Result<Hashed, FileFault>,
) -> Vec<Tool> {
    let admission = Admission::new(manifest, taken);
    let mut tools = Vec::with_capacity(manifest.entries.len());
    for entry in admission.entries() {
        let located = admission.locate(entry);
        // An entry that is refused already has no file that would be worth reading.
        let file = match &located {
            Ok((path, _)) => read(path).await,
            Err(_) => Err(FileFault::Missing),
        };
        tools.push(admission.judge(entry, located, file));
    }
    tools
}

impl<S: ShelfStore, E: Executor, C: Clock> ShelfHost<S, E, C> {
    /// An engine over the platform's ports, with the shelf's own bounds.
    pub fn new(store: S, executor: E, clock: C) -> Self {
        let gate = Gate::new(WASM_MAX_CONCURRENT_WORKERS, WASM_MAX_QUEUE_DEPTH);
        Self { store, executor, clock, gate, readings: RefCell::new(None), compiled: RefCell::default() }
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The executor.
    pub fn executor(&self) -> &E {
        &self.executor
    }

    /// What goes on at the gate.
    pub fn stats(&self) -> Stats {
        self.gate.stats()
    }

    /// Reads and judges all shelves again. An id belongs to the first shelf that has it admitted.
    ///
    /// # Errors
    /// When the store cannot even list its shelves.
    pub async fn read(&self) -> Result<Vec<Reading>, Refusal> {
        let mut taken = HashMap::new();
        let mut readings = Vec::new();
        for key in self.store.shelves().await? {
            let shelf = self.read_one(&key, &taken).await;
            if let Ok(shelf) = &shelf {
                taken.extend(shelf.held_ids());
            }
            readings.push(Reading { key, shelf });
        }
        *self.readings.borrow_mut() = Some(readings.clone());
        Ok(readings)
    }

    /// How the tool `id` is called.
    ///
    /// # Errors
    /// The refusal of a tool that cannot be called.
    pub async fn abi(&self, id: &str) -> Result<Abi, Refusal> {
        Ok(self.find(id).await?.abi)
    }

    /// Forgets what was read: the store changed, and the next call reads anew.
    pub fn forget(&self) {
        *self.readings.borrow_mut() = None;
    }

    async fn read_one(&self, key: &str, taken: &HashMap<String, String>) -> Result<Shelf, Refusal> {
        let manifest = Manifest::read(&self.store.manifest(key).await?)?;
        let tools = admit_all(&manifest, taken, async |path: &str| self.store.module(key, path).await).await;
        Ok(Shelf {
            dir: key.to_owned(),
            name: manifest.name.unwrap_or_else(|| self.store.default_name(key)),
            version: manifest.version.unwrap_or_else(|| "0".to_owned()),
            tools,
        })
    }

    /// Calls the tool `id`. `argument` gives the bytes of an argument by its name.
    ///
    /// # Errors
    /// The refusal that names what ended the call.
    pub async fn call(
        &self,
        id: &str,
        argument: impl FnMut(&str) -> Option<Vec<u8>>,
    ) -> Result<Answer, Refusal> {
        let start = self.clock.now_ms();
        let mut turn = Box::pin(self.gate.enter()?.permit());
        let tool = self.find(id).await?;
        let kept = self.compiled.borrow().get(tool.admitted.digest);

        // While the module is read and hashed, the inputs are taken; and where it is this call's turn at once, an
        // isolate gets ready. No code of the module runs for that.
        let early = (&mut turn).now_or_never();
        let ready = kept.as_ref().filter(|_| early.is_some());
        let ahead = async {
            let inputs = tool.abi.inputs(argument)?;
            let input_bytes = inputs.iter().map(Vec::len).sum();
            Ok((
                input_bytes,
                match ready {
                    Some(compiled) => {
                        Inputs::With(self.executor.prepare(compiled.clone(), tool.abi, inputs).await)
                    }
                    None => Inputs::Alone(inputs),
                },
            ))
        };
        let (verified, (input_bytes, ahead)) =
            try_join(self.verify(id, &tool, kept.is_some()), ahead).await?;
        let verified_at = self.clock.now_ms();

        let permit = match early {
            Some(permit) => permit,
            None => turn.await,
        };
        let granted = self.clock.now_ms();
        let prepared = match ahead {
            Inputs::With(prepared) => prepared,
            Inputs::Alone(inputs) => {
                let compiled = match kept {
                    Some(compiled) => compiled,
                    None => self.compile(&verified).await?,
                };
                self.executor.prepare(compiled, tool.abi, inputs).await
            }
        };
        let run = self.executor.run(prepared, WASM_CALL_DEADLINE_MS).await;
        let end = self.clock.now_ms();
        if run.end == RunEnd::DeadlinePassed {
            self.cool(permit)
        } else {
            drop(permit)
        }

        let queue_ms = granted - verified_at;
        let timing = Timing {
            verify_ms: (end - start - queue_ms - run.worker_ms - run.run_ms).max(0.0),
            queue_ms,
            worker_ms: run.worker_ms,
            run_ms: run.run_ms,
        };
        let ran = Ran {
            tool: id.to_owned(),
            abi: tool.abi,
            digest: verified.digest,
            input_bytes,
            duration_ms: end - start,
            timing,
        };
        ran.answer(run.end)
    }

    /// The ABI of the tool `id`, by what was read last.
    ///
    /// # Errors
    /// The refusal that says why it cannot be called; of every tool while nothing was read.
    pub fn known_abi(&self, id: &str) -> Result<Abi, Refusal> {
        self.found(id).map(|found| found.abi)
    }

    /// Where the tool's module is, what was admitted, and how it is called.
    async fn find(&self, id: &str) -> Result<Found, Refusal> {
        if self.readings.borrow().is_none() {
            self.read().await?;
        }
        self.found(id)
    }

    fn found(&self, id: &str) -> Result<Found, Refusal> {
        let readings = self.readings.borrow();
        let of_id = readings.iter().flatten().flat_map(|reading| {
            let tools = reading.shelf.iter().flat_map(|shelf| &shelf.tools);
            tools.filter(|tool| tool.id == id).map(|tool| (&reading.key, tool))
        });
        // A refused entry must not hide an admitted tool of the same id on another shelf.
        let (key, tool) = of_id.min_by_key(|(_, tool)| tool.verdict.is_err()).ok_or_else(|| {
            // A tool that nobody lists may be on a shelf that could not be read; then that is what there is to say.
            let unread = readings.iter().flatten().find_map(|reading| reading.shelf.as_ref().err().cloned());
            let unknown = || format!("no tool {:?} is on the shelf", cut(id, 64));
            unread.unwrap_or_else(|| Refusal::new(Code::UnknownTool, unknown()))
        })?;
        let admitted = *tool.verdict.as_ref().map_err(Clone::clone)?;
        let abi = admitted.abi.ok_or_else(|| {
            Refusal::new(
                Code::UnsupportedAbi,
                format!("the entry of {id:?} names no ABI that the host drives"),
            )
        })?;
        Ok(Found { shelf: key.clone(), path: contained_path(&tool.wasm_path)?, admitted, abi })
    }

    /// Reads the module, hashes what was read and compares it with what was admitted. The same digest has the same
    /// verdict, so what is compiled already is not judged again.
    async fn verify(&self, id: &str, tool: &Found, judged: bool) -> Result<Verified, Refusal> {
        let file = self.store.module(&tool.shelf, &tool.path).await;
        let file = file.map_err(|fault| fault.refusal(&tool.path))?;
        check_unchanged(id, file.digest, tool.admitted.digest)?;
        if judged {
            return Ok(Verified { digest: file.digest, bounded: None });
        }
        let module = Module::read(&file.bytes)?;
        let bounded = bounded(&module)?;
        module.check_abi(tool.abi)?;
        Ok(Verified { digest: file.digest, bounded: Some(bounded) })
    }

    async fn compile(&self, verified: &Verified) -> Result<E::Compiled, Refusal> {
        let bounded = verified.bounded.clone().unwrap_or_default();
        let compiled = self.executor.compile(bounded).await.map_err(CompileFault::refusal)?;
        self.compiled.borrow_mut().keep(verified.digest, compiled.clone());
        Ok(compiled)
    }

    fn cool(&self, permit: Permit) {
        if E::REAP_MS > 0
            && let Some(cooling) = permit.cool()
        {
            self.clock.after(E::REAP_MS, Box::new(|| cooling.end()));
        }
    }
}

/// The inputs of a call: with the isolate that has them already, or alone.
enum Inputs<P> {
    With(P),
    Alone(Vec<Vec<u8>>),
}

/// A tool that can be called, and where its module is.
struct Found {
    shelf: String,
    path: String,
    admitted: Admitted,
    abi: Abi,
}

/// What was read in this call: its digest is the admitted one. `bounded` is the copy to compile, where that is not done.
struct Verified {
    digest: Digest,
    bounded: Option<Vec<u8>>,
}

/// Compiled modules by digest, the oldest first to go.
#[derive(Debug)]
struct Kept<T> {
    order: VecDeque<Digest>,
    compiled: HashMap<Digest, T>,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self { order: VecDeque::new(), compiled: HashMap::new() }
    }
}

impl<T: Clone> Kept<T> {
    fn get(&self, digest: Digest) -> Option<T> {
        self.compiled.get(&digest).cloned()
    }

    fn keep(&mut self, digest: Digest, compiled: T) {
        if self.compiled.insert(digest, compiled).is_none() {
            self.order.push_back(digest);
        }
        if self.order.len() > COMPILED_KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.compiled.remove(&oldest);
        }
    }
}
