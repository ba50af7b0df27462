//! Every key of the schema, by flag and by `--set`; every example.

use std::path::{Path, PathBuf};

use clap::{CommandFactory, Parser};
use inferometer_model::Spec;
use inferometer_model::spec::{Extent, Source};
use serde_json::{Value, json};

use super::layer::Layer;
use super::schema::{document, flag, nearest, properties};
use crate::arguments::{Arguments, Command, Experiment, ExperimentArguments};
use crate::draft::{Drafted, draft};
use crate::failure::Result;

/// What `run` would take from these words.
fn arguments(words: &[&str]) -> ExperimentArguments {
    let typed = Arguments::try_parse_from(["inferometer", "run"].iter().chain(words)).unwrap();
    let Some(Command::Run(arguments)) = typed.command else { panic!("another command") };
    arguments.experiment
}

fn merged(arguments: &ExperimentArguments) -> Result<Experiment> {
    super::experiment(&super::said(arguments, None)?)
}

fn drafted(words: &[&str]) -> Drafted {
    draft(&arguments(words)).unwrap()
}

fn spec(words: &[&str]) -> Spec {
    drafted(words).resolve().unwrap()
}

/// Every key that holds a value, with its schema.
fn leaves(schema: &Value, path: &str) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for (key, schema) in properties(schema).into_iter().flatten() {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match (properties(schema), schema["items"]["properties"].is_object()) {
            (Some(_), _) => found.extend(leaves(schema, &path)),
            (None, true) => found.extend(leaves(&schema["items"], &format!("{path}.0"))),
            (None, false) => found.push((path, schema.clone())),
        }
    }
    found
}

/// A value that this schema allows.
fn example(schema: &Value) -> Value {
    if let Some(first) = schema["examples"].get(0).or(schema["enum"].get(0)) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!(["a"]),
        _ => json!("a"),
    }
}

/// Whether a table holds what was set. Some kinds are read into another form of the same: `500ms`
/// is `0.5s`, and `4-6` is `4,5,6`.
fn is_same(found: &Value, set: &Value, schema: &Value) -> bool {
    match (found, set) {
        (Value::Number(found), set) => found.as_f64() == set.as_f64(),
        (Value::String(found), Value::Number(set)) => *found == *set.to_string(),
        (Value::String(found), Value::String(_)) if schema["pattern"].is_string() => {
            !found.is_empty()
        }
        // The step of the engine is stored as seconds and nanoseconds.
        (Value::Object(found), Value::String(_)) => found.contains_key("nanos"),
        (Value::String(found), Value::String(set)) if set == "2,4-6" => found == "2,4,5,6",
        // Levels may be a list, and are kept as text.
        (Value::String(found), Value::Array(levels)) => {
            let text = |level: &Value| level.to_string().trim_matches('"').to_owned();
            levels.iter().map(text).collect::<Vec<_>>().join(",") == *found
        }
        (found, set) => found == set,
    }
}

#[test]
fn every_key_is_described_and_in_reach_of_set() {
    let leaves = leaves(&document(), "");
    assert!(60 < leaves.len(), "{}", leaves.len());
    for (path, schema) in leaves {
        assert!(schema["description"].is_string() || path == "metadata", "{path}");
        let (path, value) = match path.as_str() {
            "metadata" | "deploy.environment" => (format!("{path}.site"), json!("lab")),
            "workload.body.extra" => (format!("{path}.a"), json!(1)),
            "control.abort_on" => (path.clone(), json!(["slo"])),
            "engine.dtype" => (path.clone(), json!("bf16")),
            "engine.quantization" | "engine.kv_cache_dtype" => (path.clone(), json!("fp8")),
            _ => (path.clone(), example(&schema)),
        };
        let set = format!("{path}={value}");
        let experiment = merged(&arguments(&["--set", &set])).unwrap();
        let tree = serde_json::to_value(experiment).unwrap();
        let found = super::layer::at(&tree, &path).unwrap();
        let same = is_same(found, &value, &schema);
        assert!(same, "--set {set} gives {found}");
    }
}

/// Keys without a flag of their own: the URL is typed bare, a mix is too deep for flags, facts have
/// names that no list can have, and deployments other than a process need a file.
const WITHOUT_FLAG: [&str; 17] = [
    "target.url",
    "workload.mix.",
    "metadata",
    "deploy.kind",
    "deploy.folder",
    "deploy.engine",
    "deploy.image",
    "deploy.options",
    "deploy.arguments",
    "deploy.port",
    "deploy.up",
    "deploy.url",
    "deploy.logs",
    "deploy.down",
    "deploy.environment",
    "slurm",
    "kubernetes",
];

