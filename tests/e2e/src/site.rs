//! The built page on a static host.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use toolshelf_serve::{Options, Server};

use crate::dist;

/// A folder with the page, served from a sub-path until this is dropped.
#[derive(Debug)]
pub struct Site {
    server: Server,
    // Connections live in tasks of their own. They end with their runtime, and with nothing less.
    runtime: Mutex<Option<Runtime>>,
}

impl Site {
    /// Serves the built page under `/some/sub/path/`, so that an address that only works at the root of a host shows.
    pub async fn start() -> Result<Self> {
        Self::of(dist(), "/some/sub/path/").await
    }

    /// Serves a folder that holds the page under a path.
    pub async fn of(folder: PathBuf, prefix: &str) -> Result<Self> {
        ensure!(
            folder.join("index.html").is_file(),
            "there is no built page in {}: run `cargo xtask build` first",
            folder.display()
        );
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let options = Options { folder, prefix: prefix.to_owned(), port: 0 };
        let server = runtime.spawn(Server::start(options)).await.context("the server does not start")??;
        Ok(Self { server, runtime: Mutex::new(Some(runtime)) })
    }

    /// Takes the site off the network: no connection is answered any more, neither a new one nor an open one.
    pub async fn cut(&self) {
        self.end();
        while TcpStream::connect(self.server.address()).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The address of a page of the site; `""` is the start page.
    #[must_use]
    pub fn url(&self, page: &str) -> String {
        self.server.url() + page
    }

    /// Whether a request for this address stays with the site, or never leaves the browser.
    #[must_use]
    pub fn owns(&self, url: &str) -> bool {
        let inside = ["data:", "blob:", "about:", "chrome:"].iter().any(|scheme| url.starts_with(scheme));
        inside || url.starts_with(&self.server.url())
    }

    fn end(&self) {
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(runtime) = runtime {
            // Waiting for it would block the thread of the test.
            runtime.shutdown_background();
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.end();
    }
}
