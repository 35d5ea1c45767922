//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use super::args_extensions::{Ext, Keys, Receipts, Secret};
pub(crate) use super::args_mcp::{Definitions, Mcp};
use super::paired_args::{ENVIRONMENTS_HELP, EnvironmentsCommand, PairArgs, PairingsCommand, Secured, There};
use super::serve::read_address;
use super::task::Deadline;
use super::worker::WorkerArgs;
use crate::log::LogFormat;

const MORE_HELP: &str = "\
Examples:
  toolshelf call hash --input abc
  toolshelf call hash < picture.png
  toolshelf call diff --a old.txt --b new.txt
  toolshelf --json list | jq '.shelves[].tools[].id'
  toolshelf build tool.wat && toolshelf pin . && toolshelf --shelf . list
  toolshelf serve --open

Exit codes:
  0  done
  1  refused: the host said no, and why is told
  2  the command line is not understood
  3  the module ran and failed, or used up what the host grants
  4  a file or folder is not there, or cannot be read or written

Settings (environment variables; an empty one counts as unset):
  TOOLSHELF_SHELF_DIR   the folder of the shelf (also read: VOICEBOX_WASM_SHELF_DIR)
  TOOLSHELF_CACHE_DIR   the folder of compiled code; it may be deleted at any time
  TOOLSHELF_DATA_DIR    the folder of this host's keys, and of the shelf where no other is set
  TOOLSHELF_LISTEN      the address of `toolshelf serve`
  TOOLSHELF_TOKEN       the token of `toolshelf serve`, instead of the one in the data folder
  TOOLSHELF_LOG         what `toolshelf serve` logs: error, warn, info, debug, or a filter such as toolshelf=debug
  TOOLSHELF_CONFIG      the file toolshelf.toml: folders and agents of tasks, and the live model
  NO_COLOR              no colours

