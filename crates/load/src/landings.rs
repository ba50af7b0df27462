//! Where the flights of one driver come down: a list that its loop empties each turn.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;

use inferometer_model::RequestRecord;
use inferometer_model::outcome::Cause;

/// How a flight came down.
#[derive(Debug)]
pub(crate) enum Landed {
    Ended(Box<RequestRecord>),
    /// This machine could not even dial: no fault of the server's, so no failure of a request.
    NotSent(Cause),
    /// A bug of ours.
    Panicked,
}

#[derive(Default)]
pub(crate) struct Landings {
    landed: RefCell<Vec<(usize, Landed)>>,
    /// The driver's loop, while it waits.
    waiting: Cell<Option<Waker>>,
}

impl Landings {
    fn push(&self, place: usize, landed: Landed) {
        self.landed.borrow_mut().push((place, landed));
        if let Some(waker) = self.waiting.take() {
            waker.wake();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.landed.borrow().is_empty()
    }

    /// Takes all, in the order in which they came down, in exchange for an empty list: two lists
    /// take turns, and neither grows anew.
    pub(crate) fn take(&self, taken: &mut Vec<(usize, Landed)>) {
        debug_assert!(taken.is_empty(), "what was taken before is dealt with");
        std::mem::swap(taken, &mut self.landed.borrow_mut());
    }

    /// Wakes `waker` with the next landing.
    pub(crate) fn wake(&self, waker: &Waker) {
        self.waiting.set(Some(waker.clone()));
    }
}

/// The right of one flight to land. Dropped without use it says nothing, as when its flight was
/// cut, unless a panic dropped it.
pub(crate) struct Strip {
    landings: Rc<Landings>,
    place: usize,
}

impl Strip {
    pub(crate) fn new(landings: Rc<Landings>, place: usize) -> Self {
        Self { landings, place }
    }

    pub(crate) fn land(&self, landed: Landed) {
        self.landings.push(self.place, landed);
    }
}

impl Drop for Strip {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.landings.push(self.place, Landed::Panicked);
        }
    }
}
