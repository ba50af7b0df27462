//! A whole run as `vllm bench serve` would have told it: with the percentiles and the goodput that
//! it was asked for, and a row for each request.

use inferometer_model::endpoint::Api;
use inferometer_model::{Observations, Outcome, RequestRecord};

use super::Seen;
use super::goodput::Answer;
use crate::arrivals::Output;
use crate::ruler::Ruler;
use crate::sample::{Probability, Sample};
use crate::sheet::{CountsFrom, Grain, LatencyKind, Sheet, SheetLatency, SheetRequest};
use crate::summary::{Summary, summarize};
use crate::tokens::{InputTokens, OutputTokens};

/// What that tool takes with `--metric-percentiles`, `--goodput` and `--save-detailed`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VllmAsked {
    /// As written, in any order. One that is no [`Rank`] is passed over: whoever reads arguments
    /// refuses it.
    pub percentiles: Vec<String>,
    /// The most milliseconds that a good request takes; of a kind that stands twice, the last. That
    /// tool has none of ITL, and with one there is no goodput. Where it is empty, the run's own
    /// promises of each request are what counts.
    pub goodput: Vec<(LatencyKind, f64)>,
    pub detail: bool,
}

/// A percentile by its rank, named as that tool names it: `99` for `99.0`, and `99.9`.
#[derive(Clone, Debug, PartialEq)]
pub struct Rank {
    pub name: String,
    pub probability: Probability,
}

impl Rank {
    /// `None` of what is no number from 0 to 100.
    pub fn parse(written: &str) -> Option<Self> {
        let rank: f64 = written.trim().parse().ok()?;
        let probability = Probability::new(rank / 100.0)?;
        // A whole number is written without its point; minus zero is zero.
        Some(Self { name: (rank + 0.0).to_string(), probability })
    }
}

impl Sheet {
    /// By the definitions of `vllm bench serve`, with all that it can be asked for.
    pub fn of_vllm_run(observations: &Observations, asked: &VllmAsked) -> Self {
        Self::of_vllm_summed(&summarize(observations), observations, asked)
    }

    /// The same, where the run's summary is at hand: making it is most of the work.
    pub fn of_vllm_summed(
        summary: &Summary,
        observations: &Observations,
        asked: &VllmAsked,
    ) -> Self {
        let ranks: Vec<Rank> =
            asked.percentiles.iter().filter_map(|written| Rank::parse(written)).collect();
        let mut sheet = Self::of_vllm(summary);
        let mut reading = Reading::new(observations);
        let rows = observations.records.iter().map(|record| reading.row(record));
        if asked.detail {
            sheet.requests = Some(rows.collect());
        } else {
            rows.for_each(drop);
        }
        // Else it is that of the run's own promises.
        if !asked.goodput.is_empty() {
            sheet.request_goodput = sheet.duration_s.and_then(|s| reading.good(&asked.goodput, s));
        }
        sheet.latencies = reading.latencies(&ranks);
        sheet
    }
}

/// That tool's word for the API; ours where it has none.
pub(crate) fn backend(api: Api) -> &'static str {
    api.facts().vllm_backend.unwrap_or(api.name())
}

/// What grows while the records are read.
struct Reading {
    api: Api,
    generates: bool,
    ruler: Ruler,
    output: Output,
    answers: Vec<Answer>,
    ttft: Vec<f64>,
    tpot: Vec<f64>,
    itl: Vec<f64>,
    e2el: Vec<f64>,
}

impl Reading {
    fn new(observations: &Observations) -> Self {
        let mapping = observations.ending.client.mapping;
        Self {
            api: observations.manifest.spec.api,
            generates: observations.manifest.spec.api.generates(),
            ruler: Ruler::new(mapping.map_or(0, |mapping| mapping.error_ns_max)),
            output: Output::default(),
            answers: Vec::new(),
            ttft: Vec::new(),
            tpot: Vec::new(),
            itl: Vec::new(),
            e2el: Vec::new(),
        }
    }

