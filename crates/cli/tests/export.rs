//! Stored results in the formats of other programs: what they hold, where they go, what is refused.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use support::{output, text};

/// One run without a server, its id, and its summary.
fn simulate(folder: &Path) -> (String, Value) {
    let words = "simulate --concurrency 4 --requests 40 --input-tokens 64 --output-tokens 16 \
                 --engine-step 10ms --json --quiet";
    let ran = output(&words.split_whitespace().collect::<Vec<_>>(), folder);
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
    (document["run"]["id"].as_str().unwrap().to_owned(), document)
}

fn sweep(folder: &Path) {
    let words = "sweep --virtual --concurrencies 2,4 --requests 40 --input-tokens 64 \
                 --output-tokens 16 --engine-step 10ms --quiet";
    let ran = output(&words.split_whitespace().collect::<Vec<_>>(), folder);
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
}

fn export(folder: &Path, words: &[&str]) -> Output {
    output(&[&["export"], words].concat(), folder)
}

fn exported(folder: &Path, words: &[&str]) -> String {
    let ran = export(folder, words);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    text(&ran.stdout)
}

fn refused(folder: &Path, words: &[&str]) -> String {
    let ran = export(folder, words);
    assert_eq!(ran.status.code(), Some(2), "{}", text(&ran.stderr));
    assert!(ran.stdout.is_empty());
    text(&ran.stderr)
}

fn paths(said: &str, folder: &Path) -> Vec<PathBuf> {
    said.lines().map(|line| folder.join(line)).collect()
}

#[test]
fn one_run_goes_into_every_form_with_the_same_figures() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (id, summary) = simulate(folder);
    let mean = summary["metrics"]["ttft_ms"]["mean"].as_f64().unwrap();

    let table = exported(folder, &["latest", "--format", "csv"]);
    assert!(table.lines().nth(1).unwrap().contains(&format!(",{mean},")), "{table}");

    let metrics = exported(folder, &["latest", "--format", "openmetrics"]);
    let result = format!("inferometer_ttft_seconds{{result=\"{id}\",load=");
    let mut of_result = metrics.lines().filter(|line| line.starts_with(&result));
    let mean_of =
        |line: &'_ str| line.split_once(",statistic=\"mean\"} ").map(|(_, value)| value.to_owned());
    let line = of_result.find_map(mean_of).unwrap();
    assert!((line.parse::<f64>().unwrap() - mean / 1e3).abs() < 1e-12, "{line}");

    let otlp: Value =
        serde_json::from_str(&exported(folder, &["latest", "--format", "otlp"])).unwrap();
    let found = &otlp["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
    let named = |name: &str| found.as_array().unwrap().iter().any(|metric| metric["name"] == name);
    assert!(named("inferometer.ttft") && named("inferometer.output_throughput"));

    let bencher: Value =
        serde_json::from_str(&exported(folder, &["fast=latest", "--format", "bencher", "--quiet"]))
            .unwrap();
    assert_eq!(bencher["fast · c=4"]["ttft-mean-ms"]["value"].as_f64(), Some(mean));

    let vllm: Value =
        serde_json::from_str(&exported(folder, &["latest", "--format", "vllm"])).unwrap();
    assert_eq!(vllm["completed"], 40);
    assert!(vllm.get("ttfts").is_none());
    let detailed = exported(folder, &["latest", "--format", "vllm-detailed"]);
    let detailed: Value = serde_json::from_str(&detailed).unwrap();
    assert_eq!(detailed["ttfts"].as_array().unwrap().len(), 40);

    for form in ["aiperf", "llm-d"] {
        let document = exported(folder, &["latest", "--format", form]);
        assert!(serde_json::from_str::<Value>(&document).unwrap().is_object(), "{form}");
    }

    let junit = exported(folder, &["latest", "--format", "junit"]);
    assert!(junit.contains(&format!("<testsuite name=\"{id}\"")), "{junit}");

    let said = exported(folder, &["latest", "--format", "github", "--to", "ci"]);
    let [smaller, bigger] = &paths(&said, folder)[..] else { panic!("{said}") };
    let smaller: Value = serde_json::from_slice(&fs::read(smaller).unwrap()).unwrap();
    let is_mean = |entry: &&Value| entry["name"].as_str().unwrap().ends_with(" · ttft.mean");
    let entry = smaller.as_array().unwrap().iter().find(is_mean).unwrap();
    assert_eq!((entry["value"].as_f64(), entry["unit"].as_str()), (Some(mean), Some("ms")));
    assert!(fs::read_to_string(bigger).unwrap().contains("request_throughput"));
}

