//! Plots of any numbers and names.

use inferometer_report::chart::{
    Bar, BarGroup, Bars, Curve, Distribution, Gantt, GanttEnding, GanttRow, HeatMap, LinePoint,
    LineSeries, Lines, LinesPanel, Measure, Pareto, ParetoPoint, Plot, ScaleKind, ShareClass,
    ShareRow, Shares, TileRow, Tiles, Timeline, TimelinePanel, TimelineSeries,
};
use proptest::prelude::*;

const HOSTILE: &str = "</text><script>alert('1')</script>&\"\u{1b}[2J ünï 模型";

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(5.0), (-9.0_f64..12.0).prop_map(|power| 10_f64.powf(power))]
}

fn interval() -> impl Strategy<Value = Option<(f64, f64)>> {
    proptest::option::of(
        (value(), value()).prop_map(|(one, other)| (one.min(other), one.max(other))),
    )
}

pub(crate) fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just(HOSTILE.to_owned()), Just(String::new()), "[a-z ]{1,60}", "[a-d]"]
}

fn any_measure() -> impl Strategy<Value = Measure> {
    (name(), prop_oneof![Just(""), Just("tok/s")], any::<bool>()).prop_map(
        |(label, unit, is_log)| {
            let scale = if is_log { ScaleKind::Log } else { ScaleKind::Linear };
            Measure { label, unit: unit.to_owned(), scale }
        },
    )
}

/// A load, which may have no limit.
fn load() -> impl Strategy<Value = f64> {
    prop_oneof![4 => value(), 1 => Just(f64::INFINITY)]
}

fn any_lines() -> impl Strategy<Value = Plot> {
    let point =
        (load(), value(), interval(), any::<bool>()).prop_map(|(x, y, interval, hollow)| {
            LinePoint { x, y, interval, hollow, note: hollow.then(|| HOSTILE.to_owned()) }
        });
    let points = proptest::collection::vec(point, 0..20);
    let series = (name(), points).prop_map(|(name, points)| LineSeries { name, points });
    let panel = (name(), any_measure(), proptest::collection::vec(series, 0..12))
        .prop_map(|(heading, y, series)| LinesPanel { heading, y, series, limits: Vec::new() });
    (any_measure(), any::<bool>(), proptest::collection::vec(panel, 0..4))
        .prop_map(|(x, ticks_at_points, panels)| Plot::Lines(Lines { x, ticks_at_points, panels }))
}

fn any_distribution() -> impl Strategy<Value = Plot> {
    let points = proptest::collection::vec((0.0..=1.0_f64, value()), 0..40);
    let curve = (name(), points).prop_map(|(name, points)| Curve { name, n: 7, points });
    (any_measure(), proptest::collection::vec(curve, 0..4))
        .prop_map(|(x, curves)| Plot::Distribution(Distribution { x, curves }))
}

fn any_timeline() -> impl Strategy<Value = Plot> {
    let values = proptest::collection::vec(proptest::option::of(value()), 0..300);
    let series =
        (name(), values).prop_map(|(name, values)| TimelineSeries { name, points: values });
    let panel = (name(), any_measure(), proptest::collection::vec(series, 0..3))
        .prop_map(|(heading, y, series)| TimelinePanel { heading, y, series, limits: Vec::new() });
    (value(), value(), proptest::collection::vec(panel, 0..4))
        .prop_map(|(from_s, step_s, panels)| Plot::Timeline(Timeline { from_s, step_s, panels }))
}

fn any_gantt() -> impl Strategy<Value = Plot> {
    let ending = prop_oneof![
        Just(GanttEnding::Ok),
        Just(GanttEnding::Slowest),
        Just(GanttEnding::Failed),
        Just(GanttEnding::Cancelled)
    ];
    let row = (name(), proptest::option::of(value()), value(), any::<bool>(), value(), ending)
        .prop_map(|(label, intended_s, sent_s, has_first, long, ending)| GanttRow {
            label,
            intended_s,
            sent_s,
            first_s: has_first.then_some(sent_s + long / 2.0),
            ended_s: sent_s + long,
            ending,
            note: HOSTILE.to_owned(),
        });
    proptest::collection::vec(row, 0..160)
        .prop_map(|rows| Plot::Gantt(Gantt { rows, of: 200, choice: HOSTILE.to_owned() }))
}

