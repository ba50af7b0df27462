//! Whether the figures of a suite are those of a prefix cache: what the server says of it, and where
//! it says nothing, what the speed of reading shows.

use std::fmt::Write;

use inferometer_model::campaign::{CampaignSpec, Prompts};
use inferometer_model::spec::LoadShape;
use serde::{Deserialize, Serialize};

use super::prefill::{self, Prefill, State};
use super::sent;
use super::{ConditionSummary, PointResult, SuiteRow, SuiteSummary, cached_share, of_points};
use crate::judge::{CACHED_SHARE, CACHED_SHARE_GRAVE, Severity, Warning, new_prompts};
use crate::metric;
use crate::quantity::Quantity;

/// A row whose prompts were in the server's prefix cache: they were to be new, or its data had been
/// sent before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contaminated {
    /// Its place among the rows.
    pub row: u32,
    /// Whether nothing but its speed, or the same data before it, speaks for it, as the server does not
    /// say what it cached.
    pub suspected: bool,
    /// Whether its prompts need not be new, and the same data was sent before; that may be wanted.
    #[serde(default)]
    pub same_data: bool,
    /// The largest of its runs.
    pub cached_share: Option<f64>,
    /// Prompt tokens per second.
    pub pp: Option<f64>,
    /// The same of a row that was not in the cache and was no harder to read; null without one.
    pub pp_cold: Option<f64>,
    /// The place of that row.
    pub cold: Option<u32>,
    pub ttft_ms_mean: Option<f64>,
    /// Far below the mean where some prompts were in the cache and some were not.
    pub ttft_ms_p50: Option<f64>,
    /// Rows that had sent prompts which begin alike, or the same data, before, in the order in which
    /// they did.
    pub sent_before: Vec<u32>,
}

/// A mean so far above the median is of two kinds of prompts.
const MEAN_OVER_MEDIAN: f64 = 1.5;
/// What a run that met its prompts in the cache says itself.
pub(in crate::set) const CONTAMINATION: &str = "cache-contamination";
/// What a run says whose prompts an earlier run sent, on a server that does not tell what it cached.
pub(in crate::set) const SEEN_BEFORE: &str = "seen-before";

pub(super) fn found(
    campaign: &CampaignSpec,
    rows: &[SuiteRow],
    conditions: &[ConditionSummary],
    results: &[&PointResult],
) -> Vec<Contaminated> {
    let quantity = |row: &SuiteRow, of: Quantity| row.summary(conditions)?.quantity(of)?.mean;
    let pp = Quantity::from(&metric::PP);
    let states: Vec<Option<State>> = rows.iter().map(|row| state(campaign, row, results)).collect();
    let prefills: Vec<Option<Prefill>> = rows
        .iter()
        .zip(&states)
        .map(|(row, state)| {
            let (speed, ttft) = (quantity(row, pp)?, quantity(row, metric::TTFT.mean())?);
            let input_tokens = speed * ttft / 1e3;
            let state = (*state)?;
            let concurrency = users(campaign, row)?;
            Some(Prefill { concurrency, input_tokens, speed, state })
        })
        .collect();
    let shown = prefill::compare(&prefills);
    let sent_before = sent::before_each(campaign, rows, results);
    (0_u32..)
        .zip(rows)
        .zip(states.into_iter().zip(shown))
        .zip(sent_before)
        .filter_map(|(((place, row), (state, shown)), sent_before)| {
            let cached_share = largest_share(row, results);
            let is_resent = state.is_none() && !sent_before.is_empty();
            let same_data = is_resent && cached_share.is_none_or(|share| CACHED_SHARE < share);
            let is_told = state == Some(State::Warm) || shown.suspected || same_data;
            is_told.then(|| Contaminated {
                row: place,
                suspected: shown.suspected || same_data && cached_share.is_none(),
                same_data,
                cached_share,
                pp: quantity(row, pp),
                pp_cold: shown.cold.and_then(|cold| prefills[cold]).map(|cold| cold.speed),
                cold: shown.cold.and_then(|cold| u32::try_from(cold).ok()),
                ttft_ms_mean: quantity(row, metric::TTFT.mean()),
                ttft_ms_p50: quantity(row, metric::TTFT.p50()),
                sent_before,
            })
        })
        .collect()
}

/// Of a closed loop: requests of an open one come when they come, and how many wait is not asked.
fn users(campaign: &CampaignSpec, row: &SuiteRow) -> Option<u32> {
    let condition = campaign.conditions.get(usize::try_from(row.condition).ok()?)?;
    match condition.spec.load.shape {
        LoadShape::Closed { .. } => row.concurrency,
        LoadShape::Open { .. } => None,
    }
}

/// A run that met a warm cache is not made colder by one that did not.
fn largest_share(row: &SuiteRow, results: &[&PointResult]) -> Option<f64> {
    let shares = of_points(&row.points, results).filter_map(|it| cached_share(&it.summary));
    shares.max_by(f64::total_cmp)
}

/// `None` of a row whose prompts need not be new.
fn state(campaign: &CampaignSpec, row: &SuiteRow, results: &[&PointResult]) -> Option<State> {
    let condition = campaign.conditions.get(usize::try_from(row.condition).ok()?)?;
    new_prompts(&condition.spec.workload.source)?;
    let says_so = |result: &PointResult| {
        result.summary.warnings.iter().any(|notice| notice.key == CONTAMINATION)
    };
    Some(match row.cached_share {
        _ if of_points(&row.points, results).any(says_so) => State::Warm,
        Some(_) => State::Cold,
        None => State::NotKnown,
    })
}

