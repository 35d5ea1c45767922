//! The link that `toolshelf pair` prints: `https://host:port/#pair=12345678&env=env_…&fp=<64 digits>`.
//!
//! What stands after `#` is not sent to any server. The fingerprint is the SHA-256 of the remote's certificate; where
//! it stands, that very certificate is wanted, and none where it does not.

use std::fmt;

use super::{CODE_DIGITS, is_environment_key};
use crate::digest::Digest;

/// Longest link that is read, in bytes.
const LINK_MAX_BYTES: usize = 1_024;

/// Where a remote is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteAddress {
    /// Whether it speaks TLS. Without, it is on this very computer.
    pub tls: bool,
    /// Its name or number; of an IPv6 number without the brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// A link for pairing.
#[derive(Clone, PartialEq, Eq)]
pub struct PairLink {
    /// Where the remote is.
    pub address: RemoteAddress,
    /// The code.
    pub code: String,
    /// The environment that the remote is.
    pub environment: String,
    /// The SHA-256 of its certificate, where that is to be pinned.
    pub fingerprint: Option<Digest>,
}

/// Why a text is no link for pairing.
#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
pub enum LinkFault {
    /// Not of the form at all.
    #[error("a link for pairing looks like https://host:14800/#pair=12345678&env=env_…&fp=…")]
    Shape,
    /// Over plain HTTP to another computer.
    #[error("a machine is reached over https, or over plain http on this very computer")]
    Plain,
    /// The code.
    #[error("the code in the link is not of {CODE_DIGITS} digits")]
    Code,
    /// The environment's key.
    #[error("the environment in the link is not `env_` and 16 hexadecimal digits")]
    Environment,
    /// The fingerprint.
    #[error("the fingerprint in the link is not of 64 lowercase hexadecimal digits")]
    Fingerprint,
}

impl RemoteAddress {
    /// Reads `https://host:port` or, of this computer, `http://host:port`. Without a port it is the scheme's usual one.
    ///
    /// # Errors
    /// [`LinkFault::Shape`] and [`LinkFault::Plain`].
    pub fn parse(origin: &str) -> Result<Self, LinkFault> {
        let (tls, rest) = match origin.split_once("://") {
            Some(("https", rest)) => (true, rest),
            Some(("http", rest)) => (false, rest),
            _ => return Err(LinkFault::Shape),
        };
        let (host, port) = match rest.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or(LinkFault::Shape)?;
                host.parse::<std::net::Ipv6Addr>().map_err(|_| LinkFault::Shape)?;
                (host, port.strip_prefix(':').or(port.is_empty().then_some("")).ok_or(LinkFault::Shape)?)
            }
            None => rest.split_once(':').unwrap_or((rest, "")),
        };
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-:".contains(&byte);
        if host.is_empty() || host.len() > 253 || !host.bytes().all(is_name) {
            return Err(LinkFault::Shape);
        }
        let usual = if tls { 443 } else { 80 };
        let port = if port.is_empty() { usual } else { port.parse().map_err(|_| LinkFault::Shape)? };
        if !tls && !is_this_computer(host) {
            return Err(LinkFault::Plain);
        }
        Ok(Self { tls, host: host.to_ascii_lowercase(), port })
    }

    /// Host and port as they stand in an address and in a `Host` header.
    #[must_use]
    pub fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

impl fmt::Display for RemoteAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority())
    }
}

impl PairLink {
    /// Reads a link.
    ///
    /// # Errors
    /// A [`LinkFault`].
    pub fn parse(text: &str) -> Result<Self, LinkFault> {
        let text = text.trim();
        if text.len() > LINK_MAX_BYTES {
            return Err(LinkFault::Shape);
        }
        let (base, fields) = text.split_once('#').ok_or(LinkFault::Shape)?;
        let address = RemoteAddress::parse(base.strip_suffix('/').unwrap_or(base))?;
        let (mut code, mut environment, mut fingerprint) = (None, None, None);
        for field in fields.split('&') {
            let (name, value) = field.split_once('=').ok_or(LinkFault::Shape)?;
            let place = match name {
                "pair" => &mut code,
                "env" => &mut environment,
                "fp" => &mut fingerprint,
                _ => return Err(LinkFault::Shape),
            };
            if place.replace(value).is_some() {
                return Err(LinkFault::Shape);
            }
        }
        let code = code.filter(|code| is_code(code)).ok_or(LinkFault::Code)?.to_owned();
        let environment = environment.filter(|key| is_environment_key(key)).ok_or(LinkFault::Environment)?;
        let fingerprint = match fingerprint {
            Some(text) => Some(Digest::parse(text).ok_or(LinkFault::Fingerprint)?),
            None => None,
        };
        Ok(Self { address, code, environment: environment.to_owned(), fingerprint })
    }
}

