//! What a sweep would do: `sweep --dry-run`.

use std::fmt::Write;
use std::time::Duration;

use inferometer_model::Spec;
use inferometer_model::campaign::{CampaignSpec, Level, Question, Search, Sweep};
use inferometer_model::spec::{Extent, LoadShape, Rate};
use inferometer_report::escape::terminal;
use inferometer_report::fmt::count;
use inferometer_study::play::known_specs;
use serde_json::json;

use crate::arguments::PageFormat;
use crate::failure::Failure;

/// One level, as far as it is known beforehand.
struct Step {
    level: Level,
    /// `None` where the server decides it.
    requests: Option<u64>,
    time: Option<Duration>,
}

pub(crate) fn outline(
    campaign: &CampaignSpec,
    notes: &[String],
    format: PageFormat,
) -> Result<String, Failure> {
    let Question::Sweep(sweep) = &campaign.question else {
        return Err(Failure::internal("the outline of a sweep is asked of something else"));
    };
    let steps = steps(campaign, sweep);
    Ok(match format {
        PageFormat::Json => document(campaign, sweep, &steps),
        PageFormat::Page | PageFormat::Vllm => page(campaign, sweep, &steps, notes),
    })
}

/// The levels of the first server; the others are asked the same.
fn steps(campaign: &CampaignSpec, sweep: &Sweep) -> Vec<Step> {
    let conditions = campaign.conditions.len().max(1);
    let specs = known_specs(campaign).into_iter().step_by(conditions);
    let step = |(level, spec): (&Level, Spec)| {
        let (requests, time) = expected(&spec);
        Step { level: *level, requests, time }
    };
    sweep.levels.iter().zip(specs).map(step).collect()
}

/// Requests and time of a run, where the plan alone decides them. Draining is not counted.
pub(crate) fn expected(spec: &Spec) -> (Option<u64>, Option<Duration>) {
    let per_s = match &spec.load.shape {
        LoadShape::Open { rate: Rate::Steady { per_s }, .. } => Some(*per_s),
        LoadShape::Open { .. } | LoadShape::Closed { .. } => None,
    };
    let lasting = |requests: u64| {
        #[expect(clippy::cast_precision_loss, reason = "an estimate for the eye")]
        let seconds = per_s.map(|per_s| requests as f64 / per_s);
        seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate for the eye, and never negative"
    )]
    let within = |time: Duration| per_s.map(|per_s| (per_s * time.as_secs_f64()).round() as u64);
    match spec.load.extent {
        Extent::Whole => (None, None),
        Extent::Requests(requests) => (Some(requests.get()), lasting(requests.get())),
        Extent::Duration(time) => (within(time), Some(time)),
        Extent::UntilBoth { requests, duration } => (
            within(duration).map(|expected| expected.max(requests.get())),
            lasting(requests.get()).map(|time| time.max(duration)),
        ),
        Extent::UntilFirst { requests, duration } => (
            within(duration).map(|expected| expected.min(requests.get())),
            Some(lasting(requests.get()).map_or(duration, |time| time.min(duration))),
        ),
    }
}

/// Of all runs together, with the rests between; `None` where a level does not know.
struct Whole {
    runs: u64,
    more: bool,
    requests: Option<u64>,
    time: Option<Duration>,
}

/// Runs that are laid out beforehand at most, and whether others may follow.
fn planned(campaign: &CampaignSpec, sweep: &Sweep) -> (u64, bool) {
    let runs = u64::from(campaign.repetition.runs.get());
    let places = sweep.levels.len() as u64 * campaign.conditions.len() as u64;
    (runs.saturating_mul(places), sweep.fine.is_some() || sweep.find.is_some())
}

/// What is asked at every level.
fn facts(campaign: &CampaignSpec, sweep: &Sweep) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(condition) = campaign.conditions.first() {
        let Spec { api, workload, load, .. } = &condition.spec;
        let streamed = if workload.streaming { "streamed" } else { "not streamed" };
        facts.push(("workload", format!("{}, {api}, {streamed}", workload.source.kind().name())));
        facts.push((
            "warm-up",
            match load.warm_up {
                0 => "none".to_owned(),
                requests => format!("{requests} requests before each run, not counted"),
            },
        ));
    }
    facts.extend(between_runs(campaign));
    facts.extend(sweep.find.iter().flat_map(search));
    facts
}

/// What happens between the runs of a set, when they end early, and what they are drawn from.
pub(crate) fn between_runs(campaign: &CampaignSpec) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let repetition = &campaign.repetition;
    if !repetition.cool_down.is_zero() {
        facts.push(("rest", format!("{:?} between two runs", repetition.cool_down)));
    }
    if let Some(command) = &repetition.restart {
        let when = match campaign.question {
            Question::Suite(_) => "before each round",
            Question::Repeat | Question::Sweep(_) | Question::Matrix(_) => "before each run",
        };
        facts.push(("restart", format!("{} ({when} but the first)", terminal(command))));
    }
    if let Some(stop_at) = &repetition.stop_at {
        let share = stop_at.half_width * 100.0;
        facts.push(("stop", format!("early, once {} is known to ±{share} %", stop_at.quantity)));
    }
    facts.push(("seed", campaign.seed.to_string()));
    facts
}

