//! The sentences of a comparison.

use inferometer_analysis::comparison::{
    Basis, Change, Comparison, Margins, Objection, QuantityComparison, SideFacts, SideOutcome,
    Weight,
};
use inferometer_analysis::{LatencyOrigin, Quantity, Unit};

use crate::fmt::{NOTHING, count, number, percent, signed_percent};

/// Significance level of the permutation tests.
const CHANCE: f64 = 0.05;
const WITHIN_RUN: &str = "within-run only: the variation between runs is not known, so this cannot \
                          fail a comparison; repeat the runs (--repeat 5)";
const BARE: &str = "NOTHING WAS DECIDED: the differences have no interval, so it is open whether a \
                    side is worse. Give several results of each side (import \
                    --repeats), or measure both with `inferometer run --repeat 5`.";

/// `TTFT p99`; the name itself where this version does not know it.
pub(super) fn title(quantity: &str) -> String {
    let Ok(known) = Quantity::named(quantity, LatencyOrigin::Sent) else {
        return quantity.to_owned();
    };
    let statistic = known.statistic().map_or(String::new(), |found| format!(" {}", found.name()));
    format!("{}{statistic}", known.metric().title)
}

pub(super) fn value(quantity: &str, value: Option<f64>) -> String {
    if is_share(quantity) { percent(value) } else { number(value) }
}

/// The title of a quantity with its unit.
pub(super) fn with_unit(found: &QuantityComparison) -> String {
    let name = &found.quantity;
    let unit = if is_share(name) { String::new() } else { format!(" ({})", found.unit) };
    format!("{}{unit}", title(name))
}

fn is_share(quantity: &str) -> bool {
    Quantity::named(quantity, LatencyOrigin::Sent)
        .is_ok_and(|known| known.metric().unit == Unit::Share)
}

/// `+4.2 %` of a ratio, `+0.3 points` of a difference between shares.
fn change(change: Change) -> String {
    match change {
        Change::Ratio { value, .. } => format!("{} %", signed_percent(value - 1.0)),
        Change::Difference { value, .. } => format!("{} points", signed_percent(value)),
    }
}

pub(super) fn interval(change: Change) -> String {
    let ends = change.interval();
    let none = match change {
        Change::Ratio { .. } => 1.0,
        Change::Difference { .. } => 0.0,
    };
    format!("{} to {}", signed_percent(ends.low - none), signed_percent(ends.high - none))
}

/// A side in one line, without its name.
pub(super) fn side(facts: &SideFacts) -> String {
    let left_out = match facts.left_out {
        0 => String::new(),
        runs => format!(", {runs} invalid and left out"),
    };
    let runs = facts.runs.len() as u64;
    let noun = match (facts.tool, runs) {
        (None, 1) => "run".to_owned(),
        (None, _) => "runs".to_owned(),
        (Some(tool), 1) => format!("result of {}", tool.told()),
        (Some(tool), _) => format!("results of {}", tool.told()),
    };
    let model = if facts.model.is_empty() { "no model named" } else { &facts.model };
    let server = match &facts.simulated {
        Some(profile) => format!(" at no server (simulated: {profile})"),
        None if facts.target.is_empty() => String::new(),
        None => format!(" at {}", facts.target),
    };
    format!("{}, {} {noun}{left_out}, {model}{server}", facts.source, count(runs))
}

/// The decision about a side by the primary quantity.
pub(super) fn outcome(comparison: &Comparison, outcome: &SideOutcome) -> String {
    let base = comparison.sides.first().map_or("the base", |side| side.name.as_str());
    let what = title(&comparison.primary);
    let Some(found) = outcome.change else {
        if let Some(ratio) = outcome.bare_ratio {
            return bare_outcome(comparison, outcome, ratio);
        }
        let why = outcome.reason.as_deref().unwrap_or("there is no change to judge");
        return format!("{} against {base}: {what} is not compared: {why}", outcome.side);
    };
    let levels = match comparison.levels.len() {
        1 => String::new(),
        all => format!(" on average over {} levels", judged_levels(all, outcome)),
    };
    format!(
        "{} against {base}: {what} {}{levels} ({}: {})",
        outcome.side,
        change(found),
        percent(comparison.primary_confidence),
        interval(found)
    )
}

/// A difference without an interval.
fn bare_outcome(comparison: &Comparison, outcome: &SideOutcome, ratio: f64) -> String {
    let base = comparison.sides.first().map_or("the base", |side| side.name.as_str());
    let levels = match comparison.levels.len() {
        1 => String::new(),
        _ => " on average over the levels that have it".to_owned(),
    };
    let why = outcome.reason.as_deref().unwrap_or("its uncertainty is not known");
    let what = title(&comparison.primary);
    format!("{} against {base}: {what} {}{levels}: {why}", outcome.side, bare(ratio))
}