#[test]
fn every_key_has_its_flag() {
    let command = Arguments::command();
    for (path, _) in leaves(&document(), "") {
        let excepted = WITHOUT_FLAG.iter().any(|exception| path.starts_with(exception));
        let flag = flag(&path);
        assert_eq!(flag.is_none(), excepted, "{path}");
        let Some(flag) = flag else { continue };
        let name = if path.starts_with("sweep.") { "sweep" } else { "run" };
        let command = command.find_subcommand(name).unwrap();
        let known = command.get_arguments().any(|argument| argument.get_long() == flag.get(2..));
        assert!(known, "{path} has no {flag}");
    }
}

#[test]
fn every_value_is_refused_where_the_schema_says_so() {
    for (path, schema) in leaves(&document(), "") {
        let mut wrong = Vec::new();
        if let Some(bound) = schema["minimum"].as_f64() {
            wrong.push(json!(bound - 1.0).to_string());
        }
        if let Some(bound) = schema["maximum"].as_f64() {
            wrong.push(json!(bound + 1.0).to_string());
        }
        if schema["enum"].is_array() {
            wrong.push("nothing-of-that-name".to_owned());
        }
        if schema["type"] == "boolean" || schema["type"] == "integer" {
            wrong.push("text".to_owned());
        }
        for value in wrong {
            let set = format!("{path}={value}");
            assert!(merged(&arguments(&["--set", &set])).is_err(), "{set}");
        }
    }
}

#[test]
fn flags_keep_to_the_ranges_that_files_have() {
    for (words, flag) in [
        (["--temperature", "-5"], "--temperature"),
        (["--top-p", "3"], "--top-p"),
        (["--repeat", "0"], "--repeat"),
    ] {
        let wrong = format!("{:?}", merged(&arguments(&words)).unwrap_err());
        assert!(wrong.contains(flag) && wrong.contains("must be"), "{wrong}");
    }
}

#[test]
fn a_table_in_the_place_of_a_list_is_refused_with_how_to_write_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mix.toml");
    let read = |text: &str, more: &[&str]| {
        std::fs::write(&path, text).unwrap();
        let file = path.to_string_lossy();
        merged(&arguments(&[&[&*file], more].concat())).map_err(|wrong| format!("{wrong:?}"))
    };
    let wrong = read("[workload.mix.0]\nweight = 1\nprompt = \"hi\"\n", &[]).unwrap_err();
    assert!(wrong.contains("mix.toml:1") && wrong.contains("write [[workload.mix]]"), "{wrong}");
    let wrong = read("", &["--set", "workload.mix={}"]).unwrap_err();
    assert!(wrong.contains("must be a list"), "{wrong}");
    read("", &["--set", "workload.mix.0.prompt=hi"]).unwrap();
    let wrong = read("[slo]\nttft.schedule.p99 = \"1s\"\n", &[]).unwrap_err();
    assert!(wrong.contains("quote the key") && wrong.contains("ttft.schedule.p99"), "{wrong}");
    read("[slo]\n\"ttft.schedule.p99\" = \"1s\"\n", &[]).unwrap();
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn example_file(name: &str) -> String {
    root().join("examples").join(name).to_string_lossy().into_owned()
}

#[test]
fn every_example_is_a_whole_spec() {
    let mut count = 0;
    for entry in std::fs::read_dir(root().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        // Those have tables of their own, and tests.
        let is_matrix =
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"matrix-"));
        if !is_matrix && path.extension().is_some_and(|extension| extension == "toml") {
            let text = std::fs::read_to_string(&path).unwrap();
            let server = if text.contains("[deploy]") { None } else { Some("http://h:1") };
            let name = path.to_string_lossy();
            let words: Vec<&str> = std::iter::once(&*name).chain(server).collect();
            spec(&words);
            count += 1;
        }
    }
    assert_eq!(count, 15);
}

