//! Runs of our own, of which everything is known: which quantities are compared, and what speaks
//! against comparing them. What is known of hardware and software comes from the machine itself, from
//! `--server-info`, or from a note with `--metadata`.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use inferometer_model::spec::Lengths;
use inferometer_model::study::Level;
use serde::Serialize;

use super::{
    Compared, Fact, INPUT_COUNTS, OUTPUT_COUNTS, Objection, PROMISES, Side, TOKENIZER, Trouble,
    Weight, differing,
};
use crate::judge::Verdict;
use crate::metric::{self, Better, METRICS, Metric, Quantity, Statistic};
use crate::run::{LoadFacts, RateFacts, WorkloadFacts};
use crate::statistics::{Estimate, Percentile};
use crate::summary::Summary;
use crate::tool_result::Tool;

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

    fn seed_and_partial(&self) -> (Option<u64>, bool) {
        (Some(self.run.seed), self.run.partial)
    }

    fn subject(side: &Side<Self>) -> (String, String, Option<String>, Option<Tool>) {
        // Rows of a suite, and repeated runs, are of one server, which may have another port each time.
        let is_matrix = side.rows.is_some() && side.suite.is_none();
        let all = |noun: &str, of: fn(&Summary) -> Option<&str>| {
            let runs = if is_matrix { side.results.as_slice() } else { side.results.get(..1)? };
            let distinct: BTreeSet<&str> = runs.iter().filter_map(of).collect();
            let first = distinct.first()?;
            Some(match distinct.len() {
                1 => (*first).to_owned(),
                several => format!("{several} {noun}"),
            })
        };
        let model = all("models", |run| Some(run.run.model.as_str()));
        let target = all("servers", |run| Some(run.run.target.as_str()));
        let simulated = all("profiles", |run| Some(run.run.simulated.as_ref()?.profile.as_str()));
        (model.unwrap_or_default(), target.unwrap_or_default(), simulated, None)
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
            let is_headline = metric.headline.is_on(is_open);
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

/// What was asked, and when.
fn stimulus(first: &Summary, side: &str, run: &Summary) -> Vec<Objection> {
    let mut found = Vec::new();
    if first.run.simulated.is_some() != run.run.simulated.is_some() {
        let [base, other] = [first, run]
            .map(|run| if run.run.simulated.is_some() { "simulated" } else { "measured" });
        let text = format!("one side is {base} and {side} is {other}");
        let remedy = "compare measured runs with measured ones";
        found.push(Objection::new("simulated", Weight::Forbids, side, text, remedy));
    }
    let (a, b) = (&first.workload, &run.workload);
    if a.fingerprint == b.fingerprint {
        return found;
    }
    found.extend(differing(&WORKLOAD, first, run, side));
    if found.is_empty() && a.tokenizer == b.tokenizer {
        let text = format!(
            "the workload of {side} is another ({} and {}) in something that summaries do not show",
            a.fingerprint, b.fingerprint
        );
        found.push(Objection::new("workload", Weight::Forbids, side, text, SAME_LOAD));
    }
    found
}

const SAME_LOAD: &str = "run both with the same experiment file, and change only the server";

const fn workload(
    key: &'static str,
    what: &'static str,
    get: fn(&Summary) -> Option<String>,
) -> Fact<Summary> {
    (key, Weight::Forbids, what, SAME_LOAD, get)
}

const WORKLOAD: [Fact<Summary>; 13] = [
    workload("api", "the API", |it| Some(it.run.api.to_string())),
    workload("streaming", "streaming", |it| {
        Some(if it.run.streaming { "streamed" } else { "not streamed" }.to_owned())
    }),
    workload("load", "the load", |it| Some(load(it))),
    // Details are for loads that look alike without them.
    workload("load", "the load", |it| Some(format!("{} ({})", load(it), json(&it.run.load)))),
    workload("extent", "the extent", |it| Some(json(&it.run.extent))),
    workload("warm_up", "the number of warm-up requests", |it| {
        Some(it.run.warm_up.map_or(0, |facts| facts.requests).to_string())
    }),
    workload("source", "the source of prompts", |it| Some(it.workload.source.name().to_owned())),
    workload("input_tokens", "the length of prompts", |it| Some(length(&it.workload.input_tokens))),
    workload("output_tokens", "the length of answers", |it| {
        Some(length(&it.workload.output_tokens))
    }),
    workload("turns", "the number of turns", |it| Some(length(&it.workload.turns))),
    workload("files", "the data", |it| {
        let hashes = it.workload.files.iter().map(|file| file.sha256.chars().take(12));
        let hashes: Vec<String> = hashes.map(Iterator::collect).collect();
        Some(if hashes.is_empty() { "none".to_owned() } else { hashes.join(", ") })
    }),
    workload("fields", "what bodies carry", |it| Some(json(&it.workload.fields))),
    workload("shared_parts", "prefixes, images, adapters or thinking", |it| {
        let WorkloadFacts { prefix, images, adapters, turn_think, .. } = &it.workload;
        Some([json(prefix), json(images), json(adapters), json(turn_think)].join(" "))
    }),
];

fn load(run: &Summary) -> String {
    let kind = if run.run.load.is_open() { "open loop" } else { "closed loop" };
    format!("{kind}, {}", run.level())
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[expect(clippy::ref_option, reason = "the fields are borrowed as they are")]
fn length(lengths: &Option<Lengths>) -> String {
    lengths.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string)
}

/// Who counted tokens, and what was promised: without the same, some quantities mean another thing.
fn counts(first: &Summary, side: &str, run: &Summary) -> Vec<Objection> {
    let mut found = Vec::new();
    let mut withhold = |key: &str, text: String, remedy: &str| {
        found.push(Objection::new(key, Weight::Withholds, side, text, remedy));
    };
    let tokenizers = [first, run].map(|run| run.workload.tokenizer.as_ref());
    let [a, b] = tokenizers.map(|facts| facts.map(|facts| &facts.sha256));
    if a != b {
        let [a, b] = tokenizers.map(|facts| facts.map_or("none", |facts| &facts.name));
        let text = format!(
            "the tokenizer differs ({a} in the base, {b} in {side}): a token is not the same length"
        );
        withhold(TOKENIZER, text, "give both runs the same --tokenizer");
    }
    let output = |run: &Summary| {
        let found = run.tokens.output_source;
        [("usage", found.usage), ("stream marks", found.stream_marks), ("events", found.events)]
    };
    let input = |run: &Summary| {
        let found = run.tokens.input_source;
        [("usage", found.usage), ("the length asked for", found.asked), ("", 0)]
    };
    for (key, which, sources) in [
        (OUTPUT_COUNTS, "output", [output(first), output(run)]),
        (INPUT_COUNTS, "input", [input(first), input(run)]),
    ] {
        let [a, b] = sources.map(|sources| {
            let used = sources.into_iter().filter(|(_, requests)| 0 < *requests);
            used.map(|(name, _)| name).collect::<Vec<_>>().join(" and ")
        });
        if a != b && !a.is_empty() && !b.is_empty() {
            let text =
                format!("{which} tokens were counted by {a} in the base and by {b} in {side}");
            withhold(key, text, "have both servers report `usage`");
        }
    }
    let slos = [first, run].map(|run| {
        run.request_slos.as_ref().map(|slos| {
            slos.promises.iter().map(|slo| slo.promise.clone()).collect::<Vec<_>>().join(", ")
        })
    });
    if let [Some(a), Some(b)] = slos
        && a != b
    {
        let text = format!("each request was promised {a} and {b} in {side}");
        withhold(PROMISES, text, "give both runs the same --slo");
    }
    found
}

const QUESTION: &str = "nothing to do if that is the question";
const QUESTION_OR_CAUSE: &str =
    "nothing to do if that is the question; else the change may be its doing";

const fn note(
    key: &'static str,
    what: &'static str,
    get: fn(&Summary) -> Option<String>,
) -> Fact<Summary> {
    (key, Weight::Note, what, QUESTION, get)
}

const NOTES: [Fact<Summary>; 5] = [
    note("profile", "the simulated profile", |it| Some(it.run.simulated.as_ref()?.profile.clone())),
    note("engine", "the simulated engine", |it| Some(it.run.simulated.as_ref()?.engine.clone())),
    note("target", "the server", |it| {
        let is_server = it.run.simulated.is_none() && !it.run.embedded;
        is_server.then(|| it.run.target.clone())
    }),
    note("tool_version", "the version of Inferometer", |it| Some(it.run.tool_version.clone())),
    note("engine_speed", "the speed of the embedded engine", |it| {
        Some(it.run.engine_speed.unwrap_or(1.0).to_string())
    }),
];

/// Facts that may be the very question.
fn facts(first: &Summary, side: &str, run: &Summary) -> Vec<Objection> {
    let mut found = Vec::new();
    let (a, b) = (&first.run, &run.run);
    if a.model != b.model {
        let text = format!(
            "the model differs: `{}` in the base, `{}` in {side}; tokens of another vocabulary are \
             not the same length",
            a.model, b.model
        );
        let remedy = "if that is the question, prefer quantities per request";
        found.push(Objection::new("model", Weight::Warning, side, text, remedy));
    }
    if a.http != b.http {
        let text = format!("the HTTP version of {side} is another");
        let remedy = "run both with the same --http";
        found.push(Objection::new("http", Weight::Warning, side, text, remedy));
    }
    found.extend(differing(&NOTES, first, run, side));
    // Another profile is another engine.
    if found.iter().any(|found| found.key == "profile") {
        found.retain(|found| found.key != "engine");
    }
    found
}

/// Keys under which people write down what a server runs on.
const KEYS: [&str; 8] =
    ["accelerator", "gpu", "gpus", "gpu_count", "hardware", "instance", "instance_type", "node"];

fn is_about_hardware(key: &str) -> bool {
    KEYS.iter().any(|known| known.eq_ignore_ascii_case(key))
}

const fn of_system(
    key: &'static str,
    weight: Weight,
    what: &'static str,
    get: fn(&Summary) -> Option<String>,
) -> Fact<Summary> {
    (key, weight, what, QUESTION_OR_CAUSE, get)
}

/// What servers or their machines report.
const SYSTEM: [Fact<Summary>; 6] = [
    of_system("system.gpus", Weight::Warning, "the hardware", gpus),
    of_system("system.gpus_used", Weight::Warning, "the number of GPUs in use", |it| {
        it.system.server.as_ref()?.gpus_used.map(|gpus| gpus.to_string())
    }),
    of_system("system.gpu_driver", Weight::Note, "the GPU driver", |it| {
        it.system.server.as_ref()?.machine.as_ref()?.gpu_driver.clone()
    }),
    of_system("system.gpu_runtime", Weight::Note, "the GPU runtime", |it| {
        it.system.server.as_ref()?.machine.as_ref()?.gpu_runtime.clone()
    }),
    of_system("system.version", Weight::Note, "the server's version", |it| {
        let server = it.system.server.as_ref()?;
        Some(format!("{} {}", server.software.as_deref().unwrap_or("it"), server.version.as_ref()?))
    }),
    of_system("system.start_command", Weight::Note, "the start command", |it| {
        it.system.server.as_ref()?.start_command.clone()
    }),
];

/// Names in the order of the machine; what an engine pretends is compared by its profile.
fn gpus(run: &Summary) -> Option<String> {
    let gpus = &run.system.server.as_ref()?.machine.as_ref()?.gpus;
    let names: Vec<&str> = gpus.iter().map(|gpu| gpu.name.as_str()).collect();
    match names.as_slice() {
        [] => None,
        [first, rest @ ..] if rest.iter().all(|name| name == first) => {
            Some(format!("{} × {first}", names.len()))
        }
        several => Some(several.join(", ")),
    }
}

fn hardware(first: &Summary, side: &str, run: &Summary) -> Vec<Objection> {
    let mut found = Vec::new();
    for (key, base) in &first.run.metadata {
        let Some(other) = run.run.metadata.get(key).filter(|other| *other != base) else {
            continue;
        };
        let (weight, what) = if is_about_hardware(key) {
            (Weight::Warning, "the hardware")
        } else {
            (Weight::Note, "what was noted")
        };
        let text = format!("{what} differs (`{key}`): {base} in the base, {other} in {side}");
        let key = format!("metadata.{key}");
        found.push(Objection::new(&key, weight, side, text, QUESTION_OR_CAUSE));
    }
    found.extend(differing(&SYSTEM, first, run, side));
    if first.run.simulated.is_some() || run.run.simulated.is_some() {
        return found;
    }
    match (first.run.embedded, run.run.embedded) {
        (true, true) => {}
        (false, false) => found.extend(unknown_hardware(first, side, run)),
        (base, _) => {
            let [engine, server] = if base { ["the base", side] } else { [side, "the base"] };
            let text = format!(
                "{engine} is the embedded engine, which only pretends to have hardware, and \
                 {server} is a server"
            );
            let remedy = "nothing to do if how well the engine resembles it is the question";
            found.push(Objection::new("embedded", Weight::Warning, side, text, remedy));
        }
    }
    found
}

fn unknown_hardware(first: &Summary, side: &str, run: &Summary) -> Option<Objection> {
    let states = |run: &Summary| {
        gpus(run).is_some() || run.run.metadata.keys().any(|key| is_about_hardware(key))
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
    Some(Objection::new("hardware_unknown", Weight::Note, side, text, remedy))
}

#[cfg(test)]
mod tests;
