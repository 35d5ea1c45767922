//! Facts in memory: what they become when they are stored, and how they are read. Behind a lock they are a store of
//! their own, and a backend that follows a log keeps them as its copy of it.

use std::collections::BTreeMap;
use std::collections::HashMap;

use crate::browse::{BrowseRequest, Names, Walk};
use crate::fact::{Fact, Moment, NewFact};
use crate::port::{ExportRequest, Exported, FactError, Found, LISTED_MAX, Query};
use crate::privacy::PrivacyRule;
use crate::rules::{Candidate, Page, Previous, Selection, id_of, next_version, seq_of};

type Name = (String, String);

/// All versions of all facts.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    /// Versions of each pair of entity and key, the oldest first; never empty.
    versions: BTreeMap<Name, Vec<Fact>>,
    /// Which pair the version of a number belongs to.
    names: BTreeMap<u64, Name>,
    next_seq: u64,
    last_stored_at: Moment,
}

impl Versions {
    /// The versions that `facts` become, one after the other. Nothing is changed.
    pub(crate) fn planned(&self, facts: Vec<NewFact>, at: Moment, privacy: &PrivacyRule) -> Vec<Fact> {
        let at = self.last_stored_at.max(at);
        let mut planned: Vec<Fact> = Vec::with_capacity(facts.len());
        let mut newest: HashMap<Name, usize> = HashMap::new();
        for (index, new) in facts.into_iter().enumerate() {
            let name = (new.entity.clone(), new.key.clone());
            let previous = match newest.get(&name) {
                Some(planned_before) => planned.get(*planned_before),
                None => self.versions.get(&name).and_then(|versions| versions.last()),
            };
            let previous = previous.map(|previous| Previous {
                id: &previous.fact_id,
                version: previous.version,
                private: previous.private,
            });
            planned.push(next_version(new, self.next_seq + index as u64, at, previous, privacy));
            newest.insert(name, index);
        }
        planned
    }

    /// Takes a version that was planned, here or by another who had the same facts.
    pub(crate) fn insert(&mut self, fact: Fact) {
        let Some(seq) = seq_of(&fact.fact_id) else { return };
        self.go_on(seq + 1, fact.stored_at);
        let name = (fact.entity.clone(), fact.key.clone());
        let versions = self.versions.entry(name.clone()).or_default();
        if let Some(previous) = versions.last_mut()
            && Some(&previous.fact_id) == fact.supersedes.as_ref()
        {
            previous.superseded_by = Some(fact.fact_id.clone());
        }
        versions.push(fact);
        self.names.insert(seq, name);
    }

    /// The numbers that are used from now on are not below `next_seq`, and no version is older than `stored_at`.
    pub(crate) fn go_on(&mut self, next_seq: u64, stored_at: Moment) {
        self.next_seq = self.next_seq.max(next_seq);
        self.last_stored_at = self.last_stored_at.max(stored_at);
    }

    /// The number that the next version gets, and when the last one was stored.
    pub(crate) fn progress(&self) -> (u64, Moment) {
        (self.next_seq, self.last_stored_at)
    }

    pub(crate) fn find(&self, seq: u64) -> Option<&Fact> {
        let id = id_of(seq);
        self.versions.get(self.names.get(&seq)?)?.iter().find(|fact| fact.fact_id == id)
    }

    /// What goes when the version of that id is deleted: all versions with the newest, or that one alone.
    pub(crate) fn goes_with(&self, id: &str) -> Option<Vec<&Fact>> {
        let seq = seq_of(id)?;
        let versions = self.versions.get(self.names.get(&seq)?)?;
        let is_newest = versions.last().is_some_and(|newest| newest.fact_id == id);
        Some(versions.iter().filter(|fact| is_newest || fact.fact_id == id).collect())
    }

    /// Takes the versions of those numbers away.
    pub(crate) fn remove(&mut self, gone: &[u64]) {
        for seq in gone {
            let Some(name) = self.names.remove(seq) else { continue };
            let id = id_of(*seq);
            if let Some(versions) = self.versions.get_mut(&name) {
                versions.retain(|fact| fact.fact_id != id);
                if versions.is_empty() {
                    self.versions.remove(&name);
                }
            }
        }
    }

    /// Says of the version `superseded` that `by` came after it, which is deleted.
    pub(crate) fn superseded(&mut self, superseded: &str, by: &str) {
        let name = seq_of(superseded).and_then(|seq| self.names.get(&seq));
        let versions = name.and_then(|name| self.versions.get_mut(name));
        if let Some(fact) = versions.into_iter().flatten().find(|fact| fact.fact_id == superseded) {
            fact.superseded_by = Some(by.to_owned());
        }
    }

    pub(crate) fn latest(&self, entity: &str, key: &str) -> Option<Fact> {
        let name = (entity.to_owned(), key.to_owned());
        self.versions.get(&name).and_then(|versions| versions.last()).cloned()
    }

    pub(crate) fn by_entity(&self, entity: &str) -> Vec<Fact> {
        let newest = self.versions.range((entity.to_owned(), String::new())..);
        let newest = newest.take_while(|((found, _), _)| found == entity).take(LISTED_MAX);
        newest.filter_map(|(_, versions)| versions.last()).cloned().collect()
    }

    pub(crate) fn query(&self, query: &Query) -> Result<Found, FactError> {
        let mut selection = Selection::new(query);
        let prefix = selection.prefix();
        let below = self.versions.range((prefix.to_owned(), String::new())..);
        for (_, versions) in below.take_while(|((entity, _), _)| entity.starts_with(prefix)) {
            let in_time = |fact: &&Fact| query.as_of.is_none_or(|as_of| fact.stored_at <= as_of);
            if let Some(fact) = versions.iter().rev().find(in_time) {
                selection.offer(candidate(fact), || Ok(fact.clone()))?;
            }
        }
        Ok(selection.finish())
    }

    /// Costs what lies below the prefix.
    pub(crate) fn browse(&self, request: &BrowseRequest) -> Names {
        let below = self.versions.range((request.prefix.clone(), String::new())..);
        let below = below.take_while(|((entity, _), _)| entity.starts_with(&request.prefix));
        let newest = below.filter_map(|(_, versions)| versions.last());
        Walk::over(request, newest.map(|fact| (fact.entity.clone(), fact.private)).collect())
    }

    pub(crate) fn history(&self, entity: &str, key: &str) -> Vec<Fact> {
        let name = (entity.to_owned(), key.to_owned());
        self.versions.get(&name).into_iter().flatten().rev().take(LISTED_MAX).cloned().collect()
    }

    pub(crate) fn export(&self, request: &ExportRequest) -> Result<Exported, FactError> {
        let page = Page::of(request)?;
        let mut exported = Exported::default();
        let found = self.names.range(page.from.unwrap_or(0)..).filter_map(|(seq, _)| self.find(*seq));
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
