//! The findings about the levels of a set, in sentences with numbers and confidence intervals, or the
//! reason why a finding is not known.

use inferometer_analysis::set::{
    Finding, Findings, FoundLimit, Knee, Model, Peak, PerUserSpot, Saturation, Scalability,
    SweetSpot,
};

use super::prelude::*;
use crate::fmt::figure;

/// A finding compares all levels, so one value without an interval is enough for that.
const NOT_SURE: &str =
    "its certainty is not known: not every value has an interval or several runs";

/// Each finding by its name. A finding that does not apply to this kind of load is left out.
pub(super) fn findings(
    found: &Findings,
    dimension: Option<Dimension>,
) -> Vec<(&'static str, String)> {
    let of_concurrency = dimension != Some(Dimension::Rate);
    let of_rate = dimension != Some(Dimension::Concurrency);
    [
        (true, "sweet spot", words_or_reason(&found.sweet_spot, sweet_spot)),
        (true, "knee", words_or_reason(&found.knee, knee)),
        (true, "peak", words_or_reason(&found.peak, peak)),
        (of_concurrency, "per user", words_or_reason(&found.per_user_spot, per_user_spot)),
        (of_rate, "saturation", words_or_reason(&found.saturation, saturation)),
        (of_concurrency, "scalability", words_or_reason(&found.scalability, scalability)),
        (!found.left_out.is_empty(), "left out", left_out(found)),
    ]
    .into_iter()
    .filter_map(|(applies, label, words)| applies.then_some((label, words)))
    .collect()
}

fn level_names<'a>(levels: impl IntoIterator<Item = &'a Level>) -> String {
    levels.into_iter().map(|level| level_name(*level)).collect::<Vec<_>>().join(", ")
}

fn left_out(found: &Findings) -> String {
    let cut = found.left_out.iter().filter(|level| !found.not_reached.contains(level));
    let parts = [
        (level_names(cut), "cut by a time limit, so that only fast requests completed"),
        (
            level_names(&found.not_reached),
            "fewer requests were in flight, so that per-user values count users who were not there",
        ),
    ];
    let known = parts.into_iter().filter(|(levels, _)| !levels.is_empty());
    known.map(|(levels, why)| format!("{levels}: {why}")).collect::<Vec<_>>().join("; ")
}

/// The result of a search in words.
pub(super) fn search_result(limit: &FoundLimit) -> String {
    let mut words = limit.words.clone();
    if !limit.undecided.is_empty() {
        let levels: Vec<String> = limit.undecided.iter().map(|level| setting(*level)).collect();
        let _ = write!(words, "; undecided at {}", levels.join(", "));
    }
    // The sentence states that a level is not confirmed.
    if limit.level.is_some() && limit.confirmed {
        words += "; confirmed on a fresh seed";
    }
    match limit.runs {
        0 => words + "; known from the levels of the sweep without further runs",
        runs => format!("{words}; the search took {}", counted(runs.into(), "run")),
    }
}

pub(super) fn words_or_reason<T>(finding: &Finding<T>, words: impl Fn(&T) -> String) -> String {
    match finding {
        Finding::Found(found) => words(found),
        Finding::Unknown(reason) => format!("{NOTHING} {reason}"),
    }
}

pub(super) fn peak(peak: &Peak) -> String {
    format!(
        "{} ({} {}{})",
        level_name(peak.level),
        figure(&peak.throughput),
        unit(&peak.quantity),
        resampled(peak.same_share, "highest"),
    )
}

pub(super) fn knee(knee: &Knee) -> String {
    let range = match knee.interval {
        None if knee.found_share.is_some() => String::new(),
        None => format!("; {NOT_SURE}"),
        Some(range) if range.low == range.high => {
            "; the same level in 95 % of resampled sets".to_owned()
        }
        Some(range) => {
            format!("; 95 % between {} and {}", level_name(range.low), level_name(range.high))
        }
    };
    let share = knee.found_share.filter(|share| *share < 1.0);
    let share = share.map(|share| format!("; {} of resampled sets have a knee", percent(share)));
    format!(
        "{} ({} {}{range}{})",
        level_name(knee.level),
        figure(&knee.throughput),
        unit(&knee.quantity),
        share.unwrap_or_default(),
    )
}

