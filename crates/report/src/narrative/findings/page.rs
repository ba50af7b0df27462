//! What the rules look at: the rows of a page with their facts. And sentences as templates: a text
//! with placeholders, and what fills them.
//!
//! | placeholder | filled by |
//! |---|---|
//! | `{ttft.p99}` | a fact of the row, or of the page, with its unit; nothing is written where it is missing |
//! | `{level}`, `{*name}` | the row's level (`c=4`) and its name |
//! | `{}` | a part: a fact with its unit, a level (`c=4`), a text or a sentence |
//! | `{=}` | a fact without its unit, where the words around it say it |
//! | `{>}` | a fact that links to its table, where a table has it |
//! | `{*}` | a name: of a scenario, a model or a machine; it makes no claim |
//! | `{$}` | code, such as a command |
//! | `{~}` | a fact that the sentence rests on and does not print |
//! | `[…]` | left out where a fact in it is missing |

use std::collections::BTreeMap;

use inferometer_analysis::set::{Findings, FoundLimit, PointResult, QuestionKind, SetSummary};
use inferometer_analysis::{Metric, Percentile, Quantity, Summary, Verdict, metric};
use inferometer_model::Outcome;
use inferometer_model::study::Level;

use crate::document::Span;
use crate::narrative::facts::{Completeness, NamedLevel, named_levels, split_statistic};
use crate::narrative::{Fact, FactUnit, Facts, Sentence};

/// Writes a sentence, or a part of one, of a page or a row: `say!(page, row => "TTFT p99 is
/// {>ttft.p99}{}.", end)`. `None` where a fact of it is missing.
macro_rules! say {
    ($page:expr, $row:expr => $template:expr $(, $part:expr)* $(,)?) => {
        $page.sentence(
            Some($row),
            $template,
            &[$($crate::narrative::findings::page::Part::from($part)),*],
        )
    };
    ($page:expr, $template:expr $(, $part:expr)* $(,)?) => {
        $page.sentence(
            None,
            $template,
            &[$($crate::narrative::findings::page::Part::from($part)),*],
        )
    };
}
pub(super) use say;

