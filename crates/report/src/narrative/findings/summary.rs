//! The first lines of a page: who was measured, and the few numbers that matter.

use inferometer_analysis::Verdict;

use super::order::{Leading, highest, is_same, leading, lowest};
use super::page::{Family, Hardware, MeasuredBy, Page, Row, Searched};
use super::scaling::level;
use super::scenario::suspicion;
use super::thresholds::INTERACTIVE_MS;
use super::words::Saying;
use crate::narrative::Sentence;

pub(super) fn findings(page: &Page<'_>) -> Vec<Sentence> {
    let mut said: Vec<Sentence> = subject(page).into_iter().chain(verdict(page)).collect();
    said.extend(page.searched.iter().filter_map(|found| searched(page, found)));
    for family in &page.families {
        said.extend(sweet_spot(page, family));
        said.extend(peak(page, family));
    }
    let rest = [best_tpot, longest_ttft, run_throughput, repeated, failures, contaminated];
    said.extend(rest.into_iter().filter_map(|rule| rule(page)));
    said
}

fn subject(page: &Page<'_>) -> Option<Sentence> {
    let saying = Saying::on(page.facts).name(page.subject.model.as_deref()?);
    let verb = if page.subject.simulated { " was simulated" } else { " was measured" };
    let saying = saying.say(verb);
    let saying = match (&page.subject.hardware, page.whole("gpus")) {
        (Some(Hardware::Gpus(name)), Some(gpus)) => {
            saying.say(" on ").bare(gpus).say("× ").name(name)
        }
        _ => saying,
    };
    let saying = extent(page, saying)?;
    Some(match &page.subject.hardware {
        Some(Hardware::Pretended(what)) => {
            let saying = saying.say(" It ran on the embedded engine, which pretends to be ");
            saying.name(what).say(".").done()
        }
        _ => saying.done(),
    })
}

/// `by the suite standard with 6 scenarios at 10 levels and 250 requests.`
fn extent<'a>(page: &Page<'a>, saying: Saying<'a>) -> Option<Saying<'a>> {
    let requests = page.whole("requests")?;
    let levels = page.whole("levels");
    Some(match (&page.subject.measured_by, levels) {
        (MeasuredBy::Suite(name), Some(levels)) => {
            let scenarios = page.whole("scenarios")?;
            let saying = saying.say(" by the suite ").name(name).say(" with ").bare(scenarios);
            let is_one = page.value(scenarios) <= 1.0;
            let saying = saying.say(if is_one { " scenario" } else { " scenarios" });
            let saying = if page.value(scenarios) < page.value(levels) {
                saying.say(" at ").bare(levels).say(" levels")
            } else {
                saying
            };
            saying.say(" and ").link(requests).say(".")
        }
        (MeasuredBy::Sweep, Some(levels)) => {
            let is_one = page.value(levels) <= 1.0;
            let saying = saying.say(" at ").bare(levels);
            let saying = saying.say(if is_one { " level with " } else { " levels with " });
            saying.link(requests).say(" in all.")
        }
        (MeasuredBy::Repeat, _) => saying.say(" with ").link(requests).say(" in all."),
        _ => saying.say(" with ").link(requests).say("."),
    })
}

fn verdict(page: &Page<'_>) -> Option<Sentence> {
    let verdict = page.subject.verdict?;
    let saying = Saying::on(page.facts).say("The result is ").name(verdict.key());
    let (degraded, invalid) = (page.whole("degraded"), page.whole("invalid"));
    let some = |place: &usize| 0.0 < page.value(*place);
    let are = |place: usize| if page.value(place) <= 1.0 { " is" } else { " are" };
    let counts = (degraded.filter(some), invalid.filter(some), page.whole("levels"));
    Some(match (verdict, counts) {
        (Verdict::Valid, _) | (_, (None, None, _) | (_, _, None)) => saying.say(".").done(),
        (_, (Some(degraded), None, Some(all))) => {
            let saying = saying.say(": ").bare(degraded).say(" of ").bare(all);
            let saying = saying.say(if page.value(all) <= 1.0 { " level" } else { " levels" });
            saying.say(are(degraded)).say(" degraded.").done()
        }
        (_, (degraded, Some(invalid), Some(all))) => {
            let saying = saying.say(": of ").bare(all);
            let saying = saying.say(if page.value(all) <= 1.0 { " level " } else { " levels " });
            let saying = saying.bare(invalid).say(" had an invalid run");
            match degraded {
                Some(degraded) => {
                    saying.say(" and ").bare(degraded).say(are(degraded)).say(" degraded.").done()
                }
                None => saying.say(".").done(),
            }
        }
    })
}

