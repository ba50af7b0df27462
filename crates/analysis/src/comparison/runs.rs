//! Runs of our own, of which everything is known: which quantities are compared, and what speaks
//! against comparing them. What is known of hardware and software comes from the machine itself, from
//! `--server-info`, or from a note with `--metadata`.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::num::NonZeroU32;

use inferometer_model::campaign::Level;
use inferometer_model::system::ServerFacts;

use super::document::{
    INPUT_COUNTS, OUTPUT_COUNTS, Objection, PROMISES, SideFacts, SideRun, TOKENIZER, Weight,
    objection,
};
use super::{Compared, Side, Trouble};
use crate::judge::Verdict;
use crate::metric::{self, Better, METRICS, Metric, Quantity, Statistic};
use crate::record::Tokens;
use crate::run::{LoadFacts, RateFacts, WorkloadFacts};
use crate::statistics::{Estimate, Percentile};
use crate::summary::Summary;

impl Compared for Summary {
    const NOUN: &'static str = "run";
    const ONCE: &'static str = "name each run once: a run says nothing about itself";
    const FIGURES_ONLY: bool = false;

    fn id(&self) -> &str {
        &self.run.id
    }

    /// How much was asked of the server at once. A load that changes over the run is at no level.
    fn level(&self) -> Level {
        match &self.run.load {
            LoadFacts::Closed { concurrency, .. } => {
                NonZeroU32::new(*concurrency).map_or(Level::AsAsked, Level::Concurrency)
            }
            LoadFacts::Open { rate: RateFacts::Steady { per_s }, .. } => Level::Rate(*per_s),
            LoadFacts::Open { rate: RateFacts::Unlimited, .. } => Level::Unlimited,
            LoadFacts::Open {
                rate: RateFacts::Ramp { .. } | RateFacts::Recorded { .. }, ..
            } => Level::AsAsked,
        }
    }

    fn verdict(&self) -> Option<Verdict> {
        Some(self.verdict)
    }

    fn estimate(&self, quantity: &Quantity) -> Option<Estimate> {
        quantity.value_in(self).ok()
    }

    fn facts(side: &Side<Self>) -> SideFacts {
        // Rows of a suite, and repeated runs, are of one server, which may have another port each time.
        let is_matrix = side.rows.is_some() && side.suite.is_none();
        let all = |noun, of: fn(&Summary) -> Option<&str>| {
            let runs = if is_matrix { side.results.as_slice() } else { side.results.get(..1)? };
            only_or_count(noun, runs.iter().filter_map(of))
        };
        let runs = side.results.iter().enumerate().map(|(place, run)| SideRun {
            scenario: side.row_of(place).map(str::to_owned),
            id: run.run.id.clone(),
            seed: Some(run.run.seed),
            level: run.level(),
            verdict: Some(run.verdict),
            partial: run.run.partial,
        });
        SideFacts {
            name: side.name.clone(),
            source: side.source.clone(),
            model: all("models", |run| Some(run.run.model.as_str())).unwrap_or_default(),
            target: all("servers", |run| Some(run.run.target.as_str())).unwrap_or_default(),
            simulated: all("profiles", |run| Some(run.run.simulated.as_ref()?.profile.as_str())),
            tool: None,
            runs: runs.collect(),
            left_out: side.left_out(),
        }
    }

    /// On an open loop the rate is given, so waiting is what can change; on a closed loop it is the
    /// throughput.
    fn primary(sides: &[Side<Self>]) -> Quantity {
        let first = sides.iter().flat_map(|side| &side.results).next();
        if first.is_some_and(|run| run.run.load.is_open()) {
            metric::TTFT_SCHEDULE.p99()
        } else {
            (&metric::OUTPUT_THROUGHPUT).into()
        }
    }

