//! What a client is told without having asked: tools that have changed, tasks that go on.

use rmcp::RoleServer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, SubscriptionContext};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::task::{AbortHandle, JoinHandle};
use toolshelf_core::refusal::Refusal;

use super::backend::Backend;
use super::resources::{self, Subscriptions};
use super::who::Who;
use crate::service::Event;

/// Work that ends when it is dropped.
pub(super) struct Telling(AbortHandle);

impl From<JoinHandle<()>> for Telling {
    fn from(work: JoinHandle<()>) -> Self {
        Self(work.abort_handle())
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What is new.
enum News {
    /// Agents are offered something else.
    Tools,
    /// A resource is another.
    Resource(ResourceUpdatedNotificationParam),
}

/// Hears what is new for one client.
pub(super) struct Ears {
    who: Who,
    changes: watch::Receiver<u64>,
    events: broadcast::Receiver<Event>,
}

impl Ears {
    /// # Errors
    /// When there is no companion.
    pub(super) async fn of(backend: &Backend, who: Who) -> Result<Self, Refusal> {
        let handle = backend.handle().await?;
        let changes = handle.ask(async |service| service.desk().changes()).await?;
        Ok(Self { who, changes, events: handle.events() })
    }

    /// What is new; `None` when the companion has ended.
    async fn next(&mut self) -> Option<News> {
        loop {
            tokio::select! {
                changed = self.changes.changed() => return changed.ok().map(|()| News::Tools),
                event = self.events.recv() => match event {
                    Err(RecvError::Closed) => return None,
                    // What was missed can be read: the next change of a task is told again.
                    Err(RecvError::Lagged(_)) => {}
                    Ok(event) => if let Some(resource) = resources::updated(event, &self.who) {
                        return Some(News::Resource(resource));
                    },
                },
            }
        }
    }

    /// Tells the client of a session, until it has gone.
    pub(super) async fn tell(mut self, peer: Peer<RoleServer>, subscriptions: Subscriptions) {
        while let Some(news) = self.next().await {
            let resource = match news {
                News::Resource(resource) => resource,
                News::Tools => {
                    if peer.notify_tool_list_changed().await.is_err() {
                        return;
                    }
                    resources::catalogue_updated()
                }
            };
            if subscriptions.has(&resource.uri) && peer.notify_resource_updated(resource).await.is_err() {
                return;
            }
        }
    }

    /// Tells the client of one subscription, until it ends.
    pub(super) async fn tell_subscriber(mut self, context: &SubscriptionContext) {
        loop {
            let news = tokio::select! {
                () = context.cancelled() => return,
                news = self.next() => news,
            };
            // What was not asked for is not sent.
            let _ = match news {
                None => return,
                Some(News::Tools) => context.sink().notify_tool_list_changed().await,
                Some(News::Resource(resource)) => context.sink().notify_resource_updated(resource.uri).await,
            };
        }
    }
}
