//! Judging a run or a set: checks, warnings, thresholds and the verdict.
//!
//! The verdict follows from the [checks](Check), by this rule:
//!
//! - any check that is `invalid` makes the run invalid: its numbers do not describe the server;
//! - otherwise any check that is `degraded` makes it degraded: the numbers hold with a reservation;
//! - otherwise it is valid. Notes, and checks that could not be made, change nothing.
//!
//! A check is as severe as the most severe warning that belongs to it. Too few samples for a percentile
//! withhold that percentile's certificate and change no verdict.
//!
//! A check is one entry of [`CHECKS`]: unit, limits, and the function that finds its value. Its title and
//! its description are in `texts.md`. To add a check, add its variant
//! to [`CheckKind`], which gives it its key, its entry and its texts, then run `cargo xtask docs`.

mod threshold;
mod warnings;

use std::sync::LazyLock;

use inferometer_model::Observations;
use inferometer_model::fmt::{compact, count, number, percent};
use inferometer_model::observations::Manifest;
use serde::{Deserialize, Serialize};

pub use self::threshold::*;
pub(crate) use self::warnings::{
    CACHED_SHARE, CACHED_SHARE_GRAVE, Raised, Rule, SEEN_BEFORE, by_severity, degraded,
    new_prompts, note, raise, run_warnings,
};
use self::warnings::{
    CAPACITY_SHARE, CLIENT_MS, CPU_FULL_SHARE, ERRORS_SHARE, FOREIGN_SHARE_GRAVE, SENT_LATE_MS,
    THROTTLED_SHARE, bounds, cached_share, failed, used_gpus,
};
use crate::audit::CACHE_UNKNOWN;
use crate::client::{ClientHealth, is_calibrated_wire, share};
use crate::littles_law::LITTLE_APART;
use crate::machines::ClientFigures;
use crate::metric::{self, Metric, NOTHING_OK, NOTHING_SENT};
use crate::offered_load::{Delivered, RATE_APART, RATE_APART_GRAVE, SLOTS_EMPTY};
use crate::record::{Measured, NO_TOKENS};
use crate::server::ServerSide;
use crate::steady::SteadyKind;
use crate::topic::sections;

/// How much a warning weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Note,
    Degraded,
    Invalid,
}

/// Whether the numbers of a run may be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Verdict {
    Valid,
    /// No check found a problem, and no server was measured.
    Simulated,
    Degraded,
    Invalid,
}

/// A reason not to rely on a run or a set, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    pub key: String,
    /// Key of the check that the warning belongs to; absent for a warning about a set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    pub severity: Severity,
    pub text: String,
    pub remedy: String,
}

/// One question about a run, and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    pub key: String,
    /// A question to which "yes" is good news.
    pub title: String,
    pub state: CheckState,
    /// What was found, or why the check could not be made.
    pub finding: String,
    /// The number that was judged, as far as there is one.
    pub figure: Option<f64>,
    pub unit: Option<String>,
    pub limits: Option<Limits>,
    /// What to do about it; present unless the check passed or was not made.
    pub remedy: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    NotChecked,
    Passed,
    Noted,
    Degraded,
    Invalid,
}

/// Values above which a figure degrades a run, and above which it invalidates it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    pub degraded: Option<f64>,
    pub invalid: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum CheckKind {
    CompleteRun,
    Errors,
    DeliveredLoad,
    SteadyState,
    LittlesLaw,
    SampleSize,
    SendLag,
    ClientLag,
    ArrivalWidth,
    ClientLoop,
    ClientCapacity,
    Clock,
    KernelStamps,
    Answerer,
    Stream,
    TokenCounts,
    InputLength,
    OutputLength,
    Cache,
    ServerRestart,
    ServerAlone,
    GpuSpeed,
    GpuAlone,
    ClientMachine,
}

