//! `inferometer judge`: what another client reports, beside the truth of the server that it measured.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use inferometer_analysis::client_judgement::{Grade, JudgedLoad, TrueLoad, judge_load};
use inferometer_analysis::tool_result::{
    CountsFrom, Grain, LatencyKind, ResultLatency, ToolResult,
};
use inferometer_analysis::{Probability, Sample, Summary};
use inferometer_engine::Mode;
use inferometer_engine::corpus::{Case, corpus};
use inferometer_engine::truth::{Ended, RequestTruth, Truth};
use inferometer_interchange::read_file;
use inferometer_model::import::ImportReading;
use inferometer_report::pages::judgement::{JudgedClient, badge, page};
use inferometer_store::read_at_most;
use inferometer_target::system::output as bounded_output;
use serde::Deserialize;

use super::{render_document, write_document};
use crate::arguments::JudgeArguments;
use crate::calibration::TestEngine;
use crate::failure::{Exit, Failure, Result};
use crate::{output, report_files};

#[derive(Debug, Deserialize)]
struct Loads {
    load: Vec<Load>,
}

/// One load: what the engine does, and what the client is to send.
#[derive(Clone, Debug, Deserialize)]
struct Load {
    #[serde(default)]
    name: String,
    about: String,
    mode: Mode,
    #[serde(default)]
    engine: String,
    requests: u64,
    concurrency: u32,
    output: u32,
    #[serde(default)]
    cases: Vec<String>,
    /// It is one load for each of them, called so; `{fault}` stands for it.
    #[serde(default)]
    faults: Vec<String>,
    /// Below the engine's address.
    #[serde(skip)]
    path: String,
}

impl Load {
    fn with_each_fault(self) -> Vec<Self> {
        let with = |fault: &String| {
            let [about, engine] =
                [&self.about, &self.engine].map(|it| it.replace("{fault}", fault));
            Self { name: fault.clone(), about, engine, ..self.clone() }
        };
        let loads: Vec<Self> = self.faults.iter().map(with).collect();
        if loads.is_empty() { vec![self] } else { loads }
    }
}

#[derive(Debug, Deserialize)]
struct Presets {
    preset: Vec<Preset>,
}

#[derive(Clone, Debug, Deserialize)]
struct Preset {
    name: String,
    title: String,
    command: Vec<String>,
}

const INPUT_TOKENS: u32 = 16;
const TIME_LIMIT: Duration = Duration::from_mins(2);
const RESULT_BYTES_MAX: u64 = 64 << 20;
const FILES_MAX: usize = 1000;

pub(crate) fn run(arguments: &JudgeArguments) -> Result<ExitCode> {
    let client = client(arguments)?;
    let folder = Folder::new(arguments.keep.as_deref())?;
    let talk = output::talk_unless(arguments.write.quiet);
    let mut judged = Vec::new();
    for load in loads(arguments)? {
        talk(&format!("{}: {}", load.name, load.about));
        judged.push(judge_load(measure(&client, &load, &folder, arguments)?));
    }
    let client = JudgedClient {
        title: &client.title,
        command: client.command.join(" "),
        loads: &judged,
        is_conformance: arguments.conformance,
    };
    let grade = judged.iter().map(|it| it.grade).max().unwrap_or(Grade::A);
    if let Some(path) = &arguments.badge {
        report_files::write_named(path, &badge(grade))?;
    }
    let json = serde_json::json!({
        "schema": "inferometer.judge/1",
        "client": client.title,
        "command": client.command,
        "grade": grade,
        "loads": judged,
    });
    let text = render_document(arguments.write.format(), &page(&client), &json);
    let written = write_document(&arguments.write, &text)?;
    Ok(if grade < Grade::D { written } else { Exit::RunInvalid.into() })
}

/// The command that was typed, or that of a preset with the program that was typed.
fn client(arguments: &JudgeArguments) -> Result<Preset> {
    let presets: Presets =
        toml::from_str(include_str!("judge/presets.toml")).map_err(Failure::from_error)?;
    let typed = &arguments.command;
    let Some(name) = &arguments.preset else {
        let title = typed.first().cloned().ok_or_else(|| {
            Failure::usage("there is no client to judge")
                .hint("name a --preset, or put the client's command behind --")
        })?;
        let title = Path::new(&title)
            .file_name()
            .map_or(title.clone(), |it| it.to_string_lossy().into_owned());
        return Ok(Preset { name: title.clone(), title, command: typed.clone() });
    };
    let known: Vec<&str> = presets.preset.iter().map(|preset| preset.name.as_str()).collect();
    let unknown = || {
        Failure::usage(format!("there is no preset `{name}`"))
            .hint(format!("known are {}", known.join(", ")))
    };
    let mut preset =
        presets.preset.iter().find(|it| it.name == *name).cloned().ok_or_else(unknown)?;
    let own = std::env::current_exe().ok().filter(|_| preset.name == "inferometer");
    let own = own.map(|path| path.display().to_string());
    if let Some(program) = typed.first().cloned().or(own) {
        preset.command.splice(..1, std::iter::once(program).chain(typed.iter().skip(1).cloned()));
    }
    Ok(preset)
}

