//! Where prompts come from. Every source answers the same two questions: how long is the request
//! at a place, and what does it say. Everything follows from the seed and the place.

mod decorated;
mod mix;
mod synthetic;
mod vllm_random;

#[cfg(test)]
mod tests;

pub(crate) use decorated::{Decorated, Users};
pub(crate) use mix::{Mix, Shares};
pub(crate) use synthetic::{Alphabet, Prefixes, Synthetic};
pub(crate) use vllm_random::{REQUESTS_OPEN_ENDED, VllmRandom};

use std::fmt;
use std::sync::Arc;

use inferometer_model::spec::{DatasetSpec, OUTPUT_TOKENS};
use inferometer_model::{Content, PlannedRequest, RequestId, Segment};
use serde_json::{Map, Value};

use crate::dataset::{Dataset, Shuffle};
use crate::lengths::Draw;
use crate::plan::Stream;
use crate::text::TextMaker;
use crate::trace::{Trace, TraceEntry};

/// A source of prompts, made for one seed.
pub(crate) trait Prompts: Send + Sync + fmt::Debug {
    fn recipe(&self, place: PromptIndex) -> Recipe;

    /// The content of a request; in a conversation, the new turn alone.
    fn content(&self, request: &PlannedRequest) -> Content;

    /// Its content without its text: which runs of tokens are equal to which. Sources that know
    /// it make no text for this; elsewhere equal texts are equal and others share nothing.
    fn segments(&self, request: &PlannedRequest) -> Vec<Segment> {
        let seed = self.content(request).prompt.likeness();
        vec![Segment { seed, tokens: request.input_tokens }]
    }

    /// Fields of its body, apart from the prompt.
    fn fields(&self, _: &PlannedRequest) -> Map<String, Value> {
        Map::new()
    }
}

/// Which request of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PromptIndex {
    pub(crate) id: u64,
    /// Turn of its conversation, from zero.
    pub(crate) turn: u16,
}

/// What a plan keeps of a request: enough to make its content again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recipe {
    pub(crate) prompt_seed: u64,
    pub(crate) input_tokens: u32,
    pub(crate) output_tokens: u32,
    pub(crate) item: u32,
    pub(crate) part: u16,
}

/// A request of a plan that releases it as a slot becomes free.
#[cfg(test)]
pub(crate) fn planned(prompts: &dyn Prompts, id: u64) -> PlannedRequest {
    let id = inferometer_model::RequestId(id);
    let recipe = prompts.recipe(PromptIndex { id: id.0, turn: 0 });
    PlannedRequest {
        prompt_seed: recipe.prompt_seed,
        input_tokens: recipe.input_tokens,
        output_tokens: recipe.output_tokens,
        item: recipe.item,
        part: recipe.part,
        ..PlannedRequest::alone(id, inferometer_model::Release::WhenSlotFree)
    }
}

#[derive(Debug)]
pub(crate) struct Fixed {
    pub(crate) seed: u64,
    pub(crate) prompt: String,
    /// By the tokenizer, or by words.
    pub(crate) input_tokens: u32,
    pub(crate) output: Draw,
}

impl Prompts for Fixed {
    fn recipe(&self, place: PromptIndex) -> Recipe {
        let output_tokens = self.output.draw(&mut Stream::new(self.seed, "output", place.id));
        Recipe { input_tokens: self.input_tokens, output_tokens, ..Recipe::default() }
    }

    fn content(&self, _: &PlannedRequest) -> Content {
        Content::text(self.prompt.clone())
    }
}

/// The first request of a source, whatever the place.
#[derive(Debug)]
pub(crate) struct Repeated(pub(crate) Arc<dyn Prompts>);

const FIRST: RequestId = RequestId(0);

impl Prompts for Repeated {
    fn recipe(&self, place: PromptIndex) -> Recipe {
        self.0.recipe(PromptIndex { id: FIRST.0, ..place })
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        self.0.content(&PlannedRequest { id: FIRST, ..*request })
    }

    fn segments(&self, request: &PlannedRequest) -> Vec<Segment> {
        self.0.segments(&PlannedRequest { id: FIRST, ..*request })
    }

    fn fields(&self, request: &PlannedRequest) -> Map<String, Value> {
        self.0.fields(&PlannedRequest { id: FIRST, ..*request })
    }
}

#[derive(Debug)]
pub(crate) struct WarmUp {
    pub(crate) lengths: Arc<dyn Prompts>,
    pub(crate) text: Arc<TextMaker>,
    pub(crate) seed: u64,
}

