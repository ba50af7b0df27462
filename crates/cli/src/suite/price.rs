//! What a suite would cost: a price of the machine's time, of tokens, or of both.

use std::str::FromStr;
use std::time::Duration;

/// Amounts are in whatever currency was meant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Price {
    hour: Option<f64>,
    million_in: Option<f64>,
    million_out: Option<f64>,
}

const TOKENS: f64 = 1e6;
const SECONDS: f64 = 3_600.0;

/// What the parts come to that have a price.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cost(pub(crate) Vec<Part>);

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) of: Paid,
    /// `None` where it depends on something that is not known.
    pub(crate) amount: Option<f64>,
}

/// What is paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paid {
    Time,
    InputTokens,
    OutputTokens,
}

impl Paid {
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::InputTokens => "input_tokens",
            Self::OutputTokens => "output_tokens",
        }
    }
}

impl Price {
    pub(crate) fn of(
        &self,
        time: Option<Duration>,
        input_tokens: Option<u64>,
        output_tokens: Option<u64>,
    ) -> Cost {
        #[expect(clippy::cast_precision_loss, reason = "money for the eye")]
        let millions = |tokens: Option<u64>| tokens.map(|tokens| tokens as f64 / TOKENS);
        let hours = time.map(|time| time.as_secs_f64() / SECONDS);
        let parts = [
            (Paid::Time, self.hour, hours),
            (Paid::InputTokens, self.million_in, millions(input_tokens)),
            (Paid::OutputTokens, self.million_out, millions(output_tokens)),
        ];
        let part = |(of, price, amount): (Paid, Option<f64>, Option<f64>)| {
            price.map(|price| Part { of, amount: amount.map(|amount| price * amount) })
        };
        Cost(parts.into_iter().filter_map(part).collect())
    }
}

impl Cost {
    /// `None` where a part is not known.
    pub(crate) fn whole(&self) -> Option<f64> {
        self.0.iter().map(|part| part.amount).sum()
    }

    /// Of the tokens alone, where they have a price and are known.
    pub(crate) fn tokens(&self) -> Option<f64> {
        let mut parts = self.0.iter().filter(|part| part.of != Paid::Time).peekable();
        parts.peek()?;
        parts.map(|part| part.amount).sum()
    }
}

impl FromStr for Price {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut price = Self::default();
        for part in text.split(',') {
            let part = part.trim();
            let (amount, unit) = part.split_once('/').ok_or_else(|| unreadable(part))?;
            let amount: f64 = amount.trim().parse().map_err(|_| unreadable(part))?;
            if !amount.is_finite() || amount < 0.0 {
                return Err(format!("`{part}`: a price is a number from 0"));
            }
            let place = match unit.trim() {
                "h" | "hour" => &mut price.hour,
                "M-in" => &mut price.million_in,
                "M-out" => &mut price.million_out,
                _ => return Err(unreadable(part)),
            };
            if place.replace(amount).is_some() {
                return Err(format!("`{part}`: there is a price of that already"));
            }
        }
        Ok(price)
    }
}

fn unreadable(part: &str) -> String {
    format!(
        "`{part}` is no price; write 2.50/h for the time of the machine, or 0.15/M-in,0.60/M-out for \
         a million tokens read and written"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_and_tokens_are_paid_for() {
        let price: Price = "3/h, 0.5/M-in,2/M-out".parse().unwrap();
        let half_an_hour = Some(Duration::from_mins(30));
        let cost = price.of(half_an_hour, Some(2_000_000), Some(250_000));
        let whole = cost.whole().unwrap();
        assert!((whole - 3.0).abs() < 1e-12, "{whole}");
        let cost = price.of(None, Some(1_000_000), Some(500_000));
        assert_eq!(cost.whole(), None, "nobody knows how long it takes");
        assert_eq!(cost.tokens(), Some(1.5));
        assert_eq!(price.of(half_an_hour, None, Some(1)).tokens(), None);
        let price: Price = "0.5/M-in".parse().unwrap();
        let cost = price.of(None, Some(4_000_000), None);
        assert_eq!((cost.whole(), cost.tokens()), (Some(2.0), Some(2.0)));
        let price: Price = "1/h".parse().unwrap();
        assert_eq!(price.of(None, Some(1), Some(1)).tokens(), None, "they cost nothing");
    }

    #[test]
    fn what_is_no_price_is_refused() {
        for wrong in ["", "2.50", "2.50/day", "x/h", "-1/h", "inf/h", "1/h,2/h"] {
            assert!(wrong.parse::<Price>().is_err(), "{wrong}");
        }
    }
}
