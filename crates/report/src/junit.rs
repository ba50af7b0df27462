//! JUnit XML for CI systems: one suite per run, one case per requirement and per SLO.
//!
//! A case that fails the gate is a `failure`, or an `error` where it could not be decided; an undecided
//! case that passes the gate is `skipped`.

use inferometer_analysis::tool_result::ToolResult;
use inferometer_analysis::{Severity, Summary, ThresholdVerdict, Undecided, Verdict};

use crate::escape::xml;
use crate::fmt::{Join, count, fixed};
use crate::pages::results::mark_words;
use crate::pages::slo_value;
use crate::requirements::{Judgement, sentence};

const PASSED: &str = "system-out";
const ERROR: &str = "error";
const SKIPPED: &str = "skipped";

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
            let marks = result.marks.iter().filter(|mark| mark.is_reservation()).map(mark_words);
            let marks = marks.try_join("; ").map(|marks| (ERROR, marks));
            let (element, text) = marks.unwrap_or((PASSED, "no mark".to_owned()));
            let name = "the result is complete and its server not saturated";
            let cases = vec![Case::new("result", name, element, text)];
            Suite { cases, ..Suite::from_result(result) }
        }
    };
    render_suites(&results.iter().map(suite).collect::<Vec<_>>())
}

fn render_suites(suites: &[Suite]) -> String {
    let totals = totals(suites.iter().flat_map(|suite| &suite.cases));
    let suites: String = suites.iter().map(Suite::to_xml).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"inferometer\"{totals}>\n{suites}</testsuites>\n"
    )
}

/// One suite for each run, and one for runs that are judged together.
fn suites(judgement: &Judgement<'_>) -> Vec<Suite> {
    let results = judgement.results.iter().map(Suite::from_result);
    let mut suites: Vec<Suite> =
        judgement.runs.iter().map(Suite::from_run).chain(results).collect();
    let cases = judgement.requirements.iter().map(|found| {
        let element = match (found.verdict, judgement.undecided) {
            (ThresholdVerdict::Undecided, Undecided::Fail) => ERROR,
            (verdict, _) => element(verdict),
        };
        Case::new("requirement", &found.requirement, element, sentence(found))
    });
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
    /// The element with its text: `failure`, `error` and `skipped` are counted.
    element: &'static str,
    text: String,
}

/// The element of a case by its verdict.
const fn element(verdict: ThresholdVerdict) -> &'static str {
    match verdict {
        ThresholdVerdict::Met => PASSED,
        ThresholdVerdict::Missed => "failure",
        ThresholdVerdict::Undecided => SKIPPED,
    }
}

impl Suite {
    fn from_run(summary: &Summary) -> Self {
        let run = &summary.run;
        let mut cases = vec![verdict_case(summary)];
        // An SLO of each request is not judged: require its attainment instead.
        cases.extend(summary.request_slos.iter().flat_map(|slos| {
            slos.promises.iter().map(|slo| {
                let met =
                    format!("{} of {} requests met it", count(slo.met), count(slos.scheduled));
                let name = format!("{} of each request", slo.promise);
                Case::new("slo", &name, SKIPPED, slo.reason.clone().unwrap_or(met))
            })
        }));
        cases.extend(summary.slos.iter().map(|slo| {
            let why = slo.reason.as_ref().map_or_else(String::new, |reason| format!("; {reason}"));
            let text = format!("{}: {}{why}", slo.verdict.key(), slo_value(slo));
            Case::new("slo", &slo.promise, element(slo.verdict), text)
        }));
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

    fn to_xml(&self) -> String {
        let time = self.seconds.map_or_else(String::new, |s| format!(" time=\"{}\"", fixed(s, 3)));
        let begun = self.started.as_ref();
        let begun = begun.map_or_else(String::new, |at| format!(" timestamp=\"{}\"", xml(at)));
        let property = |(name, value): &(&str, String)| {
            format!("      <property name=\"{name}\" value=\"{}\"/>\n", xml(value))
        };
        let properties = match self.properties.iter().map(property).collect::<String>() {
            none if none.is_empty() => none,
            some => format!("    <properties>\n{some}    </properties>\n"),
        };
        let (name, totals) = (xml(&self.name), totals(self.cases.iter()));
        let cases: String = self.cases.iter().map(Case::to_xml).collect();
        format!(
            "  <testsuite name=\"{name}\"{totals}{time}{begun}>\n{properties}{cases}  </testsuite>\n"
        )
    }
}

impl Case {
    fn new(class: &'static str, name: &str, element: &'static str, text: String) -> Self {
        Self { class, name: name.to_owned(), element, text }
    }

    fn to_xml(&self) -> String {
        let (class, element) = (self.class, self.element);
        let (name, message) = (xml(&self.name), xml(&self.text));
        let ending = match element {
            PASSED => format!("<{element}>{message}</{element}>"),
            SKIPPED => format!("<{element} message=\"{message}\"/>"),
            _ => format!("<{element} message=\"{message}\" type=\"{class}\">{message}</{element}>"),
        };
        format!(
            "    <testcase classname=\"inferometer.{class}\" name=\"{name}\">\n      {ending}\n    \
             </testcase>\n"
        )
    }
}

fn totals<'a>(cases: impl Iterator<Item = &'a Case>) -> String {
    let cases: Vec<&Case> = cases.collect();
    let number = |element| cases.iter().filter(|case| case.element == element).count();
    let (failures, errors, skipped) = (number("failure"), number(ERROR), number(SKIPPED));
    let tests = cases.len();
    format!(" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\"")
}

/// Whether the run is valid.
fn verdict_case(summary: &Summary) -> Case {
    let (least, element) = match summary.verdict {
        Verdict::Invalid => (Severity::Invalid, ERROR),
        Verdict::Valid | Verdict::Simulated | Verdict::Degraded => (Severity::Degraded, PASSED),
    };
    let warnings = summary.warnings.iter().filter(|notice| least <= notice.severity);
    let why = warnings.map(|notice| format!("; {}: {}", notice.text, notice.remedy));
    let text = format!("{}{}", summary.verdict, why.collect::<String>());
    Case::new("run", "the run is valid", element, text)
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
