//! What to do, each with its reason.

use super::page::{Family, MeasuredBy, Page, Row};
use super::scaling::{Limit, last_gain, level, limited, saturated};
use super::scenario::{long_pauses, suspicion};
use super::thresholds::SHARE_OF_PEAK;
use super::words::Saying;
use crate::narrative::Sentence;

pub(super) fn findings(page: &Page<'_>) -> Vec<Sentence> {
    let mut advice = Vec::new();
    for family in &page.families {
        let rules = [interactive, throughput, limit, further];
        advice.extend(rules.into_iter().filter_map(|rule| rule(page, family)));
    }
    let rules = [failing, pauses, fresh_prompts, repeat, more_requests];
    advice.extend(rules.into_iter().filter_map(|rule| rule(page)));
    advice
}

fn interactive(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let spot = page.row_at(family, family.findings.sweet_spot.found()?.level)?;
    let saying = level(page, Saying::on(page.facts).say("For interactive use keep to "), spot)?
        .say(": per-user throughput is ")
        .link(page.at(spot, "per_user_throughput", None)?)
        .say(" and TTFT p99 is ")
        .number(page.at(spot, "ttft", Some("p99"))?)
        .say(".");
    Some(saying.done())
}

/// The lowest level that comes near the peak: what lies above costs users and brings nothing.
fn throughput(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let peak = page.row_at(family, family.findings.peak.found()?.level)?;
    let near = |row: &&Row| {
        page.when(row, ("share_of_peak", None), |share| SHARE_OF_PEAK <= share).is_some()
    };
    let chosen = page.rows_of(family).find(near)?;
    let saying = level(page, Saying::on(page.facts).say("For throughput use "), chosen)?
        .say(": ")
        .link(page.at(chosen, "output_throughput", None)?);
    if chosen.name == peak.name {
        return Some(saying.say(", the most that was measured.").done());
    }
    let saying = saying.say(" is ").number(page.at(chosen, "share_of_peak", None)?);
    let saying = level(page, saying.say(" of the peak at "), peak)?;
    let per_user = |row| page.at(row, "per_user_throughput", None);
    Some(match per_user(chosen).zip(per_user(peak)) {
        Some((own, other)) => saying
            .say("; per-user throughput is ")
            .number(own)
            .say(" instead of ")
            .number(other)
            .say(".")
            .done(),
        None => saying.say(".").done(),
    })
}

fn limit(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    let row = limited(page, family)?;
    let saying = Saying::on(page.facts);
    match Limit::of(page, row) {
        Limit::KvCache(kv) => {
            let saying =
                saying.say("Give the KV cache more room: it was ").link(kv).say(" full at ");
            let saying = level(page, saying, row)?.say(" (vLLM: ");
            let saying = saying.code("--gpu-memory-utilization").say(", ");
            Some(saying.code("--kv-cache-dtype").say(", or a smaller model).").done())
        }
        Limit::Queue(waiting) => {
            let saying = saying.say("Let more requests run at once: ").link(waiting);
            let saying = level(page, saying.say(" waited at "), row)?;
            let saying = saying.say(" though the KV cache had room (vLLM: ").code("--max-num-seqs");
            page.at(row, "kv_usage", Some("max"))?;
            Some(saying.say(").").done())
        }
        Limit::Neither { .. } | Limit::Silent => None,
    }
}

/// A curve that has not bent yet asks for more.
fn further(page: &Page<'_>, family: &Family) -> Option<Sentence> {
    if saturated(page, family).is_some() {
        return None;
    }
    let (last, gain) = last_gain(page, family)?;
    let saying = Saying::on(page.facts).say("Measure higher levels: the step to ");
    let saying = level(page, saying, last)?.say(" still added ").link(gain).say(" (");
    Some(saying.code("inferometer sweep --concurrency").say(").").done())
}

