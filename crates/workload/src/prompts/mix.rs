//! Requests of several kinds, each by its weight.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use inferometer_model::{Content, PlannedRequest, RequestId, Segment};
use serde_json::{Map, Value};

use super::{PromptIndex, Prompts, Recipe};
use crate::plan::Stream;

/// Each part is asked as if it were alone: its requests have numbers of their own, without gaps,
/// so that a data set keeps its order and is used evenly.
#[derive(Debug)]
pub(crate) struct Mix {
    pub(crate) shares: Arc<Shares>,
    pub(crate) parts: Vec<Arc<dyn Prompts>>,
}

impl Mix {
    /// The request as its part knows it.
    fn of_part(&self, request: &PlannedRequest) -> (&dyn Prompts, PlannedRequest) {
        let share = self.shares.share_at(request.id.0);
        let own = PlannedRequest { id: RequestId(share.ordinal), ..*request };
        (self.parts[share.part].as_ref(), own)
    }
}

impl Prompts for Mix {
    fn recipe(&self, place: PromptIndex) -> Recipe {
        let share = self.shares.share_at(place.id);
        let recipe = self.parts[share.part].recipe(PromptIndex { id: share.ordinal, ..place });
        Recipe { part: u16::try_from(share.part).unwrap_or(u16::MAX), ..recipe }
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        let (part, own) = self.of_part(request);
        part.content(&own)
    }

    fn segments(&self, request: &PlannedRequest) -> Vec<Segment> {
        let (part, own) = self.of_part(request);
        part.segments(&own)
    }

    fn fields(&self, request: &PlannedRequest) -> Map<String, Value> {
        let (part, own) = self.of_part(request);
        part.fields(&own)
    }
}

/// Parts are drawn in blocks. A part's ordinal is a sum over all blocks before, so sums are kept:
/// of some blocks, whatever the length of the plan.
#[derive(Debug)]
pub(crate) struct Shares {
    seed: u64,
    /// The weight of each part and of all before it.
    reached: Vec<f64>,
    sums: Mutex<Sums>,
}

/// The part of a mix that a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) part: usize,
    /// How many requests of the same part came before.
    pub(crate) ordinal: u64,
}

#[derive(Debug)]
struct Sums {
    /// How many of each part came before every block whose number is a multiple of `stride`.
    kept: Vec<Vec<u64>>,
    stride: u64,
    /// Blocks that were asked for last: a plan is read from its beginning to its end.
    recent: VecDeque<Arc<Block>>,
}

#[derive(Debug)]
struct Block {
    number: u64,
    shares: Vec<Share>,
    /// How many of each part came before its end.
    after: Vec<u64>,
}

const BLOCK: u64 = 1_024;
const KEPT_MAX: usize = 4_096;
const RECENT_MAX: usize = 8;

impl Shares {
    /// For at least one part, with weights above zero whose sum is finite.
    pub(crate) fn new(seed: u64, weights: impl IntoIterator<Item = f64>) -> Self {
        let sum = |sum: &mut f64, weight| {
            *sum += weight;
            Some(*sum)
        };
        let reached: Vec<f64> = weights.into_iter().scan(0.0, sum).collect();
        let kept = vec![vec![0; reached.len()]];
        let sums = Mutex::new(Sums { kept, stride: 1, recent: VecDeque::new() });
        Self { seed, reached, sums }
    }

    pub(crate) fn share_at(&self, id: u64) -> Share {
        let place = usize::try_from(id % BLOCK).unwrap_or(0);
        self.block(id / BLOCK).shares[place]
    }

    /// How many of a part are among the first so many requests.
    pub(crate) fn count(&self, part: usize, requests: u64) -> u64 {
        let before = requests.checked_sub(1).map(|last| self.block(last / BLOCK));
        let Some(block) = before else { return 0 };
        let beyond = usize::try_from((requests - 1) % BLOCK + 1).unwrap_or(0);
        let beyond = block.shares[beyond..].iter().filter(|share| share.part == part).count();
        block.after[part] - beyond as u64
    }

    fn block(&self, number: u64) -> Arc<Block> {
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(block) = sums.recent.iter().find(|block| block.number == number) {
            return Arc::clone(block);
        }
        let (first, mut before) = sums.nearest(number);
        let mut block = self.draw(first, before);
        for next in first + 1..=number {
            before = block.after;
            sums.keep(next, &before);
            block = self.draw(next, before);
        }
        let block = Arc::new(block);
        if sums.recent.len() == RECENT_MAX {
            sums.recent.pop_front();
        }
        sums.recent.push_back(Arc::clone(&block));
        block
    }

    fn draw(&self, number: u64, before: Vec<u64>) -> Block {
        let mut stream = Stream::new(self.seed, "mix", number);
        let whole = self.reached.last().copied().unwrap_or_default();
        let mut after = before;
        let shares = (0..BLOCK).map(|_| {
            let drawn = whole * stream.unit();
            // A product may round to above the sum that it is a share of.
            let part = self.reached.partition_point(|reached| *reached < drawn);
            let part = part.min(self.reached.len() - 1);
            let ordinal = after[part];
            after[part] += 1;
            Share { part, ordinal }
        });
        let shares = shares.collect();
        Block { number, shares, after }
    }
}

impl Sums {
    /// The last block up to this one of which is known what came before it.
    fn nearest(&self, number: u64) -> (u64, Vec<u64>) {
        let place = usize::try_from(number / self.stride).unwrap_or(usize::MAX);
        let place = place.min(self.kept.len() - 1);
        let first = place as u64 * self.stride;
        let recent = self.recent.iter().filter(|block| first <= block.number);
        match recent.filter(|block| block.number < number).max_by_key(|block| block.number) {
            Some(block) => (block.number + 1, block.after.clone()),
            None => (first, self.kept[place].clone()),
        }
    }

