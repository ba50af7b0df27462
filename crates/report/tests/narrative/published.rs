//! The published figures of a suite on four MI100, as a set that a page gets.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::narrative::made::{MadeSet, document, suite_of};

#[derive(Deserialize)]
struct Table {
    row: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    name: String,
    input_tokens: u32,
    output_tokens: u32,
    concurrency: u32,
    requests: u64,
    output_throughput: f64,
    ttft_mean_ms: f64,
    ttft_median_ms: f64,
    ttft_p99_ms: f64,
    tpot_mean_ms: f64,
    tpot_median_ms: f64,
    tpot_p99_ms: f64,
}

/// The best second of each, which the file does not have.
const PEAKS: [f64; 10] = [56.0, 432.0, 144.0, 58.0, 278.0, 104.0, 184.0, 280.0, 432.0, 420.0];

/// The first five scenarios have a level each, the sixth has five.
pub(crate) fn mi100() -> MadeSet {
    let text = include_str!("../../../../examples/published/mi100x4-devstral-24b.toml");
    let table: Table = toml::from_str(text).unwrap();
    assert_eq!(table.row.len(), PEAKS.len());
    let (alone, scaling) = table.row.split_at(5);
    let alone: Vec<(&str, u32)> =
        alone.iter().map(|row| (row.name.as_str(), row.concurrency)).collect();
    let levels: Vec<u32> = scaling.iter().map(|row| row.concurrency).collect();
    let documents: Vec<Value> =
        table.row.iter().zip(PEAKS).map(|(row, peak)| row.document(peak)).collect();
    suite_of(&alone, ("Concurrency Scaling", &levels), &documents)
}

impl Row {
    /// A run with these figures alone: nobody has published intervals, or what the server says.
    fn document(&self, peak: f64) -> Value {
        let mut document = document(0, self.concurrency);
        (document["server"], document["scheduled"]) = (Value::Null, self.requests.into());
        (document["attempted"], document["outcomes"]["ok"]) =
            (self.requests.into(), self.requests.into());
        let workload = &mut document["workload"];
        (workload["input_tokens"], workload["output_tokens"]) =
            (self.input_tokens.into(), self.output_tokens.into());
        workload["audit"]["cache"]["share"] = Value::Null;
        let metrics = &mut document["metrics"];
        for name in ["ttft_ms", "tpot_ms", "itl_ms"] {
            let found = metrics[name].as_object_mut().unwrap();
            let values = found.iter_mut().filter(|(key, _)| *key != "n" && *key != "reason");
            values.for_each(|(_, value)| *value = Value::Null);
            (found["n"], found["intervals"]) = (self.requests.into(), json!({}));
            found["not_certified"] = json!(["p90", "p95", "p99", "p999"]);
        }
        for (key, ttft, tpot) in [
            ("mean", self.ttft_mean_ms, self.tpot_mean_ms),
            ("p50", self.ttft_median_ms, self.tpot_median_ms),
            ("p99", self.ttft_p99_ms, self.tpot_p99_ms),
        ] {
            (metrics["ttft_ms"][key], metrics["tpot_ms"][key]) = (ttft.into(), tpot.into());
        }
        let users = f64::from(self.concurrency);
        for (name, value) in [
            ("output_throughput", self.output_throughput),
            ("per_user_throughput", self.output_throughput / users),
            ("peak_output_throughput", peak),
            ("pp", f64::from(self.input_tokens) / (self.ttft_mean_ms / 1e3)),
            ("tg", 1e3 / self.tpot_mean_ms),
        ] {
            metrics[name]["value"] = value.into();
            metrics[name]["interval"] = Value::Null;
        }
        document
    }
}
