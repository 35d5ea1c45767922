//! Starting and ending worker processes, in a thread of its own.
//!
//! The kernel ends a worker together with the *thread* that started it, so all are started by one thread that lives as
//! long as it has workers. The same thread waits for those that end, so that none stays behind as a zombie.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;

use futures::channel::oneshot;

use super::{Kind, WORKER_COMMAND};

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
    pub(super) stream: UnixStream,
    process: Process,
}

/// A running process; dropping it ends it.
pub(super) struct Process {
    child: Option<Child>,
    orders: mpsc::Sender<Order>,
}

enum Order {
    Start(Kind, oneshot::Sender<io::Result<Worker>>),
    Reap(Child, Option<oneshot::Sender<ExitStatus>>),
    Stop,
}

/// The thread that starts and ends workers. Dropping it ends the thread once all that were handed back are reaped.
pub(super) struct Keeper {
    orders: mpsc::Sender<Order>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub(super) fn new(program: WorkerProgram) -> io::Result<Self> {
        let (orders, received) = mpsc::channel();
        let back = orders.clone();
        let thread = std::thread::Builder::new()
            .name("worker-keeper".to_owned())
            .spawn(move || keep(&program, &received, &back))?;
        Ok(Self { orders, thread: Some(thread) })
    }

    /// Orders a worker. Whoever drops the receiver does without it, and it is ended.
    pub(super) fn start(&self, kind: Kind) -> oneshot::Receiver<io::Result<Worker>> {
        let (reply, worker) = oneshot::channel();
        // Without a thread the reply is dropped, which the receiver sees.
        let _ = self.orders.send(Order::Start(kind, reply));
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

fn keep(program: &WorkerProgram, received: &mpsc::Receiver<Order>, back: &mpsc::Sender<Order>) {
    let mut stopping = false;
    while let Ok(order) =
        if stopping { received.try_recv().map_err(|_| mpsc::RecvError) } else { received.recv() }
    {
        match order {
            // Nobody is left to take it.
            Order::Start(..) if stopping => {}
            Order::Start(kind, reply) => {
                if let Err(Ok(mut unwanted)) = reply.send(start(program, kind, back)) {
                    unwanted.process.child.take().map(reap);
                }
            }
            Order::Reap(child, told) => {
                if let (Some(status), Some(told)) = (reap(child), told) {
                    let _ = told.send(status);
                }
            }
            Order::Stop => stopping = true,
        }
    }
}

fn start(program: &WorkerProgram, kind: Kind, orders: &mpsc::Sender<Order>) -> io::Result<Worker> {
    let (stream, theirs) = UnixStream::pair()?;
    let theirs = OwnedFd::from(theirs);
    let child = Command::new(&program.path)
        .args([WORKER_COMMAND, kind.word(), &std::process::id().to_string()])
        .env_clear()
        .current_dir("/")
        .stdin(theirs.try_clone()?)
        .stdout(theirs)
        .stderr(Stdio::null())
        .spawn()?;
    let process = Process { child: Some(child), orders: orders.clone() };
    stream.set_nonblocking(true)?;
    Ok(Worker { stream, process })
}

/// Ends a process if it has not ended by itself, and waits for it.
fn reap(mut child: Child) -> Option<ExitStatus> {
    // One that has ended already keeps the status with which it ended.
    let _ = child.kill();
    child.wait().ok()
}

impl Worker {
    pub(super) fn into_parts(self) -> (UnixStream, Process) {
        (self.stream, self.process)
    }
}

impl Process {
    /// Ends the process and tells how it ended.
    pub(super) async fn end(mut self) -> Option<ExitStatus> {
        let child = self.child.take()?;
        let (told, status) = oneshot::channel();
        let _ = self.orders.send(Order::Reap(child, Some(told)));
        status.await.ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        // Killed at once, and waited for when the thread comes to it.
        let _ = child.kill();
        if let Err(mpsc::SendError(Order::Reap(child, _))) = self.orders.send(Order::Reap(child, None)) {
            reap(child);
        }
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("id", &self.child.as_ref().map(Child::id)).finish_non_exhaustive()
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}
