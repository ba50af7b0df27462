//! Charts as files: exact, well-formed and inside their frame, whatever the numbers and the names.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod any;
mod picture;

use inferometer_report::chart::{
    Bar, BarGroup, Bars, Chart, Curve, Distribution, Gantt, GanttEnding, GanttRow, HeatMap,
    LinePoint, LineSeries, Lines, LinesPanel, Measure, Pareto, ParetoPoint, Plot, ScaleKind,
    ShareClass, ShareRow, Shares, Theme, TileRow, Tiles, Timeline, TimelinePanel, TimelineSeries,
};
use inferometer_report::document::plain;
use proptest::prelude::*;

use any::{any_plot, name};
use picture::{check, marks};

fn chart(plot: Plot) -> Chart {
    let [id, title, finding, n] =
        ["a-chart", "A chart", "It shows something.", "n = 3 requests"].map(str::to_owned);
    Chart { id, title, finding, n, plot }
}

fn measure(scale: ScaleKind) -> Measure {
    Measure { label: "time".to_owned(), unit: "ms".to_owned(), scale }
}

fn point(x: f64, y: f64) -> LinePoint {
    LinePoint { x, y, interval: None, hollow: false, note: None }
}

fn lines(scale: ScaleKind, points: Vec<LinePoint>) -> Chart {
    let series = vec![LineSeries { name: "p50".to_owned(), points }];
    let panel =
        LinesPanel { heading: "Latency".to_owned(), y: measure(scale), series, limits: Vec::new() };
    let x = Measure { label: "in flight".to_owned(), unit: String::new(), scale };
    chart(Plot::Lines(Lines { x, ticks_at_points: false, panels: vec![panel] }))
}

fn is_even(places: &[f64]) -> bool {
    places.windows(3).all(|three| (three[2] - 2.0 * three[1] + three[0]).abs() <= 0.2)
}

#[test]
fn equal_differences_are_equally_far_on_an_even_axis() {
    let chart = lines(ScaleKind::Linear, [0.0, 5.0, 10.0].map(|n| point(n, n)).to_vec());
    let (x, y) = (marks(&chart, "cx"), marks(&chart, "cy"));
    assert_eq!(x.len(), 3);
    assert!(is_even(&x) && is_even(&y) && x[0] < x[1] && y[1] < y[0], "{x:?} {y:?}");
    // Ten is the end of the axis, and so the top of its frame of 300 pixels.
    assert!((y[0] - y[2] - 300.0).abs() < 0.2, "{y:?}");
}

#[test]
fn equal_ratios_are_equally_far_on_a_logarithmic_axis() {
    let chart = lines(ScaleKind::Log, [1.0, 10.0, 100.0].map(|n| point(n, n * 3.0)).to_vec());
    let (x, y) = (marks(&chart, "cx"), marks(&chart, "cy"));
    assert!(is_even(&x) && is_even(&y) && 100.0 < x[1] - x[0], "{x:?} {y:?}");
}

#[test]
fn a_load_without_a_limit_stands_right_of_the_axis_and_bends_no_line() {
    let limited = [1.0, 3.0, 5.0].map(|n| point(n, n));
    let alone = marks(&lines(ScaleKind::Linear, limited.to_vec()), "cx");
    let with = [limited.to_vec(), vec![point(f64::INFINITY, 60.0)]].concat();
    let chart = lines(ScaleKind::Linear, with);
    let x = marks(&chart, "cx");
    assert_eq!(x.len(), 4);
    assert!(is_even(&x[..3]) && 60.0 < x[3] - x[2] && x[2] < alone[2], "{x:?} {alone:?}");
    let svg = chart.to_svg(Theme::Light);
    assert!(svg.contains(">unlimited<") && svg.contains("in flight unlimited"));
    let line = svg.lines().find(|line| line.starts_with("<polyline")).unwrap();
    assert_eq!(line.matches(',').count(), 3, "{line}");
    let rows = chart.table().rows;
    assert_eq!(rows.last().unwrap()[0].text, "unlimited");
    let bare = lines(ScaleKind::Linear, vec![point(f64::INFINITY, 60.0)]).to_svg(Theme::Light);
    assert!(bare.contains(">unlimited<") && !bare.contains(">1<"), "no place is made up");
}