pub(super) struct Page<'a> {
    facts: &'a Facts,
    /// By scenario, quantity and statistic: rules ask for hundreds of facts of every row.
    places: BTreeMap<(Option<&'a str>, &'a str, Option<&'a str>), usize>,
    /// `None` for a single run.
    pub(super) set: Option<&'a SetSummary>,
    /// The first run.
    pub(super) first: Option<&'a Summary>,
    pub(super) rows: Vec<Row>,
    pub(super) families: Vec<Family<'a>>,
    /// What searches have found, each with the place of the row that met every goal.
    pub(super) searched: Vec<(usize, &'a FoundLimit)>,
}

/// The levels of one scenario or one server.
pub(super) struct Family<'a> {
    pub(super) name: &'a str,
    /// Places in the rows, from the lowest level to the highest.
    rows: Vec<usize>,
    pub(super) findings: &'a Findings,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MeasuredBy<'a> {
    Suite(&'a str),
    Sweep,
    Repeat,
    Run,
}

impl<'a> Page<'a> {
    pub(super) fn from_set(
        set: &'a SetSummary,
        points: &'a [PointResult],
        facts: &'a Facts,
    ) -> Self {
        let levels = named_levels(set, points);
        let mut rows: Vec<Row> = levels.iter().map(Row::from_level).collect();
        mark_contaminated(&mut rows, set);
        let families = (0_u32..).zip(&set.conditions).filter_map(|(place, condition)| {
            let findings = condition.findings.as_ref()?;
            let own = levels.iter().enumerate().filter(|(_, named)| named.condition == place);
            let rows: Vec<usize> = own.map(|(row, _)| row).collect();
            (1 < rows.len()).then_some(Family { name: &condition.name, rows, findings })
        });
        let searched = set.limits.iter().filter(|limit| limit.level.is_some());
        let searched = searched.filter_map(|limit| {
            let is_it = |named: &NamedLevel<'_>| {
                named.condition == limit.condition && named.level.level.place() == limit.level
            };
            Some((levels.iter().position(is_it)?, limit))
        });
        Self {
            set: Some(set),
            first: points.first().map(|point| &point.summary),
            families: families.collect(),
            searched: searched.collect(),
            ..Self::new(facts, rows)
        }
    }

    pub(super) fn from_run(summary: &'a Summary, facts: &'a Facts) -> Self {
        let concurrency = facts.facts.first().and_then(|fact| fact.about.concurrency);
        let row = Row::from_run(summary, concurrency);
        Self { first: Some(summary), ..Self::new(facts, vec![row]) }
    }

    fn new(facts: &'a Facts, rows: Vec<Row>) -> Self {
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

    pub(super) fn measured_by(&self) -> MeasuredBy<'a> {
        let Some(set) = self.set else { return MeasuredBy::Run };
        match &set.suite {
            Some(suite) => MeasuredBy::Suite(&suite.name),
            None if set.asked.question == QuestionKind::Repeat => MeasuredBy::Repeat,
            None => MeasuredBy::Sweep,
        }
    }

    pub(super) fn is_simulated(&self) -> bool {
        let is_run_simulated = || self.first.is_some_and(|run| run.run.simulated.is_some());
        self.set.map_or_else(is_run_simulated, |set| set.simulated)
    }

    /// The place of a fact of a row: of a quantity, or of a statistic of it, such as `ttft.p99`.
    pub(super) fn at(&self, row: &Row, quantity: &str) -> Option<usize> {
        self.named_at(row.name.as_deref(), quantity)
    }

    /// The place of a fact of the row with this name, or of the whole page.
    pub(super) fn named_at(&self, name: Option<&str>, quantity: &str) -> Option<usize> {
        let (quantity, statistic) = split_statistic(quantity);
        self.places.get(&(name, quantity, statistic)).copied()
    }

    /// The place of a fact of the whole page.
    pub(super) fn whole(&self, quantity: &str) -> Option<usize> {
        self.named_at(None, quantity)
    }

    /// A number of the whole page; zero where there is none.
    pub(super) fn count(&self, quantity: &str) -> f64 {
        self.whole(quantity).map_or(0.0, |place| self.value(place))
    }

    /// One of two words, by a number of the whole page.
    pub(super) fn plural<'w>(&self, quantity: &str, one: &'w str, several: &'w str) -> &'w str {
        if self.count(quantity) <= 1.0 { one } else { several }
    }

    /// The word before a row: one is in a scenario, and at a level.
    pub(super) fn there(&self) -> &'static str {
        if let MeasuredBy::Suite(_) = self.measured_by() { " in " } else { " at " }
    }

    pub(super) fn fact(&self, place: usize) -> &Fact {
        &self.facts.facts[place]
    }

    pub(super) fn value(&self, place: usize) -> f64 {
        self.fact(place).value
    }

    /// Whether nobody can say which is larger; of numbers without intervals everybody can.
    pub(super) fn overlap(&self, one: usize, other: usize) -> bool {
        let intervals = self.fact(one).interval.zip(self.fact(other).interval);
        intervals.is_some_and(|(a, b)| a.0 <= b.1 && b.0 <= a.1)
    }

    /// Whether two numbers cannot be told apart: their intervals overlap, or a page prints the
    /// same.
    pub(super) fn is_same(&self, one: usize, other: usize) -> bool {
        self.overlap(one, other) || self.fact(one).printed == self.fact(other).printed
    }

    /// A number of a row, where it is known and meets the condition.
    pub(super) fn when(
        &self,
        row: &Row,
        quantity: &str,
        condition: impl Fn(f64) -> bool,
    ) -> Option<usize> {
        self.at(row, quantity).filter(|place| condition(self.value(*place)))
    }

    /// The row with the largest number.
    pub(super) fn largest(&self, number: impl Fn(&Row) -> Option<usize>) -> Option<(&Row, usize)> {
        let found = self.rows.iter().filter_map(|row| Some((row, number(row)?)));
        found.max_by(|(_, a), (_, b)| self.value(*a).total_cmp(&self.value(*b)))
    }

    /// The fewest requests that any of the rows has.
    pub(super) fn fewest_requests<'p>(&self, rows: impl Iterator<Item = &'p Row>) -> Option<usize> {
        let counts = rows.filter_map(|row| self.at(row, "requests"));
        counts.min_by(|a, b| self.value(*a).total_cmp(&self.value(*b)))
    }

    /// The row of the sweet spot, where it can be compared.
    pub(super) fn sweet_spot(&self, family: &Family<'_>) -> Option<&Row> {
        self.row_at(family, family.findings.sweet_spot.found()?.level)
    }

    /// The row of a level, where it can be compared.
    pub(super) fn row_at(&self, family: &Family<'_>, level: Level) -> Option<&Row> {
        let mut rows = family.rows.iter().map(|place| &self.rows[*place]);
        rows.find(|row| row.level == Some(level)).filter(|row| row.is_comparable())
    }

    /// The rows that can be compared, from the lowest level to the highest.
    pub(super) fn rows_of<'b>(
        &'b self,
        family: &'b Family<'_>,
    ) -> impl DoubleEndedIterator<Item = &'b Row> {
        self.every_row_of(family).filter(|row| row.is_comparable())
    }

    pub(super) fn every_row_of<'b>(
        &'b self,
        family: &'b Family<'_>,
    ) -> impl DoubleEndedIterator<Item = &'b Row> {
        family.rows.iter().map(|place| &self.rows[*place])
    }

    /// All rows that can be compared.
    pub(super) fn compared(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.is_comparable())
    }

    /// The first of the rows that have the number; `None` where none has.
    pub(super) fn leading<'p>(
        &self,
        rows: impl Iterator<Item = &'p Row>,
        quantity: &str,
        order: Order,
    ) -> Option<Leading<'p>> {
        let found = rows.filter_map(|row| Some((row, self.at(row, quantity)?)));
        let mut found: Vec<(&Row, usize)> = found.collect();
        found.sort_by(|(_, a), (_, b)| {
            let (a, b) = (self.value(*a), self.value(*b));
            if order == Order::Highest { b.total_cmp(&a) } else { a.total_cmp(&b) }
        });
        let ((row, place), others) = found.split_first()?;
        let rivals = others.iter().copied().filter(|(_, other)| self.is_same(*place, *other));
        let (rivals, next) = (rivals.collect(), others.first().copied());
        Some(Leading { row, place: *place, rivals, next })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Highest,
    Lowest,
}