fn loads(arguments: &JudgeArguments) -> Result<Vec<Load>> {
    let known: Loads =
        toml::from_str(include_str!("judge/loads.toml")).map_err(Failure::from_error)?;
    let mut loads: Vec<Load> = known.load.into_iter().flat_map(Load::with_each_fault).collect();
    if arguments.conformance {
        let load = |case: &Case| Load {
            name: case.name.to_owned(),
            about: case.about.clone(),
            mode: Mode::Corpus,
            engine: String::new(),
            requests: 1,
            concurrency: 1,
            output: case.expect.output_tokens.unwrap_or(4).max(1),
            cases: vec![case.name.to_owned()],
            faults: Vec::new(),
            path: format!("/case/{}", case.name),
        };
        loads = corpus().iter().map(load).collect();
    }
    let names: Vec<String> = loads.iter().map(|load| load.name.clone()).collect();
    if let Some(unknown) = arguments.only.iter().find(|name| !names.contains(name)) {
        return Err(Failure::usage(format!("--only: there is no load `{unknown}`"))
            .hint(format!("known are {}", names.join(", "))));
    }
    loads.retain(|load| arguments.only.is_empty() || arguments.only.contains(&load.name));
    for load in loads.iter_mut().filter(|load| load.cases.is_empty()) {
        load.requests = arguments.requests.unwrap_or(load.requests);
        load.concurrency = arguments.concurrency.unwrap_or(load.concurrency);
    }
    Ok(loads)
}

/// A folder for the files of the clients, which goes with this value unless it was named.
struct Folder {
    path: PathBuf,
    is_kept: bool,
}

