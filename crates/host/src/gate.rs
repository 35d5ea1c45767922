//! The gate in front of the isolates: first come, first served, with a bound on those that run and those that wait.
//!
//! A worker that is ended in the middle of a loop goes on using a core for a while (measured: about two seconds in
//! Chromium). Its place is therefore kept for that time: it *cools*. One place never cools, so that a shelf whose calls
//! were all ended still answers at once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::channel::oneshot;
use toolshelf_core::refusal::{Code, Refusal};

/// The gate. Clones share it.
#[derive(Debug, Clone)]
pub struct Gate {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    stats: Stats,
    next_ticket: u64,
    waiting: VecDeque<(u64, oneshot::Sender<Permit>)>,
}

/// What goes on at the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Calls that hold a permit.
    pub active: usize,
    /// Calls that wait for one.
    pub queued: usize,
    /// Places kept by ended workers whose loops the engine may still be winding down.
    pub cooling: usize,
    /// Most calls that ever held a permit at one time.
    pub max_observed_active: usize,
    /// Permits there are.
    pub max_concurrent: usize,
    /// Calls that may wait.
    pub max_queue_depth: usize,
}

/// A place at the gate, taken when the call arrives. [`permit`](Self::permit) waits until it is its turn; dropping the
/// ticket gives the place up.
#[derive(Debug)]
pub struct Ticket {
    gate: Gate,
    number: u64,
    turn: oneshot::Receiver<Permit>,
}

/// The right to run. Dropping it lets the next call in.
#[derive(Debug)]
pub struct Permit {
    gate: Gate,
}

impl Gate {
    /// A gate that lets `max_concurrent` calls run while `max_queue_depth` wait.
    #[must_use]
    pub fn new(max_concurrent: usize, max_queue_depth: usize) -> Self {
        let stats = Stats {
            active: 0,
            queued: 0,
            cooling: 0,
            max_observed_active: 0,
            max_concurrent,
            max_queue_depth,
        };
        Self { state: Arc::new(Mutex::new(State { stats, next_ticket: 0, waiting: VecDeque::new() })) }
    }

    /// Takes a place.
    ///
    /// # Errors
    /// [`Code::OverBudget`] when as many calls wait as may.
    pub fn enter(&self) -> Result<Ticket, Refusal> {
        let (sender, turn) = oneshot::channel();
        let number = {
            let mut state = self.lock();
            let Stats { max_concurrent, max_queue_depth, .. } = state.stats;
            if !state.has_room() && state.waiting.len() >= max_queue_depth {
                let why = format!(
                    "{max_concurrent} calls run and {max_queue_depth} wait; call fan-out is bounded by the host"
                );
                return Err(Refusal::new(Code::OverBudget, why));
            }
            let number = state.next_ticket;
            state.next_ticket += 1;
            state.waiting.push_back((number, sender));
            number
        };
        self.admit_waiting();
        Ok(Ticket { gate: self.clone(), number, turn })
    }

