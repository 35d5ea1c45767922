//! A worker as the platform of the task host.

use std::future::Future;
use std::pin::Pin;

use tokio::sync::watch;
use toolshelf_core::RootDescriptor;
use toolshelf_core::refusal::Refusal;
use toolshelf_host::task_ports::{Check, RunFault, Spawner, TaskRun, Terms};
use toolshelf_host::{Life, TaskExecutor, TaskPlatform};
use toolshelf_sandbox::HostClock;

use crate::cluster::front::ClusterRoot;
use crate::cluster::journal::NatsJournal;
use crate::machine::executor::MachineExecutor;
use crate::machine::sealer::FileSealer;

/// All ports of a worker's task host.
pub(super) struct WorkerPlatform {
    pub(super) sealer: FileSealer,
    pub(super) journal: NatsJournal,
    pub(super) executor: WorkerExecutor,
    pub(super) clock: HostClock,
    pub(super) root: ClusterRoot,
    pub(super) boot: String,
}

impl TaskPlatform for WorkerPlatform {
    type Sealer = FileSealer;
    type Journal = NatsJournal;
    type Executor = WorkerExecutor;
    type Clock = HostClock;
    type Life = Self;
    type Roots = ClusterRoot;
    type Spawner = Self;

    fn sealer(&self) -> &FileSealer {
        &self.sealer
    }

    fn journal(&self) -> &NatsJournal {
        &self.journal
    }

    fn executor(&self) -> Option<WorkerExecutor> {
        self.executor.machine.is_open().then(|| self.executor.clone())
    }

    fn clock(&self) -> &HostClock {
        &self.clock
    }

    fn life(&self) -> &Self {
        self
    }

    fn roots(&self) -> &ClusterRoot {
        &self.root
    }

    fn spawner(&self) -> &Self {
        self
    }
}

impl Life for WorkerPlatform {
    fn boot(&self) -> &str {
        &self.boot
    }

    async fn is_over(&self, _boot: &str, _pid: Option<u32>) -> bool {
        false
    }
}

impl Spawner for WorkerPlatform {
    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()>>>) {
        tokio::task::spawn_local(future);
    }
}

/// Whether this worker is heard of.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lease {
    /// Whether it is not, now.
    pub(super) is_lost: bool,
    /// How often it was not: what ran then is ended, also when it is heard of again at once.
    pub(super) losses: u64,
}

impl Lease {
    pub(super) fn lose(&mut self) {
        self.is_lost = true;
        self.losses += 1;
    }
}

/// What executes tasks here: that of a machine, over the worker's own folder and for as long as the lease is held.
#[derive(Clone)]
pub(super) struct WorkerExecutor {
    pub(super) machine: MachineExecutor,
    pub(super) root: RootDescriptor,
    pub(super) lease: watch::Sender<Lease>,
}

impl TaskExecutor for WorkerExecutor {
    fn check(&self, check: Check<'_>) -> Result<Terms, Refusal> {
        self.machine.check(check)
    }

    async fn run(&self, run: TaskRun) -> Result<String, RunFault> {
        let mut lease = self.lease.subscribe();
        let losses = lease.borrow().losses;
        let run = TaskRun { root: self.root.clone(), ..run };
        tokio::select! {
            result = self.machine.run(run) => result,
            _ = lease.wait_for(|lease| lease.losses != losses) => Err(RunFault::Interrupted),
        }
    }
}
