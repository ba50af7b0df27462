//! Means, bounds and frequencies of what is drawn, against what the distributions promise.

use proptest::prelude::*;

use super::*;

const DRAWS: u64 = 100_000;

fn draws(lengths: &str) -> Vec<u32> {
    let draw = Draw::new(&lengths.parse().unwrap());
    let mut stream = Stream::new(11, "test", 0);
    (0..DRAWS).map(|_| draw.draw(&mut stream)).collect()
}

fn mean(draws: &[u32]) -> f64 {
    draws.iter().map(|draw| f64::from(*draw)).sum::<f64>() / draws.len() as f64
}

fn share_of(draws: &[u32], is: impl Fn(u32) -> bool) -> f64 {
    draws.iter().filter(|draw| is(**draw)).count() as f64 / draws.len() as f64
}

/// Five standard errors of a share among so many draws.
fn doubt(share: f64) -> f64 {
    5.0 * libm::sqrt(share * (1.0 - share) / DRAWS as f64)
}

#[test]
fn uniform_lengths_reach_both_ends_equally_often() {
    let drawn = draws("uniform:3..6");
    for length in 3..=6 {
        assert!((share_of(&drawn, |draw| draw == length) - 0.25).abs() < doubt(0.25));
    }
    assert!(drawn.iter().all(|draw| (3..=6).contains(draw)));
}

#[test]
fn a_range_around_a_mean_is_rounded_outwards() {
    let drawn = draws("512±20%");
    assert_eq!(drawn.iter().min(), Some(&409));
    assert_eq!(drawn.iter().max(), Some(&615));
    assert!((mean(&drawn) - 512.0).abs() < 1.0);
    assert_eq!(draws("1±99%").into_iter().min(), Some(1), "never nothing");
}

#[test]
fn normal_lengths_have_their_mean_and_deviation_and_are_cut_off() {
    let drawn = draws("normal:512,128");
    assert!((mean(&drawn) - 512.0).abs() < 2.0);
    assert!((share_of(&drawn, |draw| draw <= 384) - 0.160).abs() < 0.008);
    assert!((share_of(&drawn, |draw| draw < 768) - 0.977).abs() < 0.004);
    let wide = draws("normal:5,1000");
    assert!((share_of(&wide, |draw| draw == 1) - 0.4986).abs() < 0.01);
    assert!(draws("normal:16000000,16000000").iter().all(|draw| *draw <= 16_000_000));
}

#[test]
fn log_normal_lengths_have_their_median_and_mean() {
    let drawn = draws("lognormal:512,0.8");
    assert!((share_of(&drawn, |draw| draw <= 512) - 0.5).abs() < 0.01);
    let expected = 512.0 * libm::exp(0.32);
    assert!((mean(&drawn) / expected - 1.0).abs() < 0.02);
}

#[test]
fn a_histogram_is_drawn_by_its_weights() {
    let drawn = draws("histogram:128=3,64=0,512=1,9=0");
    assert!((share_of(&drawn, |draw| draw == 128) - 0.75).abs() < doubt(0.75));
    assert!((share_of(&drawn, |draw| draw == 512) - 0.25).abs() < doubt(0.25));
}

#[test]
fn zipf_ranks_have_their_weights() {
    let drawn = draws("zipf:1,10..13");
    let all = 1.0 + 1.0 / 2.0 + 1.0 / 3.0 + 1.0 / 4.0;
    for (rank, length) in (1..).zip(10..=13) {
        let expected = 1.0 / f64::from(rank) / all;
        assert!((share_of(&drawn, |draw| draw == length) - expected).abs() < doubt(expected));
    }
}

#[test]
fn the_tail_of_many_ranks_has_its_weight() {
    for exponent in [0.0, 0.7, 1.0, 1.1] {
        let count = 1_000_000;
        let weights: Vec<f64> =
            (1..=count).map(|rank| libm::pow(f64::from(rank), -exponent)).collect();
        let all: f64 = weights.iter().sum();
        let zipf = Zipf::new(count, exponent);
        let mut stream = Stream::new(5, "zipf", 0);
        let drawn: Vec<u32> = (0..DRAWS).map(|_| zipf.draw(&mut stream)).collect();
        for end in [1, 1000, 65_536, 65_537, 300_000, 999_999] {
            let expected = weights[..end].iter().sum::<f64>() / all;
            let found = share_of(&drawn, |draw| (draw as usize) < end);
            assert!((found - expected).abs() <= doubt(expected) + 1e-9, "{exponent} {end}");
        }
        assert!(drawn.iter().all(|draw| *draw < count));
    }
}

#[test]
fn quantiles_of_the_normal_distribution_are_exact() {
    // Published values.
    for (share, quantile) in [
        (0.5, 0.0),
        (0.975, 1.959_963_984_540_054),
        (0.001, -3.090_232_306_167_813_5),
        (1e-10, -6.361_340_902_404_056),
    ] {
        assert!((normal_quantile(share) - quantile).abs() < 1e-12, "{share}");
    }
}

proptest! {
    #[test]
    fn a_draw_stays_inside_its_bounds_and_takes_one_number(
        seed: u64, low in 1_u32..1000, more in 0_u32..100_000, exponent in 0.0..10.0_f64,
    ) {
        let high = low + more;
        for lengths in [
            Lengths::Uniform { low, high },
            Lengths::Zipf { exponent, low, high },
        ] {
            let mut stream = Stream::new(seed, "bounds", 0);
            let drawn = Draw::new(&lengths).draw(&mut stream);
            prop_assert!((low..=high).contains(&drawn));
            let mut twin = Stream::new(seed, "bounds", 0);
            twin.bits();
            prop_assert_eq!(stream.bits(), twin.bits());
        }
    }
}
