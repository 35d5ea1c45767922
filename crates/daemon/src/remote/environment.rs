//! A remote as a host of tasks, kept connected.
//!
//! A call waits for its answer over one connection. When that is lost, what can be repeated without harm is: a
//! delegation finds its task again by its call id, and a status is asked for once more. A call whose answer never came
//! ends in a refusal that says so, and a cancellation in `cancel_unconfirmed`.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{Instant, timeout_at};
use toolshelf_core::live::MachineEnvironment;
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_core::remote::frame::{Answer, Call, Descriptor};
use toolshelf_core::remote::{CHANNEL_FRAME_MAX_BYTES, CHANNEL_VERSION};
use toolshelf_core::task::{TaskState, TaskView};
use toolshelf_host::dispatcher::PlacementHost;
use toolshelf_host::{Caller, Reply};

use super::OnEvent;
use super::environments::Known;
use super::keeping::keep;
use crate::service::{Event, OWNER};

/// How long a call waits for a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// How long a call goes on after the connection was lost under it.
const CALL_PATIENCE: Duration = Duration::from_secs(20);
/// Tasks that are looked at again after a connection was lost.
const FOLLOWED_MAX: usize = 256;
/// Frames that wait to be sent.
pub(super) const WAITING_MAX: usize = 64;

/// How a remote stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nobody has asked for it yet.
    Idle,
    /// It is being connected.
    Connecting,
    /// It can be asked.
    Connected,
    /// It cannot be reached now; it is tried again.
    Unreachable(Refusal),
    /// It refuses, and will go on refusing until a person changes something.
    Refused(Refusal),
}

/// What a remote says of itself.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    pub(crate) environment: MachineEnvironment,
    pub(super) descriptors: Vec<Descriptor>,
    pub(crate) tools: Vec<Value>,
}

/// A remote. Clones share it. The connection ends when it is stopped.
#[derive(Clone)]
pub(crate) struct RemoteEnvironment {
    pub(super) inner: Rc<Inner>,
}

pub(super) struct Inner {
    pub(super) known: Known,
    standing: watch::Sender<Standing>,
    pub(super) ready: RefCell<Option<Ready>>,
    pub(super) outgoing: RefCell<Option<mpsc::Sender<String>>>,
    pending: RefCell<BTreeMap<String, Pending>>,
    pub(super) followed: RefCell<BTreeSet<String>>,
    calls: Cell<u64>,
    /// Tries to connect that failed, and connections that were lost.
    pub(super) failed: Cell<u64>,
    /// Says that a try is wanted now.
    pub(super) wake: Notify,
    keeping: RefCell<Option<JoinHandle<()>>>,
    on_event: OnEvent,
}

/// A call that waits, and everybody who waits for its answer.
struct Pending {
    frame: String,
    waiting: Vec<oneshot::Sender<Result<Value, Refusal>>>,
}

impl RemoteEnvironment {
    pub(super) fn new(known: Known, on_event: OnEvent) -> Self {
        let inner = Inner {
            known,
            standing: watch::Sender::new(Standing::Idle),
            ready: RefCell::default(),
            outgoing: RefCell::default(),
            pending: RefCell::default(),
            followed: RefCell::default(),
            calls: Cell::default(),
            failed: Cell::default(),
            wake: Notify::new(),
            keeping: RefCell::default(),
            on_event,
        };
        Self { inner: Rc::new(inner) }
    }

    pub(crate) fn known(&self) -> &Known {
        &self.inner.known
    }

    pub(crate) fn standing(&self) -> Standing {
        self.inner.standing.borrow().clone()
    }

    /// What it said of itself when it was last connected.
    pub(crate) fn ready(&self) -> Option<Ready> {
        self.inner.ready.borrow().clone()
    }

    /// Connects, and stays connected.
    pub(crate) fn start(&self) {
        let mut keeping = self.inner.keeping.borrow_mut();
        if keeping.is_none() {
            *keeping = Some(spawn_local(keep(Rc::clone(&self.inner))));
        }
    }

    /// Tries again what was refused, or waits for its next try.
    pub(crate) fn retry(&self) {
        self.start();
        self.inner.wake.notify_one();
    }

    /// Ends the connection for good; whoever waits is told `why`.
    pub(super) fn stop(&self, why: &Refusal) {
        if let Some(keeping) = self.inner.keeping.take() {
            keeping.abort();
        }
        self.inner.outgoing.take();
        self.inner.give_up(why);
        self.inner.stand(Standing::Refused(why.clone()));
    }

