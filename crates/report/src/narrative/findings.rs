//! Sentences that rules make from the numbers. A rule writes a sentence only where its numbers are
//! known, and every sentence names its facts.
//!
//! To add a rule: a function from the page to a sentence or none in `rules`, its name in the list of
//! its section, and its threshold with a reason. Sentences are templates:
//!
//! | placeholder | filled by |
//! |---|---|
//! | `{ttft.p99}` | a fact of the row, or of the page, with its unit; nothing is written where it is missing |
//! | `{level}`, `{*name}` | the row's level (`c=4`) and its name |
//! | `{}` | a part: a fact with its unit, a level (`c=4`), a text or a sentence |
//! | `{=}` | a fact without its unit, where the text around it names it |
//! | `{>}` | a fact that links to its table, where a table has it |
//! | `{*}` | a name: of a scenario, a model or a machine; it makes no claim |
//! | `{$}` | code, such as a command |
//! | `{~}` | a fact that the sentence rests on and does not print |
//! | `` `…` `` | code, such as a flag |
//! | `[…]` | left out where a fact in it is missing |

mod rules;

use std::collections::BTreeMap;

use inferometer_analysis::set::{Findings, FoundLimit, PointResult, QuestionKind, SetSummary};
use inferometer_analysis::{Better, Metric, Summary, Unit};
use inferometer_model::study::Level;

use super::facts::{NarratedRow as Row, split_statistic};
use super::{Author, Fact, FactUnit, Facts, Narrative, Sentence};
use crate::document::Span;

/// The narrative of a suite, a sweep or a repetition; the facts are those of the same set.
pub fn from_set(set: &SetSummary, points: &[PointResult], facts: &Facts) -> Narrative {
    let mut page = Page::new(facts, Row::from_set(set, points));
    (page.set, page.first) = (Some(set), points.first().map(|point| &point.summary));
    for (place, condition) in (0_u32..).zip(&set.conditions) {
        let own = (0..page.rows.len()).filter(|row| page.rows[*row].condition == place);
        let (rows, name): (Vec<usize>, _) = (own.collect(), condition.name.as_str());
        if let Some(findings) = condition.findings.as_ref().filter(|_| 1 < rows.len()) {
            page.families.push(Family { name, rows, findings });
        }
    }
    for limit in set.limits.iter().filter(|limit| limit.level.is_some()) {
        let is_it = |row: &Row<'_>| {
            let level = row.level().and_then(Level::place);
            row.condition == limit.condition && level == limit.level
        };
        page.searched.extend(page.rows.iter().position(is_it).map(|row| (row, limit)));
    }
    page.narrate()
}

/// The narrative of a single run; the facts are those of the same run. Its findings are in the
/// scenario without a name.
pub fn from_run(summary: &Summary, facts: &Facts) -> Narrative {
    Page { first: Some(summary), ..Page::new(facts, vec![Row::from_run(summary)]) }.narrate()
}

/// Writes a sentence, or a part of one, of a page or a row: `say!(page, row => "TTFT p99 is
/// {>ttft.p99}{}.", end)`. `None` where a fact of it is missing.
macro_rules! say {
    ($page:expr, $row:expr => $template:expr $(, $part:expr)* $(,)?) => {
        $page.sentence(Some($row), $template, &[$(&$part as &dyn super::Part),*])
    };
    ($page:expr, $template:expr $(, $part:expr)* $(,)?) => {
        $page.sentence(None, $template, &[$(&$part as &dyn super::Part),*])
    };
}
use say;