fn search(find: &Search) -> [(&'static str, String); 3] {
    let goals: Vec<String> = find.goals.iter().map(ToString::to_string).collect();
    let Search { from, at_most, resolution, runs_at_most, .. } = find;
    let share = resolution * 100.0;
    [
        ("goals", terminal(&goals.join(", "))),
        ("search", format!("from {from}, to {at_most} at most, until it is known to {share} %")),
        ("", format!("runs are chosen as it goes, at most {runs_at_most} at a level")),
    ]
}

fn whole(campaign: &CampaignSpec, sweep: &Sweep, steps: &[Step]) -> Whole {
    let (runs, more) = planned(campaign, sweep);
    let each = campaign.repetition.runs.get().saturating_mul(as_u32(campaign.conditions.len()));
    let requests =
        steps.iter().try_fold(0, |sum: u64, step| Some(sum.saturating_add(step.requests?)));
    let time =
        steps.iter().try_fold(Duration::ZERO, |sum, step| Some(sum.saturating_add(step.time?)));
    let rests = campaign.repetition.cool_down.saturating_mul(as_u32(runs.saturating_sub(1)));
    Whole {
        runs,
        more,
        requests: requests.map(|requests| requests.saturating_mul(each.into())),
        time: time.map(|time| time.saturating_mul(each).saturating_add(rests)),
    }
}

fn as_u32<T: TryInto<u32>>(number: T) -> u32 {
    number.try_into().unwrap_or(u32::MAX)
}

fn page(campaign: &CampaignSpec, sweep: &Sweep, steps: &[Step], notes: &[String]) -> String {
    let mut text = "sweep (nothing was sent)\n".to_owned();
    let names: Vec<String> =
        campaign.conditions.iter().map(|condition| terminal(&condition.name)).collect();
    let _ = writeln!(text, "{:<10} {}", "servers", names.join(", "));
    for (name, words) in facts(campaign, sweep) {
        let _ = writeln!(text, "{name:<10} {words}");
    }
    for note in notes {
        let _ = writeln!(text, "{:<10} {note}", "note");
    }
    if !steps.is_empty() {
        let _ = writeln!(text, "\n{:>14} {:>6} {:>10} {:>10}", "level", "runs", "requests", "time");
    }
    for step in steps {
        let _ = writeln!(
            text,
            "{:>14} {:>6} {:>10} {:>10}",
            step.level.to_string(),
            campaign.repetition.runs,
            step.requests.map_or_else(|| "–".to_owned(), count),
            step.time.map_or_else(|| "–".to_owned(), in_words),
        );
    }
    let whole = whole(campaign, sweep, steps);
    let requests = whole.requests.map_or_else(String::new, |n| format!(", {} requests", count(n)));
    let time =
        whole.time.map_or_else(String::new, |time| format!(", {} and its drains", in_words(time)));
    let more = if whole.more { ", and more where the first ones lead" } else { "" };
    let most = if campaign.repetition.stop_at.is_some() { " at most" } else { "" };
    let runs = if whole.runs == 1 { "1 run".to_owned() } else { format!("{} runs", whole.runs) };
    if 0 < whole.runs {
        let _ = writeln!(text, "\n{runs}{most}{requests}{time}{more}");
    }
    text
}

fn document(campaign: &CampaignSpec, sweep: &Sweep, steps: &[Step]) -> String {
    let Whole { runs, more, requests, time } = whole(campaign, sweep, steps);
    let levels: Vec<serde_json::Value> = steps
        .iter()
        .map(|step| {
            json!({
                "level": step.level,
                "requests": step.requests,
                "time_s": step.time.map(|time| time.as_secs_f64()),
            })
        })
        .collect();
    let document = json!({
        "schema": "inferometer.sweep-outline/1",
        "dry_run": true,
        "campaign": campaign,
        "levels": levels,
        "runs": runs,
        "more_runs": more,
        "requests": requests,
        "time_s": time.map(|time| time.as_secs_f64()),
    });
    format!("{document:#}\n")
}

/// To the second, which is all that is known.
pub(crate) fn in_words(time: Duration) -> String {
    let seconds = time.as_secs_f64().ceil();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a time for the eye, and never negative"
    )]
    let seconds = seconds as u64;
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} m {seconds:02} s"),
        (hours, minutes, _) => format!("{hours} h {minutes:02} m"),
    }
}
