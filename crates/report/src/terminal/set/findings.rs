//! What the levels show, in sentences with numbers and their doubt; or why it is not known.

use inferometer_analysis::set::{
    ConditionSummary, Finding, Findings, FoundLimit, Knee, Model, Peak, Saturation, Scalability,
    SetSummary, SweetSpot,
};
use inferometer_model::campaign::Level;

use super::levels::titled;
use super::words::{figure_words, level_words, ranged, short};
use crate::escape::{terminal, terminal_line};
use crate::lines::hanging;
use crate::number::{figure, percent};
use crate::terminal::{Ink, Style};

const LABEL_WIDTH: usize = 13;

pub(super) fn findings(condition: &ConditionSummary, name: Option<&str>, style: Style) -> String {
    let Some(findings) = &condition.findings else { return String::new() };
    style.paint(Ink::Bold, &titled(name, "findings")) + "\n" + &sentences(findings)
}

fn sentences(found: &Findings) -> String {
    let lines = [
        ("peak", told(&found.peak, peak)),
        ("knee", told(&found.knee, knee)),
        ("sweet spot", told(&found.sweet_spot, sweet_spot)),
        ("saturation", told(&found.saturation, saturation)),
        ("scalability", told(&found.scalability, scalability)),
    ];
    lines.into_iter().map(|(label, words)| line(label, &words)).collect()
}

/// What a search came to; empty without one.
pub(super) fn limits(set: &SetSummary, style: Style) -> String {
    if set.limits.is_empty() {
        return String::new();
    }
    let mut text = style.paint(Ink::Bold, "limit") + "\n";
    for limit in &set.limits {
        let place = usize::try_from(limit.condition).unwrap_or(usize::MAX);
        let name = set.conditions.get(place).filter(|_| 1 < set.conditions.len());
        let name = name.map_or_else(String::new, |one| terminal_line(&one.name, LABEL_WIDTH - 1));
        text += &line(&name, &limit_words(limit));
    }
    text
}

fn limit_words(limit: &FoundLimit) -> String {
    let mut words = terminal(&limit.words);
    if !limit.undecided.is_empty() {
        let levels: Vec<String> = limit.undecided.iter().map(|level| short(*level)).collect();
        words += &format!("; its runs did not decide at {}", levels.join(", "));
    }
    match (limit.level, limit.confirmed) {
        (Some(_), true) => words += "; confirmed on a fresh seed",
        (Some(_), false) => words += "; NOT confirmed on a fresh seed",
        (None, _) => (),
    }
    let runs = if limit.runs == 1 { "run" } else { "runs" };
    format!("{words} ({} {runs})", limit.runs)
}

fn line(label: &str, words: &str) -> String {
    hanging(&format!("  {label:<LABEL_WIDTH$}"), 2 + LABEL_WIDTH, words)
}

fn told<T>(finding: &Finding<T>, words: impl Fn(&T) -> String) -> String {
    match finding {
        Finding::Found(found) => words(found),
        Finding::Unknown(reason) => format!("– {}", terminal(reason)),
    }
}

fn peak(peak: &Peak) -> String {
    format!(
        "{} {} at {}{}",
        figure_words(&peak.throughput),
        unit(&peak.quantity),
        level_words(peak.level),
        again(peak.same_share, "the highest"),
    )
}

fn knee(knee: &Knee) -> String {
    let range = match knee.interval {
        None => {
            "; how sure is not known: a level has neither several runs nor an interval".to_owned()
        }
        Some(range) if range.low == range.high => {
            ", no other level in 95 % of resampled sets".to_owned()
        }
        Some(range) => {
            format!(", 95 % between {} and {}", level_words(range.low), level_words(range.high))
        }
    };
    let share = knee.found_share.filter(|share| *share < 1.0).map_or_else(String::new, |share| {
        format!("; {} of resampled sets have a knee at all", percent(Some(share)))
    });
    format!(
        "at {}{range}; {} {} there{share}",
        level_words(knee.level),
        figure_words(&knee.throughput),
        unit(&knee.quantity),
    )
}

fn sweet_spot(spot: &SweetSpot) -> String {
    let others: Vec<String> = spot
        .eligible
        .iter()
        .filter(|level| **level != spot.level)
        .map(|level| level_words(*level))
        .collect();
    let others = if others.is_empty() {
        String::new()
    } else {
        format!("; within twice the best latencies, too: {}", others.join(", "))
    };
    let uncertain =
        if spot.certified { "" } else { "; judged by p99s of too few requests to certify them" };
    format!(
        "{}: {} tok/s for each user, TTFT p99 {} ms, TPOT p99 {} ms{}{others}{uncertain}",
        level_words(spot.level),
        figure_words(&spot.per_user_throughput),
        figure_words(&spot.ttft_ms_p99),
        figure_words(&spot.tpot_ms_p99),
        again(spot.same_share, "chosen"),
    )
}

fn saturation(found: &Saturation) -> String {
    let rate = |per_s: f64| level_words(Level::Rate(per_s));
    let share = percent(found.missed_share);
    match (found.highest_served, found.lowest_missed) {
        (Some(kept), None) => {
            format!("not reached: {} was served, and more was not asked for", rate(kept))
        }
        (None, Some(missed)) => {
            format!("below {}, the lowest that was asked for ({share} of it served)", rate(missed))
        }
        (Some(kept), Some(missed)) if missed < kept => format!(
            "not clear: {} fell behind ({share} of it served) and {} did not",
            rate(missed),
            rate(kept)
        ),
        (Some(kept), Some(missed)) => {
            format!("between {} and {} ({share} of it served)", rate(kept), rate(missed))
        }
        (None, None) => "– no rate was measured".to_owned(),
    }
}

fn scalability(found: &Scalability) -> String {
    let doubt = if found.fits {
        String::new()
    } else {
        "; it does NOT explain the levels, so draw no conclusion from it".to_owned()
    };
    let unit = unit(&found.quantity);
    match found.chosen {
        Model::Universal => {
            let law = &found.universal;
            let peak = told(&law.peak, |peak| format!("falls beyond {} at once", ranged(peak)));
            format!(
                "universal law: one alone {} {unit}, σ {}, κ {}; {peak}; R² {:.3}{doubt}",
                ranged(&law.lambda),
                ranged(&law.sigma),
                ranged(&law.kappa),
                law.r_squared,
            )
        }
        Model::Saturating => {
            let curve = &found.saturating;
            let ceiling =
                told(&curve.ceiling, |ceiling| format!("goes towards {} {unit}", ranged(ceiling)));
            let half = curve.half_at.found().map_or_else(String::new, |half| {
                format!(", half of it at {} at once", ranged(half))
            });
            format!("{ceiling}{half}; R² {:.3}; {}{doubt}", curve.r_squared, why_saturating(found))
        }
    }
}

/// Why the law with a peak is not told.
fn why_saturating(found: &Scalability) -> String {
    match (found.universal.aicc, found.saturating.aicc) {
        (Some(universal), Some(saturating)) => format!(
            "the universal law is no better (AICc {} against {})",
            figure(Some(universal)),
            figure(Some(saturating)),
        ),
        _ => format!("{} levels are too few for the universal law", found.levels),
    }
}

fn again(share: Option<f64>, word: &str) -> String {
    share.map_or_else(
        || "; how sure is not known: a level has neither several runs nor an interval".to_owned(),
        |share| format!("; {word} in {} of resampled sets", percent(Some(share))),
    )
}

fn unit(quantity: &str) -> &'static str {
    match quantity {
        "request_throughput" => "requests/s",
        _ => "output tok/s",
    }
}
