//! What the user typed (`SpecDraft`), and all that will run (`Spec`). After `resolve` nobody
//! checks again.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::BaseUrl;
use crate::endpoint::Api;
use crate::observations::Connections;

/// Everything the user may leave out.
#[derive(Clone, Debug, Default)]
pub struct SpecDraft {
    /// `None` is the embedded engine.
    pub url: Option<BaseUrl>,
    pub api: Option<Api>,
    pub model: Option<String>,
    pub streaming: Option<bool>,
    pub concurrency: Option<u32>,
    pub rate_per_s: Option<f64>,
    pub arrivals: Option<Arrivals>,
    pub requests: Option<u64>,
    pub duration: Option<Duration>,
    pub input_tokens: Option<u32>,
    pub output_tokens: Option<u32>,
    pub seed: Option<u64>,
    /// `None` finds out whether the server keeps connections open.
    pub connections: Option<Connections>,
    pub limits: Limits,
    pub header_names: Vec<String>,
    pub metadata: BTreeMap<String, String>,
}

/// What will run: nothing optional changes a number. Saved beside the results; holds no secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    pub target: TargetSpec,
    pub api: Api,
    /// The model to ask for; `None` takes the first that the server lists (see the endpoint).
    pub model: Option<String>,
    pub workload: Workload,
    pub load: Load,
    pub seed: u64,
    /// `None` does as the server does (see the endpoint).
    pub connections: Option<Connections>,
    pub limits: Limits,
    /// Names only: values may be secret.
    pub header_names: Vec<String>,
    pub metadata: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetSpec {
    Embedded,
    Url(BaseUrl),
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    pub streaming: bool,
    pub input_tokens: u32,
    pub output_tokens: u32,
    /// Whether a prompt's length is exact or an estimate; without a tokenizer it is an estimate.
    pub input_length: LengthKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LengthKind {
    Estimated,
}

/// When it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    pub shape: LoadShape,
    pub extent: Extent,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadShape {
    Closed { concurrency: NonZeroU32 },
    Open { rate_per_s: f64, arrivals: Arrivals },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    Constant,
    Poisson,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    Requests(NonZeroU64),
    Duration(Duration),
}

/// How long we wait before we call it a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub connect: Duration,
    pub first_token: Duration,
    pub idle: Duration,
    pub total: Duration,
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_token: Duration::from_mins(2),
            idle: Duration::from_mins(1),
            total: Duration::from_mins(30),
            drain: Duration::from_secs(30),
        }
    }
}