impl Prompts for WarmUp {
    fn recipe(&self, place: PromptIndex) -> Recipe {
        let recipe = self.lengths.recipe(place);
        Recipe {
            prompt_seed: Stream::new(self.seed, "warm-up", place.id).bits(),
            input_tokens: recipe.input_tokens.max(self.text.shortest()),
            ..recipe
        }
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        let own = Segment { seed: request.prompt_seed, tokens: request.input_tokens };
        let fields = self.lengths.fields(request);
        Content { fields, ..Content::text(self.text.framed(&[own])) }
    }

    fn segments(&self, request: &PlannedRequest) -> Vec<Segment> {
        vec![Segment { seed: request.prompt_seed, tokens: request.input_tokens }]
    }
}

#[derive(Debug)]
pub(crate) struct TracePrompts {
    pub(crate) seed: u64,
    pub(crate) text: Arc<TextMaker>,
    /// For at least one entry; after the last the first comes again, with other words.
    pub(crate) trace: Arc<Trace>,
}

impl TracePrompts {
    /// A block's text is shared within a pass: in the next one a prefix cache must not know all.
    fn seed_of_blocks(&self, id: RequestId) -> u64 {
        match id.0 / self.trace.entries.len() as u64 {
            0 => self.seed,
            pass => Stream::new(self.seed, "pass", pass).bits(),
        }
    }

    /// The blocks that others may share, then what is missing as text of this request alone.
    fn parts(&self, entry: &TraceEntry, request: &PlannedRequest) -> Vec<Segment> {
        let blocks_seed = self.seed_of_blocks(request.id);
        let mut left = request.input_tokens;
        let mut segments = Vec::new();
        let blocks = entry.blocks.start as usize..entry.blocks.end as usize;
        for hash_id in &self.trace.hash_ids[blocks] {
            let tokens = self.trace.block_tokens.min(left);
            if tokens == 0 {
                break;
            }
            let seed = Stream::new(blocks_seed, "block", *hash_id).bits();
            segments.push(Segment { seed, tokens });
            left -= tokens;
        }
        if 0 < left {
            segments.push(Segment { seed: request.prompt_seed, tokens: left });
        }
        segments
    }
}

impl Prompts for TracePrompts {
    fn recipe(&self, place: PromptIndex) -> Recipe {
        let item = place.id % self.trace.entries.len() as u64;
        let item = u32::try_from(item).unwrap_or(u32::MAX);
        let entry = &self.trace.entries[item as usize];
        Recipe {
            prompt_seed: Stream::new(self.seed, "prompts", place.id).bits(),
            input_tokens: entry.input_tokens.max(self.text.shortest()),
            output_tokens: entry.output_tokens,
            item,
            ..Recipe::default()
        }
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        let entry = &self.trace.entries[request.item as usize];
        Content::text(self.text.framed(&self.parts(entry, request)))
    }

    fn segments(&self, request: &PlannedRequest) -> Vec<Segment> {
        self.parts(&self.trace.entries[request.item as usize], request)
    }
}

#[derive(Debug)]
pub(crate) struct DatasetPrompts {
    seed: u64,
    dataset: Arc<Dataset>,
    /// `None` keeps the order of the file.
    order: Option<Shuffle>,
    output: Option<Draw>,
}

impl DatasetPrompts {
    pub(crate) fn new(spec: &DatasetSpec, dataset: Arc<Dataset>, seed: u64) -> Self {
        let order = Shuffle::new(dataset.items.len() as u64, seed);
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
    fn recipe(&self, place: PromptIndex) -> Recipe {
        let number = self.item(place.id);
        let item = &self.dataset.items[number];
        let output_tokens = match &self.output {
            Some(output) => output.draw(&mut Stream::new(self.seed, "output", place.id)),
            // Neither the data nor the spec sets a length.
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
        Content { fields: item.fields.clone(), ..Content::new(item.prompt.clone()) }
    }

    fn fields(&self, request: &PlannedRequest) -> Map<String, Value> {
        self.dataset.items[request.item as usize].fields.clone()
    }
}

#[cfg(test)]
mod dataset_tests {
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
        let recipes: Vec<_> =
            (0..12).map(|id| prompts.recipe(PromptIndex { id, turn: 0 })).collect();
        let items: Vec<_> = recipes.iter().map(|recipe| recipe.item).collect();
        assert_eq!(items, [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]);
        assert!(recipes.iter().all(|recipe| recipe.output_tokens == 9));
    }
}
