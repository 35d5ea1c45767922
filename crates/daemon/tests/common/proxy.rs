//! A wire that can be cut: a proxy that holds all bytes while it is told to, as a network does that loses them.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test binary uses a part of it, and says where it cannot go on"
)]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const POLL: Duration = Duration::from_millis(20);

/// The proxy. Its threads end with their connections.
pub(crate) struct Proxy {
    port: u16,
    held: Arc<AtomicBool>,
}

impl Proxy {
    /// To that port of the loopback.
    pub(crate) fn to(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let held = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&held);
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(("127.0.0.1", target)) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let told = Arc::clone(&told);
                    thread::spawn(move || carry(from, to, &told));
                }
            }
        });
        Self { port, held }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Nothing goes through from now on, in no direction.
    pub(crate) fn hold(&self) {
        self.held.store(true, Ordering::SeqCst);
    }

    /// What was held goes through, and all that follows.
    pub(crate) fn release(&self) {
        self.held.store(false, Ordering::SeqCst);
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, held: &AtomicBool) {
    let mut bytes = [0; 16_384];
    while let Ok(read) = from.read(&mut bytes) {
        while held.load(Ordering::SeqCst) {
            thread::sleep(POLL);
        }
        if read == 0 || to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}
