//! The companion that a command talks to: the one that runs, if it serves the folder that is meant, or else this very
//! process. Either answers frames.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncWrite, BufReader};
use tokio::time::timeout;
use toolshelf_core::RootDescriptor;
use toolshelf_core::live::{CallNotice, CallOrigin, MachineEnvironment, MachineRoot};
use toolshelf_core::refusal::{Code, Refusal};

use crate::frames::client::Client;
use crate::frames::{session, socket};
use crate::service::{OWNER, Service, ServiceOptions, Session};
use crate::settings;

/// A client, whatever is on the other side.
pub(crate) type AnyClient = Client<Box<dyn AsyncWrite + Unpin>>;

/// How long a companion may take to say that it is there.
const PATIENCE: Duration = Duration::from_secs(2);
/// So much is on its way between this process and itself.
const PIPE_BYTES: usize = 64 * 1024;

/// A companion.
pub(crate) struct Companion {
    /// The connection.
    pub(crate) client: AnyClient,
    /// The service, where this process is the companion.
    here: Option<Service>,
}

impl Companion {
    /// The companion whose tasks work in `root`.
    ///
    /// # Errors
    /// What stands against being one.
    pub(crate) async fn for_root(shelf: Option<PathBuf>, root: &Path) -> Result<Self, Refusal> {
        let root = root.canonicalize().map_err(|err| {
            Refusal::new(Code::TaskRootUnavailable, format!("{} cannot be used: {err}", root.display()))
        })?;
        // Another shelf than the running companion's may be meant.
        if shelf.is_none()
            && let Some(mut running) = running().await
            && serves(&mut running.client, &root).await
        {
            return Ok(running);
        }
        Self::here(ServiceOptions { shelf, roots: vec![root], ..ServiceOptions::default() }).await
    }

    /// This process as the companion.
    async fn here(options: ServiceOptions) -> Result<Self, Refusal> {
        let service = Service::open(options).await?;
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let (reader, writer) = tokio::io::split(ours);
        let client = AnyClient::new(BufReader::new(reader), Box::new(writer));
        let serving = service.clone();
        tokio::task::spawn_local(async move {
            let (reader, writer) = tokio::io::split(theirs);
            let session = Session { owner: OWNER.to_owned(), from: CallOrigin::Cli };
            // The pipe has no faults of its own.
            let _ = session::serve(&serving, session, BufReader::new(reader), writer).await;
        });
        Ok(Self { client, here: Some(service) })
    }

    /// Whether tasks go on after this process.
    pub(crate) fn outlives_us(&self) -> bool {
        self.here.is_none()
    }

    /// Ends what this process has begun.
    pub(crate) async fn close(self) {
        if let Some(service) = self.here {
            service.shut_down().await;
        }
    }
}

/// The companion that runs on this computer, if one does and answers.
pub(crate) async fn running() -> Option<Companion> {
    let mut client = socket::connect(&settings::data_dir()?).await?;
    // One that was stopped still takes connections.
    timeout(PATIENCE, client.ask("environment", &json!({}))).await.ok()?.ok()?;
    Some(Companion { client, here: None })
}

/// Asks the companion that runs, or this process where none does or another shelf is meant.
///
/// # Errors
/// What was refused.
pub(crate) async fn ask(shelf: Option<PathBuf>, command: &str, args: &Value) -> Result<Value, Refusal> {
    let running = if shelf.is_none() { running().await } else { None };
    let mut companion = match running {
        Some(running) => running,
        None => Companion::here(ServiceOptions { shelf, ..ServiceOptions::default() }).await?,
    };
    let answer = companion.client.ask(command, args).await;
    companion.close().await;
    answer
}

/// Tells the companion that runs of a call that this process has made. Nothing depends on it, so nobody waits for an
/// answer.
pub(crate) async fn notice(notice: &CallNotice) {
    let Some(data_dir) = settings::data_dir() else { return };
    if let Some(mut client) = socket::connect(&data_dir).await {
        let _ = timeout(PATIENCE, client.send("notice", &json!(notice))).await;
    }
}

async fn serves(client: &mut AnyClient, root: &Path) -> bool {
    let Ok(mut answer) = client.ask("environment", &json!({})).await else { return false };
    let environment = serde_json::from_value::<MachineEnvironment>(answer["environment"].take());
    let is_root = |known: &MachineRoot| matches!(&known.root, RootDescriptor::Machine { path, .. } if Path::new(path) == root);
    environment.is_ok_and(|environment| environment.roots.iter().any(is_root))
}
