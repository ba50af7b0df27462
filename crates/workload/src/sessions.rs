//! Sessions: graphs of requests in which each waits for others, recorded or drawn.
//!
//! Every reader of [`formats`] gives [`Raw`] requests. They are linked here: whom each waits for, whose
//! prompt and answer its own prompt begins with, and how much of it earlier requests carry as well.

mod agents;
mod formats;
#[cfg(test)]
mod tests;

pub(crate) use agents::draw_agents;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use inferometer_model::observations::FileFacts;
use inferometer_model::record::SessionPlace;
use inferometer_model::spec::{History, OUTPUT_TOKENS, SessionsSpec, TOKENS_MAX, TURNS_MAX};
use inferometer_model::{Content, Message, PlannedRequest, Prompt, RequestId, Segment};

use crate::counter::Counter;
use crate::data_file::{DataFileError, Position, name_of};
use crate::plan::Stream;
use crate::prompts::{PromptIndex, Prompts, RECIPE};
use crate::text::TextMaker;

#[derive(Debug, thiserror::Error)]
pub enum SessionsError {
    #[error(transparent)]
    File(#[from] DataFileError),
    #[error(
        "cannot detect the kind of the sessions in {path} ({found}); name it with --sessions-kind: \
         requests, messages, turns or bailian (JSON lines), sharegpt, agentic-trace or otel (JSON)"
    )]
    UnknownKind { path: PathBuf, found: String },
    #[error(
        "{0} does not say when its sessions began; set --rate (of sessions) or --concurrency (of users)"
    )]
    NoTimes(PathBuf),
}

/// Sessions one behind the other. After the last the first comes again.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    pub(crate) nodes: Vec<Node>,
    /// The first node of each session, and their number at the end.
    pub(crate) firsts: Vec<u64>,
    /// When the sessions begin, in nanoseconds; `None` where the file does not say.
    pub(crate) starts: Option<Vec<u64>>,
    /// Requests that were left out, by the reason.
    dropped: BTreeMap<String, u64>,
    pub(crate) notes: Vec<String>,
}

/// A request of a session. Turns are positions in the session, in an order that the graph allows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) waits_for: Vec<u16>,
    /// After the last answer that it waits for, or after the first request of the session.
    pub(crate) delay: Duration,
    /// The turn whose prompt and real answer it goes on from.
    pub(crate) context: Option<u16>,
    /// The turn whose prompt and recorded answer it goes on from.
    recorded_context: Option<u16>,
    /// Whether a later request goes on from its real answer.
    pub(crate) continues: bool,
    parts: Vec<Part>,
    /// As it was recorded, where later prompts contain that.
    answer: Option<Part>,
    /// Tokens of the whole prompt, but for what a real context adds.
    input_tokens: u32,
    output_tokens: u32,
    shared_tokens: u32,
}

/// A part of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    Message {
        message: Message,
        tokens: u32,
        likeness: u64,
    },
    /// A system prompt that sessions share by its name.
    Prefix {
        name: u64,
        tokens: u32,
    },
    /// A piece of text that prompts share by its name.
    Block {
        name: u64,
        tokens: u32,
    },
    /// Words of this turn alone.
    Text {
        turn: u16,
        tokens: u32,
    },
    /// Words in the place of the answer to this turn.
    Answer {
        turn: u16,
        tokens: u32,
    },
}

impl Part {
    pub(crate) fn tokens(&self) -> u32 {
        match self {
            Self::Message { tokens, .. }
            | Self::Prefix { tokens, .. }
            | Self::Block { tokens, .. }
            | Self::Text { tokens, .. }
            | Self::Answer { tokens, .. } => *tokens,
        }
    }

    fn is_assistant(&self) -> bool {
        matches!(self, Self::Message { message, .. } if message.role() == "assistant")
    }