    fn row(&mut self, record: &RequestRecord) -> SheetRequest {
        let is_ok = record.ending.outcome == Outcome::Ok;
        let mut row = SheetRequest {
            queued_s: self.ruler.ms(record.intended, record.admitted).map(|ms| ms / 1e3),
            input_tokens: Some(InputTokens::of(record).count),
            output_tokens: is_ok.then(|| self.output_tokens(record)),
            error: Some(if is_ok { String::new() } else { error(record) }),
            ..SheetRequest::default()
        };
        let (mut before, mut gaps_ms) = (None, Vec::with_capacity(record.events.len()));
        let ruler = &mut self.ruler;
        let seen = Seen::of(self.api, record, |at| {
            gaps_ms.extend(before.and_then(|before| ruler.ms(before, at)));
            before = Some(at);
        });
        let Some(Seen { start, first, end }) = seen else { return row };
        let ttft_ms = first.and_then(|first| ruler.ms(start, first));
        let e2el_ms = end.filter(|_| first.is_some()).and_then(|end| ruler.ms(start, end));
        if let Some(output_tokens) = row.output_tokens {
            self.itl.extend(&gaps_ms);
            self.answer(ttft_ms, e2el_ms, output_tokens);
        }
        row.start_s = Some(start.as_nanos() as f64 / 1e9);
        row.ttft_s = ttft_ms.map(|ms| ms / 1e3);
        row.e2e_s = e2el_ms.filter(|_| is_ok).map(|ms| ms / 1e3);
        row.gaps_s = gaps_ms.into_iter().map(|ms| ms / 1e3).collect();
        row
    }

    fn output_tokens(&mut self, record: &RequestRecord) -> u64 {
        if !self.generates {
            return 0;
        }
        // Disorder is counted where our own metrics are made.
        self.output.read(record, &mut Ruler::new(0));
        OutputTokens::of(record, &self.output).count
    }

    fn answer(&mut self, ttft_ms: Option<f64>, e2el_ms: Option<f64>, output_tokens: u64) {
        self.ttft.extend(ttft_ms);
        self.e2el.extend(e2el_ms);
        let (Some(ttft_ms), Some(e2el_ms)) = (ttft_ms, e2el_ms) else { return };
        let tpot_ms = (1 < output_tokens).then(|| (e2el_ms - ttft_ms) / (output_tokens - 1) as f64);
        self.tpot.extend(tpot_ms);
        self.answers.push(Answer { ttft: ttft_ms, tpot: tpot_ms.unwrap_or(0.0), e2el: e2el_ms });
    }

    /// Good requests per second; `None` where that tool has no such limit.
    fn good(&self, goodput: &[(LatencyKind, f64)], duration_s: f64) -> Option<f64> {
        let most = |kind| goodput.iter().rev().find(|(named, _)| *named == kind).map(|(_, ms)| *ms);
        if most(LatencyKind::Itl).is_some() {
            return None;
        }
        let (ttft, tpot, e2el) =
            (most(LatencyKind::Ttft), most(LatencyKind::Tpot), most(LatencyKind::E2e));
        let is_within = |ms: f64, most: Option<f64>| most.is_none_or(|most| ms <= most);
        let good = self.answers.iter().filter(|answer| {
            is_within(answer.ttft, ttft)
                && is_within(answer.tpot, tpot)
                && is_within(answer.e2el, e2el)
        });
        Some(good.count() as f64 / duration_s)
    }

    fn latencies(self, ranks: &[Rank]) -> Vec<SheetLatency> {
        let of = |values, kind, from, grain| {
            Some(latency(&Sample::new(values)?, ranks, SheetLatency::new(kind, from, grain)))
        };
        [
            of(self.ttft, LatencyKind::Ttft, CountsFrom::Send, Grain::Request),
            of(self.tpot, LatencyKind::Tpot, CountsFrom::Output, Grain::Request),
            of(self.itl, LatencyKind::Itl, CountsFrom::Output, Grain::Chunk),
            of(self.e2el, LatencyKind::E2e, CountsFrom::Send, Grain::Request),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// The median is always told, asked for or not.
fn latency(sample: &Sample, ranks: &[Rank], empty: SheetLatency) -> SheetLatency {
    let median = Rank::parse("50");
    let asked = median.iter().chain(ranks);
    SheetLatency {
        n: Some(sample.count()),
        mean_ms: Some(sample.mean()),
        std_ms: Some(sample.std_population()),
        min_ms: Some(sample.min()),
        max_ms: Some(sample.max()),
        percentiles_ms: asked
            .map(|rank| (rank.name.clone(), sample.quantile(rank.probability)))
            .collect(),
        has_p50: ranks.iter().any(|rank| rank.name == "50"),
        ..empty
    }
}

/// Why it failed: our word for it, the status where it says more, and the server's words.
fn error(record: &RequestRecord) -> String {
    let ending = &record.ending;
    let status = record.head.map(|head| head.status).filter(|status| *status != 200);
    let status = status.map(|status| format!(" {status}")).unwrap_or_default();
    let cause = ending.cause.map_or_else(|| ending.outcome.help(), |cause| cause.text());
    let detail = ending.message.as_deref().unwrap_or(cause);
    format!("{}{status}: {detail}", ending.outcome)
}

#[cfg(test)]
mod tests;
