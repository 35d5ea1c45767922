//! Files that fail, and what the store makes of it.
//!
//! Each case is done again and again, and each time one of its operations on the file fails, from the first to the last:
//! once, or from then on until the disk is well again. Whichever it is, the store says no by name, has done all of what
//! it was asked or nothing, and goes on.

use std::collections::HashMap;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use ::redb::backends::FileBackend;
use ::redb::{BackendError, StorageBackend};
use futures::executor::block_on;

use super::*;

/// The plans of the folders whose files fail.
static PLANS: LazyLock<Mutex<HashMap<PathBuf, Arc<Plan>>>> = LazyLock::new(Mutex::default);

/// When operations fail.
#[derive(Debug, Default)]
struct Plan {
    /// How many operations still go well.
    left: AtomicU64,
    armed: AtomicBool,
    /// Whether all fail after the first.
    lasting: AtomicBool,
    fired: AtomicBool,
}

impl Plan {
    fn of(folder: &Path) -> Arc<Self> {
        let plan = Arc::new(Self::default());
        PLANS.lock().unwrap().insert(folder.to_owned(), Arc::clone(&plan));
        plan
    }

    /// Lets `well` operations go well, and the next fail.
    fn arm(&self, well: u64, lasting: bool) {
        self.left.store(well, Ordering::SeqCst);
        self.lasting.store(lasting, Ordering::SeqCst);
        self.fired.store(false, Ordering::SeqCst);
        self.armed.store(true, Ordering::SeqCst);
    }

    /// Lets all go well; says whether any has failed.
    fn heal(&self) -> bool {
        self.armed.store(false, Ordering::SeqCst);
        self.fired.load(Ordering::SeqCst)
    }

    fn pass(&self) -> Result<(), io::Error> {
        if !self.armed.load(Ordering::SeqCst) {
            return Ok(());
        }
        let left = self.left.load(Ordering::SeqCst);
        if left > 0 {
            self.left.store(left - 1, Ordering::SeqCst);
            return Ok(());
        }
        if self.fired.swap(true, Ordering::SeqCst) && !self.lasting.load(Ordering::SeqCst) {
            return Ok(());
        }
        Err(io::ErrorKind::StorageFull.into())
    }
}

/// A file that fails as its folder's plan says.
#[derive(Debug)]
pub(super) struct Faulty {
    file: FileBackend,
    plan: Option<Arc<Plan>>,
}

impl Faulty {
    pub(super) fn over(file: FileBackend, path: &Path) -> Self {
        let plan = path.parent().and_then(|folder| PLANS.lock().unwrap().get(folder).cloned());
        Self { file, plan }
    }

    fn pass(&self) -> Result<(), io::Error> {
        self.plan.as_ref().map_or(Ok(()), |plan| plan.pass())
    }
}

impl StorageBackend for Faulty {
    fn len(&self) -> Result<u64, io::Error> {
        self.pass()?;
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        self.pass()?;
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> Result<(), io::Error> {
        self.pass()?;
        self.file.set_len(len)
    }

    fn sync_data(&self) -> Result<(), io::Error> {
        self.pass()?;
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        if let Err(err) = self.pass() {
            // A disk that is full takes the first half.
            let _ = self.file.write(offset, &data[..data.len() / 2]);
            return Err(err);
        }
        self.file.write(offset, data)
    }

    fn close(&self) -> Result<(), io::Error> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}

/// What the store is asked while its file fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    StoreNew,
    Supersede,
    StoreMany,
    DeleteNewest,
    DeleteOlder,
    ReadColdly,
}

const ALL: [Asked; 6] = [
    Asked::StoreNew,
    Asked::Supersede,
    Asked::StoreMany,
    Asked::DeleteNewest,
    Asked::DeleteOlder,
    Asked::ReadColdly,
];

struct Disk {
    folder: tempfile::TempDir,
    plan: Arc<Plan>,
}

impl Disk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let plan = Plan::of(folder.path());
        Self { folder, plan }
    }

    fn open(&self) -> RedbStore {
        RedbStore::open(&self.folder.path().join("facts.redb"), PrivacyRule::default()).unwrap()
    }

    /// How often a text stands in the files of the folder.
    fn copies(&self, text: &str) -> usize {
        let files = std::fs::read_dir(self.folder.path()).unwrap();
        let bytes = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
        bytes.map(|bytes| bytes.windows(text.len()).filter(|window| *window == text.as_bytes()).count()).sum()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        PLANS.lock().unwrap().remove(self.folder.path());
    }
}

fn put(store: &RedbStore, entity: &str, value: &str) -> Result<Fact, FactError> {
    block_on(store.store(NewFact::new(entity, "k", value), Moment::from_unix_ms(1)))
}

/// A store with a few facts: `a` has two versions, `b` has one. What is read coldly is one of many, so that opening the
/// store does not read it along.
fn filled(disk: &Disk, asked: Asked) -> (RedbStore, Fact, Fact) {
    let store = disk.open();
    if asked == Asked::ReadColdly {
        let fact = |index| NewFact::new(format!("many::{index}"), "k", "x".repeat(20_000));
        block_on(store.store_bulk((10..60).map(fact).collect(), Moment::from_unix_ms(1))).unwrap();
    }
    let older = put(&store, "a", "SecretOfOld").unwrap();
    let newest = put(&store, "a", "SecretOfNow").unwrap();
    put(&store, "b", "stays").unwrap();
    (store, older, newest)
}