#[cfg(feature = "parquet")]
#[test]
fn tables_hold_what_the_summary_was_made_of() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::{Field, Row};

    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (id, summary) = simulate(folder);
    let said = exported(folder, &["latest", "--format", "parquet", "--to", "tables", "--quiet"]);
    let read = |path: &PathBuf| -> Vec<Row> {
        let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
        reader.get_row_iter(None).unwrap().map(Result::unwrap).collect()
    };
    let [requests, tokens, _telemetry] = &paths(&said, folder)[..] else { panic!("{said}") };
    let (requests, tokens) = (read(requests), read(tokens));
    let sum = |rows: &[Row], name: &str| -> (u64, f64) {
        let cells = rows.iter().flat_map(Row::get_column_iter).filter(|(found, _)| *found == name);
        let number = |cell: &Field| {
            if let Field::Double(value) = cell {
                return Some(*value);
            }
            if let Field::Long(value) = cell {
                return Some(*value as f64);
            }
            assert_eq!(*cell, Field::Null, "{name}");
            None
        };
        let numbers = cells.filter_map(|(_, cell)| number(cell));
        numbers.fold((0, 0.0), |(n, sum), value| (n + 1, sum + value))
    };
    assert_eq!(requests.len() as u64, summary["scheduled"].as_u64().unwrap());
    let first = requests[0].get_column_iter().next().unwrap();
    assert_eq!(first, (&"result".to_owned(), &Field::Str(id)));
    for (rows, column) in
        [(&requests, "ttft_ms"), (&requests, "e2e_ms"), (&requests, "tpot_ms"), (&tokens, "icl_ms")]
    {
        let (n, sum) = sum(rows, column);
        let known = &summary["metrics"][column];
        assert_eq!(known["n"].as_u64(), Some(n), "{column}");
        assert!((known["mean"].as_f64().unwrap() - sum / n as f64).abs() < 1e-9, "{column}");
    }
    let (_, output_tokens) = sum(&requests, "output_tokens");
    assert_eq!(summary["tokens"]["output_total"].as_f64(), Some(output_tokens));
    let left: Vec<_> = fs::read_dir(folder.join("tables")).unwrap().collect();
    assert_eq!(left.len(), 3, "nothing half done is left: {left:?}");
}

#[test]
fn a_set_is_one_document_or_a_file_each() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    sweep(folder);
    let table = exported(folder, &["latest", "--format", "csv"]);
    assert_eq!(table.lines().count(), 3, "a head and two levels: {table}");
    let lines = exported(folder, &["latest", "--format", "vllm"]);
    assert_eq!(lines.lines().count(), 2, "{lines}");
    exported(folder, &["latest", "--format", "vllm", "--to", "both.jsonl"]);
    assert_eq!(fs::read_to_string(folder.join("both.jsonl")).unwrap(), lines);
    let said = exported(folder, &["latest", "--format", "vllm", "--to", "each"]);
    let files = paths(&said, folder);
    assert_eq!(files.len(), 2, "{said}");
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("openai-chat-infqps-concurrency"), "that tool's words: {name}");
        let result: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        assert_eq!(result["num_prompts"], 40);
    }
    for to in [&[][..], &["--to", "one.json"]] {
        let why = refused(folder, &[&["latest", "--format", "llm-d"], to].concat());
        assert!(why.contains("a file of llm-d holds one"), "{why}");
    }
    for form in ["aiperf", "llm-d"] {
        let said = exported(folder, &["latest", "--format", form, "--to", "each"]);
        assert!(said.lines().all(|path| path.ends_with(&format!(".{form}.json"))), "{said}");
    }
    assert_eq!(fs::read_dir(folder.join("each")).unwrap().count(), 6, "none replaces another");
    let to_file = ["latest", "--format", "vllm", "--to", "all.json", "--append"];
    exported(folder, &to_file);
    exported(folder, &to_file);
    assert_eq!(fs::read_to_string(folder.join("all.json")).unwrap().lines().count(), 4);
}

