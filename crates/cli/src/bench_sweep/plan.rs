//! What a sweep will run: its commands, its servers, and the loads of each.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::command;
use super::experiment::Experiment;
use super::parameters::{self, Combination};
use crate::failure::Failure;

/// All that was asked for.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each was typed by itself")]
pub(crate) struct Asked<'a> {
    pub(crate) serve_command: &'a str,
    pub(crate) bench_command: &'a str,
    pub(crate) after_bench_command: Option<&'a str>,
    pub(crate) serve_parameters: Option<&'a Path>,
    pub(crate) bench_parameters: Option<&'a Path>,
    /// Pairs of parameters that must be equal, as `SERVE=BENCH,…`.
    pub(crate) links: &'a str,
    pub(crate) folder: PathBuf,
    pub(crate) runs: u32,
    pub(crate) warm_up_prompts: u32,
    pub(crate) ready_timeout: Duration,
    pub(crate) show_output: bool,
    pub(crate) continue_on_error: bool,
    pub(crate) dry_run: bool,
    pub(crate) resume: bool,
}

/// What will be run.
pub(super) struct Plan<'a> {
    pub(super) asked: &'a Asked<'a>,
    pub(super) serve: Vec<String>,
    pub(super) bench: Vec<String>,
    pub(super) after: Option<Vec<String>>,
    pub(super) servers: Vec<Combination>,
    pub(super) loads: Vec<Combination>,
    pub(super) links: Vec<(String, String)>,
    pub(super) experiment: Experiment,
}

impl<'a> Plan<'a> {
    pub(super) fn of(asked: &'a Asked<'a>) -> Result<Self, Failure> {
        if asked.runs == 0 {
            return Err(Failure::usage("--num-runs is 0: nothing would be measured"));
        }
        let bench = command::words("--bench-cmd", asked.bench_command)?;
        let after = asked.after_bench_command;
        Ok(Self {
            asked,
            serve: command::words("--serve-cmd", asked.serve_command)?,
            bench: command::bench_flags(&bench)?,
            after: after.map(|typed| command::words("--after-bench-cmd", typed)).transpose()?,
            servers: parameters::read("--serve-params", asked.serve_parameters)?,
            loads: parameters::read("--bench-params", asked.bench_parameters)?,
            links: links(asked.links)?,
            experiment: Experiment::open(asked.folder.clone(), asked.resume)?,
        })
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
        let mut runs = 0;
        for server in &self.servers {
            let serve = server.applied_to(&self.serve);
            let _ = writeln!(text, "server: {}", joined(&serve));
            let _ = writeln!(text, "  awaited on {}", command::address(&serve)?);
            for load in self.loads_of(server) {
                let flags = load.applied_to(&self.bench);
                let _ = writeln!(text, "  {} × bench serve {}", self.asked.runs, joined(&flags));
                runs += self.asked.runs;
            }
        }
        let folder = self.experiment.folder().display();
        Ok(text + &format!("{runs} runs; results would go to {folder}\n"))
    }
}

pub(super) fn joined(words: &[String]) -> String {
    let quoted = words.iter().map(|word| {
        shlex::try_quote(word).map_or_else(|_| word.clone(), std::borrow::Cow::into_owned)
    });
    quoted.collect::<Vec<_>>().join(" ")
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
