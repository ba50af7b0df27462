//! The page that sets results beside each other, and its fragment of a static site.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use inferometer_analysis::Interval;
use inferometer_analysis::tool_result::{
    CountsFrom, Grain, LatencyKind, Mark, ResultRate, ResultSource, Tool, ToolResult,
};
use inferometer_report::chart::{Chart, LinePoint, Plot};
use inferometer_report::document::{Block, Document, html, markdown};
use inferometer_report::pages::csv;
use inferometer_report::pages::results::{PageWords, results_page, site};
use serde_json::Value;

const PUBLISHED: [(&str, &str); 2] = [
    ("v0", include_str!("../../../examples/published/mi300x-mistral-small-24b-v0.jsonl")),
    ("v1", include_str!("../../../examples/published/mi300x-mistral-small-24b-v1.jsonl")),
];

/// A published line, as far as these tests need it.
fn published_sheet(configuration: &str, line: &str) -> ToolResult {
    let said: Value = serde_json::from_str(line).unwrap();
    let number = |key: &str| said[key].as_f64();
    let mut sheet = ToolResult {
        source: ResultSource { tool: Tool::Vllm, ..ResultSource::default() },
        configuration: configuration.to_owned(),
        model: said["model_id"].as_str().map(str::to_owned),
        request_rate: Some(
            number("request_rate").map_or(ResultRate::Unlimited, ResultRate::PerSecond),
        ),
        requests_planned: said["num_prompts"].as_u64(),
        completed: said["completed"].as_u64(),
        request_throughput: number("request_throughput"),
        output_throughput: number("output_throughput"),
        ..ToolResult::default()
    };
    for (kind, from, name) in [
        (LatencyKind::Ttft, CountsFrom::Send, "ttft"),
        (LatencyKind::Tpot, CountsFrom::Output, "tpot"),
    ] {
        let latency = sheet.latency_mut(kind, from, Grain::Request);
        latency.mean_ms = number(&format!("mean_{name}_ms"));
        latency
            .percentiles_ms
            .insert("50".to_owned(), number(&format!("median_{name}_ms")).unwrap());
        latency.percentiles_ms.insert("99".to_owned(), number(&format!("p99_{name}_ms")).unwrap());
    }
    sheet.marks = Mark::found(&sheet);
    sheet
}

fn published() -> Vec<ToolResult> {
    let of = |(name, text): &(&str, &'static str)| {
        let name = (*name).to_owned();
        text.lines().map(move |line| published_sheet(&name, line)).collect::<Vec<_>>()
    };
    PUBLISHED.iter().flat_map(of).collect()
}

/// One of ours, by its own definitions.
fn measured(configuration: &str, rate: f64, ttft_ms: f64) -> ToolResult {
    let mut sheet = ToolResult {
        configuration: configuration.to_owned(),
        request_rate: Some(ResultRate::PerSecond(rate)),
        completed: Some(2_000),
        requests_planned: Some(2_000),
        ..ToolResult::default()
    };
    for (from, more) in [(CountsFrom::Schedule, 5.0), (CountsFrom::Send, 0.0)] {
        let latency = sheet.latency_mut(LatencyKind::Ttft, from, Grain::Request);
        let mean = ttft_ms + more;
        latency.mean_ms = Some(mean);
        let interval = Interval::new(mean - 2.0, mean + 2.0).unwrap();
        latency.intervals_ms.insert("mean".to_owned(), interval);
    }
    sheet
}

fn words() -> PageWords {
    PageWords { tool_version: "0.1.0".to_owned(), ..PageWords::default() }
}

fn charts(document: &Document) -> Vec<&Chart> {
    let blocks = document.sections.iter().flat_map(|section| &section.blocks);
    blocks
        .filter_map(|block| {
            let Block::Figure(figure) = block else { return None };
            Some(&figure.chart)
        })
        .collect()
}

/// The points of a line in a panel, by their names.
fn points<'a>(chart: &'a Chart, heading: &str, line: &str) -> &'a [LinePoint] {
    let Plot::Lines(lines) = &chart.plot else { panic!("lines are drawn") };
    let panel = lines.panels.iter().find(|panel| panel.heading == heading).unwrap();
    &panel.series.iter().find(|series| series.name == line).unwrap().points
}

