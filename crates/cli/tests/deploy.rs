//! Servers that are put up for a measurement: our own engine as the command, and what goes wrong.

use crate::support;

use std::fs;
use std::path::PathBuf;

use inferometer_model::deployment::DepartureEnding;

use support::deployments::{
    SMALL, begun, by_shell, engine, engine_at_port, is_free, is_gone, manifest, number_in, port_of,
    run, the_set,
};
use support::{inferometer, latest_run, output, text};

#[test]
fn a_server_is_put_up_measured_and_taken_down() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &engine(), &["--serve-env", "SOME_TOKEN"]);
    let said = text(&ran.stderr);
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{said}");
    assert!(said.contains("generated a token") && said.contains("the server stopped"), "{said}");
    let directory = latest_run(folder.path());
    let manifest = manifest(&directory);
    let server = manifest.server.clone().unwrap();
    let deployment = server.deployment.unwrap();
    assert_eq!((deployment.kind.as_str(), deployment.restarts), ("process", 0));
    assert!(deployment.command.contains(&port_of(&manifest).to_string()), "{deployment:?}");
    assert!(server.start_command.unwrap().contains("engine --mode paced"));
    assert!(is_free(port_of(&manifest)), "no server is left behind");
    assert!(directory.path().join("server.log").exists(), "its words are kept beside the run");
    let strays = fs::read_dir(folder.path().join("runs")).unwrap().count();
    assert_eq!(strays, 1, "and nowhere else");
}

#[test]
fn a_new_server_for_each_of_five_repetitions_and_none_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &engine(), &["--repeat", "5"]);
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let set = the_set(folder.path());
    let records = set.deployments().unwrap();
    assert_eq!(records.len(), 5);
    for (number, record) in (0..).zip(&records) {
        let departure = record.departure.clone().unwrap();
        assert_eq!(record.facts.as_ref().unwrap().restarts, number);
        assert_ne!(departure.ending, DepartureEnding::Before, "{departure:?}");
        assert!(departure.port_closed && departure.left.is_empty(), "{departure:?}");
        assert!(set.deployment_log(0, number).exists());
        assert!(is_free(port_of(&manifest(&set.point(number)))));
    }
}

#[test]
fn levels_of_a_repetition_share_a_server_unless_each_run_wants_its_own() {
    for (renew, wanted) in [("each-repetition", 2), ("each-run", 4), ("never", 1)] {
        let folder = tempfile::tempdir().unwrap();
        let serve = engine();
        let words = ["sweep", "--serve", &serve, "--concurrencies", "1,2", "--repeat", "2"];
        let words = [&words[..], &["--requests", "4", "--output-tokens", "4", "--renew", renew]];
        let ran = output(&words.concat(), folder.path());
        assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
        let set = the_set(folder.path());
        let servers = (0..4).map(|number| {
            let facts = manifest(&set.point(number)).server.unwrap().deployment.unwrap();
            facts.restarts
        });
        let servers: std::collections::BTreeSet<u32> = servers.collect();
        assert_eq!(servers.len(), wanted, "{renew}");
        let records = set.deployments().unwrap();
        assert_eq!(records.len(), wanted, "{renew}: there is a note of each");
        for record in records {
            let log = set.deployment_log(0, 0).with_file_name(record.log.unwrap());
            assert!(log.exists(), "{renew}: {}", log.display());
        }
    }
}

#[test]
fn what_is_wrong_with_a_deployment_is_refused_before_anything_is_started() {
    let folder = tempfile::tempdir().unwrap();
    for (words, wanted) in [
        (&["--serve", "vllm serve m"][..], "{port}"),
        (&["--serve", "s {port} --api-key sesame-123456"], "{env:NAME}"),
        (&["--serve", "s {port} {prot}"], "{prot}"),
        (&["--serve", "s {port}", "http://127.0.0.1:9"], "leave one out"),
        (&["--serve", "s {port}", "--profile", "paced"], "leave one out"),
        (&["--renew", "never"], "--serve"),
        (&["--serve", "s {port}", "--repeat", "2", "--restart", "true"], "--renew"),
    ] {
        let ran = output(&[&["run"][..], words].concat(), folder.path());
        let said = text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(wanted) && !said.contains("sesame"), "{words:?}: {said}");
    }
    assert!(!folder.path().join("runs").exists(), "nothing was begun");
}

/// Faults: 111.
#[test]
fn keys_reach_the_server_and_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("case $2 in sesame-1*6) exec {};; esac", engine_at_port());
    let serve = format!("{} {{env:SOME_KEY}}", by_shell(&script));
    let ran = inferometer()
        .args(["run", "--serve", &serve])
        .args(SMALL)
        .env("SOME_KEY", "sesame-123456")
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let mut folders = vec![folder.path().join("runs")];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let stored = fs::read(&path).unwrap();
            let stored = String::from_utf8_lossy(&stored);
            assert!(!stored.contains("sesame-123456"), "{}", path.display());
        }
    }
}

#[test]
fn a_file_names_commands_that_put_the_server_up_and_take_it_down() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let engine = engine();
    let file = format!(
        r#"
        [deploy]
        kind = "commands"
        up = "{engine} > engine.log 2>&1 & echo $! > pid; echo {{port}} > port"
        url = "echo http://127.0.0.1:$(cat port)"
        logs = "cat engine.log"
        down = "kill $(cat pid)"
        [workload]
        output_tokens = 4
        [load]
        concurrency = 2
        requests = 6
        "#
    );
    fs::write(path.join("deploy.toml"), file).unwrap();
    let ran = output(&["run", "deploy.toml"], path);
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let manifest = manifest(&latest_run(path));
    assert_eq!(manifest.server.clone().unwrap().deployment.unwrap().kind, "commands");
    assert!(is_gone(number_in(&path.join("pid"))));
    assert!(is_free(port_of(&manifest)));
    // Another server on the command line takes the place of the file's.
    let ran = output(&["run", "deploy.toml", "--serve", "no-such-program {port}"], path);
    assert_eq!(ran.status.code(), Some(3), "{}", text(&ran.stderr));
    let checked = output(&["check", "--serve", &engine], path);
    let said = text(&checked.stderr);
    assert!(checked.status.success() && text(&checked.stdout).contains("usable"), "{said}");
}

/// Faults: 96.
#[test]
fn a_set_whose_server_died_goes_on_with_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let script =
        format!("{} & until [ -e die ]; do sleep 0.05; done; rm die; kill -9 $!", engine_at_port());
    let serve = by_shell(&script);
    let repeat =
        ["--duration", "2s", "--concurrency", "1", "--output-tokens", "8", "--repeat", "2"];
    let words = [&["run", "--serve", &serve][..], &repeat].concat();
    let (status, said) =
        begun(path, &words, "generated a token", |_| fs::write(path.join("die"), "").unwrap());
    assert_eq!(status.code(), Some(3), "{said}");
    assert!(said.contains("--resume"), "{said}");
    let set = the_set(path);
    let place = set.path().to_string_lossy().into_owned();
    let resumed = output(&["sweep", "--resume", &place], path);
    assert!(matches!(resumed.status.code(), Some(0 | 4)), "{}", text(&resumed.stderr));
    let records = set.deployments().unwrap();
    assert_eq!(records.len(), 3, "the one that died is one of them");
}
