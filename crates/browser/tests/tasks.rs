//! Tasks in a real browser: what is kept, who runs what, which files are read and written.

#![cfg(target_arch = "wasm32")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;

use common::shelf_with_builtin;
use futures::future::join_all;
use gloo_timers::future::TimeoutFuture;
use serde_json::{Value, json};
use toolshelf_browser::tasks::{Access, Delegation, Filter, Stored, Tasks};
use toolshelf_browser::{PickedFile, Toolshelf};
use toolshelf_core::RootDescriptor;
use toolshelf_core::digest::Digest;
use toolshelf_core::refusal::Code;
use toolshelf_core::task::{TaskState, TaskView};
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

async fn tasks() -> (Toolshelf, Tasks) {
    let shelf = shelf_with_builtin().await;
    let tasks = Tasks::open(&shelf).await;
    assert!(tasks.persistent(), "{:?}", tasks.environment());
    (shelf, tasks)
}

fn of(agent: &str, task: impl Into<String>) -> Delegation {
    Delegation { agent: agent.into(), task: task.into(), deadline_ms: None, root: None }
}

/// Waits until the task has ended.
async fn ended(tasks: &Tasks, address: &str) -> TaskView {
    for _ in 0..200 {
        let page = tasks.list(Filter::All, None, 50).await.unwrap();
        let row = page.rows.into_iter().find(|row| row.view.address == address).unwrap();
        if row.view.state.is_terminal() {
            return row.view;
        }
        TimeoutFuture::new(20).await;
    }
    panic!("the task did not end");
}

async fn run(tasks: &Tasks, delegation: Delegation) -> TaskView {
    let view = tasks.delegate(delegation).await.unwrap();
    assert_eq!(view.state, TaskState::Queued);
    ended(tasks, &view.address).await
}

fn file(path: &str, content: &str) -> PickedFile {
    let parts = js_sys::Array::of1(&content.into());
    PickedFile { path: path.into(), file: web_sys::File::new_with_str_sequence(&parts, path).unwrap() }
}

async fn text(tasks: &Tasks, root: &RootDescriptor, path: &str) -> String {
    let blob = tasks.folders().file(root, path).await.unwrap();
    String::from_utf8(toolshelf_browser::pick::read(&blob).await.unwrap()).unwrap()
}

async fn own(tasks: &Tasks) -> RootDescriptor {
    tasks.folders().list().await.unwrap()[0].root.clone()
}

#[wasm_bindgen_test]
async fn a_tool_answers_a_task_and_the_answer_is_there_in_another_life() {
    let (shelf, tasks) = tasks().await;
    let view = run(&tasks, of("hash", "abc")).await;
    assert_eq!(view.state, TaskState::Completed);
    assert_eq!(view.answer.as_deref(), Some(&*Digest::of(b"abc").to_string()));
    let again = Tasks::open(&shelf).await;
    assert_eq!(ended(&again, &view.address).await, view);
    let page = again.list(Filter::Completed, None, 1).await.unwrap();
    assert_eq!((page.rows.len(), page.rows[0].here, &*page.rows[0].title), (1, false, "abc"));
    let detail = again.detail(page.rows[0].position).await.unwrap();
    let states: Vec<_> = detail.moments.iter().map(|moment| moment.state).collect();
    assert_eq!(states, [TaskState::Queued, TaskState::Running, TaskState::Completed]);
    assert_eq!((&*detail.task, detail.row.bounds.deadline_ms), ("abc", 30_000));
}

