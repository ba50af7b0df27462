//! Results of `vllm bench serve` in a text, whatever is between them: JSON objects alone, as lines or
//! inside of a page, and the printed "Serving Benchmark Result".

use std::borrow::Cow;
use std::collections::BTreeSet;

use inferometer_analysis::Verdict;
use inferometer_analysis::tool_result::{
    CountsFrom, Form, Grain, LatencyKind, ResultRequest, ResultSource, Tool, ToolResult, extra,
};
use serde::de::IgnoredAny;

use super::{COLUMNS, FIELDS, Field, QUEUED_E2E, latency_kind, meaning};
use crate::export::names_a_tool;
use crate::import::{
    self, ImportError, Imported, LISTED_MAX, NAME_BYTES_MAX, Piece, Records, figure, not_json,
    plain_rank, scan, shown,
};
use crate::json::Json;

/// With `--save-detailed` a line holds every gap between tokens of a run.
const LINE_BYTES_MAX: usize = 128 << 20;
/// Enough to see whether a file is a text.
const SEEN_CHARS: usize = 4096;
const HEADER: &str = "Serving Benchmark Result";
/// The least length of the line of `=` that ends a block; it is printed with 50.
const END_CHARS_MIN: usize = 20;
const POSITIONS_MAX: usize = 128;
const ANOMALIES_MAX: usize = 10_000;

/// What `vllm bench sweep` adds to a result: how often it was run before, and what the user calls
/// a combination of parameters.
pub(crate) const RUN_NUMBER: &str = "run_number";
pub(crate) const BENCHMARK_NAME: &str = "_benchmark_name";

/// Keys of ours in a result of this form.
pub(crate) const RUN: &str = "inferometer_run";
pub(crate) const VERSION: &str = "inferometer_version";
pub(crate) const VERDICT: &str = "inferometer_verdict";
/// Who measured what this tool did not.
pub(crate) const MEASURED_BY: &str = "measured_by";
pub(crate) const SIMULATED: &str = "simulated";

/// The results in a text: JSON objects, printed blocks, or both. Bare words must be in quotes
/// already. Records that cannot be read stand between those that can, with their reasons.
pub(crate) fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let mut reader = Reader::default();
    // Braces begin other things than JSON objects, too.
    let opens = |line: &str, rest: &str| {
        let inside = rest.strip_prefix('{').filter(|_| line.len() <= LINE_BYTES_MAX);
        inside.is_some_and(|inside| inside.trim_start().starts_with('"'))
    };
    let end = scan(text, opens, |number, piece| {
        reader.take(number, piece);
        !reader.records.are_too_many()
    });
    reader.end_early(end);
    reader.finish(text)
}

#[derive(Debug, Default)]
struct Reader {
    records: Records,
    above: Above,
    /// The block whose lines are being read.
    open: Option<OpenBlock>,
    /// JSON objects that are no results: the first one's line and keys, and how many.
    unknown: (Option<(u32, String)>, usize),
    /// Broken records of a file in which every line is a record or a comment.
    anomalies: Vec<(u32, String)>,
    /// Whether a line is neither a record nor a comment.
    has_prose: bool,
}

impl Reader {
    fn take(&mut self, number: u32, piece: Piece<'_>) {
        match piece {
            Piece::Line(line) if line.len() > LINE_BYTES_MAX => {
                let reason = format!(
                    "is a line of {} bytes, and {LINE_BYTES_MAX} is the most; save the result \
                     without --save-detailed",
                    line.len()
                );
                self.records.break_off(number, reason);
            }
            Piece::Line(line) => {
                self.note_anomaly(number, line);
                self.read_line(number, line.trim());
            }
            Piece::Object(object) => {
                self.end_early(number);
                match object {
                    Ok(object) => self.take_object(object, number),
                    Err(reason) => self.records.break_off(number, reason),
                }
            }
        }
    }

    /// Looks at a line that does not begin a record.
    fn note_anomaly(&mut self, number: u32, line: &str) {
        let text = line.trim_matches([' ', '\t', '\u{feff}', '[', ']', ',']);
        if text.is_empty() || text.starts_with('#') || text.starts_with("//") {
            return;
        }
        // Pages that are filled in have templates.
        let is_template = ["{%", "{{", "{:", "{#"].iter().any(|opening| text.starts_with(opening));
        self.has_prose |= !text.starts_with('{') || is_template;
        if self.has_prose {
            self.anomalies.clear();
        } else if self.anomalies.len() < ANOMALIES_MAX
            && let Err(error) = serde_json::from_str::<IgnoredAny>(text)
        {
            self.anomalies.push((number, not_json(&error)));
        }
    }

