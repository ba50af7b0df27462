//! Results and their figures.

mod figure;
mod mark;
mod started;

use super::*;

#[test]
fn only_one_word_is_infinity() {
    let of = |json: &str| serde_json::from_str::<ToolResult>(json).map(|sheet| sheet.burstiness);
    assert_eq!(of("{\"burstiness\": \"inf\"}").ok(), Some(Some(f64::INFINITY)));
    assert_eq!(of("{\"burstiness\": 0.5}").ok(), Some(Some(0.5)));
    assert_eq!(of("{\"burstiness\": null}").ok(), Some(None));
    let error = of("{\"burstiness\": \"NaN\"}").map_err(|error| error.to_string());
    assert!(error.is_err_and(|error| error.contains("“NaN”")));
    let written = |shape| {
        let sheet = ToolResult { burstiness: Some(shape), ..ToolResult::default() };
        serde_json::to_value(&sheet).ok().map(|value| value["burstiness"].clone())
    };
    assert_eq!(written(f64::INFINITY), Some("inf".into()));
    assert_eq!(written(f64::NAN), Some(serde_json::Value::Null), "no number is not infinity");
}
