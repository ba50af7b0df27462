//! Which unit a number of a page has, which direction is good news, and how it is printed.

use inferometer_analysis::{Better, Metric, Unit};

use crate::fmt::{decimals, number, percent, whole};
use crate::narrative::FactUnit;

/// Numbers of a page that are no metric of the table of metrics.
const OTHERS: &[(&str, FactUnit, Better)] = &[
    ("input_tokens", FactUnit::Tokens, Better::Neither),
    ("output_tokens", FactUnit::Tokens, Better::Neither),
    ("requests", FactUnit::Requests, Better::Neither),
    ("attempted_requests", FactUnit::Requests, Better::Neither),
    ("failed_requests", FactUnit::Requests, Better::Lower),
    ("certified_from", FactUnit::Requests, Better::Neither),
    ("concurrency", FactUnit::Number, Better::Neither),
    ("asked_rate", FactUnit::RequestsPerSecond, Better::Neither),
    ("served_share", FactUnit::Share, Better::Higher),
    ("runs", FactUnit::Number, Better::Neither),
    ("scenarios", FactUnit::Number, Better::Neither),
    ("levels", FactUnit::Number, Better::Neither),
    ("readings", FactUnit::Number, Better::Neither),
    ("degraded", FactUnit::Number, Better::Lower),
    ("invalid", FactUnit::Number, Better::Lower),
    ("gpus", FactUnit::Number, Better::Neither),
    ("cached_share", FactUnit::Share, Better::Neither),
    ("kv_usage", FactUnit::Share, Better::Lower),
    ("running", FactUnit::Requests, Better::Neither),
    ("waiting", FactUnit::Requests, Better::Lower),
    ("preemptions", FactUnit::Number, Better::Lower),
    ("throughput_gain", FactUnit::Share, Better::Higher),
    ("throughput_loss", FactUnit::Share, Better::Lower),
    ("per_user_loss", FactUnit::Share, Better::Lower),
    ("throughput_times", FactUnit::Number, Better::Higher),
    ("tpot_times", FactUnit::Number, Better::Lower),
    ("share_of_peak", FactUnit::Share, Better::Higher),
    ("ttft_tail", FactUnit::Number, Better::Lower),
    ("ttft_skew", FactUnit::Number, Better::Lower),
    ("ttft_spread", FactUnit::Share, Better::Lower),
    ("tpot_tail", FactUnit::Number, Better::Lower),
    ("tpot_spread", FactUnit::Share, Better::Lower),
    ("itl_tail", FactUnit::Number, Better::Lower),
    ("itl_max_times", FactUnit::Number, Better::Lower),
    ("peak_times", FactUnit::Number, Better::Neither),
    ("pp_times", FactUnit::Number, Better::Neither),
    ("sweet_spot_same", FactUnit::Share, Better::Higher),
    ("half_width", FactUnit::Share, Better::Lower),
];

/// A plain number for a name that nobody knows.
pub fn unit_of(quantity: &str) -> (FactUnit, Better) {
    if let Some(metric) = Metric::named(quantity) {
        return (of_metric(metric.unit), metric.better);
    }
    let other = OTHERS.iter().find(|(name, _, _)| *name == quantity);
    other.map_or((FactUnit::Number, Better::Neither), |(_, unit, better)| (*unit, *better))
}

const fn of_metric(unit: Unit) -> FactUnit {
    match unit {
        Unit::Milliseconds => FactUnit::Milliseconds,
        Unit::RequestsPerSecond => FactUnit::RequestsPerSecond,
        Unit::TokensPerSecond => FactUnit::TokensPerSecond,
        Unit::Requests => FactUnit::Requests,
        Unit::Share => FactUnit::Share,
        Unit::Watts => FactUnit::Watts,
        Unit::JoulesPerToken => FactUnit::JoulesPerToken,
        Unit::TokensPerJoule => FactUnit::TokensPerJoule,
    }
}

/// A number as tables and sentences have it, without its unit (a share has its sign of per cent).
pub fn printed(quantity: &str, value: f64) -> String {
    let is_ratio = ["_tail", "_skew", "_times"].iter().any(|end| quantity.ends_with(end));
    match unit_of(quantity).0 {
        FactUnit::Share => percent(value),
        // A second decimal of a ratio would promise too much.
        FactUnit::Number if is_ratio => decimals(value, 1),
        FactUnit::Requests if quantity == "concurrency_mean" => number(value),
        FactUnit::Tokens | FactUnit::Requests | FactUnit::Number => whole(value),
        FactUnit::Milliseconds
        | FactUnit::Seconds
        | FactUnit::TokensPerSecond
        | FactUnit::RequestsPerSecond
        | FactUnit::Watts
        | FactUnit::JoulesPerToken
        | FactUnit::TokensPerJoule => number(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_decimals_of_their_columns() {
        for (quantity, value, text) in [
            ("ttft", 1_082.2, "1,082"),
            ("ttft_tail", 3.456, "3.5"),
            ("tpot", 17.76, "17.76"),
            ("output_throughput", 387.1, "387.1"),
            ("per_user_throughput", 41.992_5, "41.99"),
            ("pp", 1_892.44, "1,892"),
            ("tg", 54.88, "54.88"),
            ("input_tokens", 16_384.0, "16,384"),
            ("concurrency", 4.0, "4"),
            ("kv_usage", 0.995, "99.5 %"),
            ("gpu_power", 412.345, "412.3"),
            ("energy_per_output_token", 0.123_45, "0.123"),
            ("throughput_gain", 0.006_13, "0.6 %"),
        ] {
            assert_eq!(printed(quantity, value), text, "{quantity}");
        }
    }

    #[test]
    fn a_name_is_known_once() {
        for (place, (name, _, _)) in OTHERS.iter().enumerate() {
            assert!(Metric::named(name).is_none(), "{name} is a metric");
            assert!(!OTHERS[..place].iter().any(|(other, _, _)| other == name), "{name}");
        }
    }
}
