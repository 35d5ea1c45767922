//! One call of a module.

use std::mem::ManuallyDrop;

use toolshelf_core::abi::Abi;
use toolshelf_core::call::{RunEnd, output_bytes};
use toolshelf_core::limits::{WASM_MAX_TABLES, WASM_MEMORY_MAX_BYTES, WASM_TABLE_MAX_ELEMENTS};
use wasmtime::{Engine, Memory, Module, Store, StoreLimits, StoreLimitsBuilder, Trap, TypedFunc};

use crate::native;

/// What one call is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// How the module is called.
    pub abi: Abi,
    /// The inputs, in the order of the ABI's buffers.
    pub inputs: Vec<Vec<u8>>,
    /// The compiled code.
    pub code: Vec<u8>,
}

/// A module with its inputs in place, ready to be called once.
pub struct Instance {
    store: Store<StoreLimits>,
    memory: Memory,
    export: Export,
}

enum Export {
    One(TypedFunc<i32, i32>),
    Two(TypedFunc<(i32, i32), i32>),
}

/// Instantiates the module and calls it.
#[must_use]
pub fn run(engine: &Engine, start: &Start) -> RunEnd {
    match Instance::new(engine, start) {
        Ok(instance) => instance.call(start),
        Err(end) => end,
    }
}

impl Instance {
    /// Loads the code, instantiates it, checks what the ABI asks for, and writes the inputs.
    ///
    /// The code of a module with a start function runs here already.
    ///
    /// # Errors
    /// How the call ended before it began.
    pub fn new(engine: &Engine, start: &Start) -> Result<Self, RunEnd> {
        let module = native::load(engine, &start.code)
            .map_err(|err| RunEnd::Silent(format!("the compiled code does not load: {err}")))?;
        let mut store = Store::new(engine, limits());
        store.limiter(|limits| limits);
        let instance = instantiate(&mut store, &module)?;

        let layout = start.abi.layout();
        let unfit = |what: String| RunEnd::Unfit(what);
        let memory = instance
            .get_memory(&mut store, "memory")
            .ok_or_else(|| unfit("the instance exports no `memory`".to_owned()))?;
        let (has, needed) = (memory.data_size(&store) as u64, start.abi.memory_required());
        if has < needed {
            return Err(unfit(format!("memory is {has} bytes but the declared ABI needs {needed}")));
        }
        let export = match layout.inputs.len() {
            1 => instance.get_typed_func(&mut store, layout.export).map(Export::One),
            _ => instance.get_typed_func(&mut store, layout.export).map(Export::Two),
        };
        let export =
            export.map_err(|_| unfit(format!("the instance exports no function `{}`", layout.export)))?;
        for (input, bytes) in layout.inputs.iter().zip(&start.inputs) {
            memory
                .write(&mut store, input.addr as usize, bytes)
                .map_err(|_| unfit(format!("the memory has no room for {}", input.name)))?;
        }
        Ok(Self { store, memory, export })
    }

    /// Calls the export and reads the output.
    ///
    /// The instance stays where it is: giving its memory back is the end of the process's to do, which is near, and
    /// whoever waits for the answer need not wait for that.
    #[must_use]
    pub fn call(self, start: &Start) -> RunEnd {
        ManuallyDrop::new(self).call_once(start)
    }

    fn call_once(&mut self, start: &Start) -> RunEnd {
        let length = |index: usize| start.inputs.get(index).map_or(0, |input| input.len() as i32);
        let called = match &self.export {
            Export::One(export) => export.call(&mut self.store, length(0)),
            Export::Two(export) => export.call(&mut self.store, (length(0), length(1))),
        };
        let returned = match called {
            Ok(returned) => returned,
            Err(err) => return end_of(&err),
        };
        // A length that cannot be is the host's to refuse; nothing is read for it.
        let bytes = output_bytes(start.abi, returned).unwrap_or(0) as usize;
        let from = start.abi.layout().output.addr as usize;
        let output = self.memory.data(&self.store).get(from..from + bytes).map(<[u8]>::to_vec);
        match output {
            Some(output) => RunEnd::Returned { returned, output },
            None => RunEnd::Trapped("the output lies beyond the memory".to_owned()),
        }
    }
}

/// The ceilings once more. They are in the bounded module too; this holds also where somebody forgot to bound it.
fn limits() -> StoreLimits {
    StoreLimitsBuilder::new()
        .memory_size(WASM_MEMORY_MAX_BYTES as usize)
        .table_elements(WASM_TABLE_MAX_ELEMENTS as usize)
        .instances(1)
        .memories(1)
        .tables(WASM_MAX_TABLES)
        .build()
}

fn instantiate(store: &mut Store<StoreLimits>, module: &Module) -> Result<wasmtime::Instance, RunEnd> {
    wasmtime::Instance::new(store, module, &[]).map_err(|err| match err.downcast_ref::<Trap>() {
        Some(_) => end_of(&err),
        // Nothing is imported, so what is left to fail is getting memory.
        None => RunEnd::OutOfMemory(format!("{err:#}")),
    })
}

fn end_of(err: &wasmtime::Error) -> RunEnd {
    match err.downcast_ref::<Trap>() {
        Some(trap) => RunEnd::Trapped(trap.to_string()),
        None => RunEnd::Trapped(format!("{err:#}")),
    }
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance").finish_non_exhaustive()
    }
}
