//! What the levels of a set show, in sentences with numbers and their intervals; or why it is not
//! known.

use std::fmt::Write;

use inferometer_analysis::metric;
use inferometer_analysis::set::{
    Finding, Findings, FoundLimit, Knee, Model, Peak, Saturation, Scalability, SweetSpot,
};
use inferometer_model::study::{Dimension, Level};

use crate::fmt::{NOTHING, count, figure, level_phrase, number, percent, setting};

/// A finding looks at all levels, so one figure of one of them is enough for that.
const NOT_SURE: &str =
    "how sure is not known: not every figure that it looks at has an interval or several runs";

/// Each finding by its name. A question that does not apply to
/// this kind of load is left out.
pub(super) fn findings(
    found: &Findings,
    dimension: Option<Dimension>,
) -> Vec<(&'static str, String)> {
    let of_concurrency = dimension != Some(Dimension::Rate);
    let of_rate = dimension != Some(Dimension::Concurrency);
    [
        (true, "peak", words_or_reason(&found.peak, peak)),
        (true, "knee", words_or_reason(&found.knee, knee)),
        (of_concurrency, "sweet spot", words_or_reason(&found.sweet_spot, sweet_spot)),
        (of_rate, "saturation", words_or_reason(&found.saturation, saturation)),
        (of_concurrency, "scalability", words_or_reason(&found.scalability, scalability)),
        (!found.left_out.is_empty(), "left out", left_out(found)),
    ]
    .into_iter()
    .filter_map(|(applies, label, words)| applies.then_some((label, words)))
    .collect()
}

fn left_out(found: &Findings) -> String {
    let words = |levels: Vec<&Level>, why: &str| {
        let levels: Vec<String> = levels.into_iter().map(|level| level_phrase(*level)).collect();
        (!levels.is_empty()).then(|| format!("{}: {why}", levels.join(", ")))
    };
    let is_reached = |level: &&Level| !found.not_reached.contains(level);
    let cut = words(
        found.left_out.iter().filter(is_reached).collect(),
        "cut by a limit of time, so that only quick requests ended",
    );
    let not_reached = words(
        found.not_reached.iter().collect(),
        "never so many in flight, so that figures per user count users who were not there",
    );
    cut.into_iter().chain(not_reached).collect::<Vec<_>>().join("; ")
}

/// The result of a search in words.
pub(super) fn search_result(limit: &FoundLimit) -> String {
    let mut words = limit.words.clone();
    if !limit.undecided.is_empty() {
        let levels: Vec<String> = limit.undecided.iter().map(|level| setting(*level)).collect();
        let _ = write!(words, "; its runs did not decide at {}", levels.join(", "));
    }
    // That it is not confirmed is part of the sentence.
    if limit.level.is_some() && limit.confirmed {
        words += "; confirmed on a fresh seed";
    }
    match limit.runs {
        0 => words + "; the levels of the sweep told it without further runs",
        1 => words + "; the search took 1 run",
        runs => format!("{words}; the search took {} runs", count(runs.into())),
    }
}

fn words_or_reason<T>(finding: &Finding<T>, words: impl Fn(&T) -> String) -> String {
    match finding {
        Finding::Found(found) => words(found),
        Finding::Unknown(reason) => format!("{NOTHING} {reason}"),
    }
}

fn peak(peak: &Peak) -> String {
    format!(
        "{} {} at {}{}",
        figure(&peak.throughput),
        unit(&peak.quantity),
        level_phrase(peak.level),
        again(peak.same_share, "the highest"),
    )
}

fn knee(knee: &Knee) -> String {
    let range = match knee.interval {
        None if knee.found_share.is_some() => String::new(),
        None => format!("; {NOT_SURE}"),
        Some(range) if range.low == range.high => {
            ", no other level in 95 % of resampled sets".to_owned()
        }
        Some(range) => {
            format!(", 95 % between {} and {}", level_phrase(range.low), level_phrase(range.high))
        }
    };
    let share = knee.found_share.filter(|share| *share < 1.0).map_or_else(String::new, |share| {
        format!("; {} of resampled sets have a knee at all", percent(share))
    });
    format!(
        "at {}{range}; {} {} there{share}",
        level_phrase(knee.level),
        figure(&knee.throughput),
        unit(&knee.quantity),
    )
}

