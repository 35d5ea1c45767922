//! `/mcp`: the protocol over HTTP.
//!
//! `Host` and `Origin` are checked as for every route. The bearer token is this computer's, or an agent's own; a session
//! belongs to whoever began it, and nobody else can use it, whatever they know of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::time::sleep;
use toolshelf_core::refusal::{Code, Refusal};
use zeroize::Zeroizing;

use super::backend::Backend;
use super::server::McpServer;
use super::who::Who;
use crate::http::App;
use crate::http::accept::Stopping;
use crate::http::answer::{BODY_MAX_BYTES, Fault, whole};
use crate::http::handle::Handle;
use crate::http::who::{Who as Asker, bearer};

/// The header that names a session.
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// Sessions at a time.
const SESSIONS_MAX: usize = 256;
/// Sessions of one client at a time, so that it does not take the places of all others.
const OWN_SESSIONS_MAX: usize = 64;
/// A session that is not used for so long ends.
const IDLE: Duration = Duration::from_secs(30 * 60);

/// Time between two looks whether the token of an open stream still holds.
const RECHECK: Duration = Duration::from_secs(2);

type Inner = StreamableHttpService<McpServer, LocalSessionManager>;

/// The endpoint. Clones share it.
#[derive(Clone)]
pub(crate) struct Endpoint {
    service: Inner,
    sessions: Arc<LocalSessionManager>,
    owners: Arc<Mutex<HashMap<String, Who>>>,
}

impl Endpoint {
    pub(crate) fn new(handle: &Handle, mut stopping: Stopping) -> Self {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(IDLE);
        let sessions = Arc::new(manager);
        // The guard of all routes has looked at names and origins before.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(BODY_MAX_BYTES);
        let over = config.cancellation_token.clone();
        tokio::spawn(async move {
            stopping.wait().await;
            over.cancel();
        });
        let backend = Backend::ready(handle.clone());
        let factory = move || Ok(McpServer::new(backend.clone(), Who::local()));
        let service = StreamableHttpService::new(factory, Arc::clone(&sessions), config);
        Self { service, sessions, owners: Arc::default() }
    }

    /// # Errors
    /// 404 for a session of somebody else's, as for one that is not there.
    fn check_session(&self, headers: &HeaderMap, who: &Who) -> Result<(), Fault> {
        let Some(session) = headers.get(&SESSION) else { return Ok(()) };
        let session = session.to_str().unwrap_or_default();
        match self.owners().get(session) {
            Some(owner) if owner == who => Ok(()),
            _ => Err(Fault::with_status(
                StatusCode::NOT_FOUND,
                Code::InvalidFrame,
                "there is no such session; begin one",
            )),
        }
    }

    /// # Errors
    /// [`Code::OverBudget`] when there are as many sessions as there may be, of all clients or of this one.
    async fn check_room(&self, headers: &HeaderMap, who: &Who) -> Result<(), Refusal> {
        if headers.contains_key(&SESSION) {
            return Ok(());
        }
        let open = self.sessions.sessions.read().await;
        let owners = self.owners();
        let own = owners.iter().filter(|(id, owner)| *owner == who && open.contains_key(&***id)).count();
        if open.len() < SESSIONS_MAX && own < OWN_SESSIONS_MAX {
            return Ok(());
        }
        let why =
            format!("{} sessions are open, {own} of them this client's; one must end first", open.len());
        Err(Refusal::new(Code::OverBudget, why))
    }

    /// Notes whose a session is that has just begun, and forgets those that have ended.
    async fn note(&self, session: String, who: Who) {
        if self.owners().contains_key(&session) {
            return;
        }
        let open = self.sessions.sessions.read().await;
        let mut owners = self.owners();
        owners.retain(|id, _| open.contains_key(&**id));
        owners.insert(session, who);
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<String, Who>> {
        // Nothing can be half written under it.
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").finish_non_exhaustive()
    }
}

/// Answers a request of a client.
pub(crate) async fn serve(State(app): State<App>, request: Request) -> Result<Response, Fault> {
    let (who, agents) = who(&app, request.headers()).await?;
    let endpoint = app.mcp();
    endpoint.check_session(request.headers(), &who)?;
    let (mut parts, body) = request.into_parts();
    let body = match parts.method {
        Method::POST => {
            endpoint.check_room(&parts.headers, &who).await?;
            // A body that comes slowly, or is too long, ends here.
            Body::from(whole(body).await?)
        }
        _ => Body::empty(),
    };
    parts.extensions.insert(who.clone());
    let response =
        endpoint.service.handle(Request::from_parts(parts, body)).await.map(Body::new).into_response();
    let session =
        response.headers().get(&SESSION).and_then(|session| session.to_str().ok()).map(str::to_owned);
    if let Some(session) = session {
        endpoint.note(session, who).await;
    }
    Ok(match agents {
        // A stream may go on for hours. It ends when the token is not one any more.
        Some(bearer) => response.map(|body| {
            Body::from_stream(body.into_data_stream().take_until(Box::pin(removed(app, bearer))))
        }),
        None => response,
    })
}

/// Whose token the request carries; and the token, where it is an agent's own.
async fn who(app: &App, headers: &HeaderMap) -> Result<(Who, Option<Zeroizing<String>>), Refusal> {
    let refused = match Asker::of_request(app, headers) {
        Ok(Asker::Owner) => return Ok((Who::local(), None)),
        Ok(Asker::Paired(_)) => {
            let why = "a paired token is not for agents; make one for them with `toolshelf mcp token add`";
            return Err(Refusal::new(Code::OutsideScope, why));
        }
        Err(refused) => refused,
    };
    let bearer = Zeroizing::new(bearer(headers)?.to_owned());
    let who = agent(app, bearer.clone()).await?.ok_or(refused)?;
    Ok((who, Some(bearer)))
}

async fn agent(app: &App, bearer: Zeroizing<String>) -> Result<Option<Who>, Refusal> {
    app.handle().ask(async move |service| service.desk().tokens.who(&bearer)).await?
}

/// Waits until the token is not one any more.
async fn removed(app: App, bearer: Zeroizing<String>) {
    loop {
        sleep(RECHECK).await;
        if !matches!(agent(&app, bearer.clone()).await, Ok(Some(_))) {
            return;
        }
    }
}
