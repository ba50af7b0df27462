//! What was asked of the set, as its summary repeats it.

use inferometer_model::campaign::{CampaignSpec, Dimension, Order, Question, StopAt};
use inferometer_model::endpoint::Api;
use inferometer_model::observations::Simulated;
use inferometer_model::spec::{Lengths, SourceKind};
use serde::{Deserialize, Serialize};

use crate::summary::Summary;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    pub question: QuestionKind,
    /// Null where nothing is varied.
    pub dimension: Option<Dimension>,
    /// Of a search, as they were typed.
    pub goals: Vec<String>,
    /// Runs at each level; with `stop_at` the most that there may be.
    pub runs: u32,
    pub order: Order,
    pub cool_down_s: f64,
    /// Whether the server was restarted before each run. Every cell and repetition of a matrix has a
    /// server of its own.
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

/// Which server answered, and what it was asked, as its first run has it.
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

impl Asked {
    pub(super) fn of(campaign: &CampaignSpec) -> Self {
        let sweep = match &campaign.question {
            Question::Repeat | Question::Suite(_) | Question::Matrix(_) => None,
            Question::Sweep(sweep) => Some(sweep),
        };
        let search = sweep.and_then(|sweep| sweep.find.as_ref());
        Self {
            question: match &campaign.question {
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
            runs: campaign.repetition.runs.get(),
            order: campaign.order,
            cool_down_s: campaign.repetition.cool_down.as_secs_f64(),
            restarted: campaign.repetition.restart.is_some()
                || matches!(campaign.question, Question::Matrix(_)),
            stop_at: campaign.repetition.stop_at.clone(),
        }
    }
}

impl Subject {
    pub(super) fn of(summary: &Summary) -> Self {
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