fn searched(page: &Page<'_>, found: &Searched) -> Option<Sentence> {
    let row = page.rows.get(found.row)?;
    let level = page.at(row, "asked_rate", None).or_else(|| page.at(row, "concurrency", None))?;
    let saying = Saying::on(page.facts).say("The highest level that meets ").code(&found.goals);
    let saying = saying.say(" is ").name(row.name.as_deref()?).rests_on(level);
    let end = if found.confirmed { "." } else { ", which no further run has confirmed." };
    Some(saying.say(end).done())
}

fn sweet_spot(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let spot = page.row_at(family, family.findings.sweet_spot.found()?.level)?;
    let lead = if is_interactive(page, spot)? {
        "The interactive sweet spot is "
    } else {
        "The best level for each user by the rule of the sweet spot is "
    };
    let saying = level(page, Saying::on(page.facts).say(lead), spot)?
        .say(" with ")
        .link(page.at(spot, "per_user_throughput", None)?)
        .say(" per user, a TTFT p99 of ")
        .number(page.at(spot, "ttft", Some("p99"))?)
        .say(" and a TPOT p99 of ")
        .number(page.at(spot, "tpot", Some("p99"))?)
        .say(".");
    let share = page.at(spot, "share_of_peak", None).filter(|_| is_lowest(page, family, spot));
    Some(match share {
        Some(share) => saying
            .say(" It is the lowest level that was measured, with ")
            .number(share)
            .say(" of the peak throughput.")
            .done(),
        None => saying.done(),
    })
}

/// Whether an answer begins soon enough; `None` where nobody knows when it does.
pub(super) fn is_interactive(page: &Page<'_>, row: &Row) -> Option<bool> {
    Some(page.value(page.at(row, "ttft", Some("p99"))?) <= INTERACTIVE_MS)
}

/// Whether a choice had nothing below it to choose.
pub(super) fn is_lowest(page: &Page<'_>, family: &Family, row: &Row) -> bool {
    page.rows_of(family).next().is_some_and(|first| first.name == row.name)
}

/// A cache that has helped to the numbers of a family.
pub(super) struct Warmth {
    /// By the server's word, and not only by its speed.
    pub(super) is_sure: bool,
    pub(super) evidence: Option<usize>,
}

pub(super) fn warmth(page: &Page<'_>, family: &Family) -> Option<Warmth> {
    let is_sure = page.rows_of(family).any(|row| row.contaminated);
    let evidence = page.rows_of(family).find_map(|row| suspicion(page, row));
    (is_sure || evidence.is_some()).then_some(Warmth { is_sure, evidence })
}

/// The most that any row of the page has.
pub(super) fn whole_peak<'p>(page: &'p Page<'_>) -> Option<Leading<'p>> {
    leading(page, compared(page), ("output_throughput", None), highest)
}

fn compared<'p>(page: &'p Page<'_>) -> impl Iterator<Item = &'p Row> {
    page.rows.iter().filter(|row| row.is_whole())
}

fn peak(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let found = family.findings.peak.found()?;
    let own = leading(page, page.rows_of(family), (&found.quantity, None), highest)?;
    // Other scenarios may have more, and another server too.
    let is_other = |row: &Row| !page.rows_of(family).any(|own| own.name == row.name);
    let others = compared(page).filter(|row| is_other(row));
    let above = leading(page, others, (&found.quantity, None), highest).filter(|other| {
        page.value(own.place) < page.value(other.place) || is_same(page, own.place, other.place)
    });
    let saying = Saying::on(page.facts).say("The highest throughput ");
    let saying = match (&above, page.families.len()) {
        (None, _) => saying,
        (Some(_), 1) => saying.say("of the scaling levels "),
        (Some(_), _) => saying.say("of ").name(&family.name).say(" "),
    };
    let saying = level(page, saying.say("is ").link(own.place).say(" at "), own.row)?;
    let saying = match own.rivals.first() {
        Some((rival, other)) if page.overlap(own.place, *other) => {
            let saying = saying.rests_on(*other).say("; its interval overlaps that of ");
            level(page, saying, rival)?
        }
        Some((rival, other)) => {
            level(page, saying.rests_on(*other).say(", the same as at "), rival)?
        }
        None => saying,
    };
    let above = above.filter(|_| page.families.len() == 1);
    Some(match above {
        Some(other) if is_same(page, own.place, other.place) => saying
            .say(". About as much has ")
            .name(other.row.name.as_deref()?)
            .say(": ")
            .number(other.place)
            .say(".")
            .done(),
        Some(other) => saying
            .say(". The highest of all is ")
            .number(other.place)
            .say(page.there())
            .name(other.row.name.as_deref()?)
            .say(".")
            .done(),
        None => saying.say(".").done(),
    })
}

