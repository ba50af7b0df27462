//! The findings about the levels of a set, in sentences with numbers and confidence intervals, or the
//! reason why a finding is not known.

use inferometer_analysis::set::{
    Finding, Findings, FoundLimit, Knee, Model, Peak, PerUserSpot, Saturation, Scalability,
    SweetSpot,
};

use super::prelude::*;
use crate::fmt::figure;

/// A finding compares all levels, so one value without an interval is enough for that.
const NOT_SURE: &str = "certainty-unknown";

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
    levels.into_iter().map(|level| level_name(*level)).join(", ")
}

fn left_out(found: &Findings) -> String {
    let cut = found.left_out.iter().filter(|level| !found.not_reached.contains(level));
    let parts = [
        (level_names(cut), "cut by a time limit, so that only fast requests completed"),
        (level_names(&found.not_reached), text("left-out-short")),
    ];
    let known = parts.into_iter().filter(|(levels, _)| !levels.is_empty());
    known.map(|(levels, why)| format!("{levels}: {why}")).join("; ")
}

/// The result of a search in words.
pub(super) fn search_result(limit: &FoundLimit) -> String {
    let mut words = limit.words.clone();
    let undecided = limit.undecided.iter().map(|level| setting(*level)).try_join(", ");
    words.extend(undecided.map(|levels| format!("; undecided at {levels}")));
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
    let (value, unit) = (figure(&peak.throughput), unit(&peak.quantity));
    let share = resampled(peak.same_share, "highest");
    fill("peak", &[&level_name(peak.level), &value, &unit, &share])
}

pub(super) fn knee(knee: &Knee) -> String {
    let range = match knee.interval {
        None if knee.found_share.is_some() => String::new(),
        None => format!("; {}", text(NOT_SURE)),
        Some(range) if range.low == range.high => {
            "; the same level in 95 % of resampled sets".to_owned()
        }
        Some(range) => {
            format!("; 95 % between {} and {}", level_name(range.low), level_name(range.high))
        }
    };
    let share = knee.found_share.filter(|share| *share < 1.0);
    let share = share.map(|share| format!("; {} of resampled sets have a knee", percent(share)));
    let (value, unit) = (figure(&knee.throughput), unit(&knee.quantity));
    let share = share.unwrap_or_default();
    fill("knee", &[&level_name(knee.level), &value, &unit, &range, &share])
}

pub(super) fn sweet_spot(spot: &SweetSpot) -> String {
    let uncertain =
        if spot.certified { "" } else { "; not all values are of enough requests to certify" };
    let (value, unit) = (figure(&spot.throughput), unit(&spot.quantity));
    let (slos, share) = (slo_words(spot), resampled(spot.same_share, "chosen"));
    fill("sweet-spot", &[&level_name(spot.level), &value, &unit, &slos, &share, &uncertain])
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
    let [speed, ttft, tpot] =
        [&spot.per_user_throughput, &spot.ttft_ms_p99, &spot.tpot_ms_p99].map(figure);
    let (level, share) = (level_name(spot.level), resampled(spot.same_share, "chosen"));
    fill("per-user-spot", &[&level, &speed, &ttft, &tpot, &share, &others, &uncertain])
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
            let [lambda, sigma, kappa] = [&law.lambda, &law.sigma, &law.kappa].map(figure);
            let fit = number(law.quality.r_squared);
            fill("scalability-law", &[&lambda, &unit, &sigma, &kappa, &peak, &fit, &no_fit])
        }
        Model::Saturating => {
            let curve = &found.saturating;
            let ceiling =
                words_or_reason(&curve.ceiling, |it| format!("approaches {} {unit}", figure(it)));
            let half =
                curve.half_at.found().map(|half| format!(", half of it at c={}", figure(half)));
            let [own, other] = [&curve.quality, &found.universal.quality].map(|it| number(it.aicc));
            let (half, fit) = (half.unwrap_or_default(), number(curve.quality.r_squared));
            fill("scalability-curve", &[&ceiling, &half, &fit, &other, &own, &no_fit])
        }
    })
}

fn resampled(share: Option<f64>, word: &str) -> String {
    share.map_or_else(
        || format!("; {}", text(NOT_SURE)),
        |share| format!("; {word} in {} of resampled sets", percent(share)),
    )
}

pub(super) fn unit(quantity: &str) -> &'static str {
    if quantity == metric::REQUEST_THROUGHPUT.name { "req/s" } else { "tok/s" }
}