    /// A line of a printed block, or of what is around it.
    fn read_line(&mut self, number: u32, text: &str) {
        if text.contains(HEADER) && text.contains("==") {
            self.end_early(number);
            let mut result = self.above.new_block(number);
            result.source.simulated = text.contains("(simulated)");
            self.open = Some(OpenBlock { result, figures: 0, latencies: 0 });
            return;
        }
        let Some(open) = &mut self.open else { return self.above.read(number, text) };
        // Settings are printed above the latencies: behind them they are those of the next run.
        let is_over =
            || open.latencies > 0 && labelled(text).is_some_and(|(_, at, _)| at.is_setting());
        if text.len() >= END_CHARS_MIN && text.bytes().all(|byte| byte == b'=') {
            self.end_block();
        } else if text.starts_with("```") || is_over() {
            self.end_early(number);
            self.above.read(number, text);
        } else {
            open.read(number, text);
        }
    }

    /// Ends a block that has no last line of its own.
    fn end_early(&mut self, line: u32) {
        if let Some(open) = &mut self.open {
            note(&mut open.result, line, "the block has no end of its own");
        }
        self.end_block();
    }

    fn end_block(&mut self) {
        let Some(OpenBlock { mut result, figures, .. }) = self.open.take() else { return };
        if figures == 0 {
            let line = result.source.line.unwrap_or(0);
            return self.records.break_off(line, "is a block without a figure".to_owned());
        }
        // A bar of something else, such as the loading of weights, stood above this block.
        if result.requests_planned < result.completed {
            result.requests_planned = None;
        }
        self.records.push(result);
    }

    fn take_object(&mut self, object: Json, line: u32) {
        let Json::Map(mut entries) = object else { return };
        let is_list = |(key, _): &mut (String, Json)| {
            key == extra::POSITIONS || COLUMNS.iter().any(|column| column.key == key)
        };
        let mut lists: Vec<(String, Json)> = entries.extract_if(.., is_list).collect();
        lists.retain(|(_, value)| *value != Json::Null);
        // Counts alone are everybody's.
        let is_timed = |key: &str| ["ttfts", "itls", "latencies"].contains(&key);
        let is_figure = |key: &str| match Target::from_key(key) {
            Some(Target::Field(field)) => {
                ["request_throughput", "output_throughput", "total_token_throughput"]
                    .contains(&field.key)
            }
            Some(Target::Statistic { from, .. }) => from != CountsFrom::Schedule,
            Some(Target::Extra(_)) | None => false,
        };
        if lists.iter().any(|(key, _)| is_timed(key))
            || entries.iter().any(|(key, _)| is_figure(key))
        {
            let mut result = read_entries(entries, line);
            take_lists(&mut result, line, lists);
            self.above.describe(&mut result);
            return self.records.push(result);
        }
        self.unknown.1 += 1;
        self.unknown.0.get_or_insert_with(|| {
            let first = entries.iter().take(5).map(|(key, _)| format!("`{}`", shown(key)));
            let more = if entries.len() > 5 { ", …" } else { "" };
            (line, first.collect::<Vec<_>>().join(", ") + more)
        });
    }

    fn finish(mut self, text: &str) -> Result<Vec<Imported>, ImportError> {
        for (line, reason) in self.anomalies {
            self.records.break_off(line, reason);
        }
        let (first, count) = &self.unknown;
        if let Some((line, keys)) = first
            && self.records.has_results()
        {
            let reason = format!(
                "is the first of {count} JSON objects without the figures of a benchmark; its keys \
                 are {keys}"
            );
            self.records.remark(*line, reason);
        }
        self.records.finish_or(|| match first {
            Some((line, keys)) => format!(
                "the file has {count} JSON object(s), the first, in line {line}, with the keys {keys}"
            ),
            None => looks_like(text),
        })
    }
}

