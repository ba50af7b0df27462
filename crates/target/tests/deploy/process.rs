//! Processes of this machine.

use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use inferometer_model::deployment::{DepartureEnding, DeploymentStage, LikelyCause};
use inferometer_target::deploy::{Deployment, IsOver, Probe, Waited};

use crate::stand_in::{
    Folder, answering, ask, executable, is_alive, patiently, ready, scripted, serving, spec,
};

#[test]
fn a_server_is_put_up_asked_and_taken_down_five_times() {
    let folder = Folder::new();
    for round in 0..5 {
        let mut deployment = Deployment::start(&serving(), &folder.log()).unwrap();
        let after = ready(&mut deployment);
        let facts = deployment.facts(after, round);
        assert_eq!((facts.kind.as_str(), facts.restarts), ("process", round));
        assert_eq!(facts.command[0], executable());
        assert_eq!(deployment.ended(), None);
        let base = deployment.base().clone();
        let departure = deployment.stop();
        assert_eq!(departure.ending, DepartureEnding::OnRequest);
        assert!(departure.port_closed && departure.left.is_empty(), "{departure:?}");
        assert_eq!(departure.troubles, Vec::<String>::new());
        assert!(TcpListener::bind((base.host.as_str(), base.port)).is_ok());
    }
}

#[test]
fn what_cannot_be_started_is_told_with_the_reason() {
    let folder = Folder::new();
    let start = |command: &[&str]| {
        let words = command.iter().map(|word| (*word).to_owned()).collect();
        Deployment::start(&spec(words), &folder.log()).unwrap_err()
    };
    let unknown = start(&["a-server-that-nobody-has"]);
    assert_eq!(unknown.stage, DeploymentStage::Start);
    assert!(unknown.what.contains("`a-server-that-nobody-has` was not found"), "{unknown:?}");
    assert!(start(&["sh", "{prot}"]).what.contains("`{port}`"));
    assert_eq!(unknown.cause, Some(LikelyCause::NoSuchProgram));
    let unset = start(&["sh", "{env:NOBODY_SETS_THIS}"]);
    assert!(unset.what.contains("NOBODY_SETS_THIS"), "{unset:?}");
    assert_eq!(unset.cause, Some(LikelyCause::VariableNotSet));
    assert!(start(&[]).what.contains("empty"));
    let mut without_port = serving();
    without_port.environment.set.clear();
    let refused = Deployment::start(&without_port, &folder.log()).unwrap_err();
    assert!(refused.what.contains("--port {port}"), "{refused:?}");
}

#[test]
fn one_that_ends_is_not_waited_for_and_its_words_are_understood() {
    let folder = Folder::new();
    let script = "echo 'torch.OutOfMemoryError: CUDA out of memory.' >&2; exit 7";
    let mut deployment = Deployment::start(&scripted(script), &folder.log()).unwrap();
    let failure = deployment.wait(&mut ask, &mut patiently).unwrap_err();
    assert_eq!(failure.stage, DeploymentStage::Ended);
    assert_eq!(failure.what, "it ended with status 7");
    assert_eq!(failure.cause, Some(LikelyCause::OutOfMemory));
    assert_eq!(failure.log, ["torch.OutOfMemoryError: CUDA out of memory."]);
    assert_eq!(deployment.stop().ending, DepartureEnding::Before);
}

#[test]
fn one_that_is_never_ready_is_given_up_in_time() {
    let folder = Folder::new();
    let mut silent = scripted("echo loading; exec sleep 600");
    silent.ready_timeout = Duration::from_millis(300);
    let mut deployment = Deployment::start(&silent, &folder.log()).unwrap();
    let failure = deployment.wait(&mut ask, &mut patiently).unwrap_err();
    assert_eq!(failure.stage, DeploymentStage::Ready);
    assert!(failure.what.contains("is not open yet"), "{failure:?}");
    assert_eq!(deployment.stop().ending, DepartureEnding::OnRequest);
    assert_eq!(folder.said(), "loading\n");
}

/// Faults: 95.
#[test]
fn one_that_answers_and_cannot_generate_is_told_apart() {
    let folder = Folder::new();
    let mut unable = answering(serving(), "no such model");
    unable.ready_timeout = Duration::from_secs(5);
    let mut deployment = Deployment::start(&unable, &folder.log()).unwrap();
    let failure = deployment.wait(&mut ask, &mut patiently).unwrap_err();
    assert_eq!(failure.stage, DeploymentStage::Generate);
    assert!(failure.what.ends_with("no such model"), "{failure:?}");
    let answered = "HTTP 500: CUDA out of memory".to_owned();
    let failure = deployment.failure(DeploymentStage::Generate, answered);
    assert_eq!(failure.cause, Some(LikelyCause::OutOfMemory), "its log says nothing of it");
}

