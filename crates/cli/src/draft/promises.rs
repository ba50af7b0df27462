//! Promises in both of their forms: `promises = ["ttft<500ms"]` and `ttft = "500ms"`.

use inferometer_model::spec::Slo;
use serde_json::Value;

use crate::arguments::SloTable;
use crate::failure::Failure;

pub(super) fn read(said: SloTable) -> Result<Vec<Slo>, Failure> {
    let texts = said.0.into_iter().flat_map(|(key, value)| match value {
        Value::Array(promises) if key == "promises" => {
            promises.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        Value::Object(statistics) => statistics
            .iter()
            .map(|(statistic, limit)| promise(&format!("{key}.{statistic}"), limit))
            .collect(),
        limit => vec![promise(&key, &limit)],
    });
    texts
        .map(|text: String| {
            text.parse().map_err(|error: inferometer_model::spec::SloError| {
                Failure::usage(format!("[slo] {error}"))
            })
        })
        .collect()
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
        let slos = read(serde_json::from_value(table).unwrap()).unwrap();
        slos.iter().map(Slo::to_string).collect()
    }

    #[test]
    fn both_forms_mean_the_same() {
        let keys = json!({
            "ttft": "500ms",
            "tpot.p99": "50ms",
            "e2e": { "p95": "<= 2s" },
            "output_throughput": "> 1000",
        });
        let wanted = ["e2e.p95<2000ms", "output_throughput>1000", "tpot.p99<50ms", "ttft<500ms"];
        assert_eq!(written(keys), wanted);
        assert_eq!(written(json!({ "promises": wanted })), wanted);
    }

    #[test]
    fn what_is_no_promise_is_refused() {
        for wrong in [json!({ "ttft": "soon" }), json!({ "promises": ["ttft"] })] {
            assert!(read(serde_json::from_value(wrong).unwrap()).is_err());
        }
    }
}