fn looks_like(text: &str) -> String {
    let Some(first) = text.lines().map(str::trim).find(|line| !line.is_empty()) else {
        return "the file is empty".to_owned();
    };
    // A tenth of the beginning is no letter of any text.
    let is_strange =
        |c: &char| *c == char::REPLACEMENT_CHARACTER || (c.is_control() && !c.is_whitespace());
    let beginning = || text.chars().take(SEEN_CHARS);
    if beginning().count() < 10 * beginning().filter(is_strange).count() {
        return "the file is binary, not text".to_owned();
    }
    if text.lines().any(|line| line.trim() == "[[row]]") {
        return "the file looks like a table of published figures (TOML with `[[row]]`), which \
                has a reader of its own"
            .to_owned();
    }
    let count = text.lines().count();
    format!("the file has {count} line(s) and begins with “{}”", shown(first))
}

/// A result of this tool of which nothing is known yet.
fn new_result(form: Form, line: u32) -> ToolResult {
    let source =
        ResultSource { tool: Tool::Vllm, form, line: Some(line), ..ResultSource::default() };
    ToolResult { source, ..ToolResult::default() }
}

fn note(result: &mut ToolResult, line: u32, what: &str) {
    import::note(result, format!("line {line}: {what}"));
}

/// Where a value of a result belongs.
enum Target {
    /// A field of a result.
    Field(&'static Field),
    /// `mean`, `median`, `std` or a percentile such as `p99.9` of a latency.
    Statistic { kind: LatencyKind, from: CountsFrom, grain: Grain, statistic: String },
    /// A figure of this tool only, by its key.
    Extra(String),
}

impl Target {
    fn from_key(key: &str) -> Option<Self> {
        if let Some(field) = super::field(key) {
            return Some(Self::Field(field));
        }
        Self::extra(|figure| figure.key == key).or_else(|| {
            let (statistic, latency) = key.strip_suffix("_ms")?.split_once('_')?;
            Self::from_statistic(latency, statistic)
        })
    }

    fn from_label(label: &str) -> Option<Self> {
        let is_meant = |known: &str| !known.is_empty() && known.eq_ignore_ascii_case(label);
        if let Some(field) = FIELDS.iter().find(|field| is_meant(field.label)) {
            return Some(Self::Field(field));
        }
        if let Some(position) = label.strip_prefix("Position ") {
            let position = position.parse().ok().filter(|position| *position < POSITIONS_MAX)?;
            return Some(Self::Extra(extra::position_key(position)));
        }
        Self::extra(|figure| is_meant(figure.label)).or_else(|| {
            let (statistic, latency) = label.strip_suffix(" (ms)")?.split_once(' ')?;
            Self::from_statistic(latency, statistic)
        })
    }

    fn extra(is_meant: impl Fn(&extra::ExtraFigure) -> bool) -> Option<Self> {
        extra::known().find(is_meant).map(|figure| Self::Extra(figure.key.to_owned()))
    }

    /// By the names that keys and labels have for a latency and its statistic.
    fn from_statistic(latency: &str, statistic: &str) -> Option<Self> {
        let (latency, statistic) = (latency.to_ascii_lowercase(), statistic.to_ascii_lowercase());
        if !["mean", "median", "std"].contains(&statistic.as_str()) {
            plain_rank(&statistic)?;
        }
        let is_either =
            |names: [&str; 2]| names.iter().any(|name| name.eq_ignore_ascii_case(&latency));
        if is_either(["client_queue_time", "client queue time"]) {
            return Some(Self::Extra(format!("{statistic}_{}", extra::CLIENT_QUEUE.0)));
        }
        let (kind, (from, grain)) = if is_either([QUEUED_E2E.0, QUEUED_E2E.1]) {
            (LatencyKind::E2e, (CountsFrom::Schedule, Grain::Request))
        } else {
            let kind = latency_kind(&latency)?;
            (kind, meaning(kind))
        };
        Some(Self::Statistic { kind, from, grain, statistic })
    }

    /// What a load is, which is printed above a block, too.
    fn is_setting(&self) -> bool {
        let settings = ["max_concurrency", "request_rate", "burstiness"];
        matches!(self, Self::Field(field) if settings.contains(&field.key))
    }

