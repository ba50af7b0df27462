//! How fast prompts are read, and which speeds no reading explains.
//!
//! A prompt that is somewhat shorter than another and has as many others beside it is hardly read
//! faster: what a request costs besides its tokens weighs more, and it may have to wait. Where it is
//! several times faster, something was probably not read at all. A much longer prompt proves nothing:
//! its attention alone makes each of its tokens dearer.

/// Prompt tokens of a scenario over its mean TTFT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Prefill {
    /// Of a closed loop.
    pub(super) concurrency: u32,
    /// Of a prompt, in the mean.
    pub(super) input_tokens: f64,
    /// Tokens per second.
    pub(super) speed: f64,
    pub(super) state: State,
}

/// What is known of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// By the server's word.
    Cold,
    /// By the server's word, or because that was asked for.
    Warm,
    /// The server does not say.
    NotKnown,
}

/// Lengths that differ by less are equal: a server counts a few tokens of its own.
const SAME_LENGTH: f64 = 0.98;
/// Prompts that are longer by more than this are dearer by the token.
const TIMES_LONGER: f64 = 4.0;
/// From here on a speed is not explained by noise.
const TIMES_SUSPICIOUS: f64 = 2.0;

impl Prefill {
    /// Whether a token of the other's prompts was at least as easy to read.
    fn is_no_easier_than(&self, other: &Self) -> bool {
        let is_longer = self.input_tokens * SAME_LENGTH <= other.input_tokens;
        let is_near = other.input_tokens * SAME_LENGTH <= self.input_tokens * TIMES_LONGER;
        other.concurrency <= self.concurrency && is_longer && is_near
    }
}

/// What the speeds show of one scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// The fastest that was at least as easy to read, among those that are not warm.
    pub(super) cold: Option<usize>,
    /// Whether it is several times faster than that one, and nobody says why.
    pub(super) suspected: bool,
}

/// One for each scenario, in their order; nothing of those that have no speed.
pub(super) fn compare(rows: &[Option<Prefill>]) -> Vec<Shown> {
    let mut order: Vec<(usize, Prefill)> =
        rows.iter().enumerate().filter_map(|(place, row)| Some((place, (*row)?))).collect();
    // The easiest first, so that all that a scenario is compared with is judged by then.
    order.sort_by(|(_, one), (_, other)| {
        let by_users = one.concurrency.cmp(&other.concurrency);
        by_users.then(other.input_tokens.total_cmp(&one.input_tokens))
    });
    let mut shown = vec![Shown::default(); rows.len()];
    let mut cold: Vec<(usize, Prefill)> = Vec::new();
    for (place, row) in order {
        let easier = cold.iter().filter(|(_, other)| row.is_no_easier_than(other));
        let fastest = easier.max_by(|(_, one), (_, other)| one.speed.total_cmp(&other.speed));
        let is_fast = |(_, other): &(usize, Prefill)| TIMES_SUSPICIOUS * other.speed < row.speed;
        let suspected = row.state == State::NotKnown && fastest.is_some_and(is_fast);
        shown[place] = Shown { cold: fastest.map(|(place, _)| *place), suspected };
        if row.state != State::Warm && !suspected {
            cold.push((place, row));
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(concurrency: u32, input_tokens: f64, speed: f64, state: State) -> Prefill {
        Prefill { concurrency, input_tokens, speed, state }
    }

    fn compared<const N: usize>(rows: [Prefill; N]) -> Vec<Shown> {
        compare(&rows.map(Some))
    }

    #[test]
    fn a_shorter_prompt_among_more_users_is_not_read_faster() {
        let unknown = State::NotKnown;
        let shown = compared([
            row(1, 2_048.0, 1_900.0, unknown),
            // Longer: there is nothing to compare it with.
            row(4, 4_096.0, 9_000.0, unknown),
            row(4, 1_024.0, 8_900.0, unknown),
            row(8, 1_024.0, 3_000.0, unknown),
        ]);
        assert_eq!(compare(&[None]), [Shown::default()]);
        assert_eq!(shown[0], Shown::default());
        assert_eq!(shown[1], Shown::default());
        // The long one is as easy by this rule, and as fast.
        assert_eq!(shown[2], Shown { cold: Some(1), suspected: false });
        let shown = compared([
            row(8, 1_024.0, 8_000.0, unknown),
            row(4, 1_024.0, 8_900.0, unknown),
            row(1, 2_048.0, 1_900.0, unknown),
        ]);
        // The one at four users is found out first, and proves nothing for the one at eight.
        assert_eq!(shown[0], Shown { cold: Some(2), suspected: true });
        assert_eq!(shown[1], Shown { cold: Some(2), suspected: true });
    }

    #[test]
    fn prompts_of_quite_another_length_accuse_nobody() {
        // Attention makes a long prompt dear by the token: 128K tokens at 3,000 a second, 4K at 9,000.
        let rows = [(131_072.0, 3_000.0), (4_096.0, 9_000.0)]
            .map(|(tokens, speed)| row(1, tokens, speed, State::NotKnown));
        assert_eq!(compared(rows), [Shown::default(); 2]);
    }

    #[test]
    fn where_the_server_speaks_nothing_is_suspected() {
        let shown = compared([
            row(1, 2_048.0, 1_900.0, State::Cold),
            row(2, 1_024.0, 8_000.0, State::Warm),
            row(4, 1_024.0, 5_000.0, State::Cold),
        ]);
        assert_eq!(shown[1], Shown { cold: Some(0), suspected: false });
        assert_eq!(shown[2], Shown { cold: Some(0), suspected: false });
    }
}
