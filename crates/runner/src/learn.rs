//! Learns the step-time law of a server from stored runs.
//!
//! The steps that [`reconstruct`] finds are observations: so many decodes with so much context, so many
//! prompt tokens, so many seconds. A prompt that met an idle server is one as well, with its TTFT. A
//! robust regression gives the law. What no step shows, how many prompt tokens a step may hold and
//! whether the server plans a step ahead, is chosen by playing the runs with each possibility.

use std::collections::BTreeMap;
use std::path::PathBuf;

use inferometer_analysis::detail::{self, RequestDetail};
use inferometer_analysis::statistics::student;
use inferometer_analysis::steps::{Confidence, Step, reconstruct};
use inferometer_engine::physics::Front;
use inferometer_engine::physics::law::{Seen, StepLaw, hats, segments};
use inferometer_engine::profile::Profile;
use inferometer_engine::scheduler::StepShape;
use inferometer_model::fmt::{decimals, percent};
use inferometer_model::spec::EngineTable;
use inferometer_model::whole::{to_u32, to_u64};
use inferometer_model::{Moment, Observations};
use inferometer_store::RunDirectory;

use crate::embedded::refusal;
use crate::failure::{Failure, Result};
use crate::fit::{Figures, Fit, Fitting, Row, play_rows, row_of_run};

/// What a law is learned from, and how the server is set as far as that is known.
#[derive(Debug)]
pub struct Learning {
    /// Folders of stored runs, at different loads.
    pub runs: Vec<PathBuf>,
    /// The settings of the server that are known.
    pub server: EngineTable,
    /// The name of the profile.
    pub name: String,
    /// Where the runs come from, in a sentence.
    pub source: String,
}

/// A learned law, with how well it predicts the runs.
#[derive(Debug)]
pub struct Learned {
    /// The runs as rows, and the profile with the law.
    pub fitting: Fitting,
    /// The figures of the rows as the law gives them, each also by a law that has not seen it.
    pub fit: Fit,
    /// What the reader of the profile needs to know, as sentences.
    pub notes: Vec<String>,
}

impl Learning {
    /// Learns the law and tests it on each run that it has not seen.
    pub fn learn(&self, report: impl Fn(&str)) -> Result<Learned> {
        let mut rows = Vec::new();
        let mut evidence = Vec::new();
        let mut notes = Vec::new();
        for path in &self.runs {
            let row = row_of_run(path)?;
            report(&format!("reconstructing the steps of {} …", row.name));
            let stored = RunDirectory::at(path.clone()).read().map_err(Failure::from_usage)?;
            match Evidence::from_run(&stored.observations) {
                Ok(found) => {
                    let doubts = found.doubt.iter().chain(&found.uneven);
                    notes.extend(doubts.map(|why| format!("{}: {why}", row.name)));
                    evidence.push(found);
                    rows.push(row);
                }
                Err(why) => notes.push(format!("{} is left out: {why}", row.name)),
            }
        }
        if rows.is_empty() {
            let why = notes.first().map_or("no run was given", String::as_str);
            return Err(Failure::usage(format!("no steps can be learned from: {why}")));
        }
        let candidates = self.candidates(&evidence, &mut notes);
        report(&format!("playing {} runs with {} settings …", rows.len(), candidates.len()));
        let mut best: Option<(f64, EngineTable, Profile)> = None;
        for server in candidates {
            let profile = self.profile(&server, &evidence, |_| true)?;
            let fitting = fitting(&rows, profile.clone(), self.source.clone());
            let cost = fitting.cost(&play_rows(&rows, &fitting.servers)?, &|_| true);
            if best.as_ref().is_none_or(|(least, ..)| cost < *least) {
                best = Some((cost, server, profile));
            }
        }
        let Some((_, server, profile)) = best else {
            return Err(Failure::usage("no run was given to learn from"));
        };
        let fitting = fitting(&rows, profile, self.source.clone());
        let played = play_rows(&rows, &fitting.servers)?;
        let left_out = self.leave_each_out(&server, &evidence, &fitting)?;
        notes.push(described(&fitting.base));
        notes.extend(fitting.base.law.as_ref().and_then(|law| drift(law, &evidence)));
        let coefficients = *fitting.base.coefficients();
        let fit = Fit { coefficients, played, left_out, part: None, evaluations: 0 };
        let base = fitting.profile(&fit, self.name.clone())?;
        Ok(Learned { fitting: Fitting { base, ..fitting }, fit, notes })
    }

