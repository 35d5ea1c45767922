//! The contract of `tests/conformance`, run against the shelf in a real browser: the same lines that run on the host.

#![cfg(target_arch = "wasm32")]

mod common;

use common::{call, files, shelf_with_builtin, text};
use serde_json::Value;
use toolshelf_browser::Toolshelf;
use toolshelf_browser::storage::Storage;
use toolshelf_conformance::suite::{self, Folder, Host};
use toolshelf_core::refusal::Refusal;
use toolshelf_core::shelf::Tool;
use wasm_bindgen_test::{console_log, wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

/// Shelves in memory, calls in workers of the page.
struct Page;

impl Host for Page {
    type Shelf = Toolshelf;

    async fn take(&self, folder: Folder) -> Result<(Toolshelf, Vec<Tool>), Refusal> {
        let shelf = Toolshelf::over(Storage::in_memory());
        let added = shelf.add(files(&folder)).await?;
        Ok((shelf, added.tools))
    }

    async fn shipped(&self) -> Toolshelf {
        shelf_with_builtin().await
    }

    async fn call(&self, shelf: &Toolshelf, id: &str, args: &[(&str, &[u8])]) -> Value {
        call(shelf, id, args).await
    }

    fn heard(&self, case: &str, answer: &Value) {
        console_log!("{case}: {}", text(answer, 120));
    }
}

fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[wasm_bindgen_test]
async fn every_module_gets_the_answer_of_the_contract() {
    none(&suite::modules_differ(&Page, |case| !suite::spins(case)).await);
}

#[wasm_bindgen_test]
async fn modules_that_never_end_are_ended() {
    none(&suite::modules_differ(&Page, suite::spins).await);
}

#[wasm_bindgen_test]
async fn every_folder_gets_the_verdicts_of_the_contract() {
    none(&suite::manifests_differ(&Page).await);
}

#[wasm_bindgen_test]
async fn every_call_of_a_shipped_tool_answers_as_the_contract_says() {
    none(&suite::calls_differ(&Page).await);
}
