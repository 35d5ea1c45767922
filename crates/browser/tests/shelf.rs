//! The shelf in a real browser: what is stored, what is refused, what runs at the same time, and what keeps going.

#![cfg(target_arch = "wasm32")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use common::{call, files, hash_abc_works, shelf_with_builtin};
use futures::channel::oneshot;
use futures::future::{abortable, join_all};
use gloo_timers::callback::Interval;
use gloo_timers::future::TimeoutFuture;
use serde_json::{Value, json};
use toolshelf_browser::storage::{ShelfRecord, Storage};
use toolshelf_browser::{BUILTIN, Toolshelf, builtin};
use toolshelf_core::digest::Digest;
use toolshelf_core::refusal::Code;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

fn one_tool(id: &str, module: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let manifest = json!({ "name": "mine", "version": "1", "tools": [{
        "id": id, "wasm": "m.wasm", "digest": Digest::of(module).to_string(), "abi": "buffer-abi/1",
    }]});
    BTreeMap::from([
        ("manifest.json".to_owned(), manifest.to_string().into_bytes()),
        ("m.wasm".to_owned(), module.to_vec()),
    ])
}

fn hash_module() -> Vec<u8> {
    builtin::record().files["hash.wasm"].clone()
}

fn spinning() -> Vec<u8> {
    let cases = toolshelf_conformance::modules();
    cases.iter().find(|case| case.name == "loops-forever").unwrap().module.bytes()
}

async fn ids(shelf: &Toolshelf) -> Vec<String> {
    let readings = shelf.read().await.unwrap();
    readings.into_iter().flat_map(|reading| reading.shelf.unwrap().tools).map(|tool| tool.id).collect()
}

#[wasm_bindgen_test]
async fn an_added_shelf_is_there_after_a_restart_and_a_removed_one_can_be_put_back() {
    let shelf = Toolshelf::open().await;
    assert!(shelf.persistent());
    let added = shelf.add(files(&one_tool("mine", &hash_module()))).await.unwrap();
    assert_eq!((added.stored, added.name.as_str()), (1, "mine"));

    let restarted = Toolshelf::open().await;
    assert!(ids(&restarted).await.contains(&"mine".to_owned()));
    assert_eq!(call(&restarted, "mine", &[("input", b"abc")]).await["ok"], true);

    let removed = restarted.remove(&added.key).await.unwrap();
    assert!(!ids(&restarted).await.contains(&"mine".to_owned()));
    assert_eq!(call(&restarted, "mine", &[]).await["refused"], "unknown-tool");
    restarted.restore(removed).await.unwrap();
    restarted.read().await.unwrap();
    assert_eq!(call(&restarted, "mine", &[("input", b"abc")]).await["ok"], true);
    restarted.remove(&added.key).await.unwrap();
}

#[wasm_bindgen_test]
async fn a_stored_module_that_somebody_changed_is_refused_and_can_be_repaired() {
    let storage = Storage::open().await;
    let shelf = Toolshelf::open().await;
    hash_abc_works(&shelf).await;

    let mut record = storage.get(BUILTIN).await.unwrap().unwrap();
    record.files.get_mut("hash.wasm").unwrap()[300] ^= 1;
    storage.put(&record).await.unwrap();
    let refusal = call(&shelf, "hash", &[("input", b"abc")]).await;
    assert_eq!(refusal["refused"], "digest-mismatch");
    assert!(refusal["why"].as_str().unwrap().contains("the bytes changed since admission"), "{refusal}");

    let restarted = Toolshelf::open().await;
    let refusal = call(&restarted, "hash", &[("input", b"abc")]).await;
    assert!(refusal["why"].as_str().unwrap().contains("but the manifest pins"), "{refusal}");
    restarted.reset_builtin().await.unwrap();
    restarted.read().await.unwrap();
    hash_abc_works(&restarted).await;
}

