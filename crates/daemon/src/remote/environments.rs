//! The remotes that this machine holds a token of, in a file that only its owner can read.

use std::cell::RefCell;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolshelf_core::digest::Digest;
use toolshelf_core::placement::Placement;
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_core::remote::frame::{First, Paired, Told};
use toolshelf_core::remote::link::{PairLink, RemoteAddress};
use toolshelf_core::remote::name;
use toolshelf_core::remote::scope::Scope;

use super::OnEvent;
use super::connection::Connection;
use super::environment::{RemoteEnvironment, Standing};
use super::pairings::now_ms;
use super::store::{Store, file};
use super::tls::{self, Trust};

/// The file, in the data folder.
const FILE: &str = "environments.json";
/// Most remotes at a time.
const ENVIRONMENTS_MAX: usize = 32;

/// A remote that was paired.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) key: String,
    pub(crate) label: String,
    pub(crate) address: RemoteAddress,
    pub(super) bearer: String,
    pub(super) fingerprint: Option<Digest>,
    /// The file of the authorities that vouch for its certificate.
    pub(super) authorities: Option<PathBuf>,
    /// What this machine is called there.
    pub(crate) name: String,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) expires_at_ms: Option<u64>,
    pub(crate) added_at_ms: u64,
}

/// The same as it is kept.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Kept {
    key: String,
    label: String,
    address: String,
    bearer: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fingerprint: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    authorities: Option<PathBuf>,
    name: String,
    scopes: Vec<Scope>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at_ms: Option<u64>,
    added_at_ms: u64,
}

/// The remotes.
pub(crate) struct Environments {
    store: Store,
    list: RefCell<Result<Vec<RemoteEnvironment>, Refusal>>,
    /// Keys of those that were paired once, in this life.
    former: RefCell<Vec<String>>,
    on_event: OnEvent,
}

impl Known {
    /// What its certificate is measured by.
    ///
    /// # Errors
    /// [`Code::ConfigInvalid`] when the file of authorities is gone.
    pub(super) fn trust(&self) -> Result<Trust, Refusal> {
        match (&self.fingerprint, &self.authorities) {
            (Some(fingerprint), _) => Ok(Trust::Pinned(*fingerprint)),
            (None, Some(path)) => tls::authorities(path).map(Trust::Authorities),
            (None, None) => Ok(Trust::Public),
        }
    }
}

impl Environments {
    /// The remotes of the data folder. Nothing is connected yet.
    pub(super) fn open(data: &Path, on_event: OnEvent) -> Self {
        let store = file(data, FILE);
        let list = store.read::<Kept>().and_then(|kept| {
            let known = kept.into_iter().map(Known::try_from).collect::<Result<Vec<_>, _>>()?;
            Ok(known.into_iter().map(|known| RemoteEnvironment::new(known, on_event.clone())).collect())
        });
        if let Err(refusal) = &list {
            tracing::error!(why = refusal.why, "no remote is known");
        }
        Self { store, list: RefCell::new(list), former: RefCell::default(), on_event }
    }

    /// Connects them all, and keeps them connected.
    pub(crate) fn start(&self) {
        self.list.borrow().iter().flatten().for_each(RemoteEnvironment::start);
    }

    /// The remote of that key.
    ///
    /// # Errors
    /// [`Code::UnknownEnvironment`], [`Code::EnvironmentNotPaired`] for one that was removed, and
    /// [`Code::PairingListUnreadable`].
    pub(crate) fn find(&self, key: &str) -> Result<RemoteEnvironment, Refusal> {
        let list = self.list.borrow();
        let list = list.as_ref().map_err(Clone::clone)?;
        let named = |known: &&RemoteEnvironment| known.known().key == key;
        // A label is good enough for a person, where it names one.
        let mut labelled = list.iter().filter(|known| known.known().label == key);
        let by_label = labelled.next().filter(|_| labelled.next().is_none());
        list.iter().find(named).or(by_label).cloned().ok_or_else(|| self.unknown(key))
    }

    fn unknown(&self, key: &str) -> Refusal {
        let shown = cut(key, 60);
        if self.former.borrow().iter().any(|former| former == key) {
            let why = format!("the environment {shown:?} was removed here; pair with it again");
            return Refusal::new(Code::EnvironmentNotPaired, why);
        }
        Refusal::new(Code::UnknownEnvironment, format!("no environment {shown:?} is known here"))
    }

