//! What is kept in memory of all logs: which task stands at which position, and which call has which task.
//!
//! It holds some hundred bytes of each task, however long its entries are.

use std::collections::{BTreeMap, HashMap};

use toolshelf_core::Digest;
use toolshelf_core::task::time::unix_ms;
use toolshelf_host::task_ports::CallKey;

use super::log::TaskKey;

/// Positions count from here: 2020-01-01, in milliseconds since 1970.
const EPOCH_MS: u64 = 1_577_836_800_000;
/// Positions of one millisecond.
const POSITIONS_PER_MS: u64 = 4_096;
/// The last millisecond that has positions of its own; there is room for as many tasks behind it as for milliseconds
/// before. All positions stay below 2^53.
const LAST_MS: u64 = (1 << 41) - (1 << 20);

/// Which root's log a task stands in: its number among the roots.
pub(super) type RootNumber = usize;

/// The index over all logs.
#[derive(Debug, Default)]
pub(super) struct Index {
    positions: BTreeMap<u64, (RootNumber, TaskKey)>,
    calls: HashMap<Digest, (RootNumber, TaskKey)>,
}

impl Index {
    /// Notes a task, and answers its position: the moment of its creation, made unique. It is greater than `after`, the
    /// position of the task before in the same log. So the positions are the same in every process that reads the same
    /// logs, except where tasks of several roots were created in one millisecond.
    pub(super) fn insert(
        &mut self,
        root: RootNumber,
        key: TaskKey,
        call: &CallKey,
        created_at: &str,
        after: u64,
    ) -> u64 {
        let ms = unix_ms(created_at).unwrap_or_default().saturating_sub(EPOCH_MS).min(LAST_MS);
        let mut position = (ms * POSITIONS_PER_MS).max(after + 1);
        while self.positions.contains_key(&position) {
            position += 1;
        }
        self.positions.insert(position, (root, key));
        // The first task of a call is its task; the journal writes no second one.
        self.calls.entry(digest(call)).or_insert((root, key));
        position
    }

    /// Which task has the call.
    pub(super) fn task_of(&self, call: &CallKey) -> Option<(RootNumber, TaskKey)> {
        self.calls.get(&digest(call)).copied()
    }

    /// Tasks below `before`, the newest first, with their positions.
    pub(super) fn below(&self, before: Option<u64>) -> impl Iterator<Item = (u64, RootNumber, TaskKey)> + '_ {
        let below = self.positions.range(..before.unwrap_or(u64::MAX)).rev();
        below.map(|(position, (root, key))| (*position, *root, *key))
    }

    /// Forgets the tasks of a root whose folder was replaced.
    pub(super) fn forget(&mut self, root: RootNumber) {
        self.positions.retain(|_, (of, _)| *of != root);
        self.calls.retain(|_, (of, _)| *of != root);
    }
}

fn digest(call: &CallKey) -> Digest {
    Digest::of(call.as_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: TaskKey = TaskKey([0; 32]);

    fn call(id: &str) -> CallKey {
        CallKey::new("env", "epoch", "owner", id)
    }

    #[test]
    fn positions_are_unique_rise_and_stay_whole_numbers_of_every_client() {
        let mut index = Index::default();
        let mut last = [0, 0];
        let times = ["2026-11-30T17:00:00.000Z", "1970-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z", "?"];
        for round in 0..2_000 {
            let root = round % 2;
            let at = times[round % times.len()];
            let position = index.insert(root, KEY, &call(&round.to_string()), at, last[root]);
            assert!(position > last[root] && position < 1 << 53, "{position}");
            last[root] = position;
        }
        assert_eq!(index.positions.len(), 2_000);
        assert!(index.below(None).map(|(position, ..)| position).is_sorted_by(|a, b| a > b));
        let middle = index.below(None).nth(1_000).unwrap().0;
        assert_eq!(index.below(Some(middle)).count(), 999);
        index.forget(0);
        assert!(index.below(None).all(|(_, root, _)| root == 1));
        assert_eq!(index.task_of(&call("0")), None);
        assert_eq!(index.task_of(&call("1")), Some((1, KEY)));
    }

    #[test]
    fn the_same_logs_give_the_same_positions() {
        let positions = || {
            let (mut index, mut after) = (Index::default(), 0);
            for ms in [5, 5, 3, 900, 900] {
                let at = toolshelf_core::task::time::iso_time(EPOCH_MS + ms);
                after = index.insert(0, KEY, &call(&ms.to_string()), &at, after);
            }
            index.below(None).map(|(position, ..)| position).collect::<Vec<_>>()
        };
        assert_eq!(positions(), [900 * 4_096 + 1, 900 * 4_096, 5 * 4_096 + 2, 5 * 4_096 + 1, 5 * 4_096]);
    }
}
