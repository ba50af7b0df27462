//! What people have in their fingers: flags and commands of other tools, numbers as they are written,
//! configuration, and pages that fit a terminal.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use support::{Engine, inferometer, latest_run, output, text};

fn json(ran: &Output) -> Value {
    let shown = text(&ran.stderr);
    assert!(ran.status.success(), "{shown}");
    serde_json::from_slice(&ran.stdout).unwrap()
}

#[track_caller]
fn refused(folder: &Path, words: &[&str], parts: &[&str]) {
    let ran = output(words, folder);
    let said = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(2), "{words:?}: {said}");
    for part in parts {
        assert!(said.contains(part), "{words:?} lacks {part:?}: {said}");
    }
    for bad in ["invalid digit", "os error"] {
        assert!(!said.contains(bad), "{said}");
    }
}

#[test]
fn the_flags_of_other_tools_are_aliases() {
    let engine = Engine::start(&["--ttft", "1ms", "--gap", "1ms"]);
    let folder = tempfile::tempdir().unwrap();
    let (at, url) = (folder.path(), engine.url());
    let closed = "-c 2 -n 6 -m paced --isl 8 --osl 4 -o elsewhere --label first --json -q";
    let words: Vec<&str> = ["run", "--url", &url].into_iter().chain(closed.split(' ')).collect();
    let found = json(&output(&words, at));
    assert_eq!(found["run"]["load"]["concurrency"], 2, "{}", found["run"]["load"]);
    assert_eq!(found["attempted"], 6);
    assert!(at.join("elsewhere").is_dir(), "-o is the folder of runs");
    assert_eq!(found["run"]["metadata"]["label"], "first");
    for (rate, amount) in [("--request-rate", "100"), ("--rps", "0.1k"), ("-r", "1e2")] {
        let found = json(&output(
            &["run", &url, rate, amount, "--num-prompts", "5", "--osl", "2", "--json", "-q"],
            at,
        ));
        assert_eq!(found["run"]["load"]["rate"]["per_s"], 100.0, "{rate}");
        assert_eq!(found["attempted"], 5);
    }
    let plan = json(&output(&["plan", "--max-seconds", "30", "--rate", "2", "--json"], at));
    assert!(plan.to_string().contains("30"), "{plan}");
    refused(at, &["run", &url, "--url", "http://other:1"], &["two servers", "sweep --target"]);
    refused(at, &["run", "--max-seconds", "3", "--duration", "3s"], &["cannot be used with"]);
}

#[test]
fn a_file_and_a_url_stand_beside_each_other() {
    let engine = Engine::start(&["--ttft", "1ms", "--gap", "1ms"]);
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let file =
        "[load]\nrequests = 3\n[workload]\noutput_tokens = 2\n[metadata]\ngpu = \"8x MI325X\"\n";
    std::fs::write(at.join("e.toml"), file).unwrap();
    for places in [["e.toml", &engine.url()], [&engine.url(), "e.toml"]] {
        let found = json(&output(&["run", places[0], places[1], "--json", "-q"], at));
        assert_eq!(found["attempted"], 3);
        assert_eq!(found["run"]["target"], engine.url());
    }
    // Without the server, the engine would be stored as that hardware.
    refused(
        at,
        &["run", "e.toml"],
        &["e.toml:6: `metadata.gpu` describes a server", "add the URL"],
    );
    refused(at, &["run", "e.toml", "e.toml"], &["both experiment files"]);
}