Settings of extensions:
  TOOLSHELF_WASM_FUEL_DEFAULT
      fuel of one call of an extension
      (also read: CORECRUXD_WASM_FUEL_DEFAULT)
  TOOLSHELF_WASM_MEMORY_BYTES_DEFAULT
      memory of one call of an extension, in bytes
      (also read: CORECRUXD_WASM_MEMORY_BYTES_DEFAULT)
  TOOLSHELF_WASM_WALL_MS_DEFAULT
      time of one call of an extension, in milliseconds
      (also read: CORECRUXD_WASM_WALL_MS_DEFAULT)
  TOOLSHELF_WASM_EPOCH_TICK_MS
      how exactly that time is kept, in milliseconds; read at the start
      (also read: CORECRUXD_WASM_EPOCH_TICK_MS)
  TOOLSHELF_EXTENSIONS_ALLOW_UNSIGNED
      true: take extensions without a signature; for development
      (also read: CORECRUXD_EXTENSIONS_ALLOW_UNSIGNED)
  TOOLSHELF_EXTENSIONS_ALLOW_PLAIN_HTTP
      true: call external tools over plain http
      (also read: CORECRUXD_EXTENSIONS_ALLOW_PLAIN_HTTP)
  TOOLSHELF_EXTENSIONS_TIMEOUT_SECONDS
      time of one call of an external tool, in seconds
      (also read: CORECRUXD_EXTENSIONS_TIMEOUT_SECONDS)
  TOOLSHELF_EXTENSIONS_MAX_REQUEST_BYTES
      longest request to an external tool
      (also read: CORECRUXD_EXTENSIONS_MAX_REQUEST_BYTES)
  TOOLSHELF_EXTENSIONS_MAX_RESPONSE_BYTES
      longest response of an external tool
      (also read: CORECRUXD_EXTENSIONS_MAX_RESPONSE_BYTES)
  TOOLSHELF_EXTENSIONS_DEFAULT_RATE_PER_MIN
      calls of an external tool in a minute, where no grant says
      (also read: CORECRUXD_EXTENSIONS_DEFAULT_RATE_PER_MIN)
  TOOLSHELF_ALWAYS_PRIVATE_PREFIXES
      beginnings of entities whose facts are private, with commas
      (also read: CORECRUXD_ALWAYS_PRIVATE_PREFIXES)
  TOOLSHELF_SHARE_PREFIXES_OVERRIDE
      beginnings of entities that are not private after all, with commas
      (also read: CORECRUXD_SHARE_PREFIXES_OVERRIDE)
  TOOLSHELF_EXTENSIONS_ALLOW_PRIVATE_ADDRESSES
      true: download from and call servers of private networks
  TOOLSHELF_EXTENSIONS_CA_FILE
      a PEM file of the only authorities whose servers are trusted, instead of the public ones
  TOOLSHELF_VAULT_KEY
      where the key of the secrets is put: keyring, file, or auto (the system's keyring where one answers)
  TOOLSHELF_EXTENSIONS_REGISTRY
      the index of `toolshelf ext search`: an https address or a file

Settings of agents:
  TOOLSHELF_MCP_PASSPORT    the passport that agents call extensions with; `mcp` where it is not set
  TOOLSHELF_MCP_NEW_TOOLS   ask: agents are offered a new tool of the shelf only when it is approved

With nothing set up there are three built-in tools: hash, diff and diff-loose.";

/// WebAssembly tools that are admitted by digest and run in a process of their own.
///
/// A tool is a WebAssembly module that imports nothing. Its SHA-256 digest is checked on every call, and every call
/// runs in a fresh process that has no files, no network and no environment, for at most 5 seconds.
#[derive(Debug, Parser)]
#[command(name = "toolshelf", version, after_help = MORE_HELP, arg_required_else_help = true)]
pub(crate) struct Args {
    /// Print one JSON value instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// The folder of the shelf, instead of the one in the settings
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) shelf: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What is to be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the shelf's tools, with a verdict for each
    ///
    /// Every module is read and hashed. A tool that is refused is listed with the reason, and makes the exit code 1.
    List,
    /// Call a tool
    ///
    /// A `buffer-abi/1` tool, such as hash, takes one input: a text, a file, or what is piped in. A `buffer-abi/diff`
    /// tool takes two files.
    #[command(
        after_help = "Examples:\n  toolshelf call hash --input abc\n  toolshelf call hash --file README.md\n  \
        git show HEAD:a.txt | toolshelf call diff --a - --b a.txt"
    )]
    Call(Call),
    /// Say what a module declares, and whether a shelf would take it
    Inspect {
        /// The module
        file: PathBuf,
    },
    /// Write the digests of a shelf's modules into its manifest
    ///
    /// Without a manifest.json, one is made of the .wasm files in the folder. Nothing is written if any of the modules
    /// would be refused. In the folder of an extension, the digest of its module is written.
    #[command(after_help = "Example:\n  toolshelf pin my-shelf")]
    Pin {
        /// The folder of the shelf
        dir: PathBuf,
    },
    /// Build a module from WebAssembly text
    #[command(after_help = "Example:\n  toolshelf build tool.wat -o my-shelf/tool.wasm")]
    Build {
        /// The text
        file: PathBuf,
        /// The module to write; by default beside the text
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Serve the page, the interface for programs and live sessions on this computer
    ///
    /// Prints a link that holds the token; whoever has it can use the shelf. Programs send the token of the data folder.
    /// Only this computer is served unless --listen says otherwise, and one companion at a time serves a data folder.
    /// Ctrl-C ends it. With --json the first line is {"ok": true, "url", "tokenFile", "pid"}.
    #[command(
        after_help = "Examples:\n  toolshelf serve --open\n  toolshelf --json serve --listen 127.0.0.1:0\n  \
        toolshelf serve --listen 0.0.0.0:14800 --host studio.local\n  \
        curl -H \"authorization: Bearer $(cat ~/.local/share/toolshelf/token)\" http://127.0.0.1:14800/v1/shelf"
    )]
    Serve(Serve),
    /// Run tasks for a cluster
    ///
    /// Takes tasks out of the cluster's queue and adds capacity, nothing else: modules come from the cluster, agents from
    /// this computer's toolshelf.toml. Ctrl-C ends it when what runs has ended. With --json the first line is {"ok":
    /// true, "worker", "name", "slots", "pid"}.
    #[command(after_help = "Example:\n  toolshelf worker --cluster nats://10.0.0.5:4222")]
    Worker(WorkerArgs),
    /// List the workers of the cluster that the running companion admits tasks to
    Workers,
    /// Extensions: what can be called; write, install, grant and call your own
    ///
    /// Asks the companion that runs (`toolshelf serve`), or this process where none does.
    #[command(subcommand)]
    Ext(Ext),
    /// The publishers whose extensions are trusted
    #[command(subcommand)]
    Keys(Keys),
    /// The secrets that extensions may be granted, encrypted at rest
    #[command(subcommand)]
    Secret(Secret),
    /// What extensions have put on record
    #[command(subcommand)]
    Receipts(Receipts),
    /// Hand over work, watch it, cancel it
    ///
    /// A task is given to a tool of the shelf, or to an agent of toolshelf.toml, and works in a folder. Every change of
    /// it is written to that folder's journal, `.audit`, before anything else happens. It is run by the companion that
    /// serves the folder (`toolshelf serve`), or in the foreground by this command.
    #[command(after_help = "Examples:\n  toolshelf task delegate hash abc\n  \
        toolshelf task delegate diff --file a=old.txt --file b=new.txt --out changes.patch\n  \
        toolshelf task list\n  toolshelf task cancel 3f2a91c0")]
    Task {
        /// The folder that tasks work in; by default this one, or that of the task
        #[arg(long, global = true, value_name = "DIR")]
        root: Option<PathBuf>,
        #[command(subcommand)]
        command: Task,
    },
    /// Serve the shelf to agents, over the Model Context Protocol
    ///
    /// On standard input and output, for a client that starts this program. Where a companion runs (`toolshelf serve`),
    /// it is asked; it serves the same over HTTP, at /mcp.
    #[command(args_conflicts_with_subcommands = true)]
    #[command(
        after_help = "Examples:\n  toolshelf mcp install claude\n  toolshelf mcp install vscode --print\n  \
        toolshelf mcp token add desk --tools hash,diff"
    )]
    Mcp {
        /// A folder that tasks may work in; the first is the one for tasks that name none
        #[arg(long = "root", value_name = "DIR")]
        roots: Vec<PathBuf>,
        #[command(subcommand)]
        command: Option<Mcp>,
    },
    /// What agents are shown of tools: list it, compare it with what was admitted, approve it
    #[command(subcommand)]
    Definitions(Definitions),
    /// Make a one-time code, with which another computer or a page gets a token for this one
    #[command(after_help = "Example:\n  toolshelf pair --name laptop --expires 8h")]
    Pair(PairArgs),
    /// Those who were paired with this computer
    #[command(subcommand)]
    Pairings(PairingsCommand),
    /// Other computers that this one was paired with
    #[command(subcommand, after_help = ENVIRONMENTS_HELP)]
    Environments(EnvironmentsCommand),
    /// Answer frames on the standard input, for a parent process
    ///
    /// One JSON object a line: {"id": 1, "command": "delegate_task", "args": {...}}. Answers are lines with the same id.
    /// Ends when its input does; what still runs then is ended.
    Stdio {
        /// A folder that tasks may work in; the first is the one for tasks that name none. By default this one
        #[arg(long = "root", value_name = "DIR", default_value = ".")]
        roots: Vec<PathBuf>,
    },
    /// Check this computer: how calls are shut in here, the cache, the settings
    Doctor,
    /// Print a script that completes commands in a shell
    #[command(
        after_help = "Example:\n  toolshelf completions bash > ~/.local/share/bash-completion/completions/toolshelf"
    )]
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// How the companion is served.
#[derive(Debug, ClapArgs)]
pub(crate) struct Serve {
    /// The address; port 0 takes a free one [default: 127.0.0.1:14800]
    #[arg(long, value_name = "ADDRESS", value_parser = read_address)]
    pub(crate) listen: Option<SocketAddr>,
    /// The folder of the token and of what is kept, instead of the one in the settings
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// A folder that tasks may work in; the first is the one for tasks that name none. By default those of
    /// toolshelf.toml, or else a folder `work` beside the token
    #[arg(long = "root", value_name = "DIR")]
    pub(crate) roots: Vec<PathBuf>,
    /// The cluster that tasks can be given to, and that has the facts: servers of NATS with commas. More is said in the
    /// table `[cluster]` of toolshelf.toml
    #[arg(long, value_name = "SERVERS")]
    pub(crate) cluster: Option<String>,
    /// Open the page in a browser
    #[arg(long)]
    pub(crate) open: bool,
    #[command(flatten)]
    pub(crate) secured: Secured,
    /// The form of the log on the standard error
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) log_format: LogFormat,
}

