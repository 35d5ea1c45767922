//! The command line of what agents need.

use std::path::PathBuf;

use clap::Subcommand;

use super::mcp_clients::Client;

/// What agents need.
#[derive(Debug, Subcommand)]
pub(crate) enum Mcp {
    /// Write the shelf into the configuration of a client
    ///
    /// What is in the file stays; a copy of it is kept beside it.
    Install {
        /// The client
        client: Client,
        /// Show what would be written, and where, and write nothing
        #[arg(long)]
        print: bool,
        /// Take the shelf out of the configuration again
        #[arg(long, conflicts_with = "print")]
        remove: bool,
        /// The file, instead of the client's usual one
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Tokens of agents that come over HTTP, each with its tools
    #[command(subcommand)]
    Token(McpToken),
}

/// What to do with tokens of agents.
#[derive(Debug, Subcommand)]
pub(crate) enum McpToken {
    /// Make a token, and print it this one time
    Add {
        /// A name for it
        name: String,
        /// Its tools, with commas between them; all of them where none are named
        #[arg(long, value_delimiter = ',')]
        tools: Option<Vec<String>>,
    },
    /// List the tokens with their tools
    List,
    /// Forget a token: whoever has it is refused from now on
    Remove {
        /// Its name
        name: String,
    },
}

/// What to do with definitions.
#[derive(Debug, Subcommand)]
pub(crate) enum Definitions {
    /// List every tool with how it stands
    List,
    /// Show what has changed since it was admitted
    Diff {
        /// The tools; all that have changed where none is named
        names: Vec<String>,
    },
    /// Admit what is there now
    Approve {
        /// The tools
        #[arg(required = true)]
        names: Vec<String>,
    },
}
