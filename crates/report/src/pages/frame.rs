//! The parts that every page has: the header for programs, the lead, the verdict, and the author of the
//! sentences.

use inferometer_analysis::{CheckState, Severity, ThresholdVerdict};
use inferometer_model::observations::{ModelError, Simulated};
use inferometer_model::variant_name;

use super::prelude::*;
use crate::document::Badge;
use crate::narrative::{Author, Sentence};

/// The name of a server, and a run on it.
pub(crate) type Server<'a> = (&'a str, &'a Summary);

/// The subject of a page.
pub(crate) struct About<'a> {
    /// The id of the run or the set.
    pub(crate) id: &'a str,
    /// When it was measured, in RFC 3339.
    pub(crate) started: &'a str,
    pub(crate) tool_version: &'a str,
    pub(crate) verdict: Verdict,
    /// The model error of a simulation, in words; `None` of a measurement.
    pub(crate) simulated: Option<String>,
    /// Each server by its name, with its first run whose summary is stored.
    pub(crate) servers: Vec<Server<'a>>,
    /// Models that answered, each once.
    pub(crate) models: Vec<String>,
    /// A further fact, such as the suite with its hash.
    pub(crate) more: Option<(&'static str, String)>,
}

/// A whole page; `why` is the reason of the verdict, with what it rests on.
pub(crate) fn page(
    about: &About<'_>,
    title: String,
    why: (Text, Vec<Text>),
    headline: Vec<Card>,
    sections: Vec<Section>,
    narrative: &Narrative,
) -> Document {
    let badge = badge(about.verdict, about.simulated.is_some(), why.0, why.1);
    let lead = lead(about, badge, headline);
    let footer = footer(about, narrative);
    let header = header(about, narrative);
    let page = Document { header, title, lead, sections, footer, ..Document::default() };
    mark_simulated(page, about.simulated.as_deref())
}

/// Marks every headline number and every chart of a simulation, because they may be read alone.
pub(crate) fn mark_simulated(mut page: Document, model_error: Option<&str>) -> Document {
    fn mark_blocks(blocks: &mut [Block]) {
        for block in blocks {
            if let Block::Figure(figure) = block {
                let n = figure.chart.n.trim_end_matches('.');
                figure.chart.n = format!("{n}, simulated");
            } else if let Block::Details { blocks, .. } = block {
                mark_blocks(blocks);
            }
        }
    }
    fn mark_sections(sections: &mut [Section]) {
        for section in sections {
            mark_blocks(&mut section.blocks);
            mark_sections(&mut section.sections);
        }
    }
    let Some(model_error) = model_error else { return page };
    // How many requests or rows there are is no matter of the model.
    let is_count = |card: &Card| matches!(card.label.as_str(), "Requests ok" | "Measured");
    for card in page.lead.headline.iter_mut().filter(|card| !is_count(card)) {
        let separator = if card.detail.is_empty() { "" } else { "; " };
        card.detail.extend([separator, "simulated, ", model_error]);
    }
    mark_sections(&mut page.sections);
    page
}

/// How far the figures of simulated engines may be from those of servers.
pub(crate) fn model_error<'a>(engines: impl Iterator<Item = &'a Simulated>) -> String {
    let worst = |engine: &Simulated| engine.model_error.and_then(|error| error.worst());
    let worst: Option<Vec<f64>> = engines.map(worst).collect();
    match worst.and_then(|all| all.into_iter().reduce(f64::max)) {
        Some(worst) => format!("model error up to {}", percent(worst)),
        None => "model error not known".to_owned(),
    }
}

/// The same of one engine, figure by figure.
pub(crate) fn model_errors(engine: &Simulated) -> String {
    let Some(ModelError { output_throughput, ttft, tpot }) = engine.model_error else {
        return "Its model error is not known.".to_owned();
    };
    let figures = [("output throughput", output_throughput), ("TTFT", ttft), ("TPOT", tpot)];
    let known = figures.into_iter().filter_map(|(name, error)| Some((name, error?)));
    let known: Vec<String> =
        known.map(|(name, error)| format!("{name} up to {}", percent(error))).collect();
    let errors = format!("Model error in rows that its fit had not seen: {}.", known.join(", "));
    let Some(prediction) = engine.prediction else { return errors };
    let ModelError { output_throughput, ttft, tpot } = prediction.half_width;
    let widths = [("output throughput", output_throughput), ("TTFT", ttft), ("TPOT", tpot)];
    let widths = widths.into_iter().filter_map(|(name, width)| Some((name, percent(width?))));
    let widths: Vec<String> = widths.map(|(name, width)| format!("{name} {width}")).collect();
    format!("{errors} Intervals include it with 95 % confidence: {}.", widths.join(", "))
}

