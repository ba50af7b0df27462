//! Figures of results against the load, one line for each configuration.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

use inferometer_analysis::set::AcrossRuns;
use inferometer_analysis::tool_result::LatencyKind;
use inferometer_analysis::{Percentile, Statistic};

use super::NAME_MAX;
use super::lines::{
    Level, Line, LoadKind, Quantity, definition_name, definitions, doubt_words, find_latency,
    statistic_name, uncertified_words,
};
use crate::chart::{Chart, LinePoint, LineSeries, Lines, LinesPanel, Plot, ScaleKind};
use crate::escape::terminal_line;
use crate::fmt::{count, counted, latency, list, number};
use crate::pages::charts::{measure, pair};

/// Values with a larger ratio have a logarithmic axis.
const SPAN_OF_LOG: f64 = 30.0;
/// The finding of a chart with more lines states only the range.
const FINDING_LINES_MAX: usize = 4;
/// More lines than these cannot be distinguished in a chart.
pub(super) const DRAWN_MAX: usize = 16;
/// A line has no more points than these.
const LEVELS_MAX: usize = 200;
/// Configurations that a note names; the table of results has all.
const NAMED_MAX: usize = 3;

const P50: Statistic = Statistic::Percentile(Percentile::P50);
const P99: Statistic = Statistic::Percentile(Percentile::P99);

/// The section of the page that a chart is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    Means,
    Throughput,
    Distributions,
}

#[derive(Clone, Debug)]
pub(super) struct Drawn {
    pub(super) group: Group,
    pub(super) chart: Chart,
    /// Of the file that a site includes, without its ending.
    pub(super) file: String,
}

/// All charts with values, over rates and then over concurrency, in the order of the page.
pub(super) fn charts(lines: &[Line<'_>]) -> Vec<Drawn> {
    let of_kind = |kind: LoadKind| -> Vec<&Line<'_>> {
        lines.iter().filter(|line| line.kind == Some(kind)).collect()
    };
    let over = [LoadKind::Rate, LoadKind::Concurrency].map(|kind| (kind, of_kind(kind)));
    let several = over.iter().all(|(_, lines)| !lines.is_empty());
    let unplaced = unplaced(lines);
    let axes = over.into_iter().map(|(kind, of_kind)| {
        let more = of_kind.len().saturating_sub(DRAWN_MAX);
        let more = (0 < more).then(|| {
            let number = counted(more as u64, "more configuration");
            format!("{number}, because no more can be distinguished")
        });
        let left_out = more.into_iter().chain(unplaced.clone()).collect();
        let drawn = of_kind.into_iter().take(DRAWN_MAX);
        Axis { kind, lines: drawn.map(|line| (line, placed(line))).collect(), left_out, several }
    });
    axes.flat_map(|axis| axis.charts()).collect()
}

/// Lines over the same kind of load.
struct Axis<'a> {
    kind: LoadKind,
    /// Each line with its drawn levels.
    lines: Vec<(&'a Line<'a>, Vec<&'a Level<'a>>)>,
    /// Results that the charts do not show, with the reasons.
    left_out: Vec<String>,
    /// Whether the page has charts over another kind of load too.
    several: bool,
}

/// Levels with a load; of many those in equal steps, with both ends.
fn placed<'a>(line: &'a Line<'a>) -> Vec<&'a Level<'a>> {
    let all: Vec<&Level<'_>> = line.levels.iter().filter(|level| level.load.is_some()).collect();
    if all.len() <= LEVELS_MAX {
        return all;
    }
    let last = all.len() - 1;
    (0..LEVELS_MAX).map(|step| all[step * last / (LEVELS_MAX - 1)]).collect()
}