/// Faults: 115.
#[test]
fn marks_on_a_page_without_a_script_say_what_they_are() {
    let noted = LinePoint { note: Some("cut: 3 of 4 <b>".to_owned()), ..point(1.0, 2.0) };
    let svg = lines(ScaleKind::Linear, vec![noted]).to_svg(Theme::Site);
    assert!(
        svg.contains("<title>p50 · in flight 1 · 2.00 ms · cut: 3 of 4 &lt;b&gt;</title></circle>")
    );
}

#[test]
fn each_nine_of_a_tail_is_equally_far() {
    let points = vec![(0.0, 1.0), (0.9, 10.0), (0.99, 100.0), (0.999, 1_000.0)];
    let curves = vec![Curve { name: "TTFT".to_owned(), n: 1_000, points }];
    let chart = chart(Plot::Distribution(Distribution { x: measure(ScaleKind::Log), curves }));
    let (x, y) = (marks(&chart, "cx"), marks(&chart, "cy"));
    assert!(is_even(&x) && is_even(&y) && 90.0 < y[0] - y[1], "{x:?} {y:?}");
    let svg = chart.to_svg(Theme::Light);
    for tick in ["50 %", "90 %", "99 %", "99.9 %"] {
        assert!(svg.contains(&format!(">{tick}<")), "{tick}");
    }
}

#[test]
fn a_gap_breaks_the_line_and_is_shaded() {
    let timeline = |values: Vec<Option<f64>>| {
        let series = vec![TimelineSeries { name: "waiting".to_owned(), points: values }];
        let y = measure(ScaleKind::Linear);
        let panels =
            vec![TimelinePanel { heading: "Queue".to_owned(), y, series, limits: Vec::new() }];
        chart(Plot::Timeline(Timeline { from_s: 0.0, step_s: 1.0, panels }))
    };
    let count = |svg: &str, what: &str| svg.matches(what).count();
    let whole = timeline(vec![Some(1.0); 6]).to_svg(Theme::Page);
    assert_eq!((count(&whole, "<polyline"), count(&whole, "class=\"gap\"")), (1, 0));
    let broken = [Some(1.0), Some(2.0), None, Some(3.0), Some(4.0), Some(4.0)];
    let broken = timeline(broken.to_vec()).to_svg(Theme::Page);
    assert_eq!((count(&broken, "<polyline"), count(&broken, "class=\"gap\"")), (2, 1));
    assert!(broken.contains("waiting: –"));
}

fn bars(value: Option<f64>) -> Chart {
    let note = value.is_none().then(|| "no usage".to_owned());
    let bar = Bar { series: "out".to_owned(), value, note, ..Bar::default() };
    let groups = vec![BarGroup { label: "chat".to_owned(), bars: vec![bar] }];
    chart(Plot::Bars(Bars { y: measure(ScaleKind::Linear), groups }))
}

#[test]
fn what_is_missing_is_a_dash_and_not_a_bar_of_no_length() {
    let missing = bars(None).to_svg(Theme::Light);
    assert!(missing.contains(">– no usage</text>"), "{missing}");
    assert_eq!(bars(None).table().rows[0][2].text, "–");
    let zero = bars(Some(0.0)).to_svg(Theme::Light);
    assert!(zero.contains(">0</text>") && !zero.contains('–'), "{zero}");
}

/// Faults: 115.
#[test]
fn tables_have_the_numbers_with_their_doubt() {
    let mut doubtful = point(2.0, 20.0);
    doubtful.interval = Some((19.0, 21.5));
    doubtful.hollow = true;
    doubtful.note = Some("saturated".to_owned());
    let table = lines(ScaleKind::Linear, vec![point(1.0, 12.5), doubtful]).table();
    let titles: Vec<&str> = table.columns.iter().map(|column| column.title.as_str()).collect();
    assert_eq!(titles, ["in flight", "Latency · p50 (ms)", "95 % interval"]);
    let texts = |row: usize| -> Vec<&str> {
        table.rows[row].iter().map(|cell| cell.text.as_str()).collect()
    };
    assert_eq!(texts(0), ["1", "12.50", "–"]);
    assert_eq!(texts(1), ["2", "20.00", "19.00 to 21.50"]);
    assert!(table.rows[1][1].doubtful && table.rows[1][1].detail.is_some());
}

/// The texts of a chart's table, row by row.
fn texts(plot: Plot) -> Vec<Vec<String>> {
    let rows = chart(plot).table().rows;
    rows.into_iter().map(|row| row.into_iter().map(|cell| cell.text).collect()).collect()
}

