//! What CI systems read of a judged run.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use inferometer_analysis::{
    Interval, RequirementOutcome, Severity, Summary, ThresholdVerdict, Undecided, Verdict,
};
use inferometer_model::spec::Relation;
use inferometer_report::terminal::Style;
use inferometer_report::{Files, Judgement, json, junit, markdown, terminal};

fn summary() -> Summary {
    Summary::from_json_bytes(include_bytes!("summary.json")).unwrap()
}

fn outcome(requirement: &str, quantity: &str, verdict: ThresholdVerdict) -> RequirementOutcome {
    let undecided = verdict == ThresholdVerdict::Undecided;
    RequirementOutcome {
        requirement: requirement.to_owned(),
        quantity: quantity.to_owned(),
        unit: if quantity == "error_rate" { "share" } else { "ms" }.to_owned(),
        bound: Relation::Below,
        limit: 500.0,
        verdict,
        value: Some(0.04),
        interval: Interval::new(0.01, 0.09),
        n: Some(60),
        runs: 1,
        reason: undecided.then(|| "too few values; run longer".to_owned()),
    }
}

fn outcomes() -> [RequirementOutcome; 3] {
    [
        outcome("ttft.p99<500ms", "ttft.p99", ThresholdVerdict::Met),
        outcome("error_rate<1%", "error_rate", ThresholdVerdict::Missed),
        outcome("e2e.p99<500ms", "e2e_schedule.p99", ThresholdVerdict::Undecided),
    ]
}

/// A server that tries to be markup.
fn hostile() -> Summary {
    let mut summary = summary();
    summary.run.model += "</testsuite><x a='\"'>&amp;]]>\u{0}\u{1b}[31m\u{ffff} | **b** `c`";
    summary.warnings[0].text += "<script>|\nalert(1)</script>";
    summary.slos[0].reason = Some("a < b && c > \"d\"".to_owned());
    summary
}

#[test]
fn the_junit_document() {
    let (runs, requirements) = ([summary()], outcomes());
    let undecided = Undecided::Fail;
    let judged = Judgement { runs: &runs, results: &[], requirements: &requirements, undecided };
    insta::assert_snapshot!(junit::render(&[judged]));
}

#[test]
fn the_step_summary() {
    let (runs, requirements) = ([summary()], outcomes());
    let undecided = Undecided::Fail;
    let judged = Judgement { runs: &runs, results: &[], requirements: &requirements, undecided };
    insta::assert_snapshot!(markdown::step_summary(&judged));
}

#[test]
fn repeated_runs_are_one_report() {
    let runs = vec![summary(), summary(), summary()];
    let requirements = outcomes();
    let undecided = Undecided::Fail;
    let page = markdown::step_summary(&Judgement {
        runs: &runs,
        results: &[],
        requirements: &requirements,
        undecided,
    });
    assert_eq!(page.matches("## Inferometer").count(), 1, "{page}");
    assert!(page.contains("| metric | mean of 3 runs | 95 % between runs |  |"), "{page}");
    assert_eq!(page.matches("(3 of 3 runs)").count(), runs[0].warnings.len());
    insta::assert_snapshot!(page);
}

#[test]
fn what_a_server_says_is_never_markup() {
    let mut requirements = outcomes();
    requirements[2].reason = Some("said <b>\"no\"</b> & | left".to_owned());
    let runs = [hostile(), hostile()];
    let judged = Judgement {
        runs: &runs,
        results: &[],
        requirements: &requirements,
        undecided: Undecided::Fail,
    };
    let document = junit::render(&[judged]);
    let names = elements(&document);
    assert!(!names.contains(&"script".to_owned()) && !names.contains(&"x".to_owned()), "{names:?}");
    assert_eq!(names.iter().filter(|name| *name == "testsuite").count(), 3, "{document}");
    let page = markdown::step_summary(&judged);
    assert!(!page.contains("<script>") && !page.contains("<b>"), "{page}");
    assert!(page.contains("\\<script\\>\\|"), "{page}");
    assert!(!page.contains('\u{1b}'));
    for row in page.lines().filter(|line| line.starts_with("| ❔")) {
        let bars = row.replace("\\|", "").matches('|').count();
        assert_eq!(bars, 6, "{row}");
    }
}

