//! The facts of a run that its summary repeats.

use std::collections::BTreeMap;

use inferometer_model::Observations;
use inferometer_model::endpoint::Api;
use inferometer_model::journal::RunStop;
use inferometer_model::observations::{
    FileFacts, HttpVersion, InputLength, Simulated, TokenizerFacts,
};
use inferometer_model::spec::{
    Adapters, Arrivals, Counting, Extent, Images, Lengths, Load, LoadShape, Media, RampCurve, Rate,
    Replay, SharedPrefix, Source, SourceKind, Think, Ticks,
};
use inferometer_model::system::{Machine, ServerFacts};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::audit::Audit;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, named in JSON")]
pub struct RunFacts {
    pub id: String,
    /// RFC 3339, UTC.
    pub started: String,
    pub tool_version: String,
    /// The server's base URL.
    pub target: String,
    pub embedded: bool,
    /// The simulated engine; absent for a run that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<Simulated>,
    /// How many times faster than its profile the embedded engine ran; absent where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_speed: Option<f64>,
    pub model: String,
    pub api: Api,
    pub streaming: bool,
    pub http: HttpVersion,
    /// The server's certificate was not verified.
    pub insecure: bool,
    pub seed: u64,
    pub load: LoadFacts,
    pub extent: ExtentFacts,
    /// `None` when nothing was sent before the run.
    pub warm_up: Option<WarmUpFacts>,
    pub stop: RunStop,
    /// Whether the run did not complete its plan.
    pub partial: bool,
    pub metadata: BTreeMap<String, String>,
    /// The command that measured it, without secrets; absent where a program used the library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Hash of `manifest.json`: most of what it holds changes no number, and a change is noticed all the
    /// same. Absent for a run that was never stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_checksum: Option<String>,
}

/// The requested workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkloadFacts {
    /// Without the seed: runs are comparable when it is equal.
    pub fingerprint: String,
    /// Where prompts came from.
    pub source: SourceKind,
    /// As requested; null where the data defines it. A number, or a distribution such as `512±20%`.
    pub input_tokens: Option<Lengths>,
    /// Null, too, where an API generates none.
    pub output_tokens: Option<Lengths>,
    /// Turns of a conversation; null where there are none.
    pub turns: Option<Lengths>,
    /// Whether the length of a chat prompt counts its text alone.
    pub counting: Counting,
    /// Think time between turns; null where there are none.
    pub turn_think: Option<ThinkFacts>,
    /// Beginnings that prompts share; null without.
    pub prefix: Option<SharedPrefix>,
    /// On every prompt; null without.
    pub images: Option<Images>,
    /// Several sizes of pictures, files of them, and recordings; left out where there are none.
    #[serde(default, skip_serializing_if = "Media::is_plain")]
    pub media: Media,
    pub adapters: Option<Adapters>,
    /// Additional fields of every request body.
    pub fields: Map<String, Value>,
    pub input_length: InputLength,
    pub tokenizer: Option<TokenizerFacts>,
    pub files: Vec<FileFacts>,
    /// What was done to the data.
    pub notes: Vec<String>,
    /// Planned lengths against the server's counts.
    pub audit: Audit,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanFacts {
    /// With the seed: runs had the same stimulus when it is equal.
    pub fingerprint: String,
}

impl RunFacts {
    pub(crate) fn from_observations(observations: &Observations) -> Self {
        let manifest = &observations.manifest;
        let speed = manifest.spec.engine.speed.filter(|_| manifest.endpoint.embedded);
        Self {
            id: manifest.run.clone(),
            started: manifest.started.clone(),
            tool_version: manifest.environment.tool_version.clone(),
            target: manifest.endpoint.base.to_string(),
            embedded: manifest.endpoint.embedded,
            engine_speed: speed.filter(|speed| (speed - 1.0).abs() > f64::EPSILON),
            simulated: manifest.simulated.clone(),
            model: manifest.endpoint.model.clone(),
            api: manifest.spec.api,
            streaming: manifest.spec.workload.streaming,
            http: manifest.spec.client.http,
            insecure: manifest.spec.client.insecure,
            seed: manifest.spec.seed,
            load: LoadFacts::new(&manifest.spec.load),
            extent: ExtentFacts::new(manifest.spec.load.extent),
            warm_up: manifest.warm_up.map(|facts| WarmUpFacts {
                requests: facts.requests,
                ok: facts.ok,
                failed: facts.failed,
                took_s: facts.took.as_secs_f64(),
            }),
            stop: observations.ending.stop,
            partial: observations.ending.stop.is_partial(),
            metadata: manifest.spec.metadata.clone(),
            command: manifest.environment.command.clone(),
            manifest_checksum: observations
                .manifest_checksum
                .map(|sum| format!("crc32c:{sum:08x}")),
        }
    }
}

impl WorkloadFacts {
    pub(crate) fn from_observations(observations: &Observations, audit: Audit) -> Self {
        let manifest = &observations.manifest;
        let source = &manifest.spec.workload.source;
        let materials = &manifest.materials;
        let (input_tokens, output_tokens) = asked_lengths(source);
        let output_tokens = output_tokens.filter(|_| manifest.spec.api.generates());
        let talk = if let Source::Conversations(talk) = source { Some(talk) } else { None };
        let body = &manifest.spec.workload.body;
        Self {
            fingerprint: observations.manifest.fingerprints.workload.clone(),
            source: source.kind(),
            input_tokens,
            output_tokens,
            turns: talk.map(|talk| talk.turns.clone()),
            turn_think: talk.map(|talk| ThinkFacts::new(talk.think)),
            prefix: if let Source::Synthetic(spec) = source {
                spec.prefix
            } else {
                talk.and_then(|talk| talk.prefix)
            },
            counting: manifest.spec.workload.counting,
            images: body.images,
            media: body.media.clone(),
            adapters: body.adapters.clone(),
            fields: body.fields.clone(),
            input_length: materials.input_length,
            tokenizer: materials.tokenizer.clone(),
            files: materials.files.clone(),
            notes: materials.notes.clone(),
            audit,
        }
    }
}