/// The definition of one check.
#[derive(Debug)]
pub struct CheckDefinition {
    pub kind: CheckKind,
    /// Unit of the number that is judged; empty where there is none.
    pub unit: &'static str,
    pub limits: Option<Limits>,
    /// What the check finds when no warning is raised, or why it cannot be made.
    find: fn(&RunContext<'_>) -> Finding,
}

/// What a check found: the number that was judged, as far as there is one, and the text.
type Finding = Result<(Option<f64>, String), String>;

/// The run that checks and warnings look at.
pub(crate) struct RunContext<'a> {
    observations: &'a Observations,
    manifest: &'a Manifest,
    measured: &'a Measured,
    pub(crate) health: ClientHealth,
}

impl<'a> RunContext<'a> {
    pub(crate) fn new(observations: &'a Observations, measured: &'a Measured) -> Self {
        let health = ClientHealth::from_observations(observations, measured);
        Self { observations, manifest: &observations.manifest, measured, health }
    }

    /// The 99th percentile of a latency, if it has values.
    fn p99(&self, metric: &Metric) -> Option<f64> {
        self.measured.series(metric).found.as_ref().ok()?.p99
    }

    /// The median time to the first token, or to the end where only that is seen, in milliseconds.
    fn answer_ms(&self) -> Option<f64> {
        let median = |metric| self.measured.series(metric).found.as_ref().ok()?.p50;
        median(&metric::TTFT).or_else(|| median(&metric::E2E))
    }

    fn client_machine(&self) -> Option<&ClientFigures> {
        self.measured.machines.client.as_ref()
    }

    /// Whether the run was simulated in virtual time, in which there is no client to be judged.
    fn is_virtual(&self) -> bool {
        self.manifest.simulated.is_some()
    }
}

impl Verdict {
    pub fn from_states(states: impl IntoIterator<Item = CheckState>) -> Self {
        let verdict = |state| match state {
            CheckState::Invalid => Self::Invalid,
            CheckState::Degraded => Self::Degraded,
            CheckState::Passed | CheckState::Noted | CheckState::NotChecked => Self::Valid,
        };
        states.into_iter().map(verdict).max().unwrap_or(Self::Valid)
    }

    pub fn key(self) -> &'static str {
        self.into()
    }
}

/// Every remedy with the key of its warning. A key may carry a suffix where a warning has several.
pub static REMEDIES: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    let lines = include_str!("remedies.txt").lines();
    let remedies = lines.filter_map(|line| line.split_once(": "));
    remedies.flat_map(|(keys, text)| keys.split(", ").map(move |key| (key, text))).collect()
});

impl CheckKind {
    pub fn key(self) -> &'static str {
        self.into()
    }

    /// A question to which "yes" is good news, and what is looked at and how it is judged.
    pub fn texts(self) -> (&'static str, &'static str) {
        let mut checks = sections(include_str!("texts.md"), "# Checks");
        let text =
            checks.find(|(key, _)| *key == self.key()).and_then(|it| it.1.split_once("\n\n"));
        text.unwrap_or_default()
    }

    /// Whether the check is about the client, which does not exist in virtual time.
    const fn is_about_client(self) -> bool {
        matches!(
            self,
            Self::SendLag
                | Self::ClientLag
                | Self::ArrivalWidth
                | Self::ClientLoop
                | Self::ClientCapacity
                | Self::Clock
                | Self::KernelStamps
                | Self::ClientMachine
        )
    }
}

/// Every check, in the order of [`CHECKS`]. `warnings` are the run's, the most severe first.
pub(crate) fn run_checks(run: &RunContext<'_>, warnings: &[Warning]) -> Vec<Check> {
    let check = |check: &CheckDefinition| {
        let key = check.kind.key();
        let own = warnings.iter().filter(|warning| warning.check.as_deref() == Some(key));
        let raised: Vec<&Warning> = own.collect();
        let found = if run.is_virtual() && check.kind.is_about_client() {
            Err("there is no client in virtual time".to_owned())
        } else {
            (check.find)(run)
        };
        let figure = found.as_ref().ok().and_then(|(figure, _)| *figure);
        let (state, finding) = match (raised.first(), found) {
            (Some(gravest), _) => {
                let state = match gravest.severity {
                    Severity::Note => CheckState::Noted,
                    Severity::Degraded => CheckState::Degraded,
                    Severity::Invalid => CheckState::Invalid,
                };
                let texts: Vec<&str> = raised.iter().map(|one| one.text.as_str()).collect();
                (state, texts.join("; "))
            }
            (None, Ok((_, text))) => (CheckState::Passed, text),
            (None, Err(reason)) => (CheckState::NotChecked, reason),
        };
        // The slots of a closed loop have another limit than the rate of an open one.
        let is_slots = check.kind == CheckKind::DeliveredLoad
            && matches!(run.measured.delivered, Delivered::Slots(_));
        Check {
            key: key.to_owned(),
            title: check.kind.texts().0.to_owned(),
            state,
            finding,
            figure: figure.filter(|figure| figure.is_finite()),
            unit: figure.map(|_| check.unit.to_owned()),
            limits: if is_slots { Some(SLOTS_EMPTY) } else { check.limits },
            remedy: raised.first().map(|warning| warning.remedy.clone()),
        }
    };
    CHECKS.iter().map(check).collect()
}

