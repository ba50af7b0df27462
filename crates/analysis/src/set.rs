//! What a set of runs comes to: statistics across runs, level by level, and what they show.
//!
//! [`SetSummary::of`] is a pure function of the set's manifest and of the summaries of its runs.
//! Requests of several runs are never one sample: a run gives one value, and runs are compared.
//! Invalid runs stay in the list and are in no mean and in no finding.

mod across;
mod asked;
mod curve;
mod cut;
mod enough;
mod finding;
mod findings;
#[cfg(test)]
pub(crate) mod fixture;
mod knee;
mod kneedle;
mod level;
mod limit;
mod reached;
mod replicates;
mod scalability;
mod served;
mod suite;
mod sweet_spot;
#[cfg(test)]
mod tests;
mod warnings;

use inferometer_model::campaign::{
    CampaignSpec, DeploymentRecord, Level, Point, PointFailure, Question, SetManifest, Stage,
};
use serde::{Deserialize, Serialize};

pub use self::across::Across;
pub use self::asked::{Asked, QuestionKind, Subject};
pub use self::cut::{Cut, is_cut};
pub use self::enough::Enough;
pub use self::finding::{Figure, Finding, LevelRange};
pub use self::findings::Findings;
pub use self::knee::Knee;
pub use self::kneedle::kneedle;
pub use self::level::{LevelSummary, Tally};
pub use self::limit::FoundLimit;
pub use self::reached::Reached;
pub use self::scalability::{Model, Saturating, Scalability, Universal};
pub use self::served::{Saturation, Served, piles_up};
pub(crate) use self::suite::cached_share;
pub use self::suite::{Contaminated, SuiteRow, SuiteSummary};
pub use self::sweet_spot::{Peak, SweetSpot};
use crate::judge::Warning;
use crate::judge::{Severity, Verdict};
use crate::matrix::MatrixSummary;
use crate::summary::Summary;

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
    pub asked: Asked,
    /// Invalid when a condition has no run that counts, of a matrix when none of its cells has;
    /// degraded when a run is degraded or left out, or a warning says so. A level that failed does
    /// not spoil the others.
    pub verdict: Verdict,
    /// The gravest first.
    pub warnings: Vec<Warning>,
    pub conditions: Vec<ConditionSummary>,
    /// What a search came to, one for each condition; empty without one.
    pub limits: Vec<FoundLimit>,
    /// Of a suite; null of anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<SuiteSummary>,
    /// Of a matrix; null of anything else.
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
    pub number: u32,
    pub condition: u32,
    pub level: Level,
    pub repetition: u32,
    pub seed: u64,
    pub stage: Stage,
    pub verdict: Verdict,
    pub workload_fingerprint: String,
    pub plan_fingerprint: String,
}

#[derive(Debug, thiserror::Error)]
pub enum SetError {
    #[error("the summary of the set is not the JSON that was expected: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the summary of the set has the schema `{0}`, and this version reads `{SET_SCHEMA}`")]
    Schema(String),
}

impl SetSummary {
    /// The results are taken in the order of their numbers.
    pub fn of(manifest: &SetManifest, results: &[PointResult]) -> Self {
        Self::of_matrix(manifest, results, &[], &[])
    }

    /// The same for a matrix, with the points that came to nothing and what became of its servers.
    pub fn of_matrix(
        manifest: &SetManifest,
        results: &[PointResult],
        failures: &[PointFailure],
        deployments: &[DeploymentRecord],
    ) -> Self {
        let campaign = &manifest.campaign;
        let mut ordered: Vec<&PointResult> = results.iter().collect();
        ordered.sort_by_key(|result| result.point.number);
        let asked = Asked::of(campaign);
        let conditions: Vec<ConditionSummary> = (0_u32..)
            .zip(&campaign.conditions)
            .map(|(place, condition)| {
                let own = ordered.iter().copied().filter(|one| one.point.condition == place);
                ConditionSummary::of(&condition.name, &own.collect::<Vec<_>>(), campaign)
            })
            .collect();
        let suite = SuiteSummary::of(campaign, &conditions, &ordered);
        let matrix = MatrixSummary::of(manifest, results, failures, deployments);
        let warnings = match &matrix {
            Some(matrix) => warnings::of_matrix(matrix, campaign, &conditions, &ordered),
            None => warnings::found(&asked, &conditions, suite.as_ref(), &ordered),
        };
        Self {
            schema: SET_SCHEMA.to_owned(),
            set: manifest.set.clone(),
            started: manifest.started.clone(),
            tool_version: manifest.tool_version.clone(),
            simulated: manifest.simulated,
            seed: campaign.seed,
            verdict: verdict(&conditions, matrix.as_ref(), &warnings),
            warnings,
            asked,
            conditions,
            limits: Vec::new(),
            suite,
            matrix,
            points: ordered.into_iter().map(PointLine::of).collect(),
        }
    }

