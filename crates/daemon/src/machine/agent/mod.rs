//! An agent: a command of `toolshelf.toml`, run for one task.
//!
//! | part | duty |
//! |---|---|
//! | this one | starts a supervisor, gives it the task, reads the answer and the notes |
//! | [`supervisor`] | the process between: runs the command, and ends all that has come of it |
//! | `processes` | which processes have come of another |
//! | `notes` | from lines of standard error to notes of progress |
//!
//! The command gets the task on its standard input, the task's root as its working directory, and the environment
//! variables that its configuration names. What it writes to standard output is the answer.
//!
//! The supervisor's standard input stays open as long as the task is to go on. When it is closed, by this process or by
//! its end, everything is ended. So no process is left, whatever becomes of this one.

mod notes;
mod processes;
pub(crate) mod supervisor;

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures::future::{Either, select, try_join};
use rustix::process::Pid;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;
use toolshelf_core::RootDescriptor;
use toolshelf_core::refusal::Code;
use toolshelf_host::task_ports::{RunFault, TaskRun};

use crate::config::Agent;

/// How long a supervisor may take to end everything, before this process does it.
const END_GRACE: Duration = Duration::from_secs(2);
/// How long the outputs of a command that has ended may stay open.
const CLOSE_GRACE: Duration = Duration::from_secs(1);

/// The program that is started as a supervisor: one whose `main` calls [`supervisor::main`].
#[derive(Debug, Clone)]
pub(crate) struct Supervisor {
    path: PathBuf,
}

impl Supervisor {
    /// This very program. On Linux its file may meanwhile have been replaced by an update.
    pub(crate) fn this() -> Self {
        let path = std::env::current_exe().unwrap_or_else(|_| "toolshelf".into());
        Self { path: if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { path } }
    }

    /// The program at `path`.
    #[cfg(test)]
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    fn start(&self, agent: &Agent, folder: &Path) -> io::Result<Child> {
        let mut command = Command::new(&self.path);
        command.arg(supervisor::AGENT_COMMAND).args(&agent.command).current_dir(folder).env_clear();
        for name in &agent.env {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        // A group of its own: what is typed at the terminal is for this program, which then ends the agent.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    }
}

/// Why a command's run came to no end of its own.
#[derive(Debug, thiserror::Error)]
enum Fault {
    /// It answered more than it may.
    #[error("the answer is longer than it may be")]
    TooMuch,
    /// It was not to go on.
    #[error("it was stopped")]
    Stopped(RunFault),
    /// It escaped in part.
    #[error("a process that escaped keeps the output open")]
    Escaped,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Runs an agent for a task, until it ends by itself or `stopped` says how it is to be ended.
///
/// # Errors
/// [`RunFault::Failed`] when the command cannot be started or ends with another code than zero,
/// [`RunFault::InvalidResult`] for an answer that is no text, [`Code::TaskOutputOverBudget`], and what `stopped` says.
pub(super) async fn run(
    agent: &Agent,
    supervisor: &Supervisor,
    run: &TaskRun,
    stopped: impl Future<Output = RunFault>,
) -> Result<String, RunFault> {
    let RootDescriptor::Machine { path, .. } = &run.root else { return Err(RunFault::Failed) };
    let note = |note: &str| run.report.note(note);
    let failed = |err: Fault| {
        note(&format!("the agent cannot be run: {err}"));
        RunFault::Failed
    };
    let child = supervisor.start(agent, Path::new(path)).map_err(|err| failed(err.into()))?;
    let mut supervised = Supervised::new(child);
    supervised.give(run.input.task.as_bytes()).await;
    let end = {
        let most = run.bounds.max_output_bytes as usize;
        let working = pin!(supervised.work(most, &note));
        match select(working, pin!(stopped)).await {
            Either::Left((end, _)) => end,
            Either::Right((fault, _)) => Err(Fault::Stopped(fault)),
        }
    };
    // Whatever came first: nothing of it is left when the task's place is given back.
    supervised.end().await;
    match end {
        Ok((status, answer)) if status.success() => {
            String::from_utf8(answer).map_err(|_| RunFault::InvalidResult)
        }
        Ok((status, _)) => {
            if !supervised.has_spoken {
                note(&format!("the command ended with {status}, and said nothing"));
            }
            Err(RunFault::Failed)
        }
        Err(Fault::TooMuch) => Err(RunFault::Refused(Code::TaskOutputOverBudget)),
        Err(Fault::Stopped(fault)) => Err(fault),
        Err(fault) => Err(failed(fault)),
    }
}

/// A supervisor that runs.
struct Supervised {
    child: Child,
    /// Closed when the task is not to go on.
    hold: Option<ChildStdin>,
    /// Whether the command has written anything to standard error.
    has_spoken: bool,
}

impl Supervised {
    fn new(mut child: Child) -> Self {
        let hold = child.stdin.take();
        Self { child, hold, has_spoken: false }
    }

    /// Hands over the task. A supervisor that does not take it has ended, which is seen later.
    async fn give(&mut self, task: &[u8]) {
        if let Some(hold) = &mut self.hold {
            let _ = hold.write_all(&supervisor::frame(task)).await;
            let _ = hold.flush().await;
        }
    }

    /// Reads what the command says until it has ended, or says too much.
    async fn work(&mut self, most: usize, note: &dyn Fn(&str)) -> Result<(ExitStatus, Vec<u8>), Fault> {
        let (Some(out), Some(err)) = (self.child.stdout.take(), self.child.stderr.take()) else {
            return Err(io::Error::other("it has no outputs").into());
        };
        let (child, has_spoken) = (&mut self.child, &mut self.has_spoken);
        let noting = async {
            *has_spoken = notes::tell(err, note).await;
            Ok(())
        };
        let mut reading = pin!(try_join(read_within(out, most), noting));
        let mut waiting = pin!(child.wait());
        match select(reading.as_mut(), waiting.as_mut()).await {
            Either::Left((read, _)) => {
                let (answer, ()) = read?;
                Ok((waiting.await?, answer))
            }
            Either::Right((status, _)) => {
                let read = timeout(CLOSE_GRACE, reading).await.map_err(|_| Fault::Escaped)?;
                Ok((status?, read?.0))
            }
        }
    }

    /// Has everything ended, and waits for it.
    async fn end(&mut self) {
        self.hold = None;
        if timeout(END_GRACE, self.child.wait()).await.is_ok() {
            return;
        }
        // It was stopped, or something it cannot end is left.
        if let Some(pid) = self.child.id().and_then(|id| Pid::from_raw(id as i32)) {
            processes::end_all_of(pid);
        }
        let _ = self.child.start_kill();
        let _ = timeout(END_GRACE, self.child.wait()).await;
    }
}

/// Reads to the end, or until there is more than `most`.
async fn read_within(from: impl AsyncRead + Unpin, most: usize) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    let read = from.take(most as u64 + 1).read_to_end(&mut bytes).await?;
    if read > most { Err(Fault::TooMuch) } else { Ok(bytes) }
}
