//! Matrices without the binary: what a file comes to, and what is refused.

mod axes;

use std::path::Path;

use inferometer_model::deployment::DeploymentHow;
use inferometer_model::spec::{Lengths, Source, TargetSpec};
use inferometer_model::study::{Level, Matrix, Strategy};
use serde_json::Value;

use super::{MATRICES, MatrixFile, Selection, resolve, schema};
use crate::arguments::MatrixArguments;
use crate::failure::Result;
use crate::study::StudyPlan;

/// Two presets, two models, two lengths: eight cells on the embedded engine.
const SMALL: &str = r#"
[matrix]
contexts = [2048, 8192]

[[preset]]
name = "one"
gpus = 1
engine = { hardware = "h100" }

[[preset]]
name = "two"
gpus = 2
engine = { hardware = "h100" }

[[model]]
name = "meta-llama/Llama-3.2-3B-Instruct"
label = "3B"

[[model]]
name = "meta-llama/Llama-3.1-8B-Instruct"

[load]
requests = 4
"#;

fn read(text: &str, arguments: &MatrixArguments) -> Result<MatrixFile> {
    MatrixFile::parse(Path::new("test.toml"), text, arguments)
}

/// `--set`, one after the other.
fn sets(sets: &[&str]) -> MatrixArguments {
    let sets = sets.iter().map(|&set| set.to_owned()).collect();
    MatrixArguments { sets, ..MatrixArguments::default() }
}

fn plan_of(text: &str, only: &[&str]) -> Result<StudyPlan> {
    let only = only.iter().map(|&filter| filter.to_owned()).collect();
    let arguments = MatrixArguments { only, ..MatrixArguments::default() };
    resolve(&read(text, &arguments)?, &arguments)
}

#[track_caller]
fn assert_refused(text: &str, only: &[&str], words: &[&str]) {
    let refused = format!("{:?}", plan_of(text, only).unwrap_err());
    for word in words {
        assert!(refused.contains(word), "`{word}` is not in {refused}");
    }
}

fn matrix(plan: &StudyPlan) -> &Matrix {
    plan.study.matrix().unwrap()
}

fn names(plan: &StudyPlan) -> Vec<&str> {
    plan.study.conditions.iter().map(|condition| condition.name.as_str()).collect()
}

#[test]
fn r3_is_all_of_its_cells_and_some_do_not_fit() {
    let plan = plan_of(MATRICES.show("r3").unwrap(), &[]).unwrap();
    let matrix = matrix(&plan);
    assert_eq!((matrix.presets.len(), matrix.models.len()), (8, 4));
    assert_eq!((matrix.cells.len(), plan.study.conditions.len()), (256, 256));
    assert_eq!(matrix.levels, [Level::Concurrency(10.try_into().unwrap())]);
    assert_eq!(names(&plan)[0], "gpu-small · Qwen-1.5B · 2048 · tensor");
    let output = |place: usize| {
        let source = &plan.study.conditions[place].spec.workload.source;
        let Source::Fixed(prompt) = source else { panic!("{source:?}") };
        prompt.output.clone()
    };
    assert_eq!((output(0), output(2)), (Lengths::Fixed(512), Lengths::Fixed(2048)));
    let xlarge = plan.study.conditions.iter().find(|it| it.name.contains("xlarge")).unwrap();
    assert_eq!((xlarge.spec.engine.tp, xlarge.spec.engine.pp), (Some(8), Some(1)));
    assert_eq!(matrix.cells[1].strategy, Some(Strategy::Pipeline));
    let mut impossible = plan.foreseen.iter().map(|it| names(&plan)[it.0]);
    assert!(plan.foreseen.len() < 128, "{}", plan.foreseen.len());
    assert!(impossible.any(|name| name == "gpu-small · Qwen-32B · 2048 · tensor"));
    assert!(plan.notes.iter().any(|note| note.contains("gpu-small, mi210x1, H100X1")));
}

#[test]
fn every_built_in_matrix_can_be_planned() {
    for (name, text) in MATRICES.files {
        let plan = plan_of(text, &[]).unwrap();
        assert!(plan.foreseen.len() < plan.study.conditions.len(), "{name}");
    }
}

#[test]
fn without_strategies_all_gpus_share_every_layer() {
    let plan = plan_of(SMALL, &[]).unwrap();
    let cells = &matrix(&plan).cells;
    assert_eq!(cells.len(), 8);
    assert_eq!((cells[7].strategy, cells[7].tp, cells[7].pp), (None, Some(2), Some(1)));
    assert_eq!(names(&plan)[7], "two · Llama-3.1-8B-Instruct · 8192");
    assert_eq!(matrix(&plan).levels, [Level::AsAsked]);
    let engine = &plan.study.conditions[7].spec.engine;
    assert_eq!((engine.tp, engine.max_model_len), (Some(2), Some(8192)));
    assert!(plan.warnings.iter().any(|warning| warning.contains("--repeat 5")));
}

