//! The batch sizes for which a server has captured its decode step.

/// No batch above it is captured, but for GPUs whose data say otherwise.
pub const GRAPHS_MAX: u32 = 512;

/// The captured size that `decodes` run at: 1, 2, 4, multiples of 8 below 256, then of 16. Above
/// `largest` nothing is captured and nothing padded.
pub(crate) fn padded(decodes: u32, largest: u32) -> u32 {
    if decodes > largest {
        return decodes;
    }
    let size = match decodes {
        0..=2 => decodes,
        3..=4 => 4,
        5..=248 => decodes.next_multiple_of(8),
        _ => decodes.next_multiple_of(16),
    };
    // The last size is the bound itself where the bound is none of the series.
    size.min(largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_run_at_the_next_captured_size() {
        let sizes = [0, 1, 2, 3, 5, 8, 9, 248, 249, 256, 257, 511, 512, 513, 2000];
        let padded: Vec<u32> = sizes.iter().map(|size| padded(*size, GRAPHS_MAX)).collect();
        assert_eq!(padded, [0, 1, 2, 4, 8, 8, 16, 248, 256, 256, 272, 512, 512, 513, 2000]);
    }

    #[test]
    fn a_small_server_captures_less() {
        assert_eq!([padded(3, 20), padded(17, 20), padded(21, 20), padded(7, 0)], [4, 20, 21, 7]);
    }
}
