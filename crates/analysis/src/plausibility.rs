//! Whether published results can be true: rules over their figures alone, without the server.
//!
//! A `Rule` is one entry of `RULES`, with its texts in `plausibility/rules.md`. It looks at the
//! [`Published`] results of one source and returns its [`Evidence`]. Whoever wrote a result is not asked
//! for anything, so a rule says nothing about figures that are missing.

use std::collections::BTreeMap;

use inferometer_model::fmt::{compact, count, counted, number, percent};
use inferometer_model::study::Level;
use serde::Serialize;

use crate::judge::Severity;
use crate::metric::Statistic;
use crate::statistics::Percentile;
use crate::tool_result::{LatencyKind, Mark, ResultLatency, ToolResult, extra};

/// The results of one source, and what it says beside them.
pub struct Published<'a> {
    pub results: &'a [ToolResult],
    pub claims: &'a [Claim],
    /// What the hardware of a result could do at most, where both it and the model are known.
    pub roofline: &'a dyn Fn(&ToolResult) -> Option<Roofline>,
}

impl std::fmt::Debug for Published<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Published").field("results", &self.results.len()).finish_non_exhaustive()
    }
}

/// A statement in the text around the figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// Counted from one.
    pub line: u32,
    pub text: String,
    pub kind: ClaimKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimKind {
    /// A time that is said to be below this.
    BelowMs(f64),
    /// Every request sends the same prompt.
    SamePrompt,
}

/// What a group of GPUs could do at most, by their data sheet.
#[derive(Clone, Debug, PartialEq)]
pub struct Roofline {
    /// Such as `4 × AMD Instinct MI100 and 24 B parameters`.
    pub name: String,
    /// Tokens per second at the peak of the matrix units.
    pub tokens_per_s: f64,
    /// Time in which the weights of one token are read once.
    pub step_ms: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RuleKind {
    Arithmetic,
    Physics,
    Cache,
    Completeness,
    Statistics,
    Claim,
}

/// What a rule found in one source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    pub key: &'static str,
    pub kind: RuleKind,
    /// That of its gravest evidence.
    pub severity: Severity,
    pub title: &'static str,
    pub evidence: Vec<Evidence>,
    /// What would show whether the suspicion is right.
    pub settled_by: &'static str,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    pub severity: Severity,
    /// The result that it is about, or the line of the text.
    pub about: String,
    pub text: String,
}

struct Rule {
    key: &'static str,
    kind: RuleKind,
    find: fn(&Published<'_>, &[Row<'_>]) -> Vec<Evidence>,
}

const fn rule(
    key: &'static str,
    kind: RuleKind,
    find: fn(&Published<'_>, &[Row<'_>]) -> Vec<Evidence>,
) -> Rule {
    Rule { key, kind, find }
}

static RULES: [Rule; 15] = [
    rule("lost-requests", RuleKind::Completeness, |_, rows| each(rows, lost_requests)),
    rule("cut", RuleKind::Completeness, |_, rows| each(rows, cut)),
    rule("rate-not-reached", RuleKind::Completeness, |_, rows| each(rows, rate_not_reached)),
    rule("level-not-filled", RuleKind::Completeness, |_, rows| each(rows, level_not_filled)),
    rule("prefill-peak", RuleKind::Physics, prefill_peak),
    rule("decode-peak", RuleKind::Physics, decode_peak),
    rule("warm-cache", RuleKind::Cache, warm_cache),
    rule("same-prompt", RuleKind::Cache, same_prompt),
    rule("claim", RuleKind::Claim, contradicted_claims),
    rule("in-flight", RuleKind::Arithmetic, |_, rows| each(rows, in_flight)),
    rule("rates", RuleKind::Arithmetic, |_, rows| rows.iter().flat_map(rates).collect()),
    rule("latency-sum", RuleKind::Arithmetic, |_, rows| each(rows, latency_sum)),
    rule("order", RuleKind::Arithmetic, |_, rows| rows.iter().flat_map(order).collect()),
    rule("few-samples", RuleKind::Statistics, |_, rows| each(rows, few_samples)),
    rule("no-spread", RuleKind::Statistics, no_spread),
];