impl Limits {
    fn check(&self) -> Result<(), SpecError> {
        for (name, limit) in [
            ("--connect-timeout", self.connect),
            ("--first-token-timeout", self.first_token),
            ("--idle-timeout", self.idle),
            ("--total-timeout", self.total),
        ] {
            if limit.is_zero() {
                return Err(SpecError::NoTime(name));
            }
        }
        Ok(())
    }
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SpecError {
    #[error(
        "--rate and --concurrency are both set: an open loop (--rate) sends on schedule whatever \
         is in flight, a closed loop (--concurrency) keeps a number in flight; set one"
    )]
    TwoShapes,
    #[error("--requests and --duration are both set; set one")]
    TwoExtents,
    #[error("--rate must be a number of requests per second above zero and at most {RATE_MAX}")]
    BadRate,
    #[error("--arrivals shapes an open loop; set --rate too, or leave --arrivals out")]
    ArrivalsWithoutRate,
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    #[error("{name} {value} is above the bound of {bound}")]
    TooLarge { name: &'static str, value: u64, bound: u64 },
    #[error("--duration must be longer than zero and at most {0:?}")]
    BadDuration(Duration),
    #[error("{0} must be longer than zero")]
    NoTime(&'static str),
    #[error("--model is empty; name a model, or leave it out to take the one the server lists")]
    EmptyModel,
}

/// Defaults: a run that says something about any server within a minute or so.
const CONCURRENCY: u32 = 8;
const REQUESTS: u64 = 100;
const INPUT_TOKENS: u32 = 512;
const OUTPUT_TOKENS: u32 = 128;
const SEED: u64 = 1;

/// Bounds that catch a slip of the finger before it fills memory or a disk.
const CONCURRENCY_MAX: u32 = 1_000_000;
const REQUESTS_MAX: u64 = 1_000_000_000;
const TOKENS_MAX: u32 = 16_000_000;
const RATE_MAX: f64 = 1e6;
/// One request in some eleven days: slower is a slip too.
const RATE_MIN: f64 = 1e-6;
const DURATION_MAX: Duration = Duration::from_hours(24 * 31);
/// Arrivals of an open loop are drawn beforehand, so their number is bounded.
const ARRIVALS_MAX: f64 = 1e8;

impl SpecDraft {
    pub fn resolve(self) -> Result<Spec, SpecError> {
        let shape = self.shape()?;
        let extent = self.extent()?;
        check_arrivals(shape, extent)?;
        let workload = Workload {
            streaming: self.streaming.unwrap_or(true),
            input_tokens: tokens("--input-tokens", self.input_tokens, INPUT_TOKENS)?,
            output_tokens: tokens("--output-tokens", self.output_tokens, OUTPUT_TOKENS)?,
            input_length: LengthKind::Estimated,
        };
        self.limits.check()?;
        if self.model.as_deref().is_some_and(|model| model.trim().is_empty()) {
            return Err(SpecError::EmptyModel);
        }
        Ok(Spec {
            target: self.url.map_or(TargetSpec::Embedded, TargetSpec::Url),
            api: self.api.unwrap_or(Api::Chat),
            model: self.model,
            workload,
            load: Load { shape, extent },
            seed: self.seed.unwrap_or(SEED),
            connections: self.connections,
            limits: self.limits,
            header_names: self.header_names,
            metadata: self.metadata,
        })
    }

    fn shape(&self) -> Result<LoadShape, SpecError> {
        match (self.rate_per_s, self.concurrency) {
            (Some(_), Some(_)) => Err(SpecError::TwoShapes),
            (Some(rate), None) if (RATE_MIN..=RATE_MAX).contains(&rate) => {
                let arrivals = self.arrivals.unwrap_or(Arrivals::Poisson);
                Ok(LoadShape::Open { rate_per_s: rate, arrivals })
            }
            (Some(_), None) => Err(SpecError::BadRate),
            (None, _) if self.arrivals.is_some() => Err(SpecError::ArrivalsWithoutRate),
            (None, concurrency) => {
                let slots = concurrency.unwrap_or(CONCURRENCY);
                let concurrency = NonZeroU32::new(slots).ok_or(SpecError::Zero("--concurrency"))?;
                at_most("--concurrency", slots.into(), CONCURRENCY_MAX.into())?;
                Ok(LoadShape::Closed { concurrency })
            }
        }
    }

    fn extent(&self) -> Result<Extent, SpecError> {
        match (self.requests, self.duration) {
            (Some(_), Some(_)) => Err(SpecError::TwoExtents),
            (None, Some(duration)) if duration.is_zero() || DURATION_MAX < duration => {
                Err(SpecError::BadDuration(DURATION_MAX))
            }
            (None, Some(duration)) => Ok(Extent::Duration(duration)),
            (requests, None) => {
                let requests = requests.unwrap_or(REQUESTS);
                at_most("--requests", requests, REQUESTS_MAX)?;
                NonZeroU64::new(requests).map(Extent::Requests).ok_or(SpecError::Zero("--requests"))
            }
        }
    }
}

fn tokens(name: &'static str, typed: Option<u32>, default: u32) -> Result<u32, SpecError> {
    match typed.unwrap_or(default) {
        0 => Err(SpecError::Zero(name)),
        count => at_most(name, count.into(), TOKENS_MAX.into()).map(|()| count),
    }
}

fn at_most(name: &'static str, value: u64, bound: u64) -> Result<(), SpecError> {
    if value <= bound { Ok(()) } else { Err(SpecError::TooLarge { name, value, bound }) }
}

fn check_arrivals(shape: LoadShape, extent: Extent) -> Result<(), SpecError> {
    let LoadShape::Open { rate_per_s, .. } = shape else { return Ok(()) };
    let expected = match extent {
        Extent::Requests(requests) => requests.get() as f64,
        Extent::Duration(duration) => rate_per_s * duration.as_secs_f64(),
    };
    if expected <= ARRIVALS_MAX {
        return Ok(());
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "shown in a message, and bounded by the rate and the duration"
    )]
    Err(SpecError::TooLarge {
        name: "the number of requests (--rate × --duration)",
        value: expected as u64,
        bound: ARRIVALS_MAX as u64,
    })
}

impl Spec {
    pub fn is_open_loop(&self) -> bool {
        matches!(self.load.shape, LoadShape::Open { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_arguments_give_a_whole_spec() {
        let spec = SpecDraft::default().resolve().unwrap();
        assert_eq!(spec.target, TargetSpec::Embedded);
        assert_eq!(spec.load.shape, LoadShape::Closed { concurrency: NonZeroU32::new(8).unwrap() });
        assert!(spec.workload.streaming);
    }

    #[test]
    fn contradictions_and_nonsense_are_refused_by_name() {
        let refused = |draft: SpecDraft| draft.resolve().unwrap_err();
        let draft = SpecDraft::default;
        assert_eq!(
            refused(SpecDraft { rate_per_s: Some(1.0), concurrency: Some(1), ..draft() }),
            SpecError::TwoShapes
        );
        assert_eq!(
            refused(SpecDraft {
                requests: Some(1),
                duration: Some(Duration::from_secs(1)),
                ..draft()
            }),
            SpecError::TwoExtents
        );
        for rate in [0.0, -1.0, f64::INFINITY, f64::NAN, 1e9, 1e-300] {
            assert_eq!(
                refused(SpecDraft { rate_per_s: Some(rate), ..draft() }),
                SpecError::BadRate
            );
        }
        let limits = Limits { total: Duration::ZERO, ..Limits::default() };
        assert_eq!(refused(SpecDraft { limits, ..draft() }), SpecError::NoTime("--total-timeout"));
        assert_eq!(
            refused(SpecDraft { concurrency: Some(0), ..draft() }),
            SpecError::Zero("--concurrency")
        );
        assert_eq!(
            refused(SpecDraft { arrivals: Some(Arrivals::Constant), ..draft() }),
            SpecError::ArrivalsWithoutRate
        );
        assert_eq!(
            refused(SpecDraft { input_tokens: Some(0), ..draft() }),
            SpecError::Zero("--input-tokens")
        );
        assert_eq!(
            refused(SpecDraft { model: Some(" ".into()), ..draft() }),
            SpecError::EmptyModel
        );
    }
}
