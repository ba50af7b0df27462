//! How long prompts or answers are: one number, or a distribution to draw from.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::text::{Grammar, count, read_any};
use super::workload::TOKENS_MAX;
use crate::whole::to_u32;

/// A distribution of whole numbers from 1 on. Written as text: `512`, `512±20%` (or `512+-20%`),
/// `uniform:256..1024`, `normal:512,128`, `lognormal:512,0.8`, `zipf:1.2,16..4096`,
/// `histogram:128=3,512=1`.
#[derive(Clone, Debug, PartialEq)]
pub enum Lengths {
    /// Always this length.
    Fixed(u32),
    /// Uniform between `mean` minus and plus this share of it, rounded outwards.
    Around { mean: u32, share: f64 },
    /// Uniform, both ends included.
    Uniform { low: u32, high: u32 },
    /// Cut off below 1 and above the bound.
    Normal { mean: f64, deviation: f64 },
    /// By its median and the deviation of its logarithm.
    LogNormal { median: f64, sigma: f64 },
    /// `low` is the most likely, then `low + 1`, and so on: the k-th with weight `k^-exponent`.
    Zipf { exponent: f64, low: u32, high: u32 },
    /// Lengths and their weights.
    Histogram(Vec<(u32, f64)>),
}

impl Lengths {
    /// The one length, where there is only one.
    pub fn fixed(&self) -> Option<u32> {
        if let Self::Fixed(length) = self { Some(*length) } else { None }
    }

    /// The shortest that can be drawn.
    pub fn least(&self) -> u32 {
        self.ends().0
    }

    /// The longest length that is set; of distributions without an end, their middle.
    pub fn most(&self) -> u32 {
        self.ends().1
    }

    fn ends(&self) -> (u32, u32) {
        match self {
            Self::Fixed(length) => (*length, *length),
            Self::Around { mean, share } => {
                let mean = f64::from(*mean);
                (whole((mean * (1.0 - share)).floor()), whole((mean * (1.0 + share)).ceil()))
            }
            Self::Uniform { low, high } | Self::Zipf { low, high, .. } => (*low, *high),
            Self::Normal { mean: middle, deviation: spread }
            | Self::LogNormal { median: middle, sigma: spread } => {
                let middle = whole(middle.round());
                (if *spread == 0.0 { middle } else { 1 }, middle)
            }
            Self::Histogram(bars) => {
                let lengths = bars.iter().map(|bar| bar.0);
                (lengths.clone().min().unwrap_or(1), lengths.max().unwrap_or(1))
            }
        }
    }

    /// Why it is refused: the reason, or `None` where a length is out of bounds.
    fn check(&self) -> Result<(), Option<&'static str>> {
        let refuse = |is_wrong: bool, why| if is_wrong { Err(Some(why)) } else { Ok(()) };
        let in_bounds = |length: &u32| (1..=TOKENS_MAX).contains(length);
        let most = f64::from(TOKENS_MAX);
        let fits = match self {
            Self::Fixed(length) => in_bounds(length),
            Self::Around { mean, share } => {
                let is_share = (0.0..1.0).contains(share);
                refuse(!is_share, "the share must be from 0 % to below 100 %")?;
                in_bounds(mean) && f64::from(*mean) * (1.0 + share) <= most
            }
            Self::Uniform { low, high } | Self::Zipf { low, high, .. } => {
                refuse(high < low, "the lower end must come first")?;
                if let Self::Zipf { exponent, .. } = self {
                    let is_exponent = (0.0..=10.0).contains(exponent);
                    refuse(!is_exponent, "the exponent must be from 0 to 10")?;
                }
                in_bounds(low) && in_bounds(high)
            }
            Self::Normal { mean, deviation } => {
                let is_deviation = (0.0..=most).contains(deviation);
                refuse(!is_deviation, "the deviation must not be negative")?;
                (1.0..=most).contains(mean)
            }
            Self::LogNormal { median, sigma } => {
                refuse(!(0.0..=5.0).contains(sigma), "sigma must be from 0 to 5")?;
                (1.0..=most).contains(median)
            }
            Self::Histogram(bars) => {
                let mut weights = bars.iter().map(|bar| bar.1);
                let sum: f64 = weights.clone().sum();
                let are_weights = weights.all(|weight| weight.is_finite() && 0.0 <= weight);
                let why = "weights must be numbers, none negative and not all zero";
                refuse(!are_weights || sum == 0.0, why)?;
                let is_endless = !sum.is_finite();
                refuse(is_endless, "the weights add up to more than a number can hold")?;
                bars.iter().all(|bar| in_bounds(&bar.0))
            }
        };
        if fits { Ok(()) } else { Err(None) }
    }
}

fn whole(number: f64) -> u32 {
    to_u32(number.max(1.0))
}

impl From<u32> for Lengths {
    fn from(length: u32) -> Self {
        Self::Fixed(length)
    }
}

impl FromStr for Lengths {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lengths = parse(text.trim()).ok_or_else(|| {
            format!(
                "`{text}` is not a length: write a number, 512±20%, uniform:256..1024, \
                 normal:512,128, lognormal:512,0.8, zipf:1.2,16..4096 or histogram:128=3,512=1"
            )
        })?;
        match lengths.check() {
            Ok(()) => Ok(lengths),
            Err(Some(why)) => Err(format!("`{text}`: {why}")),
            Err(None) => Err(format!("`{text}`: a length must be from 1 to {TOKENS_MAX}")),
        }
    }
}

