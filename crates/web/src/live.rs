//! Runs that are going on, as a stream of events: one reader for each run, whoever watches it.
//!
//! A reader looks at what the measuring process has written, at most twice a second, and keeps the
//! newest figures only; a slow browser misses some of them. It ends with its last watcher.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use axum::body::Body;
use bytes::Bytes;
use http_body::Frame;
use inferometer_runner::{Event, RunFollower};
use inferometer_store::{RunDirectory, RunState, Stored};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};

/// Browsers that watch at once.
const WATCHERS_MAX: usize = 32;
/// Time between two looks.
const PERIOD: Duration = Duration::from_millis(500);

/// The newest event, as JSON; empty before the first.
pub(crate) type Newest = watch::Receiver<String>;

#[derive(Clone, Debug)]
pub(crate) struct Live {
    watchers: Arc<Semaphore>,
    followed: Arc<Mutex<BTreeMap<String, watch::Sender<String>>>>,
}

impl Live {
    pub(crate) fn new() -> Self {
        Self { watchers: Arc::new(Semaphore::new(WATCHERS_MAX)), followed: Arc::default() }
    }

    /// `None` where too many are watching.
    pub(crate) fn admit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.watchers).try_acquire_owned().ok()
    }

    /// Follows a run, or whichever run of a set is going on.
    pub(crate) fn follow(&self, found: Stored) -> Newest {
        let id = found.id().to_owned();
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = followed.get(&id) {
            return known.subscribe();
        }
        let (sender, newest) = watch::channel(String::new());
        followed.insert(id.clone(), sender.clone());
        let all = Arc::clone(&self.followed);
        tokio::spawn(async move {
            follow(found, &sender).await;
            all.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        });
        newest
    }
}

/// Until the run has ended or nobody watches.
async fn follow(found: Stored, sender: &watch::Sender<String>) {
    let mut follower = Follower { found, current: None };
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if sender.receiver_count() == 0 {
            return;
        }
        let step = tokio::task::spawn_blocking(move || {
            let event = follower.step();
            (follower, event)
        });
        let Ok((next, event)) = step.await else { return };
        follower = next;
        let is_over = event["event"] == ENDED;
        sender.send_replace(event.to_string());
        if is_over {
            return;
        }
    }
}

const ENDED: &str = "ended";

struct Follower {
    found: Stored,
    /// The run that is followed now.
    current: Option<(String, RunFollower)>,
}

impl Follower {
    fn step(&mut self) -> Value {
        let directory = match self.phase() {
            Phase::Ended => return json!({ "event": ENDED, "text": "it has ended" }),
            Phase::Waiting => return json!({ "event": "waiting", "text": "no run has begun yet" }),
            Phase::Going(directory) => directory,
        };
        let id = directory.id().to_owned();
        if self.current.as_ref().is_none_or(|(known, _)| *known != id) {
            match RunFollower::open(directory) {
                Ok(follower) => self.current = Some((id.clone(), follower)),
                Err(error) => return json!({ "event": "waiting", "text": error.to_string() }),
            }
        }
        let Some((_, follower)) = &mut self.current else { return Value::Null };
        match follower.step(wall_time_ns()) {
            Ok(tick) => {
                let mut event = Event::Progress(Box::new(tick)).to_json();
                event["run"] = id.into();
                event
            }
            Err(error) => json!({ "event": "waiting", "text": error.to_string() }),
        }
    }

    fn phase(&self) -> Phase {
        match &self.found {
            Stored::Run(run) if run.state() == RunState::Running => Phase::Going(run.clone()),
            Stored::Set(set) if set.state() == RunState::Running => {
                let points = set.points().unwrap_or_default();
                points.last().map_or(Phase::Waiting, |number| Phase::Going(set.point(*number)))
            }
            Stored::Run(_) | Stored::Set(_) | Stored::Import(..) => Phase::Ended,
        }
    }
}

/// How far a run or a set is.
enum Phase {
    /// A set without a run.
    Waiting,
    /// Between two runs of a set this is the last one.
    Going(RunDirectory),
    Ended,
}

#[expect(clippy::disallowed_methods, reason = "the age of a run that another process measures")]
fn wall_time_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The body of an answer that goes on: each event as it comes, or the newest of those that a slow
/// reader missed. It ends with the sender of the events.
pub(crate) fn stream(mut newest: Newest, permit: OwnedSemaphorePermit) -> Body {
    let (sender, received) = mpsc::channel(1);
    tokio::spawn(async move {
        let _permit = permit;
        let mut pulse = interval(Duration::from_secs(10));
        let mut pace = interval(PERIOD);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            pace.tick().await;
            let event = newest.borrow_and_update().clone();
            // A comment shows whether the browser is still there.
            let text =
                if event.is_empty() { ":\n\n".to_owned() } else { format!("data: {event}\n\n") };
            let is_gone = sender.send(Bytes::from(text)).await.is_err();
            if is_gone || event.contains(&format!("\"event\":\"{ENDED}\"")) {
                return;
            }
            tokio::select! {
                changed = newest.changed() => if changed.is_err() { return },
                _ = pulse.tick() => {}
                () = sender.closed() => return,
            }
        }
    });
    body(received)
}

/// A body of the parts that a channel brings.
pub(crate) fn body(parts: mpsc::Receiver<Bytes>) -> Body {
    Body::new(ChannelBody(parts))
}

struct ChannelBody(mpsc::Receiver<Bytes>);

impl http_body::Body for ChannelBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|part| part.map(|part| Ok(Frame::data(part))))
    }
}
