//! `inferometer check`: is this endpoint usable, and what does it support?

use std::process::ExitCode;

use inferometer_model::Spec;
use inferometer_model::spec::TargetSpec;
use inferometer_workload::Ingredients;

use crate::arguments::CheckArguments;
use crate::check::{Finding, State, examine};
use crate::deployed::{self, Deployed};
use crate::draft::draft;
use crate::failure::{Exit, Failure};
use crate::live::{Server, Session};
use crate::output;
use crate::preflight::preflight;
use crate::secrets::Secrets;

pub(crate) fn run(arguments: &CheckArguments) -> Result<ExitCode, Failure> {
    let drafted = draft(&arguments.experiment)?;
    let spec = drafted.resolve()?;
    let ingredients = Ingredients::gather(&spec)?;
    let quiet = arguments.quiet || arguments.json;
    let server = match server(&spec, &drafted.secrets, quiet)? {
        Ok(server) => server,
        Err(interrupted) => return Ok(interrupted.into()),
    };
    let talk = |words: &str| {
        if !quiet {
            output::talk(words);
        }
    };
    talk(&format!("asking {} what it serves …", server.base()));
    let found = preflight(&spec, &drafted.secrets, server.base(), server.is_embedded())?;
    let mut findings = vec![Finding::good(
        "model",
        format!("`{}` answers {} at {}", found.target.model, spec.api, found.target.base),
    )];
    findings.extend(examine(&spec, &ingredients, &found.target, talk)?);
    output::result(&if arguments.json { json(&findings) } else { page(&findings) })?;
    Ok(ExitCode::SUCCESS)
}

/// The server that is there, or one that is put up for this; it goes with the command.
fn server(spec: &Spec, secrets: &Secrets, quiet: bool) -> Result<Result<Server, Exit>, Failure> {
    let TargetSpec::Deployed(how) = &spec.target else { return Server::of(spec).map(Ok) };
    let session = Session::begin(0, quiet)?;
    let log = deployed::log_in(&std::env::temp_dir());
    match Deployed::put_up(spec, secrets, &log, &session) {
        Ok(deployed) => Ok(Ok(Server::Deployed(Box::new(deployed)))),
        Err(not_up) => not_up.told(how, &log).map(Err),
    }
}

fn json(findings: &[Finding]) -> String {
    let document = serde_json::json!({
        "schema": "inferometer.check/1",
        "problems": problems(findings),
        "findings": findings,
    });
    format!("{document:#}\n")
}

fn page(findings: &[Finding]) -> String {
    let lines: Vec<String> = findings.iter().map(Finding::lines).collect();
    let end = match problems(findings) {
        0 => "usable: nothing that a measurement would suffer from".to_owned(),
        1 => "usable, with one problem".to_owned(),
        problems => format!("usable, with {problems} problems"),
    };
    format!("{}\n{end}\n", lines.concat())
}

fn problems(findings: &[Finding]) -> usize {
    findings.iter().filter(|finding| finding.state == State::Problem).count()
}