#[test]
fn numbers_are_read_as_people_write_them() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (typed, wanted) in [("2k", 2_000), ("1_500", 1_500), ("1,000", 1_000), ("0.5k", 500)] {
        let plan = json(&output(&["plan", "-n", typed, "--isl", "8", "--json"], at));
        assert_eq!(
            plan["requests"]["count"].as_u64().or(plan["requests"].as_u64()),
            Some(wanted),
            "{plan}"
        );
    }
    let accepted = "write it as 8, 1000, 1_000, 2k or 1.5m";
    refused(at, &["run", "--profile", "h200x", "--dry-run"], &["unknown profile `h200x`"]);
    let ran = output(&["run", "--profile", "h200x"], at);
    assert!(!text(&ran.stderr).contains("seed"), "{}", text(&ran.stderr));
    refused(at, &["run", "--requests", "ten"], &["'ten' for '--requests", accepted]);
    refused(at, &["run", "--seed", "abc"], &["'abc' for '--seed", accepted]);
    refused(at, &["run", "--requests", "1.5"], &["--requests", accepted]);
    refused(at, &["run", "--duration", "soon"], &["--duration", "1h30m"]);
    refused(at, &["run", "--burstiness", "x"], &["--burstiness", "write a number"]);
    refused(at, &["run", "nothing.toml"], &["nothing.toml: there is no such file"]);
    refused(at, &["run", "--dataset", "nothing"], &["nothing", "there is no such file"]);
    let sweep = ["sweep", "--virtual", "--profile", "h100-llama-3.1-8b", "--dry-run"];
    let levels = ["--rates", "1,2,inf", "--duration", "90s"];
    let ran = output(&[&sweep[..], &levels[..]].concat(), at);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    assert!(text(&ran.stdout).contains("180"), "{}", text(&ran.stdout));
}

#[test]
fn what_other_tools_are_told_is_translated() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let pasted =
        "guidellm benchmark --target http://h:8000 --rate-type concurrent --rate 4 --max-seconds 9";
    let words: Vec<&str> = pasted.split(' ').collect();
    let wanted = "hint: write: inferometer run http://h:8000 --concurrency 4 --duration 9s";
    refused(at, &words, &["`guidellm` is a program of its own", wanted]);
    refused(at, &["run", "--vus", "3"], &["`--vus` (k6): --concurrency VALUE"]);
    for (words, wanted) in [
        ("runs --model llama", "filter with: inferometer runs llama"),
        ("runs --model=llama", "filter with: inferometer runs llama"),
        ("report --model x", "belongs to `inferometer run`"),
        ("calibrate --concurrency 4", "belongs to `inferometer run`"),
        ("engine --concurrency 4", "belongs to `inferometer run`"),
        ("require --vus 3", "belongs to `inferometer run`"),
        ("runs --rate 4", "belongs to `inferometer run`"),
        ("suite --scenario x", "`inferometer suite -h`"),
        ("run --max-tokens 10", "did you mean --output-tokens?"),
        ("run --qps 4", "did you mean --rate?"),
        ("run --users 4", "did you mean --concurrency?"),
        ("run --key k", "did you mean --api-key-file?"),
        ("run -H a:b", "did you mean --header?"),
        ("run -t 4", "did you mean --duration or --total-timeout?"),
        ("run -d 4", "did you mean --duration or --dataset?"),
        ("run -p hi", "did you mean --prompt?"),
        ("rnu", "did you mean: inferometer run\n"),
        ("benchmark --url http://h:1", "write: inferometer run http://h:1"),
        ("run --set concurrency=4", "did you mean `load.concurrency`?"),
        ("vllm bench latency --model m", "not a load test of a server"),
        ("explain qps", "`request_throughput`"),
        ("explain output_tps", "`output_throughput`"),
        ("explain sweet", "sweet spot"),
    ] {
        let typed: Vec<&str> = words.split(' ').collect();
        let ran = output(&typed, at);
        let shown = text(&ran.stdout) + &text(&ran.stderr);
        assert!(shown.contains(wanted), "{words}: {shown}");
        assert!(!shown.contains("VALUE"), "{words}: {shown}");
        assert!(words.starts_with("explain") || ran.status.code() == Some(2), "{words}");
    }
    refused(at, &["run", "--request-count", "3"], &["--requests VALUE"]);
    refused(at, &["run", "--concurency", "3"], &["did you mean --concurrency?"]);
    refused(at, &["sweep", "--rate", "1,2,4"], &["write: --rates 1,2,4"]);
    refused(at, &["run", "-c", "1,2,4"], &["inferometer sweep --concurrencies 1,2,4"]);
    refused(at, &["http://localhost:8000"], &["inferometer run http://localhost:8000"]);
    refused(at, &["ls"], &["inferometer runs"]);
    let secret = ["aiperf", "profile", "-m", "M", "--api-key", "sk-verysecret1234567890"];
    let ran = output(&secret, at);
    assert!(!text(&ran.stderr).contains("sk-verysecret"), "{}", text(&ran.stderr));
    for (word, wanted) in
        [("throughput", "output_throughput"), ("latency", "ttft"), ("concurrency", "concurrency")]
    {
        let ran = output(&["explain", word], at);
        assert!(ran.status.success() && text(&ran.stdout).contains(wanted), "{word}");
    }
}

