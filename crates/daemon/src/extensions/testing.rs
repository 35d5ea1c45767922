//! Servers of tests: HTTPS on loopback with an authority of their own, and plain HTTP.

use std::io::{BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::outbound::Authorities;

/// What a server was asked.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// The request line.
    pub(super) line: String,
    /// The lines of the head, with names in lower case.
    pub(super) head: Vec<String>,
    /// The body.
    pub(super) body: Vec<u8>,
}

/// How a server answers.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    /// With a status, further lines of the head, and a body.
    Whole(u16, Vec<String>, Vec<u8>),
    /// With bytes and no end, without saying how many.
    Endless,
    /// With a head, and then nothing.
    Stalled,
    /// With these bytes, whatever they are.
    Raw(Vec<u8>),
}

impl Answer {
    pub(super) fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self::Whole(200, Vec::new(), body.into())
    }

    pub(super) fn redirect(to: &str) -> Self {
        Self::Whole(302, vec![format!("location: {to}")], Vec::new())
    }
}

/// A server on loopback. It ends with the process.
#[derive(Debug)]
pub(super) struct Server {
    /// Its port.
    pub(super) port: u16,
    /// Who vouches for it.
    pub(super) authorities: Authorities,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// A server that speaks TLS, for `localhost` and `127.0.0.1`.
    pub(super) fn https(answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            )
            .unwrap();
        let authorities = Authorities::from_pem(authority.as_ref().pem().as_bytes()).unwrap();
        Self::start(Some(Arc::new(config)), authorities, answer)
    }

    /// A server that does not.
    pub(super) fn plain(answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        Self::start(None, Authorities::Public, answer)
    }

    fn start(
        tls: Option<Arc<ServerConfig>>,
        authorities: Authorities,
        answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (kept, answer) = (Arc::clone(&seen), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (tls, kept, answer) = (tls.clone(), Arc::clone(&kept), Arc::clone(&answer));
                std::thread::spawn(move || match tls {
                    Some(config) => {
                        let connection = ServerConnection::new(config).unwrap();
                        serve(StreamOwned::new(connection, stream), &kept, &*answer);
                    }
                    None => serve(stream, &kept, &*answer),
                });
            }
        });
        Self { port, authorities, seen }
    }

    /// Address of something on it.
    pub(super) fn url(&self, path: &str) -> String {
        let scheme = if matches!(self.authorities, Authorities::Public) { "http" } else { "https" };
        format!("{scheme}://localhost:{}{path}", self.port)
    }

    /// What it was asked so far.
    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

fn serve(stream: impl Read + Write, kept: &Mutex<Vec<Seen>>, answer: &dyn Fn(&Seen) -> Answer) {
    let mut stream = BufReader::new(stream);
    // A client that goes away in the middle is none of the test's business.
    let Some(seen) = read(&mut stream) else { return };
    kept.lock().unwrap().push(seen.clone());
    let answer = answer(&seen);
    let _ = write(stream.get_mut(), answer);
}

fn read(stream: &mut impl std::io::BufRead) -> Option<Seen> {
    let mut seen = Seen::default();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|read| *read > 0)?;
        match line.trim_end() {
            "" => break,
            line if seen.line.is_empty() => seen.line = line.to_owned(),
            line => {
                let (name, value) = line.split_once(':')?;
                seen.head.push(format!("{}:{value}", name.to_ascii_lowercase()));
            }
        }
    }
    let length = seen.head.iter().find_map(|line| line.strip_prefix("content-length:"));
    let length = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
    seen.body = vec![0; length];
    stream.read_exact(&mut seen.body).ok()?;
    Some(seen)
}

fn write(stream: &mut impl Write, answer: Answer) -> std::io::Result<()> {
    match answer {
        Answer::Whole(status, head, body) => {
            write!(stream, "HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n", body.len())?;
            head.iter().try_for_each(|line| write!(stream, "{line}\r\n"))?;
            stream.write_all(b"\r\n")?;
            stream.write_all(&body)?;
        }
        Answer::Endless => {
            stream.write_all(b"HTTP/1.1 200 x\r\nconnection: close\r\n\r\n")?;
            loop {
                stream.write_all(&[7; 65_536])?;
            }
        }
        Answer::Stalled => {
            stream.write_all(b"HTTP/1.1 200 x\r\ncontent-length: 10\r\n\r\n")?;
            stream.flush()?;
            loop {
                std::thread::park();
            }
        }
        Answer::Raw(bytes) => stream.write_all(&bytes)?,
    }
    stream.flush()
}

/// A port that nobody listens on.
pub(super) fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
