//! The outline of a plan, before anything is sent: the lengths of its requests, and when they are sent.

use std::collections::BTreeMap;

use inferometer_model::{Plan, Release, RequestId};
use serde::Serialize;

/// A summary of the recipes of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outline {
    /// Requests that are outlined: all, or the first of a plan without an end.
    pub requests: u64,
    /// Whether the plan goes on beyond them.
    pub more: bool,
    /// First turns: as many as requests where there are no conversations.
    pub conversations: u64,
    /// Null when the plan is empty.
    pub input_tokens: Option<LengthOutline>,
    pub output_tokens: Option<LengthOutline>,
    /// Requests that are sent in each stretch of a schedule; null where slots or answers decide.
    pub load_curve: Option<LoadCurve>,
    /// Requests of each part of a mix, by its index; empty without a mix.
    pub parts: BTreeMap<u16, u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LengthOutline {
    pub total: u64,
    pub min: u32,
    pub mean: f64,
    pub p50: u32,
    pub p90: u32,
    pub p99: u32,
    pub max: u32,
    /// At most twelve bars of equal width; one where all are equal.
    pub histogram: Vec<Bar>,
}

/// Lengths from `low` to `high`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bar {
    pub low: u32,
    pub high: u32,
    pub requests: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadCurve {
    /// Length of a stretch.
    pub step_s: f64,
    pub requests: Vec<u64>,
    pub mean_per_s: Option<f64>,
}

const BARS: u32 = 12;
/// The most steps of a load curve.
const STRETCHES: u64 = 24;
/// A plan without an end is outlined by its beginning.
const ENDLESS_MAX: u64 = 10_000;
/// The most requests that are outlined, because each is generated anew.
const RECIPES_MAX: u64 = 1_000_000;

impl Outline {
    /// Generates every request once, without its text.
    pub fn new(plan: &dyn Plan) -> Self {
        let (mut input, mut output, mut times_ns) = (Vec::new(), Vec::new(), Vec::new());
        let mut parts = BTreeMap::new();
        let mut conversations = 0;
        let end = plan.bounds().requests.map_or(ENDLESS_MAX, |end| end.min(RECIPES_MAX));
        for request in (0..end).map_while(|id| plan.request(RequestId(id))) {
            conversations += u64::from(request.turn == 0);
            input.push(request.input_tokens);
            output.push(request.output_tokens);
            *parts.entry(request.part).or_insert(0) += 1;
            if let Release::At(moment) = request.release {
                times_ns.push(moment.as_nanos());
            }
        }
        let requests = input.len() as u64;
        if parts.keys().all(|part| *part == 0) {
            parts.clear();
        }
        Self {
            requests,
            more: plan.request(RequestId(requests)).is_some(),
            conversations,
            input_tokens: LengthOutline::from_lengths(input),
            output_tokens: LengthOutline::from_lengths(output),
            load_curve: LoadCurve::from_times(&times_ns),
            parts,
        }
    }
}

impl LengthOutline {
    fn from_lengths(mut lengths: Vec<u32>) -> Option<Self> {
        lengths.sort_unstable();
        let (min, max) = (*lengths.first()?, *lengths.last()?);
        let total: u64 = lengths.iter().map(|length| u64::from(*length)).sum();
        let rank = |per_cent: usize| lengths[(lengths.len() * per_cent).div_ceil(100).max(1) - 1];
        Some(Self {
            total,
            min,
            mean: total as f64 / lengths.len() as f64,
            p50: rank(50),
            p90: rank(90),
            p99: rank(99),
            max,
            histogram: histogram(&lengths, min, max),
        })
    }
}

fn histogram(sorted: &[u32], min: u32, max: u32) -> Vec<Bar> {
    let width = (max - min).div_ceil(BARS).max(1);
    let bar = |low: u32| {
        let high = low.saturating_add(width - 1).min(max);
        let below = sorted.partition_point(|length| *length < low);
        let through = sorted.partition_point(|length| *length <= high);
        Bar { low, high, requests: (through - below) as u64 }
    };
    (min..=max).step_by(width as usize).map(bar).collect()
}