    /// Equal for parts that are equal in every session.
    fn likeness(&self, first: u64) -> u64 {
        let (kind, name) = match self {
            Self::Message { likeness, .. } => return *likeness,
            Self::Prefix { name, .. } => (1, *name),
            Self::Block { name, .. } => (2, *name),
            Self::Text { turn, .. } => (3, first + u64::from(*turn)),
            Self::Answer { turn, .. } => (4, first + u64::from(*turn)),
        };
        chained(kind, name)
    }
}

/// The hash of a list, by that of the list before its last element (FNV-1a by bytes).
fn chained(before: u64, next: u64) -> u64 {
    let start = before ^ 0xcbf2_9ce4_8422_2325;
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    next.to_le_bytes().into_iter().fold(start.wrapping_mul(0x9e37_79b9_7f4a_7c15), mix)
}

/// A request as it stands in a file.
#[derive(Debug)]
struct Raw {
    place: Position,
    id: String,
    after: After,
    /// The id of the request that its prompt goes on from, or none; as the graph says without it.
    #[expect(clippy::option_option, reason = "null is another answer than no key")]
    context: Option<Option<String>>,
    delay: Duration,
    /// When it was sent, in nanoseconds on the recorder's clock.
    at_ns: Option<i64>,
    said: Said,
    answer: Option<Part>,
    output_tokens: Option<u32>,
}

#[derive(Debug)]
enum After {
    /// The request before it in its session.
    Previous,
    Ids(Vec<String>),
}

/// What a file says of a prompt.
#[derive(Debug)]
enum Said {
    /// What is new since the context.
    New(Vec<Part>),
    /// All of it.
    Whole(Vec<Part>),
    /// Its whole length, and the blocks that it shares with others.
    Length(u32, Vec<Part>),
}

/// Gathers requests by their sessions.
struct Gathering<'g> {
    path: &'g Path,
    counter: &'g dyn Counter,
    history: History,
    /// With the names of the sessions, in the order of the file.
    sessions: Vec<(String, Vec<Raw>)>,
    by_name: HashMap<String, usize>,
    requests: u64,
    /// Tokens of messages, by their likeness.
    counted: HashMap<u64, u32>,
    dropped: BTreeMap<String, u64>,
    notes: Vec<String>,
}

/// What fits into memory.
const REQUESTS_MAX: u64 = 10_000_000;

/// Reads the sessions of a file whole.
pub(crate) fn read(
    spec: &SessionsSpec,
    counter: &dyn Counter,
) -> Result<(Sessions, FileFacts), SessionsError> {
    let path = spec.path.as_path();
    let mut gathering = Gathering {
        path,
        counter,
        history: spec.history,
        sessions: Vec::new(),
        by_name: HashMap::new(),
        requests: 0,
        counted: HashMap::new(),
        dropped: BTreeMap::new(),
        notes: Vec::new(),
    };
    let (kind, sha256) = formats::read(spec, &mut gathering)?;
    let mut sessions = gathering.finish()?;
    let dropped = std::mem::take(&mut sessions.dropped);
    let items = sessions.firsts.len() as u64 - 1;
    let facts = FileFacts { name: name_of(path), kind: kind.to_string(), sha256, items, dropped };
    Ok((sessions, facts))
}

