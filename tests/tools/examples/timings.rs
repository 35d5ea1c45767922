//! How long the shipped tools take, in the engine of this process:
//! `cargo run --release -p tools-tests --example timings`.
#![allow(clippy::print_stdout, reason = "it is there to print")]

use std::time::{Duration, Instant};

use tools_tests::{Tool, hard_cases};

/// The shortest of a few runs, each in a fresh instance.
fn best<T>(mut run: impl FnMut() -> T) -> (Duration, T) {
    let timed = (0..5).map(|_| {
        let start = Instant::now();
        let result = run();
        (start.elapsed(), result)
    });
    timed.min_by_key(|(time, _)| *time).expect("a run")
}

fn main() {
    let hash = Tool::shipped("hash");
    let input = vec![0x5a; 8192];
    let (once, _) = best(|| hash.hash(&input));
    println!("hash: 8,192 bytes in {once:?}, instance included");
    let mut running = hash.start();
    running.hash(&input);
    let (many, ()) = best(|| {
        for _ in 0..1000 {
            running.hash(&input);
        }
    });
    println!("hash: {:.0} MB/s", 8.192 / many.as_secs_f64());

    println!("\n{:>10} {:>10}  {:>8} {:>8}", "diff", "loose", "bytes", "bytes");
    let (diff, loose) = (Tool::shipped("diff"), Tool::shipped("diff-loose"));
    for case in hard_cases() {
        let (exact, (exact_bytes, _)) = best(|| diff.diff(&case.a, &case.b));
        let (rough, (rough_bytes, _)) = best(|| loose.diff(&case.a, &case.b));
        let [exact, rough] = [exact, rough].map(|time| time.as_secs_f64() * 1e3);
        println!("{exact:>7.1} ms {rough:>7.1} ms  {exact_bytes:>8} {rough_bytes:>8}  {}", case.name);
    }
}