fn best_tpot(page: &Page<'_>) -> Option<Sentence> {
    let found = leading(page, compared(page), ("tpot", Some("mean")), lowest)?;
    found.next?;
    Some(found.say(page, "The lowest TPOT mean")?.say(".").done())
}

fn longest_ttft(page: &Page<'_>) -> Option<Sentence> {
    let found = leading(page, compared(page), ("ttft", Some("mean")), highest)?;
    found.next?;
    let saying = found.say(page, "The longest TTFT mean")?;
    let input = page.at(found.row, "input_tokens", None).filter(|_| found.rivals.is_empty());
    Some(match input {
        Some(input) => saying.say(", with ").bare(input).say(" input tokens.").done(),
        None => saying.say(".").done(),
    })
}

/// Of a run.
fn run_throughput(page: &Page<'_>) -> Option<Sentence> {
    let [row] = page.rows.as_slice() else { return None };
    let saying = Saying::on(page.facts)
        .say("Output throughput is ")
        .link(page.at(row, "output_throughput", None)?)
        .say(", the TTFT median ")
        .number(page.at(row, "ttft", Some("p50"))?)
        .say(" and the TPOT median ")
        .number(page.at(row, "tpot", Some("p50"))?)
        .say(".");
    Some(saying.done())
}

fn repeated(page: &Page<'_>) -> Option<Sentence> {
    let MeasuredBy::Repeat = page.subject.measured_by else { return None };
    let [row] = page.rows.as_slice() else { return None };
    let runs = page.whole("runs").filter(|runs| 1.0 < page.value(*runs))?;
    let width = page.at(row, "half_width", None)?;
    let saying = Saying::on(page.facts)
        .say("Over ")
        .bare(runs)
        .say(" runs the mean output throughput is known to within ")
        .link(width)
        .say(".");
    Some(saying.done())
}

fn failures(page: &Page<'_>) -> Option<Sentence> {
    let failed = page.whole("failed_requests").filter(|failed| 0.0 < page.value(*failed))?;
    let all = page.whole("attempted_requests").or_else(|| page.whole("requests"))?;
    let saying = Saying::on(page.facts).bare(failed).say(" of ").link(all);
    Some(saying.say(" failed; latencies and throughput are of the others.").done())
}

/// Which row a warm cache has answered most, by the server's word, else by its speed.
fn contaminated(page: &Page<'_>) -> Option<Sentence> {
    page.whole("levels")?;
    let saying = Saying::on(page.facts);
    let share = |row: &Row| page.at(row, "cached_share", Some("max")).filter(|_| row.contaminated);
    if let Some((row, share)) = worst(page, share) {
        let saying = saying
            .say("The prefix cache answered prompts that were to be new, up to ")
            .link(share)
            .say(" of the input")
            .say(page.there())
            .name(row.name.as_deref()?);
        let end = ": what follows from TTFT there describes a warm cache.";
        return Some(saying.say(end).done());
    }
    let (row, times) = worst(page, |row| suspicion(page, row))?;
    let saying = saying
        .say("A prefix cache has probably answered prompts: prefill")
        .say(page.there())
        .name(row.name.as_deref()?)
        .say(" is ")
        .link(times)
        .say(" times as fast as that of ")
        .name(row.cold.as_deref()?)
        .say(".");
    Some(saying.done())
}

fn worst<'p>(
    page: &'p Page<'_>,
    evidence: impl Fn(&Row) -> Option<usize>,
) -> Option<(&'p Row, usize)> {
    let found = page.rows.iter().filter_map(|row| Some((row, evidence(row)?)));
    found.max_by(|(_, a), (_, b)| page.value(*a).total_cmp(&page.value(*b)))
}
