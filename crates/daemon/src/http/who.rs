//! Who asks: whoever has this computer's token, or somebody who was paired.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use toolshelf_core::live::CallOrigin;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::remote::scope::Scope;

use super::App;
use super::answer::Fault;
use crate::remote::channel::check_scope;
use crate::remote::pairings::{Granted, Pairings};
use crate::service::{OWNER, Session};

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Who {
    /// Who sits at this computer.
    Owner,
    /// Who was paired.
    Paired(Granted),
}

impl Who {
    /// Whoever shows `bearer`, from a page of the foreign `origin` or from no foreign page.
    ///
    /// # Errors
    /// [`Code::BearerRefused`], [`Code::OriginNotAllowed`], and what [`Pairings::check`] says.
    pub(crate) fn of(app: &App, bearer: &str, origin: Option<&str>) -> Result<Self, Refusal> {
        if app.token().is(bearer) {
            return match origin {
                None => Ok(Self::Owner),
                Some(_) => {
                    let why =
                        "a page of another origin must be paired; this computer's own token is not for it";
                    Err(Refusal::new(Code::OriginNotAllowed, why))
                }
            };
        }
        if Pairings::is_token(bearer) {
            return app.pairings().check(bearer, origin).map(Self::Paired);
        }
        Err(Refusal::new(Code::BearerRefused, "the token is not the one of this companion"))
    }

    /// Whoever a request comes from.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub(crate) fn of_request(app: &App, headers: &HeaderMap) -> Result<Self, Refusal> {
        Self::of(app, bearer(headers)?, app.hosts().foreign_origin(headers)?)
    }

    /// The session of a command.
    pub(crate) fn session(&self, from: CallOrigin) -> Session {
        Session { owner: self.owner(), from }
    }

    /// Whose tasks they see.
    pub(crate) fn owner(&self) -> String {
        match self {
            Self::Owner => OWNER.to_owned(),
            Self::Paired(granted) => granted.owner(),
        }
    }

    /// # Errors
    /// [`Code::OutsideScope`] for a command that the token is not good for.
    pub(crate) fn may(&self, command: &str) -> Result<(), Refusal> {
        match self {
            Self::Owner => Ok(()),
            Self::Paired(granted) => check_scope(granted, command),
        }
    }

    /// # Errors
    /// [`Code::OutsideScope`] for a token that is not good for it.
    pub(super) fn may_in(&self, scope: Option<Scope>) -> Result<(), Refusal> {
        match (self, scope) {
            (Self::Paired(granted), Some(scope)) if !granted.scopes.contains(&scope) => {
                let why = format!("this needs the scope {:?}, which the token does not have", scope.as_str());
                Err(Refusal::new(Code::OutsideScope, why))
            }
            _ => Ok(()),
        }
    }

    /// Waits until they may ask no more, and says why. Who sits here always may.
    pub(crate) async fn ended(&self, pairings: &Pairings) -> Refusal {
        match self {
            Self::Owner => std::future::pending().await,
            Self::Paired(granted) => pairings.ended(&granted.id).await,
        }
    }
}

impl FromRequestParts<App> for Who {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Fault> {
        // The guard of the route has put it there.
        match parts.extensions.get::<Self>() {
            Some(who) => Ok(who.clone()),
            None => Ok(Self::of_request(app, &parts.headers)?),
        }
    }
}

/// The token of a request, which must carry one, once.
///
/// # Errors
/// [`Code::BearerRefused`].
pub(crate) fn bearer(headers: &HeaderMap) -> Result<&str, Refusal> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let Some(first) = given.next() else {
        return Err(Refusal::new(Code::BearerRefused, "the request has no `authorization: Bearer` header"));
    };
    match first.to_str().ok().and_then(|value| value.split_once(' ')) {
        Some((scheme, bearer)) if given.next().is_none() && scheme.eq_ignore_ascii_case("bearer") => {
            Ok(bearer.trim())
        }
        _ => Err(Refusal::new(Code::BearerRefused, "the request must carry one bearer token")),
    }
}
