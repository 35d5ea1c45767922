//! `delegate_task`.
//!
//! The order of the checks (reference facts, B5): input, call id, the same call in flight, a stored call, root, place,
//! executor, its promise, the placement's bounds, its mechanism. Then the address is sealed and the first entry
//! written; only when the journal has it does anything run. (A stored call is found by that write, or looked up when
//! something stands against a new task: it comes before all that follows it all the same.)

use std::rc::Rc;

use serde_json::Value;
use toolshelf_core::address::{Locator, address, mac_input};
use toolshelf_core::digest::to_hex;
use toolshelf_core::placement::Placement;
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_core::root::RootDescriptor;
use toolshelf_core::task::{
    TaskBounds, TaskEvent, TaskInput, TaskRecord, TaskState, check_call_id, task_input,
};

use super::active::Active;
use super::capacity::Slot;
use super::reply::Wish;
use super::report::Reporter;
use super::{Inner, Reply, unreadable};
use crate::task_ports::{
    CallKey, Check, Draft, Journal as _, JournalFault, Life as _, Roots as _, Sealer as _, SelectedRoot,
    Spawner as _, TaskExecutor as _, TaskPlatform,
};

/// Most tasks that may wait for a journal that does not take their ends.
const MAX_LINGERING: usize = 64;
/// Longest mechanism that is recorded, in characters.
const MECHANISM_MAX_CHARS: usize = 200;

/// All that is decided before the first await: what runs, where, within which bounds, and in which place.
struct Reserved<E> {
    slot: Slot,
    executor: E,
    root: SelectedRoot,
    bounds: TaskBounds,
    mechanism: String,
}

/// An address that no task has yet.
pub(super) struct SealedAhead {
    root: SelectedRoot,
    owner: String,
    address: String,
}

/// What became of an admission.
enum Admitted {
    /// A new task.
    New(Box<Reply>),
    /// The call has a task already, at this address.
    Taken(String),
}

/// Takes the task out of the host's memory again unless it was admitted.
struct Admitting<'a, P: TaskPlatform> {
    inner: &'a Inner<P>,
    address: &'a str,
    admitted: bool,
}

impl<P: TaskPlatform> Drop for Admitting<'_, P> {
    fn drop(&mut self) {
        if !self.admitted {
            self.inner.tasks.borrow_mut().remove(self.address);
        }
    }
}

impl<P: TaskPlatform> Inner<P> {
    pub(super) async fn delegate(
        self: &Rc<Self>,
        args: &Value,
        owner: &str,
        call_id: Option<&str>,
        wish: &Wish,
    ) -> Result<Reply, Refusal> {
        let input = task_input(args)?;
        let call_id = check_call_id(call_id)?;
        let epoch = self.platform.sealer().epoch();
        let call = CallKey::new(&self.config.environment, epoch, owner, call_id);
        let _turn = self.in_flight.turn(&call).await;
        // Mostly the journal does not know the call, so it is not asked first: its write says so when it does. Only what
        // would be refused is looked up, since a repeat is answered whatever stands against a new task.
        let refusal = match self.reserve(&input, wish) {
            Ok(reserved) => match self.admit(reserved, &input, owner, call_id, &call).await {
                Ok(Admitted::New(reply)) => return Ok(*reply),
                Ok(Admitted::Taken(address)) => return self.existing(&address, owner, &input).await,
                Err(refusal) => refusal,
            },
            Err(refusal) => refusal,
        };
        match self.platform.journal().address_of(&call).await.map_err(unreadable)? {
            Some(address) => self.existing(&address, owner, &input).await,
            None => Err(refusal),
        }
    }

    /// The answer to a call that has a task.
    async fn existing(&self, address: &str, owner: &str, input: &TaskInput) -> Result<Reply, Refusal> {
        let found = self.look_up(address).await?.ok_or_else(|| {
            Refusal::new(Code::TaskAuditUnavailable, "the journal knows the call but not its task")
        })?;
        let record = found.record();
        if record.owner != owner || record.input != *input {
            let why = format!("the call id {:?} was used for another task", record.call_id);
            return Err(Refusal::new(Code::TaskCallIdConflict, why));
        }
        Ok(Reply::Delegated { task: self.show(found).await?, existing: true })
    }

    /// Everything that is decided at once. What was reserved is given back by dropping it.
    fn reserve(&self, input: &TaskInput, wish: &Wish) -> Result<Reserved<P::Executor>, Refusal> {
        let placement = self.config.placement;
        let root = self.root(wish)?;
        let slot = self.capacity.take().ok_or_else(|| {
            let max = placement.bounds().max_active_tasks;
            let why = format!("{max} tasks run, as many as the {placement} placement grants");
            Refusal::new(Code::TaskCapacityExhausted, why)
        })?;
        let lingering = self.tasks.borrow().values().filter(|task| task.lingers()).count();
        if lingering >= MAX_LINGERING {
            let why = format!("the journal has not taken the ends of {lingering} tasks; nothing has run");
            return Err(Refusal::new(Code::TaskPersistenceFailed, why));
        }
        let executor = self.platform.executor().ok_or_else(|| {
            Refusal::new(Code::ExecutorUnavailable, "nothing is there that could execute tasks")
        })?;
        let environment = &self.config.environment;
        let check =
            Check { input, root: &root.descriptor, environment, placement, deadline_ms: wish.deadline_ms };
        let terms = executor.check(check)?;
        let bounds = placement.check_bounds(terms.deadline_ms, terms.max_output_bytes)?;
        if terms.mechanism.trim().is_empty() {
            return Err(Refusal::new(Code::UnboundedExecutor, "the executor does not say how it executes"));
        }
        let mechanism = cut(&terms.mechanism, MECHANISM_MAX_CHARS);
        Ok(Reserved { slot, executor, root, bounds, mechanism })
    }

