//! Virtual time: known answers, the same bytes every time, and pages that say what they are.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::fs;
use std::path::Path;

use inferometer_model::{Moment, Observations, Outcome};
use serde_json::Value;

use support::{latest_run, observations, output, text};

/// Simulates, and expects it to be valid.
fn simulate(folder: &Path, arguments: &[&str]) -> Value {
    let ran = output(&[&["simulate", "--quiet", "--json"], arguments].concat(), folder);
    assert_eq!(ran.status.code(), Some(0), "{}{}", text(&ran.stderr), text(&ran.stdout));
    serde_json::from_slice(&ran.stdout).unwrap()
}

fn journal(folder: &Path) -> Vec<u8> {
    fs::read(latest_run(folder).path().join("requests.journal")).unwrap()
}

fn ms(later: Moment, earlier: Moment) -> f64 {
    later.since(earlier).unwrap().as_secs_f64() * 1e3
}

fn ttfts(observations: &Observations) -> Vec<f64> {
    let records = observations.records.iter();
    records.map(|record| ms(record.reads[0].at(), record.sent.unwrap())).collect()
}

#[test]
fn the_same_experiment_gives_the_same_bytes() {
    let [one, two, other] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let load = ["--rate", "20", "--requests", "200", "--output-tokens", "uniform:4..40"];
    let arguments = [&load[..], &["--engine-step", "10ms"]].concat();
    simulate(one.path(), &arguments);
    simulate(two.path(), &arguments);
    assert!(journal(one.path()) == journal(two.path()), "journals differ");
    simulate(other.path(), &[&arguments[..], &["--seed", "2"]].concat());
    assert!(journal(one.path()) != journal(other.path()), "another seed is another run");
}

#[test]
fn a_physical_engine_gives_the_same_bytes_too() {
    let [one, two] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let arguments = ["--rate", "5", "--requests", "40", "--noise", "0.1"];
    for folder in [&one, &two] {
        let document = simulate(folder.path(), &arguments);
        assert!(document["run"]["simulated"]["profile"].is_string(), "{document}");
    }
    assert!(journal(one.path()) == journal(two.path()), "journals differ");
}

#[test]
fn repeated_runs_differ_by_their_noise_and_come_again_with_their_seed() {
    let times = |noise: &str, seed: &str| -> Vec<Value> {
        let folder = tempfile::tempdir().unwrap();
        let load = ["--concurrency", "4", "--requests", "16", "--repeat", "3", "--seed", seed];
        simulate(folder.path(), &[&load[..], &["--noise", noise]].concat());
        let set = std::fs::read_dir(folder.path().join("runs")).unwrap().next().unwrap().unwrap();
        let summary = |point: u32| -> Value {
            let file = set.path().join(format!("points/{point}/summary.json"));
            serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
        };
        (0..3).map(|point| summary(point)["metrics"]["e2e_ms"]["mean"].clone()).collect()
    };
    let noisy = times("0.3", "1");
    assert!(noisy[0] != noisy[1] && noisy[1] != noisy[2], "{noisy:?}");
    assert_eq!(noisy, times("0.3", "1"));
    let quiet = times("0", "1");
    assert!(quiet[0] == quiet[1], "nothing else differs here: {quiet:?}");
}

#[test]
fn a_simulated_run_verifies_and_says_what_it_is_on_every_page() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["simulate", "--engine-step", "20ms", "--requests", "100"];
    let ran = output(&arguments, folder.path());
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let page = support::words(&ran.stdout);
    assert!(page.starts_with("SIMULATED in virtual time: no server was measured."), "{page}");
    assert!(page.contains("· simulated") && page.contains("constant step of 20ms"), "{page}");
    assert!(!page.contains("calibrat") && !page.contains("client lag"), "{page}");
    let verified = output(&["verify", "latest", "--format", "vllm"], folder.path());
    assert_eq!(verified.status.code(), Some(0), "{}", text(&verified.stderr));
    let block = output(&[&arguments[..], &["--format", "vllm"]].concat(), folder.path());
    let block = text(&block.stdout);
    assert!(block.starts_with("SIMULATED") && block.contains("(simulated)"), "{block}");
    let document = simulate(folder.path(), &arguments[1..]);
    assert_eq!(document["run"]["simulated"]["profile"], "constant step of 20ms");
    assert_eq!(document["verdict"], "simulated");
    assert_eq!(document["server"]["dialect"], "vllm_v1", "{}", document["server"]);
    let keys: Vec<&Value> =
        document["warnings"].as_array().unwrap().iter().map(|found| &found["key"]).collect();
    assert!(keys.is_empty(), "{keys:?}");
}