    /// Puts the value into the result, or returns the reason why it cannot be there.
    fn set(&self, result: &mut ToolResult, value: &Json) -> Result<(), String> {
        match self {
            Self::Field(field) => (field.set)(result, value)?,
            Self::Statistic { kind, from, grain, statistic } => {
                let ms = figure(value)?;
                let latency = result.latency_mut(*kind, *from, *grain);
                let is_ranked = !["mean", "std"].contains(&statistic.as_str());
                if is_ranked && LISTED_MAX <= latency.percentiles_ms.len() {
                    return Err(format!("is beyond the {LISTED_MAX} percentiles that are kept"));
                }
                latency.has_p50 |= statistic == "p50";
                latency.set(statistic.strip_prefix('p').unwrap_or(statistic), ms);
            }
            Self::Extra(key) => {
                let value = figure(value)?;
                // So the tool writes it for a run without audio.
                if *key == extra::REAL_TIME_FACTOR.key && value == 0.0 {
                    return Ok(());
                }
                if LISTED_MAX <= result.further.len() {
                    return Err(format!(
                        "is beyond the {LISTED_MAX} further figures that are kept"
                    ));
                }
                result.further.insert(key.clone(), value);
            }
        }
        Ok(())
    }
}

/// A line with a known label; its value is missing where the tool printed that there is none.
fn labelled(text: &str) -> Option<(&str, Target, Option<Json>)> {
    let (label, value) = text.split_once(':')?;
    let label = label.trim();
    let target = Target::from_label(label)?;
    let value = value.split_whitespace().next().filter(|value| *value != "None");
    // A position is printed in per cent.
    let scale = if label.starts_with("Position ") { 100.0 } else { 1.0 };
    let number = |value: &str| value.parse::<f64>().ok().map(|number| Json::Number(number / scale));
    let value = value.map(|value| number(value).unwrap_or_else(|| shown(value).into()));
    Some((label, target, value))
}

/// A printed block of which not all lines are read.
#[derive(Debug)]
struct OpenBlock {
    result: ToolResult,
    figures: usize,
    latencies: usize,
}

impl OpenBlock {
    fn read(&mut self, line: u32, text: &str) {
        let Some((label, target, value)) = labelled(text) else {
            if let Some((label, _)) = text.split_once(':')
                && label != extra::POSITIONS_LABEL
            {
                note(&mut self.result, line, &shown(label));
            }
            return;
        };
        let Some(value) = value else { return };
        // The total changed its letter after failures had got their line, and is below them.
        match label {
            "Failed requests" | "Total token throughput (tok/s)" => {
                self.result.source.form = Form::Block;
            }
            "Total Token throughput (tok/s)" => self.result.source.form = Form::OldBlock,
            _ => {}
        }
        match target.set(&mut self.result, &value) {
            Ok(()) => {
                self.figures += 1;
                let is_latency = matches!(target, Target::Statistic { from, .. } if from != CountsFrom::Schedule);
                self.latencies += usize::from(is_latency);
            }
            Err(reason) => note(&mut self.result, line, &format!("{label} {reason}")),
        }
    }
}

/// The plain values of a JSON object as a result.
fn read_entries(entries: Vec<(String, Json)>, line: u32) -> ToolResult {
    let mut result = new_result(Form::Document, line);
    let place = |name: &str| entries.iter().position(|(key, _)| key == name);
    // Where the parameters begin that a sweep adds behind a result's own keys.
    let parameters = place(RUN_NUMBER).or_else(|| {
        place(BENCHMARK_NAME)?;
        let last = entries.iter().rposition(|(key, _)| Target::from_key(key).is_some());
        Some(last.map_or(0, |last| last + 1))
    });
    let own = entries.iter().filter(|(_, value)| *value != Json::Null);
    let own: BTreeSet<String> =
        own.map(|(key, _)| key.clone()).filter(|key| Target::from_key(key).is_some()).collect();
    for (place, (key, value)) in entries.into_iter().enumerate() {
        let own_key = key.replace('-', "_");
        // A parameter of a sweep in its other spelling repeats what the result states.
        if value == Json::Null || (own_key != key && own.contains(&own_key)) {
            continue;
        }
        if let Some(target) = Target::from_key(&own_key) {
            if let Err(reason) = target.set(&mut result, &value) {
                note(&mut result, line, &format!("{} {reason}", shown(&key)));
            }
            continue;
        }
        // The tool writes its `--metadata` as texts among its own keys; the parameters of a sweep
        // may be numbers, too.
        let is_parameter = parameters.is_some_and(|from| from <= place);
        let described = match value {
            Json::Text(text) if text.len() > NAME_BYTES_MAX => None,
            Json::Text(text) if take_own_key(&mut result, &key, &text) => continue,
            Json::Text(text) => Some(text),
            Json::Number(number) if is_parameter => Some(number.to_string()),
            Json::Flag(flag) if is_parameter => Some(flag.to_string()),
            Json::Null
            | Json::Flag(_)
            | Json::Count(_)
            | Json::Number(_)
            | Json::List(_)
            | Json::Map(_) => None,
        };
        match described.filter(|_| result.metadata.len() < LISTED_MAX) {
            Some(text) => result.metadata.push((shown(&key), text)),
            None => note(&mut result, line, &shown(&key)),
        }
    }
    result
}

/// Whether the key is one of ours and its value was taken.
fn take_own_key(result: &mut ToolResult, key: &str, value: &str) -> bool {
    match key {
        RUN => value.clone_into(&mut result.source.name),
        VERSION => result.source.version = Some(format!("inferometer {value}")),
        VERDICT => match verdict(value) {
            None => return false,
            verdict => result.verdict = verdict,
        },
        // People may write it into their metadata with another meaning.
        MEASURED_BY if names_a_tool(value) => result.source.version = Some(value.to_owned()),
        SIMULATED if value == "true" => result.source.simulated = true,
        _ => return false,
    }
    true
}

pub(crate) fn verdict(key: &str) -> Option<Verdict> {
    let all = [Verdict::Valid, Verdict::Simulated, Verdict::Degraded, Verdict::Invalid];
    all.into_iter().find(|verdict| verdict.key() == key)
}

/// Puts the lists into the result. Those that do not fit the first of them are left out and noted.
fn take_lists(result: &mut ToolResult, line: u32, lists: Vec<(String, Json)>) {
    let mut requests: Option<Vec<ResultRequest>> = None;
    for (key, list) in lists {
        let Json::List(values) = list else {
            note(result, line, &format!("{key} is not a list"));
            continue;
        };
        let Some(column) = COLUMNS.iter().find(|column| column.key == key) else {
            for (position, share) in values.iter().enumerate() {
                let target = Target::Extra(extra::position_key(position));
                if let Err(reason) = target.set(result, share) {
                    note(result, line, &format!("{key}, position {position}, {reason}"));
                    break;
                }
            }
            continue;
        };
        let rows = requests.get_or_insert_with(|| vec![ResultRequest::default(); values.len()]);
        if rows.len() != values.len() {
            let (here, others) = (values.len(), rows.len());
            let what = format!("{key} has {here} values, and the lists before it have {others}");
            note(result, line, &what);
            continue;
        }
        let set = rows.iter_mut().zip(values).map(|(row, value)| (column.set)(row, value));
        match set.filter(Result::is_err).count() {
            0 => {}
            count => note(result, line, &format!("{key}: {count} values are none")),
        }
    }
    // The tool writes zeros for a request that failed. No first token came in no time.
    for request in requests.iter_mut().flatten() {
        request.ttft_s = request.ttft_s.filter(|seconds| 0.0 < *seconds);
        request.e2e_s = request.e2e_s.filter(|seconds| 0.0 < *seconds);
        if request.error.as_ref().is_some_and(|error| !error.is_empty()) {
            request.output_tokens = request.output_tokens.filter(|tokens| 0 < *tokens);
        }
    }
    result.requests = requests;
}

/// Limit for a server's command, which may be wrapped over lines.
const COMMAND_BYTES_MAX: usize = 4096;

/// What a text states above its results: the cap, the rate, the progress bar, headings, and the
/// commands of the server and of the client.
#[derive(Debug, Default)]
struct Above {
    /// Stated since the last block, for the next one: the line, the label, the field and the value.
    settings: Vec<(u32, String, &'static Field, Json)>,
    /// The total of the last progress bar, and what the last command names: several blocks may follow
    /// it.
    stated: ToolResult,
    heading: String,
    server: String,
    /// Whether the open command is the server's, and whether its lines are comments.
    command: Option<(bool, bool)>,
    /// Inside of a block of code, where `#` begins a comment and not a heading.
    is_fenced: bool,
}

impl Above {
    fn read(&mut self, line: u32, text: &str) {
        if let Some((label, target, value)) = labelled(text)
            && target.is_setting()
            && let Target::Field(field) = target
        {
            self.settings.retain(|(_, _, stated, _)| stated.key != field.key);
            self.settings.extend(value.map(|value| (line, label.to_owned(), field, value)));
        }
        self.stated.requests_planned = progress_total(text).or(self.stated.requests_planned);
        self.read_command(text);
    }

