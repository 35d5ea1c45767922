//! Starting and ending worker processes, in a thread of its own.
//!
//! The kernel ends a worker together with the *thread* that started it, so all are started by one thread that lives as
//! long as it has workers. The same thread waits for those that end, so that none stays behind as a zombie.

use std::fmt;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use futures::channel::oneshot;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, waitpgid, waitpid,
};

use super::{Kind, WORKER_COMMAND};

/// How long the thread waits for orders while processes that were killed are not gone yet. Taking a process down takes
/// the system about as long as starting one, and no order should wait for that.
const REAP_AGAIN: Duration = Duration::from_micros(500);

/// The program that is started as a worker: one whose `main` calls [`worker_main`](super::worker_main).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerProgram {
    path: PathBuf,
}

impl WorkerProgram {
    /// This very program. On Linux its file may meanwhile have been replaced by an update.
    ///
    /// # Errors
    /// When the system does not tell where the program is.
    pub fn this() -> io::Result<Self> {
        if cfg!(target_os = "linux") {
            return Ok(Self::at("/proc/self/exe"));
        }
        Ok(Self::at(std::env::current_exe()?))
    }

    /// The program at `path`.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }
}

/// A worker process that nobody has given its job yet, or one that works.
pub(super) struct Worker {
    stream: UnixStream,
    process: Process,
}

/// A running process; dropping it ends it.
pub(super) struct Process {
    child: Option<Child>,
    orders: mpsc::Sender<Order>,
}

/// A child of this process that was not waited for yet: its id cannot be another's.
struct Child(Pid);

/// The job that a worker does before it waits for its own, as bytes to send; `None` where it is needed at once.
pub(super) type Trial = Option<Arc<[u8]>>;

enum Order {
    Start(Kind, Trial, oneshot::Sender<io::Result<Worker>>),
    Reap(Child, Option<oneshot::Sender<WaitStatus>>),
    Stop,
}

/// The thread that starts and ends workers. Dropping it ends the thread once all that were handed back are reaped.
pub(super) struct Keeper {
    orders: mpsc::Sender<Order>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// A keeper that starts `program`. One that starts many workers has a nursery for them.
    pub(super) fn new(program: WorkerProgram, many: bool) -> io::Result<Self> {
        let (orders, received) = mpsc::channel();
        let back = orders.clone();
        let thread = std::thread::Builder::new().name("worker-keeper".to_owned()).spawn(move || {
            let nursery = if many && cfg!(target_os = "linux") { Nursery::Wanted } else { Nursery::Unwanted };
            Starter { program, nursery, failed: Vec::new(), orders: back }.keep(&received);
        })?;
        Ok(Self { orders, thread: Some(thread) })
    }

