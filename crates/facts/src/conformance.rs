//! One suite for every backend: what the port promises, case by case, and the same steps beside a model.
//!
//! A backend runs it with `suite!(|privacy| (store, guard))`, where the guard keeps alive what the store needs.

use std::future::Future;

use futures::executor::block_on;
use proptest::prelude::*;

use crate::browse::BrowseRequest;
use crate::fact::{Fact, Moment, NewFact};
use crate::memory::MemoryStore;
use crate::port::{
    ExportRequest, FactError, FactStore, Found, LISTED_MAX, QUERY_TOP_K_DEFAULT, QUERY_TOP_K_MAX, Query,
};
use crate::privacy::PrivacyRule;

macro_rules! suite {
    ($open:expr) => {
        $crate::conformance::suite!($open;
            the_newest_version_holds
            versions_are_linked_and_kept
            what_is_refused_changes_nothing
            bulk_is_all_or_nothing
            names_that_look_alike_stay_apart
            queries_filter_and_order
            names_below_a_prefix_are_told_once
            a_budget_of_tokens_is_filled_and_not_passed
            as_of_looks_back
            private_facts_stay_private
            deleting_takes_the_whole_fact
            deleting_an_older_version_leaves_the_others
            exports_come_in_pages
            a_clock_that_is_set_back_changes_no_order
            what_cannot_have_been_stored_is_not_found
        );

        #[test]
        fn any_steps_end_like_those_of_a_model() {
            $crate::conformance::like_the_model($open);
        }
    };
    ($open:expr; $($case:ident)*) => {
        $(#[test]
        fn $case() {
            let (store, _guard) = $open(PrivacyRule::default());
            futures::executor::block_on($crate::conformance::$case(store));
        })*
    };
}
pub(crate) use suite;

fn at(unix_ms: u64) -> Moment {
    Moment::from_unix_ms(unix_ms)
}

async fn put(store: &impl FactStore, entity: &str, key: &str, value: &str, unix_ms: u64) -> Fact {
    store.store(NewFact::new(entity, key, value), at(unix_ms)).await.unwrap()
}

pub(crate) async fn names_below_a_prefix_are_told_once(store: impl FactStore) {
    for (entity, key) in [
        ("a::b::c", "k"),
        ("a::b::d", "k"),
        ("a::e", "k"),
        ("a::e", "l"),
        ("ab", "k"),
        ("github::x", "k"),
        ("z", "k"),
    ] {
        put(&store, entity, key, "v", 1).await;
    }
    for limit in [1, 2, 50] {
        let names = async |prefix: &str, include_private| {
            let mut request = BrowseRequest {
                prefix: prefix.to_owned(),
                limit: Some(limit),
                include_private,
                ..BrowseRequest::default()
            };
            let mut names = Vec::new();
            loop {
                let page = store.browse(&request).await.unwrap();
                names.extend(page.names.into_iter().map(|name| name.name));
                match page.next {
                    Some(next) => request.after = Some(next),
                    None => return names,
                }
            }
        };
        assert_eq!(names("", false).await, ["a::", "ab", "z"]);
        assert_eq!(names("", true).await, ["a::", "ab", "github::", "z"]);
        assert_eq!(names("a::", false).await, ["a::b::", "a::e"]);
        assert_eq!(names("a::b::", false).await, ["a::b::c", "a::b::d"]);
        assert!(names("github::", false).await.is_empty());
    }
}

fn values(facts: &[Fact]) -> Vec<&str> {
    facts.iter().map(|fact| fact.value.as_str()).collect()
}

async fn query(store: &impl FactStore, query: Query) -> Found {
    store.query(&query).await.unwrap()
}

fn below(prefix: &str) -> Query {
    Query { prefix: Some(prefix.into()), ..Query::default() }
}

pub(crate) async fn the_newest_version_holds(store: impl FactStore) {
    let sure = NewFact { confidence: 1.0, ..NewFact::new("notes::a", "title", "old and sure") };
    let unsure = NewFact { confidence: 0.1, ..NewFact::new("notes::a", "title", "new and unsure") };
    store.store(sure, at(1)).await.unwrap();
    let newest = store.store(unsure, at(2)).await.unwrap();
    assert_eq!(store.latest("notes::a", "title").await.unwrap(), Some(newest.clone()));
    assert_eq!(store.by_entity("notes::a").await.unwrap(), std::slice::from_ref(&newest));
    assert_eq!(query(&store, below("notes::")).await.facts, [newest]);
    assert_eq!(store.latest("notes::a", "other").await.unwrap(), None);
}

