//! The servers of a matrix: what was compared, which cells failed and why, and how each server was
//! started and stopped.

use std::time::Duration;

use inferometer_model::deployment::{
    Departure, DepartureEnding, DeploymentFacts, DeploymentFailure, LikelyCause,
};
use inferometer_model::spec::SourceKind;
use inferometer_model::study::{DeploymentRecord, Preset};
use serde_json::Value;

use super::{NAME_CHARS_MAX, View, reason};
use crate::pages::prelude::*;

/// Limit for a server's command.
const COMMAND_CHARS_MAX: usize = 1_000;
/// Limit for a server's message.
const MESSAGE_CHARS_MAX: usize = 200;
/// More logs than these are only in the folder of the set.
const LOGS_MAX: usize = 24;
/// The most deployments that are listed; those that stopped cleanly are omitted first.
const DEPLOYMENTS_MAX: usize = 100;

/// Presets, models, the load, and how servers were deployed.
pub(super) fn setup(view: View<'_>) -> Section {
    let models = Columns::new("Model", |index: &u32| Cell::text(view.model(*index)))
        .left("Name on the server", |index| {
            let model = view.matrix.models.get(*index as usize);
            Cell::text(model.map_or_else(String::new, |model| terminal_line(&model.name, 120)))
        })
        .table("models", "Models", view.models());
    let facts = [Block::Facts(load(view)), Block::Facts(deployed(view))];
    section("setup", "Setup", [presets(view).into(), models.into()].into_iter().chain(facts))
}

fn presets(view: View<'_>) -> Table {
    type Row<'a> = (usize, &'a Preset);
    const NOT_SET: &str = "not in the matrix file";
    let amount = |get: fn(&Preset) -> Option<f64>| {
        move |(_, preset): &Row<'_>| number_cell(get(preset), setting, NOT_SET)
    };
    let words = |words: Option<&str>, reason: &str| {
        known(words.map(|words| terminal_line(words, 80)).as_deref(), reason)
    };
    // The owner of a preset may call the hardware by another name than the profile.
    let profiles = &view.matrix.method.hardware;
    let currency = view.currency().map_or_else(String::new, |words| format!(" ({words})"));
    Columns::new("Preset", |(_, preset): &Row<'_>| {
        Cell::text(terminal_line(&preset.name, NAME_CHARS_MAX))
    })
    .left("GPU type", |(_, preset)| words(preset.gpu_type.as_deref(), NOT_SET))
    .left("Embedded engine profile", |(index, _)| {
        let profile = profiles.get(*index).and_then(Option::as_deref);
        words(profile, "no embedded engine, or several")
    })
    .only_if(profiles.iter().any(Option::is_some))
    .right("GPUs", amount(|preset| preset.gpus.map(f64::from)))
    .right("VRAM (GB)", amount(|preset| preset.vram_gb))
    .right("vCPUs", amount(|preset| preset.vcpus))
    .right("Memory (GB)", amount(|preset| preset.memory_gb))
    .right(format!("Price per hour{currency}"), amount(|preset| preset.price_per_hour))
    .only_if(view.matrix.presets.iter().any(|preset| preset.price_per_hour.is_some()))
    .table(
        "presets",
        "Presets, as the matrix file describes them",
        view.matrix.presets.iter().enumerate(),
    )
}