#[test]
fn a_distribution_is_a_table_of_percentiles() {
    let mut points: Vec<(f64, f64)> =
        (0..40).map(|n| f64::from(n) / 40.0).map(|share| (share, 1.0 + share)).collect();
    points.extend([(0.99, 9.0), (1.0, 12.0)]);
    let curves = vec![Curve { name: "TTFT".to_owned(), n: 40, points }];
    let plot = Plot::Distribution(Distribution { x: measure(ScaleKind::Log), curves });
    let expected = [
        ["p50", "1.50"],
        ["p75", "1.75"],
        ["p90", "1.90"],
        ["p95", "1.95"],
        ["p99", "9"],
        ["max", "12"],
    ];
    assert_eq!(texts(plot), expected);
}

#[test]
fn a_long_timeline_is_thinned_out_and_says_so() {
    let values = (0..150).map(|n| (n != 3).then_some(f64::from(n))).collect();
    let series = vec![TimelineSeries { name: "waiting".to_owned(), points: values }];
    let y = measure(ScaleKind::Linear);
    let panels = vec![TimelinePanel { heading: "Queue".to_owned(), y, series, limits: Vec::new() }];
    let chart = chart(Plot::Timeline(Timeline { from_s: 0.0, step_s: 1.0, panels }));
    let table = chart.table();
    assert_eq!(table.rows.len(), 50);
    assert_eq!(table.rows[1][1].text, "–");
    let note = plain("One row for every 3 of the 150 steps of the chart.");
    assert_eq!(table.notes, [note]);
}

#[test]
fn requests_counts_and_points_are_tables_too() {
    let row = GanttRow {
        label: "#7".to_owned(),
        intended_s: None,
        sent_s: 0.5,
        first_s: None,
        ended_s: 2.5,
        ending: GanttEnding::Failed,
        note: "HTTP 503".to_owned(),
    };
    let gantt = Gantt { rows: vec![row], of: 900, choice: "the failed".to_owned() };
    let expected = [["#7", "failed", "–", "0.500", "–", "2.50"]];
    assert_eq!(texts(Plot::Gantt(gantt)), expected);

    let heat_map = HeatMap {
        from_s: 0.0,
        step_s: 1.0,
        y: measure(ScaleKind::Log),
        edges: vec![1.0, 2.0, 4.0, 8.0],
        columns: vec![vec![1, 0, 7], vec![2, 0, 0]],
        counted: "token gaps".to_owned(),
    };
    assert_eq!(texts(Plot::HeatMap(heat_map)), [["1", "2", "3"], ["4", "8", "7"]]);

    let point = ParetoPoint {
        series: "vLLM".to_owned(),
        label: "8 in flight".to_owned(),
        x: 32.0,
        y: 255.0,
        x_interval: None,
        y_interval: Some((250.0, 260.5)),
        on_frontier: true,
        hollow: false,
        note: None,
    };
    let (x, y) = (measure(ScaleKind::Linear), measure(ScaleKind::Linear));
    let expected = [["vLLM", "8 in flight", "32.00", "255.0", "250.0 to 260.5", "yes"]];
    assert_eq!(texts(Plot::Pareto(Pareto { x, y, points: vec![point] })), expected);
}

/// Two lines in one panel, the last point of each without a limit.
fn two_lines(loads: &[f64]) -> Chart {
    let series = |name: &str, y: f64| LineSeries {
        name: name.to_owned(),
        points: loads.iter().map(|load| point(*load, y)).collect(),
    };
    let panel = LinesPanel {
        heading: "TTFT".to_owned(),
        y: measure(ScaleKind::Log),
        series: vec![series("configuration 1, mistral", 20.0), series("configuration 2", 900.0)],
        limits: Vec::new(),
    };
    let x = measure(ScaleKind::Log);
    chart(Plot::Lines(Lines { x, ticks_at_points: true, panels: vec![panel] }))
}

#[test]
fn a_page_names_lines_in_a_legend_and_a_picture_at_their_ends() {
    let chart = two_lines(&[1.0, 8.0, f64::INFINITY]);
    let [page, picture] = [Theme::Page, Theme::Light].map(|theme| chart.to_svg(theme));
    assert_eq!(page.matches("class=\"legend\"").count(), 2, "{page}");
    assert_eq!(picture.matches("class=\"legend\"").count(), 0, "{picture}");
    for svg in [page, picture] {
        assert_eq!(svg.matches(">configuration 1, mistral</text>").count(), 1, "{svg}");
    }
}

