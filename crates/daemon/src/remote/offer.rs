//! Where this machine can be reached, and the link that says so.

use std::net::SocketAddr;

use qrcode::{EcLevel, QrCode};
use toolshelf_core::digest::Digest;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::remote::link::{PairLink, RemoteAddress, is_this_computer};

/// How others reach this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reach {
    /// The address that others are told.
    pub(crate) address: RemoteAddress,
    /// The fingerprint of its certificate, where that is to be pinned.
    pub(crate) fingerprint: Option<Digest>,
}

impl Reach {
    /// Of a server on `listen`, which has those names besides its number.
    pub(crate) fn of(listen: SocketAddr, tls: bool, names: &[String], fingerprint: Option<Digest>) -> Self {
        let own = || match listen.ip() {
            ip if ip.is_unspecified() => rustix::system::uname().nodename().to_string_lossy().into_owned(),
            ip => ip.to_string(),
        };
        // Over plain HTTP only this very computer can be reached.
        let named = names.iter().find(|name| tls || is_this_computer(name)).cloned();
        let host = named.unwrap_or_else(own).to_ascii_lowercase();
        Self { address: RemoteAddress { tls, host, port: listen.port() }, fingerprint }
    }

    /// The link for a code of this environment.
    pub(crate) fn link(&self, environment: &str, code: &str) -> PairLink {
        PairLink {
            address: self.address.clone(),
            code: code.to_owned(),
            environment: environment.to_owned(),
            fingerprint: self.fingerprint,
        }
    }
}

/// A QR code for a terminal: two rows of modules in each line.
///
/// # Errors
/// [`Code::InvalidArgument`] for a text that none can hold.
pub(crate) fn qr(text: &str) -> Result<String, Refusal> {
    let code = QrCode::with_error_correction_level(text, EcLevel::L)
        .map_err(|err| Refusal::new(Code::InvalidArgument, format!("no QR code can hold the link: {err}")))?;
    Ok(code.render::<qrcode::render::unicode::Dense1x2>().quiet_zone(true).build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_names_what_others_can_reach() {
        let reach = |listen: &str, tls, names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            Reach::of(listen.parse().unwrap(), tls, &names, None).address.to_string()
        };
        assert_eq!(reach("127.0.0.1:14800", false, &[]), "http://127.0.0.1:14800");
        assert_eq!(reach("127.0.0.1:14800", false, &["studio.local"]), "http://127.0.0.1:14800");
        assert_eq!(reach("0.0.0.0:14800", true, &["Studio.local"]), "https://studio.local:14800");
        assert_eq!(reach("[::1]:9", true, &[]), "https://[::1]:9");
        assert!(!reach("0.0.0.0:9", true, &[]).contains("0.0.0.0"));
    }

    #[test]
    fn a_link_fits_into_a_code_that_a_terminal_shows() {
        let reach = Reach::of("127.0.0.1:1".parse().unwrap(), true, &[], Some(Digest::of(b"")));
        let shown = qr(&reach.link("env_0123456789abcdef", "12345678").to_string()).unwrap();
        let width = shown.lines().next().unwrap().chars().count();
        assert!(shown.lines().all(|line| line.chars().count() == width) && width < 80, "{width}");
    }
}
