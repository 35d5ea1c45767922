//! The WebSocket to a provider: to the address that is set and no other, encrypted unless that is this computer.

use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, USER_AGENT};
use tokio_tungstenite::tungstenite::http::{HeaderValue, Uri};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};
use toolshelf_core::refusal::{Code, Refusal, cut};
use zeroize::Zeroizing;

use super::settings::{LiveSettings, Protocol};
use super::wire::malformed;

/// Longest message of a provider, in bytes: some seconds of sound in base64.
const MESSAGE_MAX_BYTES: usize = 4 * 1024 * 1024;
/// How long it may take from the name of the host to an open WebSocket, at most.
const OPEN_TIME: Duration = Duration::from_secs(10);
/// How long a provider may take to read a frame.
const SEND_TIME: Duration = Duration::from_secs(20);

/// What bytes go over.
trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// An open connection.
pub(super) struct Connection {
    socket: WebSocketStream<Box<dyn Io>>,
}

impl Connection {
    /// Opens a connection with that key.
    ///
    /// # Errors
    /// [`Code::LiveKeyRefused`], [`Code::OverBudget`] or [`Code::UpstreamFailed`]. No sentence has the key in it.
    pub(super) async fn open(settings: &LiveSettings, key: &str) -> Result<Self, Refusal> {
        let time = OPEN_TIME.min(settings.patience);
        timeout(time, Self::connect(settings, key))
            .await
            .unwrap_or_else(|_| Err(failed(&format!("it was not reached within {} s", time.as_secs()))))
    }

    async fn connect(settings: &LiveSettings, key: &str) -> Result<Self, Refusal> {
        let url = &settings.url;
        let host = url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
        let encrypted = url.scheme_str() == Some("wss");
        let port = url.port_u16().unwrap_or(if encrypted { 443 } else { 80 });
        let tcp = TcpStream::connect((&*host, port)).await.map_err(|err| failed(&err.to_string()))?;
        // Without it the connection works as well.
        let _ = tcp.set_nodelay(true);
        let stream: Box<dyn Io> = if encrypted {
            let name = ServerName::try_from(host).map_err(|err| failed(&err.to_string()))?;
            let connector = TlsConnector::from(Arc::new(tls(settings)?));
            Box::new(connector.connect(name, tcp).await.map_err(|err| failed(&err.to_string()))?)
        } else {
            Box::new(tcp)
        };
        let config = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_MAX_BYTES))
            .max_frame_size(Some(MESSAGE_MAX_BYTES));
        let opened = client_async_with_config(request(settings, key)?, stream, Some(config)).await;
        Ok(Self { socket: opened.map_err(not_opened)?.0 })
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// When the connection is lost.
    pub(super) async fn send(&mut self, frame: &Value) -> Result<(), Refusal> {
        self.put(Message::text(frame.to_string())).await
    }

    async fn put(&mut self, message: Message) -> Result<(), Refusal> {
        match timeout(SEND_TIME, self.socket.send(message)).await {
            Ok(sent) => sent.map_err(lost),
            Err(_) => Err(failed("it does not read what is sent")),
        }
    }

    /// The next frame. May be dropped and asked again.
    ///
    /// # Errors
    /// When the connection is lost or was closed.
    pub(super) async fn next(&mut self) -> Result<Vec<u8>, Refusal> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => return Ok(text.as_bytes().to_vec()),
                // One of the providers sends its JSON like this.
                Some(Ok(Message::Binary(bytes))) => return Ok(bytes.to_vec()),
                Some(Ok(Message::Close(close))) => {
                    let close = close.map(|close| (u16::from(close.code), close.reason.to_string()));
                    return Err(closed(close));
                }
                Some(Ok(_)) => {}
                Some(Err(err)) => return Err(lost(err)),
                None => return Err(closed(None)),
            }
        }
    }

    /// Says goodbye. The provider need not answer.
    pub(super) async fn close(mut self) {
        let _ = timeout(Duration::from_secs(1), self.socket.close(None)).await;
    }
}

/// The request that opens the WebSocket; the only place that has the key.
fn request(settings: &LiveSettings, key: &str) -> Result<Request, Refusal> {
    let bad = || Refusal::new(Code::LiveKeyRefused, "the key has characters that no key has");
    let mut url = Zeroizing::new(settings.url.to_string());
    let mut bearer = None;
    match settings.protocol {
        Protocol::OpenAi => {
            add(&mut url, "model", &settings.model);
            let text = Zeroizing::new(format!("Bearer {key}"));
            let mut value = HeaderValue::from_str(&text).map_err(|_| bad())?;
            value.set_sensitive(true);
            bearer = Some(value);
        }
        Protocol::Gemini => add(&mut url, "key", key),
    }
    let uri: Uri = url.parse().map_err(|_| bad())?;
    let mut request = uri.into_client_request().map_err(|_| failed("the address is none of a WebSocket"))?;
    let headers = request.headers_mut();
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("toolshelf/", env!("CARGO_PKG_VERSION"))));
    if let Some(bearer) = bearer {
        headers.insert(AUTHORIZATION, bearer);
    }
    Ok(request)
}

/// Adds a parameter to an address.
fn add(url: &mut String, name: &str, value: &str) {
    url.push(if url.contains('?') { '&' } else { '?' });
    url.push_str(name);
    url.push('=');
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            url.push(char::from(byte));
        } else {
            url.push_str(&format!("%{byte:02X}"));
        }
    }
}

fn tls(settings: &LiveSettings) -> Result<ClientConfig, Refusal> {
    let mut roots = RootCertStore::empty();
    match &settings.ca_file {
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(path) => {
            let invalid = |why: String| {
                Refusal::new(Code::ConfigInvalid, format!("`ca-file` {}: {why}", path.display()))
            };
            let certificates = CertificateDer::pem_file_iter(path).map_err(|err| invalid(err.to_string()))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|err| invalid(err.to_string()))?;
                roots.add(certificate).map_err(|err| invalid(err.to_string()))?;
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|err| failed(&err.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// Why a provider did not open the WebSocket. What it says in its body is not passed on: that may repeat the key.
fn not_opened(err: Error) -> Refusal {
    match err {
        Error::Http(response) => {
            let status = response.status();
            let (code, what) = match status.as_u16() {
                401 | 403 => (Code::LiveKeyRefused, "does not take the key"),
                404 => (Code::LiveKeyRefused, "knows no such model or address"),
                429 => (Code::OverBudget, "takes no more requests of this key for now"),
                _ => (Code::UpstreamFailed, "did not open a session"),
            };
            Refusal::new(code, format!("the provider {what} (status {status})"))
        }
        other => lost(other),
    }
}

fn closed(close: Option<(u16, String)>) -> Refusal {
    match close {
        None => failed("it ended the connection"),
        Some((code, reason)) => {
            let reason = cut(reason.trim(), 200).replace(char::is_control, " ");
            let said = format!("it closed the connection ({code}) {reason}");
            // 1008 is how one provider refuses a key or a model after the handshake.
            if code == 1008 { Refusal::new(Code::LiveKeyRefused, said) } else { failed(said.trim()) }
        }
    }
}

fn lost(err: Error) -> Refusal {
    match err {
        Error::Capacity(_) => malformed("a message that is too long"),
        Error::ConnectionClosed | Error::AlreadyClosed => failed("it ended the connection"),
        Error::Io(err) => failed(&err.to_string()),
        // Others may show parts of the request.
        _ => failed("it broke the protocol"),
    }
}

fn failed(why: &str) -> Refusal {
    Refusal::new(Code::UpstreamFailed, format!("the provider of the live model: {}", cut(why, 300)))
}
