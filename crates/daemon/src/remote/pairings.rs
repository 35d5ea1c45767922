//! The tokens that were issued to other machines and pages. A token is kept as its hash, so that the file is of no use
//! to whoever reads it.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;
use tokio::sync::watch;
use tokio::time::sleep;
use toolshelf_core::digest::{Digest, to_hex};
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_core::remote::name;
use toolshelf_core::remote::scope::Scope;
use toolshelf_sandbox::private;
use zeroize::Zeroizing;

use super::codes::{Codes, Terms};
use super::store::{Store, file};

/// The file, in the data folder.
const FILE: &str = "pairings.json";
/// What every token begins with.
const PREFIX: &str = "tsp_";
/// What the owner of a paired token's tasks begins with.
const OWNER_PREFIX: &str = "paired:";
/// Pairings that hold at a time.
const PAIRINGS_MAX: usize = 64;
/// Pairings that are over are remembered, the last ones, so that their tokens are refused by name.
const OVER_MAX: usize = 128;
/// The longest sleep until an expiry: the clock may be set meanwhile.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// A pairing, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Pairing {
    /// Its id, 16 hexadecimal digits.
    pub(crate) id: String,
    /// What it is called.
    pub(crate) name: String,
    /// The SHA-256 of the token.
    hash: String,
    /// What the token may be used for.
    pub(crate) scopes: Vec<Scope>,
    /// The origin of the page that was paired; without, another companion or a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<String>,
    /// When it was made, in milliseconds since 1970.
    pub(crate) created_at_ms: u64,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at_ms: Option<u64>,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) revoked_at_ms: Option<u64>,
}

/// What a token that was shown is good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Granted {
    /// The pairing's id.
    pub(crate) id: String,
    /// What it may be used for.
    pub(crate) scopes: Vec<Scope>,
}

/// A token that was just made.
pub(crate) struct Issued {
    /// The token. It is told once, to whoever entered the code.
    pub(crate) bearer: Zeroizing<String>,
    /// The pairing.
    pub(crate) pairing: Pairing,
}

/// The pairings. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Pairings {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    store: Store,
    state: Mutex<State>,
    /// Counts changes, for those whose session depends on a pairing.
    changed: watch::Sender<u64>,
    began: Instant,
}

#[derive(Debug)]
struct State {
    /// The list; or why nobody is let in.
    list: Result<Vec<Pairing>, Refusal>,
    codes: Codes,
    /// The latest time that was seen: a clock that is set back gives nobody more time.
    latest_ms: u64,
}

impl Pairing {
    /// How it stands at `now_ms`.
    pub(crate) fn state(&self, now_ms: u64) -> &'static str {
        match self.check(now_ms) {
            Ok(()) => "active",
            Err(refusal) if refusal.code == Code::PairingRevoked => "revoked",
            Err(_) => "expired",
        }
    }

    fn check(&self, now_ms: u64) -> Result<(), Refusal> {
        if self.revoked_at_ms.is_some() {
            return Err(Refusal::new(
                Code::PairingRevoked,
                format!("the pairing {:?} was revoked", self.name),
            ));
        }
        if self.expires_at_ms.is_some_and(|end| now_ms >= end) {
            return Err(Refusal::new(
                Code::PairingExpired,
                format!("the time of the pairing {:?} is over", self.name),
            ));
        }
        Ok(())
    }
}

impl Granted {
    /// The identity of the tasks that are delegated with the token.
    pub(crate) fn owner(&self) -> String {
        [OWNER_PREFIX, &self.id].concat()
    }
}

impl Pairings {
    /// The pairings of the data folder. When their file cannot be read, nobody is let in, and why is told.
    pub(crate) fn open(data: &Path) -> Self {
        let store = file(data, FILE);
        let list = store.read::<Pairing>();
        if let Err(refusal) = &list {
            tracing::error!(why = refusal.why, "nobody who was paired is let in");
        }
        let created = list
            .iter()
            .flatten()
            .map(|pairing| pairing.created_at_ms.max(pairing.revoked_at_ms.unwrap_or(0)));
        let latest_ms = created.max().unwrap_or(0);
        let state = Mutex::new(State { list, codes: Codes::default(), latest_ms });
        let (changed, began) = (watch::Sender::new(0), Instant::now());
        Self { inner: Arc::new(Inner { store, state, changed, began }) }
    }

