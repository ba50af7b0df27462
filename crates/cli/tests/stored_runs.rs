//! A run is never lost: not by Ctrl-C, not by kill -9, not by a reader that leaves early.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use inferometer_analysis::summarize;
use inferometer_model::journal::RunStop;
use inferometer_model::outcome::Cause;
use inferometer_model::{Outcome, Records};
use inferometer_store::JournalReader;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use support::deployments::until_there;
use support::{Engine, inferometer, latest_run, observations, output, text};

/// A run of many slow requests, whose end nobody waits for.
fn start_long_run(engine: &Engine, folder: &Path) -> Child {
    inferometer()
        .args(["run", &engine.url(), "-q", "--requests", "1000", "--concurrency", "4"])
        .args(["--output-tokens", "20"])
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until the journal on disk holds this many entries.
fn wait_for_entries(run: &mut Child, folder: &Path, wanted: usize) {
    let runs = folder.join("runs");
    loop {
        let journal = std::fs::read_dir(&runs)
            .ok()
            .and_then(|mut entries| entries.next())
            .map(|entry| entry.unwrap().path().join("requests.journal"));
        let entries = journal
            .and_then(|path| JournalReader::open(&path).ok())
            .map_or(0, |reader| reader.take_while(Result::is_ok).count());
        if wanted <= entries {
            return;
        }
        assert_eq!(run.try_wait().unwrap(), None, "the run ended with {entries} entries");
        std::thread::yield_now();
    }
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

/// Faults: 85.
#[test]
fn kill_9_in_mid_run_leaves_a_run_that_recovers_and_adds_up() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "5ms", "--gap", "5ms"]);
    let mut run = start_long_run(&engine, folder.path());
    wait_for_entries(&mut run, folder.path(), 20);
    signal(&run, Signal::SIGKILL);
    run.wait().unwrap();

    let verified = output(&["verify", "latest"], folder.path());
    assert_eq!(verified.status.code(), Some(2));
    assert!(text(&verified.stderr).contains("recover"), "{}", text(&verified.stderr));

    let recovered = output(&["recover", "latest"], folder.path());
    assert!(recovered.status.success(), "{}", text(&recovered.stderr));
    assert!(text(&recovered.stdout).contains("partial"), "{}", text(&recovered.stdout));
    let observations = observations(folder.path());
    assert_eq!(observations.ending.stop, RunStop::Recovered);
    assert_eq!(observations.scheduled_count(), 1_000);
    let counts = observations.outcome_counts();
    assert!(0 < counts[&Outcome::Ok] && 0 < counts[&Outcome::NotSent], "{counts:?}");
    assert!(output(&["verify", "latest"], folder.path()).status.success());

    let again = output(&["recover", "latest"], folder.path());
    assert_eq!(again.status.code(), Some(2), "{}", text(&again.stderr));
}

/// Faults: 90.
#[test]
fn ctrl_c_once_drains_and_saves() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "5ms", "--gap", "5ms"]);
    let mut run = start_long_run(&engine, folder.path());
    wait_for_entries(&mut run, folder.path(), 20);
    signal(&run, Signal::SIGINT);
    let ended = run.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", text(&ended.stderr));
    let observations = observations(folder.path());
    assert_eq!(observations.ending.stop, RunStop::Drained);
    let counts = observations.outcome_counts();
    assert_eq!(counts[&Outcome::Cancelled], 0, "what was in flight could finish");
    assert!(0 < counts[&Outcome::NotSent]);
    assert!(text(&ended.stdout).contains("partial"));
}

/// Faults: 90.
#[test]
fn ctrl_c_twice_cuts_and_saves() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "5ms", "--gap", "400ms"]);
    let mut run = start_long_run(&engine, folder.path());
    wait_for_entries(&mut run, folder.path(), 4);
    signal(&run, Signal::SIGINT);
    // The stopping is in the journal before the second Ctrl-C, so the two cannot be taken for one.
    wait_for_entries(&mut run, folder.path(), 5);
    signal(&run, Signal::SIGINT);
    let ended = run.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130));
    let observations = observations(folder.path());
    assert_eq!(observations.ending.stop, RunStop::Cut);
    assert_eq!(observations.outcome_counts()[&Outcome::Cancelled], 4);
}

/// Faults: 90.
#[test]
fn sigterm_is_obeyed_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "5ms", "--gap", "5ms"]);
    let mut run = start_long_run(&engine, folder.path());
    wait_for_entries(&mut run, folder.path(), 12);
    signal(&run, Signal::SIGTERM);
    assert_eq!(run.wait_with_output().unwrap().status.code(), Some(143));
    assert!(latest_run(folder.path()).read_summary().unwrap().is_some());
}

