//! GPUs that work, rest, count or do not count their energy; and the client's own machine.

use std::time::Duration;

use inferometer_model::deployment::DeploymentFacts;
use inferometer_model::observations::Manifest;
use inferometer_model::system::{KnownBy, ServerFacts};
use inferometer_model::telemetry::{
    ClientSample, DeviceReading, DevicesAbsence, DevicesSample, LookMiss, Machines, MissedLook,
};

use crate::fixture::{calm, ms};
use crate::machines::*;
use crate::summary::summarize;

/// The calm run goes from 0 s to 4.02 s and writes 120 tokens.
const WINDOW_S: f64 = 4.02;

fn busy(index: u32) -> DeviceReading {
    DeviceReading {
        index,
        use_share: Some(0.5),
        memory_used_bytes: Some(60 << 30),
        memory_total_bytes: Some(80 << 30),
        power_w: Some(300.0),
        ..DeviceReading::default()
    }
}

fn idle(index: u32) -> DeviceReading {
    let (use_share, memory) = (Some(0.0), Some(1 << 20));
    DeviceReading { use_share, memory_used_bytes: memory, power_w: Some(70.0), ..busy(index) }
}

fn look(at: Moment, devices: Vec<DeviceReading>) -> DevicesSample {
    DevicesSample { at, took: Duration::from_millis(4), source: DeviceSource::Nvml, devices }
}

/// A look every second from 0 s to 5 s.
fn looked(mut of: impl FnMut(u64) -> Vec<DeviceReading>) -> Observations {
    let devices = (0..=5).map(|second| look(ms(1_000 * second), of(second))).collect();
    with(Machines { devices, devices_absence: None, ..Machines::default() })
}

fn with(machines: Machines) -> Observations {
    Observations { machines, ..calm() }
}

fn gpus(observations: &Observations) -> GpuFigures {
    summarize(observations).machines.gpus.unwrap()
}

fn scalar(observations: &Observations, name: &str) -> (Option<f64>, Option<String>) {
    let summary = summarize(observations);
    let found = summary.metrics.scalar(crate::metric::Metric::named(name).unwrap()).unwrap();
    (found.value, found.reason.clone())
}

fn is_near(found: Option<f64>, expected: f64) -> bool {
    found.is_some_and(|found| (found - expected).abs() < 1e-6 * expected)
}

#[test]
fn power_makes_energy_over_the_window_of_the_throughputs() {
    let run = looked(|_| vec![busy(0)]);
    let found = gpus(&run);
    assert_eq!(found.devices[0].energy_from, Some(EnergyFrom::Power));
    assert!(is_near(found.energy_j, 300.0 * WINDOW_S), "{:?}", found.energy_j);
    assert!(is_near(found.energy_per_output_token_j, 300.0 * WINDOW_S / 120.0));
    let kwh = 300.0 * WINDOW_S / 120.0 / 3.6;
    assert!(is_near(found.energy_per_million_tokens_kwh, kwh));
    assert!(is_near(scalar(&run, "gpu_power").0, 300.0));
    assert!(is_near(scalar(&run, "output_tokens_per_joule").0, 120.0 / (300.0 * WINDOW_S)));
}

#[test]
fn a_ramp_of_power_is_the_area_under_it() {
    let at = |second: u64| DeviceReading { power_w: Some(100.0 * second as f64), ..busy(0) };
    let run = looked(|second| vec![at(second)]);
    assert!(is_near(gpus(&run).energy_j, 50.0 * WINDOW_S * WINDOW_S));
}

