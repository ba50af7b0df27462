//! The engine's truth in the words of the analysis, on the clock of the run.
//!
//! Client and engine read the same `CLOCK_MONOTONIC`, so the zero of the run's clock is all that
//! lies between them.

use inferometer_analysis::calibration::TrueAnswer;
use inferometer_engine::truth::{RequestTruth, Truth};
use inferometer_load::SystemClock;
use inferometer_model::{Moment, RequestId};

use super::server::REQUEST_ID_PREFIX;

/// Requests of others, and what lies before the run's zero, are passed over.
pub(super) fn answers(truth: &Truth, clock: SystemClock) -> Vec<TrueAnswer> {
    let zero_ns = clock.anchor().monotonic_ns;
    truth.requests.iter().filter_map(|request| answer(request, zero_ns)).collect()
}

fn answer(request: &RequestTruth, zero_ns: u64) -> Option<TrueAnswer> {
    let moment = |ns: u64| ns.checked_sub(zero_ns).map(Moment::from_nanos);
    let id = request.request_id.as_deref()?.strip_prefix(REQUEST_ID_PREFIX)?;
    let id = id.strip_prefix('-')?.parse().ok()?;
    let received = moment(request.received_kernel_ns.unwrap_or(request.received_user_ns))?;
    let events: Option<Vec<Moment>> = request
        .writes
        .iter()
        .flat_map(|write| std::iter::repeat_n(moment(write.before_ns), write.events as usize))
        .collect();
    Some(TrueAnswer { id: RequestId(id), received, events: events? })
}

#[cfg(test)]
mod tests {
    use inferometer_engine::truth::{Api, Ended, WriteTruth};

    use super::*;

    fn request(id: &str) -> RequestTruth {
        let write = |before_ns, events| WriteTruth {
            due_ns: None,
            before_ns,
            after_ns: before_ns + 5,
            bytes: 100,
            events,
            tokens: events,
        };
        RequestTruth {
            ordinal: 0,
            request_id: Some(id.to_owned()),
            api: Api::Chat,
            streamed: true,
            received_kernel_ns: Some(1_100),
            received_mapping_error_ns: Some(1),
            received_user_ns: 1_150,
            prompt_tokens: 1,
            tokens: 3,
            writes: vec![write(1_200, 1), write(1_250, 0), write(1_300, 2)],
            ended: Ended::Complete,
        }
    }

    #[test]
    fn every_event_has_the_moment_of_its_write() {
        let found = answer(&request("inferometer-calibration-7"), 1_000).unwrap();
        let events = [200, 300, 300].map(Moment::from_nanos).to_vec();
        let received = Moment::from_nanos(100);
        assert_eq!(found, TrueAnswer { id: RequestId(7), received, events });
    }

    #[test]
    fn what_is_not_of_this_run_is_passed_over() {
        assert_eq!(answer(&request("inferometer-probe-7"), 1_000), None);
        assert_eq!(answer(&request("inferometer-calibration-7"), 1_150), None);
    }
}
