//! What requests of a plan owe to those before them.

use std::ops::RangeInclusive;

use inferometer_model::spec::{LoadShape, Source, TOKENS_MAX};
use inferometer_model::{Moment, PlannedRequest, Release};

use super::Header;

const TOKENS: RangeInclusive<u32> = 1..=TOKENS_MAX;

/// Checks requests one after the other.
#[derive(Debug)]
pub(super) struct Sequence {
    is_open_loop: bool,
    /// `None` where the header cannot tell.
    parts: Option<usize>,
    before: Option<PlannedRequest>,
    /// When the last request left that did not wait for an answer.
    latest: Moment,
}

impl Sequence {
    pub(super) fn of(header: &Header) -> Self {
        let parts = match &header.workload.source {
            Source::Mix(parts) => Some(parts.len()),
            // A plan that was played and saved again.
            Source::Saved { .. } => None,
            Source::Synthetic(_)
            | Source::VllmRandom(_)
            | Source::Dataset(_)
            | Source::Fixed(_)
            | Source::Trace(_)
            | Source::Conversations(_) => Some(1),
        };
        let is_open_loop = matches!(header.load.shape, LoadShape::Open { .. });
        Self { is_open_loop, parts, before: None, latest: Moment::ZERO }
    }

    pub(super) fn take(&mut self, request: &PlannedRequest) -> Result<(), String> {
        let expected = self.before.map_or(0, |before| before.id.0 + 1);
        if request.id.0 != expected {
            return Err(format!("request {} stands where {expected} belongs", request.id));
        }
        self.check_turn(request)?;
        self.check_release(request)?;
        let lengths =
            [("input_tokens", request.input_tokens), ("output_tokens", request.output_tokens)];
        if let Some((name, length)) = lengths.iter().find(|(_, length)| !TOKENS.contains(length)) {
            return Err(format!("{name} is {length} and must be from 1 to {TOKENS_MAX}"));
        }
        if let Some(parts) = self.parts
            && parts <= usize::from(request.part)
        {
            return Err(format!(
                "part {} is not there: the workload has {parts}, counted from 0",
                request.part
            ));
        }
        self.before = Some(*request);
        Ok(())
    }

    /// A conversation that goes on must find its next turn.
    pub(super) fn finish(&self) -> Result<(), String> {
        if self.before.is_some_and(|before| before.continues) {
            return Err("it continues, but no request follows it".to_owned());
        }
        Ok(())
    }

    fn check_turn(&self, request: &PlannedRequest) -> Result<(), String> {
        let follows = matches!(request.release, Release::After { .. });
        let goes_on = self.before.filter(|before| before.continues);
        let expected = match (goes_on, follows) {
            (None, true) => {
                return Err(
                    "it follows an answer, but the request before it does not continue".to_owned()
                );
            }
            (Some(_), false) => {
                return Err(
                    "the request before it continues, so it must follow that answer (`after_ns`)"
                        .to_owned(),
                );
            }
            (None, false) => 0,
            (Some(before), true) => u32::from(before.turn) + 1,
        };
        if u32::from(request.turn) != expected {
            return Err(format!("it is turn {} where turn {expected} belongs", request.turn));
        }
        Ok(())
    }

    fn check_release(&mut self, request: &PlannedRequest) -> Result<(), String> {
        match request.release {
            Release::At(_) if !self.is_open_loop => {
                Err("it leaves at a moment, and the load is a closed loop".to_owned())
            }
            Release::WhenSlotFree if self.is_open_loop => {
                Err("it waits for a free slot, and the load is an open loop".to_owned())
            }
            Release::At(moment) if moment < self.latest => {
                Err("it leaves before a request above it; moments must not decrease".to_owned())
            }
            Release::At(moment) => {
                self.latest = moment;
                Ok(())
            }
            Release::WhenSlotFree | Release::After { .. } => Ok(()),
        }
    }
}
