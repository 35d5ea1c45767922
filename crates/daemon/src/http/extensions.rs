//! `/v1/extensions`: what is installed, who may call it, calls. Every "no" here is a problem document.
//!
//! Source: the reference facts, C1. The token of this computer stands for all scopes.

use std::time::Instant;

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolshelf_core::extension::keyring::TrustedKey;
use toolshelf_core::live::CallOrigin;

use super::App;
use super::answer::object;
use super::problem::{Declined, Problematic, read};
use crate::extensions::dispatch::Invocation;
use crate::extensions::grants::GrantRequest;
use crate::extensions::index::REGISTRY_SCHEMA;
use crate::extensions::records::LifecycleState;
use crate::extensions::{ExtError, Extensions};

/// The header that names on whose behalf something is asked.
const PASSPORT_HEADER: &str = "x-corecrux-passport-id";

/// The extension host, which the first request opens.
pub(super) async fn host(app: &App) -> Result<Extensions, Declined> {
    Ok(app.handle().ask(async |service| service.extensions()).await??)
}

/// Does what blocks on a thread of its own.
pub(super) async fn on_thread<T: Send + 'static>(
    app: &App,
    work: impl FnOnce(&Extensions) -> Result<T, ExtError> + Send + 'static,
) -> Result<T, Declined> {
    Ok(host(app).await?.on_thread(work).await?)
}

