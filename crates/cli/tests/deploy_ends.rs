//! How servers end that were put up for a measurement: never ready, dying, told to by a signal.

use crate::support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use inferometer_model::deployment::DepartureEnding;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use support::deployments::{
    LONG, begun, by_shell, engine, engine_at_port, is_free, is_gone, manifest, number_in, port_of,
    run, the_set, until_measured, until_there,
};
use support::{inferometer, latest_run, text};

#[test]
fn what_cannot_be_put_up_exits_with_3_and_says_why() {
    let oom = by_shell("echo torch.OutOfMemoryError: CUDA out of memory. >&2; exit 7");
    for (serve, more, words) in [
        ("no-such-server-program --port {port}", &[][..], &["not started", "no-such-server"][..]),
        (&oom, &[], &["ended before it was ready", "CUDA out of memory", "hint", "server-"]),
        (
            &by_shell("echo loading; exec sleep 1000"),
            &["--ready-timeout", "300ms"],
            &["not ready in time", "--ready-timeout", "loading"],
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let ran = run(folder.path(), serve, more);
        let said = text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(3), "{said}");
        for word in words {
            assert!(said.contains(word), "{word} in {said}");
        }
    }
}

#[test]
fn a_wrong_name_is_given_up_soon_and_called_so() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &engine(), &["--model", "no-such-name"]);
    let said = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(3), "{said}");
    for words in
        ["could not generate", "no-such-name", "the model was not found", "the server stopped"]
    {
        assert!(said.contains(words), "{words} in {said}");
    }
    assert!(!said.contains("waiting for the server"), "that is said after a while: {said}");
}

#[test]
fn a_set_has_a_note_of_a_server_that_never_was_ready() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &by_shell("exit 7"), &["--repeat", "2"]);
    let said = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(3), "{said}");
    assert!(said.contains("the server had already ended"), "{said}");
    let records = the_set(folder.path()).deployments().unwrap();
    assert_eq!(records.len(), 1);
    assert!(records[0].facts.is_none(), "{records:?}");
    assert_eq!(records[0].departure.as_ref().unwrap().ending, DepartureEnding::Before);
    assert_eq!(records[0].log.as_deref(), Some("0-0.log"));
}

#[test]
fn an_engine_that_is_told_to_end_does_so_with_a_code_of_its_own() {
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGINT, 130)] {
        let mut engine = inferometer()
            .args(["engine", "--mode", "paced", "--port", "0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut announced = String::new();
        BufReader::new(engine.stdout.take().unwrap()).read_line(&mut announced).unwrap();
        assert!(announced.contains("http://"), "{announced}");
        kill(Pid::from_raw(i32::try_from(engine.id()).unwrap()), signal).unwrap();
        // Not by the signal itself: the first process of a container does not die of it.
        assert_eq!(engine.wait().unwrap().code(), Some(code));
    }
}

/// Faults: 96.
#[test]
fn a_server_that_dies_in_a_run_is_named_with_its_last_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let script = format!(
        "{} & until [ -e die ]; do sleep 0.05; done; echo the GPU fell off the bus; kill -9 $!",
        engine_at_port()
    );
    let serve = by_shell(&script);
    let words = [&["run", "--serve", &serve][..], &LONG].concat();
    let (status, said) = begun(path, &words, "measuring", |_| {
        until_measured(path);
        until_there(|| latest_run(path).path().join("server.log").exists());
        fs::write(path.join("die"), "").unwrap();
    });
    assert_eq!(status.code(), Some(3), "{said}");
    assert!(said.contains("died during the measurement"), "{said}");
    assert!(said.contains("the GPU fell off the bus"), "{said}");
    let directory = latest_run(path);
    assert!(directory.path().join("server.log").exists());
    assert!(is_free(port_of(&manifest(&directory))));
}

#[test]
fn a_signal_while_a_server_starts_takes_it_down() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let serve = by_shell("echo $$ > pid; exec sleep 1000");
    let words = [&["run", "--serve", &serve][..], &LONG].concat();
    let (status, said) = begun(path, &words, "deploying", |us| {
        number_in(&path.join("pid"));
        kill(us, Signal::SIGINT).unwrap();
    });
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(said.contains("stopping the server") && said.contains("the server stopped"), "{said}");
    assert!(said.contains("nothing more is begun") && !said.contains("in flight"), "{said}");
    assert!(is_gone(number_in(&path.join("pid"))), "{said}");
}

/// Faults: 90.
#[test]
fn signals_in_a_run_save_it_and_leave_no_server() {
    // Ignores being told, so that a user who will not wait has it killed.
    let stubborn = format!("trap '' TERM; echo $$ > pid; {}", engine_at_port());
    for (script, signals) in [
        (format!("echo $$ > pid; exec {}", engine_at_port()), &[Signal::SIGINT][..]),
        (format!("echo $$ > pid; exec {}", engine_at_port()), &[Signal::SIGTERM]),
        (stubborn, &[Signal::SIGINT; 3]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let serve = by_shell(&script);
        let words = [&["run", "--serve", &serve][..], &LONG].concat();
        let (status, said) = begun(path, &words, "measuring", |us| {
            until_measured(path);
            for signal in signals {
                kill(us, *signal).unwrap();
            }
        });
        let wanted = if signals[0] == Signal::SIGINT { 130 } else { 143 };
        assert_eq!(status.code(), Some(wanted), "{said}");
        assert!(latest_run(path).path().exists(), "what was measured is kept");
        assert!(is_gone(number_in(&path.join("pid"))), "{said}");
    }
}