#[test]
fn whoever_waits_can_be_stopped() {
    let folder = Folder::new();
    let mut deployment = Deployment::start(&scripted("exec sleep 600"), &folder.log()).unwrap();
    assert_eq!(deployment.wait(&mut ask, &mut |_| true), Ok(Waited::Stopped));
    let mut late = scripted("exec sleep 600");
    late.ready_timeout = Duration::ZERO;
    let mut deployment = Deployment::start(&late, &folder.log()).unwrap();
    assert_eq!(deployment.wait(&mut ask, &mut |_| true), Ok(Waited::Stopped));
}

/// Waits for an answer that never comes; whether it was told that it is over.
fn hangs(is_over: IsOver<'_>) -> bool {
    (0..2_000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        is_over()
    })
}

#[test]
fn a_question_that_hangs_is_not_waited_for_longer_than_the_server() {
    let folder = Folder::new();
    let mut shown = false;
    let mut probe = |_: &_, is_over: IsOver<'_>| {
        shown = hangs(is_over);
        Probe::NotYet("no answer".to_owned())
    };
    let mut ending = Deployment::start(&scripted("server & sleep 1; exit 3"), &folder.log());
    let failure = ending.as_mut().unwrap().wait(&mut probe, &mut patiently).unwrap_err();
    assert_eq!((failure.stage, shown), (DeploymentStage::Ended, true), "{failure:?}");
    assert_eq!(failure.what, "it ended with status 3");
    shown = false;
    let mut probe = |_: &_, is_over: IsOver<'_>| {
        shown = hangs(is_over);
        Probe::NotYet("no answer".to_owned())
    };
    let mut mute = serving();
    mute.ready_timeout = Duration::from_secs(3);
    let mut mute = Deployment::start(&mute, &folder.log()).unwrap();
    let failure = mute.wait(&mut probe, &mut patiently).unwrap_err();
    assert_eq!((failure.stage, shown), (DeploymentStage::Ready, true), "{failure:?}");
}

#[test]
fn one_that_dies_later_is_told() {
    let folder = Folder::new();
    let mut deployment = Deployment::start(&serving(), &folder.log()).unwrap();
    ready(&mut deployment);
    let pid = deployment.group().unwrap().to_string();
    assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
    let died = (0..1_000).find_map(|_| {
        std::thread::sleep(Duration::from_millis(10));
        deployment.ended()
    });
    let died = died.unwrap();
    assert_eq!(died.stage, DeploymentStage::Died);
    assert_eq!(died.cause, Some(LikelyCause::OutOfMemory));
    assert!(deployment.stop().left.is_empty());
}

#[test]
fn what_it_said_long_ago_does_not_explain_its_death() {
    let folder = Folder::new();
    let script = "echo 'ModuleNotFoundError: No module named flash'; yes well | head -n 200; \
                  server & sleep 1000";
    let mut deployment = Deployment::start(&scripted(script), &folder.log()).unwrap();
    ready(&mut deployment);
    let words = || "gone".to_owned();
    assert_eq!(deployment.failure(DeploymentStage::Died, words()).cause, None);
    let early = deployment.failure(DeploymentStage::Ended, words());
    assert_eq!(early.cause, Some(LikelyCause::MissingLibrary));
}

/// Faults: 98.
#[test]
fn one_that_will_not_go_is_killed() {
    let folder = Folder::new();
    let mut stubborn = scripted("trap '' TERM; server");
    stubborn.grace = Duration::from_millis(300);
    let mut deployment = Deployment::start(&stubborn, &folder.log()).unwrap();
    ready(&mut deployment);
    let departure = deployment.stop();
    assert_eq!(departure.ending, DepartureEnding::Killed);
    assert!(departure.port_closed && departure.left.is_empty(), "{departure:?}");
}