#[test]
fn the_published_charts_come_first_with_a_line_for_each_configuration() {
    let sheets = published();
    let document = results_page(&sheets, &words());
    let charts = charts(&document);
    assert_eq!((charts[0].id.as_str(), charts[1].id.as_str()), ("mean-ttft", "mean-tpot"));
    for (chart, heading, kind) in [
        (charts[0], "Mean TTFT from send", LatencyKind::Ttft),
        (charts[1], "Mean TPOT", LatencyKind::Tpot),
    ] {
        for (line, sheets) in ["v0", "v1"].into_iter().zip(sheets.chunks(7)) {
            let points = points(chart, heading, line);
            let drawn: Vec<(f64, f64)> = points.iter().map(|point| (point.x, point.y)).collect();
            let loads = [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, f64::INFINITY];
            let means = sheets.iter().map(|it| it.latency(kind).unwrap().mean_ms.unwrap());
            assert_eq!(drawn, loads.into_iter().zip(means).collect::<Vec<_>>());
        }
    }
}

#[test]
fn cut_and_saturated_points_are_hollow_and_say_why() {
    let document = results_page(&published(), &words());
    let points = points(charts(&document)[0], "Mean TTFT from send", "v1");
    let hollow: Vec<bool> = points.iter().map(|point| point.hollow).collect();
    assert_eq!(hollow, [false, false, false, false, true, true, true]);
    let note = points[6].note.as_deref().unwrap();
    assert!(note.starts_with("cut: 1,015 of 2,000 requests completed"), "{note}");
    assert!(points[5].note.as_deref().unwrap().starts_with("saturated: 8.18 req/s of 11"));
    assert!(charts(&document)[0].n.contains("Hollow marks: 2 cut and 4 saturated"));
    let page = html::render(&document);
    assert!(
        page.contains("6 of 14 marked") && page.contains("What to do:"),
        "the page says it too"
    );
    let page = markdown::render(&document).text;
    assert!(page.contains("cut: 1,015 of 2,000 requests completed"), "{page}");
}

#[test]
fn only_what_means_the_same_shares_a_panel() {
    let mut sheets = published();
    sheets.extend([measured("ours", 1.0, 120.0), measured("ours", 3.0, 140.0)]);
    let document = results_page(&sheets, &words());
    let Plot::Lines(lines) = &charts(&document)[0].plot else { panic!("lines are drawn") };
    let names = |panel: usize| -> Vec<&str> {
        let drawn = lines.panels[panel].series.iter().filter(|series| !series.points.is_empty());
        drawn.map(|series| series.name.as_str()).collect()
    };
    assert_eq!(lines.panels[0].heading, "Mean TTFT from send");
    assert_eq!(names(0), ["v0", "v1", "ours"], "first what all of them have");
    assert_eq!(names(1), ["ours"]);
    let note = &charts(&document).iter().find(|chart| chart.id == "ttft").unwrap().n;
    assert!(note.contains("Hollow marks"), "{note}");
    let places = |panel: usize| lines.panels[panel].series.iter().map(|series| &series.name);
    assert!(places(0).eq(places(1)), "a line has the same colour in every chart");
    let within = points(charts(&document)[0], "Mean TTFT from send", "ours")[0].interval;
    assert_eq!(within, Some((118.0, 122.0)));
}

#[test]
fn a_chart_tells_of_the_points_that_it_has() {
    let mut sheets = published();
    for (rate, goodput) in [(1.0, 0.9), (3.0, 2.8)] {
        sheets.push(ToolResult { request_goodput: Some(goodput), ..measured("ours", rate, 100.0) });
    }
    let document = results_page(&sheets, &words());
    let goodput = *charts(&document).iter().find(|chart| chart.id == "goodput").unwrap();
    assert!(!goodput.n.contains("Hollow"), "no point of it is: {}", goodput.n);
}

#[test]
fn results_that_say_no_load_are_named_below_the_chart() {
    let mut sheets = published();
    sheets.push(ToolResult { request_rate: None, ..measured("odd", 1.0, 100.0) });
    sheets.push(ToolResult { request_rate: None, ..sheets[0].clone() });
    let document = results_page(&sheets, &words());
    let note = &charts(&document)[0].n;
    assert!(
        note.ends_with("Not drawn: 2 results of v0 and odd, because their load is not known."),
        "{note}"
    );
}

