//! Floating-point numbers as whole ones. A cast saturates: what is too small or too large becomes
//! the nearest number that the type has, and what is not a number becomes zero. Nothing is rounded.

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
pub const fn to_u64(number: f64) -> u64 {
    number as u64
}

pub fn to_u32(number: f64) -> u32 {
    u32::try_from(to_u64(number)).unwrap_or(u32::MAX)
}

pub fn to_usize(number: f64) -> usize {
    usize::try_from(to_u64(number)).unwrap_or(usize::MAX)
}

/// Spreads neighbouring numbers over the whole range: a step of `SplitMix64`.
pub const fn spread(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