    /// The headlines of this kind of load that have a good direction, and the throughput of prompts.
    fn quantities(base: &[&Self]) -> Vec<Quantity> {
        let is_open = base.first().is_some_and(|run| run.run.load.is_open());
        let is_shown = |metric: &&'static Metric| {
            let headline = metric.headline;
            let is_headline =
                if is_open { headline.on_open_loop() } else { headline.on_closed_loop() };
            (is_headline || **metric == metric::INPUT_THROUGHPUT)
                && metric.better != Better::Neither
        };
        let statistics = [Percentile::P50, Percentile::P99].map(Statistic::Percentile);
        let shown = METRICS.iter().copied().filter(is_shown);
        shown.flat_map(|metric| metric.quantities(&statistics)).collect()
    }

    fn in_pairs<'a>(base: &[&Self], other: &[&'a Self]) -> Option<Vec<&'a Self>> {
        let stimulus = |run: &Summary| (run.run.seed, run.plan.fingerprint.clone());
        let partner = |run: &&Summary| {
            let wanted = stimulus(run);
            let mut partners = other.iter().copied().filter(|other| stimulus(other) == wanted);
            let has_double = 1 < base.iter().filter(|other| stimulus(other) == wanted).count();
            partners.next().filter(|_| partners.next().is_none() && !has_double)
        };
        if base.len() != other.len() {
            return None;
        }
        base.iter().map(partner).collect()
    }

    fn asks_the_same(&self, other: &Self) -> bool {
        self.workload.fingerprint == other.workload.fingerprint
    }

    fn troubles(side: &Side<Self>) -> Vec<Trouble> {
        let count = |is: fn(&Summary) -> bool| side.results.iter().filter(|run| is(run)).count();
        vec![
            (
                "invalid_runs",
                count(|run| run.verdict == Verdict::Invalid),
                "are invalid and left out",
                "look at their warnings with `inferometer verify RUN --format page`, and run again",
            ),
            (
                "degraded_runs",
                count(|run| run.verdict == Verdict::Degraded),
                "are degraded: their numbers hold with a reservation",
                "look at their warnings with `inferometer verify RUN --format page`",
            ),
            (
                "partial_runs",
                count(|run| run.run.partial && run.verdict != Verdict::Invalid),
                "ended before their plan did",
                "run again to the end, so that both sides had the same work",
            ),
        ]
    }

    fn differences(base: &[&Self], runs: &[&Self], side: &str) -> Vec<Objection> {
        let Some(first) = base.first() else { return Vec::new() };
        let between = |run: &&Summary| {
            [stimulus, counts, facts, hardware].map(|between| between(first, side, run)).concat()
        };
        runs.iter().flat_map(between).collect()
    }
}

/// The one that all share, or how many there are: the rows of a matrix are of many.
fn only_or_count<'a>(noun: &str, all: impl Iterator<Item = &'a str>) -> Option<String> {
    let distinct: BTreeSet<&str> = all.collect();
    match distinct.len() {
        0 => None,
        1 => distinct.first().map(|one| (*one).to_owned()),
        several => Some(format!("{several} {noun}")),
    }
}

/// What was asked, and when.
fn stimulus(first: &Summary, side: &str, run: &Summary) -> Vec<Objection> {
    let mut found = Vec::new();
    let mut forbid = |key: &str, text: String, remedy: &str| {
        found.push(objection(key, Weight::Forbids, side, text, remedy));
    };
    if first.run.simulated.is_some() != run.run.simulated.is_some() {
        let what =
            |run: &Summary| if run.run.simulated.is_some() { "simulated" } else { "measured" };
        let text = format!("one side is {} and {} is {}", what(first), side, what(run));
        forbid("simulated", text, "compare measured runs with measured ones");
    }
    if first.workload.fingerprint == run.workload.fingerprint {
        return found;
    }
    let same_load = "run both with the same experiment file, and change only the server";
    for (key, name, a, b) in workload_differences(first, run) {
        let text = format!("{name} differs: {a} in the base, {b} in {side}");
        forbid(key, text, same_load);
    }
    if found.is_empty() && first.workload.tokenizer == run.workload.tokenizer {
        let text = format!(
            "the workload of {} is another ({} and {}) in something that summaries do not show",
            side, first.workload.fingerprint, run.workload.fingerprint
        );
        found.push(objection("workload", Weight::Forbids, side, text, same_load));
    }
    found
}

