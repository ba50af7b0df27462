//! The requests that are under way: what must be known of each until it ends.

use std::collections::HashMap;

use crate::scheduler::Step;

/// Requests by their ids. Freed when they end, so it is as large as what is under way.
#[derive(Debug, Default)]
pub(super) struct Requests {
    by_id: HashMap<u64, Tracked>,
    /// Requests for several answers, by the first answer's id.
    groups: HashMap<u64, Group>,
}

/// What is known of a request that is under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tracked {
    /// When the front end got it.
    pub(super) front_ns: Option<u64>,
    pub(super) last_token_ns: Option<u64>,
    /// Prompt tokens that the cache held when it was first admitted.
    pub(super) cached_tokens: u32,
    /// Prompt tokens that it has behind it, cached ones as well.
    pub(super) computed_tokens: u32,
    admitted: bool,
    group: Option<u64>,
}

/// Answers to one request, of which some are still to come.
#[derive(Clone, Copy, Debug)]
struct Group {
    to_come: usize,
    choices: Choices,
    /// One of them was taken back.
    broken: bool,
}

/// The answers to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choices {
    pub(super) asked: u32,
    /// Tokens of the longest answer.
    pub(super) longest: u32,
}

/// What is left of a request that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) front_ns: Option<u64>,
    /// Where this was the last answer that its request waited for, and all are complete.
    pub(super) choices: Option<Choices>,
}

impl Requests {
    pub(super) fn arrive(&mut self, ids: &[u64], front_ns: u64) {
        let group = ids.first().copied().filter(|_| ids.len() > 1);
        for id in ids {
            let request = self.by_id.entry(*id).or_default();
            request.front_ns = Some(front_ns);
            request.group = group;
        }
        if let Some(group) = group {
            let asked = u32::try_from(ids.len()).unwrap_or(u32::MAX);
            let choices = Choices { asked, longest: 0 };
            self.groups.insert(group, Group { to_come: ids.len(), choices, broken: false });
        }
    }

    pub(super) fn admit(&mut self, id: u64, cached: u32) {
        let request = self.by_id.entry(id).or_default();
        if !request.admitted {
            request.admitted = true;
            request.cached_tokens = cached;
        }
    }

    /// Adds what a step did to the prompts that had a part in it.
    pub(super) fn compute(&mut self, step: &Step) {
        if step.shape.prefills == 0 {
            return;
        }
        for (id, cached) in &step.admitted {
            if let Some(request) = self.prompt(*id) {
                // Whoever was preempted begins again, with what the cache still has.
                request.computed_tokens = *cached;
            }
        }
        for (id, tokens) in &step.scheduled {
            if let Some(request) = self.prompt(*id) {
                request.computed_tokens += tokens;
            }
        }
    }

    pub(super) fn get_mut(&mut self, id: u64) -> Option<&mut Tracked> {
        self.by_id.get_mut(&id)
    }

    /// Forgets a request; `output_tokens` when its answer is complete.
    pub(super) fn leave(&mut self, id: u64, output_tokens: Option<u32>) -> Left {
        let request = self.by_id.remove(&id).unwrap_or_default();
        let choices = match request.group {
            Some(group) => self.leave_group(group, output_tokens),
            None => output_tokens.map(|longest| Choices { asked: 1, longest }),
        };
        Left { front_ns: request.front_ns, choices }
    }

    fn leave_group(&mut self, id: u64, output_tokens: Option<u32>) -> Option<Choices> {
        let group = self.groups.get_mut(&id)?;
        group.to_come -= 1;
        group.choices.longest = group.choices.longest.max(output_tokens.unwrap_or(0));
        group.broken |= output_tokens.is_none();
        if group.to_come > 0 {
            return None;
        }
        let group = self.groups.remove(&id)?;
        (!group.broken).then_some(group.choices)
    }

    /// A request that has no token yet.
    fn prompt(&mut self, id: u64) -> Option<&mut Tracked> {
        self.by_id.get_mut(&id).filter(|request| request.last_token_ns.is_none())
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty() && self.groups.is_empty()
    }
}
