//! `vllm bench serve` as an experiment of ours.
//!
//! Its flags become those of an experiment, so that a bench is drafted, resolved and measured as
//! any `run`; only what it prints and writes is the other tool's. What cannot be done here is in
//! one table, with the reason and a way out.

mod data;
mod load;
mod refused;
mod result;

use std::ffi::OsString;
use std::fmt::Write;
use std::time::Duration;

use inferometer_analysis::tool_result::{ResultRate, ToolResult};
use inferometer_load::{SystemClock, Target};
use inferometer_model::fetch::{Post, PostRequest};
use inferometer_model::spec::{LimitTable, TargetTable, WorkloadTable};
use inferometer_model::{BaseUrl, Clock, SpecDraft};

use self::data::{Context, Data};
use self::load::{Backend, body_table, load_table, requests};
use self::result::Figures;
use crate::arguments::{Experiment, ExperimentArguments, ServeBenchArguments, ServeLoadArguments};
use crate::failure::Failure;
use crate::output;
use crate::preflight::{addressed, fetching, first_model};
use crate::secrets::Secrets;

pub(crate) use load::origin;
pub(crate) use refused::Refused;
pub(crate) use result::ResultFile;

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
    pub(crate) fn from_arguments(said: &ServeBenchArguments) -> Result<Self, Failure> {
        said.refused.check()?;
        let backend = Backend::named(said.target.backend.as_deref())?;
        let base = backend.url(&said.target)?;
        let figures = Figures::from_arguments(&said.report, backend.api.generates())?;
        check_tokenizer(said)?;
        let no_self_timed = said.load.no_self_timed.then_some(false);
        let self_timed = said.load.self_timed.then_some(true).or(no_self_timed);
        let data = Data::from_arguments(
            &said.data,
            Context {
                api: backend.api,
                has_tokenizer: !said.target.skip_tokenizer_init,
                requests: requests(&said.load)?,
                self_timed,
            },
        )?;
        let mut load = load_table(&said.load, data.recorded)?;
        load.requests = data.requests.or(load.requests);
        let goes_on = data.goes_on || said.body.ignore_eos;
        let body = body_table(said, backend.api, goes_on)?;
        let headers = headers(&said.target.header)?;
        let patience = Duration::from_secs(said.load.ready_check_timeout_sec.unwrap_or(0));
        let (asked, model, tokenizer) = names(said, &base, &headers, patience)?;
        let mut notes = data.notes;
        notes.extend(notes_on(said, &base));
        let limits = LimitTable {
            connect: Some(CONNECT.into()),
            first_token: Some(WAIT.into()),
            idle: Some(WAIT.into()),
            total: Some(WAIT.into()),
            ..LimitTable::default()
        };
        let tables = Experiment {
            target: TargetTable {
                api: Some(backend.api),
                model: Some(asked),
                insecure: (said.target.insecure && base.tls).then_some(true),
                ..TargetTable::default()
            },
            workload: WorkloadTable {
                source: data.source,
                tokenizer: tokenizer.clone(),
                seed: Some(said.load.seed.unwrap_or(0)),
                body,
                ..WorkloadTable::default()
            },
            load,
            limits,
            ..Experiment::default()
        };
        let experiment = ExperimentArguments {
            place: Some(base.to_string()),
            tables,
            headers,
            promises: figures.slos.clone(),
            facts: said.report.metadata.clone(),
            ..ExperimentArguments::default()
        };
        Ok(Self {
            experiment,
            figures,
            backend: backend.name,
            model,
            tokenizer,
            request_id_prefix: request_id_prefix(said)?,
            recorded: data.recorded,
            patience,
            notes,
        })
    }

    /// The result with the load and the names as they were typed: the other client repeats them.
    pub(crate) fn as_typed(
        &self,
        mut result: ToolResult,
        said: &ServeBenchArguments,
    ) -> ToolResult {
        let load = &said.load;
        let rate = load.request_rate.filter(|rate| rate.is_finite());
        result.backend = Some(self.backend.clone());
        result.model = Some(self.model.clone());
        result.tokenizer.clone_from(&self.tokenizer);
        result.request_rate = Some(rate.map_or(ResultRate::Unlimited, ResultRate::PerSecond));
        result.burstiness = Some(load.burstiness.unwrap_or(1.0));
        result.max_concurrency = load.max_concurrency;
        // The other client repeats what was typed, also where its data has fewer.
        result.requests_planned = requests(load).ok();
        let place = |key: &str| {
            let is_it = |typed: &String| typed.split('=').next().map(str::trim) == Some(key);
            said.report.metadata.iter().position(is_it)
        };
        result.metadata.sort_by_key(|(key, _)| place(key));
        result
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

/// What the model is called in requests and in the result, and its tokenizer.
fn names(
    said: &ServeBenchArguments,
    base: &BaseUrl,
    headers: &[String],
    patience: Duration,
) -> Result<(String, String, Option<String>), Failure> {
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
    Ok((asked, model, tokenizer))
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

/// Between two questions to it.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Asks until there is an answer, a failure that will not pass, or no time left.
pub(crate) fn until_ready<T>(
    patience: Duration,
    mut ask: impl FnMut() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let clock = SystemClock::new();
    loop {
        let waited = Duration::from_nanos(clock.now().as_nanos());
        match ask() {
            Err(failure) if failure.is_passing() && waited < patience => {
                std::thread::sleep(ASK_AGAIN.min(patience.saturating_sub(waited)));
            }
            ended => return ended,
        }
    }
}

/// A profiler of this server that runs, and is stopped after the measurement.
#[derive(Debug)]
pub(crate) struct Profiler<'a>(&'a Target);

/// Writing a profile takes its time.
const PATIENCE: Duration = Duration::from_mins(10);
const REPLY_BYTES_MAX: usize = 1 << 20;

impl<'a> Profiler<'a> {
    /// A server that cannot is refused before anything is measured.
    pub(crate) fn start(target: &'a Target) -> Result<Self, Failure> {
        ask(target, "/start_profile").map_err(|failure| {
            failure.hint("start the server with its profiler on, or leave --profile out")
        })?;
        Ok(Self(target))
    }

    /// The run is made and counts, whatever becomes of the profile.
    pub(crate) fn stop(self) {
        if let Err(failure) = ask(self.0, "/stop_profile") {
            let words = inferometer_report::escape::terminal(failure.message());
            output::talk(&format!("the profile may be incomplete: {words}"));
        }
    }
}

fn ask(target: &Target, path: &str) -> Result<(), Failure> {
    let request = PostRequest { path, json: "{}", body_limit: REPLY_BYTES_MAX, patience: PATIENCE };
    let asked = fetching(target, async |fetch| fetch.post(request).await)?;
    match asked {
        Ok(reply) if (200..300).contains(&reply.status) => Ok(()),
        Ok(reply) => Err(Failure::target(format!("{path} answered HTTP {}", reply.status))),
        Err(error) => Err(Failure::target(format!("{path} did not answer: {error}"))),
    }
}

/// `recorded` is whether requests leave at the moments of the data.
pub(crate) fn traffic_lines(said: &ServeLoadArguments, recorded: bool) -> String {
    let mut text = "Starting main benchmark run...\n".to_owned();
    if recorded {
        return text + "Self timing is set, using the timestamps from the trace file.\n";
    }
    if let Some(strategy) = said.ramp_up_strategy {
        let strategy = strategy.name();
        let end = |rate: Option<i64>| rate.unwrap_or_default();
        let (from, to) = (end(said.ramp_up_start_rps), end(said.ramp_up_end_rps));
        let _ = write!(
            text,
            "Traffic ramp-up strategy: {strategy}.\n\
             Will increase RPS from {from} to {to} RPS over the duration of the benchmark.\n"
        );
    } else {
        let rate = said.request_rate.unwrap_or(f64::INFINITY);
        let _ = writeln!(text, "Traffic request rate: {rate:?}");
    }
    let burstiness = said.burstiness.unwrap_or(1.0);
    let is_poisson = (burstiness - 1.0).abs() < f64::EPSILON;
    let gaps = if is_poisson { "Poisson process" } else { "Gamma distribution" };
    let cap = said.max_concurrency.map_or_else(|| "None".to_owned(), |cap| cap.to_string());
    let _ = write!(
        text,
        "Burstiness factor: {burstiness:?} ({gaps})\nMaximum request concurrency: {cap}\n"
    );
    text
}

/// Ours, and what was typed instead.
const FLAGS: [(&str, &str); 15] = [
    ("--concurrency", "--max-concurrency"),
    ("--rate", "--request-rate"),
    ("--ramp", "--ramp-up-strategy"),
    ("--requests", "--num-prompts"),
    ("--warm-up", "--num-warmups"),
    ("--input-tokens", "--input-len"),
    ("--output-tokens", "--output-len"),
    ("--prefix-tokens", "--random-prefix-len"),
    ("--prefixes", "--prefix-repetition-num-prefixes"),
    ("--dataset", "--dataset-path"),
    ("--trace", "--dataset-path"),
    ("--api", "--backend"),
    ("--lora", "--lora-modules"),
    ("--slo", "--goodput"),
    ("--no-stream", "inferometer run --no-stream"),
];

/// The same failure in the words of who typed.
pub(crate) fn theirs(failure: Failure) -> Failure {
    failure.reworded(reworded)
}

fn reworded(text: &str) -> String {
    let is_boundary = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
    let pieces = text.split_inclusive(is_boundary).flat_map(|piece| {
        let word = piece.trim_end_matches(is_boundary);
        let theirs = FLAGS.iter().find(|(ours, _)| *ours == word);
        [theirs.map_or(word, |(_, theirs)| *theirs), &piece[word.len()..]]
    });
    pieces.collect()
}

/// The same command line; behind `bench`, flags have dashes where they were typed with underscores.
pub(crate) fn with_dashes(typed: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut typed: Vec<OsString> = typed.collect();
    if typed.get(1).is_some_and(|command| command == "bench") {
        typed.iter_mut().skip(2).for_each(dash);
    }
    typed
}

fn dash(argument: &mut OsString) {
    let Some(flag) = argument.to_str().and_then(|text| text.strip_prefix("--")) else { return };
    let (name, value) =
        flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if !is_name {
        return;
    }
    let name = name.replace('_', "-");
    let value = value.map_or_else(String::new, |value| format!("={value}"));
    *argument = format!("--{name}{value}").into();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_asked_again_until_there_is_no_time() {
        let mut asked = 0;
        let found = until_ready(Duration::from_mins(1), || {
            asked += 1;
            if asked < 2 { Err(Failure::target("starting").passing_if(true)) } else { Ok(asked) }
        });
        assert_eq!(found.ok(), Some(2));
        let mut asked = 0;
        let mut failing = |passing: bool| {
            until_ready::<()>(Duration::ZERO, || {
                asked += 1;
                Err(Failure::target("no").passing_if(passing))
            })
        };
        assert!(failing(true).is_err() && failing(false).is_err());
        assert_eq!(asked, 2, "once each");
    }

    #[test]
    fn whole_flags_are_replaced_and_nothing_else() {
        assert_eq!(
            reworded("--rate 5, with --requests: see --rates, --max-concurrency (--concurrency)."),
            "--request-rate 5, with --num-prompts: see --rates, --max-concurrency \
             (--max-concurrency)."
        );
        assert_eq!(reworded("kein Größe · --warm-up"), "kein Größe · --num-warmups");
    }

    fn dashed(words: &str) -> String {
        let typed = words.split(' ').map(OsString::from);
        let dashed = with_dashes(typed).into_iter().map(|word| word.into_string().unwrap());
        dashed.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn names_get_dashes_and_values_stay() {
        assert_eq!(
            dashed("i bench serve --num_prompts 3 --dataset_name=prefix_repetition my_model"),
            "i bench serve --num-prompts 3 --dataset-name=prefix_repetition my_model"
        );
        assert_eq!(dashed("i run --num_prompts 3"), "i run --num_prompts 3");
    }
}