fn any_heat_map() -> impl Strategy<Value = Plot> {
    let columns = proptest::collection::vec(proptest::collection::vec(0..9_000_u64, 6), 0..20);
    (value(), value(), any_measure(), proptest::collection::vec(value(), 0..7), columns).prop_map(
        |(from_s, step_s, y, mut edges, columns)| {
            edges.sort_by(f64::total_cmp);
            let counted = HOSTILE.to_owned();
            Plot::HeatMap(HeatMap { from_s, step_s, y, edges, columns, counted })
        },
    )
}

fn any_pareto() -> impl Strategy<Value = Plot> {
    let point = (name(), name(), (value(), value()), (interval(), interval()), any::<bool>())
        .prop_map(|(series, label, (x, y), (x_interval, y_interval), on_frontier)| ParetoPoint {
            series,
            label,
            x,
            y,
            x_interval,
            y_interval,
            on_frontier,
            hollow: !on_frontier,
            note: None,
        });
    (any_measure(), any_measure(), proptest::collection::vec(point, 0..30))
        .prop_map(|(x, y, points)| Plot::Pareto(Pareto { x, y, points }))
}

fn any_bars() -> impl Strategy<Value = Plot> {
    let signed = (value(), any::<bool>()).prop_map(|(size, less)| if less { -size } else { size });
    let bar = (name(), proptest::option::of(signed), interval(), any::<bool>()).prop_map(
        |(series, value, interval, hollow)| {
            let note = hollow.then(|| HOSTILE.to_owned());
            Bar { series, value, text: None, interval, hollow, failed: hollow, note }
        },
    );
    let group = (name(), proptest::collection::vec(bar, 0..5))
        .prop_map(|(label, bars)| BarGroup { label, bars });
    (any_measure(), proptest::collection::vec(group, 0..12))
        .prop_map(|(y, groups)| Plot::Bars(Bars { y, groups }))
}

fn any_shares() -> impl Strategy<Value = Plot> {
    let class = (name(), any::<bool>()).prop_map(|(name, is_good)| ShareClass { name, is_good });
    let counts = proptest::collection::vec(prop_oneof![Just(0), 0..1_000_000_u64], 0..6);
    let row = (name(), counts).prop_map(|(label, counts)| ShareRow { label, counts });
    (proptest::collection::vec(class, 0..6), proptest::collection::vec(row, 0..8)).prop_map(
        |(classes, rows)| Plot::Shares(Shares { classes, rows, counted: "requests".to_owned() }),
    )
}

fn any_tiles() -> impl Strategy<Value = Plot> {
    let tile = (proptest::option::of(value()), any::<bool>(), any::<bool>()).prop_map(
        |(value, hollow, failed)| Bar {
            value,
            hollow,
            failed,
            note: failed.then(|| HOSTILE.to_owned()),
            ..Bar::default()
        },
    );
    let tiles = proptest::collection::vec(proptest::option::of(tile), 0..8);
    let row = (name(), tiles).prop_map(|(label, tiles)| TileRow { label, tiles });
    let columns = proptest::collection::vec(name(), 0..8);
    (any_measure(), name(), columns, proptest::collection::vec(row, 0..12)).prop_map(
        |(value, across, columns, rows)| Plot::Tiles(Tiles { value, across, columns, rows }),
    )
}

pub(crate) fn any_plot() -> impl Strategy<Value = Plot> {
    prop_oneof![
        any_lines(),
        any_distribution(),
        any_timeline(),
        any_gantt(),
        any_heat_map(),
        any_pareto(),
        any_bars(),
        any_shares(),
        any_tiles()
    ]
}