/// Results without a load.
fn unplaced(lines: &[Line<'_>]) -> Option<String> {
    let of_line = |line: &Line<'_>| {
        let levels = line.levels.iter().filter(|level| level.load.is_none());
        let results: usize = levels.map(|level| level.sheets.len()).sum();
        (0 < results).then(|| (terminal_line(&line.name, NAME_MAX), results as u64))
    };
    let found: Vec<(String, u64)> = lines.iter().filter_map(of_line).collect();
    let results: u64 = found.iter().map(|(_, results)| results).sum();
    let mut names: Vec<String> = found.iter().take(NAMED_MAX).map(|it| it.0.clone()).collect();
    let more = found.len().saturating_sub(NAMED_MAX);
    names.extend((0 < more).then(|| format!("{} more", count(more as u64))));
    let whose = list(&names);
    (0 < results).then(|| {
        format!("{} of {whose}, because their load is not known", counted(results, "result"))
    })
}

const LATENCIES: [(Group, &str, LatencyKind, &[Statistic]); 6] = [
    (Group::Means, "mean-ttft", LatencyKind::Ttft, &[Statistic::Mean]),
    (Group::Means, "mean-tpot", LatencyKind::Tpot, &[Statistic::Mean]),
    (Group::Distributions, "ttft", LatencyKind::Ttft, &[P50, P99]),
    (Group::Distributions, "tpot", LatencyKind::Tpot, &[P50, P99]),
    (Group::Distributions, "itl", LatencyKind::Itl, &[Statistic::Mean, P50, P99]),
    (Group::Distributions, "e2e", LatencyKind::E2e, &[Statistic::Mean, P50, P99]),
];

