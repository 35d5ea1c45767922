//! `toolshelf serve`: the page, the interface for programs and live sessions, until somebody ends it.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::spawn_local;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::remote::link::RemoteAddress;
use toolshelf_sandbox::private;

use super::args::Serve;
use super::outcome::Outcome;
use super::paired_args::Secured;
use crate::config::Config;
use crate::frames::socket;
use crate::http::App;
use crate::http::accept::{self, Stopping};
use crate::http::guard::Hosts;
use crate::http::handle::Handle;
use crate::http::token::Token;
use crate::remote::offer::Reach;
use crate::remote::tls::ServerTls;
use crate::service::{Service, ServiceOptions};
use crate::settings::{self, LISTEN};
use crate::{log, mcp, watch};

/// Where it is served when nobody says otherwise.
const DEFAULT_LISTEN: &str = "127.0.0.1:14800";
/// Held by the companion that serves a data folder; in it stands where.
const LOCK_FILE: &str = "serve.lock";
/// A page that leads to the link, so that the token is in no command line.
const OPEN_FILE: &str = "open.html";
/// The folder that tasks work in where no other is named, in the data folder.
const WORK_FOLDER: &str = "work";
/// Sessions that are open when the companion stops have this long to close.
const GRACE: Duration = Duration::from_secs(3);

pub(super) async fn run(shelf: Option<PathBuf>, serve: Serve, as_json: bool) -> Result<Outcome, Refusal> {
    let data = data_folder(serve.data)?;
    let mut lock = Lock::take(&data)?;
    let (token, token_file) = Token::of_settings(&data)?;
    log::start(serve.log_format, &[token.text()]);
    let mut ends = Ends::new().map_err(|err| failed("signals cannot be heard", &err))?;
    let asked = address(serve.listen)?;
    let tls = tls(&serve.secured, asked, &data)?;
    let listener = listen(asked).await?;
    let address = listener.local_addr().map_err(|err| failed("the address is not known", &err))?;
    let names = serve.secured.names;
    let roots = roots(serve.roots, &data)?;
    let cluster = super::worker::cluster(serve.cluster, Config::load()?.cluster)?;
    let options = ServiceOptions { shelf, data_dir: Some(data.clone()), roots, cluster };
    let service = Service::open(options).await?;
    if let Err(err) = socket::listen(&data, service.clone()) {
        tracing::warn!(error = err.to_string(), "commands in a terminal cannot reach this companion");
    }

    let reach = Reach::of(address, tls.is_some(), &names, tls.as_ref().and_then(|tls| tls.fingerprint));
    let url = format!("{}/", reach.address);
    service.remote().reached_by(reach.clone());
    service.remote().environments().start();
    let link = format!("{url}#token={}", encoded(token.text()));
    lock.tell(&url);
    let (stop, stopping) = Stopping::new();
    let handle = Handle::of(service.clone());
    if let Err(err) = mcp::socket::listen(&data, handle.clone(), stopping.clone()) {
        tracing::warn!(
            error = err.to_string(),
            "agents of this computer cannot reach this companion by its socket"
        );
    }
    let hosts = Hosts::with(address, tls.is_some(), &[names, vec![reach.address.host]].concat());
    let pairings = service.remote().pairings().clone();
    let app = App::new(handle, token, hosts, pairings, stopping);
    background(&app, &service).await;
    let serving =
        tokio::spawn(accept::serve(listener, app.routes(), tls.map(|tls| tls.config), app.stopping()));

    let token_file = token_file.as_deref();
    if as_json {
        let pid = std::process::id();
        say(&json!({ "ok": true, "url": url, "tokenFile": token_file, "pid": pid }).to_string());
    } else {
        say(&welcome(&link, token_file));
    }
    if serve.open {
        open(&data, &link)?;
    }
    tracing::info!(url, pid = std::process::id(), version = env!("CARGO_PKG_VERSION"), "serving");

    ends.wait().await;
    tracing::info!("stopping");
    // Nobody who listens is as good as one who hears.
    let _ = stop.send(true);
    let all = async {
        app.places().all_left(GRACE).await;
        // It ends by itself, and its panics have been told.
        let _ = serving.await;
        service.shut_down().await;
    };
    tokio::select! {
        () = all => {}
        // Who asks twice means it.
        () = ends.wait() => {}
    }
    // What a crash leaves behind is replaced at the next start.
    for file in [data.join(OPEN_FILE), socket::path(&data), mcp::socket::path(&data)] {
        let _ = std::fs::remove_file(file);
    }
    Ok(Outcome::done(json!({ "ok": true, "stopped": true }), "stopped\n".to_owned()))
}

/// What goes on besides answering: the shelf's folder is watched, and what happens is counted.
async fn background(app: &App, service: &Service) {
    if let Ok(declarations) = service.declarations().await {
        app.metrics().admitted(&declarations);
    }
    let events = service.events();
    let counting = app.clone();
    tokio::spawn(async move { counting.metrics().listen(events).await });
    spawn_local(watch::Watch::begin(service.clone()).await.go_on());
}

