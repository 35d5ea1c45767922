//! Where facts are kept: in a file of this computer, or in the cluster.

use std::path::Path;

use async_nats::ConnectOptions;
use toolshelf_facts::{
    BrowseRequest, Deleted, ExportRequest, Exported, Fact, FactError, FactStore, Found, Moment, Names,
    NatsOptions, NatsStore, NewFact, PrivacyRule, Query, RedbStore,
};

/// The facts of a cluster, and how it is reached.
#[derive(Debug, Clone)]
pub(crate) struct SharedFacts {
    /// Where they are.
    pub(crate) options: NatsOptions,
    /// How clients connect.
    pub(crate) connect: ConnectOptions,
}

/// A store of facts.
#[derive(Debug)]
pub(crate) enum Facts {
    /// In a file.
    File(RedbStore),
    /// In a cluster.
    Cluster(NatsStore),
}

impl Facts {
    /// Opens those of the cluster, where there is one, and else those of the file.
    ///
    /// # Errors
    /// [`FactError::Unavailable`].
    pub(crate) fn open(
        file: &Path,
        shared: Option<SharedFacts>,
        privacy: PrivacyRule,
    ) -> Result<Self, FactError> {
        match shared {
            None => RedbStore::open(file, privacy).map(Self::File),
            Some(SharedFacts { options, connect }) => {
                NatsStore::open(&options, connect, privacy).map(Self::Cluster)
            }
        }
    }
}

macro_rules! either {
    ($self:ident, $call:ident ( $($argument:expr),* )) => {
        match $self {
            Facts::File(store) => store.$call($($argument),*).await,
            Facts::Cluster(store) => store.$call($($argument),*).await,
        }
    };
}

impl FactStore for Facts {
    async fn store(&self, fact: NewFact, at: Moment) -> Result<Fact, FactError> {
        either!(self, store(fact, at))
    }

    async fn store_bulk(&self, facts: Vec<NewFact>, at: Moment) -> Result<Vec<Fact>, FactError> {
        either!(self, store_bulk(facts, at))
    }

    async fn latest(&self, entity: &str, key: &str) -> Result<Option<Fact>, FactError> {
        either!(self, latest(entity, key))
    }

    async fn get(&self, id: &str) -> Result<Option<Fact>, FactError> {
        either!(self, get(id))
    }

    async fn by_entity(&self, entity: &str) -> Result<Vec<Fact>, FactError> {
        either!(self, by_entity(entity))
    }

    async fn query(&self, query: &Query) -> Result<Found, FactError> {
        either!(self, query(query))
    }

    async fn browse(&self, request: &BrowseRequest) -> Result<Names, FactError> {
        either!(self, browse(request))
    }

    async fn history(&self, entity: &str, key: &str) -> Result<Vec<Fact>, FactError> {
        either!(self, history(entity, key))
    }

    async fn delete(&self, id: &str) -> Result<Deleted, FactError> {
        either!(self, delete(id))
    }

    async fn export(&self, request: &ExportRequest) -> Result<Exported, FactError> {
        either!(self, export(request))
    }
}
