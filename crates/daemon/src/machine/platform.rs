//! This computer as the platform of the task host.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use toolshelf_core::task::TaskView;
use toolshelf_host::TaskPlatform;
use toolshelf_host::task_ports::Spawner;
use toolshelf_sandbox::HostClock;

use super::executor::MachineExecutor;
use super::journal::FileJournal;
use super::life::ProcessLife;
use super::roots::MachineRoots;
use super::sealer::FileSealer;
use super::watch::Watched;

/// All ports of a machine's task host.
#[derive(Debug)]
pub(super) struct MachinePlatform {
    pub(super) sealer: FileSealer,
    pub(super) journal: FileJournal,
    pub(super) executor: MachineExecutor,
    pub(super) clock: HostClock,
    pub(super) life: ProcessLife,
    pub(super) roots: MachineRoots,
    pub(super) watched: Rc<Watched>,
}

impl TaskPlatform for MachinePlatform {
    type Sealer = FileSealer;
    type Journal = FileJournal;
    type Executor = MachineExecutor;
    type Clock = HostClock;
    type Life = ProcessLife;
    type Roots = MachineRoots;
    type Spawner = Self;

    fn sealer(&self) -> &FileSealer {
        &self.sealer
    }

    fn journal(&self) -> &FileJournal {
        &self.journal
    }

    fn executor(&self) -> Option<MachineExecutor> {
        self.executor.is_open().then(|| self.executor.clone())
    }

    fn clock(&self) -> &HostClock {
        &self.clock
    }

    fn life(&self) -> &ProcessLife {
        &self.life
    }

    fn roots(&self) -> &MachineRoots {
        &self.roots
    }

    fn spawner(&self) -> &Self {
        self
    }

    fn updated(&self, owner: &str, task: &TaskView) {
        self.watched.updated(owner, task);
    }
}

impl Spawner for MachinePlatform {
    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()>>>) {
        tokio::task::spawn_local(future);
    }
}
