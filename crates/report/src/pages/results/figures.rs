//! The figures that pages of results show, whichever tool gave them.

use inferometer_analysis::set::Across;
use inferometer_analysis::sheet::{CountsFrom, Grain, LatencyKind, Mark, Sheet, SheetLatency};
use inferometer_analysis::{Estimate, Statistic};

use super::lines::Level;
use super::words::{from_words, grain_name, mark_words};
use crate::fmt::{count, interval};

/// Reasons that a point tells; the page lists more.
const DOUBTS_MAX: usize = 6;

/// What a latency is: only those that agree in all of it are set beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Meaning {
    pub(super) kind: LatencyKind,
    pub(super) from: CountsFrom,
    pub(super) grain: Grain,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    Latency(Meaning, Statistic),
    /// By the name of its field.
    Throughput(&'static str),
}

impl Meaning {
    pub(super) fn of(latency: &SheetLatency) -> Self {
        Self { kind: latency.kind, from: latency.from, grain: latency.grain }
    }

    /// All that these results have of a kind.
    pub(super) fn all<'a>(kind: LatencyKind, sheets: impl Iterator<Item = &'a Sheet>) -> Vec<Self> {
        let of_kind = sheets.flat_map(|sheet| &sheet.latencies).filter(|known| known.kind == kind);
        let mut found: Vec<Self> = of_kind.map(Self::of).collect();
        found.sort();
        found.dedup();
        found
    }

    /// `TTFT from send`, `ITL per chunk`.
    pub(super) fn name(self) -> String {
        let is_usual = match self.kind {
            LatencyKind::Ttft | LatencyKind::Tpot | LatencyKind::E2e => {
                self.grain == Grain::Request
            }
            LatencyKind::Itl => false,
        };
        let grain = if is_usual { "" } else { grain_name(self.grain) };
        let parts = [self.kind.told(), from_words(self.from), grain];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(" ")
    }

    pub(super) fn is_of(self, sheet: &Sheet) -> bool {
        self.find(sheet).is_some()
    }

    fn find(self, sheet: &Sheet) -> Option<&SheetLatency> {
        sheet.latencies.iter().find(|latency| Self::of(latency) == self)
    }
}

/// `Mean`, `Median`, `p99`.
pub(super) fn statistic_name(statistic: Statistic) -> String {
    match statistic.name() {
        "mean" => "Mean".to_owned(),
        "p50" => "Median".to_owned(),
        other => other.to_owned(),
    }
}

impl Quantity {
    pub(super) fn of(self, sheet: &Sheet) -> Option<Estimate> {
        match self {
            Self::Latency(meaning, statistic) => {
                let found = sheet.statistic_of(meaning.find(sheet)?, statistic);
                found.filter(|found| found.value.is_finite())
            }
            Self::Throughput(field) => {
                let value = match field {
                    "request_throughput" => sheet.request_throughput,
                    "request_goodput" => sheet.request_goodput,
                    "output_throughput" => sheet.output_throughput,
                    _ => sheet.total_token_throughput,
                };
                let (interval, n) =
                    (sheet.intervals.get(field).copied(), sheet.completed.unwrap_or(0));
                let of =
                    |value| Estimate { value, interval, n, effective_n: None, certified: true };
                value.filter(|value| value.is_finite()).map(of)
            }
        }
    }
}

/// Why a figure is not certified.
pub(super) const fn uncertified_words(n: u64) -> &'static str {
    if n == 0 { "of how many values it is, is not said" } else { "too few values to certify it" }
}

impl Level<'_> {
    /// Over its repeats. One that is invalid is in no number as long as another is not.
    pub(super) fn across(&self, quantity: Quantity) -> Across {
        let counting: Vec<&Sheet> =
            self.sheets.iter().copied().filter(|it| !is_invalid(it)).collect();
        let counting = if counting.is_empty() { self.sheets.clone() } else { counting };
        let of = |sheet: &Sheet| quantity.of(sheet).ok_or_else(|| "its source has none".to_owned());
        Across::of(&counting.into_iter().map(of).collect::<Vec<_>>())
    }

    /// Why its figures are not those of clean runs; empty where they are.
    pub(super) fn doubts(&self) -> Vec<String> {
        let marks = self.sheets.iter().flat_map(|sheet| &sheet.marks).filter(|it| it.is_doubt());
        let mut words: Vec<String> = marks.map(mark_words).collect();
        words.dedup();
        let more = words.len().saturating_sub(DOUBTS_MAX);
        words.truncate(DOUBTS_MAX);
        words.extend((0 < more).then(|| format!("and {} more", count(more as u64))));
        words
    }

    /// The same in a word each, every kind once.
    pub(super) fn doubt_names(&self) -> Vec<&'static str> {
        let marks = self.sheets.iter().flat_map(|sheet| &sheet.marks);
        let mut names: Vec<&str> = marks.filter(|mark| mark.is_doubt()).map(Mark::key).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Results whose values stand nowhere.
    pub(super) fn left_out(&self) -> usize {
        let invalid = self.sheets.iter().filter(|sheet| is_invalid(sheet)).count();
        if invalid == self.sheets.len() { 0 } else { invalid }
    }
}

fn is_invalid(sheet: &Sheet) -> bool {
    sheet.marks.contains(&Mark::Invalid)
}

/// How far a value can be relied on.
pub(super) fn doubt_words(across: &Across) -> String {
    match (across.interval, across.within) {
        (Some(between), _) => {
            format!("95 % {} between {} results", interval(between), count(across.n.into()))
        }
        (None, Some(within)) => format!("95 % {} within the run", interval(within)),
        (None, None) if across.mean.is_some() => "one result, and no interval in it".to_owned(),
        (None, None) => String::new(),
    }
}