#[test]
fn an_import_goes_out_as_far_as_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let foreign = r#"{"date":"20240811-143000","backend":"vllm","model_id":"=evil()","num_prompts":10,
        "request_rate":2.0,"duration":5.0,"completed":8,"total_input_tokens":80,
        "total_output_tokens":90,"request_throughput":1.6,"output_throughput":18.0,
        "mean_ttft_ms":12.5,"median_ttft_ms":12.0,"p99_ttft_ms":20.0}"#;
    fs::write(folder.join("result.json"), foreign.replace('\n', "")).unwrap();
    let taken = output(&["import", "result.json"], folder);
    assert_eq!(taken.status.code(), Some(0), "{}", text(&taken.stderr));
    let table = exported(folder, &["latest", "--format", "csv"]);
    assert!(table.contains("\"'=evil()\"") && table.contains(",12.5,"), "{table}");
    let junit = exported(folder, &["latest", "--format", "junit"]);
    assert!(junit.contains("8 of 10 requests completed"), "{junit}");
    let id = fs::read_dir(folder.join("runs")).unwrap().next().unwrap().unwrap().file_name();
    let id = id.to_str().unwrap();
    let said = exported(folder, &["latest", "--format", "aiperf", "--to", "made/"]);
    assert_eq!(said.trim_end(), format!("made/{id}-0.aiperf.json"));
    let ran = export(folder, &["latest", "--format", "bencher"]);
    let said = text(&ran.stderr);
    assert_eq!(said.matches("warning").count(), 1, "{said}");
    assert!(said.contains(&format!("{id}/0 is not a clean result")), "{said}");
    assert!(said.contains("`inferometer export latest --format csv`"), "{said}");
    let to = ["latest", "--format", "parquet", "--to", "tables"];
    assert!(refused(folder, &to).contains("has no single requests"));
    assert_eq!(fs::read_dir(folder.join("tables")).unwrap().count(), 0, "no empty table is left");
}

#[test]
fn what_contradicts_itself_is_refused_with_a_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (words, said) in [
        (&["latest", "--format", "parquet"][..], "name one with --to FOLDER"),
        (&["latest", "--format", "github"], "name one with --to FOLDER"),
        (&["latest", "--format", "csv", "--to", "a.csv", "--append"], "one whole document"),
        (&["latest", "--format", "csv", "--to", "."], "is a folder"),
        (&["latest", "--format", "otlp"], "there are no runs yet"),
    ] {
        let why = refused(folder, words);
        assert!(why.contains(said), "{words:?}: {why}");
    }
}

/// What a receiver was sent: the heads and the bodies.
type Sent = std::sync::Arc<std::sync::Mutex<Vec<(String, serde_json::Value)>>>;

fn receiver(reply: fn(&str) -> serde_json::Value) -> (std::net::SocketAddr, Sent) {
    let sent = Sent::default();
    let kept = std::sync::Arc::clone(&sent);
    let address = crate::support::server_taking(move |head, body| {
        let path = head.split(' ').nth(1).unwrap_or_default();
        kept.lock().unwrap().push((head.to_owned(), serde_json::from_str(body).unwrap()));
        crate::support::http("200 OK", "application/json", &reply(path).to_string())
    });
    (address, sent)
}