fn failing(page: &Page<'_>) -> Option<Sentence> {
    let worst = page.rows.iter().filter_map(|row| {
        Some((row, page.when(row, ("failed_requests", None), |failed| 0.0 < failed)?))
    });
    let (row, failed) = worst.max_by(|(_, a), (_, b)| page.value(*a).total_cmp(&page.value(*b)))?;
    let saying = Saying::on(page.facts).say("Look at the failures first: ").link(failed);
    let saying = match row.name.as_deref() {
        Some(name) => saying.say(" failed").say(page.there()).name(name),
        None => saying.say(" failed"),
    };
    Some(match &row.failure {
        Some(class) => saying.say(", most of them as ").code(class).say(".").done(),
        None => saying.say(".").done(),
    })
}

fn pauses(page: &Page<'_>) -> Option<Sentence> {
    let found = page.rows.iter().filter(|row| row.concurrency.is_some_and(|users| 1 < users));
    let tails = found.filter_map(|row| Some((row, long_pauses(page, row)?)));
    let (row, tail) = tails.max_by(|(_, a), (_, b)| page.value(*a).total_cmp(&page.value(*b)))?;
    let saying = Saying::on(page.facts)
        .say("Where pauses disturb, let prompts be prefilled in smaller pieces: ITL p99 is ")
        .number(page.at(row, "itl", Some("p99"))?)
        .say(", ")
        .bare(tail)
        .say(" times its median");
    let saying = match row.name.as_deref() {
        Some(name) => saying.say(",").say(page.there()).name(name),
        None => saying,
    };
    Some(saying.say(" (vLLM: ").code("--max-num-batched-tokens").say(").").done())
}

fn fresh_prompts(page: &Page<'_>) -> Option<Sentence> {
    let evidence = page.rows.iter().find_map(|row| {
        let said = page.at(row, "cached_share", None).filter(|_| row.contaminated);
        Some((row, said.or_else(|| suspicion(page, row))?))
    });
    let (row, evidence) = evidence?;
    let saying =
        Saying::on(page.facts).say("Measure again with prompts that the server has not seen");
    let saying = saying.rests_on(evidence).say(", or restart it before: ");
    let saying = match row.name.as_deref() {
        Some(name) => saying.name(name),
        None => saying.say("this run"),
    };
    let is_sure = row.contaminated;
    let saying =
        saying.say(if is_sure { " met a warm cache" } else { " probably met a warm cache" });
    let saying = saying.say(" (").code(&format!("{} --seed N", command(page))).say(").");
    Some(saying.done())
}

fn repeat(page: &Page<'_>) -> Option<Sentence> {
    let runs = page.whole("runs").filter(|runs| page.value(*runs) <= 1.0)?;
    let saying = Saying::on(page.facts)
        .say("Repeat it, so that runs can be compared: so far there is ")
        .bare(runs)
        .say(if page.value(runs) < 1.0 { " runs (" } else { " run (" })
        .code(&format!("{} --repeat 5", command(page)))
        .say(").");
    Some(saying.done())
}

fn more_requests(page: &Page<'_>) -> Option<Sentence> {
    if let MeasuredBy::Others = page.subject.measured_by {
        return None;
    }
    let floor = page.whole("certified_from")?;
    let counts = page.rows.iter().filter(|row| row.certified == Some(false));
    let counts = counts.filter_map(|row| page.at(row, "requests", None));
    let fewest = counts.min_by(|a, b| page.value(*a).total_cmp(&page.value(*b)))?;
    (page.value(fewest) < page.value(floor)).then(|| {
        Saying::on(page.facts)
            .say("Send at least ")
            .number(floor)
            .say(" where p99 matters: so far it rests on as few as ")
            .bare(fewest)
            .say(" (")
            .code(&format!("{} --requests 700", command(page)))
            .say(").")
            .done()
    })
}

fn command(page: &Page<'_>) -> String {
    match &page.subject.measured_by {
        MeasuredBy::Suite(name) => format!("inferometer suite {name}"),
        MeasuredBy::Sweep => "inferometer sweep".to_owned(),
        MeasuredBy::Repeat | MeasuredBy::Run => "inferometer run".to_owned(),
        MeasuredBy::Others => "inferometer suite standard".to_owned(),
    }
}
