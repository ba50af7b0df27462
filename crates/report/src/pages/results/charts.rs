//! Charts of results against the load, one line for each configuration.

use std::cmp::Reverse;

use super::NAME_MAX;
use super::lines::{
    Level, Line, Quantity, definition_name, definitions, load_words, statistic_name,
    uncertified_words,
};
use crate::pages::charts::{lines_panel, load_axis, pair, scale_for, spread};
use crate::pages::prelude::*;

/// Values with a larger ratio have a logarithmic axis.
const SPAN_OF_LOG: f64 = 30.0;
/// The finding of a chart with more lines states only the range.
const FINDING_LINES_MAX: usize = 4;
/// More lines than these cannot be distinguished in a chart.
const DRAWN_MAX: usize = 16;
/// A line has no more points than these.
const LEVELS_MAX: usize = 200;
/// Configurations that a note names; the table of results has all.
const NAMED_MAX: usize = 3;

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
    /// Name of the file that a site includes, without its extension.
    pub(super) file: String,
}

/// All charts with values, over rates and then over concurrency, in the order of the page.
pub(super) fn charts(lines: &[Line<'_>]) -> Vec<Drawn> {
    let over = [Dimension::Rate, Dimension::Concurrency].map(|kind| {
        (kind, lines.iter().filter(|line| line.kind == Some(kind)).collect::<Vec<_>>())
    });
    let several = over.iter().all(|(_, lines)| !lines.is_empty());
    let unplaced = unplaced(lines);
    let axes = over.into_iter().map(|(kind, of_kind)| {
        let more = of_kind.len().saturating_sub(DRAWN_MAX) as u64;
        let more = (0 < more).then(|| {
            let number = counted(more, "more configuration");
            format!("{number}, because no more can be distinguished")
        });
        let drawn = of_kind.into_iter().take(DRAWN_MAX).map(|line| {
            let levels: Vec<_> = line.levels.iter().filter(|level| level.load.is_some()).collect();
            (line, spread(&levels, LEVELS_MAX))
        });
        let left_out = more.into_iter().chain(unplaced.clone()).collect();
        Axis { kind, lines: drawn.collect(), left_out, several }
    });
    axes.flat_map(|axis| axis.charts()).collect()
}

/// Lines over the same kind of load.
struct Axis<'a> {
    kind: Dimension,
    /// Each line with its drawn levels.
    lines: Vec<(&'a Line<'a>, Vec<&'a Level<'a>>)>,
    /// Results that the charts do not show, with the reasons.
    left_out: Vec<String>,
    /// Whether the page has charts over another kind of load too.
    several: bool,
}

