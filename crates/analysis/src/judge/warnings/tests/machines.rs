//! Machines that give a reason to doubt, and those that do not.

use std::time::Duration;

use inferometer_model::Observations;
use inferometer_model::telemetry::{
    ClientSample, DeviceReading, DeviceSource, DevicesSample, Machines, Throttle,
};

use super::*;
use crate::fixture::{calm, ms, raised};
use crate::judge::CheckState::{NotChecked, Passed};
use crate::summary::summarize;

fn reading() -> DeviceReading {
    DeviceReading {
        index: 3,
        use_share: Some(0.9),
        memory_used_bytes: Some(90),
        memory_total_bytes: Some(100),
        temperature_c: Some(60.0),
        throttle: Some(Throttle::default()),
        processes: Some(vec![1]),
        ..DeviceReading::default()
    }
}

/// Forty looks inside the run, the first ones of which are as given.
fn looked(first: usize, odd: &DeviceReading) -> Observations {
    let sample = |place: usize| DevicesSample {
        at: ms(100 * place as u64),
        took: Duration::from_millis(1),
        source: DeviceSource::NvidiaSmi,
        devices: vec![if (1..=first).contains(&place) { odd.clone() } else { reading() }],
    };
    let devices = (0..40).map(sample).collect();
    let machines = Machines { devices, devices_absence: None, ..Machines::default() };
    Observations { machines, ..calm() }
}

fn client(cpu_share: f64, steal_share: f64, memory: u64) -> Observations {
    let sample = |second: u64| ClientSample {
        at: ms(1_000 * second),
        cpu_share: Some(cpu_share),
        steal_share: Some(steal_share),
        own_cpus: None,
        received_bytes: None,
        sent_bytes: None,
        memory_available_bytes: Some(memory),
    };
    let machines = Machines { client: (0..4).map(sample).collect(), ..Machines::default() };
    Observations { machines, ..calm() }
}

#[test]
fn calm_machines_raise_nothing_and_pass_their_checks() {
    let run = looked(0, &reading());
    assert_eq!(raised(&run), []);
    let states = |run: &Observations, key: &str| {
        let checks = summarize(run).checks;
        checks.into_iter().find(|check| check.key == key).unwrap().state
    };
    assert_eq!((states(&run, "gpu-speed"), states(&run, "gpu-alone")), (Passed, Passed));
    assert_eq!(states(&run, "client-machine"), NotChecked);
    let run = client(0.4, 0.0, 1 << 40);
    assert_eq!(raised(&run), []);
    assert_eq!((states(&run, "client-machine"), states(&run, "gpu-speed")), (Passed, NotChecked));
}

/// Faults: 104.
#[test]
fn heat_and_brakes_degrade_where_they_last_and_a_power_limit_is_noted() {
    let held = |throttle: Throttle| DeviceReading { throttle: Some(throttle), ..reading() };
    let thermal = held(Throttle { thermal: true, ..Throttle::default() });
    assert_eq!(raised(&looked(1, &thermal)), [("gpu-throttled", Severity::Note)]);
    assert_eq!(raised(&looked(8, &thermal)), [("gpu-throttled", Severity::Degraded)]);
    let power = held(Throttle { power: true, ..Throttle::default() });
    assert_eq!(raised(&looked(39, &power)), [("gpu-power-limit", Severity::Note)]);
    assert_eq!(
        warning(&looked(8, &thermal), "gpu-throttled").text,
        "GPU 3 was throttled by its temperature in 20 % of the samples"
    );
}

#[test]
fn heat_full_memory_and_rest_are_noted() {
    let hot = DeviceReading { temperature_c: Some(91.0), ..reading() };
    assert_eq!(raised(&looked(1, &hot)), [("gpu-hot", Severity::Note)]);
    let mut junction = looked(1, &hot);
    for sample in &mut junction.machines.devices {
        sample.source = DeviceSource::AmdSmi;
    }
    assert_eq!(raised(&junction), [], "the hottest place of a chip may be so hot");
    junction.machines.devices[1].devices[0].temperature_c = Some(97.0);
    assert_eq!(raised(&junction), [("gpu-hot", Severity::Note)]);
    let full = DeviceReading { memory_used_bytes: Some(99), ..reading() };
    assert_eq!(raised(&looked(1, &full)), [("gpu-memory-full", Severity::Note)]);
    let mut idle = looked(0, &reading());
    for sample in &mut idle.machines.devices {
        sample.devices[0].use_share = Some(0.0);
        sample.devices[0].memory_used_bytes = Some(1);
    }
    assert_eq!(raised(&idle), [("gpus-idle", Severity::Note)]);
}

/// Faults: 104.
#[test]
fn a_stranger_on_the_gpu_degrades() {
    let two = DeviceReading { processes: Some(vec![1, 2]), ..reading() };
    assert_eq!(raised(&looked(2, &two)), [("gpu-newcomers", Severity::Degraded)]);
}

#[test]
fn a_client_without_room_degrades() {
    assert_eq!(raised(&client(0.95, 0.0, 1 << 40)), [("client-cpu-full", Severity::Degraded)]);
    assert_eq!(raised(&client(0.5, 0.0, 1 << 20)), [("client-memory-low", Severity::Degraded)]);
    assert_eq!(raised(&client(0.5, 0.05, 1 << 40)), [("cpu-stolen", Severity::Degraded)]);
    let low = warning(&client(0.5, 0.0, 100 << 20), "client-memory-low");
    assert_eq!(low.text, "the client's machine had 100 MiB of memory left (needs 512 MiB)");
}
