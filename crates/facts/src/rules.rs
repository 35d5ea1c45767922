//! What all backends decide alike: ids, the next version, which facts match and in which order they come.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::fact::{Fact, Moment, NewFact, TENANT, tokens_of};
use crate::port::{
    BULK_MAX, ExportRequest, FactError, Found, QUERY_TERMS_MAX, QUERY_TOP_K_DEFAULT, QUERY_TOP_K_MAX, Query,
    TOKEN_BUDGET_MAX,
};
use crate::port::{EXPORT_LIMIT_DEFAULT, EXPORT_LIMIT_MAX};
use crate::privacy::PrivacyRule;

/// Facts that one page of an export looks at for each one that it may answer.
const EXPORT_SCANNED_PER_FACT: usize = 10;

/// The id of the version that was stored as number `seq`.
pub(crate) fn id_of(seq: u64) -> String {
    // By hand: every fact that is read has up to three of them, and formatting costs more than finding it.
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut id = String::with_capacity("fact_".len() + 16);
    id.push_str("fact_");
    id.extend(
        seq.to_be_bytes().into_iter().flat_map(|byte| {
            [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]].map(char::from)
        }),
    );
    id
}

/// The number of the version of that id; `None` for what is no id.
pub(crate) fn seq_of(id: &str) -> Option<u64> {
    let seq = u64::from_str_radix(id.strip_prefix("fact_")?, 16).ok()?;
    (id_of(seq) == id).then_some(seq)
}

/// Checks what is to be stored at once.
pub(crate) fn check_bulk(facts: &[NewFact]) -> Result<(), FactError> {
    if facts.len() > BULK_MAX {
        return Err(FactError::TooLarge { field: "facts", bytes: facts.len(), bound: BULK_MAX });
    }
    facts.iter().try_for_each(NewFact::check)
}

/// What a version takes over from the one before.
pub(crate) struct Previous<'a> {
    pub(crate) id: &'a str,
    pub(crate) version: u64,
    pub(crate) private: bool,
}

/// The version that `new` becomes as number `seq`.
pub(crate) fn next_version(
    new: NewFact,
    seq: u64,
    at: Moment,
    previous: Option<Previous<'_>>,
    privacy: &PrivacyRule,
) -> Fact {
    let was_private = previous.as_ref().is_some_and(|previous| previous.private);
    Fact {
        fact_id: id_of(seq),
        tenant_hash: TENANT.to_owned(),
        private: new.private || was_private || privacy.is_born_private(&new.entity),
        tokens: tokens_of(&new.value),
        entity: new.entity,
        key: new.key,
        value: new.value,
        source_receipt: new.source_receipt,
        confidence: new.confidence,
        stored_at: at,
        deleted: false,
        version: previous.as_ref().map_or(1, |previous| previous.version + 1),
        supersedes: previous.map(|previous| previous.id.to_owned()),
        horizon_class: new.horizon_class,
        reverified_at: None,
        superseded_by: None,
        actor: new.actor,
        valid_from: None,
        valid_to: None,
        access_count: 0,
        last_accessed_at: None,
    }
}

/// What a query looks at in a version, without a copy of it.
#[derive(Clone, Copy)]
pub(crate) struct Candidate<'a> {
    pub(crate) seq: u64,
    pub(crate) entity: &'a str,
    pub(crate) key: &'a str,
    pub(crate) value: &'a str,
    pub(crate) confidence: f64,
    pub(crate) stored_at: Moment,
    pub(crate) tokens: u32,
    pub(crate) private: bool,
}

/// The best of the facts that match, as they are found one by one. Holds no more than it will answer, and one.
pub(crate) struct Selection<'a> {
    query: &'a Query,
    terms: Vec<String>,
    kept: BinaryHeap<Kept>,
    kept_tokens: u64,
}

impl<'a> Selection<'a> {
    pub(crate) fn new(query: &'a Query) -> Self {
        let text = query.text.as_deref().unwrap_or_default().to_lowercase();
        let terms = text.split_whitespace().take(QUERY_TERMS_MAX).map(str::to_owned).collect();
        Self { query, terms, kept: BinaryHeap::new(), kept_tokens: 0 }
    }