#[test]
fn a_counter_that_grows_goes_before_power_and_one_that_falls_or_rests_does_not() {
    let told = |of: fn(u64) -> f64| {
        let run = looked(|second| vec![DeviceReading { energy_j: Some(of(second)), ..busy(0) }]);
        let found = gpus(&run);
        (found.devices[0].energy_from, found.energy_j)
    };
    let (from, joules) = told(|second| 9_000.0 + 200.0 * second as f64);
    assert_eq!(from, Some(EnergyFrom::Counter));
    assert!(is_near(joules, 200.0 * WINDOW_S), "{joules:?}");
    for broken in [|second: u64| if second < 3 { 900.0 } else { 10.0 }, |_| 5.0] {
        let (from, joules) = told(broken);
        assert_eq!(from, Some(EnergyFrom::Power));
        assert!(is_near(joules, 300.0 * WINDOW_S), "{joules:?}");
    }
}

#[test]
fn looks_that_miss_much_of_the_run_make_no_energy() {
    let all = looked(|_| vec![busy(0)]).machines.devices;
    let some = |kept: std::ops::Range<usize>| Machines {
        devices: all[kept].to_vec(),
        devices_absence: None,
        ..Machines::default()
    };
    assert!(gpus(&with(some(0..5))).energy_j.is_some(), "the last 20 ms are like the rest");
    let run = with(some(0..3));
    let found = gpus(&run);
    assert_eq!(found.energy_j, None);
    assert!(found.energy_missing.unwrap().contains("too rarely"));
    assert!(scalar(&run, "energy_per_output_token").1.unwrap().contains("too rarely"));
}

#[test]
fn readings_far_apart_are_not_joined() {
    let mut run = looked(|_| vec![busy(0)]);
    run.machines.devices.drain(1..5);
    run.machines.devices[1].at = ms(6_000);
    assert_eq!(gpus(&run).energy_j, None);
    run.machines.devices[1].at = ms(5_000);
    assert!(gpus(&run).energy_j.is_some());
}

#[test]
fn gpus_that_rest_are_in_no_sum_and_are_named_when_all_do() {
    let found = gpus(&looked(|_| vec![busy(0), idle(1)]));
    assert_eq!(found.devices.iter().map(|device| device.idle).collect::<Vec<_>>(), [false, true]);
    assert!(is_near(found.energy_j, 300.0 * WINDOW_S));
    assert_eq!(found.power_w.map(|power| power.max), Some(300.0));
    assert_eq!(found.timeline.power_w, [Some(300.0); 6]);
    let run = looked(|_| vec![idle(0), idle(1)]);
    let reason = "no GPU that was read did anything during the run";
    assert_eq!(gpus(&run).energy_missing.as_deref(), Some(reason));
    assert_eq!(scalar(&run, "gpu_power"), (None, Some(reason.to_owned())));
    // A model fills memory, even if nothing ran at the moments of the looks.
    let loaded = gpus(&looked(|_| vec![DeviceReading { use_share: Some(0.0), ..busy(0) }]));
    assert!(!loaded.devices[0].idle);
}

#[test]
fn one_device_that_does_not_tell_makes_the_sum_unknown() {
    let silent = DeviceReading { power_w: None, ..busy(1) };
    let found = gpus(&looked(|_| vec![busy(0), silent.clone()]));
    assert_eq!((found.energy_j, found.power_w), (None, None));
    assert!(found.devices[0].energy_j.is_some() && found.devices[1].energy_j.is_none());
    assert_eq!(found.timeline.power_w, [None; 6]);
    assert_eq!(found.memory_used_bytes.map(|memory| memory.max), Some(120.0 * f64::from(1 << 30)));
}

#[test]
fn columns_of_a_timeline_are_sums_means_and_highest() {
    let hot = |index: u32, use_share: f64, celsius: f64| DeviceReading {
        use_share: Some(use_share),
        temperature_c: Some(celsius),
        ..busy(index)
    };
    let found = gpus(&looked(|_| vec![hot(0, 0.2, 60.0), hot(1, 0.6, 70.0)])).timeline;
    assert_eq!((found.from_ms, found.step_ms), (0.0, 1_000.0));
    assert_eq!(found.power_w, [Some(600.0); 6]);
    assert!(found.use_share.iter().all(|value| is_near(*value, 0.4)));
    assert_eq!(found.temperature_c, [Some(70.0); 6]);
    assert_eq!(found.core_clock_mhz, [None; 6], "nobody tells");
}