/// Through all that reads a file, up to the tables.
#[test]
fn mutated_files_are_read_or_refused() {
    let executions = std::env::var("INFEROMETER_EXECUTIONS").ok();
    let executions: u64 = executions.map_or(300, |text| text.parse().unwrap());
    let examples = ["mix.toml", "conversation.toml", "r4-methodology.toml", "deploy-vllm.toml"];
    let seeds = examples.map(|name| std::fs::read(example_file(name)).unwrap());
    let mut mutations = fuzz_targets::mutation::Mutations::new(&seeds, 1);
    let mut read = 0;
    for _ in 0..executions {
        let Ok(text) = str::from_utf8(mutations.next_input()) else { continue };
        let layer = super::file::parse(Path::new("file.toml"), text);
        let layer = layer.and_then(|layer| layer.checked(super::Lists::InOrder));
        match layer.and_then(|layer| super::experiment(&layer)) {
            Ok(_) => read += 1,
            Err(failure) => assert!(!failure.message().is_empty(), "{text}"),
        }
    }
    assert!(0 < read, "no mutation is a file any more");
}

#[test]
fn the_examples_are_what_they_say() {
    let suite = spec(&[&example_file("r1-suite-scenario.toml")]);
    let Source::Synthetic(prompts) = &suite.workload.source else { panic!("another source") };
    assert_eq!(prompts.input.to_string(), "2048±50%");
    let completions = spec(&[&example_file("r3-matrix-cell.toml")]);
    let built_in = spec(&["--experiment", "r3"]);
    assert_eq!(built_in.workload, completions.workload, "the load of a matrix has one form");
    assert_eq!((built_in.api, &built_in.load), (completions.api, &completions.load));
    assert_eq!(completions.workload.body.fields["temperature"], 0.7);
    assert_eq!(completions.api.name(), "completions");
    let methodology = drafted(&[&example_file("r4-methodology.toml"), "http://h:1"]);
    let cool_down = std::time::Duration::from_mins(1);
    assert_eq!(
        (methodology.repetition.runs.get(), methodology.repetition.cool_down),
        (5, cool_down)
    );
    let trace = spec(&[&example_file("trace-mooncake.toml")]);
    assert_eq!(trace.load.extent, Extent::Whole);
    let Source::Trace(recorded) = &trace.workload.source else { panic!("another source") };
    // Data lies beside the file that names it.
    assert_eq!(recorded.path.parent(), Some(root().join("examples").as_path()));
}

#[test]
fn a_flag_replaces_another_kind_of_source_in_a_file() {
    let mix = example_file("mix.toml");
    let Source::Mix(parts) = spec(&[&mix]).workload.source else { panic!("no mix") };
    assert!(1 < parts.len());
    let replaced = spec(&[&mix, "--prompt", "hi"]);
    let Source::Fixed(fixed) = replaced.workload.source else { panic!("no fixed prompt") };
    assert_eq!(fixed.prompt, "hi");
    let weighed = spec(&[&mix, "--set", "workload.mix.0.weight=7"]);
    let Source::Mix(parts) = weighed.workload.source else { panic!("no mix") };
    assert!((parts[0].weight - 7.0).abs() < 1e-9);
    let trace = example_file("trace-mooncake.toml");
    let replaced = spec(&[&trace, "--dataset", "d.json", "--rate", "3"]);
    assert!(matches!(replaced.workload.source, Source::Dataset(_)));
}

/// The rows of a table, for the page that explains the file.
fn rows(table: &str, schema: &Value, leave_out: &[&str]) -> String {
    let mut keys: Vec<(&String, &Value)> = properties(schema).into_iter().flatten().collect();
    keys.sort_by_key(|(key, _)| *key);
    keys.retain(|(key, _)| !leave_out.contains(&key.as_str()));
    let row = |(key, schema): (&String, &Value)| {
        let path = format!("{table}.{key}");
        let flag = flag(&path).map(|flag| format!("`{flag}`"));
        let elsewhere = if path == "target.url" { "the URL itself" } else { "`--set`" };
        let words = crate::tests::cell(schema["description"].as_str().unwrap());
        let flag = flag.as_deref().unwrap_or(elsewhere);
        format!("| `{key}` | {flag} | {}{words} |\n", names(schema))
    };
    let rows: String = keys.into_iter().map(row).collect();
    let heading =
        if table.ends_with("mix") { format!("[[{table}]]") } else { format!("[{table}]") };
    format!("\n### `{heading}`\n\n| key | flag | meaning |\n|---|---|---|\n{rows}")
}

fn names(schema: &Value) -> String {
    let Some(names) = schema["enum"].as_array() else { return String::new() };
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    format!("{}. ", names.join(", ").replace('"', ""))
}