/// The row that comes first by a number, and those that cannot be told from it.
pub(super) struct Leading<'p> {
    pub(super) row: &'p Row,
    pub(super) place: usize,
    /// All that may come first as well, the likeliest first.
    pub(super) rivals: Vec<(&'p Row, usize)>,
    /// The next one, rival or not.
    pub(super) next: Option<(&'p Row, usize)>,
}

/// A sentence that names more rows is a table.
const NAMED_MOST: usize = 3;

impl Leading<'_> {
    /// ` is …`, or where several cannot be told apart, all of them; `None` where they are too many.
    pub(super) fn named(&self, page: &Page<'_>) -> Option<Sentence> {
        let Some(((last, last_place), between)) = self.rivals.split_last() else {
            return say!(page, self.row => " is {>}{}{*name}", self.place, page.there());
        };
        if NAMED_MOST <= self.rivals.len() {
            return None;
        }
        let overlap = self.rivals.iter().any(|(_, place)| page.overlap(self.place, *place));
        let (is, joined, end) = if overlap {
            (" is", " or ", ": the intervals overlap")
        } else {
            (" is the same", " and ", "")
        };
        let mut listed = say!(page, self.row => "{}{}{*name} ({>})", is, page.there(), self.place)?;
        for (row, place) in between {
            listed.append(say!(page, *row => ", {*name} ({})", *place)?);
        }
        say!(page, *last => "{}{}{*name} ({}){}", listed, joined, *last_place, end)
    }
}

/// One level of one scenario, or a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    /// `None` of a run.
    pub(super) name: Option<String>,
    pub(super) level: Option<Level>,
    pub(super) concurrency: Option<u32>,
    pub(super) verdict: Option<Verdict>,
    pub(super) completeness: Completeness,
    /// Where requests failed.
    pub(super) failure: Option<Failure>,
    /// Of requests that come at their own times.
    pub(super) overload: Option<Overload>,
    /// Prompts were to be new, and the cache knew them.
    pub(super) contaminated: bool,
    /// A row that no cache had seen, where prompts were read so much faster that one is suspected.
    pub(super) cold: Option<String>,
    /// Whether its p99 come from enough requests; `None` where nobody counted.
    pub(super) certified: Option<bool>,
    /// The same of TPOT alone.
    pub(super) tpot_certified: Option<bool>,
    /// Requests leave when others end.
    pub(super) is_closed: bool,
}

