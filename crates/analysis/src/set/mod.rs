//! The summary of a set of runs: statistics across runs, level by level, and findings.
//!
//! [`SetSummary::summarize`] is a pure function of the set's manifest and of the summaries of its runs.
//! Requests of several runs are never one sample: a run gives one value, and runs are compared.
//! Invalid runs stay in the list and are in no mean and in no finding.

mod findings;
#[cfg(test)]
pub(crate) mod fixture;
mod level;
mod suite;
#[cfg(test)]
mod tests;
mod warnings;

use inferometer_model::endpoint::Api;
use inferometer_model::observations::Simulated;
use inferometer_model::spec::{Lengths, SourceKind};
use inferometer_model::study::{
    Condition, DeploymentRecord, Dimension, Level, Point, PointFailure, Question, RunOrder,
    SetManifest, StopAt, StudySpec,
};
use serde::{Deserialize, Serialize};

pub use self::findings::*;
pub use self::level::{
    AcrossRuns, Cut, Enough, LevelSummary, Reached, STATISTICS, Served, Tally, is_cut, piles_up,
};
pub use self::suite::{Contaminated, SuiteRow, SuiteSummary};
use self::warnings::{SetContext, set_warnings};
use crate::judge::{Severity, Verdict, Warning};
use crate::matrix::MatrixSummary;
use crate::summary::{DocumentError, Summary, read_document, with_checksum, write_document};

/// The form of the document. Adding keys leaves it; changing what a key means raises it.
pub const SET_SCHEMA: &str = "inferometer.set/1";

/// A run of the set, read back.
#[derive(Clone, Debug)]
pub struct PointResult {
    pub point: Point,
    pub summary: Summary,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetSummary {
    pub schema: String,
    pub set: String,
    /// RFC 3339, UTC.
    pub started: String,
    pub tool_version: String,
    pub simulated: bool,
    pub seed: u64,
    pub asked: StudyFacts,
    /// Invalid when a condition has no run that counts, of a matrix when none of its cells has;
    /// degraded when a run is degraded or left out, or a warning says so. A level that failed does
    /// not spoil the others.
    pub verdict: Verdict,
    /// The most severe first.
    pub warnings: Vec<Warning>,
    pub conditions: Vec<ConditionSummary>,
    /// The result of a search, one for each condition; empty without one.
    pub limits: Vec<FoundLimit>,
    /// Summary of a suite; null for other sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<SuiteSummary>,
    /// Summary of a matrix; null for other sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matrix: Option<MatrixSummary>,
    pub points: Vec<PointLine>,
}

/// One server of the set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConditionSummary {
    pub name: String,
    /// Null while it has no run.
    pub subject: Option<Subject>,
    /// From the lowest to the highest.
    pub levels: Vec<LevelSummary>,
    /// Null where nothing is varied.
    pub findings: Option<Findings>,
}

/// A run of the set, in one line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointLine {
    #[serde(flatten)]
    pub point: Point,
    pub verdict: Verdict,
    pub workload_fingerprint: String,
    pub plan_fingerprint: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyFacts {
    pub question: QuestionKind,
    /// Null where nothing is varied.
    pub dimension: Option<Dimension>,
    /// Goals of a search, as they were typed.
    pub goals: Vec<String>,
    /// Runs at each level; with `stop_at` the most that there may be.
    pub runs: u32,
    pub order: RunOrder,
    pub cool_down_s: f64,
    /// Whether the server was restarted before each run. Every cell and repetition of a matrix is a new
    /// deployment.
    pub restarted: bool,
    pub stop_at: Option<StopAt>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    Repeat,
    Sweep,
    Search,
    Suite,
    Matrix,
}

/// The server and its workload, as its first run has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    pub target: String,
    pub embedded: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<Simulated>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_speed: Option<f64>,
    pub model: String,
    pub api: Api,
    pub open_loop: bool,
    pub source: SourceKind,
    pub input_tokens: Option<Lengths>,
    pub output_tokens: Option<Lengths>,
}

/// The highest level at which every goal is met, as far as it is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundLimit {
    /// Index of the condition in the list.
    pub condition: u32,
    /// As they were typed, such as `ttft.p99<500ms`.
    pub goals: Vec<String>,
    /// Requests per second, or requests at once; null when no level met them.
    pub level: Option<f64>,
    /// The lowest level that was seen to miss a goal; null when none did.
    pub lowest_missed: Option<f64>,
    /// Whether it met them once more on a fresh seed.
    pub confirmed: bool,
    /// Whether even the highest allowed level met them.
    pub open_ended: bool,
    /// Runs that the search took.
    pub runs: u32,
    /// Levels at which the runs allowed did not decide.
    pub undecided: Vec<f64>,
    /// The answer in a sentence.
    pub words: String,
}

impl SetSummary {
    /// The results are taken in the order of their numbers.
    pub fn summarize(manifest: &SetManifest, results: &[PointResult]) -> Self {
        Self::summarize_matrix(manifest, results, &[], &[])
    }

