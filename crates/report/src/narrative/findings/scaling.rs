//! What changes from level to level, and what the server runs out of.

use std::cmp::Ordering;

use inferometer_model::campaign::Level;

use super::page::{Family, Page, Row};
use super::thresholds::{GAIN_SMALL, KV_FULL, PRINTABLE_SHARE, QUEUE_SHARE};
use super::words::Saying;
use crate::narrative::Sentence;

pub(super) fn findings(page: &Page<'_>) -> Vec<Sentence> {
    let of_family = |family: &Family| {
        let rules: [fn(&Page<'_>, &Family) -> Option<Sentence>; 8] =
            [ends, per_user, latencies, saturation, kept_up, sweet_spot, knee, limit];
        rules.into_iter().filter_map(|rule| rule(page, family)).collect::<Vec<_>>()
    };
    page.families.iter().flat_map(of_family).collect()
}

/// `c=4`, or with the server's name where there are several.
pub(super) fn level<'a>(page: &Page<'a>, saying: Saying<'a>, row: &Row) -> Option<Saying<'a>> {
    if 1 < page.families.len() || page.at(row, "asked_rate", None).is_some() {
        return Some(saying.name(row.name.as_deref()?));
    }
    Some(saying.level(page.at(row, "concurrency", None)?))
}

fn ends(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let last = page.rows_of(family).last()?;
    let times = page.at(last, "throughput_times", None)?;
    let saying = Saying::on(page.facts).say("Output throughput ");
    let saying = from_to(page, family, saying, "output_throughput")?;
    Some(saying.say(", ").bare(times).say(" times as much.").done())
}

fn per_user(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let saying = Saying::on(page.facts).say("Per-user throughput ");
    Some(from_to(page, family, saying, "per_user_throughput")?.say(".").done())
}

/// `rises from 97.72 tok/s at c=2 to 387.10 tok/s at c=32`.
fn from_to<'a>(
    page: &Page<'a>,
    family: &Family,
    saying: Saying<'a>,
    quantity: &str,
) -> Option<Saying<'a>> {
    let (first, last) = (page.rows_of(family).next()?, page.rows_of(family).last()?);
    let (before, after) = (page.at(first, quantity, None)?, page.at(last, quantity, None)?);
    let verb = match page.value(before).total_cmp(&page.value(after)) {
        _ if page.overlap(before, after) => "goes from ",
        Ordering::Less => "rises from ",
        Ordering::Greater => "falls from ",
        Ordering::Equal => "stays, from ",
    };
    let saying = level(page, saying.say(verb).link(before).say(" at "), first)?;
    level(page, saying.say(" to ").number(after).say(" at "), last)
}

fn latencies(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let (first, last) = (page.rows_of(family).next()?, page.rows_of(family).last()?);
    let of = |row| page.at(row, "tpot", Some("p99"));
    let times = page.at(last, "tpot_times", None)?;
    let saying = Saying::on(page.facts).say("TPOT p99 is ").link(of(first)?).say(" at ");
    let saying = level(page, saying, first)?.say(" and ").number(of(last)?).say(" at ");
    let saying = level(page, saying, last)?;
    let has_grown = 1.0 < page.value(times) && !page.overlap(of(first)?, of(last)?);
    let saying = if has_grown {
        saying.say(", ").bare(times).say(" times as much.")
    } else {
        saying.say(".")
    };
    Some(saying.done())
}

/// The first step up that brings less than it should.
pub(super) fn saturated<'p>(
    page: &'p Page<'_>,
    family: &'p Family,
) -> Option<(&'p Row, &'p Row, usize)> {
    let rows: Vec<&Row> = page.rows_of(family).collect();
    rows.windows(2).find_map(|two| {
        let doublings = (f64::from(two[1].concurrency?) / f64::from(two[0].concurrency?)).log2();
        let small = |gain: f64| gain < (1.0 + GAIN_SMALL).powf(doublings) - 1.0;
        let gain = page.when(two[1], ("throughput_gain", None), small);
        let change = gain.or_else(|| page.at(two[1], "throughput_loss", None))?;
        Some((two[0], two[1], change))
    })
}