    /// A block below all this. What was stated for one run does not apply to the next.
    fn new_block(&mut self, line: u32) -> ToolResult {
        let source = new_result(Form::OldBlock, line).source;
        let mut result = ToolResult { source, ..self.stated.clone() };
        self.stated.requests_planned = None;
        self.describe(&mut result);
        for (line, label, field, value) in self.settings.drain(..) {
            if let Err(reason) = (field.set)(&mut result, &value) {
                note(&mut result, line, &format!("{label} {reason}"));
            }
        }
        result
    }

    /// The heading and command above a result: two lines, for its configuration to be found from.
    fn describe(&self, result: &mut ToolResult) {
        result.tensor_parallel = result.tensor_parallel.or(self.stated.tensor_parallel);
        if !self.heading.is_empty() || !self.server.is_empty() {
            result.configuration = format!("{}\n{}", self.heading, self.server);
        }
    }

    fn read_command(&mut self, text: &str) {
        if text.starts_with("```") {
            self.is_fenced = !self.is_fenced;
            self.command = None;
            return;
        }
        let words = text.trim_start_matches('#').trim();
        let is_comment = text.starts_with('#');
        let stated = &mut self.stated;
        if let Some(is_server) = begins_command(words, is_comment) {
            if is_server {
                self.server.clear();
                stated.tensor_parallel = None;
            } else {
                (stated.tokenizer, stated.backend) = (None, None);
            }
            self.command = Some((is_server, is_comment));
        } else if text.is_empty()
            || self.command.is_none_or(|(_, commented)| commented != is_comment)
        {
            self.command = None;
            // Neither `#!` nor `#word`.
            let is_heading = is_comment && text.trim_start_matches('#').starts_with(' ');
            if is_heading && !self.is_fenced {
                self.heading = shown(words);
            }
        }
        let set = |field: &mut Option<String>, named: Option<&str>| {
            *field = named.map(shown).or_else(|| field.take());
        };
        set(&mut stated.model, argument_of(words, "model"));
        match self.command {
            Some((true, _)) => {
                let room = COMMAND_BYTES_MAX.saturating_sub(self.server.len());
                self.server.extend(words.chars().filter(|c| !c.is_control()).take(room / 4));
                self.server.push(' ');
                let gpus = value_of(words, &["-tp", "--tp", "--tp-size", "--tensor-parallel-size"]);
                let gpus = gpus.and_then(|gpus| gpus.parse().ok()).filter(|gpus| 0 < *gpus);
                stated.tensor_parallel = gpus.or(stated.tensor_parallel);
            }
            Some((false, _)) => {
                set(&mut stated.tokenizer, argument_of(words, "tokenizer"));
                set(&mut stated.backend, argument_of(words, "backend"));
            }
            None => {}
        }
    }
}

/// Whether a command of the server (`true`) or of the client begins here.
fn begins_command(words: &str, is_comment: bool) -> Option<bool> {
    let named = |name: &str| {
        let begins = words.get(..name.len()).is_some_and(|word| word.eq_ignore_ascii_case(name));
        is_comment && begins && !words[name.len()..].starts_with(char::is_alphanumeric)
    };
    let runs = |names: &[&str]| names.iter().any(|name| words.contains(name));
    let is_client = runs(&["bench serve", "benchmark_serving", "bench_serving"]);
    if is_client || words.starts_with("Namespace(") || named("client") {
        Some(false)
    } else if runs(&["vllm serve", "openai.api_server", "launch_server"]) || named("server") {
        Some(true)
    } else {
        None
    }
}

/// The value of a flag in a command line; flags may be written with underscores.
fn value_of<'a>(words: &'a str, flags: &[&str]) -> Option<&'a str> {
    let mut tokens = words.split_whitespace();
    while let Some(token) = tokens.next() {
        let (flag, value) = token.split_once('=').map_or((token, None), |(f, v)| (f, Some(v)));
        if flag.starts_with('-') && flags.contains(&flag.replace('_', "-").as_str()) {
            let value = value.or_else(|| tokens.next())?.trim_matches(['\'', '"']);
            return (!value.is_empty()).then_some(value);
        }
    }
    None
}

