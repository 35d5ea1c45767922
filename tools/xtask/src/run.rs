//! Serves the built page on this machine.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context as _, Result};
use toolshelf_serve::{Options, Server};

use crate::{build, setup};

const DEFAULT_PORT: u16 = 14800;

/// Sets up, builds and serves until Ctrl-C. A port that is taken is no reason to stop: the next free one is used.
pub(crate) fn run(port: Option<u16>) -> Result<()> {
    setup::for_build()?;
    build::page()?;
    let port = free_port(port.unwrap_or(DEFAULT_PORT))?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let server = Server::start(Options { folder: build::dist(), prefix: "/".into(), port }).await?;
        println!("Toolshelf is at {} (Ctrl-C ends it)", server.url());
        tokio::signal::ctrl_c().await?;
        println!("stopped");
        Ok(())
    })
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
