//! Many runs as one question: what is asked of a set of runs, and which runs it is made of.
//!
//! These are the types that are stored. The crate `study` decides which point is next, and `analysis`
//! summarizes the points.

use std::collections::BTreeMap;
use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::deployment::{Departure, DeploymentFacts, DeploymentFailure};
use crate::fmt::setting;
use crate::spec::{Arrivals, Extent, LoadShape, Rate, Slo, Spec, Think};
use crate::whole::to_u64;

/// The file of a set, written before its first run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetManifest {
    pub format: u32,
    /// Its id, which is the name of its folder.
    pub set: String,
    /// RFC 3339, UTC.
    pub started: String,
    pub tool_version: String,
    /// Whether it happens in virtual time.
    pub simulated: bool,
    #[serde(rename = "campaign")]
    pub study: StudySpec,
    /// Where the key of each condition is read from; the keys themselves are stored nowhere.
    /// Empty where no condition has a file of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key_files: Vec<Option<PathBuf>>,
    /// How the workers of its runs are started, where a scheduler does that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<Value>,
}

/// The question of a study, fully resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudySpec {
    pub question: Question,
    /// What is laid side by side: one for each server, of a suite one for each scenario, of a matrix
    /// one for each cell. At least one.
    pub conditions: Vec<Condition>,
    pub repetition: Repetition,
    pub order: RunOrder,
    /// The seeds of all runs come from it.
    pub seed: u64,
}

/// One server with one workload; the points change its load and its seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    pub name: String,
    pub spec: Spec,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Question {
    /// The same experiment again and again.
    Repeat,
    /// The same workload at several loads.
    Sweep(Sweep),
    /// Several workloads on one server, one after the other.
    Suite(Suite),
    /// One workload on many servers, which are deployed for it.
    Matrix(Matrix),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    pub dimension: Dimension,
    /// From the lowest to the highest. May be empty when something is searched.
    pub levels: Vec<Level>,
    /// Requests of a level are this many times its concurrency, and no fewer than the spec asks
    /// for; `None`: as the spec says.
    pub waves: Option<NonZeroU32>,
    /// More levels around the knee, once the others are measured.
    pub fine: Option<Fine>,
    pub find: Option<Search>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dimension {
    Rate,
    Concurrency,
}

/// How much is asked of the server at once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As the spec of the condition says.
    AsAsked,
    /// Requests per second, above zero and finite.
    Rate(f64),
    /// Everything at once.
    Unlimited,
    Concurrency(NonZeroU32),
}

/// Levels between the neighbours of the knee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fine {
    /// Steps that the stretch is cut into.
    pub steps: NonZeroU32,
    /// Runs at each of the new levels.
    pub runs: NonZeroU32,
}

/// The highest level at which every goal is met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Search {
    pub goals: Vec<Slo>,
    /// Where it begins when no level is given.
    pub from: f64,
    /// It never asks for more.
    pub at_most: f64,
    /// The width of the last step, as a share of the level: 0.05 is 5 %.
    pub resolution: f64,
    /// Runs that one level may take to be decided.
    pub runs_at_most: NonZeroU32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repetition {
    /// Runs at each level of each condition; with `stop_at` it is the most that there will be.
    pub runs: NonZeroU32,
    pub cool_down: Duration,
    /// A command that restarts the server before each run but the first, of a suite before each round
    /// but the first; `None` where it is not restarted.
    pub restart: Option<String>,
    pub stop_at: Option<StopAt>,
}

/// Enough is known when the interval between runs is this narrow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StopAt {
    /// The name of a quantity, such as `output_throughput` or `ttft.p99`.
    pub quantity: String,
    /// The half-width as a share of the mean: 0.02 is 2 %.
    pub half_width: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::VariantArray)]
#[serde(rename_all = "snake_case")]
pub enum RunOrder {
    /// Every repetition goes through all levels in an order of its own, and conditions alternate,
    /// so that drift does not look like a difference.
    Interleaved,
    /// Level by level as listed, all repetitions of one before the next. A suite is played from its
    /// first scenario to its last, again and again.
    Listed,
}

