//! Each warning of the client, raised and not raised.

use inferometer_model::journal::{ClockMapping, CpuFacts, LagHistogram, NotSent, RunStop};
use inferometer_model::observations::CalibrationFacts;
use inferometer_model::observations::Connections;
use inferometer_model::record::{ConnectionFacts, Dial};
use inferometer_model::spec::{Arrivals, LoadShape, Rate};
use inferometer_model::stripe::{HostFacts, MergeFacts, StripeFacts, WorkerFacts, WorkerRun};
use inferometer_model::{Outcome, RequestId};

use super::*;
use crate::client::ClientHealth;
use crate::fixture::{calm, ms, raised};

fn with_sent_delay(shape: &LoadShape, delay: u64) -> Observations {
    let mut observations = calm();
    observations.manifest.spec.load.shape = shape.clone();
    for record in observations.records.held_mut() {
        let intended = record.intended.as_nanos() / 1_000_000;
        record.admitted = record.intended;
        record.sent = Some(ms(intended + delay));
    }
    observations
}

/// Faults: 71.
#[test]
fn late_sending_spoils_an_open_loop_and_not_a_closed_one() {
    let (rate, arrivals) = (Rate::Steady { per_s: 10.0 }, Arrivals::Poisson);
    for cap in [None, std::num::NonZeroU32::new(8)] {
        let open = LoadShape::Open { rate: rate.clone(), arrivals, cap };
        let late = |delay| raised(&with_sent_delay(&open, delay));
        let is_late = |found: &[(&str, Severity)]| found.iter().any(|(key, _)| *key == "sent-late");
        assert_eq!(late(4), []);
        assert!(!is_late(&late(10)));
        assert!(late(11).contains(&("sent-late", Severity::Degraded)));
        assert!(late(101).contains(&("sent-late", Severity::Invalid)));
    }
    let closed = calm().manifest.spec.load.shape;
    assert_eq!(raised(&with_sent_delay(&closed, 4)), [], "TTFT is then 46 ms");
    assert_eq!(
        raised(&with_sent_delay(&closed, 6)),
        [("sent-late-relative", Severity::Degraded)],
        "a closed loop is slowed down"
    );
    // Opening a connection is not the client's delay.
    let mut dialled = with_sent_delay(&closed, 6);
    dialled.manifest.endpoint.connections = Connections::New;
    for record in dialled.records.held_mut() {
        let (started, connected) = (record.admitted, record.sent.unwrap());
        let dial = Some(Dial { started, connected, secured: None });
        record.connection = Some(ConnectionFacts { ordinal: 0, reused: false, dial });
    }
    assert_eq!(raised(&dialled), []);
}

#[test]
fn a_driver_without_spare_time_is_named() {
    let with_cpu = |used_us| {
        let mut observations = calm();
        observations.ending.client.driver_cpu_us = Some(used_us);
        raised(&observations)
    };
    assert_eq!(with_cpu(700_000), []);
    assert_eq!(with_cpu(710_000), [("driver-busy", Severity::Degraded)]);
    assert_eq!(with_cpu(910_000), [("driver-busy", Severity::Invalid)]);
}

fn with_client_lag(lag_ns: u64) -> Observations {
    let mut observations = calm();
    for read in observations.records.held_mut().iter_mut().flat_map(|record| &mut record.reads) {
        let kernel = read.kernel.unwrap();
        read.user = kernel + std::time::Duration::from_nanos(lag_ns);
    }
    observations
}

#[test]
fn bytes_that_lie_in_the_kernel_are_our_lag() {
    assert_eq!(raised(&with_client_lag(5_000_000)), []);
    assert_eq!(raised(&with_client_lag(5_100_000)), [("client-lag", Severity::Degraded)]);
    assert_eq!(raised(&with_client_lag(51_000_000)), [("client-lag", Severity::Invalid)]);
}

fn with_loop_lag(lag_ns: u64, rest: u64) -> Observations {
    let mut observations = calm();
    let lags = &mut observations.ending.client.loop_lag;
    *lags = inferometer_model::journal::LagHistogram::default();
    lags.add(lag_ns);
    (0..rest).for_each(|_| lags.add(1_000));
    observations
}

/// Faults: 71.
#[test]
fn a_loop_that_wakes_late_is_named() {
    assert_eq!(raised(&with_loop_lag(4_000_000, 0)), []);
    assert_eq!(raised(&with_loop_lag(6_000_000, 0)), [("loop-lag", Severity::Degraded)]);
    assert_eq!(raised(&with_loop_lag(60_000_000, 0)), [("loop-lag", Severity::Invalid)]);
}

/// Faults: 72, 80.
#[test]
fn a_single_pause_degrades_even_when_the_p99_is_fine() {
    let raised_by = |lag_ms: u64| raised(&with_loop_lag(lag_ms * 1_000_000, 1_000));
    assert_eq!(raised_by(101), [("loop-paused", Severity::Degraded)]);
    assert_eq!(raised_by(1_001), [("loop-paused", Severity::Invalid)]);
    assert_eq!(raised_by(100), []);
}