/// What is wrong or doubtful, the gravest first.
pub fn examine(published: &Published<'_>) -> Vec<Finding> {
    let rows: Vec<Row<'_>> = published.results.iter().map(Row::new).collect();
    let mut findings: Vec<Finding> = Vec::new();
    for rule in &RULES {
        let evidence = (rule.find)(published, &rows);
        let Some(severity) = evidence.iter().map(|it| it.severity).max() else { continue };
        let (title, settled_by) = texts(rule.key);
        let (key, kind) = (rule.key, rule.kind);
        findings.push(Finding { key, kind, severity, title, evidence, settled_by });
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// The title of a rule and what settles its question.
fn texts(key: &str) -> (&'static str, &'static str) {
    let mut sections = include_str!("plausibility/rules.md").split("## ");
    let section = sections.find_map(|it| it.strip_prefix(key)?.strip_prefix('\n'));
    let (title, settled_by) = section.and_then(|it| it.split_once('\n')).unwrap_or_default();
    (title, settled_by.trim())
}

/// A result with the figures that rules use.
struct Row<'a> {
    result: &'a ToolResult,
    name: String,
    /// Tokens of one prompt and of one answer, on average.
    input: Option<f64>,
    output: Option<f64>,
    ttft_ms: Option<f64>,
    tpot_ms: Option<f64>,
    e2e_ms: Option<f64>,
    concurrency: Option<f64>,
    /// Requests that the figures describe.
    n: Option<f64>,
}

impl<'a> Row<'a> {
    fn new(result: &'a ToolResult) -> Self {
        let further = |key: &str| result.further.get(key).copied();
        let completed = result.completed.filter(|n| 0 < *n).map(|n| n as f64);
        let each = |total: Option<u64>| Some(total? as f64 / completed?);
        let mean = |kind| result.latency(kind).and_then(|latency| latency.mean_ms);
        let level = result.level();
        let concurrency = match level {
            Level::Concurrency(slots) => Some(f64::from(slots.get())),
            Level::Rate(_) | Level::Unlimited | Level::AsAsked => None,
        };
        let mut name = vec![result.configuration.clone(), result.source.name.clone()];
        name.push(
            Some(level)
                .filter(|it| *it != Level::AsAsked)
                .map_or_else(String::new, |it| it.to_string()),
        );
        name.dedup();
        name.retain(|part| !part.is_empty());
        Self {
            result,
            name: name.join(", "),
            input: further(extra::INPUT_LENGTH).or_else(|| each(result.input_tokens)),
            output: further(extra::OUTPUT_LENGTH).or_else(|| each(result.output_tokens)),
            ttft_ms: mean(LatencyKind::Ttft),
            tpot_ms: mean(LatencyKind::Tpot),
            e2e_ms: mean(LatencyKind::E2e),
            concurrency,
            n: completed.or_else(|| {
                let left = result.requests_planned?.checked_sub(result.failed.unwrap_or(0))?;
                Some(left as f64)
            }),
        }
    }

    fn evidence(&self, severity: Severity, text: String) -> Evidence {
        Evidence { severity, about: self.name.clone(), text }
    }

    /// The mean time of a request, as published or from its parts.
    fn duration_ms(&self) -> Option<f64> {
        self.e2e_ms.or_else(|| self.sum_ms())
    }

    fn sum_ms(&self) -> Option<f64> {
        Some(self.ttft_ms? + self.tpot_ms? * (self.output? - 1.0).max(0.0))
    }

    fn requests_per_s(&self) -> Option<f64> {
        let stated = self.result.request_throughput;
        let by_count = || Some(self.result.completed? as f64 / positive(self.result.duration_s)?);
        let by_tokens = || Some(self.result.output_throughput? / positive(self.output)?);
        stated.or_else(by_count).or_else(by_tokens)
    }

    /// Prompt tokens per second up to the first token, of one prompt or of all that began together.
    fn prefill_per_s(&self) -> Option<(f64, bool)> {
        let one = self.input? / positive(self.ttft_ms)? * 1e3;
        // When all prompts begin at once, half of them are done in the mean time to the first token.
        let together = self.n.filter(|n| self.concurrency.is_some_and(|slots| *n <= slots));
        let all = together.map_or(0.0, |n| one * n / 2.0);
        Some(if one < all { (all, true) } else { (one, false) })
    }
}

fn positive(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite() && 0.0 < *value)
}