/// A command in a folder with a configuration of its own.
fn configured(folder: &Path, words: &[&str]) -> Command {
    let mut command = inferometer();
    command.env_remove("INFEROMETER_NO_CONFIG").env("HOME", "/nonexistent");
    command.env("XDG_CONFIG_HOME", folder.join("user"));
    command.args(words).current_dir(folder);
    command
}

#[test]
fn values_are_found_and_say_where_they_come_from() {
    let folder = tempfile::tempdir().unwrap();
    let (at, inner) = (folder.path(), folder.path().join("inner"));
    std::fs::create_dir_all(at.join("user/inferometer")).unwrap();
    std::fs::create_dir_all(at.join(".git")).unwrap();
    std::fs::create_dir(&inner).unwrap();
    let user =
        "[load]\nconcurrency = 2\nrequests = 20\nwarm_up = 1\n[workload]\noutput_tokens = 4\n";
    std::fs::write(at.join("user/inferometer/config.toml"), user).unwrap();
    let project = "[load]\nconcurrency = 4\nrequests = 40\n[results]\nquiet = false\n";
    std::fs::write(at.join("inferometer.toml"), project).unwrap();
    std::fs::write(at.join("e.toml"), "[load]\nconcurrency = 16\n").unwrap();
    let shown = |words: &[&str], set: &[(&str, &str)]| {
        let mut command = configured(at, &["config", "show", "--json"]);
        command.args(words).current_dir(&inner).envs(set.iter().copied());
        let found = json(&command.output().unwrap());
        let settings = found["settings"].as_array().unwrap().clone();
        move |key: &str| {
            let setting = settings.iter().find(|it| it["key"] == key);
            setting.map(|it| (it["value"].clone(), it["from"].as_str().unwrap().to_owned()))
        }
    };
    let found = shown(&[], &[("INFEROMETER_CONCURRENCY", "8")]);
    assert_eq!(found("load.concurrency"), Some((8.into(), "INFEROMETER_CONCURRENCY".into())));
    let (value, from) = found("load.requests").unwrap();
    assert!(value == 40 && from.ends_with("inferometer.toml:3"), "{from}");
    let (value, from) = found("load.warm_up").unwrap();
    assert!(value == 1 && from.ends_with("config.toml:4"), "{from}");
    // A file that is named wins over the environment, and a flag over everything.
    let file = shown(&["../e.toml"], &[("INFEROMETER_CONCURRENCY", "8")]);
    assert_eq!(file("load.concurrency").unwrap().0, 16);
    let typed = shown(&["../e.toml", "-c", "32"], &[("INFEROMETER_CONCURRENCY", "8")]);
    assert_eq!(typed("load.concurrency"), Some((32.into(), "--concurrency".into())));
    // What is chosen above drops what excludes it below.
    let rate = shown(&["--rate", "5"], &[]);
    assert_eq!(rate("load.concurrency"), None);
    assert_eq!(
        shown(&["--no-config"], &[("INFEROMETER_CONCURRENCY", "8")])("load.concurrency"),
        None
    );
    let ignored =
        configured(&inner, &["config", "show"]).env("INFEROMETER_NO_CONFIG", "1").output();
    let ignored = text(&ignored.unwrap().stderr);
    assert!(ignored.contains("because INFEROMETER_NO_CONFIG is set"), "{ignored}");
    let misspelt = configured(at, &["config", "show"]).env("INFEROMETER_CONCURENCY", "8").output();
    assert!(text(&misspelt.unwrap().stderr).contains("did you mean INFEROMETER_CONCURRENCY?"));
}

