//! The table of warnings about a run.
//!
//! A warning is one entry of [`RULES`]: its key, the check it belongs to, and the condition that raises
//! it with severity, text and remedy. To add one, add its entry here, and tests that raise it and that
//! do not. The order of the table is the order among warnings of equal severity.

use std::fmt::Write;

use inferometer_model::Outcome;
use inferometer_model::journal::RunStop;
use inferometer_model::observations::InputLength;
use inferometer_model::outcome::Cause;
use inferometer_model::spec::Source;
use inferometer_model::telemetry::DeviceSource;

use super::checks::CheckKind;
use super::{Raised, Rule, RunContext, Severity, Warning, degraded, invalid, note};
use crate::audit::Audit;
use crate::client::share;
use crate::machines::{DeviceFigures, GpuFigures};
use crate::metric;
use crate::offered_load::{Delivered, HeldByCap, RATE_APART_GRAVE, SLOTS_SHARE, ScheduleDelivered};
use crate::record::{LENGTH_TOLERANCE, Measured};
use crate::server::TOKENS_APART;
use crate::steady::SteadyKind;

type Raise = fn(&RunContext<'_>) -> Option<Raised>;

const fn rule(key: &'static str, check: CheckKind, raise: Raise) -> Rule<Raise> {
    Rule { key, check: Some(check), raise }
}

/// Values above which a quantity degrades a run, and above which it invalidates it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) degraded: f64,
    pub(super) invalid: f64,
}

/// The share of attempted requests above which failures colour what is left.
pub(super) const ERRORS_SHARE: f64 = 0.01;
/// Below this many answers even a mean is a guess.
const FEW_REQUESTS: u64 = 30;
/// An open loop whose requests leave this late is another load than the one planned.
pub(super) const SENT_LATE_MS: Bounds = Bounds { degraded: 10.0, invalid: 100.0 };
/// What the client may add to a latency, or hide in it.
pub(super) const CLIENT_MS: Bounds = Bounds { degraded: 5.0, invalid: 50.0 };
/// Scheduler hiccups stay below the first; above it, the process or the machine was suspended.
const PAUSE_MS: Bounds = Bounds { degraded: 100.0, invalid: 1_000.0 };
/// The share of the machine's processor time that its host gave to others.
const STOLEN_SHARE: Bounds = Bounds { degraded: 0.02, invalid: 0.10 };
/// The share of its capacity from which on a client adds its own queueing.
pub(super) const CAPACITY_SHARE: Bounds = Bounds { degraded: 0.5, invalid: 0.8 };
/// The share of attempted requests above which waiting for the journal slowed the drivers.
const JOURNAL_WAITS_SHARE: f64 = 0.01;
/// The share of input tokens that may come from the prefix cache although every prompt is new: caches
/// work in blocks, and some servers put a few words of their own first.
pub(crate) const CACHED_SHARE: f64 = 0.05;
/// Above this share the results describe the cache.
pub(crate) const CACHED_SHARE_GRAVE: f64 = 0.20;
/// The share of streamed answers in one piece above which it is noted.
const NOT_STREAMING_SHARE: f64 = 0.50;
/// The share of answers with another length than asked above which it is noted.
const OUTPUT_OFF_SHARE: f64 = 0.10;
/// How far an estimated prompt may be from the server's count.
const INPUT_TOLERANCE: f64 = 0.20;
/// Longest part of a model name chosen by the server that a message shows.
const NAME_CHARS_MAX: usize = 80;
/// The share of tokens for other clients above which the load was not the one asked for.
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
/// Above this share, threads of the client wait for a processor.
pub(super) const CPU_FULL_SHARE: f64 = 0.9;
/// Below this, the system begins to reclaim memory that programs still use.
const MEMORY_LOW_BYTES: u64 = 512 << 20;

/// All warnings of a run, the most severe first.
pub(crate) fn run_warnings(run: &RunContext<'_>) -> Vec<Warning> {
    let is_virtual = run.manifest.simulated.is_some();
    let applies =
        |rule: &&Rule<Raise>| !(is_virtual && rule.check.is_some_and(CheckKind::is_about_client));
    let raised = RULES.iter().filter(applies).filter_map(|rule| rule.warning((rule.raise)(run)));
    super::by_severity(raised.collect())
}

