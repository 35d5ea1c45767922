//! Facts, as clients read and write them.
//!
//! Clients are those who hold this computer's token. They see private facts where they ask for them; they write neither
//! private facts nor those of entities that decide who may do what, and delete none of these.

use serde::{Deserialize, Serialize};
use toolshelf_core::refusal::cut;
use toolshelf_core::reserved::NO_CLIENT_WRITE_PREFIXES;
use toolshelf_facts::privacy::check_client_write;
use toolshelf_facts::{
    Deleted, ExportRequest, Exported, Fact, FactError, FactStore as _, Found, Moment, NewFact, Query,
};

use super::{ExtError, Extensions, wait};

/// Most facts that a query of a client answers.
pub(crate) const CLIENT_TOP_K_MAX: usize = 100;

/// What a client looks for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct FactsQuery {
    /// Words; one of them stands in value, key or entity.
    pub(crate) query: Option<String>,
    /// This entity.
    pub(crate) entity: Option<String>,
    /// Entities that begin like this.
    pub(crate) entity_prefix: Option<String>,
    /// How many facts: 10 where it is left out, at most [`CLIENT_TOP_K_MAX`].
    pub(crate) top_k: Option<usize>,
    /// As many facts as fit into so many tokens; then `top_k` does not count.
    pub(crate) token_budget: Option<u64>,
    /// The versions that were the newest at that moment, in RFC 3339.
    pub(crate) as_of: Option<String>,
    /// Private facts, too.
    pub(crate) include_private: bool,
}

/// Which page of an export.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct FactsExport {
    /// Facts that were stored then or later, in RFC 3339.
    pub(crate) since: Option<String>,
    /// Where the page before has ended.
    pub(crate) cursor: Option<String>,
    /// How many facts.
    pub(crate) limit: Option<usize>,
}

/// One page of an export.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ExportPage {
    /// The facts, where the next page begins, and whether there is one.
    #[serde(flatten)]
    pub(crate) page: Exported,
    /// When it was made.
    pub(crate) exported_at: Moment,
}

impl Extensions {
    /// Stores a fact for a client.
    ///
    /// # Errors
    /// A [`FactError`].
    pub(crate) fn store_fact(&self, fact: NewFact) -> Result<Fact, ExtError> {
        check_client_write(&fact)?;
        Ok(wait(self.inner.facts.store(fact, self.moment()))?)
    }

    /// Stores all facts or none.
    ///
    /// # Errors
    /// A [`FactError`].
    pub(crate) fn store_facts(&self, facts: Vec<NewFact>) -> Result<Vec<Fact>, ExtError> {
        facts.iter().try_for_each(check_client_write)?;
        Ok(wait(self.inner.facts.store_bulk(facts, self.moment()))?)
    }

    /// The newest versions that match, the surest first.
    ///
    /// # Errors
    /// A [`FactError`], also for an `as_of` that is no moment.
    pub(crate) fn query_facts(&self, query: FactsQuery) -> Result<Found, ExtError> {
        let query = Query {
            prefix: query.entity_prefix,
            entity: query.entity,
            text: query.query,
            top_k: query.top_k.map(|top_k| top_k.clamp(1, CLIENT_TOP_K_MAX)),
            token_budget: query.token_budget,
            as_of: query.as_of.as_deref().map(|text| moment("as_of", text)).transpose()?,
            include_private: query.include_private,
        };
        Ok(wait(self.inner.facts.query(&query))?)
    }

    /// The version of that id.
    ///
    /// # Errors
    /// A [`FactError`]; [`FactError::NotFound`] where there is none.
    pub(crate) fn fact(&self, id: &str) -> Result<Fact, ExtError> {
        let fact = wait(self.inner.facts.get(id))?;
        Ok(fact.ok_or_else(|| FactError::NotFound(cut(id, 200)))?)
    }

    /// The newest versions of an entity's facts.
    ///
    /// # Errors
    /// A [`FactError`].
    pub(crate) fn facts_of(&self, entity: &str) -> Result<Vec<Fact>, ExtError> {
        Ok(wait(self.inner.facts.by_entity(entity))?)
    }

    /// Every version of a fact, the newest first.
    ///
    /// # Errors
    /// A [`FactError`].
    pub(crate) fn fact_history(&self, entity: &str, key: &str) -> Result<Vec<Fact>, ExtError> {
        Ok(wait(self.inner.facts.history(entity, key))?)
    }

    /// Deletes a fact for good: with the newest version go all, with an older one that alone. Nothing readable is left.
    ///
    /// # Errors
    /// A [`FactError`]; [`FactError::Reserved`] for what no client writes.
    pub(crate) fn delete_fact(&self, id: &str) -> Result<Deleted, ExtError> {
        let fact = self.fact(id)?;
        if NO_CLIENT_WRITE_PREFIXES.iter().any(|prefix| fact.entity.starts_with(prefix)) {
            return Err(FactError::Reserved(cut(&fact.entity, 200)).into());
        }
        Ok(wait(self.inner.facts.delete(id))?)
    }

    /// One page of all facts that are not private.
    ///
    /// # Errors
    /// A [`FactError`], also for a `since` that is no moment and a cursor that none has answered.
    pub(crate) fn export_facts(&self, request: FactsExport) -> Result<ExportPage, ExtError> {
        let since = request.since.as_deref().map(|text| moment("since", text)).transpose()?;
        let request = ExportRequest { since, cursor: request.cursor, limit: request.limit };
        let page = wait(self.inner.facts.export(&request))?;
        Ok(ExportPage { page, exported_at: self.moment() })
    }

    fn moment(&self) -> Moment {
        Moment::from_unix_ms(self.now())
    }
}

fn moment(field: &str, text: &str) -> Result<Moment, FactError> {
    Moment::parse(text)
        .ok_or_else(|| FactError::Invalid(format!("{field} '{}' is no moment of RFC 3339", cut(text, 60))))
}
