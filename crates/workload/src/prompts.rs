//! Where prompts come from. Every source answers the same two questions: how long is the request
//! of a number, and what is its content. Both follow from the seed and the number.

mod vllm_random;

pub(crate) use vllm_random::{REQUESTS_OPEN_ENDED, VllmRandom};

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use inferometer_model::record::SessionPlace;
use inferometer_model::spec::{
    AdapterChoice, Adapters, BodySpec, DatasetSpec, OUTPUT_TOKENS, SharedPrefix,
};
use inferometer_model::{Content, Message, PlannedRequest, Prompt, Release, RequestId, Segment};
use serde_json::{Map, Value};

use crate::WorkloadError;
use crate::dataset::{Dataset, Shuffle};
use crate::lengths::{Draw, Zipf};
use crate::media::MediaMaker;
use crate::plan::Stream;
use crate::text::TextMaker;
use crate::tokenizer::Tokenizer;
use crate::trace::Trace;

/// A source of prompts, made for one seed.
pub(crate) trait Prompts: Send + Sync + fmt::Debug {
    fn recipe(&self, place: PromptIndex) -> PlannedRequest;

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

/// What a source sets of a request, its seed, lengths, item and part, is laid over this.
pub(crate) const RECIPE: PlannedRequest =
    PlannedRequest::alone(RequestId(0), Release::WhenSlotFree);

/// A request of a plan that releases it as a slot becomes free.
#[cfg(test)]
pub(crate) fn planned(prompts: &dyn Prompts, id: u64) -> PlannedRequest {
    PlannedRequest { id: RequestId(id), ..prompts.recipe(PromptIndex { id, turn: 0 }) }
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
    fn recipe(&self, place: PromptIndex) -> PlannedRequest {
        let output_tokens = self.output.draw_at(self.seed, "output", place.id);
        PlannedRequest { input_tokens: self.input_tokens, output_tokens, ..RECIPE }
    }

    fn content(&self, _: &PlannedRequest) -> Content {
        Content::text(self.prompt.clone())
    }
}

/// The first request of a source, whatever the number.
#[derive(Debug)]
pub(crate) struct Repeated(pub(crate) Arc<dyn Prompts>);

const FIRST: RequestId = RequestId(0);

impl Prompts for Repeated {
    fn recipe(&self, place: PromptIndex) -> PlannedRequest {
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

/// Several prompts of a source in each request, for APIs that take lists.
#[derive(Debug)]
pub(crate) struct Batched {
    pub(crate) inner: Arc<dyn Prompts>,
    pub(crate) size: u32,
}

impl Batched {
    /// The prompts of a request, as requests of the source by themselves.
    fn parts(&self, id: u64) -> impl Iterator<Item = PlannedRequest> {
        let first = id.saturating_mul(self.size.into());
        (first..first.saturating_add(self.size.into())).map(|id| PlannedRequest {
            id: RequestId(id),
            ..self.inner.recipe(PromptIndex { id, turn: 0 })
        })
    }
}

impl Prompts for Batched {
    fn recipe(&self, place: PromptIndex) -> PlannedRequest {
        let tokens = self.parts(place.id).map(|part| u64::from(part.input_tokens)).sum::<u64>();
        let input_tokens = u32::try_from(tokens).unwrap_or(u32::MAX);
        let first = PromptIndex { id: place.id.saturating_mul(self.size.into()), ..place };
        PlannedRequest { input_tokens, ..self.inner.recipe(first) }
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        let text = |part: PlannedRequest| match self.inner.content(&part).prompt {
            Prompt::Text(text) => text,
            Prompt::Messages(messages) => {
                messages.iter().map(Message::text).collect::<Vec<_>>().join("\n")
            }
        };
        let texts = self.parts(request.id.0).map(text);
        let messages = texts.map(|text| Message::new("user", text)).collect();
        Content { fields: self.fields(request), ..Content::new(Prompt::Messages(messages)) }
    }

    fn segments(&self, request: &PlannedRequest) -> Vec<Segment> {
        self.parts(request.id.0).flat_map(|part| self.inner.segments(&part)).collect()
    }

    /// Those of its first prompt: a request has one body.
    fn fields(&self, request: &PlannedRequest) -> Map<String, Value> {
        self.parts(request.id.0).next().map_or_else(Map::new, |part| self.inner.fields(&part))
    }
}

#[derive(Debug)]
pub(crate) struct WarmUp {
    pub(crate) lengths: Arc<dyn Prompts>,
    pub(crate) text: Arc<TextMaker>,
    pub(crate) seed: u64,
}

impl Prompts for WarmUp {
    fn recipe(&self, place: PromptIndex) -> PlannedRequest {
        let recipe = self.lengths.recipe(place);
        PlannedRequest {
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

impl Prompts for TracePrompts {
    fn recipe(&self, place: PromptIndex) -> PlannedRequest {
        let item = place.id % self.trace.entries.len() as u64;
        let item = u32::try_from(item).unwrap_or(u32::MAX);
        let entry = &self.trace.entries[item as usize];
        PlannedRequest {
            prompt_seed: Stream::new(self.seed, "prompts", place.id).bits(),
            input_tokens: entry.input_tokens.max(self.text.shortest()),
            output_tokens: entry.output_tokens,
            item,
            ..RECIPE
        }
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        Content::text(self.text.framed(&self.segments(request)))
    }

    /// The blocks that others may share, then the missing tokens as text of this request alone.
    fn segments(&self, request: &PlannedRequest) -> Vec<Segment> {
        let entry = &self.trace.entries[request.item as usize];
        // A block's text is shared within a pass: in the next one a prefix cache must not know it.
        let blocks_seed = match request.id.0 / self.trace.entries.len() as u64 {
            0 => self.seed,
            pass => Stream::new(self.seed, "pass", pass).bits(),
        };
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
    fn recipe(&self, place: PromptIndex) -> PlannedRequest {
        let number = self.item(place.id);
        let item = &self.dataset.items[number];
        let output_tokens = match &self.output {
            Some(output) => output.draw_at(self.seed, "output", place.id),
            // Neither the data nor the spec sets a length.
            None => item.output_tokens.unwrap_or(OUTPUT_TOKENS),
        };
        PlannedRequest {
            input_tokens: item.input_tokens,
            output_tokens,
            item: u32::try_from(number).unwrap_or(u32::MAX),
            ..RECIPE
        }
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        let item = &self.dataset.items[request.item as usize];
        let (fields, expected) = (item.fields.clone(), item.expected.clone());
        Content { fields, expected, ..Content::new(item.prompt.clone()) }
    }

    fn fields(&self, request: &PlannedRequest) -> Map<String, Value> {
        self.dataset.items[request.item as usize].fields.clone()
    }
}

/// Single prompts, or the turns of conversations.
#[derive(Debug)]
pub(crate) struct Synthetic {
    pub(crate) seed: u64,
    pub(crate) text: Arc<TextMaker>,
    pub(crate) input: Draw,
    pub(crate) output: Draw,
    pub(crate) prefixes: Option<Prefixes>,
    /// Whether a shared prefix is a message of its own, as conversations begin.
    pub(crate) prefix_is_system: bool,
}

/// Beginnings that prompts share.
#[derive(Debug)]
pub(crate) struct Prefixes {
    seed: u64,
    tokens: u32,
    popularity: Zipf,
}

impl Prefixes {
    pub(crate) fn new(spec: SharedPrefix, seed: u64) -> Self {
        Self { seed, tokens: spec.tokens, popularity: Zipf::new(spec.count, spec.zipf) }
    }

    fn segment(&self, id: u64) -> Segment {
        let number = self.popularity.draw(&mut Stream::new(self.seed, "prefix", id));
        let seed = Stream::new(self.seed, "prefix-text", number.into()).bits();
        Segment { seed, tokens: self.tokens }
    }
}

impl Synthetic {
    /// The fewest tokens that can be sent.
    fn shortest(&self, turn: u16) -> u32 {
        match self.system_tokens(turn) {
            _ if 0 < turn => 1,
            0 => self.text.shortest(),
            system => self.text.shortest_after(system),
        }
    }

    /// The shared beginning, where there is one, and the request's own words.
    fn parts(&self, request: &PlannedRequest) -> (Option<Segment>, Segment) {
        let own = Segment { seed: request.prompt_seed, tokens: request.input_tokens };
        let Some(prefixes) = self.prefixes.as_ref().filter(|_| request.turn == 0) else {
            return (None, own);
        };
        let prefix = prefixes.segment(request.conversation().0);
        // A prompt that is no longer than its prefix is a part of it, and a word of its own.
        let tokens = prefix.tokens.min(own.tokens.saturating_sub(1));
        let prefix = Segment { tokens, ..prefix };
        (Some(prefix), Segment { tokens: own.tokens - tokens, ..own })
    }

    /// What the first turn of a conversation has before the user's words.
    fn system_tokens(&self, turn: u16) -> u32 {
        match &self.prefixes {
            Some(prefixes) if self.prefix_is_system && turn == 0 => prefixes.tokens,
            _ => 0,
        }
    }
}

impl Prompts for Synthetic {
    fn recipe(&self, place: PromptIndex) -> PlannedRequest {
        let own = self.input.draw_at(self.seed, "input", place.id);
        let input_tokens = own.saturating_add(self.system_tokens(place.turn));
        PlannedRequest {
            prompt_seed: Stream::new(self.seed, "prompts", place.id).bits(),
            input_tokens: input_tokens.max(self.shortest(place.turn)),
            output_tokens: self.output.draw_at(self.seed, "output", place.id),
            session: SessionPlace {
                // The first conversation of all has nobody to share with.
                shared_tokens: if 0 < place.id { self.system_tokens(place.turn) } else { 0 },
                ..SessionPlace::default()
            },
            ..RECIPE
        }
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        match self.parts(request) {
            (_, own) if 0 < request.turn => Content::text(self.text.bare(&[own])),
            (None, own) => Content::text(self.text.framed(&[own])),
            (Some(prefix), own) if self.prefix_is_system => {
                let [system, user] = self.text.opening(prefix, own);
                let messages = vec![Message::new("system", system), Message::new("user", user)];
                Content::new(Prompt::Messages(messages))
            }
            (Some(prefix), own) => Content::text(self.text.framed(&[prefix, own])),
        }
    }

    fn segments(&self, request: &PlannedRequest) -> Vec<Segment> {
        let (prefix, own) = self.parts(request);
        prefix.into_iter().chain([own]).collect()
    }
}

/// A vocabulary, with its words or without.
#[derive(Clone, Debug)]
pub(crate) enum Alphabet {
    Words(Arc<Tokenizer>),
    /// So many ids, of which the first few are special.
    Ids {
        size: u32,
        special: u32,
    },
}

/// Beyond every tokenizer there is; each ordinary id is held in memory.
const SIZE_MAX: u32 = 1 << 22;

impl Alphabet {
    /// What `vocabulary:131072`, or `vocabulary:131072,1000` with special ids, means; `None` for
    /// the name of a tokenizer.
    pub(crate) fn without_words(name: &str) -> Result<Option<Self>, WorkloadError> {
        let Some(numbers) = name.strip_prefix("vocabulary:") else { return Ok(None) };
        let (size, special) = numbers.split_once(',').unwrap_or((numbers, "0"));
        let read = |text: &str| text.trim().parse::<u32>().ok();
        match (read(size), read(special)) {
            (Some(size), _) if SIZE_MAX < size => {
                Err(WorkloadError::LargeVocabulary { name: name.to_owned(), bound: SIZE_MAX })
            }
            (Some(size), Some(special)) if special < size => Ok(Some(Self::Ids { size, special })),
            _ => Err(WorkloadError::BadVocabulary(name.to_owned())),
        }
    }

    pub(crate) fn size(&self) -> u32 {
        match self {
            Self::Words(tokenizer) => tokenizer.vocabulary_size(),
            Self::Ids { size, .. } => *size,
        }
    }

    /// The ids of ordinary tokens, in their order.
    pub(crate) fn ordinary(&self) -> Result<Vec<u32>, WorkloadError> {
        match self {
            Self::Ids { size, special } => Ok((*special..*size).collect()),
            Self::Words(tokenizer) => {
                let special = tokenizer.special_ids();
                let ids = (0..self.size()).filter(|id| !special.contains(id));
                let ids: Vec<u32> = ids.collect();
                if ids.is_empty() {
                    return Err(WorkloadError::NoVocabulary(tokenizer.facts().name));
                }
                Ok(ids)
            }
        }
    }

    /// Tokens that a server puts around a prompt by itself.
    pub(crate) fn around(&self) -> u32 {
        match self {
            Self::Words(tokenizer) => u32::try_from(tokenizer.special_tokens()).unwrap_or(u32::MAX),
            Self::Ids { .. } => 0,
        }
    }

    /// The text of ids, and the ids of that text; without words the ids stay as they are.
    pub(crate) fn spell(&self, ids: Vec<u32>) -> (String, Vec<u32>) {
        match self {
            Self::Words(tokenizer) => {
                let text = tokenizer.decode(&ids);
                let ids = tokenizer.encode(&text);
                (text, ids)
            }
            Self::Ids { .. } => (String::new(), ids),
        }
    }
}

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
    fn recipe(&self, place: PromptIndex) -> PlannedRequest {
        let share = self.shares.share_at(place.id);
        let recipe = self.parts[share.part].recipe(PromptIndex { id: share.ordinal, ..place });
        PlannedRequest { part: u16::try_from(share.part).unwrap_or(u16::MAX), ..recipe }
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

#[derive(Debug)]
pub(crate) struct Decorated {
    seed: u64,
    inner: Arc<dyn Prompts>,
    users: Users,
    media: MediaMaker,
    /// With their popularity, where it is not even.
    adapters: Option<(Adapters, Option<Zipf>)>,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Users {
    /// Each request by itself.
    Requests,
    /// Conversations, even those of one turn: a request's item is its conversation's number.
    Conversations,
}

impl Decorated {
    /// Adapters, where there are any, have at least one name.
    pub(crate) fn new(
        inner: Arc<dyn Prompts>,
        body: &BodySpec,
        media: MediaMaker,
        users: Users,
        seed: u64,
    ) -> Self {
        let adapters = body.adapters.clone().map(|adapters| {
            let count = u32::try_from(adapters.names.len()).unwrap_or(u32::MAX);
            let popularity = match adapters.choice {
                AdapterChoice::Zipf(exponent) => Some(Zipf::new(count, exponent)),
                AdapterChoice::RoundRobin | AdapterChoice::Random => None,
            };
            (adapters, popularity)
        });
        Self { seed, inner, users, media, adapters }
    }

    /// An adapter stays with its conversation.
    fn adapter(&self, request: &PlannedRequest) -> Option<String> {
        let (Adapters { names, choice }, popularity) = self.adapters.as_ref()?;
        let mut stream = Stream::new(self.seed, "adapters", request.conversation().0);
        let count = names.len() as u64;
        let number = match (choice, popularity) {
            (_, Some(popularity)) => popularity.draw(&mut stream).into(),
            (AdapterChoice::RoundRobin, None) if self.users == Users::Conversations => {
                u64::from(request.item) % count
            }
            (AdapterChoice::RoundRobin, None) => request.id.0 % count,
            // A remainder of 64 bits favours no name by more than one part in 2^50.
            (AdapterChoice::Random | AdapterChoice::Zipf(_), None) => stream.bits() % count,
        };
        let last = names.len() - 1;
        Some(names[usize::try_from(number).unwrap_or(last).min(last)].clone())
    }
}

impl Prompts for Decorated {
    fn recipe(&self, place: PromptIndex) -> PlannedRequest {
        self.inner.recipe(place)
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        let mut content = self.inner.content(request);
        content.images.extend(self.media.make(self.seed, request.id.0));
        content.model = self.adapter(request).or(content.model);
        content
    }

    /// A server caches for each adapter apart. Pictures are beyond what a simulation knows of.
    fn segments(&self, request: &PlannedRequest) -> Vec<Segment> {
        let mut segments = self.inner.segments(request);
        if let Some(name) = self.adapter(request) {
            let adapter = Prompt::Text(name).likeness();
            for segment in &mut segments {
                segment.seed ^= adapter;
            }
        }
        segments
    }

    fn fields(&self, request: &PlannedRequest) -> Map<String, Value> {
        self.inner.fields(request)
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod dataset_tests {
    use std::collections::BTreeMap;

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
            expected: None,
        };
        let (name, kind, sha256) = (String::new(), String::new(), String::new());
        let facts = FileFacts { name, kind, sha256, items: 5, dropped: BTreeMap::new() };
        let dataset =
            Arc::new(Dataset { items: (0..5).map(item).collect(), facts, notes: Vec::new() });
        let spec = DatasetSpec { output, keep_order, ..DatasetSpec::default() };
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

#[cfg(test)]
mod synthetic_tests {
    use super::*;
    use crate::prompts::planned;
    use inferometer_model::spec::Lengths;

    fn synthetic(prefix_is_system: bool) -> Synthetic {
        let prefix = SharedPrefix { tokens: 24, count: 2, zipf: 0.0 };
        Synthetic {
            seed: 5,
            text: Arc::new(TextMaker::Estimating(None)),
            input: Draw::new(&Lengths::Fixed(40)),
            output: Draw::new(&Lengths::Fixed(1)),
            prefixes: Some(Prefixes::new(prefix, 5)),
            prefix_is_system,
        }
    }

    #[test]
    fn segments_are_the_shared_prefix_and_the_words_of_its_own() {
        let prompts = synthetic(false);
        let segments: Vec<_> = (0..20).map(|id| prompts.segments(&planned(&prompts, id))).collect();
        for parts in &segments {
            assert_eq!(parts.iter().map(|part| part.tokens).collect::<Vec<_>>(), [24, 16]);
        }
        let mut prefixes: Vec<u64> = segments.iter().map(|parts| parts[0].seed).collect();
        let mut own: Vec<u64> = segments.iter().map(|parts| parts[1].seed).collect();
        for seeds in [&mut prefixes, &mut own] {
            seeds.sort_unstable();
            seeds.dedup();
        }
        assert_eq!((prefixes.len(), own.len()), (2, 20));
    }

    #[test]
    fn a_later_turn_is_of_new_words_alone() {
        let prompts = synthetic(true);
        let first = planned(&prompts, 3);
        assert_eq!(prompts.segments(&first).len(), 2);
        let later = PlannedRequest { turn: 1, ..first };
        let own = Segment { seed: first.prompt_seed, tokens: first.input_tokens };
        assert_eq!(prompts.segments(&later), [own]);
    }
}

#[cfg(test)]
mod alphabet_tests {
    use super::*;

    #[test]
    fn a_vocabulary_is_a_number_and_perhaps_another() {
        let read = |name: &str| Alphabet::without_words(name);
        assert!(read("mistralai/Mistral-7B").unwrap().is_none());
        let plain = read("vocabulary:32000").unwrap().unwrap();
        assert_eq!((plain.size(), plain.ordinary().unwrap().len()), (32_000, 32_000));
        let special = read("vocabulary:131072,1000").unwrap().unwrap();
        assert_eq!(special.ordinary().unwrap().first(), Some(&1_000));
        for wrong in ["vocabulary:", "vocabulary:many", "vocabulary:0", "vocabulary:5,5"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(read("vocabulary:4194304").is_ok());
        for large in ["vocabulary:4194305", "vocabulary:4294967295,7"] {
            let refused = read(large).unwrap_err().to_string();
            assert!(refused.contains(large) && refused.contains("4194304"), "{refused}");
        }
    }
}

#[cfg(test)]
mod mix_tests {
    use inferometer_model::spec::Lengths;
    use std::collections::BTreeMap;

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
            expected: None,
        };
        let (name, kind, sha256) = (String::new(), String::new(), String::new());
        let facts = FileFacts { name, kind, sha256, items: 0, dropped: BTreeMap::new() };
        let dataset =
            Arc::new(Dataset { items: (0..items).map(item).collect(), facts, notes: Vec::new() });
        let spec = DatasetSpec { keep_order, ..DatasetSpec::default() };
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