/// One run of a set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Its place in the order of the set, from zero; the name of its folder.
    pub number: u32,
    /// Which condition, by its place in the list.
    pub condition: u32,
    pub level: Level,
    /// From zero, at this level of this condition.
    pub repetition: u32,
    /// The same for all conditions at this level and repetition: they are paired. The scenarios of a
    /// suite have their own, unless they are asked to send the same prompts.
    pub seed: u64,
    pub stage: Stage,
}

/// Why a point is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    Planned,
    /// Around the knee.
    Fine,
    /// A step of a search.
    Probe,
    /// The answer of a search, once more on a fresh seed.
    Confirmation,
}

/// Scenarios that are measured one after the other on one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suite {
    /// Such as `standard`.
    pub name: String,
    pub title: String,
    /// SHA-256 of all that it asks, as hexadecimal digits: results are comparable when it is equal.
    pub hash: String,
    /// What was asked otherwise than the suite says, by the flags that said so; empty for the suite
    /// as it is.
    pub changes: Vec<String>,
    pub prompts: Prompts,
    /// One for each condition of the study, in their order.
    pub scenarios: Vec<Scenario>,
}

/// What a condition of a suite is for; its name is the condition's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// Such as `Latency`.
    pub category: String,
    /// What it shows, in one line.
    pub purpose: String,
    /// At least one; `AsAsked` where nothing is varied.
    pub levels: Vec<Level>,
    /// Requests of each level as a multiple of its concurrency, where that is more than the number of
    /// requests of the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waves: Option<NonZeroU32>,
}

/// Whether a scenario may meet what another has left in the server's prefix cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::VariantArray)]
#[serde(rename_all = "snake_case")]
pub enum Prompts {
    /// Every scenario and level has a seed of its own.
    Fresh,
    /// All have the seed of the suite, as the clients of others do it.
    Same,
}

/// Servers that are deployed one after the other, each measured in the same way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// Such as `r3`, or the name of its file.
    pub name: String,
    pub title: String,
    /// What its author says about its results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub presets: Vec<Preset>,
    pub models: Vec<MatrixModel>,
    /// One for each condition of the study, in their order.
    pub cells: Vec<Cell>,
    /// Loads at which every cell is measured, one after the other on the same server; at least one.
    pub levels: Vec<Level>,
    /// Presets that are measured at once.
    pub lanes: NonZeroU32,
    /// Money is in this currency, in whatever words it was written.
    pub currency: Option<String>,
}

/// Hardware that a server is deployed on, as its owner describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Preset {
    /// What it is called; no two alike. `{preset}` stands for it
    pub name: String,
    /// How many GPUs a server has there
    #[schemars(range(min = 1, max = 1024))]
    pub gpus: Option<u32>,
    /// In words, such as `NVIDIA V100 (PCIe 16GB)`
    pub gpu_type: Option<String>,
    /// Memory of all GPUs together
    #[schemars(range(min = 0))]
    pub vram_gb: Option<f64>,
    #[schemars(range(min = 0))]
    pub vcpus: Option<f64>,
    #[schemars(range(min = 0))]
    pub memory_gb: Option<f64>,
    /// Price of an hour of the whole preset
    #[schemars(range(min = 0))]
    pub price_per_hour: Option<f64>,
}

/// A model that is served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MatrixModel {
    /// As the server is asked for it; no two alike. `{model}` stands for it
    pub name: String,
    /// As pages call it [default: the last part of its name]
    pub label: String,
}

/// How a model is spread over the GPUs of a preset.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    Tensor,
    Pipeline,
}

/// One deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Its place among the presets.
    pub preset: u32,
    /// Its place among the models.
    pub model: u32,
    /// Tokens that a prompt and its answer may have together; `None` where it is not varied.
    pub context: Option<u32>,
    pub strategy: Option<Strategy>,
    pub tp: Option<u32>,
    pub pp: Option<u32>,
    /// Other flags of the server that are varied, by name.
    pub flags: BTreeMap<String, String>,
}

/// A point of a matrix that failed, and why. It is a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointFailure {
    pub point: Point,
    /// RFC 3339, UTC; `None` in virtual time.
    pub at: Option<String>,
    pub failure: DeploymentFailure,
}

/// What is stored about one deployment of a matrix in addition to its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeploymentRecord {
    /// The cell by its place.
    pub condition: u32,
    pub repetition: u32,
    pub facts: Option<DeploymentFacts>,
    pub departure: Option<Departure>,
    /// From the end of the last run until the server was idle; `None` where it does not say.
    pub drained_after_s: Option<f64>,
    /// File with the server's log; `None` where there is none.
    #[serde(default)]
    pub log: Option<String>,
}

