//! Which quantities are compared, and each of them.

use super::Side;
use super::change::{Basis, Scale, Values, side_of, upper_among};
use super::document::{PermutationTest, QuantityComparison, SideValue};
use super::judgement::{Judgement, Margins};
use super::objection::{self, Objection, Weight};
use crate::estimate::Estimate;
use crate::metric::{self, Better, METRICS, Metric, Unit};
use crate::quantity::Quantity;
use crate::sample::Percentile;
use crate::statistic::Statistic;
use crate::statistics::{UPPER, permutation};
use crate::summary::Summary;

/// What is asked of the runs at every level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) primary: Quantity,
    pub(super) margins: Margins,
    /// Sides that are set against the base.
    pub(super) others: usize,
    pub(super) objections: &'a [Objection],
}

/// What decides when no quantity is named: on an open loop the rate is given, so waiting is what
/// can change; on a closed loop it is the throughput.
pub fn primary_of(sides: &[Side]) -> Quantity {
    let is_open =
        sides.iter().flat_map(|side| &side.runs).next().is_some_and(|run| run.run.load.is_open());
    if is_open { metric::TTFT_SCHEDULE.p99() } else { (&metric::OUTPUT_THROUGHPUT).into() }
}

impl Asked<'_> {
    /// Every quantity that a run of either side has, the primary one first.
    pub(super) fn compared(
        &self,
        side: &str,
        base: &[&Summary],
        other: &[&Summary],
    ) -> Vec<QuantityComparison> {
        let paired = in_pairs(base, other);
        let (other, in_pairs) = match &paired {
            Some(ordered) => (ordered.as_slice(), true),
            None => (other, false),
        };
        let is_open = base.first().is_some_and(|run| run.run.load.is_open());
        let rest = shown(is_open).into_iter().filter(|quantity| *quantity != self.primary);
        let mut found = Vec::new();
        for quantity in [self.primary].into_iter().chain(rest) {
            let estimates = |runs: &[&Summary]| -> Vec<Option<Estimate>> {
                runs.iter().map(|run| quantity.value_in(run).ok()).collect()
            };
            let (base, other) = (estimates(base), estimates(other));
            let floor = quantity.statistic().map_or(1, Statistic::certified_from);
            let is_primary = quantity == self.primary;
            let upper = if is_primary { upper_among(self.others) } else { UPPER };
            let values = Values { base, other, in_pairs, floor, upper };
            let is_absent = values.base.iter().chain(&values.other).all(Option::is_none);
            if !is_absent || is_primary {
                let withheld = self.withheld(side, &quantity);
                found.push(compared(&quantity, &values, self, withheld));
            }
        }
        found
    }

    /// Why a quantity is not compared although both sides have it.
    pub(super) fn withheld(&self, side: &str, quantity: &Quantity) -> Option<String> {
        let metric = quantity.metric();
        let withholds = |found: &&Objection| {
            found.weight == Weight::Withholds
                && found.side == side
                && match found.key.as_str() {
                    objection::TOKENIZER => counts_output(metric) || counts_input(metric),
                    objection::OUTPUT_COUNTS => counts_output(metric),
                    objection::INPUT_COUNTS => counts_input(metric),
                    objection::PROMISES => {
                        [&metric::GOODPUT, &metric::ATTAINMENT].contains(&metric)
                    }
                    _ => false,
                }
        };
        self.objections.iter().find(withholds).map(|found| found.text.clone())
    }
}

/// The headlines of this kind of load that have a good direction, and the throughput of prompts.
fn shown(is_open: bool) -> Vec<Quantity> {
    let is_shown = |metric: &&'static Metric| {
        let headline = metric.headline;
        let is_headline = if is_open { headline.on_open_loop() } else { headline.on_closed_loop() };
        (is_headline || **metric == metric::INPUT_THROUGHPUT) && metric.better != Better::Neither
    };
    let statistics = [Percentile::P50, Percentile::P99].map(Statistic::Percentile);
    let shown = METRICS.iter().copied().filter(is_shown);
    shown.flat_map(|metric| metric.quantities(&statistics)).collect()
}

