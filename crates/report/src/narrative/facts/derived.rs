//! Ratios and shares that sentences speak of, as facts of their own: whoever doubts a sentence can
//! look them up, with the table that their parts stand in.

use super::rows::family;
use super::{Added, Facts, Row};

/// Rows that are left out, by their names, are compared with no other.
pub(super) fn add(facts: &mut Facts, left_out: &[String]) {
    let rows: Vec<Row> = facts
        .scenarios()
        .into_iter()
        .map(|(name, concurrency)| Row { scenario: name.map(str::to_owned), concurrency })
        .collect();
    for row in &rows {
        add_spreads(facts, row);
        add_half_width(facts, row);
    }
    let is_left_out = |row: &Row| row.scenario.as_ref().is_some_and(|name| left_out.contains(name));
    let compared: Vec<Row> = rows.into_iter().filter(|row| !is_left_out(row)).collect();
    for pair in neighbours(&compared) {
        add_step(facts, pair);
    }
    for family in families(&compared) {
        add_ends(facts, &family);
    }
}

/// How far the slow requests of a row are from the usual ones.
fn add_spreads(facts: &mut Facts, row: &Row) {
    for (quantity, above, below) in [
        ("ttft_tail", ("ttft", Some("p99")), ("ttft", Some("p50"))),
        ("ttft_skew", ("ttft", Some("mean")), ("ttft", Some("p50"))),
        ("tpot_tail", ("tpot", Some("p99")), ("tpot", Some("p50"))),
        ("itl_tail", ("itl", Some("p99")), ("itl", Some("p50"))),
        ("itl_max_times", ("itl", Some("max")), ("itl", Some("p50"))),
        ("peak_times", ("peak_output_throughput", None), ("output_throughput", None)),
    ] {
        add_ratio(facts, row, quantity, (row, above), (row, below));
    }
    for (quantity, of) in [("ttft_spread", "ttft"), ("tpot_spread", "tpot")] {
        let parts = (value(facts, row, (of, Some("p99"))), value(facts, row, (of, Some("p50"))));
        let (Some((high, table)), Some((low, _))) = parts else { continue };
        let spread = (0.0 < low && low <= high).then(|| high / low - 1.0);
        row.add(facts, Added::new(quantity, spread, &table));
    }
}

/// How wide the doubt about throughput is, as a share of it.
fn add_half_width(facts: &mut Facts, row: &Row) {
    let place = facts.find(row.scenario.as_deref(), "output_throughput", None);
    let Some(fact) = place.map(|place| &facts.facts[place]) else { return };
    let Some((low, high)) = fact.interval else { return };
    let (share, table) = ((high - low) / 2.0 / fact.value, fact.table.clone());
    row.add(facts, Added::new("half_width", Some(share), &table));
}

/// What a step to a higher level brings, as facts of the higher level.
fn add_step(facts: &mut Facts, (low, high): (&Row, &Row)) {
    let change = |facts: &Facts, quantity: &str| {
        let (before, _) = value(facts, low, (quantity, None))?;
        let (after, table) = value(facts, high, (quantity, None))?;
        (0.0 < before).then(|| (after / before - 1.0, table))
    };
    if let Some((change, table)) = change(facts, "output_throughput") {
        let quantity = if change < 0.0 { "throughput_loss" } else { "throughput_gain" };
        high.add(facts, Added::new(quantity, Some(change.abs()), &table));
    }
    if let Some((change, table)) = change(facts, "per_user_throughput") {
        let loss = (change < 0.0).then(|| change.abs());
        high.add(facts, Added::new("per_user_loss", loss, &table));
    }
}

/// The highest level of a family against its lowest, and every level against the best.
fn add_ends(facts: &mut Facts, family: &[&Row]) {
    let (Some(first), Some(last)) = (family.first(), family.last()) else { return };
    let throughput = ("output_throughput", None);
    add_ratio(facts, last, "throughput_times", (last, throughput), (first, throughput));
    let tpot = ("tpot", Some("p99"));
    add_ratio(facts, last, "tpot_times", (last, tpot), (first, tpot));
    let values: Vec<Option<(f64, String)>> =
        family.iter().map(|row| value(facts, row, throughput)).collect();
    let peak = values.iter().flatten().map(|(value, _)| *value).reduce(f64::max);
    let Some(peak) = peak.filter(|peak| 0.0 < *peak) else { return };
    for (row, found) in family.iter().zip(values) {
        let Some((value, table)) = found else { continue };
        row.add(facts, Added::new("share_of_peak", Some(value / peak), &table));
    }
}

type Part<'a> = (&'a str, Option<&'a str>);

fn add_ratio(
    facts: &mut Facts,
    row: &Row,
    quantity: &str,
    (above_row, above): (&Row, Part<'_>),
    (below_row, below): (&Row, Part<'_>),
) {
    let parts = (value(facts, above_row, above), value(facts, below_row, below));
    let (Some((above, table)), Some((below, _))) = parts else { return };
    let ratio = (0.0 < below).then(|| above / below);
    row.add(facts, Added::new(quantity, ratio, &table));
}

fn value(facts: &Facts, row: &Row, (quantity, statistic): Part<'_>) -> Option<(f64, String)> {
    let place = facts.find(row.scenario.as_deref(), quantity, statistic)?;
    let fact = &facts.facts[place];
    Some((fact.value, fact.table.clone()))
}

/// The levels of each scenario that has several, from the lowest to the highest.
fn families(rows: &[Row]) -> Vec<Vec<&Row>> {
    let mut families: Vec<(&str, Vec<&Row>)> = Vec::new();
    for row in rows {
        let Some(name) = row.scenario.as_deref().and_then(|name| family(name, row.concurrency))
        else {
            continue;
        };
        match families.iter_mut().find(|(known, _)| *known == name) {
            Some((_, own)) => own.push(row),
            None => families.push((name, vec![row])),
        }
    }
    let mut families: Vec<Vec<&Row>> =
        families.into_iter().map(|(_, own)| own).filter(|own| 1 < own.len()).collect();
    for own in &mut families {
        own.sort_by_key(|row| row.concurrency);
    }
    families
}

fn neighbours(rows: &[Row]) -> Vec<(&Row, &Row)> {
    let mut pairs = Vec::new();
    for own in families(rows) {
        pairs.extend(own.windows(2).map(|two| (two[0], two[1])));
    }
    pairs
}
