//! How often the interval that a summary states of a simulated run contains the truth, beside the
//! interval that takes all values for independent.

use super::{Process, Run};
use crate::metric::Statistic;
use crate::record::Clustered;
use crate::statistics::{Interval, Percentile, Probability, Sample, UPPER, draws::Draws, normal};

const NOMINAL: f64 = 0.95;
/// With a thousand runs coverage must be at least 93 %; with fewer, chance widens that.
const ALLOWED: f64 = 0.02;
const DEVIATIONS: f64 = 2.9;
/// The naive interval of a dependent series covers less than this.
const NAIVE_FAILS: f64 = 0.80;
/// A percentile that is certified in fewer runs than this is not judged: those are a chosen few.
const MOSTLY: f64 = 0.90;

const PERCENTILES: [Percentile; 3] = [Percentile::P50, Percentile::P90, Percentile::P99];

#[derive(Clone, Copy, Debug)]
struct Coverage {
    statistic: Statistic,
    runs: u64,
    /// Runs in which the statistic was certified; the rest of this is about them.
    certified: u64,
    /// The share of intervals that contain the truth.
    ours: f64,
    naive: f64,
    /// How many times wider ours are, on average.
    width_ratio: f64,
    /// Effective sample size of the mean; a summary has no other.
    effective_n: Option<f64>,
    dependent: bool,
}

impl Coverage {
    /// Simulates `runs` runs: the mean, and the percentiles.
    fn simulate(process: &Process, runs: u64, seed: u64) -> Vec<Self> {
        let mut tallies = [Tally::default(); 1 + PERCENTILES.len()];
        for number in 0..runs {
            let run = (process.draw)(&mut Draws::new(seed, number), process.requests);
            for (tally, said) in tallies.iter_mut().zip(said(process, &run)) {
                tally.add(&said);
            }
        }
        let statistics =
            [Statistic::Mean].into_iter().chain(PERCENTILES.map(Statistic::Percentile));
        let coverage =
            |(statistic, tally): (Statistic, Tally)| tally.coverage(statistic, runs, process);
        statistics.zip(tallies).map(coverage).collect()
    }

    /// Whether enough runs certified it to say anything.
    fn is_judged(&self) -> bool {
        self.certified as f64 >= MOSTLY * self.runs as f64
    }

    /// Whether ours covers what it promises.
    fn holds(&self) -> bool {
        let chance = DEVIATIONS * (NOMINAL * (1.0 - NOMINAL) / self.certified as f64).sqrt();
        NOMINAL - ALLOWED.max(chance) <= self.ours
    }

    /// Whether the naive interval is as bad as it must be for the comparison to mean anything. In the
    /// far tail neighbours hardly differ from strangers, so it is not asked there.
    fn naive_fails(&self) -> bool {
        let tail = self.statistic == Statistic::Percentile(Percentile::P99);
        !self.dependent || tail || self.naive < NAIVE_FAILS
    }
}

/// What one run says of one statistic, and what is true.
struct Said {
    truth: f64,
    interval: Option<Interval>,
    effective_n: Option<f64>,
    naive: Interval,
    certified: bool,
}

/// By the way that every latency of a summary goes.
fn said(process: &Process, run: &Run) -> Vec<Said> {
    let found = clustered(run).distribution(Some(8)).zip(Sample::new(run.values.clone()));
    let Some((found, sample)) = found else { return Vec::new() };
    let mean = naive_mean(&sample).map(|naive| Said {
        truth: (process.mean)(),
        interval: found.intervals.mean,
        effective_n: found.effective_n,
        naive,
        certified: true,
    });
    let percentiles = PERCENTILES.into_iter().map(|percentile| {
        let share = percentile.probability().share();
        Some(Said {
            truth: (process.quantile)(share),
            interval: found.intervals.get(Statistic::Percentile(percentile)),
            effective_n: None,
            naive: naive_quantile(&sample, share)?,
            certified: found.is_certified(percentile),
        })
    });
    [mean].into_iter().chain(percentiles).flatten().collect()
}

fn clustered(run: &Run) -> Clustered {
    if run.sizes.iter().all(|size| *size == 1) {
        return Clustered::one_each(run.values.clone());
    }
    let mut clustered = Clustered::pooled(run.values.len() as u64);
    let mut values = run.values.iter();
    for size in &run.sizes {
        values.by_ref().take(*size).for_each(|value| clustered.push(*value));
        clustered.end_request();
    }
    clustered
}

fn naive_mean(sample: &Sample) -> Option<Interval> {
    let n = sample.count() as f64;
    let half = normal::quantile(UPPER) * sample.std_sample()? / n.sqrt();
    Interval::new(sample.mean() - half, sample.mean() + half)
}

