//! One request outside any run, on the same path as every measured request.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use inferometer_model::observations::Connections;
use inferometer_model::{Clock, PlannedRequest, Release, RequestId, RequestRecord};
use tokio::sync::watch;
use tokio::task::LocalSet;

use crate::bodies::body;
use crate::clock::SystemClock;
use crate::driver::{LoadError, runtime};
use crate::exchange::{Attempt, Departure, Exchanges};
use crate::target::Target;
use crate::wire::{DriverClock, Turn};

/// What the request brought.
#[derive(Clone, Debug)]
pub struct Probe {
    pub record: RequestRecord,
    /// How the server treats a connection after its answer.
    pub connections: Connections,
}

/// How long an idle connection is watched before it counts as kept open.
const KEEP_OPEN_WATCH: Duration = Duration::from_millis(200);

pub fn probe(
    target: &Arc<Target>,
    clock: SystemClock,
    prompt: &str,
    output_tokens: u32,
) -> Result<Probe, LoadError> {
    let turn = Turn::default();
    let runtime = runtime(clock, turn.clone())?;
    LocalSet::new().block_on(&runtime, async move {
        let (_keep, cut) = watch::channel(false);
        let clock = Rc::new(DriverClock::new(clock, turn));
        let now = clock.system.now();
        let request = PlannedRequest {
            id: RequestId(0),
            release: Release::At(now),
            think: std::time::Duration::ZERO,
            prompt_seed: 0,
            input_tokens: 0,
            output_tokens,
        };
        let body = body(target, prompt, output_tokens);
        let exchanges = Exchanges::new(Arc::clone(target), clock, cut);
        let departure = Departure { request, body, intended: now, admitted: now };
        let record = match exchanges.attempt(departure).await {
            Attempt::Ended(record) => *record,
            Attempt::NotSent(cause) => {
                return Err(LoadError::Start(io::Error::other(cause.text())));
            }
        };
        let keeps = exchanges.keeps_open(KEEP_OPEN_WATCH).await;
        let connections = if keeps { Connections::Reuse } else { Connections::New };
        Ok(Probe { record, connections })
    })
}
