//! One delegation at a time for each call id: the same call waits for the first one's answer.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use futures::channel::oneshot;

use crate::task_ports::CallKey;

type Waiting = HashMap<CallKey, Vec<oneshot::Sender<()>>>;

/// The calls that are being admitted.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    waiting: Rc<RefCell<Waiting>>,
}

/// The right to admit a call. Dropping it lets those go on who wait for the same call.
#[derive(Debug)]
pub(super) struct Turn {
    waiting: Rc<RefCell<Waiting>>,
    call: CallKey,
}

impl InFlight {
    /// Waits until nobody else admits `call`. Who comes first has the turn at once, without an await.
    pub(super) async fn turn(&self, call: &CallKey) -> Turn {
        loop {
            let first_to_end = {
                let mut waiting = self.waiting.borrow_mut();
                let Some(others) = waiting.get_mut(call) else {
                    waiting.insert(call.clone(), Vec::new());
                    return Turn { waiting: Rc::clone(&self.waiting), call: call.clone() };
                };
                let (sender, ended) = oneshot::channel();
                others.push(sender);
                ended
            };
            let _ = first_to_end.await;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let others = self.waiting.borrow_mut().remove(&self.call);
        for other in others.into_iter().flatten() {
            let _ = other.send(());
        }
    }
}
