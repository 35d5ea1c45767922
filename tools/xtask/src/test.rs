//! Every check, one after the other, each with its duration.
//!
//! A failing step does not stop the others, so that one run shows all there is to mend.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::{build, build_wasm, mcp, package, pins, setup, sh, size, tidy};

/// What `cargo xtask test --help` prints. A test keeps it in step with [`STEPS`].
pub(crate) const HELP: &str = "\
cargo xtask test [step]...

Runs every step in this order, or only those that are named:

  setup        install what is missing
  fmt          formatting
  tidy         layers, crate docs, file lengths, pins
  clippy       lints of the native crates
  clippy-wasm  lints of the wasm32 crates
  unit         tests of the native crates
  dom          tests of the browser crate in headless Chromium
  shelf        the shipped tools are what their sources build to
  package      the npm package, in Node
  mcp          the server for agents: the official conformance suite, the inspector, the TypeScript SDK
  build        the page
  size         the page is within its size budget
  e2e          the page in a real browser
";

/// The crates that run in the page or in a tool.
const WASM_CRATES: [&str; 5] =
    ["toolshelf-core", "toolshelf-host", "toolshelf-browser", "toolshelf-app", "toolshelf-guest"];

/// One check.
struct Step {
    name: &'static str,
    /// A step without which this one would test nothing or something old.
    needs: Option<&'static str>,
    run: fn() -> Result<()>,
}

const STEPS: [Step; 13] = [
    Step { name: "setup", needs: None, run: setup::everything },
    Step { name: "fmt", needs: None, run: fmt },
    Step { name: "tidy", needs: None, run: tidy::run },
    Step { name: "clippy", needs: None, run: clippy },
    Step { name: "clippy-wasm", needs: None, run: clippy_wasm },
    Step { name: "unit", needs: None, run: unit },
    Step { name: "dom", needs: Some("setup"), run: dom },
    Step { name: "shelf", needs: Some("setup"), run: shelf },
    Step { name: "package", needs: Some("setup"), run: package::test },
    Step { name: "mcp", needs: Some("setup"), run: mcp::test },
    Step { name: "build", needs: Some("setup"), run: build::page },
    Step { name: "size", needs: Some("build"), run: size::check },
    Step { name: "e2e", needs: Some("build"), run: e2e },
];

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Passed,
    Failed,
    Skipped,
}

/// What is said about a step in the end.
#[derive(Debug)]
struct Report {
    name: &'static str,
    ending: Ending,
    took: Duration,
}

/// Runs the named steps, or all.
pub(crate) fn run(names: &[String]) -> Result<()> {
    let steps = select(&STEPS, names)?;
    let started = Instant::now();
    let mut reports: Vec<Report> = Vec::new();
    for step in steps {
        let report = perform(step, &reports);
        println!("{}", line(&report));
        reports.push(report);
    }
    summarise(&reports, started.elapsed())
}

fn select<'a>(steps: &'a [Step], names: &[String]) -> Result<Vec<&'a Step>> {
    for name in names {
        if !steps.iter().any(|step| step.name == name) {
            bail!("there is no step `{name}`\n\n{HELP}");
        }
    }
    Ok(steps.iter().filter(|step| names.is_empty() || names.iter().any(|name| step.name == name)).collect())
}

fn perform(step: &Step, before: &[Report]) -> Report {
    let Step { name, needs, run } = *step;
    let lacks = |needed| before.iter().any(|report| report.name == needed && report.ending != Ending::Passed);
    if needs.is_some_and(lacks) {
        return Report { name, ending: Ending::Skipped, took: Duration::ZERO };
    }
    println!("\n=== {name} ===");
    let started = Instant::now();
    let ending = match run() {
        Ok(()) => Ending::Passed,
        Err(error) => {
            println!("error: {error:#}");
            Ending::Failed
        }
    };
    Report { name, ending, took: started.elapsed() }
}

fn line(report: &Report) -> String {
    let Report { name, ending, took } = report;
    match ending {
        Ending::Passed => format!("{name:<12} passed   {:>7.1} s", took.as_secs_f64()),
        Ending::Failed => format!("{name:<12} FAILED   {:>7.1} s", took.as_secs_f64()),
        Ending::Skipped => format!("{name:<12} skipped, because what it needs failed"),
    }
}

fn summarise(reports: &[Report], took: Duration) -> Result<()> {
    println!("\n=== summary ===");
    for report in reports {
        println!("{}", line(report));
    }
    let count = |ending| reports.iter().filter(|report| report.ending == ending).count();
    let (passed, failed, skipped) = (count(Ending::Passed), count(Ending::Failed), count(Ending::Skipped));
    let seconds = took.as_secs_f64();
    println!(
        "{} steps: {passed} passed, {failed} failed, {skipped} skipped in {seconds:.0} s",
        reports.len()
    );
    if failed + skipped > 0 {
        bail!("{failed} of {} steps failed", reports.len());
    }
    Ok(())
}