pub(crate) async fn versions_are_linked_and_kept(store: impl FactStore) {
    let first = put(&store, "e", "k", "1", 1).await;
    let second = put(&store, "e", "k", "2", 2).await;
    let other = put(&store, "e", "k2", "x", 3).await;
    let third = put(&store, "e", "k", "3", 4).await;
    assert_eq!([first.version, second.version, other.version, third.version], [1, 2, 1, 3]);
    assert_eq!(third.supersedes.as_ref(), Some(&second.fact_id));
    assert_eq!(third.superseded_by, None);
    let history = store.history("e", "k").await.unwrap();
    assert_eq!(values(&history), ["3", "2", "1"]);
    assert_eq!(history[1].superseded_by.as_ref(), Some(&third.fact_id));
    assert_eq!(history[2].superseded_by.as_ref(), Some(&second.fact_id));
    assert_eq!(store.get(&second.fact_id).await.unwrap().as_ref(), Some(&history[1]));
    assert_eq!(store.get(&third.fact_id).await.unwrap(), Some(third));
}

pub(crate) async fn what_is_refused_changes_nothing(store: impl FactStore) {
    let kept = put(&store, "e", "k", "v", 1).await;
    for bad in [
        NewFact::new("", "k", "x"),
        NewFact::new("e", "k\0", "x"),
        NewFact { confidence: 2.0, ..NewFact::new("e", "k", "x") },
        NewFact::new("e", "k", "x".repeat(crate::fact::FACT_VALUE_MAX_BYTES + 1)),
    ] {
        assert!(store.store(bad, at(2)).await.is_err());
    }
    assert_eq!(store.history("e", "k").await.unwrap(), [kept]);
}

pub(crate) async fn bulk_is_all_or_nothing(store: impl FactStore) {
    let facts = vec![NewFact::new("e", "k", "1"), NewFact::new("e", "k", "2"), NewFact::new("f", "k", "3")];
    let stored = store.store_bulk(facts, at(1)).await.unwrap();
    assert_eq!(stored.iter().map(|fact| fact.version).collect::<Vec<_>>(), [1, 2, 1]);
    assert_eq!(values(&store.history("e", "k").await.unwrap()), ["2", "1"]);
    assert_eq!(store.store_bulk(Vec::new(), at(2)).await, Ok(Vec::new()));

    let with_a_bad_one = vec![NewFact::new("g", "k", "1"), NewFact::new("g", "", "2")];
    assert!(matches!(store.store_bulk(with_a_bad_one, at(3)).await, Err(FactError::Invalid(_))));
    let too_many = vec![NewFact::new("g", "k", "1"); crate::port::BULK_MAX + 1];
    assert!(matches!(store.store_bulk(too_many, at(3)).await, Err(FactError::TooLarge { .. })));
    assert_eq!(store.latest("g", "k").await, Ok(None));
}

pub(crate) async fn names_that_look_alike_stay_apart(store: impl FactStore) {
    for (entity, key) in [("a", "b::c"), ("a::b", "c"), ("a:", "b"), ("ab", "c"), ("a", "b"), ("ä", "b")] {
        put(&store, entity, key, &format!("{entity}/{key}"), 1).await;
    }
    assert_eq!(values(&store.by_entity("a").await.unwrap()), ["a/b", "a/b::c"]);
    let found = query(&store, Query { entity: Some("a".into()), ..Query::default() }).await;
    assert_eq!(found.facts.len(), 2);
    assert_eq!(query(&store, below("a")).await.facts.len(), 5);
    assert_eq!(query(&store, below("a:")).await.facts.len(), 2);
    assert_eq!(query(&store, Query { entity: Some("a".into()), ..below("b") }).await.facts.len(), 0);
    assert_eq!(query(&store, Query { entity: Some("a".into()), ..below("a") }).await.facts.len(), 2);
}

