//! Servers that the user's own commands deploy.

use std::fs;
use std::time::Duration;

use inferometer_model::deployment::{
    CommandsSpec, DeploymentHow, DeploymentSpec, DeploymentStage, LikelyCause,
};
use inferometer_target::deploy::{Deployment, fill_shell_planned};

use crate::stand_in::{Folder, ask, executable, is_alive, patiently, ready, serving};

fn commands(up: &str, url: &str, down: &str) -> DeploymentSpec {
    let mut spec = DeploymentSpec::new(DeploymentHow::Commands(CommandsSpec {
        up: up.to_owned(),
        url: url.to_owned(),
        logs: None,
        down: down.to_owned(),
    }));
    spec.ready_timeout = Duration::from_mins(1);
    spec.grace = Duration::from_secs(5);
    spec
}

/// A server in the background whose number is in a file.
fn up(folder: &Folder) -> String {
    format!(
        "STAND_IN_PORT={{port}} setsid {} --exact stand_in::serve --nocapture > /dev/null 2>&1 & echo $! > {}; echo put up",
        executable(),
        folder.file("pid").display()
    )
}

fn down(folder: &Folder) -> String {
    format!("kill $(cat {}); echo taken down", folder.file("pid").display())
}

#[test]
fn a_server_is_put_up_found_listened_to_and_taken_down() {
    let folder = Folder::new();
    let url = "echo waiting; echo http://127.0.0.1:{port}/prefix/v1; echo";
    let mut spec = commands(&up(&folder), url, &down(&folder));
    if let DeploymentHow::Commands(how) = &mut spec.how {
        how.logs = Some("echo words of the server; exec sleep 600".to_owned());
    }
    let mut deployment = Deployment::start(&spec, &folder.log()).unwrap();
    let after = ready(&mut deployment);
    assert_eq!((deployment.base().prefix.as_str(), deployment.group()), ("/prefix", None));
    assert_eq!(deployment.ended(), None);
    let facts = deployment.facts(after, 0);
    assert_eq!(facts.kind, "commands");
    let pid = folder.shown("pid");
    assert!(is_alive(&pid));
    let departure = deployment.stop();
    assert!(departure.port_closed && departure.left.is_empty(), "{departure:?}");
    assert_eq!(departure.troubles, Vec::<String>::new());
    assert!(!is_alive(&pid));
    assert_eq!(folder.said(), "put up\nwords of the server\ntaken down\n");
}

#[test]
fn what_was_put_up_in_part_is_taken_down() {
    let folder = Folder::new();
    let mark = folder.file("down");
    let down = format!("echo done > {}", mark.display());
    let up = "echo 'PermissionError: [Errno 13]' >&2; exit 4";
    let mut deployment = Deployment::start(&commands(up, "echo", &down), &folder.log()).unwrap();
    let failure = deployment.wait(&mut ask, &mut patiently).unwrap_err();
    assert_eq!(
        (failure.stage, failure.cause),
        (DeploymentStage::Start, Some(LikelyCause::Permission))
    );
    assert_eq!(failure.what, "the command `up` ended with status 4");
    drop(deployment);
    assert_eq!(fs::read_to_string(mark).unwrap(), "done\n");
}

#[test]
fn what_it_said_is_asked_for_when_it_fails_and_before_it_is_taken_down() {
    let folder = Folder::new();
    let with_logs = |mut spec: DeploymentSpec| {
        if let DeploymentHow::Commands(how) = &mut spec.how {
            let pid = folder.file("logs").display().to_string();
            how.logs = Some(format!("echo CUDA out of memory; echo $$ > {pid}"));
        }
        spec
    };
    let failing = with_logs(commands("false", "echo", "echo taken down"));
    let mut deployment = Deployment::start(&failing, &folder.log()).unwrap();
    let failure = deployment.wait(&mut ask, &mut patiently).unwrap_err();
    assert_eq!(failure.cause, Some(LikelyCause::OutOfMemory), "{failure:?}");
    assert_eq!(failure.log, ["CUDA out of memory"]);
    deployment.stop();
    assert_eq!(folder.said(), "CUDA out of memory\ntaken down\n", "it is asked for once");
    fs::remove_file(folder.file("logs")).unwrap();
    let url = "echo http://127.0.0.1:{port}";
    let serving = with_logs(commands(&up(&folder), url, &down(&folder)));
    let mut deployment = Deployment::start(&serving, &folder.log()).unwrap();
    ready(&mut deployment);
    let logs = folder.shown("logs");
    assert!((0..1_000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        !is_alive(&logs)
    }));
    deployment.stop();
    let said = folder.said();
    assert!(said.ends_with("CUDA out of memory\ntaken down\n"), "{said}");
    assert_eq!(said.matches("CUDA").count(), 2, "when it is found and before it goes: {said}");
}

