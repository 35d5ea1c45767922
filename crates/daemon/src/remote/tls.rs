//! TLS: the certificate that this machine shows, and those that it wants to see.
//!
//! A self-signed certificate is as good as any other for somebody who has its fingerprint from the link of a pairing.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme,
};
use toolshelf_core::digest::Digest;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_sandbox::private;
use zeroize::Zeroizing;

use crate::files::{self, Found};

/// The certificate and its key, in the data folder.
const FILE: &str = "tls.pem";
/// Largest file of certificates or keys that is read, in bytes.
const PEM_MAX_BYTES: usize = 256 * 1024;
/// Most names of a certificate that is made here.
const NAMES_MAX: usize = 16;

/// What this machine shows.
#[derive(Debug, Clone)]
pub(crate) struct ServerTls {
    /// For the server.
    pub(crate) config: Arc<ServerConfig>,
    /// The fingerprint that a link tells; of a certificate of one's own none, as authorities vouch for it.
    pub(crate) fingerprint: Option<Digest>,
}

/// What this machine wants to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trust {
    /// That very certificate.
    Pinned(Digest),
    /// One for the name, of the authorities in this PEM.
    Authorities(Vec<u8>),
    /// One for the name, of the authorities that browsers trust.
    Public,
}

impl ServerTls {
    /// A certificate of the owner's own, with those that lead to its authority, and its key.
    ///
    /// # Errors
    /// [`Code::ConfigInvalid`].
    pub(crate) fn own(certificate: &Path, key: &Path) -> Result<Self, Refusal> {
        let (chain, secret) = (read(certificate)?, Zeroizing::new(read(key)?));
        let config = server(&chain, &secret).map_err(|why| {
            let (certificate, key) = (certificate.display(), key.display());
            invalid(format!("{certificate} and {key} make no certificate with its key: {why}"))
        })?;
        Ok(Self { config, fingerprint: None })
    }

    /// The self-signed certificate of the data folder, which is made at the first start for those `names`.
    ///
    /// # Errors
    /// [`Code::ConfigInvalid`] when what is there is none or others can read it.
    pub(crate) fn self_signed(data: &Path, names: &[String]) -> Result<Self, Refusal> {
        let path = data.join(FILE);
        let unusable = |why: String| invalid(format!("{} cannot be used: {why}", path.display()));
        let pem =
            private::secret(&path, PEM_MAX_BYTES, || make(names)).map_err(|err| unusable(err.to_string()))?;
        let config = server(&pem, &pem).map_err(unusable)?;
        let first = CertificateDer::pem_slice_iter(&pem).next().and_then(Result::ok);
        let first = first.ok_or_else(|| unusable("it has no certificate".to_owned()))?;
        Ok(Self { config, fingerprint: Some(Digest::of(&first)) })
    }
}

/// A certificate that does not end; who has pinned it need not be asked again.
fn make(names: &[String]) -> io::Result<Zeroizing<Vec<u8>>> {
    let made = || {
        let key = KeyPair::generate()?;
        let names: Vec<String> = names.iter().take(NAMES_MAX).cloned().collect();
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, "Toolshelf companion");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.self_signed(&key)?;
        let pem = [certificate.pem(), key.serialize_pem()].concat();
        Ok(Zeroizing::new(pem.into_bytes()))
    };
    made().map_err(|err: rcgen::Error| io::Error::other(err.to_string()))
}

fn server(chain: &[u8], key: &[u8]) -> Result<Arc<ServerConfig>, String> {
    let chain: Vec<_> =
        CertificateDer::pem_slice_iter(chain).collect::<Result<_, _>>().map_err(|err| err.to_string())?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|err| err.to_string())?;
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|err| err.to_string())?;
    let mut config =
        config.with_no_client_auth().with_single_cert(chain, key).map_err(|err| err.to_string())?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// What connects to a machine that is trusted like that.
