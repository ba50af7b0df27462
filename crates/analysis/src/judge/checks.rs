//! The table of checks: what is asked of every run before its numbers are believed.
//!
//! A check is one entry of [`CHECKS`]: title, help, unit, limits, and the function that finds its
//! value. To add one, add its variant to [`CheckKind`], which gives it its key, and its entry, then run
//! `cargo xtask docs`.

use serde::{Deserialize, Serialize};

use super::warnings::{
    CACHED_SHARE_GRAVE, CAPACITY_SHARE, CLIENT_MS, CPU_FULL_SHARE, ERRORS_SHARE,
    FOREIGN_SHARE_GRAVE, SENT_LATE_MS, THROTTLED_SHARE, cached_share, cancelled, new_prompts,
};
use super::{RunContext, Severity, Warning};
use crate::audit::CACHE_UNKNOWN;
use crate::client::{is_calibrated_wire, share};
use crate::littles_law::LITTLE_APART;
use crate::machines::GpuFigures;
use crate::metric::{self, NOTHING_OK, NOTHING_SENT};
use crate::offered_load::{Delivered, RATE_APART, RATE_APART_GRAVE, SLOTS_SHARE};
use crate::record::{Measured, NO_TOKENS};
use crate::server::ServerSide;
use crate::steady::SteadyKind;

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
    /// A question to which "yes" is good news.
    pub title: &'static str,
    /// What is looked at, and how it is judged.
    pub help: &'static str,
    /// Unit and limits of the number that is judged, where there is one.
    pub figure: Option<CheckFigure>,
    /// What the check finds when no warning is raised, or why it cannot be made.
    find: fn(&RunContext<'_>) -> Finding,
}

#[derive(Clone, Copy, Debug)]
pub struct CheckFigure {
    pub unit: &'static str,
    pub limits: Option<Limits>,
}

/// A finding with the number that was judged, as far as there is one.
struct Found {
    text: String,
    figure: Option<f64>,
    /// The limits, where they are not those of the check's definition.
    limits: Option<Limits>,
}

type Finding = Result<Found, String>;

/// Every check, in the order of [`CHECKS`]. `warnings` are the run's, the most severe first.
pub(crate) fn run_checks(run: &RunContext<'_>, warnings: &[Warning]) -> Vec<Check> {
    let is_virtual = run.manifest.simulated.is_some();
    let check = |check: &CheckDefinition| {
        let key = check.kind.key();
        let own = warnings.iter().filter(|warning| warning.check.as_deref() == Some(key));
        let raised: Vec<&Warning> = own.collect();
        let found = if is_virtual && check.kind.is_about_client() {
            Err("there is no client in virtual time".to_owned())
        } else {
            (check.find)(run)
        };
        let (state, finding) = match (raised.first(), &found) {
            (Some(gravest), _) => {
                let texts: Vec<&str> = raised.iter().map(|one| one.text.as_str()).collect();
                (CheckState::from(gravest.severity), texts.join("; "))
            }
            (None, Ok(found)) => (CheckState::Passed, found.text.clone()),
            (None, Err(reason)) => (CheckState::NotChecked, reason.clone()),
        };
        let (figure, limits) = found.map_or((None, None), |found| (found.figure, found.limits));
        Check {
            key: key.to_owned(),
            title: check.title.to_owned(),
            state,
            finding,
            figure: figure.filter(|figure| figure.is_finite()),
            unit: figure.and(check.figure).map(|figure| figure.unit.to_owned()),
            limits: limits.or(check.figure.and_then(|figure| figure.limits)),
            remedy: raised.first().map(|warning| warning.remedy.clone()),
        }
    };
    CHECKS.iter().map(check).collect()
}

impl CheckKind {
    pub fn key(self) -> &'static str {
        self.into()
    }

    /// Whether the check is about the client, which does not exist in virtual time.
    pub(super) const fn is_about_client(self) -> bool {
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

impl From<Severity> for CheckState {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Note => Self::Noted,
            Severity::Degraded => Self::Degraded,
            Severity::Invalid => Self::Invalid,
        }
    }
}

