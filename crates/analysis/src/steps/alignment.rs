//! Streams aligned to one clock of steps.
//!
//! Every running request gets its next token in each step, so between the beginnings of two steps each
//! stream should have exactly one arrival. The beginning of the next step is placed where the fewest
//! streams contradict this, and at the widest gap between arrivals among equally good places. Nothing but
//! the place in each stream is carried from one step to the next, so an arrival that is late, merged with
//! another or missing misleads the alignment for one step and not for the rest of the run.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::iter::Peekable;
use std::rc::Rc;

use inferometer_model::records::{RecordIter, TimeOrder};
use inferometer_model::whole::{to_u32, to_u64};
use inferometer_model::{Moment, RequestId, RequestRecord};

use super::{STEPS_MAX, Step, TokenRule};
use crate::record::{InputTokens, Output, Ruler};
use crate::statistics::median;

/// What the arrivals said for and against the steps that were found.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    /// Tokens that were given to a step.
    pub(super) placed: u64,
    /// Tokens without an arrival of their own, between two arrivals of streams that mark no tokens.
    pub(super) silent: u64,
    /// As many tokens as the server counted more than such streams have events.
    pub(super) silent_expected: u64,
    /// Arrivals in a step that had one of the same stream already, and steps that a stream was not in.
    pub(super) irregular: u64,
    /// Steps whose tokens came with those of later ones at the beginning of an answer: nothing shows when.
    pub(super) swallowed: u64,
    /// Steps that took much longer than usual, for all of several requests that were in it and the one before.
    pub(super) shared_stalls: u64,
    /// The widest gap inside a step as a share of the gap that ends it, for steps of several requests.
    pub(super) overlaps: Vec<f64>,
}

/// One arrival that waits for its step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    at: Moment,
    stream: u64,
    index: usize,
}

/// The stream of one request.
#[derive(Debug, Default)]
struct Stream {
    id: RequestId,
    sent: Moment,
    prompt: u64,
    uncached: u64,
    /// Whether the tokens of every arrival are known.
    exact: bool,
    arrivals: Rc<[Advance]>,
    /// The arrival that comes next.
    next: usize,
    /// The step of its first arrival.
    began: usize,
    /// Steps until then.
    due_in: u32,
    /// Steps in which it was due and did not come.
    missed: u32,
    /// Arrivals in a step that had one already.
    surplus: u32,
    /// Output tokens before the current step.
    output: u64,
    /// Tokens that the server counted more than there are events without a mark.
    silent_left: u64,
}

#[derive(Clone, Copy, Debug)]
struct Advance {
    at: Moment,
    /// Steps that it ends, and the tokens of the last of them.
    steps: u32,
    tokens: u64,
}

/// The arrivals of all streams in the order of time, while the records are read.
struct Feed<'run> {
    records: Peekable<RecordIter<'run>>,
    output: Output,
    ruler: Ruler,
    rule: TokenRule,
    next: BinaryHeap<Reverse<Point>>,
    loaded: u64,
    /// Streams that have not begun.
    streams: BTreeMap<u64, Stream>,
    /// Arrivals of the streams that are not read to their end.
    unread: BTreeMap<u64, Rc<[Advance]>>,
    /// Requests that were sent and have no token yet.
    waiting: BTreeSet<(Moment, u64)>,
    /// When those of them end that never get one.
    fruitless: BinaryHeap<Reverse<(Moment, Moment, u64)>>,
    silent_expected: u64,
    last: Moment,
}