#[test]
fn figures_add_up_to_what_was_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let load = ["--rate", "40", "--requests", "300", "--output-tokens", "uniform:4..40"];
    simulate(folder.path(), &[&load[..], &["--engine-step", "20ms"]].concat());
    let stored = fs::read(latest_run(folder.path()).path().join("summary.json")).unwrap();
    let document: Value = serde_json::from_slice(&stored).unwrap();
    let records = observations(folder.path()).records;
    let figures = &document["figures"];
    let sum = |column: &Value| -> u64 {
        column.as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).sum()
    };
    let course = &figures["course"];
    let tokens = records.iter().map(|record| record.usage.unwrap().completion_tokens.unwrap());
    assert_eq!(sum(&course["output_tokens"]), tokens.sum::<u64>());
    assert_eq!((sum(&course["ended_ok"]), sum(&course["ended_otherwise"])), (300, 0));
    let in_flight: f64 = records.iter().map(|r| ms(r.ending.at, r.sent.unwrap())).sum();
    let means = course["in_flight"].as_array().unwrap().iter();
    let means: f64 = means.map(|mean| mean.as_f64().unwrap()).sum();
    let drawn = means * course["step_ms"].as_f64().unwrap();
    assert!((drawn / in_flight - 1.0).abs() < 1e-9, "{drawn} of {in_flight}");
    let gaps: u64 = figures["gaps"]["columns"].as_array().unwrap().iter().map(sum).sum();
    assert_eq!(gaps, document["metrics"]["itl_ms"]["n"].as_u64().unwrap());
    let ttft = &figures["distributions"][0];
    assert_eq!((&ttft["metric"], ttft["points"][0][0].as_f64()), (&"ttft".into(), Some(0.0)));
    // The chart is of the steady part, as the headline is.
    let fastest = match document["steady"]["figures"]["ttft_ms"]["min"].as_f64() {
        Some(fastest) => fastest,
        None => ttfts(&observations(folder.path())).into_iter().fold(f64::MAX, f64::min),
    };
    assert!((ttft["points"][0][1].as_f64().unwrap() - fastest).abs() < 1e-9);
    assert_eq!(figures["requests"]["rows"].as_array().unwrap().len(), 40);
    let verified = output(&["verify", "latest"], folder.path());
    assert_eq!(verified.status.code(), Some(0), "{}", text(&verified.stderr));
}

#[test]
fn run_virtual_is_the_long_name() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--engine-step", "20ms", "--requests", "40"];
    simulate(folder.path(), &arguments);
    let short = journal(folder.path());
    let long = [&["run", "--virtual", "--quiet"], &arguments[..]].concat();
    assert_eq!(output(&long, folder.path()).status.code(), Some(0));
    assert!(short == journal(folder.path()), "journals differ");
}

/// Six in flight on an engine that holds two at a time, answers of five tokens: a request waits for
/// the two pairs before its own.
#[test]
fn a_closed_loop_is_arithmetic() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--engine-step", "10ms", "--max-num-seqs", "2", "--concurrency", "6"];
    let lengths = ["--requests", "600", "--input-tokens", "32", "--output-tokens", "5"];
    let document = simulate(folder.path(), &[&arguments[..], &lengths].concat());
    let steady = ttfts(&observations(folder.path()));
    for (number, ttft) in steady.iter().enumerate().skip(6) {
        assert!((ttft - 110.0).abs() < 0.01, "request {number} has a TTFT of {ttft} ms");
    }
    let throughput = document["metrics"]["output_throughput"]["value"].as_f64().unwrap();
    assert!((throughput - 200.0).abs() < 1.0, "two tokens every 10 ms, and {throughput} tok/s");
    let tpot = document["metrics"]["tpot_ms"]["mean"].as_f64().unwrap();
    assert!((tpot - 10.0).abs() < 1e-6, "{tpot}");
}

/// Users who think leave the engine idle meanwhile.
#[test]
fn users_who_think_come_back_that_much_later() {
    let folder = tempfile::tempdir().unwrap();
    let closed = ["--engine-step", "10ms", "--concurrency", "1", "--think-time", "500ms"];
    simulate(
        folder.path(),
        &[&closed[..], &["--requests", "40", "--output-tokens", "10"]].concat(),
    );
    let records = observations(folder.path()).records.into_held();
    for pair in records.windows(2) {
        let gap = ms(pair[1].sent.unwrap(), pair[0].sent.unwrap());
        assert!((gap - 600.0).abs() < 0.001, "{gap}");
    }
}

