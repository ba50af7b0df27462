//! One request outside any run, on the same path as every measured request.

use std::future::Future;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use inferometer_model::observations::Connections;
use inferometer_model::{Clock, Content, PlannedRequest, Release, RequestId, RequestRecord};

use tokio::task::LocalSet;

use crate::answer::Failure;
use crate::bodies::body;
use crate::clock::SystemClock;
use crate::deadline::Deadline;
use crate::dispatcher::Departure;
use crate::drive::LoadError;
use crate::driver::runtime;
use crate::exchange::Exchanges;
use crate::flight::Flight;
use crate::landings::Landed;
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
    content: &Content,
    output_tokens: u32,
) -> Result<Probe, LoadError> {
    let turn = Turn::default();
    let runtime = runtime(clock, turn.clone())?;
    LocalSet::new().block_on(&runtime, async move {
        let clock = Rc::new(DriverClock::new(clock, turn));
        let now = clock.system.now();
        let alone = PlannedRequest::alone(RequestId(0), Release::At(now));
        let request = PlannedRequest { input_tokens: 0, output_tokens, ..alone };
        let body = body(target, content, &[], output_tokens);
        let model = content.model.as_deref().map(Arc::from);
        let exchanges = Exchanges::new(Arc::clone(target), clock, 0, 1);
        let departure = Departure { request, intended: now, admitted: now, slot: None };
        let flight = Flight::new(departure, model);
        let failure = attempt_within_limits(&exchanges, &flight, body).await;
        let record = match exchanges.landed(&flight, failure) {
            Landed::Ended(record) => *record,
            Landed::NotSent(cause) => {
                return Err(LoadError::Start(io::Error::other(cause.text())));
            }
            Landed::Panicked => return Err(LoadError::Task(request.id)),
        };
        let keeps = exchanges.keeps_open(KEEP_OPEN_WATCH).await;
        let connections = if keeps { Connections::Reuse } else { Connections::New };
        Ok(Probe { record, connections })
    })
}

/// The attempt, under the limits that a driver would keep.
async fn attempt_within_limits(
    exchanges: &Exchanges,
    flight: &Flight,
    body: Bytes,
) -> Option<Failure> {
    let target = &exchanges.target;
    let next_limit = || flight.standing(target.streams()).next_limit(&target.limits);
    let mut deadline = Deadline::new(exchanges.clock.system, next_limit().0);
    let mut attempt = std::pin::pin!(exchanges.attempt(flight, body));
    std::future::poll_fn(|cx| {
        if let Poll::Ready(failure) = attempt.as_mut().poll(cx) {
            return Poll::Ready(failure);
        }
        deadline
            .poll_passed(cx, next_limit)
            .map(|outcome| Some(Failure { outcome, cause: None, message: None }))
    })
    .await
}
