//! The page of a comparison as one document, its sentences, and its JSON document.

use inferometer_analysis::comparison::{
    Basis, Change, ComparedLevel, Comparison, Judgement, LayoutFigures, Margins, Objection,
    QuantityComparison, Scale, Side, SideComparison, SideFacts, SideOutcome, SideValue, Terms,
    Weight,
};

use crate::document::terminal;
use crate::escape::{terminal_cut, terminal_ends};
use crate::pages::prelude::*;
use crate::terminal::Style;

/// The quantities of the speed-up table.
static SPEED_UPS: [(&str, &str); 2] =
    [(metric::INPUT_THROUGHPUT.name, "prompts"), (metric::OUTPUT_THROUGHPUT.name, "answers")];
/// Significance level of the permutation tests.
const CHANCE: f64 = 0.05;

/// The page for a terminal, with names that fit into its columns.
pub fn terminal(comparison: &Comparison, style: Style) -> String {
    terminal::render(&document(comparison, &Names::short(comparison)), style)
}

/// The page for a pull request or an issue.
pub fn markdown(comparison: &Comparison) -> String {
    crate::document::markdown::render(&document(comparison, &Names::whole(comparison))).text
}

/// The page as one HTML file, with charts of the changes.
pub fn html(comparison: &Comparison) -> String {
    let mut page = document(comparison, &Names::whole(comparison));
    page.title = format!("LLM Inference Benchmark {}", page.title);
    page.lead.headline = outcome_cards(comparison);
    let last = page.sections.len().saturating_sub(1);
    let untitled = page.sections.iter_mut().enumerate().filter(|(_, it)| it.title.is_empty());
    for (index, section) in untitled {
        let heading = match (index, section.blocks.first()) {
            (0, _) => "Result",
            (_, Some(Block::Table(_))) => "Changes by metric",
            (_, Some(Block::Verdict(_))) => "Reservations",
            (index, _) if index == last => "Notes",
            _ => "Not compared",
        };
        heading.clone_into(&mut section.title);
        section.id = heading.to_lowercase();
    }
    let charts: Vec<Block> = change_charts(comparison).into_iter().map(Block::from).collect();
    if !charts.is_empty() {
        let charts = Section { id: "changes".to_owned(), ..Section::new("Changes", charts) };
        page.sections.insert(1, charts);
    }
    page.footer = plain(format!("Made with Inferometer {}.", env!("CARGO_PKG_VERSION")));
    crate::document::html::render(&page)
}

/// How much the other sides differ from the first, for the head of a page; empty where they cannot be
/// compared.
pub(crate) fn cards(sides: &[Side<Summary>]) -> Vec<Card> {
    let terms = Terms { primary: None, margins: Margins::DEFAULT, force: true, layouts: None };
    Comparison::new(sides, &terms).map(|found| outcome_cards(&found)).unwrap_or_default()
}

fn outcome_cards(comparison: &Comparison) -> Vec<Card> {
    let base = comparison.sides.first().map_or("the base", |side| side.name.as_str());
    let card = |outcome: &SideOutcome| {
        let value = either_words(outcome.change, outcome.bare_ratio);
        let levels = match comparison.levels.len() - outcome.without.len() {
            0 | 1 => String::new(),
            several => format!(" on average over {several} levels"),
        };
        let confidence = percent(comparison.primary_confidence);
        let interval = outcome.change.map(interval_words);
        let interval = interval.map(|it| format!("; {confidence}: {it}")).unwrap_or_default();
        let within = outcome.basis == Basis::WithinRun;
        let label = format!("{} against {base}", outcome.side);
        let detail = format!("{}{levels}{interval}", title(&comparison.primary));
        let doubt = within.then(|| "the variation between runs is not known".to_owned());
        (value != NOTHING).then(|| self::card(&label, value, "", detail, doubt))
    };
    comparison.outcomes.iter().filter_map(card).collect()
}