impl LoadCurve {
    fn from_times(times_ns: &[u64]) -> Option<Self> {
        const ROUND_S: [u64; 12] = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 86_400];
        const SECOND_NS: u64 = 1_000_000_000;
        const DAY_NS: u64 = 86_400 * SECOND_NS;
        let last = *times_ns.iter().max()?;
        // A round length of which at most `STRETCHES` reach the end, or as many whole days as it takes.
        let fits = |step_ns: &u64| last / step_ns < STRETCHES;
        let round = ROUND_S.iter().map(|seconds| seconds * SECOND_NS).find(fits);
        let step_ns = round.unwrap_or_else(|| (last / STRETCHES / DAY_NS + 1) * DAY_NS);
        let mut requests = vec![0; usize::try_from(last / step_ns + 1).ok()?];
        for at_ns in times_ns {
            requests[usize::try_from(at_ns / step_ns).ok()?] += 1;
        }
        let mean_per_s = (0 < last).then(|| (times_ns.len() - 1) as f64 / (last as f64 / 1e9));
        Some(Self { step_s: step_ns as f64 / 1e9, requests, mean_per_s })
    }
}

#[cfg(test)]
mod tests {
    use inferometer_model::plan::Bounds;
    use inferometer_model::{Content, Moment, PlannedRequest};

    use super::*;

    /// A request each half second; the n-th is n + 1 tokens long.
    struct Stairs {
        end: Option<u64>,
    }

    impl Plan for Stairs {
        fn bounds(&self) -> Bounds {
            let requests = self.end;
            Bounds { requests, release_before: None, requests_min: 0, slots: None }
        }

        fn request(&self, id: RequestId) -> Option<PlannedRequest> {
            let release = Release::At(Moment::from_nanos(id.0 * 500_000_000));
            let input_tokens = u32::try_from(id.0 + 1).unwrap();
            let request = PlannedRequest { input_tokens, ..PlannedRequest::alone(id, release) };
            self.end.is_none_or(|end| id.0 < end).then_some(request)
        }

        fn content(&self, _: &PlannedRequest) -> Content {
            panic!("an outline makes no text")
        }
    }

    #[test]
    fn lengths_and_moments_are_counted() {
        let outline = Outline::new(&Stairs { end: Some(100) });
        assert_eq!((outline.requests, outline.more, outline.conversations), (100, false, 100));
        let input = outline.input_tokens.unwrap();
        assert_eq!((input.min, input.p50, input.p99, input.max), (1, 50, 99, 100));
        assert_eq!((input.total, input.mean), (5_050, 50.5));
        assert!(input.histogram.len() <= BARS as usize);
        assert_eq!(input.histogram.iter().map(|bar| bar.requests).sum::<u64>(), 100);
        let curve = outline.load_curve.unwrap();
        assert_eq!((curve.step_s, &curve.requests[..]), (5.0, &[10; 10][..]));
        let output = outline.output_tokens.unwrap();
        assert_eq!(output.histogram, [Bar { low: 1, high: 1, requests: 100 }]);
    }

    #[test]
    fn a_load_curve_has_an_end_however_far_it_reaches() {
        for last_s in [1, 59, 60, 61, 3_600 * 24 * 59, 3_600 * 24 * 61, 10_000_000_000] {
            let curve = LoadCurve::from_times(&[0, last_s * 1_000_000_000]).unwrap();
            assert!(curve.requests.len() <= 60, "{} stretches", curve.requests.len());
            assert_eq!(curve.requests.iter().sum::<u64>(), 2, "{last_s}");
        }
    }

    #[test]
    fn an_empty_plan_and_an_endless_one_have_outlines_too() {
        let nothing = Outline::new(&Stairs { end: Some(0) });
        assert_eq!((nothing.requests, nothing.input_tokens, nothing.load_curve), (0, None, None));
        let endless = Outline::new(&Stairs { end: None });
        assert_eq!((endless.requests, endless.more), (ENDLESS_MAX, true));
    }
}
