//! Facts that end with the process: for tests, and for whoever wants to leave no trace.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::browse::{BrowseRequest, Names, Walk};
use crate::fact::{Fact, Moment, NewFact};
use crate::port::{Deleted, ExportRequest, Exported, FactError, FactStore, Found, LISTED_MAX, Query};
use crate::privacy::PrivacyRule;
use crate::rules::{Candidate, Page, Previous, Selection, check_bulk, id_of, next_version, seq_of};

type Name = (String, String);

/// A store in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    privacy: PrivacyRule,
    facts: Mutex<Facts>,
}

#[derive(Debug, Default)]
struct Facts {
    /// Versions of each pair of entity and key, the oldest first; never empty.
    versions: BTreeMap<Name, Vec<Fact>>,
    /// Which pair the version of a number belongs to.
    names: BTreeMap<u64, Name>,
    next_seq: u64,
    last_stored_at: Moment,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new(privacy: PrivacyRule) -> Self {
        Self { privacy, facts: Mutex::default() }
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        // No write stops in the middle, so what a panic elsewhere has left is whole.
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Facts {
    fn store(&mut self, new: NewFact, at: Moment, privacy: &PrivacyRule) -> Fact {
        let seq = self.next_seq;
        self.next_seq += 1;
        self.last_stored_at = self.last_stored_at.max(at);
        let name = (new.entity.clone(), new.key.clone());
        let versions = self.versions.entry(name.clone()).or_default();
        let previous = versions.last_mut();
        let fact = next_version(
            new,
            seq,
            self.last_stored_at,
            previous.as_ref().map(|previous| Previous {
                id: &previous.fact_id,
                version: previous.version,
                private: previous.private,
            }),
            privacy,
        );
        if let Some(previous) = previous {
            previous.superseded_by = Some(fact.fact_id.clone());
        }
        versions.push(fact.clone());
        self.names.insert(seq, name);
        fact
    }

    fn find(&self, seq: u64) -> Option<&Fact> {
        let id = id_of(seq);
        self.versions.get(self.names.get(&seq)?)?.iter().find(|fact| fact.fact_id == id)
    }

    fn delete(&mut self, id: &str) -> Option<Deleted> {
        let seq = seq_of(id)?;
        let name = self.names.get(&seq)?.clone();
        let versions = self.versions.get_mut(&name)?;
        let is_newest = versions.last().is_some_and(|newest| newest.fact_id == id);
        let gone = if is_newest {
            self.versions.remove(&name)?
        } else {
            let index = versions.iter().position(|fact| fact.fact_id == id)?;
            vec![versions.remove(index)]
        };
        for fact in &gone {
            self.names.remove(&seq_of(&fact.fact_id)?);
        }
        Some(Deleted { versions: gone.len() as u64 })
    }
}

impl FactStore for MemoryStore {
    async fn store(&self, fact: NewFact, at: Moment) -> Result<Fact, FactError> {
        fact.check()?;
        Ok(self.facts().store(fact, at, &self.privacy))
    }

    async fn store_bulk(&self, facts: Vec<NewFact>, at: Moment) -> Result<Vec<Fact>, FactError> {
        check_bulk(&facts)?;
        let mut kept = self.facts();
        Ok(facts.into_iter().map(|fact| kept.store(fact, at, &self.privacy)).collect())
    }

    async fn latest(&self, entity: &str, key: &str) -> Result<Option<Fact>, FactError> {
        let name = (entity.to_owned(), key.to_owned());
        Ok(self.facts().versions.get(&name).and_then(|versions| versions.last()).cloned())
    }

    async fn get(&self, id: &str) -> Result<Option<Fact>, FactError> {
        Ok(seq_of(id).and_then(|seq| self.facts().find(seq).cloned()))
    }

    async fn by_entity(&self, entity: &str) -> Result<Vec<Fact>, FactError> {
        let facts = self.facts();
        let newest = facts.versions.range((entity.to_owned(), String::new())..);
        let newest = newest.take_while(|((found, _), _)| found == entity).take(LISTED_MAX);
        Ok(newest.filter_map(|(_, versions)| versions.last()).cloned().collect())
    }

    async fn query(&self, query: &Query) -> Result<Found, FactError> {
        let facts = self.facts();
        let mut selection = Selection::new(query);
        let prefix = selection.prefix();
        let below = facts.versions.range((prefix.to_owned(), String::new())..);
        for (_, versions) in below.take_while(|((entity, _), _)| entity.starts_with(prefix)) {
            let in_time = |fact: &&Fact| query.as_of.is_none_or(|as_of| fact.stored_at <= as_of);
            if let Some(fact) = versions.iter().rev().find(in_time) {
                selection.offer(candidate(fact), || Ok(fact.clone()))?;
            }
        }
        Ok(selection.finish())
    }

    async fn browse(&self, request: &BrowseRequest) -> Result<Names, FactError> {
        let facts = self.facts();
        let newest = facts.versions.values().filter_map(|versions| versions.last());
        Ok(Walk::over(request, newest.map(|fact| (fact.entity.clone(), fact.private)).collect()))
    }

    async fn history(&self, entity: &str, key: &str) -> Result<Vec<Fact>, FactError> {
        let name = (entity.to_owned(), key.to_owned());
        let facts = self.facts();
        Ok(facts.versions.get(&name).into_iter().flatten().rev().take(LISTED_MAX).cloned().collect())
    }

    async fn delete(&self, id: &str) -> Result<Deleted, FactError> {
        self.facts().delete(id).ok_or_else(|| FactError::NotFound(toolshelf_core::refusal::cut(id, 100)))
    }

    async fn export(&self, request: &ExportRequest) -> Result<Exported, FactError> {
        let page = Page::of(request)?;
        let facts = self.facts();
        let mut exported = Exported::default();
        let found = facts.names.range(page.from.unwrap_or(0)..).filter_map(|(seq, _)| facts.find(*seq));
        let found = found.filter(|fact| request.since.is_none_or(|since| fact.stored_at >= since));
        for (looked_at, fact) in found.enumerate() {
            if exported.facts.len() == page.limit || looked_at == page.scanned {
                (exported.next_cursor, exported.has_more) = (Some(fact.fact_id.clone()), true);
                break;
            }
            if !fact.private {
                exported.facts.push(fact.clone());
            }
        }
        Ok(exported)
    }
}

fn candidate(fact: &Fact) -> Candidate<'_> {
    Candidate {
        seq: seq_of(&fact.fact_id).unwrap_or_default(),
        entity: &fact.entity,
        key: &fact.key,
        value: &fact.value,
        confidence: fact.confidence,
        stored_at: fact.stored_at,
        tokens: fact.tokens,
        private: fact.private,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::conformance::suite!(|privacy: PrivacyRule| (MemoryStore::new(privacy), ()));
}