    /// The figures of each row by a law that has not seen it, nor others at its level. The lowest level,
    /// and a row beyond all others, have none: without them, their prediction would be an extrapolation.
    fn leave_each_out(
        &self,
        server: &EngineTable,
        evidence: &[Evidence],
        fitting: &Fitting,
    ) -> Result<Option<Vec<Figures>>> {
        let level = |row: usize| fitting.rows[row].load.level().map(f64::to_bits);
        let is_alike = |row: usize, other: usize| {
            row == other || (level(row).is_some() && level(row) == level(other))
        };
        let least = fitting.rows.iter().filter_map(|row| row.load.level()).reduce(f64::min);
        let without = |row: usize| {
            let rest = (0..evidence.len()).filter(|other| !is_alike(row, *other));
            let batch = rest.map(|other| evidence[other].seen.batch).max().unwrap_or_default();
            let is_least = fitting.rows[row].load.level().is_some_and(|own| Some(own) == least);
            if is_least || batch < evidence[row].seen.batch {
                return Ok(None);
            }
            let profile = self.profile(server, evidence, |other| !is_alike(row, other))?;
            let rows = std::slice::from_ref(&fitting.rows[row]);
            Ok(play_rows(rows, &[profile])?.pop())
        };
        let found: Vec<Option<Figures>> =
            (0..evidence.len()).map(without).collect::<Result<_>>()?;
        let is_tested = found.iter().any(Option::is_some);
        Ok(is_tested.then(|| found.into_iter().map(Option::unwrap_or_default).collect()))
    }

    /// Settings of the server that the runs do not rule out.
    fn candidates(&self, evidence: &[Evidence], notes: &mut Vec<String>) -> Vec<EngineTable> {
        let mut server = EngineTable {
            max_model_len: self.server.max_model_len.or(Some(CONTEXT_MAX)),
            ..self.server.clone()
        };
        if server.max_num_seqs.is_none() {
            let most = evidence.iter().map(|found| found.seen.batch).max().unwrap_or(1);
            let is_full = evidence.iter().any(|found| found.seen.batch == most && found.is_full);
            notes.push(if is_full {
                format!("requests waited while {most} ran: taken for the server's largest batch")
            } else {
                format!("the largest batch of the server is not known; up to {most} were seen")
            });
            server.max_num_seqs = Some(if is_full { most } else { most.max(SEQS_MAX) });
        }
        if server.hardware.is_none() || server.model.is_none() {
            server.num_gpu_blocks_override = server.num_gpu_blocks_override.or(Some(BLOCKS_MAX));
            notes.push("KV cache memory is not modelled: hardware and model are not stated".into());
        }
        let budgets = match server.max_num_batched_tokens {
            Some(budget) => vec![budget],
            None => [512, 1024, 2048, 4096, 8192, 16_384].to_vec(),
        };
        let seqs = server.max_num_seqs.unwrap_or(1);
        let ahead = server.async_scheduling.map_or(vec![false, true], |known| vec![known]);
        let budgets = budgets.into_iter().map(|budget| budget.max(seqs));
        let with = |budget, ahead: bool| EngineTable {
            max_num_batched_tokens: Some(budget),
            async_scheduling: Some(ahead),
            ..server.clone()
        };
        budgets
            .flat_map(|budget| ahead.iter().map(move |ahead| (budget, *ahead)))
            .map(|(budget, ahead)| with(budget, ahead))
            .collect()
    }