/// The table of checks, in the order in which they are listed.
pub static CHECKS: &[CheckDefinition] = &[
    CheckDefinition {
        kind: CheckKind::CompleteRun,
        title: "Did the run go to its end?",
        help: "a run that was cut, or whose last requests were cut, is degraded; one that had \
               to give up, or in which nothing could end, is invalid",
        figure: None,
        find: |_| Ok(Found::text("the plan was played to its end")),
    },
    CheckDefinition {
        kind: CheckKind::Errors,
        title: "Did the requests succeed?",
        help: "the share of attempted requests that failed, without those that we cut",
        figure: Some(figure("share", Some(ERRORS_SHARE), Some(0.5))),
        find: |run| {
            let Measured { attempted, ok, .. } = *run.measured;
            let failed = attempted - ok - cancelled(run);
            let share = share(failed, attempted).ok_or("no request was attempted")?;
            Ok(Found::figure(share, format!("{failed} of {attempted} attempted requests failed")))
        },
    },
    CheckDefinition {
        kind: CheckKind::DeliveredLoad,
        title: "Was the load the one that was asked for?",
        help: "on an open loop the rate that left against the planned one, how it varies (the \
               index of dispersion), and the plan against its process; below 95 % of the slots \
               of a closed loop in use degrades; with a cap, what it held back",
        figure: Some(figure("share", Some(RATE_APART), Some(RATE_APART_GRAVE))),
        find: |run| delivered(run.measured),
    },
    CheckDefinition {
        kind: CheckKind::SteadyState,
        title: "Did the run settle?",
        help: "MSER-5 and a trend test over requests in flight, output and TTFT; an open loop \
               that piles up requests beyond chance is degraded, other drifts are noted",
        figure: Some(figure("s", None, None)),
        find: |run| {
            let steady = &run.measured.steady;
            let (SteadyKind::Settled, Some(window)) = (steady.state, &steady.window) else {
                return Err(steady.reason.clone().unwrap_or_default());
            };
            let s = |ms: Option<f64>| ms.unwrap_or(0.0) / 1e3;
            let (from, to) = (s(window.from_ms), s(window.to_ms));
            let text = format!("steady from {from:.2} s to {to:.2} s");
            Ok(Found { figure: window.duration_s, ..Found::text(text) })
        },
    },
    CheckDefinition {
        kind: CheckKind::LittlesLaw,
        title: "Do arrivals, times and requests in flight agree?",
        help: "N = X·R, where requests that were lost, end before they begin or lie outside of \
               the run show; the server's gauges of running and waiting against N, which is noted",
        figure: Some(figure("share", Some(LITTLE_APART), None)),
        find: |run| littles_law(run.measured),
    },
    CheckDefinition {
        kind: CheckKind::SampleSize,
        title: "Are there enough requests?",
        help: "below 30 ok requests it is noted; percentiles have floors of their own",
        figure: Some(figure("requests", None, None)),
        find: |run| {
            let ok = run.measured.ok;
            Ok(Found::figure(ok as f64, format!("{ok} requests ended ok")))
        },
    },
    CheckDefinition {
        kind: CheckKind::SendLag,
        title: "Did requests leave when they were due?",
        help: "p99 from when a request was let go to its first byte, on an open loop",
        figure: Some(figure("ms", Some(SENT_LATE_MS.degraded), Some(SENT_LATE_MS.invalid))),
        find: |run| {
            if !run.manifest.spec.is_open_loop() {
                return Err("a closed loop plans no moments".to_owned());
            }
            p99(run.p99(&metric::SEND_LAG), "requests left late by", NOTHING_SENT.0)
        },
    },
    CheckDefinition {
        kind: CheckKind::ClientLag,
        title: "Did the client read in time?",
        help: "p99 of how long bytes lay in the kernel before they were read",
        figure: Some(figure("ms", Some(CLIENT_MS.degraded), Some(CLIENT_MS.invalid))),
        find: |run| {
            let missing = "no read has the kernel's stamp";
            p99(run.p99(&metric::CLIENT_LAG), "bytes lay unread for", missing)
        },
    },
    CheckDefinition {
        kind: CheckKind::ArrivalWidth,
        title: "Is it known when each event came?",
        help: "p99 over all events of how much older they may be than their stamps, because \
               they were read together",
        figure: Some(figure("ms", Some(CLIENT_MS.degraded), Some(CLIENT_MS.invalid))),
        find: |run| {
            let width = run.measured.event_width.as_ref().and_then(|found| found.p99);
            p99(width, "events are older than their stamps by", "no ok answer came in events")
        },
    },
    CheckDefinition {
        kind: CheckKind::ClientLoop,
        title: "Did the client keep turning?",
        help: "p99 of how late its loop woke; a pause above 100 ms, or 2 % of the processor \
               given to others, degrades; above 1,000 ms, or 10 %, is invalid",
        figure: Some(figure("ms", Some(CLIENT_MS.degraded), Some(CLIENT_MS.invalid))),
        find: |run| {
            let late = run.health.loop_lag_ms.p99_at_most.ok_or("the client noted nothing")?;
            Ok(Found::figure(late, format!("the loop woke at most {late:.3} ms late (p99)")))
        },
    },
    CheckDefinition {
        kind: CheckKind::ClientCapacity,
        title: "Had the client capacity to spare?",
        help: "the busiest second against what the client carries by its calibration; waiting \
               for the journal above 1 % of requests degrades; a machine out of descriptors, \
               ports or memory is invalid",
        figure: Some(figure("share", Some(CAPACITY_SHARE.degraded), Some(CAPACITY_SHARE.invalid))),
        find: |run| {
            let missing = if is_calibrated_wire(run.manifest) {
                "the client was not calibrated on this machine (inferometer calibrate)"
            } else {
                "a calibration speaks for plain HTTP/1.1 only"
            };
            let used = run.health.capacity.as_ref().ok_or(missing)?.used;
            let text = format!("{:.1} % of the client's capacity was used", used * 100.0);
            Ok(Found::figure(used, text))
        },
    },
    CheckDefinition {
        kind: CheckKind::Clock,
        title: "Did the clock run evenly?",
        help: "a jump of the wall clock degrades; moments that are out of order beyond the \
               clock's error are invalid",
        figure: Some(figure("times", None, None)),
        find: |run| {
            let odd = run.health.clock_jumps.unwrap_or(0) + run.measured.out_of_order;
            Ok(Found::figure(odd as f64, "no jump, and every moment is in order"))
        },
    },
    CheckDefinition {
        kind: CheckKind::KernelStamps,
        title: "Are arrivals stamped by the kernel?",
        help: "the share of reads with the kernel's stamp; less than all is noted",
        figure: Some(figure("share", None, None)),
        find: |run| {
            let stamped = run.health.kernel_stamps.ok_or("nothing was read")?;
            Ok(Found::figure(stamped, "every read has the kernel's stamp"))
        },
    },
    CheckDefinition {
        kind: CheckKind::Answerer,
        title: "Did the one answer who was asked?",
        help: "another model's name in the answers is invalid; an unchecked certificate and \
               unused proxy variables are noted",
        figure: None,
        find: |run| {
            answered(run.measured)?;
            Ok(Found::text("every answer names the model that was asked for"))
        },
    },
    CheckDefinition {
        kind: CheckKind::Stream,
        title: "Did the answers come as streams should?",
        help: "answers in one piece, without output, without `[DONE]` or going on after it are \
               noted",
        figure: None,
        find: |run| {
            answered(run.measured)?;
            if !run.manifest.spec.workload.streaming {
                return Err("the answers were not asked for as streams".to_owned());
            }
            Ok(Found::text("every stream came in pieces and to its end"))
        },
    },
    CheckDefinition {
        kind: CheckKind::TokenCounts,
        title: "Does the server count its tokens?",
        help: "usage that is missing, zero or unlike the stream is noted",
        figure: Some(figure("requests", None, None)),
        find: |run| {
            with_tokens(run.measured)?;
            let events = run.measured.tokens.output_source.events as f64;
            Ok(Found::figure(events, "every answer's tokens are the server's own count"))
        },
    },
    CheckDefinition {
        kind: CheckKind::InputLength,
        title: "Are prompts as long as asked?",
        help: "the server's count off by more than 20 % on average is noted",
        figure: Some(figure("share", None, None)),
        find: input_length,
    },
    CheckDefinition {
        kind: CheckKind::OutputLength,
        title: "Are answers as long as asked?",
        help: "more than 10 % of answers off by more than 10 % is noted",
        figure: Some(figure("share", None, None)),
        find: |run| {
            with_tokens(run.measured)?;
            let off = share(run.measured.anomalies.output_off, run.measured.ok).unwrap_or(0.0);
            let text = format!("{:.1} % of answers are of another length", off * 100.0);
            Ok(Found::figure(off, text))
        },
    },
    CheckDefinition {
        kind: CheckKind::Cache,
        title: "Were new prompts new to the server?",
        help: "the share of the input from the prefix cache, by usage or by the server's \
               counters, where every prompt was to be new; above 5 % it is noted, and so are \
               prompts that were sent before",
        figure: Some(figure("share", Some(CACHED_SHARE_GRAVE), None)),
        find: |run| {
            if new_prompts(&run.manifest.spec.workload.source).is_none() {
                return Err("prompts of this workload need not be new to the server".to_owned());
            }
            let share = cached_share(run.measured).ok_or(CACHE_UNKNOWN.0)?;
            let text = format!("{:.1} % of the input came from the prefix cache", share * 100.0);
            Ok(Found::figure(share, text))
        },
    },
    CheckDefinition {
        kind: CheckKind::ServerRestart,
        title: "Was it one server all the time?",
        help: "a counter that falls, or another process, is a restart; replicas that answer by \
               turns are noted",
        figure: Some(figure("restarts", None, Some(0.0))),
        find: |run| {
            let restarts = server(run)?.restarts as f64;
            Ok(Found::figure(restarts, "no restart in the server's metrics"))
        },
    },
    CheckDefinition {
        kind: CheckKind::ServerAlone,
        title: "Did the server work for this run alone?",
        help: "its totals of tokens against the client's; above 1 % it is noted, and fewer are \
               only noted",
        figure: Some(figure("share", Some(FOREIGN_SHARE_GRAVE), None)),
        find: |run| {
            let apart = server(run)?.tokens_apart;
            let shares = [apart.prompt, apart.generation].into_iter().flatten();
            let worst = shares
                .map(f64::abs)
                .max_by(f64::total_cmp)
                .ok_or("the server's totals cannot be compared with the client's")?;
            let text = format!("the server's tokens are {:.2} % apart from ours", worst * 100.0);
            Ok(Found::figure(worst, text))
        },
    },
    CheckDefinition {
        kind: CheckKind::GpuSpeed,
        title: "Did the GPUs run as fast as they can?",
        help: "the share of looks in which heat or a brake of the board held one back; a power \
               limit, 85 °C, memory that is 98 % full and GPUs that do nothing are noted",
        figure: Some(figure("share", Some(THROTTLED_SHARE), None)),
        find: |run| {
            let used = gpus(run)?.devices.iter().filter(|device| device.counts());
            let worst = used
                .flat_map(|device| [device.throttled_thermal, device.throttled_hardware])
                .flatten()
                .reduce(f64::max)
                .ok_or("the GPUs do not say what holds them back")?;
            Ok(Found::figure(worst, "neither heat nor a brake of the board held a GPU back"))
        },
    },
    CheckDefinition {
        kind: CheckKind::GpuAlone,
        title: "Had the server its GPUs to itself?",
        help: "processes that came to its GPUs while the run went on",
        figure: Some(figure("processes", Some(0.0), None)),
        find: |run| {
            let gpus = gpus(run)?;
            let samples = &run.observations.machines.devices;
            let readings = samples.iter().flat_map(|sample| &sample.devices);
            if readings.filter(|reading| reading.processes.is_some()).count() < 2 {
                return Err("the GPUs do not say which processes use them".to_owned());
            }
            let used = gpus.devices.iter().filter(|device| device.counts());
            let newcomers: u64 = used.map(|device| device.newcomers).sum();
            Ok(Found::figure(newcomers as f64, "no process came to the GPUs during the run"))
        },
    },
    CheckDefinition {
        kind: CheckKind::ClientMachine,
        title: "Had the client's machine room?",
        help: "the mean use of its processors; less than 512 MiB of memory left degrades too",
        figure: Some(figure("share", Some(CPU_FULL_SHARE), None)),
        find: |run| {
            let client = run.client_machine();
            let busy = client.and_then(|client| client.cpu_share).ok_or("nobody looked at it")?;
            let percent = busy.mean * 100.0;
            let text = format!("its processors were busy for {percent:.1} % of the run");
            Ok(Found::figure(busy.mean, text))
        },
    },
];

