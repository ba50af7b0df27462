//! The table of warnings about a run.
//!
//! A warning is one entry of [`RULES`]: its key, the check it belongs to, and the condition that raises
//! it with severity and text. Its remedy is its line of `remedies.txt`, behind its key, or behind several
//! keys that share it; a key has a suffix where its warning has several remedies. To add one, add both,
//! and tests that raise it and that do not. The order of the table is the order among warnings of equal
//! severity.

use std::fmt::Write;
use std::net::IpAddr;
use std::time::Duration;

use inferometer_model::fmt::{compact, count, counted, number, percent, whole};
use inferometer_model::journal::RunStop;
use inferometer_model::observations::{Connections, InputLength};
use inferometer_model::outcome::Cause;
use inferometer_model::spec::{MetricsRole, Source};
use inferometer_model::stripe::WorkerFacts;
use inferometer_model::telemetry::DeviceSource;
use inferometer_model::{Outcome, RequestRecord};

use super::{CheckKind, Limits, REMEDIES, RunContext, Severity, Warning};
use crate::audit::Audit;
use crate::client::{DiallingFigures, share};
use crate::machines::DeviceFigures;
use crate::metric;
use crate::offered_load::{Delivered, HeldByCap, RATE_APART_GRAVE, SLOTS_EMPTY, ScheduleDelivered};
use crate::record::{InputTokens, LENGTH_TOLERANCE, Measured, PartFigures};
use crate::replicas::SourceFigures;
use crate::server::TOKENS_APART;
use crate::statistics::{Percentile, Sample};
use crate::steady::{self, SteadyKind};

/// An entry of a table of warnings. `raise` is a function from the judged thing to [`Raised`].
pub(crate) struct Rule<F> {
    pub(crate) key: &'static str,
    /// The check that the warning makes fail; none for a warning about a set.
    pub(crate) check: Option<CheckKind>,
    pub(crate) raise: F,
}

/// The part of a warning that depends on what was found.
pub(crate) struct Raised {
    severity: Severity,
    text: String,
    /// Distinguishes the remedy where the warning has several.
    remedy_suffix: &'static str,
}

impl<F> Rule<F> {
    /// The warning with its remedy.
    ///
    /// # Panics
    ///
    /// If a warning has no remedy, which a test rules out.
    pub(crate) fn warning(&self, raised: Option<Raised>) -> Option<Warning> {
        let Raised { severity, text, remedy_suffix } = raised?;
        let remedy_key = format!("{}{remedy_suffix}", self.key);
        let remedy = REMEDIES.iter().find(|(key, _)| *key == remedy_key);
        Some(Warning {
            key: self.key.to_owned(),
            check: self.check.map(|check| check.key().to_owned()),
            severity,
            text,
            remedy: remedy.expect("every warning has a remedy").1.to_owned(),
        })
    }
}

impl Raised {
    pub(crate) fn with_remedy(self, remedy_suffix: &'static str) -> Self {
        Self { remedy_suffix, ..self }
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "it ends the functions of rules, which may find nothing"
)]
pub(crate) fn raise(severity: Severity, text: impl Into<String>) -> Option<Raised> {
    Some(Raised { severity, text: text.into(), remedy_suffix: "" })
}

pub(crate) fn note(text: impl Into<String>) -> Option<Raised> {
    raise(Severity::Note, text)
}

pub(crate) fn degraded(text: impl Into<String>) -> Option<Raised> {
    raise(Severity::Degraded, text)
}

fn invalid(text: impl Into<String>) -> Option<Raised> {
    raise(Severity::Invalid, text)
}

/// The most severe first, otherwise in the given order.
pub(crate) fn by_severity(mut warnings: Vec<Warning>) -> Vec<Warning> {
    warnings.sort_by_key(|warning| std::cmp::Reverse(warning.severity));
    warnings
}

