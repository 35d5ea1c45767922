//! Facts, as clients read and write them.

use toolshelf_facts::NewFact;

use super::super::facts_api::{FactsExport, FactsQuery};
use super::*;

fn fact(entity: &str, value: &str) -> NewFact {
    NewFact::new(entity, "k", value)
}

#[test]
fn facts_are_stored_found_exported_and_deleted_without_a_trace() {
    let host = Host::new();
    let extensions = &host.extensions;
    let first = extensions.store_fact(fact("notes::a", "the old word is opensesame")).unwrap();
    let second = extensions.store_fact(fact("notes::a", "new")).unwrap();
    assert_eq!((second.version, second.supersedes.as_deref()), (2, Some(first.fact_id.as_str())));
    extensions.store_facts(vec![fact("notes::b", "b"), fact("other::c", "c")]).unwrap();
    let query = |query: FactsQuery| -> Vec<String> {
        extensions.query_facts(query).unwrap().facts.into_iter().map(|fact| fact.entity).collect()
    };
    let below = FactsQuery { entity_prefix: Some("notes::".to_owned()), ..FactsQuery::default() };
    assert_eq!(query(below.clone()), ["notes::b", "notes::a"]);
    assert_eq!(query(FactsQuery { top_k: Some(0), ..below.clone() }), ["notes::b"]);
    assert_eq!(query(FactsQuery { query: Some("NEW".to_owned()), ..below }), ["notes::a"]);
    assert_eq!(extensions.facts_of("notes::a").unwrap(), std::slice::from_ref(&second));
    assert_eq!(extensions.fact_history("notes::a", "k").unwrap().len(), 2);
    let page = extensions.export_facts(FactsExport { limit: Some(1), ..FactsExport::default() }).unwrap();
    let json = serde_json::to_value(&page).unwrap();
    assert_eq!((json["facts"].as_array().unwrap().len(), &json["has_more"]), (1, &json!(true)));
    assert_eq!(json["exported_at"], "1970-01-01T00:16:40.000Z");
    let rest = FactsExport { cursor: page.page.next_cursor, ..FactsExport::default() };
    assert_eq!(extensions.export_facts(rest).unwrap().page.facts.len(), 3);

    extensions.delete_fact(&second.fact_id).unwrap();
    assert_eq!(
        extensions.fact(&first.fact_id).unwrap_err().to_string(),
        format!("fact '{}' not found", first.fact_id)
    );
    let path = host.path("facts.redb");
    drop(host.extensions);
    let bytes = std::fs::read(path).unwrap();
    assert!(!bytes.windows(10).any(|window| window == b"opensesame"));
}

#[test]
fn what_clients_may_not_do_is_refused() {
    let host = Host::new();
    host.with_module(EMPTY_MODULE);
    let extensions = &host.extensions;
    let private = NewFact { private: true, ..fact("notes::a", "v") };
    for (new, code) in [
        (private, 400),
        (fact("", "v"), 400),
        (fact("a\nb", "v"), 400),
        (NewFact { confidence: 2.0, ..fact("a", "v") }, 400),
        (fact("a", &"x".repeat(300_000)), 413),
        (fact("__legal_hold__::1", "v"), 403),
        (fact("__incident__::1", "v"), 403),
        (fact("__extension__::ext.a", "{}"), 403),
        (fact("__extension_grant__::ext.a::p_bob", "{}"), 403),
    ] {
        let all = extensions.store_facts(vec![fact("notes::b", "v"), new.clone()]).unwrap_err();
        let one = extensions.store_fact(new).unwrap_err();
        assert_eq!((status(&one), status(&all)), (code, code), "{one}");
    }
    assert!(extensions.facts_of("notes::b").unwrap().is_empty());
    let record = extensions.facts_of("__extension__::ext.a").unwrap().remove(0);
    assert!(record.private);
    assert_eq!(status(&extensions.delete_fact(&record.fact_id).unwrap_err()), 403);
    assert!(extensions.show("ext.a").is_ok());
    for (as_of, code) in [("yesterday", 400), ("", 400)] {
        let query = FactsQuery { as_of: Some(as_of.to_owned()), ..FactsQuery::default() };
        assert_eq!(status(&extensions.query_facts(query).unwrap_err()), code);
    }
    let export = |since: Option<&str>, cursor: Option<&str>| {
        let request =
            FactsExport { since: since.map(Into::into), cursor: cursor.map(Into::into), limit: None };
        extensions.export_facts(request)
    };
    assert_eq!(status(&export(Some("x"), None).unwrap_err()), 400);
    assert_eq!(status(&export(None, Some("x")).unwrap_err()), 400);
    // Private facts are in no export, and in a query only where they are asked for.
    assert!(export(None, None).unwrap().page.facts.is_empty());
    let of_system = FactsQuery { entity_prefix: Some("__extension__::".into()), ..FactsQuery::default() };
    assert!(extensions.query_facts(of_system.clone()).unwrap().facts.is_empty());
    let found = extensions.query_facts(FactsQuery { include_private: true, ..of_system }).unwrap();
    assert!(!found.facts.is_empty());
    assert_eq!(status(&extensions.fact("fact_nothing").unwrap_err()), 404);
    assert_eq!(status(&extensions.delete_fact("fact_nothing").unwrap_err()), 404);
}
