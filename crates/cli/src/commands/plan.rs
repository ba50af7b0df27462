//! `inferometer plan` and `run --dry-run`: what a run would send.

use std::io::{self, ErrorKind, Write};
use std::num::NonZeroU64;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use inferometer_analysis::outline::Outline;
use inferometer_analysis::{ExtentFacts, LoadFacts, check_slos};
use inferometer_model::Spec;
use inferometer_model::observations::{InputLength, Materials};
use inferometer_model::plan::Bounds;
use inferometer_model::spec::{Extent, Source, TargetSpec};
use inferometer_model::study::Repetition;
use inferometer_report::document::{Document, Lead, facts, terminal};
use inferometer_report::fmt::{self, load};
use inferometer_report::outline;
use inferometer_report::terminal::Style;
use inferometer_store::OutputFile;
use inferometer_workload::Inputs;
use inferometer_workload::saved::{SavedPlanError, write_plan};

use crate::arguments::{PageFormat, PlanArguments};
use crate::draft::{draft, seed_text};
use crate::experiment::config;
use crate::failure::{Failure, Result};
use crate::measurement::Planned;
use crate::output;
use crate::preflight::{correction, preflight};
use crate::secrets::Secrets;
use crate::signals::{self, Interruption};
use crate::study::dry_run::format_warm_up;

/// `inferometer plan`: shows what a run would send, and saves it where it is asked to.
pub(crate) fn run(arguments: &PlanArguments) -> Result<ExitCode> {
    let drafted = draft(&arguments.experiment)?;
    config::announce(false);
    let spec = drafted.resolve()?;
    check_slos(&spec.slos, spec.workload.streaming).map_err(Failure::from_usage)?;
    let mut inputs = Inputs::gather(&spec)?;
    if arguments.save.is_some() && inputs.wants_correction() {
        correct_lengths(&spec, &drafted.secrets, &mut inputs);
    }
    let planned = Planned::from_ingredients(spec, inputs);
    match arguments.save.as_deref() {
        Some(path) if path == Path::new(output::STDOUT) => {
            return match write(&planned, io::stdout().lock(), Path::new("standard output")) {
                // A reader that left early has what it wanted.
                Err(SavedPlanError::Unwritable { error, .. })
                    if error.kind() == ErrorKind::BrokenPipe =>
                {
                    Ok(ExitCode::SUCCESS)
                }
                printed => printed.map(|()| ExitCode::SUCCESS).map_err(Failure::from_usage),
            };
        }
        Some(path) => {
            save(&planned, path)?;
            output::talk(&format!("saved to {}", path.display()));
        }
        None => {}
    }
    let format = if arguments.json { PageFormat::Json } else { PageFormat::Page };
    show(&planned, &drafted.repetition, format)
}

fn write(planned: &Planned, out: impl Write, name: &Path) -> Result<(), SavedPlanError> {
    let Planned { spec, inputs, plan, fingerprints, .. } = planned;
    write_plan(out, name, spec, inputs, fingerprints, plan.as_ref())
}

/// Saves the plan. A signal ends it and leaves nothing behind: a plan can have many gigabytes.
fn save(planned: &Planned, path: &Path) -> Result<()> {
    let interruption = signals::end_with(|| {})?;
    let mut file = OutputFile::create(path).map_err(Failure::from_usage)?;
    let written =
        write(planned, Interruptible { out: &mut file, interruption: &interruption }, path);
    interruption.check()?;
    written.map_err(Failure::from_usage)?;
    file.commit().map_err(Failure::from_usage)
}

/// Fails to write as soon as a signal was received.
struct Interruptible<'a> {
    out: &'a mut OutputFile,
    interruption: &'a Interruption,
}

impl Write for Interruptible<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.interruption.check().map_err(io::Error::other)?;
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A saved plan is sent as it is, so its lengths must be counted before it is saved. Without a
/// tokenizer only the server can count them.
fn correct_lengths(spec: &Spec, secrets: &Secrets, inputs: &mut Inputs) {
    let TargetSpec::Url(base) = &spec.target else {
        output::talk(
            "lengths are estimated by words: set --tokenizer, or give the URL of the server, which \
             can count them",
        );
        return;
    };
    output::talk(&format!("asking {base} how many tokens its prompts have …"));
    match preflight(spec, secrets, base, false).and_then(|found| correction(&found.target)) {
        Ok(Some(correction)) => inputs.correct(correction),
        Ok(None) => output::talk("not reported by this server; lengths stay estimates by words"),
        Err(failure) => {
            output::report(&failure);
            output::talk("lengths stay estimates by words");
        }
    }
}

pub(super) fn show(planned: &Planned, repeat: &Repetition, format: PageFormat) -> Result<ExitCode> {
    let Planned { spec, inputs, plan, fingerprints, .. } = planned;
    let outlined = Outline::new(plan.as_ref());
    output::result(&match format {
        PageFormat::Json => {
            let document = serde_json::json!({
                "schema": "inferometer.plan-summary/1",
                "dry_run": true,
                "fingerprint": fingerprints.plan,
                "spec": spec,
                "repeat": { "runs": repeat.runs, "cool_down_s": repeat.cool_down.as_secs_f64() },
                "requests": plan.bounds().requests,
                "workload": { "fingerprint": fingerprints.workload },
                "plan": { "fingerprint": fingerprints.plan },
                "materials": inputs.materials(),
                "outline": outlined,
            });
            format!("{document:#}\n")
        }
        PageFormat::Page | PageFormat::Full | PageFormat::Vllm => page(planned, repeat, &outlined),
    })
}

