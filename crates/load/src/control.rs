//! The user's hand on a running drive.

use tokio::sync::watch;

/// How the user wants the run to go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    #[default]
    Run,
    /// Release nothing more; let what is in flight finish, within the drain limit.
    Drain,
    /// End everything now.
    Cut,
}

#[derive(Clone, Debug)]
pub struct Control(watch::Sender<Stop>);

impl Default for Control {
    fn default() -> Self {
        Self(watch::Sender::new(Stop::Run))
    }
}

impl Control {
    /// The first call drains, the second cuts. Says what was so before.
    pub fn stop_harder(&self) -> Stop {
        let mut before = Stop::Run;
        self.0.send_modify(|stop| {
            before = *stop;
            *stop = if *stop == Stop::Run { Stop::Drain } else { Stop::Cut };
        });
        before
    }

    /// What has been asked for so far, for those who look at times instead of waiting.
    pub fn asked(&self) -> Stop {
        *self.0.borrow()
    }

    /// A receiver that has not seen what was said before it existed.
    pub(crate) fn listen(&self) -> watch::Receiver<Stop> {
        let mut receiver = self.0.subscribe();
        receiver.mark_changed();
        receiver
    }
}