impl Gathering<'_> {
    fn wrong(&self, place: Position, reason: impl Into<String>) -> DataFileError {
        DataFileError::Wrong { path: self.path.to_path_buf(), place, reason: reason.into() }
    }

    fn push(&mut self, session: &str, raw: Raw) -> Result<(), DataFileError> {
        self.requests += 1;
        if REQUESTS_MAX < self.requests {
            let (path, what) = (self.path.to_path_buf(), "requests");
            return Err(DataFileError::TooMany { path, bound: REQUESTS_MAX, what });
        }
        let number = if let Some(number) = self.by_name.get(session) {
            *number
        } else {
            self.by_name.insert(session.to_owned(), self.sessions.len());
            self.sessions.push((session.to_owned(), Vec::new()));
            self.sessions.len() - 1
        };
        if TURNS_MAX as usize <= self.sessions[number].1.len() {
            let reason = format!("a session has at most {TURNS_MAX} requests");
            return Err(self.wrong(raw.place, reason));
        }
        self.sessions[number].1.push(raw);
        Ok(())
    }

    fn leave_out(&mut self, reason: &str) {
        *self.dropped.entry(reason.to_owned()).or_default() += 1;
    }

    /// A message, and how long it is. Many traces repeat each of them in every later prompt.
    fn message(&mut self, message: Message) -> Part {
        let text = match message.0.get("tool_calls") {
            Some(calls) if message.text().is_empty() => calls.to_string(),
            _ => message.text(),
        };
        // A server wants the call that a tool answers, and real answers call none of them.
        let is_tools = matches!(message.role(), "tool" | "function");
        let message = match self.history {
            History::Real if is_tools => Message::new("user", text.as_str()),
            History::Real | History::Recorded => message,
        };
        let role = Prompt::Text(message.role().to_owned()).likeness();
        let likeness = chained(role, Prompt::Text(text.clone()).likeness());
        let counter = self.counter;
        let count = || u32::try_from(counter.words(&text)).unwrap_or(u32::MAX);
        let tokens = *self.counted.entry(likeness).or_insert_with(count);
        Part::Message { message, tokens, likeness }
    }

    fn finish(mut self) -> Result<Sessions, DataFileError> {
        let recorded = std::mem::take(&mut self.sessions);
        let mut linked = Vec::with_capacity(recorded.len());
        let (mut cut, mut with_times) = (0, true);
        for (name, raws) in recorded {
            let begins = raws.iter().filter_map(|raw| raw.at_ns).min();
            with_times &= begins.is_some();
            let (nodes, fresh) = Linking::new(&self, &name, &raws)?.link()?;
            cut += fresh;
            linked.push((begins.unwrap_or(0), nodes));
        }
        if linked.is_empty() {
            return Err(DataFileError::nothing_left(self.path, &self.dropped));
        }
        if 0 < cut {
            self.notes.push(format!(
                "{cut} of the recorded requests wait for others whose prompts they do not go on \
                 from; their prompts are sent as they were recorded, without real answers"
            ));
        }
        if with_times {
            linked.sort_by_key(|(begins, _)| *begins);
        }
        let first = linked.first().map_or(0, |(begins, _)| *begins);
        let since = |begins: &i64| u64::try_from(begins.saturating_sub(first)).unwrap_or_default();
        let starts = with_times.then(|| linked.iter().map(|(begins, _)| since(begins)).collect());
        let mut sessions =
            Sessions { starts, dropped: self.dropped, notes: self.notes, ..Sessions::default() };
        sessions.firsts.push(0);
        for (_, nodes) in linked {
            sessions.push(nodes);
        }
        sessions.count_shared();
        Ok(sessions)
    }
}

/// The requests of one session, while they are linked. Indices are places in the file.
struct Linking<'l> {
    gathering: &'l Gathering<'l>,
    session: &'l str,
    raws: &'l [Raw],
    by_id: HashMap<&'l str, usize>,
    /// Whom each waits for, as listed.
    earlier: Vec<Vec<usize>>,
}

impl<'l> Linking<'l> {
    fn new(
        gathering: &'l Gathering<'l>,
        session: &'l str,
        raws: &'l [Raw],
    ) -> Result<Self, DataFileError> {
        let mut by_id = HashMap::new();
        for (index, raw) in raws.iter().enumerate() {
            if let Some(other) = by_id.insert(raw.id.as_str(), index) {
                let (id, other) = (&raw.id, raws[other].place);
                let reason =
                    format!("the session `{session}` has a request `{id}` already: {other}");
                return Err(gathering.wrong(raw.place, reason));
            }
        }
        let mut linking = Self { gathering, session, raws, by_id, earlier: Vec::new() };
        for (index, raw) in raws.iter().enumerate() {
            let earlier = match &raw.after {
                After::Previous => index.checked_sub(1).into_iter().collect(),
                After::Ids(ids) => {
                    let found = ids.iter().map(|id| linking.find(raw, id, "waits for"));
                    found.collect::<Result<_, _>>()?
                }
            };
            linking.earlier.push(earlier);
        }
        Ok(linking)
    }

