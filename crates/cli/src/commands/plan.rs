//! What would be sent: `inferometer plan`, and `run --dry-run`.

use std::io::ErrorKind;
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
use inferometer_report::escape::terminal;
use inferometer_report::fmt::load;
use inferometer_report::lines::hanging;
use inferometer_report::outline;
use inferometer_workload::Inputs;
use inferometer_workload::saved::{SavedPlanError, print, save};

use crate::arguments::{PageFormat, PlanArguments};
use crate::draft::draft;
use crate::failure::Failure;
use crate::measurement::Planned;
use crate::output;
use crate::preflight::{correction, preflight};
use crate::secrets::Secrets;

/// `inferometer plan`: shows what a run would send, and saves it where it is asked to.
pub(crate) fn run(arguments: &PlanArguments) -> Result<ExitCode, Failure> {
    let drafted = draft(&arguments.experiment)?;
    let spec = drafted.resolve()?;
    check_slos(&spec.slos, spec.workload.streaming)
        .map_err(|problem| Failure::usage(problem.to_string()))?;
    let mut inputs = Inputs::gather(&spec)?;
    if arguments.save.is_some() && inputs.wants_correction() {
        ask_how_it_counts(&spec, &drafted.secrets, &mut inputs);
    }
    let planned = Planned::from_ingredients(spec, inputs);
    let Planned { spec, inputs, plan, fingerprints } = &planned;
    if arguments.save.as_deref() == Some(Path::new("-")) {
        let stdout = std::io::stdout().lock();
        let printed = print(stdout, spec, inputs.materials(), fingerprints, plan.as_ref());
        return match printed {
            // A reader that left early has what it wanted.
            Err(SavedPlanError::Unwritable { error, .. })
                if error.kind() == ErrorKind::BrokenPipe =>
            {
                Ok(ExitCode::SUCCESS)
            }
            Err(error) => Err(Failure::usage(error.to_string())),
            Ok(()) => Ok(ExitCode::SUCCESS),
        };
    }
    if let Some(path) = &arguments.save {
        save(path, spec, inputs.materials(), fingerprints, plan.as_ref())
            .map_err(|error| Failure::usage(error.to_string()))?;
        output::talk(&format!("saved to {}", path.display()));
    }
    let format = if arguments.json { PageFormat::Json } else { PageFormat::Page };
    show(&planned, &drafted.repetition, format)
}

/// A saved plan is played as it is, so its words must be counted before it is saved. Without a
/// tokenizer only the server knows how.
fn ask_how_it_counts(spec: &Spec, secrets: &Secrets, inputs: &mut Inputs) {
    let TargetSpec::Url(base) = &spec.target else {
        output::talk(
            "lengths are estimated by words: give --tokenizer, or the URL of the server, which is \
             then asked how it counts",
        );
        return;
    };
    output::talk(&format!("asking {base} how it counts words …"));
    let asked = preflight(spec, secrets, base, false).and_then(|found| correction(&found.target));
    match asked {
        Ok(Some(correction)) => inputs.correct(correction),
        Ok(None) => output::talk("it does not say; lengths stay estimates by words"),
        Err(failure) => {
            output::report(&failure);
            output::talk("lengths stay estimates by words");
        }
    }
}