/// The changes with their intervals: of the primary quantity at every level, and of all quantities at
/// the level of the highest load.
fn change_charts(comparison: &Comparison) -> Vec<Chart> {
    let names = Names::whole(comparison);
    let primary = title(&comparison.primary);
    let of_primary =
        sides_at_levels(comparison, &names, 0).into_iter().filter_map(|(name, side)| {
            let found = side.quantities.iter().find(|found| found.primary)?;
            Some((name, found))
        });
    let mut charts = vec![change_chart("changes-of-the-primary", &primary, of_primary)];
    let last = comparison.levels.last();
    for side in last.iter().flat_map(|level| &level.against) {
        let at = last.map(|level| names.level(&level.at, 0)).unwrap_or_default();
        let rows = side.quantities.iter().map(|found| (title(&found.quantity), found));
        let subject = format!("{}, {at}", names.side(&side.side));
        charts.push(change_chart(&format!("changes-of-{}", side.side), &subject, rows));
    }
    charts.into_iter().flatten().collect()
}

/// `None` where no quantity has a change with an interval.
fn change_chart<'a>(id: &str, subject: &str, rows: impl Iterator<Item = Row<'a>>) -> Option<Chart> {
    const ROWS_MAX: usize = 40;
    let per_cent = |ratio: f64| (ratio - 1.0) * 100.0;
    let group = |(name, found): Row<'a>| {
        let change = found.change.filter(|change| change.kind == Scale::Ratio)?;
        let words: &str = found.judgement.into();
        let bar = Bar {
            series: words.to_owned(),
            value: Some(per_cent(change.value)),
            text: Some(change_words(change)),
            interval: Some((per_cent(change.interval.low), per_cent(change.interval.high))),
            hollow: matches!(found.judgement, Judgement::Undecided | Judgement::NotJudged),
            ..Bar::default()
        };
        Some(BarGroup { label: name, bars: vec![bar] })
    };
    let groups: Vec<BarGroup> = rows.filter_map(group).take(ROWS_MAX).collect();
    let most = |word: &str, sign: f64| {
        let values = groups.iter().filter_map(|group| Some((group, group.bars[0].value? * sign)));
        let (group, value) = values.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let change = signed_percent(value * sign / 100.0);
        (0.0 < value).then(|| format!("{word}: {}, {change} %", group.label))
    };
    let words = [most("Largest increase", 1.0), most("Largest decrease", -1.0)];
    let finding = words.into_iter().flatten().try_join("; ").map(|words| words + ".");
    let finding = finding.unwrap_or_default();
    let n = format!("{}; bars have 95 % intervals", counted(groups.len() as u64, "change"));
    let y = linear("Change", "%");
    let title = format!("Change of {subject}");
    let plot = Plot::Bars(Bars { y, groups: groups.clone() });
    (!groups.is_empty()).then(|| Chart::new(id, title, finding, n, plot))
}

/// Exactly one document, with a line feed at its end.
pub fn json(comparison: &Comparison) -> String {
    String::from_utf8_lossy(&comparison.to_json_bytes()).into_owned()
}

/// The head and the text of an objection.
pub fn objection(objection: &Objection) -> (&'static str, String) {
    let (head, _) = weight_words(objection.weight);
    (head, format!("{}; {}", objection.text, objection.remedy))
}

/// A warning that the comparison decides nothing, and what to do about it.
pub fn nothing_decided(comparison: &Comparison) -> Option<String> {
    let is_silent = comparison.has_runs() && comparison.decides_nothing();
    is_silent.then(|| {
        if comparison.outcomes.iter().any(|outcome| outcome.bare_ratio.is_some()) {
            return text("nothing-decided-bare").to_owned();
        }
        fill("nothing-decided", &[&title(&comparison.primary)])
    })
}

const fn weight_words(weight: Weight) -> (&'static str, Mood) {
    match weight {
        Weight::Note => ("note", Mood::Note),
        Weight::Warning => ("warning", Mood::Doubt),
        Weight::Withholds => ("not compared", Mood::Doubt),
        Weight::Forbids => ("not comparable", Mood::Bad),
    }
}

