//! Containers, by a stand-in that takes the words of docker and keeps its containers in a folder.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use inferometer_model::deployment::{
    ContainerSpec, DepartureEnding, DeploymentHow, DeploymentSpec, DeploymentStage, LikelyCause,
};
use inferometer_target::deploy::{Deployment, IsOver, Probe};

use crate::stand_in::{Folder, ask, executable, is_alive, patiently, ready};

const ENGINE: &str = r#"#!/bin/sh
state=STATE
echo "$@" >> $state/asked
case "$1" in
run)
  shift
  while [ $# -gt 0 ]; do case "$1" in
    --rm) shift ;;
    --name) name=$2; shift 2 ;;
    --publish) port=${2#*:}; port=${port%:*}; shift 2 ;;
    --env) case "$2" in *=*) export "$2" ;; esac; shift 2 ;;
    *) break ;;
  esac; done
  [ "$1" = example/absent ] && { echo 'docker: Error response from daemon: pull access denied for example/absent' >&2; exit 125; }
  while [ -e $state/pulling ]; do sleep 0.1; done
  echo "key is $API_KEY, colour is $COLOUR"
  case "$1" in */*/*) echo "image is $1" ;; esac
  STAND_IN_PORT=$port setsid EXE --exact stand_in::serve --nocapture &
  echo $! > $state/$name.container
  trap 'kill $!' TERM
  wait; wait
  [ -e $state/immortal ] || rm -f $state/$name.container ;;
stop) [ -e $state/stubborn ] || kill "$(cat $state/$4.container)" ;;
rm) [ -e $state/immortal ] || { kill -9 "$(cat $state/$3.container)"; rm -f $state/$3.container; } ;;
ps) for one in $state/*.container; do one=${one##*/}; echo "${one%.container}"; done; echo unrelated ;;
inspect) cat $state/$4.container > $state/pid || exit 1; case "$3" in *Running*) echo true ;; *) cat $state/pid ;; esac ;;
image) case "$4" in *RepoDigests*) [ "$5" = example/built-here ] && exit 1; echo "$5@sha256:abcd" ;; *) echo sha256:ef01 ;; esac ;;
esac
"#;

fn container(folder: &Folder, image: &str) -> DeploymentSpec {
    let engine = folder.file("docker");
    let state = folder.file("docker").parent().unwrap().display().to_string();
    fs::write(&engine, ENGINE.replace("STATE", &state).replace("EXE", &executable())).unwrap();
    fs::set_permissions(&engine, fs::Permissions::from_mode(0o755)).unwrap();
    let mut spec = DeploymentSpec::new(DeploymentHow::Container(ContainerSpec {
        engine: engine.to_str().unwrap().to_owned(),
        image: image.to_owned(),
        options: Vec::new(),
        arguments: vec!["--name={name}".to_owned()],
        port: 8000,
    }));
    spec.ready_timeout = Duration::from_mins(1);
    spec
}

#[test]
fn a_container_is_put_up_known_by_its_digest_and_removed() {
    let folder = Folder::new();
    let mut spec = container(&folder, "example/server:1");
    let key = "not-to-be-seen-anywhere";
    spec.environment.set.insert("API_KEY".to_owned(), key.to_owned());
    spec.environment.set.insert("COLOUR".to_owned(), "blue {port}".to_owned());
    let mut deployment = Deployment::start(&spec, &folder.log()).unwrap();
    let after = ready(&mut deployment);
    let port = deployment.base().port;
    let facts = deployment.facts(after, 0);
    assert_eq!(
        (facts.kind.as_str(), facts.image.as_deref()),
        ("container", Some("example/server:1@sha256:abcd"))
    );
    assert!(facts.command.contains(&format!("127.0.0.1:{port}:8000")), "{facts:?}");
    assert!(facts.environment.contains(&("COLOUR".to_owned(), format!("blue {port}"))));
    assert!(!format!("{facts:?}").contains(key), "{facts:?}");
    let departure = deployment.stop();
    assert_eq!(departure.ending, DepartureEnding::OnRequest);
    assert!(departure.port_closed && departure.left.is_empty(), "{departure:?}");
    assert_eq!(departure.troubles, Vec::<String>::new());
    let asked = fs::read_to_string(folder.file("asked")).unwrap();
    assert!(!asked.contains(key), "keys are no words of the engine: {asked}");
    assert!(asked.contains("stop -t 20 inferometer-"), "{asked}");
    assert_eq!(
        folder.said(),
        format!("key is [redacted], colour is blue {port}\n\nrunning 1 test\n")
    );
}

