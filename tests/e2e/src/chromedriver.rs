//! The process that drives the browser.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// A running chromedriver on a port of its own. It is killed, by its process id, when this is dropped.
#[derive(Debug)]
pub(crate) struct Chromedriver {
    _process: Child,
    _scratch: Scratch,
    url: String,
}

impl Chromedriver {
    pub(crate) async fn start() -> Result<Self> {
        let program = std::env::var_os("CHROMEDRIVER").unwrap_or_else(|| OsString::from("chromedriver"));
        let scratch = Scratch::create()?;
        let mut process = Command::new(program)
            .env("TMPDIR", &scratch.0)
            .args(["--port=0", "--log-level=SEVERE"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("chromedriver does not start: run `cargo xtask setup`")?;
        let output = process.stdout.take().context("chromedriver has no output")?;
        let mut lines = BufReader::new(output).lines();
        let port = timeout(Duration::from_secs(30), async {
            while let Some(line) = lines.next_line().await? {
                if let Some(port) = announced_port(&line) {
                    return Ok(port);
                }
            }
            anyhow::bail!("chromedriver ended before it listened")
        })
        .await
        .context("chromedriver did not say which port it listens on")??;
        // What it says later is of no interest, but a full pipe would stop it.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Self { _process: process, _scratch: scratch, url: format!("http://127.0.0.1:{port}") })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

/// A folder for what the browser leaves behind, profiles above all. It goes with the driver.
#[derive(Debug)]
struct Scratch(PathBuf);

impl Scratch {
    fn create() -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // The browser puts sockets here, and their paths must be short.
        let folder = std::env::temp_dir().join(format!("toolshelf-e2e-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A file that a dying browser still writes may stay behind; that is no reason to fail a test.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The port in "ChromeDriver was started successfully on port 4444."
fn announced_port(line: &str) -> Option<u16> {
    let (_, port) = line.split_once("started successfully on port ")?;
    port.trim_end_matches('.').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::announced_port;

    #[test]
    fn the_port_is_read_from_the_greeting() {
        assert_eq!(announced_port("ChromeDriver was started successfully on port 40123."), Some(40123));
        assert_eq!(announced_port("Starting ChromeDriver 156 on port 0"), None);
    }
}