#[test]
fn one_that_is_interrupted_while_it_is_put_up_is_taken_down_after_that() {
    let folder = Folder::new();
    let (began, ended) = (folder.file("began"), folder.file("ended"));
    let up = format!("echo $$ > {}; sleep 600", began.display());
    let down = format!("echo done > {}; exit 3", ended.display());
    let mut deployment = Deployment::start(&commands(&up, "echo", &down), &folder.log()).unwrap();
    let pid = folder.shown("began");
    let waited = deployment.wait(&mut ask, &mut |_| true);
    assert_eq!(waited, Ok(inferometer_target::deploy::Waited::Stopped));
    let departure = deployment.stop();
    assert!(!is_alive(&pid));
    assert_eq!(folder.shown("ended"), "done");
    assert!(departure.troubles[0].contains("`down` ended with status 3"), "{departure:?}");
}

#[test]
fn a_url_that_is_none_is_told() {
    let folder = Folder::new();
    for (url, expected) in [
        ("echo ftp://somewhere", "ftp"),
        ("true", "printed nothing"),
        ("echo pending >&2; exit 5", "pending"),
    ] {
        let mut spec = commands("true", url, "true");
        spec.ready_timeout = Duration::from_millis(300);
        let mut deployment = Deployment::start(&spec, &folder.log()).unwrap();
        let failure = deployment.wait(&mut ask, &mut patiently).unwrap_err();
        assert_eq!(failure.stage, DeploymentStage::Ready);
        assert!(failure.what.contains(expected), "{failure:?}");
    }
}

#[test]
fn a_server_that_was_there_before_is_not_asked() {
    let folder = Folder::new();
    let other = Folder::new();
    let mut stranger = Deployment::start(&serving(), &other.log()).unwrap();
    ready(&mut stranger);
    let url = format!("echo {}", stranger.base());
    let mut deployment = Deployment::start(&commands("true", &url, "true"), &folder.log()).unwrap();
    let failure = deployment.wait(&mut ask, &mut patiently).unwrap_err();
    assert_eq!(failure.stage, DeploymentStage::Start);
    assert!(failure.what.contains("was in use before"), "{failure:?}");
}

#[test]
fn hostile_values_of_a_matrix_are_words_and_nothing_else() {
    let folder = Folder::new();
    let hostile = format!("a'b\"; touch {} #{{port}}", folder.file("harm").display());
    let up = fill_shell_planned(
        "printf '%s\\n' {model} \"{model}\" '{model}'; false",
        &["model"],
        &|name| (name == "model").then(|| hostile.clone()),
    );
    let spec = commands(&up.unwrap(), "echo", "true");
    let mut deployment = Deployment::start(&spec, &folder.log()).unwrap();
    let failure = deployment.wait(&mut ask, &mut patiently).unwrap_err();
    assert_eq!(failure.log, [hostile.as_str(); 3]);
    assert!(!folder.file("harm").exists());
}

#[test]
fn what_down_leaves_behind_is_ended_and_told() {
    let folder = Folder::new();
    let url = "echo http://127.0.0.1:{port}";
    let mut deployment =
        Deployment::start(&commands(&up(&folder), url, "true"), &folder.log()).unwrap();
    ready(&mut deployment);
    let pid = folder.shown("pid");
    let departure = deployment.stop();
    assert!(!is_alive(&pid));
    assert!(departure.troubles[0].contains(&pid), "{departure:?}");
    assert!(departure.left.is_empty() && departure.port_closed);
}