/// A number with the values above which it degrades a run, and above which it invalidates it.
const fn figure(unit: &'static str, degraded: Option<f64>, invalid: Option<f64>) -> CheckFigure {
    let limits = match (degraded, invalid) {
        (None, None) => None,
        _ => Some(Limits { degraded, invalid }),
    };
    CheckFigure { unit, limits }
}

impl Found {
    fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), figure: None, limits: None }
    }

    fn figure(figure: f64, text: impl Into<String>) -> Self {
        Self { text: text.into(), figure: Some(figure), limits: None }
    }
}

fn delivered(measured: &Measured) -> Finding {
    match &measured.delivered {
        Delivered::NotChecked { reason } => Err(reason.clone()),
        Delivered::Slots(slots) => {
            let text = format!("{:.2} of {} slots were in use", slots.in_use_mean, slots.asked);
            let limits = Some(Limits { degraded: Some(1.0 - SLOTS_SHARE), invalid: None });
            Ok(Found { limits, ..Found::figure(1.0 - slots.share, text) })
        }
        Delivered::Schedule(schedule) => {
            let rates = schedule.intended_per_s.zip(schedule.sent_per_s);
            let (intended, sent) = rates.ok_or("all requests were due at one moment")?;
            let late = schedule.late_share.unwrap_or(0.0) * 100.0;
            let unsent = match schedule.unsent {
                0 => String::new(),
                unsent => format!("; {unsent} of those due never left"),
            };
            let text = format!(
                "{sent:.2} requests left per second, {intended:.2} were planned; {late:.1} % left \
                 more than {} ms late{unsent}",
                schedule.late_from_ms
            );
            // With a cap the rates differ by design, and nothing is judged by it.
            let apart = schedule.rate_apart.map(f64::abs).filter(|_| !schedule.capped);
            Ok(Found { figure: apart, ..Found::text(text) })
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
        format!("; {server:.2} running and waiting by the server's gauges")
    });
    let text = format!(
        "{in_flight:.2} in flight, {per_s:.2} per second times {stay_s:.3} s make {:.2}{server}",
        per_s * stay_s
    );
    Ok(Found::figure(apart.abs(), text))
}