    fn find(&self, raw: &Raw, id: &str, what: &str) -> Result<usize, DataFileError> {
        self.by_id.get(id).copied().ok_or_else(|| {
            let reason = format!(
                "the request `{}` {what} `{id}`, and its session `{}` has no request of that id",
                raw.id, self.session
            );
            self.gathering.wrong(raw.place, reason)
        })
    }

    /// The requests in an order in which each stands behind all that it waits for.
    fn order(&self) -> Result<Vec<usize>, DataFileError> {
        let mut waiting: Vec<BTreeSet<usize>> =
            self.earlier.iter().map(|earlier| earlier.iter().copied().collect()).collect();
        let mut followers = vec![Vec::new(); waiting.len()];
        for (index, earlier) in waiting.iter().enumerate() {
            for earlier in earlier {
                followers[*earlier].push(index);
            }
        }
        let is_ready = |index: &usize| waiting[*index].is_empty();
        let mut ready: BTreeSet<usize> = (0..waiting.len()).filter(is_ready).collect();
        let mut order = Vec::with_capacity(waiting.len());
        while let Some(index) = ready.pop_first() {
            order.push(index);
            for follower in &followers[index] {
                waiting[*follower].remove(&index);
                if waiting[*follower].is_empty() {
                    ready.insert(*follower);
                }
            }
        }
        match waiting.iter().position(|waiting| !waiting.is_empty()) {
            None => Ok(order),
            Some(stuck) => Err(self.circle(&waiting, stuck)),
        }
    }

    /// Names a circle that a request waits for.
    fn circle(&self, waiting: &[BTreeSet<usize>], stuck: usize) -> DataFileError {
        let next = |index: &usize| waiting[*index].first().copied();
        let mut walked: Vec<usize> = Vec::new();
        let mut at = Some(stuck);
        while let Some(index) = at.filter(|index| !walked.contains(index)) {
            walked.push(index);
            at = next(&index);
        }
        let circle = walked.iter().position(|index| Some(*index) == at).unwrap_or(0);
        let circle = &walked[circle..];
        let names = circle.iter().chain(circle.first()).take(8);
        let names: Vec<String> = names.map(|index| format!("`{}`", self.raws[*index].id)).collect();
        let reason = format!(
            "the requests of the session `{}` wait for each other in a circle: {}{}",
            self.session,
            names.join(" waits for "),
            if circle.len() < 8 { "" } else { " …" }
        );
        self.gathering.wrong(self.raws[circle.first().copied().unwrap_or(stuck)].place, reason)
    }

