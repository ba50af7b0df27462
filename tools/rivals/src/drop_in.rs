//! `cargo rivals drop-in`: one command line, given to `vllm bench serve` and to ours, on the same
//! paced engine.
//!
//! Where the definitions agree, so must the values; where vLLM's client misreads a legal stream,
//! ours must not. Then vLLM's own tool plots a sweep that ours made.

mod agree;
mod differ;
mod plot;
mod result;

use std::ffi::OsString;
use std::path::PathBuf;

use super::bench::Bench;
use super::engine::{Behaviour, Engine};
use super::options::Options;
use super::program::{last_words, run, words};
use super::tokenizer;
use super::tool::Tool;
use result::Figures;

pub(crate) const HELP: &str = "\
cargo rivals drop-in [FLAGS]    our `bench serve` beside the real one, on the same engine, and our
                                sweep in vLLM's plot tool; flags as for rivals (slow)
";

/// The client of vLLM, and ours with the same words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    Vllm,
    Ours,
}

impl Client {
    const BOTH: [Self; 2] = [Self::Vllm, Self::Ours];

    fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Ours => "ours",
        }
    }

    fn program(self, bench: &Bench) -> PathBuf {
        match self {
            Self::Vllm => Tool::Vllm.program(bench),
            Self::Ours => bench.binary.clone(),
        }
    }
}

/// What both are told, apart from where the engine is.
#[derive(Clone, Copy, Debug)]
struct Order {
    name: &'static str,
    /// Flags of the engine, beside its pace.
    engine: &'static str,
    flags: &'static str,
}

pub(crate) fn drop_in(words: &[&str]) -> Result<(), String> {
    let options = Options::parse(words)?;
    if let Some(folder) = &options.install {
        super::install::install(folder, &[Tool::Vllm])?;
        return plot::install(folder);
    }
    if options.binary.is_none() && !super::build() {
        return Err("our own program was not built".to_owned());
    }
    let bench = Bench::new(&options, &super::target_folder()?)?;
    let version = Tool::Vllm.version(&bench)?;
    let mut page = format!("# Beside `vllm bench serve` {version}\n\n");
    let agreed = agree::agree(&bench, &mut page);
    let differed = differ::differ(&bench, &mut page);
    let plotted = plot::plot(&bench, &mut page);
    show(&bench, &page)?;
    [agreed, differed, plotted].into_iter().collect()
}

#[expect(clippy::print_stdout, reason = "the tables are what this chore is run for")]
fn show(bench: &Bench, page: &str) -> Result<(), String> {
    println!("{page}");
    let path = bench.folder.join("drop-in.md");
    std::fs::write(&path, page).map_err(|error| format!("{}: {error}", path.display()))
}

/// One client on one engine that nobody has used before.
fn measure(client: Client, order: &Order, round: usize, bench: &Bench) -> Result<Figures, String> {
    eprintln!("· {}, {}, round {round}", order.name, client.name());
    let engine = Engine::start(Behaviour::PacedBut(order.engine), bench)?;
    let folder = bench.folder.join(format!(
        "drop-in-{}-{}-{round}",
        order.name.replace(' ', "-"),
        client.name()
    ));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let ran = run(&client.program(bench), &arguments(order, &engine, bench), &folder, bench)?;
    let document = ran.json(RESULT);
    match document {
        Ok(document) => Ok(Figures(document)),
        Err(why) => Err(format!("{why}: {}", last_words(&ran))),
    }
}

const RESULT: &str = "result.json";

fn arguments(order: &Order, engine: &Engine, bench: &Bench) -> Vec<OsString> {
    let mut line = words(["bench", "serve", "--base-url", &engine.url, "--model", "paced"]);
    line.push("--tokenizer".into());
    line.push(tokenizer::place(&bench.folder).into());
    line.extend(words(["--dataset-name", "random", "--random-input-len", "32", "--disable-tqdm"]));
    line.extend(words(["--percentile-metrics", "ttft,tpot,itl,e2el"]));
    line.extend(words(["--save-result", "--result-dir", ".", "--result-filename", RESULT]));
    line.extend(words(order.flags.split_whitespace()));
    line
}