pub(super) fn data_folder(named: Option<PathBuf>) -> Result<PathBuf, Refusal> {
    let data = named.or_else(settings::data_dir);
    let data = data.ok_or_else(|| {
        Refusal::new(Code::StorageUnavailable, "there is no home folder; name a folder with --data")
    })?;
    make_folder(&data)?;
    Ok(data)
}

/// The folders that tasks work in, besides those of `toolshelf.toml`. There is always one.
pub(super) fn roots(named: Vec<PathBuf>, data: &Path) -> Result<Vec<PathBuf>, Refusal> {
    if !named.is_empty() || !Config::load()?.roots.is_empty() {
        return Ok(named);
    }
    let work = data.join(WORK_FOLDER);
    make_folder(&work)?;
    Ok(vec![work])
}

/// A folder that is closed to others, where there is none yet.
fn make_folder(folder: &Path) -> Result<(), Refusal> {
    private::make_folder(folder).map_err(|err| unavailable(folder, &err))
}

/// The address: what is asked for, else the setting, else the usual one.
fn address(asked: Option<SocketAddr>) -> Result<SocketAddr, Refusal> {
    if let Some(asked) = asked {
        return Ok(asked);
    }
    let (name, text) = match LISTEN.value() {
        Some((name, value)) => (name, value.to_string_lossy().into_owned()),
        None => ("the usual address", DEFAULT_LISTEN.to_owned()),
    };
    read_address(&text).map_err(|why| Refusal::new(Code::ConfigInvalid, format!("{name}: {why}")))
}

/// An address with its port; `localhost` is 127.0.0.1.
pub(super) fn read_address(text: &str) -> Result<SocketAddr, String> {
    let numeric = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let address = numeric.as_deref().unwrap_or(text).parse();
    address.map_err(|_| format!("{text:?} is no address with a port, such as {DEFAULT_LISTEN}"))
}

/// The certificate that is shown: the owner's own, or a self-signed one for whatever other computers can reach.
fn tls(secured: &Secured, address: SocketAddr, data: &Path) -> Result<Option<ServerTls>, Refusal> {
    if let (Some(certificate), Some(key)) = (&secured.tls_cert, &secured.tls_key) {
        return ServerTls::own(certificate, key).map(Some);
    }
    if !secured.tls && address.ip().is_loopback() {
        return Ok(None);
    }
    let own = ["localhost".to_owned(), address.ip().to_string()];
    let node = rustix::system::uname().nodename().to_string_lossy().to_ascii_lowercase();
    let names = secured.names.iter().chain(&own).chain([&node]).filter(|name| is_host(name));
    ServerTls::self_signed(data, &names.cloned().collect::<Vec<_>>()).map(Some)
}

/// Whether a certificate and a `Host` header can name it.
fn is_host(name: &str) -> bool {
    RemoteAddress::parse(&format!("https://{name}"))
        .is_ok_and(|address| address.host == name.to_ascii_lowercase())
        || name.parse::<std::net::IpAddr>().is_ok()
}

/// A name of this server, without a port.
pub(super) fn read_name(text: &str) -> Result<String, String> {
    match is_host(text) && !text.contains(':') {
        true => Ok(text.to_ascii_lowercase()),
        false => Err(format!("{text:?} is no name of a computer; write it without a port")),
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Refusal> {
    let refused = |why: String| Err(Refusal::new(Code::ListenFailed, why));
    match TcpListener::bind(address).await {
        Ok(listener) => Ok(listener),
        Err(err) if err.kind() == io::ErrorKind::AddrInUse => refused(format!(
            "another program has {address}; end it, or choose another port: --listen {}:0 takes a free one",
            address.ip()
        )),
        Err(err) => refused(format!("{address} cannot be listened on: {err}")),
    }
}

/// The lock of a data folder. It is let go with the value, and with the process however that ends.
struct Lock {
    file: File,
}

impl Lock {
    fn take(data: &Path) -> Result<Self, Refusal> {
        let path = data.join(LOCK_FILE);
        let flags = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
        let options = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .mode(0o600)
            .custom_flags(flags)
            .open(&path);
        let mut file = options.map_err(|err| unavailable(&path, &err))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { file }),
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let _ = (&mut file).take(1_000).read_to_string(&mut text);
                let first: Value = serde_json::from_str(&text).unwrap_or_default();
                let at = first["url"].as_str().unwrap_or("an address that it has not told yet");
                let why = format!(
                    "a companion (process {}) serves {} already, at {at}; use it, end it, or name another folder with --data",
                    first["pid"],
                    data.display()
                );
                Err(Refusal::new(Code::ListenFailed, why))
            }
            Err(TryLockError::Error(err)) => Err(unavailable(&path, &err)),
        }
    }

    /// Writes down where the companion is. Without that it serves all the same.
    fn tell(&mut self, url: &str) {
        let text = json!({ "url": url, "pid": std::process::id() }).to_string();
        let written = self
            .file
            .set_len(0)
            .and_then(|()| self.file.rewind())
            .and_then(|()| self.file.write_all(text.as_bytes()));
        if let Err(err) = written {
            tracing::warn!(error = err.to_string(), "where the companion is could not be written down");
        }
    }
}