fn document(comparison: &Comparison, names: &Names) -> Document {
    let side = |side: &SideFacts| {
        let key = if names.are_letters { format!("{}: ", side.name) } else { String::new() };
        (names.side(&side.name).to_owned(), plain(format!("{key}{}", side_words(side))))
    };
    let mut sections = vec![Section::new("", outcomes(comparison))];
    sections.extend(tables(comparison, names));
    let unmatched = comparison.unmatched.iter().map(|found| match found.sides.as_slice() {
        [] => format!("{} (no valid runs)", found.at),
        sides => format!("{} (only {})", found.at, sides.join(" and ")),
    });
    let unmatched = unmatched.try_join(", ").map(|all| format!("Not in all sides: {all}"));
    sections.push(Section::new("", unmatched.map(Block::paragraph).into_iter().collect()));
    let objections = comparison.objections.iter().map(|found| {
        let (word, words) = objection(found);
        badge(weight_words(found.weight).1, word, words, Vec::new())
    });
    sections.push(Section::new("", objections.collect()));
    let lines = if comparison.has_runs() { advice(comparison) } else { Vec::new() };
    sections.push(Section::new("", lines.into_iter().map(Block::paragraph).collect()));
    sections.retain(|section| !section.blocks.is_empty());
    let lead = Lead { subject: comparison.sides.iter().map(side).collect(), ..Lead::default() };
    let title = format!("Comparison by {}", title(&comparison.primary));
    Document { lead, ..Document::new(title, sections) }
}

/// A side in one line, without its name.
fn side_words(facts: &SideFacts) -> String {
    let left_out = match facts.left_out {
        0 => String::new(),
        runs => format!(", {runs} invalid and left out"),
    };
    let runs = facts.runs.len() as u64;
    let runs = match facts.tool {
        None => counted(runs, "run"),
        Some(tool) => format!("{} of {}", counted(runs, "result"), tool.name()),
    };
    let model = if facts.model.is_empty() { "no model named" } else { &facts.model };
    let server = match &facts.simulated {
        Some(profile) => format!(" at no server (simulated: {profile})"),
        None if facts.target.is_empty() => String::new(),
        None => format!(" at {}", facts.target),
    };
    format!("{}, {runs}{left_out}, {model}{server}", facts.source)
}

fn badge(mood: Mood, word: &str, text: String, points: Vec<String>) -> Block {
    let points = points.into_iter().map(plain).collect();
    Block::Verdict(Badge { mood, word: word.to_uppercase(), text: plain(text), points })
}

const fn judgement_mood(judgement: Judgement) -> Option<Mood> {
    match judgement {
        Judgement::Better => Some(Mood::Good),
        Judgement::Worse => Some(Mood::Bad),
        Judgement::Undecided => Some(Mood::Doubt),
        Judgement::Same | Judgement::NotJudged | Judgement::NotCompared => None,
    }
}

/// The decision about each side, and what qualifies it.
fn outcomes(comparison: &Comparison) -> Vec<Block> {
    let mut blocks = Vec::new();
    if comparison.sides.iter().any(|side| side.simulated.is_some()) {
        let text = "in virtual time: no server was measured".to_owned();
        blocks.push(badge(Mood::Doubt, "simulated", text, Vec::new()));
    }
    if comparison.forced {
        let text = "the sides are not comparable; compared because of --force".to_owned();
        blocks.push(badge(Mood::Bad, "forced", text, Vec::new()));
    }
    if !comparison.has_runs() {
        let is_empty = |side: &&SideFacts| side.left_out as usize == side.runs.len();
        let sides = comparison.sides.iter().filter(is_empty).map(|side| &side.name);
        let text = format!("no valid runs are left of {}", sides.join(" and "));
        blocks.push(badge(Mood::Bad, "not compared", text, Vec::new()));
        return blocks;
    }
    for outcome in &comparison.outcomes {
        let first = comparison.levels[0].against.iter().find(|found| found.side == outcome.side);
        let (base, other) = first.map_or((0, 0), |found| (found.base_runs, found.runs));
        let each = if comparison.levels.len() == 1 { "" } else { " at each level" };
        let basis = match outcome.basis {
            Basis::WithinRun => text("within-run").to_owned(),
            Basis::Paired => format!("{base} pairs of runs with the same seeds{each}"),
            Basis::Unpaired => format!("{base} runs against {other}{each}"),
        };
        let mut points = Vec::from_iter(outcome.change.map(|_| basis));
        let levels = outcome.without.iter();
        let levels = levels.map(|found| format!("{} ({})", found.at, found.reason)).try_join(", ");
        points.extend(levels.map(|levels| format!("without {levels}")));
        let mood = judgement_mood(outcome.judgement).unwrap_or(Mood::Note);
        let words = outcome_words(comparison, outcome);
        blocks.push(badge(mood, outcome.judgement.into(), words, points));
    }
    blocks.extend(nothing_decided(comparison).map(Block::paragraph));
    blocks
}

