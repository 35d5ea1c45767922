//! Every route, in one table. `openapi.json` describes the same ones, which a test holds.

use axum::Json;
use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, delete, get, post, put};
use axum::{Router, extract::rejection::QueryRejection};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolshelf_core::live::CallOrigin;
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_core::remote::scope::Scope;
use toolshelf_core::task::listing::Filter;

use super::answer::{Answered, Fault, invalid, object};
use super::metrics::{MEDIA_TYPE, Now};
use super::who::Who;
use super::{App, cors, definitions, events, extensions as ext, facts, guard, look, page, remote};
use crate::remote::channel;
use crate::{live, mcp};

/// The description of all routes.
const OPENAPI: &str = include_str!("openapi.json");

/// One route.
struct Route {
    method: &'static str,
    path: &'static str,
    /// Whose token is asked for.
    for_whom: ForWhom,
    handler: fn() -> MethodRouter<App>,
}

/// Whose token a route asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ForWhom {
    /// Nobody's; a live session asks for it itself.
    Anybody,
    /// That of this computer, or an agent's own, which the handler looks at itself.
    Agents,
    /// That of this computer.
    Owner,
    /// That, or one that was paired and has this scope.
    Paired(Option<Scope>),
}

const fn open(method: &'static str, path: &'static str, handler: fn() -> MethodRouter<App>) -> Route {
    Route { method, path, for_whom: ForWhom::Anybody, handler }
}

const fn closed(method: &'static str, path: &'static str, handler: fn() -> MethodRouter<App>) -> Route {
    Route { method, path, for_whom: ForWhom::Owner, handler }
}

const fn agents(method: &'static str, path: &'static str, handler: fn() -> MethodRouter<App>) -> Route {
    Route { method, path, for_whom: ForWhom::Agents, handler }
}

const fn shared(
    method: &'static str,
    path: &'static str,
    scope: Option<Scope>,
    handler: fn() -> MethodRouter<App>,
) -> Route {
    Route { method, path, for_whom: ForWhom::Paired(scope), handler }
}

const TASKS: Option<Scope> = Some(Scope::Tasks);
const SHELF: Option<Scope> = Some(Scope::Shelf);

const ROUTES: &[Route] = &[
    open("get", "/healthz", || get(health)),
    open("get", "/v1/openapi.json", || get(description)),
    open("get", "/live", || get(live::upgrade)),
    open("get", "/channel", || get(channel::upgrade)),
    open("post", cors::PAIR, || post(remote::pair)),
    closed("get", "/v1/pairings", || get(remote::pairings)),
    closed("post", "/v1/pairings", || post(remote::offer)),
    closed("post", "/v1/pairings/{id}/revoke", || post(remote::revoke)),
    closed("get", "/v1/environments", || get(remote::environments)),
    closed("post", "/v1/environments", || post(remote::add)),
    closed("post", "/v1/environments/{key}/remove", || post(remote::remove)),
    closed("post", "/v1/environments/{key}/revoke", || post(remote::revoke_there)),
    closed("post", "/v1/environments/{key}/retry", || post(remote::retry)),
    closed("get", "/metrics", || get(metrics)),
    shared("get", "/v1/environment", None, || get(environment)),
    shared("get", "/v1/shelf", SHELF, || get(shelf)),
    shared("post", "/v1/shelf/tools/{id}/call", SHELF, || post(call)),
    shared("get", "/api/extensions", SHELF, || get(inventory)),
    shared("post", "/v1/commands/{name}", None, || post(command)),
    shared("post", "/v1/tasks", TASKS, || post(delegate)),
    shared("get", "/v1/tasks", TASKS, || get(tasks)),
    shared("get", "/v1/tasks/{position}", TASKS, || get(task)),
    shared("post", "/v1/tasks/status", TASKS, || post(status)),
    shared("post", "/v1/tasks/cancel", TASKS, || post(cancel)),
    shared("get", "/v1/events", None, || get(events::events)),
    closed("get", "/v1/cluster", || get(cluster)),
    agents("get", "/mcp", || get(mcp::http::serve)),
    agents("post", "/mcp", || post(mcp::http::serve)),
    agents("delete", "/mcp", || delete(mcp::http::serve)),
    closed("get", "/v1/definitions", || get(definitions::list)),
    closed("post", "/v1/definitions/approve", || post(definitions::approve)),
    closed("get", "/v1/extensions", || get(ext::list)),
    closed("post", "/v1/extensions/register", || post(look::register)),
    closed("post", "/v1/extensions/install-from-registry", || post(ext::install_from_registry)),
    closed("get", "/v1/extensions/registry", || get(ext::registry)),
    closed("post", "/v1/extensions/inspect", || post(look::inspect)),
    closed("get", "/v1/extensions/receipts/verify", || get(look::verify_receipts)),
    closed("get", "/v1/facts/browse", || get(look::browse)),
    closed("get", "/v1/extensions/keys", || get(ext::keys)),
    closed("post", "/v1/extensions/keys", || post(ext::add_key)),
    closed("delete", "/v1/extensions/keys/{publisher}", || delete(ext::remove_key)),
    closed("get", "/v1/extensions/receipts", || get(ext::receipts)),
    closed("get", "/v1/extensions/{id}", || get(ext::show)),
    closed("delete", "/v1/extensions/{id}", || delete(ext::remove)),
    closed("post", "/v1/extensions/{id}/lifecycle", || post(ext::lifecycle)),
    closed("get", "/v1/extensions/{id}/grants", || get(ext::grants)),
    closed("post", "/v1/extensions/{id}/grants", || post(ext::issue)),
    closed("get", "/v1/extensions/{id}/grants/{passport}", || get(ext::grant)),
    closed("delete", "/v1/extensions/{id}/grants/{passport}", || delete(ext::revoke)),
    closed("post", "/v1/extensions/{id}/tools/{tool}/invoke", || post(ext::invoke)),
    closed("put", "/v1/facts", || put(facts::store)),
    closed("get", "/v1/facts", || get(facts::query)),
    closed("put", "/v1/facts/bulk", || put(facts::store_bulk)),
    closed("get", "/v1/facts/export", || get(facts::export)),
    closed("get", "/v1/facts/history", || get(facts::history)),
    closed("get", "/v1/facts/entity/{entity}", || get(facts::of_entity)),
    closed("get", "/v1/facts/{id}", || get(facts::show)),
    closed("delete", "/v1/facts/{id}", || delete(facts::delete)),
];

