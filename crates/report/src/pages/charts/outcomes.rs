//! How requests ended, row by row.

use std::collections::BTreeMap;

use inferometer_model::Outcome;

use crate::chart::{Chart, Plot, ShareClass, ShareRow, Shares};
use crate::fmt::{count, counted, list, percent};
use crate::pages::rows::Row;

pub(in crate::pages) fn outcomes(rows: &[Row<'_>]) -> Option<Chart> {
    let counts: Vec<(&Row<'_>, BTreeMap<Outcome, u64>)> =
        rows.iter().map(|row| (row, counts(row))).collect();
    let of = |outcome: Outcome| -> u64 {
        counts.iter().filter_map(|(_, counts)| counts.get(&outcome)).sum()
    };
    let met = |outcome: &Outcome| *outcome == Outcome::Ok || 0 < of(*outcome);
    let classes: Vec<Outcome> = Outcome::all().filter(met).collect();
    let total: u64 = Outcome::all().map(of).sum();
    if total == 0 {
        return None;
    }
    let share_row = |(row, counts): &(&Row<'_>, BTreeMap<Outcome, u64>)| ShareRow {
        label: row.name.clone(),
        counts: classes.iter().map(|class| counts.get(class).copied().unwrap_or(0)).collect(),
    };
    let shares = Shares {
        classes: classes
            .iter()
            .map(|class| ShareClass {
                name: class.key().to_owned(),
                is_good: *class == Outcome::Ok,
            })
            .collect(),
        rows: counts.iter().map(share_row).collect(),
        counted: "requests".to_owned(),
    };
    Some(Chart {
        id: "outcomes".to_owned(),
        title: "How requests ended".to_owned(),
        finding: finding(of, total),
        n: counted(total, "request"),
        plot: Plot::Shares(shares),
    })
}

/// What the end of a run cut off was never due, and is not counted.
fn counts(row: &Row<'_>) -> BTreeMap<Outcome, u64> {
    let mut counts = BTreeMap::new();
    for run in row.all_runs() {
        for (outcome, number) in &run.outcomes {
            let over = if *outcome == Outcome::NotSent { run.time_over } else { 0 };
            *counts.entry(*outcome).or_insert(0) += number.saturating_sub(over);
        }
    }
    counts
}

fn finding(of: impl Fn(Outcome) -> u64, total: u64) -> String {
    let ok = of(Outcome::Ok);
    if ok == total {
        return format!("All {} ended ok.", counted(total, "request"));
    }
    let others: Vec<String> = Outcome::all()
        .filter(|outcome| *outcome != Outcome::Ok && 0 < of(*outcome))
        .map(|outcome| format!("{} {}", count(of(outcome)), outcome.key()))
        .collect();
    format!(
        "{} of {} ended ok ({}); the others: {}.",
        count(ok),
        counted(total, "request"),
        percent(ok as f64 / total as f64),
        list(&others)
    )
}