impl StudySpec {
    /// The matrix, if this is one.
    pub fn matrix(&self) -> Option<&Matrix> {
        if let Question::Matrix(matrix) = &self.question { Some(matrix) } else { None }
    }

    /// The suite, if this is one.
    pub fn suite(&self) -> Option<&Suite> {
        if let Question::Suite(suite) = &self.question { Some(suite) } else { None }
    }

    /// The sweep, if this is one.
    pub fn sweep(&self) -> Option<&Sweep> {
        if let Question::Sweep(sweep) = &self.question { Some(sweep) } else { None }
    }

    /// The spec that a point is measured with. `None` when its condition does not exist.
    pub fn spec_of(&self, point: &Point) -> Option<Spec> {
        let condition = self.conditions.get(usize::try_from(point.condition).ok()?)?;
        let waves = match &self.question {
            Question::Sweep(sweep) => sweep.waves,
            Question::Suite(suite) => {
                suite.scenarios.get(usize::try_from(point.condition).ok()?)?.waves
            }
            Question::Repeat | Question::Matrix(_) => None,
        };
        let mut spec = Spec { seed: point.seed, ..condition.spec.clone() };
        point.level.apply(&mut spec, waves);
        let is_unlimited =
            matches!(spec.load.shape, LoadShape::Open { rate: Rate::Unlimited, cap: None, .. });
        if let (true, Some(sweep), Extent::Duration(duration)) =
            (is_unlimited, self.sweep(), spec.load.extent)
            && let Some(requests) = requests_at_once(&sweep.levels, duration)
        {
            spec.load.extent = Extent::Requests(requests);
        }
        Some(spec)
    }
}

/// How many requests an unlimited rate sends, whose level has a duration: as many as the highest other
/// rate. `None` where there is no other.
pub fn requests_at_once(levels: &[Level], duration: Duration) -> Option<NonZeroU64> {
    let rates = levels.iter().filter_map(|level| level.place()).filter(|rate| rate.is_finite());
    let highest = rates.fold(0.0, f64::max);
    NonZeroU64::new(to_u64((highest * duration.as_secs_f64()).ceil()))
}

impl Level {
    /// A number to order levels by and to draw them at; `None` of what has none.
    pub fn place(self) -> Option<f64> {
        match self {
            Self::AsAsked => None,
            Self::Rate(per_s) => Some(per_s),
            Self::Unlimited => Some(f64::INFINITY),
            Self::Concurrency(requests) => Some(f64::from(requests.get())),
        }
    }

    /// What the spec says of arrivals, caps and think times is kept where it has a meaning.
    fn apply(self, spec: &mut Spec, waves: Option<NonZeroU32>) {
        let shape = &spec.load.shape;
        let rate = match self {
            Self::AsAsked => return,
            Self::Concurrency(concurrency) => {
                let think = match shape {
                    LoadShape::Closed { think, .. } => *think,
                    LoadShape::Open { .. } => Think::None,
                };
                spec.load.shape = LoadShape::Closed { concurrency, think };
                if let Some(waves) = waves {
                    let waves = NonZeroU64::from(waves.saturating_mul(concurrency));
                    let least = if let Extent::Requests(requests) = spec.load.extent {
                        requests
                    } else {
                        NonZeroU64::MIN
                    };
                    spec.load.extent = Extent::Requests(waves.max(least));
                }
                return;
            }
            Self::Rate(per_s) => Rate::Steady { per_s },
            Self::Unlimited => Rate::Unlimited,
        };
        let (arrivals, cap) = match shape {
            LoadShape::Open { arrivals, cap, .. } => (*arrivals, *cap),
            LoadShape::Closed { .. } => (Arrivals::Poisson, None),
        };
        spec.load.shape = LoadShape::Open { rate, arrivals, cap };
        spec.load.ramp_up = Duration::ZERO;
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AsAsked => f.write_str("as specified"),
            Self::Rate(per_s) => write!(f, "{} req/s", setting(*per_s)),
            Self::Unlimited => f.write_str("unlimited rate"),
            Self::Concurrency(requests) => write!(f, "c={requests}"),
        }
    }
}
