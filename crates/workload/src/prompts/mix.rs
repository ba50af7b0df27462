//! Requests of several kinds, each by its weight.

mod shares;

use std::sync::Arc;

use inferometer_model::{Content, PlannedRequest, RequestId, Segment};
use serde_json::{Map, Value};

use super::{Place, Prompts, Recipe};
pub(crate) use shares::Shares;

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
        let share = self.shares.of(request.id.0);
        let own = PlannedRequest { id: RequestId(share.ordinal), ..*request };
        (self.parts[share.part].as_ref(), own)
    }
}

impl Prompts for Mix {
    fn recipe(&self, place: Place) -> Recipe {
        let share = self.shares.of(place.id);
        let recipe = self.parts[share.part].recipe(Place { id: share.ordinal, ..place });
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

#[cfg(test)]
mod tests {
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
        let (prompt, output) = (prompt.to_owned(), Draw::Fixed(1));
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
