//! What both pages say, in words.

use inferometer_analysis::comparison::{
    Basis, Change, Comparison, Judgement, Margins, Objection, QuantityComparison, SideComparison,
    SideFacts, SideOutcome, Weight,
};
use inferometer_analysis::{Quantity, Unit, Zero};

use crate::fmt::{NOTHING, count, number, percent, signed_percent};
use crate::terminal::Ink;

/// What chance alone may do to an interval, and to a p value.
const CHANCE: f64 = 0.05;
const WITHIN_RUN: &str = "within-run only: knows nothing of run-to-run noise, so it never fails a \
                          comparison; repeat the runs (--repeat 5)";
const BARE: &str = "NOTHING WAS DECIDED: the differences have no interval, so this says neither that \
                    a side is worse nor that it is not. Give several results of each side (import \
                    --repeats), or measure both with `inferometer run --repeat 5`.";

/// `TTFT p99`; the name itself where this version does not know it.
pub(super) fn title(quantity: &str) -> String {
    let Ok(known) = Quantity::named(quantity, Zero::Sent) else { return quantity.to_owned() };
    let statistic = known.statistic().map_or(String::new(), |found| format!(" {}", found.name()));
    format!("{}{statistic}", known.metric().title)
}

pub(super) fn value(quantity: &str, value: Option<f64>) -> String {
    if is_share(quantity) { percent(value) } else { number(value) }
}

pub(super) fn is_share(quantity: &str) -> bool {
    Quantity::named(quantity, Zero::Sent).is_ok_and(|known| known.metric().unit == Unit::Share)
}

/// `+4.2 %` of a ratio, `+0.3 points` of a difference between shares.
pub(super) fn change(change: Change) -> String {
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

pub(super) const fn ink(judgement: Judgement) -> Option<Ink> {
    match judgement {
        Judgement::Better => Some(Ink::Good),
        Judgement::Worse => Some(Ink::Bad),
        Judgement::Undecided => Some(Ink::Doubtful),
        Judgement::Same | Judgement::NotJudged | Judgement::NotCompared => None,
    }
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

/// What the primary quantity decides about a side.
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
    let why = outcome.reason.as_deref().unwrap_or("nothing says how sure that is");
    let what = title(&comparison.primary);
    format!("{} against {base}: {what} {}{levels}: {why}", outcome.side, bare(ratio))
}

/// A ratio that has no interval.
pub(super) fn bare(ratio: f64) -> String {
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

/// Levels that have no part in an outcome, each with its reason.
pub(super) fn without(outcome: &SideOutcome) -> Option<String> {
    let told: Vec<String> = outcome
        .without
        .iter()
        .map(|found| format!("{} ({})", found.told(), found.reason))
        .collect();
    (!told.is_empty()).then(|| format!("without {}", told.join(", ")))
}

/// The head of a table says 95 %, and against several sides the primary quantity has more.
pub(super) fn other_confidence(comparison: &Comparison) -> Option<String> {
    (1 < comparison.outcomes.len()).then(|| {
        let confidence = percent(comparison.primary_confidence);
        format!("{}: its interval is of {confidence}", title(&comparison.primary))
    })
}

/// What nobody may take for good news, and what to do about it.
pub fn nothing_decided(comparison: &Comparison) -> Option<String> {
    let is_silent = comparison.has_runs() && comparison.decides_nothing();
    is_silent.then(|| {
        if comparison.outcomes.iter().any(|outcome| outcome.bare_ratio.is_some()) {
            return BARE.to_owned();
        }
        format!(
            "NOTHING WAS DECIDED: {} could not be compared, so this says neither that a side is \
             worse nor that it is not. Run again so that every run has it, or decide by another \
             quantity (--primary request_throughput).",
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

/// How much of all this chance would do alone.
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
            "Its intervals are of {} each, so that all {} sides together are judged with 95 %: were \
             they all like the base, one would be called worse at most once in forty.",
            percent(comparison.primary_confidence),
            comparison.outcomes.len()
        ));
    }
    lines.extend(permutation(comparison));
    lines
}

/// The exact permutation tests, which decide nothing.
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
            "So few runs cannot reach p < 0.05 in a permutation test, whatever they show (at \
             least {least:.2}); five a side can."
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

/// What stands out among the quantities that decide nothing.
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
            format!("none, and with so few runs none can be (at least {least_of_many:.2})")
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
            "Worth a look besides, about one in twenty of them by chance (Benjamini and Hochberg): \
             {}.",
            worth_a_look.join(", ")
        ));
    }
    lines
}

/// Why one quantity is not judged.
pub(super) fn reason_of(found: &QuantityComparison) -> Option<String> {
    found.reason.as_deref().map(|reason| format!("{NOTHING} {reason}"))
}

/// Why quantities are not judged, each reason once.
pub(super) fn reasons(side: &SideComparison) -> Vec<String> {
    let mut told: Vec<(&str, Vec<String>)> = Vec::new();
    for found in &side.quantities {
        let Some(reason) = found.reason.as_deref() else { continue };
        let title = title(&found.quantity);
        match told.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, titles)) => titles.push(title),
            None => told.push((reason, vec![title])),
        }
    }
    let line = |(reason, titles): (&str, Vec<String>)| {
        let which = if titles.len() == side.quantities.len() {
            "all".to_owned()
        } else {
            titles.join(", ")
        };
        format!("{NOTHING} {which}: {reason}")
    };
    let is_marked = side.quantities.iter().any(|found| {
        [&found.base, &found.other].iter().any(|side| side.mean.is_some() && !side.certified)
    });
    let mark = "~ too few independent samples in a run to certify this percentile".to_owned();
    told.into_iter().map(line).chain(is_marked.then_some(mark)).collect()
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

pub(super) const fn weight_ink(weight: Weight) -> Ink {
    match weight {
        Weight::Note => Ink::Dim,
        Weight::Warning | Weight::Withholds => Ink::Doubtful,
        Weight::Forbids => Ink::Bad,
    }
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