#[test]
fn a_run_is_pushed_with_keys_that_reach_no_file() {
    const SECRET: &str = "sesame-4711";
    let folder = tempfile::tempdir().unwrap();
    let (otlp, points) = receiver(|_| serde_json::json!({}));
    let (mlflow, calls) = receiver(|path| match path {
        "/api/2.0/mlflow/experiments/create" => serde_json::json!({"experiment_id": "7"}),
        "/api/2.0/mlflow/runs/create" => {
            serde_json::json!({"run": {"info": {"run_id": "r1"}}})
        }
        _ => serde_json::json!({}),
    });
    let mut run = crate::support::inferometer();
    run.current_dir(folder.path());
    run.args(["run", "--requests", "20", "--push", &format!("otlp=http://{otlp}")]);
    run.args(["--push", &format!("mlflow=http://{mlflow}")]);
    run.env("OTEL_EXPORTER_OTLP_HEADERS", format!("api-key={SECRET},x-scope=a%20b"));
    run.env("MLFLOW_TRACKING_TOKEN", SECRET).env("MLFLOW_EXPERIMENT_NAME", "it's mine");
    let ran = run.output().unwrap();
    let said = text(&ran.stderr) + &text(&ran.stdout);
    assert!(ran.status.success(), "{said}");
    assert!(said.contains("/#/experiments/7/runs/r1") && !said.contains(SECRET), "{said}");

    let points = points.lock().unwrap();
    let (head, body) = &points[0];
    assert!(head.starts_with("POST /v1/metrics") && head.contains("x-scope: a b"), "{head}");
    assert!(head.contains(&format!("api-key: {SECRET}")), "{head}");
    let metrics = &body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
    assert!(metrics.to_string().contains("inferometer.output_throughput"), "{metrics}");

    let calls = calls.lock().unwrap();
    let path = |call: &(String, serde_json::Value)| {
        call.0.split(' ').nth(1).unwrap().rsplit("mlflow/").next().unwrap().to_owned()
    };
    let paths: Vec<String> = calls.iter().map(path).collect();
    let wanted = [
        "experiments/search",
        "experiments/create",
        "runs/create",
        "runs/log-batch",
        "runs/log-batch",
        "runs/update",
    ];
    assert_eq!(paths, wanted);
    assert!(calls.iter().all(|call| call.0.contains(&format!("Bearer {SECRET}"))));
    assert_eq!(calls[0].1["filter"], "name = 'it''s mine'");
    let keys = calls[3].1["metrics"].to_string();
    assert!(keys.contains("\"output_throughput_per_s\"") && keys.contains("ttft_p50_ms"), "{keys}");

    for entry in walk(folder.path()) {
        let bytes = std::fs::read(&entry).unwrap();
        let found = String::from_utf8_lossy(&bytes).contains(SECRET);
        assert!(!found, "{}", entry.display());
    }
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: std::path::PathBuf| if path.is_dir() { walk(&path) } else { vec![path] };
    entries.flat_map(below).collect()
}

#[test]
fn a_receiver_that_refuses_is_named_and_the_run_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let address = crate::support::server_hearing(|_| {
        crate::support::http("403 Forbidden", "application/json", "{\"message\": \"no entry\"}")
    });
    let to = format!("mlflow=http://{address}");
    let ran = output(&["run", "-q", "--requests", "5", "--push", &to], folder.path());
    let said = text(&ran.stderr);
    assert!(!ran.status.success() && said.contains("no entry") && said.contains("403"), "{said}");
    let again = output(&["export", "latest", "--push", &to], folder.path());
    assert!(text(&again.stderr).contains("no entry"), "{}", text(&again.stderr));
    let none = output(&["export", "latest"], folder.path());
    assert_eq!(none.status.code(), Some(2), "{}", text(&none.stderr));
    let wrong = output(&["run", "--push", "wandb=http://x"], folder.path());
    assert!(text(&wrong.stderr).contains("mlflow=http://HOST:5000"), "{}", text(&wrong.stderr));
}