static RULES: &[Rule<Raise>] = &[
    rule("nothing-ok", CheckKind::Errors, |run| {
        let Measured { ok: 0, attempted, .. } = *run.measured else { return None };
        let remedy = "look at the failures, and check that the server answers a single request";
        let text = format!("none of {attempted} attempted requests ended ok");
        (!all_cut(run)).then(|| invalid(text, remedy))
    }),
    rule("all-cut", CheckKind::CompleteRun, |run| {
        let attempted = run.measured.attempted;
        let text = format!("all {attempted} requests were cut before they could end");
        let remedy = if run.observations.ending.stop == RunStop::Cut {
            "run it again, to its end"
        } else {
            "run longer, ask for shorter answers, or give the last requests more time \
             (--drain-timeout)"
        };
        all_cut(run).then(|| invalid(text, remedy))
    }),
    rule("errors", CheckKind::Errors, |run| {
        let attempted = run.measured.attempted;
        let failed = positive(attempted - run.measured.ok - cancelled(run))?;
        // A turn that could not follow a failed one counts as failed.
        let lost = run.observations.not_sent_because(Cause::ConversationBroken);
        let severity = if attempted + lost < (failed + lost) * 2 {
            Severity::Invalid
        } else {
            degraded_above(ERRORS_SHARE, (failed + lost) as f64 / (attempted + lost) as f64)
        };
        let share = percent(failed as f64 / attempted as f64);
        let mut text = format!("{failed} of {attempted} attempted requests failed ({share})");
        if 0 < lost {
            let _ = write!(text, ", and {lost} turns were lost with them");
        }
        let remedy = "look at the failures; latencies are of the requests that succeeded, so \
                      lower the load or mend the server before comparing";
        Some(Raised::new(severity, text, remedy))
    }),
    rule("partial", CheckKind::CompleteRun, |run| {
        // A run that the user cut short still reports what it measured; one that had to give up
        // does not.
        let stop = run.observations.ending.stop;
        let severity = match stop {
            RunStop::PlanDone => return None,
            RunStop::Drained | RunStop::Cut | RunStop::Recovered => Severity::Degraded,
            RunStop::Unauthorized
            | RunStop::Unreachable
            | RunStop::ClientExhausted
            | RunStop::Stalled => Severity::Invalid,
        };
        let remedy = "run it again to the end before comparing it with another run";
        Some(Raised::new(severity, format!("the run is partial: {}", stop.text()), remedy))
    }),
    rule("cut-at-limit", CheckKind::CompleteRun, |run| {
        let cut = positive(cancelled(run))?;
        let text = format!("{cut} requests were still in flight when the drain limit passed");
        let remedy = "give the last requests more time (--drain-timeout), or lower the load: slow \
                      answers are missing here";
        (!run.observations.ending.stop.is_partial()).then(|| degraded(text, remedy))
    }),
    rule("stale-pool", CheckKind::Errors, |run| {
        let requests = positive(run.measured.anomalies.stale_pool)?;
        let why = "because the server had closed the pooled connection";
        let remedy = "use a fresh connection for each request (--connections new), or let the \
                      server keep idle ones longer";
        Some(note(format!("{requests} requests failed {why}"), remedy))
    }),
    rule("held-by-cap", CheckKind::DeliveredLoad, |run| {
        let attempted = run.measured.attempted;
        let held = positive(HeldByCap::from_observations(run.observations)?.requests)?;
        let share = percent(held as f64 / attempted.max(1) as f64);
        let remedy = "this is a capped-open result and no open-loop one: latencies from schedule \
                      count the waiting; raise --max-concurrency, or lower the rate, to measure an \
                      open loop";
        let held = format!("the concurrency cap held back {held} of {attempted} requests");
        Some(note(format!("{held} ({share})"), remedy))
    }),
    rule("backlog", CheckKind::DeliveredLoad, |run| {
        let requests = positive(run.observations.not_sent_because(Cause::HeldByCap))?;
        let held = "were still held back by the cap when the time was over";
        let remedy = "the server does not keep up with this rate: lower it, or raise \
                      --max-concurrency";
        Some(degraded(format!("{requests} scheduled requests {held}"), remedy))
    }),
    rule("insecure", CheckKind::Answerer, |run| {
        let text = "the server's TLS certificate was not checked (--insecure)";
        let remedy =
            "have the server's certificate trusted by this system, and leave --insecure out";
        run.manifest.spec.client.insecure.then(|| note(text, remedy))
    }),
    rule("proxy-variables", CheckKind::Answerer, |run| {
        let names = &run.manifest.environment.proxy_variables;
        let text = format!("proxy variables are set and were not used: {}", names.join(", "));
        (!names.is_empty()).then(|| note(text, "none needed; unset them to be sure"))
    }),
    rule("few-requests", CheckKind::SampleSize, |run| {
        let ok = positive(run.measured.ok)?;
        let text = format!("only {ok} requests ended ok");
        (ok < FEW_REQUESTS).then(|| note(text, "send more requests"))
    }),
    rule("rate-missed", CheckKind::DeliveredLoad, |run| {
        let schedule = schedule(run)?;
        let apart = schedule.rate_missed()?.abs();
        let (intended, sent) = schedule.intended_per_s.zip(schedule.sent_per_s)?;
        let unsent = schedule.unsent_share();
        // Requests that never left are judged as errors, or as resources missing on the client.
        let severity =
            if RATE_APART_GRAVE < apart - unsent { Severity::Invalid } else { Severity::Degraded };
        let mut text = format!(
            "requests left at {sent:.2} per second and were planned at {intended:.2} ({} apart)",
            percent(apart)
        );
        let remedy = if 0.0 < unsent {
            let _ = write!(text, "; {} of them never left", percent(unsent));
            "look at why requests never left (the errors by cause), or lower the rate: the \
             server met another load than the one asked for"
        } else {
            MORE_CORES_OR_RATE
        };
        Some(Raised::new(severity, text, remedy))
    }),
    rule("arrivals-bunched", CheckKind::DeliveredLoad, |run| {
        let (intended, sent) = schedule(run)?.bunched()?;
        let text = format!(
            "over {} s the number of requests that left varies {:.2} times its mean, and was \
             planned to vary {:.2} times",
            intended.over_s, sent.index, intended.index
        );
        Some(note(text, MORE_CORES_OR_RATE))
    }),
    rule("arrivals-unlike", CheckKind::DeliveredLoad, |run| {
        let fit = schedule(run)?.unlike()?;
        let (process, p) = (&fit.process, format!("{:.1e}", fit.p));
        let text = format!(
            "the gaps of the schedule are not those of {process} arrivals at this rate (p = {p})"
        );
        let remedy =
            "use another --seed, and report the run directory as a bug if it happens again";
        Some(degraded(text, remedy))
    }),
    rule("slots-empty", CheckKind::DeliveredLoad, |run| {
        let Delivered::Slots(slots) = &run.measured.delivered else { return None };
        let (asked, used) = (slots.asked, slots.in_use_mean);
        let text =
            format!("of {asked} slots {used:.2} were in use on average while the load was on");
        let remedy = "give the client more cores, or look for requests that fail before they \
                      leave: the server met fewer users than asked for";
        (slots.share < SLOTS_SHARE).then(|| degraded(text, remedy))
    }),
    rule("piling-up", CheckKind::SteadyState, |run| {
        let text = format!(
            "requests in flight grow by {:.2} per second: the server does not keep up with this \
             rate",
            run.measured.steady.piling_up()?
        );
        let remedy = "lower the rate: latencies grow for as long as the run goes on, so they are \
                      about its length; measure the capacity with a closed loop";
        Some(degraded(text, remedy))
    }),
    rule("never-settled", CheckKind::SteadyState, |run| {
        let steady = &run.measured.steady;
        let text = format!("the run never settled: {}", steady.reason.as_ref()?);
        let drifts = steady.state == SteadyKind::NeverSettled && steady.piling_up().is_none();
        let remedy = "run longer, or warm the server up first (--warm-up), to see whether it comes \
                      to a level";
        drifts.then(|| note(text, remedy))
    }),
    rule("littles-law", CheckKind::LittlesLaw, |run| {
        let law = &run.measured.littles_law;
        let mut text = format!(
            "requests in flight are {} apart from arrivals times time in flight",
            percent(law.broken()?.abs())
        );
        if 0 < law.lost {
            let _ = write!(text, "; {} requests were started and never heard of again", law.lost);
        }
        let remedy = "requests were lost, or their records make no sense: run it again, and \
                      report the run directory as a bug if it happens again";
        Some(degraded(text, remedy))
    }),
    rule("server-in-flight", CheckKind::LittlesLaw, |run| {
        let (server, ours) = run.measured.littles_law.server_disagrees()?;
        let text = format!(
            "the server's gauges say {server:.2} requests running and waiting on average, and \
             {ours:.2} of ours were in flight"
        );
        let remedy = "see whether others use the server, whether a proxy holds requests back, and \
                      whether the metrics are of the server that answers";
        Some(note(text, remedy))
    }),
    rule("sent-late", CheckKind::SendLag, |run| {
        // A closed loop plans no moments: a request leaves when a slot is free. What a cap holds
        // back is not late either; `held-by-cap` reports it.
        let lag = run.p99(&metric::SEND_LAG).filter(|_| run.manifest.spec.is_open_loop());
        let (p99_ms, severity) = SENT_LATE_MS.exceeded(lag)?;
        let text = format!(
            "1 % of requests left {p99_ms:.1} ms or more after their planned moment (allowed {} ms)",
            SENT_LATE_MS.degraded
        );
        Some(Raised::new(severity, text, "give the client more cores, or lower the rate"))
    }),
    rule("client-lag", CheckKind::ClientLag, |run| {
        let (p99_ms, severity) = CLIENT_MS.exceeded(run.p99(&metric::CLIENT_LAG))?;
        let text =
            format!("1 % of reads lay {p99_ms:.1} ms or more in the kernel before we read them");
        Some(Raised::new(severity, text, MORE_CORES_OR_LOAD))
    }),
    rule("loop-lag", CheckKind::ClientLoop, |run| {
        let (p99_ms, severity) = CLIENT_MS.exceeded(run.health.loop_lag_ms.p99_at_most)?;
        let text = format!("the client's loop woke up to {p99_ms:.1} ms late (p99)");
        Some(Raised::new(severity, text, MORE_CORES_OR_LOAD))
    }),
    rule("loop-paused", CheckKind::ClientLoop, |run| {
        let (max_ms, severity) = PAUSE_MS.exceeded(run.health.loop_lag_ms.max)?;
        let text = format!("the client's loop stood still for {max_ms:.0} ms");
        let remedy = "keep the client from being suspended or starved of CPU, and run it again";
        Some(Raised::new(severity, text, remedy))
    }),
    rule("arrival-width", CheckKind::ArrivalWidth, |run| {
        let width = run.measured.event_width.as_ref().and_then(|found| found.p99);
        let (p99_ms, severity) = CLIENT_MS.exceeded(width)?;
        let text = format!(
            "1 % of the events may be {p99_ms:.1} ms or more older than their stamps: they were \
             read together with later ones"
        );
        Some(Raised::new(severity, text, MORE_CORES_OR_LOAD))
    }),
    rule("cpu-stolen", CheckKind::ClientLoop, |run| {
        // Samples of the machine are used where the run's own totals are missing.
        let sampled = || Some(run.client_machine()?.steal_share?.mean);
        let (share, severity) = STOLEN_SHARE.exceeded(run.health.cpu_stolen.or_else(sampled))?;
        let share = percent(share);
        let text =
            format!("{share} of this machine's processor time went to others on the same host");
        let remedy =
            "measure from a machine, or a virtual machine, that has its processors to itself";
        Some(Raised::new(severity, text, remedy))
    }),
    rule("capacity-used", CheckKind::ClientCapacity, |run| {
        let used = run.health.capacity.as_ref()?.used;
        let (share, severity) = CAPACITY_SHARE.exceeded(Some(used))?;
        let share = percent(share);
        let text = format!("this load used {share} of what the client can carry on this machine");
        Some(Raised::new(severity, text, MORE_CORES_OR_LOAD))
    }),
    rule("clock-jump", CheckKind::Clock, |run| {
        let jumps = positive(run.health.clock_jumps?)?;
        let text = format!("the wall clock jumped {jumps} times, so kernel stamps near it are off");
        let remedy = "let time synchronisation settle (slewing, not stepping) and run it again";
        Some(degraded(text, remedy))
    }),
    rule("clock-order", CheckKind::Clock, |run| {
        let distances = positive(run.measured.out_of_order)?;
        let text = format!("{distances} times between recorded moments are negative or unknown");
        let remedy =
            "do not use these numbers; run it again, and report the run directory as a bug";
        Some(invalid(text, remedy))
    }),
    rule("journal-waits", CheckKind::ClientCapacity, |run| {
        let (waits, attempted) = (positive(run.health.journal_waits)?, run.measured.attempted);
        let had_to = "had to wait for its writer";
        let text = format!("{waits} entries of the journal {had_to}, over {attempted} requests");
        let severity = degraded_above(JOURNAL_WAITS_SHARE, waits as f64 / attempted as f64);
        Some(Raised::new(severity, text, "write the run to a faster disk"))
    }),
    rule("client-resource", CheckKind::ClientCapacity, |run| {
        let not_sent = run.observations.not_sent_because(Cause::ClientResource);
        let requests = positive(run.measured.anomalies.client_resource + not_sent)?;
        let why = "because this machine ran out of descriptors, ports or memory";
        let remedy =
            "raise the limit of open files, widen the range of local ports, or lower the load";
        Some(invalid(format!("{requests} requests failed {why}"), remedy))
    }),
    rule("no-kernel-stamps", CheckKind::KernelStamps, |run| {
        let stamped = run.health.kernel_stamps.filter(|stamped| *stamped < 1.0)?;
        let without = percent(1.0 - stamped);
        let text =
            format!("{without} of the reads have no kernel stamp; the moment of the read is used");
        let remedy = "none needed while the loop lag is small; the kernel's stamps need Linux and \
                      HTTP/1";
        Some(note(text, remedy))
    }),
    rule("cache-contamination", CheckKind::Cache, |run| {
        let remedy = match new_prompts(&run.manifest.spec.workload.source)? {
            NewPrompts::Seeded => {
                "the server has seen these prompts before: use another --seed, restart the \
                 server, or switch its prefix cache off"
            }
            NewPrompts::SameInEveryRun => {
                "vllm-random sends the same prompts in every run: restart the server between \
                 runs, or switch its prefix cache off"
            }
        };
        let share = cached_share(run.measured)?;
        let template = template_share(run.manifest.materials.input_length, &run.measured.audit);
        let text = format!(
            "every prompt was to be new, but {} of the input came from the prefix cache",
            percent(share)
        );
        let severity = degraded_above(CACHED_SHARE_GRAVE, share);
        (CACHED_SHARE < share - template).then(|| Raised::new(severity, text, remedy))
    }),
    rule("seen-before", CheckKind::Cache, |run| {
        // Where the server reports what it cached, that is judged instead.
        let earlier = run.manifest.seen_before.as_ref()?;
        let text = format!("run {earlier} may have sent the same prompts to this server");
        let remedy = "a prefix cache may have answered them: use another --seed, restart the \
                      server, or let it say what it cached (vLLM: \
                      --enable-prompt-tokens-details)";
        cached_share(run.measured).is_none().then(|| note(text, remedy))
    }),
    rule("repeated-prompts", CheckKind::Cache, |run| {
        let Source::Dataset(_) = run.manifest.spec.workload.source else { return None };
        let items = run.manifest.materials.files.first()?.items;
        let records = run.observations.records.iter();
        let requests = records.filter(|record| record.asked.turn == 0).count() as u64;
        let text =
            format!("{requests} requests were made from {items} prompts, so some came again");
        let remedy = "a prefix cache answers a repeated prompt faster: send fewer requests, give \
                      more data, or switch the cache off";
        (items < requests).then(|| note(text, remedy))
    }),
    rule("conversations-broken", CheckKind::Errors, |run| {
        let turns = positive(run.observations.not_sent_because(Cause::ConversationBroken))?;
        let why = "because an earlier turn of their conversation failed";
        let remedy =
            "look at the failures; figures of later turns are of the conversations that held";
        Some(note(format!("{turns} turns were not sent {why}"), remedy))
    }),
    rule("model-mismatch", CheckKind::Answerer, |run| {
        let odd = &run.measured.anomalies;
        let name = odd.other_model_name.as_ref()?;
        let answered: String = name.chars().take(NAME_CHARS_MAX).collect();
        let (asked, requests) = (&run.manifest.endpoint.model, odd.other_model);
        let text =
            format!("`{asked}` was asked for, but `{answered}` answered {requests} requests");
        let remedy =
            "ask for the model by the name that the server gives it, or measure another server";
        Some(invalid(text, remedy))
    }),
    rule("not-streaming", CheckKind::Stream, |run| {
        let odd = &run.measured.anomalies;
        let share = share(odd.streams_in_one_arrival, odd.streams)?;
        let text = format!("{} of the streamed answers came in one piece", percent(share));
        let remedy = "check that neither the server nor a proxy before it gathers the stream; as it \
                      is, TTFT is the whole answer's time";
        (NOT_STREAMING_SHARE < share).then(|| note(text, remedy))
    }),
    rule("no-output", CheckKind::Stream, |run| {
        let requests = positive(run.measured.tokens.without_output)?;
        let remedy = "none needed while they are few: such an answer has no TTFT and no E2E, so it \
                      is missing from those";
        Some(note(format!("{requests} ok answers brought no text and no counted token"), remedy))
    }),
    rule("output-length", CheckKind::OutputLength, |run| {
        let share = share(run.measured.anomalies.output_off, run.measured.ok)?;
        let text = format!(
            "{} of the answers are more than {:.0} % longer or shorter than asked",
            percent(share),
            LENGTH_TOLERANCE * 100.0
        );
        let remedy = "make the server ignore its end-of-sequence token, or ask for lengths that the \
                      model gives by itself";
        (OUTPUT_OFF_SHARE < share).then(|| note(text, remedy))
    }),
    rule("input-length", CheckKind::InputLength, |run| {
        // Images are tokens too, and only the server knows how many.
        if run.manifest.spec.workload.body.images.is_some() {
            return None;
        }
        let input = &run.measured.audit.input;
        let asked = input.planned_tokens? as f64 / input.requests as f64;
        let counted = input.actual_tokens? as f64 / input.requests as f64;
        let asked_text = format!("prompts were to have {asked:.0} tokens on average");
        let text = format!("{asked_text}, and the server counts {counted:.0}");
        let remedy = "go by the server's counts; without a tokenizer prompts are sized by estimate";
        (INPUT_TOLERANCE * asked < (counted - asked).abs()).then(|| note(text, remedy))
    }),
    rule("usage-zero", CheckKind::TokenCounts, |run| {
        let requests = positive(run.measured.anomalies.zero_usage)?;
        let text = format!("usage says 0 output tokens on {requests} answers that have output");
        let remedy = "mend the server's usage; until then tokens are counted from the stream";
        Some(note(text, remedy))
    }),
    rule("usage-mismatch", CheckKind::TokenCounts, |run| {
        let requests = positive(run.measured.anomalies.usage_mismatch)?;
        let differ = "the tokens marked in the stream do not add up to the usage";
        let remedy = "totals follow the usage and gaps follow the stream; compare with runs of the \
                      same server only";
        Some(note(format!("on {requests} answers {differ}"), remedy))
    }),
    rule("token-source", CheckKind::TokenCounts, |run| {
        let requests = positive(run.measured.tokens.output_source.events)?;
        let text = format!("tokens of {requests} answers are counted as events, one for each");
        let remedy = "let the server report usage; an event may carry more or less than one token";
        Some(note(text, remedy))
    }),
    rule("data-after-done", CheckKind::Stream, |run| {
        let streams = positive(run.measured.anomalies.data_after_done)?;
        let remedy = "mend the server; what came after was ignored";
        Some(note(format!("{streams} streams went on after [DONE]"), remedy))
    }),
    rule("missing-done", CheckKind::Stream, |run| {
        // A server that never sends `[DONE]` does so by design; one that sometimes does lost some.
        let seen = positive(run.measured.anomalies.done_seen)?;
        let missing = positive(run.measured.anomalies.done_missing)?;
        let text = format!("{missing} of {} whole streams ended without [DONE]", seen + missing);
        Some(note(text, "look for a proxy that cuts streams, or for two servers"))
    }),
    rule("server-restarted", CheckKind::ServerRestart, |run| {
        let restarts = positive(run.measured.server.as_ref().ok()?.restarts)?;
        let times = if restarts == 1 { String::new() } else { format!(" {restarts} times") };
        let text = format!("the server was restarted{times} during the run, by its own metrics");
        let remedy =
            "find out why it ended (its log, the memory of its machine), and measure again";
        Some(invalid(text, remedy))
    }),
    rule("server-replicas", CheckKind::ServerRestart, |run| {
        let text = format!(
            "{} servers answered for their metrics by turns: their counters are not known, and each \
             gauge is of one of them",
            run.measured.server.as_ref().ok()?.replicas?
        );
        let remedy = "point --metrics-path at the metrics of one replica, or leave them alone with \
                      --telemetry off";
        Some(note(text, remedy))
    }),
    rule("server-tokens-more", CheckKind::ServerAlone, |run| {
        let (tokens, share) = server_tokens_apart(run).filter(|(_, share)| 0.0 < *share)?;
        let more = format!("{} more {tokens}", percent(share));
        let text = format!("the server counted {more} than the requests of this run have");
        let remedy =
            "other clients may have used the server meanwhile: measure when nobody else does";
        Some(Raised::new(degraded_above(FOREIGN_SHARE_GRAVE, share), text, remedy))
    }),
    rule("server-tokens-fewer", CheckKind::ServerAlone, |run| {
        let (tokens, share) = server_tokens_apart(run).filter(|(_, share)| *share <= 0.0)?;
        let fewer = format!("{} fewer {tokens}", percent(-share));
        let text = format!("the server counted {fewer} than the requests of this run have");
        let remedy = "its metrics may be those of one of several replicas, or of another server: \
                      point --metrics-path or the URL at the one that answers";
        Some(note(text, remedy))
    }),
    rule("gpus-idle", CheckKind::GpuSpeed, |run| {
        let gpus = run.measured.machines.gpus.as_ref()?;
        let read = match gpus.devices.iter().filter(|device| !device.foreign).count() {
            0 => return None,
            1 => "the GPU that was read".to_owned(),
            several => format!("the {several} GPUs that were read"),
        };
        let text = format!("{read} did nothing during the run: the server does not use them");
        let remedy = "say where the server's GPUs are read from (--gpu-telemetry), if it has any";
        (!gpus.devices.iter().any(DeviceFigures::counts)).then(|| note(text, remedy))
    }),
    rule("gpu-throttled", CheckKind::GpuSpeed, |run| {
        let remedy = "look after the power supply and the health of the board (nvidia-smi -q, \
                      or its kin), and measure again";
        let (share, text) =
            throttled(run, |device| device.throttled_hardware, "a brake of the board")?;
        Some(Raised::new(degraded_above(THROTTLED_SHARE, share), text, remedy))
    }),
    rule("gpu-throttled", CheckKind::GpuSpeed, |run| {
        let (share, text) = throttled(run, |device| device.throttled_thermal, "its temperature")?;
        Some(Raised::new(degraded_above(THROTTLED_SHARE, share), text, COOLING))
    }),
    rule("gpu-power-limit", CheckKind::GpuSpeed, |run| {
        // Many GPUs are meant to run at their power limit under full load.
        let (_, text) = throttled(run, |device| device.throttled_power, "its power limit")?;
        let remedy = "none needed if the limit is meant; otherwise raise it (nvidia-smi -pl, or \
                      its kin), and compare only runs with the same limit";
        Some(note(text, remedy))
    }),
    rule("gpu-hot", CheckKind::GpuSpeed, |run| {
        let limit = match run.measured.machines.gpus.as_ref()?.source {
            DeviceSource::AmdSmi | DeviceSource::RocmSmi => HOT_JUNCTION_C,
            DeviceSource::Nvml | DeviceSource::NvidiaSmi | DeviceSource::Dcgm => HOT_C,
        };
        let (gpu, celsius) = worst_gpu(run, |device| Some(device.temperature_c?.max))?;
        let text = format!("GPU {gpu} was {celsius:.0} °C hot (noted from {limit} °C on)");
        (limit <= celsius).then(|| note(text, COOLING))
    }),
    rule("gpu-memory-full", CheckKind::GpuSpeed, |run| {
        let (gpu, share) = worst_gpu(run, |device| {
            let total = positive(device.memory_total_bytes?)? as f64;
            Some(device.memory_used_bytes?.max / total)
        })?;
        let text = format!("{} of the memory of GPU {gpu} was in use", percent(share));
        let remedy = "give the server less of the memory, or a shorter context, if it preempts \
                      requests or runs out of memory";
        (MEMORY_FULL_SHARE <= share).then(|| note(text, remedy))
    }),
    rule("gpu-newcomers", CheckKind::GpuAlone, |run| {
        let came = match used_gpus(run).map(|device| device.newcomers).sum::<u64>() {
            0 => return None,
            1 => "a process came".to_owned(),
            several => format!("{several} processes came"),
        };
        let remedy = "measure when nobody else uses the GPUs; if they are workers of the server, \
                      warm it up first (--warm-up)";
        Some(degraded(format!("{came} to the server's GPUs while the run went on"), remedy))
    }),
    rule("client-cpu-full", CheckKind::ClientMachine, |run| {
        let share = run.client_machine()?.cpu_share?.mean;
        let busy = percent(share);
        let text =
            format!("the processors of the client's machine were busy for {busy} of the run");
        let remedy = "give the client a machine of its own, or cores that the server does not use";
        (CPU_FULL_SHARE < share).then(|| degraded(text, remedy))
    }),
    rule("client-memory-low", CheckKind::ClientMachine, |run| {
        let bytes = run.client_machine()?.memory_available_bytes_min?;
        let (left, least) = (bytes >> 20, MEMORY_LOW_BYTES >> 20);
        let text =
            format!("the client's machine had {left} MiB of memory left (needs {least} MiB)");
        let remedy = "end what else uses the client's memory, or measure from a machine with more";
        (bytes < MEMORY_LOW_BYTES).then(|| degraded(text, remedy))
    }),
];