/// The decision about a side by the primary quantity.
fn outcome_words(comparison: &Comparison, outcome: &SideOutcome) -> String {
    let base = comparison.sides.first().map_or("the base", |side| side.name.as_str());
    let subject = format!("{} against {base}: {}", outcome.side, title(&comparison.primary));
    let all = comparison.levels.len();
    let average =
        |over: String| if all == 1 { String::new() } else { format!(" on average over {over}") };
    let why = |unknown: &str| outcome.reason.clone().unwrap_or_else(|| unknown.to_owned());
    match (outcome.change, outcome.bare_ratio) {
        (Some(found), _) => {
            let levels = match outcome.without.len() {
                0 => format!("{all} levels"),
                without => format!("{} of {all} levels", all - without),
            };
            let confidence = percent(comparison.primary_confidence);
            let (change, interval) = (change_words(found), interval_words(found));
            format!("{subject} {change}{} ({confidence}: {interval})", average(levels))
        }
        (None, Some(ratio)) => {
            let levels = average("the levels that have it".to_owned());
            let why = why("its uncertainty is not known");
            format!("{subject} {}{levels}: {why}", ratio_words(ratio))
        }
        (None, None) => {
            format!("{subject} is not compared: {}", why("there is no change to judge"))
        }
    }
}

/// Every table of the comparison, in the order of the page.
fn tables(comparison: &Comparison, names: &Names) -> Vec<Section> {
    let mut sections = Vec::new();
    let (several_levels, several_sides) =
        (1 < comparison.levels.len(), 1 < comparison.outcomes.len());
    // With this many levels only the primary quantity is shown.
    let is_long = 16 < comparison.levels.len();
    if is_long {
        sections.push(primary_table(comparison, names));
    }
    for level in comparison.levels.iter().filter(|_| !is_long) {
        let at = several_levels.then(|| names.level(&level.at, 0));
        for side in &level.against {
            let (base, name) = (names.base(), names.side(&side.side));
            let sides = several_sides.then(|| format!("{name} against {base}"));
            let title = at.clone().into_iter().chain(sides).join(": ");
            let rows = side.quantities.iter().map(|found| (title_with_unit(found), found));
            let table = quantity_table(rows.collect(), true, base, name);
            sections.push(table_section(title, table.noted(confidence_note(comparison))));
        }
    }
    // With one level and one side it would only repeat the table above it.
    if (several_levels || several_sides) && !is_long {
        sections.extend(speed_ups(comparison, names));
    }
    sections.extend(layouts(comparison, names));
    sections
}

/// A name and a quantity of one side.
type Row<'a> = (String, &'a QuantityComparison);

/// Both sides, the change and its verdict, behind a column of names.
fn quantity_table(rows: Vec<Row<'_>>, marks_primary: bool, base: &str, other: &str) -> Table {
    let value = |found: &QuantityComparison, side: &SideValue| {
        let doubtful = side.mean.is_some() && !side.certified;
        let text = if is_share(&found.quantity) { percent(side.mean) } else { number(side.mean) };
        let reason = "too few independent samples in a run to certify this percentile";
        Cell::text(text).doubted(doubtful.then(|| reason.to_owned()))
    };
    let known = |found: &QuantityComparison, text: String| {
        let reason = found.reason.clone().filter(|_| text == NOTHING);
        Cell { reason, ..Cell::text(text) }
    };
    Columns::new("", |(name, found): &Row<'_>| Cell {
        mood: (marks_primary && found.primary).then_some(Mood::Note),
        ..Cell::text(name.clone())
    })
    .right(base, |(_, found)| value(found, &found.base))
    .right(other, |(_, found)| value(found, &found.other))
    .right("change", |(_, found)| known(found, either_words(found.change, found.bare_ratio)))
    .right("verdict", |(_, found)| Cell {
        mood: judgement_mood(found.judgement),
        ..Cell::text(<&str>::from(found.judgement))
    })
    // Last, because a narrow terminal shows the last column below the others.
    .right(INTERVAL, |(_, found)| known(found, interval_or_dash(found.change)))
    .table("", "", rows)
}

/// A note that the primary quantity has a higher confidence than the head of the table states.
fn confidence_note(comparison: &Comparison) -> Option<String> {
    (1 < comparison.outcomes.len()).then(|| {
        let confidence = percent(comparison.primary_confidence);
        format!("{}: its interval is of {confidence}", title(&comparison.primary))
    })
}

