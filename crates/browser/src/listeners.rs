//! Who wants to hear of something.

use std::cell::RefCell;
use std::rc::Rc;

type Listener<T> = Rc<dyn Fn(&T)>;

/// Those who listen. They do so as long as the list lives.
pub(crate) struct Listeners<T>(RefCell<Vec<Listener<T>>>);

impl<T> Default for Listeners<T> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<T> Listeners<T> {
    pub(crate) fn add(&self, listener: impl Fn(&T) + 'static) {
        self.0.borrow_mut().push(Rc::new(listener));
    }

    /// The list is copied first: a listener may add another.
    pub(crate) fn tell(&self, event: &T) {
        let listeners = self.0.borrow().clone();
        listeners.iter().for_each(|listener| listener(event));
    }
}
