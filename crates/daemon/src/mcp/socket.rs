//! The way to a companion that runs: a socket in its data folder, on which each connection is a session.
//!
//! `toolshelf mcp` hands bytes on between its client and that socket, so that agents and everybody else ask one companion:
//! its extensions, its tasks, its events. Only the owner of the data folder can open the socket.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleServer, ServiceExt as _};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, copy};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use toolshelf_core::live::LIVE_FRAME_MAX_BYTES;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_sandbox::private;

use super::backend::Backend;
use super::server::McpServer;
use super::who::Who;
use crate::http::accept::Stopping;
use crate::http::handle::Handle;

/// Name of the socket in the data folder.
const NAME: &str = "mcp.sock";
/// How long a companion may take to answer a connection.
const PATIENCE: Duration = Duration::from_millis(500);
/// Sessions at a time; more wait until one ends.
const SESSIONS_MAX: usize = 64;
/// Longest line of a client.
const LINE_MAX_BYTES: usize = LIVE_FRAME_MAX_BYTES;
/// After the client has ended, what it asked for is answered within this time.
const LAST_ANSWERS: Duration = Duration::from_secs(10);

/// Where the socket of the companion with that data folder is.
pub(crate) fn path(data_dir: &Path) -> PathBuf {
    data_dir.join(NAME)
}

/// Serves one client over a pair of streams, to its end.
///
/// # Errors
/// [`Code::InvalidFrame`] for a client that does not begin as the protocol says.
pub(crate) async fn session(
    backend: Backend,
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), Refusal> {
    let transport =
        AsyncRwTransport::<RoleServer, _, _>::new(reader, writer).with_max_line_length(LINE_MAX_BYTES);
    let server = McpServer::new(backend, Who::local());
    match server.serve(transport).await {
        // However a session ends, there is nobody left who could be told.
        Ok(running) => drop(running.waiting().await),
        // A client that goes before it has said anything is none.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => {}
        Err(err) => {
            let why = format!("the client does not begin a session: {err}");
            return Err(Refusal::new(Code::InvalidFrame, toolshelf_core::refusal::cut(&why, 300)));
        }
    }
    Ok(())
}

/// Serves connections until the companion stops. The caller has made sure that no other companion uses the data folder.
///
/// # Errors
/// When the socket cannot be made.
pub(crate) fn listen(data_dir: &Path, handle: Handle, mut stopping: Stopping) -> io::Result<()> {
    private::make_folder(data_dir)?;
    let path = path(data_dir);
    match fs::remove_file(&path) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => return Err(err),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    let places = Arc::new(Semaphore::new(SESSIONS_MAX));
    tokio::spawn(async move {
        loop {
            let accepted = async { (Arc::clone(&places).acquire_owned().await, listener.accept().await) };
            let (place, stream) = tokio::select! {
                () = stopping.wait() => return,
                (place, accepted) = accepted => match accepted {
                    Ok((stream, _)) => (place, stream),
                    Err(_) => {
                        // Out of descriptors, mostly: some will be free again.
                        tokio::time::sleep(PATIENCE).await;
                        continue;
                    }
                },
            };
            let (backend, mut stopping) = (Backend::ready(handle.clone()), stopping.clone());
            tokio::spawn(async move {
                let (reader, writer) = stream.into_split();
                tokio::select! {
                    ended = session(backend, reader, writer) => if let Err(refusal) = ended {
                        tracing::info!(refused = refusal.code.as_str(), "an agent's session was refused");
                    },
                    () = stopping.wait() => {}
                }
                drop(place);
            });
        }
    });
    Ok(())
}

/// A connection to the companion with that data folder; `None` when none runs.
pub(crate) async fn connect(data_dir: &Path) -> Option<UnixStream> {
    timeout(PATIENCE, UnixStream::connect(path(data_dir))).await.ok()?.ok()
}

/// Hands bytes on in both directions, until one side has ended.
///
/// # Errors
/// [`Code::MachineUnreachable`] when the companion has ended first.
pub(crate) async fn bridge(
    stream: UnixStream,
    mut reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
) -> Result<(), Refusal> {
    let (mut from, mut to) = stream.into_split();
    let asked = async {
        // A companion that takes no more has ended, which the other direction sees.
        let _ = copy(&mut reader, &mut to).await;
        let _ = to.shutdown().await;
    };
    let answered = async {
        let _ = copy(&mut from, &mut writer).await;
    };
    tokio::pin!(answered);
    tokio::select! {
        () = asked => drop(timeout(LAST_ANSWERS, answered).await),
        () = &mut answered => {
            return Err(Refusal::new(Code::MachineUnreachable, "the companion has ended; start the client again"));
        }
    }
    Ok(())
}
