//! Steps reconstructed from arrivals, compared with those of the engine's scheduler.

use std::collections::{BTreeMap, BTreeSet};

use inferometer_analysis::steps::{Confidence, NoStructure, Steps, reconstruct_with};
use inferometer_engine::profile::Profile;
use inferometer_engine::scheduler::Step;
use inferometer_model::Records;
use inferometer_model::record::RequestedLengths;

use super::*;

/// What the scheduler did: which requests got a token in which step, and when.
#[derive(Debug, Default)]
struct Played {
    steps: Vec<(u64, BTreeSet<u64>)>,
    tokens: BTreeMap<u64, Vec<u64>>,
    sent: BTreeMap<u64, u64>,
    prompts: BTreeMap<u64, u32>,
    ended: Vec<u64>,
}

impl Listener for Played {
    fn step_ended(&mut self, step: &Step) {
        self.steps.push((step.ends_ns, BTreeSet::new()));
    }

    fn token(&mut self, id: u64, _index: u32, at_ns: u64) {
        self.steps.last_mut().unwrap().1.insert(id);
        self.tokens.entry(id).or_default().push(at_ns);
    }

    fn ended(&mut self, facts: &RequestFacts) {
        self.ended.push(facts.id);
    }
}

/// How a load is played and what happens to its tokens on their way.
#[derive(Clone, Copy)]
struct Way {
    concurrency: u64,
    requests: u64,
    /// Prompt and output lengths are drawn between a half of these and these.
    prompt: u32,
    output: u32,
    /// The tokens of a step are written within this time, and each is late by up to this.
    spread_us: u64,
    jitter_us: u64,
    /// Tokens in one event.
    per_event: usize,
    /// Share of the tokens that have no event of their own, in thousandths; the stream marks no tokens.
    silent: u64,
    seed: u64,
}

const WAY: Way = Way {
    concurrency: 16,
    requests: 96,
    prompt: 700,
    output: 160,
    spread_us: 500,
    jitter_us: 0,
    per_event: 1,
    silent: 0,
    seed: 1,
};

impl Way {
    fn draw(&self, a: u64, b: u64) -> u64 {
        mix(mix(self.seed ^ (a << 20)) ^ b)
    }

    fn length(&self, id: u64, part: u64, most: u32) -> u32 {
        let half = u64::from(most / 2).max(1);
        u32::try_from(half + self.draw(id, part) % half).unwrap()
    }

    /// Plays a closed loop.
    fn play(&self) -> Played {
        let profile = Profile::named("h100-llama-3.1-8b").unwrap();
        let mut scheduler = Scheduler::new(profile.scheduler.clone(), profile.step_time(self.seed));
        let mut played = Played::default();
        let mut next = 0;
        let submit = |at: u64, id: u64, scheduler: &mut Scheduler<_>, played: &mut Played| {
            let tokens = self.length(id, 1, self.prompt);
            let request = SchedulerRequest {
                id,
                prompt: HashedPrompt::of_segments([(mix(id), tokens)], 16),
                answer_seed: id,
                stop: StopRules::after(self.length(id, 2, self.output)),
                priority: 0,
            };
            played.sent.insert(id, at);
            played.prompts.insert(id, tokens);
            scheduler.submit(at, request, played).unwrap();
        };
        while next < self.concurrency.min(self.requests) {
            submit(next * 300_000, next, &mut scheduler, &mut played);
            next += 1;
        }
        while let Some(at) = scheduler.next_event() {
            scheduler.advance(at, &mut played);
            for ended in std::mem::take(&mut played.ended) {
                if next < self.requests {
                    submit(at + 400_000 + ended, next, &mut scheduler, &mut played);
                    next += 1;
                }
            }
        }
        played.steps.retain(|(_, members)| !members.is_empty());
        played
    }

    /// The records that a client writes of it; `offset` is added to the ids.
    fn records(&self, played: &Played, offset: u64) -> Vec<RequestRecord> {
        let tokens = played.tokens.iter();
        tokens.map(|(id, moments)| self.record(played, *id, moments, offset)).collect()
    }

    fn record(&self, played: &Played, id: u64, moments: &[u64], offset: u64) -> RequestRecord {
        let mut arrivals: Vec<(u64, u32)> = Vec::new();
        let mut waiting = 0;
        let mut last = 0;
        for (index, at) in moments.iter().enumerate() {
            waiting += 1;
            let is_last = index + 1 == moments.len();
            let is_silent =
                0 < index && !is_last && self.draw(id, 100 + index as u64) % 1_000 < self.silent;
            let is_whole = index == 0 || is_last || index % self.per_event == 0;
            if is_silent || !is_whole {
                continue;
            }
            let order = self.draw(id, 3) % (self.spread_us * 1_000).max(1);
            let late = self.draw(id, 1_000_000 + index as u64) % (self.jitter_us * 1_000).max(1);
            last = (at + order + late).max(last + 1_000);
            arrivals.push((last, waiting));
            waiting = 0;
        }
        let marks = self.silent == 0;
        record_of(
            id + offset,
            (played.sent[&id], played.prompts[&id]),
            &arrivals,
            marks,
            moments.len(),
        )
    }
}

