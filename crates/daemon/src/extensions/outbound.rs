//! Requests that leave this computer: to where they may go, over what, for how long.
//!
//! One rule holds for downloads and for external tools: the name of a host is resolved once, every address that it has
//! must be a public one, and those very addresses are connected to. So a name that means another address a moment
//! later (DNS rebinding), or a number that is written in an unusual way, leads nowhere else. Proxies that the environment
//! names are not used: behind one, nobody here would know what is connected to.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ureq::Agent;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

/// Whom a server's certificate is trusted to come from.
#[derive(Clone, Default)]
pub(crate) enum Authorities {
    /// The public ones, as Mozilla lists them.
    #[default]
    Public,
    /// These and no others.
    Only(Arc<Vec<Certificate<'static>>>),
}

impl Authorities {
    /// The authorities of a PEM file.
    ///
    /// # Errors
    /// Why it holds none.
    pub(crate) fn from_pem(pem: &[u8]) -> Result<Self, String> {
        let items =
            ureq::tls::parse_pem(pem).collect::<Result<Vec<_>, _>>().map_err(|err| err.to_string())?;
        let certificates: Vec<_> = items
            .into_iter()
            .filter_map(|item| match item {
                ureq::tls::PemItem::Certificate(certificate) => Some(certificate),
                _ => None,
            })
            .collect();
        if certificates.is_empty() {
            return Err("there is no certificate in it".to_owned());
        }
        Ok(Self::Only(Arc::new(certificates)))
    }
}

impl fmt::Debug for Authorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Public => f.write_str("Public"),
            Self::Only(certificates) => write!(f, "Only({})", certificates.len()),
        }
    }
}

/// What a request may do.
#[derive(Debug, Clone)]
pub(super) struct Way {
    /// Whole time of the request, from resolving to the last byte.
    pub(super) timeout: Duration,
    /// Most redirects that are followed; each is judged like the first address.
    pub(super) redirects: u32,
    /// Whether plain HTTP is allowed.
    pub(super) plain_http: bool,
    /// Whether addresses of this computer and its networks are allowed.
    pub(super) private_addresses: bool,
    /// Whom certificates may come from.
    pub(super) authorities: Authorities,
}

/// An address that nothing outside may lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the host has the private address {0}")]
pub(super) struct PrivateAddress(pub(super) IpAddr);

/// What sends requests that way. Every status is an answer, not an error.
pub(super) fn agent(way: &Way) -> Agent {
    let roots = match &way.authorities {
        Authorities::Public => RootCerts::WebPki,
        Authorities::Only(certificates) => RootCerts::Specific(Arc::clone(certificates)),
    };
    let config = Config::builder()
        .timeout_global(Some(way.timeout))
        .max_redirects(way.redirects)
        .max_redirects_will_error(way.redirects > 0)
        .https_only(!way.plain_http)
        .http_status_as_error(false)
        .proxy(None)
        .max_idle_connections(0)
        .user_agent(concat!("toolshelf/", env!("CARGO_PKG_VERSION")))
        .tls_config(TlsConfig::builder().root_certs(roots).build())
        .build();
    let resolver = Guarded { inner: DefaultResolver::default(), private_addresses: way.private_addresses };
    Agent::with_parts(config, DefaultConnector::default(), resolver)
}

/// Why a request failed, as far as anybody can do something about it.
#[derive(Debug)]
pub(super) enum Failure {
    /// The host has a private address.
    Private(PrivateAddress),
    /// More bytes came than may come.
    TooLarge,
    /// Something else, in a sentence.
    Other(String),
}

impl From<ureq::Error> for Failure {
    fn from(err: ureq::Error) -> Self {
        match err {
            ureq::Error::Other(other) => match other.downcast_ref::<PrivateAddress>() {
                Some(private) => Self::Private(*private),
                None => Self::Other(other.to_string()),
            },
            ureq::Error::BodyExceedsLimit(_) => Self::TooLarge,
            ureq::Error::Timeout(_) => Self::Other("it took too long".to_owned()),
            ureq::Error::RequireHttpsOnly(_) => Self::Other("it leads to a plain http address".to_owned()),
            other => Self::Other(other.to_string()),
        }
    }
}

