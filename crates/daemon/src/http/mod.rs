//! The companion over HTTP: the page, the interface for programs, live sessions.
//!
//! | module | idea |
//! |---|---|
//! | [`accept`] | connections: how many, how long |
//! | [`guard`] | who gets in |
//! | [`token`] | what they show |
//! | `routes` | every route, in one table |
//! | [`answer`] | bodies, JSON, refusals with a status |
//! | `status` | the one table from refusal codes to statuses |
//! | `extensions`, `facts` | routes of extensions and of facts |
//! | `problem` | the "no" of these |
//! | `definitions` | what agents are shown of tools, for who looks at changes |
//! | `events` | what happens, as a stream |
//! | [`page`] | the files of the page |
//! | [`metrics`] | what is counted |
//! | [`handle`] | from here to where the companion lives |
//!
//! Handlers may move between threads and the companion may not, so they ask it through a [`Handle`](handle::Handle).

pub(crate) mod accept;
pub(crate) mod answer;
mod definitions;
mod events;
mod extensions;
mod facts;
pub(crate) mod guard;
pub(crate) mod handle;
pub(crate) mod metrics;
pub(crate) mod page;
mod problem;
mod routes;
mod status;
pub(crate) mod token;

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Duration, timeout};
use toolshelf_core::refusal::{Code, Refusal, cut};

use accept::Stopping;
use guard::Hosts;
use handle::Handle;
use metrics::Metrics;
use token::Token;

use crate::mcp::http::Endpoint;

/// Live sessions and streams of events at a time.
pub(crate) const SESSIONS_MAX: usize = 64;
/// Connections that have not said hello, at a time.
const GREETINGS_MAX: usize = 128;
/// Longest path that is logged, in characters.
const LOGGED_PATH_MAX_CHARS: usize = 200;

/// What every handler has at hand. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct App {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    handle: Handle,
    token: Token,
    hosts: Hosts,
    metrics: Metrics,
    places: Places,
    stopping: Stopping,
    mcp: Endpoint,
}

impl App {
    pub(crate) fn new(handle: Handle, token: Token, hosts: Hosts, stopping: Stopping) -> Self {
        let (metrics, places) = (Metrics::new(), Places::new());
        let mcp = Endpoint::new(&handle, stopping.clone());
        Self { inner: Arc::new(Inner { handle, token, hosts, metrics, places, stopping, mcp }) }
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.inner.handle
    }

    pub(crate) fn token(&self) -> &Token {
        &self.inner.token
    }

    pub(crate) fn hosts(&self) -> &Hosts {
        &self.inner.hosts
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    pub(crate) fn places(&self) -> &Places {
        &self.inner.places
    }

    /// The interface for agents.
    pub(crate) fn mcp(&self) -> &Endpoint {
        &self.inner.mcp
    }

    /// Becomes true when the companion stops.
    pub(crate) fn stopping(&self) -> Stopping {
        self.inner.stopping.clone()
    }

    /// All that is served.
    pub(crate) fn routes(&self) -> Router {
        routes::router(self)
            .layer(from_fn_with_state(self.clone(), guard::every_request))
            .layer(from_fn_with_state(self.clone(), observe))
            .with_state(self.clone())
    }
}

/// Counts and logs a request: never its query, headers or body.
async fn observe(State(app): State<App>, request: Request, next: Next) -> Response {
    let start = Instant::now();
    let method = request.method().clone();
    let path = cut(request.uri().path(), LOGGED_PATH_MAX_CHARS);
    let response = next.run(request).await;
    let (status, refused) = (response.status().as_u16(), response.extensions().get::<Code>().copied());
    app.metrics().request(status, refused);
    let ms = (start.elapsed().as_secs_f64() * 10_000.0).round() / 10.0;
    let refused = refused.map(Code::as_str);
    tracing::info!(method = method.as_str(), path, status, ms, refused, "request");
    response
}

/// Places for those who stay: live sessions and streams of events.
#[derive(Debug)]
pub(crate) struct Places {
    sessions: Arc<Semaphore>,
    greetings: Arc<Semaphore>,
}

impl Places {
    fn new() -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        Self { sessions: places(SESSIONS_MAX), greetings: places(GREETINGS_MAX) }
    }

    /// A place for a session or a stream.
    ///
    /// # Errors
    /// [`Code::OverBudget`] when all are taken.
    pub(crate) fn watch(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        let why = || format!("{SESSIONS_MAX} sessions are open; close one first");
        Arc::clone(&self.sessions).try_acquire_owned().map_err(|_| Refusal::new(Code::OverBudget, why()))
    }

    /// A place for a connection that has not said hello.
    ///
    /// # Errors
    /// [`Code::OverBudget`] when all are taken.
    pub(crate) fn greet(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        let why = || format!("{GREETINGS_MAX} connections have not said hello yet");
        Arc::clone(&self.greetings).try_acquire_owned().map_err(|_| Refusal::new(Code::OverBudget, why()))
    }

    /// Places that are taken.
    pub(crate) fn watching(&self) -> usize {
        SESSIONS_MAX - self.sessions.available_permits()
    }

    /// Waits until every session has ended, at most for `time`.
    pub(crate) async fn all_left(&self, time: Duration) {
        // An error would mean that nobody can be there any more.
        let _ = timeout(time, self.sessions.acquire_many(SESSIONS_MAX as u32)).await;
    }
}
