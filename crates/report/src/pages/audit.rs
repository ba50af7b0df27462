//! Whether requests had the lengths of the workload, and what came from the prefix cache.

use inferometer_analysis::{CacheAudit, LengthAudit, WorkloadFacts};
use inferometer_model::endpoint::Api;
use inferometer_model::observations::{FileFacts, InputLength};
use inferometer_model::spec::Counting;

use super::prelude::*;
use crate::escape::terminal;

/// Notes about the data that a page has room for; the summary has them all.
const NOTES_MAX: usize = 4;
/// Characters of a file's name or a note.
const NAME_MAX: usize = 60;
const NOTE_MAX: usize = 300;

/// How requests differed from the workload; `None` where no request ended ok.
pub(super) fn section(summary: &Summary) -> Option<Section> {
    let workload = &summary.workload;
    let ok = summary.count(Outcome::Ok);
    if ok == 0 {
        return None;
    }
    let from_counters = summary.server.as_ref().and_then(|server| server.prefix_hit_share);
    let output_is_fixed = is_fixed(workload.output_tokens.as_ref());
    let mut facts = vec![
        ("input", input(workload, summary.run.api, ok)),
        ("output", compared(&workload.audit.output, "", output_is_fixed, "", ok)),
        ("cache", cache(&workload.audit.cache, from_counters)),
    ];
    facts.extend(Row::from_run(summary).finish_reasons().map(|reasons| ("finish", reasons)));
    facts.extend(workload.files.iter().map(|file| ("file", file_text(file))));
    let notes = workload.notes.iter().take(NOTES_MAX);
    facts.extend(notes.map(|note| ("note", terminal_line(note, NOTE_MAX))));
    let more = workload.notes.len().saturating_sub(NOTES_MAX);
    if 0 < more {
        facts.push(("", format!("{more} more notes are in the summary")));
    }
    Some(frame::section("audit", "Workload audit", [Block::facts(facts)]))
}

fn input(workload: &WorkloadFacts, api: Api, ok: u64) -> String {
    let audit = &workload.audit;
    let about = match workload.input_length {
        InputLength::Exact => "",
        InputLength::Estimated | InputLength::Corrected(_) => "about ",
    };
    let is_fixed = is_fixed(workload.input_tokens.as_ref());
    let answered = ok.saturating_sub(audit.follow_ups);
    let mut text = compared(&audit.input, about, is_fixed, cause(workload, api), answered);
    if audit.input.exact != Some(audit.input.requests) && audit.input.reason.is_none() {
        // How lengths were estimated, where no tokenizer counted the tokens.
        match workload.input_length {
            InputLength::Exact => {}
            InputLength::Estimated => text += "; estimated as one token per word",
            InputLength::Corrected(correction) => {
                let per_word = number(correction.tokens_per_word);
                let overhead = number(correction.overhead_tokens);
                text += &fill("estimated-length", &[&per_word, &overhead]);
            }
        }
    }
    if 0 < audit.follow_ups {
        let turns = counted(audit.follow_ups, "follow-up turn");
        let _ = write!(text, "; {turns} with history not compared");
    }
    text
}

/// Why every prompt has more tokens than requested, where that is known: an estimate has other reasons
/// to be off.
fn cause(workload: &WorkloadFacts, api: Api) -> &'static str {
    let is_exact = workload.input_length == InputLength::Exact;
    let has_template = api == Api::Chat && workload.counting == Counting::Prompt;
    match (is_exact, has_template, workload.images) {
        (true, true, None) => ": its chat template",
        (true, true, Some(_)) => ": its chat template and the pictures",
        (true, false, Some(_)) => ": the pictures",
        (true, false, None) | (false, ..) => "",
    }
}

/// Whether all requests were asked for the same length.
fn is_fixed(lengths: Option<&Lengths>) -> bool {
    lengths.and_then(Lengths::fixed).is_some()
}

/// `answered` are the requests that could have reported their length.
fn compared(
    lengths: &LengthAudit,
    about: &str,
    is_fixed: bool,
    cause: &str,
    answered: u64,
) -> String {
    let (Some(planned), Some(actual), Some(exact), Some(difference)) =
        (lengths.planned_tokens, lengths.actual_tokens, lengths.exact, lengths.difference)
    else {
        return no_value(lengths.reason.as_deref());
    };
    let requests = lengths.requests;
    if exact == requests {
        return match (requests, requests < answered) {
            (1, true) => "exact on the one that reported".to_owned(),
            (_, true) => format!("exact on all {} that reported", count(requests)),
            (1, false) => "exact on the one request".to_owned(),
            (_, false) => format!("exact on all {} requests", count(requests)),
        };
    }
    // Whole where it is whole.
    let mean = |tokens: u64| match tokens.checked_rem(requests) {
        Some(0) => count(tokens / requests),
        Some(_) => number(tokens as f64 / requests as f64),
        None => NOTHING.to_owned(),
    };
    let (planned, actual) = (mean(planned), mean(actual));
    let on_average = if is_fixed { "" } else { " on average" };
    let cause = if difference.min < 0 { "" } else { cause };
    let found = if let Some(constant) = difference.constant() {
        format!(" ({} on each{cause})", signed(constant))
    } else {
        let [min, max] = [difference.min, difference.max].map(signed);
        fill("lengths-apart", &[&min, &max, &count(exact), &count(requests)])
    };
    format!("requested {about}{planned}{on_average}, server counted {actual}{found}")
}