fn sweet_spot(spot: &SweetSpot) -> String {
    let others: Vec<String> = spot
        .eligible
        .iter()
        .filter(|level| **level != spot.level)
        .map(|level| level_phrase(*level))
        .collect();
    let others = match others.as_slice() {
        [] => String::new(),
        others => format!("; within twice the best latencies, too: {}", others.join(", ")),
    };
    let uncertain =
        if spot.certified { "" } else { "; judged by p99s of too few requests to certify them" };
    format!(
        "{}: {} tok/s for each user, TTFT p99 {} ms, TPOT p99 {} ms{}{others}{uncertain}",
        level_phrase(spot.level),
        figure(&spot.per_user_throughput),
        figure(&spot.ttft_ms_p99),
        figure(&spot.tpot_ms_p99),
        again(spot.same_share, "chosen"),
    )
}

fn saturation(found: &Saturation) -> String {
    let rate = |per_s: f64| level_phrase(Level::Rate(per_s));
    let how = if found.missed_piling_up {
        "requests pile up there".to_owned()
    } else {
        format!("{} of it served", percent(found.missed_share))
    };
    let mut words = match (found.highest_served, found.lowest_missed) {
        (Some(kept), None) => {
            format!("not reached: {} was served, and more was not asked for", rate(kept))
        }
        (None, Some(missed)) => {
            format!("below {}, the lowest that was asked for ({how})", rate(missed))
        }
        (Some(kept), Some(missed)) => {
            format!("between {} and {} ({how})", rate(kept), rate(missed))
        }
        (None, None) => "– no rate was measured".to_owned(),
    };
    if let Some(above) = found.served_above {
        let _ = write!(words, "; NOT clear, because {} was served again", rate(above));
    }
    words
}

fn scalability(found: &Scalability) -> String {
    let no_fit = "; it does NOT explain the levels, so draw no conclusion from it";
    let doubt = if found.fits { "" } else { no_fit };
    let unit = unit(&found.quantity);
    let chosen = match &found.chosen {
        Finding::Found(chosen) => chosen,
        Finding::Unknown(why) => return format!("{NOTHING} {why}"),
    };
    match chosen {
        Model::Universal => {
            let law = &found.universal;
            let peak =
                words_or_reason(&law.peak, |peak| format!("falls beyond {} at once", figure(peak)));
            format!(
                "universal law: one alone {} {unit}, σ {}, κ {}; {peak}; R² {:.3}{doubt}",
                figure(&law.lambda),
                figure(&law.sigma),
                figure(&law.kappa),
                law.quality.r_squared,
            )
        }
        Model::Saturating => {
            let curve = &found.saturating;
            let ceiling = words_or_reason(&curve.ceiling, |ceiling| {
                format!("goes towards {} {unit}", figure(ceiling))
            });
            let half = curve.half_at.found().map_or_else(String::new, |half| {
                format!(", half of it at {} at once", figure(half))
            });
            format!(
                "{ceiling}{half}; R² {:.3}; the universal law is no better (AICc {} against {}){doubt}",
                curve.quality.r_squared,
                number(found.universal.quality.aicc),
                number(curve.quality.aicc),
            )
        }
    }
}

fn again(share: Option<f64>, word: &str) -> String {
    share.map_or_else(
        || format!("; {NOT_SURE}"),
        |share| format!("; {word} in {} of resampled sets", percent(share)),
    )
}

fn unit(quantity: &str) -> &'static str {
    match quantity {
        name if name == metric::REQUEST_THROUGHPUT.name => "requests/s",
        _ => "output tok/s",
    }
}