    /// With what the search came to, which the campaign knows.
    #[must_use]
    pub fn with_limits(self, limits: Vec<FoundLimit>) -> Self {
        Self { limits, ..self }
    }

    /// The document as it is stored: indented, with a line feed at its end.
    ///
    /// # Panics
    ///
    /// Never: every map of it has text for keys, and nothing else can fail.
    pub fn to_json_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).expect("its maps have text for keys");
        bytes.push(b'\n');
        bytes
    }

    /// Reads a stored document. Keys that this version does not know are passed over.
    pub fn from_json_bytes(bytes: &[u8]) -> Result<Self, SetError> {
        let named: Named = serde_json::from_slice(bytes)?;
        if named.schema != SET_SCHEMA {
            return Err(SetError::Schema(named.schema));
        }
        Ok(serde_json::from_slice(bytes)?)
    }
}

/// The schema is read first: a document of another form should say so, not complain of a field.
#[derive(Deserialize)]
struct Named {
    schema: String,
}

impl ConditionSummary {
    fn of(name: &str, results: &[&PointResult], campaign: &CampaignSpec) -> Self {
        let mut levels: Vec<LevelSummary> = by_level(results)
            .into_iter()
            .map(|(level, own)| LevelSummary::of(level, &own, &campaign.repetition))
            .collect();
        let findings = match campaign.question {
            Question::Repeat => None,
            Question::Suite(_) | Question::Matrix(_) if levels.len() < 2 => None,
            Question::Sweep(_) | Question::Suite(_) | Question::Matrix(_) => {
                Some(Findings::of(&levels))
            }
        };
        if matches!(campaign.question, Question::Matrix(_)) {
            levels.iter_mut().for_each(LevelSummary::shorten);
        }
        Self {
            name: name.to_owned(),
            subject: results.first().map(|result| Subject::of(&result.summary)),
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
    let mut levels = conditions.iter().flat_map(|condition| &condition.levels);
    let is_calm = warnings.iter().all(|notice| notice.severity == Severity::Note);
    let has_figures = match matrix {
        // A cell that cannot be put up is a result.
        Some(_) => conditions.iter().any(counts),
        None => conditions.iter().all(counts),
    };
    if !has_figures {
        Verdict::Invalid
    } else if is_calm && levels.all(|level| level.verdict == Verdict::Valid) {
        Verdict::Valid
    } else {
        Verdict::Degraded
    }
}

/// From the lowest level to the highest.
fn by_level<'a>(results: &[&'a PointResult]) -> Vec<(Level, Vec<&'a PointResult>)> {
    let mut levels: Vec<(Level, Vec<&PointResult>)> = Vec::new();
    for result in results {
        let level = result.point.level;
        match levels.iter_mut().find(|(known, _)| *known == level) {
            Some((_, own)) => own.push(result),
            None => levels.push((level, vec![result])),
        }
    }
    let place = |level: &Level| level.place().unwrap_or(f64::NEG_INFINITY);
    levels.sort_by(|(a, _), (b, _)| place(a).total_cmp(&place(b)));
    levels
}

impl PointLine {
    fn of(result: &PointResult) -> Self {
        let PointResult { point, summary } = result;
        Self {
            number: point.number,
            condition: point.condition,
            level: point.level,
            repetition: point.repetition,
            seed: point.seed,
            stage: point.stage,
            verdict: summary.verdict,
            workload_fingerprint: summary.workload.fingerprint.clone(),
            plan_fingerprint: summary.plan.fingerprint.clone(),
        }
    }
}
