//! `toolshelf stdio`: frames for a parent process.

use std::path::PathBuf;

use tokio::io::BufReader;
use toolshelf_core::live::CallOrigin;
use toolshelf_core::refusal::{Code, Refusal};

use super::outcome::Outcome;
use crate::frames::session;
use crate::service::{OWNER, Service, ServiceOptions, Session};

/// Answers until the parent closes our standard input. What still runs then is ended.
pub(crate) async fn run(shelf: Option<PathBuf>, roots: Vec<PathBuf>) -> Result<Outcome, Refusal> {
    let service = Service::open(ServiceOptions { shelf, roots, ..ServiceOptions::default() }).await?;
    let session = Session { owner: OWNER.to_owned(), from: CallOrigin::Cli };
    let reader = BufReader::new(tokio::io::stdin());
    let served = session::serve(&service, session, reader, tokio::io::stdout()).await;
    service.shut_down().await;
    served.map_err(|err| {
        Refusal::new(Code::StorageUnavailable, format!("the standard input cannot be read: {err}"))
    })?;
    // The output is the frames' alone.
    Ok(Outcome::silent())
}