    /// What goes on right now.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let state = self.lock();
        Stats { queued: state.waiting.len(), ..state.stats }
    }

    /// Hands permits to those who wait longest, while there are any.
    fn admit_waiting(&self) {
        loop {
            let sender = {
                let mut state = self.lock();
                if !state.has_room() {
                    return;
                }
                let Some((_, sender)) = state.waiting.pop_front() else { return };
                state.stats.active += 1;
                state.stats.max_observed_active = state.stats.max_observed_active.max(state.stats.active);
                sender
            };
            // A ticket that was dropped meanwhile gives the permit back, and the loop finds room again. The lock is
            // not held here: giving back takes it.
            let _ = sender.send(Permit { gate: self.clone() });
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn has_room(&self) -> bool {
        self.stats.active + self.stats.cooling < self.stats.max_concurrent
    }
}

impl Ticket {
    /// Waits for the permit.
    pub async fn permit(mut self) -> Permit {
        match (&mut self.turn).await {
            Ok(permit) => permit,
            // Senders are only dropped by sending or with their ticket; were it ever otherwise, an extra permit is
            // the lesser evil than a call that never ends.
            Err(oneshot::Canceled) => {
                self.gate.lock().stats.active += 1;
                Permit { gate: self.gate.clone() }
            }
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.gate.lock().waiting.retain(|(number, _)| *number != self.number);
    }
}

impl Permit {
    /// Gives the permit back after its worker was ended in the middle of a loop. The place stays taken until
    /// [`Cooling::end`], unless it is the last one that is not cooling.
    #[must_use]
    pub fn cool(self) -> Option<Cooling> {
        let mut state = self.gate.lock();
        if state.stats.cooling + 1 >= state.stats.max_concurrent {
            return None;
        }
        state.stats.cooling += 1;
        Some(Cooling { gate: self.gate.clone() })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.gate.lock().stats.active -= 1;
        self.gate.admit_waiting();
    }
}

/// A place that is kept for a worker that winds down.
#[derive(Debug)]
pub struct Cooling {
    gate: Gate,
}

impl Cooling {
    /// Frees the place.
    pub fn end(self) {
        self.gate.lock().stats.cooling -= 1;
        self.gate.admit_waiting();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use futures::executor::block_on;

    use super::*;

    fn permit(ticket: Ticket) -> Permit {
        ticket.permit().now_or_never().expect("it is this ticket's turn")
    }

    #[test]
    fn calls_beyond_the_queue_are_refused_at_once() {
        let gate = Gate::new(1, 1);
        let first = permit(gate.enter().unwrap());
        let second = gate.enter().unwrap();
        let refusal = gate.enter().unwrap_err();
        assert_eq!(refusal.code, Code::OverBudget);
        assert!(refusal.why.contains("call fan-out is bounded by the host"));
        drop(first);
        drop(permit(second));
        let stats = gate.stats();
        assert_eq!((stats.active, stats.queued, stats.max_observed_active), (0, 0, 1));
    }

    #[test]
    fn without_a_queue_one_of_two_runs() {
        let gate = Gate::new(1, 0);
        let held = gate.enter().unwrap();
        assert!(gate.enter().is_err());
        drop(permit(held));
        assert!(gate.enter().is_ok());
    }

    #[test]
    fn the_first_to_come_is_the_first_to_run() {
        let gate = Gate::new(1, 3);
        let running = permit(gate.enter().unwrap());
        let [a, b, c] = [(); 3].map(|()| gate.enter().unwrap());
        drop(running);
        let (mut b, mut c) = (Box::pin(b.permit()), Box::pin(c.permit()));
        assert!(b.as_mut().now_or_never().is_none() && c.as_mut().now_or_never().is_none());
        drop(permit(a));
        assert!(c.as_mut().now_or_never().is_none());
        drop(block_on(b));
        drop(block_on(c));
        assert_eq!(gate.stats().active, 0);
    }

    #[test]
    fn a_call_that_gives_up_frees_its_place_in_the_queue_and_its_turn() {
        let gate = Gate::new(1, 1);
        let running = permit(gate.enter().unwrap());
        drop(gate.enter().unwrap());
        let waiting = gate.enter().expect("the place in the queue is free again");
        drop(running);
        // `waiting` was given its turn but never took it.
        drop(waiting);
        assert_eq!(gate.stats().active, 0);
        drop(permit(gate.enter().unwrap()));
    }

    #[test]
    fn ended_loops_keep_their_places_but_never_the_last_one() {
        let gate = Gate::new(3, 4);
        let [a, b, c] = [(); 3].map(|()| permit(gate.enter().unwrap()));
        let cooling = a.cool().expect("the first cools");
        assert_eq!((gate.stats().active, gate.stats().cooling), (2, 1));
        let second = b.cool().expect("the second cools");
        assert!(c.cool().is_none(), "one place stays open");
        let open = permit(gate.enter().unwrap());
        let waits = gate.enter().unwrap();
        assert_eq!(gate.stats().queued, 1);
        cooling.end();
        drop(permit(waits));
        second.end();
        drop(open);
        assert_eq!((gate.stats().active, gate.stats().cooling, gate.stats().queued), (0, 0, 0));
    }
}