/// Faults: 72.
#[test]
fn a_process_that_was_stopped_for_a_while_says_so_and_is_invalid() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "1ms", "--gap", "1ms"]);
    let mut run = start_long_run(&engine, folder.path());
    wait_for_entries(&mut run, folder.path(), 20);
    signal(&run, Signal::SIGSTOP);
    // The pause itself: from one second on a run is invalid.
    std::thread::sleep(Duration::from_millis(1_500));
    signal(&run, Signal::SIGCONT);
    let ended = run.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(4), "{}", text(&ended.stderr));
    let summary = latest_run(folder.path()).read_summary().unwrap().unwrap();
    let summary = inferometer_analysis::Summary::from_json_bytes(&summary).unwrap();
    assert!(summary.warnings.iter().any(|warning| warning.key == "loop-paused"));
    assert_eq!(observations(folder.path()).scheduled_count(), 1_000);
}

/// Faults: 73.
#[test]
fn a_run_is_saved_although_nobody_reads_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "1ms", "--gap", "1ms"]);
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    // As a terminal after Ctrl-S: not a byte more goes in.
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    while writer.write(&[b' '; 4_096]).is_ok() {}
    while writer.write(b" ").is_ok() {}
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
    let mut run = inferometer()
        .args(["run", &engine.url(), "-q", "--requests", "20", "--output-tokens", "4"])
        .current_dir(folder.path())
        .stdout(writer)
        .spawn()
        .unwrap();
    until_there(|| {
        let mut runs = std::fs::read_dir(folder.path().join("runs")).into_iter().flatten();
        runs.any(|run| run.unwrap().path().join("summary.json").exists())
    });
    assert_eq!(run.try_wait().unwrap(), None, "it waits to be read");
    assert_eq!(observations(folder.path()).records.len(), 20);
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    assert!(!said.trim().is_empty(), "the page came after all");
    assert!(matches!(run.wait().unwrap().code(), Some(0 | 4)));
}

/// Other programs' descriptors, inherited by ours, leave fewer than the limit promises.
/// Faults: 18.
#[test]
fn descriptors_that_run_out_are_our_fault_and_not_the_servers() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "200ms", "--gap", "1ms"]);
    let script = "ulimit -n 160; for i in {20..89}; do eval \"exec $i</dev/null\"; done; \
                  exec \"$0\" run \"$1\" -q --client-cores 1 --requests 80 --rate inf \
                  --output-tokens 4 --telemetry off";
    let ran = std::process::Command::new("bash")
        .args(["-c", script, env!("CARGO_BIN_EXE_inferometer"), &engine.url()])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(4), "{}", text(&ran.stderr));
    let observations = observations(folder.path());
    let counts = observations.outcome_counts();
    assert!(0 < counts[&Outcome::Ok] && 0 < counts[&Outcome::NotSent], "{counts:?}");
    assert_eq!(counts[&Outcome::Ok] + counts[&Outcome::NotSent], 80, "{counts:?}");
    let ours = observations.not_sent_because(Cause::ClientResource);
    assert_eq!(ours, counts[&Outcome::NotSent]);
}

/// A bound on the size of files is a disk that is full.
/// Faults: 83.
#[test]
fn a_disk_that_is_full_ends_the_run_and_what_was_written_is_recovered() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "1ms", "--gap", "1ms"]);
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$0\" run \"$1\" -q --requests 1000 \
                  --concurrency 4 --output-tokens 20";
    let ran = std::process::Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_inferometer"), &engine.url()])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let words = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(1), "{words}");
    assert!(words.contains("cannot append") && words.contains("more were waiting"), "{words}");
    assert!(words.contains("inferometer recover"), "{words}");
    let recovered = output(&["recover", "latest"], folder.path());
    assert!(recovered.status.success(), "{}", text(&recovered.stderr));
    let observations = observations(folder.path());
    assert_eq!(observations.scheduled_count(), 1_000);
    assert!(0 < observations.outcome_counts()[&Outcome::Ok]);
    assert!(output(&["verify", "latest"], folder.path()).status.success());
}