    /// Entities that a backend has to look at begin like this.
    pub(crate) fn prefix(&self) -> &'a str {
        self.query.entity.as_deref().or(self.query.prefix.as_deref()).unwrap_or_default()
    }

    /// The entity that a backend has to look at, where there is only one.
    pub(crate) fn entity(&self) -> Option<&'a str> {
        self.query.entity.as_deref()
    }

    /// Takes a version into account; `fact` makes it whole where it is among the best so far.
    pub(crate) fn offer(
        &mut self,
        candidate: Candidate<'_>,
        fact: impl FnOnce() -> Result<Fact, FactError>,
    ) -> Result<(), FactError> {
        if !self.matches(candidate) {
            return Ok(());
        }
        let rank = Rank {
            // Neither negative nor NaN: the bits are in the order of the numbers.
            confidence: candidate.confidence.to_bits(),
            stored_at: candidate.stored_at,
            seq: candidate.seq,
        };
        if self.is_full() && self.kept.peek().is_some_and(|worst| worst.rank > rank) {
            return Ok(());
        }
        self.kept_tokens += u64::from(candidate.tokens);
        self.kept.push(Kept { rank, fact: Box::new(fact()?) });
        while self.has_one_too_many() {
            self.kept_tokens -= self.kept.pop().map_or(0, |worst| u64::from(worst.fact.tokens));
        }
        Ok(())
    }

    /// The facts in their order.
    pub(crate) fn finish(self) -> Found {
        let budget = self.budget();
        let mut found = Found::default();
        // Ascending in the order of `Kept` is descending in rank.
        for Kept { fact, .. } in self.kept.into_sorted_vec() {
            let total_tokens = found.total_tokens + u64::from(fact.tokens);
            if budget.is_some_and(|budget| total_tokens > budget) && !found.facts.is_empty() {
                break;
            }
            found.total_tokens = total_tokens;
            found.facts.push(*fact);
        }
        found
    }

    fn matches(&self, candidate: Candidate<'_>) -> bool {
        let query = self.query;
        let is_among = |text: &str, term: &String| text.to_lowercase().contains(term.as_str());
        (query.include_private || !candidate.private)
            && query.prefix.as_deref().is_none_or(|prefix| candidate.entity.starts_with(prefix))
            && query.entity.as_deref().is_none_or(|entity| candidate.entity == entity)
            && (self.terms.is_empty()
                || self.terms.iter().any(|term| {
                    [candidate.value, candidate.key, candidate.entity].iter().any(|text| is_among(text, term))
                }))
    }

    fn budget(&self) -> Option<u64> {
        self.query.token_budget.map(|budget| budget.min(TOKEN_BUDGET_MAX))
    }

    fn top_k(&self) -> usize {
        self.query.top_k.unwrap_or(QUERY_TOP_K_DEFAULT).clamp(1, QUERY_TOP_K_MAX)
    }

    fn is_full(&self) -> bool {
        match self.budget() {
            Some(budget) => !self.kept.is_empty() && self.kept_tokens >= budget,
            None => self.kept.len() >= self.top_k(),
        }
    }

    /// Can the last fact be left out, whatever comes? With a budget, when those before it fill it.
    fn has_one_too_many(&self) -> bool {
        match self.budget() {
            Some(budget) => {
                let worst = self.kept.peek().map_or(0, |worst| u64::from(worst.fact.tokens));
                self.kept.len() > 1 && self.kept_tokens - worst >= budget
            }
            None => self.kept.len() > self.top_k(),
        }
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    confidence: u64,
    stored_at: Moment,
    seq: u64,
}

/// A fact in a heap whose top is the worst.
struct Kept {
    rank: Rank,
    /// On the heap, because a heap moves what it orders.
    fact: Box<Fact>,
}

impl Ord for Kept {
    fn cmp(&self, other: &Self) -> Ordering {
        other.rank.cmp(&self.rank)
    }
}

impl PartialOrd for Kept {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}

impl Eq for Kept {}

/// How an export's page is bounded: where it begins, how many facts it answers, how many versions it looks at.
pub(crate) struct Page {
    pub(crate) from: Option<u64>,
    pub(crate) limit: usize,
    pub(crate) scanned: usize,
}

impl Page {
    pub(crate) fn of(request: &ExportRequest) -> Result<Self, FactError> {
        let limit = request.limit.unwrap_or(EXPORT_LIMIT_DEFAULT).clamp(1, EXPORT_LIMIT_MAX);
        let bad = |cursor: &String| FactError::BadCursor(toolshelf_core::refusal::cut(cursor, 100));
        let from = match &request.cursor {
            Some(cursor) => Some(seq_of(cursor).ok_or_else(|| bad(cursor))?),
            None => None,
        };
        Ok(Self { from, limit, scanned: limit.saturating_mul(EXPORT_SCANNED_PER_FACT) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_spelling() {
        assert_eq!(id_of(255), "fact_00000000000000ff");
        assert_eq!(seq_of(&id_of(u64::MAX)), Some(u64::MAX));
        for bad in ["", "fact_", "fact_ff", "fact_00000000000000FF", "fact_+0000000000000ff", "x", "é"] {
            assert_eq!(seq_of(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_private_fact_stays_private() {
        let rule = PrivacyRule::default();
        let next =
            |previous| next_version(NewFact::new("a", "k", "v"), 7, Moment::default(), previous, &rule);
        let first = next(None);
        assert_eq!((first.version, first.private, first.supersedes), (1, false, None));
        let second = next(Some(Previous { id: "fact_x", version: 3, private: true }));
        assert_eq!((second.version, second.private, second.supersedes.as_deref()), (4, true, Some("fact_x")));
    }
}