fn each(rows: &[Row<'_>], find: fn(&Row<'_>) -> Option<Evidence>) -> Vec<Evidence> {
    rows.iter().filter_map(find).collect()
}

/// By how much a value is off another, as a share of it.
fn apart(value: f64, from: f64) -> f64 {
    (value - from).abs() / from.abs().max(f64::MIN_POSITIVE)
}

const GRAVE_LOSS: f64 = 0.2;
const SMALL_LOSS: f64 = 0.01;

fn severity_of_loss(share: f64) -> Severity {
    match share {
        GRAVE_LOSS.. => Severity::Invalid,
        SMALL_LOSS.. => Severity::Degraded,
        _ => Severity::Note,
    }
}

fn lost_requests(row: &Row<'_>) -> Option<Evidence> {
    let failed = row.result.failed.filter(|failed| 0 < *failed)?;
    let ended = row.result.completed.map(|done| done.saturating_add(failed));
    let Some(all) = row.result.requests_planned.or(ended).filter(|all| failed <= *all) else {
        let text = format!("{} failed, of how many is not stated", counted(failed, "request"));
        return Some(row.evidence(Severity::Degraded, text));
    };
    let share = failed as f64 / all as f64;
    let text = format!(
        "{} of {} failed ({}): the figures describe those that survived",
        count(failed),
        counted(all, "request"),
        percent(share)
    );
    Some(row.evidence(severity_of_loss(share), text))
}

fn cut(row: &Row<'_>) -> Option<Evidence> {
    let is_cut = |mark: &Mark| matches!(mark, Mark::Cut { .. });
    let Mark::Cut { completed, planned } = *Mark::found(row.result).iter().find(|it| is_cut(it))?
    else {
        return None;
    };
    let share = 1.0 - (completed + row.result.failed.unwrap_or(0)) as f64 / planned as f64;
    let text = format!(
        "{} of {} completed; the others are not accounted for, and those that were quick are left",
        count(completed),
        counted(planned, "request")
    );
    Some(row.evidence(severity_of_loss(share), text))
}

fn rate_not_reached(row: &Row<'_>) -> Option<Evidence> {
    let marks = Mark::found(row.result);
    let Some(Mark::Saturated { asked_per_s, served_per_s }) =
        marks.iter().find(|mark| matches!(mark, Mark::Saturated { .. }))
    else {
        return None;
    };
    let text = format!(
        "{} requests/s were asked for and {} were served: the queue grew until the end, so latencies \
         depend on the length of the run",
        number(*asked_per_s),
        number(*served_per_s)
    );
    Some(row.evidence(Severity::Degraded, text))
}

fn level_not_filled(row: &Row<'_>) -> Option<Evidence> {
    let (slots, n) = (row.concurrency?, row.n?);
    let text = || {
        let all = counted(inferometer_model::whole::to_u64(n), "request");
        format!("{all} cannot hold a concurrency of {}", compact(slots))
    };
    (n < slots).then(|| row.evidence(Severity::Degraded, text()))
}

fn prefill_peak(published: &Published<'_>, rows: &[Row<'_>]) -> Vec<Evidence> {
    let find = |row: &Row<'_>| {
        let roofline = (published.roofline)(row.result)?;
        let (found, together) = row.prefill_per_s()?;
        let peak = roofline.tokens_per_s;
        let what = if together { "all prompts, which began together," } else { "one prompt" };
        let text = format!(
            "the TTFT of {} means {} prompt tokens/s of {what} and {} can compute {} at its peak",
            ms(row.ttft_ms?),
            number(found),
            roofline.name,
            number(peak)
        );
        (peak < found).then(|| row.evidence(Severity::Invalid, text))
    };
    rows.iter().filter_map(find).collect()
}

fn decode_peak(published: &Published<'_>, rows: &[Row<'_>]) -> Vec<Evidence> {
    let find = |row: &Row<'_>| {
        let roofline = (published.roofline)(row.result)?;
        if let Some(tpot_ms) = positive(row.tpot_ms).filter(|tpot_ms| *tpot_ms < roofline.step_ms) {
            let text = format!(
                "a TPOT of {} is below the {} in which {} can read the weights once",
                ms(tpot_ms),
                ms(roofline.step_ms),
                roofline.name
            );
            return Some(row.evidence(Severity::Invalid, text));
        }
        let found = row.result.output_throughput?;
        let by_bandwidth = row.concurrency.map(|slots| slots * 1e3 / roofline.step_ms);
        let peak = by_bandwidth.map_or(roofline.tokens_per_s, |it| it.min(roofline.tokens_per_s));
        let text = || {
            let (found, peak) = (number(found), number(peak));
            format!(
                "{found} output tokens/s are more than the {peak} that {} can give",
                roofline.name
            )
        };
        (peak < found).then(|| row.evidence(Severity::Invalid, text()))
    };
    rows.iter().filter_map(find).collect()
}

