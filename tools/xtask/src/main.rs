//! Set-up, build, run, test and benchmark commands of the workspace: `cargo xtask --help` lists them.
//!
//! Everything a contributor or CI does goes through here, so that there is one way to do it and one place where the
//! versions of the tools are pinned ([`pins`]).
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line program reports to its terminal"
)]

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use lexopt::prelude::{Long, Short, Value, ValueExt as _};

mod app;
mod build;
mod build_wasm;
mod chunks;
mod finish;
mod inline_app;
mod nats;
mod offline;
mod package;
mod page;
mod pins;
mod run;
mod setup;
mod sh;
mod single;
mod size;
mod styles;
mod test;
mod tidy;

const HELP: &str = "\
cargo xtask <command>

  setup                 install what is missing: wasm32 target, wasm-bindgen, Trunk, Chromium, axe-core, NATS
  build                 build the page into dist/, ready for any static host, and as one file into dist-single/
  package               build the npm package into target/package/
  run [--port N]        build the page and `toolshelf`, and serve it on 127.0.0.1 (port 14800, or the next free one)
  test [step]...        run every check, or only the named steps (`cargo xtask test --help` lists them)
  build-wasm [--check]  build the shipped tools and the example extensions; --check only compares
  tidy                  check the rules that the compiler does not: layers, crate docs, file lengths, pins
  bench browser         measure calls of tools in headless Chromium
  bench tasks           measure the reducer, and tasks in headless Chromium
  bench host            measure calls in processes of this computer
  bench cluster         measure tasks that are handed to workers, beside bare NATS
  bench extensions      measure calls of extensions beside bare wasmtime
  screenshot            write pictures of the page to target/screenshots/, wide and narrow, light and dark
  finish-dist           complete a staged page; Trunk calls it, nobody else needs to
";

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
enum Command {
    Help(&'static str),
    Setup,
    Build,
    Package,
    Run { port: Option<u16> },
    Test { steps: Vec<String> },
    BuildWasm { check: bool },
    Tidy,
    BenchBrowser,
    BenchTasks,
    BenchCluster,
    BenchHost,
    BenchExtensions,
    Screenshot,
    FinishDist,
}

fn main() -> ExitCode {
    let result = parse(lexopt::Parser::from_env()).and_then(execute);
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The alternate form prints the causes as well.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut args: lexopt::Parser) -> Result<Command> {
    let (mut words, mut check, mut port) = (Vec::new(), false, None);
    let mut help = false;
    while let Some(arg) = args.next()? {
        match arg {
            Short('h') | Long("help") => help = true,
            Long("check") => check = true,
            Long("port") => port = Some(args.value()?.parse()?),
            Value(word) => words.push(word.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let command = match words.as_slice() {
        ["test", ..] if help => Command::Help(test::HELP),
        [] | ["help"] => Command::Help(HELP),
        _ if help => Command::Help(HELP),
        ["setup"] => Command::Setup,
        ["build"] => Command::Build,
        ["package"] => Command::Package,
        ["run"] => Command::Run { port },
        ["test", steps @ ..] => Command::Test { steps: steps.iter().map(ToString::to_string).collect() },
        ["build-wasm"] => Command::BuildWasm { check },
        ["tidy"] => Command::Tidy,
        ["bench", "browser"] => Command::BenchBrowser,
        ["bench", "tasks"] => Command::BenchTasks,
        ["bench", "cluster"] => Command::BenchCluster,
        ["bench", "host"] => Command::BenchHost,
        ["bench", "extensions"] => Command::BenchExtensions,
        ["screenshot"] => Command::Screenshot,
        ["finish-dist"] => Command::FinishDist,
        other => bail!("there is no command `{}`\n\n{HELP}", other.join(" ")),
    };
    if port.is_some() && !matches!(command, Command::Run { .. }) {
        bail!("`--port` belongs to `cargo xtask run`");
    }
    if check && !matches!(command, Command::BuildWasm { .. }) {
        bail!("`--check` belongs to `cargo xtask build-wasm`");
    }
    Ok(command)
}

fn execute(command: Command) -> Result<()> {
    match command {
        Command::Help(text) => {
            print!("{text}");
            Ok(())
        }
        Command::Setup => setup::everything(),
        Command::Build => {
            setup::for_build()?;
            build::page()
        }
        Command::Package => package::build(),
        Command::Run { port } => run::run(port),
        Command::Test { steps } => test::run(&steps),
        Command::BuildWasm { check } => {
            setup::wasm_target()?;
            build_wasm::run(check).context("cannot build the shipped tools")
        }
        Command::Tidy => tidy::run(),
        Command::BenchBrowser => page::bench_browser(),
        Command::BenchTasks => page::bench_tasks(),
        Command::BenchCluster => {
            nats::server()?;
            sh::run(sh::cargo().args(["bench", "--package", "toolshelf", "--bench", "cluster"]))
        }
        Command::BenchHost => {
            sh::run(sh::cargo().args(["bench", "--package", "toolshelf", "--bench", "host"]))
        }
        Command::BenchExtensions => {
            sh::run(sh::cargo().args(["bench", "--package", "toolshelf-sandbox", "--bench", "extensions"]))
        }
        Command::Screenshot => page::screenshot(),
        Command::FinishDist => finish::staged(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command> {
        parse(lexopt::Parser::from_args(line.split_whitespace()))
    }

    #[test]
    fn commands_and_their_options_are_understood() {
        for (line, command) in [
            ("", Command::Help(HELP)),
            ("--help", Command::Help(HELP)),
            ("test -h", Command::Help(test::HELP)),
            ("run", Command::Run { port: None }),
            ("run --port 8080", Command::Run { port: Some(8080) }),
            ("test fmt e2e", Command::Test { steps: vec!["fmt".into(), "e2e".into()] }),
            ("build-wasm --check", Command::BuildWasm { check: true }),
            ("bench browser", Command::BenchBrowser),
            ("bench tasks", Command::BenchTasks),
            ("bench cluster", Command::BenchCluster),
            ("bench host", Command::BenchHost),
            ("bench extensions", Command::BenchExtensions),
        ] {
            assert_eq!(parsed(line).unwrap(), command, "{line}");
        }
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (line, part) in [
            ("jump", "no command `jump`"),
            ("build --port 1", "`--port` belongs to"),
            ("tidy --check", "`--check` belongs to"),
            ("run --port x", "x"),
            ("run --fast", "--fast"),
        ] {
            let error = parsed(line).unwrap_err().to_string();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
