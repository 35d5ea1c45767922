use std::path::PathBuf;

use futures::executor::block_on;
use tempfile::TempDir;

use super::*;

crate::conformance::suite!(|privacy: PrivacyRule| {
    let folder = tempfile::tempdir().unwrap();
    let store = RedbStore::open(&folder.path().join("facts.redb"), privacy).unwrap();
    (store, folder)
});

struct Kept {
    folder: TempDir,
}

impl Kept {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("facts.redb")
    }

    fn open(&self) -> RedbStore {
        RedbStore::open(&self.path(), PrivacyRule::default()).unwrap()
    }

    /// How often a text stands in the files of the folder, whoever wrote them.
    fn copies(&self, text: &str) -> usize {
        let files = std::fs::read_dir(self.folder.path()).unwrap();
        let bytes = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
        bytes.map(|bytes| bytes.windows(text.len()).filter(|window| *window == text.as_bytes()).count()).sum()
    }
}

fn put(store: &RedbStore, entity: &str, key: &str, value: &str) -> Fact {
    block_on(store.store(NewFact::new(entity, key, value), Moment::from_unix_ms(1))).unwrap()
}

/// A store in which a secret was written, updated and superseded, among many others.
fn with_a_secret(store: &RedbStore) -> Fact {
    for round in 0..5 {
        for index in 0..40 {
            put(store, &format!("notes::{index}"), "text", &format!("ordinary {round} {index}"));
        }
        put(store, "person::SecretName", "SecretKey", &format!("SecretValue {round}"));
    }
    put(store, "person::SecretName", "SecretKey", "SecretValue at last")
}

const SECRETS: [&str; 3] = ["SecretName", "SecretKey", "SecretValue"];

#[test]
fn deleting_leaves_no_readable_copy_in_the_file() {
    let kept = Kept::new();
    let store = kept.open();
    let secret = with_a_secret(&store);
    // More copies than versions: pages that were written anew have left theirs.
    assert!(kept.copies("SecretValue") > 6);
    assert_eq!(block_on(store.delete(&secret.fact_id)).unwrap(), Deleted { versions: 6 });
    for text in SECRETS {
        assert_eq!(kept.copies(text), 0, "{text}");
    }
    assert_eq!(std::fs::read_dir(kept.folder.path()).unwrap().count(), 1);

    // All else is there, now and after closing, and the store goes on.
    assert_eq!(block_on(store.history("notes::7", "text")).unwrap().len(), 5);
    put(&store, "notes::7", "text", "after");
    drop(store);
    let store = kept.open();
    assert_eq!(block_on(store.latest("notes::7", "text")).unwrap().unwrap().value, "after");
    assert_eq!(block_on(store.export(&ExportRequest::default())).unwrap().facts.len(), 201);
}

#[test]
fn deleting_an_older_version_erases_it_too() {
    let kept = Kept::new();
    let store = kept.open();
    let secret = with_a_secret(&store);
    let first = block_on(store.history("person::SecretName", "SecretKey")).unwrap().pop().unwrap();
    assert_eq!(first.value, "SecretValue 0");
    block_on(store.delete(&first.fact_id)).unwrap();
    assert_eq!(kept.copies("SecretValue 0"), 0);
    assert_eq!(block_on(store.get(&secret.fact_id)).unwrap(), Some(secret));
}

#[test]
fn what_was_being_deleted_when_the_process_ended_is_erased_at_the_next_start() {
    let kept = Kept::new();
    let store = kept.open();
    let secret = with_a_secret(&store);
    {
        let writer = lock(&store.deletions);
        store.remove(&secret.fact_id, &writer).unwrap();
    }
    drop(store);
    // An erasing that was begun earlier and did not end has left this.
    std::fs::write(kept.path().with_extension("redb.erasing"), "SecretValue, half of it").unwrap();
    assert!(kept.copies("SecretValue") > 0);
    let store = kept.open();
    for text in SECRETS {
        assert_eq!(kept.copies(text), 0, "{text}");
    }
    assert_eq!(block_on(store.export(&ExportRequest::default())).unwrap().facts.len(), 200);
    drop(store);
    let store = kept.open();
    let transaction = store.write(&lock(&store.deletions)).unwrap();
    assert!(transaction.open_table(META).unwrap().get(ERASE_PENDING).unwrap().is_none());
}

