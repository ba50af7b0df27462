//! What changes from level to level.

use std::cmp::Ordering;

use inferometer_model::campaign::Level;

use super::limit::limit;
use super::page::{Family, Page, Row};
use super::saturation::saturation;
use super::words::Saying;
use crate::narrative::Sentence;
use crate::narrative::facts::standing::Standing;

pub(super) fn findings(page: &Page<'_>) -> Vec<Sentence> {
    let of_family = |family: &Family| {
        let rules: [fn(&Page<'_>, &Family) -> Option<Sentence>; 9] =
            [not_reached, ends, per_user, latencies, saturation, kept_up, sweet_spot, knee, limit];
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

/// Levels whose name promises more users than there were.
fn not_reached(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let missed = page.every_row_of(family).filter(|row| row.standing == Standing::NotReached);
    let missed: Vec<&Row> = missed.collect();
    let (first, others) = missed.split_first()?;
    let saying = in_flight(page, Saying::on(page.facts).say("Never reached: "), first)?;
    let saying =
        others.iter().try_fold(saying, |saying, row| in_flight(page, saying.say(", "), row))?;
    Some(saying.say(". Such a level is in no comparison.").done())
}

/// `c=500 (100 requests for as many users, at most 100 in flight)`.
fn in_flight<'a>(page: &Page<'a>, saying: Saying<'a>, row: &Row) -> Option<Saying<'a>> {
    let peak = page.at(row, "concurrency_peak", None)?;
    let users = page.at(row, "concurrency", None)?;
    let saying = level(page, saying, row)?.say(" (at most ").bare(peak).say(" in flight");
    let requests = page.when(row, ("requests", None), |requests| requests < page.value(users));
    Some(match requests {
        Some(requests) => saying.say(", for there were ").number(requests).say(" in all)"),
        None => saying.say(")"),
    })
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
        saying.say(", ").bare(times).say(" times as long.")
    } else {
        saying.say(".")
    };
    Some(saying.done())
}

/// Of rates.
fn kept_up(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let found = family.findings.saturation.found()?;
    let row = |rate: Option<f64>| page.every_row_at(family, Level::Rate(rate?));
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
