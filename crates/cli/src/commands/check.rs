//! `inferometer check`: is this endpoint usable, and what does it support?

use std::process::ExitCode;

use inferometer_model::Spec;
use inferometer_model::spec::TargetSpec;
use inferometer_report::document::{Block, Mood, Section, plain, terminal};
use inferometer_workload::Inputs;

use crate::arguments::CheckArguments;
use crate::check::{Finding, State, examine};
use crate::deployed::{self, Deployed};
use crate::draft::draft;
use crate::experiment::config;
use crate::failure::Result;
use crate::measurement::Server;
use crate::output;
use crate::preflight::preflight;
use crate::secrets::Secrets;
use crate::signals::begin_session;

pub(crate) fn run(arguments: &CheckArguments) -> Result<ExitCode> {
    let drafted = draft(&arguments.experiment)?;
    config::announce(arguments.quiet);
    let spec = drafted.resolve()?;
    let inputs = Inputs::gather(&spec)?;
    let quiet = arguments.quiet || arguments.json;
    let server = server(&spec, &drafted.secrets, quiet)?;
    let talk = output::talk_unless(quiet);
    talk(&format!("asking {} what it serves …", server.base()));
    let found = preflight(&spec, &drafted.secrets, server.base(), server.is_embedded())?;
    let mut findings = vec![Finding::good(
        "model",
        format!("`{}` answers {} at {}", found.target.model, spec.api, found.target.base),
    )];
    findings.extend(examine(&spec, &inputs, &found.target, talk)?);
    let problems = findings.iter().filter(|finding| finding.state == State::Problem).count();
    if arguments.json {
        return output::json(&serde_json::json!({
            "schema": "inferometer.check/1",
            "problems": problems,
            "findings": findings,
        }));
    }
    output::result(&page(&findings, problems))
}

/// The server that runs already, or one that is deployed for this command.
fn server(spec: &Spec, secrets: &Secrets, quiet: bool) -> Result<Server> {
    if !matches!(spec.target, TargetSpec::Deployed(_)) {
        return Server::new(spec);
    }
    let session = begin_session(0, quiet)?;
    Deployed::server(spec, secrets, &deployed::log_in(&std::env::temp_dir()), &session)
}

/// Each finding, and below it what to do.
fn page(findings: &[Finding], problems: usize) -> String {
    let end = match problems {
        0 => "usable: no problems found".to_owned(),
        1 => "usable, with one problem".to_owned(),
        problems => format!("usable, with {problems} problems"),
    };
    let notice = |finding: &Finding| Block::Notice {
        mood: match finding.state {
            State::Good => Mood::Good,
            State::Note => Mood::Note,
            State::Problem => Mood::Doubt,
        },
        text: plain(format!("{}: {}", finding.subject, finding.words)),
        points: Vec::new(),
        remedy: finding.remedy.as_ref().map(plain),
    };
    let findings = Section::new("", findings.iter().map(notice).collect());
    let end = Section::new("", vec![Block::paragraph(end)]);
    terminal::sections(&[findings, end], super::style())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_on_the_page() {
        let words = "words that go on ".repeat(12);
        let finding = Finding {
            state: State::Problem,
            remedy: Some(words.clone()),
            ..Finding::good("prompt length", words)
        };
        for line in page(&[finding], 1).lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