/// The value of an argument as the tool prints it, `name='value'`, or of its flag.
fn argument_of<'a>(words: &'a str, name: &str) -> Option<&'a str> {
    let printed = ["(", " "].into_iter().find_map(|before| {
        let (_, rest) = words.split_once(&format!("{before}{name}='"))?;
        rest.split_once('\'').map(|(value, _)| value)
    });
    printed.or_else(|| value_of(words, &[&format!("--{name}")]))
}

/// The right side of `| 1015/2000 [`, of the last state of a progress bar.
fn progress_total(text: &str) -> Option<u64> {
    let (bar, _) = text.rsplit_once(" [")?;
    let (done, total) = bar.rsplit_once('|')?.1.trim().split_once('/')?;
    done.parse::<u64>().ok().and(total.parse().ok())
}

/// Puts Python's bare `NaN` and `Infinity` into quotes: its JSON writer leaves them so, no JSON
/// reader takes them, and a record must not be lost for one of its figures.
pub(crate) fn quote_bare_words(text: &str) -> Cow<'_, str> {
    if !text.contains("NaN") && !text.contains("Infinity") {
        return Cow::Borrowed(text);
    }
    let mut quoted = String::with_capacity(text.len() + 64);
    // The last character that is no space: in an indented list a word is alone on its line.
    let mut before = ' ';
    let (mut in_string, mut escaped, mut skip_to) = (false, false, 0);
    for (place, c) in text.char_indices() {
        // No string spans lines.
        (in_string, escaped) = if c == '\n' { (false, false) } else { (in_string, escaped) };
        if place < skip_to {
            continue;
        }
        let words = ["-Infinity", "Infinity", "NaN"].into_iter();
        let mut words = words.filter(|_| !in_string && [':', ',', '['].contains(&before));
        if let Some(word) = words.find(|word| text[place..].starts_with(word)) {
            quoted.extend(["\"", word, "\""]);
            skip_to = place + word.len();
            before = '"';
            continue;
        }
        quoted.push(c);
        if c == '"' && !escaped {
            in_string = !in_string;
        }
        escaped = in_string && c == '\\' && !escaped;
        if !c.is_whitespace() {
            before = c;
        }
    }
    Cow::Owned(quoted)
}

