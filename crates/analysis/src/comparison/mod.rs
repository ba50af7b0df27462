//! Two or more sides of runs compared: what changed, how certain that is, and whether it is good news.
//!
//! [`Comparison::of`] is a pure function of the sides' results. They are runs of our own or results of
//! any tool: what differs between the two is in [`Compared`], with an implementation in `runs.rs` and
//! one in `tool_results.rs`. The rule of the verdicts is in `change.rs`.

mod change;
mod document;
mod layout;
mod runs;
#[cfg(test)]
mod tests;
mod tool_results;

use inferometer_model::campaign::Level;

pub use self::change::{Basis, Change, Judgement, Margins};
pub(crate) use self::change::{Scale, Values, upper_among};
use self::change::{mean_ratio, overall, side_of};
pub use self::document::{
    COMPARISON_SCHEMA, Comparison, LevelComparison, LevelWithout, Objection, PermutationTest,
    QuantityComparison, SideComparison, SideFacts, SideOutcome, SideRun, SideValue, UnmatchedLevel,
    Weight,
};
use self::document::{INPUT_COUNTS, OUTPUT_COUNTS, PROMISES, TOKENIZER, objection};
pub use self::layout::{
    LAYOUT_QUANTITY, LayoutFigures, LayoutProblem, LayoutSide, Layouts, Scaled,
};
use crate::judge::Verdict;
use crate::metric::{self, Better, Metric, Quantity, Statistic, Unit};
use crate::statistics::{Estimate, UPPER, multiplicity, permutation};

/// One condition: a run or a result, or several of it.
#[derive(Clone, Debug)]
pub struct Side<R> {
    pub name: String,
    /// The run, set or import that it comes from.
    pub source: String,
    pub results: Vec<R>,
    /// Of a suite or a matrix, whose runs are of several workloads or servers, and are compared with
    /// those of the same row.
    pub rows: Option<Rows>,
    pub suite: Option<SuiteSide>,
}

/// The rows of a side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// That of each run, in their order, such as `Concurrency Scaling (c=4)`.
    pub of_runs: Vec<String>,
    /// Those that failed, and why.
    pub failed: Vec<(String, String)>,
}

/// What a side that is a suite was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuiteSide {
    pub name: String,
    /// Equal for suites that ask the same.
    pub hash: String,
}

/// What is asked about the sides.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The quantity that decides; `None`: as the load suggests.
    pub primary: Option<Quantity>,
    pub margins: Margins,
    /// Compare although something forbids it.
    pub force: bool,
    pub layouts: Option<Layouts>,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ComparisonProblem {
    #[error("a comparison needs at least two sides, and there are {0}")]
    FewSides(usize),
    #[error("these runs are not comparable")]
    NotComparable(Vec<Objection>),
    #[error("the sides have no level in common: {0}")]
    NoCommonLevel(String),
}

/// Key, count, what these results are, and what to do about it.
pub type Trouble = (&'static str, usize, &'static str, &'static str);

/// A result that can be compared with others of its kind.
pub trait Compared: PartialEq + Sized {
    /// What one of them is called.
    const NOUN: &'static str;
    /// What to do where one is named twice.
    const ONCE: &'static str;
    /// Whether nothing but figures is known: then only those that both sides have are compared, and a
    /// difference without an interval is shown.
    const FIGURES_ONLY: bool;

    fn id(&self) -> &str;
    fn level(&self) -> Level;
    fn verdict(&self) -> Option<Verdict>;
    fn estimate(&self, quantity: &Quantity) -> Option<Estimate>;
    fn facts(side: &Side<Self>) -> SideFacts;
    /// The quantity that decides when none is asked for.
    fn primary(sides: &[Side<Self>]) -> Quantity;
    fn quantities(base: &[&Self]) -> Vec<Quantity>;
    /// Troubles of a side by itself.
    fn troubles(side: &Side<Self>) -> Vec<Trouble>;
    /// Differences at one level. Any result that differs from the base's first speaks for its side.
    fn differences(base: &[&Self], results: &[&Self], side: &str) -> Vec<Objection>;

    /// GPUs that one server is spread over, where the result says it.
    fn tensor_parallel(&self) -> Option<u32> {
        None
    }

    /// The other side's runs in the order of the base's, when each has exactly one partner that had
    /// the same stimulus.
    fn in_pairs<'a>(_base: &[&Self], _other: &[&'a Self]) -> Option<Vec<&'a Self>> {
        None
    }

    fn asks_the_same(&self, _other: &Self) -> bool {
        true
    }

    /// Whether the figures of all these results count the same thing.
    fn means_the_same(_metric: &Metric, _base: &[&Self], _other: &[&Self]) -> bool {
        true
    }
}

