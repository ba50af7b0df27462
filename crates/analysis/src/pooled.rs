//! The metrics that pool many values of each request: gaps between arrivals, and what reads waited
//! for. Each is gathered and judged by itself: a run has tens of millions of values, and its memory
//! should hold one list of them at a time.

use inferometer_model::{Outcome, RequestRecord};

use crate::arrivals::Output;
use crate::clustered::{Clustered, Series};
use crate::figures::{GapSteps, GapsFigure};
use crate::metric;
use crate::ruler::Ruler;

/// Gaps between the arrivals of one answer.
#[derive(Debug)]
pub(crate) struct Gaps {
    pub(crate) icl: Option<Series>,
    pub(crate) itl: Option<Series>,
    /// A gap had no token count, so per-token gaps would be of some requests only.
    pub(crate) itl_unknown: bool,
    /// Of the gaps between tokens; of those between arrivals where tokens are unknown.
    pub(crate) figure: Option<GapsFigure>,
}

/// What the arrivals after the first brought, over all answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TokensEach {
    One,
    Several,
    Unknown,
}

impl Gaps {
    /// The records are in the order of time.
    pub(crate) fn of(records: &[&RequestRecord], ruler: &mut Ruler) -> Self {
        let mut icl = Clustered::pooled(events(records));
        let mut steps = GapSteps::new(records);
        let mut tokens = TokensEach::One;
        each_answer(records, |output| {
            for pair in output.arrivals.windows(2) {
                let Some(gap) = ruler.ms(pair[0].at, pair[1].at) else { continue };
                icl.push(gap);
                steps.push(pair[1].at);
                tokens = tokens.max(match pair[1].tokens {
                    Some(1) => TokensEach::One,
                    Some(_) => TokensEach::Several,
                    None => TokensEach::Unknown,
                });
            }
            icl.end_request();
        });
        let series = icl.series();
        let (itl, figure) = match tokens {
            TokensEach::One => (series.clone(), steps.figure(&metric::ITL, icl.in_order())),
            TokensEach::Several => {
                drop(icl);
                per_token(records, ruler.clone())
            }
            TokensEach::Unknown => (None, steps.figure(&metric::ICL, icl.in_order())),
        };
        Self { icl: series, itl, itl_unknown: tokens == TokensEach::Unknown, figure }
    }
}

/// The same gaps for each token of the later arrival. Disorder was counted with the gaps themselves.
fn per_token(records: &[&RequestRecord], mut ruler: Ruler) -> (Option<Series>, Option<GapsFigure>) {
    let mut steps = GapSteps::new(records);
    let mut itl = Clustered::pooled(events(records));
    each_answer(records, |output| {
        // An arrival may carry text and no token, when the server lets go of text that it held
        // back. Its gap belongs to the tokens of the next arrival, or ITL would lose that time.
        let mut carried_over = 0.0;
        for pair in output.arrivals.windows(2) {
            let Some(gap) = ruler.ms(pair[0].at, pair[1].at) else { continue };
            match pair[1].tokens {
                None | Some(0) => carried_over += gap,
                Some(tokens) => {
                    itl.push_counted((carried_over + gap) / tokens as f64, tokens);
                    steps.push(pair[1].at);
                    carried_over = 0.0;
                }
            }
        }
        itl.end_request();
    });
    (itl.series(), steps.figure(&metric::ITL, itl.in_order()))
}

/// How long each read lay in the kernel, where it carries a stamp.
pub(crate) fn client_lag(records: &[&RequestRecord], ruler: &mut Ruler) -> Option<Series> {
    let reads = records.iter().map(|record| record.reads.len()).sum();
    let mut lag = Clustered::pooled(reads);
    for record in records {
        for read in &record.reads {
            let Some(kernel) = read.kernel else { continue };
            if let Some(ms) = ruler.ms(kernel, read.user) {
                lag.push(ms);
            }
        }
        lag.end_request();
    }
    lag.series()
}

/// An answer to a request that was never sent contradicts itself, and has no gaps.
fn each_answer(records: &[&RequestRecord], mut visit: impl FnMut(&Output)) {
    let mut output = Output::default();
    let is_answer =
        |record: &&&RequestRecord| record.ending.outcome == Outcome::Ok && record.sent.is_some();
    for record in records.iter().filter(is_answer) {
        output.read(record, &mut Ruler::new(0));
        visit(&output);
    }
}

fn events(records: &[&RequestRecord]) -> usize {
    records.iter().map(|record| record.events.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Given, ms};

    fn gaps(record: &RequestRecord) -> Gaps {
        Gaps::of(&[record], &mut Ruler::new(0))
    }

    /// Least, mean and largest value, and how many there are.
    fn of(found: Option<&Series>) -> (f64, f64, f64, u64) {
        let found = found.unwrap().found.as_ref().unwrap();
        (found.min.unwrap(), found.mean.unwrap(), found.max.unwrap(), found.n)
    }

    #[test]
    fn an_arrival_of_three_tokens_has_three_gaps_of_a_third() {
        let record = Given::ok(0)
            .moments(10, 12, 15)
            .arrival(115, &[Some(1), Some(1)])
            .arrival(145, &[Some(1)])
            .arrival(205, &[Some(3)])
            .record();
        let found = gaps(&record);
        assert_eq!(of(found.icl.as_ref()), (30.0, 45.0, 60.0, 2));
        assert_eq!(of(found.itl.as_ref()), (20.0, 22.5, 30.0, 4));
    }

    #[test]
    fn text_without_tokens_passes_its_gap_on() {
        let record = Given::ok(0)
            .arrival(100, &[Some(1)])
            .arrival(110, &[Some(0)])
            .arrival(130, &[Some(2)])
            .record();
        let found = gaps(&record);
        assert_eq!(of(found.icl.as_ref()), (10.0, 15.0, 20.0, 2));
        assert_eq!(of(found.itl.as_ref()), (15.0, 15.0, 15.0, 2));
    }

    #[test]
    fn one_token_in_each_arrival_makes_both_the_same() {
        let record = Given::ok(0).arrival(100, &[Some(4)]).arrival(110, &[Some(1)]).record();
        let found = gaps(&record);
        assert_eq!(of(found.icl.as_ref()), (10.0, 10.0, 10.0, 1));
        assert_eq!(found.itl, found.icl);
    }

    #[test]
    fn unknown_counts_leave_the_gaps_between_chunks() {
        let record = Given::ok(0).arrival(100, &[None]).arrival(120, &[None]).record();
        let found = gaps(&record);
        assert_eq!(of(found.icl.as_ref()), (20.0, 20.0, 20.0, 1));
        assert!(found.itl_unknown && found.itl.is_none());
    }

    #[test]
    fn one_arrival_has_no_gap_and_neither_has_a_failure() {
        let record = Given::ok(0).arrival(50, &[Some(4), Some(4)]).record();
        assert_eq!(gaps(&record).icl, None);
        let failed = Given::failed(0, Outcome::Truncated);
        let failed = failed.arrival(50, &[Some(1)]).arrival(60, &[Some(1)]).record();
        assert_eq!(gaps(&failed).icl, None);
    }

    #[test]
    fn the_client_lag_is_of_every_stamped_read() {
        let mut record = Given::ok(0).arrival(100, &[Some(1)]).arrival(120, &[Some(1)]).record();
        record.reads[0].user = ms(103);
        record.reads[1].kernel = None;
        let found = client_lag(&[&record], &mut Ruler::new(0));
        assert_eq!(of(found.as_ref()), (3.0, 3.0, 3.0, 1));
    }
}
