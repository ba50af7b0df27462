//! How another thread ends the event loop.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mio::{Poll, Token, Waker};

use crate::error::EngineError;

/// Ends one [`serve`](crate::serve()), which takes it; keep a [`StopHandle`] to trigger it.
#[derive(Debug)]
pub struct Stop {
    /// The loop's own poll lives here, because a waker exists only together with one.
    pub(crate) poll: Poll,
    handle: StopHandle,
}

impl Stop {
    pub fn new() -> Result<Self, EngineError> {
        let poll = Poll::new().map_err(EngineError::doing("open its poll"))?;
        let waker =
            Waker::new(poll.registry(), STOP).map_err(EngineError::doing("make a waker"))?;
        let state = StopState { asked: AtomicBool::new(false), waker };
        Ok(Self { poll, handle: StopHandle(Arc::new(state)) })
    }

    /// A handle for another thread.
    pub fn handle(&self) -> StopHandle {
        self.handle.clone()
    }

    pub(crate) fn asked(&self) -> bool {
        self.handle.0.asked.load(Ordering::Acquire)
    }
}

/// Triggers a [`Stop`] from any thread.
#[derive(Clone, Debug)]
pub struct StopHandle(Arc<StopState>);

impl StopHandle {
    /// Ends the loop soon; a second call changes nothing.
    ///
    /// When the wake-up itself fails, the loop still ends with its next event.
    pub fn stop(&self) {
        self.0.asked.store(true, Ordering::Release);
        let _woken: io::Result<()> = self.0.waker.wake();
    }
}

#[derive(Debug)]
struct StopState {
    asked: AtomicBool,
    waker: Waker,
}

/// The waker's events need no handling: the loop looks at [`Stop::asked`] after every wake-up.
pub(crate) const STOP: Token = Token(0);