#[test]
fn a_run_says_what_configuration_changed_and_takes_its_results_flags() {
    let engine = Engine::start(&["--ttft", "1ms", "--gap", "1ms"]);
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let project = "[load]\nconcurrency = 3\nrequests = 6\n[workload]\noutput_tokens = 2\n\
                   [results]\nformat = \"json\"\noutput = \"kept\"\n";
    std::fs::write(at.join("inferometer.toml"), project).unwrap();
    let ran = configured(at, &["run", &engine.url()]).output().unwrap();
    let said = text(&ran.stderr);
    assert!(said.contains("using inferometer.toml: concurrency = 3, requests = 6"), "{said}");
    let found = json(&ran);
    assert_eq!(found["attempted"], 6);
    assert!(at.join("kept").is_dir());
    // A typed flag wins over both.
    let ran = configured(at, &["run", &engine.url(), "--full", "-n", "3", "-o", "typed", "-q"])
        .env("INFEROMETER_OUTPUT", "variable")
        .output()
        .unwrap();
    assert!(text(&ran.stdout).contains("Workload audit"), "{}", text(&ran.stdout));
    assert!(at.join("typed").is_dir() && !at.join("variable").exists());
    let wrong =
        configured(at, &["run", &engine.url()]).env("INFEROMETER_REQUESTS", "many").output();
    let said = text(&wrong.unwrap().stderr);
    assert!(said.contains("INFEROMETER_REQUESTS: invalid value 'many'"), "{said}");
}

#[test]
fn a_project_file_runs_no_command_and_gets_no_key() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let refused = |project: &str, words: &[&str], key: &str, wanted: &str| {
        std::fs::write(at.join("inferometer.toml"), project).unwrap();
        let ran = configured(at, words).env("OPENAI_API_KEY", key).output().unwrap();
        let said = text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{project}: {said}");
        assert!(said.contains(wanted) && !said.contains("sk-"), "{said}");
    };
    let run = ["run", "-n", "1"];
    refused("[deploy]\ncommand = [\"touch\", \"made\"]\n", &run, "", "`deploy` is not accepted");
    refused("[repeat]\nrestart = \"touch made\"\n", &run, "", "`repeat.restart` is not accepted");
    refused("[target]\nserver_info = \"touch made\"\n", &run, "", "server_info");
    refused("[target]\napi_key_file = \"key\"\n", &run, "", "api_key_file");
    refused("[workload]\nprompt_file = \"/etc/hostname\"\n", &run, "", "outside of the project");
    let elsewhere = "[target]\nurl = \"http://192.0.2.1:8000\"\n";
    refused(elsewhere, &run, "sk-mine", "a key or header of yours would be sent to it");
    let replica = "[target]\nurl = \"http://localhost:9\"\nreplica = [\"http://192.0.2.1:8000\"]\n";
    refused(replica, &run, "sk-mine", "a key or header of yours would be sent to it");
    assert!(!at.join("made").exists(), "a command was run");
}