impl Feed<'_> {
    fn next_point(&mut self) -> Option<Point> {
        loop {
            let due = self.next.peek().map(|Reverse(point)| point.at);
            let is_sent =
                |record: &Cow<'_, RequestRecord>| due.is_none_or(|at| record.left() <= at);
            let Some(record) = self.records.next_if(is_sent) else { break };
            self.load(&record);
        }
        let Reverse(point) = self.next.pop()?;
        let index = point.index + 1;
        match self.unread.get(&point.stream).and_then(|arrivals| arrivals.get(index)) {
            Some(arrival) => self.next.push(Reverse(Point { at: arrival.at, index, ..point })),
            None => drop(self.unread.remove(&point.stream)),
        }
        // A record that contradicts itself may bring an arrival that should have come before.
        self.last = self.last.max(point.at);
        Some(Point { at: self.last, ..point })
    }

    fn load(&mut self, record: &RequestRecord) {
        let Some(sent) = record.sent else { return };
        self.output.read(record, &mut self.ruler);
        let is_streamed = record.head.is_some_and(|head| head.streamed);
        let arrivals = if is_streamed { &*self.output.arrivals } else { &[] };
        let key = self.loaded;
        self.loaded += 1;
        self.waiting.insert((sent, key));
        let input = InputTokens::from_record(record).count;
        let usage = record.usage;
        let cached = usage.and_then(|usage| usage.cached_tokens).unwrap_or(0);
        let exact = self.output.marked_tokens().is_some();
        let counted = usage.and_then(|usage| usage.completion_tokens).filter(|_| !exact);
        let silent_left = counted.map_or(0, |counted| counted.saturating_sub(self.output.events));
        self.silent_expected = self.silent_expected.saturating_add(silent_left);
        let mut latest = Moment::ZERO;
        let arrivals = arrivals.iter().filter_map(|arrival| {
            latest = latest.max(arrival.at);
            let (steps, tokens) = self.rule.advance(arrival)?;
            Some(Advance { at: latest, steps, tokens })
        });
        let arrivals: Rc<[Advance]> = arrivals.collect();
        let Some(first) = arrivals.first() else {
            self.fruitless.push(Reverse((record.ending.at, sent, key)));
            return;
        };
        self.next.push(Reverse(Point { at: first.at, stream: key, index: 0 }));
        self.unread.insert(key, Rc::clone(&arrivals));
        let stream = Stream {
            id: record.id,
            sent,
            prompt: input,
            uncached: input.saturating_sub(cached),
            exact,
            arrivals,
            due_in: 1,
            silent_left,
            ..Stream::default()
        };
        self.streams.insert(key, stream);
    }
}

/// Tells which request was in which step.
pub(super) type OnMember<'a> = &'a mut dyn FnMut(usize, RequestId);

pub(super) struct Alignment<'run> {
    feed: Feed<'run>,
    /// Arrivals that were read ahead.
    ahead: VecDeque<Point>,
    /// Streams that have begun and have arrivals left.
    running: BTreeMap<u64, Stream>,
    /// The usual gap between two tokens of a stream, until there are steps.
    gap_ns: f64,
    /// The latest steps without prefill.
    recent: VecDeque<u64>,
    pub(super) steps: Vec<Step>,
    pub(super) evidence: Evidence,
    on_member: OnMember<'run>,
}

/// How many steps the usual time of a step is taken from.
const RECENT: usize = 31;
/// A step that takes so many times as long as usual is a stall.
const STALL: f64 = 1.3;
/// A gap of this share of a usual step separates.
const APART: f64 = 0.5;
/// The most steps that an arrival of a stream that runs alone is taken for.
const SILENT_MAX: f64 = 4.0;
/// Waiting requests are counted up to here.
const WAITING_MAX: usize = 1_000;
/// Fewer arrivals do not tell the steps between two streams.
const VOTES_MIN: u32 = 4;
/// A stream that is silent for so many steps was not in them.
const ABSENT_FROM: u32 = 3;

impl<'run> Alignment<'run> {
    pub(super) fn new(
        records: &'run TimeOrder<'_>,
        (rule, gap_ns): (TokenRule, f64),
        on_member: OnMember<'run>,
    ) -> Self {
        let feed = Feed {
            records: records.iter().peekable(),
            output: Output::default(),
            ruler: Ruler::new(0),
            rule,
            next: BinaryHeap::new(),
            loaded: 0,
            streams: BTreeMap::new(),
            unread: BTreeMap::new(),
            waiting: BTreeSet::new(),
            fruitless: BinaryHeap::new(),
            silent_expected: 0,
            last: Moment::ZERO,
        };
        Self {
            feed,
            ahead: VecDeque::new(),
            running: BTreeMap::new(),
            gap_ns,
            recent: VecDeque::new(),
            steps: Vec::new(),
            evidence: Evidence::default(),
            on_member,
        }
    }

