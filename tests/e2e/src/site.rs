//! The built page on a static host.

use anyhow::{Result, ensure};
use toolshelf_serve::{Options, Server};

use crate::dist;

/// The built page, served from a sub-path until this is dropped.
#[derive(Debug)]
pub struct Site {
    server: Server,
}

impl Site {
    /// Serves the page under `/some/sub/path/`, so that an address that only works at the root of a host shows.
    pub async fn start() -> Result<Self> {
        let folder = dist();
        ensure!(
            folder.join("index.html").is_file(),
            "there is no built page in {}: run `cargo xtask build` first",
            folder.display()
        );
        let options = Options { folder, prefix: "/some/sub/path/".into(), port: 0 };
        Ok(Self { server: Server::start(options).await? })
    }

    /// The address of a page of the site; `""` is the start page.
    #[must_use]
    pub fn url(&self, page: &str) -> String {
        self.server.url() + page
    }

    /// Whether a request for this address stays with the site, or never leaves the browser.
    #[must_use]
    pub fn owns(&self, url: &str) -> bool {
        let inside = ["data:", "blob:", "about:"].iter().any(|scheme| url.starts_with(scheme));
        inside || url.starts_with(&self.server.url())
    }
}
