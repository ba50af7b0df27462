//! Prompts of a trace: its lengths, and equal text where it says that requests shared theirs.

use std::sync::Arc;

use inferometer_model::{Content, PlannedRequest, RequestId};

use super::{Place, Prompts, Recipe};
use crate::stream::Stream;
use crate::text::{Segment, TextMaker};
use crate::trace::{Trace, TraceEntry};

#[derive(Debug)]
pub(crate) struct TracePrompts {
    pub(crate) seed: u64,
    pub(crate) text: Arc<TextMaker>,
    /// Of at least one entry; after the last the first comes again, with other words.
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
    fn recipe(&self, place: Place) -> Recipe {
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

#[cfg(test)]
mod tests;
