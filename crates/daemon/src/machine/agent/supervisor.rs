//! The process between the companion and an agent's command: this program, started as `toolshelf __agent COMMAND...`.
//!
//! On Linux it makes itself the one that processes fall to whose parents are gone, wherever they have fled: into another
//! session, behind two forks. So all that has come of the command are its children sooner or later, and it ends its
//! children until it has none. Elsewhere it ends the command's process group.
//!
//! Its standard input brings the task, and is then open as long as the command may run. Standard output and error are
//! the command's own. It ends with the command's code, 128 and the signal's number, or 127 when it cannot be started.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, wait};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use toolshelf_core::task::input::TASK_MAX_BYTES;

/// First argument of a program that is started as a supervisor.
pub(crate) const AGENT_COMMAND: &str = "__agent";

/// The command cannot be started, as shells say it.
const NOT_STARTED: u8 = 127;
/// How long is waited between two looks at children that do not end at once, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_micros(200);
const LAST_PAUSE: Duration = Duration::from_millis(20);

/// The task in the form in which a supervisor reads it: the number of its bytes, then they.
pub(super) fn frame(task: &[u8]) -> Vec<u8> {
    [&(task.len() as u32).to_le_bytes(), task].concat()
}

/// Runs the command that the arguments are, and ends all that has come of it when it ends, when standard input is
/// closed, or when this process is asked to end.
pub(crate) fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<_> = arguments.collect();
    match supervise(&arguments) {
        Ok(code) => code.into(),
        Err(err) => {
            let program = arguments.first().cloned().unwrap_or_default();
            // Read as a note of progress.
            let _ = writeln!(io::stderr(), "{} cannot be run: {err}", program.to_string_lossy());
            NOT_STARTED.into()
        }
    }
}

fn supervise(arguments: &[OsString]) -> io::Result<u8> {
    let Some((program, arguments)) = arguments.split_first() else {
        return Err(io::Error::other("there is no command"));
    };
    let task = read_task()?;
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut ended = signal(SignalKind::child())?;
        let mut asked = [
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
            signal(SignalKind::hangup())?,
        ];
        // A group of its own, so that a command that signals its group does not mean this process.
        let mut command = Command::new(program);
        let mut child = command.args(arguments).process_group(0).stdin(Stdio::piped()).spawn()?;
        let pid = Pid::from_child(&child);
        if let Some(mut stdin) = child.stdin.take() {
            // A command that does not read its input must not keep this process from watching.
            std::thread::spawn(move || stdin.write_all(&task));
        }
        let mut closed = watch_input();
        let [terminate, interrupt, hangup] = &mut asked;
        let code = loop {
            tokio::select! {
                _ = ended.recv() => if let Some(status) = reap(pid).status {
                    break code_of(status);
                },
                _ = &mut closed => break NOT_STARTED,
                _ = terminate.recv() => break NOT_STARTED,
                _ = interrupt.recv() => break NOT_STARTED,
                _ = hangup.recv() => break NOT_STARTED,
            }
        };
        end_all(pid);
        Ok(code)
    })
}

fn read_task() -> io::Result<Vec<u8>> {
    let mut stdin = io::stdin().lock();
    let mut length = [0; 4];
    stdin.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > TASK_MAX_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut task = vec![0; length];
    stdin.read_exact(&mut task)?;
    Ok(task)
}

/// Ends when standard input is closed.
fn watch_input() -> oneshot::Receiver<()> {
    let (sender, closed) = oneshot::channel();
    std::thread::spawn(move || {
        // Nothing more is said there; whatever came would mean the end as well.
        let _ = io::stdin().lock().read(&mut [0]);
        drop(sender);
    });
    closed
}

/// What became of the children.
struct Reaped {
    /// How the command ended, if it did just now.
    status: Option<WaitStatus>,
    /// Whether there is no child any more.
    none_left: bool,
}

/// Takes note of all children that have ended.
fn reap(command: Pid) -> Reaped {
    let mut reaped = Reaped { status: None, none_left: false };
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == command => reaped.status = Some(status),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return reaped,
            Err(_) => {
                reaped.none_left = true;
                return reaped;
            }
        }
    }
}

/// Ends all children until there is none.
fn end_all(command: Pid) {
    let mut pause = FIRST_PAUSE;
    loop {
        // Nobody else takes note of children that have ended, so their numbers are not given to others meanwhile.
        end_children(command);
        if reap(command).none_left {
            return;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LAST_PAUSE);
    }
}

#[cfg(target_os = "linux")]
fn end_children(_command: Pid) {
    for pid in super::processes::children_of(rustix::process::getpid()) {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
}

#[cfg(not(target_os = "linux"))]
fn end_children(command: Pid) {
    let _ = rustix::process::kill_process_group(command, Signal::KILL);
}

fn code_of(status: WaitStatus) -> u8 {
    let code = status.exit_status().or_else(|| Some(128 + status.terminating_signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(NOT_STARTED)
}