    /// The nodes in their order, and how many of them do not go on from any that they wait for.
    fn link(&self) -> Result<(Vec<Node>, u64), DataFileError> {
        let order = self.order()?;
        let mut turns = vec![0_u16; order.len()];
        for (turn, index) in (0..).zip(&order) {
            turns[*index] = turn;
        }
        let mut contexts = Contexts::new(self, &order);
        let (mut nodes, mut fresh) = (Vec::with_capacity(order.len()), 0);
        for index in &order {
            let (index, raw) = (*index, &self.raws[*index]);
            let context = contexts.find(index)?;
            let turn = turns[index];
            let is_real = self.gathering.history == History::Real;
            let is_stated = raw.context.is_some() || context.is_some();
            fresh += u64::from(!is_stated && !self.earlier[index].is_empty());
            // A whole prompt has its answers in it.
            let context = context.filter(|_| is_real || !matches!(raw.said, Said::Whole(_)));
            let parts = contexts.new_parts(index, context, turn);
            let context = context.map(|context| turns[context]);
            let mut waits_for: Vec<u16> =
                self.earlier[index].iter().map(|earlier| turns[*earlier]).collect();
            waits_for.sort_unstable();
            waits_for.dedup();
            let answer_tokens = raw.answer.as_ref().map(Part::tokens).filter(|tokens| 0 < *tokens);
            let output_tokens = raw.output_tokens.or(answer_tokens).unwrap_or(OUTPUT_TOKENS);
            let output_tokens = output_tokens.clamp(1, TOKENS_MAX);
            let answer = raw.answer.clone();
            let answer = answer.unwrap_or(Part::Answer { turn, tokens: output_tokens });
            let mut node = Node {
                waits_for,
                delay: raw.delay,
                context: context.filter(|_| is_real),
                recorded_context: context.filter(|_| !is_real),
                answer: (!is_real).then_some(answer),
                output_tokens,
                parts,
                ..Node::default()
            };
            node.input_tokens = self.input_tokens(&node, &nodes, raw)?;
            nodes.push(node);
        }
        let contexts: Vec<u16> = nodes.iter().filter_map(|node| node.context).collect();
        for context in contexts {
            nodes[usize::from(context)].continues = true;
        }
        Ok((nodes, fresh))
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "only this part is looked for")]
    fn input_tokens(&self, node: &Node, before: &[Node], raw: &Raw) -> Result<u32, DataFileError> {
        let recorded = node.recorded_context.and_then(|turn| before.get(usize::from(turn)));
        let recorded = recorded.map_or(0, |node| {
            node.input_tokens.saturating_add(node.answer.as_ref().map_or(0, Part::tokens))
        });
        let own = node.parts.iter().fold(0_u32, |sum, part| sum.saturating_add(part.tokens()));
        let mut tokens = recorded.saturating_add(own);
        // A template surrounds the messages of a whole prompt.
        let is_whole = node.context.is_none() && node.recorded_context.is_none();
        if is_whole && self.gathering.counter.template().is_some() {
            let messages = node.parts.iter().filter_map(|part| match part {
                Part::Message { message, .. } => Some(message.clone()),
                _ => None,
            });
            let messages: Vec<Message> = messages.collect();
            if messages.len() == node.parts.len() {
                let counted = self.gathering.counter.prompt(&Prompt::Messages(messages));
                let refused = "the model's chat template refuses its messages";
                let counted = counted.ok_or_else(|| self.gathering.wrong(raw.place, refused))?;
                tokens = u32::try_from(counted).unwrap_or(u32::MAX);
            }
        }
        if TOKENS_MAX < tokens {
            let reason =
                format!("its prompt has {tokens} tokens, and at most {TOKENS_MAX} can be sent");
            return Err(self.gathering.wrong(raw.place, reason));
        }
        Ok(tokens.max(1))
    }
}

/// Finds out from which request each goes on.
struct Contexts<'l> {
    linking: &'l Linking<'l>,
    /// All that each waits for, and what those wait for, as bits; empty where nobody asks.
    ancestors: Vec<Vec<u64>>,
    /// The requests of each whole prompt, by the hash of all of its parts.
    by_prompt: HashMap<u64, Vec<usize>>,
}

impl<'l> Contexts<'l> {
    fn new(linking: &'l Linking<'l>, order: &[usize]) -> Self {
        let asks =
            |raw: &Raw| matches!(raw.said, Said::Whole(_)) || matches!(raw.context, Some(Some(_)));
        let mut ancestors = Vec::new();
        if linking.raws.iter().any(asks) {
            let words = order.len().div_ceil(64);
            ancestors = vec![vec![0_u64; words]; order.len()];
            for index in order {
                let mut own = std::mem::take(&mut ancestors[*index]);
                for earlier in &linking.earlier[*index] {
                    own[earlier / 64] |= 1 << (earlier % 64);
                    own.iter_mut().zip(&ancestors[*earlier]).for_each(|(own, bits)| *own |= bits);
                }
                ancestors[*index] = own;
            }
        }
        Self { linking, ancestors, by_prompt: HashMap::new() }
    }

