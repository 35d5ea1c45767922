//! Builds the page and the program that serves it, and starts that.

use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt as _;

use anyhow::{Context as _, Result};

use crate::{build, setup, sh};

const DEFAULT_PORT: u16 = 14800;

/// Sets up, builds and serves until Ctrl-C. A port that is taken is no reason to stop: the next free one is used.
pub(crate) fn run(port: Option<u16>) -> Result<()> {
    setup::for_build()?;
    build::page()?;
    let listen = format!("127.0.0.1:{}", free_port(port.unwrap_or(DEFAULT_PORT))?);
    println!("building the program; the first build takes a few minutes…");
    let mut program = sh::cargo();
    program.args([
        "run",
        "--quiet",
        "--release",
        "--package",
        "toolshelf",
        "--",
        "serve",
        "--listen",
        &listen,
    ]);
    // The program takes the place of this one, so that Ctrl-C reaches it alone and it can end in order.
    let err = program.exec();
    Err(err).context("cannot start `cargo run`")
}

/// The first port from this one on that nobody listens on; 0 stays 0 and lets the system choose.
fn free_port(first: u16) -> Result<u16> {
    (first..=first.saturating_add(100))
        .find(|&port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
        .with_context(|| format!("the ports from {first} on are all taken: choose one with `--port`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_passed_over() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        assert!(free_port(port).unwrap() > port);
        assert_eq!(free_port(0).unwrap(), 0);
    }
}
