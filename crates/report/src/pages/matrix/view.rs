//! Lookups in a matrix and the names that its pages use for rows, deployments and figures.

use inferometer_analysis::Better;
use inferometer_analysis::Verdict;
use inferometer_analysis::matrix::{
    Certainty, MatrixFigure, MatrixRow, MatrixSummary, RowEnding, Speedup, TpsBy, Winner,
};
use inferometer_analysis::set::{AcrossRuns, SetSummary};
use inferometer_model::deployment::DeploymentFailure;
use inferometer_model::study::{Level, Strategy};

use crate::escape::terminal_line;
use crate::fmt::{NOTHING, count, counted, level_name, number};

/// Limit for names of presets, models and flags.
pub(super) const NAME_CHARS_MAX: usize = 60;
const REASON_CHARS_MAX: usize = 300;

/// A matrix together with the set that it belongs to.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) set: &'a SetSummary,
    pub(super) matrix: &'a MatrixSummary,
}

impl<'a> View<'a> {
    pub(super) fn row(&self, index: u32) -> Option<&'a MatrixRow> {
        self.matrix.rows.get(index as usize)
    }

    pub(super) fn rows_at(&self, indices: &[u32]) -> Vec<&'a MatrixRow> {
        indices.iter().filter_map(|index| self.row(*index)).collect()
    }

    pub(super) fn preset(&self, index: u32) -> String {
        let preset = self.matrix.presets.get(index as usize);
        preset.map_or_else(|| NOTHING.to_owned(), |it| terminal_line(&it.name, NAME_CHARS_MAX))
    }

    pub(super) fn model(&self, index: u32) -> String {
        let model = self.matrix.models.get(index as usize);
        let name =
            model.map_or(NOTHING, |it| if it.label.is_empty() { &it.name } else { &it.label });
        terminal_line(name, NAME_CHARS_MAX)
    }

    /// Names of all presets, in their order.
    pub(super) fn presets(&self) -> Vec<String> {
        (0_u32..).zip(&self.matrix.presets).map(|(index, _)| self.preset(index)).collect()
    }

    /// The deployment among those of the same model and context: `H100X2 · tensor`.
    pub(super) fn deployment(&self, row: &MatrixRow) -> String {
        [self.preset(row.preset)].into_iter().chain(variant(row)).collect::<Vec<_>>().join(" · ")
    }

    /// The whole cell with its load: `H100X2 · Llama-3B · 2,048 tokens · tensor · c=10`.
    pub(super) fn cell(&self, row: &MatrixRow) -> String {
        let names = [self.preset(row.preset), self.model(row.model)].into_iter();
        let context = row.context.map(context_words);
        let parts = names.chain(context).chain(variant(row)).chain(self.level(row.level));
        parts.collect::<Vec<_>>().join(" · ")
    }

    /// A heading for rows that share these properties: `Llama-3B, 2,048 tokens, tensor parallel`.
    pub(super) fn title(
        &self,
        (model, context): (u32, Option<u32>),
        strategy: Option<Strategy>,
        flags: &[(String, String)],
        level: Option<Level>,
    ) -> String {
        let parts = [self.model(model)].into_iter().chain(context.map(context_words));
        parts.chain(self.distinction(strategy, flags, level)).collect::<Vec<_>>().join(", ")
    }

    /// The part of a title that differs between rows of the same model and context.
    pub(in crate::pages) fn distinction(
        &self,
        strategy: Option<Strategy>,
        flags: &[(String, String)],
        level: Option<Level>,
    ) -> Vec<String> {
        let strategy = strategy.map(|strategy| format!("{} parallel", strategy.word()));
        let flags = flags_words(flags.iter().map(|(name, value)| (name, value)));
        let level = level.and_then(|level| self.level(level));
        strategy.into_iter().chain(flags).chain(level).collect()
    }

    /// The name of a level; `None` where all rows have the same.
    pub(super) fn level(&self, level: Level) -> Option<String> {
        let first = self.matrix.rows.first().map(|row| row.level);
        let several = self.matrix.rows.iter().any(|row| Some(row.level) != first);
        several.then(|| level_name(level))
    }

    /// Whether context lengths are varied.
    pub(super) fn has_contexts(&self) -> bool {
        let first = self.matrix.rows.first().map(|row| row.context);
        self.matrix.rows.iter().any(|row| Some(row.context) != first)
    }

    /// Whether the page shows only winners and failures, and folds the other rows.
    pub(super) const fn is_large(&self) -> bool {
        const ROWS_MAX: usize = 48;
        ROWS_MAX < self.matrix.rows.len()
    }

    pub(super) fn figure<'r>(&self, row: &'r MatrixRow, figure: MatrixFigure) -> &'r AcrossRuns {
        figure.in_row(row, self.tps_by())
    }

    /// Whose token count the rates of all rows use.
    pub(super) fn tps_by(&self) -> TpsBy {
        self.matrix.tps_by()
    }

    /// The mean of a figure; `None` where every request of the row failed.
    pub(super) fn mean(&self, row: &MatrixRow, figure: MatrixFigure) -> Option<f64> {
        self.figure(row, figure).mean.filter(|_| nothing(row).is_none())
    }

    /// The best of the rows that may be compared.
    pub(super) fn best<'r>(
        &self,
        rows: impl IntoIterator<Item = &'r MatrixRow>,
        figure: MatrixFigure,
    ) -> Option<(&'r MatrixRow, f64)> {
        let rows: Vec<&MatrixRow> = rows.into_iter().collect();
        let (index, value) = figure.best((0_u32..).zip(rows.iter().copied()), self.tps_by())?;
        Some((rows.get(index as usize)?, value))
    }

    /// The winner that this row is, for this figure.
    pub(super) fn winner(&self, row: &MatrixRow, figure: MatrixFigure) -> Option<&'a Winner> {
        self.matrix.winners.iter().find(|winner| {
            let own = self.row(winner.row).is_some_and(|found| std::ptr::eq(found, row));
            own && winner.figure == figure
        })
    }

    /// The runner-up of a winner.
    pub(super) fn runner_up(&self, winner: &Winner) -> Option<String> {
        Some(self.deployment(self.row(winner.runner_up?)?))
    }

    /// Whether it is a pipeline on one GPU, which is the same server as with tensor parallelism.
    pub(super) fn is_as_tensor(&self, row: &MatrixRow) -> bool {
        row.has_tensor_twin(&self.matrix.rows, &self.matrix.presets)
    }

    /// The largest speed-up of an embedded engine over its profile, where there is one.
    pub(super) fn sped_up(&self) -> Option<f64> {
        let subjects = self.set.conditions.iter().filter_map(|one| one.subject.as_ref());
        subjects.filter_map(|subject| subject.engine_speed).reduce(f64::max)
    }

    /// Whether any row has the figure.
    pub(super) fn has(&self, figure: MatrixFigure) -> bool {
        self.matrix.rows.iter().any(|row| self.mean(row, figure).is_some())
    }

    pub(super) fn unit(&self, figure: MatrixFigure) -> String {
        match figure {
            MatrixFigure::PromptTps | MatrixFigure::GenerationTps => "tok/s".to_owned(),
            MatrixFigure::Latency => "s".to_owned(),
            MatrixFigure::Ttft => "ms".to_owned(),
            MatrixFigure::Cost => match self.currency() {
                Some(currency) => format!("{currency} per million generated tokens"),
                None => "per million generated tokens (in the prices' unit)".to_owned(),
            },
            MatrixFigure::Energy => "J per generated token".to_owned(),
        }
    }

    /// A value of a figure with its unit.
    pub(super) fn amount(&self, figure: MatrixFigure, value: f64) -> String {
        format!("{} {}", number(value), self.unit(figure))
    }

    /// The currency of the prices, where the matrix file names it.
    pub(super) fn currency(&self) -> Option<String> {
        let currency = self.matrix.currency.as_deref().filter(|currency| !currency.is_empty());
        currency.map(|currency| terminal_line(currency, 12))
    }
}

