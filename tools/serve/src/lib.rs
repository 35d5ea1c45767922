//! A static file server for development and for the end-to-end tests.
//!
//! It stands in for "any static host": plain files, the right media types, no special headers, and the page may live
//! under a sub-path.
//! It listens on loopback only, logs nothing, and stops when its handle is dropped.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use axum::middleware::map_response;
use axum::response::Response;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tower_http::services::ServeDir;

/// What to serve and where.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder whose files are served.
    pub folder: PathBuf,
    /// The path that the folder appears under: `/`, or a sub-path such as `/some/sub/path/`.
    pub prefix: String,
    /// The port on 127.0.0.1. With `0` the system picks a free one.
    pub port: u16,
}

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    prefix: String,
    task: JoinHandle<()>,
}

impl Server {
    /// Binds the port and serves from a task of the current Tokio runtime.
    pub async fn start(options: Options) -> anyhow::Result<Self> {
        let Options { folder, prefix, port } = options;
        ensure!(folder.is_dir(), "there is no folder {} to serve", folder.display());
        ensure!(
            prefix.starts_with('/') && prefix.ends_with('/'),
            "the prefix {prefix:?} must begin and end with a slash"
        );
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .with_context(|| format!("cannot listen on 127.0.0.1:{port}"))?;
        let address = listener.local_addr()?;

        let files = ServeDir::new(folder);
        let routes = match prefix.as_str() {
            "/" => Router::new().fallback_service(files),
            sub_path => Router::new().nest_service(sub_path, files),
        };
        let routes = routes.layer(map_response(revalidate));
        let task = tokio::spawn(async move {
            // `axum::serve` only ever returns on shutdown, which is the abort of this task.
            let _ = axum::serve(listener, routes).await;
        });
        Ok(Self { address, prefix, task })
    }

    /// The address that the server listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the served folder, with a slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, self.prefix)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Lets the browser keep a copy but ask each time: a rebuilt page is always seen.
async fn revalidate(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    async fn get(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).await.unwrap();
        String::from_utf8_lossy(&reply).to_lowercase()
    }

    fn folder() -> PathBuf {
        let folder = std::env::temp_dir().join(format!("toolshelf-serve-{}-{}", std::process::id(), line!()));
        write(&folder, "index.html", b"<!doctype html>");
        write(&folder, "a.wasm", b"\0asm");
        write(&folder, "a.js", b"1");
        folder
    }

    fn write(folder: &Path, name: &str, bytes: &[u8]) {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join(name), bytes).unwrap();
    }

    #[tokio::test]
    async fn files_have_their_media_type_under_a_sub_path_until_the_handle_is_dropped() {
        let folder = folder();
        let options = Options { folder: folder.clone(), prefix: "/some/sub/path/".into(), port: 0 };
        let server = Server::start(options).await.unwrap();
        let address = server.address();
        assert_eq!(server.url(), format!("http://{address}/some/sub/path/"));

        for (path, media_type) in [
            ("/some/sub/path/", "content-type: text/html"),
            ("/some/sub/path/a.wasm", "content-type: application/wasm"),
            ("/some/sub/path/a.js", "content-type: text/javascript"),
        ] {
            let reply = get(address, path).await;
            assert!(reply.starts_with("http/1.1 200"), "{path}: {reply}");
            for header in [media_type, "cache-control: no-cache", "etag: "] {
                assert!(reply.contains(header), "{path} lacks {header}: {reply}");
            }
        }
        for path in ["/", "/a.js", "/some/sub/path/none", "/some/sub/path/../../../etc/passwd"] {
            assert!(get(address, path).await.starts_with("http/1.1 404"), "{path}");
        }

        drop(server);
        tokio::task::yield_now().await;
        assert!(TcpListener::bind(address).await.is_ok(), "the port is free again");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[tokio::test]
    async fn a_missing_folder_is_said_by_name() {
        let options = Options { folder: "no-such-folder".into(), prefix: "/".into(), port: 0 };
        let error = Server::start(options).await.unwrap_err().to_string();
        assert_eq!(error, "there is no folder no-such-folder to serve");
    }
}
