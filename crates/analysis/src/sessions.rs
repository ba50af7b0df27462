//! Sessions: how long each took from its first request to its last answer, how much of that was spent
//! in the model and in tools, and how much of its prompts the prefix cache held.
//!
//! The critical path leads from the last answer of a session back to its first request: from each
//! request to the one whose answer released it. What is not on it could have taken longer at no cost.

use inferometer_model::record::Usage;
use inferometer_model::spec::Source;
use inferometer_model::{Moment, Observations, Outcome, RequestRecord};
use serde::{Deserialize, Serialize};

use crate::client::share;
use crate::record::Figures;

/// Times are of complete sessions. Null without any.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionFigures {
    /// Sessions with a request that was attempted.
    pub begun: u64,
    /// Those with an `ok` answer to every request.
    pub complete: u64,
    /// Those in which a request failed.
    pub failed: u64,
    /// Complete sessions per minute of the run.
    pub jobs_per_min: Option<f64>,
    /// Requests of a session.
    pub requests_mean: Option<f64>,
    /// From the first request to the last answer, in milliseconds.
    pub e2e_ms: Figures,
    /// Time on the critical path in which a request was with the server.
    pub model_ms: Figures,
    /// Time on the critical path in which a tool or a user was waited for, as planned.
    pub tools_ms: Figures,
    /// The rest: a request could leave and had not left yet.
    pub waiting_ms: Figures,
    /// Requests on the critical path.
    pub critical_requests_mean: Option<f64>,
    /// Share of the end-to-end times that was spent in the model.
    pub model_share: Option<f64>,
    /// Requests of a session that were with the server at once, on average over the time in which any
    /// was.
    pub parallelism: Option<f64>,
    /// How much of the prompts came from the prefix cache; null where the server does not report it.
    pub reuse: Option<CacheReuse>,
}

/// Prompt tokens of `ok` requests, by the server's own counts. Some servers omit the cached tokens of a
/// request that found nothing: where any request has them, an omitted count is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CacheReuse {
    pub requests: u64,
    pub prompt_tokens: u64,
    /// What a cache that forgets nothing could have held: the prompts and the answers that requests go
    /// on from, and beginnings that the plan shares between sessions.
    pub achievable_tokens: u64,
    pub cached_tokens: u64,
}

impl CacheReuse {
    /// Share of the prompts that could have come from the cache.
    pub fn achievable(&self) -> Option<f64> {
        share(self.achievable_tokens, self.prompt_tokens)
    }

    /// Share of the prompts that came from the cache.
    pub fn achieved(&self) -> Option<f64> {
        share(self.cached_tokens, self.prompt_tokens)
    }

    /// What was achieved, as a share of what was achievable.
    pub fn of_achievable(&self) -> Option<f64> {
        share(self.cached_tokens, self.achievable_tokens)
    }
}

/// What is kept of a request until its session has been read.
#[derive(Clone, Copy, Debug)]
struct Member {
    turn: u16,
    after: Option<u16>,
    intended: Moment,
    sent: Option<Moment>,
    ended: Moment,
    usage: Option<Usage>,
}

/// The member of a turn: they stand in the order of their turns.
fn at_turn(members: &[Member], turn: u16) -> Option<&Member> {
    let place = members.binary_search_by_key(&turn, |member| member.turn).ok()?;
    members.get(place)
}

/// Values of sessions, while they are read one after the other.
#[derive(Default)]
struct Tally {
    begun: u64,
    complete: u64,
    failed: u64,
    requests: u64,
    e2e: Vec<f64>,
    model: Vec<f64>,
    tools: Vec<f64>,
    waiting: Vec<f64>,
    critical_requests: u64,
    /// Sums over requests and over the time in which any was with the server.
    request_ms: f64,
    busy_ms: f64,
    reuse: CacheReuse,
    /// Whether the server reported cached tokens of any request.
    reports_cached: bool,
}

/// A session that is being read: where it begins, how many requests it has, and those that were `ok`.
struct Open {
    first: u64,
    requests: u16,
    attempted: u64,
    members: Vec<Member>,
}

impl SessionFigures {
    /// `None` where requests stand alone, or their places in sessions are not recorded.
    pub(crate) fn from_observations(
        observations: &Observations,
        duration_s: Option<f64>,
    ) -> Option<Self> {
        let spec = &observations.manifest.spec;
        let source = &spec.workload.source;
        // A saved plan does not say here whether it has any.
        if !source.has_sessions() && !matches!(source, Source::Saved { .. }) {
            return None;
        }
        let from_schedule = spec.is_open_loop();
        let mut tally = Tally::default();
        let mut open: Option<Open> = None;
        // The requests of a session stand one behind the other in the plan.
        for record in &observations.records {
            let session = record.asked.session;
            if session.requests == 0 {
                continue;
            }
            let first = record.id.0.saturating_sub(record.asked.turn.into());
            if open.as_ref().is_none_or(|open| open.first != first) {
                tally.close(open.take(), from_schedule);
                let (requests, members) = (session.requests, Vec::new());
                open = Some(Open { first, requests, attempted: 0, members });
            }
            if let Some(open) = &mut open {
                open.attempted += 1;
                tally.add(open, &record);
            }
        }
        tally.close(open, from_schedule);
        (0 < tally.begun).then(|| tally.finish(duration_s))
    }
}

