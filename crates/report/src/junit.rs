//! JUnit XML for CI systems: one suite per run, one case per requirement and per SLO.
//!
//! A case that fails the gate is a `failure`, or an `error` where it could not be decided; an undecided
//! case that passes the gate is `skipped`.

use std::fmt::Write;

use inferometer_analysis::tool_result::ToolResult;
use inferometer_analysis::{
    Metric, RequestSlo, RequirementOutcome, Severity, SloOutcome, Summary, ThresholdVerdict,
    Undecided, Verdict,
};

use crate::escape::xml;
use crate::fmt::{count, number, with_unit};
use crate::pages::results::mark_words;
use crate::requirements::{Judgement, sentence};

/// A result without requirements.
#[derive(Clone, Copy, Debug)]
pub enum Exported<'a> {
    Run(&'a Summary),
    /// A result of another tool, without a verdict.
    ToolResult(&'a ToolResult),
}

/// The whole document, with a line feed at its end.
pub fn render(judgements: &[Judgement<'_>]) -> String {
    render_suites(&judgements.iter().flat_map(suites).collect::<Vec<_>>())
}

/// The document of results without requirements, one suite each.
pub fn exported(results: &[Exported<'_>]) -> String {
    let suite = |result: &Exported<'_>| match result {
        Exported::Run(summary) => Suite::from_run(summary),
        // Other tools do not check their results: one case, whether the result has marks.
        Exported::ToolResult(result) => {
            let marks = result.marks.iter().filter(|mark| mark.is_doubt()).map(mark_words);
            let marks = marks.collect::<Vec<_>>().join("; ");
            let case = Case {
                class: "result",
                name: "the result is of a whole and unhurried load".to_owned(),
                ending: if marks.is_empty() { Ending::Passed } else { Ending::NotShown },
                text: if marks.is_empty() { "no mark".to_owned() } else { marks },
            };
            Suite { cases: vec![case], ..Suite::from_result(result) }
        }
    };
    render_suites(&results.iter().map(suite).collect::<Vec<_>>())
}

fn render_suites(suites: &[Suite]) -> String {
    let cases = suites.iter().flat_map(|suite| &suite.cases);
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"inferometer\"{}>\n",
        totals(cases)
    );
    for suite in suites {
        suite.write(&mut text);
    }
    text + "</testsuites>\n"
}

/// One suite for each run, and one for runs that are judged together.
fn suites(judgement: &Judgement<'_>) -> Vec<Suite> {
    let runs = judgement.runs.iter().map(Suite::from_run);
    let mut suites: Vec<Suite> =
        runs.chain(judgement.results.iter().map(Suite::from_result)).collect();
    let required = judgement.requirements.iter();
    let cases = required.map(|found| requirement_case(found, judgement.undecided));
    match &mut suites[..] {
        [only] => only.cases.extend(cases),
        several => {
            let name = format!("{} runs together", several.len());
            suites.push(Suite { name, cases: cases.collect(), ..Suite::default() });
        }
    }
    suites
}

#[derive(Default)]
struct Suite {
    name: String,
    /// Start in RFC 3339, UTC.
    started: Option<String>,
    seconds: Option<f64>,
    properties: Vec<(&'static str, String)>,
    cases: Vec<Case>,
}

struct Case {
    class: &'static str,
    name: String,
    ending: Ending,
    text: String,
}

/// In the order of the totals.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Passed,
    Failed,
    NotShown,
    LetThrough,
}

impl From<ThresholdVerdict> for Ending {
    fn from(verdict: ThresholdVerdict) -> Self {
        match verdict {
            ThresholdVerdict::Met => Self::Passed,
            ThresholdVerdict::Missed => Self::Failed,
            ThresholdVerdict::Undecided => Self::LetThrough,
        }
    }
}

impl Suite {
    fn from_run(summary: &Summary) -> Self {
        let run = &summary.run;
        let mut cases = vec![verdict_case(summary)];
        if let Some(slos) = &summary.request_slos {
            cases.extend(slos.promises.iter().map(|slo| request_slo_case(slo, slos.scheduled)));
        }
        cases.extend(summary.slos.iter().map(slo_case));
        let simulated = if run.simulated.is_some() { "yes" } else { "no" };
        Self {
            name: run.id.clone(),
            started: Some(run.started.clone()),
            seconds: summary.window.duration_s,
            properties: vec![
                ("verdict", summary.verdict.to_string()),
                ("model", run.model.clone()),
                ("target", run.target.clone()),
                ("simulated", simulated.to_owned()),
                ("seed", run.seed.to_string()),
                ("workload.fingerprint", summary.workload.fingerprint.clone()),
            ],
            cases,
        }
    }

    /// A suite without a verdict: other tools do not check their results.
    fn from_result(result: &ToolResult) -> Self {
        Self {
            name: result.source.name.clone(),
            seconds: result.duration_s,
            properties: vec![
                ("tool", result.source.tool.name().to_owned()),
                ("model", result.model.clone().unwrap_or_default()),
                ("load", result.level().to_string()),
            ],
            ..Self::default()
        }
    }

    fn write(&self, text: &mut String) {
        let time = self.seconds.map_or_else(String::new, |s| format!(" time=\"{s:.3}\""));
        let begun = self.started.as_ref();
        let begun = begun.map_or_else(String::new, |at| format!(" timestamp=\"{}\"", xml(at)));
        let totals = totals(self.cases.iter());
        let name = xml(&self.name);
        let _ = writeln!(text, "  <testsuite name=\"{name}\"{totals}{time}{begun}>");
        if !self.properties.is_empty() {
            text.push_str("    <properties>\n");
            for (name, value) in &self.properties {
                let value = xml(value);
                let _ = writeln!(text, "      <property name=\"{name}\" value=\"{value}\"/>");
            }
            text.push_str("    </properties>\n");
        }
        for case in &self.cases {
            case.write(text);
        }
        text.push_str("  </testsuite>\n");
    }
}

impl Case {
    fn write(&self, text: &mut String) {
        let (class, name, message) = (self.class, xml(&self.name), xml(&self.text));
        let with_message = |element| {
            format!("<{element} message=\"{message}\" type=\"{class}\">{message}</{element}>")
        };
        let ending = match self.ending {
            Ending::Passed => format!("<system-out>{message}</system-out>"),
            Ending::Failed => with_message("failure"),
            Ending::NotShown => with_message("error"),
            Ending::LetThrough => format!("<skipped message=\"{message}\"/>"),
        };
        let _ = writeln!(
            text,
            "    <testcase classname=\"inferometer.{class}\" name=\"{name}\">\n      {ending}\n    \
             </testcase>"
        );
    }
}

fn totals<'a>(cases: impl Iterator<Item = &'a Case>) -> String {
    let mut counts = [0; 4];
    cases.for_each(|case| counts[case.ending as usize] += 1);
    let [_, failures, errors, skipped] = counts;
    let tests: u32 = counts.iter().sum();
    format!(" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\"")
}