impl Comparison {
    pub fn of<R: Compared>(sides: &[Side<R>], terms: &Terms) -> Result<Self, ComparisonProblem> {
        let others = match sides {
            [_, others @ ..] if !others.is_empty() => others,
            few => return Err(ComparisonProblem::FewSides(few.len())),
        };
        let (groups, unmatched) = groups(sides);
        if groups.is_empty() && sides.iter().all(|side| 0 < side.compared().count()) {
            return Err(ComparisonProblem::NoCommonLevel(levels_told(&unmatched)));
        }
        let objections = objections(sides, &groups);
        permitted(&objections, terms)?;
        let primary = terms.primary.unwrap_or_else(|| R::primary(sides));
        let margins = terms.margins;
        let asked = Asked { primary, margins, others: others.len(), objections: &objections };
        let levels = groups.iter().map(|group| level_comparison(&asked, others, group)).collect();
        let facts = sides.iter().map(R::facts).collect();
        Ok(Self { unmatched, ..concluded(&asked, terms, facts, levels) })
    }
}

impl<R: Compared> Side<R> {
    /// What one of its servers is spread over, where all results that say it agree.
    pub fn layout(&self) -> LayoutSide<'_> {
        let mut known = self.results.iter().filter_map(R::tensor_parallel);
        let first = known.next();
        let tensor_parallel = first.filter(|first| known.all(|other| other == *first));
        LayoutSide { name: &self.name, tensor_parallel }
    }

    /// Without those of our own that are invalid.
    fn compared(&self) -> impl Iterator<Item = &R> {
        self.results.iter().filter(|result| result.verdict() != Some(Verdict::Invalid))
    }

    fn left_out(&self) -> u32 {
        u32::try_from(self.results.len() - self.compared().count()).unwrap_or(u32::MAX)
    }

    /// The row that one of its runs is of.
    fn row_of(&self, run: usize) -> Option<&str> {
        self.rows.as_ref()?.of_runs.get(run).map(String::as_str)
    }

    fn placed(&self) -> Vec<Placed<'_, R>> {
        let placed = self.results.iter().enumerate().map(|(place, run)| Placed {
            scenario: self.row_of(place),
            level: run.level(),
            run,
        });
        placed.filter(|placed| placed.run.verdict() != Some(Verdict::Invalid)).collect()
    }
}

/// The runs of every side at one level, in the order of the sides. None is empty.
#[derive(Debug)]
struct Group<'a, R> {
    /// The row of a suite or a matrix.
    scenario: Option<&'a str>,
    level: Level,
    runs: Vec<Vec<&'a R>>,
}

/// A run that may be compared, its level, and the row that it is of.
#[derive(Debug)]
struct Placed<'a, R> {
    scenario: Option<&'a str>,
    level: Level,
    run: &'a R,
}

/// What runs have in common that are compared with each other.
type RowAndLevel<'a> = (Option<&'a str>, Level);

impl<'a, R> Placed<'a, R> {
    fn place(&self) -> RowAndLevel<'a> {
        (self.scenario, self.level)
    }
}

