//! The journal over real files: what other writers do, what faults do, and what an append costs.

mod many;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use std::rc::Rc;

use tempfile::TempDir;
use tokio::runtime::Builder;
use toolshelf_core::address::{Locator, address};
use toolshelf_core::placement::Placement;
use toolshelf_core::task::time::iso_time;
use toolshelf_core::task::{TaskBounds, TaskEvent, TaskInput, TaskState};

use toolshelf_host::MemoryJournal;

use super::conformance::Journals;
use super::*;

const ENVIRONMENT: &str = "env_0123456789abcdef";
const OWNER: &str = "local";
/// 2026-01-01.
const START_MS: u64 = 1_767_225_600_000;

/// Roots and a data folder, which every process of this host would have.
struct World {
    dir: TempDir,
    roots: Vec<String>,
}

impl World {
    fn new(roots: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(dir.path()).unwrap();
        let root = |number: usize| {
            let root = path.join(format!("root{number}"));
            fs::create_dir(&root).unwrap();
            root.into_os_string().into_string().unwrap()
        };
        Self { roots: (0..roots).map(root).collect(), dir }
    }

    /// A journal as another process would have it.
    fn journal(&self) -> FileJournal {
        let writer = Writer {
            environment: ENVIRONMENT.into(),
            instance: "machine-1".into(),
            key_epoch: "epoch".into(),
        };
        FileJournal::new(self.dir.path(), &self.roots, &writer)
    }

    fn audit(&self) -> PathBuf {
        Path::new(&self.roots[0]).join(".audit")
    }

    /// The log of the first root.
    fn log(&self) -> PathBuf {
        let mut files = fs::read_dir(self.audit()).unwrap();
        files.next().unwrap().unwrap().path()
    }

    /// The creation of the task of that number, in the root of that number.
    fn creation(&self, root: usize, number: u32) -> Draft {
        creation_of(&self.roots[root], root, number)
    }
}

/// The creation of the task of that number, in the root at `path`.
pub(crate) fn creation_at(path: &str, number: u32) -> Draft {
    creation_of(path, 0, number)
}

fn creation_of(path: &str, root: usize, number: u32) -> Draft {
    let descriptor = RootDescriptor::Machine { path: path.to_owned(), environment: Some(ENVIRONMENT.into()) };
    let locator = Locator {
        environment: ENVIRONMENT.into(),
        key_epoch: "epoch".into(),
        instance: "machine-1".into(),
        placement: Placement::Machine,
        path: descriptor.to_string(),
        dev: Some(1),
        ino: Some(2),
        id: number.to_string(),
    };
    let mut mac = [root as u8; 32];
    mac[..4].copy_from_slice(&number.to_le_bytes());
    let at = iso_time(START_MS + u64::from(number));
    let record = TaskRecord {
        address: address(&locator.payload().unwrap(), &mac),
        environment: ENVIRONMENT.into(),
        placement: Some(Placement::Machine),
        owner: OWNER.into(),
        root: descriptor,
        project: "p".into(),
        instance: "machine-1".into(),
        call_id: format!("call-{number}"),
        input: TaskInput { agent: "hash".into(), task: "abc".into(), context: [] },
        bounds: TaskBounds { deadline_ms: 1, max_output_bytes: 1 },
        mechanism: "m".into(),
        boot: "boot_1".into(),
        pid: None,
        state: TaskState::Queued,
        created_at: at.clone(),
        updated_at: at.clone(),
        reason: None,
        answer: None,
        progress: None,
        partial: None,
        outcome: None,
    };
    let created = Some(Box::new(record.clone()));
    Draft { at, event: TaskEvent { created, ..TaskEvent::to(record.address, TaskState::Queued) } }
}

#[tokio::test]
async fn the_journals_of_memory_and_files_keep_what_every_journal_promises() {
    let world = World::new(1);
    let root = world.roots[0].clone();
    let creation: Rc<dyn Fn(u32) -> Draft> = Rc::new(move |number| creation_at(&root, number));
    Journals { one: world.journal(), other: world.journal(), creation: Rc::clone(&creation) }.hold().await;
    let memory = MemoryJournal::default();
    Journals { one: memory.clone(), other: memory, creation }.hold().await;
}

fn call(number: u32) -> CallKey {
    CallKey::new(ENVIRONMENT, "epoch", OWNER, &format!("call-{number}"))
}

fn change(creation: &Draft, state: TaskState) -> Draft {
    let mut event = TaskEvent::to(&*creation.event.address, state);
    event.answer = (state == TaskState::Completed).then(|| "answer\n".to_owned());
    Draft { at: iso_time(START_MS + 86_400_000), event }
}

async fn append(journal: &FileJournal, draft: &Draft) -> Result<TaskRecord, JournalFault> {
    journal.append(draft, Durability::Strict).await
}