const MORE_CORES_OR_RATE: &str =
    "give the client more cores or a machine of its own, or lower the rate";
const MORE_CORES_OR_LOAD: &str =
    "give the client more cores or a machine of its own, or lower the load";
const COOLING: &str = "look after the cooling of the machine, let it cool down between runs \
                       (--cool-down), and measure again";

impl Bounds {
    /// A value above the first bound, and how severe it is.
    fn exceeded(self, value: Option<f64>) -> Option<(f64, Severity)> {
        let value = value.filter(|value| self.degraded < *value)?;
        Some((value, if self.invalid < value { Severity::Invalid } else { Severity::Degraded }))
    }
}

/// A count that is not zero.
fn positive(count: u64) -> Option<u64> {
    Some(count).filter(|count| 0 < *count)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn degraded_above(limit: f64, share: f64) -> Severity {
    if limit < share { Severity::Degraded } else { Severity::Note }
}

pub(super) fn cancelled(run: &RunContext<'_>) -> u64 {
    let records = run.observations.records.iter();
    records.filter(|record| record.ending.outcome == Outcome::Cancelled).count() as u64
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
        | Source::Saved { .. } => None,
    }
}

/// Share of the input from the prefix cache: by each answer's usage, else by the server's counters.
pub(crate) fn cached_share(measured: &Measured) -> Option<f64> {
    let by_counters = || measured.server.as_ref().ok()?.own_hit_share();
    measured.audit.cache.share.or_else(by_counters)
}

/// The share of the input that the server's chat template may be: every prompt begins with it, so
/// finding it in the cache says nothing about the prompts.
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

/// The larger difference between the server's and the client's token totals, as a signed share.
fn server_tokens_apart(run: &RunContext<'_>) -> Option<(&'static str, f64)> {
    let apart = run.measured.server.as_ref().ok()?.tokens_apart;
    [("generated tokens", apart.generation), ("prompt tokens", apart.prompt)]
        .into_iter()
        .filter_map(|(tokens, share)| Some((tokens, share?)))
        .filter(|(_, share)| TOKENS_APART < share.abs())
        .reduce(|a, b| if a.1.abs() < b.1.abs() { b } else { a })
}

fn used_gpus<'a>(run: &'a RunContext<'_>) -> impl Iterator<Item = &'a DeviceFigures> {
    let gpus: Option<&GpuFigures> = run.measured.machines.gpus.as_ref();
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
    Some((share, format!("GPU {gpu} was held back by {cause} in {shown} of the looks at it")))
}

#[cfg(test)]
mod tests;