fn record_of(
    id: u64,
    (sent, prompt): (u64, u32),
    arrivals: &[(u64, u32)],
    marks: bool,
    tokens: usize,
) -> RequestRecord {
    let at = Moment::from_nanos;
    let read = |at| Read { kernel: Some(at), user: at, turn: at, bytes: 200, drained: true };
    let event = |(index, (_, tokens)): (usize, &(u64, u32))| StreamEvent {
        read: u32::try_from(index).unwrap(),
        choice: 0,
        carried: Carried::CHOICE | Carried::CONTENT,
        tokens: marks.then_some(*tokens),
        text_bytes: 4,
    };
    let started = StartedRequest {
        id: RequestId(id),
        intended: at(sent),
        admitted: at(sent),
        asked: RequestedLengths { input_tokens: prompt, output_tokens: 1, ..Default::default() },
    };
    RequestRecord {
        sent: Some(at(sent)),
        head: Some(ResponseHead { status: 200, read: 0, streamed: true }),
        reads: arrivals.iter().map(|arrival| read(at(arrival.0))).collect(),
        events: arrivals.iter().enumerate().map(event).collect(),
        usage: Some(Usage {
            prompt_tokens: Some(prompt.into()),
            completion_tokens: Some(tokens as u64),
            cached_tokens: None,
        }),
        ..RequestRecord::without_answer(&started, Ending::ok(at(arrivals.last().unwrap().0)))
    }
}

fn find(records: Vec<RequestRecord>) -> Result<(Steps, Vec<BTreeSet<u64>>), NoStructure> {
    let mut members: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
    let records = Records::from(records);
    let steps = reconstruct_with(&records, &mut |step, id| {
        members.entry(step).or_default().insert(id.0);
    })?;
    Ok((steps, members.into_values().collect()))
}

/// The share of the engine's steps that were found with exactly their members, in order.
fn found_share(truth: &[(u64, BTreeSet<u64>)], found: &[BTreeSet<u64>]) -> f64 {
    let mut place = 0;
    let mut right = 0;
    for (_, members) in truth {
        let ahead = found.iter().skip(place).take(12).position(|found| found == members);
        if let Some(ahead) = ahead {
            place += ahead + 1;
            right += 1;
        }
    }
    f64::from(right) / truth.len() as f64
}

fn check(way: Way) -> Confidence {
    let played = way.play();
    let (steps, members) = find(way.records(&played, 0)).unwrap();
    let share = found_share(&played.steps, &members);
    let (found, expected) = (steps.steps.len(), played.steps.len());
    let about = format!(
        "{} in flight, writes within {} us, late by {} us, {} tokens per event, {} silent: \
         {share} of {expected} steps, {found} found, {}",
        way.concurrency, way.spread_us, way.jitter_us, way.per_event, way.silent, steps.reason
    );
    // Where events carry several tokens and many streams begin at once, some steps have no event of their
    // own: which of them a request joined in may be wrong, and then the confidence must be low.
    let is_low = 1 < way.per_event && steps.confidence == Confidence::Low;
    let least = if 1 < way.per_event { 0.97 } else { 0.98 };
    assert!(least <= share || is_low, "{about}");
    assert!(steps.steps.iter().map(|step| step.first).is_sorted(), "{about}");
    steps.confidence
}

#[test]
fn steps_are_those_of_the_scheduler() {
    for concurrency in [1, 2, 4, 16, 64, 256] {
        let requests = (concurrency * 3).max(12);
        let way = Way { concurrency, requests, ..WAY };
        let late = Way { spread_us: 1_500, jitter_us: 800, ..way };
        let confidences = [
            check(way),
            check(late),
            check(Way { per_event: 8, ..way }),
            check(Way { per_event: 8, ..late }),
        ];
        // Two in flight are delayed together only when one of them begins.
        if 4 <= concurrency {
            assert_eq!(confidences[..2], [Confidence::High; 2], "{concurrency}");
        }
    }
    for concurrency in [1, 16, 64] {
        check(Way { silent: 23, concurrency, requests: concurrency * 3, ..WAY });
    }
}

/// What the client sees behind a proxy that sends what it has every so many milliseconds.
#[expect(clippy::similar_names, reason = "units are the last word")]
fn gathered(records: Vec<RequestRecord>, every_ms: u64) -> Vec<RequestRecord> {
    let every_ns = every_ms * 1_000_000;
    let late = |at: Moment| Moment::from_nanos(at.as_nanos().div_ceil(every_ns) * every_ns);
    let gather = |mut record: RequestRecord| {
        for read in &mut record.reads {
            (read.kernel, read.user) = (read.kernel.map(late), late(read.user));
        }
        record
    };
    records.into_iter().map(gather).collect()
}

#[test]
fn two_replicas_and_a_gathering_proxy_are_never_certain() {
    for concurrency in [1, 2, 8, 32] {
        let one = Way { concurrency, requests: concurrency * 6, ..WAY };
        let two = Way { seed: 77, ..one };
        let mut records = one.records(&one.play(), 0);
        records.extend(two.records(&two.play(), 1_000_000));
        let found = find(records).map(|(steps, _)| steps.confidence);
        let expected: &[_] = if concurrency < 8 {
            &[Ok(Confidence::Low), Err(NoStructure::Independent)]
        } else {
            &[Err(NoStructure::Independent)]
        };
        assert!(expected.contains(&found), "{concurrency}: {found:?}");
        for every_ms in [20, 100, 1_000] {
            let records = gathered(one.records(&one.play(), 0), every_ms);
            let found = find(records).map(|(steps, _)| steps.confidence);
            assert_eq!(found, Err(NoStructure::Gathered), "{concurrency} every {every_ms} ms");
        }
    }
}