/// A call of a tool. A file named `-` is the standard input.
#[derive(Debug, ClapArgs)]
pub(crate) struct Call {
    /// The tool's id
    pub(crate) tool: String,
    /// The input, as text
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["file", "a", "b"])]
    pub(crate) input: Option<String>,
    /// The file that holds the input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["a", "b"])]
    pub(crate) file: Option<PathBuf>,
    /// The file that holds the old text
    #[arg(long, value_name = "FILE", requires = "b")]
    pub(crate) a: Option<PathBuf>,
    /// The file that holds the new text
    #[arg(long, value_name = "FILE", requires = "a")]
    pub(crate) b: Option<PathBuf>,
}

/// What to do with tasks. A task is named by its address, or by the short name that `list` shows.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Hand over work, and wait for its end
    Delegate(Delegate),
    /// List the folder's tasks, the newest first
    List {
        /// Which: all, active, completed, unsuccessful
        #[arg(long, default_value = "all")]
        filter: String,
        /// How many
        #[arg(long, default_value_t = 20)]
        limit: usize,
    },
    /// Say where a task stands
    Status {
        /// The task
        task: String,
    },
    /// Ask a task to stop
    Cancel {
        /// The task
        task: String,
    },
    /// Wait for a task's end
    Watch {
        /// The task
        task: String,
    },
}

