//! The single numbers of a run, each from what was measured, or why there is none.

use inferometer_model::spec::LoadShape;

use super::{Measured, NOT_STREAMED};
use crate::estimate::Interval;
use crate::metric::{self, Metric, Missing, NOTHING_OK, NOTHING_SENT};
use crate::server::{CounterFigures, ServerSide};
use crate::slos::{RequestSlo, RequestSlos};
use crate::tokens::NO_TOKENS;

impl Measured {
    pub(crate) fn request_throughput(&self) -> Result<f64, Missing> {
        self.per_second(self.ok as f64)
    }

    pub(crate) fn input_throughput(&self) -> Result<f64, Missing> {
        self.per_second(self.tokens.input_total as f64)
    }

    pub(crate) fn output_throughput(&self) -> Result<f64, Missing> {
        self.generated()?;
        self.per_second(self.tokens.output_total as f64)
    }

    pub(crate) fn total_throughput(&self) -> Result<f64, Missing> {
        self.generated()?;
        self.per_second(self.tokens.input_total as f64 + self.tokens.output_total as f64)
    }

    pub(crate) fn per_user_throughput(&self) -> Result<f64, Missing> {
        self.generated()?;
        match &self.shape {
            LoadShape::Closed { concurrency, .. } => {
                Ok(self.output_throughput()? / f64::from(concurrency.get()))
            }
            LoadShape::Open { .. } => {
                Err(Missing("an open loop has no fixed number of users to share among"))
            }
        }
    }

    pub(crate) fn per_user_interval(&self) -> Option<Interval> {
        let LoadShape::Closed { concurrency, .. } = &self.shape else { return None };
        let (Interval { low, high }, users) = (self.doubt.output?, f64::from(concurrency.get()));
        Interval::new(low / users, high / users)
    }

    pub(crate) fn peak_output_throughput(&self) -> Result<f64, Missing> {
        self.generated()?;
        if self.ok == 0 {
            return Err(NOTHING_OK);
        }
        let tokens = self.busiest_second.ok_or(Missing("no ok answer carried output"))?;
        if self.extremes.window().duration_s.is_none_or(|seconds| seconds < 1.0) {
            return Err(Missing("the run was shorter than the second that a peak is taken over"));
        }
        Ok(tokens as f64)
    }

    pub(crate) fn concurrency_mean(&self) -> Result<f64, Missing> {
        let concurrency = self.concurrency.ok_or(NOTHING_SENT)?;
        let duration_ns = self.extremes.duration_ns().filter(|ns| 0 < *ns).ok_or(NO_TIME)?;
        Ok(concurrency.request_ns as f64 / duration_ns as f64)
    }

    pub(crate) fn concurrency_peak(&self) -> Result<f64, Missing> {
        Ok(self.concurrency.ok_or(NOTHING_SENT)?.peak as f64)
    }

    pub(crate) fn error_rate(&self) -> Result<f64, Missing> {
        match self.attempted {
            0 => Err(Missing("no request was attempted")),
            attempted => Ok((attempted - self.ok) as f64 / attempted as f64),
        }
    }

    pub(crate) fn goodput(&self) -> Result<f64, Missing> {
        let slos = self.request_slos.as_ref().ok_or(NO_SLO)?;
        self.can_be_kept(slos)?;
        self.per_second(slos.met as f64)
    }

    pub(crate) fn attainment(&self) -> Result<f64, Missing> {
        let slos = self.request_slos.as_ref().ok_or(NO_SLO)?;
        self.can_be_kept(slos)?;
        match slos.scheduled {
            0 => Err(Missing("no request was scheduled")),
            scheduled => Ok(slos.met as f64 / scheduled as f64),
        }
    }

    pub(crate) fn fluidity(&self) -> Result<f64, Missing> {
        self.generated()?;
        if self.streaming { self.fluidity.share } else { Err(NOT_STREAMED) }
    }

    /// What no answer could show was neither kept nor broken.
    fn can_be_kept(&self, slos: &RequestSlos) -> Result<(), Missing> {
        slos.promises.iter().find_map(|slo| self.unseen(slo)).map_or(Ok(()), Err)
    }

    /// Why no `ok` answer shows what was promised of each, if that is so. A promise that was kept
    /// without a value was kept by answers that had nothing to break it with.
    pub(crate) fn unseen(&self, slo: &RequestSlo) -> Option<Missing> {
        if self.ok == 0 || 0 < slo.met {
            return None;
        }
        Metric::named(&slo.metric)?.distribution(self)?.err()
    }

    pub(crate) fn prefill_speed(&self) -> Result<f64, Missing> {
        let no_ttft = Missing("there is no TTFT to divide by");
        let ttft = self.series(&metric::TTFT).found.as_ref().map_err(|_| no_ttft)?;
        let input_mean = self.prefilled as f64 / ttft.n as f64;
        ttft.mean.and_then(|mean| per_ms(input_mean, mean)).ok_or(no_ttft)
    }

    pub(crate) fn decode_speed(&self) -> Result<f64, Missing> {
        self.generated()?;
        let no_tpot = Missing("there is no TPOT to invert");
        let mean = self.series(&metric::TPOT).found.as_ref().ok().and_then(|tpot| tpot.mean);
        mean.and_then(|mean| per_ms(1.0, mean)).ok_or(no_tpot)
    }

    pub(crate) fn server_prompt_throughput(&self) -> Result<f64, Missing> {
        self.server_rate(|server| server.prompt_tokens)
    }

    pub(crate) fn server_generation_throughput(&self) -> Result<f64, Missing> {
        self.server_rate(|server| server.generation_tokens)
    }

    pub(crate) fn gpu_power(&self) -> Result<f64, Missing> {
        Ok(self.machines.energy_j? / self.extremes.duration_s().ok_or(NO_TIME)?)
    }

    pub(crate) fn energy_per_output_token(&self) -> Result<f64, Missing> {
        Ok(self.machines.energy_j? / self.output_tokens()?)
    }

    pub(crate) fn output_tokens_per_joule(&self) -> Result<f64, Missing> {
        Ok(self.output_tokens()? / self.machines.energy_j?)
    }

    fn output_tokens(&self) -> Result<f64, Missing> {
        self.generated()?;
        match self.tokens.output_total {
            _ if self.ok == 0 => Err(NOTHING_OK),
            0 => Err(Missing("no ok answer carried output")),
            tokens => Ok(tokens as f64),
        }
    }

    fn server_rate(
        &self,
        counter: fn(&ServerSide) -> Option<CounterFigures>,
    ) -> Result<f64, Missing> {
        let server = self.server.as_ref().map_err(|_| NO_METRICS)?;
        let untold = Missing("the server's counter is not known before and after the run");
        counter(server).and_then(|found| found.per_s).ok_or(untold)
    }

    fn generated(&self) -> Result<(), Missing> {
        if self.generates { Ok(()) } else { Err(NO_TOKENS) }
    }

    fn per_second(&self, count: f64) -> Result<f64, Missing> {
        if self.ok == 0 {
            return Err(NOTHING_OK);
        }
        Ok(count / self.extremes.duration_s().ok_or(NO_TIME)?)
    }
}

/// A speed per second, or `None` without time to divide by.
fn per_ms(count: f64, ms: f64) -> Option<f64> {
    (0.0 < ms).then(|| count / (ms / 1e3))
}

const NO_SLO: Missing = Missing("no SLO was set for each request");
const NO_METRICS: Missing = Missing("nothing is known of the server's metrics");
const NO_TIME: Missing = Missing("the window has no length");