#[test]
fn a_simulated_server_is_not_the_best_of_measured_ones() {
    let mut sheets = published();
    for rate in [1.0, 1.0, 3.0] {
        let mut sheet = measured("pretended", rate, 1.0);
        sheet.source.simulated = true;
        sheet.started = Some("2026-11-15T23:24:57Z".to_owned());
        sheet.marks = Mark::found(&sheet);
        sheets.push(sheet);
    }
    sheets[0].started = Some("20250424-225517".to_owned());
    let document = results_page(&sheets, &words());
    let cards = &document.lead.headline;
    assert!(cards.iter().all(|card| !card.detail.contains("pretended")), "{cards:?}");
    let page = markdown::render(&document).text;
    assert!(page.contains("simulated: no server was measured (3 results)"), "{page}");
    assert!(
        page.contains("2025-04-24 22:55 to 2026-11-15 23:24; 13 results without a date"),
        "{page}"
    );
    let alone = results_page(&sheets[14..], &words());
    assert!(!alone.lead.headline.is_empty(), "among themselves they may be compared");
}

/// A hundred thousand results, as alike or as different as can be.
#[test]
fn a_page_of_very_many_results_is_bounded_and_quick() {
    let many = |of: fn(u32) -> (String, f64)| -> Vec<ToolResult> {
        let sheet = |number| {
            let (name, rate) = of(number);
            ToolResult { unmapped: vec![name.clone()], ..measured(&name, rate, 100.0) }
        };
        (0..100_000).map(sheet).collect()
    };
    let configurations = many(|number| (format!("c{number}"), 1.0));
    let loads = many(|number| ("a".to_owned(), 1.0 + f64::from(number)));
    let repeats = many(|number| ("a".to_owned(), 1.0 + f64::from(number % 2)));
    for (sheets, told) in [
        (&configurations, "Not drawn: 99,984 more configurations"),
        (&loads, "At most 200 loads of a line are drawn"),
        (&repeats, "Up to 50,000 results at each load"),
    ] {
        let document = results_page(sheets, &words());
        let note = &charts(&document)[0].n;
        assert!(note.contains(told), "{note}");
        assert!(html::render(&document).len() < 4 << 20);
    }
}

#[test]
fn repeats_are_one_point_with_an_interval_between_them() {
    let mut sheets: Vec<ToolResult> =
        [100.0, 110.0, 120.0].into_iter().map(|ttft| measured("a", 2.0, ttft)).collect();
    sheets.push(measured("a", 4.0, 200.0));
    let document = results_page(&sheets, &words());
    let drawn = points(charts(&document)[0], "Mean TTFT from send", "a");
    assert_eq!(drawn.len(), 2);
    let (low, high) = drawn[0].interval.unwrap();
    // Student's t of two degrees of freedom, a deviation of ten over three.
    let half = 4.302_65 * 10.0 / 3.0_f64.sqrt();
    assert!((drawn[0].y - 110.0).abs() < 1e-9);
    assert!((low - (110.0 - half)).abs() < 0.01 && (high - (110.0 + half)).abs() < 0.01);
    // An invalid one is in no number while others are there, and still makes its point hollow.
    sheets[2].marks.push(Mark::Invalid);
    let document = results_page(&sheets, &words());
    let drawn = points(charts(&document)[0], "Mean TTFT from send", "a");
    assert!((drawn[0].y - 105.0).abs() < 1e-9 && drawn[0].hollow, "{:?}", drawn[0]);
}

#[test]
fn what_is_missing_is_a_dash_and_never_a_point() {
    let mut sheets = published();
    sheets[1].latencies.clear();
    let document = results_page(&sheets, &words());
    let drawn = points(charts(&document)[0], "Mean TTFT from send", "v0");
    assert_eq!(drawn.iter().map(|point| point.x).take(2).collect::<Vec<_>>(), [1.0, 5.0]);
    assert!(charts(&document).iter().all(|chart| chart.id != "goodput" && chart.id != "e2e"));
    let alone = results_page(&sheets[..1], &words());
    assert!(charts(&alone).is_empty(), "one result is no course");
    assert!(results_page(&[], &words()).lead.verdict.is_none());
}