/// Whether its value depends on who counted the tokens of answers.
pub(super) fn counts_output(metric: &'static Metric) -> bool {
    [&metric::ITL, &metric::TPOT, &metric::FLUIDITY].contains(&metric)
        || matches!(metric.unit, Unit::JoulesPerToken | Unit::TokensPerJoule)
        || metric.unit == Unit::TokensPerSecond
            && !metric.is_telemetry()
            && ![&metric::INPUT_THROUGHPUT, &metric::PP].contains(&metric)
}

pub(super) fn counts_input(metric: &'static Metric) -> bool {
    [&metric::INPUT_THROUGHPUT, &metric::TOTAL_THROUGHPUT, &metric::PP].contains(&metric)
}

/// The other side's runs in the order of the base's, when each has exactly one partner that had the
/// same stimulus.
fn in_pairs<'a>(base: &[&Summary], other: &[&'a Summary]) -> Option<Vec<&'a Summary>> {
    let stimulus = |run: &Summary| (run.run.seed, run.plan.fingerprint.clone());
    let partner = |run: &&Summary| {
        let wanted = stimulus(run);
        let mut partners = other.iter().copied().filter(|other| stimulus(other) == wanted);
        let has_double = 1 < base.iter().filter(|other| stimulus(other) == wanted).count();
        partners.next().filter(|_| partners.next().is_none() && !has_double)
    };
    if base.len() != other.len() {
        return None;
    }
    base.iter().map(partner).collect()
}

pub(super) fn compared(
    quantity: &Quantity,
    values: &Values,
    asked: &Asked<'_>,
    withheld: Option<String>,
) -> QuantityComparison {
    let metric = quantity.metric();
    let scale = if metric.unit == Unit::Share { Scale::Difference } else { Scale::Ratio };
    let margin = asked.margins.of(quantity);
    let found = withheld.map_or_else(|| values.change(scale), Err);
    let found = found.and_then(|change| match metric.better {
        Better::Neither => Err("neither more nor less of it is better".to_owned()),
        Better::Higher | Better::Lower => Ok(change),
    });
    let judgement = found
        .as_ref()
        .map_or(Judgement::NotCompared, |change| change.judged(margin, metric.better));
    let basis = values.basis();
    let permutation = (found.is_ok() && basis != Basis::WithinRun).then(|| {
        let (base, other) = values.known();
        let found = permutation::two_sided(&base, &other);
        PermutationTest {
            p: found.p,
            smallest_attainable: found.smallest_attainable,
            holm: None,
            false_discovery: None,
        }
    });
    QuantityComparison {
        quantity: quantity.to_string(),
        primary: *quantity == asked.primary,
        unit: metric.unit.name().to_owned(),
        base: side_value(&values.base, scale),
        other: side_value(&values.other, scale),
        change: found.as_ref().ok().copied(),
        bare_ratio: None,
        basis,
        margin,
        judgement,
        reason: found.err(),
        permutation,
    }
}

fn side_value(runs: &[Option<Estimate>], scale: Scale) -> SideValue {
    let known: Vec<Estimate> = runs.iter().copied().flatten().collect();
    let found = (!known.is_empty()).then(|| side_of(&known, scale));
    SideValue {
        mean: found.map(|found| found.mean).filter(|mean| mean.is_finite()),
        interval: found.and_then(|found| found.interval),
        values: runs.iter().map(|run| run.map(|estimate| estimate.value)).collect(),
        certified: !known.is_empty() && known.iter().all(|estimate| estimate.certified),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_without_a_run_that_has_it_certifies_nothing() {
        let nobody = side_value(&[None, None], Scale::Ratio);
        assert!(!nobody.certified && nobody.mean.is_none());
        assert!(!side_value(&[], Scale::Ratio).certified);
        let run = Estimate { value: 1.0, interval: None, n: 9, effective_n: None, certified: true };
        assert!(side_value(&[Some(run), None], Scale::Ratio).certified);
    }
}
