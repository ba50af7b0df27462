//! How long prompts or answers are: one number, or a distribution to draw from.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::bounds::TOKENS_MAX;
use super::text::read_any;

/// A distribution of whole numbers from 1 on. Written as text: `512`, `512±20%` (or `512+-20%`),
/// `uniform:256..1024`, `normal:512,128`, `lognormal:512,0.8`, `zipf:1.2,16..4096`,
/// `histogram:128=3,512=1`.
#[derive(Clone, Debug, PartialEq)]
pub enum Lengths {
    Fixed(u32),
    /// Uniform between `mean` minus and plus this share of it, rounded outwards.
    Around {
        mean: u32,
        share: f64,
    },
    /// Uniform, both ends included.
    Uniform {
        low: u32,
        high: u32,
    },
    /// Cut off below 1 and above the bound.
    Normal {
        mean: f64,
        deviation: f64,
    },
    /// By its median and the deviation of its logarithm.
    LogNormal {
        median: f64,
        sigma: f64,
    },
    /// `low` is the most likely, then `low + 1`, and so on: the k-th with weight `k^-exponent`.
    Zipf {
        exponent: f64,
        low: u32,
        high: u32,
    },
    /// Lengths and their weights.
    Histogram(Vec<(u32, f64)>),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LengthsError {
    #[error(
        "`{0}` is not a length: write a number, 512±20%, uniform:256..1024, normal:512,128, \
         lognormal:512,0.8, zipf:1.2,16..4096 or histogram:128=3,512=1"
    )]
    NotALength(String),
    #[error("`{0}`: a length must be from 1 to {TOKENS_MAX}")]
    OutOfBounds(String),
    #[error("`{0}`: {1}")]
    Wrong(String, &'static str),
}

impl Lengths {
    /// The one length, where there is only one.
    pub fn fixed(&self) -> Option<u32> {
        match self {
            Self::Fixed(length) => Some(*length),
            Self::Around { .. }
            | Self::Uniform { .. }
            | Self::Normal { .. }
            | Self::LogNormal { .. }
            | Self::Zipf { .. }
            | Self::Histogram(_) => None,
        }
    }

    /// The shortest that can be drawn.
    pub fn least(&self) -> u32 {
        match self {
            Self::Fixed(length) => *length,
            Self::Around { mean, share } => whole((f64::from(*mean) * (1.0 - share)).floor()),
            Self::Uniform { low, .. } | Self::Zipf { low, .. } => *low,
            Self::Normal { mean, deviation: spread }
            | Self::LogNormal { median: mean, sigma: spread } => {
                if *spread == 0.0 {
                    whole(mean.round())
                } else {
                    1
                }
            }
            Self::Histogram(bars) => bars.iter().map(|bar| bar.0).min().unwrap_or(1),
        }
    }

    /// The longest that is asked for by name: of distributions without an end their middle.
    pub fn most(&self) -> u32 {
        match self {
            Self::Fixed(length) => *length,
            Self::Around { mean, share } => whole((f64::from(*mean) * (1.0 + share)).ceil()),
            Self::Uniform { high, .. } | Self::Zipf { high, .. } => *high,
            Self::Normal { mean: middle, .. } | Self::LogNormal { median: middle, .. } => {
                whole(middle.round())
            }
            Self::Histogram(bars) => bars.iter().map(|bar| bar.0).max().unwrap_or(1),
        }
    }