/// The table of checks, in the order in which they are listed.
pub static CHECKS: &[CheckDefinition] = &[
    check(CheckKind::CompleteRun, "", None, |_| found(None, "the run completed its plan")),
    check(CheckKind::Errors, "share", Some(bounds(ERRORS_SHARE, 0.5)), |run| {
        let (attempted, failed) = (run.measured.attempted, failed(run));
        let share = share(failed, attempted).ok_or("no request was attempted")?;
        found(Some(share), format!("{failed} of {attempted} attempted requests failed"))
    }),
    check(CheckKind::DeliveredLoad, "share", Some(bounds(RATE_APART, RATE_APART_GRAVE)), |run| {
        delivered(run.measured)
    }),
    check(CheckKind::SteadyState, "s", None, |run| {
        let steady = &run.measured.steady;
        let (SteadyKind::Settled, Some(window)) = (steady.state, &steady.window) else {
            return Err(steady.reason.clone().unwrap_or_default());
        };
        let s = |ms: Option<f64>| ms.unwrap_or(0.0) / 1e3;
        let (from, to) = (s(window.from_ms), s(window.to_ms));
        found(window.duration_s, format!("steady from {} s to {} s", number(from), number(to)))
    }),
    check(CheckKind::LittlesLaw, "share", Some(degraded_from(LITTLE_APART)), |run| {
        littles_law(run.measured)
    }),
    check(CheckKind::SampleSize, "requests", None, |run| {
        let ok = run.measured.ok;
        found(Some(ok as f64), format!("{ok} requests ended ok"))
    }),
    check(CheckKind::SendLag, "ms", Some(SENT_LATE_MS), |run| {
        if !run.manifest.spec.is_open_loop() {
            return Err("a closed loop has no schedule".into());
        }
        p99(run.p99(&metric::SEND_LAG), "requests were sent late by", NOTHING_SENT)
    }),
    check(CheckKind::ClientLag, "ms", Some(CLIENT_MS), |run| {
        let lag = run.p99(&metric::CLIENT_LAG);
        p99(lag, "bytes waited in the kernel for", "no read has a kernel timestamp")
    }),
    check(CheckKind::ArrivalWidth, "ms", Some(CLIENT_MS), |run| {
        let width = run.measured.event_width.as_ref().and_then(|found| found.p99);
        p99(width, "events arrived before their timestamps by", "no ok answer has events")
    }),
    check(CheckKind::ClientLoop, "ms", Some(CLIENT_MS), |run| {
        let late = run.health.loop_lag_ms.p99_at_most.ok_or("the loop lag was not recorded")?;
        found(Some(late), format!("the loop woke at most {} ms late (p99)", number(late)))
    }),
    check(CheckKind::ClientCapacity, "share", Some(CAPACITY_SHARE), |run| {
        let missing = if is_calibrated_wire(run.manifest) {
            "the client was not calibrated on this machine (inferometer calibrate)"
        } else {
            "a calibration is valid for plain HTTP/1.1 only"
        };
        let used = run.health.capacity.as_ref().ok_or(missing)?.used;
        found(Some(used), format!("{} of the client's capacity was used", percent(used)))
    }),
    check(CheckKind::Clock, "times", None, |run| {
        let odd = run.health.clock_jumps.unwrap_or(0) + run.measured.out_of_order;
        found(Some(odd as f64), "no clock jump, and all timestamps are in order")
    }),
    check(CheckKind::KernelStamps, "share", None, |run| {
        let stamped = run.health.kernel_stamps.ok_or("nothing was read")?;
        found(Some(stamped), "every read has a kernel timestamp")
    }),
    check(CheckKind::Answerer, "", None, |run| {
        answered(run.measured)?;
        found(None, "every answer names the requested model")
    }),
    check(CheckKind::Stream, "", None, |run| {
        answered(run.measured)?;
        if !run.manifest.spec.workload.streaming {
            return Err("streaming was not requested".into());
        }
        found(None, "every stream arrived in pieces and completely")
    }),
    check(CheckKind::TokenCounts, "requests", None, |run| {
        with_tokens(run.measured)?;
        let events = run.measured.tokens.output_source.events as f64;
        found(Some(events), "the server counted the tokens of every answer")
    }),
    check(CheckKind::InputLength, "share", None, |run| {
        if run.manifest.spec.workload.body.has_media() {
            return Err(
                "images and audio are tokens, too, and only the server knows how many".into()
            );
        }
        let input = &run.measured.audit.input;
        let tokens = input.planned_tokens.zip(input.actual_tokens);
        let Some((planned, actual)) = tokens.filter(|(planned, _)| 0 < *planned) else {
            let nothing_planned = || "the prompts were planned without tokens".to_owned();
            return Err(input.reason.clone().unwrap_or_else(nothing_planned));
        };
        let off = (actual as f64 - planned as f64) / planned as f64;
        let [counted, wanted] = [actual, planned].map(count);
        let text = format!("the server counted {counted} tokens, and {wanted} were planned");
        found(Some(off.abs()), text)
    }),
    check(CheckKind::OutputLength, "share", None, |run| {
        with_tokens(run.measured)?;
        let off = share(run.measured.anomalies.output_off, run.measured.ok).unwrap_or(0.0);
        found(Some(off), format!("{} of the answers have another length", percent(off)))
    }),
    check(CheckKind::Cache, "share", Some(degraded_from(CACHED_SHARE_GRAVE)), |run| {
        if new_prompts(&run.manifest.spec.workload.source).is_none() {
            return Err("this workload may repeat prompts".into());
        }
        let share = cached_share(run.measured).ok_or(CACHE_UNKNOWN)?;
        found(Some(share), format!("{} of the input came from the prefix cache", percent(share)))
    }),
    check(CheckKind::ServerRestart, "restarts", RESTARTS, |run| {
        found(Some(server(run)?.restarts as f64), "no restart in the server's metrics")
    }),
    check(CheckKind::ServerAlone, "share", Some(degraded_from(FOREIGN_SHARE_GRAVE)), |run| {
        let apart = server(run)?.tokens_apart;
        let shares = [apart.prompt, apart.generation].into_iter().flatten();
        let worst = shares
            .map(f64::abs)
            .max_by(f64::total_cmp)
            .ok_or("the server's token totals cannot be compared with the client's")?;
        let text = format!("the token totals of server and client differ by {}", percent(worst));
        found(Some(worst), text)
    }),
    check(CheckKind::GpuSpeed, "share", Some(degraded_from(THROTTLED_SHARE)), |run| {
        gpus(run)?;
        let worst = used_gpus(run)
            .flat_map(|device| [device.throttled_thermal, device.throttled_hardware])
            .flatten()
            .reduce(f64::max)
            .ok_or("the GPUs do not report why they are throttled")?;
        found(Some(worst), "no GPU was throttled by temperature or by its board")
    }),
    check(CheckKind::GpuAlone, "processes", Some(degraded_from(0.0)), |run| {
        gpus(run)?;
        let samples = &run.observations.machines.devices;
        let readings = samples.iter().flat_map(|sample| &sample.devices);
        if readings.filter(|reading| reading.processes.is_some()).count() < 2 {
            return Err("the GPUs do not report which processes use them".into());
        }
        let newcomers: u64 = used_gpus(run).map(|device| device.newcomers).sum();
        found(Some(newcomers as f64), "no process started on the GPUs during the run")
    }),
    check(CheckKind::ClientMachine, "share", Some(degraded_from(CPU_FULL_SHARE)), |run| {
        let busy = run.client_machine().and_then(|client| client.cpu_share);
        let mean = busy.ok_or("its CPU utilisation was not sampled")?.mean;
        found(Some(mean), format!("its CPUs were busy for {} of the run", percent(mean)))
    }),
];

