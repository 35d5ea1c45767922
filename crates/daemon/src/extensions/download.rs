//! The download of a module: https only, bounded while it comes, and worth nothing until its digest is the pinned one.

use std::time::Duration;

use toolshelf_core::Digest;
use toolshelf_core::extension::ExtensionError;
use toolshelf_core::extension::errors::WASM_MODULE_DOWNLOAD_LIMIT_BYTES;
use toolshelf_core::extension::read::{INTEGRATION_MAX_BYTES, ManifestReadFault};
use toolshelf_core::refusal::cut;

use super::outbound::{self, Authorities, Failure, Way};

/// Whole time of a download.
pub(crate) const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Largest manifest that is downloaded, in bytes.
pub(crate) const MANIFEST_MAX_BYTES: u64 = INTEGRATION_MAX_BYTES as u64;
/// Most redirects of a download.
const REDIRECTS: u32 = 5;

/// How modules are downloaded here.
#[derive(Debug, Clone)]
pub(super) struct Download {
    /// Whole time.
    pub(super) timeout: Duration,
    /// Whether addresses of this computer and its networks are allowed.
    pub(super) private_addresses: bool,
    /// Whom certificates may come from.
    pub(super) authorities: Authorities,
}

impl Download {
    /// Brings the module whose manifest pins `sha256`. The thread is blocked meanwhile.
    ///
    /// # Errors
    /// Those of [`ExtensionError`] that are about downloads; nothing has been written then.
    pub(super) fn module(&self, url: &str, sha256: &str) -> Result<Vec<u8>, ExtensionError> {
        let bytes = self.bytes(url, "application/wasm, */*", WASM_MODULE_DOWNLOAD_LIMIT_BYTES)?;
        check_digest(&bytes, sha256)?;
        Ok(bytes)
    }

    /// Brings a manifest. Nothing vouches for it but its own signature.
    ///
    /// # Errors
    /// Those of [`ExtensionError`] that are about downloads.
    pub(super) fn manifest(&self, url: &str) -> Result<Vec<u8>, ExtensionError> {
        self.bytes(url, "application/json, */*", MANIFEST_MAX_BYTES).map_err(|err| match err {
            ExtensionError::ModuleTooLarge => ManifestReadFault::TooLarge.into(),
            err => err,
        })
    }

    fn bytes(&self, url: &str, accept: &str, limit: u64) -> Result<Vec<u8>, ExtensionError> {
        if !url.starts_with("https://") {
            return Err(ExtensionError::DownloadFailed(format!("{:?} is no https:// URL", cut(url, 120))));
        }
        let agent = outbound::agent(&Way {
            timeout: self.timeout,
            redirects: REDIRECTS,
            plain_http: false,
            private_addresses: self.private_addresses,
            authorities: self.authorities.clone(),
        });
        let mut response = agent.get(url).header("accept", accept).call().map_err(failed)?;
        let status = response.status();
        if !status.is_success() {
            return Err(ExtensionError::DownloadStatus(status.as_u16()));
        }
        // What is announced too large need not come at all; what comes is counted all the same.
        if response.body().content_length().is_some_and(|length| length > limit) {
            return Err(ExtensionError::ModuleTooLarge);
        }
        response.body_mut().with_config().limit(limit).read_to_vec().map_err(failed)
    }
}

/// Checks a module that has just come.
///
/// # Errors
/// [`ExtensionError::DownloadMismatch`].
pub(super) fn check_digest(bytes: &[u8], sha256: &str) -> Result<(), ExtensionError> {
    let downloaded = Digest::of(bytes).to_string();
    if downloaded == sha256 {
        return Ok(());
    }
    Err(ExtensionError::DownloadMismatch { manifest: sha256.to_owned(), downloaded })
}

fn failed(err: ureq::Error) -> ExtensionError {
    match Failure::from(err) {
        Failure::TooLarge => ExtensionError::ModuleTooLarge,
        Failure::Private(private) => ExtensionError::DownloadFailed(private.to_string()),
        Failure::Other(why) => ExtensionError::DownloadFailed(why),
    }
}