    /// Orders a worker. Whoever drops the receiver does without it, and it is ended.
    pub(super) fn start(&self, kind: Kind, trial: Trial) -> oneshot::Receiver<io::Result<Worker>> {
        let (reply, worker) = oneshot::channel();
        // Without a thread the reply is dropped, which the receiver sees.
        let _ = self.orders.send(Order::Start(kind, trial, reply));
        worker
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.orders.send(Order::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the thread has.
struct Starter {
    program: WorkerProgram,
    nursery: Nursery,
    /// Nurseries that were ended because they did not answer.
    failed: Vec<Pid>,
    orders: mpsc::Sender<Order>,
}

enum Nursery {
    /// Workers are started in full.
    Unwanted,
    /// It is started when the next worker is.
    Wanted,
    Running(UnixStream, Child),
}

impl Starter {
    fn keep(mut self, received: &mpsc::Receiver<Order>) {
        // Killed already; they are waited for when there is nothing else to do, so that nobody waits for that.
        let mut dying = Vec::new();
        let mut stopping = false;
        loop {
            let order = match received.try_recv() {
                Ok(order) => order,
                Err(_) => {
                    dying.retain(|child| !has_ended(child));
                    let next = match (dying.is_empty(), stopping) {
                        (true, true) => break,
                        (true, false) => received.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected),
                        (false, _) => received.recv_timeout(REAP_AGAIN),
                    };
                    match next {
                        Ok(order) => order,
                        Err(mpsc::RecvTimeoutError::Timeout) => continue,
                        Err(mpsc::RecvTimeoutError::Disconnected) => {
                            dying.into_iter().for_each(|child| _ = reap(child));
                            break;
                        }
                    }
                }
            };
            match order {
                // Nobody is left to take it.
                Order::Start(..) if stopping => {}
                Order::Start(kind, trial, reply) => {
                    let started = self.start(kind).map(|worker| worker.on_trial(trial));
                    if let Err(Ok(mut unwanted)) = reply.send(started) {
                        unwanted.process.child.take().map(reap);
                    }
                }
                Order::Reap(child, None) => dying.push(child),
                Order::Reap(child, Some(told)) => {
                    if let Some(status) = reap(child) {
                        let _ = told.send(status);
                    }
                }
                Order::Stop => stopping = true,
            }
        }
        self.end_nursery(Nursery::Unwanted);
        self.end_untold_copies();
    }

    fn start(&mut self, kind: Kind) -> io::Result<Worker> {
        let copied = if kind == Kind::Run { self.copy() } else { None };
        let (stream, child) = match copied {
            Some(copied) => copied,
            None => {
                let (stream, theirs) = UnixStream::pair()?;
                (stream, spawn(&self.program, kind, theirs.into())?)
            }
        };
        let process = Process { child: Some(child), orders: self.orders.clone() };
        stream.set_nonblocking(true)?;
        Ok(Worker { stream, process })
    }

    /// A worker that is a copy of the nursery; nothing where there is no nursery, or it fails. Then the next worker
    /// gets a new one.
    #[cfg(target_os = "linux")]
    fn copy(&mut self) -> Option<(UnixStream, Child)> {
        if matches!(self.nursery, Nursery::Wanted) {
            let (ours, theirs) = UnixStream::pair().ok()?;
            let child = spawn(&self.program, Kind::Nursery, theirs.into()).ok()?;
            self.nursery = Nursery::Running(ours, child);
        }
        let Nursery::Running(nursery, _) = &self.nursery else { return None };
        let (stream, theirs) = UnixStream::pair().ok()?;
        match super::nursery::ask(nursery, &theirs.into()) {
            Ok(pid) => Some((stream, Child(pid))),
            // Whatever it may still do with the socket: nobody is at the other end.
            Err(_) => {
                self.end_nursery(Nursery::Wanted);
                None
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn copy(&mut self) -> Option<(UnixStream, Child)> {
        None
    }

    fn end_nursery(&mut self, then: Nursery) {
        let failed = matches!(then, Nursery::Wanted);
        if let Nursery::Running(_, child) = std::mem::replace(&mut self.nursery, then) {
            self.failed.extend(failed.then_some(child.0));
            reap(child);
        }
    }

    /// A nursery that failed may have made a copy without telling its id. It is in the nursery's process group.
    fn end_untold_copies(&self) {
        for group in &self.failed {
            let _ = kill_process_group(*group, Signal::KILL);
            while waitpgid(*group, WaitOptions::empty()).is_ok() {}
        }
    }
}

/// Starts the program in full. Its standard input and output are `socket`.
fn spawn(program: &WorkerProgram, kind: Kind, socket: OwnedFd) -> io::Result<Child> {
    let child = Command::new(&program.path)
        .args([WORKER_COMMAND, kind.word(), &std::process::id().to_string()])
        .env_clear()
        .current_dir("/")
        .stdin(socket.try_clone()?)
        .stdout(socket)
        .stderr(Stdio::null())
        .spawn()?;
    Ok(Child(Pid::from_child(&child)))
}

/// Ends a process if it has not ended by itself, and waits for it.
fn reap(child: Child) -> Option<WaitStatus> {
    // One that has ended already keeps the status with which it ended.
    kill(&child);
    loop {
        match waitpid(Some(child.0), WaitOptions::empty()) {
            Err(Errno::INTR) => {}
            waited => return waited.ok().flatten().map(|(_, status)| status),
        }
    }
}

/// Whether a process that was killed is gone, without waiting for it.
fn has_ended(child: &Child) -> bool {
    !matches!(waitpid(Some(child.0), WaitOptions::NOHANG), Ok(None) | Err(Errno::INTR))
}

fn kill(child: &Child) {
    let _ = kill_process(child.0, Signal::KILL);
}

impl Worker {
    fn on_trial(self, trial: Trial) -> Self {
        if let Some(trial) = trial {
            // It fits into what the socket holds. Were it sent in part, the worker would take the job for the rest of
            // it and fail by name; one that has ended is found when it is given its job.
            let _ = (&self.stream).write_all(&trial);
        }
        self
    }

    pub(super) fn into_parts(self) -> (UnixStream, Process) {
        (self.stream, self.process)
    }
}

impl Process {
    /// Ends the process and tells how it ended.
    pub(super) async fn end(mut self) -> Option<WaitStatus> {
        let child = self.child.take()?;
        let (told, status) = oneshot::channel();
        let _ = self.orders.send(Order::Reap(child, Some(told)));
        status.await.ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(child) = self.child.take() else { return };
        // Killed at once, and waited for when the thread comes to it.
        kill(&child);
        if let Err(mpsc::SendError(Order::Reap(child, _))) = self.orders.send(Order::Reap(child, None)) {
            reap(child);
        }
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("id", &self.child.as_ref().map(|child| child.0))
            .finish_non_exhaustive()
    }
}