    fn check(self, text: &str) -> Result<Self, LengthsError> {
        let in_bounds = |length: u32| (1..=TOKENS_MAX).contains(&length);
        let is_size =
            |number: f64| number.is_finite() && (1.0..=TOKENS_MAX.into()).contains(&number);
        let wrong = |why| Err(LengthsError::Wrong(text.to_owned(), why));
        let fits = match &self {
            Self::Fixed(length) => in_bounds(*length),
            Self::Around { mean, share } => {
                if !(0.0..1.0).contains(share) {
                    return wrong("the share must be from 0 % to below 100 %");
                }
                in_bounds(*mean) && f64::from(*mean) * (1.0 + share) <= TOKENS_MAX.into()
            }
            Self::Uniform { low, high } | Self::Zipf { low, high, .. } if high < low => {
                return wrong("the lower end must come first");
            }
            Self::Uniform { low, high } => in_bounds(*low) && in_bounds(*high),
            Self::Zipf { exponent, low, high } => {
                if !(0.0..=10.0).contains(exponent) {
                    return wrong("the exponent must be from 0 to 10");
                }
                in_bounds(*low) && in_bounds(*high)
            }
            Self::Normal { mean, deviation } => {
                if !(0.0..=f64::from(TOKENS_MAX)).contains(deviation) {
                    return wrong("the deviation must not be negative");
                }
                is_size(*mean)
            }
            Self::LogNormal { median, sigma } => {
                if !(0.0..=5.0).contains(sigma) {
                    return wrong("sigma must be from 0 to 5");
                }
                is_size(*median)
            }
            Self::Histogram(bars) => {
                let weight_is_sane = |weight: f64| weight.is_finite() && 0.0 <= weight;
                if !bars.iter().all(|bar| weight_is_sane(bar.1)) || !bars.iter().any(|b| 0.0 < b.1)
                {
                    return wrong("weights must be numbers, none negative and not all zero");
                }
                if !bars.iter().map(|bar| bar.1).sum::<f64>().is_finite() {
                    return wrong("the weights add up to more than a number can hold");
                }
                bars.iter().all(|bar| in_bounds(bar.0))
            }
        };
        if fits { Ok(self) } else { Err(LengthsError::OutOfBounds(text.to_owned())) }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "callers have rounded it, and lengths are checked to be from 1 to their bound"
)]
fn whole(number: f64) -> u32 {
    number.max(1.0) as u32
}

impl From<u32> for Lengths {
    fn from(length: u32) -> Self {
        Self::Fixed(length)
    }
}

impl FromStr for Lengths {
    type Err = LengthsError;

    fn from_str(text: &str) -> Result<Self, LengthsError> {
        parse(text.trim()).ok_or_else(|| LengthsError::NotALength(text.to_owned()))?.check(text)
    }
}

fn parse(text: &str) -> Option<Lengths> {
    if let Some((name, rest)) = text.split_once(':') {
        return match name {
            "uniform" => range(rest).map(|(low, high)| Lengths::Uniform { low, high }),
            "normal" => pair(rest).map(|(mean, deviation)| Lengths::Normal { mean, deviation }),
            "lognormal" => pair(rest).map(|(median, sigma)| Lengths::LogNormal { median, sigma }),
            "zipf" => {
                let (exponent, ends) = rest.split_once(',')?;
                let (low, high) = range(ends)?;
                Some(Lengths::Zipf { exponent: exponent.trim().parse().ok()?, low, high })
            }
            "histogram" => rest.split(',').map(bar).collect::<Option<_>>().map(Lengths::Histogram),
            _ => None,
        };
    }
    if let Some((mean, share)) = text.split_once('±').or_else(|| text.split_once("+-")) {
        let per_cent: f64 = share.trim().strip_suffix('%')?.trim().parse().ok()?;
        return Some(Lengths::Around { mean: mean.trim().parse().ok()?, share: per_cent / 100.0 });
    }
    text.parse().ok().map(Lengths::Fixed)
}

fn range(text: &str) -> Option<(u32, u32)> {
    let (low, high) = text.split_once("..")?;
    Some((low.trim().parse().ok()?, high.trim().parse().ok()?))
}

fn pair(text: &str) -> Option<(f64, f64)> {
    let (first, second) = text.split_once(',')?;
    Some((first.trim().parse().ok()?, second.trim().parse().ok()?))
}

fn bar(text: &str) -> Option<(u32, f64)> {
    let (length, weight) = text.split_once('=')?;
    Some((length.trim().parse().ok()?, weight.trim().parse().ok()?))
}

impl fmt::Display for Lengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(length) => write!(f, "{length}"),
            Self::Around { mean, share } => {
                // Twelve digits: what was typed in per cent comes back as it was.
                let per_cent = (share * 100.0 * 1e10).round() / 1e10;
                write!(f, "{mean}±{per_cent}%")
            }
            Self::Uniform { low, high } => write!(f, "uniform:{low}..{high}"),
            Self::Normal { mean, deviation } => write!(f, "normal:{mean},{deviation}"),
            Self::LogNormal { median, sigma } => write!(f, "lognormal:{median},{sigma}"),
            Self::Zipf { exponent, low, high } => write!(f, "zipf:{exponent},{low}..{high}"),
            Self::Histogram(bars) => {
                f.write_str("histogram:")?;
                for (place, (length, weight)) in bars.iter().enumerate() {
                    let comma = if place == 0 { "" } else { "," };
                    write!(f, "{comma}{length}={weight}")?;
                }
                Ok(())
            }
        }
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
    }

    #[test]
    fn nonsense_is_refused_with_the_reason() {
        let refused = |text: &str| text.parse::<Lengths>().unwrap_err().to_string();
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