    /// Finds all steps; whether there are more than are kept.
    pub(super) fn run(&mut self) -> bool {
        while self.steps.len() < STEPS_MAX && self.peek(0).is_some() {
            self.find_step();
        }
        self.evidence.silent_expected = self.feed.silent_expected;
        self.peek(0).is_some()
    }

    /// The arrival so many places ahead.
    fn peek(&mut self, place: usize) -> Option<Point> {
        while self.ahead.len() <= place {
            self.ahead.push_back(self.feed.next_point()?);
        }
        self.ahead.get(place).copied()
    }

    /// The time that steps without prefill took lately, in nanoseconds.
    fn usual_ns(&self) -> f64 {
        let durations: Vec<f64> = self.recent.iter().map(|ns| *ns as f64).collect();
        median(durations).unwrap_or(self.gap_ns)
    }

    fn find_step(&mut self) {
        let usual_ns = self.usual_ns();
        let is_due = |stream: &Stream| stream.due_in == 1;
        self.expect_silent_tokens(usual_ns);
        let is_hidden = !self.running.values().any(is_due);
        let hidden = if self.running.is_empty() {
            self.first_tokens(&mut 0)
        } else if is_hidden {
            self.hidden_moment(usual_ns)
        } else {
            None
        };
        let count = match hidden {
            Some(at) => {
                let mut count = 0;
                while self.peek(count).is_some_and(|point| point.at <= at) {
                    count += 1;
                }
                count
            }
            None => self.find_boundary(usual_ns),
        };
        let mut group: VecDeque<Point> = self.ahead.drain(..count).collect();
        self.split_prefill_steps(&mut group, usual_ns);
        let at = group.front().map(|point| point.at).or(hidden).unwrap_or(self.feed.last);
        let last = group.back().map_or(at, |point| point.at);
        let step = self.open_step(at, last, !group.is_empty());
        let widest = group.iter().zip(group.iter().skip(1)).map(|(a, b)| between(a.at, b.at)).max();
        let after = self.peek(0).map(|point| between(last, point.at));
        self.place(step, group);
        let Step { batch, prefills, duration, .. } = self.steps[step];
        if let Some(seconds) = duration.filter(|_| prefills == 0) {
            self.recent.push_back(to_u64(seconds * 1e9));
            self.recent.drain(..self.recent.len().saturating_sub(RECENT));
        }
        let is_long = duration.is_some_and(|seconds| STALL * usual_ns < seconds * 1e9);
        self.evidence.shared_stalls += u64::from(is_long && 1 < batch && prefills < batch);
        if let (Some(inside), Some(after)) = (widest, after)
            && 1 < batch
        {
            self.evidence.overlaps.push(inside as f64 / after.max(1) as f64);
        }
    }

    /// A stream that runs alone and marks no tokens may skip one whose text is held back: its next arrival
    /// then takes as long as several steps.
    fn expect_silent_tokens(&mut self, usual_ns: f64) {
        let Some(before) = self.steps.last().map(|step| step.first) else { return };
        let next = self.peek(0);
        let mut running = self.running.values_mut();
        let (Some(stream), None) = (running.next(), running.next()) else { return };
        let Some(next) = next.filter(|next| 0 < next.index && 0.0 < usual_ns) else { return };
        if stream.due_in != 1 || stream.silent_left == 0 || stream.began + 1 == self.steps.len() {
            return;
        }
        let steps = between(before, next.at) as f64 / usual_ns;
        let whole = libm::round(steps);
        if (2.0..=SILENT_MAX).contains(&whole) && (steps - whole).abs() < 0.15 * whole {
            stream.due_in = to_u32(whole);
            let silent = u64::from(stream.due_in - 1);
            stream.silent_left = stream.silent_left.saturating_sub(silent);
            self.evidence.silent += silent;
        }
    }