type Raise = fn(&RunContext<'_>) -> Option<Raised>;

const fn rule(key: &'static str, check: CheckKind, raise: Raise) -> Rule<Raise> {
    Rule { key, check: Some(check), raise }
}

pub(super) const fn bounds(degraded: f64, invalid: f64) -> Limits {
    Limits { degraded: Some(degraded), invalid: Some(invalid) }
}

/// How often the slots of a closed loop are filled: in the whole run, or in its steady part.
const ROUNDS_CLOSED: f64 = 10.0;
const ROUNDS_STEADY: f64 = 3.0;
/// How often the typical time of a request, or of a conversation, fits into the time of sending.
const ROUNDS_OPEN: f64 = 5.0;
/// The share of attempted requests above which failures bias the rest.
pub(super) const ERRORS_SHARE: f64 = 0.01;
/// Below this many answers even a mean is a guess.
const FEW_REQUESTS: u64 = 30;
/// An open loop whose requests leave this late is another load than the one planned.
pub(super) const SENT_LATE_MS: Limits = bounds(10.0, 100.0);
/// What the client may add to a latency, or hide in it.
pub(super) const CLIENT_MS: Limits = bounds(5.0, 50.0);
/// How far clocks of different machines may be apart: the timeline has steps of about a second, and
/// requests that should leave together do not.
const APART_MS: Limits = bounds(10.0, 1_000.0);
/// Scheduler hiccups stay below the first; above it, the process or the machine was suspended.
const PAUSE_MS: Limits = bounds(100.0, 1_000.0);
/// The share of the machine's CPU time that its host gave to others.
const STOLEN_SHARE: Limits = bounds(0.02, 0.10);
/// The share of its capacity from which on a client adds its own queueing.
pub(super) const CAPACITY_SHARE: Limits = bounds(0.5, 0.8);
/// The share of attempted requests above which waiting for the journal slowed the drivers.
const JOURNAL_WAITS_SHARE: f64 = 0.01;
/// The key of the warning about prompts that an earlier run sent.
pub(crate) const SEEN_BEFORE: &str = "seen-before";
/// The share of input tokens that may come from the prefix cache although every prompt is new: caches
/// work in blocks, and some servers put a few tokens of their own first.
pub(crate) const CACHED_SHARE: f64 = 0.05;
/// Above this share the results describe the cache.
pub(crate) const CACHED_SHARE_GRAVE: f64 = 0.20;
/// A shorter run is decided by single pauses of the machines.
const SHORT_RUN_S: f64 = 1.0;
/// A client that delays this share of its requests by more than a tenth of the median TTFT changes what is
/// measured; single requests are delayed on every machine.
const SENT_LATE_SHARE: f64 = 0.10;
const SENT_LATE_REQUESTS: f64 = 0.01;
const LATE_REQUESTS_LEAST: u64 = 3;
/// A delay that every machine has now and then.
const SENT_LATE_MS_LEAST: f64 = 0.5;
/// The share of the median TTFT that the arrival of an event may be uncertain by.
const ARRIVAL_WIDTH_SHARE: f64 = 0.05;
/// The share of a second that a thread of the client may compute: above it, events wait for it.
pub(super) const DRIVER_BUSY: Limits = bounds(0.70, 0.90);
/// The share of the reads with several events above which the stream is gathered on its way.
const GROUPED_SHARE: f64 = 0.20;
/// How much the mean TTFT may be above the server's own: the way to the server and back.
const TTFT_ABOVE_MS: f64 = 10.0;
const TTFT_ABOVE_SHARE: f64 = 0.20;
/// The share of an answer's time that its stream may stay open after its last token.
const LATE_END_SHARE: f64 = 0.10;
/// The share of requests that open a connection above which the server does not keep them open.
const CLOSED_SHARE: f64 = 0.50;
/// The share of answers without any output.
const EMPTY_SHARE: Limits = bounds(ERRORS_SHARE, 0.10);
/// An answer that takes so many times the median is named.
const OUTLIER_TIMES: f64 = 20.0;
/// Above this share of the time of all answers, a mean, and the throughput of a closed loop, are those of
/// the outliers.
const OUTLIER_SHARE: f64 = 0.10;
/// Tokens that one event may carry, beyond one, without being noted: servers hold text back until a
/// character is complete. Above the second, the events of a stream do not confirm its usage, and above
/// the third not even where their gaps show that tokens were held back.
const TOKENS_PER_EVENT_NOTED: f64 = 0.10;
const TOKENS_UNEXPLAINED_MOST: f64 = 1.20;
const TOKENS_PER_EVENT_MOST: f64 = 1.50;
/// The share of streamed answers in one piece above which nothing is known of their tokens.
const NOT_STREAMING_SHARE: f64 = 0.50;
/// The share of answers with another length than requested above which it is noted.
const OUTPUT_OFF_SHARE: f64 = 0.10;
/// How far an estimated prompt may be from the server's count.
const INPUT_TOLERANCE: f64 = 0.20;
/// Longest part of a model name chosen by the server that a message shows.
const NAME_CHARS_MAX: usize = 80;
/// The share of tokens for other clients above which the load was not the requested one.
pub(super) const FOREIGN_SHARE_GRAVE: f64 = 0.05;
/// The share of samples in which a GPU may be throttled by heat or hardware without degrading a run.
pub(super) const THROTTLED_SHARE: f64 = 0.05;
/// GPUs slow down a few degrees above this temperature.
const HOT_C: f64 = 85.0;
/// AMD's tools report the junction temperature, which is 15 °C and more above the edge under normal
/// load; throttling starts at 100 °C.
const HOT_JUNCTION_C: f64 = 95.0;
/// Servers that take all memory leave some; above this share there is no room for a spike.
const MEMORY_FULL_SHARE: f64 = 0.98;
/// Above this share, threads of the client wait for a CPU.
pub(super) const CPU_FULL_SHARE: f64 = 0.9;
/// Below this, the system begins to reclaim memory that programs still use.
const MEMORY_LOW_BYTES: u64 = 512 << 20;

/// Whether an address means no machine, or another one on every network.
fn is_odd(ip: IpAddr) -> bool {
    let is_link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    ip.is_unspecified() || is_link_local
}

/// All warnings of a run, the most severe first.
pub(crate) fn run_warnings(run: &RunContext<'_>) -> Vec<Warning> {
    let is_skipped =
        |rule: &Rule<Raise>| run.is_virtual() && rule.check.is_some_and(CheckKind::is_about_client);
    let applying = RULES.iter().filter(|rule| !is_skipped(rule));
    by_severity(applying.filter_map(|rule| rule.warning((rule.raise)(run))).collect())
}

static RULES: &[Rule<Raise>] = &[
    rule("nothing-ok", CheckKind::Errors, |run| {
        let Measured { ok: 0, attempted, .. } = *run.measured else { return None };
        when(!all_cut(run))?;
        invalid(format!("none of {attempted} attempted requests ended ok"))
    }),
    rule("all-cut", CheckKind::CompleteRun, |run| {
        when(all_cut(run))?;
        let attempted = run.measured.attempted;
        let raised = invalid(format!("all {attempted} requests were cancelled before they ended"));
        let is_interrupted = run.observations.ending.stop == RunStop::Cut;
        if is_interrupted { Some(raised?.with_remedy("-interrupted")) } else { raised }
    }),
    rule("errors", CheckKind::Errors, |run| {
        let attempted = run.measured.attempted;
        let failed = positive(failed(run))?;
        // A turn that could not follow a failed one counts as failed.
        let lost = run.observations.not_sent_because(Cause::ConversationBroken);
        let severity = if attempted + lost < (failed + lost) * 2 {
            Severity::Invalid
        } else {
            degraded_above(ERRORS_SHARE, (failed + lost) as f64 / (attempted + lost) as f64)
        };
        let share = percent(failed as f64 / attempted as f64);
        let mut text = format!(
            "{} of {} attempted requests failed ({share})",
            count(failed),
            count(attempted)
        );
        if 0 < lost {
            let _ = write!(text, ", and {lost} later turns were not sent");
        }
        raise(severity, text)
    }),
    rule("partial", CheckKind::CompleteRun, |run| {
        // A run that the user stopped still reports what it measured; one that had to give up does
        // not.
        let stop = run.observations.ending.stop;
        let severity = match stop {
            RunStop::PlanDone => return None,
            RunStop::Drained
            | RunStop::Cut
            | RunStop::Recovered
            | RunStop::ErrorBudget
            | RunStop::SloMissed
            | RunStop::Saturated => Severity::Degraded,
            RunStop::Unauthorized
            | RunStop::Unreachable
            | RunStop::ClientExhausted
            | RunStop::Stalled => Severity::Invalid,
            RunStop::WorkersLost => return workers_lost(run),
        };
        raise(severity, format!("the run is partial: {}", stop.text()))
    }),
    rule("worker-alone", CheckKind::CompleteRun, |run| {
        let stripe = run.manifest.stripe.as_ref()?.stripe;
        degraded(format!(
            "this is the share {stripe} of a load, and of no rate or concurrency alone"
        ))
    }),
    rule("workers-late", CheckKind::CompleteRun, |run| {
        let late = |worker: &WorkerFacts| {
            let late_s = worker.run.as_ref()?.late_ns? as f64 / 1e9;
            Some(format!("worker {} began {} s late", worker.name(), number(late_s)))
        };
        let late: Vec<String> = workers(run).iter().filter_map(late).collect();
        when(!late.is_empty())?;
        let requests = run.observations.not_sent_because(Cause::WorkerLate);
        let lost = requests as f64 / run.observations.scheduled_count().max(1) as f64;
        let severity = if ERRORS_SHARE < lost { Severity::Invalid } else { Severity::Degraded };
        let late = listed(&late);
        raise(severity, format!("{late}; {} due before and not sent", counted(requests, "request")))
    }),
    rule("cut-at-limit", CheckKind::CompleteRun, |run| {
        when(!run.observations.ending.stop.is_partial())?;
        let cut = positive(cancelled(run))?;
        degraded(format!(
            "{} still in flight when the drain timeout expired",
            counted(cut, "request")
        ))
    }),
    rule("stale-pool", CheckKind::Errors, |run| {
        let requests = positive(run.measured.anomalies.stale_pool)?;
        note(format!(
            "{} failed because the server had closed the connection",
            counted(requests, "request")
        ))
    }),
    rule("connections-closed", CheckKind::Answerer, |run| {
        let all = run.measured.anomalies.connected;
        let opened = all - run.measured.anomalies.reused;
        // Every slot opens one; a server that keeps them open needs no more.
        let is_expected = run.manifest.endpoint.connections == Connections::New
            || opened <= 2 * run.measured.concurrency?.peak;
        when(!is_expected && CLOSED_SHARE * (all as f64) < opened as f64)?;
        note(format!(
            "{opened} of {all} requests opened a connection, so the server probably closes them after \
             its answers: the time to connect is in latencies from schedule, and lowers throughput"
        ))
    }),
    rule("dialling-failed", CheckKind::Errors, |run| {
        let dialling = DiallingFigures::new(run.observations.ending.client.dialling.as_ref()?);
        let (failed, wanted) = (positive(dialling.failed.into())?, dialling.wanted);
        let why = dialling.failure.unwrap_or_default();
        note(format!(
            "{failed} of {wanted} connections could not be opened before the first request: {why}"
        ))
    }),
    rule("held-by-cap", CheckKind::DeliveredLoad, |run| {
        let attempted = run.measured.attempted;
        let held = positive(HeldByCap::from_observations(run.observations)?.requests)?;
        let share = percent(held as f64 / attempted.max(1) as f64);
        note(format!("the concurrency cap delayed {held} of {attempted} requests ({share})"))
    }),
    rule("backlog", CheckKind::DeliveredLoad, |run| {
        let requests = positive(run.observations.not_sent_because(Cause::HeldByCap))?;
        let text = "scheduled requests were still held back by the concurrency cap at the end";
        degraded(format!("{requests} {text}"))
    }),
    rule("insecure", CheckKind::Answerer, |run| {
        when(run.manifest.spec.client.insecure)?;
        note("the server's TLS certificate was not verified (--insecure)")
    }),
    rule("proxy-variables", CheckKind::Answerer, |run| {
        let names = &run.manifest.environment.proxy_variables;
        when(!names.is_empty())?;
        note(format!("proxy variables are set and were not used: {}", names.join(", ")))
    }),
    rule("odd-address", CheckKind::Answerer, |run| {
        let address = run.manifest.endpoint.address;
        // A simulation has no address.
        when(is_odd(address.ip()) && !run.is_virtual())?;
        note(format!("the server's name means {address}, which is unspecified or link-local"))
    }),
    rule("extrapolated", CheckKind::Answerer, |run| {
        let seen = run.manifest.simulated.as_ref()?.prediction?;
        let in_flight = run.measured.concurrency.map_or(0, |concurrency| concurrency.peak);
        let (mut prompt, mut context) = (0, 0);
        for record in &run.observations.records {
            let output = record.usage.and_then(|usage| usage.completion_tokens).unwrap_or_default();
            let input = InputTokens::from_record(&record).count;
            (prompt, context) = (prompt.max(input), context.max(input.saturating_add(output)));
        }
        let beyond = [
            ("requests at once", in_flight, seen.batch.map(u64::from)),
            ("tokens in a prompt", prompt, Some(seen.prompt.into())),
            ("tokens in a prompt with its answer", context, Some(seen.context.into())),
        ];
        let beyond = beyond.iter().filter_map(|(what, most, seen)| {
            let seen = seen.filter(|seen| seen < most)?;
            Some(format!("up to {most} {what}, and its profile has seen {seen}"))
        });
        let beyond: Vec<String> = beyond.collect();
        when(!beyond.is_empty())?;
        degraded(format!("the simulation extrapolates: {}", beyond.join("; ")))
    }),
    rule("few-requests", CheckKind::SampleSize, |run| {
        let ok = positive(run.measured.ok).filter(|ok| *ok < FEW_REQUESTS)?;
        note(format!("only {ok} requests ended ok"))
    }),
    rule("short-run", CheckKind::SampleSize, |run| {
        let seconds = run.measured.extremes.duration_s().filter(|it| *it < SHORT_RUN_S)?;
        let text = "so single delays of the machines are a large part of it";
        degraded(format!("the run lasted {} s, {text}", number(seconds)))
    }),
    rule("few-rounds", CheckKind::SteadyState, |run| {
        let requests = rounds_missing(run)?;
        let text = "so its start and its drain are a large part of it";
        degraded(format!(
            "the run is short for its load, {text}; {} requests would be long enough",
            count(requests)
        ))
    }),
    rule("rate-missed", CheckKind::DeliveredLoad, |run| {
        let schedule = schedule(run)?;
        let apart = schedule.rate_missed()?.abs();
        let (intended, sent) = schedule.intended_per_s.zip(schedule.sent_per_s)?;
        let unsent = schedule.unsent_share();
        // Requests that never left are judged as errors, or as resources missing on the client.
        let severity =
            if RATE_APART_GRAVE < apart - unsent { Severity::Invalid } else { Severity::Degraded };
        let apart = percent(apart);
        let [sent, intended] = [sent, intended].map(number);
        let text = format!("{sent} requests per second were sent, and {intended} planned");
        if 0.0 < unsent {
            let text = format!("{text} ({apart} apart); {} were never sent", percent(unsent));
            return Some(raise(severity, text)?.with_remedy("-unsent"));
        }
        raise(severity, format!("{text} ({apart} apart)"))
    }),
    rule("arrivals-bunched", CheckKind::DeliveredLoad, |run| {
        let (intended, sent) = schedule(run)?.bunched()?;
        let (over_s, [sent, planned]) =
            (intended.over_s, [sent, intended].map(|it| number(it.index)));
        note(format!(
            "over {over_s} s the index of dispersion of the sent requests is {sent}, and {planned} was \
             planned"
        ))
    }),
    rule("arrivals-unlike", CheckKind::DeliveredLoad, |run| {
        let fit = schedule(run)?.unlike()?;
        let (process, p) = (&fit.process, number(fit.p));
        degraded(format!("the planned gaps do not fit {process} arrivals at this rate (p = {p})"))
    }),
    rule("slots-empty", CheckKind::DeliveredLoad, |run| {
        let Delivered::Slots(slots) = &run.measured.delivered else { return None };
        let (_, severity) = SLOTS_EMPTY.exceeded(Some(1.0 - slots.share))?;
        let (asked, used) = (slots.asked, compact(slots.in_use_mean));
        let text = "requests were on the wire on average before the drain";
        raise(severity, format!("{used} of {asked} {text}"))
    }),
    rule("piling-up", CheckKind::SteadyState, |run| {
        let per_s = number(run.measured.steady.piling_up()?);
        degraded(format!(
            "requests in flight grow by {per_s} per second: the server does not keep up with the \
             rate"
        ))
    }),
    rule("never-settled", CheckKind::SteadyState, |run| {
        let steady = &run.measured.steady;
        when(steady.state == SteadyKind::NeverSettled && steady.piling_up().is_none())?;
        degraded(format!("the run reached no steady state: {}", steady.reason.as_ref()?))
    }),
    rule("littles-law", CheckKind::LittlesLaw, |run| {
        let law = &run.measured.littles_law;
        let apart = percent(law.broken()?.abs());
        let mut text =
            format!("requests in flight and arrivals × time in flight differ by {apart}");
        if 0 < law.lost {
            let _ = write!(text, "; {} started requests have no recorded end", law.lost);
        }
        degraded(text)
    }),
    rule("server-in-flight", CheckKind::LittlesLaw, |run| {
        let (server, ours) = run.measured.littles_law.server_disagrees()?;
        let [server, ours] = [server, ours].map(number);
        note(format!(
            "the server reports {server} requests running and waiting on average, and {ours} of \
             this run were in flight"
        ))
    }),
    rule("sent-late", CheckKind::SendLag, |run| {
        // A closed loop has no schedule: a request leaves when a slot is free. What a cap delays is
        // not late either; `held-by-cap` reports it.
        let lag = run.p99(&metric::SEND_LAG).filter(|_| run.manifest.spec.is_open_loop());
        let (p99_ms, severity) = SENT_LATE_MS.exceeded(lag)?;
        let p99 = number(p99_ms);
        raise(severity, format!("1 % of the requests were sent {p99} ms or more too late"))
    }),
    rule("sent-late-relative", CheckKind::SendLag, |run| {
        let limit_ms = SENT_LATE_SHARE * run.answer_ms()?;
        let limit_ms = limit_ms.max(SENT_LATE_MS_LEAST);
        // The lag contains the delay. Where only one request in a thousand has such a lag, fewer than one in
        // a hundred have such a delay, and the records need not be read again.
        let lag = run.measured.series(&metric::SEND_LAG).found.as_ref().ok()?;
        when(limit_ms < lag.p999.or(lag.max)?)?;
        let delays_ms = run.observations.records.iter().filter_map(|it| client_delay_ms(&it));
        let late = delays_ms.filter(|delay_ms| limit_ms < *delay_ms).count() as u64;
        when(
            LATE_REQUESTS_LEAST <= late
                && SENT_LATE_REQUESTS < share(late, run.measured.attempted)?,
        )?;
        let text =
            "requests left more than a tenth of the median TTFT too late because of the client";
        degraded(format!("{late} {text}"))
    }),
    rule("client-lag", CheckKind::ClientLag, |run| {
        let (p99_ms, severity) = CLIENT_MS.exceeded(run.p99(&metric::CLIENT_LAG))?;
        let p99 = number(p99_ms);
        raise(severity, format!("1 % of the reads waited {p99} ms or more in the kernel"))
    }),
    rule("loop-lag", CheckKind::ClientLoop, |run| {
        let (p99_ms, severity) = CLIENT_MS.exceeded(run.health.loop_lag_ms.p99_at_most)?;
        raise(severity, format!("the client's loop woke up to {} ms late (p99)", number(p99_ms)))
    }),
    rule("loop-paused", CheckKind::ClientLoop, |run| {
        let (max_ms, severity) = PAUSE_MS.exceeded(run.health.loop_lag_ms.max)?;
        raise(severity, format!("the client's loop paused for {} ms", whole(max_ms)))
    }),
    rule("arrival-width", CheckKind::ArrivalWidth, |run| {
        let width = run.measured.event_width.as_ref().and_then(|found| found.p99);
        let (p99_ms, severity) = CLIENT_MS.exceeded(width)?;
        let p99 = number(p99_ms);
        let text = format!(
            "1 % of the events may have arrived {p99} ms or more before their timestamps: they \
             were read together with later ones"
        );
        raise(severity, text)
    }),
    rule("arrival-width-relative", CheckKind::ArrivalWidth, |run| {
        let width = run.measured.event_width.as_ref().and_then(|found| found.p99)?;
        let ttft = run.answer_ms()?;
        when(ARRIVAL_WIDTH_SHARE * ttft < width && CLIENT_MS.exceeded(Some(width)).is_none())?;
        let [width, ttft] = [width, ttft].map(number);
        degraded(format!(
            "1 % of the events may have arrived {width} ms or more before their timestamps, and the \
             median TTFT is {ttft} ms"
        ))
    }),
    rule("cpu-stolen", CheckKind::ClientLoop, |run| {
        // Samples of the machine are used where the run's own totals are missing.
        let sampled = || Some(run.client_machine()?.steal_share?.mean);
        let (share, severity) = STOLEN_SHARE.exceeded(run.health.cpu_stolen.or_else(sampled))?;
        let share = percent(share);
        raise(severity, format!("{share} of the client's CPU time was stolen by its host"))
    }),
    rule("capacity-used", CheckKind::ClientCapacity, |run| {
        let used = run.health.capacity.as_ref()?.used;
        let (share, severity) = CAPACITY_SHARE.exceeded(Some(used))?;
        raise(severity, format!("the load used {} of the client's capacity", percent(share)))
    }),
    rule("driver-busy", CheckKind::ClientCapacity, |run| {
        let (busy, severity) = DRIVER_BUSY.exceeded(run.health.driver_busy)?;
        let busy = percent(busy);
        raise(severity, format!("a thread of the client used {busy} of its CPU in one second"))
    }),
    rule("workers-clock", CheckKind::Clock, |run| {
        let merged = run.manifest.merged.as_ref()?;
        let unknown: Vec<String> = merged
            .workers
            .iter()
            .filter(|worker| worker.run.as_ref().is_some_and(|run| run.host.error_ns.is_none()))
            .map(|worker| format!("worker {}", worker.name()))
            .collect();
        match merged.clock_error_ns {
            None => degraded(format!(
                "how far the clocks of the machines are apart is not known ({})",
                listed(&unknown)
            )),
            Some(error_ns) => {
                let (ms, severity) = APART_MS.exceeded(Some(error_ns as f64 / 1e6))?;
                let ms = number(ms);
                raise(severity, format!("the clocks of the machines may be {ms} ms apart"))
            }
        }
    }),
    rule("worker-lag", CheckKind::ClientLoop, |run| {
        let lag = |worker: &WorkerFacts| {
            let lag = worker.run.as_ref()?.loop_lag.quantile_ns_at_most(0.99)? as f64 / 1e6;
            let (ms, severity) = CLIENT_MS.exceeded(Some(lag))?;
            Some((severity, ms, worker.name()))
        };
        let worst = workers(run).iter().filter_map(lag);
        let (severity, ms, name) = worst.max_by(|a, b| a.1.total_cmp(&b.1))?;
        raise(
            severity,
            format!("the loop of worker {name} woke up to {} ms late (p99)", number(ms)),
        )
    }),
    rule("clock-jump", CheckKind::Clock, |run| {
        let jumps = positive(run.health.clock_jumps?)?;
        degraded(format!(
            "the wall clock jumped {jumps} times: kernel timestamps near it are wrong"
        ))
    }),
    rule("clock-order", CheckKind::Clock, |run| {
        let distances = positive(run.measured.out_of_order)?;
        invalid(format!("{distances} times between recorded timestamps are negative or unknown"))
    }),
    rule("journal-waits", CheckKind::ClientCapacity, |run| {
        let (waits, attempted) = (positive(run.health.journal_waits)?, run.measured.attempted);
        let severity = degraded_above(JOURNAL_WAITS_SHARE, waits as f64 / attempted as f64);
        let text = format!("the client waited {waits} times for the disk to write its journal");
        raise(severity, format!("{text}, over {attempted} requests"))
    }),
    rule("client-resource", CheckKind::ClientCapacity, |run| {
        let not_sent = run.observations.not_sent_because(Cause::ClientResource);
        let requests = positive(run.measured.anomalies.client_resource + not_sent)?;
        let why = "because this machine ran out of file descriptors, ports or memory";
        invalid(format!("{} failed {why}", counted(requests, "request")))
    }),
    rule("no-kernel-stamps", CheckKind::KernelStamps, |run| {
        let stamped = run.health.kernel_stamps.filter(|stamped| *stamped < 1.0)?;
        let without = percent(1.0 - stamped);
        note(format!(
            "{without} of the reads have no kernel timestamp; the time of the read is used"
        ))
    }),
    rule("cache-contamination", CheckKind::Cache, |run| {
        let prompts = new_prompts(&run.manifest.spec.workload.source)?;
        let share = cached_share(run.measured)?;
        let template = template_share(run.manifest.materials.input_length, &run.measured.audit);
        when(CACHED_SHARE < share - template)?;
        let text = "of the input came from the prefix cache, although every prompt should be new";
        let severity = degraded_above(CACHED_SHARE_GRAVE, share);
        let raised = raise(severity, format!("{} {text}", percent(share)))?;
        Some(match prompts {
            NewPrompts::Seeded => raised,
            NewPrompts::SameInEveryRun => raised.with_remedy("-vllm-random"),
        })
    }),
    rule(SEEN_BEFORE, CheckKind::Cache, |run| {
        // Where the server reports what it cached, that is judged instead.
        when(cached_share(run.measured).is_none())?;
        let earlier = run.manifest.seen_before.as_ref()?;
        let text = "may have sent the same prompts to this server, which does not report its cache";
        degraded(format!("run {earlier} {text}"))
    }),
    rule("repeated-prompts", CheckKind::Cache, |run| {
        let Source::Dataset(_) = run.manifest.spec.workload.source else { return None };
        let items = run.manifest.materials.files.first()?.items;
        let records = run.observations.records.iter();
        let requests = records.filter(|record| record.asked.turn == 0).count() as u64;
        when(items < requests)?;
        note(format!(
            "{} requests were made from {} prompts, so some are repeated",
            count(requests),
            count(items)
        ))
    }),
    rule("conversations-broken", CheckKind::Errors, |run| {
        let turns = positive(run.observations.not_sent_because(Cause::ConversationBroken))?;
        let why = "because an earlier turn of their conversation failed";
        note(format!("{} turns were not sent {why}", count(turns)))
    }),
    rule("model-mismatch", CheckKind::Answerer, |run| {
        let odd = &run.measured.anomalies;
        let name = odd.other_model_name.as_ref()?;
        let answered: String = name.chars().take(NAME_CHARS_MAX).collect();
        let (asked, requests) = (&run.manifest.endpoint.model, odd.other_model);
        invalid(format!(
            "`{asked}` was requested, but `{answered}` answered {}",
            counted(requests, "request")
        ))
    }),
    rule("not-streaming", CheckKind::Stream, |run| {
        let odd = &run.measured.anomalies;
        let share = share(odd.streams_in_one_arrival, odd.streams)?;
        when(NOT_STREAMING_SHARE < share)?;
        degraded(format!("{} of the streamed answers arrived in one piece", percent(share)))
    }),
    rule("grouped-events", CheckKind::Stream, |run| {
        let odd = &run.measured.anomalies;
        let share = share(odd.arrivals_grouped, odd.arrivals)?;
        when(GROUPED_SHARE < share)?;
        let text = "of the reads brought several events although the client read in time: a proxy or the \
                    server holds tokens back";
        degraded(format!("{} {text}", percent(share)))
    }),
    rule("server-ttft", CheckKind::Stream, |run| {
        let server = run.measured.server.as_ref().ok()?.ttft_ms_mean?;
        let ours = run.measured.series(&metric::TTFT).found.as_ref().ok()?.mean?;
        when(TTFT_ABOVE_MS.max(TTFT_ABOVE_SHARE * server) < ours - server)?;
        let [server, ours] = [server, ours].map(number);
        degraded(format!(
            "the mean TTFT is {ours} ms here and {server} ms by the server's own metrics: something \
             between server and client delays the first token"
        ))
    }),
    rule("late-end", CheckKind::Stream, |run| {
        let odd = &run.measured.anomalies;
        let [after, until] = [odd.after_output, odd.until_output].map(|it| it.as_secs_f64());
        when(LATE_END_SHARE * until < after)?;
        let share = percent(after / until);
        degraded(format!(
            "streams stayed open for another {share} of the time to their last token: throughputs \
             include it, and latencies do not"
        ))
    }),
    rule("no-output", CheckKind::Stream, |run| {
        let requests = positive(run.measured.tokens.without_output)?;
        let severity = match EMPTY_SHARE.exceeded(share(requests, run.measured.ok)) {
            Some((_, severity)) => severity,
            None => Severity::Note,
        };
        raise(
            severity,
            format!("{} without text and without a counted token", counted(requests, "ok answer")),
        )
    }),
    rule("outliers", CheckKind::Stream, |run| {
        let e2e = run.measured.series(&metric::E2E).found.as_ref().ok()?;
        let (median, max) = (e2e.p50?, e2e.max?);
        when(OUTLIER_TIMES * median < max)?;
        let share = stalled_share(run).unwrap_or(0.0);
        let [median, max] = [median, max].map(number);
        let mut text = format!("the slowest answer took {max} ms, and the median is {median} ms");
        if OUTLIER_SHARE < share {
            let _ = write!(text, "; such answers take {} of the time of all", percent(share));
        }
        raise(degraded_above(OUTLIER_SHARE, share), text)
    }),
    rule("output-length", CheckKind::OutputLength, |run| {
        let share = share(run.measured.anomalies.output_off, run.measured.ok)?;
        when(OUTPUT_OFF_SHARE < share)?;
        let output = &run.measured.audit.output;
        let planned = output.planned_tokens.unwrap_or(0) as f64;
        let off = (output.actual_tokens.unwrap_or(0) as f64 - planned).abs() / planned.max(1.0);
        let (share, tolerance) = (percent(share), percent(LENGTH_TOLERANCE));
        let text = "longer or shorter than requested";
        let text = format!("{share} of the answers are more than {tolerance} {text}");
        raise(degraded_above(LENGTH_TOLERANCE, off), text)
    }),
    rule("input-length", CheckKind::InputLength, |run| {
        // Images are tokens, too, and only the server knows how many.
        when(!run.manifest.spec.workload.body.has_media())?;
        let input = &run.measured.audit.input;
        let asked = input.planned_tokens? as f64 / input.requests as f64;
        let counted = input.actual_tokens? as f64 / input.requests as f64;
        when(INPUT_TOLERANCE * asked < (counted - asked).abs())?;
        let text = "tokens per prompt were requested on average, and the server counts";
        note(format!("{} {text} {}", whole(asked), whole(counted)))
    }),
    rule("usage-zero", CheckKind::TokenCounts, |run| {
        let requests = positive(run.measured.anomalies.zero_usage)?;
        note(format!(
            "usage reports 0 output tokens for {} with output",
            counted(requests, "answer")
        ))
    }),
    rule("usage-mismatch", CheckKind::TokenCounts, |run| {
        let requests = positive(run.measured.anomalies.usage_mismatch)?;
        note(format!(
            "the token counts of usage and stream differ for {}",
            counted(requests, "answer")
        ))
    }),
    rule("above-max-tokens", CheckKind::TokenCounts, |run| {
        when(run.measured.generates)?;
        let above = positive(run.measured.anomalies.above_max)?;
        let mean = run.measured.anomalies.above_max_by / above as f64;
        let is_rare = share(above, run.measured.ok)? <= ERRORS_SHARE;
        let severity = match mean {
            _ if is_rare => Severity::Note,
            mean if mean <= LENGTH_TOLERANCE => Severity::Degraded,
            _ => Severity::Invalid,
        };
        let text = "usage reports more output tokens than max_tokens allows for";
        raise(severity, format!("{text} {above} of {} answers", run.measured.ok))
    }),
    rule("tokens-per-event", CheckKind::TokenCounts, |run| {
        let odd = &run.measured.anomalies;
        let per_event = odd.unmarked_tokens as f64 / positive(odd.unmarked_events)? as f64;
        when(1.0 + TOKENS_PER_EVENT_NOTED < per_event)?;
        let text = "usage counts for every event of the streams, and nothing confirms it";
        let text = format!("{} tokens are what {text}", number(per_event));
        let explained = odd.unmarked_tokens as f64 / odd.explained_tokens.max(1) as f64;
        let is_explained =
            explained <= TOKENS_UNEXPLAINED_MOST && per_event <= TOKENS_PER_EVENT_MOST;
        raise(if is_explained { Severity::Note } else { Severity::Degraded }, text)
    }),
    rule("token-source", CheckKind::TokenCounts, |run| {
        let requests = positive(run.measured.tokens.output_source.events)?;
        note(format!(
            "the tokens of {} are counted as events, one token per event",
            counted(requests, "answer")
        ))
    }),
    rule("data-after-done", CheckKind::Stream, |run| {
        let streams = positive(run.measured.anomalies.data_after_done)?;
        note(format!("{} continued after [DONE]", counted(streams, "stream")))
    }),
    rule("missing-done", CheckKind::Stream, |run| {
        // A server that never sends `[DONE]` does so by design; one that sometimes does lost some.
        let seen = positive(run.measured.anomalies.done_seen)?;
        let missing = positive(run.measured.anomalies.done_missing)?;
        note(format!(
            "{} of {} ended without [DONE]",
            count(missing),
            counted(seen + missing, "complete stream")
        ))
    }),
    rule("server-restarted", CheckKind::ServerRestart, |run| {
        let restarts = positive(run.measured.server.as_ref().ok()?.restarts)?;
        let times = if restarts == 1 { String::new() } else { format!(" {restarts} times") };
        invalid(format!("the server restarted{times} during the run, by its own metrics"))
    }),
    rule("server-replicas", CheckKind::ServerRestart, |run| {
        let replicas = run.measured.server.as_ref().ok()?.replicas?;
        note(format!(
            "{replicas} replicas answered at the metrics address in turn: their counters are not \
             known, and each gauge is of one of them"
        ))
    }),
    rule("replicas-uneven", CheckKind::ServerAlone, |run| {
        let sources = &run.measured.server.as_ref().ok()?.sources;
        let (least, most, share) = uneven(sources, run.measured.ok)?;
        let (least, most) = (&least.name, &most.name);
        note(format!(
            "the replica {most} generated {} of the tokens of an average replica, and {least} {}",
            percent(share.1),
            percent(share.0)
        ))
    }),
    rule("urls-uneven", CheckKind::ServerAlone, |run| {
        let (fast, slow, times) = uneven_urls(&run.measured.urls)?;
        note(format!(
            "the mean request to {slow} took {} times as long as to {fast}",
            number(times)
        ))
    }),
    rule("server-tokens-more", CheckKind::ServerAlone, |run| {
        let (tokens, share) = server_tokens_apart(run).filter(|(_, share)| 0.0 < *share)?;
        let more = format!("{} more {tokens}", percent(share));
        let text = format!("the server counted {more} than this run");
        raise(degraded_above(FOREIGN_SHARE_GRAVE, share), text)
    }),
    rule("server-tokens-fewer", CheckKind::ServerAlone, |run| {
        let (tokens, share) = server_tokens_apart(run).filter(|(_, share)| *share <= 0.0)?;
        note(format!("the server counted {} fewer {tokens} than this run", percent(-share)))
    }),
    rule("gpus-idle", CheckKind::GpuSpeed, |run| {
        let gpus = run.measured.machines.gpus.as_ref()?;
        when(!gpus.devices.iter().any(DeviceFigures::counts))?;
        let read = match gpus.devices.iter().filter(|device| !device.foreign).count() {
            0 => return None,
            1 => "the sampled GPU was".to_owned(),
            several => format!("the {several} sampled GPUs were"),
        };
        note(format!("{read} idle during the run: the server does not use them"))
    }),
    rule("gpu-throttled", CheckKind::GpuSpeed, |run| {
        let (share, text) = throttled(run, |device| device.throttled_hardware, "its board")?;
        raise(degraded_above(THROTTLED_SHARE, share), text)
    }),
    rule("gpu-throttled", CheckKind::GpuSpeed, |run| {
        let (share, text) = throttled(run, |device| device.throttled_thermal, "its temperature")?;
        Some(raise(degraded_above(THROTTLED_SHARE, share), text)?.with_remedy("-thermal"))
    }),
    rule("gpu-power-limit", CheckKind::GpuSpeed, |run| {
        // Many GPUs are meant to run at their power limit under full load.
        note(throttled(run, |device| device.throttled_power, "its power limit")?.1)
    }),
    rule("gpu-hot", CheckKind::GpuSpeed, |run| {
        let limit = match run.measured.machines.gpus.as_ref()?.source {
            DeviceSource::AmdSmi | DeviceSource::RocmSmi => HOT_JUNCTION_C,
            DeviceSource::Nvml | DeviceSource::NvidiaSmi | DeviceSource::Dcgm => HOT_C,
        };
        let (gpu, celsius) = worst_gpu(run, |device| Some(device.temperature_c?.max))?;
        when(limit <= celsius)?;
        note(format!("GPU {gpu} reached {} °C (noted from {limit} °C)", whole(celsius)))
    }),
    rule("gpu-memory-full", CheckKind::GpuSpeed, |run| {
        let (gpu, share) = worst_gpu(run, |device| {
            let total = positive(device.memory_total_bytes?)? as f64;
            Some(device.memory_used_bytes?.max / total)
        })?;
        when(MEMORY_FULL_SHARE <= share)?;
        note(format!("{} of the memory of GPU {gpu} was in use", percent(share)))
    }),
    rule("preemptions", CheckKind::GpuSpeed, |run| {
        let total = run.measured.server.as_ref().ok()?.preemptions?.total;
        when(0.0 < total)?;
        let times =
            if total <= 1.0 { "once".to_owned() } else { format!("{} times", whole(total)) };
        note(format!("the server preempted requests {times} because its KV cache was full"))
    }),
    rule("gpu-newcomers", CheckKind::GpuAlone, |run| {
        let came = match used_gpus(run).map(|device| device.newcomers).sum::<u64>() {
            0 => return None,
            1 => "a process".to_owned(),
            several => format!("{several} processes"),
        };
        degraded(format!("{came} started on the server's GPUs during the run"))
    }),
    rule("client-cpu-full", CheckKind::ClientMachine, |run| {
        let share = run.client_machine()?.cpu_share?.mean;
        when(CPU_FULL_SHARE < share)?;
        degraded(format!(
            "the CPUs of the client's machine were busy for {} of the run",
            percent(share)
        ))
    }),
    rule("client-memory-low", CheckKind::ClientMachine, |run| {
        let bytes = run.client_machine()?.memory_available_bytes_min?;
        when(bytes < MEMORY_LOW_BYTES)?;
        let (left, least) = (bytes >> 20, MEMORY_LOW_BYTES >> 20);
        degraded(format!("the client's machine had {left} MiB of memory left (needs {least} MiB)"))
    }),
];

/// What the client added to the way of a request, in milliseconds: from its release to its first byte,
/// without opening a connection.
fn client_delay_ms(record: &RequestRecord) -> Option<f64> {
    let dial = record.connection.as_ref().and_then(|connection| connection.dial);
    let opened = dial.map_or(Duration::ZERO, |dial| {
        dial.secured.unwrap_or(dial.connected).since(dial.started).unwrap_or_default()
    });
    let delay = record.sent?.since(record.admitted)?.saturating_sub(opened);
    Some(delay.as_secs_f64() * 1e3)
}

/// The share of the time of all answers that the answers take which are outliers for their length: by
/// their time, and by their time for each token of their input and of their output.
fn stalled_share(run: &RunContext<'_>) -> Option<f64> {
    let took = |record: &RequestRecord| {
        let is_ok = record.ending.outcome == Outcome::Ok;
        let took = record.ending.at.since(record.sent?).filter(|_| is_ok)?.as_secs_f64();
        let output = record.usage.and_then(|usage| usage.completion_tokens);
        let output = output.unwrap_or(record.asked.output_tokens.into());
        let per = |tokens: u64| took / tokens.max(1) as f64;
        Some([took, per(InputTokens::from_record(record).count), per(output)])
    };
    let all: Vec<_> = run.observations.records.iter().filter_map(|it| took(&it)).collect();
    let median = |which: usize| {
        let values = Sample::new(all.iter().map(|times| times[which]).collect())?;
        Some(values.percentile(Percentile::P50))
    };
    let limits = [median(0)?, median(1)?, median(2)?].map(|median| OUTLIER_TIMES * median);
    let is_outlier = |times: &[f64; 3]| times.iter().zip(limits).all(|(time, limit)| limit < *time);
    let seconds = |times: &[f64; 3]| times[0];
    let outliers: f64 = all.iter().filter(|times| is_outlier(times)).map(seconds).sum();
    Some(outliers / all.iter().map(seconds).sum::<f64>())
}

/// The number of requests that would do, where the run has too few for its load.
fn rounds_missing(run: &RunContext<'_>) -> Option<u64> {
    let steady = &run.measured.steady;
    let is_slotted = steady::is_slotted(&run.measured.shape);
    when(steady.state != SteadyKind::NotJudged)?;
    let least = if is_slotted { ROUNDS_CLOSED } else { ROUNDS_OPEN };
    let rounds = run.measured.talks.rounds?;
    // The steady part of a closed loop is enough if it fills the slots a few times.
    let in_window = steady.figures.as_ref().map_or(0, |figures| figures.requests) as f64;
    let rounds_in_window = rounds * in_window / run.measured.attempted.max(1) as f64;
    when(rounds < least && !(is_slotted && ROUNDS_STEADY <= rounds_in_window))?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    let requests = (run.measured.attempted as f64 * least / rounds).ceil() as u64;
    Some(requests)
}

impl Limits {
    /// A value above the first limit, and how severe it is.
    fn exceeded(self, value: Option<f64>) -> Option<(f64, Severity)> {
        let value = value.filter(|value| self.degraded.is_some_and(|limit| limit < *value))?;
        let is_invalid = self.invalid.is_some_and(|limit| limit < value);
        Some((value, if is_invalid { Severity::Invalid } else { Severity::Degraded }))
    }
}

/// Ends a rule with `?` where its condition does not hold.
fn when(condition: bool) -> Option<()> {
    condition.then_some(())
}

/// A count that is not zero.
fn positive(count: u64) -> Option<u64> {
    Some(count).filter(|count| 0 < *count)
}

fn degraded_above(limit: f64, share: f64) -> Severity {
    if limit < share { Severity::Degraded } else { Severity::Note }
}

pub(super) fn cancelled(run: &RunContext<'_>) -> u64 {
    run.measured.outcomes.get(&Outcome::Cancelled).copied().unwrap_or(0)
}

/// Requests that failed, and not because the client ended them.
pub(super) fn failed(run: &RunContext<'_>) -> u64 {
    run.measured.attempted - run.measured.ok - cancelled(run) - run.measured.abandoned()
}

fn all_cut(run: &RunContext<'_>) -> bool {
    0 < run.measured.attempted && cancelled(run) == run.measured.attempted
}

fn schedule<'a>(run: &'a RunContext<'_>) -> Option<&'a ScheduleDelivered> {
    match &run.measured.delivered {
        Delivered::Schedule(schedule) => Some(schedule),
        Delivered::Slots(_) | Delivered::NotChecked { .. } => None,
    }
}

/// How the prompts of a workload are new to the server, where each is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NewPrompts {
    /// Another seed gives other prompts.
    Seeded,
    SameInEveryRun,
}