/// Faults: 87.
#[test]
fn a_changed_summary_and_a_flipped_bit_do_not_verify() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "1ms", "--gap", "1ms"]);
    let url = engine.url();
    let ran =
        output(&["run", &url, "-q", "--requests", "10", "--output-tokens", "4"], folder.path());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    assert!(output(&["verify", "latest"], folder.path()).status.success());

    let run = latest_run(folder.path());
    let summary = run.path().join("summary.json");
    let honest = std::fs::read_to_string(&summary).unwrap();
    let verdict =
        inferometer_analysis::Summary::from_json_bytes(honest.as_bytes()).unwrap().verdict;
    let forged = honest.replace(&format!("\"verdict\": \"{verdict}\""), "\"verdict\": \"invalid\"");
    std::fs::write(&summary, forged).unwrap();
    let verified = output(&["verify", "latest"], folder.path());
    assert_eq!(verified.status.code(), Some(4));
    assert!(text(&verified.stdout).contains("verdict"), "{}", text(&verified.stdout));
    std::fs::write(&summary, honest).unwrap();

    let journal = run.path().join("requests.journal");
    let mut bytes = std::fs::read(&journal).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&journal, bytes).unwrap();
    assert!(!output(&["verify", "latest"], folder.path()).status.success());
}

/// Faults: 92.
#[test]
fn a_summary_of_another_version_is_verified_by_its_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let ran = output(&["run", "--virtual", "--requests", "20", "-q"], folder.path());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let run = latest_run(folder.path());
    let change = |file: &str, change: &dyn Fn(&mut serde_json::Value)| {
        let path = run.path().join(file);
        let mut document = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        change(&mut document);
        std::fs::write(path, serde_json::to_vec(&document).unwrap()).unwrap();
        let verified = output(&["verify", "latest"], folder.path());
        (verified.status.code(), text(&verified.stdout))
    };
    let (code, said) = change("summary.json", &|summary| {
        summary["metrics"].as_object_mut().unwrap().remove("tpot_ms").unwrap();
        summary["checks"] = serde_json::json!([]);
    });
    assert_eq!(code, Some(4), "the same version must give the same bytes: {said}");
    assert!(said.contains("byte for byte"), "{said}");

    change("summary.json", &|it| {
        it["run"]["tool_version"] = "0.0.9".into();
        it["verdict"] = "degraded".into();
        it["metrics"]["ttft_ms"]["effective_n"] = 3.into();
        it["run"].as_object_mut().unwrap().remove("manifest_checksum").unwrap();
    });
    let (code, said) =
        change("manifest.json", &|it| it["environment"]["tool_version"] = "0.0.9".into());
    assert_eq!(code, Some(0), "an older version knew less and judged by other rules: {said}");
    assert!(said.contains("computed by version 0.0.9"), "{said}");

    let (code, said) = change("summary.json", &|it| it["metrics"]["ttft_ms"]["mean"] = 1.5.into());
    assert_eq!(code, Some(4), "a number was changed: {said}");
    assert!(said.contains("metrics.ttft_ms.mean differs"), "{said}");
}

/// Faults: 74.
#[test]
fn a_reader_that_leaves_early_does_not_cost_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "1ms", "--gap", "1ms"]);
    let mut run = inferometer()
        .args(["run", &engine.url(), "-q", "--requests", "4", "--output-tokens", "4"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(run.stdout.take());
    assert!(run.wait().unwrap().success());
    assert!(latest_run(folder.path()).read_summary().unwrap().is_some());
}

#[test]
fn runs_lists_what_is_stored_newest_first() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "1ms", "--gap", "1ms"]);
    let url = engine.url();
    for requests in ["2", "3"] {
        let ran = output(
            &["run", &url, "-q", "--requests", requests, "--output-tokens", "2"],
            folder.path(),
        );
        assert!(ran.status.success());
    }
    let listed = output(&["runs", "--json"], folder.path());
    let document: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    let oks: Vec<_> = runs.iter().map(|run| run["outcomes"]["ok"].as_u64().unwrap()).collect();
    assert_eq!(oks, [3, 2]);
    assert!(runs.iter().all(|run| run["state"] == "sealed" && run["verdict"].is_string()));
}

#[test]
fn a_simulated_run_is_marked_wherever_it_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "1ms", "--gap", "1ms"]);
    let load = ["-q", "--requests", "2", "--output-tokens", "2"];
    for target in [&["run", &engine.url()][..], &["simulate", "--engine-step", "5ms"]] {
        // A busy machine may make a run invalid, and it says so; it is stored anyway.
        let ran = output(&[target, &load].concat(), folder.path());
        assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    }
    let listed = output(&["runs", "--json"], folder.path());
    let document: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let runs = document["runs"].as_array().unwrap();
    let marks: Vec<_> = runs.iter().map(|run| run["simulated"].as_bool().unwrap()).collect();
    assert_eq!(marks, [true, false], "the newest first");
    let listed = output(&["runs"], folder.path());
    let table = text(&listed.stdout);
    let marked: Vec<bool> =
        table.lines().skip(1).map(|line| line.contains("  simulated")).collect();
    assert_eq!(marked, [true, false], "{table}");
    for (run, mark) in runs.iter().zip([" (simulated): ", ": "]) {
        let id = run["id"].as_str().unwrap();
        let verified = output(&["verify", id], folder.path());
        let line = text(&verified.stdout);
        assert!(line.starts_with(&format!("verified {id}{mark}2 records")), "{line}");
    }
}

