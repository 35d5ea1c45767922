//! What a call costs on this computer, beside what the computer itself costs: `cargo xtask bench host`.
//!
//! Everything is measured in one run and in turns, because the same call takes up to twice as long from one run to the
//! next on a machine that others use too. Compare ratios, never times of two runs.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program that measures and prints")]

use std::fs;
use std::future::Future;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use futures::future::join_all;
use tokio::runtime::Builder;
use tokio::task::LocalSet;
use toolshelf_core::call::Timing;
use toolshelf_host::ShelfHost;
use toolshelf_sandbox::{HostClock, ProcessExecutor, Shelves, WorkerProgram};
use wasmtime::{Engine, Instance, Module, Store};

type Shelf = ShelfHost<Shelves, ProcessExecutor, HostClock>;

/// Rounds in which every way is measured once.
const ROUNDS: usize = 300;
/// A Node process is so slow that fewer say enough.
const NODE_ROUNDS: usize = 30;
/// Calls of one throughput measurement, and how often it is repeated.
const BURST: usize = 1_000;
const BURSTS: usize = 4;

/// Calls after which memory, descriptors and processes must be where they were.
const MANY: usize = 20_000;

const NODE: &str = r#"
const fs = require("node:fs");
const { instance } = (() => { const module = new WebAssembly.Module(fs.readFileSync(process.argv[1]));
  return { instance: new WebAssembly.Instance(module) }; })();
const { memory, sha256 } = instance.exports;
new Uint8Array(memory.buffer, 0x400, 8192).fill(97);
sha256(8192);
process.stdout.write(Buffer.from(memory.buffer, 0x2400, 32).toString("hex"));
"#;

fn main() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, measure());
}

async fn measure() {
    let folder = tempfile::tempdir().unwrap();
    for file in ["manifest.json", "hash.wasm", "diff.wasm", "diff-loose.wasm"] {
        let from = format!("{}/../../www/shelf/{file}", env!("CARGO_MANIFEST_DIR"));
        fs::copy(from, folder.path().join(file)).unwrap();
    }
    let program = || WorkerProgram::at(env!("CARGO_BIN_EXE_toolshelf"));
    let shelf = |executor| ShelfHost::new(Shelves::with_folder(folder.path()), executor, HostClock::new());
    let cold = shelf(ProcessExecutor::cold(program(), None).unwrap());
    let ready = shelf(ProcessExecutor::new(program(), None).unwrap());
    let wasm = folder.path().join("hash.wasm");
    let in_process = InProcess::new(&fs::read(&wasm).unwrap());

    let mut ready_parts = Vec::new();
    let (mut bare_times, mut cold_times, mut ready_times, mut inside_times) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS + 10 {
        let bare = timed(async { spawn_and_wait(Command::new("/bin/true")) }).await;
        pause(5).await;
        let cold = timed(async { _ = call(&cold).await }).await;
        // Long enough for the idle workers to be there.
        pause(15).await;
        let mut parts = Timing::default();
        let ready = timed(async { parts = call(&ready).await }).await;
        pause(5).await;
        let inside = timed(async { in_process.call() }).await;
        // The first rounds warm the caches.
        if round >= 10 {
            bare_times.push(bare);
            cold_times.push(cold);
            ready_times.push(ready);
            ready_parts.push(parts);
            inside_times.push(inside);
        }
    }
    let mut node_times = Vec::new();
    for _ in 0..NODE_ROUNDS {
        let mut node = Command::new("node");
        node.args(["-e", NODE]).arg(&wasm);
        node_times.push(timed(async { spawn_and_wait(node) }).await);
    }

    let bare = median(&mut bare_times);
    println!("8 KiB through `hash`, {ROUNDS} rounds\n");
    println!("{:<42} {:>9} {:>9} {:>9} {:>6}", "", "p10", "median", "p99", "ratio");
    for (name, times) in [
        ("a bare process, started and waited for", &mut bare_times),
        ("this shelf, cold: a worker is started", &mut cold_times),
        ("this shelf, a worker stands ready", &mut ready_times),
        ("wasmtime in this process, fresh instance", &mut inside_times),
        ("a Node process for each call", &mut node_times),
    ] {
        let [early, middle, late] = [10, 50, 99].map(|percent| ms(percentile(times, percent)));
        println!("{name:<42} {early:>6.3} ms {middle:>6.3} ms {late:>6.3} ms {:>6.2}", middle / ms(bare));
    }
    let part = |of: fn(&Timing) -> f64| {
        let mut times: Vec<f64> = ready_parts.iter().map(of).collect();
        times.sort_unstable_by(f64::total_cmp);
        times[times.len() / 2]
    };
    println!(
        "\nof a call that finds a worker ready: verify {:.3} ms, worker {:.3} ms, run {:.3} ms",
        part(|parts| parts.verify_ms),
        part(|parts| parts.worker_ms),
        part(|parts| parts.run_ms)
    );
    let over = ms(median(&mut ready_times)) - ms(median(&mut inside_times));
    println!("ready over in-process: {over:.3} ms");
    println!("Node over ready: {:.0} times", ms(median(&mut node_times)) / ms(median(&mut ready_times)));
    throughput("cold", &cold).await;
    throughput("ready", &ready).await;
    steady(&ready).await;
}

