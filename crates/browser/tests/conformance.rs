//! The contract of `tests/conformance`, run against the shelf in a real browser.
//!
//! After every case a good call must succeed at once: nothing that a module does may hurt the next call.

#![cfg(target_arch = "wasm32")]

mod common;

use common::{call, files, hash_abc_works, shelf_with_builtin, text};
use serde_json::{Value, json};
use toolshelf_browser::storage::Storage;
use toolshelf_browser::{Added, Toolshelf};
use toolshelf_conformance::{ModuleCase, Source, calls, manifests, modules};
use toolshelf_core::refusal::Refusal;
use wasm_bindgen_test::{console_log, wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

/// What a host says of the module: the refusal at admission, or the answer of the call.
async fn answer_of(case: &ModuleCase) -> Value {
    let shelf = Toolshelf::over(Storage::in_memory());
    let added = match shelf.add(files(&case.folder())).await {
        Ok(added) => added,
        Err(refusal) => return json!(refusal),
    };
    match &added.tools[0].verdict {
        Ok(_) => call(&shelf, "case", &[("input", b"abc"), ("a", b"x\n"), ("b", b"y\n")]).await,
        Err(refusal) => json!(refusal),
    }
}

async fn run_modules(part: impl Fn(&ModuleCase) -> bool) {
    let good = shelf_with_builtin().await;
    let mut wrong = Vec::new();
    for case in modules().iter().filter(|case| part(case)) {
        let answer = answer_of(case).await;
        console_log!("{}: {}", case.name, text(&answer, 120));
        wrong
            .extend(case.expect.differs(&answer).map(|how| format!("{} ({}): {how}", case.name, case.about)));
        hash_abc_works(&good).await;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn spins(case: &ModuleCase) -> bool {
    case.expect.refused.as_deref() == Some("time-exceeded")
}

#[wasm_bindgen_test]
async fn every_module_gets_the_answer_of_the_contract() {
    run_modules(|case| !spins(case)).await;
}

#[wasm_bindgen_test]
async fn modules_that_never_end_are_ended() {
    run_modules(spins).await;
}

#[wasm_bindgen_test]
async fn every_folder_gets_the_verdicts_of_the_contract() {
    let good = shelf_with_builtin().await;
    for case in manifests() {
        let shelf = Toolshelf::over(Storage::in_memory());
        let added: Result<Added, Refusal> = shelf.add(files(&case.folder())).await;
        match (&case.expect.refused, added) {
            (Some(code), Err(refusal)) => {
                assert_eq!(refusal.code.as_str(), code, "{}: {refusal}", case.name);
                for evidence in &case.expect.why {
                    assert!(refusal.why.contains(evidence.as_str()), "{}: {refusal}", case.name);
                }
            }
            (None, Ok(added)) => {
                for tool in &added.tools {
                    let verdict =
                        tool.verdict.as_ref().map_or_else(|refusal| refusal.code.as_str(), |_| "admitted");
                    let wanted = case.expect.tools.get(&tool.id).map(String::as_str);
                    assert_eq!(Some(verdict), wanted, "{}: {}", case.name, tool.id);
                }
            }
            (wanted, got) => panic!("{}: expected the refusal {wanted:?}, got {got:?}", case.name),
        }
        hash_abc_works(&good).await;
    }
}

#[wasm_bindgen_test]
async fn every_call_of_a_shipped_tool_answers_as_the_contract_says() {
    let shelf = shelf_with_builtin().await;
    for case in calls() {
        let args: Vec<_> =
            case.args.iter().map(|(name, source): (_, &Source)| (name.as_str(), source.bytes())).collect();
        let args: Vec<_> = args.iter().map(|(name, bytes)| (*name, &bytes[..])).collect();
        let answer = call(&shelf, &case.tool, &args).await;
        assert_eq!(case.expect.differs(&answer), None, "{}", case.name);
    }
}