pub(crate) fn header(about: &About<'_>, narrative: &Narrative) -> Vec<(String, String)> {
    let mut header = vec![
        ("Measured", about.started.to_owned()),
        ("Model", about.models.join(", ")),
        ("Hardware", system::hardware(&about.servers)),
        ("Generated by", format!("Inferometer {}", about.tool_version)),
    ];
    header.extend(about.more.clone());
    header.push(("Verdict", about.verdict.to_string()));
    let simulated = about.simulated.as_ref().map(|error| format!("yes, {error}"));
    header.push(("Simulated", simulated.unwrap_or_else(|| "no".to_owned())));
    header.push(("Note", author(&narrative.author)));
    header.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

pub(crate) fn lead(about: &About<'_>, badge: Badge, headline: Vec<Card>) -> Lead {
    let mut subject = facts([
        ("Model", about.models.join(", ")),
        ("Hardware", system::hardware(&about.servers)),
        ("Server", system::software(&about.servers)),
        ("Date", fmt::day(about.started)),
    ]);
    subject.retain(|(_, text)| *text != plain(NOTHING));
    subject.extend(about.more.clone().map(|(key, value)| (key.to_owned(), plain(value))));
    let several = 1 < about.servers.len();
    for (name, run) in &about.servers {
        let of_server = if several { format!(" ({name})") } else { String::new() };
        let server = run.system.server.as_ref();
        let command = server.and_then(|server| server.start_command.clone());
        let command = command.map(|command| ("Startup Command", vec![Span::Code(command)]));
        let note = engine_note(run).map(|note| ("Measured", plain(note)));
        let own = command.into_iter().chain(note);
        subject.extend(own.map(|(key, text)| (format!("{key}{of_server}"), text)));
    }
    Lead { alert: None, subject, verdict: Some(badge), headline }
}

pub(crate) const SIMULATED: &str = "SIMULATED in virtual time: no server was measured.";

/// A note that no server was measured, with the engine and its model error.
pub fn simulated(engine: &Simulated) -> String {
    let Simulated { profile, engine: settings, .. } = engine;
    format!("{SIMULATED} Profile {profile}: {settings}. {}", model_errors(engine))
}

/// The first line in a terminal.
pub(crate) fn brief_title(tool_version: &str, subject: &str, simulated: bool) -> String {
    let simulated = if simulated { " · simulated" } else { "" };
    format!("Inferometer {tool_version} · {subject}{simulated}")
}

/// The server in a sentence.
pub(crate) fn target(url: &str, embedded: bool, simulated: bool, speed: Option<f64>) -> String {
    match (embedded, simulated, speed) {
        (_, true, _) => "the simulated engine".to_owned(),
        (true, false, None) => "the embedded engine".to_owned(),
        (true, false, Some(speed)) => {
            format!("the embedded engine, SPED UP {speed} times: all times are shorter")
        }
        (false, false, _) => url.to_owned(),
    }
}

/// A note that an engine of this program answered instead of a server.
fn engine_note(run: &Summary) -> Option<String> {
    let facts = &run.run;
    if let Some(simulated) = &facts.simulated {
        return Some(format!(
            "nothing: simulated in virtual time by the profile {}, without a server. {}",
            simulated.profile,
            model_errors(simulated)
        ));
    }
    facts.embedded.then(|| match facts.engine_speed {
        Some(speed) => format!(
            "the embedded engine, no server; it answered {speed} times as fast as its profile, so all \
             times are shorter"
        ),
        None => "the embedded engine, no server; its times are those of its profile".to_owned(),
    })
}

impl From<ThresholdVerdict> for Mood {
    fn from(verdict: ThresholdVerdict) -> Self {
        match verdict {
            ThresholdVerdict::Met => Self::Good,
            ThresholdVerdict::Missed => Self::Bad,
            ThresholdVerdict::Undecided => Self::Doubt,
        }
    }
}

pub(crate) fn badge(verdict: Verdict, simulated: bool, text: Text, points: Vec<Text>) -> Badge {
    let (mood, word) = match verdict {
        Verdict::Valid => (Mood::Good, "Valid"),
        Verdict::Simulated => (Mood::Note, "Simulated"),
        Verdict::Degraded if simulated => (Mood::Doubt, "Simulated, degraded"),
        Verdict::Degraded => (Mood::Doubt, "Degraded"),
        Verdict::Invalid if simulated => (Mood::Bad, "Simulated, invalid"),
        Verdict::Invalid => (Mood::Bad, "Invalid"),
    };
    Badge { mood, word: word.to_owned(), text, points }
}

/// The gravest warning with its details, or that there is none.
pub(crate) fn reason(
    verdict: Verdict,
    warnings: &[Warning],
    rows: &[Row<'_>],
) -> (String, Vec<Text>) {
    let grave = warnings.iter().find(|notice| notice.severity != Severity::Note);
    match (verdict, grave) {
        (Verdict::Valid | Verdict::Simulated, _) => (validity::no_reason(rows), Vec::new()),
        (_, Some(notice)) => divided(&notice.text),
        (_, None) => ("At least one run is not valid.".to_owned(), Vec::new()),
    }
}

/// A long warning as its first statement and those that follow it.
pub(crate) fn divided(text: &str) -> (String, Vec<Text>) {
    /// A shorter text reads well in one line.
    const LONG: usize = 160;
    if text.chars().count() <= LONG {
        return (sentence(text), Vec::new());
    }
    let mut statements = text.split("; ");
    let first = sentence(statements.next().unwrap_or_default());
    (first, statements.map(|statement| plain(sentence(statement))).collect())
}

/// With a capital letter and a full stop.
pub(crate) fn sentence(text: &str) -> String {
    ended(capitalized(text))
}

pub(crate) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

/// With a full stop; the first letter may be that of a name and stays as it is.
pub(crate) fn ended(text: String) -> String {
    if text.ends_with(['.', '!', '?']) { text } else { text + "." }
}

/// The author of the sentences, and how they were checked.
fn author(author: &Author) -> String {
    match author {
        Author::Rules => "the sentences were made from the numbers by rules".to_owned(),
        Author::Model { name, kept, rejected, .. } => format!(
            "the sentences were written by the model {name}, and by rules where it wrote nothing; \
             checked against the tables: {} kept, {} rejected",
            count((*kept).into()),
            count(rejected.values().sum::<u32>().into())
        ),
        Author::RulesInstead { name, .. } => {
            format!("the sentences were made from the numbers by rules; the model {name} gave none")
        }
    }
}

/// A paragraph about the model that wrote the sentences, and why others are missing.
pub(crate) fn authorship(narrative: &Narrative) -> Option<Block> {
    Some(Block::paragraph(match &narrative.author {
        Author::Rules => return None,
        Author::RulesInstead { name, why } => {
            ended(format!("The model {name} wrote no usable sentence: {why}"))
        }
        Author::Model { rejected, .. } => {
            let reason = |(reason, number): (&String, &u32)| {
                format!("{}: {reason}", counted((*number).into(), "sentence"))
            };
            let reasons: Vec<String> = rejected.iter().map(reason).collect();
            let rejected = if reasons.is_empty() {
                ""
            } else {
                &format!(" Rejected: {}.", reasons.join("; "))
            };
            sentence(&author(&narrative.author)) + rejected
        }
    }))
}

pub(crate) fn footer(about: &About<'_>, narrative: &Narrative) -> Text {
    let About { id, started, tool_version, .. } = about;
    let author = author(&narrative.author);
    plain(format!("Made from {id} (measured {started}) with Inferometer {tool_version}; {author}."))
}

pub(crate) fn section(
    id: &str,
    title: impl Into<String>,
    blocks: impl IntoIterator<Item = impl Into<Block>>,
) -> Section {
    Section { id: id.to_owned(), ..Section::new(title, Vec::new()) }.with(blocks)
}

fn executive_summary(narrative: &Narrative) -> Section {
    let mut text: Text = Vec::new();
    for sentence in &narrative.summary {
        text.extend((!text.is_empty()).then(|| Span::Plain(" ".to_owned())));
        text.extend(sentence.text.iter().cloned());
    }
    let summary = (!text.is_empty()).then_some(Block::Paragraph(text));
    section("executive-summary", "Executive Summary", summary).with(authorship(narrative))
}

/// The summary below the main chart, which is taken out of the section of charts.
pub(crate) fn summary_with_chart(narrative: &Narrative, charts: &mut Section) -> Section {
    let mut summary = executive_summary(narrative);
    let first = charts.blocks.iter().position(|block| matches!(block, Block::Figure(_)));
    let chart = first.map(|first| charts.blocks.remove(first));
    summary.blocks.splice(0..0, chart);
    summary
}

/// The command that made a result, with the seed that it drew.
pub(crate) fn command(run: Option<&Summary>, seed: u64) -> Option<Block> {
    let mut text = run?.run.command.clone()?;
    if !text.contains("--seed") {
        let _ = write!(text, " --seed {seed}");
    }
    Some(Block::Code { language: "sh", text: text + "\n" })
}

/// A seed, and how the same requests are sent again.
pub(crate) fn seed(seed: u64) -> String {
    format!("{seed}: the same command with --seed {seed} sends the same requests")
}

pub(crate) fn recommendations(narrative: &Narrative) -> Section {
    section("recommendations", "Recommendations", texts(&narrative.recommendations))
}

/// The sentences as a list; `None` where there are none.
pub(crate) fn texts(sentences: &[Sentence]) -> Option<Block> {
    let texts = sentences.iter().map(|sentence| sentence.text.clone());
    (!sentences.is_empty()).then(|| Block::List(texts.collect()))
}

/// The sentences about a row.
pub(crate) fn row_texts(narrative: &Narrative, row: &str) -> Option<Block> {
    narrative.scenarios.get(row).and_then(|sentences| texts(sentences))
}

pub(crate) fn notice(notice: &Warning) -> Block {
    let (first, points) = divided(&notice.text);
    notice_of(notice, first, points)
}

/// A warning with another text and its details.
pub(crate) fn notice_of(notice: &Warning, text: String, points: Vec<Text>) -> Block {
    let mood = match notice.severity {
        Severity::Note => Mood::Note,
        Severity::Degraded => Mood::Doubt,
        Severity::Invalid => Mood::Bad,
    };
    Block::Notice { mood, text: plain(text), points, remedy: Some(plain(sentence(&notice.remedy))) }
}

pub(crate) fn state_word(state: CheckState) -> String {
    variant_name(&state).replace('_', " ")
}
