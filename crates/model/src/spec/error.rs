//! Why a spec is refused: which input, and what to do.

use std::time::Duration;

use crate::endpoint::Api;

use super::load::{BURSTINESS, RATE_MAX, SEGMENTS_MAX, SPEED};

pub(crate) type Result<T, E = SpecError> = std::result::Result<T, E>;

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SpecError {
    #[error("[engine] (--profile, …) and a URL name two servers to measure; leave one out")]
    EngineOfUrl,
    #[error("a URL names a running server, and [deploy] (--serve) deploys one; leave one out")]
    DeploymentOfUrl,
    #[error("[engine] (--profile, …) and [deploy] (--serve) name two servers; leave one out")]
    DeploymentOfEngine,
    #[error("--server-info describes another machine's server; give its URL, or leave it out")]
    InfoOfEngine,
    #[error("--gpu-memory-utilization is a share of the memory, above 0 and at most 1")]
    BadShare,
    #[error("--noise must be from 0 to 1")]
    BadNoise,
    #[error("--engine-speed must be a number above zero")]
    BadEngineSpeed,
    #[error(
        "an open loop (--rate, --ramp) and a closed one (--concurrency) are both set; set one, or \
         cap an open loop with --max-concurrency"
    )]
    TwoShapes,
    #[error("--rate and --ramp are both set; a rate that changes is a --ramp alone, so set one")]
    TwoRates,
    #[error("--rate must be above zero and at most {RATE_MAX} requests per second, or `inf`")]
    BadRate,
    #[error("--max-concurrency caps --rate or --ramp; a closed loop is set with --concurrency")]
    CapWithoutRate,
    #[error("{0} shapes an open loop; set --rate or --ramp too, or leave {0} out")]
    ArrivalsWithoutRate(&'static str),
    #[error("--rate inf sends everything at once, so {0} has no effect; leave one out")]
    ArrivalsAtOnce(&'static str),
    #[error("--arrivals gamma needs a shape: set --burstiness (1 is Poisson, below 1 is burstier)")]
    GammaWithoutBurstiness,
    #[error("--burstiness is the shape of gamma arrivals, not of these --arrivals; set one")]
    BurstinessOfOthers,
    #[error("--arrivals stretched needs --rate and --requests, and no --ramp or --duration")]
    NothingToStretchTo,
    #[error(
        "--burstiness must be from {} to {}; for evenly spaced requests use --arrivals constant",
        BURSTINESS.start(),
        BURSTINESS.end()
    )]
    BadBurstiness,
    #[error(
        "--dataset-column {0} is not PART=COLUMN with one of the parts prompt, messages, \
         conversations, system, answer, output_tokens and body"
    )]
    BadColumn(String),
    #[error("--dataset-where {0} is not COLUMN=VALUE, such as category=math")]
    BadWhere(String),
    #[error("--ramp-curve bends a --ramp; set --ramp too, or leave --ramp-curve out")]
    CurveWithoutRamp,
    #[error("--ramp has {0} segments; give it 1 to {SEGMENTS_MAX}")]
    RampSegments(usize),
    #[error("--ramp segment {0}: rates must be from zero to {RATE_MAX} requests per second")]
    RampRate(usize),
    #[error("--ramp segment {0}: an exponential ramp cannot have zero; use --ramp-curve linear")]
    RampZero(usize),
    #[error("--ramp segment {0}: its time must be longer than zero")]
    RampNoTime(usize),
    #[error("--ramp lasts longer than the bound of {0:?}")]
    RampTooLong(Duration),
    #[error("--ramp is at zero all the time, so nothing would ever be sent")]
    RampOfNothing,
    #[error("--ramp ends at zero, so --requests might never be reached; set --duration instead")]
    RampEndsAtZero,
    #[error("--rate inf can only end by --requests; set it alone, or add --max-concurrency")]
    UnlimitedByTime,
    #[error("--think-time pauses the users of a closed loop; set --concurrency, or leave it out")]
    ThinkOnOpenLoop,
    #[error("--think says how --think-time varies; set --think-time too, or leave --think out")]
    ThinkWithoutTime,
    #[error("--think-time is above the bound of {0:?}")]
    ThinkTooLong(Duration),
    #[error(
        "--ramp-up spreads the first requests of a closed loop; an open loop has a --ramp instead"
    )]
    RampUpOnOpenLoop,
    #[error("--ramp-up must end before the run does: it must be shorter than {0:?}")]
    RampUpTooLong(Duration),
    #[error(
        "--cancel ends streams after some tokens; remove --no-stream, or use an API that streams"
    )]
    CancelWithoutStream,
    #[error("--cancel ends requests, and a session goes on from whole answers; leave one out")]
    CancelSessions,
    #[error("--until combines --requests and --duration; set both, or leave --until out")]
    UntilWithoutBoth,
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    #[error("{name} {value} is above the bound of {bound}")]
    TooLarge { name: &'static str, value: u64, bound: u64 },
    #[error("--duration must be longer than zero and at most {0:?}")]
    BadDuration(Duration),
    #[error("{0} must be longer than zero")]
    NoTime(&'static str),
    #[error("{0} is above the bound of {1:?}")]
    LimitTooLong(&'static str, Duration),
    #[error("--client-cores {drivers} needs as many cores, and --pin-cores names {cores}")]
    FewCores { drivers: u32, cores: usize },
    #[error("core {0} is not one that this process may use")]
    NoSuchCore(u32),
    #[error("--insecure skips the check of a TLS certificate; use https://, or leave it out")]
    InsecureWithoutTls,
    #[error("--http2 needs a server: the embedded engine speaks HTTP/1.1")]
    EmbeddedHttp2,
    #[error("--connections per-user and --http2 exclude each other: HTTP/2 shares connections")]
    PerUserHttp2,
    #[error("--connections per-user needs --concurrency, or --max-concurrency with --rate")]
    PerUserWithoutUsers,
    #[error("{0} and {1} both say where prompts come from; set one")]
    TwoSources(&'static str, &'static str),
    #[error("{flag} has no effect here: it belongs to {needs}; set that too, or leave it out")]
    Stray { flag: &'static str, needs: &'static str },
    #[error("a mix has a source for each part; leave out the source and lengths beside it")]
    MixAndSource,
    #[error("mix part `{0}`: its weight must be a number above zero")]
    MixWeight(String),
    #[error("the weights of the mix add up to more than a number can hold; divide them all alike")]
    MixWeights,
    #[error("mix part `{0}` is of the kind `{1}`, which has its own order and cannot be mixed")]
    MixOf(String, &'static str),
    #[error("--prompt is empty; write what to ask, or leave it out for generated prompts")]
    EmptyPrompt,
    #[error("--prefix-tokens {prefix} must be below the longest prompt (--input-tokens {input})")]
    PrefixTooLong { prefix: u32, input: u32 },
    #[error("--keep is the share of a trace's requests that are sent: above 0 and at most 1")]
    BadKeep,
    #[error("--agent-fan-out is the share of an agent's steps that start sub-agents: from 0 to 1")]
    BadFanOut,
    #[error("{0} must be an exponent from 0 to 10; 0 makes all equally popular")]
    BadZipf(&'static str),
    #[error("--count with-template renders the model's chat template, so it needs --tokenizer")]
    TemplateWithoutTokenizer,
    #[error("--source vllm-random draws token ids, so it needs --tokenizer")]
    VllmRandomWithoutTokenizer,
    #[error("the body field `{0}` is set by the measurement itself; leave it out")]
    OwnField(&'static str),
    #[error("the body field `{0}` is set by its own name and in the extra fields; set it once")]
    FieldTwice(String),
    #[error("the body field `{0}` must be an object: the API looks for its settings in it")]
    NotAnObject(&'static str),
    #[error("--api {api} cannot send {flag}; leave it out, or use one of these APIs: {able}")]
    NotCarried { flag: &'static str, api: Api, able: String },
    #[error(
        "--plan sends a saved plan as it is, on its own API ({0}); of the flags about the workload \
         and the load only --warm-up may be set"
    )]
    SavedPlanAlone(Api),
    #[error("its load cannot be expressed by flags; save the plan again")]
    OddLoad,
    #[error("--speed must be from {} to {}", SPEED.start(), SPEED.end())]
    BadSpeed,
    #[error("{0} needs a --trace or --sessions, and no --rate, --ramp or --concurrency")]
    ReplayWithoutTrace(&'static str),
    #[error("--model is empty; name a model, or leave it out to take the one the server lists")]
    EmptyModel,
    #[error("{0} says how the server's metrics are read, and --telemetry off leaves them; set one")]
    TelemetryOff(&'static str),
    #[error("--metrics-path must begin with a slash and have no spaces, such as /metrics")]
    MetricsPath,
    #[error("--replica {0}: {1}")]
    Replica(String, String),
    #[error("--replica adds servers to the one that a URL names; give that URL too")]
    ReplicaWithoutUrl,
    #[error("--metrics-url: {0}")]
    MetricsUrl(String),
    #[error("--telemetry-every must be from {least:?} to {most:?}")]
    TelemetryEvery { least: Duration, most: Duration },
}

pub(super) fn at_most(name: &'static str, value: u64, bound: u64) -> Result<()> {
    if value <= bound { Ok(()) } else { Err(SpecError::TooLarge { name, value, bound }) }
}

/// The error of the first condition that holds.
pub(super) fn refuse_first<const N: usize>(wrong: [(bool, SpecError); N]) -> Result<()> {
    let first = wrong.into_iter().find(|(is_wrong, _)| *is_wrong);
    first.map_or(Ok(()), |(_, error)| Err(error))
}