/// Delegates, starts and completes a task.
async fn complete(journal: &FileJournal, creation: &Draft, number: u32) {
    journal.admit(creation, &call(number)).await.unwrap();
    append(journal, &change(creation, TaskState::Running)).await.unwrap();
    append(journal, &change(creation, TaskState::Completed)).await.unwrap();
}

/// Everything that can be asked says that the log is not believed, and nothing is written.
async fn assert_not_believed(world: &World, journal: &FileJournal, what: &str) {
    let log = || fs::read(world.log()).ok();
    let before = log();
    let (old, new) = (world.creation(0, 1), world.creation(0, 900));
    assert!(matches!(journal.record(&old.event.address).await, Err(JournalFault::Failed(_))), "{what}");
    assert!(matches!(journal.recent(None, 10).await, Err(JournalFault::Failed(_))), "{what}");
    assert!(matches!(journal.admit(&new, &call(900)).await, Err(JournalFault::Failed(_))), "{what}");
    let end = change(&old, TaskState::Interrupted);
    assert!(matches!(append(journal, &end).await, Err(JournalFault::Failed(_))), "{what}");
    assert!(journal.check(&old.event.created.unwrap().root).await.is_err(), "{what}");
    assert_eq!(log(), before, "{what}");
}

#[tokio::test]
async fn what_one_process_writes_every_other_reads() {
    let world = World::new(1);
    let (one, other) = (world.journal(), world.journal());
    let creation = world.creation(0, 1);
    complete(&one, &creation, 1).await;
    let record = other.record(&creation.event.address).await.unwrap().unwrap();
    assert_eq!(record.answer.as_deref(), Some("answer\n"));
    assert_eq!(one.record(&creation.event.address).await.unwrap().unwrap(), record);
    assert_eq!(other.address_of(&call(1)).await.unwrap(), Some(creation.event.address.clone()));
    let (mine, theirs) = (one.recent(None, 5).await.unwrap(), other.recent(None, 5).await.unwrap());
    assert_eq!(mine, theirs);
    assert_eq!(mine[0].record, record);
    let states: Vec<_> =
        other.moments(&record.address).await.unwrap().into_iter().map(|moment| moment.state).collect();
    assert_eq!(states, [TaskState::Queued, TaskState::Running, TaskState::Completed]);
    // What has ended is not ended again, by whomever.
    for journal in [&one, &other] {
        let late = append(journal, &change(&creation, TaskState::Failed)).await;
        assert_eq!(late, Err(JournalFault::Rejected(ReduceFault::NoLiveAdmission)));
    }
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&world.audit()), mode(&world.log())), (0o700, 0o600));
    let text = fs::read_to_string(world.log()).unwrap();
    let seqs: Vec<_> = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["seq"].clone())
        .collect();
    assert_eq!(seqs, [1, 2, 3]);
}

#[tokio::test]
async fn an_unknown_task_makes_no_log() {
    let world = World::new(1);
    let (journal, creation) = (world.journal(), world.creation(0, 1));
    assert_eq!(journal.record(&creation.event.address).await, Ok(None));
    assert_eq!(journal.recent(None, 5).await, Ok(Vec::new()));
    let rejected = Err(JournalFault::Rejected(ReduceFault::NoLiveAdmission));
    assert_eq!(append(&journal, &change(&creation, TaskState::Running)).await, rejected);
    assert_eq!(fs::read_dir(&world.roots[0]).unwrap().count(), 0);
    let elsewhere = Draft { event: TaskEvent::to("task_x", TaskState::Running), ..creation };
    assert_eq!(append(&journal, &elsewhere).await, rejected);
    assert_eq!(journal.record("task_x").await, Ok(None));
}

#[tokio::test]
async fn a_call_has_one_task_in_whatever_root() {
    let world = World::new(2);
    let (one, other) = (world.journal(), world.journal());
    let first = world.creation(0, 1);
    one.admit(&first, &call(1)).await.unwrap();
    let second = world.creation(1, 1);
    for journal in [&one, &other] {
        let taken = journal.admit(&second, &call(1)).await;
        assert_eq!(taken, Err(JournalFault::CallTaken(first.event.address.clone())));
    }
    complete(&other, &world.creation(1, 2), 2).await;
    let placed = one.recent(None, 5).await.unwrap();
    assert_eq!(placed.len(), 2);
    assert!(placed[0].position > placed[1].position);
    assert_eq!(one.recent(Some(placed[0].position), 5).await.unwrap(), placed[1..]);
    // A root that is gone hides only its own tasks.
    fs::rename(&world.roots[0], world.dir.path().join("aside")).unwrap();
    assert_eq!(one.recent(None, 5).await.unwrap(), placed[..1]);
}

