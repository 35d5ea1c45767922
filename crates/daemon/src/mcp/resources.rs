//! What can be read: the catalogue, tasks with their answers, receipts.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{Resource, ResourceContents, ResourceTemplate, ResourceUpdatedNotificationParam};
use serde_json::{Value, json};
use toolshelf_core::refusal::{Code, Refusal, cut};

use super::who::Who;
use crate::service::{Event, Service};

const CATALOGUE: &str = "toolshelf://catalogue";
const RECEIPTS: &str = "toolshelf://receipts";
/// In front of a task's address.
const TASK: &str = "toolshelf://tasks/";
/// All of ours begin like this.
const OURS: &str = "toolshelf://";
const JSON: &str = "application/json";

/// Tasks that are listed, the newest ones.
const TASKS_LISTED: usize = 50;
/// Receipts that are read, the newest ones.
const RECEIPTS_READ: usize = 50;
/// Resources that one session may hear of.
const SUBSCRIPTIONS_MAX: usize = 256;
/// Longest address of a resource, in bytes.
const URI_MAX_BYTES: usize = 2_048;

/// What a session wants to hear of. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Subscriptions {
    uris: Arc<Mutex<BTreeSet<String>>>,
}

impl Subscriptions {
    /// # Errors
    /// [`Code::OverBudget`] for too many, or one that is too long. A resource need not be there yet.
    pub(super) fn add(&self, uri: &str) -> Result<(), Refusal> {
        let mut uris = self.uris.lock().unwrap_or_else(PoisonError::into_inner);
        if uri.len() > URI_MAX_BYTES || uris.len() >= SUBSCRIPTIONS_MAX {
            let why = format!(
                "a session has at most {SUBSCRIPTIONS_MAX} subscriptions, each of at most {URI_MAX_BYTES} bytes"
            );
            return Err(Refusal::new(Code::OverBudget, why));
        }
        uris.insert(uri.to_owned());
        Ok(())
    }

    pub(super) fn remove(&self, uri: &str) {
        self.uris.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
    }

    pub(super) fn has(&self, uri: &str) -> bool {
        self.uris.lock().unwrap_or_else(PoisonError::into_inner).contains(uri)
    }
}

/// Whether there may be such a resource.
pub(super) fn is_ours(uri: &str) -> bool {
    uri.starts_with(OURS) && uri.len() <= URI_MAX_BYTES
}

/// The resource that an event is about, if it is one of `who`'s.
pub(super) fn updated(event: Event, who: &Who) -> Option<ResourceUpdatedNotificationParam> {
    match event {
        Event::Task { owner, view } if owner == who.session().owner => {
            Some(ResourceUpdatedNotificationParam::new(format!("{TASK}{}", view.address)))
        }
        _ => None,
    }
}

pub(super) fn catalogue_updated() -> ResourceUpdatedNotificationParam {
    ResourceUpdatedNotificationParam::new(CATALOGUE)
}

/// Addresses with a part that the client fills in.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{TASK}{{address}}"), "task")
            .with_description("A task's state, and its answer when it has ended")
            .with_mime_type(JSON),
    ]
}

impl Service {
    /// What there is to read.
    pub(super) async fn agent_resources(&self, who: &Who) -> Result<Vec<Resource>, Refusal> {
        let mut resources = vec![
            Resource::new(CATALOGUE, "catalogue")
                .with_title("The catalogue")
                .with_description("Every tool with its digest, its arguments and how it stands")
                .with_mime_type(JSON),
            Resource::new(RECEIPTS, "receipts")
                .with_title("Receipts")
                .with_description("What extensions have put on record on behalf of agents, the newest first")
                .with_mime_type(JSON),
        ];
        let args = json!({ "limit": TASKS_LISTED });
        let args = args.as_object().cloned().unwrap_or_default();
        let tasks = self.command("list_tasks", &args, &who.session()).await?;
        for row in tasks["rows"].as_array().into_iter().flatten() {
            let view = &row["view"];
            let Some(address) = view["address"].as_str() else { continue };
            let text = |name: &str| view[name].as_str().unwrap_or_default();
            resources.push(
                Resource::new(format!("{TASK}{address}"), format!("task {}", text("agent")))
                    .with_description(format!("{}, {}", text("agent"), text("state")))
                    .with_mime_type(JSON),
            );
        }
        Ok(resources)
    }

    /// What is in the resource `uri`; `None` where there is none.
    pub(super) async fn agent_resource(
        &self,
        who: &Who,
        uri: &str,
    ) -> Result<Option<ResourceContents>, Refusal> {
        let value = match uri {
            CATALOGUE => self.agent_inventory(who).await?,
            RECEIPTS => self.agent_receipts(who).await?,
            _ => match uri.strip_prefix(TASK) {
                Some(address) => match self.agent_status(who, address).await {
                    Ok(status) => status,
                    Err(refusal) if is_unknown(refusal.code) => return Ok(None),
                    Err(refusal) => return Err(refusal),
                },
                None => return Ok(None),
            },
        };
        Ok(Some(ResourceContents::text(value.to_string(), uri).with_mime_type(JSON)))
    }

    async fn agent_status(&self, who: &Who, address: &str) -> Result<Value, Refusal> {
        let args = json!({ "address": cut(address, URI_MAX_BYTES) });
        let args = args.as_object().cloned().unwrap_or_default();
        self.command("task_status", &args, &who.session()).await
    }

    /// Receipts of calls that agents have made: no other passport's, and of a client with a list of tools only those of
    /// its tools.
    async fn agent_receipts(&self, who: &Who) -> Result<Value, Refusal> {
        let Some(host) = self.extensions_of_agents() else {
            return Ok(json!({ "ok": true, "receipts": [] }));
        };
        let catalogue = self.catalogue().await?;
        let passport = self.desk().passport.clone();
        let who = who.clone();
        let theirs: BTreeSet<String> =
            catalogue.rows.values().filter(|row| who.may(row.name())).map(|row| row.key.clone()).collect();
        let receipts = host
            .on_thread(move |host| Ok(host.receipts().newest(RECEIPTS_READ, None)?))
            .await?
            .into_iter()
            .filter(|receipt| {
                let body = &receipt.body;
                let key = format!("extension:{}/{}", body.extension_id, body.tool);
                body.passport_fpr == passport && (who.may_all() || theirs.contains(&key))
            });
        Ok(json!({ "ok": true, "receipts": receipts.collect::<Vec<_>>() }))
    }
}

/// What no client can tell apart: a task that is not there, or is somebody else's.
fn is_unknown(code: Code) -> bool {
    [Code::TaskNotFound, Code::TaskOwnerMismatch, Code::InvalidTaskAddress, Code::TaskEnvironmentChanged]
        .contains(&code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_hears_of_what_it_asked_for_and_is_bounded() {
        let subscriptions = Subscriptions::default();
        subscriptions.add("toolshelf://tasks/a").unwrap();
        assert!(subscriptions.has("toolshelf://tasks/a") && !subscriptions.has("toolshelf://tasks/b"));
        subscriptions.remove("toolshelf://tasks/a");
        assert!(!subscriptions.has("toolshelf://tasks/a"));
        assert!(subscriptions.add(&"x".repeat(URI_MAX_BYTES + 1)).is_err());
        for at in 0..SUBSCRIPTIONS_MAX {
            subscriptions.add(&at.to_string()).unwrap();
        }
        assert_eq!(subscriptions.add("one more").unwrap_err().code, Code::OverBudget);
    }
}