/// Matches levels, and returns those that not all sides have. Sides of one level each are compared whatever it is: whether they
/// may is for the objections to say. Rows have names, and only the same are matched.
fn groups<R: Compared>(sides: &[Side<R>]) -> (Vec<Group<'_, R>>, Vec<UnmatchedLevel>) {
    let valid: Vec<Vec<Placed<'_, R>>> = sides.iter().map(Side::placed).collect();
    let has_one_each = valid.iter().all(|runs| {
        let mut found = runs.iter().map(Placed::place);
        found.next().is_some_and(|first| first.0.is_none() && found.all(|place| place == first))
    });
    if has_one_each && let Some(base) = valid.first().and_then(|runs| runs.first()) {
        let runs = valid.iter().map(|runs| runs.iter().map(|placed| placed.run).collect());
        let group = Group { scenario: None, level: base.level, runs: runs.collect() };
        return (vec![group], Vec::new());
    }
    let (mut groups, mut unmatched) = (Vec::new(), Vec::new());
    for place in places(&valid) {
        let (scenario, level) = place;
        let at = |runs: &Vec<Placed<'_, R>>| runs.iter().any(|placed| placed.place() == place);
        let sides_at = sides.iter().zip(&valid).filter(|(_, runs)| at(runs));
        let names: Vec<String> = sides_at.map(|(side, _)| side.name.clone()).collect();
        if names.len() == sides.len() {
            let runs = valid.iter().map(|runs| {
                let own = runs.iter().filter(|placed| placed.place() == place);
                own.map(|placed| placed.run).collect()
            });
            groups.push(Group { scenario, level, runs: runs.collect() });
        } else {
            let scenario = scenario.map(str::to_owned);
            unmatched.push(UnmatchedLevel { scenario, level, sides: names });
        }
    }
    (groups, unmatched)
}

/// From the lowest to the highest, rates and concurrencies apart; rows in their order.
fn places<'a, R>(sides: &[Vec<Placed<'a, R>>]) -> Vec<RowAndLevel<'a>> {
    let mut places: Vec<RowAndLevel<'a>> = Vec::new();
    for place in sides.iter().flatten().map(Placed::place) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let kind = |level: &Level| match level {
        Level::AsAsked => 0,
        Level::Rate(_) | Level::Unlimited => 1,
        Level::Concurrency(_) => 2,
    };
    places.sort_by(|(row, a), (other_row, b)| {
        if row.is_some() || other_row.is_some() {
            return row.is_some().cmp(&other_row.is_some());
        }
        let places = a.place().unwrap_or(0.0).total_cmp(&b.place().unwrap_or(0.0));
        kind(a).cmp(&kind(b)).then(places)
    });
    places
}

/// What is asked of the runs at every level.
#[derive(Clone, Copy, Debug)]
struct Asked<'a> {
    primary: Quantity,
    margins: Margins,
    /// Sides that are set against the base.
    others: usize,
    objections: &'a [Objection],
}

impl Asked<'_> {
    /// Every quantity that a run of either side has, or of figures alone both, the primary one first.
    fn compared<R: Compared>(
        &self,
        side: &str,
        base: &[&R],
        other: &[&R],
    ) -> Vec<QuantityComparison> {
        let paired = R::in_pairs(base, other);
        let (other, in_pairs) = match &paired {
            Some(ordered) => (ordered.as_slice(), true),
            None => (other, false),
        };
        let quantities = R::quantities(base);
        let rest = quantities.into_iter().filter(|quantity| *quantity != self.primary);
        let all = [self.primary].into_iter().chain(rest);
        all.filter_map(|quantity| self.of_quantity(side, &quantity, (base, other), in_pairs))
            .collect()
    }

    /// `None` of a quantity that is not shown: where figures are all that is known, of one that a side
    /// does not have, or not in this meaning; the objections name it.
    fn of_quantity<R: Compared>(
        &self,
        side: &str,
        quantity: &Quantity,
        (base, other): (&[&R], &[&R]),
        in_pairs: bool,
    ) -> Option<QuantityComparison> {
        let estimates = |runs: &[&R]| -> Vec<Option<Estimate>> {
            runs.iter().map(|run| run.estimate(quantity)).collect()
        };
        let is_primary = *quantity == self.primary;
        let means_the_same = R::means_the_same(quantity.metric(), base, other);
        let values = Values {
            base: estimates(base),
            other: estimates(other),
            in_pairs,
            floor: quantity.statistic().map_or(1, Statistic::certified_from),
            upper: if is_primary { upper_among(self.others) } else { UPPER },
        };
        let has = |side: &[Option<Estimate>]| side.iter().any(Option::is_some);
        let (in_base, in_other) = (has(&values.base), has(&values.other));
        let is_shown = if R::FIGURES_ONLY {
            in_base && in_other && means_the_same
        } else {
            in_base || in_other
        };
        if !is_shown && !is_primary {
            return None;
        }
        let otherwise = || "the sides do not mean the same by it".to_owned();
        let withheld = self.withheld(side, quantity).or_else(|| (!means_the_same).then(otherwise));
        let may_be_bare = R::FIGURES_ONLY && withheld.is_none();
        let found = compared(quantity, &values, self, withheld);
        Some(if may_be_bare { or_bare(found, quantity) } else { found })
    }

    /// Why a quantity is not compared although both sides have it.
    fn withheld(&self, side: &str, quantity: &Quantity) -> Option<String> {
        let metric = quantity.metric();
        let withholds = |found: &&Objection| {
            found.weight == Weight::Withholds
                && found.side == side
                && match found.key.as_str() {
                    TOKENIZER => counts_output(metric) || counts_input(metric),
                    OUTPUT_COUNTS => counts_output(metric),
                    INPUT_COUNTS => counts_input(metric),
                    PROMISES => [&metric::GOODPUT, &metric::ATTAINMENT].contains(&metric),
                    _ => false,
                }
        };
        self.objections.iter().find(withholds).map(|found| found.text.clone())
    }
}

