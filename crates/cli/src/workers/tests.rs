//! What workers are started with, and how their progress is read.

use serde_json::json;

use super::*;
use crate::experiment::file;

#[test]
fn an_experiment_says_the_same_when_it_is_written_and_read() {
    let tree = json!({
        "target": { "url": "http://h:1/a?b=\"c\"\\", "model": "ü\u{7f}\n\t#" },
        "workload": {
            "seed": 4_294_967_295_u64,
            "mix": [{ "weight": 0.5, "prompt": "a" }, { "weight": 1e-7, "prompt": "[b]" }],
            "body": { "extra": { "a.b": [1, "x", { "deep": true }] } },
        },
        "slo": { "slos": ["ttft.p99<500ms"], "e2e.p50": "1s" },
        "metadata": {},
    });
    let text = tree.as_object().unwrap().iter().fold(String::new(), |mut text, (table, keys)| {
        let _ = writeln!(text, "[{table}]");
        for (key, value) in keys.as_object().unwrap() {
            let _ = writeln!(text, "{} = {}", Value::from(key.as_str()), toml_value(value));
        }
        text
    });
    assert_eq!(file::parse(Path::new("e.toml"), &text).unwrap().tree, tree, "{text}");
}

#[test]
fn progress_is_the_last_whole_event_of_each_worker() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|name| folder.path().join(name));
    let tick = |ok: u64| json!({ "event": "progress", "progress": { "ok": ok, "failed": 1 } });
    let mut tails = Tails::default();
    fs::write(&paths[0], format!("srun: words\n{}\n{{\"event\":\"pro", tick(3))).unwrap();
    let events = tails.events(paths.clone().into_iter());
    let all = NonZeroU32::new(2).unwrap();
    assert_eq!(
        progress(&events, all),
        "1 of 2 workers send, 0 are done: 3 ok, 1 failed, 0 in flight"
    );
    fs::write(&paths[1], format!("{}\n{{\"event\":\"finished\"}}\n", tick(5))).unwrap();
    fs::write(&paths[0], format!("srun: words\n{}\n{}\n", tick(3), tick(4))).unwrap();
    let events = tails.events(paths.into_iter());
    assert_eq!(
        progress(&events, all),
        "1 of 2 workers send, 1 are done: 4 ok, 1 failed, 0 in flight"
    );
}
