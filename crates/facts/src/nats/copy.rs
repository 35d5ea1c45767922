//! What a store knows of the log: the facts as far as it has read it, and where each stands.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::entry::Entry;
use crate::fact::Fact;
use crate::rules::seq_of;
use crate::versions::Versions;

/// So many writes are remembered, to know one's own again.
const WRITERS_KEPT: usize = 256;

/// The copy.
#[derive(Debug, Default)]
pub(super) struct Copy {
    facts: Versions,
    /// The place of the last entry that was taken, from 1 on.
    applied: u64,
    /// Where the version of a number stands.
    places: BTreeMap<u64, u64>,
    /// Versions that are stored together, as long as not all are there: the number of the first, and where each stands.
    group: Option<(u64, Vec<(u64, Fact)>)>,
    /// Places of what is deleted and may still be readable.
    doomed: BTreeSet<u64>,
    writers: VecDeque<u64>,
}

impl Copy {
    pub(super) fn facts(&self) -> &Versions {
        &self.facts
    }

    /// The place of the last entry that was taken.
    pub(super) fn applied(&self) -> u64 {
        self.applied
    }

    /// The log goes on to `place`; what is missing before is erased.
    pub(super) fn passed(&mut self, place: u64) {
        self.applied = self.applied.max(place);
    }

    /// Whether a write was found in the log as a whole.
    pub(super) fn has_of(&self, writer: u64) -> bool {
        self.writers.contains(&writer)
    }

    /// A place of what is to be overwritten.
    pub(super) fn next_doomed(&self) -> Option<u64> {
        self.doomed.first().copied()
    }

    pub(super) fn erased(&mut self, place: u64) {
        self.doomed.remove(&place);
    }

    /// Takes the entry at `place`.
    pub(super) fn apply(&mut self, place: u64, entry: Entry, writer: u64) {
        self.passed(place);
        let complete = match entry {
            Entry::Version { fact, group: Some(first) } => {
                if self.group.as_ref().is_some_and(|(open, _)| *open != first)
                    || Some(first) == seq_of(&fact.fact_id)
                {
                    self.give_up_group();
                }
                self.group.get_or_insert_with(|| (first, Vec::new())).1.push((place, *fact));
                false
            }
            Entry::Version { fact, group: None } => {
                self.give_up_group();
                self.take(place, *fact);
                true
            }
            Entry::Complete { group: first } => {
                let group = self.group.take_if(|(open, _)| *open == first);
                for (place, fact) in group.into_iter().flat_map(|(_, facts)| facts) {
                    self.take(place, fact);
                }
                self.give_up_group();
                true
            }
            Entry::Deleted { gone, next_seq, stored_at } => {
                self.give_up_group();
                self.facts.go_on(next_seq, stored_at);
                let seqs: Vec<u64> = gone.iter().map(|gone| gone.seq).collect();
                self.facts.remove(&seqs);
                for gone in &gone {
                    self.doomed.extend(self.places.remove(&gone.seq));
                    if let Some(after) = &gone.after {
                        self.facts.superseded(after, &crate::rules::id_of(gone.seq));
                    }
                }
                true
            }
        };
        if complete {
            self.writers.push_back(writer);
            if self.writers.len() > WRITERS_KEPT {
                self.writers.pop_front();
            }
        }
    }

    fn take(&mut self, place: u64, fact: Fact) {
        self.places.extend(seq_of(&fact.fact_id).map(|seq| (seq, place)));
        self.facts.insert(fact);
    }

    /// Versions that were to be stored together and are not: their values may not stay readable, since nobody could ask
    /// for their deletion.
    fn give_up_group(&mut self) {
        let group = self.group.take();
        self.doomed.extend(group.into_iter().flat_map(|(_, facts)| facts).map(|(place, _)| place));
    }
}
