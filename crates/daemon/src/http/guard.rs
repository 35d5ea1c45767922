//! Who gets in: requests that were sent to this very address, from this very page or from no page, with the token.
//!
//! A page of another origin can send requests to this computer, and by *rebinding* its name to 127.0.0.1 even read the
//! answers. Its requests carry its own name in `Host`, and mostly in `Origin`: both are checked on every route. The token
//! is checked on every route that reads or changes anything but the page's files; those who were paired have tokens of
//! their own, which are good for some of the routes.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{Request, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use toolshelf_core::refusal::{Code, Refusal, cut};

use toolshelf_core::remote::scope::Scope;

use super::answer::Fault;
use super::who::Who;
use super::{App, cors};

/// The names under which this server is reached, in lower case.
#[derive(Debug, Clone)]
pub(crate) struct Hosts {
    names: Vec<String>,
    /// Whether any number will do, on this port: no name can be made to lead here as a number.
    any_number: Option<u16>,
    /// What comes before the name in an origin of this server's own pages.
    scheme: &'static str,
}

impl Hosts {
    /// The names of a server on the loopback address `listen`.
    #[cfg(test)]
    pub(crate) fn of(listen: SocketAddr) -> Self {
        Self::with(listen, false, &[])
    }

    /// The names of a server on `listen`, over TLS or not, that is called by `more` names besides.
    pub(crate) fn with(listen: SocketAddr, tls: bool, more: &[String]) -> Self {
        let port = listen.port();
        let (scheme, usual) = if tls { ("https://", 443) } else { ("http://", 80) };
        let mut names = vec![listen.to_string()];
        let own = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
        for host in own.iter().chain(more) {
            names.push(format!("{host}:{port}"));
            if port == usual {
                // The port that browsers leave out.
                names.push(host.clone());
            }
        }
        let any_number = (!listen.ip().is_loopback()).then_some(port);
        Self { names, any_number, scheme }
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

    /// The origin of a page that is not this server's own; `None` where the request names none, or its own.
    ///
    /// # Errors
    /// [`Code::OriginNotAllowed`] for what is no origin, or several.
    pub(crate) fn foreign_origin<'h>(&self, headers: &'h HeaderMap) -> Result<Option<&'h str>, Refusal> {
        let mut origins = headers.get_all(ORIGIN).iter();
        let (first, second) = (origins.next(), origins.next());
        let Some(origin) = first else { return Ok(None) };
        match origin.to_str() {
            Ok(origin) if second.is_none() => {
                Ok((!origin.strip_prefix(self.scheme).is_some_and(|host| self.has(host))).then_some(origin))
            }
            _ => Err(Refusal::new(Code::OriginNotAllowed, "the request must name one origin, or none")),
        }
    }

    fn has(&self, host: &str) -> bool {
        let is_number = |port: u16| {
            let bare = host.strip_suffix(&format!(":{port}")).unwrap_or(host);
            let bare = bare.strip_prefix('[').and_then(|bare| bare.strip_suffix(']')).unwrap_or(bare);
            bare != host && bare.parse::<IpAddr>().is_ok()
        };
        self.names.iter().any(|name| name.eq_ignore_ascii_case(host))
            || self.any_number.is_some_and(is_number)
    }
}

