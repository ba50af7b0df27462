//! What changes from level to level, and what the server runs out of.

use inferometer_model::campaign::Level;

use super::page::{Family, Page, Row};
use super::thresholds::{GAIN_SMALL, KV_FULL, PRINTABLE_SHARE};
use super::words::Saying;
use crate::narrative::Sentence;

pub(super) fn findings(page: &Page<'_>) -> Vec<Sentence> {
    let of_family = |family: &Family| {
        let rules: [fn(&Page<'_>, &Family) -> Option<Sentence>; 7] =
            [ends, latencies, saturation, kept_up, sweet_spot, knee, limit];
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
    let (first, last) = (page.rows_of(family).next()?, page.rows_of(family).last()?);
    let throughput = |row| page.at(row, "output_throughput", None);
    let per_user = |row| page.at(row, "per_user_throughput", None);
    let times = page.at(last, "throughput_times", None)?;
    let saying = level(page, Saying::on(page.facts).say("From "), first)?.say(" to ");
    let saying = level(page, saying, last)?
        .say(" output throughput goes from ")
        .link(throughput(first)?)
        .say(" to ")
        .number(throughput(last)?)
        .say(" (")
        .bare(times)
        .say(" times)");
    Some(match per_user(first).zip(per_user(last)) {
        Some((before, after)) => saying
            .say(", and throughput per user from ")
            .number(before)
            .say(" to ")
            .number(after)
            .say(".")
            .done(),
        None => saying.say(".").done(),
    })
}

fn latencies(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let (first, last) = (page.rows_of(family).next()?, page.rows_of(family).last()?);
    let of = |row| page.at(row, "tpot", Some("p99"));
    let times = page.at(last, "tpot_times", None)?;
    let saying = Saying::on(page.facts).say("TPOT p99 is ").link(of(first)?).say(" at ");
    let saying = level(page, saying, first)?.say(" and ").number(of(last)?).say(" at ");
    Some(level(page, saying, last)?.say(", ").bare(times).say(" times as much.").done())
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
    Some(match page.at(after, "per_user_loss", None) {
        Some(loss) => saying.say(" and each user loses ").number(loss).say(".").done(),
        None => saying.say(".").done(),
    })
}

fn still_rising(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let last = page.rows_of(family).last()?;
    let gain = page.at(last, "throughput_gain", None)?;
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
        .say(" each user has ")
        .link(page.at(spot, "per_user_throughput", None)?)
        .say(" while all together have ")
        .number(page.at(spot, "output_throughput", None)?)
        .say(", which is ")
        .number(share)
        .say(" of the peak.");
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
        if let Some(waiting) = waiting.filter(|waiting| 1.0 <= page.value(*waiting)) {
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
            saying.bare(waiting).say(" requests waited, so neither is the limit.").done()
        }
        Limit::Silent => {
            let saying = saying.say("What limits it at ");
            level(page, saying, row)?.say(" is not known: the server does not say.").done()
        }
    })
}
