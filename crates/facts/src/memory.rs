//! Facts that end with the process: for tests, and for whoever wants to leave no trace.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::browse::{BrowseRequest, Names};
use crate::fact::{Fact, Moment, NewFact};
use crate::port::{Deleted, ExportRequest, Exported, FactError, FactStore, Found, Query};
use crate::privacy::PrivacyRule;
use crate::rules::{check_bulk, seq_of};
use crate::versions::Versions;

/// A store in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    privacy: PrivacyRule,
    facts: Mutex<Versions>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new(privacy: PrivacyRule) -> Self {
        Self { privacy, facts: Mutex::default() }
    }

    fn facts(&self) -> MutexGuard<'_, Versions> {
        // No write stops in the middle, so what a panic elsewhere has left is whole.
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FactStore for MemoryStore {
    async fn store(&self, fact: NewFact, at: Moment) -> Result<Fact, FactError> {
        let mut stored = self.store_bulk(vec![fact], at).await?;
        stored.pop().ok_or_else(|| FactError::Unavailable("nothing was stored".to_owned()))
    }

    async fn store_bulk(&self, facts: Vec<NewFact>, at: Moment) -> Result<Vec<Fact>, FactError> {
        check_bulk(&facts)?;
        let mut kept = self.facts();
        let planned = kept.planned(facts, at, &self.privacy);
        planned.iter().for_each(|fact| kept.insert(fact.clone()));
        Ok(planned)
    }

    async fn latest(&self, entity: &str, key: &str) -> Result<Option<Fact>, FactError> {
        Ok(self.facts().latest(entity, key))
    }

    async fn get(&self, id: &str) -> Result<Option<Fact>, FactError> {
        Ok(seq_of(id).and_then(|seq| self.facts().find(seq).cloned()))
    }

    async fn by_entity(&self, entity: &str) -> Result<Vec<Fact>, FactError> {
        Ok(self.facts().by_entity(entity))
    }

    async fn query(&self, query: &Query) -> Result<Found, FactError> {
        self.facts().query(query)
    }

    async fn browse(&self, request: &BrowseRequest) -> Result<Names, FactError> {
        Ok(self.facts().browse(request))
    }

    async fn history(&self, entity: &str, key: &str) -> Result<Vec<Fact>, FactError> {
        Ok(self.facts().history(entity, key))
    }

    async fn delete(&self, id: &str) -> Result<Deleted, FactError> {
        let mut facts = self.facts();
        let gone =
            facts.goes_with(id).map(|gone| gone.iter().filter_map(|fact| seq_of(&fact.fact_id)).collect());
        let gone: Vec<u64> =
            gone.ok_or_else(|| FactError::NotFound(toolshelf_core::refusal::cut(id, 100)))?;
        facts.remove(&gone);
        Ok(Deleted { versions: gone.len() as u64 })
    }

    async fn export(&self, request: &ExportRequest) -> Result<Exported, FactError> {
        self.facts().export(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::conformance::suite!(|privacy: PrivacyRule| (MemoryStore::new(privacy), ()));
}