/// Results without a load.
fn unplaced(lines: &[Line<'_>]) -> Option<String> {
    let found = lines.iter().filter_map(|line| {
        let levels = line.levels.iter().filter(|level| level.load.is_none());
        let results: usize = levels.map(|level| level.results.len()).sum();
        (0 < results).then(|| (terminal_line(&line.name, NAME_MAX), results as u64))
    });
    let (mut names, results): (Vec<String>, Vec<u64>) = found.unzip();
    let more = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    names.extend((0 < more).then(|| format!("{} more", count(more as u64))));
    let (number, names) = (counted(results.iter().sum(), "result"), list(&names));
    (!results.is_empty()).then(|| format!("{number} of {names}, because their load is not known"))
}

/// The panels of a chart.
enum Content {
    Latency(LatencyKind, &'static [Statistic]),
    /// A title, and panels with their heading, field and unit.
    Rates(&'static str, &'static [(&'static str, &'static str, &'static str)]),
}

/// The charts in the order of the page, with their ids.
static CHARTS: [(Group, &str, Content); 8] = [
    (Group::Means, "mean-ttft", Content::Latency(LatencyKind::Ttft, &[MEAN])),
    (Group::Means, "mean-tpot", Content::Latency(LatencyKind::Tpot, &[MEAN])),
    (
        Group::Throughput,
        "throughput",
        Content::Rates(
            "Throughput",
            &[
                ("Output throughput", metric::OUTPUT_THROUGHPUT.name, "tok/s"),
                ("Total token throughput", "total_token_throughput", "tok/s"),
                ("Request throughput", metric::REQUEST_THROUGHPUT.name, "req/s"),
            ],
        ),
    ),
    (
        Group::Throughput,
        metric::GOODPUT.name,
        Content::Rates("Goodput", &[("Goodput", "request_goodput", "req/s")]),
    ),
    (Group::Distributions, metric::TTFT.name, Content::Latency(LatencyKind::Ttft, &[P50, P99])),
    (Group::Distributions, metric::TPOT.name, Content::Latency(LatencyKind::Tpot, &[P50, P99])),
    (Group::Distributions, metric::ITL.name, Content::Latency(LatencyKind::Itl, &[MEAN, P50, P99])),
    (Group::Distributions, metric::E2E.name, Content::Latency(LatencyKind::E2e, &[MEAN, P50, P99])),
];

impl Axis<'_> {
    fn charts(&self) -> Vec<Drawn> {
        // The table of results is enough for one point.
        if self.levels().count() < 2 {
            return Vec::new();
        }
        let drawn = CHARTS.iter().filter_map(|(group, id, content)| {
            let (title, unit, panels) = match content {
                Content::Latency(kind, statistics) => {
                    let names: Vec<String> =
                        statistics.iter().map(|it| statistic_name(*it)).collect();
                    let title = match names.as_slice() {
                        [only] => format!("{only} {}", kind.name()),
                        several => format!("{}: {}", kind.name(), list(several).to_lowercase()),
                    };
                    (title, "_ms", self.latency_panels(*kind, statistics))
                }
                Content::Rates(title, rates) => {
                    let panels = rates.iter().filter_map(|(heading, field, unit)| {
                        self.panel(heading, Quantity::Throughput(field), unit)
                    });
                    ((*title).to_owned(), "", panels.collect())
                }
            };
            self.drawn(*group, (id, &title, unit), panels)
        });
        drawn.collect()
    }

    fn levels(&self) -> impl Iterator<Item = &Level<'_>> + Clone {
        self.lines.iter().flat_map(|(_, levels)| levels.iter().copied())
    }

    fn latency_panels(&self, kind: LatencyKind, statistics: &[Statistic]) -> Vec<LinesPanel> {
        let results = || self.levels().flat_map(|level| level.results.iter().copied());
        let mut definitions = definitions(kind, results());
        // First the definition that most results have.
        definitions.sort_by_cached_key(|definition| {
            let has = |known: &_| *known == *definition;
            let found = results().filter(|it| it.latencies.iter().any(|it| has(&it.definition())));
            Reverse(found.count())
        });
        let all = statistics.iter().flat_map(|statistic| {
            definitions.iter().filter_map(|definition| {
                let heading =
                    format!("{} {}", statistic_name(*statistic), definition_name(*definition));
                self.panel(&heading, Quantity::Latency(*definition, *statistic), "ms")
            })
        });
        all.collect()
    }

    /// `None` where no result has such a number.
    fn panel(&self, heading: &str, quantity: Quantity, unit: &str) -> Option<LinesPanel> {
        // All lines, also those without points: a line has the same colour in every chart.
        let series = self.lines.iter().map(|(line, levels)| LineSeries {
            name: line.name.clone(),
            points: levels.iter().filter_map(|level| point(level, quantity)).collect(),
        });
        let series: Vec<LineSeries> = series.collect();
        let values = series.iter().flat_map(|series| &series.points).map(|point| point.y);
        let scale = scale_for(values, SPAN_OF_LOG);
        let label = if scale == ScaleKind::Log { "logarithmic" } else { "" };
        lines_panel(heading, measure(label, unit, scale), series)
    }

    fn drawn(
        &self,
        group: Group,
        (id, title, unit): (&str, &str, &str),
        panels: Vec<LinesPanel>,
    ) -> Option<Drawn> {
        let finding = self.finding(panels.first()?);
        let n = self.footnote(&panels);
        let loads = self.levels().filter_map(|level| level.load).filter(|load| load.is_finite());
        // Levels of concurrency are usually doubled.
        let span_of_log = match self.kind {
            Dimension::Rate => 20.0,
            Dimension::Concurrency => 3.0,
        };
        let (label, load_unit) = load_axis(self.kind == Dimension::Rate);
        let x = measure(label, load_unit, scale_for(loads, span_of_log));
        let title = format!("{title} against {}", label.to_lowercase());
        let is_second = self.several && self.kind == Dimension::Concurrency;
        let by = if is_second { "-by-concurrency" } else { "" };
        let file = format!("summary_{id}{unit}{by}").replace('-', "_");
        let plot = Plot::Lines(Lines { x, ticks_at_points: true, panels });
        Some(Drawn { group, chart: Chart::new(format!("{id}{by}"), title, finding, n, plot), file })
    }

    /// The values of the first panel at the lowest and the highest load.
    fn finding(&self, panel: &LinesPanel) -> String {
        let shown = |value: f64| match panel.y.unit.as_str() {
            "ms" => fmt::latency(value),
            unit => format!("{} {unit}", number(value)),
        };
        let course = |series: &LineSeries| {
            let at = |point: &LinePoint| {
                let marks = self.marks(&series.name, point.x);
                let marks = if marks.is_empty() { marks } else { format!(" ({marks})") };
                format!(
                    "{} at {}{marks}",
                    shown(point.y),
                    load_words(Some(self.kind), Some(point.x))
                )
            };
            let limited = || series.points.iter().filter(|point| point.x.is_finite());
            let ends = [limited().next(), limited().nth(1).and_then(|_| limited().next_back())];
            let ends = ends.into_iter().flatten().map(at).try_join(" and ");
            let unlimited = series.points.iter().find(|point| point.x.is_infinite()).map(at);
            format!("{}: {}.", series.name, ends.into_iter().chain(unlimited).join("; "))
        };
        let drawn = || panel.series.iter().filter(|series| !series.points.is_empty());
        if drawn().count() <= FINDING_LINES_MAX {
            return format!("{}. {}", panel.heading, drawn().map(course).join(" "));
        }
        let values = || panel.series.iter().flat_map(|it| &it.points).map(|point| point.y);
        let low = shown(values().fold(f64::INFINITY, f64::min));
        let high = shown(values().fold(f64::NEG_INFINITY, f64::max));
        let lines = count(drawn().count() as u64);
        format!("{}: {lines} configurations, {low} to {high}.", panel.heading)
    }

    /// The number of results behind a point, and the reasons for hollow marks.
    fn footnote(&self, panels: &[LinesPanel]) -> String {
        let levels = self.drawn_levels(panels);
        let repeats = levels.iter().map(|level| level.results.len()).max().unwrap_or(1);
        let results = if repeats == 1 {
            "One result at each load".to_owned()
        } else {
            format!("Up to {} results at each load", count(repeats as u64))
        };
        let points = || panels.iter().flat_map(|it| &it.series).flat_map(|it| &it.points);
        let (with, all) = (points().filter(|it| it.interval.is_some()).count(), points().count());
        let bars = match with {
            0 => "no intervals: the results have none; repeat the measurement to get them",
            some if some == all && 1 < repeats => "bars are 95 % between results",
            some if some == all => "bars are 95 % within the run",
            _ => "bars are 95 % intervals, where they are known",
        };
        let mut hollow: BTreeMap<&str, usize> = BTreeMap::new();
        for name in levels.iter().flat_map(|level| level.reservation_names()) {
            *hollow.entry(name).or_default() += 1;
        }
        let shown: Vec<String> =
            hollow.into_iter().map(|(kind, levels)| format!("{levels} {kind}")).collect();
        let mut note = format!("{results}; {bars}.");
        if !shown.is_empty() {
            let _ = write!(note, " Hollow marks: {}.", list(&shown));
        }
        let is_thinned = |(line, levels): &(&Line<'_>, Vec<_>)| {
            levels.len() < line.levels.iter().filter(|level| level.load.is_some()).count()
        };
        if self.lines.iter().any(is_thinned) {
            let _ = write!(note, " At most {LEVELS_MAX} loads of a line are drawn.");
        }
        if !self.left_out.is_empty() {
            let _ = write!(note, " Not drawn: {}.", self.left_out.join("; "));
        }
        note
    }

    /// Levels with a point in at least one panel.
    fn drawn_levels(&self, panels: &[LinesPanel]) -> Vec<&Level<'_>> {
        let is_drawn = |line: usize, level: &Level<'_>| {
            let mut points = panels.iter().flat_map(|panel| &panel.series[line].points);
            points.any(|point| Some(point.x) == level.load)
        };
        let lines = self.lines.iter().enumerate();
        let levels = lines.flat_map(|(line, (_, it))| it.iter().map(move |level| (line, *level)));
        levels.filter(|(line, level)| is_drawn(*line, level)).map(|(_, level)| level).collect()
    }

    /// The reasons for a hollow point in one or two words.
    fn marks(&self, line: &str, load: f64) -> String {
        let levels = self.lines.iter().find(|(known, _)| known.name == line).map(|(_, it)| it);
        let level = levels.into_iter().flatten().find(|level| level.load == Some(load));
        level.map(|it| it.reservation_names().iter().join(", ")).unwrap_or_default()
    }
}

fn point(level: &Level<'_>, quantity: Quantity) -> Option<LinePoint> {
    let across = level.across(quantity);
    let reservations = level.reservations();
    let left_out = level.left_out();
    let values = level.results.iter().filter_map(|it| quantity.get(it)).map(|it| it.n).min();
    let remarks = [
        across.interval.map(|_| format!("{} results", across.n)),
        across.confidence_interval().is_none().then(|| uncertainty(&across)),
        (0 < left_out).then(|| format!("without {left_out} that are invalid")),
        (!across.certified).then(|| uncertified_words(values.unwrap_or(0)).to_owned()),
    ];
    let remarks = remarks.into_iter().flatten().filter(|remark| !remark.is_empty());
    Some(LinePoint {
        x: level.load?,
        y: across.mean?,
        interval: pair(across.confidence_interval()),
        hollow: !reservations.is_empty(),
        note: reservations.into_iter().chain(remarks).try_join("; "),
    })
}