pub(crate) async fn queries_filter_and_order(store: impl FactStore) {
    for (index, confidence) in [0.2, 0.9, 0.9, 0.5].into_iter().enumerate() {
        let fact =
            NewFact { confidence, ..NewFact::new(format!("n::{index}"), "k", format!("Value {index}")) };
        store.store(fact, at(index as u64)).await.unwrap();
    }
    put(&store, "m::0", "Colour", "blue ÉTÉ", 9).await;
    // The surest first; of equally sure ones the newest.
    assert_eq!(
        values(&query(&store, below("n::")).await.facts),
        ["Value 2", "Value 1", "Value 3", "Value 0"]
    );
    let two = query(&store, Query { top_k: Some(2), ..below("n::") }).await;
    assert_eq!((values(&two.facts), two.total_tokens), (vec!["Value 2", "Value 1"], 4));
    // One of the words is enough, in whatever case, in value, key or entity.
    let text = |text: &str| Query { text: Some(text.into()), ..Query::default() };
    assert_eq!(values(&query(&store, text("colour")).await.facts), ["blue ÉTÉ"]);
    assert_eq!(values(&query(&store, text("été nothing")).await.facts), ["blue ÉTÉ"]);
    assert_eq!(values(&query(&store, text("M::")).await.facts), ["blue ÉTÉ"]);
    assert_eq!(query(&store, text("nothing")).await, Found::default());
    assert_eq!(query(&store, text("  ")).await.facts.len(), 5);

    let many: Vec<_> = (0..300).map(|index| NewFact::new(format!("z::{index}"), "k", "v")).collect();
    store.store_bulk(many, at(10)).await.unwrap();
    for (top_k, answered) in
        [(None, QUERY_TOP_K_DEFAULT), (Some(0), 1), (Some(256), 256), (Some(usize::MAX), QUERY_TOP_K_MAX)]
    {
        assert_eq!(query(&store, Query { top_k, ..below("z::") }).await.facts.len(), answered);
    }
    assert_eq!(query(&store, Query::default()).await.facts.len(), QUERY_TOP_K_DEFAULT);
}

pub(crate) async fn a_budget_of_tokens_is_filled_and_not_passed(store: impl FactStore) {
    for (index, chars) in [40, 8, 80, 4, 12].into_iter().enumerate() {
        put(&store, &format!("n::{index}"), "k", &"x".repeat(chars), index as u64).await;
    }
    // The newest first: 3, 1, 20, 2 and 10 tokens. The first that does not fit ends the answer.
    for (budget, tokens) in [
        (0, vec![3]),
        (3, vec![3]),
        (4, vec![3, 1]),
        (23, vec![3, 1]),
        (24, vec![3, 1, 20]),
        (36, vec![3, 1, 20, 2, 10]),
    ] {
        let found = query(&store, Query { token_budget: Some(budget), top_k: Some(1), ..below("n::") }).await;
        assert_eq!(found.facts.iter().map(|fact| fact.tokens).collect::<Vec<_>>(), tokens, "{budget}");
        assert_eq!(found.total_tokens, tokens.iter().map(|tokens| u64::from(*tokens)).sum::<u64>());
    }
}

pub(crate) async fn as_of_looks_back(store: impl FactStore) {
    put(&store, "n::a", "k", "a1", 10).await;
    put(&store, "n::a", "k", "a2", 20).await;
    put(&store, "n::b", "k", "b1", 20).await;
    put(&store, "n::a", "k", "a3", 30).await;
    for (moment, expected) in
        [(9, vec![]), (10, vec!["a1"]), (19, vec!["a1"]), (20, vec!["b1", "a2"]), (30, vec!["a3", "b1"])]
    {
        let found = query(&store, Query { as_of: Some(at(moment)), ..below("n::") }).await;
        assert_eq!(values(&found.facts), expected, "{moment}");
    }
}

pub(crate) async fn private_facts_stay_private(store: impl FactStore) {
    assert!(put(&store, "github::a", "k", "born", 1).await.private);
    let asked = NewFact { private: true, ..NewFact::new("n::a", "k", "asked") };
    assert!(store.store(asked, at(2)).await.unwrap().private);
    // A later version does not make it public.
    assert!(put(&store, "n::a", "k", "later", 3).await.private);
    put(&store, "n::b", "k", "public", 4).await;

    assert_eq!(values(&query(&store, below("")).await.facts), ["public"]);
    let all = query(&store, Query { include_private: true, ..below("") }).await;
    assert_eq!(values(&all.facts), ["public", "later", "born"]);
    assert_eq!(values(&store.export(&ExportRequest::default()).await.unwrap().facts), ["public"]);
}