/// Whether its value depends on who counted the tokens of answers.
fn counts_output(metric: &'static Metric) -> bool {
    [&metric::ITL, &metric::TPOT, &metric::FLUIDITY].contains(&metric)
        || matches!(metric.unit, Unit::JoulesPerToken | Unit::TokensPerJoule)
        || metric.unit == Unit::TokensPerSecond
            && !metric.is_telemetry()
            && ![&metric::INPUT_THROUGHPUT, &metric::PP].contains(&metric)
}

fn counts_input(metric: &'static Metric) -> bool {
    [&metric::INPUT_THROUGHPUT, &metric::TOTAL_THROUGHPUT, &metric::PP].contains(&metric)
}

fn compared(
    quantity: &Quantity,
    values: &Values,
    asked: &Asked<'_>,
    withheld: Option<String>,
) -> QuantityComparison {
    let metric = quantity.metric();
    let scale = if metric.unit == Unit::Share { Scale::Difference } else { Scale::Ratio };
    let margin = asked.margins.margin_for(quantity);
    let found = withheld.map_or_else(|| values.change(scale), Err);
    let found = found.and_then(|change| match metric.better {
        Better::Neither => Err("neither more nor less of it is better".to_owned()),
        Better::Higher | Better::Lower => Ok(change),
    });
    let judgement = found
        .as_ref()
        .map_or(Judgement::NotCompared, |change| change.judged(margin, metric.better));
    let basis = values.basis();
    let permutation = (found.is_ok() && basis != Basis::WithinRun).then(|| {
        let (base, other) = values.known();
        let found = permutation::two_sided(&base, &other);
        PermutationTest {
            p: found.p,
            smallest_attainable: found.smallest_attainable,
            holm: None,
            false_discovery: None,
        }
    });
    QuantityComparison {
        quantity: quantity.to_string(),
        primary: *quantity == asked.primary,
        unit: metric.unit.name().to_owned(),
        base: side_value(&values.base, scale),
        other: side_value(&values.other, scale),
        change: found.as_ref().ok().copied(),
        bare_ratio: None,
        basis,
        margin,
        judgement,
        reason: found.err(),
        permutation,
    }
}

fn side_value(runs: &[Option<Estimate>], scale: Scale) -> SideValue {
    let known: Vec<Estimate> = runs.iter().copied().flatten().collect();
    let found = (!known.is_empty()).then(|| side_of(&known, scale));
    SideValue {
        mean: found.map(|found| found.mean).filter(|mean| mean.is_finite()),
        interval: found.and_then(|found| found.interval),
        values: runs.iter().map(|run| run.map(|estimate| estimate.value)).collect(),
        certified: !known.is_empty() && known.iter().all(|estimate| estimate.certified),
    }
}

/// What differs by so much and cannot be judged keeps the difference.
fn or_bare(found: QuantityComparison, quantity: &Quantity) -> QuantityComparison {
    let scale =
        if quantity.metric().unit == Unit::Share { Scale::Difference } else { Scale::Ratio };
    let (Some(base), Some(other), None, Scale::Ratio) =
        (found.base.mean, found.other.mean, found.change, scale)
    else {
        return found;
    };
    if base <= 0.0 || other <= 0.0 {
        return found;
    }
    let reason = match found.basis {
        Basis::WithinRun => Some(
            "a side has one result, and nothing says how far another would be from it".to_owned(),
        ),
        Basis::Paired | Basis::Unpaired => found.reason,
    };
    QuantityComparison {
        bare_ratio: Some(other / base),
        judgement: Judgement::NotJudged,
        reason,
        ..found
    }
}