#[test]
fn readers_writers_and_deleters_do_not_get_into_each_others_way() {
    let kept = Kept::new();
    let store = kept.open();
    let ids: Vec<_> =
        (0..40).map(|index| put(&store, &format!("d::{index}"), "k", "doomed").fact_id).collect();
    put(&store, "stays", "k", "v");
    std::thread::scope(|scope| {
        for ids in ids.chunks(10) {
            scope.spawn(|| {
                ids.iter().for_each(|id| assert_eq!(block_on(store.delete(id)).unwrap().versions, 1))
            });
        }
        scope.spawn(|| (0..40).for_each(|index| drop(put(&store, &format!("w::{index}"), "k", "written"))));
        scope.spawn(|| {
            for _ in 0..400 {
                assert!(block_on(store.latest("stays", "k")).unwrap().is_some());
            }
        });
    });
    assert_eq!(block_on(store.export(&ExportRequest::default())).unwrap().facts.len(), 41);
    assert_eq!(kept.copies("doomed"), 0);
    drop(store);
    assert_eq!(block_on(kept.open().export(&ExportRequest::default())).unwrap().facts.len(), 41);
}

#[test]
fn who_reads_is_not_cut_off_when_the_file_is_replaced() {
    let kept = Kept::new();
    let store = kept.open();
    // More than the engine keeps in memory, so that reading goes to the file.
    for index in 0..50 {
        put(&store, &format!("many::{index}"), "k", &"x".repeat(20_000));
    }
    let doomed = put(&store, "doomed", "k", "v");
    let (read, doomed) = store
        .read(|snapshot| {
            block_on(store.delete(&doomed.fact_id)).unwrap();
            let read =
                (0..50).map(|index| snapshot.of_entity(&format!("many::{index}")).unwrap().len()).sum();
            Ok::<(usize, _), _>((read, snapshot.of_entity("doomed")?.len()))
        })
        .unwrap();
    assert_eq!((read, doomed), (50, 1), "what was there when the reading began");
    assert!(block_on(store.by_entity("doomed")).unwrap().is_empty());
}

#[test]
fn a_file_has_one_store() {
    let kept = Kept::new();
    let store = kept.open();
    let refused = RedbStore::open(&kept.path(), PrivacyRule::default());
    assert!(matches!(refused, Err(FactError::Unavailable(_))));
    // Also after erasing, when another file stands in its place.
    let fact = put(&store, "e", "k", "v");
    block_on(store.delete(&fact.fact_id)).unwrap();
    assert!(RedbStore::open(&kept.path(), PrivacyRule::default()).is_err());
    drop(store);
    kept.open();
}

#[test]
fn what_is_no_store_is_refused_and_left_alone() {
    let kept = Kept::new();
    std::fs::write(kept.path(), "a letter, and no store").unwrap();
    let refused = RedbStore::open(&kept.path(), PrivacyRule::default());
    assert!(matches!(refused, Err(FactError::Unavailable(_))));
    assert_eq!(std::fs::read_to_string(kept.path()).unwrap(), "a letter, and no store");
    assert!(RedbStore::open(&kept.folder.path().join("no/folder"), PrivacyRule::default()).is_err());
}

#[test]
fn a_store_of_a_later_form_is_refused() {
    let kept = Kept::new();
    let store = kept.open();
    let writer = lock(&store.deletions);
    let transaction = store.write(&writer).unwrap();
    transaction.open_table(META).unwrap().insert(FORMAT.0, FORMAT.1 + 1).unwrap();
    transaction.commit().unwrap();
    drop(writer);
    drop(store);
    let refused = RedbStore::open(&kept.path(), PrivacyRule::default()).unwrap_err();
    assert_eq!(refused, FactError::Unavailable("its file has the form 2".into()));
}

#[cfg(unix)]
#[test]
fn only_its_owner_can_read_the_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let kept = Kept::new();
    let store = kept.open();
    let mode = || std::fs::metadata(kept.path()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    let fact = put(&store, "e", "k", "v");
    block_on(store.delete(&fact.fact_id)).unwrap();
    assert_eq!(mode(), 0o600);
}
