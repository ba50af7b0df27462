//! When a result was measured.

use super::*;

fn shown(started: &str) -> Option<String> {
    let sheet = ToolResult { started: Some(started.to_owned()), ..ToolResult::default() };
    sheet.started_at().map(|moment| moment.strftime("%Y-%m-%d %H:%M").to_string())
}

#[test]
fn every_tools_way_of_writing_a_moment_is_read() {
    for (written, expected) in [
        ("20250424-225517", "2025-04-24 22:55"),
        ("2026-11-15T23:17:56Z", "2026-11-15 23:17"),
        ("2026-11-15T23:17:56.5+02:30", "2026-11-15 20:47"),
        ("2026-11-15T23:17:56-0100", "2026-11-16 00:17"),
        ("2024-02-29 00:00:00", "2024-02-29 00:00"),
        ("1794781137.9353166", "2026-11-15 22:18"),
        ("0", "1970-01-01 00:00"),
        ("99991231-235960", "9999-12-31 23:59"),
    ] {
        assert_eq!(shown(written).as_deref(), Some(expected), "{written}");
    }
}

#[test]
fn what_is_no_moment_is_none() {
    for written in [
        "",
        "yesterday",
        "20250230-000000",
        "20250424-250000",
        "20251324-000000",
        "2025-04-24",
        "2025-04-24T10:00:00 CET",
        "1794781137935316600",
        "-5",
        "1.x",
        "ééééé-ééé",
        "2025-04-2éT10:00:00Z",
    ] {
        assert_eq!(shown(written), None, "{written}");
    }
    assert_eq!(ToolResult::default().started_at(), None);
}

fn read(started: &str) -> Option<DateTime> {
    ToolResult { started: Some(started.to_owned()), ..ToolResult::default() }.started_at()
}

#[test]
fn moments_have_an_order_whoever_wrote_them() {
    assert!(read("20250424-225517").unwrap() < read("1794781137.9").unwrap());
    assert!(read("1794781137.9").unwrap() < read("2026-11-15T23:17:56Z").unwrap());
}

#[test]
fn every_day_is_itself_again() {
    for day in (0..=2_932_895_i64).step_by(97) {
        let written = read(&(day * 86_400).to_string()).unwrap();
        assert_eq!(read(&written.strftime("%Y%m%d-000000").to_string()), Some(written), "{day}");
    }
}