#[wasm_bindgen_test]
async fn files_of_the_folder_are_read_and_the_answer_is_written_there() {
    let (_shelf, tasks) = tasks().await;
    let root = own(&tasks).await;
    let files = vec![file("notes/old.txt", "a\nb\n"), file("notes/new.txt", "a\nc\n")];
    assert_eq!(tasks.folders().import(&root, "", files).await.unwrap(), 2);
    let task =
        json!({"a": {"file": "notes/old.txt"}, "b": {"file": "notes/new.txt"}, "out": "changes.patch"});
    let view = run(&tasks, of("diff", task.to_string())).await;
    let answer: Value = serde_json::from_str(view.answer.as_deref().unwrap()).unwrap();
    let written = text(&tasks, &root, "changes.patch").await;
    assert_eq!(answer["sha256"], Digest::of(written.as_bytes()).to_string());
    assert_eq!(answer["bytes"], written.len());
    assert_eq!(written, "--- old\n+++ new\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n");

    let entries = tasks.folders().entries(&root, "").await.unwrap();
    let listed: Vec<_> = entries.iter().map(|entry| (&*entry.path, entry.size.is_some())).collect();
    assert_eq!(listed, [("notes", false), ("changes.patch", true)]);
    tasks.folders().delete(&root, "notes").await.unwrap();
    let refusal = tasks.folders().entries(&root, "notes").await.unwrap_err();
    assert_eq!(refusal.code, Code::FileUnavailable);
}

#[wasm_bindgen_test]
async fn a_file_that_is_missing_or_too_large_ends_the_task_by_its_name() {
    let (_shelf, tasks) = tasks().await;
    let root = own(&tasks).await;
    tasks.folders().import(&root, "", vec![file("large.txt", &"x".repeat(8_193))]).await.unwrap();
    for (path, reason) in [("large.txt", "over-budget"), ("nowhere.txt", "file-unavailable")] {
        let view = run(&tasks, of("hash", json!({"input": {"file": path}}).to_string())).await;
        assert_eq!((view.state, view.reason.as_deref()), (TaskState::Failed, Some(reason)), "{path}");
    }
    for (task, code) in [
        (json!({"input": {"file": "../x"}}), Code::OutsideRoot),
        (json!({"input": {"file": ".audit/x"}}), Code::ProtectedAudit),
        (json!({"other": "x"}), Code::InvalidArgument),
    ] {
        let refusal = tasks.delegate(of("hash", task.to_string())).await.unwrap_err();
        assert_eq!(refusal.code, code, "{task}");
    }
    assert_eq!(tasks.delegate(of("nobody", "x")).await.unwrap_err().code, Code::UnknownTool);
    assert_eq!(tasks.delegate(of("browser-model", "x")).await.unwrap_err().code, Code::ExecutorUnavailable);
    let late = Delegation { deadline_ms: Some(300_001), ..of("hash", "x") };
    assert_eq!(tasks.delegate(late).await.unwrap_err().code, Code::UnboundedExecutor);
}

#[wasm_bindgen_test]
async fn cleared_tasks_are_gone_and_can_be_put_back() {
    let (_shelf, tasks) = tasks().await;
    let kept = run(&tasks, of("hash", "to be cleared")).await;
    let before = tasks.list(Filter::All, None, 500).await.unwrap();
    let cleared = tasks.clear(Filter::All).await.unwrap();
    assert_eq!(cleared.len(), before.rows.len());
    assert_eq!(tasks.list(Filter::All, None, 500).await.unwrap().rows, []);
    tasks.restore(cleared).await.unwrap();
    assert_eq!(tasks.list(Filter::All, None, 500).await.unwrap(), before);
    assert_eq!(ended(&tasks, &kept.address).await, kept);
}

