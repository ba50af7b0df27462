//! How fast single requests were served: the tokens of each over its own time.
//!
//! A throughput is of all requests together and grows with the load; these say what one user sees,
//! and fall with it. The time of a request is from its sending to its last output, so that reading
//! the prompt and waiting for it count in both.

use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::statistics::runs::mean;
use crate::statistics::series::{Cluster, mean_interval};

/// Means over `ok` requests with output, in tokens per second; null without one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestRates {
    pub generation_tps: Option<Estimate>,
    pub prompt_tps: Option<Estimate>,
}

/// What grows while the records are read, in the order of time.
#[derive(Debug, Default)]
pub(crate) struct RequestRatesTally {
    generation: Vec<f64>,
    prompt: Vec<f64>,
}

impl RequestRatesTally {
    pub(crate) fn add_ok(&mut self, e2e_ms: Option<f64>, input_tokens: u64, output_tokens: u64) {
        let Some(seconds) = e2e_ms.filter(|ms| 0.0 < *ms).map(|ms| ms / 1e3) else { return };
        self.prompt.push(input_tokens as f64 / seconds);
        if 0 < output_tokens {
            self.generation.push(output_tokens as f64 / seconds);
        }
    }

    pub(crate) fn finish(&self) -> RequestRates {
        RequestRates {
            generation_tps: estimate(&self.generation),
            prompt_tps: estimate(&self.prompt),
        }
    }
}

fn estimate(rates: &[f64]) -> Option<Estimate> {
    if rates.is_empty() {
        return None;
    }
    let clusters: Vec<Cluster> = rates.iter().copied().map(Cluster::of).collect();
    let judged = mean_interval(&clusters);
    Some(Estimate {
        value: mean(rates),
        interval: judged
            .and_then(|judged| judged.interval)
            .map(|interval| interval.clamped(0.0, f64::INFINITY)),
        n: rates.len() as u64,
        effective_n: judged.map(|judged| judged.effective_n),
        certified: true,
    })
}

#[cfg(test)]
mod tests {
    use crate::fixture::{Given, run};
    use crate::summary::summarize;

    #[test]
    fn a_request_counts_by_its_own_time_and_failures_do_not_count() {
        let ok = |id: u64, end: u64, tokens: u64| {
            Given::ok(id)
                .moments(0, 0, 0)
                .arrival(10, &[Some(1)])
                .arrival(end, &[Some(1)])
                .usage(100, tokens)
                .record()
        };
        let fast_failure = Given::failed(2, inferometer_model::Outcome::Truncated)
            .moments(0, 0, 0)
            .arrival(1, &[Some(1)])
            .usage(100, 1)
            .record();
        let rates = summarize(&run(vec![ok(0, 1_000, 50), ok(1, 2_000, 50), fast_failure]));
        let rates = rates.request_rates;
        let (generation, prompt) = (rates.generation_tps.unwrap(), rates.prompt_tps.unwrap());
        // 50 tokens in one second and in two: 50 and 25. Not 100 tokens in three seconds.
        assert!((generation.value - 37.5).abs() < 1e-9, "{generation:?}");
        assert!((prompt.value - 75.0).abs() < 1e-9, "{prompt:?}");
        assert_eq!((generation.n, prompt.n), (2, 2));
    }

    #[test]
    fn nothing_has_no_rate() {
        let summary = summarize(&run(Vec::new()));
        assert_eq!(summary.request_rates, super::RequestRates::default());
    }
}
