//! Calls of external tools.

use super::super::external::ExternalOutcome;
use super::super::testing::{Answer, Seen, Server, closed_port};
use super::*;

fn answered(body: &str) -> impl Fn(&Seen) -> Answer + Send + Sync + 'static {
    let body = body.to_owned();
    move |_| Answer::ok(body.clone())
}

/// A host that has the external tool of `server` installed, with a change to its manifest.
fn host(server: &Server, change: impl FnOnce(&mut Value)) -> Host {
    let host = Host::trusting(Some(server.authorities.clone()));
    let mut manifest = manifest("ext.a", "external_tool");
    manifest["external_tool_endpoint"] = json!(server.url("/call"));
    change(&mut manifest);
    host.install(&manifest).unwrap();
    host.grant("ext.a", |_| {});
    host
}

async fn outcome(host: &Host) -> ExternalOutcome {
    match host.call(json!({"a": 1})).await.unwrap() {
        Outcome::External(outcome) => outcome,
        Outcome::Wasm(_) => panic!("it is no module"),
    }
}

async fn refused(host: &Host) -> (u16, String) {
    let err = host.call(json!({"a": 1})).await.unwrap_err();
    (status(&err.error), err.to_string())
}

#[tokio::test]
async fn a_call_has_its_wire_form_and_its_writes_pass_through_the_grant() {
    let server = Server::https(answered(
        r#"{"result":{"x":[1]},"fact_writes":[
            {"entity":"notes::sum::1","key":"k","value":"v","confidence":7},
            {"entity":"notes::1","key":"k","value":"v"},
            {"entity":"notes::sum::2","key":"","value":"v"}]}"#,
    ));
    let host = host(&server, |_| {});
    let outcome = outcome(&host).await;
    let seen = &server.seen()[0];
    assert_eq!(seen.line, "POST /call HTTP/1.1");
    assert_eq!(
        String::from_utf8(seen.body.clone()).unwrap(),
        format!(
            r#"{{"tool":"ext.a.note","args":{{"a":1}},"calling_passport_id":"p_alice","request_id":"{}"}}"#,
            outcome.request_id
        )
    );
    assert!(seen.head.contains(&"content-type: application/json".to_owned()), "{:?}", seen.head);
    assert!(!seen.head.iter().any(|line| line.starts_with("authorization")));
    assert_eq!(outcome.result, json!({"x": [1]}));
    assert_eq!(
        (outcome.accepted_fact_writes, outcome.dropped_fact_writes, outcome.upstream_status),
        (1, 2, 200)
    );
    assert_eq!(
        outcome.drop_reasons,
        [
            "fact_writes[1] entity 'notes::1' not covered by grant.allowed_prefixes_write",
            "fact of entity 'notes::sum::2' was not stored: invalid fact: key cannot be empty",
        ]
    );
    let fact = host.extensions.facts_of("notes::sum::1").unwrap().remove(0);
    let record = host.extensions.show("ext.a").unwrap();
    assert_eq!(fact.actor, Some(format!("pack:ext.a@1.2.3#{}", record.manifest_hash)));
    assert_eq!(fact.confidence, 1.0);
    assert_eq!(outcome.attribution.manifest_hash, record.manifest_hash);
}

