//! What requests bring and what they are answered: bodies that are read within bounds, JSON, and refusals with a status.

use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::StreamExt as _;
use serde_json::{Map, Value};
use tokio::time::timeout;
use toolshelf_core::refusal::{Code, Refusal, cut};

use super::status::status;

/// Longest body, in bytes: as much as a live frame holds.
pub(crate) const BODY_MAX_BYTES: usize = toolshelf_core::live::LIVE_FRAME_MAX_BYTES;
/// Within this time a body must have arrived.
const BODY_TIME: Duration = Duration::from_secs(20);

/// What a route answers.
pub(crate) type Answered = Result<Json<Value>, Fault>;

/// A "no" with the status that it is sent with.
#[derive(Debug)]
pub(crate) struct Fault {
    refusal: Refusal,
    status: StatusCode,
}

impl Fault {
    /// A "no" whose status says more than its code does.
    pub(crate) fn with_status(status: StatusCode, code: Code, why: impl Into<String>) -> Self {
        Self { refusal: Refusal::new(code, why), status }
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self { status: status(refusal.code), refusal }
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let Self { refusal, status } = self;
        let code = refusal.code;
        let mut response = (status, Json(refusal)).into_response();
        if code == Code::BearerRefused {
            let scheme = HeaderValue::from_static("Bearer realm=\"toolshelf\"");
            response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        }
        // For the log and the metrics.
        response.extensions_mut().insert(code);
        response
    }
}

/// The JSON object in the body of `request`.
///
/// # Errors
/// [`Code::InvalidFrame`]: 415 for a body of another type, 413 for one that is too long, 408 for one that does not
/// arrive, 400 for anything but a JSON object.
pub(crate) async fn object(request: Request<Body>) -> Result<Map<String, Value>, Fault> {
    object_within(request, BODY_MAX_BYTES).await
}

/// The same for a body that may have `most` bytes.
///
/// # Errors
/// As [`object`].
pub(crate) async fn object_within(request: Request<Body>, most: usize) -> Result<Map<String, Value>, Fault> {
    match json_within(request, most).await? {
        Value::Object(object) => Ok(object),
        _ => Err(invalid("the body must be a JSON object")),
    }
}

/// The JSON in the body of `request`.
///
/// # Errors
/// As [`object`], which asks for more.
pub(crate) async fn json(request: Request<Body>) -> Result<Value, Fault> {
    json_within(request, BODY_MAX_BYTES).await
}

async fn json_within(request: Request<Body>, most: usize) -> Result<Value, Fault> {
    let (parts, body) = request.into_parts();
    check_type(&parts.headers)?;
    let declared = parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if declared.is_some_and(|length: u64| length > most as u64) {
        return Err(too_long(most));
    }
    let body = within(body, most).await?;
    serde_json::from_slice(&body)
        .map_err(|err| invalid(&format!("the body is not JSON: {}", cut(&err.to_string(), 120))))
}

fn check_type(headers: &HeaderMap) -> Result<(), Fault> {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let bare = given.split(';').next().unwrap_or_default().trim();
    if bare.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let why = format!("the body must be `content-type: application/json`, not {:?}", cut(given, 60));
    Err(Fault::with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::InvalidFrame, why))
}

/// The bytes of a body that arrives in time.
///
/// # Errors
/// As [`object`], but for what its bytes say.
pub(crate) async fn whole(body: Body) -> Result<Vec<u8>, Fault> {
    within(body, BODY_MAX_BYTES).await
}

async fn within(body: Body, most: usize) -> Result<Vec<u8>, Fault> {
    timeout(BODY_TIME, collected(body, most)).await.unwrap_or_else(|_| {
        let why = format!("the body did not arrive within {} s", BODY_TIME.as_secs());
        Err(Fault::with_status(StatusCode::REQUEST_TIMEOUT, Code::InvalidFrame, why))
    })
}

async fn collected(body: Body, most: usize) -> Result<Vec<u8>, Fault> {
    let mut chunks = body.into_data_stream();
    let mut bytes = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let chunk: Bytes = chunk.map_err(|_| invalid("the body ended before all of it had arrived"))?;
        if bytes.len() + chunk.len() > most {
            return Err(too_long(most));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

fn too_long(most: usize) -> Fault {
    let why = format!("the body is longer than {most} bytes");
    Fault::with_status(StatusCode::PAYLOAD_TOO_LARGE, Code::InvalidFrame, why)
}

pub(crate) fn invalid(why: &str) -> Fault {
    Refusal::new(Code::InvalidFrame, why).into()
}
