//! The socket of a running companion. Only its owner can open it: it is in the data folder, which nobody else enters.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncWrite, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;
use toolshelf_core::live::CallOrigin;
use toolshelf_sandbox::private;

use super::client::Client;
use super::session;
use crate::service::{OWNER, Service, Session};

/// Name of the socket in the data folder.
const NAME: &str = "toolshelf.sock";
/// How long a companion may take to answer a connection.
const PATIENCE: Duration = Duration::from_millis(500);

/// Where the socket of the companion with that data folder is.
pub(crate) fn path(data_dir: &Path) -> PathBuf {
    data_dir.join(NAME)
}

/// Serves connections for ever. The caller has made sure that no other companion uses the data folder, so that a socket
/// that is there was left by one that is gone.
///
/// # Errors
/// When the socket cannot be made.
pub(crate) fn listen(data_dir: &Path, service: Service) -> io::Result<()> {
    private::make_folder(data_dir)?;
    let path = path(data_dir);
    match fs::remove_file(&path) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => return Err(err),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    tokio::task::spawn_local(async move {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // Out of descriptors, mostly: some will be free again.
                tokio::time::sleep(PATIENCE).await;
                continue;
            };
            let service = service.clone();
            tokio::task::spawn_local(async move {
                let session = Session { owner: OWNER.to_owned(), from: CallOrigin::Cli };
                let (reader, writer) = stream.into_split();
                // Whoever hangs up has nothing to be told.
                let _ = session::serve(&service, session, BufReader::new(reader), writer).await;
            });
        }
    });
    Ok(())
}

/// A connection to the companion with that data folder; `None` when none runs.
pub(crate) async fn connect(data_dir: &Path) -> Option<Client<Box<dyn AsyncWrite + Unpin>>> {
    let stream = timeout(PATIENCE, UnixStream::connect(path(data_dir))).await.ok()?.ok()?;
    let (reader, writer) = stream.into_split();
    Some(Client::new(BufReader::new(reader), Box::new(writer)))
}
