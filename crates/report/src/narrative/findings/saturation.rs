//! From which level on more users bring nothing.

use super::page::{Family, Page, Row};
use super::scaling::level;
use super::thresholds::{GAIN_SMALL, PRINTABLE_SHARE};
use super::words::Saying;
use crate::narrative::Sentence;

/// A step after which throughput stays.
#[derive(Clone, Copy)]
pub(super) struct Flat<'p> {
    pub(super) before: &'p Row,
    pub(super) after: &'p Row,
    /// The place of its gain or its loss.
    change: usize,
    /// Whether the intervals allow no gain that counts.
    pub(super) is_certain: bool,
}

/// The first step up that brings less than it should, and after which no level brings it either.
pub(super) fn flat<'p>(page: &'p Page<'_>, family: &'p Family) -> Option<Flat<'p>> {
    let rows: Vec<&Row> = page.rows_of(family).collect();
    let steps = rows.windows(2).enumerate();
    let found = steps.filter_map(|(place, two)| {
        let doublings = (f64::from(two[1].concurrency?) / f64::from(two[0].concurrency?)).log2();
        let small = (1.0 + GAIN_SMALL).powf(doublings);
        let change = page.at(two[1], "throughput_gain", None);
        let change = change.or_else(|| page.at(two[1], "throughput_loss", None))?;
        let own = page.at(two[0], "output_throughput", None)?;
        let later = rows[place + 1..].iter();
        let later = later.filter_map(|row| page.at(row, "output_throughput", None));
        let later: Vec<usize> = later.collect();
        let is_flat = later.iter().all(|other| page.value(*other) < small * page.value(own));
        let is_certain = later.iter().all(|other| most_gained(page, own, *other) < small);
        is_flat.then_some(Flat { before: two[0], after: two[1], change, is_certain })
    });
    // A bend that is certain tells more than one before it that is not.
    let found: Vec<Flat<'_>> = found.collect();
    found.iter().find(|flat| flat.is_certain).or(found.first()).copied()
}

/// How many times as much the other may be, as far as the intervals allow.
fn most_gained(page: &Page<'_>, own: usize, other: usize) -> f64 {
    let low = page.fact(own).interval.map_or(page.value(own), |(low, _)| low);
    let high = page.fact(other).interval.map_or(page.value(other), |(_, high)| high);
    if 0.0 < low { high / low } else { f64::INFINITY }
}

pub(super) fn saturated<'p>(page: &'p Page<'_>, family: &'p Family) -> Option<Flat<'p>> {
    flat(page, family).filter(|flat| flat.is_certain)
}

pub(super) fn saturation(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let Some(found) = flat(page, family) else { return still_rising(page, family) };
    let Flat { before, after, change, is_certain } = found;
    let saying = Saying::on(page.facts);
    if !is_certain {
        let saying = level(page, saying.say("Whether output throughput saturates at "), before)?;
        let saying = level(page, saying.say(" cannot be told: the step to "), after)?;
        let saying = said_change(page, saying, change);
        return Some(saying.say(", and the intervals allow a gain that counts.").done());
    }
    let saying = level(page, saying.say("Output throughput saturates at "), before)?;
    let saying = level(page, saying.say(": going on to "), after)?;
    let saying = said_change(page, saying, change);
    Some(match page.at(after, "per_user_loss", None) {
        Some(loss) => saying.say(" and each user loses ").number(loss).say(".").done(),
        None => saying.say(".").done(),
    })
}

fn said_change<'a>(page: &Page<'a>, saying: Saying<'a>, change: usize) -> Saying<'a> {
    match page.fact(change).about.quantity.as_str() {
        _ if page.value(change) < PRINTABLE_SHARE => saying.say(" adds nothing").rests_on(change),
        "throughput_loss" => saying.say(" takes ").link(change).say(" from it"),
        _ => saying.say(" adds ").link(change),
    }
}

/// What the last step has brought, where the intervals show that it has.
pub(super) fn last_gain<'p>(page: &'p Page<'_>, family: &'p Family) -> Option<(&'p Row, usize)> {
    let mut rows = page.rows_of(family).rev();
    let (last, before) = (rows.next()?, rows.next()?);
    let throughput = |row| page.at(row, "output_throughput", None);
    let is_seen = !page.overlap(throughput(before)?, throughput(last)?);
    Some((last, page.at(last, "throughput_gain", None).filter(|_| is_seen)?))
}

fn still_rising(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let (last, gain) = last_gain(page, family)?;
    let saying = Saying::on(page.facts).say("The last step, to ");
    let saying = level(page, saying, last)?.say(", still adds ").link(gain);
    Some(saying.say(" of output throughput: the limit lies higher than was measured.").done())
}