impl Tally {
    fn add(&mut self, open: &mut Open, record: &RequestRecord) {
        if record.ending.outcome != Outcome::Ok {
            return;
        }
        let session = record.asked.session;
        if let Some(usage) = record.usage
            && let Some(prompt) = usage.prompt_tokens
        {
            self.reports_cached |= usage.cached_tokens.is_some();
            let context = session.context.map(|turn| {
                let before = at_turn(&open.members, turn).and_then(|member| member.usage);
                before.and_then(|it| it.prompt_tokens?.checked_add(it.completion_tokens?))
            });
            // Of a context whose length nobody knows, nothing can be said.
            let achievable = match context {
                None => Some(u64::from(session.shared_tokens)),
                Some(context) => context,
            };
            if let Some(achievable) = achievable {
                self.reuse.requests += 1;
                self.reuse.prompt_tokens = self.reuse.prompt_tokens.saturating_add(prompt);
                self.reuse.achievable_tokens += achievable.min(prompt);
                self.reuse.cached_tokens += usage.cached_tokens.unwrap_or(0).min(prompt);
            }
        }
        open.members.push(Member {
            turn: record.asked.turn,
            after: session.after,
            intended: record.intended,
            sent: record.sent,
            ended: record.ending.at,
            usage: record.usage,
        });
    }

    /// Takes in a session that has been read whole.
    fn close(&mut self, open: Option<Open>, from_schedule: bool) {
        let Some(open) = open else { return };
        self.begun += 1;
        self.requests += u64::from(open.requests);
        self.failed += u64::from((open.members.len() as u64) < open.attempted);
        if open.members.len() < usize::from(open.requests) {
            return;
        }
        let members = &open.members;
        let Some(first) = at_turn(members, 0) else { return };
        let began = if from_schedule { first.intended } else { first.sent.unwrap_or_default() };
        let Some(last) = members.iter().max_by_key(|member| (member.ended, member.turn)) else {
            return;
        };
        let ms =
            |from: Moment, to: Moment| to.since(from).map_or(0.0, |time| time.as_secs_f64() * 1e3);
        let (mut model, mut tools, mut at) = (0.0, 0.0, last);
        // No answer is released by a later one, so that no more steps than members are taken.
        for _ in members {
            self.critical_requests += 1;
            model += ms(at.sent.unwrap_or(at.ended), at.ended);
            if let Some(before) = at.after.and_then(|turn| at_turn(members, turn)) {
                tools += ms(before.ended, at.intended);
                at = before;
            } else {
                tools += if at.turn == 0 { 0.0 } else { ms(first.intended, at.intended) };
                break;
            }
        }
        let e2e = ms(began, last.ended);
        self.complete += 1;
        self.e2e.push(e2e);
        self.model.push(model);
        self.tools.push(tools);
        self.waiting.push((e2e - model - tools).max(0.0));
        let mut flights: Vec<(Moment, Moment)> =
            members.iter().filter_map(|member| Some((member.sent?, member.ended))).collect();
        flights.sort_unstable();
        let mut until = Moment::ZERO;
        for (sent, ended) in flights {
            self.request_ms += ms(sent, ended);
            self.busy_ms += ms(sent.max(until), ended);
            until = until.max(ended);
        }
    }

    fn finish(self, duration_s: Option<f64>) -> SessionFigures {
        let over = |sum: f64, count: f64| (0.0 < count).then(|| sum / count);
        let (begun, complete) = (self.begun as f64, self.complete as f64);
        let (e2e, model): (f64, f64) = (self.e2e.iter().sum(), self.model.iter().sum());
        SessionFigures {
            begun: self.begun,
            complete: self.complete,
            failed: self.failed,
            jobs_per_min: duration_s.and_then(|duration_s| over(complete * 60.0, duration_s)),
            requests_mean: over(self.requests as f64, begun),
            e2e_ms: Figures::from_values(self.e2e),
            model_ms: Figures::from_values(self.model),
            tools_ms: Figures::from_values(self.tools),
            waiting_ms: Figures::from_values(self.waiting),
            critical_requests_mean: over(self.critical_requests as f64, complete),
            model_share: over(model, e2e),
            parallelism: over(self.request_ms, self.busy_ms),
            reuse: (self.reports_cached && 0 < self.reuse.requests).then_some(self.reuse),
        }
    }
}

#[cfg(test)]
mod tests;