/// By the answers, and where they do not report it by the counters of the server.
fn cache(cache: &CacheAudit, counted: Option<f64>) -> String {
    match (cache.share, counted) {
        (None, None) => no_value(cache.reason.as_deref()),
        (None, counted) => {
            format!("{} by the server's counters; no answer reports it", percent(counted))
        }
        (Some(0.0), _) => "nothing came from the prefix cache".to_owned(),
        (share, _) => format!("{} of input tokens came from the prefix cache", percent(share)),
    }
}

fn file_text(file: &FileFacts) -> String {
    let [name, kind] = [&file.name, &file.kind].map(|text| terminal_line(text, NAME_MAX));
    let dropped = file.dropped.iter();
    let dropped = dropped
        .map(|(reason, items)| format!("{} {}", count(*items), terminal_line(reason, NAME_MAX)));
    let dropped = dropped.try_join(", ").map(|dropped| format!("; left out: {dropped}"));
    let items = counted(file.items, "item");
    format!("{name}: {kind}, {items}{}", dropped.unwrap_or_default())
}

fn no_value(reason: Option<&str>) -> String {
    format!("{NOTHING} {}", terminal(reason.unwrap_or("not known")))
}

fn signed(difference: i64) -> String {
    let sign = match difference {
        0 => "",
        1.. => "+",
        ..0 => "−",
    };
    format!("{sign}{}", count(difference.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use inferometer_analysis::Difference;

    use super::*;

    fn lengths(
        requests: u64,
        planned: u64,
        actual: u64,
        exact: u64,
        ends: (i64, i64),
    ) -> LengthAudit {
        LengthAudit {
            requests,
            planned_tokens: Some(planned),
            actual_tokens: Some(actual),
            exact: Some(exact),
            difference: Some(Difference { min: ends.0, mean: 0.0, max: ends.1 }),
            reason: None,
        }
    }

    #[test]
    fn every_way_to_be_off_has_its_words() {
        let exact = lengths(100, 51_200, 51_200, 100, (0, 0));
        assert_eq!(compared(&exact, "", true, "", exact.requests), "exact on all 100 requests");
        assert_eq!(compared(&exact, "", true, "", 250), "exact on all 100 that reported");
        let one = lengths(1, 512, 512, 1, (0, 0));
        assert_eq!(compared(&one, "", true, "", one.requests), "exact on the one request");
        let template = lengths(100, 51_200, 54_200, 0, (30, 30));
        assert_eq!(
            compared(&template, "", true, ": its chat template", template.requests),
            "requested 512, server counted 542 (+30 on each: its chat template)"
        );
        assert_eq!(
            compared(&template, "about ", false, "", template.requests),
            "requested about 512 on average, server counted 542 (+30 on each)"
        );
        let less = lengths(2, 1_024, 1_020, 0, (-2, -2));
        assert_eq!(
            compared(&less, "", true, ": its chat template", less.requests),
            "requested 512, server counted 510 (−2 on each)"
        );
        let various = lengths(3, 1_536, 1_600, 1, (-1_000, 40));
        assert_eq!(
            compared(&various, "about ", true, "", various.requests),
            "requested about 512, server counted 533.3 on average (−1,000 to +40, exact on 1 of 3)"
        );
    }

    #[test]
    fn what_was_not_reported_says_so() {
        let nothing = LengthAudit {
            requests: 0,
            planned_tokens: None,
            actual_tokens: None,
            exact: None,
            difference: None,
            reason: Some("the server is \u{1b}[2Jmute".to_owned()),
        };
        let expected = "– the server is \\u{1b}[2Jmute";
        assert_eq!(compared(&nothing, "", true, "", nothing.requests), expected);
    }

    #[test]
    fn the_cache_is_told_from_silence() {
        let of = |share, reason: Option<&str>| {
            let reason = reason.map(str::to_owned);
            cache(&CacheAudit { requests: 1, cached_tokens: Some(1), share, reason }, None)
        };
        assert_eq!(of(Some(0.125), None), "12.5 % of input tokens came from the prefix cache");
        assert_eq!(of(Some(0.0), None), "nothing came from the prefix cache");
        assert_eq!(of(None, Some("not said")), "– not said");
    }

    #[test]
    fn a_file_is_told_with_what_was_left_out() {
        let file = FileFacts {
            name: "a\nb\u{7}.jsonl".to_owned(),
            kind: "jsonl".to_owned(),
            sha256: String::new(),
            items: 1_000,
            dropped: [("too long".to_owned(), 3), ("empty".to_owned(), 1)].into(),
        };
        let expected = "a b\\u{7}.jsonl: jsonl, 1,000 items; left out: 1 empty, 3 too long";
        assert_eq!(file_text(&file), expected);
    }
}