/// Whether the run is valid.
fn verdict_case(summary: &Summary) -> Case {
    let invalid = summary.verdict == Verdict::Invalid;
    let least = if invalid { Severity::Invalid } else { Severity::Degraded };
    let warnings = summary.warnings.iter().filter(|notice| least <= notice.severity);
    let why: Vec<String> =
        warnings.map(|notice| format!("{}: {}", notice.text, notice.remedy)).collect();
    Case {
        class: "run",
        name: "the run is valid".to_owned(),
        ending: if invalid { Ending::NotShown } else { Ending::Passed },
        text: [vec![summary.verdict.to_string()], why].concat().join("; "),
    }
}

fn requirement_case(found: &RequirementOutcome, undecided: Undecided) -> Case {
    let ending = match (found.verdict, undecided) {
        (ThresholdVerdict::Undecided, Undecided::Fail) => Ending::NotShown,
        (verdict, _) => verdict.into(),
    };
    let (name, text) = (found.requirement.clone(), sentence(found));
    Case { class: "requirement", name, ending, text }
}

/// An SLO of each request decides nothing by itself: require its attainment instead.
fn request_slo_case(slo: &RequestSlo, scheduled: u64) -> Case {
    let kept = format!("{} of {} requests keep it", count(slo.met), count(scheduled));
    Case {
        class: "promise",
        name: format!("{} of each request", slo.promise),
        ending: Ending::LetThrough,
        text: slo.reason.clone().unwrap_or(kept),
    }
}

fn slo_case(slo: &SloOutcome) -> Case {
    let why = slo.reason.as_ref().map_or_else(String::new, |reason| format!("; {reason}"));
    let metric = slo.metric.as_deref().and_then(Metric::named);
    let value =
        metric.map_or_else(|| number(slo.value), |metric| with_unit(slo.value, metric.unit));
    let text = format!("{}: {value}{why}", slo.verdict.key());
    Case { class: "promise", name: slo.promise.clone(), ending: slo.verdict.into(), text }
}

#[cfg(test)]
mod tests {
    use inferometer_analysis::tool_result::Mark;

    use super::*;

    #[test]
    fn an_imported_result_that_was_cut_is_an_error_and_a_clean_one_passes() {
        let mut sheet = ToolResult { model: Some("a<b".to_owned()), ..ToolResult::default() };
        "record 1".clone_into(&mut sheet.source.name);
        let clean = exported(&[Exported::ToolResult(&sheet)]);
        assert!(clean.contains("tests=\"1\" failures=\"0\" errors=\"0\""), "{clean}");
        assert!(clean.contains("value=\"a&lt;b\""), "{clean}");
        sheet.marks = vec![Mark::Cut { completed: 1015, planned: 2000 }, Mark::Simulated];
        let cut = exported(&[Exported::ToolResult(&sheet)]);
        assert!(cut.contains("errors=\"1\""), "{cut}");
        assert!(cut.contains(">cut: 1,015 of 2,000 requests completed</error>"), "{cut}");
    }
}
