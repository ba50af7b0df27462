//! Prompts of a data set: each as often as any other, shuffled anew in every pass.

use std::sync::Arc;

use inferometer_model::spec::{DatasetSpec, OUTPUT_TOKENS};
use inferometer_model::{Content, PlannedRequest};
use serde_json::{Map, Value};

use super::{Place, Prompts, Recipe};
use crate::dataset::{Dataset, Order};
use crate::lengths::Draw;
use crate::stream::Stream;

#[derive(Debug)]
pub(crate) struct DatasetPrompts {
    seed: u64,
    dataset: Arc<Dataset>,
    /// `None` keeps the order of the file.
    order: Option<Order>,
    output: Option<Draw>,
}

impl DatasetPrompts {
    pub(crate) fn new(spec: &DatasetSpec, dataset: Arc<Dataset>, seed: u64) -> Self {
        let order = Order::new(dataset.items.len() as u64, seed);
        Self {
            seed,
            dataset,
            order: (!spec.keep_order).then_some(order),
            output: spec.output.as_ref().map(Draw::new),
        }
    }

    fn item(&self, id: u64) -> usize {
        let item = match &self.order {
            Some(order) => order.item(id),
            None => id % self.dataset.items.len() as u64,
        };
        usize::try_from(item).unwrap_or(usize::MAX)
    }
}

impl Prompts for DatasetPrompts {
    fn recipe(&self, place: Place) -> Recipe {
        let number = self.item(place.id);
        let item = &self.dataset.items[number];
        let output_tokens = match &self.output {
            Some(output) => output.draw(&mut Stream::new(self.seed, "output", place.id)),
            // Where the data says nothing either, as where nothing is asked.
            None => item.output_tokens.unwrap_or(OUTPUT_TOKENS),
        };
        Recipe {
            input_tokens: item.input_tokens,
            output_tokens,
            item: u32::try_from(number).unwrap_or(u32::MAX),
            ..Recipe::default()
        }
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        let item = &self.dataset.items[request.item as usize];
        Content { fields: item.fields.clone(), ..Content::of(item.prompt.clone()) }
    }

    fn fields(&self, request: &PlannedRequest) -> Map<String, Value> {
        self.dataset.items[request.item as usize].fields.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use inferometer_model::Prompt;
    use inferometer_model::observations::FileFacts;
    use inferometer_model::spec::Lengths;
    use serde_json::json;

    use super::*;
    use crate::dataset::Item;
    use crate::prompts::planned;

    fn prompts(keep_order: bool, output: Option<Lengths>) -> DatasetPrompts {
        let item = |number: u32| Item {
            prompt: Prompt::Text(format!("prompt {number}")),
            input_tokens: 10 + number,
            output_tokens: (number == 0).then_some(77),
            fields: [("n".to_owned(), json!(number))].into_iter().collect(),
        };
        let (name, kind, sha256) = (String::new(), String::new(), String::new());
        let facts = FileFacts { name, kind, sha256, items: 5, dropped: BTreeMap::new() };
        let dataset =
            Arc::new(Dataset { items: (0..5).map(item).collect(), facts, notes: Vec::new() });
        let spec =
            DatasetSpec { path: PathBuf::new(), kind: None, input: None, output, keep_order };
        DatasetPrompts::new(&spec, dataset, 3)
    }

    #[test]
    fn every_item_is_asked_as_often_and_says_what_it_says() {
        let prompts = prompts(false, None);
        let mut asked = [0; 5];
        for id in 0..50 {
            let request = planned(&prompts, id);
            asked[request.item as usize] += 1;
            assert_eq!(request.input_tokens, 10 + request.item);
            let expected = if request.item == 0 { 77 } else { 128 };
            assert_eq!(request.output_tokens, expected);
            let content = prompts.content(&request);
            assert_eq!(content.prompt, Prompt::Text(format!("prompt {}", request.item)));
            assert_eq!(content.fields["n"], json!(request.item));
        }
        assert_eq!(asked, [10; 5]);
    }

    #[test]
    fn the_order_is_kept_and_the_output_chosen_when_asked() {
        let prompts = prompts(true, Some(Lengths::Fixed(9)));
        let recipes: Vec<_> = (0..12).map(|id| prompts.recipe(Place { id, turn: 0 })).collect();
        let items: Vec<_> = recipes.iter().map(|recipe| recipe.item).collect();
        assert_eq!(items, [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]);
        assert!(recipes.iter().all(|recipe| recipe.output_tokens == 9));
    }
}