pub(super) const fn figure_name(figure: MatrixFigure) -> &'static str {
    match figure {
        MatrixFigure::PromptTps => "Prompt TPS",
        MatrixFigure::GenerationTps => "Generation TPS",
        MatrixFigure::Latency => "Mean latency",
        MatrixFigure::Ttft => "Mean TTFT",
        MatrixFigure::Cost => "Cost",
        MatrixFigure::Energy => "Energy",
    }
}

/// The figure inside a sentence.
pub(super) fn figure_word(figure: MatrixFigure) -> String {
    let name = figure_name(figure);
    name[..1].to_lowercase() + &name[1..]
}

/// The figure in one or two words.
pub(super) fn short_name(figure: MatrixFigure) -> String {
    figure_word(figure).trim_start_matches("mean ").to_owned()
}

/// The figure in an id.
pub(super) fn slug(figure: MatrixFigure) -> String {
    short_name(figure).trim_end_matches(" TPS").to_lowercase()
}

/// `Highest generation TPS`.
pub(super) fn best_of(figure: MatrixFigure) -> String {
    let best = match figure.better() {
        Better::Higher => "Highest",
        Better::Lower | Better::Neither => "Lowest",
    };
    format!("{best} {}", figure_word(figure))
}

pub(super) fn context_words(tokens: u32) -> String {
    format!("{} tokens", count(tokens.into()))
}

/// Strategy and flags, where they are varied: `tensor · enforce-eager=true`.
pub(super) fn variant(row: &MatrixRow) -> Option<String> {
    let strategy = row.strategy.map(|strategy| strategy.word().to_owned());
    let parts: Vec<String> = strategy.into_iter().chain(flags_words(&row.flags)).collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

fn flags_words<'a>(flags: impl IntoIterator<Item = (&'a String, &'a String)>) -> Option<String> {
    let words: Vec<String> =
        flags.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    (!words.is_empty()).then(|| terminal_line(&words.join(" "), NAME_CHARS_MAX))
}

