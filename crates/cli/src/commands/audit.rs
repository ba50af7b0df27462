//! `inferometer audit`: whether published results can be true, without their server.

use std::path::Path;
use std::process::ExitCode;

use inferometer_analysis::Severity;
use inferometer_analysis::plausibility::{Finding, Published, Roofline, examine};
use inferometer_analysis::tool_result::{ToolResult, extra};
use inferometer_engine::profile::{Gpu, catalogue};
use inferometer_interchange::{PageFacts, page_facts, read_file};
use inferometer_model::import::ImportReading;
use inferometer_report::pages::plausibility::{AuditedSource, audit};
use serde::Serialize;

use super::{import, render_document, store, write_document};
use crate::arguments::AuditArguments;
use crate::failure::{Exit, Failure, Result};
use crate::{output, results};

/// One source with its findings.
#[derive(Debug, Serialize)]
struct Audited {
    name: String,
    tool: &'static str,
    results: Vec<ToolResult>,
    findings: Vec<Finding>,
}

pub(crate) fn run(arguments: &AuditArguments) -> Result<ExitCode> {
    let audited: Vec<Audited> = arguments
        .files
        .iter()
        .map(|path| examine_source(path, arguments))
        .collect::<Result<_>>()?;
    let sources: Vec<AuditedSource<'_>> = audited
        .iter()
        .map(|it| AuditedSource {
            name: &it.name,
            tool: it.tool,
            results: it.results.len(),
            findings: &it.findings,
        })
        .collect();
    let json = serde_json::json!({ "schema": "inferometer.audit/1", "sources": audited });
    let document = audit(&sources);
    write_document(&arguments.write, &render_document(arguments.write.format(), &document, &json))?;
    let gravest = audited.iter().flat_map(|it| &it.findings).map(|it| it.severity).max();
    let is_refused = match gravest {
        Some(Severity::Invalid) => true,
        Some(Severity::Degraded) => arguments.strict,
        Some(Severity::Note) | None => false,
    };
    Ok(if is_refused { Exit::RunInvalid.into() } else { ExitCode::SUCCESS })
}

fn examine_source(path: &Path, arguments: &AuditArguments) -> Result<Audited> {
    let is_file = path == Path::new(output::STDOUT) || path.is_file();
    let (name, mut results, mut facts) =
        if is_file { read_source(path)? } else { stored(path, arguments)? };
    facts.hardware = arguments.hardware.clone().or(facts.hardware);
    facts.model = arguments.model.clone().or(facts.model);
    for result in &mut results {
        let is_known = result.metadata.iter().any(|(key, _)| key == extra::HARDWARE);
        let hardware = facts.hardware.clone();
        if let Some(hardware) = hardware.filter(|_| !is_known || arguments.hardware.is_some()) {
            result.metadata.retain(|(key, _)| key != extra::HARDWARE);
            result.metadata.push((extra::HARDWARE.to_owned(), hardware));
        }
        if result.model.is_none() || arguments.model.is_some() {
            result.model.clone_from(&facts.model);
        }
        // The name of the file says nothing about one of its results.
        if result.source.name == name {
            result.source.name.clear();
        }
        if result.configuration == name {
            result.configuration.clear();
        }
    }
    let published = Published { results: &results, claims: &facts.claims, roofline: &roofline };
    let findings = examine(&published);
    let tool = results.first().map_or("no tool", |result| result.source.tool.program());
    Ok(Audited { name, tool, results, findings })
}

fn read_source(path: &Path) -> Result<(String, Vec<ToolResult>, PageFacts)> {
    let (name, bytes) = import::read(path)?;
    let import = read_file(&name, &bytes, &ImportReading::default());
    let about = |error| Failure::from_usage(error).about(&path.display().to_string());
    let results = import.map_err(about)?.results().cloned().collect();
    Ok((name, results, page_facts(&String::from_utf8_lossy(&bytes))))
}

/// Runs of ours count as `vllm bench serve` counts: over the whole run, like others.
fn stored(path: &Path, arguments: &AuditArguments) -> Result<(String, Vec<ToolResult>, PageFacts)> {
    let name = path.to_string_lossy().into_owned();
    let found = store(&arguments.store)?.find(&name).map_err(Failure::from_usage)?;
    let talk = output::talk_unless(arguments.write.quiet);
    let results = results::from_stored(&found, false, talk)?.into_iter();
    let whole = results.map(|it| match it.run {
        Some((_, summary)) => {
            ToolResult { configuration: it.result.configuration, ..ToolResult::of_vllm(&summary) }
        }
        None => it.result,
    });
    Ok((name, whole.collect(), PageFacts::default()))
}

/// The most that the named hardware could do with the named model. Everything that is not known is taken
/// so that the bound is too high rather than too low.
fn roofline(result: &ToolResult) -> Option<Roofline> {
    let (_, hardware) = result.metadata.iter().find(|(key, _)| key == extra::HARDWARE)?;
    let name = result.model.as_deref().unwrap_or(&result.configuration);
    let (gpu, gpus) =
        (gpu_in(hardware)?, count_in(hardware).or(result.tensor_parallel).unwrap_or(1));
    let (parameters, active) = parameters_in(name)?;
    let flops = [Some(gpu.flops.fp16), gpu.flops.bf16, gpu.flops.fp8, gpu.flops.int8];
    let flops = flops.into_iter().flatten().fold(0.0, f64::max) * f64::from(gpus);
    let lower = name.to_ascii_lowercase();
    let is_four_bit =
        ["int4", "gptq", "awq", "4bit", "w4", "fp4"].iter().any(|it| lower.contains(it));
    let bytes = active * if is_four_bit { 0.5 } else { 1.0 };
    let size = inferometer_report::fmt::compact(parameters / 1e9);
    Some(Roofline {
        name: format!("{gpus} × {} with {size} B parameters", gpu.title),
        tokens_per_s: flops / (2.0 * active),
        step_ms: bytes / (gpu.bandwidth * f64::from(gpus)) * 1e3,
    })
}

fn letters_of(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

/// The GPU whose longest name is in a text.
fn gpu_in(text: &str) -> Option<&'static Gpu> {
    let text = letters_of(text);
    let longest = |gpu: &Gpu| {
        let names = std::iter::once(&gpu.name).chain(&gpu.aliases).map(|name| letters_of(name));
        names.filter(|name| text.contains(name.as_str())).map(|name| name.len()).max()
    };
    let known = catalogue().hardware.iter().filter_map(|gpu| Some((longest(gpu)?, gpu)));
    known.max_by_key(|(length, _)| *length).map(|(_, gpu)| gpu)
}

/// `4×`, `8x` and `2 ×` at the beginning.
fn count_in(text: &str) -> Option<u32> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (count, rest) = text.split_at(digits);
    rest.trim_start().starts_with(['×', 'x', 'X', '*']).then(|| count.parse().ok())?
}

/// All parameters of a model and those that one token meets, by the sizes in its name: `24B`, `235B-A22B`.
fn parameters_in(name: &str) -> Option<(f64, f64)> {
    let size = |part: &str| {
        let number = part.strip_suffix(['b', 'B'])?;
        let number = number.strip_prefix(['a', 'A']).unwrap_or(number);
        number.parse::<f64>().ok().filter(|billions| 0.0 < *billions).map(|billions| billions * 1e9)
    };
    let parts = name.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.'));
    let sizes: Vec<f64> = parts.filter_map(size).collect();
    let all = sizes.iter().copied().reduce(f64::max)?;
    Some((all, sizes.into_iter().fold(all, f64::min)))
}
