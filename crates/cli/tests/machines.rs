//! The machines beside a run: GPUs by tools and exporters, the client's own, and why nobody tells.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Output;
use std::sync::{Arc, Mutex};

use inferometer_model::telemetry::{DeviceSource, DevicesAbsence, Machines};
use serde_json::json;

use support::{http, inferometer, observations, output, server_hearing, server_saying, text};

fn answering_server() -> SocketAddr {
    server_saying(|path| {
        if path != "/v1/chat/completions" {
            return http("404 Not Found", "application/json", "{}");
        }
        let body = json!({
            "id": "a", "object": "chat.completion", "created": 0, "model": "m",
            "choices": [{
                "index": 0,
                "message": { "role": "assistant", "content": "two words" },
                "finish_reason": "length",
            }],
            "usage": { "prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7 },
        });
        http("200 OK", "application/json", &body.to_string())
    })
}

/// A folder that is searched for programs before all others, with one in it.
fn program(folder: &Path, name: &str, script: &str) -> OsString {
    let path = folder.join(name);
    support::write_program(&path, &format!("#!/bin/sh\n{script}\n"));
    let mut search = folder.as_os_str().to_owned();
    search.push(":");
    search.push(std::env::var_os("PATH").unwrap());
    search
}

fn run(folder: &Path, search: Option<OsString>, arguments: &[&str]) -> Output {
    let url = format!("http://{}", answering_server());
    let load = ["--no-stream", "--prompt", "Hi.", "--output-tokens", "2", "--requests", "5"];
    let mut command = inferometer();
    command.current_dir(folder).args(["run", &url, "--json", "-q", "--model", "m"]);
    command.args(load).args(arguments);
    if let Some(search) = search {
        command.env("PATH", search);
    }
    command.output().unwrap()
}

fn machines(folder: &Path, ran: &Output) -> Machines {
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    observations(folder).machines
}

const NVIDIA_SMI: &str = r#"case "$1" in
--query-gpu=*throttle*) echo 'Field is not a valid field to query.'; exit 2;;
--query-gpu=*) echo "0, GPU-aa, 97, 81000, 143771, 688.52, 1755, 3201, 64, 0x0000000000000004";;
--query-compute-apps=*) echo "GPU-aa, 4242";;
esac"#;

#[test]
fn a_tool_tells_of_the_gpus_before_and_after_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let search = program(folder.path(), "nvidia-smi", NVIDIA_SMI);
    let ran = run(folder.path(), Some(search), &["--gpu-telemetry", "nvidia-smi"]);
    let machines = machines(folder.path(), &ran);
    assert!(2 <= machines.devices.len(), "{machines:?}");
    assert!(2 <= machines.client.len());
    assert_eq!((machines.devices_absence, machines.devices_missed), (None, vec![]));
    let look = &machines.devices[0];
    assert_eq!(look.source, DeviceSource::NvidiaSmi);
    assert_eq!(look.devices[0].power_w, Some(688.52));
    assert_eq!(look.devices[0].processes, Some(vec![4242]));
    assert!(look.devices[0].throttle.unwrap().power);
    let last = machines.client.last().unwrap();
    assert!(last.own_cpus.is_some() && last.memory_available_bytes.is_some());
}

#[test]
fn gpus_of_this_machine_are_not_those_of_a_server_elsewhere_or_pretended() {
    let folder = tempfile::tempdir().unwrap();
    let search = program(folder.path(), "nvidia-smi", NVIDIA_SMI);
    let elsewhere = run(folder.path(), Some(search.clone()), &[]);
    let found = machines(folder.path(), &elsewhere);
    assert_eq!(found.devices_absence, Some(DevicesAbsence::Elsewhere));
    assert!(found.devices.is_empty() && 2 <= found.client.len(), "{found:?}");
    let local = run(folder.path(), Some(search), &["--server-info", "local"]);
    let found = machines(folder.path(), &local);
    assert!(!found.devices.is_empty(), "{found:?}");
    for arguments in [&["run", "--requests", "3", "-q"][..], &["simulate", "--requests", "3", "-q"]]
    {
        let folder = tempfile::tempdir().unwrap();
        let found = machines(folder.path(), &output(arguments, folder.path()));
        assert_eq!(found.devices_absence, Some(DevicesAbsence::Pretended));
    }
}

#[test]
fn a_tool_that_hangs_or_fails_does_not_keep_a_run() {
    for (script, words) in [
        (
            "case \"$1\" in *utilization*) exec sleep 600;; esac; exit 1",
            "nvidia-smi: it did not end within 2s",
        ),
        ("echo no driver; exit 9", "nvidia-smi: it ended with exit status: 9: no driver"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let search = program(folder.path(), "nvidia-smi", script);
        let ran = run(folder.path(), Some(search), &["--gpu-telemetry", "nvidia-smi"]);
        let absence = machines(folder.path(), &ran).devices_absence;
        assert_eq!(absence, Some(DevicesAbsence::Failed(words.to_owned())));
    }
}

#[test]
fn an_exporter_tells_and_is_shown_no_key() {
    let heads = Arc::new(Mutex::new(String::new()));
    let heard = Arc::clone(&heads);
    let exporter = server_hearing(move |request| {
        heard.lock().unwrap().push_str(request);
        let text = "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\"} 300.5\nDCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 50\n";
        http("200 OK", "text/plain; version=0.0.4", text)
    });
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("key"), "sk-of-the-server").unwrap();
    let asked = format!("dcgm=http://{exporter}/metrics");
    let ran = run(folder.path(), None, &["--gpu-telemetry", &asked, "--api-key-file", "key"]);
    let machines = machines(folder.path(), &ran);
    assert_eq!(machines.devices[0].source, DeviceSource::Dcgm);
    assert_eq!(machines.devices[0].devices[0].power_w, Some(300.5));
    let heads = heads.lock().unwrap();
    assert!(heads.contains("/metrics") && !heads.contains("sk-of-the-server"), "{heads}");
}

#[test]
fn who_cannot_tell_is_refused_with_those_who_can() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, words) in [
        (&["run", "--gpu-telemetry", "cuda"][..], "nvidia-smi, amd-smi, rocm-smi"),
        (&["run", "--telemetry", "off", "--gpu-telemetry", "nvml"], "--telemetry off"),
    ] {
        let refused = output(arguments, folder.path());
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains(words), "{}", text(&refused.stderr));
    }
}
