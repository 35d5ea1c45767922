//! The engine that runs extensions in this process, and the one that compiles for it in a worker.
//!
//! Both fuel and epochs are counted: fuel ends a call after the same instruction each time, epochs end it by the
//! clock. Whatever does not change compiled code (the pool, the size of its slots) is the running engine's alone.

use std::time::Duration;

use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use super::ticker::Ticker;
use crate::engine::fingerprint;

/// Calls that have an instance at the same time.
pub const EXTENSION_INSTANCES: usize = 64;
/// The highest ceiling of linear memory that a call can be given, in bytes, whatever the settings say.
pub const EXTENSION_MEMORY_CEILING_BYTES: usize = 1024 * 1024 * 1024;
/// Most tables of an extension.
pub const EXTENSION_MAX_TABLES: usize = 4;
/// Most elements of each of its tables.
pub const EXTENSION_TABLE_MAX_ELEMENTS: usize = 65_536;
/// Time from one tick to the next, in milliseconds, where no setting names another.
pub const EPOCH_TICK_MS: u64 = 10;
/// Most stack that an extension may use, in bytes. Calls run on threads whose stack is four times that.
const WASM_STACK_BYTES: usize = 512 * 1024;
/// Bytes of a slot's memory that are cleared by writing zeros. Giving pages back to the system costs more than that
/// where a module has touched only a few.
const MEMORY_KEEP_RESIDENT_BYTES: usize = 512 * 1024;
/// The same of a slot's table.
const TABLE_KEEP_RESIDENT_BYTES: usize = 16 * 1024;

/// What both sides must agree on.
fn config() -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .epoch_interruption(true)
        .max_wasm_stack(WASM_STACK_BYTES)
        .memory_init_cow(true)
        // A fault says what trapped, not where.
        .wasm_backtrace_max_frames(None)
        .generate_address_map(false)
        .native_unwind_info(false);
    // What compilers for wasm32 use today, and nothing that a limit does not reach or whose result depends on the
    // processor. Reference types are on because `call_indirect` is encoded with them; there are no objects to refer to,
    // so `externref` and the collector are off. Threads, components and WASI are not even built in.
    config
        .wasm_multi_value(true)
        .wasm_bulk_memory(true)
        .wasm_reference_types(true)
        .wasm_simd(true)
        .wasm_tail_call(true)
        .wasm_extended_const(true)
        .wasm_relaxed_simd(false)
        .wasm_multi_memory(false)
        .wasm_memory64(false)
        .wasm_custom_page_sizes(false)
        .wasm_wide_arithmetic(false)
        .wasm_function_references(false)
        .wasm_gc(false)
        .wasm_exceptions(false)
        .gc_support(false);
    config
}

/// The engine of a worker that compiles extensions.
///
/// # Errors
/// When this computer's processor is none that wasmtime compiles for.
pub fn compiling() -> wasmtime::Result<Engine> {
    Engine::new(&config())
}

/// The engine that runs extensions, and the thread that counts its epochs.
#[derive(Debug)]
pub struct ExtensionEngine {
    engine: Engine,
    ticker: Ticker,
}

impl ExtensionEngine {
    /// An engine whose epochs are `tick` long: at least a millisecond, at most a minute.
    ///
    /// # Errors
    /// When the system does not reserve the addresses of the pool (about 260 GiB; a reservation is no memory), or has
    /// no thread left.
    pub fn start(tick: Duration) -> wasmtime::Result<Self> {
        let mut config = config();
        config.enable_compiler(false).allocation_strategy(InstanceAllocationStrategy::Pooling(pool()));
        let engine = Engine::new(&config)?;
        let ticker = Ticker::start(&engine, tick)?;
        Ok(Self { engine, ticker })
    }

    /// The engine itself.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The whole ticks in `wall_ms` milliseconds, and at least one.
    #[must_use]
    pub fn ticks(&self, wall_ms: u64) -> u64 {
        (wall_ms / self.ticker.tick_ms()).max(1)
    }
}

/// Slots that are there from the beginning, so that neither a call nor its end asks the system for memory.
fn pool() -> PoolingAllocationConfig {
    let tables = EXTENSION_INSTANCES * EXTENSION_MAX_TABLES;
    let mut pool = PoolingAllocationConfig::new();
    pool.total_core_instances(EXTENSION_INSTANCES as u32)
        .total_memories(EXTENSION_INSTANCES as u32)
        .total_tables(tables as u32)
        .max_memories_per_module(1)
        .max_tables_per_module(EXTENSION_MAX_TABLES as u32)
        .max_memory_size(EXTENSION_MEMORY_CEILING_BYTES)
        .table_elements(EXTENSION_TABLE_MAX_ELEMENTS)
        .linear_memory_keep_resident(MEMORY_KEEP_RESIDENT_BYTES)
        .table_keep_resident(TABLE_KEEP_RESIDENT_BYTES)
        // Where the kernel can say which pages were touched, only those are cleared.
        .pagemap_scan(Enabled::Auto);
    pool
}

/// Names all that the compiled code of an extension depends on besides the module.
///
/// # Errors
/// As [`compiling`].
pub fn code_fingerprint() -> wasmtime::Result<toolshelf_core::Digest> {
    Ok(fingerprint(&compiling()?))
}
