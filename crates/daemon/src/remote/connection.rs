//! One WebSocket to a remote, over TLS or on this very computer.

use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::client_async_with_config;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_core::remote::CHANNEL_FRAME_MAX_BYTES;
use toolshelf_core::remote::frame::{First, Told};
use toolshelf_core::remote::link::RemoteAddress;

use super::tls::{self, Trust};

/// Within this time a connection must be there, TLS and WebSocket included.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Within this time the other side must have answered hello. It gives the same time to say it, and may be busy.
const READY_TIME: Duration = Duration::from_secs(15);
/// A frame that is not taken within this time is lost with its connection.
const SEND_TIME: Duration = Duration::from_secs(20);

trait Stream: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Stream for T {}

/// A WebSocket to a remote.
pub(super) struct Connection {
    socket: WebSocketStream<Box<dyn Stream>>,
}

/// What came.
pub(super) enum Came {
    /// A frame.
    Told(Told),
    /// Something that only shows that the other side is there.
    Sign,
}

impl Connection {
    /// Connects, says `first` and reads what is answered.
    ///
    /// # Errors
    /// What the remote refuses; [`Code::MachineUnreachable`], [`Code::MachineTimeout`], [`Code::MachineUntrusted`], and
    /// [`Code::InvalidFrame`] for what speaks another language.
    pub(super) async fn open(
        address: &RemoteAddress,
        trust: &Trust,
        first: &First,
    ) -> Result<(Self, Told), Refusal> {
        let connecting = timeout(CONNECT_TIME, connect(address, trust)).await;
        let mut connection = connecting.unwrap_or_else(|_| Err(late(address, CONNECT_TIME)))?;
        connection.put(Message::text(first.text())).await?;
        let answer = async {
            loop {
                if let Came::Told(told) = connection.next().await? {
                    return Ok(told);
                }
            }
        };
        match timeout(READY_TIME, answer).await.unwrap_or_else(|_| Err(late(address, READY_TIME)))? {
            Told::Refused(refusal) => Err(refusal),
            told => Ok((connection, told)),
        }
    }

    /// The next frame. Nothing is lost when this future is dropped.
    ///
    /// # Errors
    /// [`Code::MachineClosed`] at the end, and [`Code::InvalidFrame`] and [`Code::UnknownField`] for what is no frame.
    pub(super) async fn next(&mut self) -> Result<Came, Refusal> {
        match self.socket.next().await {
            Some(Ok(Message::Text(text))) if text.len() > CHANNEL_FRAME_MAX_BYTES => {
                Err(Refusal::new(Code::InvalidFrame, "the remote sent a frame that is too long"))
            }
            Some(Ok(Message::Text(text))) => Told::read(&text).map(Came::Told),
            Some(Ok(Message::Binary(_))) => Err(Refusal::new(Code::InvalidFrame, "the remote sent no text")),
            Some(Ok(Message::Close(close))) => {
                let why = close.map(|close| close.reason.to_string()).filter(|reason| !reason.is_empty());
                Err(closed(&why.unwrap_or_else(|| "without a reason".to_owned())))
            }
            Some(Ok(_)) => Ok(Came::Sign),
            Some(Err(err)) => Err(closed(&err.to_string())),
            None => Err(closed("the connection ended")),
        }
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// [`Code::MachineClosed`].
    pub(super) async fn send(&mut self, frame: String) -> Result<(), Refusal> {
        self.put(Message::text(frame)).await
    }

    /// Asks whether the other side is there.
    ///
    /// # Errors
    /// [`Code::MachineClosed`].
    pub(super) async fn ping(&mut self) -> Result<(), Refusal> {
        self.put(Message::Ping(Default::default())).await
    }

    /// Says goodbye.
    pub(super) async fn close(mut self) {
        // It ends, whether that is heard or not.
        let _ = timeout(Duration::from_secs(1), self.socket.close(None)).await;
    }

    async fn put(&mut self, message: Message) -> Result<(), Refusal> {
        match timeout(SEND_TIME, self.socket.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(err)) => Err(closed(&err.to_string())),
            Err(_) => Err(closed("it took no frame any more")),
        }
    }
}

async fn connect(address: &RemoteAddress, trust: &Trust) -> Result<Connection, Refusal> {
    let stream = TcpStream::connect((&*address.host, address.port)).await;
    let stream = stream.map_err(|err| unreachable(address, &err.to_string()))?;
    // Frames are small, and each is wanted at once.
    let _ = stream.set_nodelay(true);
    let stream: Box<dyn Stream> =
        if address.tls { Box::new(secured(stream, address, trust).await?) } else { Box::new(stream) };
    let most = Some(CHANNEL_FRAME_MAX_BYTES + 1);
    let config = WebSocketConfig::default().max_message_size(most).max_frame_size(most);
    let url = format!("ws://{}/channel", address.authority());
    let (socket, _) = client_async_with_config(url, stream, Some(config)).await.map_err(|err| match err {
        tungstenite::Error::Http(response) => {
            let why = format!(
                "it answers with status {}, so it is no companion that can be paired",
                response.status()
            );
            unreachable(address, &why)
        }
        other => unreachable(address, &other.to_string()),
    })?;
    Ok(Connection { socket })
}

async fn secured(
    stream: TcpStream,
    address: &RemoteAddress,
    trust: &Trust,
) -> Result<tokio_rustls::client::TlsStream<TcpStream>, Refusal> {
    let name =
        ServerName::try_from(address.host.clone()).map_err(|err| unreachable(address, &err.to_string()))?;
    let connector = TlsConnector::from(Arc::new(tls::client(trust)?));
    connector.connect(name, stream).await.map_err(|err| match tls::is_untrusted(&err) {
        true => {
            let why = match trust {
                Trust::Pinned(_) => format!("{address} shows another certificate than the one of its link"),
                _ => format!("{address} shows a certificate that no trusted authority vouches for: {err}"),
            };
            Refusal::new(Code::MachineUntrusted, why)
        }
        false => unreachable(address, &format!("no TLS: {err}")),
    })
}

fn unreachable(address: &RemoteAddress, why: &str) -> Refusal {
    Refusal::new(Code::MachineUnreachable, format!("{address} is not reached: {}", cut(why, 200)))
}

fn late(address: &RemoteAddress, time: Duration) -> Refusal {
    let why = format!("{address} did not answer within {} s", time.as_secs());
    Refusal::new(Code::MachineUnreachable, why)
}

fn closed(why: &str) -> Refusal {
    Refusal::new(Code::MachineClosed, format!("the remote closed the connection: {}", cut(why, 200)))
}
