//! A whole bench: what was typed, as an experiment of ours.

use std::time::Duration;

use inferometer_analysis::sheet::{Sheet, SheetRate};
use inferometer_model::spec::{LimitTable, TargetTable, WorkloadTable};
use inferometer_model::{BaseUrl, SpecDraft};

use super::backend::Backend;
use super::data::{Around, Data};
use super::figures::Figures;
use super::ready::until_ready;
use super::{body, pace};
use crate::arguments::{Experiment, ExperimentArguments, ServeBenchArguments};
use crate::failure::Failure;
use crate::preflight::{addressed, first_model};
use crate::secrets::Secrets;

#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) experiment: ExperimentArguments,
    pub(crate) figures: Figures,
    /// In the other client's words, for its file.
    pub(crate) backend: String,
    pub(crate) model: String,
    pub(crate) tokenizer: Option<String>,
    pub(crate) request_id_prefix: Option<String>,
    /// Whether requests leave at the moments of the data.
    pub(crate) recorded: bool,
    /// How long a server may take to be there.
    pub(crate) patience: Duration,
    /// What a user of the other client should know.
    pub(crate) notes: Vec<String>,
}

/// The other client waits as long for a whole answer, and for nothing less.
const WAIT: Duration = Duration::from_hours(6);
/// A server that takes longer to accept is not there.
const CONNECT: Duration = Duration::from_mins(1);

impl Bench {
    /// Asks the server for its first model where none is named; sends nothing else.
    pub(crate) fn of(said: &ServeBenchArguments) -> Result<Self, Failure> {
        said.refused.check()?;
        let backend = Backend::named(said.target.backend.as_deref())?;
        let base = backend.url(&said.target)?;
        let figures = Figures::of(&said.report, backend.api.generates())?;
        check_tokenizer(said)?;
        let data = Data::of(
            &said.data,
            Around {
                api: backend.api,
                has_tokenizer: !said.target.skip_tokenizer_init,
                requests: pace::requests(&said.load)?,
                self_timed: self_timed(said),
            },
        )?;
        let mut load = pace::table(&said.load, data.recorded)?;
        load.requests = data.requests.or(load.requests);
        let goes_on = data.goes_on || said.body.ignore_eos;
        let body = body::table(said, backend.api, goes_on)?;
        let headers = headers(&said.target.header)?;
        let patience = Duration::from_secs(said.load.ready_check_timeout_sec.unwrap_or(0));
        let names = names(said, &base, &headers, patience)?;
        let mut notes = data.notes;
        notes.extend(notes_on(said, &base));
        let tables = Experiment {
            target: TargetTable {
                api: Some(backend.api),
                model: Some(names.asked),
                insecure: (said.target.insecure && base.tls).then_some(true),
                ..TargetTable::default()
            },
            workload: WorkloadTable {
                source: data.source,
                tokenizer: names.tokenizer.clone(),
                seed: Some(said.load.seed.unwrap_or(0)),
                body,
                ..WorkloadTable::default()
            },
            load,
            limits: limits(),
            ..Experiment::default()
        };
        let experiment = ExperimentArguments {
            place: Some(base.to_string()),
            tables,
            headers,
            promises: figures.promises.clone(),
            facts: said.report.metadata.clone(),
            ..ExperimentArguments::default()
        };
        Ok(Self {
            experiment,
            figures,
            backend: backend.name,
            model: names.model,
            tokenizer: names.tokenizer,
            request_id_prefix: request_id_prefix(said)?,
            recorded: data.recorded,
            patience,
            notes,
        })
    }
}

impl Bench {
    /// The sheet with the load and the names as they were typed: the other client repeats them.
    pub(crate) fn told(&self, mut sheet: Sheet, said: &ServeBenchArguments) -> Sheet {
        let load = &said.load;
        let rate = load.request_rate.filter(|rate| rate.is_finite());
        sheet.backend = Some(self.backend.clone());
        sheet.model = Some(self.model.clone());
        sheet.tokenizer.clone_from(&self.tokenizer);
        sheet.request_rate = Some(rate.map_or(SheetRate::Unlimited, SheetRate::PerSecond));
        sheet.burstiness = Some(load.burstiness.unwrap_or(1.0));
        sheet.max_concurrency = load.max_concurrency;
        // The other client repeats what was typed, also where its data has fewer.
        sheet.requests_planned = pace::requests(load).ok();
        let place = |key: &str| {
            let is_it = |typed: &String| typed.split('=').next().map(str::trim) == Some(key);
            said.report.metadata.iter().position(is_it)
        };
        sheet.metadata.sort_by_key(|(key, _)| place(key));
        sheet
    }
}

