//! How a cluster is reached, and what its environment grants: the table `[cluster]` of `toolshelf.toml`.
//!
//! ```toml
//! [cluster]
//! servers = "tls://nats1.example.org,tls://nats2.example.org"
//! credentials = "/etc/toolshelf/nats.creds"
//! ca-file = "/etc/toolshelf/ca.pem"
//! replicas = 3
//! ```

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::ConnectOptions;
use serde::Deserialize;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_facts::NatsOptions;

use super::ANSWER;

/// Servers that keep each entry, where nobody says.
const REPLICAS: usize = 1;
/// How long a worker may be silent before its tasks are another's, where nobody says, in milliseconds.
const LEASE_MS: u32 = 10_000;
/// A lease is not shorter: a busy machine is silent now and then.
const LEASE_MIN_MS: u32 = 1_000;
/// Tasks that wait, where nobody says.
const QUEUE: i64 = 16_384;
/// Tasks that run at a time on all workers, where nobody says.
const CAPACITY: i64 = 256;
/// How long tasks are kept, where nobody says, in days.
const KEEP_DAYS: u32 = 30;
const NAME: &str = "toolshelf";
const NAME_MAX_CHARS: usize = 40;

/// The table.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ClusterConfig {
    /// Addresses of servers, `nats://` or `tls://`, with commas.
    pub(crate) servers: String,
    /// What the cluster's streams and buckets begin with; clusters of several names share servers.
    pub(crate) name: String,
    /// A file of credentials, as NATS servers with accounts give them.
    pub(crate) credentials: Option<PathBuf>,
    /// A PEM file of the authorities whose servers are trusted besides the public ones.
    pub(crate) ca_file: Option<PathBuf>,
    /// A PEM file of this client's certificate; with `client-key`.
    pub(crate) client_cert: Option<PathBuf>,
    /// A PEM file of its key.
    pub(crate) client_key: Option<PathBuf>,
    /// On how many servers each entry is kept: 1, 3 or 5.
    pub(crate) replicas: usize,
    /// How long a worker may be silent before its tasks are another's, in milliseconds.
    pub(crate) lease_ms: u32,
    /// Most tasks that wait.
    pub(crate) queue: i64,
    /// Most tasks that run at a time, on all workers together.
    pub(crate) capacity: i64,
    /// How long tasks are kept, in days.
    pub(crate) keep_days: u32,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        Self {
            servers: String::new(),
            name: NAME.to_owned(),
            credentials: None,
            ca_file: None,
            client_cert: None,
            client_key: None,
            replicas: REPLICAS,
            lease_ms: LEASE_MS,
            queue: QUEUE,
            capacity: CAPACITY,
            keep_days: KEEP_DAYS,
        }
    }
}

impl ClusterConfig {
    /// Checks what is written.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn check(&self) -> Result<(), String> {
        let scheme = |server: &str| server.starts_with("nats://") || server.starts_with("tls://");
        if self.servers.is_empty() || !self.servers.split(',').all(|server| scheme(server.trim())) {
            return Err("`servers` must be nats:// or tls:// addresses with commas between them".to_owned());
        }
        let in_name = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '_';
        if self.name.is_empty() || self.name.len() > NAME_MAX_CHARS || !self.name.chars().all(in_name) {
            return Err(format!("`name` must be 1 to {NAME_MAX_CHARS} letters, digits, `_` and `-`"));
        }
        if ![1, 3, 5].contains(&self.replicas) {
            return Err("`replicas` must be 1, 3 or 5".to_owned());
        }
        if self.lease_ms < LEASE_MIN_MS {
            return Err(format!("`lease-ms` must be at least {LEASE_MIN_MS}"));
        }
        if self.queue < 1 || self.capacity < 1 || self.keep_days < 1 {
            return Err("`queue`, `capacity` and `keep-days` must be above zero".to_owned());
        }
        if self.client_cert.is_some() != self.client_key.is_some() {
            return Err("`client-cert` and `client-key` belong together".to_owned());
        }
        Ok(())
    }

    /// How long a worker may be silent.
    pub(crate) fn lease(&self) -> Duration {
        Duration::from_millis(self.lease_ms.into())
    }

    /// The servers without what logs in there.
    pub(crate) fn shown(&self) -> String {
        let bare = |server: &str| {
            let (scheme, rest) = server.trim().split_once("://").unwrap_or(("nats", server));
            format!("{scheme}://{}", rest.rsplit('@').next().unwrap_or(rest))
        };
        self.servers.split(',').map(bare).collect::<Vec<_>>().join(",")
    }

    /// How clients connect.
    ///
    /// # Errors
    /// [`Code::ConfigInvalid`] when a file cannot be used.
    pub(crate) async fn connect_options(&self, who: &str) -> Result<ConnectOptions, Refusal> {
        let mut options =
            ConnectOptions::new().name(who).connection_timeout(ANSWER).request_timeout(Some(ANSWER));
        if let Some(path) = &self.credentials {
            options = options.credentials_file(path).await.map_err(|err| {
                let why = format!("the cluster's credentials in {} cannot be used: {err}", path.display());
                Refusal::new(Code::ConfigInvalid, why)
            })?;
        }
        if let Some(path) = &self.ca_file {
            options = options.add_root_certificates(path.clone());
        }
        if let (Some(cert), Some(key)) = (&self.client_cert, &self.client_key) {
            options = options.add_client_certificate(cert.clone(), key.clone());
        }
        if self.servers.contains("tls://") {
            options = options.require_tls(true);
        }
        Ok(options)
    }

    /// Where facts are kept.
    pub(crate) fn facts(&self) -> NatsOptions {
        NatsOptions {
            servers: self.servers.clone(),
            bucket: format!("{}_facts", self.name),
            replicas: self.replicas,
        }
    }
}

/// Addresses may hold what logs in.
impl fmt::Debug for ClusterConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterConfig")
            .field("servers", &self.shown())
            .field("name", &self.name)
            .field("replicas", &self.replicas)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(servers: &str) -> ClusterConfig {
        ClusterConfig { servers: servers.to_owned(), ..ClusterConfig::default() }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        assert_eq!(with("nats://a, tls://b:4222").check(), Ok(()));
        let of = |change: fn(&mut ClusterConfig)| {
            let mut config = with("nats://a");
            change(&mut config);
            config
        };
        for bad in [
            with(""),
            with("a:4222"),
            with("nats://a,"),
            of(|config| config.name = "a.b".into()),
            of(|config| config.replicas = 2),
            of(|config| config.lease_ms = 10),
            of(|config| config.queue = 0),
            of(|config| config.client_key = Some("key".into())),
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_logs_in_is_not_shown() {
        let config = with("nats://ann:secret@a:1,tls://token@b");
        assert_eq!(config.shown(), "nats://a:1,tls://b");
        assert!(!format!("{config:?}").contains("secret"));
    }
}
