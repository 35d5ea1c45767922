//! Every route, in one table. `openapi.json` describes the same ones, which a test holds.

use axum::Json;
use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, delete, get, post, put};
use axum::{Router, extract::rejection::QueryRejection};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolshelf_core::live::CallOrigin;
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_core::task::listing::Filter;

use super::answer::{Answered, Fault, invalid, object};
use super::metrics::{MEDIA_TYPE, Now};
use super::{App, definitions, events, extensions as ext, facts, guard, page};
use crate::service::{OWNER, Session};
use crate::{live, mcp};

/// The description of all routes.
const OPENAPI: &str = include_str!("openapi.json");

/// One route.
struct Route {
    method: &'static str,
    path: &'static str,
    /// Whether the token is not asked for here; a live session asks for it itself.
    open: bool,
    /// Whether the handler looks at the token itself, because agents have tokens of their own.
    agents: bool,
    handler: fn() -> MethodRouter<App>,
}

const fn open(method: &'static str, path: &'static str, handler: fn() -> MethodRouter<App>) -> Route {
    Route { method, path, open: true, agents: false, handler }
}

const fn closed(method: &'static str, path: &'static str, handler: fn() -> MethodRouter<App>) -> Route {
    Route { method, path, open: false, agents: false, handler }
}

const fn agents(method: &'static str, path: &'static str, handler: fn() -> MethodRouter<App>) -> Route {
    Route { method, path, open: false, agents: true, handler }
}

const ROUTES: &[Route] = &[
    open("get", "/healthz", || get(health)),
    open("get", "/v1/openapi.json", || get(description)),
    open("get", "/live", || get(live::upgrade)),
    closed("get", "/metrics", || get(metrics)),
    closed("get", "/v1/environment", || get(environment)),
    closed("get", "/v1/shelf", || get(shelf)),
    closed("post", "/v1/shelf/tools/{id}/call", || post(call)),
    closed("get", "/api/extensions", || get(inventory)),
    closed("post", "/v1/commands/{name}", || post(command)),
    closed("post", "/v1/tasks", || post(delegate)),
    closed("get", "/v1/tasks", || get(tasks)),
    closed("get", "/v1/tasks/{position}", || get(task)),
    closed("post", "/v1/tasks/status", || post(status)),
    closed("post", "/v1/tasks/cancel", || post(cancel)),
    agents("get", "/mcp", || get(mcp::http::serve)),
    agents("post", "/mcp", || post(mcp::http::serve)),
    agents("delete", "/mcp", || delete(mcp::http::serve)),
    closed("get", "/v1/definitions", || get(definitions::list)),
    closed("post", "/v1/definitions/approve", || post(definitions::approve)),
    closed("get", "/v1/events", || get(events::events)),
    closed("get", "/v1/extensions", || get(ext::list)),
    closed("post", "/v1/extensions/register", || post(ext::register)),
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
    for Route { method, path, open, agents, handler } in ROUTES {
        let handler = handler();
        debug_assert!(["get", "post", "put", "delete"].contains(method), "{path}");
        let with_token = from_fn_with_state(app.clone(), guard::with_token);
        router = router.route(path, if *open || *agents { handler } else { handler.route_layer(with_token) });
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
    let environment = ask(&app, "environment", Map::new()).await;
    let active_tasks =
        environment.ok().and_then(|value| value["environment"]["active"].as_i64()).unwrap_or(0);
    let text = app.metrics().text(&Now { gate, active_tasks, sessions: app.places().watching() });
    Ok(([(CONTENT_TYPE, MEDIA_TYPE)], text).into_response())
}

async fn environment(State(app): State<App>) -> Answered {
    answered(&app, "environment", Map::new()).await
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

async fn inventory(State(app): State<App>) -> Answered {
    answered(&app, "list_extensions", Map::new()).await
}

async fn command(State(app): State<App>, Path(name): Path<String>, request: Request) -> Answered {
    let args = object(request).await?;
    answered(&app, &name, args).await
}

async fn delegate(State(app): State<App>, request: Request) -> Answered {
    let args = object(request).await?;
    answered(&app, "delegate_task", args).await
}

async fn status(State(app): State<App>, request: Request) -> Answered {
    let args = object(request).await?;
    answered(&app, "task_status", args).await
}

async fn cancel(State(app): State<App>, request: Request) -> Answered {
    let args = object(request).await?;
    answered(&app, "cancel_task", args).await
}

/// Which tasks are listed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listing {
    filter: Option<Filter>,
    before: Option<u64>,
    limit: Option<u64>,
}

async fn tasks(State(app): State<App>, listing: Result<Query<Listing>, QueryRejection>) -> Answered {
    let Query(listing) = listing.map_err(|err| {
        let why = format!("the query is not understood: {}", cut(&err.body_text(), 120));
        Refusal::new(Code::InvalidArgument, why)
    })?;
    let Listing { filter, before, limit } = listing;
    let given = [
        ("filter", filter.map(|filter| json!(filter))),
        ("before", before.map(Value::from)),
        ("limit", limit.map(Value::from)),
    ];
    let args = given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    answered(&app, "list_tasks", args).await
}

async fn task(State(app): State<App>, Path(position): Path<String>) -> Answered {
    let position: u64 = position.parse().map_err(|_| {
        Refusal::new(Code::InvalidArgument, format!("{:?} is no position of a task", cut(&position, 40)))
    })?;
    answered(&app, "task_detail", Map::from_iter([("position".to_owned(), position.into())])).await
}

async fn answered(app: &App, name: &str, args: Map<String, Value>) -> Answered {
    Ok(Json(ask(app, name, args).await?))
}

async fn ask(app: &App, name: &str, args: Map<String, Value>) -> Result<Value, Refusal> {
    let session = Session { owner: OWNER.to_owned(), from: CallOrigin::Http };
    app.handle().command(name.to_owned(), args, session).await
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
        let routes = ROUTES.iter().map(|route| (route.path.to_owned(), route.method.to_owned(), route.open));
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
