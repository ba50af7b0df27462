//! What was run, as the summary repeats it.

mod load;

use std::collections::BTreeMap;

use inferometer_model::Observations;
use inferometer_model::endpoint::Api;
use inferometer_model::journal::RunStop;
use inferometer_model::observations::HttpVersion;
use inferometer_model::observations::{FileFacts, InputLength, Simulated, TokenizerFacts};
use inferometer_model::spec::{
    Adapters, Counting, Images, Lengths, SharedPrefix, Source, SourceKind,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::audit::Audit;
pub use load::{ExtentFacts, LoadFacts, RampSegmentFacts, RateFacts, ThinkFacts, WarmUpFacts};

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
    /// What answered, where no server did; absent for a run that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<Simulated>,
    /// How many times faster than its profile the embedded engine ran; absent where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_speed: Option<f64>,
    pub model: String,
    pub api: Api,
    pub streaming: bool,
    pub http: HttpVersion,
    /// The server's certificate was not checked.
    pub insecure: bool,
    pub seed: u64,
    pub load: LoadFacts,
    pub extent: ExtentFacts,
    /// `None` when nothing was sent before the run.
    pub warm_up: Option<WarmUpFacts>,
    pub stop: RunStop,
    /// Whether the plan was not played to its end.
    pub partial: bool,
    pub metadata: BTreeMap<String, String>,
}

/// What was asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkloadFacts {
    /// Without the seed: runs are comparable when it is equal.
    pub fingerprint: String,
    /// Where prompts came from.
    pub source: SourceKind,
    /// As asked; null where the data says it. A number, or a distribution such as `512±20%`.
    pub input_tokens: Option<Lengths>,
    /// Null, too, where an API generates none.
    pub output_tokens: Option<Lengths>,
    /// Turns of a conversation; null where there are none.
    pub turns: Option<Lengths>,
    /// Whether a chat prompt's length is of its words alone.
    pub counting: Counting,
    /// How users think between turns; null where there are none.
    pub turn_think: Option<ThinkFacts>,
    /// Beginnings that prompts share; null without.
    pub prefix: Option<SharedPrefix>,
    /// On every prompt; null without.
    pub images: Option<Images>,
    pub adapters: Option<Adapters>,
    /// What every body carried besides.
    pub fields: Map<String, Value>,
    pub input_length: InputLength,
    pub tokenizer: Option<TokenizerFacts>,
    pub files: Vec<FileFacts>,
    /// What was done to the data.
    pub notes: Vec<String>,
    /// What was planned against what the server counted.
    pub audit: Audit,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanFacts {
    /// With the seed: runs had the same stimulus when it is equal.
    pub fingerprint: String,
}

impl RunFacts {
    pub(crate) fn of(observations: &Observations) -> Self {
        let manifest = &observations.manifest;
        Self {
            id: manifest.run.clone(),
            started: manifest.started.clone(),
            tool_version: manifest.environment.tool_version.clone(),
            target: manifest.endpoint.base.to_string(),
            embedded: manifest.endpoint.embedded,
            engine_speed: manifest
                .spec
                .engine
                .speed
                .filter(|speed| manifest.endpoint.embedded && (speed - 1.0).abs() > f64::EPSILON),
            simulated: manifest.simulated.clone(),
            model: manifest.endpoint.model.clone(),
            api: manifest.spec.api,
            streaming: manifest.spec.workload.streaming,
            http: manifest.spec.client.http,
            insecure: manifest.spec.client.insecure,
            seed: manifest.spec.seed,
            load: LoadFacts::of(&manifest.spec.load.shape),
            extent: ExtentFacts::of(manifest.spec.load.extent),
            warm_up: manifest.warm_up.map(WarmUpFacts::of),
            stop: observations.ending.stop,
            partial: observations.ending.stop.is_partial(),
            metadata: manifest.spec.metadata.clone(),
        }
    }
}

impl WorkloadFacts {
    pub(crate) fn of(observations: &Observations, audit: Audit) -> Self {
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
            turn_think: talk.map(|talk| ThinkFacts::of(talk.think)),
            prefix: if let Source::Synthetic(spec) = source {
                spec.prefix
            } else {
                talk.and_then(|talk| talk.prefix)
            },
            counting: manifest.spec.workload.counting,
            images: body.images,
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

/// How long prompts and answers were asked to be, as far as the workload says it itself.
pub(crate) fn asked_lengths(source: &Source) -> (Option<Lengths>, Option<Lengths>) {
    match source {
        Source::Synthetic(spec) => (Some(spec.input.clone()), Some(spec.output.clone())),
        Source::VllmRandom(spec) => (Some(spec.input.clone()), Some(spec.output.clone())),
        Source::Conversations(spec) => (Some(spec.input.clone()), Some(spec.output.clone())),
        Source::Dataset(spec) => (spec.input.clone(), spec.output.clone()),
        Source::Fixed(spec) => (None, Some(spec.output.clone())),
        Source::Trace(_) | Source::Mix(_) | Source::Saved { .. } => (None, None),
    }
}

impl PlanFacts {
    pub(crate) fn of(observations: &Observations) -> Self {
        Self { fingerprint: observations.manifest.fingerprints.plan.clone() }
    }
}