#[test]
fn nobody_is_asked_while_the_image_is_pulled() {
    let folder = Folder::new();
    fs::write(folder.file("pulling"), "").unwrap();
    let mut spec = container(&folder, "example/server");
    spec.ready_timeout = Duration::from_secs(1);
    let mut deployment = Deployment::start(&spec, &folder.log()).unwrap();
    let _stranger = TcpListener::bind(("127.0.0.1", deployment.base().port)).unwrap();
    let mut asked = 0;
    let mut count = |_: &_, _: IsOver<'_>| {
        asked += 1;
        Probe::Generated
    };
    let failure = deployment.wait(&mut count, &mut patiently).unwrap_err();
    assert_eq!((failure.stage, asked), (DeploymentStage::Ready, 0), "{failure:?}");
    assert!(failure.what.contains("its container is not there yet"), "{failure:?}");
}

#[test]
fn what_variables_put_into_the_name_of_an_image_is_not_told() {
    let folder = Folder::new();
    // One that is set wherever tests run.
    let value = std::env::var("PATH").unwrap();
    let mut spec = container(&folder, "example/{env:PATH}/server");
    if let DeploymentHow::Container(how) = &mut spec.how {
        how.arguments = vec!["{env:PATH}".to_owned()];
    }
    let mut deployment = Deployment::start(&spec, &folder.log()).unwrap();
    let after = ready(&mut deployment);
    let facts = deployment.facts(after, 0);
    assert!(facts.command.contains(&"example/{env:PATH}/server".to_owned()), "{facts:?}");
    assert_eq!(facts.image.as_deref(), Some("example/[redacted]/server@sha256:abcd"));
    assert!(!format!("{facts:?}").contains(&value), "{facts:?}");
    deployment.stop();
    assert!(folder.said().contains("image is example/[redacted]/server"), "{}", folder.said());
    if let DeploymentHow::Container(how) = &mut spec.how {
        how.engine = "{env:PATH}/docker".to_owned();
    }
    let refused = Deployment::start(&spec, &folder.log()).unwrap_err();
    assert!(refused.what.contains("`{env:PATH}/docker` was not found"), "{refused:?}");
}

#[test]
fn an_image_that_was_built_here_has_an_identity() {
    let folder = Folder::new();
    let spec = container(&folder, "example/built-here");
    let mut deployment = Deployment::start(&spec, &folder.log()).unwrap();
    let after = ready(&mut deployment);
    assert_eq!(deployment.facts(after, 0).image.as_deref(), Some("sha256:ef01"));
}

#[test]
fn an_image_that_is_not_there_is_told() {
    let folder = Folder::new();
    let spec = container(&folder, "example/absent");
    let mut deployment = Deployment::start(&spec, &folder.log()).unwrap();
    let failure = deployment.wait(&mut ask, &mut patiently).unwrap_err();
    assert_eq!(
        (failure.stage, failure.cause),
        (DeploymentStage::Ended, Some(LikelyCause::NoSuchImage))
    );
    assert_eq!(deployment.stop().ending, DepartureEnding::Before);
    let mut unknown = container(&folder, "example/server");
    if let DeploymentHow::Container(how) = &mut unknown.how {
        how.engine = "an-engine-that-nobody-has".to_owned();
    }
    let refused = Deployment::start(&unknown, &folder.log()).unwrap_err();
    assert!(refused.what.contains("`an-engine-that-nobody-has` was not found"), "{refused:?}");
}

#[test]
fn a_container_that_will_not_go_is_removed_by_force() {
    let folder = Folder::new();
    let mut spec = container(&folder, "example/server");
    spec.grace = Duration::from_secs(1);
    let mut deployment = Deployment::start(&spec, &folder.log()).unwrap();
    ready(&mut deployment);
    fs::write(folder.file("stubborn"), "").unwrap();
    let departure = deployment.stop();
    assert!(departure.port_closed && departure.left.is_empty(), "{departure:?}");
}

#[test]
fn a_container_that_stays_is_told_as_left() {
    let folder = Folder::new();
    let mut deployment =
        Deployment::start(&container(&folder, "example/server"), &folder.log()).unwrap();
    ready(&mut deployment);
    fs::write(folder.file("immortal"), "").unwrap();
    let departure = deployment.stop();
    let [(pid, name)] = departure.left.as_slice() else { panic!("{departure:?}") };
    assert!(name.starts_with("container inferometer-"), "{departure:?}");
    assert!(!is_alive(&pid.to_string()), "its record stays, its process goes");
}