    fn profile(
        &self,
        server: &EngineTable,
        evidence: &[Evidence],
        counts: impl Fn(usize) -> bool,
    ) -> Result<Profile> {
        let budget = server.max_num_batched_tokens.unwrap_or(u32::MAX);
        let used = evidence.iter().enumerate().filter(|(run, _)| counts(*run));
        let used: Vec<&Evidence> = used.map(|(_, found)| found).collect();
        let (law, front) = regress(&used, budget).ok_or_else(|| {
            Failure::usage("the runs show too few steps to learn from")
                .hint("measure several concurrencies with streamed answers of 64 tokens or more")
        })?;
        Profile::from_law(server, self.name.clone(), law, front).map_err(|error| refusal(&error))
    }
}

/// Contexts of a server of which nothing is known.
const CONTEXT_MAX: u32 = 1 << 20;
const SEQS_MAX: u32 = 256;
const BLOCKS_MAX: u32 = 1 << 22;

fn fitting(rows: &[Row], profile: Profile, source: String) -> Fitting {
    let servers = vec![profile.clone(); rows.len()];
    let (rows, free) = (rows.to_vec(), Vec::new());
    Fitting { rows, base: profile, servers, free, source, leave_one_out: true }
}

fn described(profile: &Profile) -> String {
    let Some(law) = &profile.law else { return String::new() };
    let error = law.held_out_error.map_or_else(
        || "no step was left out to test it".to_owned(),
        |error| format!("median error of steps that it had not seen: {}", percent(error)),
    );
    format!(
        "{} steps at {} batch sizes up to {}; {error}",
        law.steps,
        law.batches.len(),
        law.seen.batch
    )
}

/// A change of the step times that matters.
const DRIFT: f64 = 0.03;

/// How much the steps of the later runs differ from those of the earlier ones, beside what the law says of
/// both; `None` where that is chance.
fn drift(law: &StepLaw, evidence: &[Evidence]) -> Option<String> {
    let ratio = |found: &Evidence| {
        let single = found.observed.iter().filter(|it| it.decodes.len() == 1 && it.prompts == 0);
        let logs = single.map(|it| {
            let (decodes, decode_context) = (it.decodes[0], it.context);
            let shape = StepShape { decodes, decode_context, ..StepShape::default() };
            libm::log(it.seconds / law.seconds(&shape))
        });
        median(logs.collect())
    };
    let ratios: Vec<f64> = evidence.iter().filter_map(ratio).collect();
    let (early, late) = ratios.split_at(ratios.len() / 2);
    let spread = |values: &[f64]| {
        let (n, mean) = (values.len() as f64, values.iter().sum::<f64>() / values.len() as f64);
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        (1.0 < n).then(|| (mean, squares / (n - 1.0) / n))
    };
    let ((before, one), (after, other)) = (spread(early)?, spread(late)?);
    let reach = student::quantile(0.975, ratios.len() as f64 - 2.0) * libm::sqrt(one + other);
    let change = libm::exp(after - before) - 1.0;
    let is_drift = DRIFT < change.abs() && reach < (after - before).abs();
    is_drift.then(|| format!("the server drifted: later steps took {} longer", percent(change)))
}

/// What a run shows of its server.
#[derive(Debug)]
struct Evidence {
    observed: Vec<Observed>,
    seen: Seen,
    /// Whether requests waited although none was being computed: the batch was full.
    is_full: bool,
    /// Why its steps are to be doubted, where they are.
    doubt: Option<String>,
    /// Whether equal batches of other requests took another time, as a sentence.
    uneven: Option<String>,
}

/// A request, when it was sent and answered, and its lengths.
struct Timed {
    sent: Moment,
    first: Option<Moment>,
    end: Moment,
    prompt: u64,
    output: u64,
}