    /// The root that the caller wants, or else the selected one, if this placement reaches it.
    fn root(&self, wish: &Wish) -> Result<SelectedRoot, Refusal> {
        let refuse = |why: String| Refusal::new(Code::TaskRootUnavailable, why);
        let root = wish.root.clone().or_else(|| self.platform.roots().selected());
        let root = root.ok_or_else(|| refuse("no root is selected".to_owned()))?;
        root.descriptor.check_reachable(self.config.placement).map_err(|fault| refuse(fault.to_string()))?;
        if let RootDescriptor::Machine { environment, .. } = &root.descriptor
            && environment.as_deref() != Some(&*self.config.environment)
        {
            return Err(refuse("the selected root is of another environment".to_owned()));
        }
        Ok(root)
    }

    async fn admit(
        self: &Rc<Self>,
        reserved: Reserved<P::Executor>,
        input: &TaskInput,
        owner: &str,
        call_id: &str,
        call: &CallKey,
    ) -> Result<Admitted, Refusal> {
        let Reserved { slot, executor, root, bounds, mechanism } = reserved;
        let address = match self.take_sealed(&root, owner) {
            Some(address) => address,
            None => self.seal(&root, owner).await?,
        };
        let (config, life, at) = (&self.config, self.platform.life(), self.now());
        let record = TaskRecord {
            address: address.clone(),
            environment: config.environment.clone(),
            placement: Some(config.placement),
            owner: owner.to_owned(),
            root: root.descriptor.clone(),
            project: config.project.clone(),
            instance: config.instance.clone(),
            call_id: call_id.to_owned(),
            input: input.clone(),
            bounds,
            mechanism,
            boot: life.boot().to_owned(),
            pid: life.pid(),
            state: TaskState::Queued,
            created_at: at.clone(),
            updated_at: at.clone(),
            reason: None,
            answer: None,
            progress: None,
            partial: None,
            outcome: None,
        };
        let created = Some(Box::new(record.clone()));
        let draft = Draft { at, event: TaskEvent { created, ..TaskEvent::to(&*address, TaskState::Queued) } };
        let report = Reporter::new(Rc::clone(&config.redact), bounds.max_output_bytes);
        let task = Rc::new(Active::new(record, report));

        // Known before it is written: whoever reads the journal meanwhile must not take it for abandoned.
        self.tasks.borrow_mut().insert(address.clone(), Rc::clone(&task));
        let mut admitting = Admitting { inner: self, address: &address, admitted: false };
        match self.platform.journal().admit(&draft, call).await {
            Ok(()) => admitting.admitted = true,
            Err(JournalFault::CallTaken(taken)) => return Ok(Admitted::Taken(taken)),
            Err(JournalFault::Refused(refusal)) => return Err(refusal),
            Err(fault) => {
                let why = format!(
                    "the journal did not take the task: {}; nothing has run",
                    cut(&fault.to_string(), 120)
                );
                return Err(Refusal::new(Code::TaskPersistenceFailed, why));
            }
        }
        drop(admitting);
        let view = task.view();
        self.platform.updated(owner, &view);
        let reply = Reply::Delegated { task: view, existing: false };
        if self.platform.runs_elsewhere() {
            self.tasks.borrow_mut().remove(&address);
        } else {
            let run = Rc::clone(self).run(task, executor, slot);
            self.platform.spawner().spawn(Box::pin(run));
        }
        self.seal_ahead(root, owner);
        Ok(Admitted::New(Box::new(reply)))
    }

    /// The address that was sealed ahead, if it is for this root and owner.
    fn take_sealed(&self, root: &SelectedRoot, owner: &str) -> Option<String> {
        let sealed = self.sealed_ahead.take()?;
        (sealed.root == *root && sealed.owner == owner).then_some(sealed.address)
    }

    /// Seals an address for the next task of that root and owner, so that it need not wait for it.
    fn seal_ahead(self: &Rc<Self>, root: SelectedRoot, owner: &str) {
        let (inner, owner) = (Rc::clone(self), owner.to_owned());
        self.platform.spawner().spawn(Box::pin(async move {
            // Without a key now there may be one later; the next task seals its own.
            if let Ok(address) = inner.seal(&root, &owner).await {
                inner.sealed_ahead.replace(Some(SealedAhead { root, owner, address }));
            }
        }));
    }

    async fn seal(&self, root: &SelectedRoot, owner: &str) -> Result<String, Refusal> {
        let sealer = self.platform.sealer();
        let id = to_hex(&sealer.nonce());
        let locator = Locator {
            environment: self.config.environment.clone(),
            key_epoch: sealer.epoch().to_owned(),
            instance: self.config.instance.clone(),
            placement: self.config.placement,
            path: root.descriptor.to_string(),
            dev: root.identity.map(|(dev, _)| dev),
            ino: root.identity.map(|(_, ino)| ino),
            id: if self.config.placement == Placement::Browser { format!("loc_{id}") } else { id },
        };
        let payload = locator.payload()?;
        let mac = sealer.seal(&mac_input(&payload, owner)).await?;
        Ok(address(&payload, &mac))
    }
}