/// The key, the name, and both values of every fact of the stimulus that differs.
fn workload_differences(
    first: &Summary,
    run: &Summary,
) -> Vec<(&'static str, &'static str, String, String)> {
    let (a, b) = (&first.workload, &run.workload);
    let shown = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
    let text = |value: &Option<inferometer_model::spec::Lengths>| {
        shown(value.as_ref().map(ToString::to_string))
    };
    let files = |facts: &WorkloadFacts| {
        facts
            .files
            .iter()
            .map(|file| file.sha256.chars().take(12).collect())
            .collect::<Vec<String>>()
    };
    let listed = |files: Vec<String>| shown(Some(files.join(", ")).filter(|text| !text.is_empty()));
    let json = |value: serde_json::Result<String>| value.unwrap_or_default();
    let plain = |run: &Summary| {
        let kind = if run.run.load.is_open() { "open loop" } else { "closed loop" };
        format!("{kind}, {}", run.level())
    };
    let is_alike = plain(first) == plain(run);
    // Details are for loads that look alike without them.
    let load = |run: &Summary| match plain(run) {
        plain if is_alike => format!("{plain} ({})", json(serde_json::to_string(&run.run.load))),
        plain => plain,
    };
    let extent = |run: &Summary| json(serde_json::to_string(&run.run.extent));
    let warm_up = |run: &Summary| run.run.warm_up.map_or(0, |facts| facts.requests).to_string();
    let streaming = |run: &Summary| if run.run.streaming { "streamed" } else { "not streamed" };
    let other = |facts: &WorkloadFacts| {
        let parts = [
            json(serde_json::to_string(&facts.prefix)),
            json(serde_json::to_string(&facts.images)),
            json(serde_json::to_string(&facts.adapters)),
            json(serde_json::to_string(&facts.turn_think)),
        ];
        parts.join(" ")
    };
    [
        ("api", "the API", first.run.api.to_string(), run.run.api.to_string()),
        ("streaming", "streaming", streaming(first).to_owned(), streaming(run).to_owned()),
        ("load", "the load", load(first), load(run)),
        ("extent", "the extent", extent(first), extent(run)),
        ("warm_up", "the number of warm-up requests", warm_up(first), warm_up(run)),
        ("source", "the source of prompts", a.source.name().to_owned(), b.source.name().to_owned()),
        ("input_tokens", "the length of prompts", text(&a.input_tokens), text(&b.input_tokens)),
        ("output_tokens", "the length of answers", text(&a.output_tokens), text(&b.output_tokens)),
        ("turns", "the number of turns", text(&a.turns), text(&b.turns)),
        ("files", "the data", listed(files(a)), listed(files(b))),
        ("fields", "what bodies carry", quoted(&a.fields), quoted(&b.fields)),
        ("shared_parts", "prefixes, images, adapters or thinking", other(a), other(b)),
    ]
    .into_iter()
    .filter(|(_, _, a, b)| a != b)
    .collect()
}

fn quoted(fields: &serde_json::Map<String, serde_json::Value>) -> String {
    serde_json::to_string(fields).unwrap_or_default()
}

/// Who counted tokens, and what was promised: without the same, some quantities mean another thing.
fn counts(first: &Summary, side: &str, run: &Summary) -> Vec<Objection> {
    let mut found = Vec::new();
    let mut withhold = |key: &str, text: String, remedy: &str| {
        found.push(objection(key, Weight::Withholds, side, text, remedy));
    };
    let (a, b) = (&first.workload.tokenizer, &run.workload.tokenizer);
    if a.as_ref().map(|facts| &facts.sha256) != b.as_ref().map(|facts| &facts.sha256) {
        let name = |facts: &Option<inferometer_model::observations::TokenizerFacts>| {
            facts.as_ref().map_or_else(|| "none".to_owned(), |facts| facts.name.clone())
        };
        let text = format!(
            "the tokenizer differs ({} in the base, {} in {}): a token is not the same length",
            name(a),
            name(b),
            side
        );
        withhold(TOKENIZER, text, "give both runs the same --tokenizer");
    }
    let sources = [
        (OUTPUT_COUNTS, "output", output_sources(&first.tokens), output_sources(&run.tokens)),
        (INPUT_COUNTS, "input", input_sources(&first.tokens), input_sources(&run.tokens)),
    ];
    for (key, which, a, b) in sources {
        if a != b && !a.is_empty() && !b.is_empty() {
            let text = format!(
                "{which} tokens were counted by {} in the base and by {} in {}",
                a.join(" and "),
                b.join(" and "),
                side
            );
            withhold(key, text, "have both servers report `usage`");
        }
    }
    let promises = |run: &Summary| {
        run.request_slos.as_ref().map(|slos| {
            slos.promises.iter().map(|slo| slo.promise.clone()).collect::<Vec<_>>().join(", ")
        })
    };
    let (a, b) = (promises(first), promises(run));
    if a != b && a.is_some() && b.is_some() {
        let said = |text: Option<String>| text.unwrap_or_default();
        let text = format!("each request was promised {} and {} in {}", said(a), said(b), side);
        withhold(PROMISES, text, "give both runs the same --slo");
    }
    found
}