/// A heading, a field and its unit.
type Rate = (&'static str, &'static str, &'static str);

const THROUGHPUTS: [Rate; 3] = [
    ("Output throughput", "output_throughput", "tok/s"),
    ("Total token throughput", "total_token_throughput", "tok/s"),
    ("Request throughput", "request_throughput", "req/s"),
];
const GOODPUT: [Rate; 1] = [("Goodput", "request_goodput", "req/s")];

impl Axis<'_> {
    fn charts(&self) -> Vec<Drawn> {
        // The table of results is enough for one point.
        if self.levels().count() < 2 {
            return Vec::new();
        }
        let mut drawn: Vec<Drawn> =
            LATENCIES.iter().filter_map(|wanted| self.latency(*wanted)).collect();
        let after_means = drawn.iter().filter(|it| it.group == Group::Means).count();
        let rates = [
            self.rates("throughput", "Throughput", &THROUGHPUTS),
            self.rates("goodput", "Goodput", &GOODPUT),
        ];
        drawn.splice(after_means..after_means, rates.into_iter().flatten());
        drawn
    }

    fn levels(&self) -> impl Iterator<Item = &Level<'_>> {
        self.lines.iter().flat_map(|(_, levels)| levels.iter().copied())
    }

    fn latency(
        &self,
        (group, id, kind, statistics): (Group, &str, LatencyKind, &[Statistic]),
    ) -> Option<Drawn> {
        let sheets = || self.levels().flat_map(|level| level.sheets.iter().copied());
        let mut definitions = definitions(kind, sheets());
        // First the definition that most results have.
        definitions.sort_by_cached_key(|definition| {
            Reverse(sheets().filter(|sheet| find_latency(sheet, *definition).is_some()).count())
        });
        let mut panels = Vec::new();
        for statistic in statistics {
            for definition in &definitions {
                let heading =
                    format!("{} {}", statistic_name(*statistic), definition_name(*definition));
                let quantity = Quantity::Latency(*definition, *statistic);
                panels.extend(self.panel(heading, quantity, "ms"));
            }
        }
        let names: Vec<String> = statistics.iter().map(|it| statistic_name(*it)).collect();
        let title = match names.as_slice() {
            [only] => format!("{only} {}", kind.name()),
            several => format!("{}: {}", kind.name(), list(several).to_lowercase()),
        };
        let file = format!("summary_{}_ms", id.replace('-', "_"));
        self.drawn(group, (id, &title, file), panels)
    }

    fn rates(&self, id: &str, title: &str, rates: &[Rate]) -> Option<Drawn> {
        let panel = |(heading, field, unit): &Rate| {
            self.panel((*heading).to_owned(), Quantity::Throughput(field), unit)
        };
        let panels = rates.iter().filter_map(panel).collect();
        self.drawn(Group::Throughput, (id, title, format!("summary_{id}")), panels)
    }

    /// `None` where no result has such a number.
    fn panel(&self, heading: String, quantity: Quantity, unit: &str) -> Option<LinesPanel> {
        // All lines, also those without points: a line has the same colour in every chart.
        let series: Vec<LineSeries> = self
            .lines
            .iter()
            .map(|(line, levels)| LineSeries {
                name: line.name.clone(),
                points: levels.iter().filter_map(|level| point(level, quantity)).collect(),
            })
            .collect();
        let is_empty = series.iter().all(|series| series.points.is_empty());
        let values = series.iter().flat_map(|series| &series.points).map(|point| point.y);
        let scale = scale_of(values, SPAN_OF_LOG);
        let label = if scale == ScaleKind::Log { "logarithmic" } else { "" };
        let y = measure(label, unit, scale);
        (!is_empty).then_some(LinesPanel { heading, y, series })
    }

    fn drawn(
        &self,
        group: Group,
        (id, title, file): (&str, &str, String),
        panels: Vec<LinesPanel>,
    ) -> Option<Drawn> {
        let is_second = self.several && self.kind == LoadKind::Concurrency;
        let joined = |name: &str, by: &str| {
            if is_second { format!("{name}{by}") } else { name.to_owned() }
        };
        let finding = self.finding(panels.first()?);
        let loads = self.levels().filter_map(|level| level.load);
        // Levels of concurrency are usually doubled.
        let span_of_log = match self.kind {
            LoadKind::Rate => 20.0,
            LoadKind::Concurrency => 3.0,
        };
        let scale = scale_of(loads.filter(|load| load.is_finite()), span_of_log);
        let n = self.footnote(&panels);
        let x = measure(self.kind.axis().0, self.kind.axis().1, scale);
        let chart = Chart {
            id: joined(id, "-by-concurrency"),
            title: format!("{title} against {}", self.kind.axis().0.to_lowercase()),
            finding,
            n,
            plot: Plot::Lines(Lines { x, ticks_at_points: true, panels }),
        };
        Some(Drawn { group, chart, file: joined(&file, "_by_concurrency") })
    }

    /// The values of the first panel at the lowest and the highest load.
    fn finding(&self, panel: &LinesPanel) -> String {
        let shown = |value: f64| {
            if panel.y.unit == "ms" {
                latency(value)
            } else {
                format!("{} {}", number(value), panel.y.unit)
            }
        };
        let course = |series: &LineSeries| {
            let at = |point: &LinePoint| {
                let marks = self.marks(&series.name, point.x);
                let marks = if marks.is_empty() { marks } else { format!(" ({marks})") };
                format!("{} at {}{marks}", shown(point.y), self.kind.words(point.x))
            };
            let limited: Vec<&LinePoint> =
                series.points.iter().filter(|point| point.x.is_finite()).collect();
            let unlimited = series.points.iter().find(|point| point.x.is_infinite()).map(at);
            let ends = match limited.as_slice() {
                [] => None,
                [only] => Some(at(only)),
                [first, .., last] => Some(format!("{} and {}", at(first), at(last))),
            };
            let parts: Vec<String> = ends.into_iter().chain(unlimited).collect();
            format!("{}: {}.", series.name, parts.join("; "))
        };
        let drawn = || panel.series.iter().filter(|series| !series.points.is_empty());
        if drawn().count() <= FINDING_LINES_MAX {
            let shown: Vec<String> = drawn().map(course).collect();
            return format!("{}. {}", panel.heading, shown.join(" "));
        }
        let values = || panel.series.iter().flat_map(|it| &it.points).map(|point| point.y);
        let low = values().fold(f64::INFINITY, f64::min);
        let high = values().fold(f64::NEG_INFINITY, f64::max);
        let lines = count(drawn().count() as u64);
        format!("{}: {lines} configurations, {} to {}.", panel.heading, shown(low), shown(high))
    }

    /// The number of results behind a point, and the reasons for hollow marks.
    fn footnote(&self, panels: &[LinesPanel]) -> String {
        let levels = self.drawn_levels(panels);
        let repeats = levels.iter().map(|level| level.sheets.len()).max().unwrap_or(1);
        let results = if repeats == 1 {
            "One result at each load".to_owned()
        } else {
            format!("Up to {} results at each load", count(repeats as u64))
        };
        let points = || panels.iter().flat_map(|it| &it.series).flat_map(|it| &it.points);
        let (with, all) = (points().filter(|it| it.interval.is_some()).count(), points().count());
        let bars = match with {
            0 => {
                "no intervals: the results have none; repeat the measurement to get them".to_owned()
            }
            some if some == all && 1 < repeats => "bars are 95 % between results".to_owned(),
            some if some == all => "bars are 95 % within the run".to_owned(),
            _ => "bars are 95 % intervals, where they are known".to_owned(),
        };
        let mut hollow: BTreeMap<&str, usize> = BTreeMap::new();
        for name in levels.iter().flat_map(|level| level.doubt_names()) {
            *hollow.entry(name).or_default() += 1;
        }
        let shown: Vec<String> =
            hollow.into_iter().map(|(kind, levels)| format!("{levels} {kind}")).collect();
        let mut note = format!("{results}; {bars}.");
        if !shown.is_empty() {
            let _ = write!(note, " Hollow marks: {}.", list(&shown));
        }
        let of_many = |(line, levels): &(&Line<'_>, Vec<_>)| levels.len() < line.placed();
        if self.lines.iter().any(of_many) {
            let _ = write!(note, " At most {LEVELS_MAX} loads of a line are drawn.");
        }
        if !self.left_out.is_empty() {
            let _ = write!(note, " Not drawn: {}.", self.left_out.join("; "));
        }
        note
    }

    /// Levels with a point in at least one panel.
    fn drawn_levels(&self, panels: &[LinesPanel]) -> Vec<&Level<'_>> {
        let is_drawn = |place: usize, level: &Level<'_>| {
            let mut points = panels.iter().flat_map(|panel| &panel.series[place].points);
            points.any(|point| Some(point.x) == level.load)
        };
        let lines = self.lines.iter().enumerate();
        let levels = lines.flat_map(|(place, (_, it))| it.iter().map(move |level| (place, *level)));
        levels.filter(|(place, level)| is_drawn(*place, level)).map(|(_, level)| level).collect()
    }

    /// The reasons for a hollow point in one or two words.
    fn marks(&self, line: &str, load: f64) -> String {
        let levels = self.lines.iter().find(|(known, _)| known.name == line).map(|(_, it)| it);
        let level = levels.into_iter().flatten().find(|level| level.load == Some(load));
        level.map(|level| level.doubt_names().join(", ")).unwrap_or_default()
    }
}