fn page(planned: &Planned, repeat: &Repetition, outlined: &Outline) -> String {
    let Planned { spec, inputs, plan, fingerprints, .. } = planned;
    let materials = inputs.materials();
    let source = spec.workload.source.kind().name();
    let target = match &spec.target {
        TargetSpec::Embedded => "the embedded engine".to_owned(),
        TargetSpec::Deployed(deployment) => {
            format!("a {} that is deployed for it", deployment.how.kind())
        }
        TargetSpec::Url(base) => base.to_string(),
    };
    let streamed = if spec.workload.streaming { "streamed" } else { "not streamed" };
    let unit = load::Unit::from_source(spec.workload.source.kind());
    let runs = match (repeat.runs.get(), repeat.cool_down) {
        (1, _) => "1".to_owned(),
        (runs, Duration::ZERO) => format!("{runs}, each with the next seed"),
        (runs, rest) => {
            let rest = fmt::duration(rest);
            format!("{runs}, each with the next seed, with a rest of {rest} between")
        }
    };
    let model = spec.model.as_deref().unwrap_or("the first that the server lists");
    let tokenizer = materials.tokenizer.as_ref();
    let tokenizer = tokenizer.map_or_else(String::new, |it| format!(", tokenizer {}", it.name));
    let mut lines = vec![
        ("target", target),
        ("model", model.to_owned()),
        ("api", format!("{}, {streamed}", spec.api)),
        ("load", load::shape(&LoadFacts::new(&spec.load), unit)),
        ("requests", requests(spec, plan.bounds())),
        ("warm-up", format_warm_up(spec.load.warm_up, "the run")),
        ("runs", runs),
        ("prompts", format!("{source}{tokenizer}")),
        ("lengths", lengths(materials, inputs.wants_correction())),
    ];
    lines.extend(materials.files.iter().map(|file| {
        let dropped: u64 = file.dropped.values().sum();
        let dropped = fmt::count(dropped);
        let left_out = if dropped == "0" { String::new() } else { format!(", {dropped} left out") };
        let items = fmt::counted(file.items, "item");
        ("file", format!("{} ({}): {items}{left_out}", file.name, file.kind))
    }));
    // More requests than a dataset has prompts.
    if let (Source::Dataset(_), Some(file), Some(requests)) =
        (&spec.workload.source, materials.files.first(), plan.bounds().requests)
        && file.items < requests
    {
        let (items, requests) = (fmt::count(file.items), fmt::count(requests));
        let note = format!("the dataset has {items} prompts for {requests} requests: some repeat");
        lines.push(("note", note));
    }
    lines.extend(materials.notes.iter().map(|note| ("note", note.clone())));
    lines.push(("seed", seed_text(spec.seed)));
    lines.push(("workload", fingerprints.workload.clone()));
    lines.push(("plan", fingerprints.plan.clone()));
    let lead = Lead { subject: facts(lines), ..Lead::default() };
    let document = Document::new("plan (dry run: nothing was sent)", outline::sections(outlined));
    terminal::render(&Document { lead, ..document }, Style::Plain)
}

/// How prompt lengths are counted; `is_asked` is whether a run would ask the server for them.
fn lengths(materials: &Materials, is_asked: bool) -> String {
    match materials.input_length {
        InputLength::Exact => "exact, by the tokenizer".to_owned(),
        InputLength::Estimated if is_asked => {
            "estimated by words (no tokenizer); a run asks the server for its count".to_owned()
        }
        InputLength::Estimated => "estimated by words (no tokenizer)".to_owned(),
        InputLength::Corrected(correction) => format!(
            "estimated: the server counts {} tokens per word, plus {} per request",
            fmt::number(correction.tokens_per_word),
            correction.overhead_tokens
        ),
    }
}

/// How many requests there are, as far as it is known before the run.
fn requests(spec: &Spec, bounds: Bounds) -> String {
    let extent = spec.load.extent;
    let words = load::extent(&ExtentFacts::new(extent));
    let count = |requests: NonZeroU64| fmt::count(requests.get());
    match (extent, bounds.requests.map(fmt::count)) {
        (Extent::Whole | Extent::UntilBoth { .. } | Extent::UntilFirst { .. }, Some(requests)) => {
            format!("{requests} ({words})")
        }
        (Extent::Whole, None) => words,
        (Extent::Requests(asked), Some(requests)) if count(asked) != requests => {
            format!("{requests} (requested: {})", count(asked))
        }
        (Extent::Requests(requests), _) => count(requests),
        (Extent::Duration(time), Some(requests)) => {
            format!("{requests} in {}", fmt::duration(time))
        }
        (Extent::Duration(time), None) => format!("as many as end in {}", fmt::duration(time)),
        (Extent::UntilBoth { requests, .. }, None) => {
            format!("{} or more ({words})", count(requests))
        }
        (Extent::UntilFirst { requests, .. }, None) => {
            format!("{} or fewer ({words})", count(requests))
        }
    }
}