fn output_sources(tokens: &Tokens) -> Vec<&'static str> {
    let found = tokens.output_source;
    named([("usage", found.usage), ("stream marks", found.stream_marks), ("events", found.events)])
}

fn input_sources(tokens: &Tokens) -> Vec<&'static str> {
    let found = tokens.input_source;
    named([("usage", found.usage), ("the length asked for", found.asked)])
}

fn named<const N: usize>(sources: [(&'static str, u64); N]) -> Vec<&'static str> {
    sources.into_iter().filter(|(_, requests)| 0 < *requests).map(|(name, _)| name).collect()
}

/// Facts that may be the very question.
fn facts(first: &Summary, side: &str, run: &Summary) -> Vec<Objection> {
    let mut found = Vec::new();
    let (a, b) = (&first.run, &run.run);
    if a.model != b.model {
        let text = format!(
            "the model differs: `{}` in the base, `{}` in {}; tokens of another vocabulary are \
             not the same length",
            a.model, b.model, side
        );
        let remedy = "if that is the question, prefer quantities per request";
        found.push(objection("model", Weight::Warning, side, text, remedy));
    }
    if a.http != b.http {
        let text = format!("the HTTP version of {side} is another");
        let remedy = "run both with the same --http";
        found.push(objection("http", Weight::Warning, side, text, remedy));
    }
    let mut note = |key: &str, what: &str, a: &dyn Display, b: &dyn Display| {
        let text = format!("{what} differs: {a} in the base, {b} in {side}");
        let remedy = "nothing to do if that is the question";
        found.push(objection(key, Weight::Note, side, text, remedy));
    };
    match (&a.simulated, &b.simulated) {
        (Some(one), Some(two)) if one.profile != two.profile => {
            note("profile", "the simulated profile", &one.profile, &two.profile);
        }
        (Some(one), Some(two)) if one.engine != two.engine => {
            note("engine", "the simulated engine", &one.engine, &two.engine);
        }
        (None, None) if a.target != b.target && !a.embedded && !b.embedded => {
            note("target", "the server", &a.target, &b.target);
        }
        _ => {}
    }
    if a.tool_version != b.tool_version {
        note("tool_version", "the version of Inferometer", &a.tool_version, &b.tool_version);
    }
    let speed = |speed: Option<f64>| speed.unwrap_or(1.0);
    if (speed(a.engine_speed) - speed(b.engine_speed)).abs() > f64::EPSILON {
        let (a, b) = (speed(a.engine_speed), speed(b.engine_speed));
        note("engine_speed", "the speed of the embedded engine", &a, &b);
    }
    found
}

/// Keys under which people write down what a server runs on.
const KEYS: [&str; 8] =
    ["accelerator", "gpu", "gpus", "gpu_count", "hardware", "instance", "instance_type", "node"];

fn hardware(first: &Summary, side: &str, run: &Summary) -> Vec<Objection> {
    let mut found = stated_otherwise(first, side, run);
    found.extend(known_otherwise(first, side, run));
    let measures = |summary: &Summary| summary.run.simulated.is_none();
    if !measures(first) || !measures(run) {
        return found;
    }
    match (first.run.embedded, run.run.embedded) {
        (true, true) => {}
        (false, false) => found.extend(unknown(first, side, run)),
        (base, _) => {
            let [engine, server] = if base { ["the base", side] } else { [side, "the base"] };
            let text = format!(
                "{engine} is the embedded engine, which only pretends to have hardware, and \
                 {server} is a server"
            );
            let remedy = "nothing to do if how well the engine resembles it is the question";
            found.push(objection("embedded", Weight::Warning, side, text, remedy));
        }
    }
    found
}

/// Values that both sides give, and that differ.
fn stated_otherwise(first: &Summary, side: &str, run: &Summary) -> Vec<Objection> {
    let both = first.run.metadata.iter().filter_map(|(key, base)| {
        let other = run.run.metadata.get(key)?;
        (base != other).then_some((key, base, other))
    });
    both.map(|(key, base, other)| {
        let is_hardware = is_about_hardware(key);
        let weight = if is_hardware { Weight::Warning } else { Weight::Note };
        let what = if is_hardware { "the hardware" } else { "what was noted" };
        let text = format!("{what} differs (`{key}`): {base} in the base, {other} in {side}");
        let remedy = "nothing to do if that is the question; else the change may be its doing";
        objection(&format!("metadata.{key}"), weight, side, text, remedy)
    })
    .collect()
}

/// What both servers or their machines tell, and that differs.
fn known_otherwise(first: &Summary, side: &str, run: &Summary) -> Vec<Objection> {
    let (Some(base), Some(other)) = (&first.system.server, &run.system.server) else {
        return Vec::new();
    };
    let found = FACTS.iter().filter_map(|(key, weight, what, of)| {
        let (base, other) = (of(base)?, of(other)?);
        if base == other {
            return None;
        }
        let text = format!("{what} differs: {base} in the base, {other} in {side}");
        let remedy = "nothing to do if that is the question; else the change may be its doing";
        Some(objection(key, *weight, side, text, remedy))
    });
    found.collect()
}

type FactOf = fn(&ServerFacts) -> Option<String>;

const FACTS: [(&str, Weight, &str, FactOf); 6] = [
    ("system.gpus", Weight::Warning, "the hardware", gpus),
    ("system.gpus_used", Weight::Warning, "the number of GPUs in use", |server| {
        server.gpus_used.map(|gpus| gpus.to_string())
    }),
    ("system.gpu_driver", Weight::Note, "the GPU driver", |server| {
        server.machine.as_ref()?.gpu_driver.clone()
    }),
    ("system.gpu_runtime", Weight::Note, "the GPU runtime", |server| {
        server.machine.as_ref()?.gpu_runtime.clone()
    }),
    ("system.version", Weight::Note, "the server's version", |server| {
        Some(format!("{} {}", server.software.as_deref().unwrap_or("it"), server.version.as_ref()?))
    }),
    ("system.start_command", Weight::Note, "the start command", |server| {
        server.start_command.clone()
    }),
];

/// Names in the order of the machine; what an engine pretends is compared by its profile.
fn gpus(server: &ServerFacts) -> Option<String> {
    let gpus = &server.machine.as_ref()?.gpus;
    let names: Vec<&str> = gpus.iter().map(|gpu| gpu.name.as_str()).collect();
    match names.as_slice() {
        [] => None,
        [first, rest @ ..] if rest.iter().all(|name| name == first) => {
            Some(format!("{} × {first}", names.len()))
        }
        several => Some(several.join(", ")),
    }
}

fn unknown(first: &Summary, side: &str, run: &Summary) -> Option<Objection> {
    let states = |summary: &Summary| {
        let told = summary.system.server.as_ref().and_then(gpus);
        told.is_some() || summary.run.metadata.keys().any(|key| is_about_hardware(key))
    };
    let silent = match (states(first), states(run)) {
        (true, true) => return None,
        (false, false) => format!("the base and {side}"),
        (true, false) => side.to_owned(),
        (false, true) => "the base".to_owned(),
    };
    let text = format!(
        "the hardware of {silent} is not known, and servers do not tell it: other hardware would \
         pass for a change of the software"
    );
    let remedy = "tell it with --server-info, or note it with every run: --metadata gpu=H100";
    Some(objection("hardware_unknown", Weight::Note, side, text, remedy))
}

fn is_about_hardware(key: &str) -> bool {
    KEYS.iter().any(|known| known.eq_ignore_ascii_case(key))
}

#[cfg(test)]
mod tests;