#[test]
fn moments_are_told_in_their_order_however_a_tool_writes_them() {
    let mut sheets = vec![measured("a", 1.0, 10.0); 4];
    for (sheet, started) in
        sheets.iter_mut().zip(["1794781137.9353166", "2026-11-15T23:17:56Z", "20250424-225517"])
    {
        sheet.started = Some(started.to_owned());
    }
    let document = results_page(&sheets, &words());
    let told = document.header.iter().find(|(key, _)| key == "Measured").unwrap();
    assert_eq!(told.1, "2025-04-24 22:55 to 2026-11-15 23:17; 1 result without a date");
}

fn hostile(name: &str) -> Vec<ToolResult> {
    let mut sheets = published();
    for sheet in &mut sheets {
        sheet.configuration = format!("{name}{}", sheet.configuration);
        sheet.model = Some(name.to_owned());
        sheet.unmapped = vec![name.to_owned()];
    }
    sheets
}

#[test]
fn a_site_has_front_matter_charts_to_include_and_the_raw_lines() {
    let raw =
        |sheet: &ToolResult| format!("{{\"model_id\": \"{}\"}}", sheet.model.as_deref().unwrap());
    let files = site(&published(), &words(), raw);
    let (name, index) = &files[0];
    assert_eq!(name, "index.md");
    assert!(index.starts_with("---\nlayout: default\ntitle: \""), "{index}");
    let included: Vec<&str> = index
        .lines()
        .filter_map(|line| line.strip_prefix("{% include_relative ")?.strip_suffix(" %}"))
        .collect();
    assert_eq!(included[..2], ["summary_mean_ttft_ms.html", "summary_mean_tpot_ms.html"]);
    let written: Vec<&str> = files[1..].iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(included, written);
    let details = index.split("<details>").nth(1).unwrap();
    assert_eq!(details.lines().filter(|line| line.starts_with('{')).count(), 14);
    for (name, chart) in &files[1..] {
        assert!(chart.contains("<svg") && !chart.contains("<script"), "{name}");
        assert!(!chart.lines().any(str::is_empty), "an empty line ends markup: {name}");
    }
    assert!(files[1].1.contains("cut: 1,015 of 2,000 requests completed"), "a mark says why");
}

#[test]
fn a_title_does_not_end_the_front_matter() {
    let titled = PageWords { title: Some("one\n---\r\ntwo: \"x\"".to_owned()), ..words() };
    let files = site(&published(), &titled, |_| "{}".to_owned());
    let head: Vec<&str> = files[0].1.lines().take(4).collect();
    let title = "title: \"one ---  two: &quot;x&quot;\"";
    assert_eq!(head, ["---", "layout: default", title, "---"]);
}

#[test]
fn a_name_steers_neither_the_page_nor_the_program_that_builds_the_site() {
    let name = "</pre></details>{{ site.secret }}{% include x %}<img src=x>|`\n---\n";
    let sheets = hostile(name);
    let raw = |sheet: &ToolResult| serde_json::json!({ "model_id": sheet.model }).to_string();
    for (file, text) in site(&sheets, &words(), raw) {
        let own = "{% include_relative ";
        let foreign = text.lines().filter(|line| !line.starts_with(own));
        for line in foreign {
            assert!(!line.contains("{{") && !line.contains("{%"), "{file}: {line}");
            assert!(!line.contains("<img"), "{file}: {line}");
        }
        assert_eq!(text.matches("</pre>").count(), usize::from(file == "index.md"));
        for line in text.lines().filter(|line| line.starts_with("{\"")) {
            let back: Value = serde_json::from_str(line).unwrap();
            assert_eq!(back["model_id"], name);
        }
    }
    let page = html::render(&results_page(&sheets, &words()));
    assert!(!page.contains("<img"));
}

#[test]
fn a_spreadsheet_has_one_row_for_each_result_and_no_formula() {
    let table = csv::of_results(&hostile("=cmd()"));
    assert_eq!(table.lines().count(), 15);
    assert!(table.contains("\"'=cmd()v1\"") && table.contains("\"inf\""));
    assert!(table.contains("1015") && table.contains("60121.90333198242"), "{table}");
}
