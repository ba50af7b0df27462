//! Synthetic agents: steps with tools between them, and sub-agents beside each other.

use std::time::Duration;

use inferometer_model::spec::{Agents, TURNS_MAX, Think};

use super::{Node, Part, Sessions};
use crate::arrivals::nanos;
use crate::lengths::{Draw, Zipf};
use crate::plan::Stream;

/// Sessions of different shapes; after them the shapes come again, with other words.
const SHAPES: u64 = 1_024;
/// Fewer shapes are drawn where each has many requests.
const NODES_MAX: usize = 1 << 20;

/// Draws the sessions of agents. Each is drawn by its number alone.
pub(crate) fn draw_agents(spec: &Agents, seed: u64) -> Sessions {
    let lengths = [&spec.steps, &spec.tools, &spec.task, &spec.growth, &spec.output];
    let [steps, tools, task, growth, output] = lengths.map(Draw::new);
    let [subagents, subagent_steps] = [&spec.subagents, &spec.subagent_steps].map(Draw::new);
    let popularity = spec.prefix.map(|prefix| (prefix, Zipf::new(prefix.count, prefix.zipf)));
    let mut sessions = Sessions { firsts: vec![0], ..Sessions::default() };
    for number in 0..SHAPES {
        if NODES_MAX <= sessions.nodes.len() {
            break;
        }
        let prefix = popularity.as_ref().map(|(prefix, popularity)| Part::Prefix {
            name: popularity.draw(&mut Stream::new(seed, "prefix", number)).into(),
            tokens: prefix.tokens,
        });
        let mut agent = Agent {
            spec,
            seed,
            first: sessions.nodes.len() as u64,
            lengths: [&tools, &task, &growth, &output],
            prefix,
            nodes: Vec::new(),
        };
        let mut joined = Vec::new();
        let mut last = None;
        let steps = u64::from(steps.draw_at(seed, "agent-steps", number).max(1));
        for step in 0..steps {
            let Some(turn) = agent.request(last, &joined) else { break };
            (last, joined) = (Some(turn), Vec::new());
            let place = number.wrapping_mul(u64::from(TURNS_MAX)).wrapping_add(step);
            // The last step has no other to wait for sub-agents.
            let may_fan_out = step + 1 < steps && 0.0 < spec.fan_out;
            if may_fan_out && Stream::new(seed, "agent-fan-out", place).unit() <= spec.fan_out {
                for beside in 0..u64::from(subagents.draw_at(seed, "agent-subagents", place)) {
                    let place = place.wrapping_mul(1_024).wrapping_add(beside);
                    let steps = subagent_steps.draw_at(seed, "agent-subagent-steps", place);
                    joined.extend(agent.subagent(turn, steps));
                }
            }
        }
        sessions.push(agent.nodes);
    }
    sessions.count_shared();
    sessions
}

/// A session while it is drawn.
struct Agent<'a> {
    spec: &'a Agents,
    seed: u64,
    /// The number of its first request.
    first: u64,
    /// Lengths of tools, tasks, growth and answers.
    lengths: [&'a Draw; 4],
    prefix: Option<Part>,
    nodes: Vec<Node>,
}

impl Agent<'_> {
    /// Adds a request that goes on from `context`, or begins with a task, and waits for `joined` as
    /// well; `None` where the session is full.
    fn request(&mut self, context: Option<u16>, joined: &[u16]) -> Option<u16> {
        let id = self.first + self.nodes.len() as u64;
        let turn = u16::try_from(self.nodes.len()).ok()?;
        if TURNS_MAX <= u32::from(turn) {
            return None;
        }
        let [tools, task, growth, output] = self.lengths;
        let (own, prefix) = match context {
            Some(_) => (growth.draw_at(self.seed, "agent-growth", id), None),
            None => (task.draw_at(self.seed, "input", id), self.prefix.clone()),
        };
        let mut waits_for: Vec<u16> = context.into_iter().chain(joined.iter().copied()).collect();
        waits_for.sort_unstable();
        let parts: Vec<Part> =
            prefix.into_iter().chain([Part::Text { turn, tokens: own }]).collect();
        let calls = if context.is_some() { tools.draw_at(self.seed, "agent-tools", id) } else { 0 };
        let input_tokens = parts.iter().fold(0_u32, |sum, part| sum.saturating_add(part.tokens()));
        if let Some(context) = context {
            self.nodes[usize::from(context)].continues = true;
        }
        self.nodes.push(Node {
            waits_for,
            delay: self.tool_time(id, calls),
            context,
            parts,
            input_tokens,
            output_tokens: output.draw_at(self.seed, "output", id),
            ..Node::default()
        });
        Some(turn)
    }

    /// Adds a sub-agent that an answer starts, and returns its last request.
    fn subagent(&mut self, starts_after: u16, steps: u32) -> Option<u16> {
        let mut last = self.request(None, &[starts_after])?;
        for _ in 1..steps {
            last = self.request(Some(last), &[])?;
        }
        Some(last)
    }

    /// How long the tools take that are called one after the other.
    fn tool_time(&self, id: u64, calls: u32) -> Duration {
        match self.spec.tool_time {
            Think::None => Duration::ZERO,
            Think::Fixed(time) => time.saturating_mul(calls),
            Think::Exponential { mean } => {
                let mut draws = Stream::new(self.seed, "agent-tool-time", id);
                let sum: f64 = (0..calls.min(1_000)).map(|_| draws.exponential()).sum();
                Duration::from_nanos(nanos(mean.as_secs_f64() * sum))
            }
        }
    }
}