fn point(level: &Level<'_>, quantity: Quantity) -> Option<LinePoint> {
    let across = level.across(quantity);
    let doubts = level.doubts();
    let note = doubts.iter().cloned().chain(remarks(level, quantity, &across));
    let note = note.collect::<Vec<_>>().join("; ");
    Some(LinePoint {
        x: level.load?,
        y: across.mean?,
        interval: pair(across.doubt()),
        hollow: !doubts.is_empty(),
        note: (!note.is_empty()).then_some(note),
    })
}

/// Remarks about a point.
fn remarks(level: &Level<'_>, quantity: Quantity, across: &AcrossRuns) -> Vec<String> {
    let left_out = level.left_out();
    let without = (0 < left_out).then(|| format!("without {left_out} that are invalid"));
    let values = level.sheets.iter().filter_map(|sheet| quantity.get(sheet)).map(|it| it.n).min();
    let few = (!across.certified).then(|| uncertified_words(values.unwrap_or(0)).to_owned());
    let doubt = across.doubt().is_none().then(|| doubt_words(across));
    let between = across.interval.map(|_| format!("{} results", across.n));
    [between, doubt, without, few].into_iter().flatten().filter(|it| !it.is_empty()).collect()
}

fn scale_of(values: impl Iterator<Item = f64>, span_of_log: f64) -> ScaleKind {
    let ends = values.fold(None, |ends: Option<(f64, f64)>, value| {
        Some(ends.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
    });
    match ends {
        Some((low, high)) if 0.0 < low && span_of_log <= high / low => ScaleKind::Log,
        _ => ScaleKind::Linear,
    }
}
