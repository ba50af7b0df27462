//! What a server costs, in any currency: `2.50/h` for its time, `1.20/gpu-h` for each of its GPUs, and
//! `0.15/M-in,0.60/M-out` for a million tokens read and written.

use super::text::Grammar;

/// Each amount in the currency of the user; `None` costs nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    pub per_hour: Option<f64>,
    pub per_gpu_hour: Option<f64>,
    pub per_million_input: Option<f64>,
    pub per_million_output: Option<f64>,
}

/// How the amounts are written, in the order of the fields.
const UNITS: [&[&str]; 4] = [&["h", "hour"], &["gpu-h", "gpu-hour"], &["M-in"], &["M-out"]];

impl Price {
    /// The price of an hour of a server; `None` where it has none, or where the number of GPUs that it
    /// is made of is not known.
    pub fn per_server_hour(&self, gpus: Option<u32>) -> Option<f64> {
        let of_gpus = match self.per_gpu_hour {
            Some(each) => Some(each * f64::from(gpus?)),
            None => None,
        };
        [self.per_hour, of_gpus].into_iter().flatten().reduce(|sum, part| sum + part)
    }

    fn amounts(&mut self) -> [&mut Option<f64>; 4] {
        let Self { per_hour, per_gpu_hour, per_million_input, per_million_output } = self;
        [per_hour, per_gpu_hour, per_million_input, per_million_output]
    }
}

impl Grammar for Price {
    const SCHEMA: &'static str = "price";

    fn read(text: &str) -> Result<Self, String> {
        let mut price = Self::default();
        for part in text.split(',').map(str::trim) {
            let unreadable = || {
                format!(
                    "`{part}` is not a price; write 2.50/h for the time of the server, 1.20/gpu-h for \
                     that of each GPU, or 0.15/M-in,0.60/M-out for a million input and output tokens"
                )
            };
            let (amount, unit) = part.split_once('/').ok_or_else(unreadable)?;
            let amount: f64 = amount.trim().parse().map_err(|_| unreadable())?;
            if !amount.is_finite() || amount < 0.0 {
                return Err(format!("`{part}`: a price must not be negative"));
            }
            let index = UNITS.iter().position(|units| units.contains(&unit.trim()));
            let index = index.ok_or_else(unreadable)?;
            let known = price.amounts().into_iter().nth(index);
            if known.and_then(|known| known.replace(amount)).is_some() {
                return Err(format!("`{part}`: this price is set twice"));
            }
        }
        Ok(price)
    }

    fn write(&self) -> String {
        let mut price = *self;
        let parts = price.amounts().into_iter().zip(UNITS);
        let parts =
            parts.filter_map(|(amount, units)| Some(format!("{}/{}", (*amount)?, units[0])));
        parts.collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_read_as_it_is_written() {
        for text in ["2.5/h", "1.2/gpu-h", "0.15/M-in,0.6/M-out", "3/h,0.5/M-in"] {
            assert_eq!(Price::read(text).unwrap().write(), text);
        }
        assert_eq!(Price::read(" 3 / hour ").unwrap().per_hour, Some(3.0));
    }

    #[test]
    fn what_is_no_price_is_refused() {
        for (text, why) in [
            ("3", "not a price"),
            ("3/day", "not a price"),
            ("x/h", "not a price"),
            ("-1/h", "must not be negative"),
            ("NaN/h", "must not be negative"),
            ("1/h,2/hour", "set twice"),
        ] {
            let error = Price::read(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn gpus_that_nobody_counted_have_no_price() {
        let price = Price::read("1/h,2/gpu-h").unwrap();
        assert_eq!(price.per_server_hour(Some(4)), Some(9.0));
        assert_eq!(price.per_server_hour(None), None);
        assert_eq!(Price::read("1/M-in").unwrap().per_server_hour(Some(1)), None);
        assert_eq!(Price::read("1/h").unwrap().per_server_hour(None), Some(1.0));
    }
}