#[tokio::test]
async fn answers_that_are_none_are_faults_of_the_gateway() {
    type Reply = fn() -> Answer;
    let cases: [(&str, Reply, &str); 10] = [
        ("no JSON", || Answer::ok("<html>"), "malformed response: "),
        ("no result", || Answer::ok("{}"), "malformed response: "),
        ("no UTF-8", || Answer::ok(vec![0xff]), "malformed response: "),
        ("empty", || Answer::ok(""), "malformed response: "),
        ("wrong writes", || Answer::ok(r#"{"result":1,"fact_writes":[1]}"#), "malformed response: "),
        ("an error", || Answer::Whole(503, vec![], b"busy".to_vec()), "upstream returned 503: busy"),
        ("elsewhere", || Answer::redirect("https://example.com/"), "upstream returned 302: "),
        ("too large", || Answer::Endless, "response exceeds the 262144-byte cap"),
        ("too slow", || Answer::Stalled, "transport: it took too long"),
        ("no HTTP", || Answer::Raw(b"hello\r\n\r\n".to_vec()), "transport: "),
    ];
    for (name, reply, text) in cases {
        let server = Server::https(move |_| reply());
        let host = host(&server, |manifest| {
            manifest["safety"] = json!({"sandbox": "none", "max_runtime_ms": 2_000, "max_output_bytes": 0});
        });
        let (code, why) = refused(&host).await;
        assert_eq!(code, 502, "{name}: {why}");
        assert!(why.starts_with(text), "{name}: {why}");
    }
}

#[tokio::test]
async fn bounds_are_those_of_the_settings_tightened_by_the_manifest() {
    let server = Server::https(answered(r#"{"result":"0123456789"}"#));
    let tight = |manifest: &mut Value| {
        manifest["safety"] = json!({"sandbox": "none", "max_runtime_ms": 0, "max_output_bytes": 10});
    };
    assert_eq!(refused(&host(&server, tight)).await.1, "response exceeds the 10-byte cap");
    let host = host(&server, |_| {});
    host.set("CORECRUXD_EXTENSIONS_MAX_REQUEST_BYTES", "50");
    let (code, why) = refused(&host).await;
    assert_eq!(code, 502);
    assert!(why.starts_with("request of ") && why.ends_with("bytes exceeds the 50-byte cap"), "{why}");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn an_endpoint_is_called_where_manifest_and_host_allow_it() {
    let server = Server::https(answered(r#"{"result":1}"#));
    let hosts =
        |hosts: Value| move |manifest: &mut Value| manifest["network"] = json!({"allowed_hosts": hosts});
    for allowed in [json!([]), json!(["LOCALHOST"]), json!(["x", format!("localhost:{}", server.port)])] {
        outcome(&host(&server, hosts(allowed))).await;
    }
    for denied in [json!(["example.com"]), json!(["localhost:1"]), json!(["ocalhost"]), json!([""])] {
        let (code, why) = refused(&host(&server, hosts(denied))).await;
        let text = format!(
            "endpoint 'localhost:{}' is not allowed by extension 'ext.a' network.allowed_hosts",
            server.port
        );
        assert_eq!((code, why), (502, text));
    }
    let private = host(&server, |_| {});
    private.set("TOOLSHELF_EXTENSIONS_ALLOW_PRIVATE_ADDRESSES", "");
    assert!(refused(&private).await.1.ends_with("leads to a private address"));
    let user = host(&server, |manifest| {
        manifest["external_tool_endpoint"] = json!(format!("https://a:b@localhost:{}/", server.port));
    });
    assert_eq!(refused(&user).await.1, "transport: endpoint: it names a user");
    assert_eq!(server.seen().len(), 3);
    let gone = host(&server, |manifest| {
        manifest["external_tool_endpoint"] = json!(format!("https://localhost:{}/", closed_port()));
    });
    assert!(refused(&gone).await.1.starts_with("transport: "));
}

#[tokio::test]
async fn plain_http_needs_its_switch() {
    let server = Server::plain(answered(r#"{"result":1}"#));
    let host = host(&server, |_| {});
    assert_eq!(refused(&host).await.1, format!("plain http endpoint '{}' is blocked", server.url("/call")));
    host.set("CORECRUXD_EXTENSIONS_ALLOW_PLAIN_HTTP", "1");
    outcome(&host).await;
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_secret_is_sent_where_the_grant_names_it_and_never_repeated() {
    let server = Server::https(|seen| {
        let echo = seen.head.iter().find(|line| line.starts_with("authorization")).cloned();
        Answer::Whole(401, vec![], echo.unwrap_or_default().into_bytes())
    });
    let host = host(&server, |manifest| manifest["tools"][0]["auth_shared_secret_id"] = json!("api"));
    assert_eq!(refused(&host).await, (403, "scope violation".to_owned()));
    host.extensions.revoke_grant("ext.a", "p_alice", None).unwrap();
    host.grant("ext.a", |grant| grant.allowed_secret_ids = vec!["api".to_owned()]);
    assert_eq!(refused(&host).await, (404, "secret 'api' is not in the vault".to_owned()));
    host.extensions.set_secret("api", b"line\r\nx: y", None).unwrap();
    assert_eq!(refused(&host).await.0, 502);
    assert!(server.seen().is_empty());
    host.extensions.set_secret("api", b"opensesame-77", None).unwrap();
    let (code, why) = refused(&host).await;
    assert_eq!(code, 502);
    assert!(why.starts_with("upstream returned 401: ") && !why.contains("opensesame"), "{why}");
    assert!(server.seen()[0].head.contains(&"authorization: Bearer opensesame-77".to_owned()));
}

#[tokio::test]
async fn calls_are_counted_before_their_requests_are_built() {
    let server = Server::https(|_| Answer::Whole(500, vec![], vec![]));
    let host = host(&server, |_| {});
    for _ in 0..10 {
        assert_eq!(refused(&host).await.0, 502);
    }
    assert_eq!(refused(&host).await, (429, "rate limited (cap 10/min)".to_owned()));
    let err = host.call(json!({})).await.unwrap_err();
    assert_eq!(err.problem_json()["retry_after_ms"], 60_000);
    assert_eq!(server.seen().len(), 10);
    host.after(60_000);
    assert_eq!(refused(&host).await.0, 502);
    host.extensions.revoke_grant("ext.a", "p_alice", None).unwrap();
    host.grant("ext.a", |grant| grant.rate_limit_per_min = Some(0));
    assert_eq!(refused(&host).await, (429, "rate limited (cap 0/min)".to_owned()));
}
