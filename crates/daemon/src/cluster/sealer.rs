//! The key that seals the cluster's addresses: made by who comes first, kept in the cluster, and the same for all who
//! admit there. The environment's name follows from it.

use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_sandbox::private;

use super::connection::{ClusterFault, Connection};
use crate::machine::sealer::{FileSealer, KEY_BYTES};

/// The key's name in its bucket.
const KEY: &str = "task.key";

/// The cluster's key.
///
/// # Errors
/// [`Code::TaskEnvironmentUnverified`], and a [`ClusterFault`]'s refusal.
pub(super) async fn open(connection: &Connection) -> Result<FileSealer, Refusal> {
    let mut fresh = [0; KEY_BYTES];
    private::fill_random(&mut fresh).map_err(|err| unverified(&err.to_string()))?;
    match connection.meta.create(KEY, fresh.to_vec()).await {
        Ok(_) | Err(ClusterFault::Stale) => {}
        Err(fault) => return Err(fault.into()),
    }
    let kept = connection.meta.get(KEY).await?.ok_or_else(|| unverified("it is gone again"))?;
    let key = kept.payload.as_ref().try_into().map_err(|_| unverified("it is of another length"))?;
    Ok(FileSealer::of_key(key))
}

fn unverified(why: &str) -> Refusal {
    Refusal::new(Code::TaskEnvironmentUnverified, format!("the key of the cluster cannot be used: {why}"))
}
