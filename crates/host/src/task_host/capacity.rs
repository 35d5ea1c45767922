//! Places for tasks whose executors have not settled.

use std::cell::Cell;
use std::rc::Rc;

/// The places of one host.
#[derive(Debug)]
pub(super) struct Capacity {
    taken: Rc<Cell<usize>>,
    max: usize,
}

/// One place. Dropping it gives it back.
#[derive(Debug)]
pub(super) struct Slot {
    taken: Rc<Cell<usize>>,
}

impl Capacity {
    pub(super) fn new(max: usize) -> Self {
        Self { taken: Rc::default(), max }
    }

    pub(super) fn taken(&self) -> usize {
        self.taken.get()
    }

    /// Takes a place, now or not at all.
    pub(super) fn take(&self) -> Option<Slot> {
        let free = self.taken.get() < self.max;
        free.then(|| {
            self.taken.set(self.taken.get() + 1);
            Slot { taken: Rc::clone(&self.taken) }
        })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.taken.set(self.taken.get() - 1);
    }
}
