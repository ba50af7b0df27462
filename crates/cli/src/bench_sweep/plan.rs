//! What a sweep will run: its commands, its servers, and the loads of each.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser;
use inferometer_model::BaseUrl;
use inferometer_report::escape::terminal;
use inferometer_target::deploy::secret;
use jiff::Zoned;

use super::parameters::{self, Combination};
use super::run::{check_folder, pair_folder, server_log};
use crate::arguments::{Arguments, BenchCommand, Command, ServeSweepArguments};
use crate::bench::{Bench, origin, with_dashes};
use crate::failure::Failure;

const PAIRS_MAX: usize = 100_000;
const RUNS: u32 = 3;
const READY_TIMEOUT_S: u64 = 300;

/// What will be run.
pub(super) struct Plan<'a> {
    pub(super) typed: &'a ServeSweepArguments,
    pub(super) runs: u32,
    pub(super) warm_up_prompts: u32,
    pub(super) ready_timeout: Duration,
    pub(super) serve: Vec<String>,
    pub(super) bench: Vec<String>,
    pub(super) after: Option<Vec<String>>,
    pub(super) servers: Vec<Combination>,
    pub(super) loads: Vec<Combination>,
    pub(super) links: Vec<(String, String)>,
    pub(super) folder: PathBuf,
}

impl<'a> Plan<'a> {
    pub(super) fn new(typed: &'a ServeSweepArguments) -> Result<Self, Failure> {
        let runs = typed.num_runs.unwrap_or(RUNS);
        if runs == 0 {
            return Err(Failure::usage("--num-runs is 0: nothing would be measured"));
        }
        let bench = words("--bench-cmd", &typed.bench_cmd)?;
        let after = typed.after_bench_cmd.as_deref();
        let name = typed.experiment_name.clone();
        let name = name.unwrap_or_else(|| Zoned::now().strftime("%Y%m%d_%H%M%S").to_string());
        let folder = typed.output_dir.clone().unwrap_or_else(|| PathBuf::from("results"));
        let plan = Self {
            typed,
            runs,
            warm_up_prompts: typed.warmup_num_prompts.unwrap_or(0),
            ready_timeout: Duration::from_secs(
                typed.server_ready_timeout.unwrap_or(READY_TIMEOUT_S),
            ),
            serve: words("--serve-cmd", &typed.serve_cmd)?,
            bench: bench_flags(&bench)?,
            after: after.map(|typed| words("--after-bench-cmd", typed)).transpose()?,
            servers: parameters::read("--serve-params", typed.serve_params.as_deref())?,
            loads: parameters::read("--bench-params", typed.bench_params.as_deref())?,
            links: links(typed.link_vars.as_deref().unwrap_or_default())?,
            folder: folder.join(name),
        };
        check_folder(&plan.folder, typed.resume)?;
        plan.check_links()?;
        plan.check_pairs()?;
        plan.check_loads()?;
        Ok(plan)
    }

    fn check_links(&self) -> Result<(), Failure> {
        for (of_server, of_load) in &self.links {
            for (flag, key, combinations) in [
                ("--serve-params", of_server, &self.servers),
                ("--bench-params", of_load, &self.loads),
            ] {
                if !combinations.iter().any(|combination| combination.get(key).is_some()) {
                    return Err(Failure::usage(format!(
                        "--link-vars `{of_server}={of_load}`: no combination of {flag} has `{key}`"
                    ))
                    .hint("write SERVE_PARAM=BENCH_PARAM with the keys of the two files"));
                }
            }
        }
        Ok(())
    }

    /// Results of two pairs in one folder would be taken for each other, and so would logs.
    fn check_pairs(&self) -> Result<(), Failure> {
        let (mut places, mut pairs) = (BTreeSet::new(), 0);
        for server in &self.servers {
            address(&server.applied_to(&self.serve))?;
            let loads = self.loads_of(server);
            pairs += loads.len();
            if PAIRS_MAX < pairs {
                return Err(Failure::usage(format!("there are more than {PAIRS_MAX} pairs"))
                    .hint("choose fewer, or link them with --link-vars"));
            }
            let log = server_log(&self.folder, server);
            let folders = loads.into_iter().map(|load| pair_folder(&self.folder, server, load));
            for place in folders.chain([log]) {
                if let Some(place) = places.replace(place) {
                    let name = place.file_name().unwrap_or_default().to_string_lossy();
                    return Err(Failure::usage(format!(
                        "two combinations would share `{name}`, as `/` is `_` in names of files"
                    ))
                    .hint("name them in the file: {\"one\": {…}, \"two\": {…}}"));
                }
            }
        }
        if pairs == 0 {
            return Err(Failure::usage("--link-vars leaves no pair of a server and a load")
                .hint("linked parameters must be equal, and numbers and texts are not"));
        }
        Ok(())
    }

