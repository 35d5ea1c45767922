//! A module of the shelf in an engine of this process.

use std::path::PathBuf;

use wasmtime::{Engine, Instance, Module, Store, WasmParams};

/// Where both buffer ABIs put what they exchange.
mod layout {
    pub(super) const INPUT: usize = 0x400;
    pub(super) const DIGEST: usize = 0x2400;
    pub(super) const DIGEST_BYTES: usize = 32;
    pub(super) const INPUT_A: usize = 0x1_0000;
    pub(super) const INPUT_B: usize = 0x2_0000;
    pub(super) const SCRIPT: usize = 0x3_0000;
    pub(super) const SCRIPT_BYTES: usize = 0x4_0000;
}

/// The bytes of a module on the shipped shelf.
///
/// # Panics
///
/// When there is no such module.
#[must_use]
pub fn module_bytes(id: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../www/shelf/{id}.wasm"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A compiled module. Every call runs in an instance of its own.
#[derive(Debug)]
pub struct Tool {
    module: Module,
}

impl Tool {
    /// Loads a module of the shipped shelf.
    ///
    /// # Panics
    ///
    /// When it is missing or no valid module.
    #[must_use]
    pub fn shipped(id: &str) -> Self {
        Self::compile(&module_bytes(id))
    }

    /// Compiles a module.
    ///
    /// # Panics
    ///
    /// When the bytes are no valid module.
    #[must_use]
    pub fn compile(bytes: &[u8]) -> Self {
        let module = Module::new(&Engine::default(), bytes).expect("a valid module");
        Self { module }
    }

    /// How many things the module wants from its host.
    #[must_use]
    pub fn imports(&self) -> usize {
        self.module.imports().len()
    }

    /// The pages of memory that the module begins with, and the most it can have.
    ///
    /// # Panics
    ///
    /// When it exports no memory.
    #[must_use]
    pub fn pages(&self) -> (u64, Option<u64>) {
        let memory = self.module.get_export("memory").expect("an exported memory");
        let memory = memory.memory().expect("`memory` is a memory").clone();
        (memory.minimum(), memory.maximum())
    }

    /// A fresh instance, ready to be called.
    ///
    /// # Panics
    ///
    /// When the module cannot be instantiated without imports.
    #[must_use]
    pub fn start(&self) -> Running {
        let mut store = Store::new(self.module.engine(), ());
        let instance = Instance::new(&mut store, &self.module, &[]).expect("an instance without imports");
        Running { store, instance }
    }

    /// What `sha256` makes of the input. An input that the buffer does not hold is announced, but not written.
    #[must_use]
    pub fn hash(&self, input: &[u8]) -> (i32, Vec<u8>) {
        self.start().hash(input)
    }

    /// What `diff` makes of two texts: its return value and, unless that is negative, the script's bytes.
    #[must_use]
    pub fn diff(&self, a: &[u8], b: &[u8]) -> (i32, Vec<u8>) {
        self.start().diff(a, b)
    }
}

/// One instance of a [`Tool`].
#[derive(Debug)]
pub struct Running {
    store: Store<()>,
    instance: Instance,
}

impl Running {
    /// See [`Tool::hash`].
    pub fn hash(&mut self, input: &[u8]) -> (i32, Vec<u8>) {
        if input.len() <= layout::DIGEST - layout::INPUT {
            self.write(layout::INPUT, input);
        }
        let returned = self.call::<i32>("sha256", len(input));
        (returned, self.read(layout::DIGEST, layout::DIGEST_BYTES))
    }

    /// See [`Tool::diff`].
    ///
    /// # Panics
    ///
    /// When the module claims more output than there is room for.
    pub fn diff(&mut self, a: &[u8], b: &[u8]) -> (i32, Vec<u8>) {
        if a.len() <= layout::INPUT_B - layout::INPUT_A {
            self.write(layout::INPUT_A, a);
        }
        if b.len() <= layout::SCRIPT - layout::INPUT_B {
            self.write(layout::INPUT_B, b);
        }
        let returned = self.call::<(i32, i32)>("diff", (len(a), len(b)));
        let bytes = usize::try_from(returned).unwrap_or(0);
        assert!(bytes <= layout::SCRIPT_BYTES, "the script overruns its buffer");
        (returned, self.read(layout::SCRIPT, bytes))
    }

    /// Calls an export.
    ///
    /// # Panics
    ///
    /// When there is no export of that name and type, or it traps.
    pub fn call<P: WasmParams>(&mut self, export: &str, params: P) -> i32 {
        let call = self.instance.get_typed_func::<P, i32>(&mut self.store, export).expect("the ABI's export");
        call.call(&mut self.store, params).expect("no trap")
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        let memory = self.instance.get_memory(&mut self.store, "memory").expect("an exported memory");
        memory.write(&mut self.store, at, bytes).expect("room for the input");
    }

    fn read(&mut self, at: usize, len: usize) -> Vec<u8> {
        let memory = self.instance.get_memory(&mut self.store, "memory").expect("an exported memory");
        memory.data(&self.store)[at..at + len].to_vec()
    }
}

fn len(bytes: &[u8]) -> i32 {
    i32::try_from(bytes.len()).expect("a length that fits an i32")
}