pub(crate) fn new_prompts(source: &Source) -> Option<NewPrompts> {
    match source {
        Source::Synthetic(synthetic) if synthetic.prefix.is_none() => Some(NewPrompts::Seeded),
        Source::VllmRandom(random) if random.prefix_tokens == 0 => Some(NewPrompts::SameInEveryRun),
        Source::Mix(parts) => {
            let parts: Option<Vec<NewPrompts>> =
                parts.iter().map(|part| new_prompts(&part.source)).collect();
            let same = parts?.contains(&NewPrompts::SameInEveryRun);
            Some(if same { NewPrompts::SameInEveryRun } else { NewPrompts::Seeded })
        }
        Source::Synthetic(_)
        | Source::VllmRandom(_)
        | Source::Dataset(_)
        | Source::Fixed(_)
        | Source::Trace(_)
        | Source::Conversations(_)
        | Source::Sessions(_)
        | Source::Agents(_)
        | Source::Saved { .. } => None,
    }
}

/// Share of the input from the prefix cache: by each answer's usage, else by the server's counters.
pub(crate) fn cached_share(measured: &Measured) -> Option<f64> {
    let by_counters = || measured.server.as_ref().ok()?.own_hit_share();
    measured.audit.cache.share.or_else(by_counters)
}

/// The share of the input that the server's chat template may be: every prompt begins with it, so
/// finding it in the cache does not concern the prompts.
fn template_share(input_length: InputLength, audit: &Audit) -> f64 {
    let constant = audit.input.difference.and_then(|difference| difference.constant());
    let template = match input_length {
        InputLength::Corrected(correction) => correction.overhead_tokens,
        InputLength::Exact | InputLength::Estimated => constant.unwrap_or(0) as f64,
    };
    let (Some(actual), requests) = (audit.input.actual_tokens, audit.input.requests) else {
        return 0.0;
    };
    let input_mean = actual as f64 / requests as f64;
    (template / input_mean.max(1.0)).max(0.0)
}