fn load(view: View<'_>) -> Vec<(String, Text)> {
    let method = &view.matrix.method;
    let levels = distinct(view.matrix.rows.iter().map(|row| row.level));
    let levels: Vec<String> = levels.into_iter().map(level_name).collect();
    let measured = view.matrix.rows.iter().filter(|row| !row.points.is_empty());
    let requests: BTreeSet<u64> =
        measured.map(|row| row.requests / row.points.len() as u64).collect();
    let requests = match (requests.first(), requests.last()) {
        (Some(least), Some(most)) if least == most => count(*most),
        (Some(least), Some(most)) => format!("{} to {}", count(*least), count(*most)),
        _ => NOTHING.to_owned(),
    };
    let subject = view.set.conditions.iter().find_map(|one| one.subject.as_ref());
    let prompts = subject.map(|subject| {
        let is_fixed = subject.source == SourceKind::Fixed;
        let source = if is_fixed { "one fixed prompt" } else { subject.source.name() };
        let lengths = subject.input_tokens.as_ref();
        lengths.map_or_else(|| source.to_owned(), |input| format!("{source}, {input} tokens"))
    });
    let prompt = method.prompt.as_ref().map(|prompt| terminal_line(prompt, 400));
    let words = |text: Option<String>| text.map(plain);
    let code = |text: Option<String>| text.map(|text| vec![Span::Code(text)]);
    let facts = [
        ("Load", words(Some(list(&levels)))),
        ("Requests in a run", words(Some(requests))),
        ("Runs of each cell and load", words(Some(view.set.asked.runs.to_string()))),
        ("API", words(subject.map(|subject| subject.api.to_string()))),
        ("Prompts", words(prompts)),
        ("Prompt", code(prompt)),
        ("Output tokens", words(outputs(view))),
        ("Fields of every body", code(settings(&method.fields))),
        ("Engine settings in common", code(settings(&method.engine))),
    ];
    let facts = facts.into_iter().filter_map(|(key, text)| Some((key.to_owned(), text?)));
    facts.collect()
}

/// `512 at 2,048 tokens; 2,048 at 8,192 and 16,384 tokens`; without contexts where all are equal.
fn outputs(view: View<'_>) -> Option<String> {
    let mut groups = grouped(view.matrix.method.output_tokens.iter(), |(_, lengths)| {
        lengths.fixed().map_or_else(|| lengths.to_string(), |it| count(it.into()))
    });
    groups.truncate(8);
    if let [(words, _)] = groups.as_slice() {
        return Some(words.clone());
    }
    let context = |(context, _): &&(Option<u32>, _)| {
        context.map_or_else(|| NOTHING.to_owned(), |tokens| count(tokens.into()))
    };
    let parts = groups.iter().map(|(words, own)| {
        format!("{words} at {} of context", list(&own.iter().map(context).collect::<Vec<_>>()))
    });
    parts.try_join("; ")
}

fn settings<'a>(all: impl IntoIterator<Item = (&'a String, &'a Value)>) -> Option<String> {
    let parts = all.into_iter().map(|(name, value)| format!("{name}={value}")).try_join(" ");
    parts.map(|parts| terminal_line(&parts, COMMAND_CHARS_MAX))
}

/// States that the prompts are much shorter than the context, where they are.
pub(super) fn short_prompts(view: View<'_>) -> Option<Text> {
    /// How much longer the context must be than the longest prompt.
    const TIMES: u64 = 4;
    let method = &view.matrix.method;
    let longest = method.prompt_tokens_max?;
    let context = view.matrix.rows.iter().filter_map(|row| row.context).max()?;
    if u64::from(context) < TIMES * longest {
        return None;
    }
    let length = method.prompt_words.map_or_else(
        || format!("{} at most", counted(longest, "token")),
        |words| counted(words, "word"),
    );
    Some(vec![
        Span::Strong("Context lengths".to_owned()),
        Span::Plain(fill("contexts-and-prompts", &[&length])),
    ])
}