    /// Makes a one-time code.
    ///
    /// # Errors
    /// [`Code::OverBudget`] when too many hold, and when the list or randomness cannot be had.
    pub(crate) fn offer(&self, terms: Terms) -> Result<Zeroizing<String>, Refusal> {
        let mut state = self.state();
        state.room(now_ms())?;
        let monotonic = self.monotonic_ms();
        state.codes.offer(terms, monotonic).map_err(no_randomness)
    }

    /// Takes a code for a token. `calls_itself` is what the other side is called where the code has no name for it.
    ///
    /// # Errors
    /// What [`Codes::take`] says, [`Code::PairingListUnreadable`] and [`Code::StorageUnavailable`].
    pub(crate) fn pair(
        &self,
        code: &str,
        calls_itself: &str,
        origin: Option<&str>,
    ) -> Result<Issued, Refusal> {
        let mut state = self.state();
        let monotonic = self.monotonic_ms();
        let terms = state.codes.take(code, monotonic)?;
        let issued = self.issue(&mut state, terms, calls_itself, origin)?;
        let Pairing { id, name, .. } = &issued.pairing;
        tracing::info!(pairing = id, name, origin, "paired");
        Ok(issued)
    }

    fn issue(
        &self,
        state: &mut State,
        terms: Terms,
        calls_itself: &str,
        origin: Option<&str>,
    ) -> Result<Issued, Refusal> {
        let now = state.now();
        state.room(now)?;
        let (mut secret, mut id) = (Zeroizing::new([0; 32]), [0; 8]);
        private::fill_random(&mut *secret)
            .and_then(|()| private::fill_random(&mut id))
            .map_err(no_randomness)?;
        let bearer = Zeroizing::new([PREFIX, &*Zeroizing::new(to_hex(&*secret))].concat());
        let pairing = Pairing {
            id: to_hex(&id),
            name: terms.name.or_else(|| name(calls_itself)).unwrap_or_else(|| "unnamed".to_owned()),
            hash: Digest::of(bearer.as_bytes()).to_string(),
            scopes: if terms.scopes.is_empty() { Scope::ALL.into() } else { terms.scopes },
            origin: origin.map(str::to_owned),
            created_at_ms: now,
            expires_at_ms: terms.life_ms.map(|life| now.saturating_add(life)),
            revoked_at_ms: None,
        };
        let mut list = state.list.clone()?;
        list.push(pairing.clone());
        forget_oldest(&mut list, now);
        self.inner.store.write(&list)?;
        state.list = Ok(list);
        Ok(Issued { bearer, pairing })
    }

