//! Signs of life: what each worker writes about itself, and what is made of it.

use serde::{Deserialize, Serialize};

use super::connection::{ClusterFault, Connection};

/// How often a worker is looked at in one lease, and for how many looks it has to be silent to be gone: a worker finds
/// out a little later than a lease that it is not heard of.
const LOOKS_PER_LEASE: u32 = 4;
const LOOKS_OF_SILENCE: u32 = 6;

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
    /// Keys of the tasks that it runs, or is about to.
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

/// Whether a worker is known to be gone, or not to have the task `key`, although a claim says so. Looks for longer than
/// a lease: who writes nothing for so long has stopped by itself, whatever any clock says. A word that was on its way
/// when the task was taken does not count, so that two must say that it is not there.
///
/// # Errors
/// A [`ClusterFault`].
pub(super) async fn is_gone(connection: &Connection, worker: &str, key: &str) -> Result<bool, ClusterFault> {
    let Some((mut last, _)) = of(connection, worker).await? else { return Ok(true) };
    let (mut silent, mut without) = (0, 0);
    while silent < LOOKS_OF_SILENCE && without < 2 {
        tokio::time::sleep(connection.config.lease() / LOOKS_PER_LEASE).await;
        match of(connection, worker).await? {
            None => return Ok(true),
            Some((word, _)) if word == last => silent += 1,
            Some((_, presence)) if presence.tasks.iter().any(|task| task == key) => return Ok(false),
            Some((word, _)) => (last, silent, without) = (word, 0, without + 1),
        }
    }
    Ok(true)
}