/// How the servers were deployed, with the first command.
fn deployed(view: View<'_>) -> Vec<(String, Text)> {
    let facts = || view.matrix.deployments.iter().filter_map(|record| record.facts.as_ref());
    let subjects = || view.set.conditions.iter().filter_map(|one| one.subject.as_ref());
    let kinds: BTreeSet<&str> = facts().map(|facts| facts.kind.as_str()).collect();
    let how = if !kinds.is_empty() {
        let kinds: Vec<String> = kinds.into_iter().map(|kind| terminal_line(kind, 40)).collect();
        format!("each deployed for its cell ({}) and stopped afterwards", list(&kinds))
    } else if subjects().any(|subject| subject.simulated.is_some()) {
        text("no-engine-deployed").to_owned()
    } else if subjects().any(|subject| subject.embedded) {
        "the embedded engine, started for each cell with its profile".to_owned()
    } else {
        "not known: there is no record of a deployment".to_owned()
    };
    let mut rows = vec![("Servers".to_owned(), plain(how))];
    if let Some(facts) = facts().find(|facts| !facts.command.is_empty()) {
        let command = terminal_line(&facts.command.join(" "), COMMAND_CHARS_MAX);
        rows.push(("First command".to_owned(), vec![Span::Code(command)]));
    }
    let images = facts().filter_map(|facts| facts.image.as_deref());
    let images: BTreeSet<String> = images.map(|image| terminal_line(image, 200)).collect();
    let images = images.into_iter().take(8).try_join(", ");
    rows.extend(images.map(|images| ("Images".to_owned(), plain(images))));
    rows
}

/// A row that failed, with its failure.
type Failed<'a> = (&'a MatrixRow, &'a DeploymentFailure);

/// Failed rows by their cause, or by their stage where the cause is not known.
fn failures_by_kind(view: View<'_>) -> BTreeMap<String, Vec<Failed<'_>>> {
    let mut kinds: BTreeMap<String, Vec<Failed<'_>>> = BTreeMap::new();
    for row in &view.matrix.rows {
        if let Some(failure) = row.ending.failure() {
            kinds.entry(failure.in_short()).or_default().push((row, failure));
        }
    }
    kinds
}

/// For each kind of failure the number of rows, the first of them with its message, and the remedy.
pub(super) fn failure_notices<'a>(view: View<'a>) -> Vec<(Block, Vec<Failed<'a>>)> {
    let notice = |(kind, rows): (String, Vec<Failed<'a>>)| {
        let (first, failure) = rows[0];
        let mut points = vec![plain(terminal_line(&reason(failure), MESSAGE_CHARS_MAX))];
        let last = failure.log.iter().rev().find(|line| !line.trim().is_empty());
        if let Some(last) = last.filter(|last| !failure.what.contains(last.trim())) {
            let last = terminal_line(last.trim(), MESSAGE_CHARS_MAX);
            points.push(plain(format!("last line of its log: {last}")));
        }
        let remedy = failure.cause.map_or(text("read-log"), LikelyCause::remedy);
        let number = counted(rows.len() as u64, "row");
        let notice = Block::Notice {
            mood: Mood::Bad,
            text: plain(format!("{number} {kind}, first {}", view.cell(first))),
            points,
            remedy: Some(plain(remedy)),
        };
        (notice, rows)
    };
    failures_by_kind(view).into_iter().map(notice).collect()
}

/// Failed cells by kind, with remedies and the last lines of the servers' logs.
pub(super) fn failed(view: View<'_>) -> Option<Section> {
    let (mut blocks, mut all) = (Vec::new(), Vec::new());
    for (index, (notice, failed)) in failure_notices(view).into_iter().enumerate() {
        let table = Columns::new("Cell", |(row, _): &Failed<'_>| Cell::text(view.cell(row)))
            .left("What happened", |(_, failure)| Cell::text(reason(failure)))
            .left("Points", |(row, _)| {
                Cell::text(terminal_line(&row.failed_points.iter().join(", "), 40))
            })
            .table(format!("failed-{index}"), "", failed.iter().copied());
        let summary = format!("The {}", counted(failed.len() as u64, "row"));
        blocks.push(notice);
        blocks.extend(Block::folded(summary, vec![table.into()]));
        all.extend(failed);
    }
    blocks.extend(logs(view, &all));
    (!all.is_empty()).then(|| section("failed", "Failures", blocks))
}

/// Each log once, also where several rows share it.
fn logs(view: View<'_>, failed: &[Failed<'_>]) -> Vec<Block> {
    let failed = failed.iter().filter(|(_, failure)| !failure.log.is_empty());
    let logs = grouped(failed, |(_, failure)| {
        let from = failure.log.len().saturating_sub(20);
        failure.log[from..].iter().map(|line| terminal_line(line, 300)).join("\n")
    });
    let more = logs.len().saturating_sub(LOGS_MAX);
    let block = |(text, rows): (String, Vec<&Failed<'_>>)| {
        let others = match rows.len() - 1 {
            0 => String::new(),
            others => format!(" and {} more", counted(others as u64, "row")),
        };
        let summary = format!("Last lines of the log: {}{others}", view.cell(rows[0].0));
        Block::folded(summary, vec![Block::Code { language: "text", text }])
    };
    let mut blocks: Vec<Block> = logs.into_iter().take(LOGS_MAX).filter_map(block).collect();
    if 0 < more {
        let more = counted(more as u64, "more log");
        blocks
            .push(Block::paragraph(format!("Not shown: {more}; the folder of the set has them.")));
    }
    blocks
}