impl Timed {
    fn from_detail(detail: &RequestDetail<'_>) -> Option<Self> {
        Some(Self {
            sent: detail.record.sent?,
            first: detail.arrivals.first().map(|arrival| arrival.at),
            end: detail.record.ending.at,
            prompt: detail.input_tokens,
            output: detail.output_tokens.map_or(0, |(count, _)| count),
        })
    }
}

/// Steps that followed each other, as one observation; most are one step.
#[derive(Clone, Debug, Default)]
struct Observed {
    /// Decodes of each step.
    decodes: Vec<u32>,
    context: u64,
    prompt_tokens: u64,
    prompts: u32,
    seconds: f64,
    /// Whether it is the TTFT of a prompt that met an idle server.
    is_first: bool,
}

/// Steps that may pass until a prompt that waits has its first token.
const GROUP_MAX: usize = 64;
/// A batch is full where requests wait in at least this many steps that start no prompt.
const FULL_STEPS: usize = 20;

impl Evidence {
    fn from_run(observations: &Observations) -> Result<Self, String> {
        let steps = reconstruct(observations, &mut |_, _| {})
            .map_err(|why| format!("no steps are visible: {why}"))?;
        let doubt = (steps.confidence == Confidence::Low).then(|| steps.reason.clone());
        let mut requests: Vec<Timed> =
            detail::requests(observations).filter_map(|it| Timed::from_detail(&it)).collect();
        requests.sort_unstable_by_key(|request| request.sent);
        let mut observed = grouped(&steps.steps);
        let mut idle_from = Moment::ZERO;
        for (place, request) in requests.iter().enumerate() {
            let next = requests.get(place + 1).map(|next| next.sent);
            let is_alone = |first: &Moment| {
                idle_from <= request.sent && next.is_none_or(|next| *first <= next)
            };
            if let Some(first) = request.first.filter(is_alone) {
                observed.push(Observed {
                    prompt_tokens: request.prompt,
                    prompts: 1,
                    seconds: first.since(request.sent).unwrap_or_default().as_secs_f64(),
                    is_first: true,
                    ..Observed::default()
                });
            }
            idle_from = idle_from.max(request.end);
        }
        let most = |length: fn(&Timed) -> u64| {
            to_u32(requests.iter().map(length).max().unwrap_or_default() as f64)
        };
        let batch = steps.steps.iter().map(|step| step.batch).max().unwrap_or_default();
        let waits = |step: &&Step| step.batch == batch && step.prefills == 0 && 0 < step.waiting;
        let is_full = FULL_STEPS <= steps.steps.iter().filter(waits).count();
        let context = most(|it| it.prompt + it.output);
        let seen = Seen { batch, context, prompt: most(|it| it.prompt) };
        Ok(Self { observed, seen, is_full, doubt, uneven: uneven(&steps.steps) })
    }
}

/// Fewer steps of the same requests say nothing about these.
const ALIKE_STEPS_MIN: usize = 20;
/// Equal batches differ by less where requests do not matter.
const UNEVEN: f64 = 1.4;

/// Whether steps of one batch size and about as much context took a time of their own with each set of
/// requests. The requests of a batch are the same until one begins.
fn uneven(steps: &[Step]) -> Option<String> {
    let mut times: BTreeMap<(u32, u32), Vec<f64>> = BTreeMap::new();
    let same = |a: &Step, b: &Step| a.batch == b.batch && b.prefills == 0;
    for alike in steps.chunk_by(same).filter(|alike| 2 <= alike[0].batch) {
        let seconds: Vec<f64> = alike.iter().skip(1).filter_map(|step| step.duration).collect();
        let typical = median(seconds.clone()).filter(|_| ALIKE_STEPS_MIN <= seconds.len());
        let Step { batch, context_tokens, .. } = alike[alike.len() / 2];
        // Within a factor of two.
        let context = context_tokens.checked_ilog2().unwrap_or(0);
        times.entry((batch, context)).or_default().extend(typical);
    }
    let spread = |((batch, _), mut times): ((u32, u32), Vec<f64>)| {
        times.sort_by(f64::total_cmp);
        let (least, most) = times.first().zip(times.last())?;
        (UNEVEN * least < *most).then_some((batch, *least, *most))
    };
    let (batch, least, most) =
        times.into_iter().filter_map(spread).max_by(|a, b| (a.2 / a.1).total_cmp(&(b.2 / b.1)))?;
    let [least, most] = [least, most].map(|seconds| decimals(1e3 * seconds, 1));
    Some(format!(
        "steps of {batch} requests took {least} ms with some and {most} ms with others of about as long a \
         context, so no law of batch sizes holds; the cause is not known (llama.cpp computes together \
         only slots in a row: try its --kv-unified)"
    ))
}