#[test]
fn who_comes_during_the_run_is_new_and_who_was_there_is_not() {
    let with_processes =
        |processes: Vec<u32>| DeviceReading { processes: Some(processes), ..busy(0) };
    let mut run = looked(|second| match second {
        1 | 5 => vec![with_processes(vec![10, 11])],
        2 => vec![with_processes(vec![10, 12])],
        _ => vec![with_processes(vec![10])],
    });
    assert_eq!(gpus(&run).devices[0].newcomers, 2);
    run.ending.began = Some(ms(1_500));
    assert_eq!(gpus(&run).devices[0].newcomers, 1, "what the last look before it shows was there");
}

fn on(index: u32, processes: &[u32]) -> DeviceReading {
    DeviceReading { processes: Some(processes.to_vec()), ..busy(index) }
}

fn served(run: Observations, server: ServerFacts) -> Observations {
    let manifest = Manifest { server: Some(server), ..run.manifest };
    Observations { manifest, ..run }
}

fn counted(run: &Observations) -> (Option<ServersBy>, Vec<u32>) {
    let found = gpus(run);
    let indices = found.devices.iter().filter(|it| it.counts()).map(|it| it.index).collect();
    (found.servers_by, indices)
}

/// GPU 0 is the server's; the other one is another's, who comes during the run.
fn shared() -> Observations {
    let other = |second: u64| if second < 2 { vec![] } else { vec![77] };
    looked(|second| vec![on(0, &[10, 11]), on(1, &other(second))])
}

#[test]
fn gpus_without_a_process_of_the_server_are_in_no_sum_and_nobody_is_new_there() {
    let facts = ServerFacts { processes: vec![9, 11], ..ServerFacts::default() };
    let run = served(shared(), facts.clone());
    assert_eq!(counted(&run), (Some(ServersBy::Processes), vec![0]));
    assert!(is_near(gpus(&run).energy_j, 300.0 * WINDOW_S));
    assert_eq!(crate::fixture::raised(&run), []);
    // Two are the server's, and only one is found: the rest of its processes is not known.
    let spread = ServerFacts { gpus_used: Some(2), ..facts };
    let run = served(shared(), spread);
    assert_eq!(counted(&run), (None, vec![0, 1]));
    assert_ne!(crate::fixture::raised(&run), []);
}

fn deployed(kind: &str, name: &str, value: &str) -> DeploymentFacts {
    DeploymentFacts {
        kind: kind.to_owned(),
        command: Vec::new(),
        image: None,
        environment: vec![(name.to_owned(), value.to_owned())],
        ready_after: Duration::ZERO,
        restarts: 0,
    }
}

#[test]
fn gpus_that_the_environment_names_are_the_servers() {
    let by = |kind: &str, name: &str, value: &str| {
        let deployment = Some(deployed(kind, name, value));
        let facts = ServerFacts { deployment, ..ServerFacts::default() };
        counted(&served(shared(), facts))
    };
    let (named, unknown) = (Some(ServersBy::Environment), (None, vec![0, 1]));
    assert_eq!(by("process", "CUDA_VISIBLE_DEVICES", "1"), (named, vec![1]));
    assert_eq!(by("process", "HIP_VISIBLE_DEVICES", "0, 1"), (named, vec![0, 1]));
    assert_eq!(by("container", "NVIDIA_VISIBLE_DEVICES", "0"), (named, vec![0]));
    // Of a container that we are in ourselves, of a machine that we do not see, and no number.
    assert_eq!(by("process", "NVIDIA_VISIBLE_DEVICES", "1"), unknown);
    assert_eq!(by("process", "CUDA_VISIBLE_DEVICES", "5"), unknown);
    assert_eq!(by("process", "CUDA_VISIBLE_DEVICES", "GPU-aa"), unknown);
}