#[wasm_bindgen_test]
async fn a_picked_folder_is_kept_used_and_when_it_is_deleted_refused_by_name() {
    let (shelf, tasks) = tasks().await;
    // A directory of the private file system stands in for the dialog: it is the same interface.
    let pick = "globalThis.showDirectoryPicker = async () => (await navigator.storage.getDirectory())\
        .getDirectoryHandle('picked', { create: true })";
    js_sys::eval(pick).unwrap();
    let folder = tasks.folders().pick().await.unwrap().unwrap();
    assert_eq!((&*folder.label, folder.stored, folder.access), ("picked", Stored::Disk, Access::Granted));
    assert_eq!(tasks.folders().pick().await.unwrap().unwrap().root, folder.root, "the same folder again");
    tasks.folders().import(&folder.root, "", vec![file("a.txt", "abc")]).await.unwrap();

    let again = Tasks::open(&shelf).await;
    let task =
        Delegation { root: Some(folder.root.clone()), ..of("hash", r#"{"input": {"file": "a.txt"}}"#) };
    let view = run(&again, task.clone()).await;
    assert_eq!(view.answer.as_deref(), Some(&*Digest::of(b"abc").to_string()));
    assert_eq!(view.root, folder.root);

    js_sys::eval("globalThis.gone = navigator.storage.getDirectory().then((d) => d.removeEntry('picked', { recursive: true }))").unwrap();
    TimeoutFuture::new(100).await;
    assert_eq!(again.folders().list().await.unwrap().last().unwrap().access, Access::Gone);
    assert_eq!(again.delegate(task).await.unwrap_err().code, Code::TaskRootUnavailable);
    again.folders().forget(&folder.root).await.unwrap();
    assert_eq!(again.folders().list().await.unwrap().len(), 1);
}

#[wasm_bindgen_test]
async fn what_is_exported_is_imported_unchanged_and_a_changed_file_is_refused() {
    let (_shelf, tasks) = tasks().await;
    let view = run(&tasks, of("hash", "to be exported")).await;
    let exported = tasks.export().await.unwrap();
    let bytes = toolshelf_browser::pick::read(&exported).await.unwrap();
    let whole = String::from_utf8(bytes).unwrap();
    let as_file = |text: &str| file("export.json", text).file;

    // Everything is there already.
    let imported = tasks.import(as_file(&whole)).await.unwrap();
    assert_eq!((imported.tasks, imported.shelves), (0, 0));
    let count = tasks.list(Filter::All, None, 1_000).await.unwrap().rows.len();
    tasks.clear(Filter::All).await.unwrap();
    let imported = tasks.import(as_file(&whole)).await.unwrap();
    assert_eq!(imported.tasks, count);
    assert_eq!(ended(&tasks, &view.address).await, view);

    let changed = whole.replacen("to be exported", "to be Exported", 1);
    let refusal = tasks.import(as_file(&changed)).await.unwrap_err();
    assert_eq!(refusal.code, Code::DigestMismatch);
    for other in ["", "{}", "[]", r#"{"format": "x", "items": []}"#, r#"{"format": "toolshelf-export/1"}"#] {
        assert_eq!(tasks.import(as_file(other)).await.unwrap_err().code, Code::InvalidArgument, "{other}");
    }
}

#[wasm_bindgen_test]
async fn a_damaged_record_is_made_again_from_the_log_or_set_aside_and_the_rest_loads() {
    let (shelf, tasks) = tasks().await;
    tasks.clear(Filter::All).await.unwrap();
    let mut views = Vec::new();
    for task in ["one", "two", "three"] {
        views.push(run(&tasks, of("hash", task)).await);
    }
    // The record of the first is broken; of the second, the log as well.
    let damage = format!(
        "new Promise((done) => {{ const open = indexedDB.open('toolshelf-tasks'); open.onsuccess = () => {{
            const tx = open.result.transaction(['tasks', 'entries'], 'readwrite');
            const each = (store, query, change) => {{ store.openCursor(query).onsuccess = (event) => {{
                const cursor = event.target.result; if (cursor) {{
                    cursor.update(change(cursor.value)); cursor.continue(); }} }} }};
            for (const address of [{0:?}, {1:?}]) each(tx.objectStore('tasks').index('address'), address, (row) => ({{ ...row, record: '{{' }}));
            each(tx.objectStore('entries'), IDBKeyRange.bound([{1:?}], [{1:?}, []]), (entry) => ({{ ...entry, event: 'x' }}));
            tx.oncomplete = () => {{ open.result.close(); done(); }}; }} }})",
        views[0].address, views[1].address
    );
    wasm_bindgen_futures::JsFuture::from(js_sys::Promise::from(js_sys::eval(&damage).unwrap()))
        .await
        .unwrap();
    let again = Tasks::open(&shelf).await;
    let rows = again.list(Filter::All, None, 50).await.unwrap().rows;
    assert_eq!(rows.iter().map(|row| &row.view).collect::<Vec<_>>(), [&views[2], &views[0]]);
    assert_eq!(again.environment().damaged, [views[1].address.clone()]);
    // What was not set aside goes on working.
    assert_eq!(run(&again, of("hash", "four")).await.state, TaskState::Completed);
}

