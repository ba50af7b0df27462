//! What the scheduler was told and did, line by line, so that a live run can be replayed.

use serde::Serialize;

use crate::scheduler::tokens::PromptHasher;
use crate::scheduler::{SchedulerRequest, Step};

/// JSON lines, within a bound.
#[derive(Debug, Default)]
pub(crate) struct StepLog {
    lines: Vec<u8>,
    dropped: u64,
}

/// One line. All moments are engine time.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Line<'a> {
    Arrival {
        at_ns: u64,
        id: u64,
        prompt_tokens: u32,
        prompt_hashes: &'a [u64],
        prompt_rest: &'a PromptHasher,
        answer_seed: u64,
        min_tokens: u32,
        eos_at: Option<u32>,
        stop_at: Option<u32>,
        max_tokens: u32,
        priority: i32,
    },
    Abort {
        at_ns: u64,
        id: u64,
    },
    Step {
        ordinal: u64,
        began_ns: u64,
        ends_ns: u64,
        scheduled: &'a [(u64, u32)],
        preempted: &'a [u64],
        admitted: &'a [(u64, u32)],
    },
    Dropped(u64),
}

impl StepLog {
    pub(crate) fn arrival(&mut self, at_ns: u64, request: &SchedulerRequest) {
        self.add(&Line::Arrival {
            at_ns,
            id: request.id,
            prompt_tokens: request.prompt.tokens,
            prompt_hashes: &request.prompt.hashes,
            prompt_rest: &request.prompt.rest,
            answer_seed: request.answer_seed,
            min_tokens: request.stop.min_tokens,
            eos_at: request.stop.eos_at,
            stop_at: request.stop.stop_at,
            max_tokens: request.stop.max_tokens,
            priority: request.priority,
        });
    }

    pub(crate) fn abort(&mut self, at_ns: u64, id: u64) {
        self.add(&Line::Abort { at_ns, id });
    }

    pub(crate) fn step(&mut self, step: &Step) {
        self.add(&Line::Step {
            ordinal: step.ordinal,
            began_ns: step.began_ns,
            ends_ns: step.ends_ns,
            scheduled: &step.scheduled,
            preempted: &step.preempted,
            admitted: &step.admitted,
        });
    }

    /// All lines; the last says how many there was no room for, if any.
    pub(crate) fn text(&self) -> Vec<u8> {
        let mut text = self.lines.clone();
        if 0 < self.dropped {
            push(&mut text, &Line::Dropped(self.dropped));
        }
        text
    }

    /// A log with a hole cannot be replayed, so after the first line that is dropped all are.
    fn add(&mut self, line: &Line<'_>) {
        if BYTES_MAX <= self.lines.len() {
            self.dropped += 1;
        } else {
            push(&mut self.lines, line);
        }
    }
}

fn push(lines: &mut Vec<u8>, line: &Line<'_>) {
    serde_json::to_writer(&mut *lines, line).expect("plain values are always JSON");
    lines.push(b'\n');
}

const BYTES_MAX: usize = 256 << 20;