    fn is_ancestor(&self, index: usize, earlier: usize) -> bool {
        let bits = self.ancestors.get(index).and_then(|bits| bits.get(earlier / 64));
        bits.is_some_and(|bits| bits & (1 << (earlier % 64)) != 0)
    }

    fn find(&mut self, index: usize) -> Result<Option<usize>, DataFileError> {
        let Linking { gathering, raws, earlier, .. } = self.linking;
        let raw = &raws[index];
        if let Some(named) = &raw.context {
            let Some(id) = named else { return Ok(None) };
            let context = self.linking.find(raw, id, "goes on from")?;
            if !self.is_ancestor(index, context) {
                let reason = format!(
                    "the request `{}` goes on from `{id}` without waiting for it; name `{id}` in `after`",
                    raw.id
                );
                return Err(gathering.wrong(raw.place, reason));
            }
            return Ok(Some(context));
        }
        match &raw.said {
            Said::New(_) => Ok(earlier[index].first().copied()),
            Said::Length(total, _) => {
                // The longest history that leaves something new to say.
                let whole = |index: &usize| match raws[*index].said {
                    Said::Length(tokens, _) => {
                        tokens.saturating_add(raws[*index].output_tokens.unwrap_or(0))
                    }
                    Said::New(_) | Said::Whole(_) => u32::MAX,
                };
                let shorter = earlier[index].iter().filter(|earlier| whole(earlier) < *total);
                Ok(shorter.max_by_key(|earlier| whole(earlier)).copied())
            }
            Said::Whole(parts) => Ok(self.find_by_parts(index, parts)),
        }
    }

    /// The request with the longest prompt that is the beginning of this one.
    fn find_by_parts(&mut self, index: usize, parts: &[Part]) -> Option<usize> {
        let raws = self.linking.raws;
        let (mut hash, mut found) = (0, None);
        for (place, part) in parts.iter().enumerate() {
            hash = chained(hash, part.likeness(0));
            // Something new must follow the answer.
            let has_news = parts[place + 1..].iter().any(|part| !part.is_assistant());
            let same = self.by_prompt.get(&hash).into_iter().flatten().rev();
            let same = same.copied().find(|earlier| {
                let is_equal =
                    |said: &Said| matches!(said, Said::Whole(other) if *other == parts[..=place]);
                self.is_ancestor(index, *earlier) && is_equal(&raws[*earlier].said)
            });
            found = same.filter(|_| has_news).or(found);
        }
        self.by_prompt.entry(hash).or_default().push(index);
        found
    }

    /// What a request adds to its context.
    fn new_parts(&self, index: usize, context: Option<usize>, turn: u16) -> Vec<Part> {
        let raws = self.linking.raws;
        match (&raws[index].said, context.map(|context| &raws[context])) {
            (Said::New(parts), _) | (Said::Whole(parts), None) => at_turn(parts, turn),
            (Said::Whole(parts), Some(context)) => {
                let before = if let Said::Whole(before) = &context.said { before.len() } else { 0 };
                let new = parts.get(before..).unwrap_or_default();
                let answered = new.iter().take_while(|part| part.is_assistant()).count();
                new[answered..].to_vec()
            }
            (Said::Length(total, _), Some(context)) => {
                let before = if let Said::Length(tokens, _) = context.said { tokens } else { 0 };
                let before = before.saturating_add(context.output_tokens.unwrap_or(0));
                vec![Part::Text { turn, tokens: total.saturating_sub(before) }]
            }
            (Said::Length(total, blocks), None) => {
                let mut left = *total;
                let mut parts = Vec::new();
                for block in blocks {
                    if let Part::Block { name, tokens } = block
                        && 0 < left
                    {
                        let tokens = left.min(*tokens);
                        parts.push(Part::Block { name: *name, tokens });
                        left -= tokens;
                    }
                }
                let rest = (0 < left).then_some(Part::Text { turn, tokens: left });
                parts.into_iter().chain(rest).collect()
            }
        }
    }
}