/// Why the numbers of a row are not reliable; `None` where they are.
pub(super) fn reservation(row: &MatrixRow) -> Option<String> {
    match &row.ending {
        RowEnding::WithErrors => {
            Some(format!("{} failed; excluded from the ranking", errors_words(row)))
        }
        RowEnding::Partly { failure } => Some(format!(
            "{} of {} failed; excluded from the ranking: {}",
            row.failed_points.len(),
            counted((row.points.len() + row.failed_points.len()) as u64, "run"),
            reason(failure)
        )),
        _ if row.verdict == Some(Verdict::Invalid) => Some("its runs are invalid".to_owned()),
        RowEnding::Clean | RowEnding::Failed { .. } | RowEnding::Missing => None,
    }
}

/// `10 of 100 requests`.
pub(super) fn errors_words(row: &MatrixRow) -> String {
    format!("{} of {}", count(row.errors), counted(row.requests, "request"))
}

/// Why a row has no numbers at all; `None` where it has.
pub(super) fn nothing(row: &MatrixRow) -> Option<String> {
    match &row.ending {
        RowEnding::Failed { failure } => Some(reason(failure)),
        RowEnding::Missing => Some("not measured yet".to_owned()),
        RowEnding::WithErrors if has_only_errors(row) => {
            Some(format!("all of {} failed", counted(row.requests, "request")))
        }
        RowEnding::Clean | RowEnding::WithErrors | RowEnding::Partly { .. } => None,
    }
}

const fn has_only_errors(row: &MatrixRow) -> bool {
    0 < row.requests && row.requests <= row.errors
}

/// Whether it was tried and has no numbers.
pub(super) fn is_lost(row: &MatrixRow) -> bool {
    nothing(row).is_some() && row.ending != RowEnding::Missing
}

/// A failure in one line, limited in length: the text comes from a server.
pub(super) fn reason(failure: &DeploymentFailure) -> String {
    let what = terminal_line(failure.what.trim(), REASON_CHARS_MAX);
    if what.is_empty() { failure.stage.to_string() } else { format!("{}: {what}", failure.stage) }
}

/// Why a row has no numbers, in two or three words.
pub(super) fn short(row: &MatrixRow) -> String {
    row.ending.failure().map_or_else(
        || {
            let all = has_only_errors(row);
            if all { "every request failed" } else { "not measured yet" }.to_owned()
        },
        DeploymentFailure::in_short,
    )
}

/// Whether the lead is too small to be shown.
pub(super) fn is_tie(ahead: &Speedup) -> bool {
    ahead.share.abs() < 0.001
}

pub(super) const NOT_COMPARED: &str = "nothing else could be compared";
pub(super) const ONE_RUN: &str =
    "one run per side: the variation between starts of the server is not known";
pub(super) const NO_SPREAD: &str =
    "all runs gave the same value: the variation by chance is not known";

/// Whether a winner is certain, in two or three words.
pub(super) const fn certainty_word(certainty: Certainty) -> &'static str {
    certainty_words(certainty).0
}

/// Why a winner is not certain.
pub(super) const fn certainty_reason(certainty: Certainty) -> &'static str {
    certainty_words(certainty).1
}

const fn certainty_words(certainty: Certainty) -> (&'static str, &'static str) {
    match certainty {
        Certainty::Certain => ("certain", ""),
        Certainty::Undecided => ("undecided", "the runs vary too much to tell which is ahead"),
        Certainty::OneRun => ("one run", ONE_RUN),
        Certainty::NoSpread => ("runs without spread", NO_SPREAD),
        Certainty::Alone => ("alone", NOT_COMPARED),
    }
}

/// How many rows were measured, and how many of the others there are of each kind; empty where every
/// row was measured without failures.
pub(super) fn tally(rows: &[MatrixRow]) -> (usize, String) {
    let number = |is: fn(&RowEnding) -> bool| rows.iter().filter(|row| is(&row.ending)).count();
    let kinds = [
        (number(|ending| matches!(ending, RowEnding::WithErrors)), "with failed requests"),
        (number(|ending| matches!(ending, RowEnding::Partly { .. })), "with failed runs"),
        (number(|ending| matches!(ending, RowEnding::Failed { .. })), "failed"),
        (number(|ending| matches!(ending, RowEnding::Missing)), "not measured yet"),
    ];
    let troubles = kinds.iter().filter(|(number, _)| 0 < *number);
    let troubles = troubles.map(|(number, kind)| format!("{} {kind}", count(*number as u64)));
    (rows.len() - kinds[2].0 - kinds[3].0, troubles.collect::<Vec<_>>().join(", "))
}