#[test]
fn a_run_by_time_waits_for_its_last_requests_only_so_long() {
    let folder = tempfile::tempdir().unwrap();
    // The probe's four tokens take one and a half seconds; sixty would take half a minute.
    let engine = Engine::start(&["--ttft", "5ms", "--gap", "500ms"]);
    let url = engine.url();
    let ran = output(
        &["run", &url, "-q", "--duration", "300ms", "--concurrency", "2", "--output-tokens", "60"]
            .into_iter()
            .chain(["--drain-timeout", "200ms", "--json"])
            .collect::<Vec<_>>(),
        folder.path(),
    );
    let document: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(document["outcomes"]["cancelled"], 2, "{}", text(&ran.stderr));
    assert_eq!(document["run"]["stop"], "plan_done");
    let duration = document["window"]["duration_s"].as_f64().unwrap();
    assert!(duration < 10.0, "{duration} s");
    assert_eq!(ran.status.code(), Some(4), "nothing was ok");
}

#[test]
fn a_lost_summary_is_computed_again_and_a_lost_journal_costs_no_summary() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "1ms", "--gap", "1ms"]);
    let url = engine.url();
    let ran =
        output(&["run", &url, "-q", "--requests", "5", "--output-tokens", "4"], folder.path());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let run = latest_run(folder.path());
    let summary = run.path().join("summary.json");
    let journal = run.path().join("requests.journal");
    let honest = std::fs::read(&summary).unwrap();

    let manifest = run.path().join("manifest.json");
    let written = std::fs::read(&manifest).unwrap();
    std::fs::write(&manifest, "{").unwrap();
    let broken = output(&["verify", "latest"], folder.path());
    assert_eq!(broken.status.code(), Some(4));
    assert!(text(&broken.stderr).contains("manifest.json"), "{}", text(&broken.stderr));
    std::fs::write(&manifest, written).unwrap();

    std::fs::remove_file(&summary).unwrap();
    assert_eq!(output(&["verify", "latest"], folder.path()).status.code(), Some(4));
    assert!(output(&["recover", "latest"], folder.path()).status.success());
    assert_eq!(std::fs::read(&summary).unwrap(), honest, "the same bytes");

    let records = std::fs::read(&journal).unwrap();
    std::fs::write(&journal, [&records[..], b"seven b"].concat()).unwrap();
    assert_eq!(output(&["verify", "latest"], folder.path()).status.code(), Some(4));
    assert!(output(&["recover", "latest"], folder.path()).status.success(), "a torn tail is cut");
    assert!(output(&["verify", "latest"], folder.path()).status.success());
    assert_eq!(std::fs::read(&journal).unwrap(), records);

    for length in [0, 5, 10] {
        std::fs::write(&journal, &records[..length]).unwrap();
        assert!(!output(&["verify", "latest"], folder.path()).status.success());
        let refused = output(&["recover", "latest"], folder.path());
        assert!(!refused.status.success(), "{length}: {}", text(&refused.stdout));
        assert_eq!(std::fs::read(&summary).unwrap(), honest, "a good summary is never overwritten");
    }
}

#[test]
fn a_result_that_cannot_be_written_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else { return };
    let ran = inferometer()
        .args(["run", "--dry-run"])
        .current_dir(folder.path())
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(1));
    assert!(text(&ran.stderr).contains("could not be written"), "{}", text(&ran.stderr));
}

/// A summary does not depend on whether the records are in memory or read from the journal.
#[test]
fn the_records_of_a_long_run_give_the_same_summary_from_their_journal() {
    let folder = tempfile::tempdir().unwrap();
    let load =
        ["--rate", "20", "--requests", "400", "--output-tokens", "uniform:8..64", "--seed", "3"];
    let slos = ["--slo", "ttft<1s", "--slo", "tpot<50ms"];
    let ran = output(&[&["simulate", "-q"], &load[..], &slos].concat(), folder.path());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let run = latest_run(folder.path());
    let stored = run.read_holding(0).unwrap().observations;
    assert!(matches!(stored.records, Records::Stored(_)));
    assert_eq!(stored, run.read().unwrap().observations);
    let kept = run.read_summary().unwrap().unwrap();
    assert_eq!(text(&summarize(&stored).to_json_bytes()), text(&kept));
}