/// How most of the failed requests ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) class: &'static str,
    /// More than half of them, and not only more than any other.
    pub(super) is_most: bool,
}

/// What shows that requests came faster than they were answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overload {
    PilingUp,
    /// Answers came at a lower rate than requests.
    Behind,
    /// Requests waited in vain for a first token.
    TimedOut,
}

impl Row {
    fn from_level(named: &NamedLevel<'_>) -> Self {
        let certified =
            |quantity: Quantity| named.level.quantity(quantity).map(|across| across.certified);
        let every: Vec<&Summary> =
            named.row.runs.iter().chain(&named.row.left_out).copied().collect();
        let behind = named.level.is_saturated().then_some(Overload::Behind);
        let own = Self::from_runs(&every);
        Self {
            name: Some(named.row.name.clone()),
            level: Some(named.level.level),
            concurrency: named.concurrency,
            verdict: Some(named.level.verdict),
            completeness: named.completeness,
            overload: own.overload.or(behind),
            certified: certified(metric::TTFT.p99()).or_else(|| certified(metric::TPOT.p99())),
            tpot_certified: certified(metric::TPOT.p99()),
            ..own
        }
    }

    fn from_run(summary: &Summary, concurrency: Option<u32>) -> Self {
        let certified = |metric: &Metric| {
            let found = summary.metrics.distribution(metric).filter(|found| 0 < found.n)?;
            Some(found.is_certified(Percentile::P99))
        };
        Self {
            verdict: Some(summary.verdict),
            certified: certified(&metric::TTFT),
            tpot_certified: certified(&metric::TPOT),
            concurrency,
            ..Self::from_runs(&[summary])
        }
    }

    fn from_runs(runs: &[&Summary]) -> Self {
        let warns =
            |key: &str| runs.iter().any(|run| run.warnings.iter().any(|notice| notice.key == key));
        let is_closed = runs.first().is_some_and(|run| !run.run.load.is_open());
        let timed_out = runs.iter().any(|run| 0 < run.count(Outcome::TimeoutFirstToken));
        let overload = match (warns("piling-up"), timed_out) {
            (true, _) => Some(Overload::PilingUp),
            (false, true) => Some(Overload::TimedOut),
            (false, false) => None,
        };
        Self {
            failure: Failure::most_frequent(runs),
            contaminated: warns("cache-contamination"),
            overload: overload.filter(|_| !is_closed),
            is_closed,
            ..Self::default()
        }
    }

    fn is_comparable(&self) -> bool {
        self.completeness == Completeness::Complete
    }
}

impl Failure {
    /// By the outcome alone: one cause may show in several groups of failures.
    fn most_frequent(runs: &[&Summary]) -> Option<Self> {
        let is_failure = |outcome: &Outcome| {
            !matches!(outcome, Outcome::Ok | Outcome::Cancelled | Outcome::NotSent)
        };
        let count = |outcome: &Outcome| runs.iter().map(|run| run.count(*outcome)).sum::<u64>();
        let failures = || Outcome::all().filter(is_failure);
        let all: u64 = failures().map(|outcome| count(&outcome)).sum();
        let most = failures().max_by_key(count).filter(|_| 0 < all)?;
        Some(Self { class: most.key(), is_most: all < 2 * count(&most) })
    }
}

/// What the suite has found about its prefix cache.
fn mark_contaminated(rows: &mut [Row], set: &SetSummary) {
    let Some(suite) = &set.suite else { return };
    let name = |place: u32| {
        let row = usize::try_from(place).ok().and_then(|place| suite.rows.get(place));
        row.map(|row| row.name.as_str())
    };
    for found in suite.contaminated.iter().filter(|found| !found.same_data) {
        let own = rows.iter_mut().find(|row| row.name.as_deref() == name(found.row));
        let Some(own) = own else { continue };
        own.contaminated |= !found.suspected;
        own.cold = found.cold.and_then(name).map(str::to_owned);
    }
}

/// What fills a placeholder without a name.
pub(super) enum Part<'a> {
    /// A fact by its place.
    Fact(usize),
    Text(&'a str),
    /// The level of a row.
    Level(&'a Row),
    Sentence(Sentence),
}

impl From<usize> for Part<'_> {
    fn from(place: usize) -> Self {
        Self::Fact(place)
    }
}

