//! The companion: the shelf on your own computer.
//!
//! | module | idea |
//! |---|---|
//! | [`settings`] | every setting, in one table |
//! | [`shelf`] | the shelf over this computer's folders and processes |
//! | [`service`] | the companion as one value: shelf, tasks, and what watchers hear of |
//! | [`watch`] | the shelf's folder, watched |
//! | [`http`] | the page, the interface for programs, who gets in |
//! | [`live`] | sessions over a WebSocket |
//! | [`log`] | what the companion writes about itself |
//! | [`cli`] | what people and scripts type |

use std::process::ExitCode;

use toolshelf_sandbox::process::WORKER_COMMAND;

mod cli;
mod http;
mod live;
mod log;
mod service;
mod settings;
mod shelf;
mod watch;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    // Before anything else: a worker is the same program, and must not even read the settings.
    if arguments.next().is_some_and(|first| first == WORKER_COMMAND) {
        return toolshelf_sandbox::worker_main(arguments);
    }
    cli::main()
}