    /// Summarizes a matrix, with its failed points and the records of its deployments.
    pub fn summarize_matrix(
        manifest: &SetManifest,
        results: &[PointResult],
        failures: &[PointFailure],
        deployments: &[DeploymentRecord],
    ) -> Self {
        let study = &manifest.study;
        let mut ordered: Vec<&PointResult> = results.iter().collect();
        ordered.sort_by_key(|result| result.point.number);
        let asked = StudyFacts::from_study(study);
        let conditions: Vec<ConditionSummary> = (0_u32..)
            .zip(&study.conditions)
            .map(|(place, condition)| {
                let own = ordered.iter().copied().filter(|one| one.point.condition == place);
                ConditionSummary::summarize(condition, &own.collect::<Vec<_>>(), study)
            })
            .collect();
        let suite = SuiteSummary::summarize(study, &conditions, &ordered);
        let matrix = MatrixSummary::summarize(manifest, results, failures, deployments);
        let results = ordered.as_slice();
        let warnings = set_warnings(&SetContext {
            study,
            asked: &asked,
            conditions: &conditions,
            suite: suite.as_ref(),
            matrix: matrix.as_ref(),
            results,
        });
        Self {
            schema: SET_SCHEMA.to_owned(),
            set: manifest.set.clone(),
            started: manifest.started.clone(),
            tool_version: manifest.tool_version.clone(),
            simulated: manifest.simulated,
            seed: study.seed,
            verdict: verdict(&conditions, matrix.as_ref(), &warnings),
            warnings,
            asked,
            conditions,
            limits: Vec::new(),
            suite,
            matrix,
            points: ordered
                .into_iter()
                .map(|PointResult { point, summary }| PointLine {
                    point: *point,
                    verdict: summary.verdict,
                    workload_fingerprint: summary.workload.fingerprint.clone(),
                    plan_fingerprint: summary.plan.fingerprint.clone(),
                })
                .collect(),
        }
    }

    /// Adds the results of a search, which the study knows.
    #[must_use]
    pub fn with_limits(self, limits: Vec<FoundLimit>) -> Self {
        Self { limits, ..self }
    }

    /// The document as it is stored: indented, with a line feed at its end.
    pub fn to_json_bytes(&self) -> Vec<u8> {
        with_checksum(write_document(self))
    }

    /// Reads a stored document. Keys that this version does not know are ignored.
    pub fn from_json_bytes(bytes: &[u8]) -> Result<Self, DocumentError> {
        read_document(bytes, SET_SCHEMA)
    }
}

impl ConditionSummary {
    fn summarize(condition: &Condition, results: &[&PointResult], study: &StudySpec) -> Self {
        let mut by_level: Vec<(Level, Vec<&PointResult>)> = Vec::new();
        for result in results {
            let level = result.point.level;
            match by_level.iter_mut().find(|(known, _)| *known == level) {
                Some((_, own)) => own.push(result),
                None => by_level.push((level, vec![result])),
            }
        }
        let place = |level: &Level| level.place().unwrap_or(f64::NEG_INFINITY);
        by_level.sort_by(|(a, _), (b, _)| place(a).total_cmp(&place(b)));
        let mut levels: Vec<LevelSummary> = by_level
            .into_iter()
            .map(|(level, own)| LevelSummary::summarize(level, &own, &study.repetition))
            .collect();
        let findings = match study.question {
            Question::Repeat => None,
            Question::Suite(_) | Question::Matrix(_) if levels.len() < 2 => None,
            Question::Sweep(_) | Question::Suite(_) | Question::Matrix(_) => {
                Some(Findings::find(&levels, &condition.spec.slos))
            }
        };
        if matches!(study.question, Question::Matrix(_)) {
            levels.iter_mut().for_each(LevelSummary::shorten);
        }
        Self {
            name: condition.name.clone(),
            subject: results.first().map(|result| Subject::from_summary(&result.summary)),
            levels,
            findings,
        }
    }
}

fn verdict(
    conditions: &[ConditionSummary],
    matrix: Option<&MatrixSummary>,
    warnings: &[Warning],
) -> Verdict {
    let counts = |condition: &ConditionSummary| {
        condition.levels.iter().any(|level| !level.points.is_empty())
    };
    let levels = conditions.iter().flat_map(|condition| &condition.levels);
    let is_calm = warnings.iter().all(|warning| warning.severity == Severity::Note);
    let has_figures = match matrix {
        // A cell that cannot be deployed is a result.
        Some(_) => conditions.iter().any(counts),
        None => conditions.iter().all(counts),
    };
    if !has_figures {
        Verdict::Invalid
    } else if is_calm {
        levels.map(|level| level.verdict.min(Verdict::Degraded)).max().unwrap_or(Verdict::Valid)
    } else {
        Verdict::Degraded
    }
}

impl StudyFacts {
    fn from_study(study: &StudySpec) -> Self {
        let sweep = if let Question::Sweep(it) = &study.question { Some(it) } else { None };
        let search = sweep.and_then(|sweep| sweep.find.as_ref());
        Self {
            question: match &study.question {
                Question::Repeat => QuestionKind::Repeat,
                Question::Suite(_) => QuestionKind::Suite,
                Question::Matrix(_) => QuestionKind::Matrix,
                Question::Sweep(_) if search.is_some() => QuestionKind::Search,
                Question::Sweep(_) => QuestionKind::Sweep,
            },
            dimension: sweep.map(|sweep| sweep.dimension),
            goals: search.map_or_else(Vec::new, |search| {
                search.goals.iter().map(ToString::to_string).collect()
            }),
            runs: study.repetition.runs.get(),
            order: study.order,
            cool_down_s: study.repetition.cool_down.as_secs_f64(),
            restarted: study.repetition.restart.is_some()
                || matches!(study.question, Question::Matrix(_)),
            stop_at: study.repetition.stop_at.clone(),
        }
    }
}

impl Subject {
    fn from_summary(summary: &Summary) -> Self {
        let (run, workload) = (&summary.run, &summary.workload);
        Self {
            target: run.target.clone(),
            embedded: run.embedded,
            simulated: run.simulated.clone(),
            engine_speed: run.engine_speed,
            model: run.model.clone(),
            api: run.api,
            open_loop: run.load.is_open(),
            source: workload.source,
            input_tokens: workload.input_tokens.clone(),
            output_tokens: workload.output_tokens.clone(),
        }
    }
}
