//! `cargo xtask fuzz`: the fuzz targets of `tests/fuzz`, each for a bounded time.
//!
//! The targets are libFuzzer programs. What they need of the compiler, counters of coverage, is asked for by stable
//! flags of code generation, so the toolchain of the workspace builds them; a C++ compiler builds libFuzzer itself.
//!
//! What a run begins with is made from the conformance cases ([`seeds`]), besides what earlier runs have found
//! (`target/fuzz/corpus`) and the inputs that once were findings (`tests/fuzz/seeds`). A finding fails the run and is
//! kept in `target/fuzz/artifacts`.

mod seeds;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use crate::sh;

/// The targets, in the order in which they run.
const TARGETS: [&str; 3] = ["manifest", "response", "host_calls"];
/// How long each runs where nobody says, in seconds.
pub(crate) const SECONDS: u32 = 120;

/// Counters of coverage in everything that is built, and comparisons that the fuzzer can look into.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing";

/// What a run has come to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Figures {
    executions: u64,
    per_second: u64,
    /// Edges of the code that were reached.
    coverage: u64,
    /// Inputs that are kept.
    corpus: u64,
}

/// Runs the named targets, or all, each for that many seconds.
pub(crate) fn run(names: &[String], seconds: u32) -> Result<()> {
    if let Some(unknown) = names.iter().find(|name| !TARGETS.contains(&name.as_str())) {
        bail!("there is no fuzz target `{unknown}`; there are {}", TARGETS.join(", "));
    }
    let programs = build()?;
    let mut failed = Vec::new();
    for target in TARGETS {
        if !names.is_empty() && !names.iter().any(|name| name == target) {
            continue;
        }
        println!("\n=== {target}, {seconds} s ===");
        let started = Instant::now();
        let (figures, passed) = fuzz(&programs.join(target), target, seconds)?;
        println!(
            "{target}: {} executions ({} a second), {} edges covered, {} inputs kept, {:.0} s: {}",
            figures.executions,
            figures.per_second,
            figures.coverage,
            figures.corpus,
            started.elapsed().as_secs_f64(),
            if passed { "nothing found" } else { "FAILED" },
        );
        if !passed {
            failed.push(target);
        }
    }
    if !failed.is_empty() {
        bail!("findings of {}: look into target/fuzz/artifacts, and make each a test", failed.join(", "));
    }
    Ok(())
}

fn folder() -> PathBuf {
    sh::root().join("target/fuzz")
}

/// Builds the targets, and says where they are.
fn build() -> Result<PathBuf> {
    let host = host()?;
    // With a target named, build scripts and macros are built without the flags.
    let mut command = sh::cargo();
    command
        .current_dir(sh::root().join("tests/fuzz"))
        .args(["build", "--release", "--target", &host, "--target-dir"])
        .arg(folder())
        .env("RUSTFLAGS", FLAGS)
        // Of the workspace that this program was started from.
        .env_remove("CARGO_TARGET_DIR");
    sh::run(&mut command).context("cannot build the fuzz targets; a C++ compiler is needed (g++)")?;
    Ok(folder().join(host).join("release"))
}

fn host() -> Result<String> {
    let about = sh::output(sh::program("rustc").arg("-vV"))?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc -vV` names no host")?.to_owned())
}

/// Runs one target; says what it has come to, and whether it found nothing.
fn fuzz(program: &Path, target: &str, seconds: u32) -> Result<(Figures, bool)> {
    let [corpus, seeds, artifacts] =
        ["corpus", "seeds", "artifacts"].map(|name| folder().join(name).join(target));
    for folder in [&corpus, &seeds, &artifacts] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    seeds::write(target, &seeds)?;
    let mut command = Command::new(program);
    command
        .current_dir(folder())
        .args(["-print_final_stats=1", "-timeout=20", "-rss_limit_mb=2048", "-max_len=4096"])
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args([&corpus, &seeds]);
    let kept = sh::root().join("tests/fuzz/seeds").join(target);
    if kept.is_dir() {
        command.arg(kept);
    }
    let words = sh::root().join("tests/fuzz").join(format!("{target}.dict"));
    if words.is_file() {
        command.arg(format!("-dict={}", words.display()));
    }
    let mut child = command.stderr(Stdio::piped()).spawn().context("cannot start the fuzz target")?;
    let mut figures = Figures::default();
    let mut last = Vec::new();
    let report = child.stderr.take().context("the fuzz target says nothing")?;
    // A program that crashes may print what is no text.
    for line in BufReader::new(report).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        figures.read(&line);
        last.push(line);
        if last.len() > 60 {
            last.remove(0);
        }
    }
    let passed = child.wait()?.success();
    if !passed {
        println!("{}", last.join("\n"));
    }
    Ok((figures, passed))
}

impl Figures {
    /// Takes what a line of libFuzzer's report says.
    fn read(&mut self, line: &str) {
        let after = |word: &str| line.split_once(word)?.1.split_whitespace().next()?.parse::<u64>().ok();
        if let Some(count) = after("stat::number_of_executed_units:") {
            self.executions = count;
        }
        if let Some(count) = after("stat::average_exec_per_sec:") {
            self.per_second = count;
        }
        if line.starts_with('#') {
            self.coverage = after(" cov: ").unwrap_or(self.coverage);
            let corpus =
                line.split_once(" corp: ").and_then(|(_, rest)| rest.split('/').next()?.parse().ok());
            self.corpus = corpus.unwrap_or(self.corpus);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_the_report() {
        let mut figures = Figures::default();
        for line in [
            "INFO: seed corpus: files: 3 min: 1b max: 9b total: 14b rss: 29Mb",
            "#65536\tpulse  cov: 812 ft: 2100 corp: 320/41Kb lim: 110 exec/s: 32768 rss: 40Mb",
            "#70000\tNEW    cov: 813 ft: 2101 corp: 321/41Kb lim: 110 exec/s: 32768 rss: 40Mb L: 9/9 MS: 1 CopyPart-",
            "#84827\tDONE   cov: 813 ft: 2101 corp: 321/41Kb lim: 110 exec/s: 7711 rss: 54Mb",
            "stat::number_of_executed_units: 84827",
            "stat::average_exec_per_sec:     7711",
        ] {
            figures.read(line);
        }
        assert_eq!(figures, Figures { executions: 84_827, per_second: 7_711, coverage: 813, corpus: 321 });
    }

    #[test]
    fn what_is_no_target_is_named() {
        let error = run(&["manifests".to_owned()], 1).unwrap_err().to_string();
        assert!(
            error.contains("no fuzz target `manifests`") && error.contains("manifest, response"),
            "{error}"
        );
    }
}