pub(super) fn show(
    planned: &Planned,
    repeat: &Repetition,
    format: PageFormat,
) -> Result<ExitCode, Failure> {
    let outlined = Outline::of(planned.plan.as_ref());
    output::result(&match format {
        PageFormat::Json => json(planned, repeat, &outlined),
        PageFormat::Page | PageFormat::Vllm => {
            format!("{}\n{}", page(planned, repeat), outline::render(&outlined))
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn json(planned: &Planned, repeat: &Repetition, outlined: &Outline) -> String {
    let Planned { spec, inputs, plan, fingerprints } = planned;
    let materials = inputs.materials();
    let requests = plan.bounds().requests;
    let document = serde_json::json!({
        "schema": "inferometer.plan-summary/1",
        "dry_run": true,
        "fingerprint": fingerprints.plan,
        "spec": spec,
        "repeat": { "runs": repeat.runs, "cool_down_s": repeat.cool_down.as_secs_f64() },
        "requests": requests,
        "workload": { "fingerprint": fingerprints.workload },
        "plan": { "fingerprint": fingerprints.plan },
        "materials": materials,
        "outline": outlined,
    });
    format!("{document:#}\n")
}

fn page(planned: &Planned, repeat: &Repetition) -> String {
    let Planned { spec, inputs, .. } = planned;
    let materials = inputs.materials();
    let target = match &spec.target {
        TargetSpec::Embedded => "the embedded engine".to_owned(),
        TargetSpec::Deployed(deployment) => format!("a {} of ours", deployment.how.kind()),
        TargetSpec::Url(base) => base.to_string(),
    };
    let model = spec.model.as_deref().unwrap_or("the first that the server lists");
    let streamed = if spec.workload.streaming { "streamed" } else { "not streamed" };
    let talks = matches!(spec.workload.source, Source::Conversations(_));
    let unit = if talks { load::Unit::Conversations } else { load::Unit::Requests };
    let mut lines = vec![
        ("target", target),
        ("model", terminal(model)),
        ("api", format!("{}, {streamed}", spec.api)),
        ("load", load::shape(&LoadFacts::new(&spec.load.shape), unit)),
        ("requests", requests(spec, planned.plan.bounds())),
        ("warm-up", warm_up(spec.load.warm_up)),
        ("runs", runs(repeat)),
        ("prompts", terminal(&prompts(spec, materials))),
        ("lengths", lengths(materials, inputs.wants_correction())),
    ];
    lines.extend(materials.files.iter().map(|file| {
        let dropped: u64 = file.dropped.values().sum();
        let left_out = if dropped == 0 { String::new() } else { format!(", {dropped} left out") };
        (
            "file",
            terminal(&format!("{} ({}): {} items{left_out}", file.name, file.kind, file.items)),
        )
    }));
    lines.extend(repeats(spec, planned, materials).map(|note| ("note", note)));
    lines.extend(materials.notes.iter().map(|note| ("note", terminal(note))));
    lines.extend([
        ("seed", spec.seed.to_string()),
        ("workload", planned.fingerprints.workload.clone()),
        ("plan", planned.fingerprints.plan.clone()),
    ]);
    let lines: Vec<String> = lines
        .into_iter()
        .map(|(name, words)| hanging(&format!("{name:<10} "), 11, &words))
        .collect();
    format!("plan (nothing was sent)\n{}", lines.concat())
}

/// More requests than a dataset has prompts.
fn repeats(spec: &Spec, planned: &Planned, materials: &Materials) -> Option<String> {
    let items = materials.files.first()?.items;
    let requests = planned.plan.bounds().requests?;
    let is_dataset = matches!(spec.workload.source, Source::Dataset(_));
    (is_dataset && items < requests)
        .then(|| format!("the data has {items} prompts for {requests} requests: some come again"))
}

fn runs(repeat: &Repetition) -> String {
    match (repeat.runs.get(), repeat.cool_down) {
        (1, _) => "1".to_owned(),
        (runs, Duration::ZERO) => format!("{runs}, each with the next seed"),
        (runs, rest) => format!("{runs}, each with the next seed, and {rest:?} of rest between"),
    }
}

fn prompts(spec: &Spec, materials: &Materials) -> String {
    let source = spec.workload.source.kind().name();
    match &materials.tokenizer {
        Some(tokenizer) => format!("{source}, tokenizer {}", tokenizer.name),
        None => source.to_owned(),
    }
}

/// `asks` says whether a run would ask the server how it counts.
fn lengths(materials: &Materials, asks: bool) -> String {
    match materials.input_length {
        InputLength::Exact => "exact, by the tokenizer".to_owned(),
        InputLength::Estimated if asks => {
            "estimated by words (no tokenizer); a run asks the server how it counts".to_owned()
        }
        InputLength::Estimated => "estimated by words (no tokenizer)".to_owned(),
        InputLength::Corrected(correction) => format!(
            "estimated: the server counts {:.2} tokens per word, plus {} per request",
            correction.tokens_per_word, correction.overhead_tokens
        ),
    }
}

fn warm_up(requests: u64) -> String {
    match requests {
        0 => "none".to_owned(),
        requests => format!("{requests} requests before the run, not counted"),
    }
}

/// How many, as far as it is known beforehand.
fn requests(spec: &Spec, bounds: Bounds) -> String {
    let extent = spec.load.extent;
    let words = load::extent(&ExtentFacts::new(extent));
    match (extent, bounds.requests) {
        (Extent::Whole | Extent::UntilBoth { .. } | Extent::UntilFirst { .. }, Some(requests)) => {
            format!("{requests} ({words})")
        }
        (Extent::Whole, None) => words,
        (Extent::Requests(asked), Some(requests)) if asked.get() != requests => {
            format!("{requests} (asked: {asked})")
        }
        (Extent::Requests(requests), _) => requests.to_string(),
        (Extent::Duration(duration), Some(requests)) => format!("{requests} in {duration:?}"),
        (Extent::Duration(duration), None) => format!("as many as end in {duration:?}"),
        (Extent::UntilBoth { requests, .. }, None) => format!("{requests} or more ({words})"),
        (Extent::UntilFirst { requests, .. }, None) => format!("{requests} or fewer ({words})"),
    }
}