    /// When a step ended that no running stream has an arrival of: evenly between the arrivals around it,
    /// or with the first token of a request that joins. The steps after that one take the usual time.
    fn hidden_moment(&mut self, usual_ns: f64) -> Option<Moment> {
        let before = self.steps.last()?.first;
        let arrival = |stream: &Stream| {
            let at = stream.arrivals.get(stream.next)?.at;
            Some((at, stream.due_in))
        };
        let arrivals = self.running.values().filter_map(arrival);
        let even = |(at, due_in)| between(before, at) / u64::from(due_in);
        let mut ns = arrivals.clone().map(even).min()?;
        let (at, due_in) = arrivals.min()?;
        let ends_next = |stream: &&Stream| arrival(stream).is_some_and(|(own, _)| own == at);
        let next =
            self.running.values().find(ends_next).map(|it| (Rc::clone(&it.arrivals), it.next));
        let joins = self.peek(0)?;
        if joins.index == 0 && joins.at < at {
            // Each group of first tokens is a step, and only those after the last take the usual time.
            let mut groups = 0;
            let mut last = joins.at;
            let (mut place, mut passed) = (0, 0);
            while let Some(next) = self.first_tokens(&mut passed).filter(|next| *next < at) {
                groups += 1;
                (last, place) = (next, passed);
            }
            let by_times = to_u32(libm::round(between(last, at) as f64 / usual_ns));
            let joined = place.checked_sub(1).and_then(|place| self.peek(place));
            let joined = joined.and_then(|point| self.feed.streams.get(&point.stream));
            let by_phases = next.zip(joined).and_then(|((arrivals, next), joined)| {
                (joined.exact).then(|| steps_until(&joined.arrivals, &arrivals, next)).flatten()
            });
            // None are as many as all between two arrivals of the other stream.
            let is_clear = |after: &u32| 0 < *after || by_times < 2;
            let after = by_phases.filter(is_clear).unwrap_or(by_times);
            let until = due_in.saturating_sub(after.saturating_add(groups - 1)).max(1);
            if until == 1 && (1 < groups || 0 < after) {
                return self.first_tokens(&mut 0);
            }
            ns = between(before, joins.at) / u64::from(until);
        }
        Some(before + std::time::Duration::from_nanos(ns))
    }

    /// Passes the first tokens from a place on that lie close together, and gives the last one's moment.
    fn first_tokens(&mut self, place: &mut usize) -> Option<Moment> {
        let is_first = |point: &Point| point.index == 0;
        let mut last = self.peek(*place).filter(is_first)?.at;
        *place += 1;
        while let Some(next) = self.peek(*place).filter(is_first)
            && (between(last, next.at) as f64) < APART * self.usual_ns()
        {
            last = next.at;
            *place += 1;
        }
        Some(last)
    }

    /// How many of the next arrivals belong to the current step.
    fn find_boundary(&mut self, usual_ns: f64) -> usize {
        let due = self.running.values().filter(|stream| stream.due_in == 1).count();
        let mut cost = due;
        let mut streams = self.running.len();
        let mut passed = 0;
        let mut seen = BTreeSet::new();
        // The cost of ending the step before an arrival, the gap there, and how many come before it.
        let mut places: Vec<(usize, u64, usize)> = Vec::new();
        let mut place = 0;
        let mut before = Moment::ZERO;
        while passed * 2 <= streams + 1 {
            let Some(point) = self.peek(place) else {
                places.push((cost, u64::MAX, place));
                break;
            };
            if 0 < place {
                places.push((cost, between(before, point.at), place));
            }
            let is_first = seen.insert(point.stream);
            match self.running.get(&point.stream) {
                Some(stream) if is_first && stream.due_in == 1 => cost -= 1,
                None if is_first => streams += 1,
                _ => {
                    cost += 1;
                    passed += 1;
                }
            }
            before = point.at;
            place += 1;
        }
        let widest = |limit: usize| {
            let within = places.iter().filter(|place| place.0 <= limit);
            within.max_by_key(|place| (place.1, Reverse(place.2))).copied()
        };
        let least = places.iter().map(|place| place.0).min().unwrap_or(0);
        let Some(best) = widest(least) else { return place.max(1) };
        // A stream that skips a step comes first in the next one, and the gap before it is the real end.
        let expected = if due == self.running.len() { streams } else { due };
        let other = widest(least + (expected / 8).max(1)).filter(|other| {
            1 < due
                && other.1 < u64::MAX
                && (best.1 as f64) < APART * usual_ns
                && APART * usual_ns <= other.1 as f64
                && best.1.saturating_mul(3) <= other.1
        });
        let count = other.unwrap_or(best).2;
        self.without_prefill_step(count, usual_ns)
    }