/// Steps while a prompt waits may have computed a part of it: they count together with the step that
/// gave its first token. Those of a batch that stays full are the exception, so groups are short.
fn grouped(steps: &[Step]) -> Vec<Observed> {
    let mut all = Vec::new();
    let mut group = Observed::default();
    for step in steps {
        let Some(seconds) = step.duration.filter(|seconds| 0.0 < *seconds) else {
            group = Observed::default();
            continue;
        };
        group.decodes.push(step.batch.saturating_sub(step.prefills));
        group.context += step.context_tokens.saturating_sub(step.prefill_tokens);
        group.prompt_tokens += step.prefill_tokens;
        group.prompts += step.prefills;
        group.seconds += seconds;
        if 0 < step.prefills || step.waiting == 0 || GROUP_MAX <= group.decodes.len() {
            let whole = std::mem::take(&mut group);
            let is_cut = 0 < step.waiting && step.prefills == 0;
            all.extend((!is_cut && step.seen).then_some(whole));
        }
    }
    all
}

impl Observed {
    fn is_decode_only(&self) -> bool {
        self.prompts == 0
    }

    /// The prompt tokens of each step, where no step holds more than `budget`; pairs of tokens are
    /// those of prompts of equal length.
    fn chunks(&self, budget: u32) -> (Vec<u64>, f64) {
        let decodes = u64::from(self.decodes.last().copied().unwrap_or_default());
        let most = u64::from(budget).saturating_sub(decodes).max(1);
        let count = self.prompt_tokens.div_ceil(most).max(1);
        let (prompts, tokens) = (f64::from(self.prompts.max(1)), self.prompt_tokens as f64);
        let sizes = (0..count).map(|place| most.min(self.prompt_tokens - place * most));
        (sizes.collect(), tokens * tokens / prompts / 2.0)
    }
}

/// Fewer steps say too little of a batch size.
const STEPS_MIN: usize = 5;
/// Above this batch size, those that differ by less are not told apart.
const DENSE_MAX: u32 = 24;
const DENSE_STEP: f64 = 1.06;
const PREFILL_ENDS: [u32; 8] = [64, 256, 1024, 2048, 4096, 8192, 16_384, 65_536];
/// More observations cost time and tell nothing new.
const OBSERVED_MAX: usize = 20_000;
const ROUNDS: usize = 8;
/// One in so many observations is left out, to test the law on.
const HELD_OUT: usize = 5;

/// The columns of the regression: batch sizes, context, ranges of prompt tokens, pairs, and what the
/// server takes for a request and its tokens before the scheduler has it.
struct Columns {
    knots: Vec<u32>,
    ends: Vec<u32>,
    budget: u32,
}