pub(crate) async fn deleting_takes_the_whole_fact(store: impl FactStore) {
    let first = put(&store, "e", "k", "1", 1).await;
    let second = put(&store, "e", "k", "2", 2).await;
    let other = put(&store, "e", "k2", "x", 3).await;
    assert_eq!(store.delete(&second.fact_id).await.unwrap().versions, 2);
    // No older version comes back as the newest.
    assert_eq!(store.latest("e", "k").await.unwrap(), None);
    assert_eq!(store.history("e", "k").await.unwrap(), []);
    assert_eq!(store.get(&first.fact_id).await.unwrap(), None);
    let others = std::slice::from_ref(&other);
    assert_eq!(store.by_entity("e").await.unwrap(), others);
    assert_eq!(query(&store, below("e")).await.facts, others);
    assert_eq!(store.export(&ExportRequest::default()).await.unwrap().facts, others);
    for id in [&second.fact_id, &first.fact_id, "", "fact_x"] {
        assert_eq!(store.delete(id).await, Err(FactError::NotFound(id.to_owned())));
    }
    // Stored again it begins anew, under an id that nothing had before.
    let again = put(&store, "e", "k", "3", 4).await;
    assert_eq!((again.version, again.supersedes), (1, None));
    assert!(again.fact_id > second.fact_id);
}

pub(crate) async fn deleting_an_older_version_leaves_the_others(store: impl FactStore) {
    let first = put(&store, "e", "k", "1", 1).await;
    put(&store, "e", "k", "2", 2).await;
    assert_eq!(store.delete(&first.fact_id).await.unwrap().versions, 1);
    assert_eq!(values(&store.history("e", "k").await.unwrap()), ["2"]);
    assert_eq!(put(&store, "e", "k", "3", 3).await.version, 3);
    let back = query(&store, Query { as_of: Some(at(1)), ..below("e") }).await;
    assert_eq!(back.facts, []);
}

pub(crate) async fn exports_come_in_pages(store: impl FactStore) {
    for index in 0..7 {
        put(&store, &format!("n::{}", index % 3), "k", &index.to_string(), 10 * index).await;
    }
    let mut request = ExportRequest { limit: Some(3), ..ExportRequest::default() };
    let mut exported = Vec::new();
    let mut pages = 0;
    loop {
        let page = store.export(&request).await.unwrap();
        assert_eq!(page.has_more, page.next_cursor.is_some());
        exported.extend(page.facts.into_iter().map(|fact| fact.value));
        pages += 1;
        match page.next_cursor {
            Some(cursor) => request.cursor = Some(cursor),
            None => break,
        }
    }
    assert_eq!((exported.join(""), pages), ("0123456".to_owned(), 3));

    for (since, expected) in [(0, "0123456"), (20, "23456"), (21, "3456"), (60, "6"), (61, "")] {
        let request = ExportRequest { since: Some(at(since)), ..ExportRequest::default() };
        assert_eq!(values(&store.export(&request).await.unwrap().facts).concat(), expected, "{since}");
    }
    for cursor in ["", "x", "fact_1"] {
        let request = ExportRequest { cursor: Some(cursor.into()), ..ExportRequest::default() };
        assert_eq!(store.export(&request).await, Err(FactError::BadCursor(cursor.into())));
    }

    // Many private facts in a row do not end an export.
    let private: Vec<_> = (0..50).map(|index| NewFact::new(format!("github::{index}"), "k", "p")).collect();
    store.store_bulk(private, at(100)).await.unwrap();
    put(&store, "n::last", "k", "last", 110).await;
    let mut request = ExportRequest { since: Some(at(100)), limit: Some(1), cursor: None };
    let mut found = Vec::new();
    loop {
        let page = store.export(&request).await.unwrap();
        found.extend(page.facts);
        if !page.has_more {
            break;
        }
        request.cursor = page.next_cursor;
    }
    assert_eq!(values(&found), ["last"]);
}

pub(crate) async fn a_clock_that_is_set_back_changes_no_order(store: impl FactStore) {
    put(&store, "e", "k", "1", 1_000).await;
    let second = put(&store, "e", "k", "2", 10).await;
    assert_eq!(second.stored_at, at(1_000));
    assert_eq!(store.latest("e", "k").await.unwrap(), Some(second));
}