    /// First tokens that stand alone after the others of the step are the next step's business.
    fn without_prefill_step(&mut self, count: usize, usual_ns: f64) -> usize {
        let begins = |point: &Point| point.index == 0;
        let kept = self.ahead.iter().take(count).rposition(|point| !begins(point));
        let Some(kept) = kept.filter(|kept| kept + 1 < count && 0.0 < usual_ns) else {
            return count;
        };
        let gap = |a: Option<Point>, b: Option<Point>| {
            a.zip(b).map_or(0.0, |(a, b)| between(a.at, b.at) as f64)
        };
        let next = self.peek(count);
        let point = |place: usize| self.ahead.get(place).copied();
        let is_wide = |gap: f64| APART * usual_ns <= gap;
        let apart = (kept + 1..count).find(|place| is_wide(gap(point(place - 1), point(*place))));
        apart.filter(|_| is_wide(gap(point(count - 1), next))).unwrap_or(count)
    }

    /// First tokens that stand alone before the others of the step left in a step of their own, which
    /// computed prompts and nothing else.
    fn split_prefill_steps(&mut self, group: &mut VecDeque<Point>, usual_ns: f64) {
        let is_apart = |a: &Point, b: &Point| APART * usual_ns <= between(a.at, b.at) as f64;
        while 0.0 < usual_ns && !self.running.is_empty() {
            let leading = group.iter().take_while(|point| point.index == 0).count();
            let pairs = group.iter().zip(group.iter().skip(1)).take(leading);
            let Some(end) = pairs.enumerate().find(|(_, (a, b))| is_apart(a, b)) else { break };
            let alone: VecDeque<Point> = group.drain(..=end.0).collect();
            let (first, last) = (alone[0].at, alone[alone.len() - 1].at);
            let step = self.open_step(first, last, true);
            for point in alone {
                self.begin(step, point);
            }
        }
    }

    fn open_step(&mut self, first: Moment, last: Moment, seen: bool) -> usize {
        let before = self.steps.last().copied();
        let feed = &mut self.feed;
        while let Some(Reverse((at, sent, key))) = feed.fruitless.peek().copied()
            && at <= first
        {
            feed.waiting.remove(&(sent, key));
            feed.fruitless.pop();
        }
        let has_waited =
            |moment: Moment| feed.waiting.first().is_some_and(|(sent, _)| *sent <= moment);
        let began = before.filter(|step| !self.running.is_empty() || has_waited(step.last));
        let duration_ns = began.map(|before| between(before.first, first));
        let duration = duration_ns.map(|ns| ns as f64 / 1e9);
        self.steps.push(Step { first, last, duration, seen, ..Step::default() });
        self.steps.len() - 1
    }

    /// Gives the arrivals of a step to it.
    fn place(&mut self, step: usize, group: VecDeque<Point>) {
        let mut came: BTreeMap<u64, u32> = BTreeMap::new();
        for point in group {
            if point.index == 0 {
                self.begin(step, point);
            } else {
                *came.entry(point.stream).or_default() += 1;
            }
        }
        let mut running = std::mem::take(&mut self.running);
        running.retain(|key, stream| {
            let count = came.get(key).copied().unwrap_or(0);
            if stream.began == step {
                stream.surplus += count;
                (0..count).for_each(|_| stream.consume());
            } else {
                self.advance(step, stream, count);
            }
            stream.next < stream.arrivals.len()
        });
        self.running = running;
        let began = step.checked_sub(1).map(|before| self.steps[before].first);
        let before = (began.unwrap_or(Moment::ZERO), u64::MAX);
        let waiting = self.feed.waiting.range(..=before).take(WAITING_MAX).count();
        self.steps[step].waiting = u32::try_from(waiting).unwrap_or(u32::MAX);
    }