/// The workers of a merged run.
fn workers<'a>(run: &RunContext<'a>) -> &'a [WorkerFacts] {
    run.manifest.merged.as_ref().map_or(&[], |merged| &merged.workers)
}

/// What is wrong with each worker that did not play its whole share.
fn workers_lost(run: &RunContext<'_>) -> Option<Raised> {
    let what = |worker: &WorkerFacts| Some(format!("worker {} {}", worker.name(), worker.loss()?));
    let lost: Vec<String> = workers(run).iter().filter_map(what).collect();
    let text = format!(
        "the run is partial: {}; {} requests were not sent",
        listed(&lost),
        run.observations.not_sent_count()
    );
    Some(invalid(text)?.with_remedy("-workers"))
}

/// Names in a message, if they are many only the first of them.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let more = names.len().saturating_sub(SHOWN);
    let shown = names[..names.len() - more].join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

/// The replicas that generated least and most tokens, and their tokens as shares of the mean, where these
/// lie further apart than chance puts so many requests.
fn uneven(
    sources: &[SourceFigures],
    requests: u64,
) -> Option<(&SourceFigures, &SourceFigures, (f64, f64))> {
    /// Between the most and the least, as a share of the mean.
    const APART: f64 = 0.25;
    let replicas = sources.iter().filter(|it| matches!(it.role, MetricsRole::Replica));
    let tokens =
        replicas.filter_map(|it| Some((it, it.figures.as_ref()?.generation_tokens?.total)));
    let mut tokens: Vec<(&SourceFigures, f64)> = tokens.collect();
    tokens.sort_by(|one, other| one.1.total_cmp(&other.1));
    let [(least, fewest), .., (most, highest)] = tokens.as_slice() else { return None };
    let mean = tokens.iter().map(|it| it.1).sum::<f64>() / tokens.len() as f64;
    let requests_each = requests as f64 / tokens.len() as f64;
    when(0.0 < mean && 0.0 < requests_each)?;
    // Four standard errors of what independent requests bring each of them.
    let by_chance = 4.0 / requests_each.sqrt();
    when(APART + by_chance < (highest - fewest) / mean)?;
    Some((least, most, (fewest / mean, highest / mean)))
}

