//! What an outbound call to an external tool can end with, and which of the writes that it proposes are taken.
//!
//! Source: the reference facts, C6.

use super::envelope::FactWrite;
use crate::grant::Grant;
use crate::refusal::cut;

/// Most characters of what an upstream said that are repeated.
pub const UPSTREAM_TEXT_MAX_CHARS: usize = 512;
/// Most writes that one answer may propose.
pub const EXTERNAL_WRITES_MAX: usize = 256;

/// Why a call of an external tool failed.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum ExternalFault {
    /// Plain HTTP without the switch that allows it.
    #[error("plain http endpoint '{0}' is blocked")]
    PlainHttp(String),
    /// The manifest does not allow the endpoint's host.
    #[error("endpoint '{authority}' is not allowed by extension '{id}' network.allowed_hosts")]
    HostNotAllowed {
        /// Host and port of the endpoint.
        authority: String,
        /// The extension.
        id: String,
    },
    /// The endpoint's host is, or leads to, an address of this machine or its network.
    #[error("endpoint '{0}' leads to a private address")]
    PrivateAddress(String),
    /// The request is too long.
    #[error("request of {0} bytes exceeds the {1}-byte cap")]
    RequestTooLarge(u64, u64),
    /// The response is too long.
    #[error("response exceeds the {0}-byte cap")]
    ResponseTooLarge(u64),
    /// The upstream answered with an error.
    #[error("upstream returned {status}: {}", cut(text, UPSTREAM_TEXT_MAX_CHARS))]
    Upstream {
        /// Its status.
        status: u16,
        /// What it said.
        text: String,
    },
    /// The response is no answer.
    #[error("malformed response: {0}")]
    Malformed(String),
    /// There was no response.
    #[error("transport: {0}")]
    Transport(String),
}

/// The writes of an answer that a grant lets through, and why the others are dropped.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FilteredWrites {
    /// Those that may be stored.
    pub accepted: Vec<FactWrite>,
    /// One text for each that may not.
    pub drop_reasons: Vec<String>,
}

/// Judges the writes that an external tool proposes.
#[must_use]
pub fn filter_writes(writes: Vec<FactWrite>, grant: &Grant) -> FilteredWrites {
    let mut filtered = FilteredWrites::default();
    for (index, write) in writes.into_iter().enumerate() {
        let entity = cut(&write.entity, 200);
        if index >= EXTERNAL_WRITES_MAX {
            filtered
                .drop_reasons
                .push(format!("fact_writes[{index}] is beyond the cap of {EXTERNAL_WRITES_MAX} writes"));
        } else if !grant.may_write(&write.entity) {
            filtered.drop_reasons.push(format!(
                "fact_writes[{index}] entity '{entity}' not covered by grant.allowed_prefixes_write"
            ));
        } else {
            filtered.accepted.push(write);
        }
    }
    filtered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(entity: &str) -> FactWrite {
        FactWrite { entity: entity.into(), key: "k".into(), value: "v".into(), confidence: 1.0 }
    }

    #[test]
    fn writes_outside_the_grant_are_dropped_with_their_reasons() {
        let grant = Grant { allowed_prefixes_write: vec!["notes::".into()], ..Grant::default() };
        let filtered = filter_writes(vec![write("notes::a"), write("note"), write("")], &grant);
        assert_eq!(filtered.accepted, [write("notes::a")]);
        assert_eq!(
            filtered.drop_reasons,
            [
                "fact_writes[1] entity 'note' not covered by grant.allowed_prefixes_write",
                "fact_writes[2] entity '' not covered by grant.allowed_prefixes_write",
            ]
        );
        let many = filter_writes(vec![write("notes::a"); EXTERNAL_WRITES_MAX + 2], &grant);
        assert_eq!((many.accepted.len(), many.drop_reasons.len()), (EXTERNAL_WRITES_MAX, 2));
    }

    #[test]
    fn what_an_upstream_says_is_cut() {
        let fault = ExternalFault::Upstream { status: 500, text: "x".repeat(10_000) };
        assert!(fault.to_string().starts_with("upstream returned 500: xxx"));
        assert!(fault.to_string().len() < 600);
    }
}