/// The ways in which people and systems end a program.
pub(super) struct Ends {
    interrupt: Signal,
    terminate: Signal,
}

impl Ends {
    pub(super) fn new() -> io::Result<Self> {
        // A file that may not grow is an error of that write, and no reason to end: who listens is not killed by it.
        drop(signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?);
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    pub(super) async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

fn welcome(link: &str, token_file: Option<&Path>) -> String {
    let mut text = format!("Toolshelf is at\n\n  {link}\n\n");
    let _ = match token_file {
        Some(path) => writeln!(text, "The link holds the token; programs read it from {}.", path.display()),
        None => writeln!(text, "The link holds the token of TOOLSHELF_TOKEN."),
    };
    text.push_str("Ctrl-C ends it.");
    text
}

/// Prints at once what others wait for. Who does not read it any more does not end the companion.
pub(super) fn say(text: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// What may stand in the part of an address after `#`.
fn encoded(token: &str) -> String {
    let mut text = String::new();
    for byte in token.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// Opens the link in the person's browser. Other people of this computer see command lines, so that it gets the name of
/// a file that only its owner can read, and that leads to the link.
fn open(data: &Path, link: &str) -> Result<(), Refusal> {
    let path = data.join(OPEN_FILE);
    let html = format!(
        "<!doctype html><meta charset=\"utf-8\"><title>Toolshelf</title>\
         <meta http-equiv=\"refresh\" content=\"0; url={link}\"><a href=\"{link}\">Toolshelf</a>\n"
    );
    let _ = std::fs::remove_file(&path);
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .and_then(|mut file| file.write_all(html.as_bytes()))
        .map_err(|err| unavailable(&path, &err))?;
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let started = Command::new(opener)
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match started {
        // It hands the file over and ends; somebody has to hear of that.
        Ok(mut child) => drop(std::thread::spawn(move || child.wait())),
        Err(err) => {
            tracing::warn!(error = err.to_string(), opener, "no browser could be opened; use the link")
        }
    }
    Ok(())
}

pub(super) fn failed(what: &str, err: &io::Error) -> Refusal {
    Refusal::new(Code::ListenFailed, format!("{what}: {err}"))
}

fn unavailable(path: &Path, err: &io::Error) -> Refusal {
    Refusal::new(Code::StorageUnavailable, format!("{} cannot be used: {err}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_numbers_or_localhost_with_a_port() {
        assert_eq!(read_address("localhost:1").unwrap().to_string(), "127.0.0.1:1");
        assert_eq!(read_address("[::1]:0").unwrap().to_string(), "[::1]:0");
        for bad in ["", "14800", "localhost", "example.org:80", "127.0.0.1:x", "127.0.0.1:70000"] {
            assert!(read_address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_token_is_written_so_that_an_address_can_hold_it() {
        assert_eq!(encoded("aZ9-_.~"), "aZ9-_.~");
        assert_eq!(encoded("a\"<#%"), "a%22%3C%23%25");
    }

    #[test]
    fn what_other_computers_can_reach_is_served_over_tls() {
        let data = tempfile::tempdir().unwrap();
        let of =
            |listen: &str, secured: &Secured| tls(secured, listen.parse().unwrap(), data.path()).unwrap();
        let usual = Secured::default();
        assert!(of("127.0.0.1:0", &usual).is_none() && of("[::1]:0", &usual).is_none());
        let shown = of("0.0.0.0:0", &usual).unwrap().fingerprint;
        assert!(shown.is_some());
        let asked = Secured { tls: true, ..Secured::default() };
        assert_eq!(of("127.0.0.1:0", &asked).unwrap().fingerprint, shown, "there is one certificate");
        assert_eq!(read_name("Studio.local").unwrap(), "studio.local");
        for bad in ["", "studio.local:1", "a b", "[::1]", "https://x"] {
            assert!(read_name(bad).is_err(), "{bad}");
        }
    }

    #[tokio::test]
    async fn a_taken_port_is_named() {
        let taken = listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let refused = listen(taken.local_addr().unwrap()).await.unwrap_err();
        assert!(refused.code == Code::ListenFailed && refused.why.contains("--listen"), "{refused}");
    }

    #[test]
    fn a_second_companion_is_told_where_the_first_one_is() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = Lock::take(dir.path()).unwrap();
        first.tell("http://127.0.0.1:1/");
        let refused = Lock::take(dir.path()).map(|_| ()).unwrap_err();
        assert!(
            refused.code == Code::ListenFailed && refused.why.contains("http://127.0.0.1:1/"),
            "{refused}"
        );
        drop(first);
        assert!(Lock::take(dir.path()).is_ok());
    }
}
