//! Several hands at one matrix, each with one server at a time.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use inferometer_study::matrix::{Deployment, Next, Queue};

use super::cell::Cell;
use super::errand::Hall;
use super::ledger::Ledger;
use crate::failure::Failure;

/// Plays all that is left. Of several failures the first that is no signal is returned.
pub(super) fn work(
    hall: &Hall<'_>,
    ledger: &Ledger,
    queue: Queue,
    hands: usize,
) -> Result<(), Failure> {
    let desk = &Desk { queue: Mutex::new(queue), freed: Condvar::new() };
    let ended: Vec<Result<(), Failure>> = thread::scope(|scope| {
        let hands: Vec<_> =
            (0..hands.max(1)).map(|_| scope.spawn(|| desk.work(hall, ledger))).collect();
        let ended = hands.into_iter().map(|hand| {
            let panicked = |_| Err(Failure::internal("a lane of the matrix ended abnormally"));
            hand.join().unwrap_or_else(panicked)
        });
        ended.collect()
    });
    let failures = ended.into_iter().filter_map(Result::err);
    failures.min_by_key(Failure::is_interruption).map_or(Ok(()), Err)
}

struct Desk {
    queue: Mutex<Queue>,
    /// Reading whenever a preset is free again.
    freed: Condvar,
}

impl Desk {
    /// One server after the other, until nothing is left or somebody must stop: then all do.
    fn work(&self, hall: &Hall<'_>, ledger: &Ledger) -> Result<(), Failure> {
        let mut rest = Duration::ZERO;
        while let Some(taken) = self.take() {
            let played = Cell { hall, ledger, deployment: &taken.deployment }.play(rest);
            if played.inspect_err(|_| self.queue().give_up())? {
                rest = hall.manifest.campaign.repetition.cool_down;
            }
        }
        Ok(())
    }

    fn take(&self) -> Option<Taken<'_>> {
        let mut queue = self.queue();
        loop {
            match queue.take() {
                Next::Deployment(deployment) => return Some(Taken { desk: self, deployment }),
                Next::Done => return None,
                Next::Wait => {
                    queue = self.freed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A server in somebody's hands. Its preset is free when this is dropped, whatever happened.
struct Taken<'desk> {
    desk: &'desk Desk,
    deployment: Deployment,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut queue = self.desk.queue();
        queue.finished(self.deployment.preset);
        if thread::panicking() {
            queue.give_up();
        }
        drop(queue);
        self.desk.freed.notify_all();
    }
}
