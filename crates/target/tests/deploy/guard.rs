//! Who starts servers can be killed himself.

use std::process::{Command, Stdio};
use std::time::Duration;

use inferometer_target::deploy::Deployment;

use crate::stand_in::{Folder, executable, is_alive, ready, scripted};

const FOLDER: &str = "STAND_IN_FOLDER";

/// Not a test: somebody who has put a server up and is killed then.
#[test]
fn hold() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let script = format!(
        "trap '' TERM; env -i sh -c 'echo $$ > {folder}/unmarked; exec sleep 600' & \
         echo $$ > {folder}/server; server"
    );
    let mut stubborn = scripted(&script);
    stubborn.grace = Duration::from_secs(1);
    let log = std::path::Path::new(&folder).join("server.log");
    let mut deployment = Deployment::start(&stubborn, &log).unwrap();
    ready(&mut deployment);
    std::fs::write(format!("{folder}/ready"), "yes\n").unwrap();
    loop {
        std::thread::park();
    }
}

#[test]
fn a_server_ends_when_we_are_killed() {
    let folder = Folder::new();
    let mut holder = Command::new(executable())
        .args(["--exact", "guard::hold", "--nocapture"])
        .env(FOLDER, folder.file("").display().to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let server = folder.shown("server");
    let unmarked = folder.shown("unmarked");
    folder.shown("ready");
    assert!(is_alive(&server) && is_alive(&unmarked));
    holder.kill().unwrap();
    holder.wait().unwrap();
    let is_gone = (0..6_000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        !is_alive(&server) && !is_alive(&unmarked)
    });
    assert!(is_gone, "process {server} or {unmarked} has outlived the one who started it");
}
