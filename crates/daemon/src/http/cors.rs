//! Pages of other origins: those that were paired may send requests here, and any may try a code.
//!
//! A browser asks first (a *preflight*), without the token. It is answered for the origins that hold a token, and for
//! the one route where a token is had for a code. A browser that wants to know whether this address in a private network
//! may be asked from outside of it is told the same.

use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use toolshelf_core::refusal::{Code, Refusal, cut};

use super::App;

/// The route that gives a token for a code.
pub(super) const PAIR: &str = "/v1/pair";
/// What paired pages may send. Deleting is for who sits at this computer.
const METHODS: &str = "GET, POST";
const HEADERS: &str = "authorization, content-type";
/// How long a browser may remember the answer, in seconds. A token that is revoked is refused all the same.
const MAX_AGE: &str = "300";

const REQUEST_PRIVATE: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// The foreign origin that is let through, if the request names one.
///
/// # Errors
/// [`Code::OriginNotAllowed`] for one that is not.
pub(super) fn check(app: &App, request: &Request) -> Result<Option<String>, Refusal> {
    let Some(origin) = app.hosts().foreign_origin(request.headers())? else { return Ok(None) };
    // An origin that many pages share names none of them.
    let is_page = origin.starts_with("https://") || origin.starts_with("http://");
    if is_page && (request.uri().path() == PAIR || app.pairings().knows_origin(origin)) {
        return Ok(Some(origin.to_owned()));
    }
    let why = format!("a page of {:?} may not send requests here unless it is paired", cut(origin, 80));
    Err(Refusal::new(Code::OriginNotAllowed, why))
}

/// The answer to a preflight, if the request of a foreign page is one.
pub(super) fn preflight(request: &Request) -> Option<Response> {
    let headers = request.headers();
    if request.method() != Method::OPTIONS || !headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
        return None;
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    let wants_private = headers.get(REQUEST_PRIVATE).is_some_and(|value| value == "true");
    let allowed = response.headers_mut();
    allowed.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    allowed.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(HEADERS));
    allowed.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));
    if wants_private {
        allowed.insert(ALLOW_PRIVATE, HeaderValue::from_static("true"));
    }
    Some(response)
}

/// Lets the page of `origin` read the answer.
pub(super) fn allow(headers: &mut HeaderMap, origin: &str) {
    if let Ok(origin) = HeaderValue::from_str(origin) {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    }
    headers.append(VARY, HeaderValue::from_static("origin"));
}