impl<T> From<Option<T>> for Part<'_>
where
    Self: From<T>,
{
    /// Nothing is printed where there is none.
    fn from(part: Option<T>) -> Self {
        part.map_or(Self::Text(""), Self::from)
    }
}

impl<'a> From<&'a str> for Part<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a Row> for Part<'a> {
    fn from(row: &'a Row) -> Self {
        Self::Level(row)
    }
}

impl From<Sentence> for Part<'_> {
    fn from(sentence: Sentence) -> Self {
        Self::Sentence(sentence)
    }
}

impl Sentence {
    pub(super) fn append(&mut self, other: Self) {
        other.text.into_iter().for_each(|span| self.push(span));
        other.facts.into_iter().for_each(|place| self.rest_on(place));
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

impl Page<'_> {
    /// Fills the placeholders of a template in order; `None` where a fact is missing.
    pub(super) fn sentence(
        &self,
        row: Option<&Row>,
        template: &str,
        parts: &[Part<'_>],
    ) -> Option<Sentence> {
        let mut written = Sentence::default();
        let mut parts = parts.iter();
        for (number, piece) in template.split(['[', ']']).enumerate() {
            let mut filled = Sentence::default();
            let is_filled = self.fill(&mut filled, row, piece, &mut parts).is_some();
            if is_filled {
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
        row: Option<&Row>,
        template: &str,
        parts: &mut impl Iterator<Item = &'p Part<'p>>,
    ) -> Option<()> {
        let mut pieces = template.split('{');
        written.push(Span::Plain(pieces.next().unwrap_or_default().to_owned()));
        for piece in pieces {
            let (placeholder, text) = piece.split_once('}')?;
            let name = placeholder.trim_start_matches(['=', '>', '*', '$', '~']);
            let mode = &placeholder[..placeholder.len() - name.len()];
            match name {
                "" => self.fill_part(written, mode, parts.next()?)?,
                "level" => self.fill_level(written, row?)?,
                "name" => written.push(Span::Strong(row?.name.clone()?)),
                quantity => {
                    let name = row.and_then(|row| row.name.as_deref());
                    self.fill_fact(written, mode, self.named_at(name, quantity)?);
                }
            }
            written.push(Span::Plain(text.to_owned()));
        }
        Some(())
    }

    fn fill_part(&self, written: &mut Sentence, mode: &str, part: &Part<'_>) -> Option<()> {
        match part {
            Part::Fact(place) => self.fill_fact(written, mode, *place),
            Part::Level(row) => self.fill_level(written, row)?,
            Part::Sentence(inner) => written.append(inner.clone()),
            Part::Text("") => {}
            Part::Text(text) => written.push(match mode {
                "*" => Span::Strong((*text).to_owned()),
                "$" => Span::Code((*text).to_owned()),
                _ => Span::Plain((*text).to_owned()),
            }),
        }
        Some(())
    }

    fn fill_fact(&self, written: &mut Sentence, mode: &str, place: usize) {
        written.rest_on(place);
        let fact = self.fact(place);
        let unit = match (fact.unit, fact.printed.as_str()) {
            (FactUnit::Requests, "1") => " request",
            (FactUnit::Tokens, "1") => " token",
            (unit, _) => unit.word(),
        };
        let with_unit = format!("{}{unit}", fact.printed.replace("< ", "less than "));
        match mode {
            "~" => {}
            "=" => written.push(Span::Plain(fact.printed.clone())),
            // Counts of the whole page, ratios and what the server reported are in no table of
            // their own.
            ">" if Metric::named(&fact.about.quantity).is_some() => {
                written.push(Span::Link { text: with_unit, to: fact.table.clone() });
            }
            _ => written.push(Span::Plain(with_unit)),
        }
    }

    /// `c=4`, or the name of the row where there are several servers or rates.
    fn fill_level(&self, written: &mut Sentence, row: &Row) -> Option<()> {
        if 1 < self.families.len() || self.at(row, "asked_rate").is_some() {
            written.push(Span::Strong(row.name.clone()?));
            return Some(());
        }
        let place = self.at(row, "concurrency")?;
        written.rest_on(place);
        written.push(Span::Plain(format!("c={}", self.fact(place).printed)));
        Some(())
    }
}