/// Faults: 98.
#[test]
fn what_left_the_group_is_found_and_ended() {
    let folder = Folder::new();
    let (marked, orphan) = (folder.file("marked"), folder.file("orphan"));
    // The second has no environment to be found by; it is known as a child.
    let script = format!(
        "setsid sh -c 'echo $$ > {}; exec sleep 600' & \
         env -i \"$(command -v setsid)\" \"$(command -v sh)\" -c 'echo $$ > {}; exec /bin/sleep 600' & \
         server",
        marked.display(),
        orphan.display()
    );
    let mut deployment = Deployment::start(&scripted(&script), &folder.log()).unwrap();
    let (marked, orphan) = (folder.shown("marked"), folder.shown("orphan"));
    ready(&mut deployment);
    assert!(is_alive(&marked) && is_alive(&orphan));
    let departure = deployment.stop();
    assert!(departure.left.is_empty(), "{departure:?}");
    assert!(!is_alive(&marked) && !is_alive(&orphan));
}

/// Faults: 98.
#[test]
fn what_outlives_a_server_that_died_is_ended_and_told() {
    let folder = Folder::new();
    let child = folder.file("child");
    let script = format!("setsid sh -c 'echo $$ > {}; exec sleep 600' & sleep 1", child.display());
    let mut deployment = Deployment::start(&scripted(&script), &folder.log()).unwrap();
    let failure = deployment.wait(&mut ask, &mut patiently).unwrap_err();
    assert!(failure.what.contains("foreground"), "{failure:?}");
    let child = folder.shown("child");
    assert!(is_alive(&child));
    let departure = deployment.stop();
    assert_eq!(departure.ending, DepartureEnding::Before);
    assert!(departure.troubles[0].contains(&child), "{departure:?}");
    assert!(!is_alive(&child));
}

/// Faults: 99.
#[test]
fn a_flood_of_words_neither_stops_the_server_nor_fills_the_disk() {
    let folder = Folder::new();
    // 40 MB before it listens, and more for ever.
    let script = "head -c 40000000 /dev/zero | tr '\\0' 'x'; yes 'many words of a server' & server";
    let mut deployment = Deployment::start(&scripted(script), &folder.log()).unwrap();
    ready(&mut deployment);
    assert!(deployment.stop().left.is_empty());
    assert!(folder.said().len() < 600 << 10);
    assert!(folder.said().contains("bytes are left out here"));
}

/// Faults: 94.
#[test]
fn nobody_else_is_ever_asked() {
    let folder = Folder::new();
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = stranger.local_addr().unwrap().port();
    let refused = Deployment::start_at(&serving(), port, &folder.log()).unwrap_err();
    assert_eq!(refused.cause, Some(LikelyCause::PortInUse));
    // One who comes when the server was started, and has not listened yet.
    let mut deployment = Deployment::start(&scripted("exec sleep 600"), &folder.log()).unwrap();
    let port = deployment.base().port;
    let _stranger = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let mut asked = 0;
    let mut count = |_: &_, _: IsOver<'_>| {
        asked += 1;
        Probe::Generated
    };
    let failure = deployment.wait(&mut count, &mut patiently).unwrap_err();
    assert_eq!(failure.stage, DeploymentStage::Start);
    assert!(failure.what.contains(&std::process::id().to_string()), "{failure:?}");
    assert_eq!(asked, 0);
    assert!(!deployment.stop().port_closed);
}

#[test]
fn keys_reach_the_server_and_nothing_else() {
    let folder = Folder::new();
    let key = "not-to-be-seen-anywhere";
    let shown = folder.file("told");
    let mut spec =
        scripted(&format!("echo \"$API_KEY\"; echo \"$API_KEY\" > {}; server", shown.display()));
    spec.environment.set.insert("API_KEY".to_owned(), key.to_owned());
    let mut deployment = Deployment::start(&spec, &folder.log()).unwrap();
    let after = ready(&mut deployment);
    assert_eq!(folder.shown("told"), key);
    let facts = format!("{:?}", deployment.facts(after, 0));
    assert!(!facts.contains(key) && facts.contains("API_KEY"), "{facts}");
    let failure = deployment.failure(DeploymentStage::Measure, "x".to_owned());
    assert!(!format!("{failure:?}").contains(key));
    drop(deployment);
    assert!(!folder.said().contains(key), "{}", folder.said());
}

#[test]
fn a_dropped_one_is_gone_too() {
    let folder = Folder::new();
    let mut deployment = Deployment::start(&serving(), &folder.log()).unwrap();
    ready(&mut deployment);
    let pid = deployment.group().unwrap().to_string();
    drop(deployment);
    assert!(!is_alive(&pid));
}
