//! Looks after the tasks that run here: what other processes write about them reaches their executors, and what their
//! executors say reaches whoever listens.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::{Rc, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use toolshelf_core::task::TaskView;

use super::{Host, Inner};

/// How often the logs are looked at while tasks run here.
const LOOK: Duration = Duration::from_millis(100);
/// Progress is told at every so many looks: twice a second at most.
const LOOKS_PER_NOTE: u32 = 5;

/// Hears of a task's changes: its owner, and what that owner is shown.
pub(crate) type OnUpdate = Rc<dyn Fn(&str, &TaskView)>;

/// The tasks that run here, and what was told of them.
pub(super) struct Watched {
    /// By address: the owner, and what was told last.
    live: RefCell<BTreeMap<String, (String, TaskView)>>,
    on_update: OnUpdate,
    /// Says that there is something to look after.
    begun: Notify,
}

impl Watched {
    pub(super) fn new(on_update: OnUpdate) -> Self {
        Self { live: RefCell::default(), on_update, begun: Notify::new() }
    }

    /// Tells of a change that was made.
    pub(super) fn updated(&self, owner: &str, task: &TaskView) {
        let mut live = self.live.borrow_mut();
        if task.state.is_terminal() {
            live.remove(&task.address);
        } else {
            live.insert(task.address.clone(), (owner.to_owned(), task.clone()));
            self.begun.notify_one();
        }
        drop(live);
        (self.on_update)(owner, task);
    }

    fn addresses(&self) -> Vec<String> {
        self.live.borrow().keys().cloned().collect()
    }

    /// Tells what has changed without having been told: notes, and changes that came out of the journal.
    fn tell_news(&self, host: &Host) {
        for address in self.addresses() {
            let known = self.live.borrow().get(&address).cloned();
            let Some((owner, told)) = known else { continue };
            match host.view(&address) {
                Some(view) if view != told => self.updated(&owner, &view),
                Some(_) => {}
                // The host has forgotten it: it ended, and that was told where it ended.
                None => drop(self.live.borrow_mut().remove(&address)),
            }
        }
    }
}

/// Looks after the tasks that are `watched`, as long as the machine is there.
pub(super) async fn look(watched: Rc<Watched>, machine: Weak<Inner>) {
    loop {
        watched.begun.notified().await;
        if look_until_none_is_left(&watched, &machine).await.is_none() {
            return;
        }
    }
}

/// `None` when the machine is gone.
async fn look_until_none_is_left(watched: &Watched, machine: &Weak<Inner>) -> Option<()> {
    let mut found = machine.upgrade()?.journal().found().await;
    for looks in 1_u32.. {
        tokio::time::sleep(LOOK).await;
        let machine = machine.upgrade()?;
        let addresses = watched.addresses();
        if addresses.is_empty() {
            break;
        }
        let now = machine.journal().found().await;
        if now != found {
            found = now;
            for address in &addresses {
                machine.host.heed(address).await;
            }
        }
        if looks % LOOKS_PER_NOTE == 0 {
            watched.tell_news(&machine.host);
        }
    }
    Some(())
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("live", &self.live.borrow().keys()).finish_non_exhaustive()
    }
}