#[test]
fn the_load_of_r3_is_a_built_in_experiment_too() {
    let text = include_str!("../../experiment/builtin/r3.toml");
    let prompt = text.lines().find(|line| line.starts_with("prompt = ")).unwrap();
    for (name, text) in MATRICES.files.iter().filter(|(name, _)| name.starts_with("r3")) {
        assert!(text.contains(prompt), "{name} asks something else");
    }
}

#[test]
fn cells_are_taken_out_and_put_in() {
    let rules = r#"
        [[exclude]]
        preset = "one"
        context = 8192
        [[exclude]]
        model = ["3B", "meta-llama/Llama-3.1-8B-Instruct"]
        preset = "two"
        context = 2048
        [[include]]
        preset = "two"
        model = "3B"
        context = [32768, 8192]
    "#;
    let plan = plan_of(&format!("{SMALL}{rules}"), &[]).unwrap();
    let wanted = [
        "one · 3B · 2048",
        "one · Llama-3.1-8B-Instruct · 2048",
        "two · 3B · 8192",
        "two · 3B · 32768",
        "two · Llama-3.1-8B-Instruct · 8192",
    ];
    assert_eq!(names(&plan), wanted);
    let idle = format!("{SMALL}[[include]]\npreset = \"one\"\n[[exclude]]\ncontext = 2048\n");
    let notes = plan_of(&idle, &[]).unwrap().notes;
    assert!(notes.is_empty(), "what is excluded is put in again: {notes:?}");
    let idle = format!("{SMALL}[[include]]\npreset = \"one\"\n");
    assert_eq!(plan_of(&idle, &[]).unwrap().notes, ["[[include]] 1 changes nothing"]);
}

#[test]
fn flags_are_an_axis_and_keys_of_the_embedded_engine() {
    let flags = "[flags]\nmax-num-seqs = [64, 256]\nenable_prefix_caching = [true, false]\n";
    let plan = plan_of(&format!("{SMALL}{flags}"), &[]).unwrap();
    assert_eq!(matrix(&plan).cells.len(), 32);
    let name = "one · 3B · 2048 · enable_prefix_caching=false · max-num-seqs=256";
    let found = plan.study.conditions.iter().find(|it| it.name == name).unwrap();
    assert_eq!(found.spec.engine.max_num_seqs, Some(256));
    assert_eq!(found.spec.engine.enable_prefix_caching, Some(false));
    let wrong = format!("{SMALL}[flags]\nmax_num_seq = [64]\n");
    assert_refused(&wrong, &[], &["max_num_seq", "did you mean `max_num_seqs`"]);
}

#[test]
fn some_cells_alone_leave_out_what_they_do_not_need() {
    let plan = plan_of(SMALL, &["preset=TWO,context=8192,model=3b", "context=2048,preset=two"]);
    let plan = plan.unwrap();
    let wanted = ["two · 3B · 2048", "two · 3B · 8192", "two · Llama-3.1-8B-Instruct · 2048"];
    assert_eq!(names(&plan), wanted);
    let matrix = matrix(&plan);
    assert_eq!(matrix.presets.len(), 1);
    assert!(matrix.cells.iter().all(|cell| cell.preset == 0));
    assert_eq!(matrix.cells[2].model, 1);
    assert_eq!(plan.notes, ["3 of 8 cells are selected"]);
    let all = Selection::read(&[], matrix).unwrap();
    assert!(matrix.cells.iter().all(|cell| all.takes(matrix, cell)));
}

#[test]
fn a_filter_that_finds_nothing_is_refused() {
    assert_refused(SMALL, &["preset"], &["--only preset", "no `=`"]);
    assert_refused(SMALL, &["prest=one"], &["unknown axis `prest`", "`preset`"]);
    assert_refused(SMALL, &["preset=tow"], &["unknown preset `tow`", "known are one, two"]);
    let slip = ["model=llama-3.1-8B-Instrct"];
    assert_refused(SMALL, &slip, &["did you mean `Llama-3.1-8B-Instruct`"]);
    assert_refused(SMALL, &["context=4096"], &["unknown context `4096`", "2048, 8192"]);
    assert_refused(SMALL, &["strategy=tensor"], &["unknown axis `strategy`"]);
}

