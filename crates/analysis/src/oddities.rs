//! What is odd about the answers, counted. Whether it is a reason to doubt, `warning.rs` judges.

use inferometer_model::RequestRecord;
use inferometer_model::observations::Manifest;
use inferometer_model::outcome::Cause;
use inferometer_model::record::FinishReason;
use inferometer_model::spec::Source;

use crate::arrivals::Output;
use crate::tokens::{OutputTokens, TokenSource};

#[derive(Debug, Default)]
pub(crate) struct Oddities {
    /// Usage said zero tokens although there was output.
    pub(crate) zero_usage: u64,
    /// The marks of the stream do not add up to the usage.
    pub(crate) usage_mismatch: u64,
    /// Streamed answers of two tokens or more, and those of them that came in one arrival.
    pub(crate) streams: u64,
    pub(crate) streams_in_one_arrival: u64,
    /// Answers whose length is off by more than [`LENGTH_TOLERANCE`] of what was asked.
    pub(crate) output_off: u64,
    pub(crate) done_seen: u64,
    pub(crate) done_missing: u64,
    pub(crate) data_after_done: u64,
    pub(crate) other_model: u64,
    /// The first of the other models by name, so that the choice does not hang on the order.
    pub(crate) other_model_name: Option<String>,
    pub(crate) stale_pool: u64,
    pub(crate) client_resource: u64,
    pub(crate) reads: u64,
    pub(crate) reads_stamped: u64,
}

/// Beyond this share of the asked length an answer is of another length.
pub(crate) const LENGTH_TOLERANCE: f64 = 0.10;

/// What the length that was asked of an answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputAsk {
    /// The workload wants this many tokens.
    Exactly,
    /// The data says how long its answer was, and nobody made the server go on to that length: an
    /// answer that comes to its own end before it is as asked.
    AtMost,
    /// The answer has no tokens.
    Nothing,
}

impl OutputAsk {
    pub(crate) fn of(manifest: &Manifest, record: &RequestRecord) -> Self {
        let mut source = Some(&manifest.spec.workload.source);
        if let Some(Source::Mix(parts)) = source {
            source = parts.get(usize::from(record.asked.part)).map(|part| &part.source);
        }
        let pinned = manifest.endpoint.pinned;
        let chosen = source.is_none_or(Source::chooses_output);
        if chosen || pinned.ignore_eos || pinned.min_tokens { Self::Exactly } else { Self::AtMost }
    }

    fn is_kept(self, record: &RequestRecord, tokens: OutputTokens) -> bool {
        if self == Self::Nothing {
            return true;
        }
        let asked = f64::from(record.asked.output_tokens);
        let off = tokens.count as f64 - asked;
        if off.abs() <= LENGTH_TOLERANCE * asked {
            return true;
        }
        self == Self::AtMost && off < 0.0 && came_to_its_end(record)
    }
}

/// Whether the model said that it was done, as against being cut off.
fn came_to_its_end(record: &RequestRecord) -> bool {
    let is_end =
        |reason: &FinishReason| matches!(reason, FinishReason::Stop | FinishReason::ToolCalls);
    !record.finishes.is_empty() && record.finishes.iter().all(|finish| is_end(&finish.reason))
}

impl Oddities {
    /// On a request that ended in any way.
    pub(crate) fn add_attempt(&mut self, record: &RequestRecord) {
        self.reads += record.reads.len() as u64;
        self.reads_stamped +=
            record.reads.iter().filter(|read| read.kernel.is_some()).count() as u64;
        self.stale_pool += u64::from(record.ending.cause == Some(Cause::StalePool));
        self.client_resource += u64::from(record.ending.cause == Some(Cause::ClientResource));
        self.data_after_done += u64::from(0 < record.done.events_after);
        if let Some(name) = &record.other_model {
            self.other_model += 1;
            if self.other_model_name.as_ref().is_none_or(|least| name < least) {
                self.other_model_name = Some(name.clone());
            }
        }
    }

    /// On an answer that is whole.
    pub(crate) fn add_ok(
        &mut self,
        record: &RequestRecord,
        output: &Output,
        tokens: OutputTokens,
        asked: OutputAsk,
    ) {
        self.zero_usage += u64::from(tokens.zero_usage);
        // An unbelieved zero has been counted already.
        if tokens.source == TokenSource::Usage
            && let Some(marked) = output.marked_tokens()
        {
            self.usage_mismatch += u64::from(tokens.count != marked);
        }
        self.output_off += u64::from(!asked.is_kept(record, tokens));
    }

    /// On a whole answer that was asked for as a stream.
    pub(crate) fn add_stream(
        &mut self,
        record: &RequestRecord,
        output: &Output,
        tokens: OutputTokens,
    ) {
        self.done_seen += u64::from(record.done.seen);
        self.done_missing += u64::from(!record.done.seen);
        if 2 <= tokens.count && !output.arrivals.is_empty() {
            self.streams += 1;
            self.streams_in_one_arrival += u64::from(output.arrivals.len() == 1);
        }
    }
}