#[test]
fn the_only_gpu_of_the_machine_is_the_servers() {
    let by = |facts: ServerFacts| counted(&served(looked(|_| vec![on(4, &[77])]), facts));
    let here = ServerFacts { known_by: Some(KnownBy::Loopback), ..ServerFacts::default() };
    assert_eq!(by(here.clone()), (Some(ServersBy::OnlyOne), vec![4]));
    let unknown = (None, vec![4]);
    assert_eq!(by(ServerFacts::default()), unknown, "it may be elsewhere");
    assert_eq!(by(ServerFacts { gpus_used: Some(2), ..here.clone() }), unknown);
    let blind = deployed("process", "CUDA_VISIBLE_DEVICES", "-1");
    assert_eq!(by(ServerFacts { deployment: Some(blind), ..here }), unknown, "it has no GPU");
}

#[test]
fn looks_that_were_missed_inside_the_run_are_counted() {
    let mut run = looked(|_| vec![busy(0)]);
    let missed = |second: u64| MissedLook { at: ms(1_000 * second), reason: LookMiss::Timeout };
    run.machines.devices_missed = vec![missed(2), missed(3), missed(9)];
    assert_eq!(gpus(&run).missed, 2);
}

#[test]
fn absence_has_its_reason_and_old_documents_say_nothing() {
    let machines =
        Machines { devices_absence: Some(DevicesAbsence::Elsewhere), ..Machines::default() };
    let run = with(machines);
    let summary = summarize(&run);
    assert_eq!(summary.machines.gpus, None);
    let reason = summary.machines.gpus_missing.as_deref();
    assert_eq!(
        reason,
        Some(
            "no server of models was seen on this machine; if it runs here, add --server-info local"
        )
    );
    assert_eq!(summary.machines.client, None);
    assert_eq!(scalar(&run, "gpu_power").0, None);
    let old: MachineFigures = serde_json::from_str("{}").unwrap();
    assert_eq!(old, MachineFigures::default());
    assert_eq!(gpus_of_nothing(), None);
}

/// A tool that answers without a device.
fn gpus_of_nothing() -> Option<GpuFigures> {
    summarize(&looked(|_| Vec::new())).machines.gpus
}

fn client_look(second: u64, received: u64) -> ClientSample {
    ClientSample {
        at: ms(1_000 * second),
        cpu_share: Some(0.25),
        steal_share: None,
        own_cpus: Some(1.5),
        received_bytes: Some(received),
        sent_bytes: None,
        memory_available_bytes: Some(8_000_000_000 - second),
    }
}

#[test]
fn the_clients_machine_is_told_by_the_looks_inside() {
    let client = (0..=9).map(|second| client_look(second, 500 + 100 * second)).collect();
    let run = with(Machines { client, ..Machines::default() });
    let found = summarize(&run).machines.client.unwrap();
    assert_eq!(found.looks, 5, "the run ends after 4.02 s");
    assert_eq!(found.cpu_share, Some(GaugeFigures { mean: 0.25, max: 0.25, n: 5 }));
    assert_eq!((found.steal_share, found.sent_bytes_per_s), (None, None));
    assert_eq!(found.received_bytes_per_s, Some(100.0));
    assert_eq!(found.memory_available_bytes_min, Some(7_999_999_996));
    assert_eq!(found.timeline.received_bytes_per_s[..3], [None, Some(100.0), Some(100.0)]);
}

#[test]
fn a_total_that_falls_has_no_rate() {
    let client = vec![client_look(0, 900), client_look(1, 100), client_look(2, 1_000)];
    let run = with(Machines { client, ..Machines::default() });
    let found = summarize(&run).machines.client.unwrap();
    assert_eq!(found.received_bytes_per_s, None);
    assert_eq!(found.timeline.received_bytes_per_s, [None, None, Some(900.0)]);
}