/// Lets the write of that number fail, counted from now; later ones succeed.
fn fail_write(number: u32) {
    let patch = format!(
        "(() => {{ let left = {number};
            for (const name of ['add', 'put']) {{
                globalThis['real_' + name] ??= IDBObjectStore.prototype[name];
                const real = globalThis['real_' + name];
                IDBObjectStore.prototype[name] = function (...args) {{
                    if (left-- === 0) throw new DOMException('no room', 'QuotaExceededError');
                    return real.apply(this, args);
                }};
            }} }})()"
    );
    js_sys::eval(&patch).unwrap();
}

fn let_writes_succeed() {
    js_sys::eval("for (const name of ['add', 'put']) if (globalThis['real_' + name]) IDBObjectStore.prototype[name] = globalThis['real_' + name]").unwrap();
}

#[wasm_bindgen_test]
async fn whichever_write_finds_no_room_nothing_is_lost_and_nothing_runs_unseen() {
    let (shelf, tasks) = tasks().await;
    // The admission writes three times, the beginning and the end of the run twice each.
    for number in 0..3 {
        fail_write(number);
        let refusal = tasks.delegate(of("hash", "abc")).await.unwrap_err();
        assert_eq!(refusal.code, Code::TaskPersistenceFailed, "write {number}: {}", refusal.why);
        assert_eq!(tasks.environment().active, 0, "the place is given back");
    }
    for number in 3..5 {
        fail_write(number);
        let view = run(&tasks, of("hash", "abc")).await;
        let ended = (view.state, view.reason.as_deref(), view.answer);
        assert_eq!(ended, (TaskState::Failed, Some("task-persistence-failed"), None), "write {number}");
    }
    for number in 5..7 {
        fail_write(number);
        let view = run(&tasks, of("hash", "abc")).await;
        assert_eq!(view.state, TaskState::Completed, "write {number}");
        // The end is written at the next attempt.
        TimeoutFuture::new(1_300).await;
        let_writes_succeed();
        let again = Tasks::open(&shelf).await;
        assert_eq!(ended(&again, &view.address).await.answer, view.answer, "write {number}");
    }
    let_writes_succeed();
    assert_eq!(run(&tasks, of("hash", "abc")).await.state, TaskState::Completed);
}

#[wasm_bindgen_test]
async fn a_browser_s_model_is_asked_with_the_tools_of_the_shelf() {
    // No browser of the test machines can run a model, so an object of the Prompt API's shape stands in for it.
    let (shelf, _) = tasks().await;
    js_sys::eval(
        "globalThis.realModel = globalThis.LanguageModel;
        globalThis.LanguageModel = class {
            static async availability() { return 'available'; }
            static async create({ tools, signal }) {
                const model = new this();
                Object.assign(model, { tools, ended: false });
                signal.addEventListener('abort', () => { globalThis.modelStopped = true; });
                return model;
            }
            async prompt(text, { signal }) {
                if (text === 'wait') return new Promise((_, fail) =>
                    signal.addEventListener('abort', () => fail(signal.reason)));
                const tool = this.tools.find(({ name }) => name === 'hash');
                const good = await tool.execute({ input: text });
                const bad = await tool.execute({ input: { file: 'secret.txt' } });
                return [tool.inputSchema.required[0], good, JSON.parse(bad).refused].join(' ');
            }
            destroy() { this.ended = true; }
        }",
    )
    .unwrap();
    let tasks = Tasks::open(&shelf).await;
    assert!(tasks.environment().model);
    let view = run(&tasks, of("browser-model", "abc")).await;
    let expected = format!("input {} invalid-argument", Digest::of(b"abc"));
    assert_eq!((view.state, view.answer.as_deref()), (TaskState::Completed, Some(&*expected)));

    let waiting = tasks.delegate(of("browser-model", "wait")).await.unwrap();
    TimeoutFuture::new(50).await;
    assert_eq!(tasks.cancel(&waiting.address).await.unwrap(), (TaskState::Cancelled, true));
    assert!(js_sys::eval("globalThis.modelStopped").unwrap().is_truthy(), "its session was ended");
    js_sys::eval("globalThis.LanguageModel = globalThis.realModel").unwrap();
}

