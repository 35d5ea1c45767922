//! The companion that serves the built page: the real program, with folders of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How long the program may take to say where it serves. Machines that run tests are busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A companion with a root, an agent that does not end by itself, and a token that is set. Its folders go with it.
#[derive(Debug)]
pub struct Companion {
    process: Child,
    folder: PathBuf,
    address: SocketAddr,
    variables: Vec<(&'static str, &'static str)>,
}

impl Companion {
    /// The token that it is started with.
    pub const TOKEN: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    /// The agent that works until it is stopped. It says `at work` when it has begun.
    pub const AGENT: &str = "slow";

    /// Starts one on a free port.
    pub async fn start() -> Result<Self> {
        Self::set_up("", &[]).await
    }

    /// Starts one with more lines at the end of its `toolshelf.toml`. The key of a live model is `a-key-of-a-test`.
    pub async fn start_with(more: &str) -> Result<Self> {
        Self::set_up(more, &[]).await
    }

    /// Starts one that installs extensions which nobody has signed.
    pub async fn for_development() -> Result<Self> {
        Self::set_up("", &[("TOOLSHELF_EXTENSIONS_ALLOW_UNSIGNED", "true")]).await
    }

    async fn set_up(more: &str, variables: &[(&'static str, &'static str)]) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(format!("toolshelf-e2e-{process}-c{count}"));
        std::fs::create_dir_all(folder.join("root"))?;
        std::fs::create_dir_all(folder.join("shelf"))?;
        let root = folder.join("root").display().to_string();
        let config = format!(
            "roots = [{root:?}]\n[agents.{}]\ncommand = [\"sh\", \"-c\", \"echo at work >&2; exec sleep 600\"]\n\
             description = \"Works until it is stopped\"\ndeadline-ms = 120000\n{more}\n",
            Self::AGENT
        );
        std::fs::write(folder.join("toolshelf.toml"), config)?;
        std::fs::write(
            folder.join("shelf/manifest.json"),
            r#"{"name": "on-disk", "version": "1", "tools": []}"#,
        )?;
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let (process, address) = launch(&folder, listen, variables).await?;
        Ok(Self { process, folder, address, variables: variables.to_vec() })
    }

    /// Kills it as a power failure would.
    pub async fn kill(&mut self) -> Result<()> {
        self.process.kill().await.context("the companion cannot be killed")
    }

    /// Has it stand still, as a computer that is busy or asleep would, or go on.
    pub async fn stand_still(&self, is_still: bool) -> Result<()> {
        let id = self.process.id().context("the companion has ended")?.to_string();
        let signal = if is_still { "-STOP" } else { "-CONT" };
        let sent = Command::new("kill").args([signal, &id]).status().await?;
        ensure!(sent.success(), "the companion cannot be signalled");
        Ok(())
    }

    /// Starts it again, over the same folders and at the same address.
    pub async fn start_again(&mut self) -> Result<()> {
        let (process, address) = launch(&self.folder, self.address, &self.variables).await?;
        ensure!(address == self.address, "the companion moved to {address}");
        self.process = process;
        Ok(())
    }

    /// The folder that tasks work in.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.folder.join("root")
    }

    /// The folder of its shelf, which has no tools of its own yet.
    #[must_use]
    pub fn shelf(&self) -> PathBuf {
        self.folder.join("shelf")
    }

    /// The address of a page that it serves.
    #[must_use]
    pub fn url(&self, page: &str) -> String {
        format!("http://{}/{page}", self.address)
    }

    /// The link that lets a page in.
    #[must_use]
    pub fn link(&self) -> String {
        self.url("#token=") + Self::TOKEN
    }

    /// Sends a request as another program of this computer would, and returns what is answered.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.send("POST", path, body).await
    }

    /// Reads what is at `path`, as another program of this computer would.
    pub async fn get(&self, path: &str) -> Result<Value> {
        self.ask("GET", path, "").await
    }

    /// The same as [`post`](Self::post) by any method.
    pub async fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        self.ask(method, path, &body.to_string()).await
    }

    async fn ask(&self, method: &str, path: &str, body: &str) -> Result<Value> {
        let (address, token) = (self.address, Self::TOKEN);
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        timeout(PATIENCE, stream.read_to_string(&mut answer)).await.context("no answer")??;
        let (_, body) = answer.split_once("\r\n\r\n").context("an answer without a body")?;
        serde_json::from_str(body).with_context(|| format!("no JSON: {answer}"))
    }

    /// Has it call its tool `hash` with a text.
    pub async fn hash(&self, text: &str) -> Result<Value> {
        self.post("/v1/shelf/tools/hash/call", &json!({ "args": { "input": text } })).await
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        // The process is killed with its handle.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The program that was built into the same folder: a test is in `deps` below it.
fn program() -> Result<PathBuf> {
    let this = std::env::current_exe()?;
    let programs = this.ancestors().skip(1).take(2).map(|folder| folder.join("toolshelf"));
    let found = programs.into_iter().find(|program| program.is_file());
    found.context("the companion is not built: run `cargo build --package toolshelf`")
}

async fn launch(
    folder: &Path,
    listen: SocketAddr,
    variables: &[(&str, &str)],
) -> Result<(Child, SocketAddr)> {
    let mut process = Command::new(program()?)
        .args(["--json", "serve", "--listen", &listen.to_string(), "--data"])
        .arg(folder.join("data"))
        .env("TOOLSHELF_TOKEN", Companion::TOKEN)
        .env("OPENAI_API_KEY", "a-key-of-a-test")
        .env("TOOLSHELF_CONFIG", folder.join("toolshelf.toml"))
        .env("TOOLSHELF_CACHE_DIR", folder.join("cache"))
        .env("TOOLSHELF_SHELF_DIR", folder.join("shelf"))
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .context("the companion does not start")?;
    let output = process.stdout.take().context("the companion has no output")?;
    let mut lines = BufReader::new(output).lines();
    let line =
        timeout(PATIENCE, lines.next_line()).await.context("the companion does not say where it is")??;
    let said: Value = serde_json::from_str(&line.context("the companion ended at once")?)?;
    let url = said["url"].as_str().with_context(|| format!("the companion says {said}"))?;
    let address = url.trim_start_matches("http://").trim_end_matches('/').parse()?;
    // What it says when it ends is of no interest, but a full pipe would stop it.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Ok((process, address))
}