fn table_section(title: impl Into<String>, table: Table) -> Section {
    Section::new(title, vec![table.into()])
}

/// The primary quantity at every level, a row for each.
fn primary_table(comparison: &Comparison, names: &Names) -> Section {
    let several = 1 < comparison.outcomes.len();
    let mut title = title(&comparison.primary);
    let mut rows = Vec::new();
    for (name, side) in sides_at_levels(comparison, names, 0) {
        let Some(found) = side.quantities.iter().find(|found| found.primary) else { continue };
        title = title_with_unit(found);
        rows.push((name, found));
    }
    let other = comparison.outcomes.first().filter(|_| !several);
    let other = other.map_or("other", |outcome| names.side(&outcome.side));
    let table = quantity_table(rows, false, names.base(), other);
    let shared = names.shared.as_ref().map(|shared| format!("every row: {shared}"));
    let table = table.noted(confidence_note(comparison)).noted(shared);
    table_section(title, table.noted([text("only-primary")]))
}

/// Every side but the base at every level, with the name of its row.
fn sides_at_levels<'a>(
    comparison: &'a Comparison,
    names: &Names,
    width: usize,
) -> Vec<(String, &'a SideComparison)> {
    let mut rows = Vec::new();
    for level in &comparison.levels {
        for side in &level.against {
            let mut name = names.level(&level.at, width);
            if 1 < comparison.outcomes.len() {
                name = format!("{name}, {}", names.side(&side.side));
            }
            rows.push((name, side));
        }
    }
    rows
}

/// Throughputs of prompts and of answers side by side, and the speed-up in per cent.
fn speed_ups(comparison: &Comparison, names: &Names) -> Option<Section> {
    type Row<'a> = (String, &'a SideComparison);
    type Get = fn(&QuantityComparison) -> String;
    let mut rows: Vec<Row<'_>> = sides_at_levels(comparison, names, 1);
    rows.retain(|(_, side)| SPEED_UPS.iter().any(|(name, _)| side.quantity(name).is_some()));
    let mut columns = Columns::new("", |(label, _): &Row<'_>| Cell::text(label.clone()));
    for (name, title) in SPEED_UPS {
        let parts: [(String, Get); 3] = [
            (format!("{title}, base"), |found| number(found.base.mean)),
            (title.to_owned(), |found| number(found.other.mean)),
            ("speed-up".to_owned(), |found| either_words(found.change, found.bare_ratio)),
        ];
        for (title, get) in parts {
            let text = move |(_, side): &Row<'_>| {
                side.quantity(name).map_or_else(|| NOTHING.to_owned(), get)
            };
            let is_known = rows.iter().any(|row| text(row) != NOTHING);
            columns = columns.right(title, move |row| Cell::text(text(row))).only_if(is_known);
        }
    }
    let table = columns.table("", "", rows);
    let title = format!("Speed-up over {} (tokens per second)", names.base());
    (1 < table.columns.len()).then(|| table_section(title, table))
}

fn layouts(comparison: &Comparison, names: &Names) -> Option<Section> {
    let first = comparison.layouts.first()?;
    let gpus = first.replicas * first.tensor_parallel;
    let several = 1 < comparison.levels.len();
    let table = Columns::new("servers × GPUs", |found: &&LayoutFigures| {
        let at = if several { format!(", {}", names.level(&found.at, 0)) } else { String::new() };
        let side = names.side(&found.side);
        Cell::text(format!("{}×{} {side}{at}", found.replicas, found.tensor_parallel))
    })
    .right("per GPU", |found| Cell::text(number(found.per_gpu.value)))
    .right("node", |found| Cell::text(number(found.node.value)))
    .right("change", |found| Cell::text(either_words(found.change, found.bare_ratio)))
    .right(INTERVAL, |found| Cell::text(interval_or_dash(found.change)))
    .table("", "", &comparison.layouts);
    let title = format!("A node of {gpus} GPUs (output tokens per second)");
    Some(table_section(title, table.noted([text("node-note")])))
}

/// `TTFT p99`; the name itself where this version does not know it.
fn title(quantity: &str) -> String {
    let known = Quantity::named(quantity, LatencyOrigin::Sent);
    known.map_or_else(|_| quantity.to_owned(), |known| known.title())
}

