//! The command line of pairing, and of what others can reach.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use super::serve::read_name;
use super::task::Deadline;

/// Examples of `toolshelf environments`.
pub(crate) const ENVIRONMENTS_HELP: &str = "Examples:
  toolshelf environments add 'https://studio.local:14800/#pair=12345678&env=env_…&fp=…'
  toolshelf task delegate --environment studio hash abc";

/// Where else than here a task is done.
#[derive(Debug, ClapArgs)]
pub(crate) struct There {
    /// The computer that does it, by its key or name; by default this one. Files are sent along from the folder
    #[arg(long, value_name = "KEY")]
    pub(crate) environment: Option<String>,
    /// The folder there that the task works in; by default the first
    #[arg(long, value_name = "DIR", requires = "environment")]
    pub(crate) remote_root: Option<String>,
}

/// How others reach the companion. What other computers can reach is always served over TLS.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct Secured {
    /// Serve over TLS on this computer as well, with a self-signed certificate that is made at the first start
    #[arg(long)]
    pub(crate) tls: bool,
    /// A certificate of one's own, with those that lead to its authority, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Its key, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// A name that this computer is called by; the first one stands in the links of pairings
    #[arg(long = "host", value_name = "NAME", value_parser = read_name)]
    pub(crate) names: Vec<String>,
}

/// What to do with those who were paired with this computer.
#[derive(Debug, Subcommand)]
pub(crate) enum PairingsCommand {
    /// List them
    List,
    /// Let one in no more; whoever uses its token is let go at once
    Revoke {
        /// Its id or its name
        pairing: String,
    },
}

/// A one-time code.
#[derive(Debug, ClapArgs)]
pub(crate) struct PairArgs {
    /// What the pairing is called; by default what the other side calls itself
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// What the token may be used for: tasks, shelf; by default both
    #[arg(long = "scope", value_name = "SCOPE", value_parser = ["tasks", "shelf"])]
    pub(crate) scopes: Vec<String>,
    /// How long the token holds, such as 90m or 8h; by default until it is revoked
    #[arg(long, value_name = "TIME")]
    pub(crate) expires: Option<Deadline>,
}

/// What to do with remotes.
#[derive(Debug, Subcommand)]
pub(crate) enum EnvironmentsCommand {
    /// List them, and how they stand
    List,
    /// Pair with the remote of a link that `toolshelf pair` has printed there
    Add {
        /// The link
        link: String,
        /// What this computer is called there; by default its own name
        #[arg(long)]
        name: Option<String>,
        /// A PEM file of the authorities that vouch for the remote's certificate
        #[arg(long, value_name = "FILE")]
        ca: Option<PathBuf>,
    },
    /// Forget a remote and its token
    Remove {
        /// Its key or its name
        environment: String,
    },
    /// Have the remote revoke the token, then forget it
    Revoke {
        /// Its key or its name
        environment: String,
    },
}