/// As the header is put together, a dash stands between it and the number of the request.
fn request_id_prefix(said: &ServeBenchArguments) -> Result<Option<String>, Failure> {
    let Some(typed) = &said.target.request_id_prefix else { return Ok(None) };
    if typed.is_empty() || !typed.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Failure::usage(
            "--request-id-prefix must be of letters, digits and signs, without blanks",
        ));
    }
    Ok(Some(typed.strip_suffix('-').unwrap_or(typed).to_owned()))
}

fn limits() -> LimitTable {
    LimitTable {
        connect: Some(CONNECT.into()),
        first_token: Some(WAIT.into()),
        idle: Some(WAIT.into()),
        total: Some(WAIT.into()),
        ..LimitTable::default()
    }
}

fn self_timed(said: &ServeBenchArguments) -> Option<bool> {
    let load = &said.load;
    load.self_timed.then_some(true).or(load.no_self_timed.then_some(false))
}

fn headers(typed: &[String]) -> Result<Vec<String>, Failure> {
    // The value is not repeated in the message: it may be a key.
    let header = |typed: &String| match typed.split_once('=') {
        Some((name, value)) => Ok(format!("{}: {}", name.trim(), value.trim())),
        None => Err(Failure::usage("--header must be of the form KEY=VALUE")),
    };
    typed.iter().map(header).collect()
}

fn check_tokenizer(said: &ServeBenchArguments) -> Result<(), Failure> {
    match said.target.tokenizer_mode.as_deref() {
        None | Some("auto" | "hf") => {}
        Some(mode) => {
            return Err(Failure::usage(format!(
                "--tokenizer-mode {mode} cannot be honoured: tokenizers are read from \
                 tokenizer.json, and no other code is run"
            ))
            .hint("name one that has such a file with --tokenizer, or use --skip-tokenizer-init"));
        }
    }
    if said.target.skip_tokenizer_init && said.target.tokenizer.is_some() {
        return Err(Failure::usage("--tokenizer and --skip-tokenizer-init contradict each other"));
    }
    Ok(())
}

/// What the model is called, where.
struct Names {
    /// In requests.
    asked: String,
    /// In the result.
    model: String,
    tokenizer: Option<String>,
}

fn names(
    said: &ServeBenchArguments,
    base: &BaseUrl,
    headers: &[String],
    patience: Duration,
) -> Result<Names, Failure> {
    let target = &said.target;
    let (asked, model) = if let Some(model) = &target.model {
        (target.served_model_name.clone().unwrap_or(model.clone()), model.clone())
    } else {
        let insecure = Some(target.insecure && base.tls);
        let over = TargetTable { insecure, ..TargetTable::default() };
        let draft = SpecDraft { url: Some(base.clone()), target: over, ..SpecDraft::default() };
        let (spec, secrets) = (draft.resolve()?, Secrets::read(None, headers)?);
        let first =
            until_ready(patience, || first_model(&addressed(&spec, &secrets, base)?, &secrets))?;
        let root = first.root.unwrap_or_else(|| first.id.clone());
        (target.served_model_name.clone().unwrap_or(first.id), root)
    };
    let tokenizer =
        (!target.skip_tokenizer_init).then(|| target.tokenizer.clone().unwrap_or(model.clone()));
    Ok(Names { asked, model, tokenizer })
}

/// Where it is set, the other client writes one more file.
const PYTORCH_FORMAT: &str = "SAVE_TO_PYTORCH_BENCHMARK_FORMAT";

/// What was said and changes nothing.
fn notes_on(said: &ServeBenchArguments, base: &BaseUrl) -> Vec<String> {
    let target = &said.target;
    let notes = [
        (
            target.trust_remote_code,
            "--trust-remote-code changes nothing: no code of a model is run",
        ),
        (target.insecure && !base.tls, "--insecure changes nothing: the URL is not https"),
        (
            target.lora_modules.is_empty() && target.lora_assignment.is_some(),
            "--lora-assignment changes nothing without --lora-modules",
        ),
        (
            said.load.burstiness.is_some()
                && said.load.ramp_up_strategy.is_none()
                && said.load.request_rate.is_none_or(f64::is_infinite),
            "--burstiness changes nothing: requests leave at once, with no gaps between them",
        ),
        (
            said.report.save_detailed && !said.report.save_result && !said.report.append_result,
            "--save-detailed changes nothing without --save-result or --append-result",
        ),
        (
            std::env::var_os(PYTORCH_FORMAT).is_some_and(|set| !set.is_empty()),
            "SAVE_TO_PYTORCH_BENCHMARK_FORMAT changes nothing: no .pytorch.json is written; \
             --save-result has the same figures",
        ),
    ];
    notes.into_iter().filter(|(is_so, _)| *is_so).map(|(_, note)| note.to_owned()).collect()
}