/// A task to be handed over.
#[derive(Debug, ClapArgs)]
pub(crate) struct Delegate {
    /// The tool's id, or the agent's name
    pub(crate) agent: String,
    /// What is to be done; `-`, or nothing, for what is piped in
    #[arg(conflicts_with_all = ["args", "files", "out"])]
    pub(crate) text: Option<String>,
    /// An argument of a tool, as text
    #[arg(long = "arg", value_name = "NAME=TEXT")]
    pub(crate) args: Vec<String>,
    /// An argument of a tool, as a file of the folder
    #[arg(long = "file", value_name = "NAME=PATH")]
    pub(crate) files: Vec<String>,
    /// The file of the folder that gets the answer
    #[arg(long, value_name = "PATH")]
    pub(crate) out: Option<String>,
    /// How long it may take, such as 90s or 5m
    #[arg(long, value_name = "TIME")]
    pub(crate) deadline: Option<Deadline>,
    #[command(flatten)]
    pub(crate) there: There,
    /// A name for this call: the same name again answers the same task
    #[arg(long, value_name = "ID")]
    pub(crate) call_id: Option<String>,
    /// Do not wait for its end: print its address
    #[arg(long)]
    pub(crate) detach: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::settings;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn the_help_lists_every_setting() {
        for setting in settings::ALL {
            for name in setting.aliases.iter().chain([&setting.name]) {
                assert!(MORE_HELP.contains(name), "{name}");
            }
            assert!(MORE_HELP.contains(setting.about), "{}", setting.about);
        }
    }
}
