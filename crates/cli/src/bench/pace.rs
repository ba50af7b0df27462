//! When the other client sends: its flags of load as ours.

use std::time::Duration;

use inferometer_model::spec::{ArrivalsKind, LoadTable, PerSecond, Ramp, RampCurve, RampSegment};

use crate::arguments::{RampStrategy, ServeLoadArguments};
use crate::failure::Failure;

/// Requests that are sent where nobody says how many.
const REQUESTS: u64 = 1_000;
/// Pieces of a ramp whose rate grows by the same factor with each request: that is no curve over
/// time of ours, but is one closely enough in so many pieces.
const PIECES: u32 = 16;

/// `recorded` is whether the data brings moments of its own.
pub(super) fn table(said: &ServeLoadArguments, recorded: bool) -> Result<LoadTable, Failure> {
    check(said)?;
    let requests = requests(said)?;
    let load = LoadTable {
        requests: Some(requests),
        warm_up: said.num_warmups.filter(|requests| 0 < *requests),
        ..LoadTable::default()
    };
    let cap = said.max_concurrency;
    if recorded {
        return Ok(LoadTable { max_concurrency: cap, ..load });
    }
    let rate = said.request_rate.unwrap_or(f64::INFINITY);
    let load = match said.ramp_up_strategy {
        Some(strategy) => ramped(said, strategy, requests, load)?,
        // So many in flight until all are sent is a closed loop.
        None if rate.is_infinite() && cap.is_some() => {
            return Ok(LoadTable { concurrency: cap, ..load });
        }
        None => LoadTable { rate: Some(PerSecond(rate)), ..load },
    };
    let load = LoadTable { max_concurrency: cap, ..load };
    if said.ramp_up_strategy.is_none() && rate.is_infinite() {
        return Ok(load);
    }
    let burstiness = said.burstiness.unwrap_or(1.0);
    // Its schedules end at the number of requests over the rate; its ramps are not stretched.
    if said.ramp_up_strategy.is_none() && burstiness.is_finite() {
        let arrivals = Some(ArrivalsKind::Stretched);
        return Ok(LoadTable { arrivals, burstiness: Some(burstiness), ..load });
    }
    Ok(spaced(burstiness, load))
}

/// The number of requests that will be sent.
pub(super) fn requests(said: &ServeLoadArguments) -> Result<u64, Failure> {
    match said.num_prompts.map(u64::try_from) {
        None => Ok(REQUESTS),
        Some(Ok(requests)) if 0 < requests => Ok(requests),
        Some(_) => Err(Failure::usage("--num-prompts must be above 0")
            .hint("to send all of a file, give the number of its lines")),
    }
}

fn check(said: &ServeLoadArguments) -> Result<(), Failure> {
    if said.probe_request_rate.is_some_and(|rate| rate != 0.0) {
        return Err(Failure::usage(
            "--probe-request-rate cannot be honoured: probes that wait for each other, and for the \
             load's connections, do not show what a user beside the load would see",
        )
        .hint(
            "measure beside it with a second run: inferometer run URL --rate 1 --prompt Hi \
             --output-tokens 1",
        ));
    }
    if said.max_concurrency == Some(0) {
        return Err(Failure::usage("--max-concurrency must be above 0"));
    }
    let rates = [said.request_rate, said.burstiness];
    if rates.into_iter().flatten().any(|value| value.is_nan() || value <= 0.0) {
        return Err(Failure::usage("--request-rate and --burstiness must be above 0"));
    }
    let ends = [said.ramp_up_start_rps, said.ramp_up_end_rps];
    if said.ramp_up_strategy.is_none() && ends.iter().any(Option::is_some) {
        return Err(Failure::usage("a ramp needs --ramp-up-strategy: linear or exponential"));
    }
    Ok(())
}

fn spaced(burstiness: f64, load: LoadTable) -> LoadTable {
    let (arrivals, burstiness) = if burstiness.is_infinite() {
        (ArrivalsKind::Constant, None)
    } else if (burstiness - 1.0).abs() < f64::EPSILON {
        (ArrivalsKind::Poisson, None)
    } else {
        (ArrivalsKind::Gamma, Some(burstiness))
    };
    LoadTable { arrivals: Some(arrivals), burstiness, ..load }
}

