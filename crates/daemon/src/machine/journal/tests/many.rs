//! Several writers of one log, and what an append costs as the log grows.

use proptest::prelude::*;
use toolshelf_host::MemoryJournal;

use super::*;

#[test]
fn many_who_write_at_once_leave_one_log_without_a_gap() {
    let world = World::new(1);
    let shared = world.creation(0, 1_000);
    let wins: Vec<(bool, bool)> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4_u32)
            .map(|writer| {
                let (world, shared) = (&world, &shared);
                scope.spawn(move || {
                    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
                    runtime.block_on(async {
                        let journal = world.journal();
                        let admitted = journal.admit(shared, &call(1_000)).await;
                        assert!(matches!(admitted, Ok(()) | Err(JournalFault::CallTaken(_))), "{admitted:?}");
                        for number in 0..10 {
                            let number = writer * 10 + number;
                            complete(&journal, &world.creation(0, number), number).await;
                        }
                        let ended = append(&journal, &change(shared, TaskState::Cancelled)).await;
                        (admitted.is_ok(), ended.is_ok())
                    })
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    assert_eq!(wins.iter().filter(|(admitted, _)| *admitted).count(), 1);
    assert_eq!(wins.iter().filter(|(_, ended)| *ended).count(), 1);
    let text = fs::read_to_string(world.log()).unwrap();
    for (at, line) in text.lines().enumerate() {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(entry["seq"], at + 1);
    }
    assert_eq!(text.lines().count(), 2 + 4 * 10 * 3);
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(runtime.block_on(world.journal().recent(None, 100)).unwrap().len(), 41);
}

/// Bytes of the first root's log that `work` has this journal read.
async fn bytes_read<T>(journal: &FileJournal, work: impl Future<Output = T>) -> u64 {
    let before = journal.shared.log(0).bytes_read();
    work.await;
    journal.shared.log(0).bytes_read() - before
}

#[tokio::test]
async fn an_append_costs_the_same_however_long_the_log_is() {
    let world = World::new(1);
    let small = world.journal();
    complete(&small, &world.creation(0, 0), 0).await;
    let cost = bytes_read(&small, complete(&small, &world.creation(0, 1), 1)).await;

    // Ten thousand tasks, written as the journal writes them.
    let mut text = fs::read(world.log()).unwrap();
    let mut seq = 6;
    for number in 2..10_000 {
        let creation = world.creation(0, number);
        let record = creation.event.created.clone().unwrap();
        let ends = [TaskState::Running, TaskState::Completed].map(|state| change(&creation, state));
        for draft in [creation].into_iter().chain(ends) {
            seq += 1;
            let entry = toolshelf_core::task::LogEntry::of(&record, seq, draft.at, draft.event);
            serde_json::to_writer(&mut text, &entry).unwrap();
            text.push(b'\n');
        }
    }
    fs::write(world.log(), &text).unwrap();
    let journal = world.journal();
    let all = bytes_read(&journal, journal.recent(None, 1)).await;
    assert!(all >= text.len() as u64);
    let creation = world.creation(0, 10_000);
    assert_eq!(bytes_read(&journal, complete(&journal, &creation, 10_000)).await, cost);
    let one = bytes_read(&journal, journal.record(&creation.event.address)).await;
    assert!(one < 10_000, "{one}");
    let page = bytes_read(&journal, journal.recent(None, 50)).await;
    assert!(page < 50 * 10_000, "{page}");
    assert_eq!(journal.recent(None, 20_000).await.unwrap().len(), 10_001);
    // Another process reads what is new, and only that.
    let other = world.journal();
    other.recent(None, 1).await.unwrap();
    let more = world.creation(0, 10_001);
    complete(&journal, &more, 10_001).await;
    let news = bytes_read(&other, other.address_of(&call(3))).await;
    assert!(news < 20_000, "{news}");
    assert_eq!(other.found().await, 3 * 10_002);
}

/// What may be done to a task.
#[derive(Debug, Clone, Copy)]
enum Step {
    Admit,
    To(TaskState),
    Read,
}

fn steps() -> impl Strategy<Value = Vec<(usize, u32, Step)>> {
    let step = prop_oneof![
        2 => Just(Step::Admit),
        1 => Just(Step::Read),
        6 => prop::sample::select(&TaskState::ALL[1..]).prop_map(Step::To),
    ];
    prop::collection::vec((0..3_usize, 0..3_u32, step), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Three processes do what they like; each hears what a journal in memory says that has done the same.
    #[test]
    fn the_journals_of_several_processes_are_one(steps in steps()) {
        let world = World::new(2);
        let journals = [world.journal(), world.journal(), world.journal()];
        let model = MemoryJournal::default();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            for (process, number, step) in steps {
                let (journal, creation) = (&journals[process], world.creation(number as usize % 2, number));
                match step {
                    Step::Admit => {
                        let admitted = journal.admit(&creation, &call(number)).await;
                        assert_eq!(admitted, model.admit(&creation, &call(number)).await);
                    }
                    Step::To(state) => {
                        let draft = change(&creation, state);
                        let written = append(journal, &draft).await;
                        assert_eq!(written, model.append(&draft, Durability::Strict).await);
                    }
                    Step::Read => {
                        let address = &creation.event.address;
                        assert_eq!(journal.record(address).await, model.record(address).await);
                        assert_eq!(journal.address_of(&call(number)).await, model.address_of(&call(number)).await);
                    }
                }
            }
            let records = async |journal: &FileJournal| -> Vec<_> {
                journal.recent(None, 10).await.unwrap().into_iter().map(|placed| placed.record).collect()
            };
            let expected = records(&world.journal()).await;
            for journal in &journals {
                assert_eq!(records(journal).await, expected);
            }
        });
    }
}
