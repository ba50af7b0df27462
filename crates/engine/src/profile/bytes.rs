//! Bytes as people read them.

pub(super) const GIB: f64 = (1_u64 << 30) as f64;
pub(super) const MIB: f64 = (1_u64 << 20) as f64;

/// Two decimals, without the unit.
pub(super) fn gib(bytes: f64) -> String {
    format!("{:.2}", bytes / GIB)
}

/// 1234567 as `1,234,567`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(gib(1.5 * GIB), "1.50");
    }
}
