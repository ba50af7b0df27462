//! How often the confidence intervals that a summary prints contain the truth: whole runs of the embedded
//! engine that start with an empty server, summarized by the code that every run goes through.
//!
//! The tests play a few short runs. `cargo xtask statistics` sets `INFEROMETER_RUNS`; then all cells of the
//! grid are played that many times, the truth comes from long runs, and the table is printed.

use std::fmt::Write as _;

use inferometer_analysis::metric::LatencyOrigin;
use inferometer_analysis::{Interval, Quantity, Summary, summarize};
use inferometer_model::{Observations, SpecDraft};
use serde_json::{Value, json};

use super::super::*;

/// The quantities that are judged, by the names that `--require` takes.
const QUANTITIES: [&str; 7] = [
    "ttft.mean",
    "ttft.p50",
    "tpot.mean",
    "e2e.mean",
    "request_throughput",
    "output_throughput",
    "input_throughput",
];
const REQUESTS: [u64; 3] = [100, 400, 2_000];
/// The nominal coverage, and the least that is accepted of a few hundred runs.
const NOMINAL: f64 = 0.95;
const LEAST: f64 = 0.93;
/// With fewer intervals than this in a cell, chance lowers what is accepted.
const MANY: f64 = 300.0;
const DEVIATIONS: f64 = 2.9;
/// Runs that the truth comes from, and the requests of each.
const LONG: (u64, u64) = (4, 100_000);
/// Runs of each cell in a test; then the truth is the one that is written here.
const RUNS_OF_A_TEST: u64 = 40;
/// The share of runs that must have intervals where they are due.
const MOSTLY: f64 = 0.9;
/// The share of a long run that is left out at its beginning and at its end.
const EDGES: (f64, f64) = (0.05, 0.02);

/// A load and a server whose true values are known.
struct Regime {
    name: &'static str,
    load: fn() -> Value,
    workload: fn() -> Value,
    /// Requests that the engine takes at a time; `None` leaves it to the profile.
    slots: Option<u32>,
    /// The true values, in the order of [`QUANTITIES`], from long runs.
    truth: [f64; QUANTITIES.len()],
    /// The fewest requests of the grid from which intervals must be printed in most runs.
    printed_from: u64,
}

const SINGLE: fn() -> Value =
    || json!({"input_tokens": "uniform:64..960", "output_tokens": "uniform:16..112"});

const REGIMES: [Regime; 5] = [
    Regime {
        name: "low load",
        load: || json!({"rate": 4.0}),
        workload: SINGLE,
        slots: None,
        truth: [25.96, 25.31, 6.954, 463.5, 3.991, 255.1, 2_043.0],
        printed_from: 100,
    },
    Regime {
        name: "near saturation (0.83)",
        load: || json!({"rate": 21.3}),
        workload: SINGLE,
        slots: Some(16),
        truth: [65.27, 36.60, 8.642, 609.0, 21.28, 1_360.3, 10_900.0],
        printed_from: 2_000,
    },
    Regime {
        name: "bursts (gamma 0.2)",
        load: || json!({"rate": 8.0, "arrivals": "gamma", "burstiness": 0.2}),
        workload: SINGLE,
        slots: Some(16),
        truth: [54.03, 41.90, 7.788, 539.7, 7.978, 510.1, 4_085.0],
        printed_from: 2_000,
    },
    Regime {
        name: "conversations",
        load: || json!({"rate": 3.0}),
        workload: || {
            json!({
                "input_tokens": "uniform:64..500", "output_tokens": "uniform:16..112",
                "turns": "uniform:2..8", "turn_think_time": "1s", "turn_think": "exponential",
            })
        },
        slots: None,
        truth: [25.31, 24.59, 7.596, 503.2, 14.92, 953.8, 16_650.0],
        printed_from: 2_000,
    },
    Regime {
        name: "closed loop of 8",
        load: || json!({"concurrency": 8}),
        workload: SINGLE,
        slots: None,
        truth: [31.94, 30.93, 7.772, 521.0, 15.36, 981.5, 7_864.0],
        printed_from: 100,
    },
];