/// A prompt that reaches its first token so many times as fast as a longer one under less load.
const WARM: f64 = 2.0;
const WARM_GRAVE: f64 = 3.0;
/// Below it fixed times outweigh those of the tokens.
const PROMPT_TOKENS_MIN: f64 = 64.0;

/// Longer prompts are more efficient, and more load only slows a prompt down. A prompt that is faster per
/// token than a longer one at a lower concurrency was not computed.
fn warm_cache(_: &Published<'_>, rows: &[Row<'_>]) -> Vec<Evidence> {
    let mut order: Vec<&Row<'_>> = rows.iter().filter(|row| row.concurrency.is_some()).collect();
    order.sort_by(|a, b| {
        a.concurrency.partial_cmp(&b.concurrency).unwrap_or(std::cmp::Ordering::Equal)
    });
    let mut cold: Vec<(&Row<'_>, f64)> = Vec::new();
    let mut found = Vec::new();
    for row in order {
        let (Some((speed, _)), Some(input)) = (row.prefill_per_s(), row.input) else { continue };
        let is_slower_server = |other: &Row<'_>| {
            other.result.configuration == row.result.configuration
                && other.result.model == row.result.model
                && other.input.is_some_and(|longer| input <= longer)
        };
        let best = cold.iter().filter(|(other, _)| is_slower_server(other));
        let best = best.max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((other, cold_speed)) =
            best.filter(|(_, known)| WARM * known < speed && PROMPT_TOKENS_MIN <= input)
        else {
            cold.push((row, row.input.unwrap_or(0.0) / row.ttft_ms.unwrap_or(f64::MAX) * 1e3));
            continue;
        };
        let times = speed / cold_speed;
        let severity = if WARM_GRAVE <= times { Severity::Invalid } else { Severity::Degraded };
        let mut text = format!(
            "{} prompt tokens/s up to the first token, {} times the {} of longer prompts under less load \
             ({})",
            number(speed),
            number(times),
            number(*cold_speed),
            other.name
        );
        let median = row.result.latency(LatencyKind::Ttft).and_then(ResultLatency::median_ms);
        if let (Some(mean), Some(median)) = (row.ttft_ms, positive(median))
            && WARM * median < mean
        {
            let (mean, median) = (ms(mean), ms(median));
            text = format!(
                "{text}; a mean TTFT of {mean} over a median of {median} mixes cold and warm prompts"
            );
        }
        found.push(row.evidence(severity, text));
    }
    found
}

fn same_prompt(published: &Published<'_>, _: &[Row<'_>]) -> Vec<Evidence> {
    let same = published.claims.iter().filter(|claim| claim.kind == ClaimKind::SamePrompt);
    let text =
        |claim: &Claim| format!("“{}”: a prefix cache answers all but the first", claim.text);
    same.map(|claim| quoted(claim, Severity::Degraded, text(claim))).collect()
}

fn quoted(claim: &Claim, severity: Severity, text: String) -> Evidence {
    Evidence { severity, about: format!("line {}", claim.line), text }
}

/// A time that is said to be below every time that was published.
fn contradicted_claims(published: &Published<'_>, rows: &[Row<'_>]) -> Vec<Evidence> {
    let typical = |latency: &ResultLatency| positive(latency.median_ms().or(latency.mean_ms));
    let of_row = |row: &Row<'_>| {
        let times = row.result.latencies.iter().filter_map(typical);
        times.min_by(f64::total_cmp).map(|least| (least, row.name.clone()))
    };
    let known: Vec<(f64, String)> = rows.iter().filter_map(of_row).collect();
    let (Some(least), Some(first)) =
        (known.iter().min_by(|a, b| a.0.total_cmp(&b.0)), known.first())
    else {
        return Vec::new();
    };
    let find = |claim: &Claim| {
        let ClaimKind::BelowMs(bound) = claim.kind else { return None };
        let text = format!(
            "“{}”, but the typical time is {} at {} and nowhere below {} ({})",
            claim.text,
            ms(first.0),
            first.1,
            ms(least.0),
            least.1
        );
        (bound < least.0).then(|| quoted(claim, Severity::Invalid, text))
    };
    published.claims.iter().filter_map(find).collect()
}

