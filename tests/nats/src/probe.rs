//! Whether a server serves streams, asked in the protocol's own words.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// Longer than a server with a leader takes.
const WAIT: Duration = Duration::from_secs(2);
const QUESTION: &[u8] =
    b"CONNECT {\"verbose\":false,\"pedantic\":false}\r\nSUB probe.answer 1\r\nPUB $JS.API.INFO probe.answer 0\r\n\r\nPING\r\n";

/// Whether the server at that port has streams, and a leader where it needs one.
pub(crate) fn answers(port: u16) -> bool {
    ask(port).is_ok_and(|answer| answer.contains("account_info_response") && !answer.contains("\"error\""))
}

fn ask(port: u16) -> io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(WAIT))?;
    stream.write_all(QUESTION)?;
    let mut answer = Vec::new();
    let mut part = [0; 4_096];
    loop {
        let read = stream.read(&mut part)?;
        answer.extend_from_slice(&part[..read]);
        let text = String::from_utf8_lossy(&answer);
        // The answer is one JSON value of one line.
        if read == 0 || text.contains("account_info_response") && text.ends_with("\r\n") {
            return Ok(text.into_owned());
        }
    }
}
