//! What every backend does, and how it says no.

use std::future::Future;

use serde::{Deserialize, Serialize};
use toolshelf_core::problem::{Problem, ProblemKind};
use toolshelf_core::refusal::{Code, Refusal};

use crate::browse::{BrowseRequest, Names};
use crate::fact::{Fact, Moment, NewFact};

/// Facts that a query answers where it does not say how many.
pub const QUERY_TOP_K_DEFAULT: usize = 10;
/// Most facts that a query answers.
pub const QUERY_TOP_K_MAX: usize = 256;
/// Most tokens that a query may ask for.
pub const TOKEN_BUDGET_MAX: u64 = 1_000_000;
/// Most words of a query's text that are looked for; the rest is ignored.
pub const QUERY_TERMS_MAX: usize = 32;
/// Facts of one page of an export where it does not say how many.
pub const EXPORT_LIMIT_DEFAULT: usize = 1_000;
/// Most facts of one page of an export.
pub const EXPORT_LIMIT_MAX: usize = 10_000;
/// Most facts that are stored at once.
pub const BULK_MAX: usize = 10_000;
/// Most facts of one entity, or versions of one fact, that are listed; the newest ones of a history.
pub const LISTED_MAX: usize = 10_000;

/// Why a fact store did not do what it was asked.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum FactError {
    /// Something that is not of its form.
    #[error("invalid fact: {0}")]
    Invalid(String),
    /// Something that is larger than its bound.
    #[error("invalid fact: {field} of {bytes} exceeds the bound of {bound}")]
    TooLarge {
        /// What.
        field: &'static str,
        /// How large it is, in bytes or items.
        bytes: usize,
        /// How large it may be.
        bound: usize,
    },
    /// No fact of that id.
    #[error("fact '{0}' not found")]
    NotFound(String),
    /// An entity of the system, which no client writes.
    #[error("entity '{0}' is reserved and cannot be written by clients")]
    Reserved(String),
    /// A client asks for a private fact.
    #[error("private facts cannot be written by clients")]
    PrivateFromClient,
    /// A cursor that no export has answered.
    #[error("invalid cursor '{0}'")]
    BadCursor(String),
    /// The store failed. Nothing of the request was done; or all of it, where the last step of a write failed and nobody
    /// can tell.
    #[error("fact store unavailable: {0}")]
    Unavailable(String),
    /// The fact was taken out of the store, but its bytes could not be taken out of the file yet; opening the store
    /// again tries once more.
    #[error("fact deleted, but not yet erased: {0}")]
    NotErased(String),
}

impl FactError {
    /// What kind of problem it is over HTTP.
    #[must_use]
    pub const fn kind(&self) -> ProblemKind {
        match self {
            Self::Invalid(_) | Self::PrivateFromClient | Self::BadCursor(_) => ProblemKind::BadRequest,
            Self::TooLarge { .. } => ProblemKind::PayloadTooLarge,
            Self::NotFound(_) => ProblemKind::NotFound,
            Self::Reserved(_) => ProblemKind::Forbidden,
            Self::Unavailable(_) | Self::NotErased(_) => ProblemKind::Unavailable,
        }
    }

    /// The problem document that it is over HTTP.
    #[must_use]
    pub fn problem(&self) -> Problem {
        Problem::new(self.kind(), self.to_string())
    }
}

impl From<FactError> for Refusal {
    fn from(error: FactError) -> Self {
        let code = match error {
            FactError::Invalid(_) | FactError::BadCursor(_) => Code::FactInvalid,
            FactError::TooLarge { .. } => Code::OverBudget,
            FactError::NotFound(_) => Code::FactNotFound,
            FactError::Reserved(_) | FactError::PrivateFromClient => Code::FactReserved,
            FactError::Unavailable(_) | FactError::NotErased(_) => Code::FactStoreUnavailable,
        };
        Self::new(code, error.to_string())
    }
}

/// What is looked for. Everything that is given must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query {
    /// Entities that begin like this.
    pub prefix: Option<String>,
    /// This entity.
    pub entity: Option<String>,
    /// Words, with white space between them; one of them stands in value, key or entity, in whatever case.
    pub text: Option<String>,
    /// How many facts, from 1 to [`QUERY_TOP_K_MAX`]; [`QUERY_TOP_K_DEFAULT`] where it is left out.
    pub top_k: Option<usize>,
    /// As many facts as fit into so many tokens, at least one. Then `top_k` does not count.
    pub token_budget: Option<u64>,
    /// The versions that were the newest at that moment.
    pub as_of: Option<Moment>,
    /// Are private facts looked at?
    pub include_private: bool,
}