    /// What `bench serve` would refuse is refused before a server is started for it.
    fn check_loads(&self) -> Result<(), Failure> {
        let warm_up = (0 < self.warm_up_prompts).then(|| self.warm_up_of(&self.loads[0]));
        for load in self.loads.iter().chain(&warm_up) {
            let words = self.bench_words(load, &self.folder.join("run=0.part.json"));
            let keys = secret::values(&words);
            check_bench(&words).map_err(|failure| {
                let which = load.name();
                let with = if which.is_empty() { which } else { format!(" with {which}") };
                failure
                    .about(&format!("--bench-cmd{with}"))
                    .reworded(|text| secret::without(&keys, text))
            })?;
        }
        Ok(())
    }

    /// The flags of one run, which writes its result to this file.
    pub(super) fn bench_words(&self, load: &Combination, file: &Path) -> Vec<String> {
        let text = |part: Option<&std::ffi::OsStr>| {
            part.unwrap_or_default().to_string_lossy().into_owned()
        };
        let mut words = load.applied_to(&self.bench);
        words.extend(["--percentile-metrics", "ttft,tpot,itl,e2el"].map(str::to_owned));
        words.extend(["--save-result".to_owned(), "--result-dir".to_owned()]);
        words.push(text(file.parent().map(Path::as_os_str)));
        words.extend(["--result-filename".to_owned(), text(file.file_name())]);
        words
    }

    /// The same load with the prompts of a warm-up.
    pub(super) fn warm_up_of(&self, load: &Combination) -> Combination {
        load.with("num_prompts", self.warm_up_prompts.into())
    }

    /// The loads that belong to a server.
    pub(super) fn loads_of(&self, server: &Combination) -> Vec<&Combination> {
        let is_linked = |load: &&Combination| {
            self.links.iter().all(|(of_server, of_load)| {
                let (left, right) = (server.get(of_server), load.get(of_load));
                left.is_some() && left == right
            })
        };
        self.loads.iter().filter(is_linked).collect()
    }

    pub(super) fn outline(&self) -> Result<String, Failure> {
        let mut text = String::new();
        let (runs, mut total) = (self.runs, 0);
        for server in &self.servers {
            let serve = server.applied_to(&self.serve);
            let _ = writeln!(text, "server: {}", format_command(&serve));
            let _ = writeln!(text, "  awaited on {}", address(&serve)?);
            for load in self.loads_of(server) {
                let flags = load.applied_to(&self.bench);
                let _ = writeln!(text, "  {runs} × bench serve {}", format_command(&flags));
                total += u64::from(runs);
            }
        }
        let folder = terminal(&self.folder.display().to_string());
        Ok(text + &format!("{total} runs; results would go to {folder}\n"))
    }
}

/// A command as it may stand on a terminal: quoted, without its keys, and harmless.
pub(super) fn format_command(words: &[String]) -> String {
    let hidden = secret::hidden(words);
    let quoted = words.iter().zip(&hidden).map(|(word, hidden)| {
        let quoted = shlex::try_quote(word).ok().filter(|_| word == hidden);
        quoted.map_or_else(|| hidden.clone(), std::borrow::Cow::into_owned)
    });
    let text = quoted.collect::<Vec<_>>().join(" ");
    // A key may stand a second time where nothing names it.
    terminal(&secret::without(&secret::values(words), &text))
}

/// Without a model's name it is only parsed: the server would have to be asked for one.
fn check_bench(words: &[String]) -> Result<(), Failure> {
    let program = ["inferometer", "bench", "serve"].map(OsString::from);
    let typed = program.into_iter().chain(words.iter().map(OsString::from));
    let parsed = Arguments::try_parse_from(with_dashes(typed)).map_err(|error| unparsed(&error))?;
    let Some(Command::Bench(bench)) = parsed.command else { return Ok(()) };
    let BenchCommand::Serve(said) = bench.what else { return Ok(()) };
    if said.target.model.is_none() {
        return said.refused.check();
    }
    Bench::from_arguments(&said).map(|_| ())
}

