//! The worker processes as the system sees them: what they have, how they end, and that none is left.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use common::{
    ANSWERS, SPINS, Shelf, call, children_of, eventually, is_nursery, on_one_thread, one_tool_of_text,
    program, shelf_in, signal, workers_of,
};
use futures::future::join_all;
use rustix::process::Signal;
use serde_json::Value;
use toolshelf_host::ShelfHost;
use toolshelf_sandbox::{HostClock, ProcessExecutor, Shelves, WorkerProgram};

/// Each test counts the processes of this program, so they take turns.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn own_workers() -> Vec<i32> {
    workers_of(std::process::id())
}

fn own_children() -> Vec<i32> {
    children_of(std::process::id())
}

fn nurseries() -> Vec<i32> {
    own_children().into_iter().filter(|pid| is_nursery(*pid)).collect()
}

fn nursery() -> i32 {
    nurseries()[0]
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

fn proc(pid: i32, file: &str) -> String {
    fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap()
}

/// A shelf whose workers are another program.
fn shelf_of_program(path: &Path) -> Shelf {
    let executor = ProcessExecutor::new(WorkerProgram::at(path), None).unwrap();
    ShelfHost::new(Shelves::builtin(), executor, HostClock::new())
}

fn script(text: &str) -> tempfile::TempPath {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    fs::set_permissions(file.path(), fs::Permissions::from_mode(0o755)).unwrap();
    file.into_temp_path()
}

async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

#[test]
fn a_worker_has_no_environment_no_files_no_privileges_and_few_means() {
    let _alone = alone();
    on_one_thread(async {
        let dir = one_tool_of_text(ANSWERS);
        let shelf = shelf_in(dir.path());
        assert_eq!(call(&shelf, "case", &[]).await["ok"], true);
        pause(300).await;
        let workers = own_workers();
        assert_eq!(workers.len(), 4, "one for each call that may run");
        for pid in workers {
            assert_eq!(proc(pid, "environ"), "");
            assert_eq!(fs::read_link(format!("/proc/{pid}/cwd")).unwrap(), Path::new("/"));
            let mut files: Vec<_> = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten().collect();
            files.sort_by_key(fs::DirEntry::file_name);
            let files: Vec<_> = files
                .iter()
                .map(|file| fs::read_link(file.path()).unwrap().to_string_lossy().into_owned())
                .collect();
            assert_eq!(files.len(), 3, "{files:?}");
            assert!(files[0].starts_with("socket:") && files[1] == files[0] && files[2] == "/dev/null");
            let status = proc(pid, "status");
            assert!(status.contains("NoNewPrivs:\t1") && status.contains("Threads:\t1"), "{status}");
            assert!(status.contains("Seccomp:\t2"), "{status}");
            let limits = proc(pid, "limits");
            for (name, most) in [
                ("Max cpu time", "6"),
                ("Max core file size", "0"),
                ("Max open files", "3"),
                ("Max file size", "0"),
                ("Max processes", "0"),
                ("Max data size", "536870912"),
            ] {
                let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
                let words: Vec<_> = line[name.len()..].split_whitespace().collect();
                assert_eq!(words[..2], [most, most], "{line}");
            }
        }
        let isolation = shelf.executor().isolation().unwrap();
        let lacking: Vec<_> = isolation.means().filter(|(.., holds)| !holds).collect();
        // An older kernel lacks Landlock, or a part of it; everything else is there since Linux 5.9.
        assert!(lacking.iter().all(|(name, ..)| name.starts_with("landlock")), "{lacking:?}");
    });
}

#[test]
fn no_process_zombie_or_descriptor_is_left() {
    let _alone = alone();
    // The first shelf of a process opens what all later ones share.
    some_calls();
    let before = descriptors();
    some_calls();
    assert_eq!(own_children(), [0; 0]);
    assert_eq!(descriptors(), before);
}

fn some_calls() {
    on_one_thread(async {
        let dir = one_tool_of_text(ANSWERS);
        let shelf = shelf_in(dir.path());
        for _ in 0..50 {
            assert_eq!(call(&shelf, "case", &[]).await["ok"], true);
        }
        // Given up in the middle.
        let spins = one_tool_of_text(SPINS);
        let spinning = shelf_in(spins.path());
        let given_up = tokio::time::timeout(Duration::from_millis(300), call(&spinning, "case", &[])).await;
        assert!(given_up.is_err());
    });
}

#[test]
fn a_worker_that_was_ended_while_it_was_idle_is_replaced() {
    let _alone = alone();
    on_one_thread(async {
        let dir = one_tool_of_text(ANSWERS);
        let shelf = shelf_in(dir.path());
        assert_eq!(call(&shelf, "case", &[]).await["ok"], true);
        for _ in 0..3 {
            pause(200).await;
            let idle = own_workers();
            idle.iter().for_each(|pid| signal(*pid, Signal::KILL));
            eventually("they are ended", || idle.iter().all(|pid| gone(*pid)));
            assert_eq!(call(&shelf, "case", &[]).await["ok"], true);
        }
    });
}

#[test]
fn calls_go_on_when_the_process_that_workers_are_copies_of_is_ended_or_stopped() {
    let _alone = alone();
    on_one_thread(async {
        let dir = one_tool_of_text(ANSWERS);
        let shelf = shelf_in(dir.path());
        for how in [Signal::KILL, Signal::STOP] {
            assert_eq!(call(&shelf, "case", &[]).await["ok"], true);
            pause(300).await;
            let ended = nursery();
            // It has one thread: only such a process can be copied.
            assert!(proc(ended, "status").contains("Threads:\t1"));
            signal(ended, how);
            for _ in 0..4 {
                assert_eq!(call(&shelf, "case", &[]).await["ok"], true);
            }
            eventually("another one is there", || nurseries().iter().any(|pid| *pid != ended));
        }
    });
    assert_eq!(own_children(), [0; 0]);
}

#[test]
fn a_worker_that_is_ended_while_it_works_is_named_and_the_next_call_works() {
    let _alone = alone();
    on_one_thread(async {
        let (spins, answers) = (one_tool_of_text(SPINS), one_tool_of_text(ANSWERS));
        let executor = ProcessExecutor::cold(program(), None).unwrap();
        let shelf = ShelfHost::new(Shelves::with_folder(spins.path()), executor.clone(), HostClock::new());
        let killer = async {
            pause(1_000).await;
            own_workers().into_iter().for_each(|pid| signal(pid, Signal::KILL));
        };
        let (answer, ()) = futures::join!(call(&shelf, "case", &[]), killer);
        assert_eq!(answer["refused"], "resource-exceeded", "{answer}");
        assert!(answer["why"].as_str().unwrap().contains("signal 9"), "{answer}");
        let good = ShelfHost::new(Shelves::with_folder(answers.path()), executor, HostClock::new());
        assert_eq!(call(&good, "case", &[]).await["ok"], true);
    });
}

#[test]
fn workers_that_are_stopped_are_ended_at_the_deadline() {
    let _alone = alone();
    on_one_thread(async {
        let dir = one_tool_of_text(ANSWERS);
        let shelf = shelf_in(dir.path());
        assert_eq!(call(&shelf, "case", &[]).await["ok"], true);
        pause(300).await;
        let stopped = own_workers();
        stopped.iter().for_each(|pid| signal(*pid, Signal::STOP));
        let start = Instant::now();
        let answers = join_all((0..stopped.len()).map(|_| call(&shelf, "case", &[]))).await;
        for answer in &answers {
            assert_eq!(answer["refused"], "time-exceeded", "{answer}");
        }
        assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
        assert_eq!(call(&shelf, "case", &[]).await["ok"], true);
        eventually("the stopped workers are gone", || own_workers().iter().all(|pid| !stopped.contains(pid)));
    });
}

fn answer_with_workers(program: &str) -> Value {
    let program = script(program);
    on_one_thread(async { call(&shelf_of_program(&program), "hash", &[("input", b"abc")]).await })
}

#[test]
fn whatever_a_worker_does_instead_of_its_job_has_a_name() {
    let _alone = alone();
    let silent = answer_with_workers("#!/bin/sh\nexit 0\n");
    assert_eq!(silent["refused"], "wasm-worker-silent", "{silent}");
    let failing = answer_with_workers("#!/bin/sh\nexit 3\n");
    assert_eq!(failing["refused"], "resource-exceeded", "{failing}");
    assert!(failing["why"].as_str().unwrap().contains("exit code 3"), "{failing}");
    let flood = answer_with_workers("#!/bin/sh\nexec /usr/bin/yes\n");
    assert_eq!(flood["refused"], "resource-exceeded", "{flood}");
    assert!(flood["why"].as_str().unwrap().contains("stdout bound of 2097152"), "{flood}");
    let mute = answer_with_workers("#!/bin/sh\nexec /bin/sleep 60\n");
    assert_eq!(mute["refused"], "time-exceeded", "{mute}");
    let missing = on_one_thread(async {
        call(&shelf_of_program(Path::new("/nowhere/toolshelf")), "hash", &[("input", b"abc")]).await
    });
    assert_eq!(missing["refused"], "resource-exceeded", "{missing}");
    assert_eq!(own_children(), [0; 0]);
}

#[test]
fn of_a_thousand_calls_at_once_four_run_thirty_two_wait_and_the_rest_are_refused() {
    let _alone = alone();
    on_one_thread(async {
        let dir = one_tool_of_text(ANSWERS);
        let shelf = shelf_in(dir.path());
        shelf.read().await.unwrap();
        let answers = join_all((0..1_000).map(|_| call(&shelf, "case", &[]))).await;
        let refused: Vec<_> = answers.iter().filter(|answer| answer["ok"] == false).collect();
        assert_eq!(refused.len(), 1_000 - 36);
        assert!(refused.iter().all(|refusal| refusal["refused"] == "over-budget"));
        let stats = shelf.stats();
        assert_eq!((stats.active, stats.queued, stats.max_observed_active), (0, 0, 4));
    });
    assert_eq!(own_children(), [0; 0]);
}

#[test]
fn four_loops_at_once_are_ended_and_all_four_places_are_free_again() {
    let _alone = alone();
    on_one_thread(async {
        let dir = one_tool_of_text(SPINS);
        let shelf = shelf_in(dir.path());
        shelf.read().await.unwrap();
        let answers = join_all((0..4).map(|_| call(&shelf, "case", &[]))).await;
        assert!(answers.iter().all(|answer| answer["refused"] == "time-exceeded"), "{answers:?}");
        // A process that was killed uses no core any more, so no place has to cool.
        let stats = shelf.stats();
        assert_eq!((stats.active, stats.cooling, stats.queued), (0, 0, 0));
    });
    assert_eq!(own_children(), [0; 0]);
}

/// The program itself, in the middle of a call that does not end, with its worker.
fn spinning_program(dir: &Path) -> (Child, i32) {
    let child = Command::new(env!("CARGO_BIN_EXE_toolshelf"))
        .args(["call", "case", "--input", "x", "--shelf"])
        .arg(dir)
        .env("SECRET_OF_THE_CALLER", "s3cret")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let id = child.id();
    // The worker that compiles is gone by then, and the one that is left has used some time.
    std::thread::sleep(Duration::from_millis(1_500));
    let workers = workers_of(id);
    assert_eq!(workers.len(), 1);
    (child, workers[0])
}

fn gone(pid: i32) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat"));
    state.is_err() || state.is_ok_and(|stat| stat.rsplit(')').next().unwrap().starts_with(" Z"))
}

#[test]
fn a_worker_dies_with_the_program_that_started_it_and_never_saw_its_environment() {
    let _alone = alone();
    let dir = one_tool_of_text(SPINS);
    let (mut program, worker) = spinning_program(dir.path());
    assert_eq!(proc(worker, "environ"), "");
    assert!(!proc(worker, "cmdline").contains("case"));
    program.kill().unwrap();
    program.wait().unwrap();
    eventually("the worker is gone", || gone(worker));
}

#[test]
fn a_worker_ends_itself_when_nobody_is_able_to() {
    let _alone = alone();
    let dir = one_tool_of_text(SPINS);
    let (mut program, worker) = spinning_program(dir.path());
    signal(program.id() as i32, Signal::STOP);
    let start = Instant::now();
    eventually("the watchdog has ended the worker", || gone(worker));
    assert!(start.elapsed() > Duration::from_secs(2), "it was not the program's deadline that ended it");
    program.kill().unwrap();
    program.wait().unwrap();
}