#[cfg(test)]
mod above_tests {
    use super::*;

    #[test]
    fn a_progress_bar_tells_how_many_were_planned() {
        assert_eq!(progress_total("100%|███| 1024/1024 [01:35<00:00, 10.68it/s]"), Some(1024));
        assert_eq!(progress_total(" 50%|█  | 9/2000 [a]\r 51%|█ | 1015/2000 [b]"), Some(2000));
        assert_eq!(progress_total("a | b/c [d]"), None);
        assert_eq!(progress_total("1/2"), None);
    }

    #[test]
    fn a_command_names_its_model() {
        let command = "python benchmark_serving.py --model org/name --tokenizer other";
        assert_eq!(argument_of(command, "model"), Some("org/name"));
        assert_eq!(argument_of("bench --model='org/name' -x", "model"), Some("org/name"));
        let arguments = "Namespace(backend='vllm', model='org/name', served_model_name='x')";
        assert_eq!(argument_of(arguments, "model"), Some("org/name"));
        assert_eq!(argument_of("--model-impl vllm", "model"), None);
        assert_eq!(argument_of("--model ", "model"), None);
    }

    fn read_lines(lines: &[&str]) -> ToolResult {
        let mut above = Above::default();
        for (number, text) in (1..).zip(lines) {
            above.read(number, text);
        }
        above.new_block(1)
    }

    #[test]
    fn a_server_says_over_how_many_gpus_it_is_spread() {
        for flag in ["-tp 4", "-tp=4", "--tensor-parallel-size 4", "--tensor_parallel_size=4"] {
            let command = format!("$ VLLM_X=0 vllm serve org/name {flag} --gpu_memory_utiliz");
            let result =
                read_lines(&["# Server", &command, "ation=0.98 --max-num-seqs 64", "", "x -tp 8"]);
            assert_eq!(result.tensor_parallel, Some(4), "{flag}");
            assert!(result.configuration.ends_with("ation=0.98 --max-num-seqs 64 "));
        }
        let again = read_lines(&["vllm serve a -tp 4", "", "vllm serve b"]);
        assert_eq!(again.tensor_parallel, None, "another server, which does not say");
        assert_eq!(read_lines(&["vllm serve a -tp 0"]).tensor_parallel, None);
    }