#[test]
fn loads_answers_and_numbers_are_said_over_the_file() {
    let text = format!("{SMALL}[workload.by_context]\n2048 = {{ output_tokens = 7 }}\n");
    let arguments = MatrixArguments {
        repeat: Some(3),
        lanes: Some(2),
        seed: Some(11),
        virtual_time: true,
        ..sets(&["load.requests=9", "matrix.concurrency=[4, 2]", "preset.0.price_per_hour=2.5"])
    };
    let plan = resolve(&read(&text, &arguments).unwrap(), &arguments).unwrap();
    let study = &plan.study;
    assert_eq!((study.repetition.runs.get(), study.seed), (3, 11));
    let level = |users: u32| Level::Concurrency(users.try_into().unwrap());
    assert_eq!(matrix(&plan).levels, [level(2), level(4)]);
    assert_eq!(matrix(&plan).presets[0].price_per_hour, Some(2.5));
    assert!(matrix(&plan).title.contains("load.requests=9"), "a changed matrix says so");
    let output = |place: usize| {
        let source = &study.conditions[place].spec.workload.source;
        let Source::Synthetic(synthetic) = source else { panic!("{source:?}") };
        synthetic.output.clone()
    };
    assert_eq!(output(0), Lengths::Fixed(7));
    assert_ne!(output(1), Lengths::Fixed(7));
    assert!(plan.notes.iter().any(|note| note.contains("not in rising order")), "{:?}", plan.notes);
    assert!(plan.warnings.iter().any(|warning| warning.contains("price_per_hour")));
    let never = MatrixArguments { repeat: Some(0), ..MatrixArguments::default() };
    assert!(read(SMALL, &never).is_err());
    assert!(read(SMALL, &sets(&["load.reqests=9"])).is_err());
}

/// The same presets and models, put up as processes.
fn deployed(how: &str) -> String {
    let bare = SMALL.replace("engine = { hardware = \"h100\" }", "values = { devices = \"0,1\" }");
    format!("{bare}[flags]\nseed = [1]\nenforce-eager = [true]\nlazy = [false]\n[deploy]\n{how}\n")
}

fn how(text: &str, place: usize) -> DeploymentHow {
    let plan = plan_of(text, &[]).unwrap();
    let target = &plan.study.conditions[place].spec.target;
    let TargetSpec::Deployed(deployment) = target else { panic!("{target:?}") };
    deployment.how.clone()
}

#[test]
fn a_command_is_filled_for_each_cell() {
    let command = "command = \"vllm serve {model} --tp={tp} --len {context} {flags} --port {port} \
                   '{preset} {label}' {{x} {value:devices} {flag:seed}\"";
    let DeploymentHow::Process(process) = how(&deployed(command), 4) else { panic!("no process") };
    let wanted = [
        "vllm",
        "serve",
        "meta-llama/Llama-3.2-3B-Instruct",
        "--tp=2",
        "--len",
        "2048",
        "--enforce-eager",
        "--seed=1",
        "--port",
        "{port}",
        "two 3B",
        "{{x}",
        "0,1",
        "1",
    ];
    assert_eq!(process.command, wanted);
    let plan = plan_of(&deployed(command), &[]).unwrap();
    let asked = plan.study.conditions[4].spec.model.as_deref();
    assert_eq!(asked, Some("meta-llama/Llama-3.2-3B-Instruct"));
}

#[test]
fn the_examples_can_be_planned() {
    let vllm = include_str!("../../../../../examples/matrix-vllm.toml");
    let plan = plan_of(vllm, &[]).unwrap();
    assert_eq!(plan.study.conditions.len(), 25);
    assert_eq!((matrix(&plan).levels.len(), plan.notes.len()), (3, 0), "{:?}", plan.notes);
    let TargetSpec::Deployed(first) = &plan.study.conditions[0].spec.target else {
        panic!("nothing is put up")
    };
    assert_eq!(first.environment.set["CUDA_VISIBLE_DEVICES"], "0");
    let DeploymentHow::Process(process) = &first.how else { panic!("no process") };
    assert_eq!(process.command.last().unwrap(), "1", "a flag that is off is no word");
    let commands = include_str!("../../../../../examples/matrix-commands.toml");
    assert_eq!(plan_of(commands, &[]).unwrap().study.conditions.len(), 24);
    let DeploymentHow::Commands(first) = how(commands, 0) else { panic!("no commands") };
    assert!(first.up.contains("model=meta-llama/Llama-3.2-3B-Instruct "), "{}", first.up);
    assert!(first.url.contains("http://{{.status"), "a brace is read again: {}", first.url);
    let transformers = include_str!("../../../../../examples/matrix-transformers.toml");
    let DeploymentHow::Process(first) = how(transformers, 0) else { panic!("no process") };
    assert_eq!(first.command.last().unwrap(), "--cb-use-cuda-graph");
    assert_eq!(plan_of(transformers, &[]).unwrap().study.conditions.len(), 4);
}