pub(crate) async fn what_cannot_have_been_stored_is_not_found(store: impl FactStore) {
    put(&store, "a", "b", "1", 1).await;
    put(&store, "a", "b", "2", 2).await;
    for (entity, key) in [("a\0b", ""), ("a", "b\0"), ("a\0b\0", ""), ("", ""), ("", "a\0b"), ("a\0", "b")] {
        assert_eq!(store.latest(entity, key).await.unwrap(), None, "{entity:?} {key:?}");
        assert_eq!(store.history(entity, key).await.unwrap(), [], "{entity:?} {key:?}");
    }
    for entity in ["", "a\0", "a\0b", "\u{10ffff}"] {
        assert_eq!(store.by_entity(entity).await.unwrap(), [], "{entity:?}");
        let found = query(&store, Query { entity: Some(entity.into()), ..Query::default() }).await;
        assert_eq!(found.facts, [], "{entity:?}");
    }
    assert_eq!(store.get("fact_ffffffffffffffff").await.unwrap(), None);
    assert!(store.history("a", "b").await.unwrap().len() <= LISTED_MAX);
}

/// A step that a caller may take. Names, values and moments are few, so that steps meet.
#[derive(Debug, Clone)]
enum Step {
    Store { entity: u8, key: u8, value: u8, confidence: u8, private: bool, at: u64 },
    Bulk(Vec<(u8, u8)>),
    Delete(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_u8..4, 0_u8..3, any::<u8>(), 0_u8..4, prop::bool::weighted(0.1), 0_u64..50).prop_map(
            |(entity, key, value, confidence, private, at)| {
                Step::Store { entity, key, value, confidence, private, at }
            }
        ),
        1 => prop::collection::vec((0_u8..4, 0_u8..3), 0..4).prop_map(Step::Bulk),
        1 => (0_u8..20).prop_map(Step::Delete),
    ]
}

const ENTITIES: [&str; 4] = ["n::a", "n::ab", "n::", "github::x"];

async fn take(store: &impl FactStore, step: &Step) -> Result<Vec<Fact>, FactError> {
    let name = |entity: u8, key: u8| (ENTITIES[usize::from(entity)], format!("k{key}"));
    match step {
        Step::Store { entity, key, value, confidence, private, at: unix_ms } => {
            let (entity, key) = name(*entity, *key);
            let new = NewFact {
                confidence: f64::from(*confidence) / 4.0,
                private: *private,
                ..NewFact::new(entity, key, value.to_string())
            };
            Ok(vec![store.store(new, at(*unix_ms)).await?])
        }
        Step::Bulk(names) => {
            let facts = names.iter().map(|(entity, key)| name(*entity, *key));
            let facts = facts.map(|(entity, key)| NewFact::new(entity, key, "bulk")).collect();
            store.store_bulk(facts, at(25)).await
        }
        Step::Delete(seq) => store.delete(&format!("fact_{seq:016x}")).await.map(|_| Vec::new()),
    }
}

/// Everything that can be seen of a store.
async fn seen(store: &impl FactStore) -> Vec<Vec<Fact>> {
    let mut seen = Vec::new();
    for entity in ENTITIES {
        seen.push(store.by_entity(entity).await.unwrap());
        for key in ["k0", "k1", "k2"] {
            seen.push(store.history(entity, key).await.unwrap());
            seen.push(store.latest(entity, key).await.unwrap().into_iter().collect());
        }
    }
    for as_of in [None, Some(at(10)), Some(at(30))] {
        for token_budget in [None, Some(2)] {
            let query = Query { as_of, token_budget, include_private: true, ..below("n::") };
            seen.push(store.query(&query).await.unwrap().facts);
        }
    }
    for since in [None, Some(at(20))] {
        let request = ExportRequest { since, ..ExportRequest::default() };
        seen.push(store.export(&request).await.unwrap().facts);
    }
    seen
}

pub(crate) fn like_the_model<S: FactStore, G>(open: impl Fn(PrivacyRule) -> (S, G)) {
    let config = ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(steps in prop::collection::vec(step(), 1..24))| {
        let (store, _guard) = open(PrivacyRule::default());
        let model = MemoryStore::new(PrivacyRule::default());
        fn now<T>(future: impl Future<Output = T>) -> T {
            block_on(future)
        }
        for step in &steps {
            prop_assert_eq!(now(take(&store, step)), now(take(&model, step)));
        }
        prop_assert_eq!(now(seen(&store)), now(seen(&model)));
    });
}
