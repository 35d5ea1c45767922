//! Connections: how many there may be, how long they may take, and how they end.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

/// Connections at a time; more wait until one ends.
const CONNECTIONS_MAX: usize = 256;
/// Within this time the head of a request must have arrived; a connection that asks for nothing ends after it, too.
const HEAD_TIME: Duration = Duration::from_secs(15);
/// Most bytes of a head.
const HEAD_MAX_BYTES: usize = 64 * 1024;
/// For so long the system tries to hand over what the other side does not take, in milliseconds.
const UNTAKEN_MS: u32 = 30_000;
/// Requests that run when the companion stops have this long to be answered.
const GRACE: Duration = Duration::from_secs(5);
/// When no connection can be taken (no descriptors are left, say), it is tried again after this.
const RETRY: Duration = Duration::from_millis(100);

/// The word to stop, for everything that runs until then. Clones hear the same word.
#[derive(Debug, Clone)]
pub(crate) struct Stopping {
    said: watch::Receiver<bool>,
}

impl Stopping {
    /// The word, and who says it: sending `true`, or being dropped.
    pub(crate) fn new() -> (watch::Sender<bool>, Self) {
        let (sender, said) = watch::channel(false);
        (sender, Self { said })
    }

    /// Waits for the word; at once when it was said already.
    pub(crate) async fn wait(&mut self) {
        drop(self.said.wait_for(|stop| *stop).await);
    }
}

/// Serves `routes` on `listener`, over TLS where there is a `tls`, until `stopping` says so, and then ends all
/// connections.
pub(crate) async fn serve(
    listener: TcpListener,
    routes: Router,
    tls: Option<Arc<ServerConfig>>,
    mut stopping: Stopping,
) {
    let acceptor = tls.map(TlsAcceptor::from);
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let accepted = async {
            // Never closed, so there is always a place to come.
            let place = Arc::clone(&places).acquire_owned().await;
            (listener.accept().await, place)
        };
        tokio::select! {
            () = stopping.wait() => break,
            Some(_) = connections.join_next() => {}
            (accepted, place) = accepted => match accepted {
                Ok((stream, _)) => {
                    let connection = connection(stream, acceptor.clone(), routes.clone(), stopping.clone());
                    connections.spawn(async move {
                        connection.await;
                        drop(place);
                    });
                }
                Err(err) => {
                    tracing::warn!(error = err.to_string(), "a connection could not be taken");
                    sleep(RETRY).await;
                }
            },
        }
    }
    drop(listener);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if timeout(GRACE, all_ended).await.is_err() {
        tracing::warn!("some requests were not answered before the end");
    }
    // Dropping them ends what is left.
}

async fn connection(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    routes: Router,
    mut stopping: Stopping,
) {
    give_up_on_untaken(&stream);
    // Frames are small, and each is wanted at once.
    let _ = stream.set_nodelay(true);
    let Some(acceptor) = acceptor else { return requests(stream, routes, stopping).await };
    let shaken = tokio::select! {
        shaken = timeout(HEAD_TIME, acceptor.accept(stream)) => shaken,
        () = stopping.wait() => return,
    };
    match shaken {
        Ok(Ok(stream)) => requests(stream, routes, stopping).await,
        Ok(Err(err)) => tracing::debug!(error = err.to_string(), "a connection brought no TLS"),
        Err(_) => tracing::debug!("a connection took too long to bring TLS"),
    }
}

async fn requests(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    routes: Router,
    mut stopping: Stopping,
) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(HEAD_MAX_BYTES);
    let service = TowerToHyperService::new(routes);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopping.wait() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(err) = ended {
        // Clients go, and some never said anything sensible: nothing to wake anybody for.
        tracing::debug!(error = err.to_string(), "a connection ended in a fault");
    }
}

/// A client that takes nothing holds its connection only for a while.
fn give_up_on_untaken(stream: &TcpStream) {
    #[cfg(target_os = "linux")]
    let _ = rustix::net::sockopt::set_tcp_user_timeout(stream, UNTAKEN_MS);
    #[cfg(not(target_os = "linux"))]
    let _ = (stream, UNTAKEN_MS);
}
