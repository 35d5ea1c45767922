//! What people and scripts type. A command makes one [`Outcome`]; it is printed here, as text or as one JSON value.

#![expect(clippy::print_stderr, reason = "a command line program reports to its terminal")]

mod args;
mod args_extensions;
mod args_mcp;
mod build;
mod call;
mod companion;
mod definitions;
mod doctor;
mod ext;
mod ext_new;
mod ext_sign;
mod inspect;
mod list;
mod manage;
mod mcp;
mod mcp_clients;
mod mcp_install;
mod ordered;
mod outcome;
mod paired;
mod paired_args;
mod pin;
mod pin_extension;
mod script;
mod serve;
mod show;
mod stdio;
mod task;
mod worker;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};
use serde_json::json;
use tokio::runtime::Builder;
use tokio::task::LocalSet;
use toolshelf_core::refusal::Refusal;

use args::{Args, Command};
pub(crate) use list::listed;
use outcome::{Exit, Outcome};
use show::Style;

/// Reads the command line, does what it asks for, prints it, and says how it went.
pub(crate) fn main() -> ExitCode {
    let args = Args::parse();
    let style = Style::of_terminal();
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(err) => {
            eprintln!("toolshelf: {err}");
            return Exit::Outside.into();
        }
    };
    // One thread: the shelf's engine is made for one, and what takes time happens in other processes.
    let result = LocalSet::new().block_on(&runtime, execute(args.command, args.shelf, args.json, style));
    let exit = result.as_ref().map_or_else(|refusal| refusal.code.into(), |outcome| outcome.exit);
    match print(&result, args.json, style) {
        Ok(()) => exit.into(),
        // Whoever read has had enough, as `head` has.
        Err(err) if err.kind() == io::ErrorKind::BrokenPipe => exit.into(),
        Err(err) => {
            eprintln!("toolshelf: {err}");
            Exit::Outside.into()
        }
    }
}

async fn execute(
    command: Command,
    shelf: Option<std::path::PathBuf>,
    as_json: bool,
    style: Style,
) -> Result<Outcome, Refusal> {
    match command {
        Command::List => list::run(shelf, style).await,
        Command::Call(call) => call::run(shelf, call, style).await,
        Command::Inspect { file } => inspect::run(&file, style).await,
        Command::Pin { dir } => pin::run(&dir, style),
        Command::Build { file, output } => build::run(&file, output, style),
        Command::Serve(serve) => serve::run(shelf, serve, as_json).await,
        Command::Worker(worker) => worker::run(worker, as_json).await,
        Command::Workers => worker::list(shelf).await,
        Command::Ext(command) => manage::extensions(shelf, command, style).await,
        Command::Keys(command) => manage::keys(command, style).await,
        Command::Secret(command) => manage::secret(command, style).await,
        Command::Receipts(command) => manage::receipts(command, style).await,
        Command::Task { root, command } => task::run(shelf, root, command, style).await,
        Command::Pair(pair) => paired::pair(pair, style).await,
        Command::Pairings(command) => paired::pairings(command, style).await,
        Command::Environments(command) => paired::environments(command, style).await,
        Command::Stdio { roots } => stdio::run(shelf, roots).await,
        Command::Mcp { roots, command } => mcp::run(shelf, roots, command, style).await,
        Command::Definitions(command) => definitions::run(shelf, command, style).await,
        Command::Doctor => doctor::run(shelf, style).await,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "toolshelf", &mut script);
            let script = String::from_utf8_lossy(&script).into_owned();
            Ok(Outcome::done(json!({ "ok": true, "script": script }), script))
        }
    }
}

fn print(result: &Result<Outcome, Refusal>, as_json: bool, style: Style) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match result {
        Ok(outcome) if as_json && outcome.json.is_null() => {}
        Ok(outcome) if as_json => writeln!(out, "{}", outcome.json)?,
        Ok(outcome) => out.write_all(outcome.text.as_bytes())?,
        Err(refusal) if as_json => writeln!(out, "{}", json!(refusal))?,
        // What a script reads from the output is never an error's text.
        Err(refusal) => eprintln!("{}", style.refusal(refusal)),
    }
    out.flush()
}