fn key_tables() -> String {
    let document = document();
    let tables = &document["properties"];
    let workload = &tables["workload"];
    let part = &workload["properties"]["mix"]["items"];
    let of_source: Vec<&str> = properties(part)
        .into_iter()
        .flatten()
        .map(|(key, _)| key.as_str())
        .filter(|key| properties(workload).is_some_and(|keys| keys.contains_key(*key)))
        .collect();
    let body = &workload["properties"]["body"];
    [
        rows("target", &tables["target"], &[]),
        rows("engine", &tables["engine"], &[]),
        rows("deploy", &tables["deploy"], &[]),
        rows("workload", workload, &["agent", "body", "mix"]),
        rows("workload.agent", &workload["properties"]["agent"], &[]),
        rows("workload.body", body, &[]),
        rows("workload.mix", part, &of_source),
        rows("load", &tables["load"], &[]),
        rows("slo", &tables["slo"], &[]),
        rows("repeat", &tables["repeat"], &[]),
        rows("sweep", &tables["sweep"], &[]),
        rows("client", &tables["client"], &[]),
        rows("limits", &tables["limits"], &[]),
        rows("control", &tables["control"], &[]),
        rows("answers", &tables["answers"], &[]),
    ]
    .concat()
}

/// `cargo xtask docs` writes the tables; this says when it was forgotten.
#[test]
fn the_page_about_the_file_lists_every_key() {
    const BEGIN: &str = "<!-- written by `cargo xtask docs` from here to the end -->\n";
    let page = root().join("docs/experiment.md");
    let written = std::fs::read_to_string(&page).unwrap();
    let (prose, _) = written.split_once(BEGIN).unwrap();
    let generated = format!("{prose}{BEGIN}{}", key_tables());
    if std::env::var_os("INFEROMETER_REWRITE_DOCS").is_some() {
        std::fs::write(&page, &generated).unwrap();
    }
    let written = std::fs::read_to_string(&page).unwrap();
    assert_eq!(written, generated, "run `cargo xtask docs`");
}

#[test]
fn flags_reach_the_body() {
    let words = [
        "--temperature",
        "0",
        "--top-p",
        "0.9",
        "--top-k",
        "-1",
        "--presence-penalty",
        "-0.5",
        "--reasoning-effort",
        "low",
        "--stop",
        "a",
        "--stop",
        "b",
        "--extra-body",
        r#"{"user": null}"#,
        "--images",
        "2",
        "--image-size",
        "64x32",
        "--lora",
        "x",
        "--lora",
        "y",
        "--lora-choice",
        "zipf:1.1",
        "--pin-output",
        "never",
    ];
    let body = spec(&words).workload.body;
    let wanted = json!({
        "temperature": 0.0, "top_p": 0.9, "top_k": -1, "presence_penalty": -0.5,
        "reasoning_effort": "low", "stop": ["a", "b"], "user": null,
    });
    assert_eq!(Value::Object(body.fields), wanted);
    let images = body.images.unwrap();
    assert_eq!((images.count, images.width, images.height), (2, 64, 32));
    assert_eq!(body.adapters.unwrap().names, ["x", "y"]);
}

fn layer(tree: Value) -> Layer {
    Layer { tree, ..Layer::default() }
}

/// The tree of two layers.
fn laid(below: Value, above: Value) -> Value {
    let mut below = layer(below);
    below.lay(layer(above)).unwrap();
    below.tree
}

#[test]
fn a_key_above_wins_and_the_rest_stays() {
    let below = json!({ "load": { "rate": 5, "arrivals": "constant", "warm_up": 3 } });
    let above = json!({ "load": { "rate": 7 } });
    let wanted = json!({ "load": { "rate": 7, "arrivals": "constant", "warm_up": 3 } });
    assert_eq!(laid(below, above), wanted);
}

#[test]
fn another_loop_drops_the_one_below_and_what_belongs_to_it() {
    let below = json!({ "load": { "concurrency": 8, "think_time": "1s", "requests": 9 } });
    let above = json!({ "load": { "rate": 5 } });
    assert_eq!(laid(below, above), json!({ "load": { "rate": 5, "requests": 9 } }));
    let below = json!({ "load": { "ramp": "1..2:3s", "ramp_curve": "linear", "burstiness": 2 } });
    let above = json!({ "load": { "rate": 5 } });
    assert_eq!(laid(below, above), json!({ "load": { "rate": 5, "burstiness": 2 } }));
}