/// Words of its own belong to the turn that a request became.
#[expect(clippy::wildcard_enum_match_arm, reason = "all other parts stay as they are")]
fn at_turn(parts: &[Part], turn: u16) -> Vec<Part> {
    let at_turn = |part: &Part| match part {
        Part::Text { tokens, .. } => Part::Text { turn, tokens: *tokens },
        other => other.clone(),
    };
    parts.iter().map(at_turn).collect()
}

impl Sessions {
    fn push(&mut self, nodes: Vec<Node>) {
        self.nodes.extend(nodes);
        self.firsts.push(self.nodes.len() as u64);
    }

    /// The node of a request, and whether it comes for the first time.
    pub(crate) fn node(&self, id: RequestId) -> (&Node, bool) {
        let count = self.nodes.len() as u64;
        let place = usize::try_from(id.0 % count).unwrap_or_default();
        (&self.nodes[place], id.0 < count)
    }

    /// Whether a prompt begins with a system prompt of our own words.
    pub(crate) fn has_system_prompts(&self) -> bool {
        self.nodes
            .iter()
            .flat_map(|node| &node.parts)
            .any(|part| matches!(part, Part::Prefix { .. }))
    }

    /// Whether the words of prompts are ours.
    pub(crate) fn writes_words(&self) -> bool {
        let is_ours = |part: &Part| !matches!(part, Part::Message { .. });
        self.nodes.iter().flat_map(|node| &node.parts).any(is_ours)
    }

    /// Counts how many tokens of each prompt earlier ones in the order of the plan carry as well. What
    /// a real context adds is not among them: its length is known when it was said.
    fn count_shared(&mut self) {
        let mut seen = HashSet::new();
        // The hash of each prompt, whole.
        let mut hashes: Vec<u64> = Vec::with_capacity(self.nodes.len());
        for window in self.firsts.windows(2) {
            let [first, end] = [window[0], window[1]];
            for place in first..end {
                let place = usize::try_from(place).unwrap_or_default();
                let node = &self.nodes[place];
                let session = usize::try_from(first).unwrap_or_default();
                let before = node.recorded_context.map(|turn| session + usize::from(turn));
                let (mut hash, mut shared, mut open, mut answer) = (0, 0_u32, true, None);
                if let Some(before) = before {
                    (hash, shared) = (hashes[before], self.nodes[before].input_tokens);
                    answer = self.nodes[before].answer.as_ref();
                } else if node.context.is_some() {
                    // Behind a real answer nothing is known to be shared.
                    (hash, open) = (chained(5, place as u64), false);
                }
                for part in answer.into_iter().chain(&node.parts) {
                    hash = chained(hash, part.likeness(first));
                    open &= !seen.insert(hash);
                    shared = shared.saturating_add(if open { part.tokens() } else { 0 });
                }
                hashes.push(hash);
                let node = &mut self.nodes[place];
                node.shared_tokens = shared.min(node.input_tokens);
            }
        }
    }
}

/// The requests of sessions as prompts.
#[derive(Debug)]
pub(crate) struct SessionPrompts {
    pub(crate) seed: u64,
    pub(crate) text: Arc<TextMaker>,
    pub(crate) sessions: Arc<Sessions>,
}

