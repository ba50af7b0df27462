//! The sampler with GPUs that answer, hang, fail, or are not there.

use std::sync::Mutex;
use std::time::Instant;

use inferometer_model::telemetry::{Machines, gather};

use super::*;

#[derive(Clone, Copy)]
struct RealClock(Instant);

impl RealClock {
    #[expect(clippy::disallowed_methods, reason = "waiting is real here, so the clock is")]
    fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for RealClock {
    fn now(&self) -> Moment {
        Moment::ZERO + self.0.elapsed()
    }
}

fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

fn quick() -> Sampling {
    Sampling { every: ms(5), open_limit: ms(40), look_limit: ms(40) }
}

fn gpu(index: u32) -> DeviceReading {
    DeviceReading { index, use_share: Some(0.5), ..DeviceReading::default() }
}

/// Entries go where the test can see them come.
type Journal = Sender<TelemetryEntry>;

fn append(journal: &mut Journal, entry: &TelemetryEntry) -> Result<(), &'static str> {
    journal.send(entry.clone()).map_err(|_unread| "nobody reads")
}

/// Samples until an entry of the wanted kind came, and gives everything.
fn sampled(devices: Devices, enough: impl Fn(&TelemetryEntry) -> bool) -> Machines {
    let (journal, entries) = mpsc::channel();
    let sampler = Sampler::start(quick(), RealClock::start(), devices, journal, append).unwrap();
    let mut received: Vec<TelemetryEntry> = Vec::new();
    while !received.last().is_some_and(&enough) {
        received.push(entries.recv_timeout(Duration::from_mins(1)).unwrap());
    }
    drop(sampler.stop().unwrap().unwrap());
    received.extend(entries);
    gather(received).1
}

fn is_missed(entry: &TelemetryEntry, wanted: LookMiss) -> bool {
    matches!(entry, TelemetryEntry::DevicesMissed(look) if look.reason == wanted)
}

#[test]
fn a_run_lies_between_the_first_look_and_the_last() {
    let (journal, entries) = mpsc::channel();
    let devices = Devices::Asked(GpuProbe::from_fn(|| vec![gpu(1), gpu(0)]));
    let calm = Sampling::new(Duration::from_mins(1));
    let sampler = Sampler::start(calm, RealClock::start(), devices, journal, append).unwrap();
    let before: Vec<TelemetryEntry> = entries.try_iter().collect();
    drop(sampler.stop().unwrap().unwrap());
    let after: Vec<TelemetryEntry> = entries.into_iter().collect();
    for looks in [before, after] {
        let machines = gather(looks.clone()).1;
        assert_eq!((machines.devices.len(), machines.client.len()), (1, 1), "{looks:?}");
        assert_eq!(machines.devices[0].devices, [gpu(0), gpu(1)], "in the order of their numbers");
    }
}

#[test]
fn a_look_that_hangs_is_given_up_and_the_client_is_seen_all_the_same() {
    let (free, hang) = mpsc::channel::<()>();
    let hang = Mutex::new(hang);
    let mut looks = 0;
    let opening = GpuProbe::from_fn(move || {
        looks += 1;
        if looks == 2 {
            let _ = hang.lock().map(|hang| hang.recv());
        }
        vec![gpu(0)]
    });
    let machines = sampled(Devices::Asked(opening), |entry| is_missed(entry, LookMiss::Timeout));
    drop(free);
    assert_eq!(machines.devices.len(), 1);
    let timeouts =
        machines.devices_missed.iter().filter(|look| look.reason == LookMiss::Timeout).count();
    assert_eq!(timeouts, 1, "a hanging look is one look");
    assert!(1 < machines.client.len());
}

#[test]
fn a_look_that_comes_late_is_written_down_and_missed_once() {
    let (free, hang) = mpsc::channel::<()>();
    let hang = Mutex::new(hang);
    let clock = RealClock::start();
    let (tell, second_look) = mpsc::channel();
    let mut looks = 0;
    let opening = GpuProbe::from_fn(move || {
        looks += 1;
        if looks == 2 {
            let _ = tell.send(clock.now());
            let _ = hang.lock().map(|hang| hang.recv());
        }
        vec![gpu(0)]
    });
    let (journal, entries) = mpsc::channel();
    let devices = Devices::Asked(opening);
    // A look that hangs is told from one that a busy machine holds up.
    let patient = Sampling { look_limit: ms(400), ..quick() };
    let sampler = Sampler::start(patient, clock, devices, journal, append).unwrap();
    let mut received: Vec<TelemetryEntry> = Vec::new();
    let mut hear_until = |enough: &dyn Fn(&TelemetryEntry) -> bool| {
        while !received.last().is_some_and(enough) {
            received.push(entries.recv_timeout(Duration::from_mins(1)).unwrap());
        }
    };
    hear_until(&|entry| is_missed(entry, LookMiss::Timeout));
    let waited = clock.now().since(second_look.recv().unwrap()).unwrap();
    drop(free);
    let is_look = |entry: &TelemetryEntry| matches!(entry, TelemetryEntry::Devices(_));
    hear_until(&is_look);
    drop(sampler.stop().unwrap().unwrap());
    let machines = gather(received).1;
    let [first, late] = machines.devices.try_into().unwrap();
    assert!(first.took < patient.look_limit && waited <= late.took, "{late:?} in {waited:?}");
    let is_given_up = |look: &&MissedLook| look.reason != LookMiss::BackedOff;
    assert_eq!(machines.devices_missed.iter().filter(is_given_up).count(), 1);
}

#[test]
fn a_driver_that_hangs_from_the_start_does_not_keep_a_run_from_its_beginning() {
    let (free, hang) = mpsc::channel::<()>();
    let opening = GpuProbe::from_readings(move || {
        let _ = hang.recv();
        Ok(Vec::new())
    });
    let machines = sampled(Devices::Asked(opening), |entry| is_missed(entry, LookMiss::Timeout));
    drop(free);
    assert!(machines.devices.is_empty());
    let why = machines.devices_absence.map(|absence| absence.to_string());
    assert_eq!(why.as_deref(), Some("the GPUs could not be read: no look was answered in time"));
}

#[test]
fn looks_that_fail_are_counted() {
    let opening = GpuProbe::from_readings(|| Ok(vec![vec![gpu(0)]]));
    let machines = sampled(Devices::Asked(opening), |entry| is_missed(entry, LookMiss::Failed));
    assert_eq!(machines.devices.len(), 1);
    assert_eq!(machines.devices_absence, None);
}

#[test]
fn where_nobody_sees_gpus_the_reason_is_written_down() {
    let blind = GpuProbe::from_readings(|| Err(DevicesAbsence::NoneFound));
    let is_absent = |entry: &TelemetryEntry| matches!(entry, TelemetryEntry::DevicesAbsent(_));
    for (devices, absence) in [
        (Devices::Asked(blind), DevicesAbsence::NoneFound),
        (Devices::Absent(DevicesAbsence::Elsewhere), DevicesAbsence::Elsewhere),
    ] {
        let machines = sampled(devices, is_absent);
        assert_eq!(machines.devices_absence, Some(absence));
        assert!(machines.devices_missed.is_empty());
    }
}
