//! Runs of our own: which quantities are compared, and the objections to comparing them. Facts about
//! hardware and software come from the machine itself, from `--server-info`, or from `--metadata`.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use inferometer_model::fmt::setting;
use inferometer_model::spec::Lengths;
use inferometer_model::study::Level;
use serde::Serialize;

use super::{
    Compared, Fact, INPUT_COUNTS, OUTPUT_COUNTS, Objection, SLO, Side, SideFacts, SideRun,
    TOKENIZER, Trouble, Weight, differing,
};
use crate::judge::{SEEN_BEFORE, Verdict};
use crate::metric::{self, Better, METRICS, Metric, Quantity, Statistic};
use crate::run::{ExtentFacts, LoadFacts, RateFacts, WorkloadFacts};
use crate::statistics::{Estimate, Percentile};
use crate::summary::Summary;

/// The load on the server. A load that changes over the run has no level.
fn level(run: &Summary) -> Level {
    match &run.run.load {
        LoadFacts::Closed { concurrency, .. } => {
            NonZeroU32::new(*concurrency).map_or(Level::AsAsked, Level::Concurrency)
        }
        LoadFacts::Open { rate, .. } => match rate {
            RateFacts::Steady { per_s } => Level::Rate(*per_s),
            RateFacts::Unlimited => Level::Unlimited,
            RateFacts::Ramp { .. } | RateFacts::Recorded { .. } => Level::AsAsked,
        },
    }
}

impl Compared for Summary {
    const NOUN: &'static str = "run";
    const FIGURES_ONLY: bool = false;

    fn run(&self) -> SideRun {
        SideRun {
            scenario: None,
            id: self.run.id.clone(),
            seed: Some(self.run.seed),
            level: level(self),
            verdict: Some(self.verdict),
            partial: self.run.partial,
        }
    }

    fn estimate(&self, quantity: &Quantity) -> Option<Estimate> {
        quantity.value_in(self).ok()
    }

    fn subject(side: &Side<Self>) -> SideFacts {
        // Rows of a suite, and repeated runs, are of one server, which may have another port each time.
        let is_matrix = !side.rows.is_empty() && side.suite.is_none();
        let all = |noun: &str, of: fn(&Summary) -> Option<&str>| {
            let runs = if is_matrix { side.results.as_slice() } else { side.results.get(..1)? };
            let distinct: BTreeSet<&str> = runs.iter().filter_map(of).collect();
            match distinct.len() {
                0 | 1 => distinct.first().map(|only| (*only).to_owned()),
                several => Some(format!("{several} {noun}")),
            }
        };
        SideFacts {
            model: all("models", |run| Some(&run.run.model)).unwrap_or_default(),
            target: all("servers", |run| Some(&run.run.target)).unwrap_or_default(),
            simulated: all("profiles", |run| Some(&run.run.simulated.as_ref()?.profile)),
            ..SideFacts::default()
        }
    }

    /// On an open loop the rate is given, so waiting is what can change; on a closed loop it is the
    /// throughput.
    fn primary(sides: &[Side<Self>]) -> Quantity {
        let first = sides.iter().flat_map(|side| &side.results).next();
        let open = first.filter(|run| run.run.load.is_open());
        open.map_or_else(
            || metric::OUTPUT_THROUGHPUT.quantity(),
            |run| run.latency_origin().ttft().p99(),
        )
    }

    /// The headlines of this kind of load that have a good direction, the throughput of prompts, and how
    /// answers were judged.
    fn quantities(base: &[&Self]) -> Vec<Quantity> {
        let is_judged = |metric: &Metric| {
            let value =
                |run: &&Self| run.metrics.scalar(metric).is_some_and(|it| it.value.is_some());
            [&metric::VALID_ANSWERS, &metric::ACCURACY].contains(&metric) && base.iter().any(value)
        };
        let is_open = base.first().is_some_and(|run| run.run.load.is_open());
        let is_shown = |metric: &&'static Metric| {
            let is_headline = metric.headline.is_on(is_open);
            (is_headline || **metric == metric::INPUT_THROUGHPUT || is_judged(metric))
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
        let is_partial = |run: &&Summary| run.run.partial && run.verdict != Verdict::Invalid;
        let is_cached = |run: &&Summary| run.warnings.iter().any(|it| it.key == SEEN_BEFORE);
        vec![
            ("partial_runs", side.results.iter().filter(is_partial).count()),
            ("seen_before", side.results.iter().filter(is_cached).count()),
        ]
    }