/// Rounding, and requests that overlap the ends of a run.
const MORE_IN_FLIGHT: f64 = 1.1;
const LESS_IN_FLIGHT: f64 = 0.5;
/// The slowest 1 % are taken to be so many times as slow as the p99.
const TAIL: f64 = 10.0;

/// Little's law: throughput × latency is the number in flight.
fn in_flight(row: &Row<'_>) -> Option<Evidence> {
    let slots = row.concurrency?;
    let user = positive(row.result.further.get(extra::USER_THROUGHPUT).copied());
    let by_user =
        || Some((row.result.output_throughput? / user?, "throughput ÷ that of one request"));
    let by_mean =
        || Some((row.requests_per_s()? * row.duration_ms()? / 1e3, "throughput × latency"));
    let at_most = || {
        Some((row.requests_per_s()? * mean_at_most_ms(row)? / 1e3, "at most, throughput × latency"))
    };
    let is_bound = by_mean().is_none();
    let (found, by) = by_mean().or_else(at_most).or_else(by_user)?;
    // The last requests drain, and fewer requests than slots drain from the start.
    let n = row.n.unwrap_or(f64::INFINITY);
    let expected = if n < slots { n / 2.0 } else { slots * (1.0 - slots / (2.0 * n)) };
    let text = |what: &str| {
        format!(
            "{by} gives {} requests in flight on average, {what} {}",
            compact(found),
            compact(slots)
        )
    };
    if !is_bound && MORE_IN_FLIGHT * slots + 1.0 < found {
        Some(row.evidence(Severity::Invalid, text("above the limit of")))
    } else if found < LESS_IN_FLIGHT * expected {
        Some(row.evidence(Severity::Degraded, text("not the stated")))
    } else {
        None
    }
}

/// The largest mean that the published percentiles of whole requests allow.
fn mean_at_most_ms(row: &Row<'_>) -> Option<f64> {
    let latency = row.result.latency(LatencyKind::E2e)?;
    let [p50, p95, p99] = ["50", "95", "99"].map(|rank| latency.percentile_ms(rank));
    Some(0.5 * p50? + 0.45 * p95? + 0.04 * p99? + 0.01 * latency.max_ms.unwrap_or(TAIL * p99?))
}

const RATES_APART: f64 = 0.05;
/// Tools disagree about the ends of a run, by so many requests.
const REQUESTS_AT_THE_ENDS: f64 = 1.5;
const SUM_APART: f64 = 0.3;
const GRAVELY_APART: f64 = 0.5;

fn severity_apart(apart: f64) -> Severity {
    if GRAVELY_APART < apart { Severity::Invalid } else { Severity::Degraded }
}

/// Counts ÷ duration against the published rates.
fn rates(row: &Row<'_>) -> Vec<Evidence> {
    let result = row.result;
    let all = result.input_tokens.zip(result.output_tokens);
    let counts = [
        ("requests", result.completed, result.request_throughput),
        ("output tokens", result.output_tokens, result.output_throughput),
        ("tokens", all.and_then(|(i, o)| i.checked_add(o)), result.total_token_throughput),
    ];
    let find = |(what, total, stated): (&str, Option<u64>, Option<f64>)| {
        let (total, stated, duration) = (total?, positive(stated)?, positive(result.duration_s)?);
        let computed = total as f64 / duration;
        let text = || {
            format!(
                "{} {what} in {} s are {} per second, and {} are published",
                count(total),
                number(duration),
                number(computed),
                number(stated)
            )
        };
        let apart = apart(computed, stated);
        let allowed = RATES_APART.max(REQUESTS_AT_THE_ENDS / row.n.unwrap_or(f64::INFINITY));
        (allowed < apart).then(|| row.evidence(severity_apart(apart), text()))
    };
    counts.into_iter().filter_map(find).collect()
}

