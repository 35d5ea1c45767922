//! What is looked at before and after something is done, and installing an extension with its module in the same body.

use axum::Json;
use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;
use toolshelf_core::extension::errors::WASM_MODULE_DOWNLOAD_LIMIT_BYTES;
use toolshelf_core::extension::read::INTEGRATION_MAX_BYTES;
use toolshelf_core::problem::{Problem, ProblemKind};

use super::App;
use super::answer::object_within;
use super::extensions::{installed_state, on_thread, passport};
use super::problem::{Declined, Problematic, read};
use crate::extensions::look::FactsBrowse;
use crate::extensions::registry::ModuleSource;
use crate::extensions::{ExtError, Extensions};

/// Longest body that installs an extension, in bytes: a manifest, and a module in base64.
const REGISTER_MAX_BYTES: usize =
    INTEGRATION_MAX_BYTES + (WASM_MODULE_DOWNLOAD_LIMIT_BYTES as usize).div_ceil(3) * 4 + 1_024;

/// What is to be installed.
#[derive(Deserialize)]
struct Register {
    manifest: Value,
    module: Option<Module>,
    #[serde(default)]
    staged: bool,
}

/// A module that comes with its manifest.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Module {
    base64: String,
}

pub(super) async fn register(State(app): State<App>, request: Request) -> Problematic {
    let by = passport(request.headers());
    let Register { manifest, module, staged } = read(object_within(request, REGISTER_MAX_BYTES).await?)?;
    let source = match module {
        None => ModuleSource::Manifest,
        Some(module) => ModuleSource::Bytes(STANDARD.decode(module.base64).map_err(|_| no_base64())?),
    };
    let state = installed_state(staged);
    let install = move |host: &Extensions| host.install(&manifest, source, state, by.as_deref());
    Ok((StatusCode::CREATED, Json(on_thread(&app, install).await?)).into_response())
}

fn no_base64() -> Declined {
    let detail = "`module.base64` must be base64 of the standard alphabet, with padding";
    Declined::of(ProblemKind::BadRequest, &Problem::new(ProblemKind::BadRequest, detail))
}

/// Where the manifest is that is looked at.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
enum Inspect {
    Manifest(Value),
    Url(String),
}

pub(super) async fn inspect(State(app): State<App>, request: Request) -> Problematic {
    let what: Inspect = read(object_within(request, INTEGRATION_MAX_BYTES + 1_024).await?)?;
    let inspect = move |host: &Extensions| {
        let manifest = match what {
            Inspect::Manifest(manifest) => manifest,
            Inspect::Url(url) => host.fetch_manifest(&url)?,
        };
        Ok::<_, ExtError>(host.inspect(&manifest))
    };
    Ok(Json(on_thread(&app, inspect).await?).into_response())
}

pub(super) async fn verify_receipts(State(app): State<App>) -> Problematic {
    Ok(Json(on_thread(&app, |host| Ok(host.verify_receipts())).await?).into_response())
}

pub(super) async fn browse(State(app): State<App>, Query(browse): Query<FactsBrowse>) -> Problematic {
    Ok(Json(on_thread(&app, move |host| host.browse_facts(browse)).await?).into_response())
}