#[wasm_bindgen_test]
async fn a_deadline_ends_a_task_and_a_cancelled_tool_stops() {
    let storage = toolshelf_browser::storage::Storage::in_memory();
    let cases = toolshelf_conformance::modules();
    let spinning = cases.iter().find(|case| case.name == "loops-forever").unwrap().module.bytes();
    let manifest = json!({ "name": "mine", "version": "1", "tools": [{
        "id": "spin", "wasm": "m.wasm", "digest": Digest::of(&spinning).to_string(), "abi": "buffer-abi/1",
    }]});
    let files = [("m.wasm".to_owned(), spinning)].into();
    let record = toolshelf_browser::storage::ShelfRecord {
        key: "own/mine".into(),
        order: 1.0,
        manifest: manifest.to_string().into_bytes(),
        files,
    };
    storage.put(&record).await.unwrap();
    let tasks = Tasks::open(&Toolshelf::over(storage)).await;
    let view = run(&tasks, Delegation { deadline_ms: Some(300), ..of("spin", "x") }).await;
    assert_eq!((view.state, view.reason.as_deref()), (TaskState::Interrupted, Some("task-deadline")));

    let running = tasks.delegate(of("spin", "x")).await.unwrap();
    TimeoutFuture::new(100).await;
    let row = tasks.list(Filter::Active, None, 5).await.unwrap().rows.remove(0);
    assert_eq!((row.here, row.view.progress.as_deref()), (true, Some("Running spin")));
    let left = row.ends_at_ms.unwrap() - js_sys::Date::now();
    assert!((20_000.0..30_000.0).contains(&left), "{left} ms are left of 30 s");
    assert_eq!(tasks.cancel(&running.address).await.unwrap(), (TaskState::Cancelled, true));
    assert_eq!(tasks.cancel(&running.address).await.unwrap_err().code, Code::TaskNotRunning);
    // The places are free again.
    for _ in 0..50 {
        if tasks.environment().active == 0 {
            return;
        }
        TimeoutFuture::new(100).await;
    }
    panic!("a place stays taken");
}

#[wasm_bindgen_test]
async fn two_tabs_that_write_at_the_same_time_lose_nothing_and_share_no_place() {
    let (shelf, one) = tasks().await;
    let other = Tasks::open(&shelf).await;
    one.clear(Filter::All).await.unwrap();
    for _ in 0..5 {
        let both = [&one, &other].into_iter().flat_map(|tasks| [tasks, tasks]);
        let delegated = join_all(both.map(|tasks| tasks.delegate(of("hash", "abc")))).await;
        for view in delegated {
            let view = ended(&one, &view.unwrap().address).await;
            assert_eq!(view.answer.as_deref(), Some(&*Digest::of(b"abc").to_string()));
        }
        // A place is free once its executor has settled, a moment after the answer.
        while one.environment().active + other.environment().active > 0 {
            TimeoutFuture::new(5).await;
        }
    }
    let rows = one.list(Filter::All, None, 100).await.unwrap().rows;
    let positions: Vec<_> = rows.iter().map(|row| row.position).collect();
    assert_eq!((rows.len(), positions.is_sorted_by(|a, b| a > b)), (20, true), "{positions:?}");
    assert_eq!(other.list(Filter::Completed, None, 100).await.unwrap().rows.len(), 20);
}