/// The requested lengths of prompts and answers, as far as the workload defines them.
pub(crate) fn asked_lengths(source: &Source) -> (Option<Lengths>, Option<Lengths>) {
    match source {
        Source::Synthetic(spec) => (Some(spec.input.clone()), Some(spec.output.clone())),
        Source::VllmRandom(spec) => (Some(spec.input.clone()), Some(spec.output.clone())),
        Source::Conversations(spec) => (Some(spec.input.clone()), Some(spec.output.clone())),
        Source::Agents(spec) => (Some(spec.task.clone()), Some(spec.output.clone())),
        Source::Dataset(spec) => (spec.input.clone(), spec.output.clone()),
        Source::Fixed(spec) => (None, Some(spec.output.clone())),
        Source::Trace(_) | Source::Sessions(_) | Source::Mix(_) | Source::Saved { .. } => {
            (None, None)
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LoadFacts {
    /// A fixed number of requests in flight.
    Closed {
        concurrency: u32,
        think: ThinkFacts,
        /// The time over which the first requests were spread; absent where they were sent at once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ramp_up_s: Option<f64>,
    },
    /// With a cap it is capped-open.
    Open { rate: RateFacts, arrivals: Arrivals, max_concurrency: Option<u32> },
}

/// Think time of a slot after each reply.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ThinkFacts {
    None,
    Fixed { time_s: f64 },
    Exponential { mean_s: f64 },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RateFacts {
    /// The same rate all the time.
    Steady { per_s: f64 },
    /// One segment after another.
    Ramp { segments: Vec<RampSegmentFacts>, curve: RampCurve },
    /// Everything at the start.
    Unlimited,
    /// At the timestamps of a trace.
    Recorded { speed: f64, ticks: Ticks },
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RampSegmentFacts {
    pub from_per_s: f64,
    pub to_per_s: f64,
    pub over_s: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExtentFacts {
    /// To the end of what was recorded.
    Whole,
    /// A number of requests.
    Requests(u64),
    /// Until this time has passed.
    DurationS(f64),
    /// Until both are reached.
    UntilBoth { requests: u64, duration_s: f64 },
    /// Until either is reached.
    UntilFirst { requests: u64, duration_s: f64 },
}

/// Requests before the run. They are in no other number of the summary.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WarmUpFacts {
    pub requests: u64,
    pub ok: u64,
    pub failed: u64,
    pub took_s: f64,
}

impl LoadFacts {
    pub fn new(load: &Load) -> Self {
        match &load.shape {
            LoadShape::Closed { concurrency, think } => Self::Closed {
                concurrency: concurrency.get(),
                think: ThinkFacts::new(*think),
                ramp_up_s: Some(load.ramp_up.as_secs_f64()).filter(|seconds| 0.0 < *seconds),
            },
            LoadShape::Open { rate, arrivals, cap } => Self::Open {
                rate: RateFacts::new(rate),
                arrivals: *arrivals,
                max_concurrency: cap.map(std::num::NonZeroU32::get),
            },
        }
    }

    /// Whether there was a schedule, capped or not.
    pub const fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }
}

impl ThinkFacts {
    pub(crate) fn new(think: Think) -> Self {
        match think {
            Think::None => Self::None,
            Think::Fixed(time) => Self::Fixed { time_s: time.as_secs_f64() },
            Think::Exponential { mean } => Self::Exponential { mean_s: mean.as_secs_f64() },
        }
    }
}

impl RateFacts {
    fn new(rate: &Rate) -> Self {
        match rate {
            Rate::Steady { per_s } => Self::Steady { per_s: *per_s },
            Rate::Unlimited => Self::Unlimited,
            Rate::Recorded(Replay { speed, ticks }) => {
                Self::Recorded { speed: *speed, ticks: *ticks }
            }
            Rate::Ramp { segments, curve } => {
                let facts = segments.iter().map(|segment| RampSegmentFacts {
                    from_per_s: segment.from_per_s,
                    to_per_s: segment.to_per_s,
                    over_s: segment.over.as_secs_f64(),
                });
                Self::Ramp { segments: facts.collect(), curve: *curve }
            }
        }
    }
}

impl ExtentFacts {
    pub fn new(extent: Extent) -> Self {
        match extent {
            Extent::Whole => Self::Whole,
            Extent::Requests(requests) => Self::Requests(requests.get()),
            Extent::Duration(duration) => Self::DurationS(duration.as_secs_f64()),
            Extent::UntilBoth { requests, duration } => {
                Self::UntilBoth { requests: requests.get(), duration_s: duration.as_secs_f64() }
            }
            Extent::UntilFirst { requests, duration } => {
                Self::UntilFirst { requests: requests.get(), duration_s: duration.as_secs_f64() }
            }
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SystemFacts {
    /// Null in runs of versions that did not record it.
    pub client: Option<Machine>,
    /// Null where nothing is known of it.
    pub server: Option<ServerFacts>,
}

impl SystemFacts {
    /// Number of GPUs of the deployment, where that is known.
    pub fn gpus_used(&self) -> Option<u32> {
        self.server.as_ref()?.gpus_used
    }
}