impl Folder {
    fn new(kept: Option<&Path>) -> Result<Self> {
        let own = || std::env::temp_dir().join(format!("inferometer-judge-{}", std::process::id()));
        let path = kept.map_or_else(own, Path::to_owned);
        let made = std::fs::create_dir_all(&path).and_then(|()| std::path::absolute(&path));
        let path = made.map_err(|error| {
            Failure::usage(format!("the folder {} cannot be made: {error}", path.display()))
        })?;
        let folder = Self { path, is_kept: kept.is_some() };
        for (name, text) in super::judge_inputs::files() {
            report_files::write_named(&folder.path.join(name), &text)?;
        }
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.is_kept {
            // What is left of it harms nobody.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

fn measure(
    client: &Preset,
    load: &Load,
    folder: &Folder,
    arguments: &JudgeArguments,
) -> Result<JudgedLoad> {
    let flags = load.engine.split_whitespace().map(str::to_owned);
    let cases = load.cases.iter().map(|case| format!("--case={case}"));
    let served = (load.mode == Mode::Serve).then(|| "--served-model-name=serve".to_owned());
    let engine = TestEngine::with_flags(load.mode, flags.chain(cases).chain(served).collect())?;
    let base = engine.base().to_string();
    let base = base.trim_end_matches('/');
    let place = folder.path.join(&load.name);
    // What an earlier run left must not be taken for the result of this one.
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir_all(&place).map_err(Failure::from_error)?;
    let words = placeholders(load, base, folder, &place)?;
    let reported = report_of(client, &words, &place, folder, arguments);
    let truth = engine.truth()?;
    Ok(JudgedLoad {
        name: load.name.clone(),
        about: load.about.clone(),
        requests: load.requests,
        concurrency: load.concurrency,
        truth: true_load(&truth, load),
        reported,
    })
}

fn placeholders(
    load: &Load,
    base: &str,
    folder: &Folder,
    place: &Path,
) -> Result<BTreeMap<&'static str, String>> {
    let address = base.trim_start_matches("http://");
    let (host, port) = address.split_once(':').unwrap_or((address, "80"));
    let in_folder = |name: &str| folder.path.join(name).display().to_string();
    let body = serde_json::json!({
        "model": load.mode.to_string(),
        "messages": [{"role": "user", "content": "w000 w001 w002 w003"}],
        "max_tokens": load.output,
        "stream": true,
    });
    let url = format!("{base}{}", load.path);
    let script = super::judge_inputs::script(&url, &body.to_string());
    report_files::write_named(&place.join("script.js"), &script)?;
    let prompts = super::judge_inputs::prompts(load.requests, INPUT_TOKENS, load.output);
    report_files::write_named(&place.join("prompts.jsonl"), &prompts)?;
    let here = |name: &str| place.join(name).display().to_string();
    Ok(BTreeMap::from([
        ("{url}", url),
        ("{host}", host.to_owned()),
        ("{port}", port.to_owned()),
        ("{model}", load.mode.to_string()),
        ("{requests}", load.requests.to_string()),
        ("{concurrency}", load.concurrency.to_string()),
        ("{output}", load.output.to_string()),
        ("{input}", INPUT_TOKENS.to_string()),
        ("{result}", here("result.json")),
        ("{prompts}", here("prompts.jsonl")),
        ("{script}", here("script.js")),
        ("{body}", body.to_string()),
        ("{tokenizer}", in_folder(super::judge_inputs::TOKENIZER)),
        ("{tokenizer_name}", super::judge_inputs::TOKENIZER_NAME.to_owned()),
    ]))
}

/// Runs the client, and reads what it wrote or printed.
fn report_of(
    client: &Preset,
    words: &BTreeMap<&'static str, String>,
    place: &Path,
    folder: &Folder,
    arguments: &JudgeArguments,
) -> Result<ToolResult, String> {
    let fill = |word: &String| {
        let filled =
            words.iter().fold(word.clone(), |text, (name, value)| text.replace(name, value));
        filled.replace("{{", "{").replace("}}", "}")
    };
    let filled: Vec<String> = client.command.iter().map(fill).collect();
    let (program, rest) = filled.split_first().ok_or("the command is empty")?;
    let mut command = Command::new(program);
    command.args(rest).current_dir(place);
    for name in ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "VLLM_NO_USAGE_STATS", "DO_NOT_TRACK"] {
        command.env(name, "1");
    }
    command.env("HF_HUB_CACHE", folder.path.join("hub")).env("NO_PROXY", "127.0.0.1");
    command.env("INFEROMETER_NO_CONFIG", "1").env("INFEROMETER_RUNS", place.join("runs"));
    command.env_remove("HTTP_PROXY").env_remove("http_proxy");
    let printed = bounded_output(command, arguments.time_limit.map_or(TIME_LIMIT, |time| time.0));
    let read = |bytes: &[u8]| {
        let import = read_file("result", bytes, &ImportReading::default()).ok()?;
        import.results().last().cloned()
    };
    let from_file = |path: &PathBuf| read(&read_at_most(path, RESULT_BYTES_MAX).ok()??);
    let is_result = |path: &PathBuf| {
        let is_json = path.extension().is_some_and(|end| end == "json" || end == "jsonl");
        let inside = path.strip_prefix(place).unwrap_or(path);
        let is_ours = path.ends_with("prompts.jsonl") || inside.iter().any(|it| it == "runs");
        is_json && !is_ours
    };
    let mut files = report_files::files_below(place).unwrap_or_default();
    // Our own client stores its run, and what it prints may have another tool's definitions. Of several
    // runs the last one counts, as of several results in a file.
    let runs = place.join("runs");
    let stored = files.iter().rev().filter(|path| path.starts_with(&runs)).find_map(|path| {
        let bytes = read_at_most(path, RESULT_BYTES_MAX).ok()??;
        Summary::from_json_bytes(&bytes).ok()
    });
    files.retain(is_result);
    files.truncate(FILES_MAX);
    files.sort_by_key(|path| !path.ends_with("result.json"));
    let found = stored.map(|summary| ToolResult::from_summary(&summary));
    let found = found.or_else(|| files.iter().find_map(from_file));
    let found = found.or_else(|| read(printed.as_ref().ok()?.as_bytes()));
    found.ok_or_else(|| match printed {
        Ok(_) => "it ended well and left no result that can be read".to_owned(),
        Err(error) => error.to_string(),
    })
}

/// The truth of one load as a result; requests beside it came first.
fn true_load(truth: &Truth, load: &Load) -> TrueLoad {
    let mut requests: Vec<&RequestTruth> = truth.requests.iter().collect();
    requests.sort_by_key(|request| received_ns(request));
    let planned = usize::try_from(load.requests).unwrap_or(usize::MAX);
    let extra = requests.len().saturating_sub(planned);
    let sent = requests.split_off(extra);
    let is_ok = |request: &&&RequestTruth| match &request.case {
        Some(name) => corpus().iter().any(|case| case.name == name && case.expect.is_ok()),
        None => request.ended == Ended::Complete,
    };
    let ok: Vec<&RequestTruth> = sent.iter().filter(is_ok).copied().collect();
    TrueLoad {
        result: true_result(&ok),
        ok: ok.len() as u64,
        failed: (sent.len() - ok.len()) as u64,
        extra: extra as u64,
        in_flight: in_flight(&sent),
        late_ms: truth.lateness.p99_ns.map(|late_ns| late_ns as f64 / 1e6),
    }
}

fn received_ns(request: &RequestTruth) -> u64 {
    request.received_kernel_ns.unwrap_or(request.received_user_ns)
}

fn ended_ns(request: &RequestTruth) -> u64 {
    request.writes.last().map_or_else(|| received_ns(request), |write| write.after_ns)
}

fn ms(from_ns: u64, to_ns: u64) -> f64 {
    to_ns.saturating_sub(from_ns) as f64 / 1e6
}

/// What a client should have reported, from a request's arrival and the writes of its tokens.
fn true_result(answers: &[&RequestTruth]) -> ToolResult {
    let mut values: BTreeMap<(LatencyKind, Grain), Vec<f64>> = BTreeMap::new();
    // The answers of the corpus have no pace of their own: only their counts are compared.
    for answer in answers.iter().filter(|answer| answer.case.is_none()) {
        let mut add = |kind, grain, value| values.entry((kind, grain)).or_default().push(value);
        let tokens: Vec<(u64, u32)> = answer
            .writes
            .iter()
            .filter(|write| 0 < write.tokens)
            .map(|write| (write.before_ns, write.tokens))
            .collect();
        add(LatencyKind::E2e, Grain::Request, ms(received_ns(answer), ended_ns(answer)));
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { continue };
        add(LatencyKind::Ttft, Grain::Request, ms(received_ns(answer), first.0));
        if 1 < answer.tokens {
            add(
                LatencyKind::Tpot,
                Grain::Request,
                ms(first.0, last.0) / f64::from(answer.tokens - 1),
            );
        }
        for pair in tokens.windows(2) {
            let gap = ms(pair[0].0, pair[1].0);
            add(LatencyKind::Itl, Grain::Chunk, gap);
            add(LatencyKind::Itl, Grain::Token, gap / f64::from(pair[1].1));
        }
    }
    let first = answers.iter().map(|answer| received_ns(answer)).min();
    let last = answers.iter().map(|answer| ended_ns(answer)).max();
    let duration_s = first.zip(last).map(|(first, last)| ms(first, last) / 1e3);
    let tokens: u64 = answers.iter().map(|answer| u64::from(answer.tokens)).sum();
    let per_s = |total: u64| duration_s.filter(|it| 0.0 < *it).map(|it| total as f64 / it);
    let latency = |((kind, grain), values): ((LatencyKind, Grain), Vec<f64>)| {
        let sample = Sample::new(values)?;
        let ranks = [(0.5, "50"), (0.99, "99")];
        let percentiles = ranks.iter().filter_map(|(share, rank)| {
            Some(((*rank).to_owned(), sample.quantile(Probability::new(*share)?)))
        });
        let from = if matches!(kind, LatencyKind::Ttft | LatencyKind::E2e) {
            CountsFrom::Send
        } else {
            CountsFrom::Output
        };
        Some(ResultLatency::new(kind, from, grain).with_sample(&sample, percentiles))
    };
    ToolResult {
        completed: Some(answers.len() as u64),
        output_tokens: Some(tokens),
        duration_s,
        request_throughput: per_s(answers.len() as u64),
        output_throughput: per_s(tokens),
        latencies: values.into_iter().filter_map(latency).collect(),
        ..ToolResult::default()
    }
}

/// Averaged from the first request to the last one: after that no client could add another.
fn in_flight(requests: &[&RequestTruth]) -> Option<f64> {
    let first = requests.iter().map(|request| received_ns(request)).min()?;
    let last =
        requests.iter().map(|request| received_ns(request)).max().filter(|last| first < *last)?;
    let open = requests.iter().map(|it| ms(received_ns(it), ended_ns(it).min(last)));
    Some(open.sum::<f64>() / ms(first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_files_are_read_and_name_what_there_is() {
        let known: Loads = toml::from_str(include_str!("judge/loads.toml")).unwrap();
        for case in known.load.iter().flat_map(|load| &load.cases) {
            assert!(corpus().iter().any(|it| it.name == case), "{case}");
        }
        let faults = known.load.iter().flat_map(|it| &it.faults);
        for fault in faults {
            assert!(fault.parse::<inferometer_engine::Fault>().is_ok(), "{fault}");
        }
        let presets: Presets = toml::from_str(include_str!("judge/presets.toml")).unwrap();
        assert!(presets.preset.iter().all(|preset| preset.command.len() > 4));
    }
}
