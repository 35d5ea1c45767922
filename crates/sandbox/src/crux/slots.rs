//! Places for calls: as many as the pool has instances.
//!
//! The pool refuses a call that finds no slot. Whoever comes while all are taken waits here instead, in the order of
//! coming, but no longer than a call may take.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The places.
#[derive(Debug)]
pub(super) struct Slots {
    line: Mutex<Line>,
    moved: Condvar,
}

#[derive(Debug)]
struct Line {
    free: usize,
    /// Who waits, by number.
    waiting: VecDeque<u64>,
    next: u64,
}

/// A place that is taken. Dropping it gives it back.
#[derive(Debug)]
pub(super) struct Slot<'s>(&'s Slots);

impl Slots {
    pub(super) fn new(count: usize) -> Self {
        let line = Line { free: count, waiting: VecDeque::new(), next: 0 };
        Self { line: Mutex::new(line), moved: Condvar::new() }
    }

    /// Takes a place; nothing where none becomes free in time.
    pub(super) fn take(&self, patience: Duration) -> Option<Slot<'_>> {
        let mut line = self.line();
        let me = line.next;
        line.next += 1;
        line.waiting.push_back(me);
        let not_yet = |line: &mut Line| line.free == 0 || line.waiting.front() != Some(&me);
        let waited = self.moved.wait_timeout_while(line, patience, not_yet);
        let (mut line, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        let taken = !waited.timed_out();
        if taken {
            line.free -= 1;
        }
        line.waiting.retain(|other| *other != me);
        drop(line);
        // Whoever stands behind may be the first now.
        self.moved.notify_all();
        // Not made where none was taken: its end would give back what nobody had.
        taken.then(|| Slot(self))
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.line().free += 1;
        self.0.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_given_back_and_none_is_given_twice() {
        let slots = Slots::new(1);
        let slot = slots.take(Duration::ZERO).unwrap();
        // Nor does asking in vain make a place.
        (0..3).for_each(|_| assert!(slots.take(Duration::from_millis(1)).is_none()));
        drop(slot);
        assert!(slots.take(Duration::ZERO).is_some());
        assert_eq!(slots.line().free, 1);
    }

    #[test]
    fn who_waits_gets_the_place_that_becomes_free() {
        let slots = Slots::new(1);
        let slot = slots.take(Duration::ZERO).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| slots.take(Duration::from_secs(60)).is_some());
            drop(slot);
            assert!(waiting.join().unwrap());
        });
    }

    #[test]
    fn nobody_who_comes_later_is_served_first() {
        let slots = Slots::new(1);
        let slot = slots.take(Duration::ZERO).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| slots.take(Duration::from_secs(60)).is_some());
            while slots.line().waiting.is_empty() {
                std::thread::yield_now();
            }
            // The place is free for a moment, and the one who waits may not have seen it yet.
            slots.line().free += 1;
            assert!(slots.take(Duration::ZERO).is_none());
            slots.line().free -= 1;
            drop(slot);
            assert!(waiting.join().unwrap());
        });
        assert!(slots.line().waiting.is_empty());
    }
}