#[test]
fn later_turns_find_the_earlier_ones_in_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let talk = ["--turns", "4", "--input-tokens", "64", "--output-tokens", "32"];
    let rest = ["--engine-step", "10ms", "--concurrency", "3", "--requests", "60"];
    let document = simulate(folder.path(), &[&talk[..], &rest].concat());
    for record in &observations(folder.path()).records {
        let usage = record.usage.unwrap();
        let turn = u64::from(record.asked.turn);
        assert_eq!(usage.prompt_tokens, Some(64 + turn * 96), "turn {turn}");
        // All but the last token of what was said before, in whole blocks of sixteen.
        assert_eq!(usage.cached_tokens, Some((turn * 96).saturating_sub(1) / 16 * 16));
    }
    assert_eq!(document["turns"].as_array().unwrap().len(), 4);
    let without = [&talk[..], &rest, &["--enable-prefix-caching=false"]].concat();
    simulate(folder.path(), &without);
    let records = observations(folder.path()).records;
    assert!(records.iter().all(|record| record.usage.unwrap().cached_tokens == Some(0)));
}

/// One slot, one token, constant steps: what waits is an M/D/1 queue, whose mean wait is
/// ρ/(2(1-ρ)) of a step. The interval is of batch means, as neighbours wait for the same.
#[test]
fn poisson_arrivals_wait_as_md1_says() {
    const STEP_MS: f64 = 10.0;
    for (rate, load) in [("50", 0.5_f64), ("80", 0.8)] {
        let folder = tempfile::tempdir().unwrap();
        let engine = ["--engine-step", "10ms", "--max-num-seqs", "1"];
        let lengths = ["--input-tokens", "16", "--output-tokens", "1"];
        let open = ["--rate", rate, "--requests", "20000"];
        simulate(folder.path(), &[&engine[..], &lengths, &open].concat());
        let waits: Vec<f64> =
            ttfts(&observations(folder.path())).iter().map(|ttft| ttft - STEP_MS).collect();
        let batches: Vec<f64> =
            waits.chunks(1_000).map(|batch| batch.iter().sum::<f64>() / 1_000.0).collect();
        let n = batches.len() as f64;
        let mean = batches.iter().sum::<f64>() / n;
        let variance = batches.iter().map(|batch| (batch - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let error = (variance / n).sqrt();
        let wanted = load / (2.0 * (1.0 - load)) * STEP_MS;
        // Four standard errors.
        assert!((mean - wanted).abs() < 4.0 * error, "{mean} ± {error} ms instead of {wanted}");
    }
}

#[test]
fn a_run_by_time_ends_and_drains_as_a_real_one() {
    let folder = tempfile::tempdir().unwrap();
    let load = ["--concurrency", "4", "--duration", "2s", "--output-tokens", "1000"];
    let engine = ["--engine-step", "10ms", "--drain-timeout", "3s"];
    let ran = output(&[&["simulate", "--quiet"], &load[..], &engine].concat(), folder.path());
    assert_eq!(ran.status.code(), Some(4), "nothing can end in time: {}", text(&ran.stderr));
    let observations = observations(folder.path());
    assert_eq!(observations.records.len(), 4);
    for record in &observations.records {
        assert_eq!(record.ending.outcome, Outcome::Cancelled);
        assert_eq!(record.ending.at, Moment::from_nanos(5_000_000_000));
    }
}

#[test]
fn what_a_cap_holds_back_at_the_end_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let load = ["--rate", "50", "--max-concurrency", "1", "--duration", "4s"];
    let engine = ["--engine-step", "10ms", "--output-tokens", "10"];
    let ran = output(&[&["simulate", "--quiet"], &load[..], &engine].concat(), folder.path());
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let observations = observations(folder.path());
    // A request every 100 ms.
    assert!((39..=41).contains(&observations.records.len()), "{}", observations.records.len());
    assert!(100 < observations.not_sent_count());
}

#[test]
fn impatient_clients_leave_as_they_would() {
    let folder = tempfile::tempdir().unwrap();
    let load = ["--concurrency", "2", "--requests", "40", "--output-tokens", "20"];
    let engine = ["--engine-step", "100ms", "--max-num-seqs", "1"];
    let limits = ["--first-token-timeout", "1s"];
    let ran =
        output(&[&["simulate", "--quiet"], &load[..], &engine, &limits].concat(), folder.path());
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let observations = observations(folder.path());
    let late = observations
        .records
        .iter()
        .filter(|record| record.ending.outcome == Outcome::TimeoutFirstToken);
    let waited: Vec<f64> = late.map(|it| ms(it.ending.at, it.sent.unwrap())).collect();
    assert!(10 < waited.len() && waited.iter().all(|wait| (wait - 1_000.0).abs() < 1e-6));
    let total = ["--total-timeout", "1s", "--idle-timeout", "1s"];
    let rest = [&["simulate", "--quiet"], &load[..], &engine, &total].concat();
    output(&rest, folder.path());
    let records = support::observations(folder.path()).records;
    assert!(records.iter().all(|record| record.ending.outcome == Outcome::TimeoutTotal));
}

#[test]
fn files_in_order_share_an_engine_and_its_cache() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, more: &str| {
        let experiment = format!(
            "[workload]\ninput_tokens = 64\noutput_tokens = 4\n{more}\n[load]\nrequests = 40\n\
             [engine]\nstep = \"10ms\"\n"
        );
        fs::write(folder.path().join(name), experiment).unwrap();
    };
    file("a.toml", "seed = 1");
    file("b.toml", "seed = 2");
    let cached = |document: &Value| document["workload"]["audit"]["cache"]["share"].as_f64();
    let runs = simulate(folder.path(), &["a.toml", "b.toml"]);
    let runs = runs.as_array().unwrap();
    assert_eq!(runs.len(), 2);
    assert_eq!([cached(&runs[0]), cached(&runs[1])], [Some(0.0), Some(0.0)]);
    let ran = output(&["simulate", "-q", "--json", "a.toml", "a.toml"], folder.path());
    let again: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(cached(&again[1]), Some(0.75), "three of four blocks; the last is computed");
    file("c.toml", "seed = 3");
    let other = fs::read_to_string(folder.path().join("c.toml")).unwrap().replace("10ms", "20ms");
    fs::write(folder.path().join("c.toml"), other).unwrap();
    let refused = output(&["simulate", "a.toml", "c.toml"], folder.path());
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("[engine] tables differ"), "{}", text(&refused.stderr));
}