#[test]
fn another_end_replaces_the_end_below() {
    let below = || json!({ "load": { "duration": "1m", "until": "first", "requests": 9 } });
    let above = json!({ "load": { "requests": 5 } });
    assert_eq!(laid(below(), above), json!({ "load": { "requests": 5 } }));
    let above = json!({ "load": { "until": "both" } });
    let wanted = json!({ "load": { "duration": "1m", "until": "both", "requests": 9 } });
    assert_eq!(laid(below(), above), wanted);
}

#[test]
fn both_ends_anew_leave_alone_which_of_them_counts() {
    let below = json!({ "load": { "duration": "1m", "until": "first", "requests": 9 } });
    let above = json!({ "load": { "duration": "2m", "requests": 5 } });
    let wanted = json!({ "load": { "duration": "2m", "until": "first", "requests": 5 } });
    assert_eq!(laid(below, above), wanted);
}

#[test]
fn another_source_keeps_only_what_it_can_use() {
    let below = json!({
        "workload": { "trace": "t", "keep": 0.5, "output_tokens": 9, "input_tokens": 3 },
        "load": { "speed": 2 },
    });
    let above = json!({ "workload": { "prompt": "hi" } });
    let wanted = json!({ "workload": { "prompt": "hi", "output_tokens": 9 }, "load": {} });
    assert_eq!(laid(below, above), wanted);
    let below = json!({ "workload": { "mix": [{ "weight": 1 }], "seed": 4 } });
    let above = json!({ "workload": { "turns": 3 } });
    assert_eq!(laid(below, above), json!({ "workload": { "turns": 3, "seed": 4 } }));
}

#[test]
fn a_url_and_the_embedded_engine_exclude_each_other() {
    let below = json!({ "engine": { "profile": "a" }, "load": { "rate": 5 } });
    let url = json!({ "target": { "url": "http://h" } });
    let wanted = json!({ "target": { "url": "http://h" }, "load": { "rate": 5 } });
    assert_eq!(laid(below, url), wanted);
    let below = json!({ "target": { "url": "http://h", "api": "chat" } });
    let above = json!({ "engine": { "tp": 4 } });
    let wanted = json!({ "target": { "api": "chat" }, "engine": { "tp": 4 } });
    assert_eq!(laid(below, above), wanted);
}

#[test]
fn another_kind_of_deployment_drops_the_one_below() {
    let below =
        || json!({ "deploy": { "kind": "container", "image": "i", "port": 80, "renew": "never" } });
    let serve = json!({ "deploy": { "command": ["s"] } });
    let wanted = json!({ "deploy": { "command": ["s"], "renew": "never" } });
    assert_eq!(laid(below(), serve.clone()), wanted);
    let url = json!({ "target": { "url": "http://h" } });
    assert_eq!(laid(below(), url.clone()), url);
    assert_eq!(laid(url, serve.clone()), json!({ "target": {}, "deploy": { "command": ["s"] } }));
    assert_eq!(laid(json!({ "engine": { "tp": 2 } }), serve.clone()), serve);
    let later = json!({ "deploy": { "renew": "each-run" } });
    assert_eq!(laid(below(), later)["deploy"]["image"], "i");
}

#[test]
fn parts_of_a_mix_are_reached_by_their_place() {
    let part = |place: &str| json!({ "workload": { "mix": { place: { "weight": 2 } } } });
    let below = || json!({ "workload": { "mix": [{ "name": "a", "weight": 1 }] } });
    let wanted = json!({ "workload": { "mix": [{ "name": "a", "weight": 2 }] } });
    assert_eq!(laid(below(), part("0")), wanted);
    assert_eq!(laid(below(), part("1"))["workload"]["mix"][1], json!({ "weight": 2 }));
    let wrong = layer(below()).lay(layer(part("3"))).unwrap_err().to_string();
    assert!(wrong.contains("workload.mix.3") && wrong.contains("from 0 to 1"), "{wrong}");
}

#[test]
fn a_slip_finds_its_key_and_nonsense_finds_none() {
    let known = ["input_tokens", "output_tokens", "prompt", "prefixes"];
    for (typed, wanted) in [
        ("outptu_tokens", "output_tokens"),
        ("output-tokens", "output_tokens"),
        ("outputtokens", "output_tokens"),
        ("promt", "prompt"),
        ("Prefixes", "prefixes"),
    ] {
        assert_eq!(nearest(typed, &known), Some(wanted), "{typed}");
    }
    for typed in ["gpu", "colour", "x"] {
        assert_eq!(nearest(typed, &known), None, "{typed}");
    }
}