fn with_width(width: u64) -> Observations {
    let mut observations = calm();
    for record in observations.records.held_mut() {
        let turn = record.reads[1].at().as_nanos() / 1_000_000 - width;
        record.reads[1].turn = ms(turn);
        let mut twin = record.events[1];
        twin.tokens = Some(0);
        record.events.insert(2, twin);
        // Room to look back into: the first read came long before.
        record.reads[0].kernel = Some(record.sent.unwrap() + std::time::Duration::from_millis(1));
        record.reads[0].user = record.reads[0].kernel.unwrap();
    }
    observations
}

/// Faults: 19, 41.
#[test]
fn coalesced_reads_with_a_wide_reach_are_named() {
    let about_width = |width| {
        let found = raised(&with_width(width));
        found.into_iter().find(|(key, _)| key.starts_with("arrival-width"))
    };
    assert_eq!(about_width(5), Some(("arrival-width-relative", Severity::Degraded)));
    assert_eq!(about_width(6), Some(("arrival-width", Severity::Degraded)));
    assert_eq!(about_width(51), Some(("arrival-width", Severity::Invalid)));
}

/// Faults: 79.
#[test]
fn jumps_of_the_clock_degrade() {
    let mut observations = calm();
    let mapping = ClockMapping { estimates: 5, error_ns_max: 100, jumps: 0 };
    observations.ending.client.mapping = Some(mapping);
    assert_eq!(raised(&observations), []);
    observations.ending.client.mapping = Some(ClockMapping { jumps: 1, ..mapping });
    assert_eq!(raised(&observations), [("clock-jump", Severity::Degraded)]);
}

#[test]
fn moments_out_of_order_are_invalid() {
    let mut observations = calm();
    observations.records.held_mut()[3].admitted = ms(0);
    assert_eq!(raised(&observations), [("clock-order", Severity::Invalid)]);
}

#[test]
fn an_ending_before_the_sending_is_out_of_order() {
    let mut observations = calm();
    observations.records.held_mut()[3].ending.at = ms(1);
    let expected = [("clock-order", Severity::Invalid), ("littles-law", Severity::Degraded)];
    assert_eq!(raised(&observations), expected);
}

#[test]
fn many_waits_for_the_journal_degrade_and_few_are_noted() {
    let with_waits = |waits, requests| {
        let mut observations = crate::fixture::calm_of(requests);
        observations.ending.client.journal_waits = waits;
        raised(&observations)
    };
    assert_eq!(with_waits(0, 100), []);
    assert_eq!(with_waits(1, 100), [("journal-waits", Severity::Note)]);
    assert_eq!(with_waits(2, 100), [("journal-waits", Severity::Degraded)]);
}

/// Faults: 17, 18.
#[test]
fn a_machine_that_ran_out_invalidates_the_run() {
    let mut never_sent = calm();
    never_sent.not_sent = vec![NotSent {
        first: RequestId(40),
        count: 2,
        cause: Cause::ClientResource,
        at: ms(5_000),
    }];
    assert_eq!(raised(&never_sent), [("client-resource", Severity::Invalid)]);
    never_sent.not_sent[0].cause = Cause::RunStopped;
    assert_eq!(raised(&never_sent), []);

    let mut attempted = calm();
    attempted.records.held_mut()[0].ending.outcome = Outcome::TransportError;
    attempted.records.held_mut()[0].ending.cause = Some(Cause::ClientResource);
    assert!(raised(&attempted).contains(&("client-resource", Severity::Invalid)));
}

#[test]
fn reads_without_a_kernel_stamp_are_noted() {
    let mut observations = calm();
    observations.records.held_mut()[0].reads[0].kernel = None;
    assert_eq!(raised(&observations), [("no-kernel-stamps", Severity::Note)]);
}

#[test]
fn texts_name_their_numbers() {
    let (rate, arrivals) = (Rate::Steady { per_s: 10.0 }, Arrivals::Poisson);
    let late = with_sent_delay(&LoadShape::Open { rate, arrivals, cap: None }, 12);
    assert_eq!(
        warning(&late, "sent-late").text,
        "1 % of the requests were sent 12.00 ms or more too late"
    );
    let mut unstamped = calm();
    for record in unstamped.records.held_mut().iter_mut().take(30) {
        record.reads.iter_mut().for_each(|read| read.kernel = None);
    }
    assert_eq!(
        warning(&unstamped, "no-kernel-stamps").text,
        "75 % of the reads have no kernel timestamp; the time of the read is used"
    );
}

#[test]
fn processor_time_that_went_elsewhere_is_doubted() {
    let stolen = |stolen_ticks| {
        let mut observations = calm();
        let cpu = CpuFacts { process_ns: 1, ticks: 1_000, stolen_ticks };
        observations.ending.client.cpu = Some(cpu);
        raised(&observations)
    };
    assert_eq!(stolen(20), []);
    assert_eq!(stolen(21), [("cpu-stolen", Severity::Degraded)]);
    assert_eq!(stolen(101), [("cpu-stolen", Severity::Invalid)]);
}