fn naive_quantile(sample: &Sample, share: f64) -> Option<Interval> {
    let half = normal::quantile(UPPER) * (share * (1.0 - share) / sample.count() as f64).sqrt();
    let at = |share: f64| Probability::new(share.clamp(0.0, 1.0)).map(|p| sample.quantile(p));
    Interval::new(at(share - half)?, at(share + half)?)
}

#[derive(Clone, Copy, Default)]
struct Tally {
    certified: u64,
    bounded: u64,
    ours: u64,
    naive: u64,
    width_ratio: f64,
    /// Summed over the runs that state it.
    effective_n: Option<f64>,
}

impl Tally {
    fn add(&mut self, said: &Said) {
        if !said.certified {
            return;
        }
        self.certified += 1;
        if let Some(effective_n) = said.effective_n {
            *self.effective_n.get_or_insert(0.0) += effective_n;
        }
        self.naive += u64::from(said.naive.contains(said.truth));
        if let Some(interval) = said.interval {
            self.bounded += 1;
            self.ours += u64::from(interval.contains(said.truth));
            self.width_ratio += interval.half_width() / said.naive.half_width();
        }
    }

    fn coverage(&self, statistic: Statistic, runs: u64, process: &Process) -> Coverage {
        let of = |part: f64, whole: u64| part / whole.max(1) as f64;
        Coverage {
            statistic,
            runs,
            certified: self.certified,
            ours: of(self.ours as f64, self.bounded),
            naive: of(self.naive as f64, self.certified),
            width_ratio: of(self.width_ratio, self.bounded),
            effective_n: self.effective_n.map(|sum| of(sum, self.certified)),
            dependent: process.dependent,
        }
    }
}

/// A hundred and fifty runs of the shorter processes; `cargo xtask statistics` has a thousand of all.
#[test]
#[expect(clippy::print_stdout, reason = "cargo xtask statistics shows the table")]
fn intervals_cover_what_they_promise_and_naive_ones_do_not() {
    let asked = super::asked_tables();
    let (runs, seed) = asked.unwrap_or((150, 1));
    let longest = if asked.is_some() { usize::MAX } else { 5_000 };
    let mut table = format!(
        "Coverage of 95 % intervals over {runs} simulated runs, seed {seed}\n\n\
         {:<28} {:>8} {:>5} {:>9} {:>7} {:>7} {:>7} {:>11}\n",
        "process", "requests", "", "certified", "ours", "naive", "wider", "effective n"
    );
    let (mut judged, mut failed) = (0, Vec::new());
    for process in super::PROCESSES.iter().filter(|process| process.requests <= longest) {
        for coverage in Coverage::simulate(process, runs, seed) {
            table += &coverage_row(process, &coverage);
            let holds = coverage.holds() && coverage.naive_fails();
            if coverage.is_judged() {
                judged += 1;
                failed.extend((!holds).then(|| format!("{} {coverage:?}", process.name)));
            }
        }
    }
    println!("{table}");
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(judged >= 18, "{judged} rows judged");
}

fn coverage_row(process: &Process, coverage: &Coverage) -> String {
    let (name, requests) = (process.name, process.requests);
    let (statistic, certified) = (coverage.statistic.name(), coverage.certified);
    let head = format!("{name:<28} {requests:>8} {statistic:>5} {certified:>9} ");
    if !coverage.is_judged() {
        // The few runs that certify it are not like the others, and their shares say nothing.
        let [dash, wide] = [format!("{:>7}", "–"), format!("{:>11}", "–")];
        return format!("{head}{dash} {dash} {dash} {wide}  not judged: seldom certified\n");
    }
    let effective_n = coverage.effective_n.map_or("–".to_owned(), |n| format!("{n:.0}"));
    format!(
        "{head}{:>5.1} % {:>5.1} % {:>6.1}× {effective_n:>11}  {}\n",
        100.0 * coverage.ours,
        100.0 * coverage.naive,
        coverage.width_ratio,
        super::verdict(coverage.holds() && coverage.naive_fails())
    )
}

/// A percentile that is the largest value is judged by a rule of the summary's own.
#[test]
fn what_is_measured_is_what_a_summary_states() {
    let run = Run { values: vec![1.0, 1.0, 2.0, 2.0, 2.0, 2.0], sizes: vec![2, 1, 3] };
    let mut by_hand = Clustered::pooled(6);
    for request in [&[1.0, 1.0][..], &[2.0], &[2.0, 2.0, 2.0]] {
        for value in request {
            by_hand.push(*value);
        }
        by_hand.end_request();
    }
    assert_eq!(clustered(&run).distribution(Some(8)), by_hand.distribution(Some(8)));
    let few = (super::PROCESSES[0].draw)(&mut Draws::new(1, 0), 100);
    let stated: Vec<bool> =
        said(&super::PROCESSES[0], &few).iter().map(|said| said.certified).collect();
    assert_eq!(stated, [true, true, true, false], "p99 of a hundred is not certified");
}
