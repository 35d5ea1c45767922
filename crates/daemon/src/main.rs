//! The companion: the shelf on your own computer.
//!
//! | module | idea |
//! |---|---|
//! | [`settings`] | every setting, in one table |
//! | [`config`] | `toolshelf.toml` |
//! | [`shelf`] | the shelf over this computer's folders and processes |
//! | [`machine`] | tasks on this computer |
//! | [`cluster`] | tasks on many machines |
//! | [`extensions`] | extensions: what is installed, who may call it, what happens when it is called |
//! | [`service`] | the companion as one value: shelf, tasks, and what watchers hear of |
//! | [`remote`] | other machines: those that were let in here, and those that this one was let in to |
//! | [`watch`] | the shelf's folder, watched |
//! | [`http`] | the page, the interface for programs, who gets in |
//! | [`live`] | sessions over a WebSocket |
//! | [`mcp`] | the shelf for agents |
//! | [`log`] | what the companion writes about itself |
//! | [`frames`] | requests, one a line: for parent processes and for the command line |
//! | [`files`] | reading what the caller names, and writing it whole |
//! | [`cli`] | what people and scripts type |

use std::process::ExitCode;

use machine::agent::supervisor::{self, AGENT_COMMAND};
use toolshelf_sandbox::process::WORKER_COMMAND;

mod cli;
mod cluster;
mod config;
mod extensions;
mod files;
mod frames;
mod http;
mod live;
mod log;
mod machine;
mod mcp;
mod remote;
mod service;
mod settings;
mod shelf;
mod watch;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    // Before anything else: a worker or a supervisor is the same program, and must not even read the settings.
    let command = arguments.next();
    if command.as_ref().is_some_and(|first| first == WORKER_COMMAND) {
        return toolshelf_sandbox::worker_main(arguments);
    }
    if command.as_ref().is_some_and(|first| first == AGENT_COMMAND) {
        return supervisor::main(arguments);
    }
    cli::main()
}