#[test]
fn undecided_is_an_error_or_let_through_as_the_gate_says() {
    let (runs, requirements) = ([summary()], outcomes());
    let count = |undecided| {
        let judged =
            Judgement { runs: &runs, results: &[], requirements: &requirements[2..], undecided };
        let names = elements(&junit::render(&[judged]));
        let of = |name: &str| names.iter().filter(|found| *found == name).count();
        (of("error"), of("skipped"))
    };
    let ((errors, skipped), (errors_let, skipped_let)) =
        (count(Undecided::Fail), count(Undecided::Pass));
    assert_eq!((errors, skipped + 1), (errors_let + 1, skipped_let));
}

#[test]
fn an_invalid_run_is_an_error_of_its_suite() {
    let mut invalid = summary();
    invalid.verdict = Verdict::Invalid;
    invalid.warnings[0].severity = Severity::Invalid;
    let judged =
        Judgement { runs: &[invalid], results: &[], requirements: &[], undecided: Undecided::Pass };
    let document = junit::render(&[judged]);
    assert!(elements(&document).contains(&"error".to_owned()), "{document}");
}

#[test]
fn requirements_stand_after_the_verdict_and_beside_the_summary() {
    let place = || "runs/x".to_owned();
    let files =
        Files { run: place(), manifest: place(), journal: place(), summary: place(), report: None };
    let page = terminal::render_judged(&summary(), &files, &outcomes(), Style::Plain);
    let [verdict, requirements, latency] =
        ["requests ok", "requirements\n", "Latency (ms)"].map(|words| page.find(words).unwrap());
    assert!(verdict < requirements && requirements < latency, "{page}");
    let document: serde_json::Value =
        serde_json::from_str(&json::render(&summary(), &files, &outcomes())).unwrap();
    assert_eq!(document["requirements"][1]["verdict"], "fail");
    assert_eq!(document["requirements"][1]["interval"]["high"], 0.09);
    let bare: serde_json::Value =
        serde_json::from_str(&json::render(&summary(), &files, &[])).unwrap();
    assert!(bare.get("requirements").is_none(), "nothing was required");
}

/// The names of all elements, of a document that must be well formed: every element is closed by
/// its own name, and no text or attribute holds a character that is markup or forbidden.
fn elements(document: &str) -> Vec<String> {
    let body = document.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").unwrap();
    let allowed = |c: char| matches!(c, '\t' | '\n' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    assert!(body.chars().all(allowed), "a character that XML forbids");
    let (mut open, mut names) = (Vec::new(), Vec::new());
    let mut rest = body;
    while let Some(start) = rest.find('<') {
        check_text(&rest[..start]);
        let end = start + rest[start..].find('>').unwrap();
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
            continue;
        }
        let name = tag.split([' ', '/']).next().unwrap().to_owned();
        check_attributes(tag[name.len()..].trim_end_matches('/'));
        names.push(name.clone());
        if !tag.ends_with('/') {
            open.push(name);
        }
    }
    check_text(rest);
    assert!(open.is_empty(), "not closed: {open:?}");
    names
}

fn check_attributes(text: &str) {
    let parts: Vec<&str> = text.split('"').collect();
    assert_eq!(parts.len() % 2, 1, "{text}");
    for (name, value) in parts.iter().step_by(2).zip(parts.iter().skip(1).step_by(2)) {
        assert!(name.starts_with(' ') && name.ends_with('='), "{text}");
        check_text(value);
    }
}

fn check_text(text: &str) {
    for (place, _) in text.match_indices('&') {
        let known = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
        assert!(known.iter().any(|entity| text[place..].starts_with(entity)), "{text}");
    }
    assert!(!text.contains(['<', '>']), "{text}");
}
