//! The page as the platform of the task host.

use std::future::Future;
use std::pin::Pin;

use gloo_timers::future::TimeoutFuture;
use toolshelf_host::task_ports::{Roots, Spawner, TaskClock};
use toolshelf_host::{TaskExecutor, TaskPlatform};

use super::kept::PageJournal;
use super::life::PageLife;
use super::sealer::WebSealer;
use crate::clock::PageClock;

/// All ports of a page's task host.
#[derive(Debug)]
pub struct PagePlatform<E, R> {
    /// The key.
    pub sealer: WebSealer,
    /// The log.
    pub journal: PageJournal,
    /// Executes tasks.
    pub executor: E,
    /// The page's clock.
    pub clock: PageClock,
    /// This page life.
    pub life: PageLife,
    /// The folder of new tasks.
    pub roots: R,
}

impl<E: TaskExecutor + Clone, R: Roots + 'static> TaskPlatform for PagePlatform<E, R> {
    type Sealer = WebSealer;
    type Journal = PageJournal;
    type Executor = E;
    type Clock = PageClock;
    type Life = PageLife;
    type Roots = R;
    type Spawner = Self;

    fn sealer(&self) -> &WebSealer {
        &self.sealer
    }

    fn journal(&self) -> &PageJournal {
        &self.journal
    }

    fn executor(&self) -> Option<E> {
        Some(self.executor.clone())
    }

    fn clock(&self) -> &PageClock {
        &self.clock
    }

    fn life(&self) -> &PageLife {
        &self.life
    }

    fn roots(&self) -> &R {
        &self.roots
    }

    fn spawner(&self) -> &Self {
        self
    }
}

impl<E, R> Spawner for PagePlatform<E, R> {
    /// Begins with a microtask.
    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()>>>) {
        wasm_bindgen_futures::spawn_local(future);
    }
}

impl TaskClock for PageClock {
    fn unix_ms(&self) -> u64 {
        js_sys::Date::now() as u64
    }

    /// Takes its timer back when it is dropped.
    fn sleep(&self, ms: u32) -> impl Future<Output = ()> {
        TimeoutFuture::new(ms)
    }
}