const RESTARTS: Option<Limits> = Some(Limits { degraded: None, invalid: Some(0.0) });

const fn check(
    kind: CheckKind,
    unit: &'static str,
    limits: Option<Limits>,
    find: fn(&RunContext<'_>) -> Finding,
) -> CheckDefinition {
    CheckDefinition { kind, unit, limits, find }
}

const fn degraded_from(degraded: f64) -> Limits {
    Limits { degraded: Some(degraded), invalid: None }
}

#[expect(clippy::unnecessary_wraps, reason = "it ends the functions of checks, which may fail")]
fn found(figure: Option<f64>, text: impl Into<String>) -> Finding {
    Ok((figure, text.into()))
}

fn delivered(measured: &Measured) -> Finding {
    match &measured.delivered {
        Delivered::NotChecked { reason } => Err(reason.clone()),
        Delivered::Slots(slots) => {
            let in_use = compact(slots.in_use_mean);
            let text = format!("{in_use} of {} requests were on the wire", slots.asked);
            found(Some(1.0 - slots.share), text)
        }
        Delivered::Schedule(schedule) => {
            let rates = schedule.intended_per_s.zip(schedule.sent_per_s);
            let (intended, sent) = rates.ok_or("all requests were due at the same time")?;
            let [sent, intended] = [sent, intended].map(number);
            let late = percent(schedule.late_share.unwrap_or(0.0));
            let unsent = match schedule.unsent {
                0 => String::new(),
                unsent => format!("; {unsent} due requests were never sent"),
            };
            let text = format!(
                "{sent} requests per second were sent, and {intended} planned; {late} were more than {} ms late{unsent}",
                schedule.late_from_ms
            );
            // With a cap the rates differ by design, and nothing is judged by it.
            found(schedule.rate_apart.map(f64::abs).filter(|_| !schedule.capped), text)
        }
    }
}

fn littles_law(measured: &Measured) -> Finding {
    let law = &measured.littles_law;
    let sides = law.in_flight.zip(law.apart).zip(law.arrivals_per_s.zip(law.time_in_flight_s));
    let Some(((in_flight, apart), (per_s, stay_s))) = sides else {
        return Err(law.reason.clone().unwrap_or_else(|| "requests took no time".to_owned()));
    };
    let server = law.server_in_flight.map_or_else(String::new, |server| {
        format!("; {} running and waiting by the server's gauges", number(server))
    });
    let product = number(per_s * stay_s);
    let [in_flight, per_s, stay_s] = [in_flight, per_s, stay_s].map(number);
    let text = format!(
        "over the whole run {in_flight} in flight; {per_s} per second × {stay_s} s = {product}{server}"
    );
    found(Some(apart.abs()), text)
}

fn p99(value: Option<f64>, what: &str, missing: &str) -> Finding {
    let p99 = value.ok_or(missing)?;
    found(Some(p99), format!("{what} {} ms (p99)", number(p99)))
}

fn answered(measured: &Measured) -> Result<(), String> {
    if measured.ok == 0 { Err(NOTHING_OK.to_owned()) } else { Ok(()) }
}

fn with_tokens(measured: &Measured) -> Result<(), String> {
    answered(measured)?;
    if measured.generates { Ok(()) } else { Err(NO_TOKENS.to_owned()) }
}

fn server<'a>(run: &'a RunContext<'_>) -> Result<&'a ServerSide, String> {
    run.measured.server.as_ref().map_err(Clone::clone)
}

/// Why the GPUs cannot be judged, if they cannot.
fn gpus(run: &RunContext<'_>) -> Result<(), String> {
    let machines = &run.measured.machines;
    match &machines.gpus {
        None => Err(machines.gpus_missing.clone().unwrap_or_default()),
        Some(gpus) if gpus.looks == 0 => Err("no GPU sample was taken during the run".to_owned()),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