#[test]
fn every_tick_has_a_number_and_no_mark_lies_on_the_axis_of_a_logarithm() {
    let svg = two_lines(&[9.0, 10.0, 10.2, 11.0, 500.0]).to_svg(Theme::Page);
    let numbers = |key: &str| -> Vec<f64> {
        let before = format!("{key}=\"");
        let parts = svg.split(&before).skip(1);
        parts.filter_map(|part| part.split('"').next()?.parse().ok()).collect()
    };
    // Only ticks below the axis are so short.
    let bottom = numbers("cy").into_iter().fold(0.0, f64::max);
    let ends = numbers("y1").into_iter().zip(numbers("y2"));
    let ticks = ends.filter(|(from, to)| (to - from - 5.0).abs() < 0.01).collect::<Vec<_>>();
    let named = ["9", "10", "10.2", "11", "500"];
    let named = named.iter().filter(|number| svg.contains(&format!(">{number}</text>"))).count();
    assert_eq!(ticks.len(), named, "{svg}");
    assert!(named < 5 && bottom + 8.0 < ticks[0].0, "{bottom} {ticks:?}");
}

#[test]
fn a_chart_of_lines() {
    let mut last = point(4.0, 168.0);
    last.interval = Some((160.0, 177.5));
    last.hollow = true;
    let chart = lines(ScaleKind::Log, vec![point(1.0, 52.1), point(2.0, 98.4), last]);
    insta::assert_snapshot!(chart.to_svg(Theme::Page));
}

#[test]
fn a_chart_of_shares() {
    let class = |name: &str, is_good| ShareClass { name: name.to_owned(), is_good };
    let chart = chart(Plot::Shares(Shares {
        classes: vec![class("ok", true), class("timeout", false)],
        rows: vec![ShareRow { label: "8 in flight".to_owned(), counts: vec![38, 2] }],
        counted: "requests".to_owned(),
    }));
    insta::assert_snapshot!(chart.to_svg(Theme::Light));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_chart_keeps_to_its_frame(plot in any_plot(), words in name()) {
        let [id, title, finding, n] = [words.clone(), words.repeat(4), words.repeat(9), words];
        check(&Chart { id, title, finding, n, plot });
    }
}

#[test]
fn a_bar_of_less_than_nothing_goes_to_the_left_and_its_number_stays_on_the_right() {
    let bar =
        |value: f64| Bar { series: "speed-up".to_owned(), value: Some(value), ..Bar::default() };
    let group = |label: &str, value| BarGroup { label: label.to_owned(), bars: vec![bar(value)] };
    let groups = vec![group("one", 25.4), group("two", -3.1)];
    let svg =
        chart(Plot::Bars(Bars { y: measure(ScaleKind::Linear), groups })).to_svg(Theme::Light);
    let left = |tip: &str| -> f64 {
        let line = svg.lines().find(|line| line.contains(tip)).unwrap();
        line.split(" x=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
    };
    let (ahead, behind) = (left("one · speed-up"), left("two · speed-up"));
    assert!(behind < ahead, "{behind} {ahead}");
    assert!(svg.contains(">-3.10<") && svg.contains(">25.40<"), "{svg}");
}

#[test]
fn what_failed_is_a_cross_with_its_reason_and_what_nobody_knows_a_dash() {
    let tile = |value: Option<f64>, failed: bool| {
        let note = failed.then(|| "out of <memory>".to_owned());
        Some(Bar { value, failed, note, ..Bar::default() })
    };
    let tiles = vec![tile(Some(676.1), false), tile(None, true), tile(None, false), None];
    let chart = chart(Plot::Tiles(Tiles {
        value: measure(ScaleKind::Linear),
        across: "Context".to_owned(),
        columns: ["2k", "8k", "32k", "64k"].map(str::to_owned).to_vec(),
        rows: vec![TileRow { label: "gpu-small".to_owned(), tiles }],
    }));
    let svg = chart.to_svg(Theme::Page);
    check(&chart);
    assert_eq!(svg.matches("stroke=\"var(--bad)\"").count(), 2, "two strokes of one cross");
    assert!(svg.contains("gpu-small · 8k · failed · out of &lt;memory&gt;"), "{svg}");
    assert!(svg.contains(">–<") && svg.contains(">676.1<"));
    let row = &chart.table().rows[0];
    assert_eq!(
        row.iter().map(|cell| cell.text.as_str()).collect::<Vec<_>>(),
        ["gpu-small", "676.1", "–", "–", ""]
    );
    assert_eq!(row[2].detail.as_deref(), Some("out of <memory>"));
}
