//! One suite for every journal of tasks: what the port promises, whoever keeps it. The memory of `host`, the logs of a
//! machine and the buckets of a cluster all run it.

use std::rc::Rc;

use toolshelf_core::task::{ReduceFault, TaskEvent, TaskState};
use toolshelf_host::Journal;
use toolshelf_host::task_ports::{CallKey, Draft, Durability, JournalFault};

/// Two writers of one journal, and the creation of the task of a number.
pub(crate) struct Journals<J> {
    pub(crate) one: J,
    pub(crate) other: J,
    pub(crate) creation: Rc<dyn Fn(u32) -> Draft>,
}

impl<J: Journal> Journals<J> {
    /// All cases; each has tasks of its own.
    pub(crate) async fn hold(&self) {
        self.what_is_admitted_is_found_by_address_and_by_call().await;
        self.a_call_has_one_task_whoever_admits().await;
        self.changes_follow_each_other_and_an_end_is_the_end().await;
        self.what_cannot_follow_changes_nothing().await;
        self.of_two_ends_one_is_written().await;
        self.recent_tasks_come_newest_first_and_in_pages().await;
    }

    async fn admit(&self, number: u32) -> Draft {
        let creation = (self.creation)(number);
        self.one.admit(&creation, &call(number)).await.unwrap();
        creation
    }

    async fn what_is_admitted_is_found_by_address_and_by_call(&self) {
        let creation = self.admit(1).await;
        let address = &creation.event.address;
        for journal in [&self.one, &self.other] {
            let record = journal.record(address).await.unwrap().unwrap();
            assert_eq!(Some(record), creation.event.created.as_deref().cloned());
            assert_eq!(journal.address_of(&call(1)).await, Ok(Some(address.clone())));
            assert_eq!(journal.address_of(&call(999)).await, Ok(None));
        }
        let unknown = (self.creation)(999);
        assert_eq!(self.one.record(&unknown.event.address).await, Ok(None));
    }

    async fn a_call_has_one_task_whoever_admits(&self) {
        let first = self.admit(10).await;
        let second = (self.creation)(11);
        for journal in [&self.one, &self.other] {
            let taken = journal.admit(&second, &call(10)).await;
            assert_eq!(taken, Err(JournalFault::CallTaken(first.event.address.clone())));
            assert_eq!(journal.record(&second.event.address).await, Ok(None));
        }
        self.other.admit(&second, &call(11)).await.unwrap();
        assert_eq!(self.one.address_of(&call(11)).await, Ok(Some(second.event.address)));
    }

    async fn changes_follow_each_other_and_an_end_is_the_end(&self) {
        let creation = self.admit(20).await;
        let running = append(&self.one, &creation, TaskState::Running).await.unwrap();
        assert_eq!(running.state, TaskState::Running);
        let ended = append(&self.other, &creation, TaskState::Completed).await.unwrap();
        assert_eq!((ended.state, ended.answer.as_deref()), (TaskState::Completed, Some("answer")));
        assert_eq!(ended.outcome, TaskState::Completed.outcome());
        for journal in [&self.one, &self.other] {
            for state in TaskState::ALL {
                let late = append(journal, &creation, state).await;
                assert_eq!(late, Err(JournalFault::Rejected(ReduceFault::NoLiveAdmission)), "{state:?}");
            }
            assert_eq!(journal.record(&creation.event.address).await, Ok(Some(ended.clone())));
        }
    }

    async fn what_cannot_follow_changes_nothing(&self) {
        let creation = self.admit(30).await;
        let skipped = append(&self.one, &creation, TaskState::Completed).await;
        assert_eq!(skipped, Err(JournalFault::Rejected(ReduceFault::InvalidTransition)));
        let kept = self.other.record(&creation.event.address).await.unwrap().unwrap();
        assert_eq!(kept.state, TaskState::Queued);
        let nobodys = append(&self.one, &(self.creation)(998), TaskState::Running).await;
        assert_eq!(nobodys, Err(JournalFault::Rejected(ReduceFault::NoLiveAdmission)));
        append(&self.other, &creation, TaskState::Cancelled).await.unwrap();
    }

    async fn of_two_ends_one_is_written(&self) {
        for number in 40..48 {
            let creation = self.admit(number).await;
            append(&self.one, &creation, TaskState::Running).await.unwrap();
            let (one, other) = futures::join!(
                append(&self.one, &creation, TaskState::Completed),
                append(&self.other, &creation, TaskState::Failed)
            );
            assert_ne!(one.is_ok(), other.is_ok(), "{one:?} {other:?}");
            let state = if one.is_ok() { TaskState::Completed } else { TaskState::Failed };
            for journal in [&self.one, &self.other] {
                assert_eq!(journal.record(&creation.event.address).await.unwrap().unwrap().state, state);
            }
        }
    }

    async fn recent_tasks_come_newest_first_and_in_pages(&self) {
        let mut expected = Vec::new();
        for number in 60..67 {
            let creation = self.admit(number).await;
            append(&self.one, &creation, TaskState::Running).await.unwrap();
            expected.insert(0, creation.event.address);
        }
        for journal in [&self.one, &self.other] {
            let mut found = Vec::new();
            let mut before = None;
            while found.len() < expected.len() {
                let page = journal.recent(before, 3).await.unwrap();
                assert_eq!(page.len(), 3);
                assert!(page.windows(2).all(|pair| pair[0].position > pair[1].position));
                before = page.last().map(|placed| placed.position);
                found.extend(page.into_iter().map(|placed| placed.record.address));
            }
            assert_eq!(found[..expected.len()], expected);
            let first = journal.recent(before, 1_000).await.unwrap().last().map(|placed| placed.position);
            assert_eq!(journal.recent(first, 10).await.unwrap(), []);
        }
    }
}

fn call(number: u32) -> CallKey {
    CallKey::new("env_0123456789abcdef", "epoch", "local", &format!("call-{number}"))
}

async fn append(
    journal: &impl Journal,
    creation: &Draft,
    state: TaskState,
) -> Result<toolshelf_core::task::TaskRecord, JournalFault> {
    let mut event = TaskEvent::to(&*creation.event.address, state);
    event.answer = (state == TaskState::Completed).then(|| "answer".to_owned());
    journal.append(&Draft { at: creation.at.clone(), event }, Durability::Strict).await
}
