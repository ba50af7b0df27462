//! `inferometer ui`: stored runs in a browser.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;

use inferometer_analysis::{Verdict, metric};
use inferometer_model::{Outcome, file};
use inferometer_report::document::Document;
use inferometer_report::fmt::counted;
use inferometer_store::{ImportDirectory, RunStore, SetDirectory, Stored};
use inferometer_web::{Entry, NamedResult, Reader, Server, Settings, Stopper, Token};

use super::runs::{SetQuestion, StoredImport, entry, run_entry, verdict};
use super::store_folder;
use crate::arguments::{StoreArguments, UiArguments};
use crate::failure::{Failure, Result};
use crate::report_files::{open_in_browser, stored_csv, stored_document, together_document};
use crate::{output, results, signals};

const PORT: u16 = 7431;
/// A shorter token could be guessed.
const TOKEN_CHARS_MIN: usize = 16;

pub(crate) fn run(arguments: &UiArguments) -> Result<ExitCode> {
    let named = arguments.runs.as_ref().or(arguments.store.folder.as_ref());
    let folder = store_folder(&StoreArguments { folder: named.cloned() });
    RunStore::open(folder.clone()).map_err(Failure::from_usage)?;
    let host = arguments.host.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let token = arguments.token.as_deref().map(read_token).transpose()?;
    if !host.is_loopback() && token.is_none() {
        return Err(Failure::usage(format!("everyone who reaches {host} could read the results"))
            .hint("set a token with --token FILE, or leave out --host"));
    }
    let program = std::env::current_exe().map_err(Failure::from_error)?;
    let settings = Settings { folder, token, runs_with: arguments.allow_run.then_some(program) };
    let server = bind(host, arguments.port)?;
    let stopper = Stopper::default();
    let on_signal = stopper.clone();
    let interruption = signals::end_with(move || on_signal.stop())?;
    let url = format!("http://{}/", server.address());
    output::result(&format!("{url}\n"))?;
    if arguments.open
        && let Err(why) = open_in_browser(Path::new(&url))
    {
        output::talk(&format!("no browser was opened: {why}"));
    }
    server.serve(settings, Box::new(StoredReader), &stopper).map_err(Failure::from_error)?;
    Ok(interruption.exit().map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// The port that is asked for; otherwise ours, or any that is free.
fn bind(host: IpAddr, port: Option<u16>) -> Result<Server> {
    let at = SocketAddr::new(host, port.unwrap_or(PORT));
    let bound = Server::bind(at).or_else(|error| {
        let is_taken = port.is_none() && error.kind() == ErrorKind::AddrInUse;
        if is_taken { Server::bind(SocketAddr::new(host, 0)) } else { Err(error) }
    });
    bound.map_err(|error| {
        Failure::usage(format!("cannot listen on {at}: {error}"))
            .hint("choose another port with --port, or another address with --host")
    })
}

fn read_token(path: &Path) -> Result<Token> {
    let shown = path.display();
    let bytes = file::read(path, 4 << 10)
        .map_err(|error| Failure::usage(format!("the token in {shown} cannot be read: {error}")))?;
    let token = String::from_utf8_lossy(&bytes).trim().to_owned();
    if token.chars().count() < TOKEN_CHARS_MIN {
        return Err(Failure::usage(format!("the token in {shown} is too short"))
            .hint(format!("write at least {TOKEN_CHARS_MIN} characters into the file")));
    }
    Ok(Token::new(&token))
}

/// Reads what is stored by the code of the other commands.
struct StoredReader;

impl Reader for StoredReader {
    fn entry(&self, found: &Stored) -> Entry {
        match found {
            Stored::Run(run) => run_entry(run, run.manifest().ok().as_ref(), &run.state()),
            Stored::Set(set) => set_entry(set),
            Stored::Import(import, _) => import_entry(import),
        }
    }

    fn page(&self, found: &Stored) -> Result<Document, String> {
        stored_document(found).map_err(|failure| message(&failure))
    }

    fn together(&self, found: &[Stored]) -> Result<Document, String> {
        together_document(found).map_err(|failure| message(&failure))
    }

    fn results(&self, found: &Stored) -> Result<Vec<NamedResult>, String> {
        let results =
            results::from_stored(found, false, |_| {}).map_err(|failure| message(&failure))?;
        let named = |it: results::StoredResult| NamedResult {
            name: it.name,
            result: it.result,
            summary: it.run.map(|(_, summary)| summary),
        };
        Ok(results.into_iter().map(named).collect())
    }

    fn csv(&self, found: &Stored) -> Result<String, String> {
        stored_csv(found).map_err(|failure| message(&failure))
    }
}

/// The message with its hints.
fn message(failure: &Failure) -> String {
    failure.lines().join("\n")
}

fn set_entry(set: &SetDirectory) -> Entry {
    let mut entry = entry(set.id(), "set", &set.state());
    entry.verdict = verdict(set).unwrap_or_default();
    if let Ok(manifest) = set.manifest() {
        let question = SetQuestion::new(&manifest.study);
        question.kind.clone_into(&mut entry.kind);
        question.name.unwrap_or_default().clone_into(&mut entry.name);
        entry.server.clone_from(&question.servers);
        entry.load.clone_from(&question.level_text);
        entry.simulated = manifest.simulated;
        let first = set.points().ok().and_then(|points| points.first().map(|it| set.point(*it)));
        let first = first.and_then(|point| point.manifest().ok());
        entry.model = first.map(|manifest| manifest.endpoint.model).unwrap_or_default();
        entry.started = manifest.started;
    }
    // Their requests together, and the most that one of its runs reached.
    let numbers = set.points().unwrap_or_default();
    let kept =
        numbers.iter().filter_map(|it| results::kept_summary(&set.point(*it)).ok().flatten());
    for summary in kept.filter(|summary| summary.verdict != Verdict::Invalid) {
        entry.ok = Some(entry.ok.unwrap_or(0) + summary.count(Outcome::Ok));
        let output = metric::OUTPUT_THROUGHPUT.quantity().value_in(&summary);
        let output = output.ok().map(|found| found.value);
        entry.output_per_s = [entry.output_per_s, output].into_iter().flatten().reduce(f64::max);
    }
    entry
}

fn import_entry(import: &ImportDirectory) -> Entry {
    let mut entry = entry(import.id(), "import", &import.state());
    if let Ok(manifest) = import.manifest() {
        entry.name = manifest.file.name;
        entry.started = manifest.imported;
    }
    if let Some(stored) = StoredImport::read(import) {
        stored.tool.program().clone_into(&mut entry.server);
        entry.load = counted(stored.results() as u64, "result");
        entry.model = stored.configurations().join(", ");
    }
    entry
}
