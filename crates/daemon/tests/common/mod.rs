//! What the tests of the shelf on this computer share: the real program as worker, real folders.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test binary uses a part of it, and says where it cannot go on"
)]

pub(crate) mod stdio;

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Builder;
use tokio::task::LocalSet;
use toolshelf_core::digest::Digest;
use toolshelf_host::ShelfHost;
use toolshelf_sandbox::{HostClock, ProcessExecutor, Shelves, WorkerProgram};

/// The shelf on this computer, with folders and processes.
pub(crate) type Shelf = ShelfHost<Shelves, ProcessExecutor, HostClock>;

/// The program under test.
pub(crate) fn program() -> WorkerProgram {
    WorkerProgram::at(env!("CARGO_BIN_EXE_toolshelf"))
}

/// Runs `work` as the program does: on one thread.
pub(crate) fn on_one_thread<T>(work: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, work)
}

pub(crate) fn shelf_over(shelves: Shelves) -> Shelf {
    ShelfHost::new(shelves, ProcessExecutor::new(program(), None).unwrap(), HostClock::new())
}

/// Writes a shelf's files to a new folder.
pub(crate) fn written(folder: &BTreeMap<String, Vec<u8>>) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, bytes) in folder {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    dir
}

/// A folder with one tool of `buffer-abi/1` under the id `case`.
pub(crate) fn one_tool(module: &[u8]) -> TempDir {
    let digest = Digest::of(module).to_string();
    let entry = json!({ "id": "case", "wasm": "case.wasm", "digest": digest, "abi": "buffer-abi/1" });
    written(&BTreeMap::from([
        ("manifest.json".to_owned(), json!([entry]).to_string().into_bytes()),
        ("case.wasm".to_owned(), module.to_vec()),
    ]))
}

/// The same, from a module's text.
pub(crate) fn one_tool_of_text(text: &str) -> TempDir {
    one_tool(&wat::parse_str(text).unwrap())
}

pub(crate) fn shelf_in(folder: &Path) -> Shelf {
    shelf_over(Shelves::with_folder(folder))
}

/// A call's answer or refusal in its wire form.
pub(crate) async fn call(shelf: &Shelf, id: &str, args: &[(&str, &[u8])]) -> Value {
    let given = |name: &str| args.iter().find(|(known, _)| *known == name).map(|(_, bytes)| bytes.to_vec());
    shelf.call(id, given).await.map_or_else(|refusal| json!(refusal), |answer| json!(answer))
}

/// The processes whose parent is the process `parent`, this one or another.
pub(crate) fn children_of(parent: u32) -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
        // The second field is the program's name, which may hold anything but is closed by the last bracket.
        let rest: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        rest[1] == parent.to_string()
    })
    .collect()
}

/// Those of them that are for one call each.
pub(crate) fn workers_of(parent: u32) -> Vec<i32> {
    children_of(parent).into_iter().filter(|pid| !is_nursery(*pid)).collect()
}

/// Whether the process is the one that the workers are copies of: they have its arguments, but a name of their own.
pub(crate) fn is_nursery(pid: i32) -> bool {
    let read = |file| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    read("cmdline").contains("nursery") && !read("comm").starts_with("toolshelf-call")
}

/// Waits until `holds`, at most ten seconds.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..500 {
        if holds() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("ten seconds passed, and still not: {what}");
}

pub(crate) fn signal(pid: i32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    // One that has ended meanwhile needs no signal.
    let _ = rustix::process::kill_process(pid, signal);
}

/// A tool that never ends.
pub(crate) const SPINS: &str = r#"(module (memory (export "memory") 2)
    (func (export "sha256") (param i32) (result i32) (loop br 0) unreachable))"#;
/// A tool that answers at once.
pub(crate) const ANSWERS: &str = r#"(module (memory (export "memory") 2)
    (func (export "sha256") (param i32) (result i32) i32.const 32))"#;