#[test]
fn the_page_of_a_run_is_one_screen_and_the_report_is_written() {
    let engine = Engine::start(&["--ttft", "2ms", "--gap", "1ms"]);
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let ran = output(&["run", &engine.url(), "-n", "40", "-c", "4", "--osl", "8"], at);
    let page = text(&ran.stdout);
    let lines = page.lines().count();
    assert!((12..=36).contains(&lines), "{lines} lines:\n{page}");
    for wanted in ["TTFT", "ITL", "Output throughput", "report latest --open", "--full"] {
        assert!(page.contains(wanted), "{wanted}: {page}");
    }
    assert!(latest_run(at).path().join("report.html").is_file());
    let full = text(&output(&["verify", "latest", "--full"], at).stdout);
    assert!(full.contains("Workload audit") && lines < full.lines().count(), "{full}");
    let list = text(&output(&["engine", "--list"], at).stdout);
    let runs = text(&output(&["runs", "--sizes"], at).stdout);
    let matrix = text(&output(&["matrix", "r3", "--dry-run"], at).stdout);
    // A reason is there once, below the cells that it is about.
    assert!(matrix.lines().count() < 500 && matrix.contains("see [2]"), "{matrix}");
    assert!(matrix.contains("[2] cannot be deployed: "), "{matrix}");
    for line in [&page, &full, &list, &runs, &matrix].iter().flat_map(|page| page.lines()) {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
}

#[test]
fn latest_is_the_latest_that_a_command_can_use() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let sweep = ["sweep", "--virtual", "--profile", "h100-llama-3.1-8b", "-n", "4", "-q"];
    assert!(output(&[&sweep[..], &["--concurrencies", "1"]].concat(), at).status.success());
    let run = ["simulate", "--profile", "h100-llama-3.1-8b", "-n", "4", "-q", "--json"];
    let run = json(&output(&run, at));
    let exported = output(&["export", "latest", "--format", "vllm"], at);
    std::fs::write(at.join("vllm.json"), &exported.stdout).unwrap();
    assert!(output(&["import", "vllm.json", "-q"], at).status.success());
    let detailed = output(&["export", "latest", "--format", "vllm-detailed"], at);
    assert!(detailed.status.success(), "{}", text(&detailed.stderr));
    let recover = text(&output(&["recover", "latest"], at).stderr);
    assert!(recover.contains(run["run"]["id"].as_str().unwrap()), "the run: {recover}");
    let resumed = output(&["sweep", "--resume", "latest", "-q"], at);
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
}

#[test]
fn stored_runs_are_filtered_and_pruned() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let simulate = ["simulate", "--profile", "h100-llama-3.1-8b", "-n", "4", "-q"];
    for label in ["alpha", "beta"] {
        assert!(output(&[&simulate[..], &["--label", label]].concat(), at).status.success());
    }
    let count = |words: &[&str]| {
        let found = json(&output(&[&["runs", "--json"], words].concat(), at));
        found["runs"].as_array().unwrap().len()
    };
    assert_eq!(count(&[]), 2);
    assert_eq!(count(&["label=alpha"]), 1);
    assert_eq!(count(&["ALPHA", "h100"]), 1);
    assert_eq!(count(&["--kind", "sweep"]), 0);
    assert_eq!(count(&["--verdict", "invalid"]), 0);
    assert_eq!(count(&["--since", "1h"]), 2);
    assert_eq!(count(&["--before", "2020-01-01"]), 0);
    assert!(text(&output(&["runs"], at).stdout).contains("alpha"), "the label is shown");
    refused(at, &["runs", "prune"], &["no filter selects", "--before 30d"]);
    refused(at, &["runs", "--since", "yesterday"], &["--since", "2026-11-18"]);
    // Nothing is removed before somebody agrees.
    let ran = output(&["runs", "prune", "alpha"], at);
    assert!(text(&ran.stderr).contains("nothing was removed"), "{}", text(&ran.stderr));
    assert_eq!(count(&[]), 2);
    assert!(output(&["runs", "prune", "alpha", "--yes"], at).status.success());
    assert_eq!((count(&[]), count(&["beta"])), (1, 1));
    assert!(output(&["runs", "prune", "--keep", "1", "--yes"], at).status.success());
    assert_eq!(count(&[]), 1);
}

#[test]
fn what_is_running_is_never_pruned() {
    let engine = Engine::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut run = inferometer()
        .args(["run", &engine.url(), "-q", "--duration", "5m"])
        .current_dir(at)
        .spawn()
        .unwrap();
    let listed = || json(&output(&["runs", "--json"], at))["runs"].as_array().unwrap().clone();
    while listed().first().is_none_or(|run| run["state"] != "running") {
        assert_eq!(run.try_wait().unwrap(), None, "the run has ended");
        std::thread::yield_now();
    }
    let ran = output(&["runs", "prune", "--since", "1h", "--yes"], at);
    assert!(text(&ran.stderr).contains("nothing to remove"), "{}", text(&ran.stderr));
    assert_eq!(listed().len(), 1);
    run.kill().unwrap();
    run.wait().unwrap();
}