pub(super) fn sweet_spot(spot: &SweetSpot) -> String {
    let uncertain =
        if spot.certified { "" } else { "; not all values are of enough requests to certify" };
    format!(
        "{} ({} {}: the most within {}{}{uncertain})",
        level_name(spot.level),
        figure(&spot.throughput),
        unit(&spot.quantity),
        slo_words(spot),
        resampled(spot.same_share, "chosen"),
    )
}

/// The SLOs that a sweet spot meets.
pub(super) fn slo_words(spot: &SweetSpot) -> String {
    let default = if spot.default_slos { ", the default for interactive use" } else { "" };
    format!("{}{default}", list(&spot.slos))
}

pub(super) fn per_user_spot(spot: &PerUserSpot) -> String {
    let others = level_names(spot.eligible.iter().filter(|level| **level != spot.level));
    let others = match others.as_str() {
        "" => String::new(),
        others => format!("; also within twice the best latencies: {others}"),
    };
    let uncertain =
        if spot.certified { "" } else { "; the p99s are of too few requests to certify" };
    format!(
        "{} ({} tok/s for each user, TTFT p99 {} ms, TPOT p99 {} ms{}{others}{uncertain})",
        level_name(spot.level),
        figure(&spot.per_user_throughput),
        figure(&spot.ttft_ms_p99),
        figure(&spot.tpot_ms_p99),
        resampled(spot.same_share, "chosen"),
    )
}

fn saturation(found: &Saturation) -> String {
    let rate = |per_s: f64| level_name(Level::Rate(per_s));
    let how = if found.missed_piling_up {
        "requests queue up there".to_owned()
    } else {
        format!("{} of it served", percent(found.missed_share))
    };
    let mut words = match (found.highest_served, found.lowest_missed) {
        (Some(kept), None) => format!("not reached: {}, the highest rate, was served", rate(kept)),
        (None, Some(missed)) => format!("below {}, the lowest rate ({how})", rate(missed)),
        (Some(kept), Some(missed)) => {
            format!("between {} and {} ({how})", rate(kept), rate(missed))
        }
        (None, None) => format!("{NOTHING} no rate was measured"),
    };
    if let Some(above) = found.served_above {
        let _ = write!(words, "; NOT clear, because {} was served again", rate(above));
    }
    words
}

fn scalability(found: &Scalability) -> String {
    let no_fit = "; it does NOT fit the levels, so draw no conclusion from it";
    let no_fit = if found.fits { "" } else { no_fit };
    let unit = unit(&found.quantity);
    words_or_reason(&found.chosen, |chosen| match chosen {
        Model::Universal => {
            let law = &found.universal;
            let peak =
                words_or_reason(&law.peak, |peak| format!("falls beyond c={}", figure(peak)));
            format!(
                "universal scalability law: {} {unit} at c=1, σ {}, κ {}; {peak}; R² {}{no_fit}",
                figure(&law.lambda),
                figure(&law.sigma),
                figure(&law.kappa),
                number(law.quality.r_squared),
            )
        }
        Model::Saturating => {
            let curve = &found.saturating;
            let ceiling =
                words_or_reason(&curve.ceiling, |it| format!("approaches {} {unit}", figure(it)));
            let half =
                curve.half_at.found().map(|half| format!(", half of it at c={}", figure(half)));
            format!(
                "{ceiling}{}; R² {}; the universal scalability law fits no better (AICc {} against \
                 {}){no_fit}",
                half.unwrap_or_default(),
                number(curve.quality.r_squared),
                number(found.universal.quality.aicc),
                number(curve.quality.aicc),
            )
        }
    })
}

fn resampled(share: Option<f64>, word: &str) -> String {
    share.map_or_else(
        || format!("; {NOT_SURE}"),
        |share| format!("; {word} in {} of resampled sets", percent(share)),
    )
}

pub(super) fn unit(quantity: &str) -> &'static str {
    if quantity == metric::REQUEST_THROUGHPUT.name { "req/s" } else { "tok/s" }
}