#[test]
fn without_records_the_figures_are_the_same_and_nothing_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--rate", "30", "--requests", "2000", "--engine-step", "10ms"];
    let told = simulate(folder.path(), &[&arguments[..], &["--records", "none"]].concat());
    assert!(!folder.path().join("runs").exists());
    let summary = simulate(folder.path(), &arguments);
    for metric in ["ttft_ms", "tpot_ms", "itl_ms", "e2e_ms"] {
        for statistic in ["mean", "p50", "p99"] {
            let of = |times: &Value| times[metric][statistic].as_f64().unwrap();
            let (told, measured) = (of(&told), of(&summary["metrics"]));
            assert!((told - measured).abs() <= measured * 0.01, "{metric} {statistic}: {told}");
        }
    }
    assert_eq!(told["outcomes"]["ok"], 2000);
    assert_eq!(told["preemptions"], 0);
    let page =
        output(&[&["simulate", "--records", "none"], &arguments[..]].concat(), folder.path());
    assert!(text(&page.stdout).starts_with("SIMULATED in virtual time"), "{}", text(&page.stdout));
}

#[test]
fn a_warm_up_is_played_before_and_keeps_its_prompts_to_itself() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--engine-step", "10ms", "--requests", "40", "--warm-up", "5"];
    let document = simulate(folder.path(), &arguments);
    assert_eq!(document["run"]["warm_up"]["ok"], 5);
    assert_eq!(document["scheduled"], 40);
    assert_eq!(document["workload"]["audit"]["cache"]["share"], 0.0);
}

#[test]
fn a_prompt_beyond_the_model_is_refused_as_by_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let engine = ["--engine-step", "10ms", "--max-model-len", "100", "--requests", "40"];
    let ran = output(&[&["simulate", "--quiet"], &engine[..]].concat(), folder.path());
    assert_eq!(ran.status.code(), Some(4));
    let records = observations(folder.path()).records;
    assert!(records.iter().all(|record| record.ending.outcome == Outcome::HttpError));
    assert!(records.iter().all(|record| record.head.unwrap().status == 400));
}

#[test]
fn a_url_in_the_file_is_not_asked() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = "[target]\nurl = \"http://127.0.0.1:1\"\n[load]\nrequests = 40\n";
    fs::write(folder.path().join("e.toml"), experiment).unwrap();
    simulate(folder.path(), &["e.toml", "--engine-step", "10ms"]);
    let refused = output(&["simulate", "--api", "embeddings"], folder.path());
    assert_eq!(refused.status.code(), Some(2));
}

/// The other program asks its first prompt before a run, so that one is known already.
#[test]
fn vllm_random_needs_no_words_and_warms_up_with_its_first_prompt() {
    let folder = tempfile::tempdir().unwrap();
    let source = ["--source", "vllm-random", "--tokenizer", "vocabulary:131072,1000"];
    let lengths = ["--input-tokens", "128", "--output-tokens", "4", "--requests", "40"];
    let engine = ["--engine-step", "10ms", "--warm-up", "3"];
    simulate(folder.path(), &[&source[..], &lengths, &engine].concat());
    let cached = observations(folder.path())
        .records
        .into_held()
        .into_iter()
        .map(|record| record.usage.and_then(|usage| usage.cached_tokens).unwrap());
    let cached: Vec<u64> = cached.collect();
    assert_eq!(cached[0], 112, "seven of eight blocks; the last is computed");
    assert!(cached[1..].iter().all(|tokens| *tokens == 0), "{cached:?}");
    let refused = output(&[&["run"], &source[..]].concat(), folder.path());
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("simulate the run"), "{}", text(&refused.stderr));
}