/// What many calls leave behind in this process.
async fn steady(shelf: &Shelf) {
    let look = || {
        let memory = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages: usize = memory.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
        let files = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        (pages * 4, files, children.map(|pids| pids.split_whitespace().count()).sum::<usize>())
    };
    for _ in 0..1_000 {
        call(shelf).await;
    }
    pause(200).await;
    let before = look();
    for _ in 0..MANY {
        call(shelf).await;
    }
    pause(200).await;
    let after = look();
    println!(
        "{MANY} calls: memory {} -> {} KB, descriptors {} -> {}, processes {} -> {}",
        before.0, after.0, before.1, after.1, before.2, after.2
    );
}

async fn throughput(name: &str, shelf: &Shelf) {
    let (mut one, mut two) = (0.0_f64, 0.0_f64);
    let (mut cores_one, mut cores_two) = (0.0, 0.0);
    for _ in 0..BURSTS {
        let before = (cpu_seconds(), Instant::now());
        one = one.max(rate(shelf, 1).await);
        cores_one += (cpu_seconds() - before.0) / before.1.elapsed().as_secs_f64();
        let before = (cpu_seconds(), Instant::now());
        two = two.max(rate(shelf, 2).await);
        cores_two += (cpu_seconds() - before.0) / before.1.elapsed().as_secs_f64();
    }
    println!("{name}: one caller {one:.0} calls/s, two callers {two:.0} calls/s, {:.2} times", two / one);
    let (cores_one, cores_two) = (cores_one / BURSTS as f64, cores_two / BURSTS as f64);
    println!("{:>7} cores in use: {cores_one:.2} for one caller, {cores_two:.2} for two", "");
}

/// What this process and its children that have ended have used of the processor.
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    // utime, stime, cutime and cstime, in hundredths of a second.
    fields.skip(11).take(4).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

async fn rate(shelf: &Shelf, callers: usize) -> f64 {
    let start = Instant::now();
    let caller = async || {
        for _ in 0..BURST / callers {
            call(shelf).await;
        }
    };
    join_all((0..callers).map(|_| caller())).await;
    BURST as f64 / start.elapsed().as_secs_f64()
}

async fn call(shelf: &Shelf) -> Timing {
    let answer = shelf.call("hash", |name| (name == "input").then(|| vec![b'a'; 8_192])).await.unwrap();
    assert_eq!(answer.returned, 32);
    answer.timing
}

async fn timed(work: impl Future<Output = ()>) -> Duration {
    let start = Instant::now();
    work.await;
    start.elapsed()
}

async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

fn spawn_and_wait(mut command: Command) {
    let status = command.env_clear().env("PATH", env!("PATH")).stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
}

/// What a host does that trusts its own process: compiled once, a fresh store and instance for each call.
struct InProcess {
    module: Module,
}

impl InProcess {
    fn new(wasm: &[u8]) -> Self {
        Self { module: Module::new(&Engine::default(), wasm).unwrap() }
    }

    fn call(&self) {
        let mut store = Store::new(self.module.engine(), ());
        let instance = Instance::new(&mut store, &self.module, &[]).unwrap();
        let memory = instance.get_memory(&mut store, "memory").unwrap();
        memory.write(&mut store, 0x400, &[b'a'; 8_192]).unwrap();
        let export = instance.get_typed_func::<i32, i32>(&mut store, "sha256").unwrap();
        assert_eq!(export.call(&mut store, 8_192).unwrap(), 32);
        let mut output = [0; 32];
        memory.read(&store, 0x2400, &mut output).unwrap();
    }
}

fn median(times: &mut [Duration]) -> Duration {
    percentile(times, 50)
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * percent / 100]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
