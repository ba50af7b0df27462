//! Promises in both of their forms: `promises = ["ttft<500ms"]` and `ttft = "500ms"`.

use inferometer_model::spec::{Slo, SloError};
use serde_json::Value;

use crate::arguments::SloTable;
use crate::experiment::Origins;
use crate::failure::Failure;

pub(super) fn read(said: SloTable, origins: &Origins) -> Result<Vec<Slo>, Failure> {
    let mut slos = Vec::new();
    for (key, value) in said.0 {
        for text in texts(&key, &value) {
            let slo = text.parse().map_err(|error: SloError| {
                origins.failure(&format!("slo.{key}"), &error.to_string())
            })?;
            slos.push(slo);
        }
    }
    Ok(slos)
}

fn texts(metric: &str, said: &Value) -> Vec<String> {
    match said.as_array() {
        Some(promises) => promises.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        None => vec![promise(metric, said)],
    }
}

/// A limit without a sign is one from above.
fn promise(metric: &str, limit: &Value) -> String {
    let limit = limit.as_str().map_or_else(|| limit.to_string(), |text| text.trim().to_owned());
    let sign = if limit.starts_with(['<', '>']) { "" } else { "<" };
    format!("{metric}{sign}{limit}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(table: Value) -> Vec<String> {
        let slos = read(serde_json::from_value(table).unwrap(), &Origins::default()).unwrap();
        slos.iter().map(Slo::to_string).collect()
    }

    #[test]
    fn both_forms_mean_the_same() {
        let keys = json!({
            "ttft": "500ms",
            "tpot.p99": "50ms",
            "e2e.p95": "<= 2s",
            "output_throughput": "> 1000",
        });
        let wanted = ["e2e.p95<=2s", "output_throughput>1000", "tpot.p99<50ms", "ttft<500ms"];
        assert_eq!(written(keys), wanted);
        assert_eq!(written(json!({ "promises": wanted })), wanted);
    }

    #[test]
    fn what_is_no_promise_is_refused() {
        for wrong in [json!({ "ttft": "soon" }), json!({ "promises": ["ttft"] })] {
            let said = serde_json::from_value(wrong).unwrap();
            assert!(read(said, &Origins::default()).is_err());
        }
    }
}
