//! Who gets in: requests that were sent to this very address, from this very page or from no page, with the token.
//!
//! A page of another origin can send requests to this computer, and by *rebinding* its name to 127.0.0.1 even read the
//! answers. Its requests carry its own name in `Host`, and mostly in `Origin`: both are checked on every route. The token
//! is checked on every route that reads or changes anything but the page's files.

use std::net::SocketAddr;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use toolshelf_core::refusal::{Code, Refusal, cut};

use super::App;
use super::answer::Fault;
use super::token::Token;

/// The names under which this server is reached, in lower case.
#[derive(Debug, Clone)]
pub(crate) struct Hosts {
    names: Vec<String>,
}

impl Hosts {
    /// The names of a server on the loopback address `listen`.
    pub(crate) fn of(listen: SocketAddr) -> Self {
        let port = listen.port();
        let mut names = vec![listen.to_string()];
        for host in ["localhost", "127.0.0.1", "[::1]"] {
            names.push(format!("{host}:{port}"));
            if port == 80 {
                // The port that browsers leave out.
                names.push(host.to_owned());
            }
        }
        Self { names }
    }

    /// # Errors
    /// [`Code::HostNotAllowed`] unless the request names this server, once.
    pub(crate) fn check_host(&self, request: &Request) -> Result<(), Refusal> {
        let refused = |host: &str| {
            let why = format!("{:?} is not served here; this is {}", cut(host, 80), self.names[0]);
            Err(Refusal::new(Code::HostNotAllowed, why))
        };
        // A proxy's form of the request line names a host as well.
        if let Some(authority) = request.uri().authority()
            && !self.has(authority.as_str())
        {
            return refused(authority.as_str());
        }
        let mut hosts = request.headers().get_all(HOST).iter();
        match (hosts.next().map(HeaderValue::to_str), hosts.next()) {
            (Some(Ok(host)), None) if self.has(host) => Ok(()),
            (Some(Ok(host)), None) => refused(host),
            (None, _) => refused(""),
            _ => refused("more than a name"),
        }
    }

    /// # Errors
    /// [`Code::OriginNotAllowed`] for a request of a page of another origin.
    pub(crate) fn check_origin(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        for origin in headers.get_all(ORIGIN) {
            let origin = origin.to_str().unwrap_or("no text");
            if !origin.strip_prefix("http://").is_some_and(|host| self.has(host)) {
                let why = format!("a page of {:?} may not send requests here", cut(origin, 80));
                return Err(Refusal::new(Code::OriginNotAllowed, why));
            }
        }
        Ok(())
    }

    fn has(&self, host: &str) -> bool {
        self.names.iter().any(|name| name.eq_ignore_ascii_case(host))
    }
}

/// # Errors
/// [`Code::BearerRefused`] unless the request carries the token, once.
pub(crate) fn check_token(headers: &HeaderMap, token: &Token) -> Result<(), Refusal> {
    if !headers.contains_key(AUTHORIZATION) {
        return Err(Refusal::new(Code::BearerRefused, "the request has no `authorization: Bearer` header"));
    }
    match bearer(headers) {
        Some(bearer) if token.is(bearer) => Ok(()),
        _ => Err(Refusal::new(Code::BearerRefused, "the token is not the one of this companion")),
    }
}

/// The bearer token that the request carries, once.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let (first, second) = (given.next()?, given.next());
    let (scheme, bearer) = first.to_str().ok()?.split_once(' ')?;
    (second.is_none() && scheme.eq_ignore_ascii_case("bearer")).then(|| bearer.trim())
}

/// The first thing that happens to every request, and the last to every answer.
pub(crate) async fn every_request(State(app): State<App>, request: Request, next: Next) -> Response {
    let hosts = app.hosts();
    let checked = hosts.check_host(&request).and_then(|()| hosts.check_origin(request.headers()));
    let mut response = match checked {
        Ok(()) => next.run(request).await,
        Err(refusal) => Fault::from(refusal).into_response(),
    };
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// What comes before every route that wants the token.
pub(crate) async fn with_token(State(app): State<App>, request: Request, next: Next) -> Response {
    match check_token(request.headers(), app.token()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => Fault::from(refusal).into_response(),
    }
}

/// Headers of every answer that does not have its own. The page's policy is in the page; this one only adds that nobody
/// may frame it, which a page cannot say itself.
const HEADERS: [(HeaderName, &str); 7] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::CONTENT_SECURITY_POLICY, "frame-ancestors 'none'"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn request(uri: &str, headers: &[(&str, &str)]) -> Request {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).unwrap()
    }

    #[test]
    fn only_the_names_of_this_address_are_served() {
        let hosts = Hosts::of("127.0.0.2:14800".parse().unwrap());
        for host in ["127.0.0.2:14800", "127.0.0.1:14800", "[::1]:14800", "LocalHost:14800"] {
            assert_eq!(hosts.check_host(&request("/", &[("host", host)])), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:14800",
            "127.0.0.1",
            "127.0.0.1:14801",
            "127.0.0.1:14800.evil.example",
            "localhost:14800@evil.example",
            "[::1]",
            "0.0.0.0:14800",
            "",
        ] {
            let refused = hosts.check_host(&request("/", &[("host", host)])).unwrap_err();
            assert_eq!(refused.code, Code::HostNotAllowed, "{host}");
        }
        assert!(hosts.check_host(&request("/", &[])).is_err());
        let twice = [("host", "localhost:14800"), ("host", "localhost:14800")];
        assert!(hosts.check_host(&request("/", &twice)).is_err());
        let proxied = request("http://evil.example/", &[("host", "localhost:14800")]);
        assert!(hosts.check_host(&proxied).is_err());
    }

    #[test]
    fn pages_of_other_origins_are_refused() {
        let hosts = Hosts::of("127.0.0.1:14800".parse().unwrap());
        let check = |origin: &str| hosts.check_origin(request("/", &[("origin", origin)]).headers());
        assert_eq!(check("http://127.0.0.1:14800"), Ok(()));
        assert_eq!(check("http://localhost:14800"), Ok(()));
        for origin in [
            "null",
            "https://127.0.0.1:14800",
            "http://127.0.0.1",
            "http://evil.example",
            "http://localhost:1",
            "",
        ] {
            assert_eq!(check(origin).unwrap_err().code, Code::OriginNotAllowed, "{origin}");
        }
    }

    #[test]
    fn the_token_is_wanted_whole_and_once() {
        let token = Token::of_text("0123456789abcdef").unwrap();
        let check = |headers: &[(&str, &str)]| check_token(request("/", headers).headers(), &token).is_ok();
        let right = ("authorization", "Bearer 0123456789abcdef");
        assert!(check(&[right]));
        assert!(check(&[("authorization", "bearer  0123456789abcdef")]));
        for wrong in
            ["0123456789abcdef", "Bearer 0123456789abcde", "Bearer", "Bearer ", "Basic 0123456789abcdef"]
        {
            assert!(!check(&[("authorization", wrong)]), "{wrong}");
        }
        assert!(!check(&[]) && !check(&[right, right]));
    }
}
