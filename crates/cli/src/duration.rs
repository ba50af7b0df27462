//! Lengths of time as people type them: `30s`, `500ms`, `2m`, `1.5h`.

use std::time::Duration;

pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wanted = || format!("`{text}` is not a length of time; write it as 500ms, 30s, 2m or 1h");
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(wanted)?;
    let (number, unit) = text.split_at(unit_at);
    let number: f64 = number.trim().parse().map_err(|_| wanted())?;
    let seconds = match unit {
        "us" => number / 1e6,
        "ms" => number / 1e3,
        "s" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3_600.0,
        _ => return Err(wanted()),
    };
    if seconds < 0.0 {
        return Err(format!("`{text}` is less than nothing; a length of time begins at 0s"));
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| wanted())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_with_their_units() {
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("1h"), Ok(Duration::from_hours(1)));
        for wrong in ["", "30", "s", "-1s", "1 fortnight", "1e400s", "nans"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