    /// Whether that is the key of a remote.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.list.borrow().iter().flatten().any(|known| known.known().key == key)
    }

    /// Pairs with the remote of a link, and keeps the token. A remote that is known already gets the new token.
    ///
    /// # Errors
    /// What the remote refuses, [`Code::InvalidArgument`] for no link, [`Code::EnvironmentMismatch`] when another
    /// environment answers, [`Code::OverBudget`], and when the token cannot be kept.
    pub(crate) async fn add(
        &self,
        link: &str,
        calls_itself: &str,
        authorities: Option<PathBuf>,
    ) -> Result<Value, Refusal> {
        let link =
            PairLink::parse(link).map_err(|fault| Refusal::new(Code::InvalidArgument, fault.to_string()))?;
        self.check_room(&link.environment)?;
        let trust = match (&link.fingerprint, &authorities) {
            (Some(fingerprint), _) => Trust::Pinned(*fingerprint),
            (None, Some(path)) => Trust::Authorities(tls::authorities(path)?),
            (None, None) => Trust::Public,
        };
        let first = First::Pair { code: link.code.clone(), name: calls_itself.to_owned() };
        let (connection, told) = Connection::open(&link.address, &trust, &first).await?;
        connection.close().await;
        let Told::Paired(paired) = told else {
            return Err(Refusal::new(Code::InvalidFrame, "the remote did not answer with a token"));
        };
        let known = known(*paired, link, authorities)?;
        self.keep(known.clone())?;
        let added = self.find(&known.key)?;
        added.start();
        Ok(shown(&added))
    }

    fn check_room(&self, key: &str) -> Result<(), Refusal> {
        let list = self.list.borrow();
        let list = list.as_ref().map_err(Clone::clone)?;
        if list.len() < ENVIRONMENTS_MAX || list.iter().any(|known| known.known().key == key) {
            return Ok(());
        }
        Err(Refusal::new(
            Code::OverBudget,
            format!("{ENVIRONMENTS_MAX} environments are known; remove one first"),
        ))
    }

    fn keep(&self, known: Known) -> Result<(), Refusal> {
        let mut list = self.list.borrow().clone()?;
        let before = list.iter().position(|other| other.known().key == known.key).map(|at| list.remove(at));
        list.push(RemoteEnvironment::new(known, self.on_event.clone()));
        self.write(&list)?;
        *self.list.borrow_mut() = Ok(list);
        if let Some(before) = before {
            before.stop(&Refusal::new(Code::MachineClosed, "the remote was paired again"));
        }
        Ok(())
    }

    /// Forgets a remote and its token. The remote is not told: see [`revoke`](Self::revoke).
    ///
    /// # Errors
    /// As [`find`](Self::find), and when the list cannot be written.
    pub(crate) fn remove(&self, key: &str) -> Result<Value, Refusal> {
        let remote = self.find(key)?;
        let key = remote.known().key.clone();
        let mut list = self.list.borrow().clone()?;
        list.retain(|other| other.known().key != key);
        self.write(&list)?;
        *self.list.borrow_mut() = Ok(list);
        self.former.borrow_mut().push(key.clone());
        remote.stop(&Refusal::new(Code::EnvironmentNotPaired, "the environment was removed here"));
        Ok(json!({ "ok": true, "key": key }))
    }

    /// Has the remote revoke the token, and forgets it.
    ///
    /// # Errors
    /// As [`remove`](Self::remove), and what the remote says; the token is kept then.
    pub(crate) async fn revoke(&self, key: &str) -> Result<Value, Refusal> {
        let remote = self.find(key)?;
        match remote.ask("revoke_pairing", &serde_json::Map::new(), None).await {
            Ok(_) => {}
            // It takes the connection away with the token.
            Err(refusal)
                if matches!(
                    refusal.code,
                    Code::PairingRevoked | Code::BearerRefused | Code::PairingExpired
                ) => {}
            Err(refusal) => return Err(refusal),
        }
        self.remove(&remote.known().key)
    }

    /// What a person is shown of them: never a token.
    ///
    /// # Errors
    /// [`Code::PairingListUnreadable`].
    pub(crate) fn list(&self) -> Result<Vec<Value>, Refusal> {
        let list = self.list.borrow();
        Ok(list.as_ref().map_err(Clone::clone)?.iter().map(shown).collect())
    }

    fn write(&self, list: &[RemoteEnvironment]) -> Result<(), Refusal> {
        let kept: Vec<Kept> = list.iter().map(|remote| Kept::from(remote.known().clone())).collect();
        self.store.write(&kept)
    }
}