impl Columns {
    fn new(observed: &[&Observed], budget: u32) -> Option<Self> {
        let most = observed.iter().flat_map(|it| &it.decodes).copied().max()?;
        let mut counts = vec![0_usize; most as usize + 1];
        for one in observed.iter().filter(|it| it.is_decode_only()) {
            one.decodes.iter().for_each(|decodes| counts[*decodes as usize] += 1);
        }
        let mut knots: Vec<u32> = Vec::new();
        for (decodes, count) in (0_u32..).zip(&counts).skip(1) {
            let far = |last: &u32| {
                decodes <= DENSE_MAX || DENSE_STEP * f64::from(*last) <= f64::from(decodes)
            };
            if STEPS_MIN <= *count && knots.last().is_none_or(far) {
                knots.push(decodes);
            }
        }
        let longest = observed.iter().map(|it| it.prompt_tokens.min(budget.into())).max()?;
        let mut ends: Vec<u32> = PREFILL_ENDS.to_vec();
        ends.retain(|end| u64::from(*end) < longest);
        ends.push(to_u32(longest.max(1) as f64));
        ends.dedup();
        (!knots.is_empty()).then_some(Self { knots, ends, budget })
    }

    fn count(&self) -> usize {
        self.knots.len() + self.ends.len() + 4
    }

    fn row(&self, observed: &Observed) -> Vec<(usize, f64)> {
        let (after, mut row) = (self.knots.len(), Vec::new());
        let (chunks, pairs) = observed.chunks(self.budget);
        // A prompt that met an idle server took as many steps as it has chunks.
        let alone = vec![0; if observed.is_first { chunks.len() } else { 0 }];
        for decodes in observed.decodes.iter().chain(&alone) {
            row.extend(hats(self.knots.iter().copied(), *decodes));
        }
        row.push((after, observed.context as f64));
        for chunk in chunks {
            row.extend(
                segments(self.ends.iter().copied(), chunk)
                    .enumerate()
                    .map(|(index, tokens)| (after + 1 + index, tokens)),
            );
        }
        let last = after + 1 + self.ends.len();
        row.push((last, pairs));
        if observed.is_first {
            row.extend([(last + 1, 1.0), (last + 2, observed.prompt_tokens as f64)]);
        }
        row.retain(|(_, value)| *value != 0.0);
        row
    }
}

/// The law of what was observed, with the time in front of the scheduler; `None` where too little was
/// observed.
fn regress(evidence: &[&Evidence], budget: u32) -> Option<(StepLaw, Front)> {
    let all: Vec<&Observed> = evidence.iter().flat_map(|found| &found.observed).collect();
    let stride = all.len().div_ceil(OBSERVED_MAX).max(1);
    let all: Vec<&Observed> = all.into_iter().step_by(stride).collect();
    let columns = Columns::new(&all, budget)?;
    let rows: Vec<(Vec<(usize, f64)>, f64)> =
        all.iter().map(|it| (columns.row(it), it.seconds)).collect();
    let part: Vec<_> = rows.iter().zip(0..).filter(|(_, n)| n % HELD_OUT != 0).collect();
    let part: Vec<_> = part.into_iter().map(|(row, _)| row.clone()).collect();
    let of_part = solve(&part, columns.count());
    let errors =
        rows.iter().step_by(HELD_OUT).map(|row| (predict(&of_part, &row.0) / row.1 - 1.0).abs());
    let is_enough = STEPS_MIN * HELD_OUT * columns.count() <= rows.len();
    let held_out_error = median(errors.collect()).filter(|_| is_enough);
    let found = solve(&rows, columns.count());
    // Medians are robust, but sums of steps are made of means; steps far off are of something else.
    let decode = || {
        let rows = rows.iter().zip(&all).filter(|(_, it)| it.is_decode_only());
        let pairs = rows.map(|(row, _)| (row.1, predict(&found, &row.0)));
        pairs.filter(|(seconds, predicted)| *seconds < 4.0 * predicted)
    };
    let (sum, predicted) = decode().fold((0.0, 0.0), |sums, it| (sums.0 + it.0, sums.1 + it.1));
    let mean = if 0.0 < predicted { sum / predicted } else { 1.0 };
    let spread = median(decode().map(|it| libm::log(it.0 / it.1).abs()).collect());
    let (knots, after) = (columns.knots.len(), columns.knots.len() + 1 + columns.ends.len());
    let scaled = |index: usize| mean * found[index];
    let law = StepLaw {
        batches: columns.knots.iter().zip(0..).map(|(at, index)| (*at, scaled(index))).collect(),
        per_context_s: scaled(knots),
        prefill: columns.ends.iter().zip(knots + 1..).map(|(at, i)| (*at, found[i])).collect(),
        per_pair_s: found[after],
        // The median distance from the median of normal draws is 0.6745 sigma.
        spread: (spread.unwrap_or_default() / 0.6745).min(1.0),
        seen: evidence.iter().fold(Seen::default(), |seen, found| seen.or(found.seen)),
        steps: all.iter().map(|it| it.decodes.len() as u64).sum(),
        held_out_error,
    };
    let front = Front {
        per_request_ns: to_u64(found[after + 1] * 1e9),
        per_prompt_token_ns: to_u64(found[after + 2] * 1e9),
        per_output_token_ns: 0,
    };
    Some((law, front))
}