/// The number of failed rows by kind, for the summary.
pub(super) fn failed_sentence(view: View<'_>) -> Option<Text> {
    let kinds = failures_by_kind(view);
    let all: usize = kinds.values().map(Vec::len).sum();
    let kinds = kinds.iter().map(|(kind, rows)| format!("{} {kind}", rows.len())).join(", ");
    (0 < all).then(|| {
        vec![
            Span::Strong(format!("{} failed", counted(all as u64, "row"))),
            Span::Plain(format!(" ({kinds}): ")),
            Span::Link { text: "reasons and remedies".to_owned(), to: "failed".to_owned() },
            Span::Plain(".".to_owned()),
        ]
    })
}

/// How long the servers took to start, and whether they stopped cleanly; `None` where none was
/// deployed.
pub(super) fn deployments(view: View<'_>) -> Option<Section> {
    let records = &view.matrix.deployments;
    if records.iter().all(|record| record.facts.is_none() && record.departure.is_none()) {
        return None;
    }
    let ready = records.iter().filter_map(|record| record.facts.as_ref());
    let mut ready: Vec<f64> = ready.map(|facts| facts.ready_after.as_secs_f64()).collect();
    ready.sort_by(f64::total_cmp);
    let stopped = || records.iter().filter_map(|record| record.departure.as_ref());
    let clean = stopped().filter(|departure| is_clean(departure)).count();
    let all = stopped().count();
    let is_free = |departure: &Departure| departure.gpu_memory.is_some() && is_clean(departure);
    let memory = if 0 < all && stopped().all(is_free) { ", GPU memory free again" } else { "" };
    let time = match (ready.first(), ready.get(ready.len() / 2), ready.last()) {
        (Some(first), Some(middle), Some(last)) => {
            let [first, middle, last] = [*first, *middle, *last].map(number);
            fill("first-tokens", &[&first, &last, &middle])
        }
        _ => "None of them generated a token.".to_owned(),
    };
    let servers = counted(records.len() as u64, "server");
    let words = fill("deployed-and-stopped", &[&servers, &time, &clean, &all, &memory]);
    let mut blocks = vec![Block::paragraph(words)];
    blocks.extend(leftovers(view, records));
    let table = vec![deployments_table(view, records).into()];
    blocks.extend(Block::folded(format!("All deployments ({})", records.len()), table));
    Some(section("deployments", "Deployments", blocks))
}

fn is_clean(departure: &Departure) -> bool {
    departure.ending == DepartureEnding::OnRequest
        && departure.port_closed
        && departure.left.is_empty()
        && departure.troubles.is_empty()
}

