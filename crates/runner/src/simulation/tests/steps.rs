//! Steps reconstructed from arrivals, compared with those of the engine's scheduler.

use std::collections::{BTreeMap, BTreeSet};

use inferometer_analysis::steps::{Confidence, NoStructure, Steps, reconstruct_with};
use inferometer_engine::physics::StepModel;
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
    /// Most tokens that a request gets in one step, by speculative decoding.
    speculative: u64,
    /// Every step takes so long, and not as long as the profile gives.
    step_us: u64,
    /// When the first request is sent.
    begin_us: u64,
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
    speculative: 1,
    step_us: 0,
    begin_us: 0,
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
        let time = match self.step_us {
            0 => profile.step_model(self.seed),
            us => StepModel::constant(Duration::from_micros(us)),
        };
        let mut scheduler = Scheduler::new(profile.scheduler.clone(), time);
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
            let at = self.begin_us * 1_000 + next * 300_000;
            submit(at, next, &mut scheduler, &mut played);
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
        let (mut waiting, mut all) = (0, 0);
        let mut last = 0;
        for (index, at) in moments.iter().enumerate() {
            let drawn = self.draw(id, 2_000_000 + index as u64) % self.speculative;
            waiting += 1 + if index == 0 { 0 } else { u32::try_from(drawn).unwrap() };
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
            all += waiting as usize;
            waiting = 0;
        }
        let marks = self.silent == 0;
        record_of(
            id + offset,
            (played.sent[&id], played.prompts[&id]),
            &arrivals,
            marks,
            if marks { all } else { moments.len() },
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

/// At least 98 % of the steps are found with the right members.
const FOUND: f64 = 0.98;

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
    assert!(FOUND <= share, "{about}");
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

/// What the client sees where arrivals are late; where its own reads are, the kernel stamps nothing.
fn late(mut records: Vec<RequestRecord>, late: impl Fn(u64) -> u64) -> Vec<RequestRecord> {
    for read in records.iter_mut().flat_map(|record| &mut record.reads) {
        read.user = Moment::from_nanos(late(read.user.as_nanos()));
        read.kernel = None;
    }
    records
}

/// What the client sees behind a proxy that sends what it has every so many nanoseconds.
fn gathered(records: Vec<RequestRecord>, every_ns: u64) -> Vec<RequestRecord> {
    late(records, |at| at.div_ceil(every_ns) * every_ns)
}

/// Other steps than those of the scheduler are never reported with high confidence.
fn check_doubt(about: &str, records: Vec<RequestRecord>, truth: &[(u64, BTreeSet<u64>)]) {
    let Ok((steps, members)) = find(records) else { return };
    let share = found_share(truth, &members);
    let is_right = FOUND <= share || steps.confidence == Confidence::Low;
    assert!(is_right, "{about}: {share} of the steps, {}", steps.reason);
}

#[test]
fn a_proxy_that_gathers_for_about_a_step_is_never_certain_of_wrong_steps() {
    for concurrency in [1, 4, 16, 64] {
        let way = Way { concurrency, requests: concurrency * 3, ..WAY };
        let played = way.play();
        let mut gaps: Vec<u64> = played.steps.windows(2).map(|two| two[1].0 - two[0].0).collect();
        gaps.sort_unstable();
        let step = gaps[gaps.len() / 2];
        for (times, every) in [("half", step / 2), ("one", step), ("two", 2 * step)] {
            let about = format!("{concurrency} in flight, gathered for {times} step");
            check_doubt(&about, gathered(way.records(&played, 0), every), &played.steps);
        }
    }
}

#[test]
fn two_replicas_of_equal_speed_are_never_certain() {
    for (step_us, begin_us) in [(0, 2_000), (10_000, 0), (10_000, 1_500), (10_000, 5_000)] {
        for concurrency in [2, 4, 16, 64] {
            let one = Way { concurrency, requests: concurrency * 4, step_us, ..WAY };
            let two = Way { begin_us, seed: 5, ..one };
            let mut records = one.records(&one.play(), 0);
            records.extend(two.records(&two.play(), 1_000_000));
            let about =
                format!("{concurrency} at each, steps of {step_us} us, {begin_us} us apart");
            check_doubt(&about, records, &[(0, BTreeSet::new())]);
        }
    }
}

#[test]
fn a_client_that_stalls_is_never_certain_of_wrong_steps() {
    for concurrency in [1, 4, 16, 64] {
        let way = Way { concurrency, requests: concurrency * 3, ..WAY };
        let played = way.play();
        for (every_ms, stall_ms) in [(400, 25), (400, 60), (900, 200)] {
            let (every, stall) = (every_ms * 1_000_000, stall_ms * 1_000_000);
            let until = |at: u64| (at - at % every) + (at % every).max(stall);
            let about = format!("{concurrency} in flight, {stall_ms} of {every_ms} ms stalled");
            check_doubt(&about, late(way.records(&played, 0), until), &played.steps);
        }
    }
}

#[test]
fn speculative_tokens_leave_in_one_step() {
    for concurrency in [1, 4, 16, 64] {
        check(Way { speculative: 4, concurrency, requests: concurrency.max(4) * 3, ..WAY });
    }
    // Where all drafts are accepted, each event could as well be of several steps.
    for concurrency in [1, 16] {
        let way = Way { concurrency, requests: concurrency.max(4) * 3, ..WAY };
        let played = way.play();
        let mut records = way.records(&played, 0);
        for event in records.iter_mut().flat_map(|record| record.events.iter_mut().skip(1)) {
            event.tokens = Some(4);
        }
        check_doubt("four tokens in each step", records, &played.steps);
    }
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
            let records = gathered(one.records(&one.play(), 0), every_ms * 1_000_000);
            let found = find(records).map(|(steps, _)| steps.confidence);
            assert_eq!(found, Err(NoStructure::Gathered), "{concurrency} every {every_ms} ms");
        }
    }
}

/// The first 64 requests of a run of llama.cpp on one H200.
fn llama_cpp() -> Vec<RequestRecord> {
    let lines = include_str!("h200-llama.txt").lines().filter(|line| !line.starts_with('#'));
    let record = |(id, line): (u64, &str)| {
        let numbers: Vec<u64> = line.split(' ').map(|it| it.parse::<u64>().unwrap()).collect();
        let [sent, prompt, gaps @ ..] = &*numbers else { panic!("{line}") };
        let mut at = sent * 10_000;
        let arrivals = gaps.iter().map(|gap| {
            at += gap * 10_000;
            (at, 1)
        });
        let arrivals: Vec<(u64, u32)> = arrivals.collect();
        let prompt = u32::try_from(*prompt).unwrap();
        record_of(id, (sent * 10_000, prompt), &arrivals, false, 128)
    };
    (0..).zip(lines).map(record).collect()
}

#[test]
fn the_steps_of_llama_cpp_are_one_for_each_token() {
    let (steps, members) = find(llama_cpp()).unwrap();
    assert_eq!(steps.confidence, Confidence::High, "{}", steps.reason);
    let full = steps.steps.iter().filter(|step| step.batch == 16).count();
    assert!(480 < full && full < 520, "four times 128 steps, less those that begin: {full}");
    let count = |id: u64| members.iter().filter(|members| members.contains(&id)).count();
    let exact = (0..64).filter(|id| count(*id) == 128).count();
    let near = (0..64).filter(|id| count(*id).abs_diff(128) <= 2).count();
    assert!(
        52 <= exact && 62 <= near,
        "{exact} of 64 requests in 128 steps, {near} in about as many"
    );
}