/// What was found: the surest first, and of equally sure ones the newest.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Found {
    /// The facts.
    pub facts: Vec<Fact>,
    /// Sum of their tokens.
    pub total_tokens: u64,
}

/// Which page of an export.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExportRequest {
    /// Facts that were stored then or later.
    pub since: Option<Moment>,
    /// Where the page before has ended.
    pub cursor: Option<String>,
    /// How many facts, from 1 to [`EXPORT_LIMIT_MAX`]; [`EXPORT_LIMIT_DEFAULT`] where it is left out.
    pub limit: Option<usize>,
}

/// One page of an export, in the order of storing: every version of every fact that is not private.
///
/// A page may have fewer facts than were asked for, or none, and still be followed by another: private facts are passed
/// over, and not without end in one page.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Exported {
    /// The facts.
    pub facts: Vec<Fact>,
    /// Where the next page begins.
    pub next_cursor: Option<String>,
    /// Is there a next page?
    pub has_more: bool,
}

/// What deleting has taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deleted {
    /// How many versions.
    pub versions: u64,
}

/// A store of facts.
///
/// Reads see either all of a write or nothing of it, and what was acknowledged. The newest version of a pair of entity
/// and key is the one with the highest number, whatever its confidence.
pub trait FactStore: Send + Sync {
    /// Stores a fact at the moment `at`. When the future ends, it survives the end of the process, where the backend
    /// keeps facts at all.
    ///
    /// # Errors
    /// [`FactError::Invalid`], [`FactError::TooLarge`], [`FactError::Unavailable`].
    fn store(&self, fact: NewFact, at: Moment) -> impl Future<Output = Result<Fact, FactError>> + Send;

    /// Stores all facts or none. One pair may come more than once; each makes a version.
    ///
    /// # Errors
    /// As [`store`](Self::store).
    fn store_bulk(
        &self,
        facts: Vec<NewFact>,
        at: Moment,
    ) -> impl Future<Output = Result<Vec<Fact>, FactError>> + Send;

    /// The newest version.
    ///
    /// # Errors
    /// [`FactError::Unavailable`], as with every read.
    fn latest(&self, entity: &str, key: &str)
    -> impl Future<Output = Result<Option<Fact>, FactError>> + Send;

    /// The version of that id, also if there are newer ones.
    ///
    /// # Errors
    /// As [`latest`](Self::latest).
    fn get(&self, id: &str) -> impl Future<Output = Result<Option<Fact>, FactError>> + Send;

    /// The newest versions of an entity's facts, by their keys; at most [`LISTED_MAX`].
    ///
    /// # Errors
    /// As [`latest`](Self::latest).
    fn by_entity(&self, entity: &str) -> impl Future<Output = Result<Vec<Fact>, FactError>> + Send;

    /// The newest versions that match. Costs what lies below prefix or entity, however much the store holds.
    ///
    /// # Errors
    /// As [`latest`](Self::latest).
    fn query(&self, query: &Query) -> impl Future<Output = Result<Found, FactError>> + Send;

    /// The names directly below a prefix. A file is searched from name to name, however much lies below each.
    ///
    /// # Errors
    /// As [`latest`](Self::latest).
    fn browse(&self, request: &BrowseRequest) -> impl Future<Output = Result<Names, FactError>> + Send;

    /// Every version of a fact, the newest first; at most [`LISTED_MAX`].
    ///
    /// # Errors
    /// As [`latest`](Self::latest).
    fn history(&self, entity: &str, key: &str) -> impl Future<Output = Result<Vec<Fact>, FactError>> + Send;

    /// Deletes for good. The id of the newest version stands for the fact: all its versions go, so that no older one
    /// comes back as the newest. The id of an older version takes away that version alone. When the future ends, no
    /// readable copy of what was deleted is left in what the backend keeps.
    ///
    /// # Errors
    /// [`FactError::NotFound`], [`FactError::Unavailable`], [`FactError::NotErased`].
    fn delete(&self, id: &str) -> impl Future<Output = Result<Deleted, FactError>> + Send;

    /// One page of all facts.
    ///
    /// # Errors
    /// [`FactError::BadCursor`], [`FactError::Unavailable`].
    fn export(&self, request: &ExportRequest) -> impl Future<Output = Result<Exported, FactError>> + Send;
}
