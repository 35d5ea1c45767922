//! One task, from its first entry to its end.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::rc::Rc;

use futures::FutureExt as _;
use futures::future::{Either, join, select};
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::task::{TaskRecord, TaskState};

use super::Inner;
use super::active::Active;
use super::capacity::Slot;
use super::report::Reporter;
use crate::ports::Clock as _;
use crate::task_ports::{Durability, RunFault, TaskExecutor as _, TaskPlatform, TaskRun};

/// How long an end that the journal did not take waits for the next attempt: at first, and at most.
const FIRST_RETRY_MS: u32 = 1_000;
const LAST_RETRY_MS: u32 = 60_000;

impl<P: TaskPlatform> Inner<P> {
    /// Runs an admitted task. The place is held until its executor has settled, whatever the state of the task.
    pub(super) async fn run(self: Rc<Self>, task: Rc<Active>, executor: P::Executor, slot: Slot) {
        if self.begin(&task).await {
            self.execute(&task, executor).await;
        }
        task.settle();
        drop(slot);
        let mut wait_ms = FIRST_RETRY_MS;
        while task.save(self.platform.journal(), Durability::Quiet).await.is_err() {
            self.sleep(wait_ms).await;
            wait_ms = (2 * wait_ms).min(LAST_RETRY_MS);
        }
        self.forget_if_done(&task);
    }

    /// Runs a task of another life.
    pub(super) async fn adopt(self: Rc<Self>, record: TaskRecord) -> Result<(), Refusal> {
        let address = record.address.clone();
        if record.state.is_terminal() || self.active(&address).is_some() {
            return Err(Refusal::new(Code::TaskNotRunning, "the task has ended, or runs here already"));
        }
        let full = || Refusal::new(Code::TaskCapacityExhausted, "as many tasks run here as may");
        let slot = self.capacity.take().ok_or_else(full)?;
        let nothing = || Refusal::new(Code::ExecutorUnavailable, "nothing is there that could execute tasks");
        let executor = self.platform.executor().ok_or_else(nothing)?;
        let report = Reporter::new(Rc::clone(&self.config.redact), record.bounds.max_output_bytes);
        let task = Rc::new(Active::new(record, report));
        self.tasks.borrow_mut().insert(address, Rc::clone(&task));
        self.run(task, executor, slot).await;
        Ok(())
    }

    /// Writes down that it runs. Only what is written down begins.
    async fn begin(&self, task: &Active) -> bool {
        // A task that is taken over is written down as running already.
        if task.state() == TaskState::Running {
            return true;
        }
        if !self.change(task, TaskState::Running, None, None) {
            return false;
        }
        if task.save(self.platform.journal(), Durability::Strict).await.is_err() {
            self.change(task, TaskState::Failed, Some(Code::TaskPersistenceFailed), None);
            return false;
        }
        // It may have been cancelled in the meantime, here or by another life of the host.
        if task.signal.is_aborted() {
            self.change(task, TaskState::Cancelled, None, None);
            return false;
        }
        true
    }

    /// Runs the executor until it settles. Past the deadline the task is interrupted at once, and the executor waited
    /// for.
    async fn execute(&self, task: &Active, executor: P::Executor) {
        let record = task.record();
        let clock = self.platform.clock();
        let deadline = clock.now_ms() + f64::from(record.bounds.deadline_ms);
        let max_output_bytes = record.bounds.max_output_bytes as usize;
        let run = executor.run(TaskRun {
            input: record.input,
            bounds: record.bounds,
            root: record.root,
            signal: task.signal.clone(),
            report: task.report.clone(),
        });
        // Where panics unwind, one must not keep the place for ever.
        let mut run = pin!(AssertUnwindSafe(run).catch_unwind());
        let result = loop {
            let left = deadline - clock.now_ms();
            if left <= 0.0 {
                self.change(task, TaskState::Interrupted, Some(Code::TaskDeadline), None);
                let save = task.save(self.platform.journal(), Durability::Quiet);
                break join(run, save).await.0;
            }
            // A timer may fire early, late or not at all; the clock decides.
            match select(run.as_mut(), pin!(self.sleep(left.ceil() as u32))).await {
                Either::Left((result, _)) => break result,
                Either::Right(_) => {}
            }
        };
        if clock.now_ms() >= deadline {
            self.change(task, TaskState::Interrupted, Some(Code::TaskDeadline), None);
            return;
        }
        self.end(task, result.unwrap_or(Err(RunFault::Failed)), max_output_bytes);
    }

    /// How the executor settled becomes the task's end, unless it has ended already.
    fn end(&self, task: &Active, result: Result<String, RunFault>, max_output_bytes: usize) {
        let (state, reason, answer) = match result {
            Ok(answer) if answer.len() > max_output_bytes => {
                (TaskState::Failed, Some(Code::TaskOutputOverBudget), None)
            }
            Ok(answer) => (TaskState::Completed, None, Some((self.config.redact)(&answer))),
            Err(RunFault::Cancelled) if task.state().may_become(TaskState::Cancelled) => {
                (TaskState::Cancelled, None, None)
            }
            Err(RunFault::Cancelled) => (TaskState::Failed, Some(Code::TaskCancelled), None),
            Err(RunFault::Interrupted) => {
                (TaskState::Interrupted, Some(Code::EnvironmentEndedOutcomeUnknown), None)
            }
            Err(RunFault::InvalidResult) => (TaskState::Failed, Some(Code::TaskInvalidResult), None),
            Err(RunFault::Refused(code)) => (TaskState::Failed, Some(code), None),
            Err(RunFault::Failed) => (TaskState::Failed, Some(Code::ExecutorFailed), None),
        };
        self.change(task, state, reason, answer);
    }
}
