//! What a call of an extension costs, beside what wasmtime itself costs: `cargo xtask bench extensions`.
//!
//! All ways are measured in one run and in turns, because the same call takes up to twice as long from one run to the
//! next on a machine that others use too. Compare ratios, never times of two runs.
//!
//! | way | what is done for each call |
//! |---|---|
//! | bare | a fresh instance of compiled code, with pooling, fuel and epochs; no check of any kind |
//! | bare, hashed | the same, and the bytes are hashed |
//! | Toolshelf | the bytes are hashed, the code is found by its digest; request, response, log and limits |
//! | compiled | what is hashed is compiled as well, as without a cache of code |
//! | extism | a fresh plugin out of compiled code, which does the same work; no digest is checked (`peers`) |

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program that measures and prints")]

mod peers;

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::peers::Peers;
use serde_json::{Value, json};
use toolshelf_core::Digest;
use toolshelf_core::extension::envelope::{FactReply, ToolRequest};
use toolshelf_core::grant::Grant;
use toolshelf_sandbox::WorkerProgram;
use toolshelf_sandbox::crux::engine::EPOCH_TICK_MS;
use toolshelf_sandbox::crux::ports::{CallIdentity, FactAccess, FactQuery, NewFact, PortFault, Ports};
use toolshelf_sandbox::crux::{Call, Extensions, Limits, ModuleBytes};
use toolshelf_sandbox::process::WORKER_COMMAND;
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, InstancePre, Linker, Module,
    PoolingAllocationConfig, Store, StoreLimits, StoreLimitsBuilder,
};

/// Rounds in which every way is measured once. The best round of each is told besides the median: what the machine
/// does besides only makes a call slower.
const ROUNDS: usize = 15;
/// Calls of one measurement.
const CALLS: u32 = 100;
/// Compiling is so slow that fewer say enough.
const COMPILED_CALLS: u32 = 3;
/// Calls of a throughput measurement, and facts that one call reads.
const BURST: u32 = 2_000;
const READS: u32 = 10_000;