fn predict(found: &[f64], row: &[(usize, f64)]) -> f64 {
    row.iter().map(|(index, value)| found[*index] * value).sum()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Least absolute relative errors with no number below zero, by weighted least squares.
fn solve(rows: &[(Vec<(usize, f64)>, f64)], count: usize) -> Vec<f64> {
    let mut found = vec![0.0; count];
    for round in 0..ROUNDS {
        let (mut matrix, mut right) = (vec![vec![0.0; count]; count], vec![0.0; count]);
        for (row, seconds) in rows {
            let error = if round == 0 { 1.0 } else { (predict(&found, row) / seconds - 1.0).abs() };
            let weight = 1.0 / (seconds * seconds * error.max(1e-3));
            for (i, a) in row {
                right[*i] += weight * a * seconds;
                for (j, b) in row {
                    matrix[*i][*j] += weight * a * b;
                }
            }
        }
        found = solve_above_zero(&matrix, &right);
    }
    found
}

/// Solves the normal equations; columns that come out below zero are left out, the lowest first.
fn solve_above_zero(matrix: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    let mut used: Vec<usize> =
        (0..right.len()).filter(|index| 0.0 < matrix[*index][*index]).collect();
    loop {
        let scale = |index: usize| 1.0 / libm::sqrt(matrix[index][index]);
        let entry = |i: usize, j: usize| {
            matrix[i][j] * scale(i) * scale(j) + if i == j { 1e-9 } else { 0.0 }
        };
        let scaled: Vec<Vec<f64>> =
            used.iter().map(|i| used.iter().map(|j| entry(*i, *j)).collect()).collect();
        let values = eliminate(scaled, used.iter().map(|i| right[*i] * scale(*i)).collect());
        let lowest = (0..used.len()).min_by(|a, b| values[*a].total_cmp(&values[*b]));
        match lowest {
            Some(lowest) if values[lowest] < 0.0 => {
                used.remove(lowest);
            }
            _ => {
                let mut found = vec![0.0; right.len()];
                used.iter()
                    .zip(values)
                    .for_each(|(index, value)| found[*index] = value * scale(*index));
                return found;
            }
        }
    }
}

/// Gaussian elimination of a symmetric matrix whose diagonal is above zero.
fn eliminate(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    for pivot in 0..right.len() {
        let (top, rest) = matrix.split_at_mut(pivot + 1);
        let top = &top[pivot];
        for (row, line) in rest.iter_mut().enumerate() {
            let factor = line[pivot] / top[pivot];
            line.iter_mut().zip(top).skip(pivot).for_each(|(a, b)| *a -= factor * b);
            right[pivot + 1 + row] -= factor * right[pivot];
        }
    }
    for pivot in (0..right.len()).rev() {
        let known: f64 = (pivot + 1..right.len()).map(|j| matrix[pivot][j] * right[j]).sum();
        right[pivot] = (right[pivot] - known) / matrix[pivot][pivot];
    }
    right
}

#[cfg(test)]
mod tests;