    /// A request's first token left in this step.
    fn begin(&mut self, step: usize, point: Point) {
        let Some(mut stream) = self.feed.streams.remove(&point.stream) else { return };
        self.feed.waiting.remove(&(stream.sent, point.stream));
        let Advance { steps, tokens, .. } = stream.arrivals[0];
        // Its first event may carry the tokens of several steps.
        let unseen = (step + 1).saturating_sub(steps.max(1) as usize)..step;
        let is_possible = |step: &usize| stream.sent < self.steps[*step].first;
        stream.began = unseen.clone().find(is_possible).unwrap_or(step);
        self.evidence.swallowed += (steps.max(1) as usize - 1 - (step - stream.began)) as u64;
        let found = &mut self.steps[stream.began];
        found.prefills += 1;
        found.prefill_tokens = found.prefill_tokens.saturating_add(stream.uncached);
        for earlier in stream.began..step {
            self.add_member(earlier, &mut stream, 1);
        }
        self.add_member(step, &mut stream, tokens);
        stream.began = step;
        stream.consume();
        if stream.next < stream.arrivals.len() {
            self.running.insert(point.stream, stream);
        }
    }

    /// Moves a stream on by one step, in which `count` of its arrivals came.
    fn advance(&mut self, step: usize, stream: &mut Stream, count: u32) {
        let surplus = std::mem::take(&mut stream.surplus);
        if count == 0 && 0 < surplus {
            // Its arrival came early, with that of the step before.
            self.add_member(step, stream, 1);
            self.evidence.irregular += u64::from(surplus - 1);
            return;
        }
        self.evidence.irregular += u64::from(surplus);
        if count == 0 && 1 < stream.due_in {
            stream.due_in -= 1;
            self.add_member(step, stream, 1);
            return;
        }
        if count == 0 {
            stream.missed += 1;
            return;
        }
        let missed = std::mem::take(&mut stream.missed);
        let is_late = 0 < missed && missed < count;
        let is_silent = !is_late && !stream.exact && missed < ABSENT_FROM;
        if is_late || is_silent {
            for skipped in step.saturating_sub(missed as usize)..step {
                self.add_member(skipped, stream, 1);
            }
        }
        let counter =
            if is_silent { &mut self.evidence.silent } else { &mut self.evidence.irregular };
        *counter += u64::from(if is_late { 0 } else { missed });
        self.evidence.irregular += u64::from(1 < stream.due_in);
        stream.surplus = count - 1 - if is_late { missed } else { 0 };
        let tokens = stream.arrivals[stream.next].tokens;
        self.add_member(step, stream, tokens);
        (0..count).for_each(|_| stream.consume());
    }

    fn add_member(&mut self, step: usize, stream: &mut Stream, tokens: u64) {
        let found = &mut self.steps[step];
        found.batch += 1;
        found.tokens = found.tokens.saturating_add(tokens);
        let context = stream.prompt.saturating_add(stream.output);
        found.context_tokens = found.context_tokens.saturating_add(context);
        stream.output = stream.output.saturating_add(tokens);
        self.evidence.placed += 1;
        (self.on_member)(step, stream.id);
    }
}

impl Stream {
    /// Passes to the next arrival.
    fn consume(&mut self) {
        self.next += 1;
        self.due_in = self.arrivals.get(self.next).map_or(1, |arrival| arrival.steps);
    }
}

/// The steps from the first arrival of a stream until a certain arrival of another, where each of their
/// arrivals ends equally many steps: every arrival says it by its place between two of the other stream.
fn steps_until(joined: &[Advance], other: &[Advance], next: usize) -> Option<u32> {
    let steps = other.get(next)?.steps;
    if steps < 2 {
        return None;
    }
    let mut votes = vec![0_u32; steps as usize];
    for arrival in joined.iter().take_while(|arrival| [1, steps].contains(&arrival.steps)) {
        let after = other.partition_point(|it| it.at < arrival.at);
        let Some((end, begin)) = other.get(after).zip(after.checked_sub(1).map(|it| other[it]))
        else {
            continue;
        };
        if end.steps == steps {
            let share =
                between(arrival.at, end.at) as f64 / between(begin.at, end.at).max(1) as f64;
            let whole = to_u32(libm::round(share * f64::from(steps)));
            votes[(whole % steps) as usize] += 1;
        }
    }
    let (most, sum) = (votes.iter().copied().max()?, votes.iter().sum::<u32>());
    let found = votes.iter().position(|count| *count == most)?;
    // Few arrivals, or a place between two steps, decide nothing.
    (VOTES_MIN <= sum && sum <= 3 * most).then(|| to_u32(found as f64))
}

fn between(from: Moment, to: Moment) -> u64 {
    to.as_nanos().saturating_sub(from.as_nanos())
}
