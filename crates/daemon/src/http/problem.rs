//! Problem documents as answers: the "no" of the interface for extensions and facts.

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use toolshelf_core::problem::{PROBLEM_MEDIA_TYPE, Problem, ProblemKind};
use toolshelf_core::refusal::{Code, Refusal, cut};

use super::answer::Fault;
use crate::extensions::ExtError;
use crate::extensions::error::InvokeError;

/// What a route of extensions or facts answers.
pub(super) type Problematic = Result<Response, Declined>;

/// A "no".
#[derive(Debug)]
pub(super) enum Declined {
    /// By extensions or facts.
    Problem { status: u16, document: Value },
    /// Before the request got that far.
    Fault(Fault),
}

impl Declined {
    /// A problem that no part of extensions or facts tells of.
    pub(super) fn of(kind: ProblemKind, problem: &Problem) -> Self {
        Self::coded(kind, json!(problem), Code::InvalidFrame)
    }

    /// Beside its own fields a document has the refusal's `code`, so that every interface speaks of it in the same words.
    fn coded(kind: ProblemKind, mut document: Value, code: Code) -> Self {
        document["code"] = code.as_str().into();
        Self::Problem { status: kind.status(), document }
    }
}

impl From<ExtError> for Declined {
    fn from(err: ExtError) -> Self {
        let (kind, document) = (err.kind(), json!(err.problem()));
        Self::coded(kind, document, Refusal::from(err).code)
    }
}

impl From<InvokeError> for Declined {
    fn from(err: InvokeError) -> Self {
        let (kind, document) = (err.error.kind(), err.problem_json());
        Self::coded(kind, document, Refusal::from(*err.error).code)
    }
}

impl From<Fault> for Declined {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Refusal> for Declined {
    fn from(refusal: Refusal) -> Self {
        Self::Fault(refusal.into())
    }
}

impl IntoResponse for Declined {
    fn into_response(self) -> Response {
        let (status, document) = match self {
            Self::Problem { status, document } => (status, document),
            Self::Fault(fault) => return fault.into_response(),
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, document.to_string()).into_response();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_MEDIA_TYPE));
        response
    }
}

/// Reads a body of a known form.
///
/// # Errors
/// A problem that says what is wrong with it.
pub(super) fn read<T: DeserializeOwned>(body: Map<String, Value>) -> Result<T, Declined> {
    read_value(Value::Object(body))
}

/// The same for a body of any kind.
///
/// # Errors
/// As [`read`].
pub(super) fn read_value<T: DeserializeOwned>(body: Value) -> Result<T, Declined> {
    serde_json::from_value(body).map_err(|err| {
        let detail = format!("the body is not of the form that is asked for: {}", cut(&err.to_string(), 200));
        let problem = Problem::new(ProblemKind::BadRequest, detail);
        Declined::of(ProblemKind::BadRequest, &problem)
    })
}
