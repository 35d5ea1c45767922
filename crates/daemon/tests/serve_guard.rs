//! Who gets in, and what bad requests do: they are refused by name, and the companion goes on.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

#[path = "common/server.rs"]
mod server;

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};
use server::{Server, hang_up, toolshelf};

/// Every path and method of the description that is not the WebSocket, with whether it is open.
fn routes(server: &Server) -> Vec<(String, String, bool)> {
    let document = server.get("/v1/openapi.json").json();
    let mut routes = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let open = operation["security"].as_array().is_some_and(Vec::is_empty);
            let path =
                path.replace("{id}", "hash").replace("{name}", "list_extensions").replace("{position}", "1");
            routes.push((path, method.to_uppercase(), open));
        }
    }
    assert!(routes.len() > 12, "{routes:?}");
    routes
}

#[test]
fn every_closed_route_wants_the_token() {
    let server = Server::start();
    for (path, method, open) in routes(&server) {
        for authorization in ["", "Bearer", "Bearer 0123", &format!("Basic {}", server.token)] {
            let reply = server.request(&method, &path, &[("authorization", authorization)], "{}");
            if open {
                assert_ne!(reply.status, 401, "{method} {path}");
            } else {
                assert_eq!(reply.refusal(), (401, "bearer-refused".to_owned()), "{method} {path}");
                assert_eq!(reply.header("www-authenticate"), Some("bearer realm=\"toolshelf\""));
            }
        }
        // A stream of events does not end by itself.
        if path != "/v1/events" {
            assert_ne!(server.request(&method, &path, &[], "{}").status, 401, "{method} {path}");
        }
    }
}

#[test]
fn other_hosts_and_origins_are_refused_everywhere() {
    let server = Server::start();
    let elsewhere = format!("127.0.0.1:{}", server.port ^ 1);
    let suffixed = format!("127.0.0.1:{}.evil.example", server.port);
    for (path, method, _) in routes(&server) {
        for host in ["evil.example", "127.0.0.1", &elsewhere, &suffixed] {
            let reply = server.request(&method, &path, &[("host", host)], "{}");
            assert_eq!(reply.refusal(), (421, "host-not-allowed".to_owned()), "{host} {path}");
        }
        for origin in ["null", "http://evil.example", &format!("http://{elsewhere}"), "https://localhost"] {
            // Any page may try a code; nobody can tell of one that has no origin of its own.
            if path == "/v1/pair" && origin != "null" {
                continue;
            }
            let reply = server.request(&method, &path, &[("origin", origin)], "{}");
            assert_eq!(reply.refusal(), (403, "origin-not-allowed".to_owned()), "{origin} {path}");
            assert_eq!(reply.header("access-control-allow-origin"), None);
        }
    }
    for host in ["localhost", "127.0.0.1", "[::1]"] {
        let host = format!("{host}:{}", server.port);
        let origin = format!("http://{host}");
        let reply = server.request("GET", "/v1/shelf", &[("host", &host), ("origin", &origin)], "");
        assert_eq!(reply.status, 200, "{host}");
    }
    let nowhere = server.raw(b"GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n");
    assert_eq!(nowhere.refusal().1, "host-not-allowed");
}

#[test]
fn bodies_that_are_not_understood_are_refused() {
    let server = Server::start();
    let path = "/v1/shelf/tools/hash/call";
    let long = json!({"args": {"input": "x".repeat(1024 * 1024)}}).to_string();
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, u16);
    let cases: [Case<'_>; 9] = [
        (&[], "", 400),
        (&[], "{", 400),
        (&[], "[1]", 400),
        (&[], "{}", 400),
        (&[], "{\"args\": 7}", 400),
        (&[], "{\"args\": {}, \"more\": 1}", 400),
        (&[("content-type", "text/plain")], "{\"args\": {}}", 415),
        (&[("content-type", "")], "{\"args\": {}}", 415),
        (&[], &long, 413),
    ];
    for (headers, body, status) in cases {
        let reply = server.request("POST", path, headers, body);
        assert_eq!(reply.refusal(), (status, "invalid-frame".to_owned()), "{:.60}", body);
    }
    // Without a length, in pieces that never end.
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         transfer-encoding: chunked\r\nconnection: close\r\n\r\n",
        server.port, server.token
    );
    let piece = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    let reply = server.raw(&[head.as_bytes(), piece.repeat(17).as_bytes()].concat());
    assert_eq!(reply.refusal(), (413, "invalid-frame".to_owned()));
    let reply =
        server.request("POST", path, &[("content-type", "Application/JSON; charset=utf-8")], "{\"args\":{}}");
    assert_eq!(reply.status, 200);
}

