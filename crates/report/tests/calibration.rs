//! The pages and charts of a calibration, as a person sees them, from a stored one.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use inferometer_analysis::calibration::Calibration;
use inferometer_report::calibration::{
    CalibrationFiles, json, latency, markdown, terminal, throughput,
};
use inferometer_report::terminal::Style;

/// A machine with little room: its last row proves nothing, and a level was left out.
fn calibration() -> Calibration {
    Calibration::from_json_bytes(include_bytes!("calibration.json")).unwrap()
}

fn files() -> CalibrationFiles {
    let place = |name: &str| format!("cache/inferometer/calibration/0123456789ab{name}");
    CalibrationFiles {
        folder: place(""),
        document: place("/calibration.json"),
        page: place("/calibration.md"),
        throughput: place("/throughput.svg"),
        latency: place("/latency.svg"),
    }
}

#[test]
fn the_terminal_page() {
    insta::assert_snapshot!(terminal(&calibration(), &files(), Style::Plain));
}

#[test]
fn the_markdown_page() {
    insta::assert_snapshot!(markdown(&calibration(), "throughput.svg", "latency.svg"));
}

#[test]
fn the_throughput_chart() {
    insta::assert_snapshot!(throughput(&calibration()));
}

#[test]
fn the_latency_chart() {
    insta::assert_snapshot!(latency(&calibration()));
}

#[test]
fn nothing_measured_is_still_a_chart() {
    let mut empty = calibration();
    empty.ladder.one_shot.clear();
    empty.ladder.streamed.clear();
    for svg in [throughput(&empty), latency(&empty)] {
        assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf\""));
    }
}

#[test]
fn a_machine_cannot_break_a_page() {
    let mut odd = calibration();
    odd.machine.cpu_model = Some("<CPU> & \u{1b}[2J | \"co\"".to_owned());
    let charts = [throughput(&odd), latency(&odd)];
    assert!(charts.iter().all(|svg| svg.contains("&lt;CPU&gt; &amp;") && !svg.contains('\u{1b}')));
    assert!(!terminal(&odd, &files(), Style::Plain).contains('\u{1b}'));
    assert!(markdown(&odd, "a", "b").contains("\\<CPU\\>"));
}

#[test]
fn the_document_is_the_calibration_and_its_files() {
    let document: serde_json::Value =
        serde_json::from_str(&json(&calibration(), &files())).unwrap();
    let stored: serde_json::Value = serde_json::from_slice(&calibration().to_json_bytes()).unwrap();
    for (key, value) in stored.as_object().unwrap() {
        assert_eq!(&document[key], value, "{key}");
    }
    assert!(document["files"]["document"].as_str().unwrap().ends_with("calibration.json"));
}