#[test]
fn what_a_cap_held_back_is_told_and_is_not_late() {
    let mut observations = calm();
    let (rate, arrivals) = (Rate::Steady { per_s: 10.0 }, Arrivals::Poisson);
    let cap = std::num::NonZeroU32::new(2);
    observations.manifest.spec.load.shape = LoadShape::Open { rate, arrivals, cap };
    for record in observations.records.held_mut() {
        // The cap let it go when it was sent, long after it was due.
        record.intended = ms(0);
        record.admitted = record.sent.unwrap();
    }
    assert_eq!(raised(&observations), [("held-by-cap", Severity::Note)]);
}

#[test]
fn a_client_near_its_capacity_is_doubted() {
    let with_capacity = |requests_per_s| {
        let mut observations = calm();
        let calibration = CalibrationFacts {
            when: "2026-01-02T03:04:05Z".to_owned(),
            drivers: 1,
            requests_per_s,
            events_per_s: 1e9,
            errors: Vec::new(),
        };
        observations.manifest.calibration = Some(calibration);
        observations
    };
    // Of a client that can carry one request per second, the load uses as many times that.
    let alone = with_capacity(1.0);
    let health = ClientHealth::from_observations(&alone, &Measured::from_observations(&alone));
    let busiest = health.capacity.unwrap().used;
    let used = |requests_per_s| raised(&with_capacity(requests_per_s));
    assert_eq!(used(busiest / 0.49), []);
    assert_eq!(used(busiest / 0.51), [("capacity-used", Severity::Degraded)]);
    assert_eq!(used(busiest / 0.81), [("capacity-used", Severity::Invalid)]);
}

/// A run of workers on two machines, whose clocks may be so far apart.
fn merged(apart_ms: Option<u64>, lag_ms: u64) -> Observations {
    let worker = |index: u32| {
        let stripe = format!("{index}/2").parse().unwrap();
        let error_ns = apart_ms.map(|ms| ms * 500_000);
        let host = HostFacts { name: format!("n{index}"), error_ns, ..HostFacts::default() };
        let mut loop_lag = LagHistogram::default();
        // Only that of the second.
        loop_lag.add(u64::from(index) * lag_ms * 1_000_000);
        let run = WorkerRun {
            run: format!("run-{index}"),
            host,
            stop: RunStop::PlanDone,
            late_ns: None,
            attempted: 20,
            not_sent: 0,
            loop_lag,
            driver_cpu_us: None,
        };
        WorkerFacts { stripe, run: Some(run) }
    };
    let mut observations = calm();
    let clock_error_ns = apart_ms.map(|ms| ms * 1_000_000);
    let workers = (0..2).map(worker).collect();
    observations.manifest.merged = Some(MergeFacts { clock_error_ns, workers });
    observations
}

#[test]
fn clocks_of_workers_that_are_apart_degrade_and_far_apart_invalidate() {
    assert_eq!(raised(&merged(Some(0), 0)), []);
    assert_eq!(raised(&merged(Some(10), 0)), []);
    assert_eq!(raised(&merged(Some(11), 0)), [("workers-clock", Severity::Degraded)]);
    assert_eq!(raised(&merged(Some(1_001), 0)), [("workers-clock", Severity::Invalid)]);
    assert_eq!(raised(&merged(None, 0)), [("workers-clock", Severity::Degraded)]);
    let summary = crate::summarize(&merged(None, 0));
    let warning = summary.warnings.iter().find(|warning| warning.key == "workers-clock").unwrap();
    assert!(warning.text.ends_with("(worker 0/2 on n0, worker 1/2 on n1)"), "{warning:?}");
}

#[test]
fn the_slowest_loop_of_all_workers_counts() {
    let worst = |lag_ms| raised(&merged(Some(0), lag_ms));
    assert_eq!(worst(1), []);
    assert_eq!(worst(9), [("worker-lag", Severity::Degraded)]);
    assert_eq!(worst(200), [("worker-lag", Severity::Invalid)]);
    let summary = crate::summarize(&merged(Some(0), 200));
    let warning = summary.warnings.iter().find(|warning| warning.key == "worker-lag").unwrap();
    assert!(warning.text.starts_with("the loop of worker 1/2 on n1 woke up"), "{warning:?}");
}

#[test]
fn the_share_of_one_worker_is_no_result_of_its_own() {
    let mut observations = calm();
    observations.manifest.stripe = Some(StripeFacts {
        stripe: "0/4".parse().unwrap(),
        start_ns: 0,
        whole: observations.manifest.bounds,
        host: HostFacts::default(),
    });
    assert_eq!(raised(&observations), [("worker-alone", Severity::Degraded)]);
}