#[tokio::test]
async fn a_last_line_that_was_never_finished_is_cut_off_wherever_it_was_torn() {
    let world = World::new(1);
    let creation = world.creation(0, 1);
    let journal = world.journal();
    journal.admit(&creation, &call(1)).await.unwrap();
    let (log, whole) = (world.log(), fs::read(world.log()).unwrap());
    append(&journal, &change(&creation, TaskState::Running)).await.unwrap();
    let both = fs::read(&log).unwrap();
    for end in whole.len()..both.len() {
        fs::write(&log, &both[..end]).unwrap();
        let journal = world.journal();
        let record = journal.record(&creation.event.address).await.unwrap().unwrap();
        assert_eq!(record.state, TaskState::Queued, "{end}");
        append(&journal, &change(&creation, TaskState::Running)).await.unwrap();
        assert_eq!(fs::read(&log).unwrap(), both, "{end}");
    }
    // The very first line too, and what a loss of power leaves behind.
    for torn in [&whole[..whole.len() - 1], &[0; 5_000][..]] {
        fs::write(&log, torn).unwrap();
        let journal = world.journal();
        assert_eq!(journal.record(&creation.event.address).await, Ok(None));
        journal.admit(&creation, &call(1)).await.unwrap();
        assert_eq!(fs::read(&log).unwrap(), whole);
    }
}

#[tokio::test]
async fn one_line_that_cannot_be_believed_and_the_whole_log_is_not() {
    let world = World::new(1);
    let journal = world.journal();
    complete(&journal, &world.creation(0, 1), 1).await;
    complete(&journal, &world.creation(0, 2), 2).await;
    let good = fs::read_to_string(world.log()).unwrap();
    let lines: Vec<&str> = good.lines().collect();
    let with = |change: &dyn Fn(&mut Vec<String>)| {
        let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        change(&mut lines);
        lines.join("\n") + "\n"
    };
    let damaged: [(&str, String); 11] = [
        ("garbage", with(&|lines| lines[2] = "garbage".into())),
        ("no text", with(&|lines| lines[2] = "\0".into())),
        ("an empty line", with(&|lines| lines.insert(3, String::new()))),
        ("no entry", with(&|lines| lines[2] = "7".into())),
        ("half an entry", with(&|lines| lines[2].truncate(40))),
        ("a line is missing", with(&|lines| drop(lines.remove(0)))),
        ("a line stands twice", with(&|lines| lines.insert(3, lines[2].clone()))),
        ("two lines are swapped", with(&|lines| lines.swap(1, 2))),
        ("another writer", with(&|lines| lines[1] = lines[1].replacen("machine-1", "machine-2", 1))),
        ("another root", with(&|lines| lines[1] = lines[1].replacen("machine:/", "machine:/x", 1))),
        ("another number", with(&|lines| lines[1] = lines[1].replacen("\"seq\":2", "\"seq\":1", 1))),
    ];
    for (what, text) in damaged {
        assert_ne!(text, good, "{what}");
        fs::write(world.log(), text).unwrap();
        assert_not_believed(&world, &world.journal(), what).await;
    }
    let endless = [good.as_bytes(), &vec![b'x'; 3 * 1024 * 1024], b"\n"].concat();
    fs::write(world.log(), endless).unwrap();
    assert_not_believed(&world, &world.journal(), "a line without end").await;
    fs::write(world.log(), &good).unwrap();
    assert_eq!(world.journal().recent(None, 5).await.unwrap().len(), 2);
}

#[tokio::test]
async fn entries_of_other_kinds_share_the_log() {
    let world = World::new(1);
    let journal = world.journal();
    complete(&journal, &world.creation(0, 1), 1).await;
    let text = fs::read_to_string(world.log()).unwrap() + "{\"kind\":\"presence\",\"seq\":41}\n";
    fs::write(world.log(), text).unwrap();
    let journal = world.journal();
    journal.admit(&world.creation(0, 2), &call(2)).await.unwrap();
    let last = fs::read_to_string(world.log()).unwrap().lines().last().unwrap().to_owned();
    assert!(last.contains("\"seq\":42"), "{last}");
    assert_eq!(journal.recent(None, 5).await.unwrap().len(), 2);
}