impl Regime {
    fn spec(&self, requests: u64, seed: u64) -> Spec {
        let (mut load, mut workload) = ((self.load)(), (self.workload)());
        load["requests"] = json!(requests);
        workload["seed"] = json!(seed);
        SpecDraft {
            load: serde_json::from_value(load).unwrap(),
            workload: serde_json::from_value(workload).unwrap(),
            engine: EngineTable { max_num_seqs: self.slots, ..EngineTable::default() },
            ..SpecDraft::default()
        }
        .resolve()
        .unwrap()
    }

    /// A run on an engine of its own, which is empty at its start.
    fn play<O: Observer>(
        &self,
        requests: u64,
        seed: u64,
        observer: &mut O,
    ) -> (Manifest, RunEnding) {
        let spec = self.spec(requests, seed);
        let session = Session::new(usize::MAX, Arc::new(|_| {}));
        let engine = VirtualEngine::new(&spec.engine).unwrap();
        let mut simulator = Simulator { engine, session: &session };
        let ready = simulator.make_ready(&spec).unwrap();
        let plan = Arc::clone(&ready.planned.plan);
        let ending = simulator.play(&spec, plan, spec.seed, observer).unwrap();
        (simulator.new_run(&ready).unwrap(), ending)
    }

    fn summary(&self, requests: u64, seed: u64) -> Summary {
        let (mut records, mut not_sent) = (Vec::new(), Vec::new());
        let mut write = |entry| {
            match entry {
                JournalEntry::Ended(record) => records.push(*record),
                JournalEntry::NotSent(part) => not_sent.push(part),
                JournalEntry::Started(_) | JournalEntry::RunEnded(_) => {}
            }
            Ok(())
        };
        let mut journal = Journal { streaming: true, write: &mut write, watch: &mut |_| {} };
        let (manifest, ending) = self.play(requests, seed, &mut journal);
        summarize(&Observations::new(manifest, records, not_sent, ending).unwrap())
    }

    /// What is true in the steady state, from long runs.
    fn measured_truth(&self) -> [f64; QUANTITIES.len()] {
        let mut sums = [0.0; QUANTITIES.len()];
        for seed in 0..LONG.0 {
            let mut ends = Ends::default();
            self.play(LONG.1, u64::MAX - seed, &mut ends);
            let values = ends.steady();
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
        sums.map(|sum| sum / LONG.0 as f64)
    }
}

/// Sent, first token, last token, all in seconds, and the output and input tokens of each request.
#[derive(Default)]
struct Ends(Vec<[f64; 5]>);

impl Observer for Ends {
    type Notes = ();

    fn ended(&mut self, flight: Flight<()>, _: End) -> Result<()> {
        let s = |at: Option<Moment>| at.unwrap().as_nanos() as f64 / 1e9;
        let [first, last] = [flight.first, flight.last].map(s);
        let [output, input] = [flight.tokens, flight.prompt_tokens].map(f64::from);
        self.0.push([s(Some(flight.sent)), first, last, output, input]);
        Ok(())
    }
}

impl Ends {
    fn steady(&self) -> [f64; QUANTITIES.len()] {
        let over_s = self.0.iter().map(|request| request[0]).fold(0.0, f64::max);
        let (from, to) = (over_s * EDGES.0, over_s * (1.0 - EDGES.1));
        let inside = |at: f64| (from..to).contains(&at);
        let sent: Vec<&[f64; 5]> = self.0.iter().filter(|request| inside(request[0])).collect();
        let mean = |value: fn(&[f64; 5]) -> f64| {
            sent.iter().map(|it| value(it)).sum::<f64>() / sent.len() as f64
        };
        let mut ttft: Vec<f64> = sent.iter().map(|it| it[1] - it[0]).collect();
        let middle = ttft.len() / 2;
        let (_, median, _) = ttft.select_nth_unstable_by(middle, f64::total_cmp);
        let ended = self.0.iter().filter(|request| inside(request[2]));
        // The tokens of a request whose end is inside stand for those that came inside of others.
        let tokens = |which: usize| ended.clone().map(|request| request[which]).sum::<f64>();
        [
            1e3 * mean(|it| it[1] - it[0]),
            1e3 * *median,
            1e3 * mean(|it| (it[2] - it[1]) / (it[3] - 1.0)),
            1e3 * mean(|it| it[2] - it[0]),
            ended.clone().count() as f64 / (to - from),
            tokens(3) / (to - from),
            tokens(4) / (to - from),
        ]
    }
}

/// The intervals of one quantity in the runs of one cell.
#[derive(Clone, Copy, Default)]
struct Tally {
    printed: u64,
    covered: u64,
}

impl Tally {
    fn add(&mut self, interval: Interval, truth: f64) {
        self.printed += 1;
        self.covered += u64::from(interval.contains(truth));
    }

