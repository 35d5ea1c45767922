//! Signs of life: what each worker writes about itself, and what is made of it.

use serde::{Deserialize, Serialize};

use super::connection::{ClusterFault, Connection};

/// A sign of life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Presence {
    /// The worker's life; another one each time that it starts.
    pub(crate) worker: String,
    /// What people call it.
    pub(crate) name: String,
    /// The how manieth sign it is.
    pub(crate) beat: u64,
    /// Tasks that it runs at a time.
    pub(crate) slots: usize,
    /// Keys of the tasks that it runs.
    pub(crate) tasks: Vec<String>,
    /// Tasks that it has run to their ends.
    pub(crate) done: u64,
    /// Its agents.
    pub(crate) agents: Vec<PresentAgent>,
    /// Milliseconds since 1970 at which it started, by its own clock.
    pub(crate) started_ms: u64,
    /// The version of its program.
    pub(crate) version: String,
}

/// An agent of a worker.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PresentAgent {
    /// Its name.
    pub(crate) name: String,
    /// What it does.
    pub(crate) description: String,
    /// The deadline of a task that names none, in milliseconds.
    pub(crate) deadline_ms: u32,
    /// Most bytes of its answers.
    pub(crate) max_output_bytes: u32,
}

/// The worker of that life as it was last heard of, and which word that was.
///
/// # Errors
/// A [`ClusterFault`].
pub(super) async fn of(
    connection: &Connection,
    worker: &str,
) -> Result<Option<(u64, Presence)>, ClusterFault> {
    let Some(message) = connection.workers.get(worker).await? else { return Ok(None) };
    Ok(serde_json::from_slice(&message.payload).ok().map(|presence| (message.sequence, presence)))
}

/// Whether a worker is known to be gone, or not to have the task `key`, although a claim says so. Looks for a lease: who
/// writes nothing for so long has stopped by itself, whatever any clock says.
///
/// # Errors
/// A [`ClusterFault`].
pub(super) async fn is_gone(connection: &Connection, worker: &str, key: &str) -> Result<bool, ClusterFault> {
    let Some((first, _)) = of(connection, worker).await? else { return Ok(true) };
    let looks = 4;
    for _ in 0..looks {
        tokio::time::sleep(connection.config.lease() / looks).await;
        match of(connection, worker).await? {
            None => return Ok(true),
            Some((word, presence)) if word != first => {
                return Ok(!presence.tasks.iter().any(|task| task == key));
            }
            Some(_) => {}
        }
    }
    Ok(true)
}