    /// Calls one of the [`CHANNEL_TOOLS`](toolshelf_core::remote::CHANNEL_TOOLS); `call_id` is the caller's own name of a
    /// delegation.
    ///
    /// # Errors
    /// What the remote refuses; [`Code::MachineUnreachable`] when it was not asked, [`Code::MachineTimeout`] and
    /// [`Code::MachineClosed`] when it may have acted, and [`Code::TaskCallIdConflict`].
    pub(crate) async fn ask(
        &self,
        tool: &str,
        args: &Map<String, Value>,
        call_id: Option<&str>,
    ) -> Result<Value, Refusal> {
        let call_id = match call_id {
            Some(call_id) => call_id.to_owned(),
            None => {
                self.inner.calls.set(self.inner.calls.get() + 1);
                // No call id of a delegation has a blank in it.
                format!("{tool} {}", self.inner.calls.get())
            }
        };
        self.start();
        let began = Instant::now();
        let mut lost: Option<Refusal> = None;
        loop {
            let give_up = began + if lost.is_some() { CALL_PATIENCE } else { CONNECT_PATIENCE };
            if let Err(refusal) = self.connected(give_up, lost.is_some()).await {
                // That it may have acted matters more than that it cannot be asked again.
                return Err(lost.unwrap_or(refusal));
            }
            match self.exchange(tool, args, &call_id, began + CALL_PATIENCE).await {
                Err(refusal) if refusal.code == Code::MachineClosed => lost = Some(refusal),
                answered => return answered,
            }
        }
    }

    /// Connects where it is not connected, and answers what it says of itself.
    ///
    /// # Errors
    /// [`Code::MachineUnreachable`], and what the remote refuses.
    pub(crate) async fn connect(&self) -> Result<Ready, Refusal> {
        self.start();
        self.connected(Instant::now() + CONNECT_PATIENCE, false).await?;
        self.ready().ok_or_else(gone)
    }

    /// Waits until it can be asked. A call that has begun waits through several tries, a new one through one.
    async fn connected(&self, give_up: Instant, through_faults: bool) -> Result<(), Refusal> {
        let mut standing = self.inner.standing.subscribe();
        // What failed before this call is not its answer.
        let before = self.inner.failed.get();
        if matches!(*standing.borrow(), Standing::Unreachable(_)) {
            self.inner.wake.notify_one();
        }
        loop {
            let now = standing.borrow_and_update().clone();
            match now {
                Standing::Connected => return Ok(()),
                Standing::Refused(refusal) => return Err(refusal),
                Standing::Unreachable(refusal) if self.inner.failed.get() > before && !through_faults => {
                    return Err(refusal);
                }
                Standing::Unreachable(_) | Standing::Connecting | Standing::Idle => {}
            }
            if timeout_at(give_up, standing.changed()).await.is_err() {
                let why = format!("{} could not be connected in time", self.inner.known.label);
                return Err(Refusal::new(Code::MachineUnreachable, why));
            }
        }
    }

    async fn exchange(
        &self,
        tool: &str,
        args: &Map<String, Value>,
        call_id: &str,
        give_up: Instant,
    ) -> Result<Value, Refusal> {
        let frame = self.inner.frame(tool, args, call_id)?;
        let answer = self.inner.enter(call_id, frame)?;
        match timeout_at(give_up, answer).await {
            Ok(answered) => answered.unwrap_or_else(|_| Err(gone())),
            Err(_) => {
                self.inner.pending.borrow_mut().remove(call_id);
                let label = &self.inner.known.label;
                let why =
                    format!("{label} did not answer within {} s; it may have acted", CALL_PATIENCE.as_secs());
                Err(Refusal::new(Code::MachineTimeout, why))
            }
        }
    }
}

impl PlacementHost for RemoteEnvironment {
    fn environment(&self) -> &str {
        &self.inner.known.key
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        args: &'a Value,
        caller: &'a Caller,
    ) -> LocalBoxFuture<'a, Result<Reply, Refusal>> {
        async move {
            let empty = Map::new();
            let args = args.as_object().unwrap_or(&empty);
            let call_id = caller.call_id.as_deref().filter(|_| tool == "delegate_task");
            match (tool, self.ask(tool, args, call_id).await) {
                // The request may have arrived.
                ("cancel_task", Err(refusal))
                    if matches!(refusal.code, Code::MachineClosed | Code::MachineTimeout) =>
                {
                    Ok(Reply::Cancelled { state: TaskState::CancelUnconfirmed, observed: false })
                }
                (_, answered) => self.inner.reply(tool, answered?),
            }
        }
        .boxed_local()
    }
}

impl Inner {
    fn frame(&self, tool: &str, args: &Map<String, Value>, call_id: &str) -> Result<String, Refusal> {
        let ready = self.ready.borrow();
        let ready = ready.as_ref().ok_or_else(gone)?;
        let descriptor = ready.descriptors.iter().find(|known| known.tool == tool).ok_or_else(|| {
            let why = format!("{} does not offer {:?}", self.known.label, cut(tool, 60));
            Refusal::new(Code::UnattributedCall, why)
        })?;
        let call = Call {
            v: CHANNEL_VERSION,
            call_id: call_id.to_owned(),
            tool: tool.to_owned(),
            descriptor_id: descriptor.id.clone(),
            args: args.clone(),
            bounds_echo: ready.environment.bounds,
        };
        let text = serde_json::to_string(&call).map_err(|err| invalid(&err.to_string()))?;
        if text.len() > CHANNEL_FRAME_MAX_BYTES {
            let why = format!("the call is longer than {CHANNEL_FRAME_MAX_BYTES} bytes; send less");
            return Err(Refusal::new(Code::OverBudget, why));
        }
        Ok(text)
    }

