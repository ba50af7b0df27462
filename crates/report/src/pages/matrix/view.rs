//! What the parts of the page look things up in: rows by their places, and how everything is called.

use std::collections::BTreeMap;

use inferometer_analysis::Better;
use inferometer_analysis::Verdict;
use inferometer_analysis::matrix::{
    Certainty, MatrixFigure, MatrixRow, MatrixSummary, RowEnding, Speedup, TpsBy,
};
use inferometer_analysis::set::{Across, SetSummary};
use inferometer_model::campaign::{Level, Strategy};
use inferometer_model::deployment::DeploymentFailure;

use crate::escape::terminal_line;
use crate::number::{NOTHING, count, figure as few_digits};
use crate::pages::words::{counted, level_name};

/// Presets and flags are named in a file, and names of servers are no shorter.
pub(crate) const NAME_CHARS_MAX: usize = 60;
const REASON_CHARS_MAX: usize = 300;

#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) set: &'a SetSummary,
    pub(crate) matrix: &'a MatrixSummary,
}

impl<'a> View<'a> {
    pub(crate) fn row(&self, place: u32) -> Option<&'a MatrixRow> {
        self.matrix.rows.get(usize::try_from(place).ok()?)
    }

    pub(crate) fn rows_at(&self, places: &[u32]) -> Vec<&'a MatrixRow> {
        places.iter().filter_map(|place| self.row(*place)).collect()
    }

    pub(crate) fn preset(&self, place: u32) -> String {
        let preset = usize::try_from(place).ok().and_then(|at| self.matrix.presets.get(at));
        preset.map_or_else(
            || NOTHING.to_owned(),
            |preset| terminal_line(&preset.name, NAME_CHARS_MAX),
        )
    }

    pub(crate) fn model(&self, place: u32) -> String {
        let model = usize::try_from(place).ok().and_then(|at| self.matrix.models.get(at));
        let name =
            model.map(|model| if model.label.is_empty() { &model.name } else { &model.label });
        name.map_or_else(|| NOTHING.to_owned(), |name| terminal_line(name, NAME_CHARS_MAX))
    }

    /// The deployment among those of the same model and context: `H100X2 · tensor`.
    pub(crate) fn deployment(&self, row: &MatrixRow) -> String {
        let preset = self.preset(row.preset);
        match variant(row) {
            Some(variant) => format!("{preset} · {variant}"),
            None => preset,
        }
    }

    /// The whole cell with its load: `H100X2 · Llama-3B · 2,048 tokens · tensor · c=10`.
    pub(crate) fn cell(&self, row: &MatrixRow) -> String {
        let mut parts = vec![self.preset(row.preset), self.model(row.model)];
        parts.extend(row.context.map(context_words));
        parts.extend(variant(row));
        parts.extend(self.level(row.level));
        parts.join(" · ")
    }

    /// `None` where all rows have the same load, which then needs no telling.
    pub(crate) fn level(&self, level: Level) -> Option<String> {
        let first = self.matrix.rows.first().map(|row| row.level);
        let several = self.matrix.rows.iter().any(|row| Some(row.level) != first);
        several.then(|| level_name(level))
    }

    /// Whether context lengths are varied.
    pub(crate) fn has_contexts(&self) -> bool {
        let first = self.matrix.rows.first().map(|row| row.context);
        self.matrix.rows.iter().any(|row| Some(row.context) != first)
    }

    /// A page with more rows than fit one look shows what is best and what failed, and has the rest
    /// folded away and without what the CSV has as well.
    pub(crate) const fn is_large(&self) -> bool {
        const ROWS_MAX: usize = 48;
        ROWS_MAX < self.matrix.rows.len()
    }

    pub(crate) fn figure<'r>(&self, row: &'r MatrixRow, figure: MatrixFigure) -> &'r Across {
        figure.of(row, self.tps_by())
    }

    /// Whose count of tokens the rates of all rows are made from.
    pub(crate) fn tps_by(&self) -> TpsBy {
        self.matrix.tps_by()
    }

    /// Nothing where every request failed, whatever counters say of it.
    pub(crate) fn mean(&self, row: &MatrixRow, figure: MatrixFigure) -> Option<f64> {
        self.figure(row, figure).mean.filter(|_| nothing(row).is_none())
    }

    /// The best of rows that may be compared.
    pub(crate) fn best<'r>(
        &self,
        rows: impl IntoIterator<Item = &'r MatrixRow>,
        figure: MatrixFigure,
    ) -> Option<(&'r MatrixRow, f64)> {
        let rows: Vec<&MatrixRow> = rows.into_iter().collect();
        let (place, value) = figure.best((0_u32..).zip(rows.iter().copied()), self.tps_by())?;
        Some((rows.get(usize::try_from(place).ok()?)?, value))
    }

    /// On one GPU a pipeline is the server that tensor parallel is, by another name.
    pub(crate) fn is_as_tensor(&self, row: &MatrixRow) -> bool {
        let is_twin = |other: &MatrixRow| {
            other.strategy == Some(Strategy::Tensor)
                && other.level == row.level
                && row.is_same_deployment(other, &self.matrix.presets)
        };
        row.strategy == Some(Strategy::Pipeline) && self.matrix.rows.iter().any(is_twin)
    }

    /// How much faster than their profiles embedded engines answered, where one did.
    pub(crate) fn sped_up(&self) -> Option<f64> {
        let subjects = self.set.conditions.iter().filter_map(|one| one.subject.as_ref());
        subjects.filter_map(|subject| subject.engine_speed).reduce(f64::max)
    }

    /// Whether any row has it; what none has needs no column of dashes.
    pub(crate) fn has(&self, figure: MatrixFigure) -> bool {
        self.matrix.rows.iter().any(|row| self.mean(row, figure).is_some())
    }

    pub(crate) fn unit(&self, figure: MatrixFigure) -> String {
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

    /// `None` where the matrix file does not say.
    pub(crate) fn currency(&self) -> Option<String> {
        let told = self.matrix.currency.as_deref().filter(|currency| !currency.is_empty());
        told.map(|currency| terminal_line(currency, 12))
    }
}