/// Its ramps go by the number of the request, ours by time.
fn ramped(
    said: &ServeLoadArguments,
    strategy: RampStrategy,
    requests: u64,
    load: LoadTable,
) -> Result<LoadTable, Failure> {
    if said.request_rate.is_some_and(f64::is_finite) {
        return Err(Failure::usage("--ramp-up-strategy sets the rate; leave --request-rate out"));
    }
    let (Some(from), Some(to)) = (said.ramp_up_start_rps, said.ramp_up_end_rps) else {
        return Err(Failure::usage(
            "--ramp-up-strategy needs --ramp-up-start-rps and --ramp-up-end-rps",
        ));
    };
    if from <= 0 || to < from {
        return Err(Failure::usage(format!(
            "a ramp from {from} to {to} requests per second: the first must be above 0, and the \
             last no less"
        ))
        .hint("from 0 no request would ever leave; begin with 1"));
    }
    let (from, to) = (from as f64, to as f64);
    if from.total_cmp(&to).is_eq() {
        return Ok(LoadTable { rate: Some(PerSecond(from)), ..load });
    }
    let pieces = match strategy {
        // A rate that grows with each request by the same amount grows in time by the same factor.
        RampStrategy::Linear => 1,
        RampStrategy::Exponential => PIECES,
    };
    let growth = libm::log(to / from) / f64::from(pieces);
    let rate_at = |piece: u32| from * libm::exp(growth * f64::from(piece));
    let each = requests as f64 / f64::from(pieces);
    let segments = (0..pieces).map(|piece| {
        let (from_per_s, to_per_s) = (rate_at(piece), rate_at(piece + 1));
        let seconds = each * growth / (to_per_s - from_per_s);
        let over = Duration::try_from_secs_f64(seconds).map_err(|_| {
            Failure::usage(format!(
                "a ramp from {from} to {to} requests per second cannot be told from a steady rate"
            ))
            .hint("use --request-rate, or ends that lie further apart")
        })?;
        Ok(RampSegment { from_per_s, to_per_s, over })
    });
    let segments = segments.collect::<Result<_, Failure>>()?;
    Ok(LoadTable { ramp: Some(Ramp(segments)), ramp_curve: Some(RampCurve::Exponential), ..load })
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use inferometer_model::spec::Rate;

    use super::*;

    #[derive(Parser)]
    #[command(allow_negative_numbers = true)]
    struct Typed {
        #[command(flatten)]
        load: ServeLoadArguments,
    }

    fn load(typed: &str) -> Result<LoadTable, String> {
        let words = std::iter::once("bench").chain(typed.split_whitespace());
        let said = Typed::try_parse_from(words).unwrap().load;
        table(&said, false).map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn an_unlimited_rate_with_a_cap_is_a_closed_loop() {
        let capped = load("--max-concurrency 8 --num-prompts 20").unwrap();
        assert_eq!((capped.concurrency, capped.requests), (Some(8), Some(20)));
        assert!(capped.rate.is_none() && capped.max_concurrency.is_none());
        let all_at_once = load("").unwrap();
        assert_eq!(all_at_once.rate.unwrap(), PerSecond(f64::INFINITY));
        assert_eq!(all_at_once.requests, Some(1000));
        assert!(all_at_once.arrivals.is_none(), "there are no gaps to shape");
    }

    #[test]
    fn burstiness_names_the_gaps() {
        let kind = |typed: &str| load(typed).unwrap().arrivals.unwrap();
        assert_eq!(kind("--request-rate 5"), ArrivalsKind::Stretched);
        assert_eq!(kind("--request-rate 5 --burstiness inf"), ArrivalsKind::Constant);
        let bursty = load("--request-rate 5 --burstiness 0.5 --max-concurrency 9").unwrap();
        assert_eq!((bursty.burstiness, bursty.max_concurrency), (Some(0.5), Some(9)));
        let ramp = "--ramp-up-strategy linear --ramp-up-start-rps 5 --ramp-up-end-rps";
        assert_eq!(kind(&format!("{ramp} 9")), ArrivalsKind::Poisson);
        assert_eq!(kind(&format!("{ramp} 5")), ArrivalsKind::Poisson, "a flat one is one, too");
    }

    #[test]
    fn a_ramp_sends_all_its_requests_by_its_end() {
        for strategy in ["linear", "exponential"] {
            let typed = format!(
                "--ramp-up-strategy {strategy} --ramp-up-start-rps 2 --ramp-up-end-rps 20 \
                 --num-prompts 300"
            );
            let segments = load(&typed).unwrap().ramp.unwrap().0;
            let over = segments.iter().map(|segment| segment.over).sum();
            let rate = Rate::Ramp { segments, curve: RampCurve::Exponential };
            let expected = rate.expected_within(over);
            assert!((expected - 300.0).abs() < 1e-3, "{strategy}: {expected}");
            assert!((rate.per_s_in_the_end() - 20.0).abs() < 1e-9);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(load("--num-prompts 0").unwrap_err().contains("--num-prompts"));
        assert!(load("--num-prompts -1").unwrap_err().contains("--num-prompts"));
        assert!(load("--probe-request-rate 5").unwrap_err().contains("second run"));
        assert!(load("--probe-request-rate 0").is_ok());
        assert!(load("--request-rate 0").is_err() && load("--max-concurrency 0").is_err());
        assert!(load("--ramp-up-start-rps 3").unwrap_err().contains("--ramp-up-strategy"));
        let ramp = "--ramp-up-strategy linear --ramp-up-start-rps 0 --ramp-up-end-rps 5";
        assert!(load(ramp).unwrap_err().contains("begin with 1"));
        let flat = "--ramp-up-strategy exponential --ramp-up-start-rps 1000000000000000 \
                    --ramp-up-end-rps 1000000000000001";
        assert!(load(flat).unwrap_err().contains("--request-rate"));
    }
}
