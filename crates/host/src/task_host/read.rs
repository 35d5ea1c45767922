//! `task_status`: from an address to a view.

use std::rc::Rc;

use serde_json::Value;
use toolshelf_core::address::Sealed;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::task::{TaskEvent, TaskRecord, TaskState, TaskView, task_view};

use super::active::Active;
use super::{Inner, Reply, unreadable};
use crate::task_ports::{
    Draft, Durability, Journal as _, JournalFault, Life as _, Roots as _, Sealer as _, TaskPlatform,
};

/// A task that is there.
pub(super) enum Found {
    /// In this life of the host.
    Here(Rc<Active>),
    /// In the journal alone.
    Stored(Box<TaskRecord>),
}

/// A task about which all is known that can be.
pub(super) enum Resolved {
    /// In this life of the host.
    Here(Rc<Active>),
    /// Ended.
    Ended(Box<TaskRecord>),
    /// Another life has it that is not known to be over.
    Elsewhere(Box<TaskRecord>),
    /// It is with those who run what is admitted here.
    HandedOver(Box<TaskRecord>),
}

impl Found {
    pub(super) fn record(&self) -> TaskRecord {
        match self {
            Self::Here(task) => task.record(),
            Self::Stored(record) => (**record).clone(),
        }
    }
}

impl Resolved {
    pub(super) fn view(&self) -> TaskView {
        match self {
            Self::Here(task) => task.view(),
            Self::Ended(record) | Self::HandedOver(record) => task_view(record),
            Self::Elsewhere(record) => task_view(record).stale(),
        }
    }

    pub(super) fn into_record(self) -> TaskRecord {
        match self {
            Self::Here(task) => task.record(),
            Self::Ended(record) | Self::Elsewhere(record) | Self::HandedOver(record) => *record,
        }
    }
}

impl<P: TaskPlatform> Inner<P> {
    pub(super) async fn status(&self, args: &Value, owner: &str) -> Result<Reply, Refusal> {
        let found = self.open(args, owner).await?;
        Ok(Reply::Status { task: self.show(found).await? })
    }

    /// The task of the address in `args`, if it is the owner's. The MAC is checked before anything is read out of the
    /// address.
    pub(super) async fn open(&self, args: &Value, owner: &str) -> Result<Found, Refusal> {
        let address = address_of(args)?;
        let sealed = Sealed::split(address)?;
        if !self.platform.sealer().verify(&sealed.mac_input(owner), &sealed.mac).await {
            let why = "the address was not sealed for this caller by this host";
            return Err(Refusal::new(Code::TaskOwnerMismatch, why));
        }
        let locator = sealed.locator()?;
        if locator.environment != self.config.environment || locator.placement != self.config.placement {
            let why = "the address is of another environment";
            return Err(Refusal::new(Code::TaskEnvironmentChanged, why));
        }
        if locator.key_epoch != self.platform.sealer().epoch() {
            return Err(Refusal::new(Code::TaskOwnerMismatch, "the address was sealed with another key"));
        }
        self.platform.roots().check_unchanged(&locator)?;
        let found = self.look_up(address).await?;
        let found =
            found.ok_or_else(|| Refusal::new(Code::TaskNotFound, "the journal does not know the task"))?;
        if found.record().owner == owner {
            Ok(found)
        } else {
            Err(Refusal::new(Code::TaskOwnerMismatch, "the task is another's"))
        }
    }

    /// The task at `address`, whoever's it is.
    pub(super) async fn look_up(&self, address: &str) -> Result<Option<Found>, Refusal> {
        if let Some(task) = self.active(address) {
            return Ok(Some(Found::Here(task)));
        }
        let record = self.platform.journal().record(address).await.map_err(unreadable)?;
        Ok(record.map(|record| Found::Stored(Box::new(record))))
    }

    /// The view of a task, with what other lives have written about it. A journal that does not answer does not hide a
    /// task that is here.
    pub(super) async fn show(&self, found: Found) -> Result<TaskView, Refusal> {
        Ok(self.resolve_fresh(found).await?.view())
    }

    pub(super) async fn resolve_fresh(&self, found: Found) -> Result<Resolved, Refusal> {
        if let Found::Here(task) = &found {
            let _ = task.refresh(self.platform.journal()).await;
            self.forget_if_done(task);
        }
        self.resolve(found).await
    }

    /// Ends a task that nobody runs any more, once that is known.
    pub(super) async fn resolve(&self, found: Found) -> Result<Resolved, Refusal> {
        let record = match found {
            Found::Here(task) => return Ok(Resolved::Here(task)),
            Found::Stored(record) if record.state.is_terminal() => return Ok(Resolved::Ended(record)),
            Found::Stored(record) if self.platform.runs_elsewhere() => {
                return Ok(Resolved::HandedOver(record));
            }
            Found::Stored(record) => record,
        };
        let life = self.platform.life();
        let reason = if record.boot == life.boot() {
            Code::AdmissionUnconfirmed
        } else if life.is_over(&record.boot, record.pid).await {
            Code::EnvironmentEndedOutcomeUnknown
        } else {
            return Ok(Resolved::Elsewhere(record));
        };
        let mut event = TaskEvent::to(&*record.address, TaskState::Interrupted);
        event.reason = Some(reason.as_str().to_owned());
        match self.platform.journal().append(&Draft { at: self.now(), event }, Durability::Strict).await {
            Ok(record) => Ok(Resolved::Ended(Box::new(record))),
            // Another life has seen it as well, or it ended by itself after it was read.
            Err(JournalFault::Rejected(_)) => {
                let written = self.platform.journal().record(&record.address).await.map_err(unreadable)?;
                let record = written.map_or(record, Box::new);
                Ok(if record.state.is_terminal() {
                    Resolved::Ended(record)
                } else {
                    Resolved::Elsewhere(record)
                })
            }
            // What is not written is not claimed.
            Err(_) => Ok(Resolved::Elsewhere(record)),
        }
    }
}

/// The address in `{address}`; nothing else may be there.
fn address_of(args: &Value) -> Result<&str, Refusal> {
    let only = args.as_object().filter(|args| args.len() == 1).and_then(|args| args.get("address"));
    let address = only.and_then(Value::as_str);
    address.ok_or_else(|| Refusal::new(Code::InvalidTaskAddress, "`address` is needed, and nothing else"))
}