/// As digits on the page: small ones keep three that mean something.
pub(crate) fn digits(value: f64) -> String {
    if value == 0.0 || 0.1 <= value.abs() || !value.is_finite() {
        return few_digits(Some(value));
    }
    let places = (3..9).find(|places| 10_f64.powi(-places + 2) <= value.abs()).unwrap_or(9);
    format!("{value:.*}", usize::try_from(places).unwrap_or(9))
}

pub(crate) const fn figure_name(figure: MatrixFigure) -> &'static str {
    match figure {
        MatrixFigure::PromptTps => "Prompt TPS",
        MatrixFigure::GenerationTps => "Generation TPS",
        MatrixFigure::Latency => "Mean latency",
        MatrixFigure::Ttft => "Mean TTFT",
        MatrixFigure::Cost => "Cost",
        MatrixFigure::Energy => "Energy",
    }
}

/// Inside of a sentence.
pub(crate) const fn figure_word(figure: MatrixFigure) -> &'static str {
    match figure {
        MatrixFigure::PromptTps => "prompt TPS",
        MatrixFigure::GenerationTps => "generation TPS",
        MatrixFigure::Latency => "mean latency",
        MatrixFigure::Ttft => "mean TTFT",
        MatrixFigure::Cost => "cost",
        MatrixFigure::Energy => "energy",
    }
}

pub(crate) const fn best_word(figure: MatrixFigure) -> &'static str {
    match figure.better() {
        Better::Higher => "Highest",
        Better::Lower | Better::Neither => "Lowest",
    }
}

pub(crate) const fn strategy_name(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Tensor => "tensor parallel",
        Strategy::Pipeline => "pipeline parallel",
    }
}

pub(crate) fn context_words(tokens: u32) -> String {
    format!("{} tokens", count(tokens.into()))
}

/// Strategy and flags, where they are varied: `tensor · enforce-eager=true`.
pub(crate) fn variant(row: &MatrixRow) -> Option<String> {
    let strategy = row.strategy.map(|strategy| strategy.word().to_owned());
    let parts: Vec<String> = strategy.into_iter().chain(flags_words(&row.flags)).collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

pub(crate) fn flags_words(flags: &BTreeMap<String, String>) -> Option<String> {
    let told: Vec<String> = flags.iter().map(|(name, value)| format!("{name}={value}")).collect();
    (!told.is_empty()).then(|| terminal_line(&told.join(" "), NAME_CHARS_MAX))
}

/// Why the numbers of a row are not to be relied on; `None` where they are.
pub(crate) fn reservation(row: &MatrixRow) -> Option<String> {
    match &row.ending {
        RowEnding::WithErrors => Some(format!("{} failed, so it wins nothing", errors_words(row))),
        RowEnding::Partly { failure } => Some(format!(
            "{} of {} came to nothing, so it wins nothing: {}",
            row.failed_points.len(),
            counted((row.points.len() + row.failed_points.len()) as u64, "run"),
            reason(failure)
        )),
        _ if row.verdict == Some(Verdict::Invalid) => Some("its runs are invalid".to_owned()),
        RowEnding::Clean | RowEnding::Failed { .. } | RowEnding::Missing => None,
    }
}

/// `10 of 100 requests`.
pub(crate) fn errors_words(row: &MatrixRow) -> String {
    format!("{} of {}", count(row.errors), counted(row.requests, "request"))
}

/// Why a row has no numbers at all; `None` where it has.
pub(crate) fn nothing(row: &MatrixRow) -> Option<String> {
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
pub(crate) fn is_lost(row: &MatrixRow) -> bool {
    nothing(row).is_some() && row.ending != RowEnding::Missing
}

/// In one line; servers may say anything.
pub(crate) fn reason(failure: &DeploymentFailure) -> String {
    let what = terminal_line(failure.what.trim(), REASON_CHARS_MAX);
    if what.is_empty() { failure.stage.to_string() } else { format!("{}: {what}", failure.stage) }
}

/// In two or three words.
pub(crate) fn short(row: &MatrixRow) -> String {
    let Some(failure) = row.ending.failure() else {
        let word = if has_only_errors(row) { "every request failed" } else { "not measured yet" };
        return word.to_owned();
    };
    failure.in_short()
}

/// Whether the lead is less than pages show of one, so that the first is the first by chance.
pub(crate) fn is_even(ahead: &Speedup) -> bool {
    ahead.share.abs() < 0.001
}

pub(crate) const fn certainty_word(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Certain => "certain",
        Certainty::Undecided => "undecided",
        Certainty::OneRun => "not known: one run",
        Certainty::NoSpread => "not known: runs without spread",
        Certainty::Alone => "alone",
    }
}