fn p99(found: Option<f64>, what: &str, missing: &str) -> Finding {
    let p99 = found.ok_or(missing)?;
    Ok(Found::figure(p99, format!("{what} {p99:.3} ms (p99)")))
}

fn answered(measured: &Measured) -> Result<(), String> {
    if measured.ok == 0 { Err(NOTHING_OK.0.to_owned()) } else { Ok(()) }
}

fn with_tokens(measured: &Measured) -> Result<(), String> {
    answered(measured)?;
    if measured.generates { Ok(()) } else { Err(NO_TOKENS.0.to_owned()) }
}

fn input_length(run: &RunContext<'_>) -> Finding {
    if run.manifest.spec.workload.body.images.is_some() {
        return Err("pictures are tokens too, and how many is the server's affair".to_owned());
    }
    let input = &run.measured.audit.input;
    let tokens = input.planned_tokens.zip(input.actual_tokens).filter(|(planned, _)| 0 < *planned);
    let Some((planned, actual)) = tokens else {
        let nothing_planned = || "no prompt was to have a token".to_owned();
        return Err(input.reason.clone().unwrap_or_else(nothing_planned));
    };
    let off = (actual as f64 - planned as f64) / planned as f64;
    let text = format!("the server counts {actual} tokens where {planned} were asked for");
    Ok(Found::figure(off.abs(), text))
}

fn server<'a>(run: &'a RunContext<'_>) -> Result<&'a ServerSide, String> {
    run.measured.server.as_ref().map_err(Clone::clone)
}

fn gpus<'a>(run: &'a RunContext<'_>) -> Result<&'a GpuFigures, String> {
    let machines = &run.measured.machines;
    let gpus = machines.gpus.as_ref();
    match gpus.ok_or_else(|| machines.gpus_missing.clone().unwrap_or_default())? {
        gpus if gpus.looks == 0 => Err("no look at the GPUs was inside the run".to_owned()),
        gpus => Ok(gpus),
    }
}

#[cfg(test)]
mod tests;
