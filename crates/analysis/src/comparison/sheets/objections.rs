//! What speaks against comparing results of which only figures are known.

use inferometer_model::campaign::Level;

use super::{SheetSide, means_the_same, quantities};
use crate::comparison::level::Group;
use crate::comparison::objection::{Objection, PROMISES, TOKENIZER, Weight};
use crate::judge::Verdict;
use crate::sheet::{CountsFrom, Grain, LatencyKind, Mark, Sheet, SheetLatency, Tool};

/// Means that differ by more are of other prompts; sampling alone does less.
const OTHER_LENGTHS: f64 = 0.1;

/// The gravest first. Of equal weight: in order of the sides.
pub(super) fn objections(sides: &[SheetSide], groups: &[Group<'_, Sheet>]) -> Vec<Objection> {
    let mut found: Vec<Objection> = sides.iter().flat_map(of_side).collect();
    found.extend(named_twice(sides));
    for group in groups {
        let [base, others @ ..] = group.runs.as_slice() else { continue };
        for (sheets, side) in others.iter().zip(&sides[1..]) {
            for objection in between(base, sheets, &side.name) {
                let is_same =
                    |known: &&Objection| known.key == objection.key && known.side == objection.side;
                if found.iter().find(is_same).is_none() {
                    found.push(objection);
                }
            }
        }
    }
    found.sort_by_key(|objection| std::cmp::Reverse(objection.weight));
    found
}

fn objection(key: &str, weight: Weight, side: &str, text: String, remedy: &str) -> Objection {
    let (key, side, remedy) = (key.to_owned(), side.to_owned(), remedy.to_owned());
    Objection { key, weight, side, text, remedy }
}

/// Troubles of a side by itself.
fn of_side(side: &SheetSide) -> Vec<Objection> {
    let marked =
        |is: fn(&Mark) -> bool| side.compared().filter(|sheet| sheet.marks.iter().any(is)).count();
    let of_verdict =
        |verdict| side.sheets.iter().filter(|sheet| sheet.verdict == Some(verdict)).count();
    let look = "look at their warnings with `inferometer verify RUN --format page`";
    let troubles = [
        ("invalid_runs", of_verdict(Verdict::Invalid), "are invalid and left out", look),
        (
            "degraded_runs",
            of_verdict(Verdict::Degraded),
            "are degraded: their numbers hold with a reservation",
            look,
        ),
        (
            "cut_results",
            marked(|mark| matches!(mark, Mark::Cut { .. })),
            "completed fewer requests than were planned: their figures are of the part that was done",
            "measure again to the end, so that both sides had the same work",
        ),
        (
            "failures",
            marked(|mark| matches!(mark, Mark::Failures { .. })),
            "have failed requests, which are in none of the latencies",
            "find out why they failed; a server that drops load looks quick",
        ),
        (
            "saturated",
            marked(|mark| matches!(mark, Mark::Saturated { .. })),
            "gave less than the rate that was asked: their latencies grow with the length of the run",
            "compare below the rate that both sides keep up with",
        ),
    ];
    let all = side.sheets.len();
    let told = |(key, count, what, remedy): (&str, usize, &str, &str)| {
        let text = format!("{count} of {all} results of {} {what}", side.name);
        (0 < count).then(|| objection(key, Weight::Warning, &side.name, text, remedy))
    };
    troubles.into_iter().filter_map(told).collect()
}

fn named_twice(sides: &[SheetSide]) -> Option<Objection> {
    let mut seen: Vec<(&Sheet, &SheetSide)> = Vec::new();
    for side in sides {
        for sheet in &side.sheets {
            let is_same = |(other, of): &&(&Sheet, &SheetSide)| {
                of.source == side.source && other.source == sheet.source && *other == sheet
            };
            if let Some((_, first)) = seen.iter().find(is_same) {
                let name = &sheet.source.name;
                let text = format!("result {name} is in {} and in {}", first.name, side.name);
                let remedy = "name each result once: it says nothing about itself";
                return Some(objection("same_run", Weight::Warning, &side.name, text, remedy));
            }
        }
        seen.extend(side.sheets.iter().map(|sheet| (sheet, side)));
    }
    None
}

/// Differences at one level. Any result that differs from the base's first speaks for its side.
fn between(base: &[&Sheet], sheets: &[&Sheet], side: &str) -> Vec<Objection> {
    let Some(first) = base.first() else { return Vec::new() };
    let mut found: Vec<Objection> = sheets
        .iter()
        .flat_map(|sheet| [load(first, sheet, side), facts(first, sheet, side)].concat())
        .collect();
    found.extend(meanings(base, sheets, side));
    found.extend(only_one_has(base, sheets, side));
    found.extend(open(base, sheets, side));
    found
}

/// What was asked of the server.
fn load(first: &Sheet, sheet: &Sheet, side: &str) -> Vec<Objection> {
    let mut found = Vec::new();
    let mut differs = |key: &str, weight: Weight, what: &str, a: String, b: String| {
        let text = format!("{what} differs: {a} in the base, {b} in {side}");
        let remedy = "measure both with the same load, and change only the server";
        found.push(objection(key, weight, side, text, remedy));
    };
    if first.source.simulated != sheet.source.simulated {
        let what = |sheet: &Sheet| if sheet.source.simulated { "simulated" } else { "measured" };
        let (a, b) = (what(first).to_owned(), what(sheet).to_owned());
        differs("simulated", Weight::Forbids, "where the figures come from", a, b);
    }
    let (a, b) = (first.level(), sheet.level());
    if a != b {
        differs("load", Weight::Forbids, "the load", a.to_string(), b.to_string());
    } else if matches!(a, Level::Rate(_)) && first.max_concurrency != sheet.max_concurrency {
        let [a, b] = [first, sheet].map(|sheet| told(sheet.max_concurrency.as_ref(), "none"));
        differs("max_concurrency", Weight::Warning, "the limit of concurrency", a, b);
    }
    if let (Some(a), Some(b)) = (first.burstiness, sheet.burstiness)
        && a.to_bits() != b.to_bits()
    {
        differs("burstiness", Weight::Warning, "the burstiness", a.to_string(), b.to_string());
    }
    if let (Some(a), Some(b)) = (planned(first), planned(sheet))
        && a != b
    {
        let words = "the number of requests";
        differs("requests", Weight::Warning, words, a.to_string(), b.to_string());
    }
    let lengths = [
        ("input_tokens", Weight::Forbids, "prompts", first.input_tokens, sheet.input_tokens),
        ("output_tokens", Weight::Warning, "answers", first.output_tokens, sheet.output_tokens),
    ];
    for (key, weight, whose, a, b) in lengths {
        let mean = |tokens: Option<u64>, of: &Sheet| Some(tokens? as f64 / of.completed? as f64);
        if let (Some(a), Some(b)) = (mean(a, first), mean(b, sheet))
            && OTHER_LENGTHS * a.max(b) < (a - b).abs()
        {
            let what = format!("the mean length of {whose}");
            differs(key, weight, &what, format!("{a:.0} tokens"), format!("{b:.0}"));
        }
    }
    found
}

fn planned(sheet: &Sheet) -> Option<u64> {
    sheet.requests_planned.or_else(|| Some(sheet.completed? + sheet.failed.unwrap_or(0)))
}

fn told<T: ToString>(value: Option<&T>, nothing: &str) -> String {
    value.map_or_else(|| nothing.to_owned(), T::to_string)
}

/// What answered, and who counted.
fn facts(first: &Sheet, sheet: &Sheet, side: &str) -> Vec<Objection> {
    let mut found = Vec::new();
    let mut differs =
        |key: &str, weight: Weight, what: &str, (a, b): (&str, &str), remedy: &str| {
            let text = format!("{what} differs: {a} in the base, {b} in {side}");
            found.push(objection(key, weight, side, text, remedy));
        };
    let both = |of: fn(&Sheet) -> Option<&String>| {
        Some((of(first)?.as_str(), of(sheet)?.as_str())).filter(|(a, b)| a != b)
    };
    if let Some(pair) = both(|sheet| sheet.tokenizer.as_ref()) {
        let remedy = "tokens are not the same unit; measure both with one tokenizer";
        differs(TOKENIZER, Weight::Withholds, "the tokenizer", pair, remedy);
    }
    if let Some(pair) = both(|sheet| sheet.model.as_ref()) {
        differs("model", Weight::Warning, "the model", pair, "mind it, unless it is the question");
    }
    let (a, b) = (first.source.tool, sheet.source.tool);
    if a != b {
        let remedy = "what the clients do differently passes for a difference of the servers: \
                      measure both with one tool";
        differs("tool", Weight::Warning, "the tool", (a.told(), b.told()), remedy);
    }
    if let (Some(a), Some(b)) = (first.tensor_parallel, sheet.tensor_parallel)
        && a != b
    {
        let (a, b) = (a.to_string(), b.to_string());
        let remedy = "mind it, unless it is the question; --gpus N sets nodes of equal size beside \
                      each other";
        differs("tensor_parallel", Weight::Note, "the tensor-parallel size", (&a, &b), remedy);
    }
    if first.request_goodput.is_some() && sheet.request_goodput.is_some() {
        let text = "goodput counts what was promised, and imported results do not say that";
        let remedy = "compare it by hand where both promised the same";
        found.push(objection(PROMISES, Weight::Withholds, side, text.to_owned(), remedy));
    }
    found
}

/// Latencies that both have and that do not mean the same.
fn meanings(base: &[&Sheet], sheets: &[&Sheet], side: &str) -> Vec<Objection> {
    let of_kind = |kind: LatencyKind| {
        let meanings = |sheets: &[&Sheet]| {
            let mut told: Vec<String> = Vec::new();
            let latencies = sheets.iter().flat_map(|sheet| &sheet.latencies);
            for words in latencies.filter(|latency| latency.kind == kind).map(meaning) {
                if !told.contains(&words) {
                    told.push(words);
                }
            }
            told
        };
        let (a, b) = (meanings(base), meanings(sheets));
        let is_shared = quantities().iter().any(|quantity| {
            let metric = quantity.metric();
            let has = |sheets: &[&Sheet]| {
                let mut found = sheets.iter().filter_map(|sheet| sheet.latency_of(metric));
                found.any(|latency| latency.kind == kind)
            };
            has(base) && has(sheets) && means_the_same(metric, base, sheets)
        });
        if is_shared || a.is_empty() || b.is_empty() {
            return None;
        }
        let text = format!(
            "{} is {} in the base, {} in {side}",
            kind.told(),
            a.join(" and "),
            b.join(" and ")
        );
        let key = format!("meaning.{}", kind.told().to_lowercase());
        let remedy = "measure both with one tool; they are different numbers of the same name";
        Some(objection(&key, Weight::Withholds, side, text, remedy))
    };
    LatencyKind::ALL.into_iter().filter_map(of_kind).collect()
}

fn meaning(latency: &SheetLatency) -> String {
    let grain = match latency.grain {
        Grain::Request => "per request",
        Grain::Token => "per token",
        Grain::Chunk => "per chunk of the stream",
        Grain::Unknown => "per something that its tool does not say",
    };
    let from = match latency.from {
        CountsFrom::Schedule => ", from the schedule",
        CountsFrom::Send => ", from sending",
        CountsFrom::Output => "",
        CountsFrom::Unknown => ", from a moment that its tool does not say",
    };
    format!("{grain}{from}")
}

/// Figures that are in no table because one side lacks them.
fn only_one_has(base: &[&Sheet], sheets: &[&Sheet], side: &str) -> Option<Objection> {
    let (mut of_base, mut of_side): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for quantity in quantities() {
        let has = |sheets: &[&Sheet]| sheets.iter().any(|sheet| sheet.figure(&quantity).is_ok());
        let title = quantity.metric().title;
        match (has(base), has(sheets)) {
            (true, false) if !of_base.contains(&title) => of_base.push(title),
            (false, true) if !of_side.contains(&title) => of_side.push(title),
            _ => (),
        }
    }
    let told = [("the base", of_base), (side, of_side)]
        .into_iter()
        .filter(|(_, titles)| !titles.is_empty())
        .map(|(who, titles)| format!("only {who} has {}", titles.join(", ")))
        .collect::<Vec<_>>();
    let remedy = "they stand in the results themselves: `inferometer report`";
    (!told.is_empty())
        .then(|| objection("one_side_only", Weight::Note, side, told.join("; "), remedy))
}

/// What no file says, and what would pass for a change of the server.
fn open(base: &[&Sheet], sheets: &[&Sheet], side: &str) -> Option<Objection> {
    let is_foreign = |sheet: &&&Sheet| sheet.source.tool != Tool::Inferometer;
    base.iter().chain(sheets).find(is_foreign)?;
    let text = "imported results do not say all that was asked, nor of which hardware: the load and \
                the numbers of requests and tokens are all that was held against each other";
    let remedy = "see for yourself that prompts, sampling, API and hardware were the same";
    Some(objection("workload_unknown", Weight::Note, side, text.to_owned(), remedy))
}