/// Servers that did not stop cleanly and may disturb the next.
fn leftovers(view: View<'_>, records: &[DeploymentRecord]) -> Option<Block> {
    let words = |record: &DeploymentRecord| {
        let departure = record.departure.as_ref()?;
        let left = departure.left.iter().take(4);
        let left =
            left.map(|(pid, name)| format!("{} ({pid}) is still running", terminal_line(name, 40)));
        let port = (!departure.port_closed).then(|| "its port is still open".to_owned());
        let others = departure.troubles.iter().take(4).map(|words| terminal_line(words, 200));
        let words = left.chain(port).chain(others).try_join("; ")?;
        Some(plain(format!("{}: {words}.", name(view, record))))
    };
    let mut points: Vec<_> = records.iter().filter_map(words).collect();
    let all = points.len();
    points.truncate(20);
    (0 < all).then(|| Block::Notice {
        mood: Mood::Doubt,
        text: plain(fill("not-stopped", &[&counted(all as u64, "server")])),
        points,
        remedy: Some(plain(text("not-stopped-remedy"))),
    })
}

fn name(view: View<'_>, record: &DeploymentRecord) -> String {
    let index = record.condition;
    let condition = view.set.conditions.get(index as usize);
    let name = condition.map_or_else(|| format!("cell {index}"), |one| one.name.clone());
    terminal_line(&name, 120)
}

fn deployments_table(view: View<'_>, records: &[DeploymentRecord]) -> Table {
    const NEVER: &str = "it never generated a token";
    const NOT_SEEN: &str = "it was not seen to stop";
    type Row<'a> = (&'a DeploymentRecord, Option<&'a DeploymentFacts>, Option<&'a Departure>);
    let rows = records.iter().map(|it| (it, it.facts.as_ref(), it.departure.as_ref()));
    let mut rows: Vec<Row<'_>> = rows.collect();
    let more = rows.len().saturating_sub(DEPLOYMENTS_MAX);
    if 0 < more {
        // The sort is stable: otherwise they stay in the order of deployment.
        rows.sort_by_key(|(_, facts, gone)| facts.is_some() && gone.is_some_and(is_clean));
        rows.truncate(DEPLOYMENTS_MAX);
    }
    let seconds = |time: Option<Duration>, reason: &str| {
        number_cell(time.map(|time| time.as_secs_f64()), number, reason)
    };
    let table = Columns::new("Cell", |(record, ..): &Row<'_>| Cell::text(name(view, record)))
        .right("Repetition", |(record, ..)| {
            number_cell(Some((record.repetition + 1).into()), setting, "")
        })
        .right("First token after (s)", |(_, facts, _)| {
            seconds(facts.map(|facts| facts.ready_after), NEVER)
        })
        .right("Restarts", |(_, facts, _)| {
            number_cell(facts.map(|facts| facts.restarts.into()), setting, NEVER)
        })
        .right("Idle after (s)", |(record, ..)| {
            number_cell(record.drained_after_s, number, "not reported by this server")
        })
        .left("How it stopped", |(.., gone)| {
            let ending = gone.map(|departure| match departure.ending {
                DepartureEnding::Before => "before the request",
                DepartureEnding::OnRequest => "on request",
                DepartureEnding::Killed => "killed",
            });
            known(ending, NOT_SEEN)
        })
        .right("Stopped after (s)", |(.., gone)| seconds(gone.map(|it| it.took), NOT_SEEN))
        .left("Left behind", |(.., gone)| {
            let left = gone.map(|departure| match (departure.left.len(), departure.port_closed) {
                (0, true) => "nothing".to_owned(),
                (0, false) => "an open port".to_owned(),
                (1, _) => "1 process".to_owned(),
                (several, _) => format!("{} processes", count(several as u64)),
            });
            known(left.as_deref(), NOT_SEEN)
        })
        .right("GPU memory kept (MiB)", |(.., gone)| {
            let memory = gone.and_then(|departure| departure.gpu_memory);
            let kept = memory.map(|(before, after)| after.saturating_sub(before) as f64);
            number_cell(kept.map(|bytes| bytes / 1_048_576.0), number, "not reported by a tool")
        })
        .table("deployments-table", "", rows);
    let note =
        format!("{} more that stopped cleanly are in the summary of the set.", count(more as u64));
    Table { notes: (0 < more).then(|| plain(note)).into_iter().collect(), ..table }
}
