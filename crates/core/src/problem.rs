//! Problem documents: the body of a "no" of the interface for extensions and facts, `application/problem+json`.
//!
//! Source: the reference facts, C1. Elsewhere a "no" is a [`Refusal`](crate::Refusal); every problem has a code of one
//! as well, so that the page and the command line speak of both in the same words.

use serde::{Deserialize, Serialize};

/// The media type of a problem document.
pub const PROBLEM_MEDIA_TYPE: &str = "application/problem+json";
/// What stands before the slug in a problem's `type`.
pub const PROBLEM_TYPE_BASE: &str = "https://errors.cuecrux.com/";

macro_rules! kinds {
    ($($variant:ident = $status:literal, $slug:literal, $title:literal;)*) => {
        /// What kind of problem it is: its HTTP status, its slug and its title.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ProblemKind {
            $(#[doc = $title] $variant,)*
        }

        impl ProblemKind {
            /// Every kind, by its status.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The HTTP status.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)* }
            }

            /// The last part of the problem's type.
            #[must_use]
            pub const fn slug(self) -> &'static str {
                match self { $(Self::$variant => $slug,)* }
            }

            /// The title, which is the same for all problems of the kind.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }
        }
    };
}

kinds! {
    BadRequest = 400, "bad-request", "Bad Request";
    Unauthorized = 401, "unauthorized", "Unauthorized";
    Forbidden = 403, "forbidden", "Forbidden";
    NotFound = 404, "not-found", "Not Found";
    RequestTimeout = 408, "request-timeout", "Request Timeout";
    Conflict = 409, "conflict", "Conflict";
    PayloadTooLarge = 413, "payload-too-large", "Payload Too Large";
    Validation = 422, "validation", "Unprocessable Content";
    RateLimited = 429, "rate-limited", "Too Many Requests";
    Internal = 500, "internal", "Internal Server Error";
    NotImplemented = 501, "not-implemented", "Not Implemented";
    BadGateway = 502, "bad-gateway", "Bad Gateway";
    Unavailable = 503, "unavailable", "Service Unavailable";
    InsufficientStorage = 507, "insufficient-storage", "Insufficient Storage";
}

/// A problem document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// [`PROBLEM_TYPE_BASE`] and the slug.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind's title.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What happened here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The path of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
}

impl Problem {
    /// A problem of `kind` with `detail` as its sentence.
    pub fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("{PROBLEM_TYPE_BASE}{}", kind.slug()),
            title: kind.title().to_owned(),
            status: kind.status(),
            detail: Some(detail.into()),
            instance: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_has_the_wire_form_of_its_standard() {
        let problem = Problem::new(ProblemKind::Conflict, "extension id already installed");
        let json = serde_json::to_string(&problem).unwrap();
        assert_eq!(
            json,
            r#"{"type":"https://errors.cuecrux.com/conflict","title":"Conflict","status":409,"detail":"extension id already installed"}"#
        );
        assert_eq!(serde_json::from_str::<Problem>(&json).unwrap(), problem);
    }

    #[test]
    fn kinds_differ_in_status_and_slug_and_stand_in_order() {
        assert!(ProblemKind::ALL.is_sorted_by(|a, b| a.status() < b.status()));
        let slugs: std::collections::HashSet<_> = ProblemKind::ALL.iter().map(|kind| kind.slug()).collect();
        assert_eq!(slugs.len(), ProblemKind::ALL.len());
    }
}