/// What the rules read: the rows of a page with their facts.
struct Page<'a> {
    facts: &'a Facts,
    /// By scenario, quantity and statistic: rules look up hundreds of facts of every row.
    places: BTreeMap<(Option<&'a str>, &'a str, Option<&'a str>), usize>,
    /// `None` for a single run.
    set: Option<&'a SetSummary>,
    /// The first run.
    first: Option<&'a Summary>,
    rows: Vec<Row<'a>>,
    families: Vec<Family<'a>>,
    /// The results of searches, each with the index of the row that met every goal.
    searched: Vec<(usize, &'a FoundLimit)>,
}

/// The levels of one scenario or one server.
struct Family<'a> {
    name: &'a str,
    /// Indices of the rows, from the lowest level to the highest.
    rows: Vec<usize>,
    findings: &'a Findings,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MeasuredBy<'a> {
    Suite(&'a str),
    Sweep,
    Repeat,
    Run,
    Simulation,
}

impl<'a> Page<'a> {
    fn new(facts: &'a Facts, rows: Vec<Row<'a>>) -> Self {
        let mut places = BTreeMap::new();
        for (place, fact) in facts.facts.iter().enumerate() {
            let about = &fact.about;
            let statistic = about.statistic.as_deref();
            let key = (about.scenario.as_deref(), about.quantity.as_str(), statistic);
            places.entry(key).or_insert(place);
        }
        let (families, searched) = (Vec::new(), Vec::new());
        Self { facts, places, set: None, first: None, rows, families, searched }
    }

    fn narrate(&self) -> Narrative {
        if self.rows.is_empty() {
            return Narrative::default();
        }
        let scenarios = self
            .rows
            .iter()
            .map(|row| (row.name().unwrap_or_default().to_owned(), rules::scenario(self, row)));
        Narrative {
            author: Author::Rules,
            summary: rules::summary(self),
            scenarios: scenarios.filter(|(_, sentences)| !sentences.is_empty()).collect(),
            scaling: rules::scaling(self),
            uncertainties: rules::uncertainty(self),
            recommendations: rules::advice(self),
        }
    }

    fn measured_by(&self) -> MeasuredBy<'a> {
        let Some(set) = self.set else {
            return if self.is_simulated() { MeasuredBy::Simulation } else { MeasuredBy::Run };
        };
        match &set.suite {
            Some(suite) => MeasuredBy::Suite(&suite.name),
            None if set.asked.question == QuestionKind::Repeat => MeasuredBy::Repeat,
            None => MeasuredBy::Sweep,
        }
    }

    fn is_simulated(&self) -> bool {
        let is_run_simulated = || self.first.is_some_and(|run| run.run.simulated.is_some());
        self.set.map_or_else(is_run_simulated, |set| set.simulated)
    }

    /// The index of a fact of a row: of a quantity, or of a statistic of it, such as `ttft.p99`.
    #[expect(clippy::needless_pass_by_value, reason = "a quantity or its name, written in place")]
    fn at(&self, row: &Row<'_>, quantity: impl ToString) -> Option<usize> {
        self.named_at(row.name(), &quantity.to_string())
    }

    /// The index of a fact of the row with this name, or of the whole page.
    fn named_at(&self, name: Option<&str>, quantity: &str) -> Option<usize> {
        let (quantity, statistic) = split_statistic(quantity);
        self.places.get(&(name, quantity, statistic)).copied()
    }

    /// The index of a fact of the whole page.
    fn whole(&self, quantity: &str) -> Option<usize> {
        self.named_at(None, quantity)
    }

    /// A number of the whole page; zero where there is none.
    fn count(&self, quantity: &str) -> f64 {
        self.whole(quantity).map_or(0.0, |place| self.value(place))
    }

    /// The preposition before a row: in a scenario, at a level.
    fn there(&self) -> &'static str {
        if let MeasuredBy::Suite(_) = self.measured_by() { " in " } else { " at " }
    }

    fn fact(&self, place: usize) -> &Fact {
        &self.facts.facts[place]
    }

    fn value(&self, place: usize) -> f64 {
        self.fact(place).value
    }

    /// Whether the confidence intervals overlap; numbers without intervals do not.
    fn overlap(&self, one: usize, other: usize) -> bool {
        let intervals = self.fact(one).interval.zip(self.fact(other).interval);
        intervals.is_some_and(|(a, b)| a.0 <= b.1 && b.0 <= a.1)
    }

    /// Whether two numbers cannot be distinguished: their intervals overlap, or a page prints the same.
    fn is_same(&self, one: usize, other: usize) -> bool {
        self.overlap(one, other) || self.fact(one).printed == self.fact(other).printed
    }

    /// A number of a row, where it is known and meets the condition.
    fn when(
        &self,
        row: &Row<'_>,
        quantity: impl ToString,
        condition: impl Fn(f64) -> bool,
    ) -> Option<usize> {
        self.at(row, quantity).filter(|place| condition(self.value(*place)))
    }

    /// The row with the largest number.
    fn largest(&self, number: impl Fn(&Row<'a>) -> Option<usize>) -> Option<(&Row<'a>, usize)> {
        let found = self.rows.iter().filter_map(|row| Some((row, number(row)?)));
        found.max_by(|(_, a), (_, b)| self.value(*a).total_cmp(&self.value(*b)))
    }

    /// The fewest requests that any of the rows has.
    fn fewest_requests<'p>(&self, rows: impl Iterator<Item = &'p Row<'a>>) -> Option<usize>
    where
        'a: 'p,
    {
        let counts = rows.filter_map(|row| self.at(row, "requests"));
        counts.min_by(|a, b| self.value(*a).total_cmp(&self.value(*b)))
    }

    /// The row of the sweet spot, where it can be compared.
    fn sweet_spot(&self, family: &Family<'_>) -> Option<&Row<'a>> {
        self.row_at(family, family.findings.sweet_spot.found()?.level)
    }

    /// The row of a level, where it can be compared.
    fn row_at(&self, family: &Family<'_>, level: Level) -> Option<&Row<'a>> {
        let mut rows = family.rows.iter().map(|place| &self.rows[*place]);
        rows.find(|row| row.level() == Some(level)).filter(|row| row.is_comparable())
    }

    /// The rows that can be compared, from the lowest level to the highest.
    fn rows_of(&self, family: &Family<'_>) -> impl DoubleEndedIterator<Item = &Row<'a>> {
        self.every_row_of(family).filter(|row| row.is_comparable())
    }

    fn every_row_of(&self, family: &Family<'_>) -> impl DoubleEndedIterator<Item = &Row<'a>> {
        family.rows.iter().map(|place| &self.rows[*place])
    }

    /// All rows that can be compared.
    fn compared(&self) -> impl Iterator<Item = &Row<'a>> {
        self.rows.iter().filter(|row| row.is_comparable())
    }

    /// The row with the highest or the lowest number, and those that cannot be distinguished from it.
    #[expect(clippy::needless_pass_by_value, reason = "a quantity or its name, written in place")]
    fn leading<'p>(
        &self,
        rows: impl Iterator<Item = &'p Row<'a>>,
        quantity: impl ToString,
        order: Better,
    ) -> Option<Leading<'p, 'a>>
    where
        'a: 'p,
    {
        let quantity = quantity.to_string();
        let found = rows.filter_map(|row| Some((row, self.at(row, &quantity)?)));
        let mut found: Vec<(&Row<'a>, usize)> = found.collect();
        found.sort_by(|(_, a), (_, b)| {
            let (a, b) = (self.value(*a), self.value(*b));
            if order == Better::Higher { b.total_cmp(&a) } else { a.total_cmp(&b) }
        });
        let ((row, place), others) = found.split_first()?;
        let rivals = others.iter().copied().filter(|(_, other)| self.is_same(*place, *other));
        let (rivals, next) = (rivals.collect(), others.first().copied());
        Some(Leading { row, place: *place, rivals, next })
    }

    /// Fills the placeholders of a template in order; `None` where a fact is missing.
    fn sentence(
        &self,
        row: Option<&Row<'_>>,
        template: &str,
        parts: &[&dyn Part],
    ) -> Option<Sentence> {
        let mut written = Sentence::default();
        let mut parts = parts.iter();
        for (number, piece) in template.split(['[', ']']).enumerate() {
            let mut filled = Sentence::default();
            if self.fill(&mut filled, row, piece, &mut parts).is_some() {
                written.append(filled);
            } else if number % 2 == 0 {
                return None;
            }
        }
        Some(written)
    }

    fn fill<'p>(
        &self,
        written: &mut Sentence,
        row: Option<&Row<'_>>,
        template: &str,
        parts: &mut impl Iterator<Item = &'p &'p dyn Part>,
    ) -> Option<()> {
        let mut pieces = template.split('{');
        written.push_text(pieces.next().unwrap_or_default());
        for piece in pieces {
            let (placeholder, text) = piece.split_once('}')?;
            let name = placeholder.trim_start_matches(['=', '>', '*', '$', '~']);
            let mode = &placeholder[..placeholder.len() - name.len()];
            match name {
                "" => parts.next()?.write(self, mode, written)?,
                "level" => row?.write(self, mode, written)?,
                "name" => written.push(Span::Strong(row?.name()?.to_owned())),
                quantity => {
                    self.named_at(row.and_then(Row::name), quantity)?.write(self, mode, written)?;
                }
            }
            written.push_text(text);
        }
        Some(())
    }
}

/// The first row by a number.
struct Leading<'p, 'a> {
    row: &'p Row<'a>,
    place: usize,
    /// All that cannot be distinguished from it, the nearest first.
    rivals: Vec<(&'p Row<'a>, usize)>,
    /// The next one, rival or not.
    next: Option<(&'p Row<'a>, usize)>,
}

/// Fills a placeholder without a name; `None` where a fact is missing.
trait Part {
    fn write(&self, page: &Page<'_>, mode: &str, written: &mut Sentence) -> Option<()>;
}

/// Nothing is printed where there is none.
impl<T: Part> Part for Option<T> {
    fn write(&self, page: &Page<'_>, mode: &str, written: &mut Sentence) -> Option<()> {
        self.as_ref().map_or(Some(()), |part| part.write(page, mode, written))
    }
}

impl Part for &str {
    fn write(&self, _: &Page<'_>, mode: &str, written: &mut Sentence) -> Option<()> {
        match mode {
            _ if self.is_empty() => {}
            "*" => written.push(Span::Strong((*self).to_owned())),
            "$" => written.push(Span::Code((*self).to_owned())),
            _ => written.push(Span::from(*self)),
        }
        Some(())
    }
}

impl Part for Sentence {
    fn write(&self, _: &Page<'_>, _: &str, written: &mut Sentence) -> Option<()> {
        written.append(self.clone());
        Some(())
    }
}

/// The level of a row: `c=4`, or its name where there are several servers or rates.
impl Part for &Row<'_> {
    fn write(&self, page: &Page<'_>, _: &str, written: &mut Sentence) -> Option<()> {
        if 1 < page.families.len() || page.at(self, "asked_rate").is_some() {
            written.push(Span::Strong(self.name()?.to_owned()));
            return Some(());
        }
        let place = page.at(self, "concurrency")?;
        written.rest_on(place);
        written.push(Span::Plain(format!("c={}", page.fact(place).printed)));
        Some(())
    }
}

/// A fact by its index.
impl Part for usize {
    fn write(&self, page: &Page<'_>, mode: &str, written: &mut Sentence) -> Option<()> {
        written.rest_on(*self);
        let fact = page.fact(*self);
        let noun = match (fact.unit, fact.about.quantity.as_str()) {
            (FactUnit::Tokens, _) => "tokens",
            (FactUnit::Metric(Unit::Requests), _) => "requests",
            (_, noun @ ("levels" | "scenarios" | "runs")) => noun,
            _ => "",
        };
        let suffix = match noun {
            "" => fact.unit.suffix(),
            noun if fact.printed == "1" => format!(" {}", noun.trim_end_matches('s')),
            noun => format!(" {noun}"),
        };
        let text = format!("{}{suffix}", fact.printed.replace("< ", "less than "));
        match mode {
            "~" => {}
            "=" => written.push(Span::Plain(fact.printed.clone())),
            // Counts of the whole page, ratios and numbers of the server have no table.
            ">" if Metric::named(&fact.about.quantity).is_some() => {
                written.push(Span::Link { text, to: fact.table.clone() });
            }
            _ => written.push(Span::Plain(text)),
        }
        Some(())
    }
}

impl Sentence {
    fn append(&mut self, other: Self) {
        other.text.into_iter().for_each(|span| self.push(span));
        other.facts.into_iter().for_each(|place| self.rest_on(place));
    }

    fn push_text(&mut self, text: &str) {
        for (number, part) in text.split('`').enumerate() {
            let is_code = number % 2 == 1;
            self.push(if is_code { Span::Code(part.to_owned()) } else { Span::from(part) });
        }
    }

    fn push(&mut self, span: Span) {
        match (self.text.last_mut(), span) {
            (Some(Span::Plain(text)), Span::Plain(more)) => text.push_str(&more),
            (_, Span::Plain(more)) if more.is_empty() => {}
            (_, span) => self.text.push(span),
        }
    }

    fn rest_on(&mut self, place: usize) {
        if !self.facts.contains(&place) {
            self.facts.push(place);
        }
    }
}