/// What a set says of it, once for what is known and once for what is suspected.
pub(in crate::set) fn notices(suite: &SuiteSummary) -> Vec<Warning> {
    let (resent, new): (Vec<&Contaminated>, Vec<&Contaminated>) =
        suite.contaminated.iter().partition(|row| row.same_data);
    let of = |suspected: bool| {
        new.iter().copied().filter(|row| row.suspected == suspected).collect::<Vec<_>>()
    };
    let known = of(false);
    let suspected = of(true);
    let mut found = Vec::new();
    if !known.is_empty() {
        let is_grave =
            |row: &&Contaminated| row.cached_share.is_some_and(|share| CACHED_SHARE_GRAVE < share);
        found.push(Warning {
            key: "warm-cache".to_owned(),
            check: None,
            severity: if known.iter().any(is_grave) { Severity::Degraded } else { Severity::Note },
            text: format!(
                "the prefix cache answered prompts that were to be new, by its share of their input: \
                 {}{}",
                listed(suite, &known),
                evidence(suite, &known)
            ),
            remedy: remedy(suite.prompts).to_owned(),
        });
    }
    if !suspected.is_empty() {
        found.push(Warning {
            key: "cache-suspected".to_owned(),
            check: None,
            severity: Severity::Note,
            text: format!(
                "the server does not say what it cached, and some prompts were read faster than \
                 reading explains, as if they had been in its prefix cache: {}{}",
                listed(suite, &suspected),
                evidence(suite, &suspected)
            ),
            remedy: format!(
                "a suspicion, no proof: let the server say what it cached (vLLM: \
                 --enable-prompt-tokens-details), or {}",
                remedy(suite.prompts)
            ),
        });
    }
    found.extend(same_data(suite, &resent));
    found
}

/// Whoever asks for the same data twice may want to see what the cache makes of it.
fn same_data(suite: &SuiteSummary, rows: &[&Contaminated]) -> Option<Warning> {
    let first = rows.first()?.sent_before.first()?;
    Some(Warning {
        key: "same-data".to_owned(),
        check: None,
        severity: Severity::Note,
        text: format!(
            "the same data was sent before, by {} first, so that the prefix cache may have known it; \
             with its share of the input where the server tells it: {}",
            name(suite, *first),
            listed(suite, rows)
        ),
        remedy:
            "that may be wanted; where it is not, give each scenario data of its own, restart the \
                 server between them, or switch its prefix cache off"
                .to_owned(),
    })
}

const fn remedy(prompts: Prompts) -> &'static str {
    match prompts {
        Prompts::Same => {
            "give every scenario prompts of its own (--prompts fresh), or switch the server's prefix \
             cache off"
        }
        Prompts::Fresh => {
            "restart the server before the suite, use another --seed, or switch its prefix cache \
             off"
        }
    }
}

fn name(suite: &SuiteSummary, place: u32) -> &str {
    let row = usize::try_from(place).ok().and_then(|place| suite.rows.get(place));
    row.map_or("a scenario", |row| &row.name)
}

/// The rows, with their share where it is known.
fn listed(suite: &SuiteSummary, rows: &[&Contaminated]) -> String {
    let row = |row: &&Contaminated| {
        let name = name(suite, row.row);
        row.cached_share
            .map_or_else(|| name.to_owned(), |share| format!("{name} {:.0} %", share * 100.0))
    };
    rows.iter().map(row).collect::<Vec<_>>().join(", ")
}

/// What the numbers show, each by the row that shows it best.
fn evidence(suite: &SuiteSummary, rows: &[&Contaminated]) -> String {
    let mut text = String::new();
    let best = |of: fn(&Contaminated) -> Option<f64>| {
        let known = rows.iter().filter_map(|row| Some((*row, of(row)?)));
        known.max_by(|(_, one), (_, other)| one.total_cmp(other))
    };
    let times = |row: &Contaminated| Some(row.pp? / row.pp_cold?);
    if let Some((row, _)) = best(times).filter(|(_, times)| 1.0 < *times)
        && let (Some(pp), Some(pp_cold), Some(cold)) = (row.pp, row.pp_cold, row.cold)
    {
        let _ = write!(
            text,
            "; {} reads prompts at {pp:.0} tokens/s and {} at {pp_cold:.0}",
            name(suite, row.row),
            name(suite, cold)
        );
    }
    let apart = |row: &Contaminated| Some(row.ttft_ms_mean? / row.ttft_ms_p50?);
    if let Some((row, _)) = best(apart).filter(|(_, apart)| MEAN_OVER_MEDIAN <= *apart)
        && let (Some(mean), Some(median)) = (row.ttft_ms_mean, row.ttft_ms_p50)
    {
        let _ = write!(
            text,
            "; the mean TTFT of {} is {mean:.0} ms over a median of {median:.0} ms: some of its \
             prompts were warm and some cold",
            name(suite, row.row)
        );
    }
    let longest = rows.iter().max_by_key(|row| row.sent_before.len());
    if let Some((first, more)) = longest.and_then(|row| row.sent_before.split_first()) {
        let others = if more.is_empty() { "" } else { " and others after it" };
        let _ = write!(
            text,
            "; {}{others} had sent prompts that begin alike, of the same seed",
            name(suite, *first)
        );
    }
    text
}

#[cfg(test)]
mod tests;
