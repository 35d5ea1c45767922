//! What the companion keeps for agents. It lives on the companion's thread, with the [`Service`].

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;
use toolshelf_core::Digest;
use toolshelf_core::refusal::Refusal;

use super::catalogue::{self, Catalogue};
use super::lock::{Lock, Stamp};
use super::tokens::Tokens;
use crate::extensions::Extensions;
use crate::extensions::schema::Schemas;
use crate::service::Service;
use crate::settings::{MCP_NEW_TOOLS, MCP_PASSPORT};

/// On whose behalf agents call extensions, where no setting says.
const USUAL_PASSPORT: &str = "mcp";
/// The value of the setting by which new tools wait for a person.
const ASK: &str = "ask";
/// The fact store. Where there is none, no extension was ever installed, and nothing needs to be opened.
const FACTS: &str = "facts.redb";
/// Extensions that another program has are tried again after this.
const AGAIN: Duration = Duration::from_secs(30);

/// What is kept. It holds as long as the lock and the extensions are as they were.
struct Kept {
    catalogue: Rc<Catalogue>,
    stamp: Stamp,
    revision: Option<u64>,
}

/// The desk.
pub(crate) struct Desk {
    pub(super) lock: Lock,
    pub(super) schemas: Schemas,
    pub(super) passport: String,
    pub(super) tokens: Tokens,
    data: PathBuf,
    ask: bool,
    kept: RefCell<Option<Kept>>,
    /// When extensions could not be opened, the last time.
    failed: Cell<Option<Instant>>,
    /// What agents were told last, and the word that it is another now.
    told: RefCell<Option<(Rc<Catalogue>, Digest)>>,
    changes: watch::Sender<u64>,
}

impl Desk {
    pub(crate) fn new(data: &Path) -> Self {
        let setting = |setting: &crate::settings::Setting| {
            setting.value().and_then(|(_, value)| value.into_string().ok())
        };
        Self {
            lock: Lock::in_folder(data),
            schemas: Schemas::default(),
            passport: setting(&MCP_PASSPORT).unwrap_or_else(|| USUAL_PASSPORT.to_owned()),
            tokens: Tokens::in_folder(data),
            data: data.to_owned(),
            ask: setting(&MCP_NEW_TOOLS).is_some_and(|value| value == ASK),
            kept: RefCell::default(),
            failed: Cell::default(),
            told: RefCell::default(),
            changes: watch::Sender::new(0),
        }
    }

    /// The shelf has changed.
    pub(crate) fn forget(&self) {
        self.kept.replace(None);
    }

    /// Hears of every change of what agents are offered, from now on.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn kept(&self, stamp: Stamp, revision: Option<u64>) -> Option<Rc<Catalogue>> {
        let kept = self.kept.borrow();
        let kept = kept.as_ref().filter(|kept| kept.stamp == stamp && kept.revision == revision)?;
        Some(Rc::clone(&kept.catalogue))
    }
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").field("data", &self.data).finish_non_exhaustive()
    }
}

impl Service {
    /// The extension host, unless no extension was ever installed, or another program has it.
    pub(super) fn extensions_of_agents(&self) -> Option<Extensions> {
        if !self.may_have_extensions() && !self.desk().data.join(FACTS).exists() {
            return None;
        }
        let failed = &self.desk().failed;
        if failed.get().is_some_and(|at| at.elapsed() < AGAIN) {
            return None;
        }
        self.extensions()
            .inspect_err(|err| {
                failed.set(Some(Instant::now()));
                tracing::warn!(error = err.to_string(), "agents are offered no extensions");
            })
            .ok()
    }

    /// What agents are offered now.
    ///
    /// # Errors
    /// When the shelves or the lock cannot be read.
    pub(crate) async fn catalogue(&self) -> Result<Rc<Catalogue>, Refusal> {
        let desk = self.desk();
        let host = self.extensions_of_agents();
        let revision = host.as_ref().map(Extensions::revision);
        if let Some(kept) = desk.kept(desk.lock.stamp(), revision) {
            return Ok(kept);
        }
        let mut candidates = catalogue::of_shelves(&self.readings().await?);
        if let Some(host) = host {
            let passport = desk.passport.clone();
            candidates.extend(host.on_thread(move |host| catalogue::of_extensions(host, &passport)).await?);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let now = u64::try_from(now).unwrap_or(u64::MAX);
        let catalogue = Rc::new(Catalogue::of(candidates, &desk.lock, desk.ask, now)?);
        if desk.told.borrow().is_none() {
            desk.told.replace(Some((Rc::clone(&catalogue), catalogue::fingerprint(&catalogue))));
        }
        let kept = Kept { catalogue: Rc::clone(&catalogue), stamp: desk.lock.stamp(), revision };
        desk.kept.replace(Some(kept));
        Ok(catalogue)
    }

    /// Tells agents where they are offered something else than before. It costs next to nothing while that is not so.
    pub(crate) async fn tell_agents(&self) {
        let desk = self.desk();
        if desk.changes.receiver_count() == 0 {
            return;
        }
        let Ok(catalogue) = self.catalogue().await else { return };
        // It may have been read again meanwhile because a call has asked for it.
        if desk.told.borrow().as_ref().is_some_and(|(told, _)| Rc::ptr_eq(told, &catalogue)) {
            return;
        }
        let now = catalogue::fingerprint(&catalogue);
        let before = desk.told.replace(Some((catalogue, now)));
        if before.is_some_and(|(_, before)| before != now) {
            desk.changes.send_modify(|count| *count += 1);
        }
    }
}
