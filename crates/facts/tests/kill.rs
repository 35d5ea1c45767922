//! A writer that is killed in the middle loses nothing that it has acknowledged, and what it has acknowledged as deleted
//! stays away and has left no bytes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use futures::executor::block_on;
use toolshelf_facts::{ExportRequest, Fact, FactStore as _, Moment, NewFact, PrivacyRule, RedbStore};

const THIS_TEST: &str = "a_killed_writer_loses_nothing_that_it_acknowledged";
/// Where the writer's file is; only set in the process that is killed.
const WRITER_FILE: &str = "TOOLSHELF_FACTS_KILLED_WRITER";
const ROUNDS: usize = 12;
/// Every so many facts, the last one is deleted.
const DELETED_EACH: u32 = 4;

/// What the writer has said of a fact.
struct Told {
    value: String,
    deleted: bool,
}

#[test]
fn a_killed_writer_loses_nothing_that_it_acknowledged() {
    if let Some(path) = std::env::var_os(WRITER_FILE) {
        write_until_killed(Path::new(&path));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("facts.redb");
    let mut told = BTreeMap::new();
    for round in 0..ROUNDS {
        for line in lines_of_a_killed_writer(&path, 3 + round * 7 % 23) {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["stored", id, value, "."] => {
                    told.insert(id.to_owned(), Told { value: value.to_owned(), deleted: false });
                }
                ["deleted", id, "."] => told.get_mut(id).unwrap().deleted = true,
                _ => panic!("the writer said {line:?}"),
            }
        }
        let store = RedbStore::open(&path, PrivacyRule::default()).unwrap();
        let kept = all(&store);
        let find = |id: &String| kept.iter().find(|fact| fact.fact_id == *id);
        // The last one may have been deleted without the word having come.
        if let Some(mut last) = told.last_entry()
            && find(last.key()).is_none()
        {
            last.get_mut().deleted = true;
        }
        let file = std::fs::read(&path).unwrap();
        let is_in_file = |text: &str| file.windows(text.len()).any(|window| window == text.as_bytes());
        for (id, told) in &told {
            let value = find(id).map(|fact| &fact.value);
            assert_eq!(value, (!told.deleted).then_some(&told.value), "round {round}: {id}");
            assert_eq!(is_in_file(&told.value), !told.deleted, "round {round}: {}", told.value);
        }
        // In each round one fact may have been written without the word having come.
        let untold = kept.iter().filter(|fact| !told.contains_key(&fact.fact_id)).count();
        assert!(untold <= round + 1, "{untold} facts that nobody was told of");
    }
    let deleted = told.values().filter(|told| told.deleted).count();
    assert!(told.len() > 60 && deleted > 10, "{} facts, {deleted} deleted", told.len());
}

/// Starts this test as a writer, lets it take so many steps, and kills it. Answers all that it has said.
fn lines_of_a_killed_writer(path: &Path, steps: usize) -> Vec<String> {
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", THIS_TEST, "--nocapture"])
        .env(WRITER_FILE, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(writer.stdout.take().unwrap()).lines().map_while(Result::ok);
    // What the test harness says comes first; a line that was cut off has no end.
    let mut said = lines.filter(|line| line.ends_with(" ."));
    let mut all: Vec<_> = said.by_ref().take(steps).collect();
    writer.kill().unwrap();
    writer.wait().unwrap();
    all.extend(said);
    assert!(all.len() >= steps, "the writer ended by itself");
    all
}

fn write_until_killed(path: &Path) -> ! {
    let store = RedbStore::open(path, PrivacyRule::default()).unwrap();
    let mut out = std::io::stdout();
    writeln!(out).unwrap();
    for step in 1_u32.. {
        let value = format!("value-{}-{step}-", std::process::id());
        let new = NewFact::new(format!("notes::{value}"), "text", value);
        let fact = block_on(store.store(new, Moment::default())).unwrap();
        writeln!(out, "stored {} {} .", fact.fact_id, fact.value).unwrap();
        if step % DELETED_EACH == 0 {
            block_on(store.delete(&fact.fact_id)).unwrap();
            writeln!(out, "deleted {} .", fact.fact_id).unwrap();
        }
    }
    unreachable!("there is no last step")
}

fn all(store: &RedbStore) -> Vec<Fact> {
    let request = ExportRequest { limit: Some(10_000), ..ExportRequest::default() };
    let page = block_on(store.export(&request)).unwrap();
    assert!(!page.has_more);
    page.facts
}