    #[test]
    fn a_client_says_its_api_and_tokenizer() {
        let command = "python benchmark_serving.py --backend openai-chat --model m \\";
        let result = read_lines(&["# Title", "", command, "--tokenizer 't' --port 1"]);
        assert_eq!(result.backend.as_deref(), Some("openai-chat"));
        assert_eq!(result.tokenizer.as_deref(), Some("t"));
        assert_eq!(result.configuration, "Title\n", "no server was named");
        let printed = read_lines(&["Namespace(backend='vllm', tokenizer=None, model='m')"]);
        assert_eq!((printed.backend.as_deref(), printed.tokenizer), (Some("vllm"), None));
    }

    #[test]
    fn a_comment_in_code_is_no_heading() {
        let result = read_lines(&["## Engine v1", "```", "# nothing to see", "#!/bin/sh"]);
        assert_eq!(result.configuration, "Engine v1\n");
    }
}

#[cfg(test)]
mod block_tests {
    use super::*;

    fn key_of(label: &str) -> Option<String> {
        Some(match Target::from_label(label)? {
            Target::Field(field) => field.key.to_owned(),
            Target::Statistic { kind, statistic, .. } => format!("{statistic} of {kind:?}"),
            Target::Extra(key) => key,
        })
    }

    #[test]
    fn labels_are_known_in_any_case_and_percentile() {
        let total = Some("total_token_throughput".to_owned());
        assert_eq!(key_of("Total Token throughput (tok/s)"), total);
        assert_eq!(key_of("Total token throughput (tok/s)"), total);
        assert_eq!(key_of("P99.9 E2EL (ms)").as_deref(), Some("p99.9 of E2e"));
        assert_eq!(key_of("P101 E2EL (ms)"), None);
        assert_eq!(key_of("Pinf E2EL (ms)"), None);
        let further = |key: &str| Some(key.to_owned());
        assert_eq!(key_of("Acceptance rate (%)"), further("spec_decode_acceptance_rate"));
        assert_eq!(key_of("Median probe E2EL (ms)"), further("probe_median_e2el_ms"));
        assert_eq!(key_of("P90 Client Queue Time (ms)"), further("p90_client_queue_time_ms"));
        assert_eq!(key_of("Position 4000000000"), None);
        assert_eq!(key_of("Cost (EUR)"), None);
    }
}

#[cfg(test)]
mod lines_tests {
    use super::*;

    #[test]
    fn lines_keep_their_numbers_over_a_jump() {
        let text = "a\r\n {\n\n} c\nd";
        let mut found = Vec::new();
        let next = scan(
            text,
            |_, rest| rest.starts_with('{'),
            |number, piece| {
                found.push(match piece {
                    Piece::Line(line) => (number, line.to_owned()),
                    Piece::Object(object) => (number, format!("{:?}", object.unwrap())),
                });
                true
            },
        );
        let expected = [(1, "a"), (2, "Map([])"), (4, " c"), (5, "d")];
        assert_eq!(found, expected.map(|(number, text)| (number, text.to_owned())));
        assert_eq!(next, 6);
    }

    #[test]
    fn only_bare_words_are_quoted() {
        let text =
            "{\"a\": NaN, \"b\": [-Infinity,Infinity], \"NaN\": \"x\\\": NaN\"}\n\" 5: Infinity";
        let expected = "{\"a\": \"NaN\", \"b\": [\"-Infinity\",\"Infinity\"], \"NaN\": \"x\\\": NaN\"}\n\" 5: Infinity";
        assert_eq!(quote_bare_words(text), expected);
        assert!(matches!(quote_bare_words("{\"a\": 1}"), Cow::Borrowed(_)));
        let indented = "{\"a\": [\n  1,\n  NaN,\n  -Infinity\n],\n\"b\":\nInfinity}\nNaN";
        let expected =
            "{\"a\": [\n  1,\n  \"NaN\",\n  \"-Infinity\"\n],\n\"b\":\n\"Infinity\"}\nNaN";
        assert_eq!(quote_bare_words(indented), expected);
    }
}