#[tokio::test]
async fn what_is_no_folder_or_file_of_ones_own_is_not_used() {
    let world = World::new(1);
    let (journal, creation) = (world.journal(), world.creation(0, 1));
    let outside = tempfile::tempdir().unwrap();
    let refused = async |what: &str| {
        let admitted = world.journal().admit(&creation, &call(1)).await;
        assert!(matches!(admitted, Err(JournalFault::Failed(_))), "{what}: {admitted:?}");
        let record = world.journal().record(&creation.event.address).await;
        assert!(matches!(record, Err(JournalFault::Failed(_))), "{what}: {record:?}");
        assert!(
            fs::read_dir(outside.path()).unwrap().flatten().all(|file| file.metadata().unwrap().len() == 0)
        );
    };
    let audit = world.audit();
    symlink(outside.path(), &audit).unwrap();
    refused("a folder that is a link").await;
    fs::remove_file(&audit).unwrap();
    fs::write(&audit, "").unwrap();
    refused("a file for a folder").await;
    fs::remove_file(&audit).unwrap();

    journal.admit(&creation, &call(1)).await.unwrap();
    let log = world.log();
    fs::remove_file(&log).unwrap();
    let target = outside.path().join("target");
    fs::write(&target, "").unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&target, &log).unwrap();
    refused("a file that is a link").await;
    fs::remove_file(&log).unwrap();
    fs::create_dir(&log).unwrap();
    refused("a folder for a file").await;
    fs::remove_dir(&log).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &log, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    refused("a pipe").await;
    fs::remove_file(&log).unwrap();
    fs::write(&log, "").unwrap();
    fs::set_permissions(&log, fs::Permissions::from_mode(0o622)).unwrap();
    refused("others can write it").await;
    fs::set_permissions(&log, fs::Permissions::from_mode(0o600)).unwrap();
    world.journal().admit(&creation, &call(1)).await.unwrap();
}

#[tokio::test]
async fn a_log_that_is_changed_under_its_writers_is_noticed() {
    let world = World::new(1);
    let begin = async || {
        let _ = fs::remove_dir_all(world.audit());
        let journal = world.journal();
        complete(&journal, &world.creation(0, 1), 1).await;
        complete(&journal, &world.creation(0, 2), 2).await;
        (journal, world.log(), fs::read(world.log()).unwrap())
    };
    let (journal, log, _) = begin().await;
    fs::remove_file(&log).unwrap();
    assert!(matches!(journal.recent(None, 5).await, Err(JournalFault::Failed(_))), "removed");
    let admitted = journal.admit(&world.creation(0, 3), &call(3)).await;
    assert!(matches!(admitted, Err(JournalFault::Failed(_))), "removed");

    let (journal, log, bytes) = begin().await;
    fs::rename(&log, log.with_extension("old")).unwrap();
    fs::write(&log, &bytes).unwrap();
    fs::set_permissions(&log, fs::Permissions::from_mode(0o600)).unwrap();
    fs::remove_file(log.with_extension("old")).unwrap();
    assert_not_believed(&world, &journal, "replaced by a copy").await;
    assert_eq!(world.journal().recent(None, 5).await.unwrap().len(), 2, "a new life believes the copy");

    let (journal, log, bytes) = begin().await;
    let two_thirds = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(3).unwrap().0 + 1;
    fs::write(&log, &bytes[..two_thirds]).unwrap();
    assert_not_believed(&world, &journal, "shortened").await;

    let (journal, log, bytes) = begin().await;
    let again = [&bytes[..two_thirds], &bytes].concat();
    fs::write(&log, again).unwrap();
    assert_not_believed(&world, &journal, "written over").await;
}

#[tokio::test]
async fn a_folder_that_was_replaced_has_a_log_of_its_own() {
    let world = World::new(1);
    let journal = world.journal();
    let old = world.creation(0, 1);
    journal.admit(&old, &call(1)).await.unwrap();
    fs::rename(&world.roots[0], world.dir.path().join("aside")).unwrap();
    assert!(matches!(journal.recent(None, 5).await, Err(JournalFault::Failed(_))), "it is gone");
    fs::create_dir(&world.roots[0]).unwrap();
    assert_eq!(journal.recent(None, 5).await.unwrap(), Vec::new());
    assert_eq!(journal.record(&old.event.address).await.unwrap(), None);
    let end = append(&journal, &change(&old, TaskState::Running)).await;
    assert_eq!(end, Err(JournalFault::Rejected(ReduceFault::NoLiveAdmission)));
    assert!(!world.audit().exists(), "what is of the old folder is not written into the new one");
    complete(&journal, &world.creation(0, 2), 2).await;
    assert_eq!(journal.recent(None, 5).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_log_that_another_keeps_to_itself_is_not_waited_for_for_ever() {
    let world = World::new(1);
    let (journal, creation) = (world.journal(), world.creation(0, 1));
    journal.admit(&creation, &call(1)).await.unwrap();
    let kept = fs::File::open(world.log()).unwrap();
    lock(&kept, Access::Write).unwrap();
    let busy = append(&journal, &change(&creation, TaskState::Running)).await;
    assert_eq!(busy, Err(JournalFault::Failed(LogFault::Busy.to_string())));
    drop(kept);
    append(&journal, &change(&creation, TaskState::Running)).await.unwrap();
}