fn fmt() -> Result<()> {
    sh::run(sh::cargo().args(["fmt", "--all", "--check"]))
}

fn clippy() -> Result<()> {
    sh::run(&mut clippy_of(&[], &["--all-targets"]))?;
    sh::run(&mut clippy_of(&["e2e", "toolshelf-app"], &["--all-targets"]))
}

/// The tests of a wasm32 crate need its dev-dependencies, which those of the native crates would not build with.
fn clippy_wasm() -> Result<()> {
    let target = ["--target", pins::WASM_TARGET];
    sh::run(&mut clippy_of(&WASM_CRATES, &target))?;
    sh::run(&mut clippy_of(&["toolshelf-guest"], &[&target[..], &["--features", "extension"]].concat()))?;
    sh::run(&mut clippy_of(&["toolshelf-browser"], &[&target[..], &["--features", "api"]].concat()))?;
    sh::run(&mut clippy_of(&["toolshelf-browser"], &[&target[..], &["--tests"]].concat()))
}

/// Clippy with warnings as errors, of the default members where no package is named.
fn clippy_of(packages: &[&str], more: &[&str]) -> Command {
    let mut clippy = sh::cargo();
    clippy.args(["clippy", "--quiet"]).args(more);
    for package in packages {
        clippy.args(["--package", package]);
    }
    clippy.args(["--", "--deny", "warnings"]);
    clippy
}

/// The logic of the page and of guests is tested natively too, apart from the default members, whose features it must
/// not change.
fn unit() -> Result<()> {
    sh::run(sh::cargo().args(["test", "--no-fail-fast"]))?;
    let guest = ["--package", "toolshelf-guest", "--features", "extension"];
    sh::run(sh::cargo().args(["test", "--no-fail-fast"]).args(guest))?;
    let page = ["--package", "toolshelf-app", "--package", "toolshelf-browser"];
    sh::run(sh::cargo().args(["test", "--no-fail-fast", "--lib"]).args(page))
}

/// The runner of wasm-bindgen drives the browser; the switches that it gets are in `webdriver.json`.
fn dom() -> Result<()> {
    sh::run(
        sh::cargo()
            .env("CHROMEDRIVER", setup::chromedriver()?)
            .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER", "wasm-bindgen-test-runner")
            .env("WASM_BINDGEN_TEST_WEBDRIVER_JSON", sh::root().join("webdriver.json"))
            // A plain static host sends no isolation headers, so the tests get none either.
            .env("WASM_BINDGEN_TEST_NO_ORIGIN_ISOLATION", "1")
            .env("WASM_BINDGEN_TEST_TIMEOUT", "120")
            .args(["test", "--package", "toolshelf-browser", "--tests", "--target", pins::WASM_TARGET]),
    )
}

fn shelf() -> Result<()> {
    build_wasm::run(true).context("www/shelf/ is not what `cargo xtask build-wasm` builds")
}

/// The page is tested with the companion that serves it as well.
fn e2e() -> Result<()> {
    build::existing_dist()?;
    sh::run(sh::cargo().args(["build", "--package", "toolshelf", "--bin", "toolshelf"]))?;
    sh::run(sh::cargo().args(["test", "--package", "e2e"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_lists_the_steps_in_their_order() {
        let listed = HELP.lines().filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
        assert!(listed.eq(STEPS.iter().map(|step| step.name)));
    }

    #[test]
    fn named_steps_run_in_the_usual_order_and_unknown_ones_are_refused() {
        let names = ["size".to_owned(), "fmt".to_owned()];
        let selected: Vec<_> = select(&STEPS, &names).unwrap().iter().map(|step| step.name).collect();
        assert_eq!(selected, ["fmt", "size"]);
        let Err(error) = select(&STEPS, &["speed".to_owned()]) else {
            panic!("an unknown step was accepted")
        };
        assert!(error.to_string().starts_with("there is no step `speed`"));
    }

    #[test]
    fn a_step_is_skipped_when_what_it_needs_failed_and_run_when_that_was_not_asked_for() {
        let step = Step { name: "size", needs: Some("build"), run: || Ok(()) };
        let report = |ending| [Report { name: "build", ending, took: Duration::ZERO }];
        assert_eq!(perform(&step, &report(Ending::Failed)).ending, Ending::Skipped);
        assert_eq!(perform(&step, &report(Ending::Passed)).ending, Ending::Passed);
        assert_eq!(perform(&step, &[]).ending, Ending::Passed);
    }

    #[test]
    fn one_failure_fails_the_whole() {
        let failing = Step { name: "fmt", needs: None, run: || bail!("no") };
        let report = perform(&failing, &[]);
        assert_eq!(report.ending, Ending::Failed);
        let error = summarise(&[report], Duration::ZERO).unwrap_err();
        assert_eq!(error.to_string(), "1 of 1 steps failed");
    }
}