    fn differences(base: &[&Self], runs: &[&Self], side: &str) -> Vec<Objection> {
        let Some(first) = base.first() else { return Vec::new() };
        let between = |run: &&Summary| {
            let mut found = stimulus(first, side, run);
            let mut facts = differing(&FACTS, first, run, side);
            // Another profile is another engine.
            if facts.iter().any(|found| found.key == "profile") {
                facts.retain(|found| found.key != "engine");
            }
            found.extend(facts);
            found.extend(hardware(first, side, run));
            found
        };
        runs.iter().flat_map(between).collect()
    }
}

const SAME_LOAD: &str = "run both with the same experiment file, and change only the server";

/// Differences in the requests and in their schedule.
fn stimulus(first: &Summary, side: &str, run: &Summary) -> Vec<Objection> {
    let mut found = differing(&SIMULATED, first, run, side);
    let (a, b) = (&first.workload, &run.workload);
    if a.fingerprint == b.fingerprint {
        return found;
    }
    found.extend(differing(&WORKLOAD, first, run, side));
    if found.is_empty() && a.tokenizer == b.tokenizer {
        let text = format!(
            "the workload of {side} differs ({} in the base, {} in {side}) in a property that is not in \
             the summaries",
            a.fingerprint, b.fingerprint
        );
        found.push(Objection::new("workload", Weight::Forbids, side, text, SAME_LOAD));
    }
    found
}

pub(super) const SIMULATED: [Fact<Summary>; 1] = [("simulated", |it| {
    Some(if it.run.simulated.is_some() { "simulated" } else { "measured" }.to_owned())
})];

/// Properties of the workload.
pub(super) const WORKLOAD: [Fact<Summary>; 14] = [
    ("api", |it| Some(it.run.api.to_string())),
    ("streaming", |it| Some(if it.run.streaming { "streamed" } else { "not streamed" }.to_owned())),
    ("load", |it| Some(load(it))),
    // Details are for loads that look alike without them.
    ("load", |it| Some(format!("{} ({})", load(it), json(&it.run.load)))),
    ("extent/requests", |it| match &it.run.extent {
        ExtentFacts::Requests(requests) => Some(requests.to_string()),
        ExtentFacts::Whole
        | ExtentFacts::DurationS(_)
        | ExtentFacts::UntilBoth { .. }
        | ExtentFacts::UntilFirst { .. } => None,
    }),
    ("extent", |it| Some(extent(&it.run.extent))),
    ("warm_up", |it| Some(it.run.warm_up.map_or(0, |facts| facts.requests).to_string())),
    ("source", |it| Some(it.workload.source.name().to_owned())),
    ("input_tokens", |it| Some(length(&it.workload.input_tokens))),
    ("output_tokens", |it| Some(length(&it.workload.output_tokens))),
    ("turns", |it| Some(length(&it.workload.turns))),
    ("files", |it| {
        let hashes = it.workload.files.iter().map(|file| file.sha256.chars().take(12));
        let hashes: Vec<String> = hashes.map(Iterator::collect).collect();
        Some(if hashes.is_empty() { "none".to_owned() } else { hashes.join(", ") })
    }),
    ("fields", |it| Some(json(&it.workload.fields))),
    ("shared_parts", |it| {
        let WorkloadFacts { prefix, images, adapters, turn_think, .. } = &it.workload;
        Some([json(prefix), json(images), json(adapters), json(turn_think)].join(" "))
    }),
];

fn load(run: &Summary) -> String {
    let kind = if run.run.load.is_open() { "open loop" } else { "closed loop" };
    format!("{kind}, {}", level(run))
}