/// Its first paragraph says what is wrong.
fn unparsed(error: &clap::Error) -> Failure {
    if !error.use_stderr() {
        return Failure::usage("it asks for help, and would measure nothing");
    }
    let text = error.to_string();
    let wrong = text.split("\n\n").next().unwrap_or_default();
    Failure::usage(wrong.trim_start_matches("error: ").trim())
        .hint("inferometer bench serve --help lists the flags")
}

fn links(typed: &str) -> Result<Vec<(String, String)>, Failure> {
    let pair = |part: &str| {
        let (server, load) = part.split_once('=').ok_or_else(|| {
            Failure::usage(format!("--link-vars `{part}`: write SERVE_PARAM=BENCH_PARAM"))
        })?;
        Ok((server.trim().to_owned(), load.trim().to_owned()))
    };
    typed.split(',').filter(|part| !part.trim().is_empty()).map(pair).collect()
}

/// Hosts of a server that listens on all addresses, this machine's own among them.
const EVERYWHERE: [&str; 3] = ["0.0.0.0", "::", "[::]"];

/// The words of a command, as a shell would split them. Nothing is expanded. It is not repeated
/// where it cannot be split: a key may be in it.
fn words(flag: &str, typed: &str) -> Result<Vec<String>, Failure> {
    let words = shlex::split(typed)
        .ok_or_else(|| Failure::usage(format!("{flag}: a quote is not closed")))?;
    if words.is_empty() {
        return Err(Failure::usage(format!("{flag} is empty: it names no command")));
    }
    Ok(words)
}

/// The words after `bench serve`: our client obeys these flags, whichever program is named.
fn bench_flags(words: &[String]) -> Result<Vec<String>, Failure> {
    let place = words.windows(2).position(|pair| pair[0] == "bench" && pair[1] == "serve");
    let Some(place) = place else {
        return Err(Failure::usage("--bench-cmd has no `bench serve`, so its flags are not known")
            .hint(
                "write it as for vLLM: --bench-cmd 'vllm bench serve --model … --num-prompts 100'",
            ));
    };
    Ok(words[place + 2..].to_vec())
}

/// Where a server with this command listens: `--host` and `--port`, as `vllm serve` has them.
pub(super) fn address(serve: &[String]) -> Result<BaseUrl, Failure> {
    let host = value(serve, &["--host"]).filter(|host| !EVERYWHERE.contains(host));
    let port = value(serve, &["--port", "-p"]).unwrap_or("8000");
    let url = origin(host.unwrap_or("127.0.0.1"), port);
    url.parse().map_err(|error| {
        Failure::usage(format!("--serve-cmd listens on `{url}`, which is no address: {error}"))
    })
}

fn value<'a>(words: &'a [String], flags: &[&str]) -> Option<&'a str> {
    words.iter().enumerate().rev().find_map(|(at, word)| {
        if flags.contains(&word.as_str()) {
            return words.get(at + 1).map(String::as_str);
        }
        let (flag, value) = word.split_once('=')?;
        flags.contains(&flag).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(typed: &str) -> Vec<String> {
        words("--serve-cmd", typed).unwrap()
    }

    #[test]
    fn flags_of_the_benchmark_are_found_behind_any_program() {
        for typed in [
            "vllm bench serve --model 'a b'",
            "python -m vllm.entrypoints.cli.main bench serve --model 'a b'",
        ] {
            assert_eq!(bench_flags(&split(typed)).unwrap(), ["--model", "a b"]);
        }
        assert!(bench_flags(&split("bench_serving --model x")).is_err());
        assert!(words("--serve-cmd", "vllm 'x").is_err() && words("--serve-cmd", " ").is_err());
    }

    #[test]
    fn the_last_address_counts() {
        let at = |typed: &str| address(&split(typed)).unwrap().to_string();
        assert_eq!(at("vllm serve m"), "http://127.0.0.1:8000");
        assert_eq!(at("vllm serve m --host 0.0.0.0 --port 1 --port=8123"), "http://127.0.0.1:8123");
        assert_eq!(at("x --host localhost -p 9"), "http://localhost:9");
        assert_eq!(at("x --host ::1"), "http://[::1]:8000");
        assert_eq!(at("x --host :: --port 1"), "http://127.0.0.1:1");
        assert!(address(&split("vllm serve m --port x")).is_err());
    }
}
