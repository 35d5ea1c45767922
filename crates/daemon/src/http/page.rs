//! The page: the files that `cargo xtask build` has made, inside of this program.
//!
//! A debug build reads them from `dist/` each time. They are sent as they are: nothing is gained by packing what never
//! leaves the computer.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use rust_embed::{EmbeddedFile, RustEmbed};
use toolshelf_core::digest::to_hex;
use toolshelf_core::refusal::{Code, Refusal, cut};

use super::answer::Fault;

/// The built page. Without one, a short page says how to build it.
#[derive(RustEmbed)]
#[folder = "../../dist"]
#[allow_missing = true]
struct Page;

const INDEX: &str = "index.html";
/// Names carry the hash of what they name, so it never changes.
const FOR_EVER: &str = "public, max-age=31536000, immutable";
/// Kept, but asked for again each time.
const ASK_AGAIN: &str = "no-cache";
/// Digits of the hash in a name.
const HASH_DIGITS: usize = 16;

const NOT_BUILT: &str = "<!doctype html>
<html lang=\"en\"><meta charset=\"utf-8\"><title>Toolshelf</title>
<h1>Toolshelf is running</h1>
<p>This program was built without the page. <code>cargo xtask run</code> builds the page, then the program with the page
inside, and starts it.</p>
<p>The interface for programs is here all the same: <a href=\"/v1/openapi.json\">/v1/openapi.json</a>.</p>
</html>
";

/// Answers what no other route does: a file of the page, or that there is nothing.
pub(crate) async fn page(request: Request) -> Response {
    let path = request.uri().path();
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return unknown(path).into_response();
    }
    answer(path, request.headers(), Page::get)
}

/// There is nothing there, or not by that method.
pub(crate) fn unknown(path: &str) -> Fault {
    Refusal::new(Code::UnknownRoute, format!("nothing is served at {:?}", cut(path, 80))).into()
}

fn answer(path: &str, headers: &HeaderMap, file: impl Fn(&str) -> Option<EmbeddedFile>) -> Response {
    let name = path.strip_prefix('/').unwrap_or(path);
    let name = if name.is_empty() { INDEX } else { name };
    let leaves = name.split(['/', '\\']).any(|part| part.is_empty() || part.starts_with('.'));
    match file(name).filter(|_| !leaves) {
        Some(file) => sent(name, headers, file),
        None if name == INDEX => {
            ([(CONTENT_TYPE, "text/html; charset=utf-8"), (CACHE_CONTROL, ASK_AGAIN)], NOT_BUILT)
                .into_response()
        }
        None => unknown(path).into_response(),
    }
}

fn sent(name: &str, headers: &HeaderMap, file: EmbeddedFile) -> Response {
    let tag = format!("\"{}\"", to_hex(&file.metadata.sha256_hash()[..16]));
    let keep = if has_hash(name) { FOR_EVER } else { ASK_AGAIN };
    let known = headers.get(IF_NONE_MATCH).and_then(|tags| tags.to_str().ok());
    if known.is_some_and(|tags| tags.split(',').any(|known| known.trim().trim_start_matches("W/") == tag)) {
        return (StatusCode::NOT_MODIFIED, [(ETAG, &*tag), (CACHE_CONTROL, keep)]).into_response();
    }
    let headers = [(CONTENT_TYPE, media_type(name, &file)), (ETAG, tag), (CACHE_CONTROL, keep.to_owned())];
    (headers, Body::from(file.data)).into_response()
}

/// `app-0123456789abcdef/…` or `style-0123456789abcdef.css`.
fn has_hash(name: &str) -> bool {
    let part = name.split('/').next().unwrap_or_default();
    let part = part.split('.').next().unwrap_or_default();
    let hash = part.rsplit_once('-').map(|(_, hash)| hash).unwrap_or_default();
    hash.len() == HASH_DIGITS && hash.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn media_type(name: &str, file: &EmbeddedFile) -> String {
    let guessed = file.metadata.mimetype();
    match name.rsplit('.').next() {
        Some("webmanifest") => "application/manifest+json".to_owned(),
        _ if guessed.starts_with("text/") => format!("{guessed}; charset=utf-8"),
        _ => guessed.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use axum::http::HeaderValue;

    use super::*;

    /// A folder as the page's is.
    #[derive(RustEmbed)]
    #[folder = "../../www"]
    struct Files;

    fn get(path: &str, tag: Option<&HeaderValue>) -> Response {
        let mut headers = HeaderMap::new();
        headers.extend(tag.map(|tag| (IF_NONE_MATCH, tag.clone())));
        answer(path, &headers, Files::get)
    }

    #[test]
    fn files_have_their_media_types() {
        for (path, expected) in [
            ("/shelf/hash.wasm", "application/wasm"),
            ("/sw.js", "text/javascript; charset=utf-8"),
            ("/app.css", "text/css; charset=utf-8"),
            ("/icon.svg", "image/svg+xml"),
            ("/manifest.webmanifest", "application/manifest+json"),
        ] {
            let response = get(path, None);
            assert_eq!(response.status(), StatusCode::OK, "{path}");
            assert_eq!(response.headers()[CONTENT_TYPE], expected, "{path}");
            assert_eq!(response.headers()[CACHE_CONTROL], ASK_AGAIN, "{path}");
        }
    }

    #[test]
    fn a_file_that_is_known_is_not_sent_again() {
        let first = get("/sw.js", None);
        let tag = first.headers()[ETAG].clone();
        assert_eq!(get("/sw.js", Some(&tag)).status(), StatusCode::NOT_MODIFIED);
        assert_eq!(get("/app.css", Some(&tag)).status(), StatusCode::OK);
    }

    #[test]
    fn no_path_leaves_the_folder() {
        for path in
            ["/../Cargo.toml", "/shelf/../../Cargo.toml", "//sw.js", "/.git/config", "/shelf", "/nothing"]
        {
            assert_eq!(get(path, None).status(), StatusCode::NOT_FOUND, "{path}");
        }
    }

    #[test]
    fn only_names_with_a_hash_are_kept_for_ever() {
        for name in ["app-d6e00751a7c84f4d/app.js", "style-dfc0251897e1cc84.css"] {
            assert!(has_hash(name), "{name}");
        }
        for name in
            ["index.html", "sw.js", "icons/icon-192.png", "manifest.webmanifest", "a-d6e00751a7c84f4.css"]
        {
            assert!(!has_hash(name), "{name}");
        }
    }

    #[tokio::test]
    async fn without_a_page_it_is_said_how_to_build_one() {
        let response = answer("/", &HeaderMap::new(), |_| None);
        assert_eq!(response.status(), StatusCode::OK);
        let body = to_bytes(response.into_body(), 10_000).await.unwrap();
        assert!(String::from_utf8_lossy(&body).contains("cargo xtask run"));
    }
}