/// Resolves as the system does, and lets no private address through.
#[derive(Debug)]
struct Guarded {
    inner: DefaultResolver,
    private_addresses: bool,
}

impl Resolver for Guarded {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = self.inner.resolve(uri, config, timeout)?;
        check(&found, self.private_addresses)?;
        Ok(found)
    }
}

fn check(found: &[SocketAddr], private_addresses: bool) -> Result<(), ureq::Error> {
    // One is enough: a name that means both a public and a private address means no good.
    let private = found.iter().map(SocketAddr::ip).find(|ip| !is_public(*ip));
    match private {
        Some(ip) if !private_addresses => Err(ureq::Error::Other(Box::new(PrivateAddress(ip)))),
        _ => Ok(()),
    }
}

/// Is it an address that anybody on the internet means the same by? The registries of special addresses of IANA say
/// which are not.
pub(super) fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    const SPECIAL: [([u8; 4], u32); 15] = [
        ([0, 0, 0, 0], 8),
        ([10, 0, 0, 0], 8),
        ([100, 64, 0, 0], 10),
        ([127, 0, 0, 0], 8),
        ([169, 254, 0, 0], 16),
        ([172, 16, 0, 0], 12),
        ([192, 0, 0, 0], 24),
        ([192, 0, 2, 0], 24),
        ([192, 88, 99, 0], 24),
        ([192, 168, 0, 0], 16),
        ([198, 18, 0, 0], 15),
        ([198, 51, 100, 0], 24),
        ([203, 0, 113, 0], 24),
        // Multicast; then what is reserved, with the broadcast address.
        ([224, 0, 0, 0], 4),
        ([240, 0, 0, 0], 4),
    ];
    let bits = ip.to_bits();
    !SPECIAL.iter().any(|(net, length)| (bits ^ u32::from_be_bytes(*net)) >> (32 - length) == 0)
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let segments = ip.segments();
    // Addresses that are IPv4 addresses in another dress are judged as those.
    if let Some(v4) = ip.to_ipv4_mapped() {
        return is_public_v4(v4);
    }
    let [.., a, b] = segments;
    let v4 = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match segments {
        // NAT64.
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => is_public_v4(v4(a, b)),
        // 6to4.
        [0x2002, high, low, ..] => is_public_v4(v4(high, low)),
        // Protocol assignments with Teredo, and documentation.
        [0x2001, 0..=0x01ff, ..] | [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => false,
        // All unicast that is handed out; loopback, link-local, unique local and multicast are not in it.
        [first, ..] => first >> 13 == 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_addresses_are_not_public() {
        for ip in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:c0a8:1::",
            "3fff::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(ip.parse().unwrap()), "{ip}");
        }
    }

    #[test]
    fn all_other_addresses_are() {
        for ip in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.1",
            "192.167.255.255",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2001:4860:4860::8888",
            "2002:808:808::",
            "2600::1",
            "2a00:1450::1",
            "3ffe::1",
        ] {
            assert!(is_public(ip.parse().unwrap()), "{ip}");
        }
    }

    #[test]
    fn one_private_address_of_several_is_enough() {
        let of = |ips: &[&str]| -> Vec<SocketAddr> {
            ips.iter().map(|ip| SocketAddr::new(ip.parse().unwrap(), 443)).collect()
        };
        assert!(check(&of(&["8.8.8.8", "::1"]), false).is_err());
        assert!(check(&of(&["8.8.8.8", "::1"]), true).is_ok());
        assert!(check(&of(&["8.8.8.8", "2600::1"]), false).is_ok());
    }

    #[test]
    fn a_pem_file_without_a_certificate_is_refused() {
        for pem in ["", "nothing", "-----BEGIN CERTIFICATE-----\n???\n-----END CERTIFICATE-----\n"] {
            assert!(Authorities::from_pem(pem.as_bytes()).is_err(), "{pem}");
        }
    }
}