impl fmt::Display for PairLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, code, environment, fingerprint } = self;
        write!(f, "{address}/#pair={code}&env={environment}")?;
        fingerprint.as_ref().map_or(Ok(()), |fingerprint| write!(f, "&fp={fingerprint}"))
    }
}

impl fmt::Debug for PairLink {
    // The code stays out of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PairLink")
            .field("address", &self.address)
            .field("environment", &self.environment)
            .field("fingerprint", &self.fingerprint)
            .finish_non_exhaustive()
    }
}

/// Whether that has the form of a code.
#[must_use]
pub fn is_code(text: &str) -> bool {
    text.len() == CODE_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether the name or number is one of this very computer, by its form alone.
#[must_use]
pub fn is_this_computer(host: &str) -> bool {
    let is_loopback = |number: std::net::IpAddr| number.is_loopback();
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FP: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    const ENV: &str = "env_fedcba9876543210";

    #[test]
    fn what_is_printed_is_read_again() {
        for text in [
            format!("https://studio.local:14800/#pair=00000042&env={ENV}&fp={FP}"),
            format!("https://192.168.1.7:14800/#pair=12345678&env={ENV}"),
            format!("https://[fe80::1]:9/#pair=12345678&env={ENV}&fp={FP}"),
            format!("http://127.0.0.1:14800/#pair=12345678&env={ENV}"),
            format!("http://[::1]:80/#pair=12345678&env={ENV}"),
        ] {
            let link = PairLink::parse(&text).unwrap();
            assert_eq!(link.to_string(), text);
            assert!(!format!("{link:?}").contains(&link.code));
        }
        let usual = PairLink::parse(&format!(" https://Example.org/#env={ENV}&pair=12345678\n")).unwrap();
        assert_eq!((usual.address.port, &*usual.address.host), (443, "example.org"));
    }

    #[test]
    fn what_is_no_link_is_refused_with_the_reason() {
        let of = |base: &str, fields: &str| PairLink::parse(&format!("{base}{fields}")).unwrap_err();
        let fields = format!("#pair=12345678&env={ENV}");
        for base in [
            "",
            "ftp://h/",
            "https://",
            "https:///",
            "https://a b/",
            "https://[::1/",
            "https://h:99999/",
            "https://u@h/",
            "https://h/path",
            "https://[h]:1/",
        ] {
            assert_eq!(of(base, &fields), LinkFault::Shape, "{base}");
        }
        for base in ["http://example.org:80/", "http://192.168.1.7/", "http://127.0.0.1.example.org/"] {
            assert_eq!(of(base, &fields), LinkFault::Plain, "{base}");
        }
        for (fields, fault) in [
            ("", LinkFault::Shape),
            ("#", LinkFault::Shape),
            ("#token=x", LinkFault::Shape),
            (&*format!("{fields}&pair=12345678"), LinkFault::Shape),
            (&format!("{fields}&x=1"), LinkFault::Shape),
            (&format!("#env={ENV}"), LinkFault::Code),
            (&format!("#pair=1234567&env={ENV}"), LinkFault::Code),
            (&format!("#pair=1234567a&env={ENV}"), LinkFault::Code),
            ("#pair=12345678", LinkFault::Environment),
            ("#pair=12345678&env=env_x", LinkFault::Environment),
            (&format!("{fields}&fp=00"), LinkFault::Fingerprint),
            (&format!("{fields}&fp={}", FP.to_uppercase()), LinkFault::Fingerprint),
        ] {
            assert_eq!(of("https://h/", fields), fault, "{fields}");
        }
    }
}
