//! The contract of `tests/conformance`, run against the shelf on this computer: the same lines that run in the browser.

#![expect(clippy::print_stdout, reason = "a failing test shows every answer")]

mod common;

use serde_json::Value;
use tempfile::TempDir;
use toolshelf_conformance::suite::{self, Folder, Host};
use toolshelf_core::refusal::Refusal;
use toolshelf_core::shelf::Tool;
use toolshelf_sandbox::Shelves;

use common::{Shelf, call, on_one_thread, shelf_over, written};

/// Folders on disk, workers of the real program.
struct Processes;

impl Host for Processes {
    type Shelf = (Shelf, Option<TempDir>);

    async fn take(&self, folder: Folder) -> Result<(Self::Shelf, Vec<Tool>), Refusal> {
        let dir = written(&folder);
        let shelf = shelf_over(Shelves::with_folder(dir.path()));
        let tools = shelf.read().await?.remove(0).shelf?.tools;
        Ok(((shelf, Some(dir)), tools))
    }

    async fn shipped(&self) -> Self::Shelf {
        (shelf_over(Shelves::builtin()), None)
    }

    async fn call(&self, shelf: &Self::Shelf, id: &str, args: &[(&str, &[u8])]) -> Value {
        call(&shelf.0, id, args).await
    }

    fn heard(&self, case: &str, answer: &Value) {
        let answer: String = answer.to_string().chars().take(160).collect();
        println!("{case}: {answer}");
    }
}

fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_module_gets_the_answer_of_the_contract() {
    none(&on_one_thread(suite::modules_differ(&Processes, |case| !suite::spins(case))));
}

#[test]
fn modules_that_never_end_are_ended() {
    none(&on_one_thread(suite::modules_differ(&Processes, suite::spins)));
}

#[test]
fn every_folder_gets_the_verdicts_of_the_contract() {
    none(&on_one_thread(suite::manifests_differ(&Processes)));
}

#[test]
fn every_call_of_a_shipped_tool_answers_as_the_contract_says() {
    none(&on_one_thread(suite::calls_differ(&Processes)));
}
