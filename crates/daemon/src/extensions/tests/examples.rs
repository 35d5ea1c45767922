//! The example extensions, as whoever installs them has them.

use std::fs;
use std::path::Path;

use toolshelf_facts::NewFact;

use super::*;

async fn called(host: &Host, name: &str, tool: &str, args: Value) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/guests").join(name);
    let manifest: Value = serde_json::from_slice(&fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    let module = fs::read(folder.join(manifest["wasm_module_path"].as_str().unwrap())).unwrap();
    let id = manifest["id"].as_str().unwrap().to_owned();
    host.extensions.install(&manifest, ModuleSource::Bytes(module), LifecycleState::Active, None).unwrap();
    host.grant(&id, |grant| {
        grant.allowed_prefixes_write = vec!["notes::".to_owned()];
        grant.allowed_secret_ids = vec!["api".to_owned()];
    });
    let call = Invocation { tool: format!("{id}.{tool}"), extension: id, ..invocation(args) };
    match host.extensions.invoke(call).await.unwrap() {
        Outcome::Wasm(outcome) => outcome.result,
        Outcome::External(_) => panic!("it is a module"),
    }
}

#[tokio::test]
async fn the_summary_of_a_note_is_a_fact() {
    let host = Host::new();
    host.set("CORECRUXD_WASM_FUEL_DEFAULT", "100000000");
    host.extensions
        .store_fact(NewFact::new("notes::1", "text", "Cats sleep. Cats purr. It rained."))
        .unwrap();
    let args = json!({"entity": "notes::1", "sentences": 1});
    let result = called(&host, "note-summary", "summarise", args).await;
    assert_eq!((&result["sentences"], &result["of"]), (&json!(1), &json!(3)));
    let summary = host.extensions.fact_history("notes::1", "summary").unwrap().remove(0);
    assert_eq!(result["summary"], json!(summary.value));
    assert!(summary.actor.unwrap().starts_with("pack:ext.example.note-summary@0.1.0#blake3:"));
}

#[tokio::test]
async fn every_import_answers() {
    let host = Host::new();
    host.set("CORECRUXD_WASM_FUEL_DEFAULT", "100000000");
    host.extensions.set_secret("api", b"opensesame-77", None).unwrap();
    let args = json!({"entity": "notes::1", "key": "k", "value": "v", "prefix": "notes::", "secret": "api"});
    let result = called(&host, "every-import", "run", args).await;
    let text = result.to_string();
    assert_eq!(host.extensions.receipts().newest(10, None).unwrap().len(), 1, "{text}");
    assert_eq!(host.extensions.facts_of("notes::1").unwrap().len(), 1, "{text}");
    assert!(!text.contains("-6"), "{text}");
}