fn title_with_unit(found: &QuantityComparison) -> String {
    let name = &found.quantity;
    let unit = if is_share(name) { String::new() } else { format!(" ({})", found.unit) };
    format!("{}{unit}", title(name))
}

fn is_share(quantity: &str) -> bool {
    Quantity::named(quantity, LatencyOrigin::Sent)
        .is_ok_and(|known| known.metric().unit == Unit::Share)
}

/// `+4.2 %` of a ratio, `+0.3 points` of a difference between shares.
fn change_words(change: Change) -> String {
    match change.kind {
        Scale::Ratio => ratio_words(change.value),
        Scale::Difference => format!("{} points", signed_percent(change.value)),
    }
}

fn ratio_words(ratio: f64) -> String {
    format!("{} %", signed_percent(ratio - 1.0))
}

/// The change, with an interval or without one.
fn either_words(found: Option<Change>, bare_ratio: Option<f64>) -> String {
    let words = found.map(change_words).or_else(|| bare_ratio.map(ratio_words));
    words.unwrap_or_else(|| NOTHING.to_owned())
}

fn interval_words(change: Change) -> String {
    let end = |end: f64| signed_percent(end - change.kind.unchanged());
    fmt::between(" to ", end(change.interval.low), &end(change.interval.high))
}

fn interval_or_dash(change: Option<Change>) -> String {
    change.map_or_else(|| NOTHING.to_owned(), interval_words)
}

fn margin_words(margins: Margins) -> String {
    let share = setting(margins.share * 100.0);
    fill("margins", &[&percent(margins.centre), &percent(margins.tail), &share])
}

/// The margins, and how many differences chance alone would cause.
fn advice(comparison: &Comparison) -> Vec<String> {
    let mut lines = vec![margin_words(comparison.margins)];
    let (made, primary) = (comparison.comparisons, &comparison.primary);
    if made == 0 {
        return lines;
    }
    let made = count(made.into()) + if made == 1 { " comparison was" } else { " comparisons were" };
    lines.push(fill("made", &[&made, primary]));
    if 1 < comparison.outcomes.len() {
        let confidence = percent(comparison.primary_confidence);
        lines.push(fill("joint-confidence", &[&confidence, &comparison.outcomes.len()]));
    }
    lines.extend(permutation_tests(comparison));
    lines
}

/// The exact permutation tests, which are advice only.
fn permutation_tests(comparison: &Comparison) -> Vec<String> {
    let several = (1 < comparison.levels.len(), 1 < comparison.outcomes.len());
    let mut tests = Vec::new();
    for level in &comparison.levels {
        let at = if several.0 { format!(" ({})", level.at) } else { String::new() };
        for side in &level.against {
            let of = if several.1 { format!(" of {}", side.side) } else { String::new() };
            tests.extend(side.quantities.iter().filter_map(|found| {
                let name = format!("{}{of}{at}", title(&found.quantity));
                Some((found.primary, name, found.permutation?))
            }));
        }
    }
    let least = tests.iter().map(|(.., test)| test.smallest_attainable).fold(0.0, f64::max);
    if CHANCE < least {
        return vec![fill("too-few-runs", &[&number(least)])];
    }
    let (primary, others): (Vec<_>, Vec<_>) = tests.into_iter().partition(|(primary, ..)| *primary);
    let primary = primary.iter().map(|(_, name, test)| format!("{name} p = {}", number(test.p)));
    let primary = primary.try_join(", ").map(|all| format!("Permutation test (advice): {all}."));
    let mut lines = Vec::from_iter(primary);
    if others.is_empty() {
        return lines;
    }
    // Significant differences among the other quantities.
    let below = |p: Option<f64>| p.is_some_and(|p| p < CHANCE);
    let (certain, uncertain): (Vec<_>, Vec<_>) =
        others.iter().partition(|(.., test)| below(test.holm));
    let likely = uncertain.iter().filter(|(.., test)| below(test.false_discovery));
    let likely = likely.map(|(_, name, _)| name).try_join(", ");
    let least = least * others.len() as f64;
    let which = match certain.iter().map(|(_, name, _)| name).try_join(", ") {
        None if CHANCE <= least => {
            format!("none, and with this few runs none can be (at least {})", number(least))
        }
        certain => certain.unwrap_or_else(|| "none".to_owned()),
    };
    let count = others.len();
    lines.push(format!("Of the {count} others, beyond chance after Holm's correction: {which}."));
    lines.extend(likely.map(|likely| fill("worth-a-look", &[&likely])));
    lines
}