/// All that speaks against these sides, the most severe first. Of equal weight: in order of the sides.
fn objections<R: Compared>(sides: &[Side<R>], groups: &[Group<'_, R>]) -> Vec<Objection> {
    let mut found: Vec<Objection> = sides.iter().flat_map(troubles).collect();
    found.extend(named_twice(sides));
    found.extend(sides.iter().flat_map(|side| failed_rows(side, sides)));
    found.extend(suite_differences(sides, groups));
    for group in groups {
        let [base, others @ ..] = group.runs.as_slice() else { continue };
        for (runs, side) in others.iter().zip(&sides[1..]) {
            for mut objection in R::differences(base, runs, &side.name) {
                if let Some(row) = group.scenario {
                    objection.text = format!("{} (first at {row})", objection.text);
                }
                let is_same =
                    |known: &Objection| known.key == objection.key && known.side == objection.side;
                if !found.iter().any(is_same) {
                    found.push(objection);
                }
            }
        }
    }
    found.sort_by_key(|objection| std::cmp::Reverse(objection.weight));
    found
}

fn troubles<R: Compared>(side: &Side<R>) -> Vec<Objection> {
    let (all, noun, name) = (side.results.len(), R::NOUN, &side.name);
    let trouble = |(key, count, what, remedy): Trouble| {
        let text = format!("{count} of {all} {noun}s of {name} {what}");
        (0 < count).then(|| objection(key, Weight::Warning, name, text, remedy))
    };
    R::troubles(side).into_iter().filter_map(trouble).collect()
}

fn named_twice<R: Compared>(sides: &[Side<R>]) -> Option<Objection> {
    let mut seen: Vec<(&R, &Side<R>)> = Vec::new();
    for side in sides {
        for result in &side.results {
            // The same name in two stores, or in two files, is not the same result.
            let is_same = |(other, of): &&(&R, &Side<R>)| {
                (!R::FIGURES_ONLY || of.source == side.source) && *other == result
            };
            if let Some((_, first)) = seen.iter().find(is_same) {
                let (noun, id) = (R::NOUN, result.id());
                let text = format!("{noun} {id} is in {} and in {}", first.name, side.name);
                return Some(objection("same_run", Weight::Warning, &side.name, text, R::ONCE));
            }
        }
        seen.extend(side.results.iter().map(|result| (result, side)));
    }
    None
}

/// A cell that fitted before and fails now is a change, and no figure says so.
fn failed_rows<R>(side: &Side<R>, sides: &[Side<R>]) -> Vec<Objection> {
    let failed = side.rows.iter().flat_map(|rows| &rows.failed);
    let is_elsewhere = |(row, _): &&(String, String)| {
        let others = sides.iter().filter(|other| other.name != side.name);
        others.flat_map(|other| &other.rows).any(|rows| rows.of_runs.contains(row))
    };
    let (lost, nowhere): (Vec<_>, Vec<_>) = failed.partition(is_elsewhere);
    let told = |key: &str, weight, rows: &[&(String, String)], (which, most): (&str, usize)| {
        let (first, _) = rows.split_at(most.min(rows.len()));
        let mut names: Vec<String> =
            first.iter().map(|(row, why)| format!("{row} ({why})")).collect();
        if first.len() < rows.len() {
            names.push(format!("and {} more", rows.len() - first.len()));
        }
        let count =
            if rows.len() == 1 { "1 row".to_owned() } else { format!("{} rows", rows.len()) };
        let (name, names) = (&side.name, names.join(", "));
        let text = format!("{count} of {name} came to nothing, {which}: {names}");
        let remedy =
            format!("its report says why, and what to do: inferometer report {}", side.source);
        (!rows.is_empty()).then(|| objection(key, weight, &side.name, text, &remedy))
    };
    let lost = told("failed_rows", Weight::Warning, &lost, ("but not everywhere", 6));
    let nowhere = told("rows_of_nobody", Weight::Note, &nowhere, ("as everywhere", 1));
    lost.into_iter().chain(nowhere).collect()
}

/// Suites of equal hashes ask the same. Of others, rows that both have may still be equal: these are
/// compared with a note; where one of them differs, nothing is.
fn suite_differences<R: Compared>(sides: &[Side<R>], groups: &[Group<'_, R>]) -> Vec<Objection> {
    let [base, others @ ..] = sides else { return Vec::new() };
    let Some(asked) = &base.suite else { return Vec::new() };
    let of_side = |(place, side): (usize, &Side<R>)| {
        let suite = side.suite.as_ref().filter(|suite| suite.hash != asked.hash)?;
        let differing: Vec<&str> = groups
            .iter()
            .filter(|group| !asks_the_same(group, place + 1))
            .filter_map(|group| group.scenario)
            .collect();
        Some(suite_difference(base, side, (asked, suite), &differing))
    };
    others.iter().enumerate().filter_map(of_side).collect()
}

fn asks_the_same<R: Compared>(group: &Group<'_, R>, side: usize) -> bool {
    let first = |side: usize| group.runs.get(side).and_then(|runs| runs.first());
    match (first(0), first(side)) {
        (Some(base), Some(run)) => base.asks_the_same(run),
        (base, run) => base.is_none() && run.is_none(),
    }
}

fn suite_difference<R>(
    base: &Side<R>,
    side: &Side<R>,
    (asked, other): (&SuiteSide, &SuiteSide),
    differing: &[&str],
) -> Objection {
    let which = format!(
        "{} is the suite `{}` ({}) and {} the suite `{}` ({})",
        base.name, asked.name, asked.hash, side.name, other.name, other.hash
    );
    if differing.is_empty() {
        let text = format!("{which}; the rows that both have ask the same, and are compared");
        let remedy = "play the same suite on both sides to compare all of it";
        return objection("suite", Weight::Note, &side.name, text, remedy);
    }
    let text = format!("{which}; these rows ask something else: {}", differing.join(", "));
    let remedy = "play the same suite, with the same flags, on both sides";
    objection("suite", Weight::Forbids, &side.name, text, remedy)
}

fn forbidden(objections: &[Objection]) -> impl Iterator<Item = &Objection> {
    objections.iter().filter(|objection| objection.weight == Weight::Forbids)
}

fn permitted(objections: &[Objection], terms: &Terms) -> Result<(), ComparisonProblem> {
    let forbidden: Vec<Objection> = forbidden(objections).cloned().collect();
    if forbidden.is_empty() || terms.force {
        return Ok(());
    }
    Err(ComparisonProblem::NotComparable(forbidden))
}

/// The conclusion from all levels together.
fn concluded(
    asked: &Asked<'_>,
    terms: &Terms,
    sides: Vec<SideFacts>,
    mut levels: Vec<LevelComparison>,
) -> Comparison {
    correct_for_many(&mut levels);
    let judged = levels.iter().flat_map(|level| &level.against).flat_map(|side| &side.quantities);
    let comparisons = judged.filter(|found| found.change.is_some()).count();
    let base = sides.first().map_or("", |side| side.name.as_str());
    let layouts = terms
        .layouts
        .iter()
        .flat_map(|layouts| levels.iter().flat_map(|level| layouts.figures(base, level)));
    Comparison {
        schema: COMPARISON_SCHEMA.to_owned(),
        objections: asked.objections.to_vec(),
        forced: forbidden(asked.objections).next().is_some(),
        primary: asked.primary.to_string(),
        margins: terms.margins,
        primary_confidence: 2.0 * upper_among(asked.others) - 1.0,
        outcomes: outcomes(asked, sides.get(1..).unwrap_or_default(), &levels),
        unmatched: Vec::new(),
        comparisons: u32::try_from(comparisons).unwrap_or(u32::MAX),
        layouts: layouts.collect(),
        levels,
        sides,
    }
}

fn levels_told(unmatched: &[UnmatchedLevel]) -> String {
    let told =
        unmatched.iter().map(|found| format!("{} ({})", found.told(), found.sides.join(", ")));
    told.collect::<Vec<_>>().join(", ")
}

fn level_comparison<R: Compared>(
    asked: &Asked<'_>,
    others: &[Side<R>],
    group: &Group<'_, R>,
) -> LevelComparison {
    let base = group.runs.first().map(Vec::as_slice).unwrap_or_default();
    let against = others.iter().zip(group.runs.iter().skip(1)).map(|(side, runs)| SideComparison {
        side: side.name.clone(),
        base_runs: u32::try_from(base.len()).unwrap_or(u32::MAX),
        runs: u32::try_from(runs.len()).unwrap_or(u32::MAX),
        quantities: asked.compared(&side.name, base, runs),
    });
    let scenario = group.scenario.map(str::to_owned);
    LevelComparison { scenario, level: group.level, against: against.collect() }
}

/// Raises the p values of all but the primary quantity to what they are worth among so many.
fn correct_for_many(levels: &mut [LevelComparison]) {
    let mut tests: Vec<&mut PermutationTest> = levels
        .iter_mut()
        .flat_map(|level| &mut level.against)
        .flat_map(|side| &mut side.quantities)
        .filter(|found| !found.primary)
        .filter_map(|found| found.permutation.as_mut())
        .collect();
    let p: Vec<f64> = tests.iter().map(|test| test.p).collect();
    let raised = multiplicity::holm(&p).into_iter().zip(multiplicity::benjamini_hochberg(&p));
    for (test, (holm, false_discovery)) in tests.iter_mut().zip(raised) {
        (test.holm, test.false_discovery) = (Some(holm), Some(false_discovery));
    }
}

fn outcomes(
    asked: &Asked<'_>,
    others: &[SideFacts],
    levels: &[LevelComparison],
) -> Vec<SideOutcome> {
    if levels.is_empty() {
        return Vec::new();
    }
    let primary = asked.primary.to_string();
    let outcome = |(place, side): (usize, &SideFacts)| {
        let found =
            levels.iter().filter_map(|level| Some((level, level.quantity(place, &primary)?)));
        outcome_of(asked, &side.name, &found.collect::<Vec<_>>())
    };
    others.iter().enumerate().map(outcome).collect()
}

/// One level decides by itself; several by their mean change, so that a sweep is one decision and
/// not as many chances of a false alarm as it has levels. Levels without a change are named.
fn outcome_of(
    asked: &Asked<'_>,
    side: &str,
    levels: &[(&LevelComparison, &QuantityComparison)],
) -> SideOutcome {
    let judged = || levels.iter().filter_map(|(_, found)| Some((found.change?, found.basis)));
    let changes: Vec<Change> = judged().map(|(change, _)| change).collect();
    let change = match changes.as_slice() {
        [only] => Some(*only),
        several => overall(several),
    };
    let bare: Vec<f64> = levels.iter().filter_map(|(_, found)| found.bare_ratio).collect();
    let bare_ratio = mean_ratio(&bare).filter(|_| change.is_none());
    let nothing = if bare_ratio.is_some() { Judgement::NotJudged } else { Judgement::NotCompared };
    let judgement = change.map_or(nothing, |change| {
        change.judged(asked.margins.margin_for(&asked.primary), asked.primary.metric().better)
    });
    let grounds: Vec<Basis> = match change {
        Some(_) => judged().map(|(_, basis)| basis).collect(),
        None => levels.iter().map(|(_, found)| found.basis).collect(),
    };
    let basis = least_known(&grounds);
    let mut without: Vec<LevelWithout> = levels
        .iter()
        .filter(|(_, found)| found.change.is_none())
        .map(|(level, found)| LevelWithout {
            scenario: level.scenario.clone(),
            level: level.level,
            reason: found.reason.clone().unwrap_or_else(|| "it has no change".to_owned()),
        })
        .collect();
    let reason = match (change, bare_ratio, without.first()) {
        (Some(_), ..) => None,
        // It holds at every level alike.
        (None, Some(_), Some(first)) => Some(first.reason.clone()),
        (None, ..) => Some(why_nothing(&without)),
    };
    if change.is_none() {
        without.clear();
    }
    SideOutcome {
        side: side.to_owned(),
        judgement,
        change,
        bare_ratio,
        basis,
        regression: judgement == Judgement::Worse && basis != Basis::WithinRun,
        reason,
        without,
    }
}

/// What is known within runs at one level is not known between runs of them all.
fn least_known(bases: &[Basis]) -> Basis {
    [Basis::WithinRun, Basis::Unpaired]
        .into_iter()
        .find(|basis| bases.contains(basis))
        .unwrap_or(Basis::Paired)
}

/// The first reason represents all; of a sweep with its level.
fn why_nothing(without: &[LevelWithout]) -> String {
    match without {
        [] => "no level has it".to_owned(),
        [only] => only.reason.clone(),
        [first, ..] => format!("{} ({})", first.reason, first.told()),
    }
}
