//! The command line of what is kept for extensions: secrets and receipts.

use std::path::PathBuf;

use clap::Subcommand;

/// What to do with secrets.
#[derive(Debug, Subcommand)]
pub(crate) enum Secret {
    /// List their ids
    List,
    /// Keep the secret that is piped in
    Set {
        /// Its id
        id: String,
    },
    /// Forget one
    Remove {
        /// Its id
        id: String,
    },
}

/// What to do with receipts.
#[derive(Debug, Subcommand)]
pub(crate) enum Receipts {
    /// List the newest
    List {
        /// How many
        #[arg(long, default_value_t = 20)]
        limit: usize,
    },
    /// Check that a log is whole, with nothing but its file and a key
    Verify {
        /// The log; by default this computer's
        file: Option<PathBuf>,
        /// The public key; by default the file beside the log
        #[arg(long)]
        key: Option<String>,
    },
}
