use std::fs;

use super::*;

fn opened() -> (tempfile::TempDir, Pairings) {
    let dir = tempfile::tempdir().unwrap();
    let pairings = Pairings::open(dir.path());
    (dir, pairings)
}

fn paired(pairings: &Pairings, name: &str, life_ms: Option<u64>, origin: Option<&str>) -> Issued {
    let terms = Terms { name: None, scopes: vec![], life_ms };
    let code = pairings.offer(terms).unwrap();
    pairings.pair(&code, name, origin).unwrap()
}

#[test]
fn a_token_is_kept_as_its_hash_and_outlives_a_restart() {
    let (dir, pairings) = opened();
    let issued = paired(&pairings, "ann's\u{7} laptop", None, None);
    assert_eq!((&*issued.pairing.name, &*issued.pairing.scopes), ("ann's laptop", &Scope::ALL[..]));
    let kept = fs::read_to_string(dir.path().join(FILE)).unwrap();
    assert!(!kept.contains(&**issued.bearer) && !kept.contains(&issued.bearer[PREFIX.len()..]));
    for pairings in [&pairings, &Pairings::open(dir.path())] {
        let granted = pairings.check(&issued.bearer, None).unwrap();
        assert_eq!(granted.owner(), format!("paired:{}", issued.pairing.id));
        for wrong in ["", "tsp_", &issued.bearer[..20], &format!("{}0", *issued.bearer)] {
            assert_eq!(pairings.check(wrong, None).unwrap_err().code, Code::BearerRefused);
        }
    }
}

#[tokio::test]
async fn a_revoked_token_is_refused_by_name_and_its_sessions_end() {
    let (dir, pairings) = opened();
    let (one, other) = (paired(&pairings, "one", None, None), paired(&pairings, "other", None, None));
    assert_ne!(one.pairing.id, other.pairing.id);
    let (ended, ()) = tokio::join!(pairings.ended(&one.pairing.id), async {
        tokio::task::yield_now().await;
        assert_eq!(pairings.revoke("one").unwrap().id, one.pairing.id);
    });
    assert_eq!(ended.code, Code::PairingRevoked);
    for pairings in [&pairings, &Pairings::open(dir.path())] {
        assert_eq!(pairings.check(&one.bearer, None).unwrap_err().code, Code::PairingRevoked);
        assert!(pairings.check(&other.bearer, None).is_ok());
        assert_eq!(pairings.revoke("one").unwrap_err().code, Code::EnvironmentNotPaired);
    }
    paired(&pairings, "other", None, None);
    assert_eq!(pairings.revoke("other").unwrap_err().code, Code::InvalidArgument, "two have that name");
    assert!(pairings.revoke(&other.pairing.id).is_ok());
}

#[tokio::test]
async fn a_token_ends_by_the_clock_and_a_clock_that_is_set_back_gives_no_more_time() {
    let (_dir, pairings) = opened();
    let issued = paired(&pairings, "short", Some(60_000), None);
    assert!(pairings.check(&issued.bearer, None).is_ok());
    // As if the clock had once shown a later time, and was set back since.
    pairings.state().latest_ms = issued.pairing.expires_at_ms.unwrap();
    assert_eq!(pairings.check(&issued.bearer, None).unwrap_err().code, Code::PairingExpired);
    assert_eq!(pairings.ended(&issued.pairing.id).await.code, Code::PairingExpired);
    let (list, now) = pairings.list().unwrap();
    assert_eq!(list[0].state(now), "expired");
}

#[test]
fn a_token_of_a_page_is_good_on_that_page_alone() {
    let (_dir, pairings) = opened();
    let issued = paired(&pairings, "page", None, Some("https://tools.example"));
    assert!(pairings.knows_origin("https://tools.example") && !pairings.knows_origin("https://evil.example"));
    assert!(pairings.check(&issued.bearer, Some("https://tools.example")).is_ok());
    let refused = pairings.check(&issued.bearer, Some("https://evil.example")).unwrap_err();
    assert_eq!(refused.code, Code::OriginNotAllowed);
    pairings.revoke("page").unwrap();
    assert!(!pairings.knows_origin("https://tools.example"));
}

#[test]
fn a_damaged_list_lets_nobody_in_and_is_not_written_over() {
    let (dir, pairings) = opened();
    let issued = paired(&pairings, "one", None, None);
    let path = dir.path().join(FILE);
    let torn = fs::read(&path).unwrap()[..40].to_vec();
    fs::write(&path, &torn).unwrap();
    let pairings = Pairings::open(dir.path());
    assert_eq!(pairings.check(&issued.bearer, None).unwrap_err().code, Code::PairingListUnreadable);
    assert_eq!(pairings.offer(Terms::default()).unwrap_err().code, Code::PairingListUnreadable);
    assert_eq!(pairings.revoke("one").unwrap_err().code, Code::PairingListUnreadable);
    assert!(pairings.list().is_err() && fs::read(&path).unwrap() == torn);
}

#[test]
fn there_is_room_for_so_many_and_the_oldest_that_are_over_are_forgotten() {
    let (_dir, pairings) = opened();
    // Codes are bounded in a minute, so the list is filled as it is kept.
    let issued = paired(&pairings, "first", None, None);
    let copies = |count: usize, revoked_at_ms: Option<u64>| {
        (0..count).map(move |n| (n, revoked_at_ms)).collect::<Vec<_>>()
    };
    let mut list = Vec::new();
    for (n, revoked_at_ms) in copies(OVER_MAX + 5, Some(1)).into_iter().chain(copies(PAIRINGS_MAX - 1, None))
    {
        list.push(Pairing { id: format!("{n:016x}"), revoked_at_ms, ..issued.pairing.clone() });
    }
    pairings.state().list = Ok(list);
    paired(&pairings, "last", None, None);
    assert_eq!(pairings.list().unwrap().0.len(), OVER_MAX + PAIRINGS_MAX);
    assert_eq!(pairings.offer(Terms::default()).unwrap_err().code, Code::OverBudget);
}
