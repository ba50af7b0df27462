//! Reasons to doubt a matrix, each with what to do about it. Their number does not grow with the
//! cells: one for each kind, with the first few cells by name.

use std::collections::BTreeMap;

use inferometer_model::campaign::{CampaignSpec, DeploymentRecord};
use inferometer_model::deployment::DeploymentFailure;
use inferometer_model::spec::Source;

use super::row::Unfit;
use super::{MatrixRow, MatrixSummary};
use crate::judge::Severity;
use crate::judge::{CACHED_SHARE, Warning};
use crate::set::PointResult;

/// Cells that a notice names; the others are counted.
const NAMED_MAX: usize = 4;
/// GPU memory that a driver may keep for itself when a server is gone.
const MEMORY_KEPT_BYTES: u64 = 256 << 20;

/// What the whole matrix says of itself.
pub(crate) fn found(
    matrix: &MatrixSummary,
    campaign: &CampaignSpec,
    results: &[&PointResult],
) -> Vec<Warning> {
    let about = About { matrix, campaign };
    [
        about.failed(),
        about.too_large(),
        about.not_divided(),
        about.missing(),
        about.with_errors(),
        about.left_behind(),
        about.same_prompt(results),
        about.one_run(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Notices of single cells: once for each kind, however many cells have it.
pub(crate) fn gathered(of_cells: impl IntoIterator<Item = Warning>) -> Vec<Warning> {
    let mut kinds: BTreeMap<String, (usize, Warning)> = BTreeMap::new();
    for notice in of_cells {
        let (cells, first) = kinds.entry(notice.key.clone()).or_insert_with(|| (0, notice.clone()));
        *cells += 1;
        first.severity = first.severity.max(notice.severity);
    }
    kinds
        .into_values()
        .map(|(cells, first)| match cells {
            1 => first,
            2 => Warning { text: format!("{}; and another cell likewise", first.text), ..first },
            _ => {
                let text = format!("{}; and {} other cells likewise", first.text, cells - 1);
                Warning { text, ..first }
            }
        })
        .collect()
}

struct About<'a> {
    matrix: &'a MatrixSummary,
    campaign: &'a CampaignSpec,
}

impl About<'_> {
    fn failed(&self) -> Option<Warning> {
        let cells = self.cells(|row| row.ending.failure().is_some() && row.unfit().is_none());
        let text = format!(
            "{} came to nothing, in whole or in part: {}",
            self.of_all(cells.len()),
            self.listed(&cells, |row| row.ending.failure().map(why))
        );
        let remedy = "look at the last words of their servers, mend the cause, and measure them \
                      again (inferometer matrix --resume SET --retry-failed)";
        some(&cells, "cells-failed", Severity::Degraded, text, remedy)
    }

    /// That a model does not fit is an answer, and no fault of the measurement.
    fn too_large(&self) -> Option<Warning> {
        let cells = self.cells(|row| row.unfit() == Some(Unfit::Memory));
        let text = format!(
            "{} could not be put up for want of memory: {}",
            self.of_all(cells.len()),
            self.listed(&cells, |_| None)
        );
        let remedy = "they are results; for figures there ask for a shorter context, more GPUs or a \
                      narrower data type";
        some(&cells, "cells-unfit", Severity::Note, text, remedy)
    }

    fn not_divided(&self) -> Option<Warning> {
        let cells = self.cells(|row| row.unfit() == Some(Unfit::Spread));
        let text = format!(
            "{} could not be put up since their model cannot be divided among so many GPUs: {}",
            self.of_all(cells.len()),
            self.listed(&cells, |_| None)
        );
        let remedy = "they are results; for figures there ask for a number of GPUs that divides the \
                      model's attention heads, or for pipeline parallel";
        some(&cells, "cells-not-divided", Severity::Note, text, remedy)
    }

    fn missing(&self) -> Option<Warning> {
        let runs = self.campaign.repetition.runs.get() as usize;
        let cells = self.cells(|row| row.points.len() + row.failed_points.len() < runs);
        let text = format!(
            "{} are not measured to their end: {}",
            self.of_all(cells.len()),
            self.listed(&cells, |_| None)
        );
        let remedy = "go on with the set (inferometer matrix --resume SET)";
        some(&cells, "cells-missing", Severity::Degraded, text, remedy)
    }

    fn with_errors(&self) -> Option<Warning> {
        let cells = self.cells(|row| 0 < row.errors);
        let text = format!(
            "{} have requests that did not end well: {}; their figures are of the requests that did, \
             under less load than asked for, so they win nothing",
            self.of_all(cells.len()),
            self.listed(&cells, |row| Some(format!("{} of {}", row.errors, row.requests)))
        );
        let remedy = "look at the failures on the pages of their runs, mend the cause, and measure \
                      them again (inferometer matrix --resume SET --retry-failed)";
        some(&cells, "cells-with-errors", Severity::Degraded, text, remedy)
    }

    /// What one server leaves is there when the next is measured.
    fn left_behind(&self) -> Option<Warning> {
        let is_unclean = |record: &&DeploymentRecord| {
            record.departure.as_ref().is_some_and(|it| {
                let kept = it.gpu_memory.map_or(0, |(before, after)| after.saturating_sub(before));
                !it.left.is_empty() || !it.port_closed || MEMORY_KEPT_BYTES < kept
            })
        };
        let mut cells: Vec<u32> =
            self.matrix.deployments.iter().filter(is_unclean).map(|it| it.condition).collect();
        cells.sort_unstable();
        cells.dedup();
        let text = format!(
            "servers of {} left a process, an open port or used GPU memory behind: {}",
            self.of_all(cells.len()),
            self.listed(&cells, |_| None)
        );
        let remedy = "end what is left, give servers more time to stop (stop_grace), and measure the \
                      cells that came after them on the same machine again";
        some(&cells, "servers-left", Severity::Degraded, text, remedy)
    }

    /// One prompt for all requests is in the cache from the second request on.
    fn same_prompt(&self, results: &[&PointResult]) -> Option<Warning> {
        let is_fixed = |cell: u32| {
            let condition =
                usize::try_from(cell).ok().and_then(|it| self.campaign.conditions.get(it));
            condition.is_some_and(|it| matches!(it.spec.workload.source, Source::Fixed(_)))
        };
        let fixed = || results.iter().filter(|result| is_fixed(result.point.condition));
        let shares: Vec<Option<f64>> =
            fixed().map(|result| crate::set::cached_share(&result.summary)).collect();
        let known: Vec<f64> = shares.iter().flatten().copied().collect();
        let warm: Vec<f64> = known.iter().copied().filter(|it| CACHED_SHARE < *it).collect();
        let runs = shares.len();
        let highest = warm.iter().copied().max_by(f64::total_cmp);
        let text = if let Some(highest) = highest {
            format!(
                "every request sends the same prompt, and in {} of {runs} runs the prefix cache \
                 answered part of it (up to {:.0} % of the input): prompt tokens per second count \
                 tokens that nobody computed",
                warm.len(),
                highest * 100.0
            )
        } else if known.len() < runs {
            "every request sends the same prompt, and the servers do not say what their prefix cache \
             answered: prompt tokens per second may count tokens that nobody computed"
                .to_owned()
        } else {
            return None;
        };
        let remedy = "compare reading speeds with prompts that differ (workload kind synthetic), or \
                      switch the prefix cache of the servers off";
        Some(notice("same-prompt", Severity::Note, text, remedy))
    }

    fn one_run(&self) -> Option<Warning> {
        let cells = self.cells(|row| row.points.len() == 1);
        let text = format!(
            "{} have one run each: what a new start of the server changes is not known, and no winner \
             among them is certain",
            self.of_all(cells.len())
        );
        let remedy = "measure every cell five times (--repeat 5)";
        some(&cells, "one-run", Severity::Note, text, remedy)
    }

    /// Cells of which a row is so, in their order.
    fn cells(&self, is_so: impl Fn(&MatrixRow) -> bool) -> Vec<u32> {
        let mut cells: Vec<u32> =
            self.matrix.rows.iter().filter(|row| is_so(row)).map(|row| row.cell).collect();
        cells.dedup();
        cells
    }

    fn of_all(&self, cells: usize) -> String {
        format!("{cells} of {} cells", self.campaign.conditions.len())
    }

    /// The first few by name, each with what is to be said of its first row that says it.
    fn listed(&self, cells: &[u32], told: impl Fn(&MatrixRow) -> Option<String>) -> String {
        let named = cells.iter().take(NAMED_MAX).map(|cell| {
            let condition =
                usize::try_from(*cell).ok().and_then(|it| self.campaign.conditions.get(it));
            let name = condition.map_or("a cell that is not in the plan", |it| it.name.as_str());
            let mut own = self.matrix.rows.iter().filter(|row| row.cell == *cell);
            match own.find_map(&told) {
                Some(told) => format!("{name} ({told})"),
                None => name.to_owned(),
            }
        });
        let mut parts: Vec<String> = named.collect();
        if NAMED_MAX < cells.len() {
            parts.push(format!("and {} more", cells.len() - NAMED_MAX));
        }
        parts.join(", ")
    }
}

fn why(failure: &DeploymentFailure) -> String {
    failure.stage.to_string()
}

/// `None` without a cell that it is about.
fn some(
    cells: &[u32],
    key: &str,
    severity: Severity,
    text: String,
    remedy: &str,
) -> Option<Warning> {
    (!cells.is_empty()).then(|| notice(key, severity, text, remedy))
}

fn notice(key: &str, severity: Severity, text: String, remedy: &str) -> Warning {
    Warning { key: key.to_owned(), check: None, severity, text, remedy: remedy.to_owned() }
}