#[wasm_bindgen_test]
async fn a_shelf_cannot_take_the_id_of_a_built_in_tool() {
    let shelf = shelf_with_builtin().await;
    let added = shelf.add(files(&one_tool("hash", &hash_module()))).await.unwrap();
    assert_eq!(added.tools[0].verdict.as_ref().unwrap_err().code, Code::DuplicateTool);
    assert_eq!(added.stored, 0);
    hash_abc_works(&shelf).await;
}

#[wasm_bindgen_test]
async fn a_shelf_of_the_same_name_is_replaced_and_comes_back_by_undo() {
    let shelf = Toolshelf::over(Storage::in_memory());
    shelf.add(files(&one_tool("first", &hash_module()))).await.unwrap();
    let second = shelf.add(files(&one_tool("second", &hash_module()))).await.unwrap();
    assert_eq!(ids(&shelf).await, ["second"]);
    shelf.restore(second.replaced.unwrap()).await.unwrap();
    assert_eq!(ids(&shelf).await, ["first"]);
}

#[wasm_bindgen_test]
async fn changes_and_calls_are_told_to_those_who_listen() {
    let shelf = shelf_with_builtin().await;
    let (changes, calls) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let (heard_change, heard_call) = (Rc::clone(&changes), Rc::clone(&calls));
    shelf.on_change(move || heard_change.set(heard_change.get() + 1));
    shelf.on_call(move |event| {
        assert!(event.duration_ms >= 0.0 && event.at_ms > 0.0);
        heard_call.set(heard_call.get() + 1);
    });
    shelf.add(files(&one_tool("mine", &hash_module()))).await.unwrap();
    call(&shelf, "mine", &[]).await;
    call(&shelf, "nope", &[]).await;
    TimeoutFuture::new(20).await;
    assert_eq!((changes.get(), calls.get()), (1, 2));
}

#[wasm_bindgen_test]
async fn forty_calls_at_once_four_run_thirty_two_wait_and_four_are_refused() {
    let shelf = shelf_with_builtin().await;
    shelf.read().await.unwrap();
    let answers = join_all((0..40).map(|_| call(&shelf, "hash", &[("input", b"abc")]))).await;
    let refused: Vec<&Value> = answers.iter().filter(|answer| answer["ok"] == false).collect();
    assert_eq!(refused.len(), 4, "{refused:?}");
    assert!(refused.iter().all(|refusal| refusal["refused"] == "over-budget"));
    let stats = shelf.stats();
    assert_eq!((stats.active, stats.queued), (0, 0));
    assert!(stats.max_observed_active <= 4);
}

#[wasm_bindgen_test]
async fn four_loops_at_once_freeze_nothing_and_the_next_call_works() {
    let shelf = shelf_with_builtin().await;
    shelf.add(files(&one_tool("spin", &spinning()))).await.unwrap();
    let ticks = Rc::new(Cell::new(0));
    let counted = Rc::clone(&ticks);
    let interval = Interval::new(50, move || counted.set(counted.get() + 1));
    let ends = join_all((0..4).map(|_| call(&shelf, "spin", &[]))).await;
    drop(interval);
    assert!(ends.iter().all(|end| end["refused"] == "time-exceeded"), "{ends:?}");
    // Five seconds of a frozen page would leave next to none.
    assert!(ticks.get() >= 20, "{} ticks", ticks.get());
    hash_abc_works(&shelf).await;
}

#[wasm_bindgen_test]
async fn a_call_that_is_given_up_ends_its_worker_and_frees_its_place() {
    let shelf = shelf_with_builtin().await;
    shelf.add(files(&one_tool("spin", &spinning()))).await.unwrap();
    let spinning = shelf.clone();
    let (spin, handle) = abortable(async move { call(&spinning, "spin", &[]).await });
    let (ended, end) = oneshot::channel();
    wasm_bindgen_futures::spawn_local(async move {
        let _ = ended.send(spin.await.is_err());
    });
    TimeoutFuture::new(300).await;
    assert_eq!(shelf.stats().active, 1);
    handle.abort();
    assert_eq!(end.await, Ok(true));
    assert_eq!(shelf.stats().active, 0);
    hash_abc_works(&shelf).await;
}