/// A ratio that has no interval.
fn bare(ratio: f64) -> String {
    format!("{} %", signed_percent(ratio - 1.0))
}

/// The change, with an interval or without one.
pub(super) fn either(found: Option<Change>, bare_ratio: Option<f64>) -> String {
    found.map(change).or_else(|| bare_ratio.map(bare)).unwrap_or_else(|| NOTHING.to_owned())
}

fn judged_levels(all: usize, outcome: &SideOutcome) -> String {
    match outcome.without.len() {
        0 => all.to_string(),
        without => format!("{} of {all}", all - without),
    }
}

/// Levels that an outcome leaves out, each with its reason.
pub(super) fn without(outcome: &SideOutcome) -> Option<String> {
    let levels: Vec<String> = outcome
        .without
        .iter()
        .map(|found| format!("{} ({})", found.told(), found.reason))
        .collect();
    (!levels.is_empty()).then(|| format!("without {}", levels.join(", ")))
}

/// A note that the primary quantity has a higher confidence than the head of the table states.
pub(super) fn other_confidence(comparison: &Comparison) -> Option<String> {
    (1 < comparison.outcomes.len()).then(|| {
        let confidence = percent(comparison.primary_confidence);
        format!("{}: its interval is of {confidence}", title(&comparison.primary))
    })
}

/// A warning that the comparison decides nothing, and what to do about it.
pub fn nothing_decided(comparison: &Comparison) -> Option<String> {
    let is_silent = comparison.has_runs() && comparison.decides_nothing();
    is_silent.then(|| {
        if comparison.outcomes.iter().any(|outcome| outcome.bare_ratio.is_some()) {
            return BARE.to_owned();
        }
        format!(
            "NOTHING WAS DECIDED: {} could not be compared, so it is open whether a side is worse. \
             Run again so that every run has it, or decide by another quantity (--primary \
             request_throughput).",
            title(&comparison.primary)
        )
    })
}

/// What an outcome is known from.
pub(super) fn known_from(comparison: &Comparison, outcome: &SideOutcome) -> String {
    let of_side = comparison
        .levels
        .first()
        .and_then(|level| level.against.iter().find(|found| found.side == outcome.side));
    let (base, other) = of_side.map_or((0, 0), |found| (found.base_runs, found.runs));
    let each = if comparison.levels.len() == 1 { "" } else { " at each level" };
    match outcome.basis {
        Basis::WithinRun => WITHIN_RUN.to_owned(),
        Basis::Paired => format!("{base} pairs of runs with the same seeds{each}"),
        Basis::Unpaired => format!("{base} runs against {other}{each}"),
    }
}

pub(super) fn margins(margins: Margins) -> String {
    let points = format!("{:.2}", margins.share * 100.0);
    format!(
        "same: within ±{} of throughputs, means and medians, ±{} of p90 and beyond, ±{} point of shares",
        percent(margins.centre),
        percent(margins.tail),
        points.trim_end_matches('0').trim_end_matches('.'),
    )
}

/// How many differences chance alone would cause.
pub(super) fn advice(comparison: &Comparison) -> Vec<String> {
    let made = u64::from(comparison.comparisons);
    if made == 0 {
        return Vec::new();
    }
    let noun = if made == 1 { "comparison was" } else { "comparisons were" };
    let mut lines = vec![format!(
        "{} {noun} made; about one interval in twenty misses the truth by chance. Only the \
         primary ({}) decides.",
        count(made),
        comparison.primary
    )];
    if 1 < comparison.outcomes.len() {
        lines.push(format!(
            "Its intervals are of {} each, so that all {} sides together are judged with 95 %: if \
             all were equal to the base, one would be called worse at most once in forty.",
            percent(comparison.primary_confidence),
            comparison.outcomes.len()
        ));
    }
    lines.extend(permutation(comparison));
    lines
}

