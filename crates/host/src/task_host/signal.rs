//! The word to stop, from the host to an executor.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// Says when to stop. Clones share it; it never takes the word back.
#[derive(Clone, Default)]
pub struct CancelSignal {
    shared: Rc<Shared>,
}

#[derive(Default)]
struct Shared {
    aborted: Cell<bool>,
    wakers: RefCell<Vec<Waker>>,
    callbacks: RefCell<Vec<Box<dyn FnOnce()>>>,
}

impl CancelSignal {
    /// Whether to stop.
    #[must_use]
    pub fn is_aborted(&self) -> bool {
        self.shared.aborted.get()
    }

    /// Ends when it is time to stop.
    pub async fn aborted(&self) {
        poll_fn(|context| {
            if self.is_aborted() {
                return Poll::Ready(());
            }
            let mut wakers = self.shared.wakers.borrow_mut();
            if !wakers.iter().any(|waker| waker.will_wake(context.waker())) {
                wakers.push(context.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    /// Calls `then` when it is time to stop; at once when it is already. For platforms with signals of their own.
    pub fn on_abort(&self, then: impl FnOnce() + 'static) {
        if self.is_aborted() {
            then();
        } else {
            self.shared.callbacks.borrow_mut().push(Box::new(then));
        }
    }

    /// Says to stop.
    pub(crate) fn abort(&self) {
        if self.shared.aborted.replace(true) {
            return;
        }
        // Taken out first: what is called may come back here.
        let (wakers, callbacks) = (self.shared.wakers.take(), self.shared.callbacks.take());
        wakers.into_iter().for_each(Waker::wake);
        callbacks.into_iter().for_each(|then| then());
    }
}

impl fmt::Debug for CancelSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelSignal").field("aborted", &self.is_aborted()).finish()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn everybody_who_listens_hears_it_once() {
        let signal = CancelSignal::default();
        let heard = Rc::new(Cell::new(0));
        let hear = || {
            let heard = Rc::clone(&heard);
            move || heard.set(heard.get() + 1)
        };
        signal.on_abort(hear());
        let waiting = signal.clone();
        let mut waiting = Box::pin(waiting.aborted());
        assert!(waiting.as_mut().now_or_never().is_none());
        signal.abort();
        signal.abort();
        signal.on_abort(hear());
        assert!(waiting.now_or_never().is_some() && signal.is_aborted());
        assert_eq!(heard.get(), 2);
    }
}