impl SessionPrompts {
    /// All parts of a prompt, but for a real context.
    fn parts(&self, request: &PlannedRequest) -> Vec<&Part> {
        let first = request.conversation();
        let node = |turn: u16| self.sessions.node(RequestId(first.0 + u64::from(turn))).0;
        let own = node(request.turn);
        let earlier: Vec<&Node> = std::iter::successors(own.recorded_context.map(node), |before| {
            before.recorded_context.map(node)
        })
        .collect();
        let earlier = earlier.into_iter().rev();
        let earlier = earlier.flat_map(|node| node.parts.iter().chain(&node.answer));
        earlier.chain(&own.parts).collect()
    }

    fn segment(&self, part: &Part, request: &PlannedRequest) -> Segment {
        let turn_id = |turn: u16| request.conversation().0 + u64::from(turn);
        let (stream, index) = match part {
            Part::Message { .. } => {
                return Segment { seed: part.likeness(0), tokens: part.tokens() };
            }
            Part::Prefix { name, .. } => ("prefix-text", *name),
            Part::Block { name, .. } => ("block", *name),
            Part::Text { turn, .. } => ("prompts", turn_id(*turn)),
            Part::Answer { turn, .. } => ("answers", turn_id(*turn)),
        };
        Segment { seed: Stream::new(self.seed, stream, index).bits(), tokens: part.tokens() }
    }
}

impl Prompts for SessionPrompts {
    fn recipe(&self, place: PromptIndex) -> PlannedRequest {
        let (node, is_first_pass) = self.sessions.node(RequestId(place.id));
        let is_said_again = |part: &&Part| {
            matches!(part, Part::Message { .. } | Part::Prefix { .. } | Part::Block { .. })
        };
        let shared_tokens = match node.context {
            None if !is_first_pass => {
                let again = node.parts.iter().take_while(is_said_again).map(Part::tokens).sum();
                node.shared_tokens.max(again)
            }
            _ => node.shared_tokens,
        };
        let is_text = node.parts.iter().all(|part| !matches!(part, Part::Message { .. }));
        let shortest = if is_text && node.context.is_none() { self.text.shortest() } else { 1 };
        PlannedRequest {
            prompt_seed: Stream::new(self.seed, "prompts", place.id).bits(),
            input_tokens: node.input_tokens.max(shortest),
            output_tokens: node.output_tokens,
            session: SessionPlace { shared_tokens, ..SessionPlace::default() },
            ..RECIPE
        }
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        let parts = self.parts(request);
        let segments = self.segments(request);
        if let ([Part::Prefix { .. }, Part::Text { .. }], [system, own]) =
            (parts.as_slice(), segments.as_slice())
        {
            let [system, user] = self.text.opening(*system, *own);
            let messages = vec![Message::new("system", system), Message::new("user", user)];
            return Content::new(Prompt::Messages(messages));
        }
        if parts.iter().all(|part| !matches!(part, Part::Message { .. })) {
            let is_new = request.session.context.is_some();
            let text = if is_new { self.text.bare(&segments) } else { self.text.framed(&segments) };
            return Content::text(text);
        }
        let messages = parts.iter().zip(&segments).map(|(part, segment)| {
            let role = match part {
                Part::Message { message, .. } => return message.clone(),
                Part::Prefix { .. } => "system",
                Part::Answer { .. } => "assistant",
                Part::Text { .. } | Part::Block { .. } => "user",
            };
            Message::new(role, self.text.bare(&[*segment]))
        });
        Content::new(Prompt::Messages(messages.collect()))
    }

    /// What a prompt lacks to its shortest possible length is its own.
    fn segments(&self, request: &PlannedRequest) -> Vec<Segment> {
        let parts = self.parts(request);
        let mut segments: Vec<Segment> =
            parts.iter().map(|part| self.segment(part, request)).collect();
        let sum: u32 = segments.iter().fold(0, |sum, it| sum.saturating_add(it.tokens));
        let is_text = matches!(parts.last(), Some(Part::Text { .. }));
        if let Some(last) = segments.last_mut().filter(|_| is_text) {
            last.tokens = last.tokens.saturating_add(request.input_tokens.saturating_sub(sum));
        }
        segments
    }
}
