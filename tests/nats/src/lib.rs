//! Real NATS servers for tests: one, or three that form a cluster, on free ports of the loopback, with JetStream in
//! folders that end with them.
//!
//! `cargo xtask setup` brings the server program. A server is killed when its value is dropped, by its own process id,
//! and by the kernel when the test's thread ends without that.

mod probe;

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Names another server program.
pub const PROGRAM_VARIABLE: &str = "TOOLSHELF_NATS_SERVER";
/// How long a server has to be ready. A busy machine is slow; one that takes longer is broken.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// How a server keeps what it is given.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Waits for the disk with each write.
    pub sync_always: bool,
    /// The folder that streams are kept in, instead of one that ends with the server.
    pub store: Option<PathBuf>,
    /// Most bytes that all streams may take.
    pub max_bytes: Option<u64>,
}

/// One server, alone or of a cluster.
#[derive(Debug)]
pub struct Server {
    name: String,
    port: u16,
    folder: TempDir,
    child: Option<Child>,
}

/// The server program, if it is there.
#[must_use]
pub fn program() -> Option<PathBuf> {
    let named = std::env::var_os(PROGRAM_VARIABLE).map(PathBuf::from);
    let brought = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/nats/bin/nats-server");
    named.or(Some(brought)).filter(|program| program.is_file())
}

impl Server {
    /// A server by itself.
    ///
    /// # Panics
    /// When there is no server program, or it is not ready in time.
    #[must_use]
    pub fn start() -> Self {
        Self::with(&Options::default())
    }

    /// The same, which keeps what it is given as `options` say.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[must_use]
    pub fn with(options: &Options) -> Self {
        let mut server = Self::configured("one".to_owned(), free_ports(1)[0], options, "");
        server.restart();
        server
    }

    fn configured(name: String, port: u16, options: &Options, cluster: &str) -> Self {
        let folder = tempfile::tempdir().expect("no folder for a server");
        let store = options.store.clone().unwrap_or_else(|| folder.path().join("store"));
        let mut text = format!("server_name: {name}\nlisten: \"127.0.0.1:{port}\"\n");
        let _ = write!(text, "jetstream {{\n  store_dir: {:?}\n", store.display().to_string());
        if let Some(bytes) = options.max_bytes {
            let _ = writeln!(text, "  max_file_store: {bytes}");
        }
        if options.sync_always {
            text.push_str("  sync_interval: always\n");
        }
        let _ = writeln!(text, "}}\n{cluster}");
        fs::write(folder.path().join("server.conf"), text).expect("no configuration for a server");
        Self { name, port, folder, child: None }
    }

    /// Starts it again, with what it has kept. Does nothing while it runs.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    pub fn restart(&mut self) {
        self.launch();
        let give_up = Instant::now() + PATIENCE;
        while !probe::answers(self.port) {
            assert!(Instant::now() < give_up, "the NATS server is not ready:\n{}", self.log());
            std::thread::sleep(POLL);
        }
    }

    fn launch(&mut self) {
        if self.child.is_some() {
            return;
        }
        let program = program().expect("there is no NATS server: run `cargo xtask setup`");
        // The kernel ends the server with the thread that has started it.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program);
        let log = fs::OpenOptions::new().create(true).append(true).open(self.folder.path().join("log"));
        command.arg("-c").arg(self.folder.path().join("server.conf"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.expect("no log for a server"));
        self.child = Some(command.spawn().expect("the NATS server cannot be started"));
    }

    /// Kills it at once, as a crash would.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Whether it was started and not killed.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.child.is_some()
    }

    /// Its name in a cluster.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// The folder in which it keeps what it is given, unless the options named another.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// What it has written about itself.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Three servers that form a cluster.
#[derive(Debug)]
pub struct Cluster {
    /// The servers.
    pub servers: Vec<Server>,
}

impl Cluster {
    /// Starts them and waits until they have a leader.
    ///
    /// # Panics
    /// As [`Server::start`].
    #[must_use]
    pub fn start() -> Self {
        Self::with(|_| Options::default())
    }

    /// The same, where each keeps what it is given as its options say.
    ///
    /// # Panics
    /// As [`Server::start`].
    #[must_use]
    pub fn with(options: impl Fn(usize) -> Options) -> Self {
        let (clients, routes) = (free_ports(3), free_ports(3));
        let all: Vec<_> = routes.iter().map(|port| format!("\"nats://127.0.0.1:{port}\"")).collect();
        let servers = (0..3).map(|index| {
            let cluster = format!(
                "cluster {{\n  name: tests\n  listen: \"127.0.0.1:{}\"\n  routes: [{}]\n}}",
                routes[index],
                all.join(", ")
            );
            Server::configured(format!("n{index}"), clients[index], &options(index), &cluster)
        });
        let mut cluster = Self { servers: servers.collect() };
        cluster.servers.iter_mut().for_each(Server::launch);
        cluster.wait_for_leader();
        cluster
    }

    /// Starts again whoever was killed, and waits until there is a leader.
    ///
    /// # Panics
    /// As [`Server::start`].
    pub fn restart(&mut self) {
        self.servers.iter_mut().for_each(Server::launch);
        self.wait_for_leader();
    }

    /// The server of that name.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn named(&mut self, name: &str) -> &mut Server {
        self.servers.iter_mut().find(|server| server.name == name).expect("no server of that name")
    }

    /// All addresses, with commas.
    #[must_use]
    pub fn urls(&self) -> String {
        self.servers.iter().map(Server::url).collect::<Vec<_>>().join(",")
    }

    fn wait_for_leader(&self) {
        let give_up = Instant::now() + PATIENCE;
        while !self.servers.iter().all(|server| probe::answers(server.port)) {
            let logs: String = self.servers.iter().map(Server::log).collect();
            assert!(Instant::now() < give_up, "the NATS servers have no leader:\n{logs}");
            std::thread::sleep(POLL);
        }
    }
}

/// Ports that nobody listens on now.
///
/// # Panics
/// When the loopback has none.
#[must_use]
pub fn free_ports(count: usize) -> Vec<u16> {
    let taken: Vec<_> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").expect("no free port")).collect();
    taken.iter().map(|listener| listener.local_addr().expect("no port").port()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_killed_starts_again() {
        let mut server = Server::start();
        assert!(probe::answers(server.port()));
        server.kill();
        assert!(!probe::answers(server.port()) && !server.runs());
        server.restart();
        assert!(probe::answers(server.port()) && server.store().is_dir());
    }
}