#[test]
fn what_is_not_there_is_said_to_be_not_there() {
    let server = Server::start();
    for (method, path, status) in [
        ("GET", "/nothing", 404),
        ("GET", "/v1/nothing", 404),
        ("GET", "/../etc/passwd", 404),
        ("GET", "/%2e%2e/etc/passwd", 404),
        ("POST", "/", 404),
        ("POST", "/healthz", 405),
        ("GET", "/v1/commands/list_extensions", 405),
        ("DELETE", "/v1/tasks/1", 405),
        ("OPTIONS", "/v1/shelf", 405),
    ] {
        let reply = server.request(method, path, &[], "{}");
        assert_eq!(reply.refusal(), (status, "unknown-route".to_owned()), "{method} {path}");
    }
    let unknown = server.post("/v1/shelf/tools/nothing/call", &json!({"args": {}}));
    assert_eq!(unknown.refusal(), (404, "unknown-tool".to_owned()));
    assert_eq!(server.get("/v1/tasks/x").refusal().1, "invalid-argument");
    assert_eq!(server.get("/v1/tasks?limit=x").refusal().1, "invalid-argument");
    assert_eq!(server.get("/v1/tasks?other=1").refusal().1, "invalid-argument");
    assert_eq!(server.get("/live").refusal(), (426, "invalid-frame".to_owned()));
}

#[test]
fn the_page_is_open_and_may_not_be_framed() {
    let server = Server::start();
    let page = server.bare("GET", "/", &[], "");
    assert_eq!(page.status, 200);
    assert!(page.body.contains("Toolshelf"));
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    for (name, value) in [
        ("x-frame-options", "deny"),
        ("content-security-policy", "frame-ancestors 'none'"),
        ("x-content-type-options", "nosniff"),
        ("cross-origin-resource-policy", "same-origin"),
        ("referrer-policy", "no-referrer"),
    ] {
        assert_eq!(page.header(name), Some(value), "{name}");
    }
    assert_eq!(server.get("/v1/shelf").header("cache-control"), Some("no-store"));
}

#[test]
fn half_sent_requests_end_and_others_are_answered_meanwhile() {
    let server = Server::start();
    let half_head = b"GET /healthz HTTP/1.1\r\nhost: 127".as_slice();
    let half_body = format!(
        "POST /v1/shelf/tools/hash/call HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n{{\"args\"",
        server.port, server.token
    );
    let mut left = Vec::new();
    for _ in 0..20 {
        for half in [b"", half_head, half_body.as_bytes()] {
            let mut stream = server.connect();
            stream.write_all(half).unwrap();
            left.push((stream, half.len() == half_body.len()));
        }
    }
    for _ in 0..10 {
        assert_eq!(server.get("/healthz").status, 200);
    }
    for (mut stream, is_body) in left {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert_eq!(text.contains("invalid-frame"), is_body, "{text}");
    }
}

#[test]
fn noise_does_not_end_the_companion() {
    let server = Server::start();
    for noise in [
        b"\x16\x03\x01\x02\x00\x01\x00".as_slice(),
        b"GET\r\n\r\n",
        b"\r\n\r\n\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        &[0; 100_000],
        &[b'a'; 200_000],
    ] {
        let mut stream = server.connect();
        let _ = stream.write_all(noise);
        hang_up(&stream);
    }
    let many = format!("GET /healthz HTTP/1.1\r\nhost: x\r\n{}\r\n", "a: b\r\n".repeat(5_000));
    assert!((400..500).contains(&server.raw(many.as_bytes()).status));
    assert_eq!(server.get("/healthz").json()["ok"], true);
}

#[test]
fn what_cannot_be_served_is_refused_with_what_to_do() {
    let server = Server::start();
    let refused = |data: &std::path::Path, listen: &str| -> Value {
        let mut command = toolshelf(None);
        command.args(["serve", "--listen", listen, "--data"]).arg(data);
        let output = command.output().unwrap();
        // A thing outside of the program stands against it.
        assert_eq!(output.status.code(), Some(4));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let other = tempfile::tempdir().unwrap();
    let at = format!("127.0.0.1:{}", server.port);
    for (data, listen, part) in
        [(server.data.path(), "127.0.0.1:0", &*at), (other.path(), &at, "another program has")]
    {
        let refusal = refused(data, listen);
        assert_eq!(refusal["refused"], "listen-failed", "{refusal}");
        assert!(refusal["why"].as_str().unwrap().contains(part), "{refusal}");
    }
}