    fn keep(&mut self, number: u64, before: &[u64]) {
        if number != self.kept.len() as u64 * self.stride {
            return;
        }
        if self.kept.len() == KEPT_MAX {
            // Every second is enough from now on; a later one of them comes by itself.
            self.kept = self.kept.iter().step_by(2).cloned().collect();
            self.stride *= 2;
        }
        if number == self.kept.len() as u64 * self.stride {
            self.kept.push(before.to_vec());
        }
    }
}

#[cfg(test)]
mod mix_tests {
    use inferometer_model::spec::Lengths;
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use super::*;
    use crate::dataset::{Dataset, Item};
    use crate::lengths::Draw;
    use crate::prompts::{DatasetPrompts, Fixed, planned};
    use inferometer_model::Prompt;
    use inferometer_model::observations::FileFacts;
    use inferometer_model::spec::DatasetSpec;

    fn part(prompt: &str) -> Arc<dyn Prompts> {
        let (prompt, output) = (prompt.to_owned(), Draw::new(&Lengths::Fixed(1)));
        Arc::new(Fixed { seed: 1, prompt, input_tokens: 1, output })
    }

    fn dataset(items: u32, keep_order: bool) -> Arc<dyn Prompts> {
        let item = |number: u32| Item {
            prompt: Prompt::Text(number.to_string()),
            input_tokens: 1,
            output_tokens: None,
            fields: Map::new(),
        };
        let (name, kind, sha256) = (String::new(), String::new(), String::new());
        let facts = FileFacts { name, kind, sha256, items: 0, dropped: BTreeMap::new() };
        let dataset =
            Arc::new(Dataset { items: (0..items).map(item).collect(), facts, notes: Vec::new() });
        let path = PathBuf::new();
        let spec = DatasetSpec { path, kind: None, input: None, output: None, keep_order };
        Arc::new(DatasetPrompts::new(&spec, dataset, 3))
    }

    fn mix(parts: Vec<(f64, Arc<dyn Prompts>)>) -> Mix {
        let (weights, parts): (Vec<f64>, _) = parts.into_iter().unzip();
        Mix { shares: Arc::new(Shares::new(5, weights)), parts }
    }

    #[test]
    fn parts_come_by_their_weights_and_say_their_own() {
        let mix = mix(vec![(3.0, part("a")), (1.0, part("b"))]);
        let mut counts = [0_u32; 2];
        for id in 0..10_000 {
            let request = planned(&mix, id);
            let expected = ["a", "b"][usize::from(request.part)];
            assert_eq!(mix.content(&request).prompt, Prompt::Text(expected.to_owned()));
            counts[usize::from(request.part)] += 1;
        }
        // Four standard deviations of a binomial count: sqrt(10,000 * 3/4 * 1/4) is 43.
        assert!(counts[0].abs_diff(7_500) < 174, "{counts:?}");
    }

    #[test]
    fn a_data_set_keeps_its_order_among_others() {
        let mix = mix(vec![(1.0, part("a")), (1.0, dataset(7, true))]);
        let of_data = (0..500).map(|id| planned(&mix, id)).filter(|request| request.part == 1);
        for (place, request) in of_data.enumerate() {
            assert_eq!(request.item as usize, place % 7);
            assert_eq!(mix.content(&request).prompt, Prompt::Text((place % 7).to_string()));
        }
    }

    #[test]
    fn a_shuffled_data_set_is_used_evenly_among_others() {
        let mix = mix(vec![(1.0, part("a")), (2.0, dataset(10, false))]);
        let of_data = (0..900).map(|id| planned(&mix, id)).filter(|request| request.part == 1);
        let mut asked = [0_u32; 10];
        of_data.for_each(|request| asked[request.item as usize] += 1);
        let (least, most) = (asked.iter().min(), asked.iter().max());
        assert!(most.unwrap() - least.unwrap() <= 1, "{asked:?}");
    }
}

#[cfg(test)]
mod shares_tests {
    use super::*;

    #[test]
    fn ordinals_count_the_earlier_requests_of_a_part_in_any_order_of_asking() {
        let shares = Shares::new(5, [3.0, 1.0, 0.01]);
        let mut counts = [0_u64; 3];
        let mut all = Vec::new();
        for id in 0..20 * BLOCK {
            let share = shares.share_at(id);
            assert_eq!(share.ordinal, counts[share.part]);
            counts[share.part] += 1;
            all.push(share);
        }
        for (part, count) in counts.into_iter().enumerate() {
            assert_eq!(shares.count(part, 20 * BLOCK), count);
            let some = all[..1_500].iter().filter(|share| share.part == part).count();
            assert_eq!(shares.count(part, 1_500), some as u64);
            assert_eq!(shares.count(part, 0), 0);
        }
        let fresh = Shares::new(5, [3.0, 1.0, 0.01]);
        for (id, share) in all.iter().enumerate().rev().step_by(777) {
            assert_eq!(fresh.share_at(id as u64), *share);
        }
    }

    #[test]
    fn what_is_kept_of_a_long_plan_is_bounded_and_still_right() {
        let shares = Shares::new(9, [1.0, 1.0]);
        let late = 3 * KEPT_MAX as u64 * BLOCK + 77;
        let share = shares.share_at(late);
        let other = shares.count(1 - share.part, late);
        assert_eq!(share.ordinal + other, late);
        let kept = shares.sums.lock().unwrap().kept.len();
        assert!(kept <= KEPT_MAX && KEPT_MAX / 2 < kept, "{kept}");
        let early = shares.share_at(KEPT_MAX as u64 * BLOCK / 3);
        assert_eq!(Shares::new(9, [1.0, 1.0]).share_at(KEPT_MAX as u64 * BLOCK / 3), early);
    }
}
