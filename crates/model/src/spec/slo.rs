//! SLOs of a service: `ttft<500ms` of each request, `ttft.p99<500ms` of the whole run.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One SLO. Written as text, in files too.
#[derive(Clone, Debug)]
pub struct Slo {
    /// As it was typed, without blanks: who wrote `<=1s` reads `<=1s` on every page.
    text: String,
    /// The name of a metric, such as `ttft`.
    pub metric: String,
    /// `p99`, `mean` and the like: an SLO of the run. `None` is an SLO of each request.
    pub statistic: Option<String>,
    pub relation: Relation,
    pub limit: Limit,
}

/// SLOs that mean the same are equal, however they are written.
impl PartialEq for Slo {
    fn eq(&self, other: &Self) -> bool {
        self.metric == other.metric
            && self.statistic == other.statistic
            && self.relation == other.relation
            && self.limit == other.limit
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Relation {
    #[serde(rename = "at_most")]
    Below,
    #[serde(rename = "at_least")]
    Above,
}

/// A number with the unit that it was typed with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    Milliseconds(f64),
    /// From 0 to 1, typed as per cent.
    Share(f64),
    Plain(f64),
}

impl std::str::FromStr for Slo {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let slo = parse(text).ok_or_else(|| {
            format!("`{text}` is not a limit on a metric; write ttft<500ms, ttft.p99<500ms or error_rate<1%")
        })?;
        match slo.limit {
            Limit::Share(share) if 1.0 < share => {
                Err(format!("`{text}`: no share is above 100%, so every run or none would meet it"))
            }
            Limit::Share(_) | Limit::Milliseconds(_) | Limit::Plain(_) => Ok(slo),
        }
    }
}

fn parse(text: &str) -> Option<Slo> {
    let sign = text.find(['<', '>'])?;
    let relation = if text[sign..].starts_with('<') { Relation::Below } else { Relation::Above };
    let (name, limit) = (text[..sign].trim(), text[sign + 1..].trim_start_matches('='));
    let (metric, statistic) = match name.split_once('.') {
        Some((metric, statistic)) => (metric, Some(statistic.to_owned())),
        None => (name, None),
    };
    let is_name = |name: &str, also: u8| {
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || byte == also;
        !name.is_empty() && name.bytes().all(is_known)
    };
    let is_statistic = statistic.as_deref().is_none_or(|statistic| is_name(statistic, b'.'));
    (is_name(metric, b'_') && is_statistic).then_some(())?;
    Some(Slo {
        text: text.split_whitespace().collect(),
        metric: metric.to_owned(),
        statistic,
        relation,
        limit: parse_limit(limit.trim())?,
    })
}

fn parse_limit(text: &str) -> Option<Limit> {
    // An exponent belongs to the number: 1e9.
    let is_number = |(place, c): &(usize, char)| {
        c.is_ascii_digit()
            || *c == '.'
            || *c == 'e' && text[place + 1..].starts_with(|d: char| d.is_ascii_digit())
    };
    let unit_at = text.char_indices().find(|c| !is_number(c)).map_or(text.len(), |(at, _)| at);
    let (number, unit) = text.split_at(unit_at);
    let number: f64 = number.parse().ok().filter(|number: &f64| number.is_finite())?;
    Some(match unit.trim() {
        "us" | "µs" => Limit::Milliseconds(number / 1e3),
        "ms" => Limit::Milliseconds(number),
        "s" => Limit::Milliseconds(number * 1e3),
        "%" => Limit::Share(number / 100.0),
        "" => Limit::Plain(number),
        _ => return None,
    })
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

stored_as_text!(Slo);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises_are_read_and_written_alike() {
        for text in ["ttft<500ms", "ttft.p99<500ms", "output_throughput>1000", "error_rate<1.5%"] {
            assert_eq!(text.parse::<Slo>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_promise_is_echoed_as_it_was_typed_and_means_the_same() {
        for (typed, echoed, other) in [
            ("x>1e3", "x>1e3", "x>1000"),
            ("attainment>=95%", "attainment>=95%", "attainment>95%"),
            ("e2e.p99.9 <= 2 s", "e2e.p99.9<=2s", "e2e.p99.9<2000ms"),
        ] {
            let slo: Slo = typed.parse().unwrap();
            assert_eq!((slo.to_string().as_str(), &slo), (echoed, &other.parse().unwrap()));
            assert_eq!(serde_json::to_value(&slo).unwrap(), echoed);
            assert_eq!(serde_json::from_value::<Slo>(echoed.into()).unwrap(), slo);
        }
        assert_ne!("ttft<1s".parse::<Slo>(), "ttft<2s".parse());
    }

    #[test]
    fn no_share_is_above_one() {
        let refused = "error_rate<500%".parse::<Slo>().unwrap_err();
        assert!(refused.contains("no share is above 100%"), "{refused}");
        assert!("error_rate<100%".parse::<Slo>().is_ok());
    }

    #[test]
    fn what_is_no_promise_is_refused() {
        for text in ["", "ttft", "ttft<", "<5ms", "ttft<5min", "a b<5ms", "ttft<5ms<6ms", "x<inf"] {
            assert!(text.parse::<Slo>().is_err(), "{text}");
        }
    }
}
