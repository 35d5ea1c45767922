//! Routes of pairing: a token for a code, and what who sits at this computer sees of other machines.

use axum::Json;
use axum::extract::{Path, Request, State};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolshelf_core::refusal::{Code, Refusal, cut};

use super::App;
use super::answer::{Answered, object};
use crate::remote::channel;

/// What whoever has a code sends.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    code: String,
    #[serde(default)]
    name: String,
}

/// A token for a code. Nobody is asked for a token here, and the code is compared at a bounded rate.
pub(super) async fn pair(State(app): State<App>, request: Request) -> Answered {
    let origin = app.hosts().foreign_origin(request.headers())?.map(str::to_owned);
    let Pair { code, name } = serde_json::from_value(Value::Object(object(request).await?))
        .map_err(|err| Refusal::new(Code::InvalidArgument, cut(&err.to_string(), 120)))?;
    let mut answer = json!(channel::paired(&app, &code, &name, origin.as_deref()).await?);
    answer["ok"] = true.into();
    Ok(Json(answer))
}

pub(super) async fn pairings(State(app): State<App>) -> Answered {
    ask(&app, "pairings.list", Map::new()).await
}

pub(super) async fn offer(State(app): State<App>, request: Request) -> Answered {
    let args = object(request).await?;
    ask(&app, "pairings.offer", args).await
}

pub(super) async fn revoke(State(app): State<App>, Path(id): Path<String>) -> Answered {
    ask(&app, "pairings.revoke", named("id", id)).await
}

pub(super) async fn environments(State(app): State<App>) -> Answered {
    ask(&app, "environments.list", Map::new()).await
}

pub(super) async fn add(State(app): State<App>, request: Request) -> Answered {
    let args = object(request).await?;
    ask(&app, "environments.add", args).await
}

pub(super) async fn remove(State(app): State<App>, Path(key): Path<String>) -> Answered {
    ask(&app, "environments.remove", named("key", key)).await
}

pub(super) async fn revoke_there(State(app): State<App>, Path(key): Path<String>) -> Answered {
    ask(&app, "environments.revoke", named("key", key)).await
}

pub(super) async fn retry(State(app): State<App>, Path(key): Path<String>) -> Answered {
    ask(&app, "environments.retry", named("key", key)).await
}

fn named(name: &str, value: String) -> Map<String, Value> {
    Map::from_iter([(name.to_owned(), value.into())])
}

async fn ask(app: &App, command: &'static str, args: Map<String, Value>) -> Answered {
    Ok(Json(app.handle().admin(command, args).await?))
}
