//! Other machines: those that were let in here, and those that this one was let in to.
//!
//! | module | idea |
//! |---|---|
//! | [`codes`] | one-time codes, and how often they may be guessed |
//! | [`pairings`] | the tokens that were issued here, as hashes |
//! | [`channel`] | the side that answers: `/channel` |
//! | [`tls`] | certificates: this machine's own, and those that are pinned |
//! | [`environments`] | the remotes that this machine holds a token of |
//! | [`connection`] | one WebSocket to one of them |
//! | [`environment`] | a remote as a host of tasks |
//! | [`keeping`] | its connection, opened again and again |
//! | [`route`] | which machine a command is for |
//! | [`files`] | files of this machine, sent along with a task |
//! | [`admin`] | what only who sits at this computer asks for |
//! | [`offer`] | where this machine can be reached, for the link of a pairing |

pub(crate) mod admin;
pub(crate) mod channel;
pub(crate) mod codes;
mod connection;
mod environment;
pub(crate) mod environments;
mod files;
mod keeping;
pub(crate) mod offer;
pub(crate) mod pairings;
pub(crate) mod route;
mod store;
pub(crate) mod tls;

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use crate::service::Event;

use environments::Environments;
use offer::Reach;
use pairings::Pairings;

/// Hears of what remotes tell.
pub(crate) type OnEvent = Rc<dyn Fn(Event)>;

/// Both sides of pairing. Clones share it.
#[derive(Clone)]
pub(crate) struct Remote {
    inner: Rc<Inner>,
}

struct Inner {
    pairings: Pairings,
    environments: Environments,
    /// How others reach this machine; known where it is served.
    reach: RefCell<Option<Reach>>,
}

impl Remote {
    /// What the data folder knows of other machines. Nothing is connected yet.
    pub(crate) fn open(data: &Path, on_event: OnEvent) -> Self {
        let (pairings, environments) = (Pairings::open(data), Environments::open(data, on_event));
        Self { inner: Rc::new(Inner { pairings, environments, reach: RefCell::default() }) }
    }

    /// The tokens that were issued here.
    pub(crate) fn pairings(&self) -> &Pairings {
        &self.inner.pairings
    }

    /// The remotes that are known here.
    pub(crate) fn environments(&self) -> &Environments {
        &self.inner.environments
    }

    /// Says how others reach this machine.
    pub(crate) fn reached_by(&self, reach: Reach) {
        self.inner.reach.replace(Some(reach));
    }

    fn reach(&self) -> Option<Reach> {
        self.inner.reach.borrow().clone()
    }
}
