//! A server in a few lines, and how the tests ask it and look for what is left of it.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use inferometer_model::BaseUrl;
use inferometer_model::deployment::{DeploymentHow, DeploymentSpec, ProcessSpec};
use inferometer_target::deploy::{Deployment, IsOver, Probe, Waited};

/// The port, when this executable is to be a server, and what it answers.
const PORT: &str = "STAND_IN_PORT";
const ANSWER: &str = "STAND_IN_ANSWER";

/// Not a test: the server, for whoever starts this executable with a port in the environment.
#[test]
fn serve() {
    let Ok(port) = std::env::var(PORT) else { return };
    let listener = TcpListener::bind(("127.0.0.1", port.parse().unwrap())).unwrap();
    let answer = std::env::var(ANSWER).unwrap_or_else(|_| "token".to_owned());
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { continue };
        let _ = stream.write_all(answer.as_bytes());
    }
}

pub(crate) fn executable() -> String {
    std::env::current_exe().unwrap().to_str().unwrap().to_owned()
}

/// `$SERVER` is the command of the stand-in; the script has to replace itself by it or to start it.
pub(crate) fn scripted(script: &str) -> DeploymentSpec {
    let script = format!(
        "server() {{ \"$0\" --exact stand_in::serve --nocapture; }}\n{}",
        script.replace('{', "{{")
    );
    let script = script.replacen("{ \"$0\"", "{{ \"$0\"", 1);
    spec(vec!["sh".to_owned(), "-c".to_owned(), script, executable()])
}

pub(crate) fn serving() -> DeploymentSpec {
    let words = [&executable(), "--exact", "stand_in::serve", "--nocapture"];
    spec(words.map(str::to_owned).to_vec())
}

pub(crate) fn spec(command: Vec<String>) -> DeploymentSpec {
    let mut spec =
        DeploymentSpec::new(DeploymentHow::Process(ProcessSpec { command, folder: None }));
    spec.environment.set.insert(PORT.to_owned(), "{port}".to_owned());
    spec.ready_timeout = Duration::from_mins(1);
    spec
}

pub(crate) fn answering(mut spec: DeploymentSpec, answer: &str) -> DeploymentSpec {
    spec.environment.set.insert(ANSWER.to_owned(), answer.to_owned());
    spec
}

/// What the stand-in answers decides what is made of it.
pub(crate) fn ask(base: &BaseUrl, _: IsOver<'_>) -> Probe {
    let Ok(mut stream) = TcpStream::connect((base.host.as_str(), base.port)) else {
        return Probe::NotYet("no connection".to_owned());
    };
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    match answer.as_str() {
        "token" => Probe::Generated,
        "" => Probe::NotYet("nothing".to_owned()),
        other => Probe::Unable(other.to_owned()),
    }
}

pub(crate) fn patiently(time: Duration) -> bool {
    std::thread::sleep(time);
    false
}

pub(crate) fn ready(deployment: &mut Deployment) -> Duration {
    match deployment.wait(&mut ask, &mut patiently) {
        Ok(Waited::Ready(after)) => after,
        other => panic!("not ready: {other:?}"),
    }
}

pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.0.path().join("server.log")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn said(&self) -> String {
        fs::read_to_string(self.log()).unwrap()
    }

    /// What a process of a script has written there, when it has.
    pub(crate) fn shown(&self, name: &str) -> String {
        for _ in 0..3_000 {
            match fs::read_to_string(self.file(name)) {
                Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
                _ => std::thread::sleep(Duration::from_millis(10)),
            }
        }
        panic!("{name} was never written");
    }
}

/// Neither there nor waiting for its parent to fetch it.
pub(crate) fn is_alive(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap().trim_start().starts_with('Z'))
}
