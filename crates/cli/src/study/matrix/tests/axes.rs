//! What is varied: what a cell decides itself, what makes no difference, and what is written twice.

use super::{SMALL, assert_refused, deployed, matrix, names, plan_of, read, resolve};
use inferometer_model::study::Level;

use crate::arguments::MatrixArguments;

fn warnings(text: &str) -> String {
    plan_of(text, &[]).unwrap().warnings.join("\n")
}

#[test]
fn what_a_cell_decides_is_no_flag_of_the_embedded_engine() {
    for flag in ["tp", "pp", "max_model_len", "max-model-len", "hardware", "profile", "model"] {
        let text = format!("{SMALL}[flags]\n{flag} = [1]\n");
        assert_refused(&text, &[], &["test.toml:", flag, "cannot be a flag"]);
    }
    let own = deployed("command = \"serve {model} {context} {preset} {flag:tp} {port}\"");
    assert!(plan_of(&own.replace("seed = [1]", "tp = [1, 2]"), &[]).is_ok());
}

#[test]
fn an_axis_that_no_server_heeds_is_named() {
    let whole = "command = \"serve {model} {context} {preset} {port}\"";
    assert!(!warnings(&deployed(whole)).contains("deploy the same server"));
    let found = warnings(&deployed(&whole.replace("{context} ", "")));
    assert!(found.contains("8 cells") && found.contains("differ by context alone"), "{found}");
    assert!(found.contains("put {context} into [deploy]"), "{found}");
    let varied = deployed(whole).replace("seed = [1]", "seed = [1, 2]");
    let found = warnings(&varied);
    assert!(found.contains("by seed alone") && found.contains("{flag:seed}"), "{found}");
    let twins = SMALL.replace("gpus = 2", "gpus = 1");
    assert!(warnings(&twins).contains("by preset alone"));
    // This has its note.
    let spread = SMALL.replace("contexts", "strategies = [\"tensor\", \"pipeline\"]\ncontexts");
    assert!(!warnings(&spread).contains("deploy the same server"), "{}", warnings(&spread));
}

#[test]
fn speed_in_virtual_time_is_noted() {
    let text = format!("{SMALL}[flags]\nspeed = [1, 2]\n");
    let of = |virtual_time| {
        let arguments = MatrixArguments { virtual_time, ..MatrixArguments::default() };
        resolve(&read(&text, &arguments).unwrap(), &arguments).unwrap().notes.join("\n")
    };
    assert!(of(true).contains("virtual time has no speed"));
    assert_eq!(of(false), "");
}

#[test]
fn values_are_written_once_and_are_some() {
    let with = |contexts: &str| SMALL.replace("contexts = [2048, 8192]", contexts);
    assert_refused(&with("contexts = []"), &[], &["test.toml:3", "`contexts` has no values"]);
    assert_refused(&with("strategies = []"), &[], &["`strategies` has no values"]);
    let twice = with("contexts = [2048, 8192, 2048]");
    assert_refused(&twice, &[], &["test.toml:3", "`matrix.contexts` has 2048 twice"]);
    assert_refused(&format!("{SMALL}[flags]\nseed = [1, 1]\n"), &[], &["has 1 twice"]);
    for number in ["nan", "-inf"] {
        let text = SMALL.replace("gpus = 1", &format!("gpus = 1\nprice_per_hour = {number}"));
        assert_refused(&text, &[], &["test.toml:8", "price_per_hour", "must be a number"]);
    }
}

#[test]
fn a_name_that_nobody_knows_is_told_with_its_line() {
    let text = SMALL.replacen("hardware = \"h100\"", "hardware = \"h1000\"", 1);
    assert_refused(&text, &[], &["test.toml:8", "`h1000`"]);
    let text = SMALL.replace("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-9");
    assert_refused(&text, &[], &["test.toml:20", "`meta-llama/Llama-9`"]);
    let text = SMALL.replace("label = \"3B\"", "engine = { model = \"llama-33\" }");
    assert_refused(&text, &[], &["test.toml:17", "`llama-33`"]);
}

#[test]
fn notes_and_warnings_are_of_the_cells_that_were_asked_for() {
    let spread = SMALL.replace("contexts", "strategies = [\"tensor\", \"pipeline\"]\ncontexts");
    let spread = spread.replace("gpus = 2", "gpus = 2\nprice_per_hour = 2.0");
    let all = plan_of(&spread, &[]).unwrap();
    assert!(all.notes.join("\n").contains("measured twice: one"));
    assert!(all.warnings.join("\n").contains("not all presets have a price"));
    let some = plan_of(&spread, &["preset=two"]).unwrap();
    assert_eq!(some.notes, ["8 of 16 cells are selected"]);
    assert!(!some.warnings.join("\n").contains("price"));
}

#[test]
fn a_context_too_short_for_the_workload_is_told() {
    let text = format!("{SMALL}[workload]\ninput_tokens = 2000\noutput_tokens = 100\n");
    let found = warnings(&text);
    assert!(found.contains("2048 (needed: 2100)") && !found.contains("8192 ("), "{found}");
    let other = "[workload.by_context]\n2048 = { output_tokens = 48 }\n";
    assert!(!warnings(&format!("{text}{other}")).contains("needed"));
}

#[test]
fn loads_are_chosen_for_all_cells_alike() {
    let text = SMALL.replace("contexts", "concurrency = [1, 10]\ncontexts");
    let plan = plan_of(&text, &["preset=one,concurrency=10"]).unwrap();
    assert_eq!(matrix(&plan).levels, [Level::Concurrency(10.try_into().unwrap())]);
    assert_eq!(names(&plan).len(), 4);
    assert_refused(&text, &["concurrency=2"], &["unknown value of concurrency `2`", "1, 10"]);
    assert_refused(&text, &["concurrency=1", "preset=one"], &["the same loads"]);
    assert_refused(SMALL, &["concurrency=1"], &["unknown axis `concurrency`"]);
}

#[test]
fn a_set_stays_small_enough_to_be_read() {
    let seeds: Vec<String> = (0..400).map(|seed| seed.to_string()).collect();
    let many = format!("{SMALL}[flags]\nmax_num_seqs = [{}]\n", seeds.join(", "));
    let loads = many.replace("contexts", "concurrency = [1, 2]\ncontexts");
    assert_refused(&loads, &[], &["3,200 cells at 2 loads", "6400 runs", "--only"]);
}