/// Columns for the name of a side.
const SIDE_WIDTH: usize = 12;
/// Columns for the name of a level, or of a row of a suite or a matrix.
const LEVEL_WIDTH: usize = 40;
/// Columns for it next to many other columns.
const NARROW_WIDTH: usize = 26;
/// Separator of the axes in the name of a matrix cell.
const SEPARATOR: &str = " · ";

/// The names of a page.
struct Names {
    /// Each side with what the tables call it, the base first.
    sides: Vec<(String, String)>,
    /// Whether the tables have letters, which a key must explain.
    are_letters: bool,
    /// Each level or row with its short name and a shorter one; empty on a page of any width.
    levels: Vec<(String, [String; 2])>,
    /// Parts of the names that all rows share.
    shared: Option<String>,
}

impl Names {
    /// The whole names, for a page of any width.
    fn whole(comparison: &Comparison) -> Self {
        let sides = comparison.sides.iter().map(|side| (side.name.clone(), side.name.clone()));
        Self { sides: sides.collect(), are_letters: false, levels: Vec::new(), shared: None }
    }

    /// Cut for a terminal where they stay distinct: at the end, else in the middle, else at the
    /// beginning. Where it does not, they are letters.
    fn short(comparison: &Comparison) -> Self {
        let names: Vec<&str> = comparison.sides.iter().map(|side| side.name.as_str()).collect();
        let found = cut_distinct(&names, SIDE_WIDTH);
        let are_letters = found.is_none();
        let shown = found.unwrap_or_else(|| (0..names.len()).map(letter).collect());
        let sides = names.into_iter().map(str::to_owned).zip(shown).collect();
        let levels = comparison.levels.iter().map(|level| level.at.to_string()).collect();
        let (levels, shared) = level_names(levels);
        Self { sides, are_letters, levels, shared }
    }

    fn side(&self, side: &str) -> &str {
        let known = self.sides.iter().find(|(name, _)| name == side);
        known.map_or("", |(_, shown)| shown.as_str())
    }

    fn base(&self) -> &str {
        self.sides.first().map_or("", |(_, shown)| shown.as_str())
    }

    /// The name of a level; of width 1 a shorter one.
    fn level(&self, level: &ComparedLevel, width: usize) -> String {
        let name = level.to_string();
        let known = self.levels.iter().find(|(known, _)| *known == name);
        known.map_or(name, |(_, cut)| cut[width].clone())
    }
}

/// Cut to a width where they stay distinct: at the end, else in the middle, else at the beginning.
fn cut_distinct(names: &[&str], width: usize) -> Option<Vec<String>> {
    let cuts: [fn(&str, usize) -> String; 3] =
        [terminal_line, terminal_ends, |name, width| terminal_cut(name, width, 0)];
    let mut cut = cuts.iter().map(|cut| names.iter().map(|name| cut(name, width)).collect());
    cut.find(|cut: &Vec<String>| cut.iter().collect::<BTreeSet<_>>().len() == names.len())
}

/// Names of rows of a matrix are long: parts that all share are removed, and the rest is cut.
fn level_names(names: Vec<String>) -> (Vec<(String, [String; 2])>, Option<String>) {
    let (own, shared) = without_shared(&names);
    let shown = |width: usize| {
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let numbered = || {
            let number = |(number, name): (usize, &&str)| format!("{number}. {name}");
            (1..).zip(&own).map(number).map(|name| terminal_line(&name, width)).collect()
        };
        cut_distinct(&own, width).unwrap_or_else(numbered)
    };
    let cut = shown(LEVEL_WIDTH).into_iter().zip(shown(NARROW_WIDTH));
    (names.into_iter().zip(cut.map(|(shown, narrow)| [shown, narrow])).collect(), shared)
}