/// The routes, and the page for all else.
pub(super) fn router(app: &App) -> Router<App> {
    let mut router = Router::new();
    for Route { method, path, for_whom, handler } in ROUTES {
        let handler = handler();
        debug_assert!(["get", "post", "put", "delete"].contains(method), "{path}");
        let handler = match *for_whom {
            ForWhom::Anybody | ForWhom::Agents => handler,
            ForWhom::Owner => handler.route_layer(from_fn_with_state(app.clone(), guard::with_token)),
            ForWhom::Paired(scope) => {
                let layer = move |State(app): State<App>, request: Request, next: Next| async move {
                    guard::with_any_token(&app, scope, request, next).await
                };
                handler.route_layer(from_fn_with_state(app.clone(), layer))
            }
        };
        router = router.route(path, handler);
    }
    router.method_not_allowed_fallback(wrong_method).fallback(page::page)
}

async fn wrong_method(request: Request) -> Fault {
    let why = format!("{} is not served by {}", cut(request.uri().path(), 80), request.method());
    Fault::with_status(StatusCode::METHOD_NOT_ALLOWED, Code::UnknownRoute, why)
}

async fn health(State(app): State<App>) -> Json<Value> {
    let (version, uptime) = (env!("CARGO_PKG_VERSION"), app.metrics().uptime_ms());
    Json(json!({ "ok": true, "version": version, "uptimeMs": uptime }))
}

