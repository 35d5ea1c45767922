//! Live sessions with a model whose provider fails: connections that are lost, keys that are missing or refused, silence,
//! and too much.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;
#[path = "common/provider.rs"]
mod provider;
#[path = "common/server.rs"]
mod server;

use futures::{SinkExt as _, StreamExt as _};
use provider::{KEY, Provider, companion, failure, openai, say, turn};
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio_tungstenite::tungstenite::Message;

const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

#[tokio::test]
async fn a_lost_connection_is_opened_again_and_given_up_after_some_tries() {
    let (provider, server, _file) = openai("").await;
    let (mut live, _) = server.ready().await;
    say(&mut live, "one").await;
    let (mut peer, _) = provider.openai().await;
    peer.openai_text().await;
    peer.say(json!({"type": "response.created", "response": {"id": "r1"}})).await;
    peer.say(json!({"type": "response.output_text.delta", "response_id": "r1", "delta": "I th"})).await;
    drop(peer);
    assert_eq!(failure(&turn(&mut live).await).0, "upstream-failed");
    let (mut peer, _) = provider.openai().await;
    say(&mut live, "two").await;
    assert_eq!(peer.openai_text().await, "two");
    peer.openai_words("r1", &["Yes."]).await;
    assert_eq!(turn(&mut live).await[2]["text"], "Yes.");
    // What is said while there is no connection waits for one.
    drop(peer);
    live.frame_of("link").await;
    say(&mut live, "three").await;
    drop(provider.tcp().await);
    drop(provider.accept().await);
    let (mut peer, _) = provider.openai().await;
    assert_eq!(peer.openai_text().await, "three");
    peer.openai_words("r1", &["Three."]).await;
    assert_eq!(turn(&mut live).await[2]["text"], "Three.");
    // Nobody listens any more.
    drop((peer, provider));
    say(&mut live, "four").await;
    assert_eq!(failure(&turn(&mut live).await).0, "upstream-failed");
    live.say(json!({"type": "call", "callId": "a", "name": "hash", "args": {"input": "abc"}})).await;
    assert_eq!(live.frame_of("result").await["result"]["output"], ABC);
}

#[tokio::test]
async fn refusals_of_a_provider_have_names_and_are_not_tried_again() {
    let (provider, server, _file) = openai("").await;
    let (mut live, _) = server.ready().await;
    for (status, code) in [(401, "live-key-refused"), (429, "over-budget")] {
        say(&mut live, "hello").await;
        provider.refuse(status).await;
        let (named, why) = failure(&turn(&mut live).await);
        assert!(named == code && why.contains(&status.to_string()), "{named}: {why}");
        assert!(provider.is_left_alone().await);
    }
    // By an event, with the key in it.
    say(&mut live, "hello").await;
    let mut peer = provider.accept().await;
    let message = format!("Incorrect API key provided: {KEY}");
    let error = json!({"type": "invalid_request_error", "code": "invalid_api_key", "message": message});
    peer.say(json!({"type": "error", "error": error})).await;
    assert_eq!(failure(&turn(&mut live).await).0, "live-key-refused");
    assert!(provider.is_left_alone().await);
    // A response that failed is told; the connection goes on.
    say(&mut live, "hello").await;
    let (mut peer, _) = provider.openai().await;
    peer.openai_text().await;
    peer.say(json!({"type": "response.created", "response": {"id": "r1"}})).await;
    let details =
        json!({"error": {"type": "server_error", "code": "insufficient_quota", "message": "no more"}});
    peer.say(json!({"type": "response.done", "response": {"id": "r1", "status": "failed", "status_details": details}})).await;
    assert_eq!(failure(&turn(&mut live).await).0, "over-budget");
    say(&mut live, "again").await;
    peer.openai_text().await;
    peer.openai_words("r2", &["Now."]).await;
    assert_eq!(turn(&mut live).await[2]["text"], "Now.");
    let (_, log) = server.stop();
    assert!(!log.contains("sk-test"), "{log}");
}