pub(super) fn passport(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(PASSPORT_HEADER)?.to_str().ok()?.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

pub(super) async fn list(State(app): State<App>) -> Problematic {
    let answer = on_thread(&app, |host| {
        let extensions = host.list()?;
        let (count, allow_unsigned) = (extensions.len(), host.allow_unsigned());
        Ok(json!({ "count": count, "extensions": extensions, "allow_unsigned_dev": allow_unsigned }))
    });
    Ok(Json(answer.await?).into_response())
}

pub(super) async fn show(State(app): State<App>, Path(id): Path<String>) -> Problematic {
    Ok(Json(on_thread(&app, move |host| host.show(&id)).await?).into_response())
}

/// The state that an extension is installed in.
pub(super) fn installed_state(staged: bool) -> LifecycleState {
    if staged { LifecycleState::Staged } else { LifecycleState::Active }
}

/// What is to be installed from the registry.
#[derive(Deserialize)]
struct FromRegistry {
    id: String,
    index_path: Option<String>,
    #[serde(default)]
    staged: bool,
}

pub(super) async fn install_from_registry(State(app): State<App>, request: Request) -> Problematic {
    let by = passport(request.headers());
    let FromRegistry { id, index_path, staged } = read(object(request).await?)?;
    let state = installed_state(staged);
    let install =
        move |host: &Extensions| host.install_from_registry(&id, index_path.as_deref(), state, by.as_deref());
    Ok((StatusCode::CREATED, Json(on_thread(&app, install).await?)).into_response())
}

/// Which entries of the registry.
#[derive(Deserialize)]
pub(super) struct RegistryQuery {
    #[serde(default)]
    query: String,
    #[serde(default)]
    refresh: bool,
}

pub(super) async fn registry(
    State(app): State<App>,
    axum::extract::Query(RegistryQuery { query, refresh }): axum::extract::Query<RegistryQuery>,
) -> Problematic {
    let answer = on_thread(&app, move |host| {
        let index = host.registry(None, refresh)?;
        let found = index.search(&query);
        Ok(json!({
            "schema": REGISTRY_SCHEMA, "source": index.source, "fetched_at_unix_ms": index.fetched_at_unix_ms,
            "stale": index.stale, "count": found.len(), "extensions": found,
        }))
    });
    Ok(Json(answer.await?).into_response())
}

pub(super) async fn remove(
    State(app): State<App>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Problematic {
    let by = passport(&headers);
    on_thread(&app, move |host| host.uninstall(&id, by.as_deref())).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Which state an extension is to have.
#[derive(Deserialize)]
struct SetLifecycle {
    state: LifecycleState,
    reason: Option<String>,
}

pub(super) async fn lifecycle(
    State(app): State<App>,
    Path(id): Path<String>,
    request: Request,
) -> Problematic {
    let by = passport(request.headers());
    let SetLifecycle { state, reason } = read(object(request).await?)?;
    let set = move |host: &Extensions| host.set_lifecycle(&id, state, reason.as_deref(), by.as_deref());
    Ok(Json(on_thread(&app, set).await?).into_response())
}

pub(super) async fn grants(State(app): State<App>, Path(id): Path<String>) -> Problematic {
    let answer = on_thread(&app, move |host| {
        let grants = host.grants(&id)?;
        Ok(json!({ "extension_id": id, "count": grants.len(), "grants": grants }))
    });
    Ok(Json(answer.await?).into_response())
}

pub(super) async fn grant(
    State(app): State<App>,
    Path((id, grantee)): Path<(String, String)>,
) -> Problematic {
    Ok(Json(on_thread(&app, move |host| host.grant(&id, &grantee)).await?).into_response())
}

pub(super) async fn issue(State(app): State<App>, Path(id): Path<String>, request: Request) -> Problematic {
    let by = passport(request.headers());
    let grant: GrantRequest = read(object(request).await?)?;
    let issued = on_thread(&app, move |host| host.issue_grant(&id, grant, by.as_deref())).await?;
    Ok((StatusCode::CREATED, Json(issued)).into_response())
}

pub(super) async fn revoke(
    State(app): State<App>,
    Path((id, grantee)): Path<(String, String)>,
    headers: HeaderMap,
) -> Problematic {
    let by = passport(&headers);
    on_thread(&app, move |host| host.revoke_grant(&id, &grantee, by.as_deref())).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// What a tool is called with.
#[derive(Deserialize)]
struct Invoke {
    passport_fpr: Option<String>,
    #[serde(default)]
    args: Map<String, Value>,
}

pub(super) async fn invoke(
    State(app): State<App>,
    Path((extension, tool)): Path<(String, String)>,
    request: Request,
) -> Problematic {
    let named = passport(request.headers());
    let Invoke { passport_fpr, args } = read(object(request).await?)?;
    let passport = passport_fpr.filter(|passport| !passport.trim().is_empty()).or(named);
    let call = Invocation { extension, tool, args: Value::Object(args), passport, request_id: None };
    let (host, start) = (host(&app).await?, Instant::now());
    let end = host.invoke(call.clone()).await;
    let took = start.elapsed().as_secs_f64() * 1_000.0;
    // Told of before it is answered, as calls of the shelf are.
    let told =
        app.handle().ask(async move |service| service.tell_invoked(&call, end, took, CallOrigin::Http));
    Ok(Json(told.await??).into_response())
}

pub(super) async fn keys(State(app): State<App>) -> Problematic {
    let answer = on_thread(&app, |host| {
        let keys: Vec<TrustedKey> = host.keys()?.keys().cloned().collect();
        Ok(json!({ "count": keys.len(), "keys": keys }))
    });
    Ok(Json(answer.await?).into_response())
}

pub(super) async fn add_key(State(app): State<App>, request: Request) -> Problematic {
    let by = passport(request.headers());
    let key: TrustedKey = read(object(request).await?)?;
    let answer = json!({ "passport_fpr": key.passport_fpr });
    on_thread(&app, move |host| host.add_key(key, by.as_deref())).await?;
    Ok((StatusCode::CREATED, Json(answer)).into_response())
}

pub(super) async fn remove_key(
    State(app): State<App>,
    Path(publisher): Path<String>,
    headers: HeaderMap,
) -> Problematic {
    let by = passport(&headers);
    on_thread(&app, move |host| host.remove_key(&publisher, by.as_deref())).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Which receipts.
#[derive(Deserialize)]
pub(super) struct Receipts {
    limit: Option<usize>,
    extension: Option<String>,
}

/// Receipts that are answered when nobody says how many, and at most.
const RECEIPTS: usize = 50;
const RECEIPTS_MAX: usize = 500;

pub(super) async fn receipts(
    State(app): State<App>,
    axum::extract::Query(which): axum::extract::Query<Receipts>,
) -> Problematic {
    let answer = on_thread(&app, move |host| {
        let most = which.limit.unwrap_or(RECEIPTS).min(RECEIPTS_MAX);
        let receipts = host.receipts().newest(most, which.extension.as_deref())?;
        Ok(json!({ "count": receipts.len(), "receipts": receipts }))
    });
    Ok(Json(answer.await?).into_response())
}