#[test]
fn what_a_shell_reads_is_quoted_and_braces_stay_themselves() {
    let text = deployed(
        "up = \"put {label} --name {name} {flags} {value:devices}\"\nurl = \"echo {port}\"\n\
         down = \"rm {preset}\"",
    );
    let hostile = text.replace("label = \"3B\"", "label = \"a {b}; rm '$x'\"");
    let DeploymentHow::Commands(commands) = how(&hostile, 0) else { panic!("no commands") };
    let words = shlex::split(&commands.up).unwrap();
    assert_eq!(words[1], "a {{b}; rm '$x'", "{}", commands.up);
    assert_eq!(words[2..], ["--name", "{name}", "--enforce-eager", "--seed=1", "0,1"]);
    let quoted = hostile.replace("put {label}", "put '{label}'");
    assert_refused(&quoted, &[], &["deploy.up", "{label}", "already in quotes"]);
    let harmless = text.replace("put {label}", "put '{label}'");
    assert!(plan_of(&harmless, &[]).is_ok());
}

#[test]
fn placeholders_without_a_meaning_are_refused_at_their_line() {
    let refused = |placeholder: &str, words: &[&str]| {
        let text = deployed(&format!("command = [\"x\", \"{placeholder}\", \"{{port}}\"]"));
        assert_refused(&text, &[], words);
    };
    refused("{modle}", &["test.toml:", "deploy.command", "{modle}", "{model}"]);
    refused("{flag:sed}", &["{flag:sed}", "enforce-eager, lazy, seed"]);
    refused("{value:devices2}", &["{value:devices2}", "`one`"]);
    refused("{strategy}", &["{strategy}", "no `strategies`"]);
}

#[test]
fn what_is_no_matrix_is_refused_by_its_place() {
    assert_refused("[matrix]\n", &[], &["no presets"]);
    assert_refused("[matrx]\n", &[], &["test.toml:1", "`matrix`"]);
    for (more, words) in [
        ("[[preset]]\ngpus = 2\n", &["preset 3 has no `name`"][..]),
        ("[[preset]]\nname = \"ONE\"\n", &["`ONE` is the name of preset 1 already"]),
        ("[[model]]\nname = \"x/3B\"\n", &["two models are called `3B`"]),
        ("[target]\nurl = \"http://h\"\n", &["deploys its servers"]),
        ("[workload]\nseed = 3\n", &["one seed"]),
        ("[sweep]\nrates = [1]\n", &["`concurrency` in [matrix]"]),
        ("[repeat]\nruns = 2\n", &["`repeat` in [matrix]"]),
        ("[engine]\ntp = 2\n[deploy]\ncommand = \"x {port}\"\n", &["choose one"]),
        ("[flags]\npreset = [1]\n", &["name of an axis"]),
        ("[flags]\nseed = []\n", &["no values"]),
        ("[[exclude]]\npreset = \"three\"\n", &["unknown preset `three`"]),
        ("[[exclude]]\nmodel = \"3B\"\n[[exclude]]\ncontext = [2048, 8192]\n", &["is excluded"]),
        ("[workload.by_context]\n4096 = { output_tokens = 7 }\n", &["`4096`", "2048, 8192"]),
        ("[workload.by_context]\n2048 = { output_token = 7 }\n", &["`output_tokens`"]),
        ("[[preset]]\nname = \"x\"\ngpus = 1\n", &["preset `x`", "`hardware` is not set"]),
        ("[[preset]]\nname = \"x\"\nengine = { hardware = \"h1000\" }\n", &["`h1000`"]),
        ("[engine]\nmax_model_len = 4096\n", &["test.toml:", "is 4096 here", "make it 2048"]),
        (
            "[[preset]]\nname = \"x\"\ngpus = 2\nengine = { hardware = \"h100\", tp = 1 }\n",
            &["`tp` is 1 here", "make it 2"],
        ),
    ] {
        assert_refused(&format!("{SMALL}{more}"), &[], words);
    }
    let spread = SMALL.replace("contexts", "strategies = [\"tensor\"]\ncontexts");
    assert_refused(&spread.replace("gpus = 1\n", ""), &[], &["`one` has no `gpus`"]);
    let two = SMALL.replace("contexts", "concurrency = 4\ncontexts");
    assert_refused(&two.replace("requests = 4", "rate = 4"), &[], &["two loads"]);
    let many = (0..5000).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    assert_refused(&format!("{SMALL}[flags]\nseed = [{many}]\n"), &[], &["more than 4096"]);
}

#[test]
fn the_schema_has_the_tables_of_an_experiment_and_its_own() {
    let document = schema();
    let properties = document["properties"].as_object().unwrap();
    for table in ["matrix", "preset", "model", "flags", "include", "exclude", "deploy", "workload"]
    {
        assert!(properties.contains_key(table), "{table}");
    }
    assert_eq!(document["additionalProperties"], Value::Bool(false));
    let preset = &properties["preset"]["items"]["properties"];
    assert!(preset["engine"]["properties"]["hardware"].is_object());
    assert!(properties["target"]["properties"].get("url").is_none());
    assert!(!properties.contains_key("sweep") && !properties.contains_key("repeat"));
}
