//! `/v1/facts`: facts, as clients read and write them.
//!
//! Source: the reference facts, C7.

use axum::Json;
use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde::Deserialize;
use serde_json::json;
use toolshelf_facts::NewFact;

use super::App;
use super::answer::{json, object};
use super::extensions::on_thread;
use super::problem::{Problematic, read, read_value};
use crate::extensions::facts_api::{FactsExport, FactsQuery};

pub(super) async fn store(State(app): State<App>, request: Request) -> Problematic {
    let fact: NewFact = read(object(request).await?)?;
    let stored = on_thread(&app, move |host| host.store_fact(fact)).await?;
    Ok((StatusCode::CREATED, Json(stored)).into_response())
}

pub(super) async fn store_bulk(State(app): State<App>, request: Request) -> Problematic {
    let facts: Vec<NewFact> = read_value(json(request).await?)?;
    let stored = on_thread(&app, move |host| host.store_facts(facts)).await?;
    Ok((StatusCode::CREATED, Json(json!({ "facts": stored }))).into_response())
}

pub(super) async fn query(State(app): State<App>, Query(query): Query<FactsQuery>) -> Problematic {
    Ok(Json(on_thread(&app, move |host| host.query_facts(query)).await?).into_response())
}

pub(super) async fn show(State(app): State<App>, Path(id): Path<String>) -> Problematic {
    Ok(Json(on_thread(&app, move |host| host.fact(&id)).await?).into_response())
}

pub(super) async fn delete(State(app): State<App>, Path(id): Path<String>) -> Problematic {
    on_thread(&app, move |host| host.delete_fact(&id)).await?;
    Ok(Json(json!({ "deleted": true })).into_response())
}

pub(super) async fn of_entity(State(app): State<App>, Path(entity): Path<String>) -> Problematic {
    let facts = on_thread(&app, move |host| host.facts_of(&entity)).await?;
    Ok(Json(json!({ "facts": facts })).into_response())
}

/// Which fact.
#[derive(Deserialize)]
pub(super) struct Named {
    entity: String,
    key: String,
}

pub(super) async fn history(
    State(app): State<App>,
    Query(Named { entity, key }): Query<Named>,
) -> Problematic {
    let facts = on_thread(&app, move |host| host.fact_history(&entity, &key)).await?;
    Ok(Json(json!({ "facts": facts })).into_response())
}

pub(super) async fn export(State(app): State<App>, Query(page): Query<FactsExport>) -> Problematic {
    Ok(Json(on_thread(&app, move |host| host.export_facts(page)).await?).into_response())
}