/// The first thing that happens to every request, and the last to every answer.
pub(crate) async fn every_request(State(app): State<App>, request: Request, next: Next) -> Response {
    let checked = app.hosts().check_host(&request).and_then(|()| cors::check(&app, &request));
    let (mut response, foreign) = match checked {
        Ok(None) => (next.run(request).await, None),
        Ok(Some(origin)) => match cors::preflight(&request) {
            Some(response) => (response, Some(origin)),
            None => (next.run(request).await, Some(origin)),
        },
        Err(refusal) => (Fault::from(refusal).into_response(), None),
    };
    if let Some(origin) = foreign {
        cors::allow(response.headers_mut(), &origin);
    }
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// What comes before every route that is for who sits at this computer.
pub(crate) async fn with_token(State(app): State<App>, request: Request, next: Next) -> Response {
    let checked = Who::of_request(&app, request.headers()).and_then(|who| match who {
        Who::Owner => Ok(()),
        Who::Paired(_) => {
            Err(Refusal::new(Code::OutsideScope, "a paired token is not for setting this computer up"))
        }
    });
    match checked {
        Ok(()) => next.run(request).await,
        Err(refusal) => Fault::from(refusal).into_response(),
    }
}

/// What comes before a route that those who were paired may ask, too: in `scope`, or in any where there is none.
pub(crate) async fn with_any_token(
    app: &App,
    scope: Option<Scope>,
    mut request: Request,
    next: Next,
) -> Response {
    let who = Who::of_request(app, request.headers()).and_then(|who| who.may_in(scope).map(|()| who));
    match who {
        Ok(who) => {
            request.extensions_mut().insert(who);
            next.run(request).await
        }
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
    fn origins_of_other_pages_are_told_from_its_own() {
        let plain = Hosts::of("127.0.0.1:14800".parse().unwrap());
        let tls = Hosts::with("0.0.0.0:14800".parse().unwrap(), true, &["studio.local".into()]);
        let foreign = |hosts: &Hosts, origin: &str| {
            let headers = request("/", &[("origin", origin)]).headers().clone();
            hosts.foreign_origin(&headers).map(|origin| origin.is_some())
        };
        for own in ["http://127.0.0.1:14800", "http://localhost:14800"] {
            assert_eq!(foreign(&plain, own), Ok(false), "{own}");
        }
        for own in ["https://studio.local:14800", "https://192.168.1.7:14800", "https://[fe80::1]:14800"] {
            assert_eq!(foreign(&tls, own), Ok(false), "{own}");
        }
        for other in ["null", "https://127.0.0.1:14800", "http://127.0.0.1", "http://evil.example", ""] {
            assert_eq!(foreign(&plain, other), Ok(true), "{other}");
        }
        for other in ["http://studio.local:14800", "https://evil.example:14800", "https://192.168.1.7"] {
            assert_eq!(foreign(&tls, other), Ok(true), "{other}");
        }
        let twice = [("origin", "http://localhost:14800"), ("origin", "http://localhost:14800")];
        assert!(plain.foreign_origin(request("/", &twice).headers()).is_err());
        let bare = request("/", &[]);
        assert_eq!(plain.foreign_origin(bare.headers()), Ok(None));
    }

    #[test]
    fn a_server_for_other_computers_is_named_by_its_names_and_by_numbers() {
        let hosts = Hosts::with("0.0.0.0:14800".parse().unwrap(), true, &["studio.local".into()]);
        let check = |host: &str| hosts.check_host(&request("/", &[("host", host)])).is_ok();
        for own in ["studio.local:14800", "Studio.Local:14800", "192.168.1.7:14800", "[fe80::1]:14800"] {
            assert!(check(own), "{own}");
        }
        for other in
            ["evil.example:14800", "studio.local", "192.168.1.7", "192.168.1.7:1", "1.2.3.4.example:14800"]
        {
            assert!(!check(other), "{other}");
        }
    }

    #[test]
    fn a_request_carries_one_token() {
        use super::super::who::bearer;
        let of = |headers: &[(&str, &str)]| bearer(request("/", headers).headers()).map(str::to_owned).ok();
        let right = ("authorization", "Bearer 0123456789abcdef");
        assert_eq!(of(&[right]).as_deref(), Some("0123456789abcdef"));
        assert_eq!(of(&[("authorization", "bearer  0123456789abcdef")]).as_deref(), Some("0123456789abcdef"));
        for wrong in ["0123456789abcdef", "Bearer", "Basic 0123456789abcdef"] {
            assert_eq!(of(&[("authorization", wrong)]), None, "{wrong}");
        }
        assert!(of(&[]).is_none() && of(&[right, right]).is_none());
    }
}