///
/// # Errors
/// [`Code::ConfigInvalid`] for authorities that are none.
pub(super) fn client(trust: &Trust) -> Result<ClientConfig, Refusal> {
    let provider = provider();
    let builder =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let builder = builder.map_err(|err| invalid(err.to_string()))?;
    let mut config = match trust {
        Trust::Pinned(fingerprint) => {
            let verifier = Pinned { fingerprint: *fingerprint, provider };
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth()
        }
        Trust::Authorities(_) | Trust::Public => {
            let verifier =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots(trust)?), provider).build();
            let verifier = verifier.map_err(|err| invalid(err.to_string()))?;
            builder.with_webpki_verifier(verifier).with_no_client_auth()
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn roots(trust: &Trust) -> Result<RootCertStore, Refusal> {
    let Trust::Authorities(pem) = trust else {
        return Ok(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() });
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let added = certificate.map_err(|err| err.to_string());
        added
            .and_then(|certificate| roots.add(certificate).map_err(|err| err.to_string()))
            .map_err(invalid)?;
    }
    if roots.is_empty() {
        return Err(invalid("the file of authorities has no certificate".to_owned()));
    }
    Ok(roots)
}

/// The certificates of authorities in a file.
///
/// # Errors
/// [`Code::ConfigInvalid`].
pub(super) fn authorities(path: &Path) -> Result<Vec<u8>, Refusal> {
    let pem = read(path)?;
    roots(&Trust::Authorities(pem.clone()))
        .map_err(|refusal| invalid(format!("{}: {}", path.display(), refusal.why)))?;
    Ok(pem)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn read(path: &Path) -> Result<Vec<u8>, Refusal> {
    match files::read(path, PEM_MAX_BYTES as u64).map_err(|refusal| invalid(refusal.why))? {
        Found::Whole(bytes) => Ok(bytes),
        Found::TooLong(_) => Err(invalid(format!("{} is larger than {PEM_MAX_BYTES} bytes", path.display()))),
    }
}

fn invalid(why: String) -> Refusal {
    Refusal::new(Code::ConfigInvalid, why)
}

/// Whether a connection failed because of the other side's certificate.
pub(super) fn is_untrusted(err: &io::Error) -> bool {
    let inner = err.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(inner, Some(rustls::Error::InvalidCertificate(_)))
}

/// Wants one certificate, whoever has signed it and whatever name it is for.
#[derive(Debug)]
struct Pinned {
    fingerprint: Digest,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if Digest::of(end_entity) == self.fingerprint {
            return Ok(ServerCertVerified::assertion());
        }
        Err(rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    // That the other side has the key of the certificate is checked as ever.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn a_certificate_is_made_once_and_its_key_is_closed_to_others() {
        let dir = tempfile::tempdir().unwrap();
        let made = ServerTls::self_signed(dir.path(), &["studio.local".into(), "127.0.0.1".into()]).unwrap();
        let again = ServerTls::self_signed(dir.path(), &["other.local".into()]).unwrap();
        assert!(made.fingerprint.is_some() && made.fingerprint == again.fingerprint);
        assert_eq!(std::fs::metadata(dir.path().join(FILE)).unwrap().mode() & 0o777, 0o600);
        std::fs::write(dir.path().join(FILE), "no pem").unwrap();
        let refused = ServerTls::self_signed(dir.path(), &[]).unwrap_err();
        assert_eq!(refused.code, Code::ConfigInvalid);
    }

    #[test]
    fn files_that_are_no_certificates_are_refused_by_their_names() {
        let dir = tempfile::tempdir().unwrap();
        let (good, bad) = (dir.path().join("good.pem"), dir.path().join("bad.pem"));
        let pem = make(&["localhost".into()]).unwrap();
        std::fs::write(&good, &*pem).unwrap();
        std::fs::write(&bad, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
        assert!(ServerTls::own(&good, &good).unwrap().fingerprint.is_none());
        for (certificate, key) in [(&bad, &good), (&good, &bad), (&dir.path().join("none"), &good)] {
            assert_eq!(ServerTls::own(certificate, key).unwrap_err().code, Code::ConfigInvalid);
        }
        assert!(authorities(&good).is_ok());
        assert_eq!(authorities(&bad).unwrap_err().code, Code::ConfigInvalid);
        assert!(client(&Trust::Public).is_ok());
    }
}