    /// Sends a call, or waits for the answer of the same one that is on its way.
    fn enter(
        &self,
        call_id: &str,
        frame: String,
    ) -> Result<oneshot::Receiver<Result<Value, Refusal>>, Refusal> {
        let (sender, answer) = oneshot::channel();
        if let Some(pending) = self.pending.borrow_mut().get_mut(call_id) {
            if pending.frame != frame {
                let why = format!("the call id {:?} is used for another call just now", cut(call_id, 160));
                return Err(Refusal::new(Code::TaskCallIdConflict, why));
            }
            pending.waiting.push(sender);
            return Ok(answer);
        }
        let outgoing = self.outgoing.borrow();
        let sent = outgoing.as_ref().ok_or_else(gone)?.try_send(frame.clone());
        sent.map_err(|err| match err {
            mpsc::error::TrySendError::Full(_) => {
                Refusal::new(Code::OverBudget, format!("{WAITING_MAX} calls wait for {}", self.known.label))
            }
            mpsc::error::TrySendError::Closed(_) => gone(),
        })?;
        self.pending.borrow_mut().insert(call_id.to_owned(), Pending { frame, waiting: vec![sender] });
        Ok(answer)
    }

    pub(super) fn answered(&self, answer: Answer) {
        // One that was given up is not waited for any more.
        if let Some(pending) = self.pending.borrow_mut().remove(&answer.call_id) {
            for waiting in pending.waiting {
                let _ = waiting.send(answer.result.clone());
            }
        }
    }

    /// The reply in an answer. What the remote says is believed as far as it has the form of a reply of its own tasks.
    pub(super) fn reply(&self, tool: &str, observed: Value) -> Result<Reply, Refusal> {
        #[derive(Deserialize)]
        struct Delegated {
            task: TaskView,
            existing: bool,
        }
        #[derive(Deserialize)]
        struct Status {
            task: TaskView,
        }
        #[derive(Deserialize)]
        struct Cancelled {
            state: TaskState,
            observed: bool,
        }
        let fault = |err: serde_json::Error| invalid(&cut(&err.to_string(), 120));
        let reply = match tool {
            "delegate_task" => {
                let Delegated { task, existing } = serde_json::from_value(observed).map_err(fault)?;
                Reply::Delegated { task, existing }
            }
            "task_status" => {
                let Status { task } = serde_json::from_value(observed).map_err(fault)?;
                Reply::Status { task }
            }
            _ => {
                let Cancelled { state, observed } = serde_json::from_value(observed).map_err(fault)?;
                Reply::Cancelled { state, observed }
            }
        };
        if let Some(task) = reply.task() {
            self.check_own(task)?;
            self.follow(task);
        }
        Ok(reply)
    }

    fn check_own(&self, task: &TaskView) -> Result<(), Refusal> {
        match task.environment == self.known.key {
            true => Ok(()),
            false => Err(invalid(&format!("it tells of a task of {:?}", cut(&task.environment, 60)))),
        }
    }

    /// Remembers a task that goes on, so that what happens to it while nobody is connected is told afterwards.
    fn follow(&self, task: &TaskView) {
        let mut followed = self.followed.borrow_mut();
        if task.state.is_terminal() {
            followed.remove(&task.address);
        } else if followed.len() < FOLLOWED_MAX {
            followed.insert(task.address.clone());
        }
    }

    pub(super) fn heard(&self, task: Box<TaskView>) {
        if self.check_own(&task).is_ok() {
            self.follow(&task);
            (self.on_event)(Event::Task { owner: OWNER.to_owned(), view: task });
        }
    }

    /// Answers all that wait with a refusal.
    pub(super) fn give_up(&self, why: &Refusal) {
        for pending in self.pending.take().into_values() {
            for waiting in pending.waiting {
                let _ = waiting.send(Err(why.clone()));
            }
        }
    }

    pub(super) fn stand(&self, standing: Standing) {
        self.standing.send_if_modified(|now| {
            let changes = *now != standing;
            *now = standing;
            changes
        });
    }
}

pub(super) fn gone() -> Refusal {
    Refusal::new(Code::MachineClosed, "the connection to the remote has ended")
}

pub(super) fn invalid(why: &str) -> Refusal {
    Refusal::new(Code::InvalidFrame, format!("what the remote says is not understood: {why}"))
}
