//! Grants: rules, listing, revocation, expiry.

use super::*;

fn request(passport: &str) -> GrantRequest {
    GrantRequest { passport_fpr: passport.to_owned(), ..GrantRequest::default() }
}

#[test]
fn a_grant_is_given_shown_listed_and_taken_back() {
    let host = Host::new();
    host.with_module(EMPTY_MODULE);
    let extensions = &host.extensions;
    host.grant("ext.a", |grant| grant.passport_fpr = "p_aaron".to_owned());
    let passports = |host: &Host| -> Vec<String> {
        host.extensions.grants("ext.a").unwrap().into_iter().map(|grant| grant.passport_fpr).collect()
    };
    assert_eq!(passports(&host), ["p_aaron", "p_alice"]);
    let again = extensions.issue_grant("ext.a", request("p_alice"), None).unwrap_err();
    assert_eq!(
        (status(&again), again.to_string().as_str()),
        (409, "grant already exists; revoke first to replace")
    );
    extensions.revoke_grant("ext.a", "p_alice", Some("p_admin")).unwrap();
    assert_eq!(passports(&host), ["p_aaron"]);
    for err in [
        extensions.grant("ext.a", "p_alice").unwrap_err(),
        extensions.revoke_grant("ext.a", "p_alice", None).unwrap_err(),
    ] {
        assert_eq!(
            (status(&err), err.to_string().as_str()),
            (404, "grant for 'ext.a' + 'p_alice' not found")
        );
    }
    host.grant("ext.a", |grant| grant.rate_limit_per_min = Some(3));
    let host = host.reopened();
    let grant = host.extensions.grant("ext.a", "p_alice").unwrap();
    assert_eq!((grant.rate_limit_per_min, grant.granted_by_passport.as_deref()), (Some(3), Some("p_admin")));
    let actions: Vec<_> = host.audit().iter().map(|row| row["action"].clone()).collect();
    assert_eq!(
        actions,
        [
            "install",
            "grant_issued",
            "grant_issued",
            "grant_issued",
            "grant_revoked",
            "grant_revoked",
            "grant_issued"
        ]
    );
}

#[test]
fn grants_that_break_a_rule_are_refused() {
    type Change = fn(&mut GrantRequest);
    let cases: [(Change, u16, &str); 12] = [
        (|g| g.passport_fpr = " ".into(), 400, "invalid passport_fpr ' ': cannot be empty"),
        (|g| g.passport_fpr = "p\n".into(), 400, "control characters"),
        (|g| g.passport_fpr = "p".repeat(513), 400, "exceeds its bound"),
        (|g| g.passport_fpr = "p".repeat(512), 413, "exceeds the bound"),
        (|g| g.allowed_prefixes_read = vec![String::new()], 400, "cannot be empty"),
        (|g| g.allowed_prefixes_read = vec!["__".into()], 400, "privacy-gated prefix"),
        (|g| g.allowed_prefixes_write = vec!["git".into()], 400, "privacy-gated prefix"),
        (
            |g| g.allowed_prefixes_write = vec!["__extension_grant__::ext.a::".into()],
            400,
            "privacy-gated prefix",
        ),
        (|g| g.allowed_prefixes_read = vec!["diary::mine".into()], 400, "privacy-gated prefix"),
        (|g| g.allowed_prefixes_read = vec!["di".into()], 400, "privacy-gated prefix"),
        (|g| g.expires_at_unix_ms = Some(1), 400, "must be later"),
        (|g| g.rate_limit_per_min = Some(60_001), 400, "exceeds its bound of 60000"),
    ];
    let host = Host::new();
    // Read when the host starts.
    host.set("CORECRUXD_ALWAYS_PRIVATE_PREFIXES", "diary::");
    let host = host.reopened();
    host.with_module(EMPTY_MODULE);
    for (change, code, text) in cases {
        let mut request = request("p_bob");
        change(&mut request);
        let err = host.extensions.issue_grant("ext.a", request, None).unwrap_err();
        assert_eq!(status(&err), code, "{err}");
        assert!(err.to_string().contains(text), "{err}");
    }
    assert_eq!(host.extensions.grants("ext.a").unwrap().len(), 1);
    let absent = host.extensions.issue_grant("ext.b", request("p_bob"), None).unwrap_err();
    assert_eq!((status(&absent), absent.to_string().as_str()), (404, "extension 'ext.b' not found"));
}

#[test]
fn a_grant_that_has_expired_is_seen_and_replaced() {
    let host = Host::new();
    host.with_module(EMPTY_MODULE);
    let expires = host.clock.load(Ordering::Relaxed) + 1_000;
    host.grant("ext.a", |grant| {
        grant.passport_fpr = "p_bob".to_owned();
        grant.expires_at_unix_ms = Some(expires);
    });
    host.after(999);
    assert!(host.extensions.issue_grant("ext.a", request("p_bob"), None).is_err());
    host.after(1);
    assert_eq!(host.extensions.grant("ext.a", "p_bob").unwrap().expires_at_unix_ms, Some(expires));
    host.extensions.issue_grant("ext.a", request("p_bob"), None).unwrap();
    assert_eq!(host.extensions.grant("ext.a", "p_bob").unwrap().expires_at_unix_ms, None);
}

#[tokio::test]
async fn a_caller_who_makes_up_names_does_not_flood_the_audit_log() {
    let host = Host::new();
    for number in 0..100 {
        let call = Invocation { extension: format!("ext.{number}"), ..invocation(json!({})) };
        assert_eq!(status(&host.extensions.invoke(call).await.unwrap_err().error), 404);
    }
    let rows = host.audit();
    assert_eq!(rows.len(), 61);
    assert_eq!((&rows[0]["pack_id"], &rows[0]["detail"]), (&json!(""), &json!("ext.0 ext.a.note")));
}

#[test]
fn grants_of_one_passport_at_the_same_time_make_one() {
    let host = Host::new();
    host.with_module(EMPTY_MODULE);
    let given = std::thread::scope(|scope| {
        let issuers: Vec<_> = (0..6)
            .map(|_| scope.spawn(|| host.extensions.issue_grant("ext.a", request("p_bob"), None).is_ok()))
            .collect();
        issuers.into_iter().map(|issuer| usize::from(issuer.join().unwrap())).sum::<usize>()
    });
    assert_eq!(given, 1);
}