/// The console object, driven as a script would.
#[wasm_bindgen_test]
async fn the_console_api_takes_and_gives_plain_objects() {
    let shelf = shelf_with_builtin().await;
    let functions = shelf.clone();
    toolshelf_browser::console::install(move || {
        let functions = functions.console_api();
        Box::pin(async move { Ok(functions) })
    });
    let run = |script: &str| {
        let function = js_sys::Function::new_no_args(&format!("return (async () => {{ {script} }})()"));
        let promise: js_sys::Promise = function.call0(&JsValue::UNDEFINED).unwrap().unchecked_into();
        async move { serde_wasm_bindgen::from_value::<Value>(JsFuture::from(promise).await.unwrap()).unwrap() }
    };
    let read = run("return await toolshelf.readShelf()").await;
    assert_eq!((&read["ok"], read["tools"].as_array().unwrap().len()), (&json!(true), 3));
    assert_eq!(read["tools"][0]["abi"]["input"], json!({"addr": 1024, "maxBytes": 8192}));
    assert_eq!(run("return await toolshelf.readShelf('nope')").await["refused"], "shelf-unavailable");

    for input in [
        "'abc'",
        "new TextEncoder().encode('abc')",
        "new Blob(['abc'])",
        "new TextEncoder().encode('abc').buffer",
    ] {
        let answer = run(&format!("return await toolshelf.callWasmTool('hash', {{ input: {input} }})")).await;
        assert_eq!(
            answer["output"], "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "{input}"
        );
    }
    let number = run("return await toolshelf.callWasmTool('hash', { input: 12 })").await;
    assert_eq!(number["inputBytes"], 2);
    for bad in [
        "7",
        "{ id: 1 }",
        "'hash', [1]",
        "'hash', 'text'",
        "'hash', { input: { toString() { throw 1 } } }",
        "'hash', { get input() { throw 1 } }",
    ] {
        let refusal = run(&format!("return await toolshelf.callWasmTool({bad})")).await;
        assert_eq!(refusal["refused"], "invalid-argument", "{bad}: {refusal}");
    }
    let long = run("return await toolshelf.callWasmTool('hash', { input: 'a'.repeat(50_000_000) })").await;
    assert_eq!(long["refused"], "over-budget");

    let declared = run("return await toolshelf.liveToolDeclarations(['diff-loose'])").await;
    let names: Vec<_> =
        declared.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["hash", "diff"]);
    assert_eq!(run("return (await toolshelf.descriptors())[0].id").await, "wasm-shelf-hash");
    assert_eq!(run("return toolshelf.WASM_CALL_DEADLINE_MS").await, 5000);

    let added =
        run("return await toolshelf.addShelf({ 'manifest.json': '{\"id\":\"x\",\"wasm\":\"../x\"}' })").await;
    assert_eq!(added["tools"][0]["refused"], "outside-root", "{added}");
    assert_eq!(run("return await toolshelf.addShelf({})").await["refused"], "shelf-unavailable");
    assert_eq!(run("return await toolshelf.addShelf(7)").await["refused"], "invalid-argument");
    assert_eq!(run("return await toolshelf.removeShelf('builtin')").await["refused"], "invalid-argument");
}

#[wasm_bindgen_test]
async fn a_large_module_is_hashed_by_the_browser_with_the_same_answer() {
    let storage = Storage::open().await;
    let bytes = vec![7; 1_000_000];
    let record = ShelfRecord {
        key: "large".into(),
        order: 9.0,
        manifest: b"[]".to_vec(),
        files: BTreeMap::from([("m.wasm".to_owned(), bytes.clone())]),
    };
    storage.put(&record).await.unwrap();
    let hashed = toolshelf_host::ShelfStore::module(&storage, "large", "m.wasm").await.unwrap();
    storage.delete("large").await.unwrap();
    assert_eq!(hashed.digest, Digest::of(&bytes));
    assert_eq!(storage.get("large").await.unwrap().map(|record| record.key), None);
}