fn extent(extent: &ExtentFacts) -> String {
    match extent {
        ExtentFacts::Whole => "when all is sent".to_owned(),
        ExtentFacts::Requests(requests) => format!("{requests} requests"),
        ExtentFacts::DurationS(time) => format!("{} s", setting(*time)),
        ExtentFacts::UntilBoth { requests, duration_s } => {
            format!("{requests} requests and {} s", setting(*duration_s))
        }
        ExtentFacts::UntilFirst { requests, duration_s } => {
            format!("{requests} requests or {} s", setting(*duration_s))
        }
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[expect(clippy::ref_option, reason = "the fields are borrowed as they are")]
fn length(lengths: &Option<Lengths>) -> String {
    lengths.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string)
}

/// The sources of token counts that were used.
fn sources(counts: &[(&str, u64)]) -> Option<String> {
    let used = counts.iter().filter(|(_, requests)| 0 < *requests).map(|(name, _)| *name);
    Some(used.collect::<Vec<_>>().join(" and ")).filter(|used| !used.is_empty())
}

const QUESTION_OR_CAUSE: &str =
    "nothing to do if that is what you compare; otherwise it may cause the change";

/// Facts without which some quantities are not the same, and facts that may be the subject of the
/// comparison.
pub(super) const FACTS: [Fact<Summary>; 11] = [
    (TOKENIZER, |it| {
        let facts = it.workload.tokenizer.as_ref();
        let name = |hash: &str, name: &str| {
            format!("{name} ({})", hash.chars().take(12).collect::<String>())
        };
        Some(facts.map_or_else(|| "none".to_owned(), |facts| name(&facts.sha256, &facts.name)))
    }),
    (OUTPUT_COUNTS, |it| {
        let found = it.tokens.output_source;
        let marks = ("stream marks", found.stream_marks);
        sources(&[("usage", found.usage), marks, ("events", found.events)])
    }),
    (INPUT_COUNTS, |it| {
        let found = it.tokens.input_source;
        sources(&[("usage", found.usage), ("the requested length", found.asked)])
    }),
    (SLO, |it| {
        let slos = it.request_slos.as_ref()?.promises.iter().map(|slo| slo.promise.as_str());
        Some(slos.collect::<Vec<_>>().join(", "))
    }),
    ("model", |it| Some(format!("`{}`", it.run.model))),
    ("http", |it| Some(json(&it.run.http))),
    ("profile", |it| Some(it.run.simulated.as_ref()?.profile.clone())),
    ("engine", |it| Some(it.run.simulated.as_ref()?.engine.clone())),
    ("target", |it| {
        let is_server = it.run.simulated.is_none() && !it.run.embedded;
        is_server.then(|| it.run.target.clone())
    }),
    ("tool_version", |it| Some(it.run.tool_version.clone())),
    ("engine_speed", |it| Some(it.run.engine_speed.unwrap_or(1.0).to_string())),
];

/// Metadata keys that describe the hardware of a server.
const KEYS: [&str; 8] =
    ["accelerator", "gpu", "gpus", "gpu_count", "hardware", "instance", "instance_type", "node"];

fn is_about_hardware(key: &str) -> bool {
    KEYS.iter().any(|known| known.eq_ignore_ascii_case(key))
}

/// What servers or their machines report.
pub(super) const SYSTEM: [Fact<Summary>; 6] = [
    ("system.gpus", gpus),
    ("system.gpus_used", |it| it.system.server.as_ref()?.gpus_used.map(|gpus| gpus.to_string())),
    ("system.gpu_driver", |it| it.system.server.as_ref()?.machine.as_ref()?.gpu_driver.clone()),
    ("system.gpu_runtime", |it| it.system.server.as_ref()?.machine.as_ref()?.gpu_runtime.clone()),
    ("system.version", |it| {
        let server = it.system.server.as_ref()?;
        Some(format!("{} {}", server.software.as_deref().unwrap_or("it"), server.version.as_ref()?))
    }),
    ("system.start_command", |it| it.system.server.as_ref()?.start_command.clone()),
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
            (Weight::Note, "the metadata")
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
                "{engine} is the embedded engine, which simulates hardware, and {server} is a server"
            );
            let remedy = "nothing to do if you compare the engine with the server it simulates";
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
        "the hardware of {silent} is not known, because servers do not report it: a difference in \
         hardware would look like a change of the software"
    );
    let remedy = "set it with --server-info, or with every run: --metadata gpu=H100";
    Some(Objection::new("hardware_unknown", Weight::Note, side, text, remedy))
}

#[cfg(test)]
mod tests;
