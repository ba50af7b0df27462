//! The rules of each relation: gaps, comparisons, trends, extremes, likenesses, high and low, and
//! the sweet spot.

use inferometer_analysis::Better;

use super::ReasonKind::{
    FalseComparison, FalseEquality, FalseLevel, UnknownNumber, WrongSubject, WrongUnit,
};
use super::reading::{Location, Number, Subject, Term};
use super::vocabulary::{CLOSE, EXACT, Level, Meaning, Qualifier, SIMILAR, Sense, Strength};
use super::{Clause, Defaults, ReasonKind, or, subjects};
use crate::fmt::Join;

/// `Much higher` is at least this many times as much.
const MUCH: f64 = 1.25;
/// `Slightly higher` is at most this many times as much.
const SLIGHT: f64 = 1.10;
/// A gap is large where the greater is this many times the less.
const LARGE: f64 = 1.5;
const VERY_LARGE: f64 = 2.0;
/// With fewer scenarios nothing is high or low.
const SCENARIOS_MIN: usize = 4;

/// What a statement says about two numbers.
#[derive(Clone, Copy, Debug)]
struct Claim {
    sense: Option<Sense>,
    strength: Option<Strength>,
    /// A ratio, a percentage or a difference.
    size: Option<Number>,
}

fn strength(terms: &[Term]) -> Option<Strength> {
    let read = |it| if let Meaning::Strength(strength) = it { Some(strength) } else { None };
    terms.iter().filter_map(Term::meaning).find_map(read)
}

/// The statistics or locations along which `stable` holds: those that are named, else from the median
/// to p99.
fn spread_of(metric: &str, subjects: &[Subject]) -> Vec<Subject> {
    let own: Vec<Subject> = subjects.iter().copied().filter(|s| s.metric == metric).collect();
    match own.as_slice() {
        [one] if one.statistic.is_none() => {
            ["p50", "p99"].map(|statistic| Subject { statistic: Some(statistic), ..*one }).to_vec()
        }
        _ => own,
    }
}

