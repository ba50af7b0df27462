//! `cargo rivals`: this tool and other benchmark clients against the same engine, in one run.
//!
//! Every client has one core and the engine another. Absolute numbers belong to the machine they
//! were measured on; only the ratio of two rows of the same table is meaningful elsewhere. A rival
//! that is missing, fails or exceeds the time limit is a row that says so.

#![expect(clippy::print_stderr, reason = "a chore reports its progress")]

mod bench;
mod drop_in;
mod engine;
mod fidelity;
mod front;
mod install;
mod memory;
mod open_loop;
mod options;
mod program;
mod scaling;
mod section;
mod sizes;
mod statistics;
mod table;
mod throughput;
mod tokenizer;
mod tool;
mod tools;
mod truth;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use bench::Bench;
use front::Transport;
use options::{Measurement, Options};
use section::Section;
use serde_json::{Map, Value, json};
use sizes::Sizes;
use table::Table;
use tool::Tool;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["help" | "--help" | "-h", ..] => {
            eprint!("{}{}", options::HELP, drop_in::HELP);
            Ok(())
        }
        ["drop-in", words @ ..] => drop_in::drop_in(words),
        words => rivals(words),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("rivals: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Builds our own program in release mode.
fn build() -> bool {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let words = ["build", "--release", "--package", "inferometer-cli"];
    Command::new(cargo).args(words).status().is_ok_and(|status| status.success())
}

/// Installs the rivals or measures them, and builds our own program unless `--binary` names one.
fn rivals(words: &[&str]) -> Result<(), String> {
    let options = Options::parse(words)?;
    if let Some(folder) = &options.install {
        return install::install(folder, &options.tools);
    }
    if options.binary.is_none() && !build() {
        return Err("our own program was not built".to_owned());
    }
    let bench = Bench::new(&options, &target_folder()?)?;
    let sizes = if options.quick { Sizes::SMALL } else { Sizes::FULL };
    let sizes = Sizes {
        rounds: options.rounds.unwrap_or(sizes.rounds),
        seconds: options.seconds.unwrap_or(sizes.seconds),
        ..sizes
    };
    let mut pages = Pages::open(&bench, options.quick)?;
    pages.add(&the_tools(&bench, &options))?;
    for &measurement in &options.measurements {
        eprintln!("· {}", measurement.name());
        for section in measure(measurement, &bench, &options.tools, &sizes)? {
            pages.add(&section)?;
        }
    }
    eprintln!("· written to {}/rivals.md and rivals.json", bench.folder.display());
    Ok(())
}

fn measure(
    measurement: Measurement,
    bench: &Bench,
    tools: &[Tool],
    sizes: &Sizes,
) -> Result<Vec<Section>, String> {
    match measurement {
        Measurement::OneShot => Ok(vec![throughput::one_shot(bench, tools, sizes)?]),
        Measurement::Streams => [1, 8]
            .into_iter()
            .map(|events_per_write| throughput::streams(bench, tools, sizes, events_per_write))
            .collect(),
        Measurement::Fidelity => sizes
            .paced_streams
            .iter()
            .map(|&streams| fidelity::fidelity(bench, tools, sizes, streams, Transport::Plain))
            .collect(),
        Measurement::Memory => Ok(vec![memory::memory(bench, tools, sizes)]),
        Measurement::Drivers => Ok(vec![scaling::drivers(bench, tools, sizes)?]),
        Measurement::Transports => {
            let streams = sizes.paced_streams[0].max(sizes.secured_streams);
            let fidelity = |transport| fidelity::fidelity(bench, tools, sizes, streams, transport);
            let throughput = scaling::transports(bench, tools, sizes)?;
            Ok(vec![throughput, fidelity(Transport::Tls)?, fidelity(Transport::Http2)?])
        }
        Measurement::OpenLoop if tools.contains(&Tool::Ours) => {
            Ok(vec![open_loop::open_loop(bench, sizes)?])
        }
        Measurement::OpenLoop => Ok(Vec::new()),
    }
}

/// Who takes part, on what kind of day.
fn the_tools(bench: &Bench, options: &Options) -> Section {
    let versions: Vec<(Tool, Result<String, String>)> =
        options.tools.iter().map(|&tool| (tool, tool.version(bench))).collect();
    let load_average = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load_average = load_average.split(' ').next().unwrap_or_default().to_owned();
    let cores = format!(
        "Clients on core {}, engine on core {}; load average {load_average} at the start. On a \
         machine that does other work the numbers are that work's too.",
        bench.client_cores, bench.server_core
    );
    Section {
        key: "tools".to_owned(),
        facts: json!({
            "versions": versions
                .iter()
                .map(|(tool, version)| (tool.name().to_owned(), json!(version.as_ref().ok())))
                .collect::<Map<String, Value>>(),
            "client_core": bench.client_cores,
            "server_core": bench.server_core,
            "load_average": load_average,
            "quick": options.quick,
        }),
        table: Table {
            heading: "Tools".to_owned(),
            columns: vec!["tool", "release"],
            rows: versions
                .into_iter()
                .map(|(tool, version)| {
                    vec![tool.title().to_owned(), version.unwrap_or_else(|remedy| remedy)]
                })
                .collect(),
            remarks: vec![cores],
        },
    }
}

/// The report so far, on disk after every table: a later failure must not cost an earlier result.
struct Pages {
    folder: PathBuf,
    markdown: String,
    json: Map<String, Value>,
}

impl Pages {
    fn open(bench: &Bench, quick: bool) -> Result<Self, String> {
        let mut markdown = "# Beside the rivals\n\n".to_owned();
        if quick {
            markdown.push_str("Small sizes, to try the chore: these numbers measure nothing.\n\n");
        }
        let schema = ("schema".to_owned(), json!("inferometer.rivals/1"));
        let pages = Self { folder: bench.folder.clone(), markdown, json: Map::from_iter([schema]) };
        pages.write()?;
        Ok(pages)
    }

    #[expect(clippy::print_stdout, reason = "the tables are what this chore is run for")]
    fn add(&mut self, section: &Section) -> Result<(), String> {
        let markdown = section.table.markdown();
        println!("{markdown}");
        self.markdown.push_str(&markdown);
        self.json.insert(section.key.clone(), section.facts.clone());
        self.write()
    }

    fn write(&self) -> Result<(), String> {
        let json = serde_json::to_string_pretty(&self.json).map_err(|error| error.to_string())?;
        for (name, text) in [("rivals.md", &self.markdown), ("rivals.json", &json)] {
            std::fs::write(self.folder.join(name), text)
                .map_err(|error| format!("cannot write {name}: {error}"))?;
        }
        Ok(())
    }
}

/// The folder of this build, wherever it was told to be: this program lies two folders below it.
fn target_folder() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let target = program.parent().and_then(Path::parent);
    target.map(Path::to_path_buf).ok_or_else(|| "this program lies in no target folder".to_owned())
}