/// Works a little: adds up its request, and answers.
const CODE: &str = r#"(data (i32.const 40000) "{\"result\":\"pong\"}")
  (func (export "extension_call") (param $req i32) (param $len i32) (param $out i32) (param $cap i32) (result i32)
    (local $sum i32)
    (loop $next
      (local.set $len (i32.sub (local.get $len) (i32.const 1)))
      (local.set $sum (i32.add (local.get $sum) (i32.load8_u (local.get $len))))
      (br_if $next (local.get $len)))
    (i32.store (i32.const 50000) (local.get $sum))
    (memory.copy (local.get $out) (i32.const 40000) (i32.const 17))
    (i32.const 17))"#;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == WORKER_COMMAND) {
        return toolshelf_sandbox::worker_main(arguments);
    }
    let program = WorkerProgram::this().unwrap();
    let ours = Extensions::start(program, None, Duration::from_millis(EPOCH_TICK_MS)).unwrap();
    let bare_engine = Engine::new(&bare_config()).unwrap();

    let small = wat::parse_str(format!(r#"(module (memory (export "memory") 1) {CODE})"#)).unwrap();
    // A mebibyte of code that people's modules have besides what one call of them needs.
    let step = "(local.set 0 (i32.mul (i32.add (local.get 0) (i32.const 77)) (i32.xor (local.get 0) (i32.const 3))))";
    let function = format!("(func (param i32) (result i32) {} (local.get 0))", step.repeat(20));
    let count = (1 << 20) / (wat::parse_str(format!("(module {function})")).unwrap().len() - 20);
    let large =
        wat::parse_str(format!(r#"(module (memory (export "memory") 1) {CODE} {})"#, function.repeat(count)));
    let large = large.unwrap();

    for (name, module) in [("a small module", &small), ("a module of 1 MiB", &large)] {
        println!("{name}, {} bytes", module.len());
        compare(&ours, &bare_engine, module);
    }
    beside_others(&ours, &bare_engine, &small);
    throughput(&ours, &small);
    facts(&ours);
    ExitCode::SUCCESS
}

fn compare(ours: &Extensions, engine: &Engine, module: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let preparing = Instant::now();
    runtime.block_on(ours.prepare(&ModuleBytes::hash(module.to_vec()))).unwrap();
    let first = preparing.elapsed();
    let bare = Bare::new(engine, module);
    let bytes = module.to_vec();

    let (mut bare_times, mut hashed_times, mut our_times, mut hash_times, mut compiled_times) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS + 2 {
        let bare_time = each(CALLS, || bare.call());
        // Bytes are read anew for each call, so they are not at hand for the processor, and are gone after it. The
        // copies stand for the reading.
        let copies = || (0..CALLS).map(|_| bytes.clone()).collect::<Vec<_>>();
        let mut read = copies();
        let hashed = each(CALLS, || {
            black_box(Digest::of(&read.pop().unwrap()));
            bare.call();
        });
        let mut read = copies();
        let our = each(CALLS, || our_call(ours, read.pop().unwrap()));
        let mut read = copies();
        let hash = each(CALLS, || {
            black_box(Digest::of(&read.pop().unwrap()));
        });
        let compiled = each(if round < 3 { COMPILED_CALLS } else { 1 }, || Bare::new(engine, &bytes).call());
        // The first rounds warm the caches.
        if round >= 2 {
            bare_times.push(bare_time);
            hashed_times.push(hashed);
            our_times.push(our);
            hash_times.push(hash);
            compiled_times.push(compiled);
        }
    }
    let reference = best(&bare_times);
    println!("  {:<34} {:>10} {:>10} {:>8}", "", "best us", "median us", "ratio");
    for (name, times) in [
        ("bare wasmtime, no check", &bare_times),
        ("bare wasmtime, hashed", &hashed_times),
        ("Toolshelf: hashed, checked, called", &our_times),
        ("hashing alone", &hash_times),
        ("compiled for each call", &compiled_times),
    ] {
        let (best, median) = (best(times), median(times));
        println!("  {name:<34} {best:>10.1} {median:>10.1} {:>8.2}", best / reference);
    }
    let above = best(&our_times) - reference - best(&hash_times);
    println!("  above bare and hashing: {above:.1} us (best), {:.1} us (median); wanted: at most 40", {
        median(&our_times) - median(&bare_times) - median(&hash_times)
    });
    println!(
        "  compiled for each call / Toolshelf: {:.0}; wanted: at least 20",
        best(&compiled_times) / best(&our_times)
    );
    println!("  the first call, compiled in a worker: {:.0} ms", first.as_secs_f64() * 1e3);
}

/// The small module and other libraries, with a small request and with one of 8 KiB.
fn beside_others(ours: &Extensions, engine: &Engine, module: &[u8]) {
    let Some(mut peers) = Peers::start() else {
        println!("extism is not measured: `cargo xtask bench extensions` builds it");
        return;
    };
    for (name, args) in [
        ("a small request", json!({"doc_id": "note-1"})),
        ("a request of 8 KiB", json!({"doc_id": "n".repeat(8_192)})),
    ] {
        let bare = Bare::with(engine, module, &args);
        peers.request(std::str::from_utf8(&bare.request).unwrap());
        let mut times = vec![Vec::new(); 2 + peers.names.len()];
        for round in 0..ROUNDS + 2 {
            let bare_time = each(CALLS, || bare.call());
            let our = each(CALLS, || our_call_with(ours, module.to_vec(), &args));
            let others = peers.round(CALLS);
            if round >= 2 {
                times.iter_mut().zip([bare_time, our].into_iter().chain(others)).for_each(|(times, time)| {
                    times.push(time);
                });
            }
        }
        let our = best(&times[1]);
        println!("{name}, {} bytes", bare.request.len());
        println!("  {:<34} {:>10} {:>10} {:>12}", "", "best us", "median us", "/ Toolshelf");
        let names = ["bare wasmtime, no check", "Toolshelf: hashed, checked, called"].map(str::to_owned);
        for (name, times) in names.iter().chain(&peers.names).zip(&times) {
            println!(
                "  {name:<34} {:>10.1} {:>10.1} {:>12.2}",
                best(times),
                median(times),
                best(times) / our
            );
        }
        let better = times[2..].iter().map(|times| best(times)).fold(f64::INFINITY, f64::min);
        println!("  the best of extism / Toolshelf: {:.1}; wanted: at least 1.4", better / our);
    }
}

fn our_call(ours: &Extensions, bytes: Vec<u8>) {
    our_call_with(ours, bytes, &json!({"doc_id": "note-1"}));
}

fn our_call_with(ours: &Extensions, bytes: Vec<u8>, args: &Value) {
    let extension = ours.known(&ModuleBytes::hash(bytes)).unwrap();
    let call = Call { args: args.clone(), ..call(Ports::none(), None) };
    let outcome = ours.call(&extension, call).unwrap();
    assert_eq!(outcome.result, "pong");
}

fn call(ports: Ports, grant: Option<Grant>) -> Call {
    let [extension, tool, passport, request_id] =
        ["ext.bench", "ext.bench.run", "p_alice", "req-1753440000000000000"].map(str::to_owned);
    let identity = CallIdentity { extension, tool, passport, request_id };
    let limits = Limits { fuel: 100_000_000, wall_ms: 60_000, ..Limits::DEFAULT };
    Call { identity, args: json!({"doc_id": "note-1"}), grant, ports, limits }
}

/// What wasmtime costs where nothing is checked.
struct Bare {
    pre: InstancePre<StoreLimits>,
    request: Vec<u8>,
}

impl Bare {
    fn new(engine: &Engine, module: &[u8]) -> Self {
        Self::with(engine, module, &json!({"doc_id": "note-1"}))
    }

    fn with(engine: &Engine, module: &[u8], args: &Value) -> Self {
        let module = Module::new(engine, module).unwrap();
        let pre = Linker::new(engine).instantiate_pre(&module).unwrap();
        let request =
            ToolRequest { tool: "ext.bench.run", args, calling_passport_id: "p_alice", request_id: "req-1" };
        Self { pre, request: request.to_json().unwrap() }
    }

    fn call(&self) {
        let limits = StoreLimitsBuilder::new().memory_size(16_000_000).instances(1).memories(1).build();
        let mut store = Store::new(self.pre.module().engine(), limits);
        store.limiter(|limits| limits);
        store.set_fuel(100_000_000).unwrap();
        store.set_epoch_deadline(6_000);
        let instance = self.pre.instantiate(&mut store).unwrap();
        let memory = instance.get_memory(&mut store, "memory").unwrap();
        let called =
            instance.get_typed_func::<(i32, i32, i32, i32), i32>(&mut store, "extension_call").unwrap();
        memory.write(&mut store, 0, &self.request).unwrap();
        let len = self.request.len() as i32;
        let out = (len + 255) & !255;
        let returned = called.call(&mut store, (0, len, out, 40_000 - out)).unwrap();
        let out = out as usize;
        assert_eq!(&memory.data(&store)[out..out + returned as usize], br#"{"result":"pong"}"#);
    }
}

fn bare_config() -> Config {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_core_instances(64)
        .total_memories(64)
        .total_tables(256)
        .max_tables_per_module(4)
        .linear_memory_keep_resident(512 * 1024)
        .table_keep_resident(16 * 1024)
        .pagemap_scan(Enabled::Auto);
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .epoch_interruption(true)
        .wasm_backtrace_max_frames(None)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// Calls a second from one thread and from two.
fn throughput(ours: &Extensions, module: &[u8]) {
    let rate = |threads: u32| {
        let rounds = (0..5).map(|_| {
            let start = Instant::now();
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| (0..BURST).for_each(|_| our_call(ours, module.to_vec())));
                }
            });
            f64::from(BURST * threads) / start.elapsed().as_secs_f64()
        });
        rounds.fold(0.0, f64::max)
    };
    let (one, two) = (rate(1), rate(2));
    println!(
        "calls of the small module a second: {one:.0} from one thread, {two:.0} from two ({:.2})",
        two / one
    );
}

/// One fact, always the same: what is measured is the way to the store and back.
struct OneFact(FactReply);

impl FactAccess for OneFact {
    fn read(&self, _: &CallIdentity, _: &str, _: &str) -> Result<Option<FactReply>, PortFault> {
        Ok(Some(self.0.clone()))
    }

    fn store(&self, _: &CallIdentity, _: NewFact<'_>) -> Result<FactReply, PortFault> {
        Ok(self.0.clone())
    }

    fn query(&self, _: &CallIdentity, _: FactQuery<'_>) -> Result<Vec<FactReply>, PortFault> {
        Ok(vec![self.0.clone()])
    }
}

/// Reads of facts a second, from inside of a module.
fn facts(ours: &Extensions) {
    let module = wat::parse_str(format!(
        r#"(module (import "crux" "read_fact" (func $read (param i32 i32 i32 i32 i32 i32) (result i32)))
          (memory (export "memory") 2)
          (data (i32.const 40000) "notes::atitle{{\"result\":\"pong\"}}")
          (func (export "extension_call") (param $req i32) (param $len i32) (param $out i32) (param $cap i32)
            (result i32) (local $left i32)
            (local.set $left (i32.const {READS}))
            (loop $next
              (if (i32.lt_s (call $read (i32.const 40000) (i32.const 8) (i32.const 40008) (i32.const 5)
                (i32.const 70000) (i32.const 1000)) (i32.const 0)) (then unreachable))
              (br_if $next (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
            (memory.copy (local.get $out) (i32.const 40013) (i32.const 17)) (i32.const 17)))"#
    ))
    .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let extension = runtime.block_on(ours.prepare(&ModuleBytes::hash(module))).unwrap();
    let [fact_id, entity, key, value] = ["fact-1", "notes::a", "title", "Alpha"].map(str::to_owned);
    let fact = FactReply { fact_id, entity, key, value, confidence: 1.0, stored_at_unix_ms: 1 };
    let ports = Ports { facts: Some(Arc::new(OneFact(fact))), ..Ports::none() };
    let grant = Grant { allowed_prefixes_read: vec!["notes::".into()], ..Grant::default() };
    let times: Vec<_> = (0..ROUNDS)
        .map(|_| {
            let call = call(ports.clone(), Some(grant.clone()));
            each(1, || {
                ours.call(&extension, call.clone()).unwrap();
            })
        })
        .collect();
    println!(
        "reads of a fact a second, from inside a module: {:.0}; wanted: 200000",
        f64::from(READS) / best(&times) * 1e6
    );
}

/// Microseconds that each of `count` calls took.
fn each(count: u32, mut work: impl FnMut()) -> f64 {
    let start = Instant::now();
    (0..count).for_each(|_| work());
    start.elapsed().as_secs_f64() * 1e6 / f64::from(count)
}

fn best(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
