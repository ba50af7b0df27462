//! Servers whose truth is known: how often identical ones are called worse, and how often a real
//! difference is found.
//!
//! The noise is what runs of one server commonly show: 2 % in throughput, and 8 % in p99, skewed to
//! the slow side.

use crate::comparison::change::{Judgement, Margins, Scale, Values};
use crate::metric::{LatencyOrigin, Quantity};
use crate::statistics::{Estimate, UPPER, draws::Draws};

const PAIRS: u64 = 4_000;
const RUNS: usize = 5;

/// How the runs of one server scatter about its true value.
#[derive(Clone, Copy, Debug)]
enum Noise {
    /// Normal, as a share of the value.
    Even(f64),
    /// Lognormal: slow runs are further off than fast ones.
    Skewed(f64),
}

impl Noise {
    fn draw(self, draws: &mut Draws) -> f64 {
        match self {
            Self::Even(share) => 1.0 + share * draws.normal(),
            Self::Skewed(sigma) => libm::exp(sigma * draws.normal()),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Truth {
    quantity: &'static str,
    noise: Noise,
    /// The other side over the base.
    ratio: f64,
    in_pairs: bool,
}

/// The shares of comparisons that end better, worse, same and undecided.
fn shares(truth: Truth) -> [f64; 4] {
    let quantity = Quantity::named(truth.quantity, LatencyOrigin::Sent).unwrap();
    let (margin, better) = (Margins::DEFAULT.margin_for(&quantity), quantity.metric().better);
    let mut counts = [0_u32; 4];
    for pair in 0..PAIRS {
        let mut draws = Draws::new(2_026, pair);
        let mut side = |level: f64| -> Vec<Option<Estimate>> {
            [(); RUNS].map(|()| Some(run(level * truth.noise.draw(&mut draws)))).to_vec()
        };
        let values = Values {
            base: side(100.0),
            other: side(100.0 * truth.ratio),
            in_pairs: truth.in_pairs,
            floor: 1,
            upper: UPPER,
        };
        let change = values.change(Scale::Ratio).unwrap();
        let place = match change.judged(margin, better) {
            Judgement::Better => 0,
            Judgement::Worse => 1,
            Judgement::Same => 2,
            Judgement::Undecided => 3,
            Judgement::NotJudged | Judgement::NotCompared => {
                unreachable!("{better:?} is a direction")
            }
        };
        counts[place] += 1;
    }
    counts.map(|count| f64::from(count) / PAIRS as f64)
}

fn run(value: f64) -> Estimate {
    Estimate { value, interval: None, n: 1_000, effective_n: None, certified: true }
}

const THROUGHPUT: Truth =
    Truth { quantity: "output_throughput", noise: Noise::Even(0.02), ratio: 1.0, in_pairs: false };
const TAIL: Truth =
    Truth { quantity: "ttft.p99", noise: Noise::Skewed(0.08), ratio: 1.0, in_pairs: false };

#[test]
fn identical_servers_are_seldom_called_worse() {
    for truth in [THROUGHPUT, TAIL] {
        for in_pairs in [false, true] {
            let [better, worse, ..] = shares(Truth { in_pairs, ..truth });
            // A fortieth is what the interval allows on each side.
            assert!(worse <= 0.035, "{truth:?}, in pairs: {in_pairs}: {worse}");
            assert!(better + worse <= 0.06, "{truth:?}, in pairs: {in_pairs}: {better} {worse}");
        }
    }
}

#[test]
fn a_difference_of_five_per_cent_is_found_with_five_runs_a_side() {
    for (ratio, in_pairs, least) in
        [(0.95, false, 0.9), (1.05, false, 0.9), (0.95, true, 0.8), (1.05, true, 0.8)]
    {
        let [better, worse, ..] = shares(Truth { ratio, in_pairs, ..THROUGHPUT });
        let (found, mistaken) = if ratio < 1.0 { (worse, better) } else { (better, worse) };
        assert!(least <= found, "{ratio}, in pairs: {in_pairs}: found in {found}");
        assert!(mistaken <= 0.001, "{ratio}: {mistaken} the wrong way round");
    }
}

#[test]
fn a_tail_that_is_a_fifth_slower_is_found_too() {
    let [better, worse, ..] = shares(Truth { ratio: 1.2, ..TAIL });
    assert!(0.8 <= worse && better <= 0.001, "worse {worse}, better {better}");
}

#[test]
fn quiet_identical_servers_are_called_the_same() {
    let [_, _, same, _] = shares(Truth { noise: Noise::Even(0.004), ..THROUGHPUT });
    assert!(0.95 <= same, "{same}");
}