    /// Whether the text has the form of a token of another machine.
    pub(crate) fn is_token(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// What a token is good for now, shown by a page of `origin`, or by nobody's page.
    ///
    /// # Errors
    /// [`Code::BearerRefused`] for one that was never issued, [`Code::PairingRevoked`], [`Code::PairingExpired`],
    /// [`Code::OriginNotAllowed`] for one of another page, and [`Code::PairingListUnreadable`].
    pub(crate) fn check(&self, bearer: &str, origin: Option<&str>) -> Result<Granted, Refusal> {
        let mut state = self.state();
        let now = state.now();
        let hash = Digest::of(bearer.as_bytes()).to_string();
        let mut found = None;
        // Every entry is compared, so that the time says nothing of which it was.
        for pairing in state.list.as_ref().map_err(Clone::clone)? {
            if pairing.hash.as_bytes().ct_eq(hash.as_bytes()).into() {
                found = Some(pairing);
            }
        }
        let found = found.ok_or_else(|| Refusal::new(Code::BearerRefused, "the token was never issued here"));
        let checked = found.and_then(|pairing| {
            pairing.check(now)?;
            if let (Some(page), Some(bound)) = (origin, &pairing.origin)
                && page != bound
            {
                let why = format!("the token was issued to a page of {bound:?}, not of {:?}", cut(page, 80));
                return Err(Refusal::new(Code::OriginNotAllowed, why));
            }
            Ok(Granted { id: pairing.id.clone(), scopes: pairing.scopes.clone() })
        });
        if let Err(refusal) = &checked {
            tracing::warn!(refused = refusal.code.as_str(), why = refusal.why, "a token was refused");
        }
        checked
    }

    /// Whether a page of that origin holds a token that is good now.
    pub(crate) fn knows_origin(&self, origin: &str) -> bool {
        let mut state = self.state();
        let now = state.now();
        let of_origin =
            |pairing: &Pairing| pairing.origin.as_deref() == Some(origin) && pairing.check(now).is_ok();
        state.list.as_ref().is_ok_and(|list| list.iter().any(of_origin))
    }

    /// Waits until the pairing is over, and says why.
    pub(crate) async fn ended(&self, id: &str) -> Refusal {
        let mut changed = self.inner.changed.subscribe();
        loop {
            let left = {
                let mut state = self.state();
                let now = state.now();
                let known =
                    state.list.as_ref().ok().and_then(|list| list.iter().find(|known| known.id == id));
                match known.map(|pairing| pairing.check(now).map(|()| pairing.expires_at_ms)) {
                    None => return Refusal::new(Code::PairingRevoked, "the pairing is not known any more"),
                    Some(Err(refusal)) => return refusal,
                    Some(Ok(end)) => end.map(|end| Duration::from_millis(end - now)),
                }
            };
            let expiry = sleep(left.unwrap_or(LOOK_AGAIN).min(LOOK_AGAIN));
            tokio::select! {
                () = expiry => {}
                // The sender is in `self`.
                _ = changed.changed() => {}
            }
        }
    }

    /// All that are remembered, the newest first, and the time by which they are judged.
    ///
    /// # Errors
    /// [`Code::PairingListUnreadable`].
    pub(crate) fn list(&self) -> Result<(Vec<Pairing>, u64), Refusal> {
        let mut state = self.state();
        let now = state.now();
        let list = state.list.as_ref().map_err(Clone::clone)?;
        Ok((list.iter().rev().cloned().collect(), now))
    }

    /// Revokes the pairing of that id, or of that name where it is the only one of it. Whoever uses it is let go.
    ///
    /// # Errors
    /// [`Code::EnvironmentNotPaired`] when there is none, [`Code::InvalidArgument`] when there are several, and when the
    /// list cannot be read or written; the pairing holds then.
    pub(crate) fn revoke(&self, which: &str) -> Result<Pairing, Refusal> {
        let mut state = self.state();
        let now = state.now();
        let mut list = state.list.clone()?;
        let fits =
            |pairing: &Pairing| pairing.check(now).is_ok() && (pairing.id == which || pairing.name == which);
        let found: Vec<usize> = (0..list.len()).filter(|at| fits(&list[*at])).collect();
        let at = match *found {
            [at] => at,
            [] => {
                let why = format!("no pairing that holds has the id or the name {:?}", cut(which, 80));
                return Err(Refusal::new(Code::EnvironmentNotPaired, why));
            }
            _ => {
                let why = format!("several pairings are called {:?}; give the id", cut(which, 80));
                return Err(Refusal::new(Code::InvalidArgument, why));
            }
        };
        list[at].revoked_at_ms = Some(now);
        let revoked = list[at].clone();
        self.inner.store.write(&list)?;
        state.list = Ok(list);
        drop(state);
        self.inner.changed.send_modify(|count| *count += 1);
        tracing::info!(pairing = revoked.id, name = revoked.name, "revoked");
        Ok(revoked)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn monotonic_ms(&self) -> u64 {
        u64::try_from(self.inner.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl State {
    fn now(&mut self) -> u64 {
        self.latest_ms = self.latest_ms.max(now_ms());
        self.latest_ms
    }

    fn room(&self, now: u64) -> Result<(), Refusal> {
        let holding =
            self.list.as_ref().map_err(Clone::clone)?.iter().filter(|known| known.check(now).is_ok());
        if holding.count() < PAIRINGS_MAX {
            return Ok(());
        }
        Err(Refusal::new(Code::OverBudget, format!("{PAIRINGS_MAX} pairings hold; revoke one first")))
    }
}

/// Of those that are over, the oldest are forgotten.
fn forget_oldest(list: &mut Vec<Pairing>, now: u64) {
    let over = list.iter().filter(|known| known.check(now).is_err()).count();
    let mut surplus = over.saturating_sub(OVER_MAX);
    list.retain(|known| {
        let goes = surplus > 0 && known.check(now).is_err();
        surplus -= usize::from(goes);
        !goes
    });
}

fn no_randomness(err: std::io::Error) -> Refusal {
    Refusal::new(Code::StorageUnavailable, format!("the system gives no randomness: {err}"))
}

/// Milliseconds since 1970 by this computer's clock.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