/// Each without the parts that all have at the same position, and these parts.
fn without_shared(names: &[String]) -> (Vec<String>, Option<String>) {
    let parts: Vec<Vec<&str>> = names.iter().map(|name| name.split(SEPARATOR).collect()).collect();
    let Some((first, others)) = parts.split_first().filter(|(_, others)| !others.is_empty()) else {
        return (names.to_vec(), None);
    };
    let is_shared = |index: &usize| others.iter().all(|own| own.get(*index) == first.get(*index));
    let shared: Vec<usize> = (0..first.len()).filter(is_shared).collect();
    let is_table = others.iter().all(|own| own.len() == first.len());
    if !is_table || shared.is_empty() || shared.len() == first.len() {
        return (names.to_vec(), None);
    }
    let own = |parts: &Vec<&str>| {
        let kept = parts.iter().enumerate().filter(|(index, _)| !shared.contains(index));
        kept.map(|(_, part)| part).join(SEPARATOR)
    };
    let common = shared.iter().map(|index| first[*index]).join(SEPARATOR);
    (parts.iter().map(own).collect(), Some(common))
}

/// The name of a side without one: `A` to `Z`, then numbers.
pub fn letter(index: usize) -> String {
    ('A'..='Z').nth(index).map_or_else(|| (index + 1).to_string(), String::from)
}

#[cfg(test)]
mod tests {
    use inferometer_analysis::Interval;

    use super::*;

    #[test]
    fn changes_are_per_cent_and_shares_are_points() {
        let change = |kind, value, low, high| {
            let interval = Interval::new(low, high).unwrap();
            let change = Change { kind, value, interval };
            (change_words(change), interval_words(change))
        };
        let words = |change: &str, interval: &str| (change.to_owned(), interval.to_owned());
        let ratio = change(Scale::Ratio, 0.9, 0.875, 0.9254);
        assert_eq!(ratio, words("-10.0 %", "-12.5 to -7.5"));
        let double = change(Scale::Ratio, 2.5, 1.0, 3.0);
        assert_eq!(double, words("+150 %", "0.0 to +200"));
        let share = change(Scale::Difference, 0.012, -0.0001, 0.03);
        assert_eq!(share, words("+1.2 points", "0.0 to +3.0"));
    }

    #[test]
    fn quantities_have_the_titles_of_their_metrics() {
        assert_eq!(title("ttft_schedule.p99"), "TTFT from schedule p99");
        assert_eq!(title("output_throughput"), "Output throughput");
        assert_eq!(title("of_tomorrow"), "of_tomorrow");
        assert!(is_share("error_rate") && !is_share("ttft.p99"));
    }

    #[test]
    fn margins_are_told_with_their_units() {
        let told = margin_words(Margins::DEFAULT);
        assert!(told.contains("±2 % of throughputs") && told.contains("±1 point"), "{told}");
    }

    #[test]
    fn names_are_cut_where_they_are_alike() {
        assert_eq!(terminal_ends("configuration 2", SIDE_WIDTH), "confi…tion 2");
        assert_eq!(terminal_cut("configuration 2, min rate", SIDE_WIDTH, 0), "…2, min rate");
        assert_eq!(terminal_ends("tp8", SIDE_WIDTH), "tp8");
        assert_eq!(cut_distinct(&["a", "a"], SIDE_WIDTH), None);
        assert_eq!((letter(0), letter(25), letter(26)), ("A".into(), "Z".into(), "27".into()));
    }

    #[test]
    fn rows_of_a_matrix_say_once_what_all_say_and_stay_apart() {
        let row = |preset: &str, context: u32, load: u32| {
            format!("{preset} · DeepSeek-R1-Distill-Qwen-32B · {context} · tensor · {load} at once")
        };
        let names: Vec<String> = [2048, 128_000]
            .into_iter()
            .flat_map(|context| [1, 10].map(|load| row("a preset of a long name", context, load)))
            .chain([row("another", 2048, 1)])
            .collect();
        let (found, shared) = level_names(names);
        assert_eq!(shared.unwrap(), "DeepSeek-R1-Distill-Qwen-32B · tensor");
        assert_eq!(found[1].1[0], "a preset of a long name · 2048 · 10 at …");
        assert_eq!(found[3].1[0], "a preset of a long name · 128000 · 10 a…");
        let distinct: BTreeSet<&String> = found.iter().map(|(_, cut)| &cut[1]).collect();
        assert_eq!(distinct.len(), 5, "{distinct:?}");
        assert!(distinct.iter().all(|name| name.chars().count() <= NARROW_WIDTH), "{distinct:?}");
        let (alone, nothing) = level_names(vec!["c=4".to_owned(), "c=8".to_owned()]);
        assert_eq!((alone[1].1[0].as_str(), nothing), ("c=8", None));
    }
}
