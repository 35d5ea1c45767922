//! Compiling one module in a worker of its own, under its limits of time and memory.

use std::time::Duration;

use tokio::time::timeout;
use toolshelf_core::call::RunEnd;
use toolshelf_host::CompileFault;

use super::keeper::Keeper;
use super::lease::{Lease, NoAnswer};
use super::wire::{JobHeader, Said, What};
use super::{COMPILED_MAX_BYTES, Kind};

/// Has a worker of that kind compile a module. Past the deadline it is ended.
pub(super) async fn in_worker(keeper: &Keeper, kind: Kind, module: &[u8]) -> Result<Vec<u8>, CompileFault> {
    let compiling = async {
        let header = JobHeader::new(What::Compile, &[], module)
            .ok_or_else(|| CompileFault::TooCostly("the module is too large for a worker".to_owned()))?;
        let mut lease = Lease::started(keeper.start(kind, None))
            .await
            .map_err(|err| CompileFault::TooCostly(format!("no worker could be started: {err}")))?;
        if let Err(err) = lease.give(header, &[], module).await {
            return Err(lost(lease, NoAnswer::Ended(err)).await);
        }
        match lease.answer().await {
            Ok(Said::Code(code)) if code.len() <= COMPILED_MAX_BYTES => Ok(code),
            Ok(Said::Invalid(why)) => Err(CompileFault::Invalid(why)),
            Ok(_) => Err(CompileFault::Silent("it answered another question".to_owned())),
            Err(why) => Err(lost(lease, why).await),
        }
    };
    let deadline = Duration::from_millis(kind.deadline_ms().into());
    timeout(deadline, compiling).await.unwrap_or(Err(CompileFault::DeadlinePassed))
}

async fn lost(lease: Lease, why: NoAnswer) -> CompileFault {
    match lease.end_without(why).await {
        RunEnd::Exceeded(why) => CompileFault::TooCostly(why),
        end => CompileFault::Silent(format!("{end:?}")),
    }
}