/// E2E against TTFT and the tokens behind it.
fn latency_sum(row: &Row<'_>) -> Option<Evidence> {
    let (stated, sum) = (positive(row.e2e_ms)?, row.sum_ms()?);
    let apart = apart(sum, stated);
    let text = || {
        format!(
            "TTFT {} and {} tokens of {} each are {}, and the E2E latency is {}",
            ms(row.ttft_ms.unwrap_or(0.0)),
            compact(row.output),
            ms(row.tpot_ms.unwrap_or(0.0)),
            ms(sum),
            ms(stated)
        )
    };
    (SUM_APART < apart).then(|| row.evidence(severity_apart(apart), text()))
}

/// Minimum, percentiles and maximum rise, and the mean lies between the ends.
fn order(row: &Row<'_>) -> Vec<Evidence> {
    let find = |latency: &ResultLatency| {
        let mut ranked: Vec<(f64, f64)> = latency
            .percentiles_ms
            .iter()
            .filter_map(|(rank, value)| Some((rank.parse().ok()?, *value)))
            .chain(latency.min_ms.map(|least| (0.0, least)))
            .chain(latency.max_ms.map(|most| (100.0, most)))
            .collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        let falls = ranked.windows(2).find(|pair| pair[1].1 < pair[0].1 * (1.0 - 1e-6))?;
        let text = format!(
            "{} at rank {} is {} and at rank {} it is {}",
            latency.kind.name(),
            compact(falls[0].0),
            ms(falls[0].1),
            compact(falls[1].0),
            ms(falls[1].1)
        );
        Some(row.evidence(Severity::Invalid, text))
    };
    row.result.latencies.iter().filter_map(find).collect()
}

fn few_samples(row: &Row<'_>) -> Option<Evidence> {
    let mut gravest: Option<(Severity, String)> = None;
    for latency in &row.result.latencies {
        for percentile in &Percentile::ALL[1..] {
            let Some(found) = row.result.statistic_of(latency, Statistic::Percentile(*percentile))
            else {
                continue;
            };
            let known = Some(found.n as f64).filter(|n| 0.0 < *n).or(row.n);
            let Some(n) = known.map(inferometer_model::whole::to_u64) else { continue };
            let severity = match n {
                n if n < percentile.fewest() => Severity::Degraded,
                n if n < percentile.certified_from() => Severity::Note,
                _ => continue,
            };
            if gravest.as_ref().is_none_or(|(known, _)| *known < severity) {
                let (kind, name) = (latency.kind.name(), percentile.name());
                let so_many = counted(n, "value");
                let from = count(percentile.certified_from());
                gravest = Some((
                    severity,
                    match severity {
                        Severity::Note => {
                            format!("{kind} {name} of {so_many}: {from} would certify it")
                        }
                        Severity::Degraded | Severity::Invalid => format!(
                            "{kind} {name} of {so_many} is no more than the largest of them"
                        ),
                    },
                ));
            }
        }
    }
    gravest.map(|(severity, text)| row.evidence(severity, text))
}

/// The best two rows of a configuration that are so near may change places when they are repeated.
const NEAR: f64 = 0.05;
const COMPARED_MIN: usize = 3;

fn no_spread(_: &Published<'_>, rows: &[Row<'_>]) -> Vec<Evidence> {
    let mut groups: BTreeMap<&str, Vec<(f64, &Row<'_>)>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.result.intervals.is_empty()) {
        if let Some(found) = positive(row.result.output_throughput) {
            groups.entry(&row.result.configuration).or_default().push((found, row));
        }
    }
    let find = |group: &mut Vec<(f64, &Row<'_>)>| {
        group.sort_by(|a, b| b.0.total_cmp(&a.0));
        let [(best, first), (next, second), ..] = group.as_slice() else { return None };
        let is_near = COMPARED_MIN <= group.len() && apart(*next, *best) < NEAR;
        let text = || {
            format!(
                "{} tokens/s are the highest and {} more than those of {}; each was measured once",
                number(*best),
                percent(apart(*best, *next)),
                second.name
            )
        };
        is_near.then(|| first.evidence(Severity::Note, text()))
    };
    groups.values_mut().filter_map(find).collect()
}

fn ms(value: f64) -> String {
    format!("{} ms", number(value))
}

#[cfg(test)]
mod tests;