fn known(paired: Paired, link: PairLink, authorities: Option<PathBuf>) -> Result<Known, Refusal> {
    let Paired { bearer, name: given, scopes, expires_at_ms, environment, .. } = paired;
    if environment.key != link.environment {
        let (found, wanted) = (cut(&environment.key, 60), link.environment);
        let why = format!("{} is the environment {found:?}, and the link is of {wanted:?}", link.address);
        return Err(Refusal::new(Code::EnvironmentMismatch, why));
    }
    let usable = bearer.bytes().all(|byte| byte.is_ascii_graphic()) && (16..=512).contains(&bearer.len());
    if !usable {
        return Err(Refusal::new(Code::InvalidFrame, "the remote answered with what is no token"));
    }
    Ok(Known {
        key: environment.key,
        label: name(&environment.label).unwrap_or_else(|| link.address.authority()),
        address: link.address,
        bearer,
        fingerprint: link.fingerprint,
        authorities,
        name: name(&given).unwrap_or_default(),
        scopes,
        expires_at_ms,
        added_at_ms: now_ms(),
    })
}

fn shown(remote: &RemoteEnvironment) -> Value {
    let Known { key, label, address, name, scopes, expires_at_ms, added_at_ms, fingerprint, .. } =
        remote.known();
    let (state, refusal) = match remote.standing() {
        Standing::Idle => ("idle", None),
        Standing::Connecting => ("connecting", None),
        Standing::Connected => ("connected", None),
        Standing::Unreachable(refusal) => ("unreachable", Some(refusal)),
        Standing::Refused(refusal) => {
            let is_over = matches!(refusal.code, Code::PairingRevoked | Code::PairingExpired);
            (if is_over { "revoked" } else { "refused" }, Some(refusal))
        }
    };
    let ready = remote.ready();
    json!({
        "key": key,
        "label": label,
        "address": address.to_string(),
        "pinned": fingerprint.is_some(),
        "name": name,
        "scopes": scopes,
        "expiresAtMs": expires_at_ms,
        "addedAtMs": added_at_ms,
        "placement": Placement::Remote,
        "bounds": Placement::Remote.bounds(),
        "state": state,
        "refused": refusal.as_ref().map(|refusal| refusal.code.as_str()),
        "why": refusal.as_ref().map(|refusal| &refusal.why),
        "environment": ready.as_ref().map(|ready| &ready.environment),
        "tools": ready.as_ref().map(|ready| &ready.tools),
    })
}

impl From<Known> for Kept {
    fn from(known: Known) -> Self {
        let Known { key, label, address, bearer, fingerprint, authorities, .. } = known;
        let Known { name, scopes, expires_at_ms, added_at_ms, .. } = known;
        let address = address.to_string();
        Self {
            key,
            label,
            address,
            bearer,
            fingerprint,
            authorities,
            name,
            scopes,
            expires_at_ms,
            added_at_ms,
        }
    }
}

impl TryFrom<Kept> for Known {
    type Error = Refusal;

    fn try_from(kept: Kept) -> Result<Self, Refusal> {
        let Kept { key, label, address, bearer, fingerprint, authorities, .. } = kept;
        let Kept { name, scopes, expires_at_ms, added_at_ms, .. } = kept;
        let address = RemoteAddress::parse(&address).map_err(|fault| {
            let why = format!("{FILE}: {:?} is no address: {fault}", cut(&address, 80));
            Refusal::new(Code::PairingListUnreadable, why)
        })?;
        Ok(Self {
            key,
            label,
            address,
            bearer,
            fingerprint,
            authorities,
            name,
            scopes,
            expires_at_ms,
            added_at_ms,
        })
    }
}

impl fmt::Debug for Known {
    // The token stays out of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known")
            .field("key", &self.key)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