/// The exact permutation tests, which are advice only.
fn permutation(comparison: &Comparison) -> Vec<String> {
    let all = || {
        comparison.levels.iter().flat_map(|level| {
            level.against.iter().flat_map(move |side| {
                side.quantities.iter().map(move |found| (level.told(), &side.side, found))
            })
        })
    };
    let mut lines = Vec::new();
    let least = all().filter_map(|(_, _, found)| Some(found.permutation?.smallest_attainable));
    let least = least.fold(0.0, f64::max);
    if CHANCE < least {
        lines.push(format!(
            "This few runs cannot reach p < 0.05 in a permutation test (at least {least:.2}); \
             five per side can."
        ));
        return lines;
    }
    let several = 1 < comparison.levels.len();
    let named = |level: &str, side: &str, name: &str| {
        let at = if several { format!(" ({level})") } else { String::new() };
        let of = if 1 < comparison.outcomes.len() { format!(" of {side}") } else { String::new() };
        format!("{}{of}{at}", title(name))
    };
    let primary: Vec<String> = all()
        .filter(|(_, _, found)| found.primary)
        .filter_map(|(level, side, found)| {
            let p = found.permutation?.p;
            Some(format!("{} p = {p:.3}", named(&level, side, &found.quantity)))
        })
        .collect();
    if !primary.is_empty() {
        lines.push(format!("Permutation test (advice): {}.", primary.join(", ")));
    }
    lines.extend(other_tests(&all().collect::<Vec<_>>(), least, named));
    lines
}

type Tested<'a> = (String, &'a String, &'a QuantityComparison);

/// Significant differences among the other quantities.
fn other_tests(
    all: &[Tested<'_>],
    least: f64,
    named: impl Fn(&str, &str, &str) -> String,
) -> Vec<String> {
    let others = || {
        all.iter().filter(|(_, _, found)| !found.primary).filter_map(|(level, side, found)| {
            Some((named(level, side, &found.quantity), found.permutation?))
        })
    };
    let count = others().count();
    if count == 0 {
        return Vec::new();
    }
    let below = |p: Option<f64>| p.is_some_and(|p| p < CHANCE);
    let standing: Vec<String> =
        others().filter(|(_, test)| below(test.holm)).map(|(name, _)| name).collect();
    let least_of_many = least * count as f64;
    let which = match standing.as_slice() {
        [] if CHANCE <= least_of_many => {
            format!("none, and with this few runs none can be (at least {least_of_many:.2})")
        }
        [] => "none".to_owned(),
        several => several.join(", "),
    };
    let mut lines =
        vec![format!("Of the {count} others, beyond chance after Holm's correction: {which}.")];
    let worth_a_look: Vec<String> = others()
        .filter(|(_, test)| below(test.false_discovery) && !below(test.holm))
        .map(|(name, _)| name)
        .collect();
    if !worth_a_look.is_empty() {
        lines.push(format!(
            "Also worth a look, about one in twenty of them by chance (Benjamini and Hochberg): \
             {}.",
            worth_a_look.join(", ")
        ));
    }
    lines
}

/// The head and the text of an objection.
pub fn objection(objection: &Objection) -> (&'static str, String) {
    let head = match objection.weight {
        Weight::Note => "note",
        Weight::Warning => "warning",
        Weight::Withholds => "not compared",
        Weight::Forbids => "not comparable",
    };
    (head, format!("{}; {}", objection.text, objection.remedy))
}

#[cfg(test)]
mod tests {
    use inferometer_analysis::Interval;

    use super::*;

    #[test]
    fn changes_are_per_cent_and_shares_are_points() {
        let interval_of = |low, high| Interval::new(low, high).unwrap();
        let ratio = Change::Ratio { value: 0.9, interval: interval_of(0.875, 0.9254) };
        assert_eq!(
            (change(ratio).as_str(), interval(ratio).as_str()),
            ("-10.0 %", "-12.5 to -7.5")
        );
        let double = Change::Ratio { value: 2.5, interval: interval_of(1.0, 3.0) };
        assert_eq!((change(double).as_str(), interval(double).as_str()), ("+150 %", "0.0 to +200"));
        let share = Change::Difference { value: 0.012, interval: interval_of(-0.0001, 0.03) };
        assert_eq!(
            (change(share).as_str(), interval(share).as_str()),
            ("+1.2 points", "0.0 to +3.0")
        );
    }

    #[test]
    fn quantities_have_the_titles_of_their_metrics() {
        assert_eq!(title("ttft_schedule.p99"), "TTFT from schedule p99");
        assert_eq!(title("output_throughput"), "Output throughput");
        assert_eq!(title("of_tomorrow"), "of_tomorrow");
        assert!(is_share("error_rate") && !is_share("ttft.p99"));
    }

    #[test]
    fn margins_are_told_with_their_units() {
        let told = margins(Margins::DEFAULT);
        assert!(told.contains("±2 % of throughputs") && told.contains("±1 point"), "{told}");
    }
}
