//! Levels of a published table, in the shape that findings are made from.

use std::num::NonZeroU32;

use inferometer_analysis::Interval;
use inferometer_analysis::set::{Across, Findings, LevelSummary};
use inferometer_model::campaign::Level;

use super::{Family, Page, Row};
use crate::narrative::Fact;
use crate::narrative::facts::rows::family;

impl Page<'_> {
    pub(super) fn published_families(&self) -> Vec<Family> {
        let mut families: Vec<(String, Vec<usize>)> = Vec::new();
        for (place, row) in self.rows.iter().enumerate() {
            let Some(name) = row.name.as_deref().and_then(|name| family(name, row.concurrency))
            else {
                continue;
            };
            match families.iter_mut().find(|(known, _)| known == name) {
                Some((_, own)) => own.push(place),
                None => families.push((name.to_owned(), vec![place])),
            }
        }
        let several = families.into_iter().filter(|(_, own)| 1 < own.len());
        let found = several.map(|(name, mut rows)| {
            rows.sort_by_key(|place| self.rows[*place].concurrency);
            let levels = rows.iter().filter_map(|place| self.level(&self.rows[*place]));
            let findings = Findings::of(&levels.collect::<Vec<_>>());
            Family { name, rows, findings }
        });
        found.collect()
    }

    fn level(&self, row: &Row) -> Option<LevelSummary> {
        let level = Level::Concurrency(NonZeroU32::new(row.concurrency?)?);
        let quantities = [
            ("ttft.p99", "ttft", Some("p99")),
            ("tpot.p99", "tpot", Some("p99")),
            ("per_user_throughput", "per_user_throughput", None),
            ("output_throughput", "output_throughput", None),
        ];
        let across = quantities.into_iter().filter_map(|(key, quantity, statistic)| {
            Some((key.to_owned(), across(self.fact(self.at(row, quantity, statistic)?))))
        });
        Some(LevelSummary::of_figures(level, across.collect()))
    }
}

fn across(fact: &Fact) -> Across {
    Across {
        mean: Some(fact.value),
        std: None,
        interval: fact.interval.and_then(|(low, high)| Interval::new(low, high)),
        cov: None,
        n: 1,
        values: vec![Some(fact.value)],
        within: None,
        certified: false,
        reason: None,
    }
}