#[tokio::test]
async fn without_a_key_the_place_for_one_is_named_and_the_vault_is_one() {
    let provider = Provider::listen().await;
    let (server, _file) = companion(&provider.table("openai-realtime", "key-env = \"NO_SUCH_KEY\""));
    let (mut live, _) = server.ready().await;
    say(&mut live, "hello").await;
    let (code, why) = failure(&turn(&mut live).await);
    assert!(code == "live-key-missing" && why.contains("NO_SUCH_KEY"), "{why}");

    let (server, _file) = companion(&provider.table("openai-realtime", "key-secret = \"model\""));
    let (mut live, _) = server.ready().await;
    say(&mut live, "hello").await;
    assert_eq!(failure(&turn(&mut live).await).0, "secret-unknown");
    let mut set = server::toolshelf(None);
    set.env("TOOLSHELF_DATA_DIR", server.data.path()).args(["secret", "set", "model"]);
    let mut set =
        set.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().unwrap();
    std::io::Write::write_all(&mut set.stdin.take().unwrap(), b"sk-test-of-the-vault\n").unwrap();
    assert!(set.wait().unwrap().success());
    say(&mut live, "hello").await;
    let (mut peer, _) = provider.openai().await;
    assert_eq!(peer.authorization, "Bearer sk-test-of-the-vault");
    peer.openai_text().await;
    peer.openai_words("r1", &["Hi."]).await;
    assert_eq!(turn(&mut live).await[2]["text"], "Hi.");
}

#[tokio::test]
async fn a_provider_that_is_silent_or_says_too_much_is_given_up() {
    let (provider, server, _file) = openai("patience-seconds = 1").await;
    let (mut live, _) = server.ready().await;
    // It takes connections and answers none.
    say(&mut live, "hello").await;
    let mut silent = Vec::new();
    for _ in 0..5 {
        silent.push(provider.tcp().await);
    }
    let (code, why) = failure(&turn(&mut live).await);
    assert!(code == "upstream-failed" && why.contains("1 s"), "{why}");
    drop(silent);
    // It listens and does not answer.
    say(&mut live, "hello").await;
    let (mut peer, _) = provider.openai().await;
    peer.openai_text().await;
    assert_eq!(failure(&turn(&mut live).await).0, "upstream-failed");
    // It sends a message that no session takes.
    let (mut peer, _) = provider.openai().await;
    say(&mut live, "hello").await;
    peer.openai_text().await;
    peer.send(Message::text("x".repeat(5 * 1024 * 1024))).await;
    let (code, why) = failure(&turn(&mut live).await);
    assert!(code == "upstream-failed" && why.contains("too long"), "{why}");
    // It sends nothing but what cannot be meant.
    let (mut peer, _) = provider.openai().await;
    say(&mut live, "hello").await;
    peer.openai_text().await;
    for _ in 0..20 {
        peer.send(Message::binary(vec![0xff])).await;
    }
    assert_eq!(failure(&turn(&mut live).await).0, "upstream-failed");
}

/// Answers one connection as Gemini does, over TLS. Who does not trust it ends it.
async fn answer_safely(acceptor: tokio_rustls::TlsAcceptor, tcp: tokio::net::TcpStream) {
    let Ok(stream) = acceptor.accept(tcp).await else { return };
    let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
    while let Some(Ok(Message::Text(text))) = socket.next().await {
        let frame: Value = serde_json::from_str(&text).unwrap();
        let answer = if frame.get("setup").is_some() {
            json!({"setupComplete": {}})
        } else {
            json!({"serverContent": {"modelTurn": {"parts": [{"text": "safe"}]}, "turnComplete": true}})
        };
        socket.send(Message::text(answer.to_string())).await.unwrap();
    }
}

#[tokio::test]
async fn an_encrypted_provider_must_show_a_certificate_of_the_authority_that_is_set() {
    let issued = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let authority = NamedTempFile::new().unwrap();
    std::fs::write(authority.path(), issued.cert.pem()).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(issued.signing_key.serialize_der().into());
    let tls = rustls::ServerConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![issued.cert.der().clone()], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(tls));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            tokio::spawn(answer_safely(acceptor.clone(), tcp));
        }
    });
    let table = |more: &str| {
        format!("[live]\nprovider = \"gemini-live\"\nurl = \"wss://localhost:{port}/\"\n{more}\n")
    };
    let (server, _file) = companion(&table(&format!("ca-file = {:?}", authority.path())));
    let (mut live, _) = server.ready().await;
    say(&mut live, "hello").await;
    assert_eq!(turn(&mut live).await[2]["text"], "safe");
    let (server, _file) = companion(&table(""));
    let (mut live, _) = server.ready().await;
    say(&mut live, "hello").await;
    let (code, why) = tokio::time::timeout(std::time::Duration::from_secs(60), turn(&mut live))
        .await
        .map(|frames| failure(&frames))
        .unwrap();
    assert!(code == "upstream-failed" && why.contains("certificate"), "{why}");
}
