//! The charts of a single run: how latencies are distributed, the run over time, and its requests.

use inferometer_analysis::machines::GpuFigures;
use inferometer_analysis::{DistributionFigure, GaugeFigures, RequestRow, RowReason};
use inferometer_model::Outcome;
use inferometer_model::study::Level;

use crate::chart::{
    Curve, Distribution, Gantt, GanttEnding, GanttRow, HeatMap, Histogram, HistogramPanel, Plot,
    ScaleKind, Timeline, TimelinePanel, TimelineSeries,
};
use crate::fmt::{gibibytes, latency};
use crate::gpus;
use crate::pages::prelude::*;
use crate::pages::run::SCRAPES_MIN;

/// A page has a chart for each row, and readers tell no more steps apart.
const STEPS_MAX: usize = 100;

/// The id of a chart on its page.
fn chart_id(what: &str, subject: &str) -> String {
    // Ids that begin with `scenario-` are those of the scenarios.
    if subject.is_empty() { what.to_owned() } else { format!("{what}-of-{subject}") }
}

/// Distribution of TTFT, which an open loop counts from the schedule.
pub(in crate::pages) fn first_tokens(rows: &[&Row<'_>], subject: &str) -> Option<Chart> {
    tails(rows, first_token_metric(rows), subject)
}

pub(in crate::pages) fn first_token_metric(rows: &[&Row<'_>]) -> &'static Metric {
    let is_open = |row: &&Row<'_>| row.drawn().is_some_and(|run| run.run.load.is_open());
    LatencyOrigin::for_load(rows.iter().any(is_open)).ttft()
}

/// Distribution of the gaps between tokens, or between chunks where tokens cannot be told apart.
pub(in crate::pages) fn token_gaps(rows: &[&Row<'_>], subject: &str) -> Option<Chart> {
    tails(rows, &metric::ITL, subject).or_else(|| tails(rows, &metric::ICL, subject))
}

/// A row, and the run of it that is drawn.
type Drawn<'a> = (&'a Row<'a>, &'a Summary, &'a DistributionFigure);

/// One curve for each row.
pub(in crate::pages) fn tails(
    rows: &[&Row<'_>],
    metric: &'static Metric,
    subject: &str,
) -> Option<Chart> {
    let found: Vec<Drawn<'_>> = rows
        .iter()
        .filter_map(|row| {
            let run = row.drawn()?;
            let figure = run.figures.distributions.iter().find(|it| it.metric == metric.name)?;
            (!figure.points.is_empty()).then_some((*row, run, figure))
        })
        .collect();
    let drawn = spread(&found, CURVES_MAX);
    let (first, last) = (drawn.first()?, drawn.last()?);
    let alone = drawn.len() == 1;
    let curves = drawn.iter().map(|(row, _, found)| Curve {
        name: if alone { metric.title.to_owned() } else { curve_name(row, &drawn) },
        n: found.n,
        points: found.points.clone(),
    });
    let counts = || drawn.iter().map(|(_, _, found)| found.n);
    let (fewest, most) = (counts().min()?, counts().max()?);
    let mut n = match (fewest == most, alone) {
        (false, _) => format!("{} to {} each", count(fewest), counted(most, "value")),
        (true, false) => counted(fewest, "value") + " each",
        (true, true) => counted(fewest, "value"),
    };
    if rows.iter().any(|row| 1 < row.runs.len()) {
        n += &if alone { first.0.which_run() } else { "; of the first run of each".to_owned() };
    }
    if drawn.len() < found.len() {
        let _ = write!(n, "; {} of {} rows are drawn", drawn.len(), found.len());
    }
    let id = chart_id(&format!("{}-tail", metric.name).replace('_', "-"), subject);
    let title = format!("{} distribution", metric.title);
    let x = measure(metric.title, "ms", ScaleKind::Log);
    let plot = Plot::Distribution(Distribution { x, curves: curves.collect() });
    Some(Chart::new(id, title, tail_finding(first, last, metric)?, n, plot))
}

/// How the values of TTFT, ITL and E2E are spread; TPOT where tokens cannot be told apart.
pub(in crate::pages) fn histogram(row: &Row<'_>) -> Option<Chart> {
    let figures = &row.drawn()?.figures.distributions;
    let find = |metric: &Metric| figures.iter().find(|it| it.metric == metric.name);
    let gaps = find(&metric::ITL).map(|found| (&metric::ITL, found));
    let gaps = gaps.or_else(|| Some((&metric::TPOT, find(&metric::TPOT)?)));
    let ttft = first_token_metric(&[row]);
    let e2e = find(&metric::E2E).map(|found| (&metric::E2E, found));
    let found = [find(ttft).map(|found| (ttft, found)), gaps, e2e];
    // Values that are all equal have no shape.
    let drawn = found.into_iter().flatten().filter(|(_, it)| {
        it.points.first().zip(it.points.last()).is_some_and(|(low, high)| low.1 < high.1)
    });
    let mut modes = Vec::new();
    let panel = |(metric, figure): (&Metric, &DistributionFigure)| {
        let edges = figure.edges_ms();
        let fullest = (0..figure.counts.len()).max_by_key(|step| figure.counts[*step])?;
        let [from, to] = [edges[fullest], edges[fullest + 1]].map(latency);
        let share = percent(figure.counts[fullest] as f64 / figure.n.max(1) as f64);
        modes.push(format!("{} is most often {from} to {to} ({share})", metric.title));
        let scale = if edges[0] <= 0.0 { ScaleKind::Linear } else { ScaleKind::Log };
        let (x, counts) = (measure(metric.title, "ms", scale), figure.counts.clone());
        Some(HistogramPanel { x, edges, counts })
    };
    let panels: Vec<HistogramPanel> = drawn.clone().filter_map(panel).collect();
    let n = drawn.map(|(metric, it)| format!("{}: {}", metric.title, counted(it.n, "value")));
    let n = n.join(", ");
    let finding = frame::sentence(&modes.join("; "));
    let title = "How often which latency occurs";
    (!panels.is_empty())
        .then(|| Chart::new("histogram", title, finding, n, Plot::Histogram(Histogram { panels })))
}

/// The level alone where all curves are levels of one scenario.
fn curve_name(row: &Row<'_>, drawn: &[Drawn<'_>]) -> String {
    let scenario = row.scenario.map(|it| &it.scenario);
    let is_own = |(other, ..): &Drawn<'_>| other.scenario.map(|it| &it.scenario) == scenario;
    match row.level.map(|level| level.level) {
        Some(level @ Level::Concurrency(_)) if scenario.is_some() && drawn.iter().all(is_own) => {
            level_name(level)
        }
        _ => row.name.clone(),
    }
}

/// There are as many colours.
const CURVES_MAX: usize = 8;

/// At most `max` items in equal steps, with the first and the last.
pub(in crate::pages) fn spread<T: Copy>(found: &[T], max: usize) -> Vec<T> {
    if found.len() <= max {
        return found.to_vec();
    }
    let last = found.len() - 1;
    (0..max).map(|index| found[index * last / (max - 1)]).collect()
}

fn tail_finding(first: &Drawn<'_>, last: &Drawn<'_>, metric: &Metric) -> Option<String> {
    let values = |run: &Summary| {
        let values = run.headline();
        let found = values.distribution(metric)?;
        Some((found.p50?, found.p99?, found.is_certified(Percentile::P99)))
    };
    let (middle, tail, is_certified) = values(first.1)?;
    if !std::ptr::eq(first, last) {
        let describe = |(row, run, _): &Drawn<'_>| {
            let (middle, tail, is_certified) = values(run)?;
            let few = if is_certified { "" } else { " (too few values to certify it)" };
            Some(format!("{}: median {}, p99 {}{few}", row.name, latency(middle), latency(tail)))
        };
        return Some(format!("{}; {}.", describe(first)?, describe(last)?));
    }
    let ratio = (0.0 < middle).then(|| format!(", {} times the median", number(tail / middle)));
    let ratio = ratio.unwrap_or_default();
    let [middle, tail] = [middle, tail].map(latency);
    let few = if is_certified { "" } else { "; too few independent values to certify it" };
    Some(fill("percentiles", &[&middle, &tail, &ratio, &few]))
}

/// Requests in flight by the client, and the gauges of the server, over time.
pub(in crate::pages) fn course(summary: &Summary, subject: &str) -> Option<Chart> {
    let course = &summary.figures.course;
    if course.in_flight.is_empty() || course.step_ms <= 0.0 {
        return None;
    }
    let joined = course.in_flight.len().div_ceil(STEPS_MAX).max(1);
    let client: Vec<Option<f64>> = course.in_flight.iter().copied().map(Some).collect();
    let client = coarse(&client, joined, 1.0);
    let steps = (course.from_ms, course.step_ms * joined as f64);
    let line = summary.server.as_ref().map(|server| &server.timeline);
    let gauge = |name: &str, values: Option<&Vec<Option<f64>>>, times: f64| {
        let grid = (line?.from_ms, line?.step_ms);
        let values = resampled(values?, grid, steps, client.len()).into_iter();
        let points: Vec<Option<f64>> = values.map(|it| it.map(|it| it * times)).collect();
        points.iter().any(Option::is_some).then(|| TimelineSeries::new(name, points))
    };
    let mut requests = vec![TimelineSeries::new("in flight (client)", client.clone())];
    requests.extend(gauge("running (server)", line.map(|line| &line.running), 1.0));
    requests.extend(gauge("waiting (server)", line.map(|line| &line.waiting), 1.0));
    let rates = token_rates(&course.output_tokens, course.step_ms, joined);
    let output = TimelineSeries::new("output tokens", rates);
    let kv_use = gauge("KV use (server)", line.map(|line| &line.kv_usage), 100.0);
    let mut panels = vec![panel("Requests", "", requests), panel("Output", "tok/s", vec![output])];
    let ttft = TimelineSeries::new("mean TTFT, by sending", coarse(&course.ttft_ms, joined, 1.0));
    panels.extend((!ttft.points.is_empty()).then(|| panel("TTFT", "ms", vec![ttft])));
    panels.extend(kv_use.map(|series| panel("KV use", "%", vec![series])));
    let readings = summary.server.as_ref().map_or_else(String::new, |server| {
        format!(", {} of the server", counted(server.scrapes.inside, "reading"))
    });
    let requests = counted(summary.attempted, "request");
    let n = format!("{requests} in steps of {} s{readings}", number(steps.1 / 1e3));
    let title = "Requests in flight, output, TTFT and KV use over time";
    let plot = Plot::Timeline(Timeline { from_s: steps.0 / 1e3, step_s: steps.1 / 1e3, panels });
    Some(Chart::new(chart_id("course", subject), title, course_finding(summary), n, plot))
}

fn panel(heading: &str, unit: &str, series: Vec<TimelineSeries>) -> TimelinePanel {
    Panel::new(heading, linear("", unit), series)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Steps joined to their means, as far as they are known, in the unit of the panel.
fn coarse(values: &[Option<f64>], joined: usize, times: f64) -> Vec<Option<f64>> {
    let joined = values.chunks(joined).map(|part| mean(part.iter().flatten().copied()));
    joined.map(|mean| mean.map(|mean| times * mean)).collect()
}

/// Tokens per second of joined steps; the last that are joined may be fewer than the others.
fn token_rates(tokens: &[u64], step_ms: f64, joined: usize) -> Vec<Option<f64>> {
    let per_s = |part: &[u64]| {
        let seconds = step_ms / 1e3 * part.len() as f64;
        Some(part.iter().sum::<u64>() as f64 / seconds)
    };
    tokens.chunks(joined).map(per_s).collect()
}

/// Readings of the server on `count` steps of the client: the mean of the readings in each step. A
/// reading is not held until the next one, so rare readings are points with gaps.
fn resampled(
    values: &[Option<f64>],
    (from_ms, step_ms): (f64, f64),
    client: (f64, f64),
    count: usize,
) -> Vec<Option<f64>> {
    let middle = |index: usize| from_ms + (index as f64 + 0.5) * step_ms;
    let mean_within = |step: usize| {
        let low = client.0 + step as f64 * client.1;
        let is_inside = |index: usize| (low..low + client.1).contains(&middle(index));
        let inside = values.iter().enumerate().filter(|(index, _)| is_inside(*index));
        mean(inside.filter_map(|(_, value)| *value)).filter(|_| 0.0 < step_ms)
    };
    (0..count).map(mean_within).collect()
}

fn course_finding(summary: &Summary) -> String {
    let values = summary.headline();
    let scalar = |metric: &Metric| values.scalar(metric).and_then(|found| found.value);
    // Points are means over a step, so none of them is the peak.
    let [mean, peak] =
        [number(scalar(&metric::CONCURRENCY_MEAN)), whole(scalar(&metric::CONCURRENCY_PEAK))];
    let in_flight = format!("Requests in flight: {mean} on average, {peak} at most");
    let server = summary.server.as_ref();
    let is_known = |gauge: &GaugeFigures| SCRAPES_MIN <= gauge.n;
    let waiting = server.and_then(|server| server.waiting).filter(is_known).map(|waiting| {
        match waiting.max {
            most if 0.0 < most => format!("up to {} waited in the server", whole(most)),
            _ => "none waited in the server".to_owned(),
        }
    });
    let kv_use = server.and_then(|server| server.kv_usage).filter(is_known);
    let kv_use = kv_use.map(|it| format!("the highest KV use is {}", percent(it.max)));
    [Some(in_flight), waiting, kv_use].into_iter().flatten().join("; ") + "."
}

/// A panel: its heading, its unit, and its lines with their names, values and factors.
type Wanted<'a> = (&'a str, &'a str, Vec<(&'a str, &'a [Option<f64>], f64)>);

/// The server's GPUs over time.
pub(in crate::pages) fn gpus(summary: &Summary, subject: &str) -> Option<Chart> {
    let found = summary.machines.gpus.as_ref()?;
    let line = &found.timeline;
    let several = 1 < gpus::used(found).count();
    let gib = 1.0 / f64::from(1_u32 << 30);
    let wanted = [
        ("Power", "W", "power", "power, all GPUs", &line.power_w, 1.0),
        ("Use", "%", "use", "use, mean of GPUs", &line.use_share, 100.0),
        ("Memory", "GiB", "memory", "memory, all GPUs", &line.memory_used_bytes, gib),
        ("Core clock", "MHz", "core clock", "core clock, mean", &line.core_clock_mhz, 1.0),
        ("Temperature", "°C", "temperature", "temperature, highest", &line.temperature_c, 1.0),
    ];
    let wanted = wanted.map(|(heading, unit, alone, together, values, times)| {
        (heading, unit, vec![(if several { together } else { alone }, values.as_slice(), times)])
    });
    let looks = counted(found.looks, "sample");
    let n =
        format!("{looks} by {} inside the run, {}", found.source.title(), gpus::how_many(found));
    let plot = Plot::Timeline(timeline((line.from_ms, line.step_ms), &wanted)?);
    let id = chart_id("gpus-over-time", subject);
    Some(Chart::new(id, "The GPUs over time", gpu_finding(found), n, plot))
}

/// The client's own machine over time.
pub(in crate::pages) fn client_machine(summary: &Summary, subject: &str) -> Option<Chart> {
    let client = summary.machines.client.as_ref()?;
    let line = &client.timeline;
    let wanted: [Wanted<'_>; 3] = [
        ("Processors busy", "%", vec![("all processors", &line.cpu_share, 100.0)]),
        ("This program", "threads", vec![("this program", &line.own_cpus, 1.0)]),
        (
            "Network",
            "MB/s",
            vec![
                ("received", &line.received_bytes_per_s, 1e-6),
                ("sent", &line.sent_bytes_per_s, 1e-6),
            ],
        ),
    ];
    let finding = client.cpu_share.map_or_else(
        || "The use of the processors is not known.".to_owned(),
        |cpu| fill("processors", &[&percent(cpu.mean), &percent(cpu.max)]),
    );
    let n = format!("{} inside the run", counted(client.looks, "sample"));
    let plot = Plot::Timeline(timeline((line.from_ms, line.step_ms), &wanted)?);
    let id = chart_id("client-machine-over-time", subject);
    Some(Chart::new(id, "The client's machine over time", finding, n, plot))
}

/// `None` where nothing is known of any step. Panels without a value are left out.
fn timeline((begin_ms, width_ms): (f64, f64), wanted: &[Wanted<'_>]) -> Option<Timeline> {
    let lines = || wanted.iter().flat_map(|(_, _, lines)| lines).map(|(_, values, _)| *values);
    // A rate needs two samples, so the first step has none.
    let unknown = lines().filter_map(|values| values.iter().position(Option::is_some)).min()?;
    let joined =
        lines().map(|it| it.len().saturating_sub(unknown)).max()?.div_ceil(STEPS_MAX).max(1);
    let panel = |(heading, unit, lines): &Wanted<'_>| {
        let known = lines.iter().filter(|(_, values, _)| values.iter().any(Option::is_some));
        let series = known.map(|(name, values, times)| {
            let own = values.get(unknown..).unwrap_or_default();
            TimelineSeries::new(name, coarse(own, joined, *times))
        });
        Some(panel(heading, unit, series.collect())).filter(|panel| !panel.series.is_empty())
    };
    let panels: Vec<TimelinePanel> = wanted.iter().filter_map(panel).collect();
    let from_s = (begin_ms + width_ms * unknown as f64) / 1e3;
    let step_s = width_ms / 1e3 * joined as f64;
    (!panels.is_empty() && 0.0 < step_s).then_some(Timeline { from_s, step_s, panels })
}

fn gpu_finding(found: &GpuFigures) -> String {
    let power = found.power_w.map(|power| {
        let [mean, max] = [power.mean, power.max].map(number);
        format!("power {mean} W on average and {max} W at most")
    });
    let memory = found.memory_used_bytes.map(|memory| number(gibibytes(memory.max)));
    let energy = found.energy_per_output_token_j.map(number);
    let parts = [
        power,
        memory.map(|most| format!("memory {most} GiB at most")),
        energy.map(|joules| format!("energy {joules} J per output token")),
    ];
    let known = parts.into_iter().flatten().try_join("; ");
    frame::sentence(known.as_deref().unwrap_or("Power, memory and energy are not known."))
}

/// Requests one by one.
pub(in crate::pages) fn requests(summary: &Summary, subject: &str) -> Option<Chart> {
    let found = &summary.figures.requests;
    if found.rows.is_empty() {
        return None;
    }
    let tally = |why| found.rows.iter().filter(|row| row.why == why).count() as u64;
    let slowest = counted(tally(RowReason::Slowest), "slowest request");
    let failed = counted(tally(RowReason::Failed), "failed one");
    let choice = fill("choice-of-requests", &[&slowest, &failed]);
    let rows = found.rows.iter().map(gantt_row).collect();
    let n = format!("{} of {}", found.rows.len(), counted(found.of, "request"));
    let plot = Plot::Gantt(Gantt { rows, of: found.of, choice });
    let id = chart_id("requests", subject);
    Some(Chart::new(id, "Requests one by one", request_finding(summary), n, plot))
}

/// A request that was not sent begins at its scheduled time.
fn begin_ms(request: &RequestRow) -> f64 {
    request.sent_ms.unwrap_or(request.intended_ms)
}

fn gantt_row(request: &RequestRow) -> GanttRow {
    /// A wait before sending is drawn where it can be seen.
    const WAIT_SEEN_MS: f64 = 1.0;
    let sent_ms = begin_ms(request);
    let waited = WAIT_SEEN_MS <= sent_ms - request.intended_ms;
    let tokens = request
        .output_tokens
        .map_or_else(String::new, |n| format!(", {} out", counted(n, "token")));
    let took = number((request.ended_ms - sent_ms) / 1e3);
    GanttRow {
        label: format!("#{}", request.id),
        intended_s: waited.then_some(request.intended_ms / 1e3),
        sent_s: sent_ms / 1e3,
        first_s: request.first_ms.map(|ms| ms / 1e3),
        ended_s: request.ended_ms / 1e3,
        ending: match (request.outcome, request.why) {
            (Outcome::Ok, RowReason::Slowest) => GanttEnding::Slowest,
            (Outcome::Ok, _) => GanttEnding::Ok,
            (Outcome::Cancelled | Outcome::Abandoned, _) => GanttEnding::Cancelled,
            _ => GanttEnding::Failed,
        },
        note: format!("{}, {took} s{tokens}", request.outcome),
    }
}

fn request_finding(summary: &Summary) -> String {
    let took = |row: &&RequestRow| row.ended_ms - begin_ms(row);
    let rows = summary.figures.requests.rows.iter();
    let slowest =
        rows.filter(|row| row.outcome == Outcome::Ok).max_by(|a, b| took(a).total_cmp(&took(b)));
    let failed = count(summary.failed().saturating_sub(summary.count(Outcome::Cancelled)));
    let failures = format!("{failed} of {} sent requests failed", count(summary.attempted));
    let Some(slowest) = slowest else {
        return format!("No request that is drawn ended ok; {failures}.");
    };
    let before = slowest.first_ms.map_or_else(String::new, |first| {
        format!(", {} s of it before its first token", number((first - begin_ms(slowest)) / 1e3))
    });
    format!("The slowest request took {} s{before}; {failures}.", number(took(&slowest) / 1e3))
}

/// Gaps between tokens over time.
pub(in crate::pages) fn gaps(summary: &Summary, subject: &str) -> Option<Chart> {
    let gaps = summary.figures.gaps.as_ref()?;
    if gaps.columns.is_empty() || gaps.edges_ms.len() < 2 {
        return None;
    }
    let metric = Metric::named(&gaps.metric)?;
    let found = summary.metrics.distribution(metric)?;
    let [half, most] = [found.p50?, found.p99?].map(latency);
    let finding = fill("gaps", &[&half, &most]);
    let n = counted(gaps.columns.iter().flatten().sum(), "gap");
    let plot = Plot::HeatMap(HeatMap {
        from_s: gaps.from_ms / 1e3,
        step_s: gaps.step_ms / 1e3,
        y: measure(metric.title, "ms", ScaleKind::Log),
        edges: gaps.edges_ms.clone(),
        columns: gaps.columns.clone(),
        counted: "token gaps".to_owned(),
    });
    let id = chart_id("token-gaps", subject);
    Some(Chart::new(id, format!("{} over time", metric.title), finding, n, plot))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_keeps_both_ends() {
        let all: Vec<u32> = (0..20).collect();
        let chosen = spread(&all, CURVES_MAX);
        assert_eq!(
            (chosen.len(), chosen.first(), chosen.last()),
            (CURVES_MAX, Some(&0), Some(&19))
        );
        assert_eq!(spread(&all[..3], CURVES_MAX), [0, 1, 2]);
    }

    #[test]
    fn a_reading_is_of_its_moment_and_gaps_stay_gaps() {
        let values = [Some(1.0), None, Some(3.0)];
        let found = resampled(&values, (0.0, 1_000.0), (0.0, 500.0), 8);
        let expected = [None, Some(1.0), None, None, None, Some(3.0), None, None];
        assert_eq!(found, expected);
    }

    #[test]
    fn fine_readings_are_averaged_and_time_before_them_is_empty() {
        let values = [Some(2.0), Some(4.0), None, Some(8.0)];
        let found = resampled(&values, (1_000.0, 500.0), (0.0, 1_000.0), 4);
        assert_eq!(found, [None, Some(3.0), Some(8.0), None]);
    }

    #[test]
    fn joined_steps_keep_their_means_and_rates() {
        let means = coarse(&[Some(1.0); 250], 3, 1.0);
        assert_eq!(means.len(), 84);
        assert!(means.iter().flatten().all(|mean| (mean - 1.0).abs() < 1e-12));
        let rates = token_rates(&[2; 250], 10.0, 3);
        assert_eq!(rates.len(), 84);
        assert!(rates.iter().flatten().all(|rate| (rate - 200.0).abs() < 1e-9), "{rates:?}");
    }

    #[test]
    fn joined_steps_are_means_of_what_is_known() {
        let values = [Some(1.0), None, Some(3.0), None, None];
        assert_eq!(coarse(&values, 2, 10.0), [Some(10.0), Some(30.0), None]);
    }

    #[test]
    fn what_nobody_tells_has_no_panel() {
        let (known, unknown) = ([Some(1.0); 250], [None; 250]);
        let wanted: [Wanted<'_>; 2] = [
            ("Power", "W", vec![("power", &known, 1.0)]),
            ("Use", "%", vec![("use", &unknown, 100.0)]),
        ];
        let found = timeline((0.0, 1_000.0), &wanted);
        let panels =
            found.as_ref().map(|it| (it.panels.len(), it.panels[0].series[0].points.len()));
        assert_eq!(panels, Some((1, 84)));
        assert!(found.is_some_and(|it| (it.step_s - 3.0).abs() < 1e-9));
        assert!(timeline((0.0, 1_000.0), &wanted[1..]).is_none());
        let late = [None, None, Some(1.0), None];
        let found = timeline((500.0, 1_000.0), &[("Network", "B", vec![("sent", &late, 1.0)])]);
        let found = found.map(|it| (it.from_s, it.panels[0].series[0].points.clone()));
        assert_eq!(found, Some((2.5, vec![Some(1.0), None])), "begins where something is known");
    }
}
