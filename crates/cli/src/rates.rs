//! Rates as people type them: `20`, `inf`, and ramps such as `2..20:60s,20..5:30s`.

use inferometer_model::spec::RampSegment;

use crate::duration;

/// Requests per second; infinite when everything may leave at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PerSecond(pub(crate) f64);

/// Segments of a ramp, in their order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ramp(pub(crate) Vec<RampSegment>);

pub(crate) fn parse(text: &str) -> Result<f64, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "inf" | "unlimited" => Ok(f64::INFINITY),
        number => number.parse().map_err(|_| {
            format!("`{text}` is not a rate; write requests per second, such as 20 or 0.5, or inf")
        }),
    }
}

pub(crate) fn parse_ramp(text: &str) -> Result<Ramp, String> {
    text.split(',').map(segment).collect::<Result<_, _>>().map(Ramp)
}

fn segment(text: &str) -> Result<RampSegment, String> {
    let wanted = || {
        format!(
            "`{text}` is not a segment of a ramp; write FROM..TO:TIME in requests per second, such \
             as 2..20:60s, and more segments after commas"
        )
    };
    let (rates, time) = text.split_once(':').ok_or_else(wanted)?;
    let (from, to) = rates.split_once("..").ok_or_else(wanted)?;
    let rate = |number: &str| number.trim().parse::<f64>().map_err(|_| wanted());
    let over = duration::parse(time.trim())?;
    Ok(RampSegment { from_per_s: rate(from)?, to_per_s: rate(to)?, over })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn rates_are_numbers_or_unlimited() {
        assert_eq!(parse("20"), Ok(20.0));
        assert_eq!(parse("0.5"), Ok(0.5));
        for unlimited in ["inf", "INF", "unlimited"] {
            assert_eq!(parse(unlimited), Ok(f64::INFINITY));
        }
        for wrong in ["", "fast", "1,5", "3/s"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ramps_are_segments_after_commas() {
        let segment = |from_per_s, to_per_s, seconds| RampSegment {
            from_per_s,
            to_per_s,
            over: Duration::from_secs(seconds),
        };
        assert_eq!(parse_ramp("2..20:60s"), Ok(Ramp(vec![segment(2.0, 20.0, 60)])));
        assert_eq!(
            parse_ramp("0.5..20:1m, 20..5:30s"),
            Ok(Ramp(vec![segment(0.5, 20.0, 60), segment(20.0, 5.0, 30)]))
        );
        for wrong in ["", "2..20", "2:60s", "2..:60s", "2..20:60", "2..20:60s,", "a..b:1s"] {
            assert!(parse_ramp(wrong).is_err(), "{wrong}");
        }
    }
}