    fn coverage(&self) -> f64 {
        self.covered as f64 / self.printed as f64
    }

    fn holds(&self) -> bool {
        let printed = self.printed as f64;
        let chance = DEVIATIONS * (NOMINAL * (1.0 - NOMINAL) / printed).sqrt();
        let least = if printed < MANY { LEAST.min(NOMINAL - chance) } else { LEAST };
        self.printed == 0 || least <= self.coverage()
    }
}

fn cell(regime: &Regime, truth: &[f64], requests: u64, runs: u64) -> [Tally; QUANTITIES.len()] {
    let mut tallies = [Tally::default(); QUANTITIES.len()];
    for seed in 0..runs {
        let summary = regime.summary(requests, 1_000 * requests + seed);
        for ((tally, name), truth) in tallies.iter_mut().zip(QUANTITIES).zip(truth) {
            let quantity = Quantity::named(name, LatencyOrigin::Sent).unwrap();
            let interval = quantity.value_in(&summary).unwrap().interval;
            let is_withheld = summary.intervals_withheld.is_some();
            assert!(!is_withheld || interval.is_none(), "{name} has an interval");
            if let Some(interval) = interval {
                tally.add(interval, *truth);
            }
        }
    }
    tallies
}

/// Plays every cell, or those of the fewest requests, and returns what does not hold.
fn grid(asked: Option<u64>, table: &mut String) -> Vec<String> {
    let mut failed = Vec::new();
    for regime in &REGIMES {
        let truth = asked.map_or(regime.truth, |_| regime.measured_truth());
        for (known, found) in regime.truth.iter().zip(truth) {
            assert!((found / known - 1.0).abs() < 0.05, "{}: {found}, not {known}", regime.name);
        }
        for requests in REQUESTS.into_iter().filter(|it| asked.is_some() || *it == REQUESTS[0]) {
            let runs = asked.unwrap_or(RUNS_OF_A_TEST);
            let tallies = cell(regime, &truth, requests, runs);
            let printed = tallies[0].printed as f64 / runs as f64;
            let name = format!("{} | {requests}", regime.name);
            let shares = tallies.map(|tally| match tally.printed {
                0 => " – |".to_owned(),
                _ => format!(" {:.1} % |", 100.0 * tally.coverage()),
            });
            let cells = shares.concat();
            writeln!(table, "| {name} | {:.0} % |{cells}", 100.0 * printed).unwrap();
            let is_rare = regime.printed_from <= requests && printed < MOSTLY;
            failed.extend(is_rare.then(|| format!("{name}: seldom printed")));
            let poor = tallies.iter().zip(QUANTITIES).filter(|(tally, _)| !tally.holds());
            failed.extend(poor.map(|(tally, quantity)| {
                format!("{name}: {quantity} is covered in {} of {}", tally.covered, tally.printed)
            }));
        }
    }
    failed
}

#[test]
#[expect(clippy::print_stdout, reason = "cargo xtask statistics shows the table")]
fn printed_intervals_cover_the_truth() {
    let asked = std::env::var("INFEROMETER_RUNS").ok().map(|runs| runs.parse().unwrap());
    let titles = QUANTITIES.map(|name| format!(" `{name}` |")).concat();
    let rule = "---|".repeat(3 + QUANTITIES.len());
    let mut table = format!("| load | requests | printed |{titles}\n|{rule}\n");
    let failed = grid(asked, &mut table);
    println!("Coverage of the 95 % intervals of whole runs\n\n{table}");
    assert!(failed.is_empty(), "{failed:#?}");
}
