//! The companion: the shelf on your own computer.
//!
//! | module | idea |
//! |---|---|
//! | [`settings`] | every setting, in one table |
//! | [`shelf`] | the shelf over this computer's folders and processes |
//! | [`extensions`] | extensions: what is installed, who may call it, what happens when it is called |
//! | [`service`] | the companion as one value: shelf, tasks, and what watchers hear of |
//! | [`cli`] | what people and scripts type |

use std::process::ExitCode;

use toolshelf_sandbox::process::WORKER_COMMAND;

mod cli;
#[expect(dead_code, reason = "the interfaces that call it come next")]
mod extensions;
mod service;
mod settings;
mod shelf;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    // Before anything else: a worker is the same program, and must not even read the settings.
    if arguments.next().is_some_and(|first| first == WORKER_COMMAND) {
        return toolshelf_sandbox::worker_main(arguments);
    }
    cli::main()
}
