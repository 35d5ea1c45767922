//! The command line of extensions, publishers, secrets and receipts.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

/// What to do with extensions.
#[derive(Debug, Subcommand)]
pub(crate) enum Ext {
    /// List what can be called: digest, ABI, imports, and what its calls took
    List,
    /// Call a tool of the shelf with arguments
    #[command(after_help = "Example:\n  toolshelf ext call diff a=old b=new")]
    Call {
        /// The tool
        name: String,
        /// Its arguments, as name=text
        args: Vec<String>,
    },
    /// Make the project of an extension, ready to be built
    New {
        /// The extension's id
        name: String,
        /// The folder; by default one of that name
        dir: Option<PathBuf>,
    },
    /// Install an extension: from its folder or manifest, from an https address, or from the registry
    Install {
        /// The folder, the manifest's file or its address; with --from-registry its id
        from: String,
        /// Look the id up in the registry
        #[arg(long)]
        from_registry: bool,
        /// The registry's index, instead of the one in the settings
        #[arg(long, value_name = "FILE|URL", requires = "from_registry")]
        index: Option<String>,
        /// Install it, and do not let it be called before it is activated
        #[arg(long)]
        staged: bool,
    },
    /// List what is installed
    Installed,
    /// Show an extension and who may call it
    Show {
        /// Its id
        id: String,
    },
    /// Look for extensions in the registry
    Search {
        /// Words of which each must occur
        words: Vec<String>,
        /// The index, instead of the one in the settings
        #[arg(long, value_name = "FILE|URL")]
        index: Option<String>,
    },
    /// Sign an extension's manifest in the name of its publisher
    ///
    /// What is signed is all that decides what runs: id, version, publisher, tools, capabilities, and the digest of the
    /// module. Where the module lies beside the manifest, it must be the one that is pinned.
    #[command(
        after_help = "Example:\n  toolshelf keys new\n  toolshelf pin my-notes && toolshelf ext sign my-notes"
    )]
    Sign {
        /// The manifest, or its folder
        from: PathBuf,
        /// The publisher's key; by default publisher.key in the data folder, which is made where it is missing
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
        /// The publisher's passport, to be written into the manifest
        #[arg(long)]
        passport: Option<String>,
    },
    /// Uninstall an extension, with its module and its grants
    Remove {
        /// Its id
        id: String,
    },
    /// Take an extension out of use
    Quarantine {
        /// Its id
        id: String,
        /// Why
        reason: Option<String>,
    },
    /// Take an extension back into use
    Activate {
        /// Its id
        id: String,
        /// Why
        reason: String,
    },
    /// Let a passport call an extension
    #[command(
        after_help = "Example:\n  toolshelf ext grant note-summary --passport p_ann --read notes:: --write summaries::"
    )]
    Grant(Grant),
    /// Take a grant back
    Revoke {
        /// The extension's id
        id: String,
        /// The passport
        #[arg(long)]
        passport: String,
    },
    /// Call a tool of an extension on behalf of a passport
    Invoke {
        /// The extension's id
        id: String,
        /// The tool's name
        tool: String,
        /// On whose behalf
        #[arg(long)]
        passport: String,
        /// Its arguments, as JSON
        #[arg(default_value = "{}")]
        args: String,
    },
}

/// What a passport is granted.
#[derive(Debug, ClapArgs)]
pub(crate) struct Grant {
    /// The extension's id
    pub(crate) id: String,
    /// To whom
    #[arg(long)]
    pub(crate) passport: String,
    /// A tool that may be called; without any, all may
    #[arg(long = "tool", value_name = "NAME")]
    pub(crate) tools: Vec<String>,
    /// Facts may be read whose entities begin like this
    #[arg(long, value_name = "PREFIX")]
    pub(crate) read: Vec<String>,
    /// Facts may be written whose entities begin like this
    #[arg(long, value_name = "PREFIX")]
    pub(crate) write: Vec<String>,
    /// A secret that may be read
    #[arg(long = "secret", value_name = "ID")]
    pub(crate) secrets: Vec<String>,
    /// Calls in a minute
    #[arg(long, value_name = "CALLS")]
    pub(crate) rate: Option<u32>,
    /// When it ends, in milliseconds since the beginning of 1970
    #[arg(long, value_name = "MS")]
    pub(crate) until: Option<u64>,
}

/// What to do with trusted publishers.
#[derive(Debug, Subcommand)]
pub(crate) enum Keys {
    /// List them
    List,
    /// Trust a publisher's key
    Add {
        /// The publisher's passport
        passport: String,
        /// The public key, 64 hexadecimal digits
        key: String,
        /// first_party, locally_signed, community_reviewed or unknown
        #[arg(long)]
        tier: Option<String>,
    },
    /// Trust a publisher no longer
    Remove {
        /// The publisher's passport
        passport: String,
    },
    /// Make a publisher's key of your own, to sign with
    ///
    /// The key is written to a file that only you can read; who is to trust you adds what is printed. A file that is
    /// there is left alone.
    New {
        /// The file; by default publisher.key in the data folder
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

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
    /// Put the key that they are encrypted with into the system's keyring, or into a file
    MoveKey {
        /// keyring or file
        to: String,
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