impl Clause<'_> {
    // `A is higher than B`, and by how much.

    pub(super) fn check_comparison(&self) {
        // What stands before and after `than`, or around the factor where no `than` is. The sense
        // of `exceeds` and the factor itself are read from the left side.
        let than = |term: &Term| matches!(term, Term::Word(Meaning::Than | Meaning::Exceed(_)));
        let factor = |term: &Term| term.number().is_some_and(|number| number.is_factor());
        let parting = self.terms.iter().position(than);
        let Some(at) = parting.or_else(|| self.terms.iter().position(factor)) else {
            return self.unchecked("a comparison without a second value");
        };
        let (left, right) = self.terms.split_at(at + 1);
        let Some(claim) = self.comparison_claim(left.len()) else {
            return self.unchecked("two comparisons in one statement");
        };
        let (left, right) = (Clause { terms: left, ..*self }, Clause { terms: right, ..*self });
        let names_nothing = right.metrics().is_empty()
            && right.statistics().is_empty()
            && right.locations().is_empty();
        match right.values().as_slice() {
            [threshold] if names_nothing => left.check_threshold(claim, threshold),
            _ if names_nothing => self.unchecked("a comparison without a second value"),
            _ => left.check_sides(&right, claim),
        }
    }

    /// `None` where there is more than one, or one on the right side.
    fn comparison_claim(&self, left: usize) -> Option<Claim> {
        let mut claim = self.claim_of_size()?;
        for (at, term) in self.terms.iter().enumerate() {
            if let Term::Word(Meaning::Compare(sense) | Meaning::Exceed(sense)) = term
                && (claim.sense.replace(*sense).is_some() || left <= at)
            {
                return None;
            }
        }
        let is_factor = claim.size.is_some_and(|size| size.is_factor());
        (claim.sense.is_some() || is_factor).then_some(claim)
    }

    /// How far what is compared is apart; `None` where that is said twice.
    fn claim_of_size(&self) -> Option<Claim> {
        let mut sizes = self.numbers().into_iter().filter(|number| number.is_size);
        let claim = Claim { sense: None, strength: strength(self.terms), size: sizes.next() };
        sizes.next().is_none().then_some(claim)
    }

    fn check_sides(&self, right: &Clause<'_>, claim: Claim) {
        // Where the right side names a metric or a statistic of its own, its place is that of both;
        // where it names a place alone, the left side is at the place at hand.
        let own_subject = !right.metrics().is_empty() || !right.statistics().is_empty();
        let place = match right.locations().as_slice() {
            [place] if own_subject => *place,
            _ => self.defaults.place,
        };
        let metric = right.metrics().first().copied().or(self.defaults.metric);
        let left = Clause { defaults: Defaults { metric, place, ..self.defaults }, ..*self };
        // The right side is of the same statistic where it names none.
        let mut terms = right.terms.to_vec();
        if right.statistics().is_empty() {
            match left.statistics_asked().as_slice() {
                [Some(statistic)] => terms.push(Term::Word(Meaning::Statistic(statistic))),
                [_] => {}
                _ if right.values().is_empty() => {}
                _ => self.unchecked("a number of one of several statistics"),
            }
        }
        let defaults = Defaults {
            metric: left.metrics().first().copied().or(metric),
            place: left.locations().first().copied().unwrap_or(place),
            ..self.defaults
        };
        let right = Clause { terms: &terms, defaults, ..*self };
        left.check_numbers();
        right.check_numbers();
        if left.subjects().is_empty() {
            return self.unchecked("a comparison without a metric");
        }
        for a in left.subjects() {
            let statistics = right.statistics().into_iter().map(Some).collect();
            let others = subjects(
                &or(right.metrics(), Some(a.metric)),
                &or(statistics, Some(a.statistic)),
                &or(right.locations(), Some(a.place)),
            );
            for b in others {
                left.check_pair(claim, a, b);
            }
        }
    }

    /// Holds one comparison against the facts of two subjects.
    fn check_pair(&self, claim: Claim, a: Subject, b: Subject) {
        if a == b {
            return self.unchecked("a comparison of a number with itself");
        }
        // Where no statistic is named, the mean and the median must both agree.
        let (ones, others) = (self.known.readings(a), self.known.readings(b));
        let is_paired = a.statistic == b.statistic && ones.len() == others.len();
        let pairs: Vec<(Subject, Subject)> = if is_paired {
            ones.into_iter().zip(others).collect()
        } else {
            ones.iter().flat_map(|one| others.iter().map(|other| (*one, *other))).collect()
        };
        for (a, b) in pairs {
            let (Some(left), Some(right)) = (self.value(a), self.value(b)) else { continue };
            match self.contradiction(claim, left, right) {
                None => self.holds([left, right]),
                Some(kind) => {
                    self.fails(kind, format!("{} against {}", self.describe(a), self.describe(b)));
                }
            }
        }
    }

    /// Why a comparison of two facts does not hold.
    fn contradiction(&self, claim: Claim, left: usize, right: usize) -> Option<ReasonKind> {
        let (a, b) = (&self.known.facts[left], &self.known.facts[right]);
        if a.unit != b.unit {
            return Some(WrongUnit);
        }
        let greater = match claim.sense {
            Some(sense) => sense.wants_greater(a.better),
            None => Some(b.value < a.value),
        };
        let Some(greater) = greater else { return Some(FalseComparison) };
        let (high, low) = if greater { (a, b) } else { (b, a) };
        let apart = high.interval.zip(low.interval).is_none_or(|(high, low)| low.1 < high.0);
        let ratio = high.value / low.value;
        let strong_enough = match claim.strength {
            None => true,
            Some(Strength::Much) => MUCH <= ratio,
            Some(Strength::Slightly) => ratio <= SLIGHT,
        };
        let times = if claim.sense.is_some() { ratio } else { a.value / b.value };
        let difference = (a.value - b.value).abs();
        let sized =
            claim.size.is_none_or(|size| size.says_size(difference, b.value, times, a.unit));
        let holds = low.value < high.value && apart && strong_enough && sized;
        (!holds).then_some(FalseComparison)
    }

    /// `TTFT is higher than 40 ms`.
    fn check_threshold(&self, claim: Claim, threshold: &Number) {
        self.check_numbers();
        for subject in self.subjects().into_iter().flat_map(|one| self.known.readings(one)) {
            let Some(place) = self.value(subject) else { continue };
            let fact = &self.known.facts[place];
            let Some(value) = threshold.in_its_unit(fact.value, fact.unit) else {
                self.fails(WrongUnit, threshold.describe());
                continue;
            };
            let holds = match claim.sense.and_then(|sense| sense.wants_greater(fact.better)) {
                Some(true) => threshold.digits.value < value,
                Some(false) => value < threshold.digits.value,
                None => false,
            };
            if holds && claim.size.is_none() && claim.strength.is_none() {
                self.holds([place]);
            } else {
                let what = format!("{} against {}", self.describe(subject), threshold.describe());
                self.fails(FalseComparison, what);
            }
        }
    }

    // `The gap between A and B is N`, or is small, or large.

    pub(super) fn check_gap(&self) {
        let pairs = self.gap_ends();
        if pairs.is_empty() {
            return self.unchecked("a gap without two ends");
        }
        let levels: Vec<Level> = self.levels_said().map(|(_, level)| level).collect();
        let numbers = self.numbers();
        let size = match numbers.as_slice() {
            [] if levels.is_empty() => return self.unchecked("a gap without a size"),
            [] => None,
            [size] => Some(*size),
            // Two numbers are the ends of the gap.
            _ => {
                self.check_numbers();
                if levels.is_empty() || numbers.iter().any(Number::is_relative) {
                    self.unchecked("a gap without a size");
                }
                None
            }
        };
        for (a, b) in pairs {
            let (Some(left), Some(right)) = (self.value(a), self.value(b)) else { continue };
            let (one, other) = (&self.known.facts[left], &self.known.facts[right]);
            if one.unit != other.unit {
                self.fails(WrongUnit, self.describe(b));
                continue;
            }
            let difference = (one.value - other.value).abs();
            let least = one.value.min(other.value);
            let ratio = (least + difference) / least;
            let is_size =
                size.is_none_or(|size| size.says_size(difference, least, ratio, one.unit));
            let very = strength(self.terms) == Some(Strength::Much);
            let fits = levels.iter().all(|level| match level {
                Level::High => (if very { VERY_LARGE } else { LARGE }) <= ratio,
                Level::Low => ratio <= if very { CLOSE } else { SIMILAR },
                Level::Middle => SIMILAR < ratio && ratio < LARGE,
                Level::Good | Level::Bad => false,
            });
            let gap = format!("the gap between {} and {}", self.describe(a), self.describe(b));
            if !is_size {
                let size = size.as_ref().map(Number::describe).unwrap_or_default();
                self.fails(FalseComparison, format!("{gap} is not {size}"));
            } else if fits {
                self.holds([left, right]);
            } else {
                self.fails(FalseLevel, gap);
            }
        }
    }

    /// The two ends: of two statistics, else of two places, else of two metrics, for each of the
    /// rest.
    fn gap_ends(&self) -> Vec<(Subject, Subject)> {
        let metrics = self.metrics_or_default();
        let (statistics, places) = (self.statistics_asked(), self.locations_or_default());
        let ends = match (statistics.as_slice(), places.as_slice(), metrics.as_slice()) {
            ([a, b], places, metrics) => [*a, *b].map(|one| subjects(metrics, &[one], places)),
            ([_], [a, b], metrics) => [*a, *b].map(|one| subjects(metrics, &statistics, &[one])),
            ([_], [_], [a, b]) => [*a, *b].map(|one| subjects(&[one], &statistics, &places)),
            _ => return Vec::new(),
        };
        let [a, b] = ends;
        a.into_iter().zip(b).collect()
    }

    /// `high` and `low`, each with its place among the terms.
    fn levels_said(&self) -> impl Iterator<Item = (usize, Level)> {
        let read = |it| if let Meaning::Level(level) = it { Some(level) } else { None };
        let terms = self.terms.iter().enumerate();
        terms.filter_map(move |(at, term)| Some((at, term.meaning().and_then(read)?)))
    }

    // `Rises from A to B`, `falls with concurrency`, `doubles`.

    pub(super) fn check_trend(&self) {
        let Some(claim) = self.trend_claim() else {
            return self.unchecked("two trends in one statement");
        };
        let metrics = self.metrics_or_default();
        if metrics.is_empty() {
            return self.unchecked("a trend without a metric");
        }
        for subject in subjects(&metrics, &self.statistics_asked(), &[Location::Page]) {
            let Some(levels) = self.trend_levels(subject) else {
                self.unchecked("a trend without two levels");
                continue;
            };
            let (Some(first), Some(last)) = (levels.first(), levels.last()) else { continue };
            // From end to end in the size that is said, and never back on the way.
            self.check_pair(claim, subject.at(*last), subject.at(*first));
            for reading in self.known.readings(subject.at(*first)) {
                if !self.goes_on(claim.sense, reading, &levels) {
                    self.fails(FalseComparison, format!("{} turns on the way", subject.metric));
                }
            }
        }
    }

    fn goes_on(&self, sense: Option<Sense>, subject: Subject, levels: &[usize]) -> bool {
        let facts = levels.iter().map(|level| self.known.value(subject.at(*level)));
        let (Some(facts), Some(sense)) = (facts.collect::<Option<Vec<usize>>>(), sense) else {
            return false;
        };
        facts.windows(2).all(|pair| {
            let (a, b) = (&self.known.facts[pair[0]], &self.known.facts[pair[1]]);
            match sense.wants_greater(a.better) {
                Some(true) => a.value < b.value,
                Some(false) => b.value < a.value,
                None => false,
            }
        })
    }

    /// `None` where there is more than one.
    fn trend_claim(&self) -> Option<Claim> {
        let mut claim = self.claim_of_size()?;
        for term in self.terms {
            let (sense, times) = match term.meaning() {
                Some(Meaning::Trend(sense)) => (sense, None),
                Some(Meaning::Multiply(times)) if times < 1.0 => (Sense::Less, Some(1.0 / times)),
                Some(Meaning::Multiply(times)) => (Sense::More, Some(times)),
                _ => continue,
            };
            let has_size = claim.size.is_some() && times.is_some();
            if claim.sense.replace(sense).is_some() || has_size {
                return None;
            }
            let factor = times.map(|times| Number::factor(times, Qualifier::About));
            claim.size = claim.size.or(factor);
        }
        Some(claim)
    }

    /// The levels that the statement goes through, in its order.
    fn trend_levels(&self, subject: Subject) -> Option<Vec<usize>> {
        let along = self.has(Meaning::AlongConcurrency);
        if along && !self.has(Meaning::From) {
            self.check_numbers();
            return self.levels_at_hand().filter(|_| self.locations().is_empty());
        }
        let at = |word| self.terms.iter().position(|term| *term == Term::Word(word));
        let (from, to) = (at(Meaning::From)?, at(Meaning::To)?);
        let before = Clause { terms: &self.terms[..from], ..*self };
        if to < from || !before.locations().is_empty() || !before.values().is_empty() {
            return None;
        }
        let first = self.trend_end(&self.terms[from..to], subject)?;
        let last = self.trend_end(&self.terms[to..], subject)?;
        let between = self.known.levels_beside(first);
        let place = |level| between.iter().position(|other| *other == level);
        match (place(first), place(last)) {
            (Some(a), Some(b)) if a < b => Some(between[a..=b].to_vec()),
            _ if along => None,
            (Some(a), Some(b)) if b < a => Some(between[b..=a].iter().rev().copied().collect()),
            _ => (first != last).then(|| vec![first, last]),
        }
    }

    /// One end of `from … to …`: the place that it names, or else the one level that has its
    /// number.
    fn trend_end(&self, terms: &[Term], subject: Subject) -> Option<usize> {
        let part = Clause { terms, ..*self };
        match (part.locations().as_slice(), part.values().as_slice()) {
            ([Location::Scenario(place)], numbers) if numbers.len() < 2 => {
                for number in numbers {
                    self.check_number(number, subject.at(*place));
                }
                Some(*place)
            }
            ([], [number]) => {
                let says = |place: &usize| {
                    self.known.about(subject.at(*place)).iter().any(|fact| {
                        let fact = &self.known.facts[*fact];
                        number.says_in(fact.value, fact.unit) == Some(true)
                    })
                };
                let mut found = self.levels_at_hand()?.into_iter().filter(says);
                let Some(place) = found.next() else {
                    self.fails(UnknownNumber, number.describe());
                    return None;
                };
                found.next().is_none().then_some(place)
            }
            _ => None,
        }
    }

    // `Highest at c=32`, `the lowest of all scenarios`.

    pub(super) fn check_extreme(&self) {
        let read = |it| if let Meaning::Extreme(sense) = it { Some(sense) } else { None };
        let mut senses = self.terms.iter().filter_map(|term| term.meaning().and_then(read));
        let metrics = self.metrics();
        let (Some(sense), None, false) = (senses.next(), senses.next(), metrics.is_empty()) else {
            return self.unchecked("two extremes in one statement, or none with a metric");
        };
        for subject in subjects(&metrics, &self.statistics_asked(), &[Location::Page]) {
            self.check_extreme_of(sense, subject);
        }
    }

    fn check_extreme_of(&self, sense: Sense, subject: Subject) {
        let known = self.known;
        let place = match self.locations_or_default().as_slice() {
            [Location::Scenario(place)] => Some(*place),
            _ => self.unnamed_extreme(sense, subject),
        };
        let Some(place) = place else {
            return self.unchecked("an extreme without one scenario or level");
        };
        // A level stands out among the levels of its scenario, a scenario by its name among all.
        let by_level = self.terms.iter().any(|term| matches!(term, Term::Level(_)));
        let levels = known.levels_beside(place);
        let domain = if by_level && 1 < levels.len() {
            levels
        } else {
            (0..known.scenarios.len()).collect()
        };
        let is_other = |one: &usize| *one != place && known.value(subject.at(*one)).is_some();
        let others: Vec<usize> = domain.into_iter().filter(is_other).collect();
        if others.is_empty() {
            self.missing(format!("{} anywhere else", subject.metric));
        }
        let better = known.value(subject.at(place)).map(|fact| known.facts[fact].better);
        let greater = better.and_then(|better| sense.wants_greater(better));
        let is_good = matches!(
            (better, greater),
            (Some(Better::Higher), Some(true)) | (Some(Better::Lower), Some(false))
        );
        if self.has(Meaning::Advice) && !is_good {
            self.unchecked("advice for what is not better");
        }
        let claim = Claim { sense: Some(sense), strength: strength(self.terms), size: None };
        for other in others {
            self.check_pair(claim, subject.at(place), subject.at(other));
        }
        let defaults = Defaults { place: Location::Scenario(place), ..self.defaults };
        Clause { defaults, ..*self }.check_numbers();
    }

    /// `The highest output throughput is 387.1 tok/s`: whichever scenario has it, if a number says
    /// so.
    fn unnamed_extreme(&self, sense: Sense, subject: Subject) -> Option<usize> {
        if self.numbers().is_empty() || !self.locations().is_empty() {
            return None;
        }
        let facts = (0..self.known.scenarios.len()).filter_map(|place| {
            Some((place, &self.known.facts[self.known.value(subject.at(place))?]))
        });
        let facts: Vec<_> = facts.collect();
        let greater = sense.wants_greater(facts.first()?.1.better)?;
        let order = |value: f64| if greater { -value } else { value };
        let best = facts.iter().min_by(|a, b| order(a.1.value).total_cmp(&order(b.1.value)));
        best.map(|(place, _)| *place)
    }

    // `Nearly equal`, `identical`, `stable`.

    pub(super) fn check_sameness(&self) {
        self.check_numbers();
        let strength = strength(self.terms);
        if strength == Some(Strength::Slightly) {
            self.unchecked("slightly similar");
        }
        // The strictest word counts.
        let widest = if strength == Some(Strength::Much) { CLOSE } else { SIMILAR };
        let read = |it| if let Meaning::Same(tolerance) = it { Some(tolerance) } else { None };
        let tolerances = self.terms.iter().filter_map(Term::meaning).filter_map(read);
        let tolerances: Vec<f64> = tolerances.collect();
        let strictest = tolerances.iter().copied().fold(widest, f64::min);
        let subjects = self.subjects();
        if subjects.is_empty() {
            return self.unchecked("a similarity without a metric");
        }
        let mut groups: Vec<Vec<Subject>> = Vec::new();
        if self.has(Meaning::AlongConcurrency) {
            let Some(levels) = self.levels_at_hand().filter(|_| self.locations().is_empty()) else {
                return self.unchecked("a similarity along no levels");
            };
            let along = |one: &Subject| levels.iter().map(|level| one.at(*level)).collect();
            groups.extend(subjects.iter().map(along));
        } else {
            if self.has(Meaning::Steady) {
                // `TTFT and TPOT are stable` is said of each.
                groups.extend(self.metrics().iter().map(|metric| spread_of(metric, &subjects)));
            }
            if !tolerances.is_empty() {
                groups.push(subjects);
            }
        }
        if groups.is_empty() {
            return self.unchecked("a similarity without a metric");
        }
        for group in groups {
            // Where no statistic is named, the means must be alike, and the medians too.
            let both: Vec<_> = group.iter().map(|one| self.known.readings(*one)).collect();
            if both.iter().any(|readings| readings.len() != 2) {
                self.check_group(&group, strictest);
            } else {
                for which in [0, 1] {
                    let group: Vec<_> = both.iter().map(|readings| readings[which]).collect();
                    self.check_group(&group, strictest);
                }
            }
        }
    }

    fn check_group(&self, group: &[Subject], tolerance: f64) {
        if group.len() < 2 {
            return self.unchecked("a similarity of one number");
        }
        let mut places = Vec::new();
        for subject in group {
            let Some(place) = self.value(*subject) else { return };
            places.push(place);
        }
        let facts = || places.iter().map(|place| &self.known.facts[*place]);
        let first = &self.known.facts[places[0]];
        let least = facts().map(|fact| fact.value).fold(f64::INFINITY, f64::min);
        let most = facts().map(|fact| fact.value).fold(f64::NEG_INFINITY, f64::max);
        let is_alike = if tolerance == EXACT {
            facts().all(|fact| fact.printed == first.printed)
        } else {
            most <= least * tolerance
        };
        let names = || group.iter().map(|s| self.describe(*s)).join(", ");
        if !facts().all(|fact| fact.unit == first.unit) {
            self.fails(WrongUnit, names());
        } else if is_alike {
            self.holds(places);
        } else {
            self.fails(FalseEquality, names());
        }
    }
    // `High`, `low`: against the other scenarios of the page, because nothing else is known. And the
    // sweet spot.

    pub(super) fn check_levels(&self) {
        let mut covered: Vec<&'static str> = Vec::new();
        for (at, level) in self.levels_said() {
            let metrics = self.metrics_of_level(at, &covered);
            if metrics.is_empty() {
                self.unchecked("high or low without a metric");
            }
            let very = 0 < at && strength(&self.terms[at - 1..at]) == Some(Strength::Much);
            for metric in &metrics {
                let statistics =
                    if *metric == "concurrency" { vec![None] } else { self.statistics_asked() };
                for subject in subjects(&[*metric], &statistics, &self.locations_or_default()) {
                    for subject in self.known.readings(subject) {
                        self.check_level(level, very, subject);
                    }
                }
            }
            covered.extend(metrics);
        }
        let is_left_over = |metric: &&str| !covered.contains(metric);
        if !covered.is_empty()
            && self.numbers().is_empty()
            && !self.terms.iter().any(|term| term.relation().is_some())
            && self.metrics().iter().any(is_left_over)
        {
            self.unchecked("a metric without a statement");
        }
    }

    /// `High TTFT and TPOT`: those behind it; `TTFT and TPOT are high`: all before it that are not
    /// called high or low already.
    fn metrics_of_level(&self, at: usize, covered: &[&str]) -> Vec<&'static str> {
        let is_listed = |term: &&Term| {
            matches!(
                term,
                Term::Word(
                    Meaning::Metric(_) | Meaning::Statistic(_) | Meaning::And | Meaning::Filler
                )
            )
        };
        let behind = &self.terms[at + 1..];
        let adjacent = behind.iter().find(|term| term.statistic().is_none());
        let found: Vec<&'static str> = if adjacent.and_then(Term::metric).is_some() {
            behind.iter().take_while(is_listed).filter_map(Term::metric).collect()
        } else {
            let before = self.terms[..at].iter().filter_map(Term::metric);
            before.filter(|metric| !covered.contains(metric)).collect()
        };
        or(found, self.defaults.metric.filter(|_| self.metrics().is_empty()))
    }

    fn check_level(&self, level: Level, very: bool, subject: Subject) {
        let known = self.known;
        let Some(here) = self.value(subject) else { return };
        let all = (0..known.scenarios.len()).filter_map(|place| known.value(subject.at(place)));
        let all: Vec<f64> = all.map(|fact| known.facts[fact].value).collect();
        if all.len() < SCENARIOS_MIN {
            return self.unchecked("high or low without others to compare with");
        }
        let fact = &known.facts[here];
        let higher = all.iter().filter(|value| fact.value < **value).count();
        let lower = all.iter().filter(|value| **value < fact.value).count();
        // A third of the scenarios, or the one at the end for `very`.
        let few = |count: usize| if very { count == 0 } else { count * 3 < all.len() };
        let holds = match (level, fact.better) {
            (Level::High, _) | (Level::Good, Better::Higher) | (Level::Bad, Better::Lower) => {
                few(higher) && 0 < lower
            }
            (Level::Low, _) | (Level::Good, Better::Lower) | (Level::Bad, Better::Higher) => {
                few(lower) && 0 < higher
            }
            (Level::Middle, _) => !few(higher) && !few(lower),
            (Level::Good | Level::Bad, Better::Neither) => false,
        };
        if holds {
            self.holds([here]);
        } else {
            self.fails(FalseLevel, self.describe(subject));
        }
    }

    /// Each place that the statement names must be the sweet spot of its own levels.
    pub(super) fn check_sweet_spot(&self) {
        let said = self.terms.iter().find_map(|term| {
            if let Term::Word(Meaning::SweetSpot(metric)) = term { Some(*metric) } else { None }
        });
        let Some(metric) = said else { return };
        if self.locations().is_empty() {
            self.unchecked("a sweet spot at no level");
        }
        for place in self.locations() {
            let Location::Scenario(scenario) = place else {
                self.missing("a sweet spot");
                continue;
            };
            let spot = Subject { metric, statistic: None, place };
            let mut levels = self.known.levels_beside(scenario).into_iter();
            let other = levels.find_map(|level| self.known.value(spot.at(level)));
            match (self.known.value(spot), other) {
                (Some(here), _) => self.holds([here]),
                (None, Some(other)) => {
                    let level = self.known.facts[other].value;
                    self.fails(WrongSubject, format!("the sweet spot is c={level}"));
                }
                (None, None) => self.missing("a sweet spot"),
            }
        }
    }
}
