//! What would be sent, for `--dry-run`.

use std::time::Duration;

use inferometer_analysis::{ExtentFacts, LoadFacts};
use inferometer_model::plan::{Bounds, Fingerprints};
use inferometer_model::spec::{Extent, TargetSpec};
use inferometer_model::{Plan, Spec};
use inferometer_report::load;

use crate::arguments::PageFormat;
use crate::draft::Repeat;
use crate::failure::Failure;
use crate::output;

pub(super) fn show(
    spec: &Spec,
    repeat: Repeat,
    plan: &dyn Plan,
    fingerprints: &Fingerprints,
    format: PageFormat,
) -> Result<(), Failure> {
    match format {
        PageFormat::Json => output::result(&json(spec, repeat, plan, fingerprints)),
        PageFormat::Page | PageFormat::Vllm => {
            output::result(&page(spec, repeat, plan, fingerprints))
        }
    }
}

fn json(spec: &Spec, repeat: Repeat, plan: &dyn Plan, fingerprints: &Fingerprints) -> String {
    let document = serde_json::json!({
        "schema": "inferometer.plan/1",
        "dry_run": true,
        "spec": spec,
        "repeat": { "runs": repeat.runs, "cool_down_s": repeat.cool_down.as_secs_f64() },
        "requests": plan.bounds().requests,
        "workload": { "fingerprint": fingerprints.workload },
        "plan": { "fingerprint": fingerprints.plan },
    });
    format!("{document:#}\n")
}

fn page(spec: &Spec, repeat: Repeat, plan: &dyn Plan, fingerprints: &Fingerprints) -> String {
    let target = match &spec.target {
        TargetSpec::Embedded => "the embedded engine".to_owned(),
        TargetSpec::Url(base) => base.to_string(),
    };
    let model = spec.model.as_deref().unwrap_or("the first that /v1/models lists");
    let workload = &spec.workload;
    format!(
        "plan (dry run: nothing was sent)\n\
         target     {target}\n\
         model      {}\n\
         api        {}, {}\n\
         load       {}\n\
         requests   {}\n\
         warm-up    {}\n\
         runs       {}\n\
         seed       {}\n\
         workload   {}\n\
         plan       {}\n",
        inferometer_report::escape::terminal(model),
        spec.api,
        if workload.streaming { "streamed" } else { "not streamed" },
        load::shape(&LoadFacts::of(&spec.load.shape)),
        requests(spec, plan.bounds()),
        warm_up(spec.load.warm_up),
        runs(repeat),
        spec.seed,
        fingerprints.workload,
        fingerprints.plan,
    )
}

fn runs(repeat: Repeat) -> String {
    match (repeat.runs, repeat.cool_down) {
        (1, _) => "1".to_owned(),
        (runs, Duration::ZERO) => format!("{runs}, each with the next seed"),
        (runs, rest) => format!("{runs}, each with the next seed, and {rest:?} of rest between"),
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
    let words = load::extent(&ExtentFacts::of(extent));
    match (extent, bounds.requests) {
        (Extent::Whole, Some(requests)) => format!("{requests} ({words})"),
        (Extent::Whole, None) => words,
        (Extent::Requests(requests), _) => requests.to_string(),
        (Extent::Duration(duration), Some(requests)) => format!("{requests} in {duration:?}"),
        (Extent::Duration(duration), None) => format!("as many as end in {duration:?}"),
        (Extent::UntilBoth { .. } | Extent::UntilFirst { .. }, Some(requests)) => {
            format!("{requests} ({words})")
        }
        (Extent::UntilBoth { requests, .. }, None) => format!("{requests} or more ({words})"),
        (Extent::UntilFirst { requests, .. }, None) => format!("{requests} or fewer ({words})"),
    }
}
