//! What a set of runs comes to: statistics across runs, level by level, and what they show.
//!
//! [`SetSummary::of`] is a pure function of the set's manifest and of the summaries of its runs.

mod across;

use std::collections::BTreeMap;

use inferometer_model::campaign::{Level, Point, SetManifest, Stage};
use serde::{Deserialize, Serialize};

pub use self::across::Across;
use crate::summary::Summary;
use crate::verdict::Verdict;

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
    /// The worst of its runs.
    pub verdict: Verdict,
    pub conditions: Vec<ConditionSummary>,
    pub points: Vec<PointLine>,
}

/// One server of the set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConditionSummary {
    pub name: String,
    /// From the lowest to the highest.
    pub levels: Vec<LevelSummary>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelSummary {
    pub level: Level,
    /// Its runs, by their numbers.
    pub points: Vec<u32>,
    /// By the name of the quantity, such as `ttft.p99`.
    pub quantities: BTreeMap<String, Across>,
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

impl SetSummary {
    pub fn of(manifest: &SetManifest, results: &[PointResult]) -> Self {
        Self {
            schema: SET_SCHEMA.to_owned(),
            set: manifest.set.clone(),
            started: manifest.started.clone(),
            tool_version: manifest.tool_version.clone(),
            simulated: manifest.simulated,
            seed: manifest.campaign.seed,
            verdict: results
                .iter()
                .map(|result| result.summary.verdict)
                .max()
                .unwrap_or(Verdict::Invalid),
            conditions: Vec::new(),
            points: results.iter().map(PointLine::of).collect(),
        }
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
