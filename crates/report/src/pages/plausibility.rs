//! The page of published results that were checked without their server.

use inferometer_analysis::plausibility::{Evidence, Finding};

use super::prelude::*;

/// One source and what was found in it.
#[derive(Debug)]
pub struct AuditedSource<'a> {
    pub name: &'a str,
    /// The program that wrote it.
    pub tool: &'a str,
    pub results: usize,
    pub findings: &'a [Finding],
}

/// How much evidence of one finding a page shows.
const EVIDENCE_MAX: usize = 12;
const LINE_CHARS_MAX: usize = 400;

/// One section for each source.
pub fn audit(sources: &[AuditedSource<'_>]) -> Document {
    let gravest = sources.iter().flat_map(|it| it.findings).map(|it| it.severity).max();
    let findings: usize = sources.iter().map(|it| it.findings.len()).sum();
    let (word, text) = match gravest {
        None => ("Plausible", "No rule found anything against these figures."),
        Some(Severity::Note) => {
            ("Plausible", "Nothing contradicts these figures; the notes say what they lack.")
        }
        Some(Severity::Degraded) => {
            ("Doubtful", "Some figures do not describe what they are said to describe.")
        }
        Some(Severity::Invalid) => {
            ("Not plausible", "Some figures cannot be true, or describe only a part of the load.")
        }
    };
    let mood = gravest.map_or(Mood::Good, mood);
    let lead = Lead {
        subject: facts([
            ("Results", Some(counted(sources.iter().map(|it| it.results as u64).sum(), "result"))),
            ("Findings", Some(count(findings as u64))),
        ]),
        verdict: Some(Badge { mood, word: word.to_owned(), text: plain(text), points: Vec::new() }),
        ..Lead::default()
    };
    let sections = sources.iter().map(section_of).collect();
    Document { lead, ..Document::new("Audit of published results", sections) }
}

fn section_of(source: &AuditedSource<'_>) -> Section {
    let name = terminal_line(source.name, LINE_CHARS_MAX);
    let results = counted(source.results as u64, "result");
    let head = Block::paragraph(format!("{results} of {}.", source.tool));
    let none = Block::paragraph("No rule found anything.");
    let none = Some(none).filter(|_| source.findings.is_empty());
    let findings = source.findings.iter().map(notice);
    let blocks = [head].into_iter().chain(none).chain(findings).collect();
    Section { id: format!("source-{name}"), ..Section::new(name, blocks) }
}

fn notice(finding: &Finding) -> Block {
    let kind: &str = finding.kind.into();
    let mut points: Vec<Text> = finding.evidence.iter().take(EVIDENCE_MAX).map(point).collect();
    let more = finding.evidence.len().saturating_sub(EVIDENCE_MAX) as u64;
    points.extend((0 < more).then(|| plain(format!("and {} more", count(more)))));
    Block::Notice {
        mood: mood(finding.severity),
        text: vec![strong(finding.title), format!(" ({kind}: {})", finding.key).into()],
        points,
        remedy: Some(plain(format!("What would settle it: {}", finding.settled_by))),
    }
}

fn point(evidence: &Evidence) -> Text {
    let about =
        if evidence.about.is_empty() { String::new() } else { format!("{}: ", evidence.about) };
    plain(terminal_line(&(about + &evidence.text), LINE_CHARS_MAX))
}

fn mood(severity: Severity) -> Mood {
    match severity {
        Severity::Note => Mood::Note,
        Severity::Degraded => Mood::Doubt,
        Severity::Invalid => Mood::Bad,
    }
}
