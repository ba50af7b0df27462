//! What the engine knows of its answers, as the numbers that a client should have found.

use serde::Deserialize;

use super::statistics::{mean, percentiles};
use super::tool::{GapMeaning, Percentiles};

/// The part of `GET /truth` that is needed here.
///
/// The chores depend on no crate of the product, so that they build when it does not.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Truth {
    requests: Vec<RequestTruth>,
    requests_dropped: u64,
    writes_dropped: u64,
    lateness: LatenessTruth,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct LatenessTruth {
    p99_ns: Option<u64>,
}

#[derive(Clone, Debug, Deserialize)]
struct RequestTruth {
    received_kernel_ns: Option<u64>,
    received_user_ns: u64,
    tokens: u32,
    writes: Vec<WriteTruth>,
    ended: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct WriteTruth {
    before_ns: u64,
    after_ns: u64,
    tokens: u32,
}

/// What a client should have reported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TrueTimes {
    pub(crate) requests: usize,
    pub(crate) ttft_ms: Percentiles,
    pub(crate) itl_ms: Percentiles,
    /// Requests that were open at once, on average, while the client was still sending new ones.
    pub(crate) in_flight: f64,
    /// How long after their due moments the engine made its writes.
    pub(crate) engine_late_ms_p99: Option<f64>,
}

impl Truth {
    /// The times of all complete answers of `tokens` tokens; a tool's own probes are shorter.
    pub(crate) fn times(&self, tokens: u32, meaning: GapMeaning) -> Result<TrueTimes, String> {
        if 0 < self.requests_dropped + self.writes_dropped {
            return Err("the engine could not keep the whole truth".to_owned());
        }
        let answers: Vec<&RequestTruth> = self
            .requests
            .iter()
            .filter(|request| request.tokens == tokens && request.ended == "complete")
            .collect();
        let ttfts: Vec<f64> = answers.iter().filter_map(|answer| answer.ttft_ms()).collect();
        let gaps: Vec<f64> = match meaning {
            GapMeaning::EachGap => answers.iter().flat_map(|answer| answer.gaps_ms()).collect(),
            GapMeaning::MeanOfAnswer => {
                answers.iter().filter_map(|answer| mean(&answer.gaps_ms())).collect()
            }
        };
        let nothing = || "the engine saw no complete answer".to_owned();
        Ok(TrueTimes {
            requests: answers.len(),
            ttft_ms: percentiles(ttfts).ok_or_else(nothing)?,
            itl_ms: percentiles(gaps).ok_or_else(nothing)?,
            in_flight: in_flight(&answers).ok_or_else(nothing)?,
            engine_late_ms_p99: self.lateness.p99_ns.map(|late_ns| milliseconds(0, late_ns)),
        })
    }
}

impl RequestTruth {
    fn received_ns(&self) -> u64 {
        self.received_kernel_ns.unwrap_or(self.received_user_ns)
    }

    fn token_moments(&self) -> Vec<u64> {
        let writes = self.writes.iter().filter(|write| 0 < write.tokens);
        writes.map(|write| write.before_ns).collect()
    }

    fn ttft_ms(&self) -> Option<f64> {
        Some(milliseconds(self.received_ns(), *self.token_moments().first()?))
    }

    fn gaps_ms(&self) -> Vec<f64> {
        self.token_moments().windows(2).map(|pair| milliseconds(pair[0], pair[1])).collect()
    }

    fn ended_ns(&self) -> u64 {
        self.writes.last().map_or(self.received_ns(), |write| write.after_ns)
    }
}

/// Averaged from the first request to the last one: after that no client could add another.
fn in_flight(answers: &[&RequestTruth]) -> Option<f64> {
    let first = answers.iter().map(|answer| answer.received_ns()).min()?;
    let last = answers.iter().map(|answer| answer.received_ns()).max()?;
    let open: u64 = answers
        .iter()
        .map(|answer| answer.ended_ns().min(last).saturating_sub(answer.received_ns()))
        .sum();
    Some(open as f64 / (last - first).max(1) as f64)
}

fn milliseconds(from_ns: u64, to_ns: u64) -> f64 {
    to_ns.saturating_sub(from_ns) as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn answer(received_ms: u64, gap_ms: u64) -> RequestTruth {
        let writes = (0..3).map(|token| {
            let before_ns = (received_ms + 100 + token * gap_ms) * MS;
            WriteTruth { before_ns, after_ns: before_ns, tokens: 1 }
        });
        RequestTruth {
            received_kernel_ns: Some(received_ms * MS),
            received_user_ns: 0,
            tokens: 3,
            writes: writes.collect(),
            ended: "complete".to_owned(),
        }
    }

    fn truth(requests: Vec<RequestTruth>) -> Truth {
        Truth {
            requests,
            requests_dropped: 0,
            writes_dropped: 0,
            lateness: LatenessTruth::default(),
        }
    }

    #[test]
    fn the_truth_is_writes_less_arrivals() {
        let times =
            truth(vec![answer(0, 10), answer(120, 30)]).times(3, GapMeaning::EachGap).unwrap();
        assert_eq!(times.requests, 2);
        assert_eq!(times.ttft_ms, Percentiles { p50: 100.0, p99: 100.0 });
        // Gaps of 10, 10, 30 and 30 ms.
        assert!((times.itl_ms.p50 - 20.0).abs() < 1e-9);
        // The first answer was open all the 120 ms until the second arrived.
        assert!((times.in_flight - 1.0).abs() < 1e-9);
    }

    #[test]
    fn answers_of_another_length_are_not_of_the_run() {
        let error = truth(vec![answer(0, 10)]).times(100, GapMeaning::MeanOfAnswer).unwrap_err();
        assert_eq!(error, "the engine saw no complete answer");
    }
}
