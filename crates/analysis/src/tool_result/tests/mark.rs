//! Marks of results that are not clean.

use super::*;

#[test]
fn requests_that_failed_were_not_cut_off() {
    let mut sheet = ToolResult {
        completed: Some(50),
        failed: Some(10),
        requests_planned: Some(60),
        ..ToolResult::default()
    };
    assert_eq!(Mark::found(&sheet), [Mark::Failures { failed: 10 }]);
    sheet.requests_planned = Some(61);
    let cut = Mark::Cut { completed: 50, planned: 61 };
    assert_eq!(Mark::found(&sheet), [cut, Mark::Failures { failed: 10 }]);
}

#[test]
fn a_cut_result_and_a_server_behind_its_rate_are_marked() {
    let mut sheet = ToolResult {
        completed: Some(1015),
        requests_planned: Some(2000),
        request_rate: Some(ResultRate::Unlimited),
        request_throughput: Some(8.3),
        ..ToolResult::default()
    };
    assert_eq!(Mark::found(&sheet), [Mark::Cut { completed: 1015, planned: 2000 }]);
    sheet.completed = Some(2000);
    assert!(Mark::found(&sheet).is_empty());
    sheet.request_rate = Some(ResultRate::PerSecond(9.0));
    assert_eq!(Mark::found(&sheet), [Mark::Saturated { asked_per_s: 9.0, served_per_s: 8.3 }]);
    sheet.request_rate = Some(ResultRate::PerSecond(8.7));
    assert!(Mark::found(&sheet).is_empty(), "the last answers take their time");
    (sheet.completed, sheet.requests_planned) = (Some(60), Some(60));
    sheet.request_rate = Some(ResultRate::PerSecond(9.0));
    assert!(Mark::found(&sheet).is_empty(), "so few requests cannot tell");
}
