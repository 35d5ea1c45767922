//! The call of an external tool: one request, within bounds, to where the manifest and the host both allow it.
//!
//! No redirect is followed: what would be sent with it (the arguments, the secret) was meant for the endpoint.

use std::time::Instant;

use serde::Serialize;
use serde_json::Value;
use toolshelf_core::extension::IntegrationManifest;
use toolshelf_core::extension::envelope::{ToolRequest, ToolResponse};
use toolshelf_core::extension::external::{ExternalFault, UPSTREAM_TEXT_MAX_CHARS};
use toolshelf_core::redact::Redactor;
use toolshelf_core::refusal::cut;
use ureq::http::Uri;
use zeroize::Zeroizing;

use super::config::ExternalLimits;
use super::outbound::{self, Authorities, Failure, Way};

/// What an external tool answers with, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ExternalOutcome {
    /// What the tool says.
    pub(crate) result: Value,
    /// Facts that it proposed and that were stored.
    pub(crate) accepted_fact_writes: usize,
    /// Facts that it proposed and that were not.
    pub(crate) dropped_fact_writes: usize,
    /// Why not, one text for each.
    pub(crate) drop_reasons: Vec<String>,
    /// Status of its answer.
    pub(crate) upstream_status: u16,
    /// How long the call took, in milliseconds.
    pub(crate) elapsed_ms: u64,
    /// Names the call.
    pub(crate) request_id: String,
    /// Who answered.
    pub(crate) attribution: Attribution,
}

/// Which extension in which version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Attribution {
    pub(crate) extension_id: String,
    pub(crate) extension_version: String,
    pub(crate) manifest_hash: String,
}

/// A call that is about to be made.
pub(super) struct ExternalCall<'c> {
    pub(super) manifest: &'c IntegrationManifest,
    pub(super) request: ToolRequest<'c>,
    /// What the endpoint knows the host by.
    pub(super) secret: Option<Zeroizing<String>>,
    pub(super) limits: ExternalLimits,
    pub(super) authorities: Authorities,
}

/// An answer, before its writes are looked at.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) response: ToolResponse,
    pub(super) status: u16,
    pub(super) elapsed_ms: u64,
}

impl ExternalCall<'_> {
    /// Makes the call. The thread is blocked meanwhile.
    ///
    /// # Errors
    /// An [`ExternalFault`]. What the endpoint says is repeated without the secret.
    pub(super) fn make(&self) -> Result<Answered, ExternalFault> {
        let endpoint = self.manifest.external_tool_endpoint.as_deref().unwrap_or_default();
        self.check_endpoint(endpoint)?;
        let limits = &self.limits;
        let body = self.request.to_json().map_err(|err| ExternalFault::Transport(err.to_string()))?;
        if body.len() as u64 > limits.request_bytes {
            return Err(ExternalFault::RequestTooLarge(body.len() as u64, limits.request_bytes));
        }
        let agent = outbound::agent(&Way {
            timeout: limits.timeout,
            redirects: 0,
            plain_http: limits.plain_http,
            private_addresses: limits.private_addresses,
            authorities: self.authorities.clone(),
        });
        let start = Instant::now();
        let mut request = agent
            .post(endpoint)
            .header("content-type", "application/json")
            .header("accept", "application/json");
        if let Some(secret) = &self.secret {
            let bearer = Zeroizing::new(format!("Bearer {}", secret.as_str()));
            request = request.header("authorization", bearer.as_str());
        }
        let mut response = request.send(&body[..]).map_err(|err| self.failed(err, endpoint))?;
        let status = response.status();
        let cap =
            if status.is_success() { limits.response_bytes } else { limits.response_bytes.min(64 * 1024) };
        let bytes = response.body_mut().with_config().limit(cap).read_to_vec();
        if !status.is_success() {
            // Its words are a help where they can be had; the status is what counts.
            let text = self.redacted(&String::from_utf8_lossy(&bytes.unwrap_or_default()));
            return Err(ExternalFault::Upstream { status: status.as_u16(), text });
        }
        let bytes = bytes.map_err(|err| self.failed(err, endpoint))?;
        let response = ToolResponse::read(&bytes)
            .map_err(|fault| ExternalFault::Malformed(self.redacted(&fault.to_string())))?;
        let elapsed_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(Answered { response, status: status.as_u16(), elapsed_ms })
    }

    fn check_endpoint(&self, endpoint: &str) -> Result<(), ExternalFault> {
        let uri: Uri =
            endpoint.parse().map_err(|err| ExternalFault::Transport(format!("endpoint: {err}")))?;
        let authority =
            uri.authority().ok_or_else(|| ExternalFault::Transport("endpoint: no host".to_owned()))?;
        if authority.as_str().contains('@') {
            return Err(ExternalFault::Transport("endpoint: it names a user".to_owned()));
        }
        let is_plain = uri.scheme_str() != Some("https");
        if is_plain && !self.limits.plain_http {
            return Err(ExternalFault::PlainHttp(cut(endpoint, UPSTREAM_TEXT_MAX_CHARS)));
        }
        let port = authority.port_u16().unwrap_or(if is_plain { 80 } else { 443 });
        let with_port = format!("{}:{port}", authority.host());
        let allowed = &self.manifest.network.allowed_hosts;
        let is_host = |name: &String| {
            name.eq_ignore_ascii_case(authority.host()) || name.eq_ignore_ascii_case(&with_port)
        };
        if allowed.is_empty() || allowed.iter().any(is_host) {
            return Ok(());
        }
        let (authority, id) = (authority.to_string(), self.manifest.id.clone());
        Err(ExternalFault::HostNotAllowed { authority, id })
    }

    fn failed(&self, err: ureq::Error, endpoint: &str) -> ExternalFault {
        match Failure::from(err) {
            Failure::Private(_) => ExternalFault::PrivateAddress(cut(endpoint, UPSTREAM_TEXT_MAX_CHARS)),
            Failure::TooLarge => ExternalFault::ResponseTooLarge(self.limits.response_bytes),
            Failure::Other(why) => ExternalFault::Transport(self.redacted(&why)),
        }
    }

    /// What an endpoint says, without the secret that it was sent.
    fn redacted(&self, text: &str) -> String {
        let secret = self.secret.iter().map(|secret| ("SECRET", secret.as_str()));
        cut(&Redactor::from_variables(secret).redact(text), UPSTREAM_TEXT_MAX_CHARS)
    }
}
