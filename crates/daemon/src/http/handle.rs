//! The companion for other threads and for tasks that may move between them: work is sent to where it lives.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::task::spawn_local;
use toolshelf_core::refusal::{Code, Refusal};

use crate::service::{Event, Service, Session};

/// Work on the companion's own thread.
type Work<T> = Pin<Box<dyn Future<Output = T>>>;
type Job = Box<dyn FnOnce(Service) -> Work<()> + Send>;

/// Commands that run to their end although nobody waits for their answer any more: what was asked for must not stop half
/// way through being written down.
const TO_THE_END: [&str; 2] = ["delegate_task", "cancel_task"];

/// A handle of the companion. Clones share it.
#[derive(Clone)]
pub(crate) struct Handle {
    jobs: mpsc::UnboundedSender<Job>,
    events: Arc<broadcast::Receiver<Event>>,
}

impl Handle {
    /// A handle of `service`. Must be called in the `LocalSet` in which the service lives; work is done there.
    pub(crate) fn of(service: Service) -> Self {
        // As many jobs wait as there are connections and calls in sessions, and those are bounded.
        let (jobs, mut waiting) = mpsc::unbounded_channel::<Job>();
        let events = Arc::new(service.events());
        spawn_local(async move {
            while let Some(job) = waiting.recv().await {
                spawn_local(job(service.clone()));
            }
        });
        Self { jobs, events }
    }

    /// What happens from now on.
    pub(crate) fn events(&self) -> broadcast::Receiver<Event> {
        self.events.resubscribe()
    }

    /// Does `work` and gives what it gave. When nobody waits for that any more, it is dropped: a call's worker ends.
    ///
    /// # Errors
    /// [`Code::MachineUnreachable`] when the companion is gone, or the work ended in a panic.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(Service) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let (mut reply, answer) = oneshot::channel();
        self.send(Box::new(move |service| {
            Box::pin(async move {
                tokio::select! {
                    value = work(service) => drop(reply.send(value)),
                    () = reply.closed() => {}
                }
            })
        }));
        answer.await.map_err(|_| gone())
    }

    /// Does `work` to its end, whoever waits.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub(crate) async fn order<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(Service) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let (reply, answer) = oneshot::channel();
        self.send(Box::new(move |service| {
            Box::pin(async move {
                // Whoever asked may have gone.
                let _ = reply.send(work(service).await);
            })
        }));
        answer.await.map_err(|_| gone())
    }

    /// A command of the companion ([`Service::command`]).
    ///
    /// # Errors
    /// What the command says, and as [`ask`](Self::ask).
    pub(crate) async fn command(
        &self,
        name: String,
        args: Map<String, Value>,
        session: Session,
    ) -> Result<Value, Refusal> {
        let to_the_end = TO_THE_END.contains(&&*name);
        let work = async move |service: Service| service.command(&name, &args, &session).await;
        if to_the_end { self.order(work).await? } else { self.ask(work).await? }
    }

    /// A command for who sits at this computer ([`Service::admin`]), which runs to its end.
    ///
    /// # Errors
    /// What the command says, and as [`ask`](Self::ask).
    pub(crate) async fn admin(&self, name: &'static str, args: Map<String, Value>) -> Result<Value, Refusal> {
        self.order(async move |service: Service| service.admin(name, &args).await).await?
    }

    /// A job that cannot be sent is dropped, and with it the place for its answer, which tells whoever waits.
    fn send(&self, job: Job) {
        let _ = self.jobs.send(job);
    }
}

fn gone() -> Refusal {
    Refusal::new(Code::MachineUnreachable, "the companion ended before it answered")
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}