fn parse(text: &str) -> Option<Lengths> {
    if let Some((name, rest)) = text.split_once(':') {
        return match name {
            "uniform" => pair(rest, "..").map(|(low, high)| Lengths::Uniform { low, high }),
            "normal" => {
                pair(rest, ",").map(|(mean, deviation)| Lengths::Normal { mean, deviation })
            }
            "lognormal" => {
                pair(rest, ",").map(|(median, sigma)| Lengths::LogNormal { median, sigma })
            }
            "zipf" => {
                let (exponent, ends) = rest.split_once(',')?;
                let (low, high) = pair(ends, "..")?;
                Some(Lengths::Zipf { exponent: exponent.trim().parse().ok()?, low, high })
            }
            "histogram" => {
                let bars = rest.split(',').map(|bar| pair(bar, "="));
                bars.collect::<Option<_>>().map(Lengths::Histogram)
            }
            _ => None,
        };
    }
    if let Some((mean, share)) = text.split_once('±').or_else(|| text.split_once("+-")) {
        let per_cent: f64 = share.trim().strip_suffix('%')?.trim().parse().ok()?;
        let share = as_written(per_cent) / 100.0;
        return Some(Lengths::Around { mean: count(mean).ok()?, share });
    }
    count(text).ok().map(Lengths::Fixed)
}

fn pair<A: FromStr, B: FromStr>(text: &str, separator: &str) -> Option<(A, B)> {
    let (first, second) = text.split_once(separator)?;
    Some((first.trim().parse().ok()?, second.trim().parse().ok()?))
}

/// Per cent with twelve digits: what was typed comes back as it was.
fn as_written(per_cent: f64) -> f64 {
    (per_cent * 1e10).round() / 1e10
}

impl fmt::Display for Lengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(length) => write!(f, "{length}"),
            Self::Around { mean, share } => {
                write!(f, "{mean}±{}%", as_written(share * 100.0))
            }
            Self::Uniform { low, high } => write!(f, "uniform:{low}..{high}"),
            Self::Normal { mean, deviation } => write!(f, "normal:{mean},{deviation}"),
            Self::LogNormal { median, sigma } => write!(f, "lognormal:{median},{sigma}"),
            Self::Zipf { exponent, low, high } => write!(f, "zipf:{exponent},{low}..{high}"),
            Self::Histogram(bars) => {
                let bars = bars.iter().map(|(length, weight)| format!("{length}={weight}"));
                write!(f, "histogram:{}", bars.collect::<Vec<_>>().join(","))
            }
        }
    }
}

impl Grammar for Lengths {
    const SCHEMA: &'static str = "lengths";

    fn read(text: &str) -> Result<Self, String> {
        text.parse()
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

/// In files one length is a number, and a distribution is text.
impl Serialize for Lengths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.fixed() {
            Some(length) => serializer.serialize_u32(length),
            None => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Lengths {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_any(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_and_written_alike() {
        for text in [
            "512",
            "512±20%",
            "512±12.5%",
            "uniform:256..1024",
            "normal:512,128",
            "lognormal:512,0.8",
            "zipf:1.2,16..4096",
            "histogram:128=3,512=1.5",
        ] {
            assert_eq!(text.parse::<Lengths>().unwrap().to_string(), text);
        }
        let plus_minus: Lengths = "512+-20%".parse().unwrap();
        assert_eq!(plus_minus.to_string(), "512±20%");
        // A share of more digits than are written is the share that is written.
        for text in ["512±33.333333333333336%", "512±1e-320%"] {
            let read: Lengths = text.parse().unwrap();
            assert_eq!(read.to_string().parse(), Ok(read));
        }
    }

    #[test]
    fn nonsense_is_refused_with_the_reason() {
        let refused = |text: &str| text.parse::<Lengths>().unwrap_err();
        assert!(refused("many").contains("uniform:256..1024"));
        assert!(refused("0").contains("from 1 to"));
        assert!(refused("uniform:9..3").contains("lower end"));
        assert!(refused("512±150%").contains("below 100 %"));
        assert!(refused("histogram:5=0").contains("not all zero"));
        assert!(refused("histogram:5=1e308,6=1e308").contains("add up"));
        assert!(refused("normal:512,-3").contains("negative"));
        assert!(refused("99999999999").contains("is not a length"));
    }

    #[test]
    fn the_ends_of_a_distribution_are_known() {
        for (text, ends) in [
            ("512", (512, 512)),
            ("500±20%", (400, 600)),
            ("uniform:256..1024", (256, 1_024)),
            ("normal:512,128", (1, 512)),
            ("normal:512,0", (512, 512)),
            ("zipf:1.2,16..4096", (16, 4_096)),
            ("histogram:512=1,128=3", (128, 512)),
        ] {
            let lengths: Lengths = text.parse().unwrap();
            assert_eq!((lengths.least(), lengths.most()), ends, "{text}");
        }
    }
}