fn ask(store: &RedbStore, asked: Asked, older: &Fact, newest: &Fact) -> Result<(), FactError> {
    match asked {
        Asked::StoreNew => put(store, "c", "new").map(drop),
        Asked::Supersede => put(store, "a", "newer").map(drop),
        Asked::StoreMany => {
            let facts = ["c", "a", "d"].map(|entity| NewFact::new(entity, "k", "x".repeat(20_000)));
            block_on(store.store_bulk(facts.into(), Moment::from_unix_ms(1))).map(drop)
        }
        Asked::DeleteNewest => block_on(store.delete(&newest.fact_id)).map(drop),
        Asked::DeleteOlder => block_on(store.delete(&older.fact_id)).map(drop),
        Asked::ReadColdly => block_on(store.latest("many::30", "k")).map(drop),
    }
}

/// All that a store holds.
fn everything(store: &RedbStore) -> Vec<Fact> {
    block_on(store.export(&ExportRequest::default())).unwrap().facts
}

/// The same of a store whose file never failed.
fn expected(asked: Asked) -> (Vec<Fact>, Vec<Fact>) {
    let disk = Disk::new();
    let (store, older, newest) = filled(&disk, asked);
    let before = everything(&store);
    ask(&store, asked, &older, &newest).unwrap();
    (before, everything(&store))
}

#[test]
fn whichever_operation_on_the_file_fails_all_or_nothing_is_done_and_the_next_works() {
    for asked in ALL {
        let (before, after) = expected(asked);
        for lasting in [false, true] {
            let mut refused = 0;
            for well in 0.. {
                let name = format!("{asked:?}, {well} operations go well, lasting: {lasting}");
                let disk = Disk::new();
                let (mut store, older, newest) = filled(&disk, asked);
                if asked == Asked::ReadColdly {
                    drop(store);
                    store = disk.open();
                }
                disk.plan.arm(well, lasting);
                let end = ask(&store, asked, &older, &newest);
                // While the disk is still full, the store says so and does not hang.
                if lasting && end.is_err() {
                    let _ = put(&store, "e", "never");
                }
                let fired = disk.plan.heal();

                let now = everything(&store);
                let (without, with) = (now == before, now == after);
                match &end {
                    Ok(()) => assert!(with, "{name}: {now:?}"),
                    Err(FactError::Unavailable(_)) => assert!(without || with, "{name}: {now:?}"),
                    Err(FactError::NotErased(_)) => assert!(with, "{name}: {now:?}"),
                    Err(other) => panic!("{name}: {other}"),
                }
                refused += usize::from(end.is_err());
                // The next write works, and outlives the program.
                put(&store, "next", "works").unwrap_or_else(|err| panic!("{name}: {err}"));
                drop(store);
                let store = disk.open();
                assert_eq!(everything(&store).len(), now.len() + 1, "{name}");
                if with && asked == Asked::DeleteNewest {
                    assert_eq!(disk.copies("Secret"), 0, "{name}");
                }
                if with && asked == Asked::DeleteOlder {
                    assert_eq!(disk.copies("SecretOfOld"), 0, "{name}");
                }
                if !fired {
                    break;
                }
            }
            assert!(refused > 0, "{asked:?}: no fault was felt");
        }
    }
}

#[test]
fn a_file_that_is_gone_after_a_fault_is_not_taken_for_an_empty_store() {
    let disk = Disk::new();
    let (store, ..) = filled(&disk, Asked::StoreNew);
    disk.plan.arm(0, false);
    assert!(matches!(put(&store, "c", "new"), Err(FactError::Unavailable(_))));
    assert!(disk.plan.heal());
    let (path, aside) = (disk.folder.path().join("facts.redb"), disk.folder.path().join("aside"));
    std::fs::rename(&path, &aside).unwrap();
    for _ in 0..2 {
        assert!(matches!(block_on(store.latest("b", "k")), Err(FactError::Unavailable(_))));
        assert!(matches!(put(&store, "c", "new"), Err(FactError::Unavailable(_))));
    }
    assert!(!path.exists());
    std::fs::rename(&aside, &path).unwrap();
    assert_eq!(everything(&store).len(), 3);
}

#[test]
fn who_reads_while_the_file_is_erased_or_fails_gets_what_was_acknowledged_or_a_no() {
    let disk = Disk::new();
    let store = disk.open();
    put(&store, "stays", "v").unwrap();
    let doomed: Vec<_> =
        (0..20).map(|index| put(&store, &format!("d::{index}"), "doomed").unwrap()).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for (index, fact) in doomed.iter().enumerate() {
                if index % 2 == 0 {
                    disk.plan.arm(index as u64, false);
                }
                let _ = block_on(store.delete(&fact.fact_id));
                disk.plan.heal();
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..300 {
                    match block_on(store.latest("stays", "k")) {
                        Ok(fact) => assert_eq!(fact.unwrap().value, "v"),
                        Err(err) => assert!(matches!(err, FactError::Unavailable(_)), "{err}"),
                    }
                }
            });
        }
    });
    assert_eq!(block_on(store.latest("stays", "k")).unwrap().unwrap().value, "v");
    for fact in doomed {
        match block_on(store.delete(&fact.fact_id)) {
            Ok(_) | Err(FactError::NotFound(_)) => {}
            Err(err) => panic!("{err}"),
        }
    }
    put(&store, "last", "v").unwrap();
    drop(store);
    assert_eq!((everything(&disk.open()).len(), disk.copies("doomed")), (2, 0));
}
