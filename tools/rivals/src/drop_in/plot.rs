//! A sweep of ours in vLLM's own plot tool.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::Client;
use crate::bench::{Bench, environment};
use crate::program::{last_words, run, words};
use crate::tokenizer;

/// What the plot tool needs beside vLLM itself.
const PACKAGES: [&str; 3] = ["pandas", "matplotlib", "seaborn"];

pub(super) fn install(folder: &Path) -> Result<(), String> {
    let pip = environment(folder, "vllm").join("bin/pip");
    let arguments = ["install"].into_iter().chain(PACKAGES);
    eprintln!("· {} install {}", pip.display(), PACKAGES.join(" "));
    match Command::new(&pip).args(arguments).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("pip ended with {status}")),
        Err(error) => Err(format!("{}: {error}", pip.display())),
    }
}

pub(super) fn plot(bench: &Bench, page: &mut String) -> Result<(), String> {
    let folder = bench.folder.join("drop-in-sweep");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    sweep(&folder, bench)?;
    eprintln!("· plot");
    let arguments = words(
        "bench sweep plot results/e --var-x max_concurrency --var-y mean_ttft_ms --curve-by ttft"
            .split(' '),
    );
    let ran = run(&Client::Vllm.program(bench), &arguments, &folder, bench)?;
    ran.succeeded().map_err(|why| format!("the plot tool {why}: {}", last_words(&ran)))?;
    let pictures = pictures(&folder.join("results"));
    if pictures.is_empty() {
        return Err(format!("the plot tool drew nothing: {}", last_words(&ran)));
    }
    page.push_str(
        "## A sweep of ours in vLLM's plot tool\n\n`vllm bench sweep plot` drew from it:\n",
    );
    for picture in pictures {
        let _ = writeln!(page, "- {}", picture.display());
    }
    Ok(())
}

/// Two settings of the engine under two loads.
fn sweep(folder: &Path, bench: &Bench) -> Result<(), String> {
    eprintln!("· sweep");
    let write = |name: &str, document: serde_json::Value| {
        std::fs::write(folder.join(name), document.to_string()).map_err(|error| error.to_string())
    };
    write("serve.json", json!([{"ttft": "50ms"}, {"ttft": "100ms"}]))?;
    write("bench.json", json!([{"max_concurrency": 2}, {"max_concurrency": 4}]))?;
    let port = free_port()?;
    let place = tokenizer::place(&bench.folder);
    let serve = format!("{} engine --mode paced --port {port}", bench.binary.display());
    let flags = format!(
        "vllm bench serve --base-url http://127.0.0.1:{port} --model paced --tokenizer {} \
         --random-input-len 16 --random-output-len 16 --num-prompts 12",
        place.display()
    );
    let mut line = words(["bench", "sweep", "serve", "--serve-cmd", &serve, "--bench-cmd", &flags]);
    line.extend(words(["--serve-params", "serve.json", "--bench-params", "bench.json"]));
    line.extend(words([
        "--num-runs",
        "2",
        "--after-bench-cmd",
        "true",
        "-o",
        "results",
        "-e",
        "e",
    ]));
    let ran = run(&bench.binary, &line, folder, bench)?;
    ran.succeeded().map_err(|why| format!("our sweep {why}: {}", last_words(&ran)))
}

fn free_port() -> Result<u16, String> {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    taken.map(|address| address.port()).map_err(|error| error.to_string())
}

fn pictures(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension() == Some(OsStr::new("png")) {
                found.push(path);
            }
        }
    }
    found
}
