//! Calls of a small extension through `extism`, for `cargo xtask bench extensions`.
//!
//! The benchmark starts this program and asks it in turns with its own measurements, so that both are measured in one run.
//! The first line of the input is the request that the extension gets; each further line is a number of calls. Each
//! answer is a line of numbers: the microseconds of one call of each way of [`NAMES`], which the first answer lists.
//!
//! Every way makes a fresh plugin out of compiled code for each call. What the plugin does is what the benchmark's own
//! extension does: it reads its request, adds up its bytes, and answers 17 bytes. It reads and writes as the library's
//! own development kit does, eight bytes at a time. No digest is checked.

use std::io::{self, BufRead as _, Write as _};
use std::time::{Duration, Instant};

use extism::{CompiledPlugin, Error, Manifest, Plugin, PluginBuilder, Wasm};
use wasmtime::{Config, Enabled, InstanceAllocationStrategy, PoolingAllocationConfig};

/// The ways, in the order of the numbers.
const NAMES: [&str; 3] = ["extism", "extism, pooling", "extism, pooling, no limits"];

const ANSWER: &[u8] = br#"{"result":"pong"}"#;

const PLUGIN: &str = r#"(module
  (import "extism:host/env" "input_length" (func $length (result i64)))
  (import "extism:host/env" "input_load_u64" (func $load_u64 (param i64) (result i64)))
  (import "extism:host/env" "input_load_u8" (func $load_u8 (param i64) (result i32)))
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "store_u64" (func $store_u64 (param i64 i64)))
  (import "extism:host/env" "store_u8" (func $store_u8 (param i64 i32)))
  (import "extism:host/env" "output_set" (func $output (param i64 i64)))
  (memory (export "memory") 1)
  (data (i32.const 40000) "{\"result\":\"pong\"}")
  (func (export "extension_call") (result i32)
    (local $len i64) (local $at i64) (local $left i32) (local $sum i32) (local $out i64)
    (local.set $len (call $length))
    ;; The request, into the plugin's own memory.
    (block $whole (loop $next
      (br_if $whole (i64.gt_u (i64.add (local.get $at) (i64.const 8)) (local.get $len)))
      (i64.store (i32.wrap_i64 (local.get $at)) (call $load_u64 (local.get $at)))
      (local.set $at (i64.add (local.get $at) (i64.const 8)))
      (br $next)))
    (block $done (loop $next
      (br_if $done (i64.ge_u (local.get $at) (local.get $len)))
      (i32.store8 (i32.wrap_i64 (local.get $at)) (call $load_u8 (local.get $at)))
      (local.set $at (i64.add (local.get $at) (i64.const 1)))
      (br $next)))
    (local.set $left (i32.wrap_i64 (local.get $len)))
    (loop $next
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (local.set $sum (i32.add (local.get $sum) (i32.load8_u (local.get $left))))
      (br_if $next (local.get $left)))
    (i32.store (i32.const 50000) (local.get $sum))
    (local.set $out (call $alloc (i64.const 17)))
    (call $store_u64 (local.get $out) (i64.load (i32.const 40000)))
    (call $store_u64 (i64.add (local.get $out) (i64.const 8)) (i64.load (i32.const 40008)))
    (call $store_u8 (i64.add (local.get $out) (i64.const 16)) (i32.load8_u (i32.const 40016)))
    (call $output (local.get $out) (i64.const 17))
    (i32.const 0)))"#;

fn main() -> Result<(), Error> {
    let plugin = wat::parse_str(PLUGIN)?;
    let ways =
        [compiled(&plugin, false, true)?, compiled(&plugin, true, true)?, compiled(&plugin, true, false)?];
    let mut lines = io::stdin().lock().lines();
    let mut out = io::stdout().lock();
    writeln!(out, "{}", NAMES.join("\t"))?;
    out.flush()?;
    let Some(mut request) = lines.next().transpose()? else { return Ok(()) };
    for line in lines {
        let line = line?;
        // A line that is no number is the next request.
        let Ok(calls) = line.parse::<u32>() else {
            request = line;
            continue;
        };
        let times = ways.iter().map(|way| each(way, request.as_bytes(), calls));
        let times = times.map(|time| time.map(|us| us.to_string())).collect::<Result<Vec<_>, _>>()?;
        writeln!(out, "{}", times.join("\t"))?;
        out.flush()?;
    }
    Ok(())
}

fn compiled(plugin: &[u8], pooling: bool, limits: bool) -> Result<CompiledPlugin, Error> {
    let mut manifest = Manifest::new([Wasm::data(plugin)]);
    if limits {
        manifest = manifest.with_timeout(Duration::from_secs(60)).with_memory_max(244);
    }
    let mut builder = PluginBuilder::new(manifest).with_cache_disabled();
    if pooling {
        builder = builder.with_wasmtime_config(pool());
    }
    if limits {
        builder = builder.with_fuel_limit(100_000_000);
    }
    builder.compile()
}

/// The same pool as the benchmark's.
fn pool() -> Config {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_core_instances(64)
        .total_memories(64)
        .total_tables(256)
        .max_tables_per_module(4)
        .linear_memory_keep_resident(512 * 1024)
        .table_keep_resident(16 * 1024)
        .pagemap_scan(Enabled::Auto);
    let mut config = Config::new();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// Microseconds of one of `calls` calls.
fn each(way: &CompiledPlugin, request: &[u8], calls: u32) -> Result<f64, Error> {
    let start = Instant::now();
    for _ in 0..calls {
        let mut plugin = Plugin::new_from_compiled(way)?;
        let answer: &[u8] = plugin.call("extension_call", request)?;
        assert_eq!(answer, ANSWER);
    }
    Ok(start.elapsed().as_secs_f64() * 1e6 / f64::from(calls))
}