async fn description() -> Response {
    ([(CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

async fn metrics(State(app): State<App>) -> Result<Response, Fault> {
    let gate = app.handle().ask(async |service| service.shelf().stats()).await?;
    let environment = ask(&app, "environment", Map::new(), &Who::Owner).await;
    let active_tasks =
        environment.ok().and_then(|value| value["environment"]["active"].as_i64()).unwrap_or(0);
    let text = app.metrics().text(&Now { gate, active_tasks, sessions: app.places().watching() });
    Ok(([(CONTENT_TYPE, MEDIA_TYPE)], text).into_response())
}

async fn environment(State(app): State<App>, who: Who) -> Answered {
    answered(&app, "environment", Map::new(), &who).await
}

async fn cluster(State(app): State<App>, who: Who) -> Answered {
    answered(&app, "cluster", Map::new(), &who).await
}

/// The very value that `toolshelf --json list` prints.
async fn shelf(State(app): State<App>) -> Answered {
    let readings = app.handle().ask(async |service| service.readings().await).await??;
    Ok(Json(crate::cli::listed(&readings).0))
}

async fn call(State(app): State<App>, Path(id): Path<String>, request: Request) -> Answered {
    let mut body = object(request).await?;
    let args = match body.remove("args") {
        Some(Value::Object(args)) if body.is_empty() => args,
        _ => return Err(invalid("the body must be {\"args\": {…}}")),
    };
    let call =
        async move |service: crate::service::Service| service.call_tool(&id, &args, CallOrigin::Http).await;
    let answer = app.handle().ask(call).await??;
    Ok(Json(json!(answer)))
}

async fn inventory(State(app): State<App>, who: Who) -> Answered {
    answered(&app, "list_extensions", Map::new(), &who).await
}

async fn command(State(app): State<App>, Path(name): Path<String>, who: Who, request: Request) -> Answered {
    who.may(&name)?;
    let args = object(request).await?;
    answered(&app, &name, args, &who).await
}

async fn delegate(State(app): State<App>, who: Who, request: Request) -> Answered {
    let args = object(request).await?;
    answered(&app, "delegate_task", args, &who).await
}

async fn status(State(app): State<App>, who: Who, request: Request) -> Answered {
    let args = object(request).await?;
    answered(&app, "task_status", args, &who).await
}

async fn cancel(State(app): State<App>, who: Who, request: Request) -> Answered {
    let args = object(request).await?;
    answered(&app, "cancel_task", args, &who).await
}

/// Which tasks are listed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listing {
    environment: Option<String>,
    filter: Option<Filter>,
    before: Option<u64>,
    limit: Option<u64>,
}

async fn tasks(
    State(app): State<App>,
    who: Who,
    listing: Result<Query<Listing>, QueryRejection>,
) -> Answered {
    let Query(listing) = listing.map_err(not_understood)?;
    let Listing { environment, filter, before, limit } = listing;
    let given = [
        ("environment", environment.map(Value::from)),
        ("filter", filter.map(|filter| json!(filter))),
        ("before", before.map(Value::from)),
        ("limit", limit.map(Value::from)),
    ];
    answered(&app, "list_tasks", given_of(given), &who).await
}

/// The arguments that are given.
fn given_of<const N: usize>(given: [(&str, Option<Value>); N]) -> Map<String, Value> {
    given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn not_understood(err: QueryRejection) -> Refusal {
    let why = format!("the query is not understood: {}", cut(&err.body_text(), 120));
    Refusal::new(Code::InvalidArgument, why)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfEnvironment {
    environment: Option<String>,
}

async fn task(
    State(app): State<App>,
    Path(position): Path<String>,
    who: Who,
    of: Result<Query<OfEnvironment>, QueryRejection>,
) -> Answered {
    let Query(OfEnvironment { environment }) = of.map_err(not_understood)?;
    let position: u64 = position.parse().map_err(|_| {
        Refusal::new(Code::InvalidArgument, format!("{:?} is no position of a task", cut(&position, 40)))
    })?;
    let given = [("position", Some(position.into())), ("environment", environment.map(Value::from))];
    answered(&app, "task_detail", given_of(given), &who).await
}

async fn answered(app: &App, name: &str, args: Map<String, Value>, who: &Who) -> Answered {
    Ok(Json(ask(app, name, args, who).await?))
}

async fn ask(app: &App, name: &str, args: Map<String, Value>, who: &Who) -> Result<Value, Refusal> {
    app.handle().command(name.to_owned(), args, who.session(CallOrigin::Http)).await
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_description_names_just_the_routes() {
        let document: Value = serde_json::from_str(OPENAPI).unwrap();
        assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
        let mut described = BTreeSet::new();
        for (path, operations) in document["paths"].as_object().unwrap() {
            for (method, operation) in operations.as_object().unwrap() {
                let open = operation["security"].as_array().is_some_and(Vec::is_empty);
                described.insert((path.clone(), method.clone(), open));
            }
        }
        let routes = ROUTES.iter().map(|route| {
            (route.path.to_owned(), route.method.to_owned(), route.for_whom == ForWhom::Anybody)
        });
        // The page is described, but is no row: it answers what no row does.
        let page = ("/".to_owned(), "get".to_owned(), true);
        assert_eq!(described, routes.chain([page]).collect());
    }

    #[test]
    fn every_refusal_code_is_in_the_description() {
        let document: Value = serde_json::from_str(OPENAPI).unwrap();
        let described = document["components"]["schemas"]["Refusal"]["properties"]["refused"]["enum"].clone();
        let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(described, json!(codes));
    }
}