/// The URLs whose answers took the least and the most time, and how many times as long.
fn uneven_urls(urls: &[PartFigures]) -> Option<(&str, &str, f64)> {
    const TIMES: f64 = 1.25;
    /// Fewer answers differ by chance.
    const ANSWERS_MIN: u64 = 30;
    let mean = |url: &PartFigures| {
        let e2e = url.figures.latencies.get(&metric::E2E)?;
        e2e.mean.filter(|_| ANSWERS_MIN <= e2e.n)
    };
    let mut means: Vec<(&str, f64)> =
        urls.iter().filter_map(|url| Some((url.part.as_str(), mean(url)?))).collect();
    means.sort_by(|one, other| one.1.total_cmp(&other.1));
    let [(fast, least), .., (slow, most)] = means.as_slice() else { return None };
    when(0.0 < *least && TIMES < most / least)?;
    Some((fast, slow, most / least))
}

/// The larger difference between the server's and the client's token totals, as a signed share.
fn server_tokens_apart(run: &RunContext<'_>) -> Option<(&'static str, f64)> {
    let apart = run.measured.server.as_ref().ok()?.tokens_apart;
    [("generated tokens", apart.generation), ("prompt tokens", apart.prompt)]
        .into_iter()
        .filter_map(|(tokens, share)| Some((tokens, share?)))
        .filter(|(_, share)| TOKENS_APART < share.abs())
        .reduce(|a, b| if a.1.abs() < b.1.abs() { b } else { a })
}

pub(super) fn used_gpus<'a>(run: &'a RunContext<'_>) -> impl Iterator<Item = &'a DeviceFigures> {
    let gpus = run.measured.machines.gpus.as_ref();
    gpus.into_iter().flat_map(|gpus| &gpus.devices).filter(|device| device.counts())
}

/// The GPU with the largest value, and the value.
fn worst_gpu(
    run: &RunContext<'_>,
    value: impl Fn(&DeviceFigures) -> Option<f64>,
) -> Option<(u32, f64)> {
    let values = used_gpus(run).filter_map(|device| Some((device.index, value(device)?)));
    values.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// The share of samples in which the worst GPU was throttled, and the message about it.
fn throttled(
    run: &RunContext<'_>,
    share: impl Fn(&DeviceFigures) -> Option<f64>,
    cause: &str,
) -> Option<(f64, String)> {
    let (gpu, share) = worst_gpu(run, share).filter(|(_, share)| 0.0 < *share)?;
    let shown = percent(share);
    Some((share, format!("GPU {gpu} was throttled by {cause} in {shown} of the samples")))
}

#[cfg(test)]
mod tests;