fn saturation(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let Some((before, after, change)) = saturated(page, family) else {
        return still_rising(page, family);
    };
    let saying =
        level(page, Saying::on(page.facts).say("Output throughput saturates at "), before)?;
    let saying = level(page, saying.say(": going on to "), after)?;
    let saying = match page.fact(change).about.quantity.as_str() {
        "throughput_loss" => saying.say(" takes ").link(change).say(" from it"),
        _ if page.value(change) < PRINTABLE_SHARE => saying.say(" adds nothing").rests_on(change),
        _ => saying.say(" adds ").link(change),
    };
    let throughput = |row| page.at(row, "output_throughput", None);
    let saying = if page.overlap(throughput(before)?, throughput(after)?) {
        saying.say(" (less than their intervals tell apart)")
    } else {
        saying
    };
    Some(match page.at(after, "per_user_loss", None) {
        Some(loss) => saying.say(" and each user loses ").number(loss).say(".").done(),
        None => saying.say(".").done(),
    })
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

/// Of rates.
fn kept_up(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let found = family.findings.saturation.found()?;
    let row = |rate: Option<f64>| page.row_at(family, Level::Rate(rate?));
    let rate = |row: &Row| page.at(row, "asked_rate", None);
    let kept = row(found.highest_served).and_then(rate);
    let missed = row(found.lowest_missed);
    let share = missed.and_then(|row| {
        page.when(row, ("served_share", None), |share| share < 1.0)
            .filter(|_| !found.missed_piling_up)
    });
    let saying = Saying::on(page.facts);
    let saying = match kept {
        Some(kept) => saying.say("The server keeps up with ").link(kept),
        None => saying.say("The server keeps up with no rate that was asked"),
    };
    Some(match (missed.and_then(rate), share) {
        (Some(missed), Some(share)) => {
            saying.say("; of ").number(missed).say(" it serves ").number(share).say(".").done()
        }
        (Some(missed), None) => saying.say("; at ").number(missed).say(" requests pile up.").done(),
        (None, _) => saying.say(", the highest rate that was asked.").rests_on(kept?).done(),
    })
}

fn sweet_spot(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let spot = page.row_at(family, family.findings.sweet_spot.found()?.level)?;
    let share = page.at(spot, "share_of_peak", None)?;
    let saying = level(page, Saying::on(page.facts).say("At "), spot)?
        .say(" per-user throughput is ")
        .link(page.at(spot, "per_user_throughput", None)?)
        .say(" and output throughput is ")
        .number(page.at(spot, "output_throughput", None)?)
        .say(": ")
        .number(share)
        .say(" of the peak of all levels.");
    Some(saying.done())
}

fn knee(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let knee = page.row_at(family, family.findings.knee.found()?.level)?;
    let throughput = page.at(knee, "output_throughput", None)?;
    let saying = Saying::on(page.facts).say("The curve of throughput bends at ");
    Some(level(page, saying, knee)?.say(" (").link(throughput).say(").").done())
}

/// What the server ran out of, as far as it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    KvCache(usize),
    Queue(usize),
    /// Both were looked at.
    Neither {
        kv_usage: usize,
        waiting: usize,
    },
    Silent,
}

impl Limit {
    pub(super) fn of(page: &Page<'_>, row: &Row) -> Self {
        let kv = page.at(row, "kv_usage", Some("max"));
        let waiting = page.at(row, "waiting", Some("max"));
        if let Some(kv) = kv.filter(|kv| KV_FULL <= page.value(*kv)) {
            return Self::KvCache(kv);
        }
        let users = f64::from(row.concurrency.unwrap_or(1));
        let is_queue = |waiting: f64| 1.0 <= waiting && QUEUE_SHARE * users <= waiting;
        if let Some(waiting) = waiting.filter(|waiting| is_queue(page.value(*waiting))) {
            return Self::Queue(waiting);
        }
        match (kv, waiting) {
            (Some(kv_usage), Some(waiting)) => Self::Neither { kv_usage, waiting },
            _ => Self::Silent,
        }
    }
}

/// The level at which the limit shows: the one past saturation, else the highest.
pub(super) fn limited<'p>(page: &'p Page<'_>, family: &'p Family) -> Option<&'p Row> {
    let past = saturated(page, family).map(|(_, after, _)| after);
    past.or_else(|| page.rows_of(family).last())
}

fn limit(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    saturated(page, family)?;
    let row = limited(page, family)?;
    let saying = Saying::on(page.facts);
    Some(match Limit::of(page, row) {
        Limit::KvCache(kv) => {
            let saying = saying.say("The KV cache is what runs out: up to ").link(kv);
            level(page, saying.say(" full at "), row)?.say(".").done()
        }
        Limit::Queue(waiting) => {
            let saying = saying.say("Requests queue in the server: up to ").link(waiting);
            level(page, saying.say(" waiting at "), row)?.say(".").done()
        }
        Limit::Neither { kv_usage, waiting } => {
            let saying = level(page, saying.say("At "), row)?;
            let saying = saying.say(" the KV cache was at most ").link(kv_usage).say(" full and ");
            saying.number(waiting).say(" waited at most, so neither is the limit.").done()
        }
        Limit::Silent => {
            let saying = saying.say("What limits it at ");
            level(page, saying, row)?.say(" is not known: the server does not say.").done()
        }
    })
}
