//! The page of a suite: the report that people publish. Its sections, tables and columns, and their
//! order, are those that readers of such reports know; what follows the recommendations is ours.

use super::findings::{self, findings};
use super::prelude::*;
use super::set;
use inferometer_analysis::set::{SuiteRow, SuiteSummary};
use inferometer_model::study::Prompts;

/// Digits of a hash that people compare by eye.
const HASH_SHOWN: usize = 12;

pub fn suite(input: &SuiteInput<'_>) -> Document {
    let SuiteInput { set, points, narrative } = *input;
    let rows = rows::of_suite(set, points);
    let named = set.suite.as_ref().map(|suite| {
        let hash: String = suite.hash.chars().take(HASH_SHOWN).collect();
        let changed = suite.changes.iter().try_join(" ").map(|all| format!(", changed by {all}"));
        ("Suite", format!("{} (hash {hash}{})", suite.name, changed.unwrap_or_default()))
    });
    let about = set::about(set, only_server(&rows), set::models(set), named);
    let title = "LLM Inference Benchmark Report".to_owned();
    let sections = sections(set, &rows, narrative);
    let (why, headline) = (verdict_words(set, &rows), headline(set, &rows));
    frame::page(&about, title, why, headline, sections, narrative)
}

/// The only server of a suite, with the first run on it.
fn only_server<'a>(rows: &[Row<'a>]) -> Vec<frame::Server<'a>> {
    rows.iter().find_map(Row::drawn).into_iter().map(|run| ("", run)).collect()
}

fn sections(set: &SetSummary, rows: &[Row<'_>], narrative: &Narrative) -> Vec<Section> {
    let mut performance = section("performance", "Performance Summary", [performance(rows)])
        .with(charts::by_scenario(rows, "scenario"));
    let mut sections = vec![
        frame::summary_with_chart(narrative, &mut performance),
        system::system(&only_server(rows)),
        performance,
        section("prefill-and-decode", "Prefill (PP) and Decode (TG)", [prefill_decode(rows)]),
    ];
    sections.extend(scaling_section(set, rows, narrative));
    sections.push(Section {
        sections: rows.iter().map(|row| scenario(row, narrative)).collect(),
        // No scenario has such an id, whatever it is called: theirs begin with `scenario-`.
        ..section("results", "Scenario Results", Vec::<Block>::new())
    });
    let prompts = set.suite.as_ref().map(|suite| suite.prompts);
    sections.push(frame::recommendations(narrative));
    sections.push(validity::validity_section(rows, &set.warnings, narrative, prompts));
    sections.push(set::provenance(set, rows.iter().find_map(Row::drawn)));
    sections
}

/// The suite and the server for a terminal.
pub(super) fn brief_subject(set: &SetSummary, suite: &SuiteSummary) -> Vec<(String, Text)> {
    let prompts = match suite.prompts {
        Prompts::Fresh => "different prompts for each",
        Prompts::Same => "the same prompts for all",
    };
    let mut scenarios = counted(set.conditions.len() as u64, "scenario");
    if suite.rows.len() != set.conditions.len() {
        // Tables have a line for each.
        let _ = write!(scenarios, ", {} levels", count(suite.rows.len() as u64));
    }
    let name = terminal_line(&suite.name, 40);
    let hash = terminal_line(&suite.hash, HASH_SHOWN);
    let subject = set.conditions.iter().find_map(|condition| condition.subject.as_ref());
    facts([
        ("question", Some(format!("suite `{name}` ({hash}): {scenarios}, {prompts}"))),
        ("changes", suite.changes.iter().try_join(", ")),
        ("target", Some(subject.map_or_else(|| "no run yet".to_owned(), set::server))),
    ])
}

/// The tables over all scenarios and the scaling levels, for a terminal.
pub(super) fn brief_sections(set: &SetSummary, suite: &SuiteSummary) -> Vec<Section> {
    let rows = rows::of_suite(set, &[]);
    let mut sections = vec![
        section("performance", "Performance summary (times in ms)", [brief_performance(&rows)]),
        section(
            "prefill-and-decode",
            "Prefill (PP) and decode (TG), tokens/s",
            [brief_speeds(suite, &rows)],
        ),
    ];
    let Some((condition, own)) = scaled(set, &rows) else { return sections };
    let name = terminal_line(&condition.name, NAME_MAX);
    let series = Series { name: name.clone(), rows: own.clone() };
    sections.push(set::brief_levels(condition, &series, false, Some(&name)));
    if let Some(found) = &condition.findings {
        let mut facts = findings(found, Some(Dimension::Concurrency));
        let mut warm = own.iter().filter_map(|row| row.contaminated).peekable();
        if warm.peek().is_some() {
            let is_sure = warm.any(|found| !found.suspected);
            let words = if is_sure { "findings-warm" } else { "findings-warm-suspected" };
            facts.push(("cache", text(words).to_owned()));
        }
        let title = set::titled(Some(&name), "Findings");
        sections.push(section("findings", title, [Block::facts(facts)]));
    }
    sections
}

/// `Concurrency Scaling (c=32)` is as long.
const NAME_MAX: usize = 26;

/// A name that is too long is cut before its level.
fn brief_name(row: &Row<'_>) -> Cell {
    let scenario = row.scenario.map_or("", |asked| asked.scenario.as_str());
    let level = row.name.strip_prefix(scenario).unwrap_or_default();
    let left = NAME_MAX.saturating_sub(level.chars().count());
    Cell::text(match row.name.strip_suffix(level) {
        Some(name) if 1 < left => terminal_line(name, left) + level,
        _ => terminal_line(&row.name, NAME_MAX),
    })
}

fn brief_performance(rows: &[Row<'_>]) -> Table {
    let columns = Columns::new("scenario", |row: &&Row<'_>| brief_name(row))
        .right("c", |row| concurrency(row))
        .right("ok", |row| Cell::text(count(row.tally().ok)));
    let quantities = [
        ("tok/s", metric::OUTPUT_THROUGHPUT.quantity()),
        ("TTFT mean", metric::TTFT.mean()),
        ("TPOT mean", metric::TPOT.mean()),
        ("TPOT p99", metric::TPOT.p99()),
    ];
    let mark = |row: &Row<'_>| match row.verdict() {
        Verdict::Valid | Verdict::Simulated | Verdict::Degraded if !row.is_reached() => "‡",
        Verdict::Valid => "✓",
        Verdict::Simulated => "≈",
        Verdict::Degraded => "!",
        Verdict::Invalid => "✗",
    };
    let levels: Vec<LevelSummary> = rows.iter().filter_map(|row| row.level).cloned().collect();
    let seen: Vec<&str> = rows.iter().map(mark).collect();
    let legend = [
        "! degraded",
        "≈ simulated: no server was measured",
        text("users-not-there"),
        text("row-invalid"),
    ];
    let legend = legend.into_iter().filter(|line| seen.iter().any(|mark| line.starts_with(mark)));
    quantity_columns(columns, brief_cell, quantities)
        .right("", move |row| Cell::text(mark(row)))
        .table("performance-summary", "", rows)
        .noted([set::interval_note(&levels)])
        .noted(legend)
}

/// Speed of prefill and decode, and the share of prompts that was cached.
fn brief_speeds(suite: &SuiteSummary, rows: &[Row<'_>]) -> Table {
    let length = |get: fn(&SuiteRow) -> Option<&String>| {
        move |row: &&Row<'_>| {
            let length = row.scenario.and_then(get).map(|it| length_cell(it).text);
            Cell::text(terminal_line(length.as_deref().unwrap_or(NOTHING), 14))
        }
    };
    let columns = Columns::new("scenario", |row: &&Row<'_>| brief_name(row))
        .right("in", length(|asked| asked.input_tokens.as_ref()))
        .right("out", length(|asked| asked.output_tokens.as_ref()));
    let speeds = [("PP", metric::PP.quantity()), ("TG", metric::TG.quantity())];
    quantity_columns(columns, brief_cell, speeds)
        .right("from cache", |row| {
            let is_own = |found: &Contaminated| Some(found.row) == row.suite_place;
            match row.scenario.and_then(|asked| asked.cached_share) {
                None if suite.contaminated.iter().any(is_own) => Cell::text("suspected"),
                share => Cell::text(percent(share)),
            }
        })
        .table("prefill-decode", "", rows)
}

fn verdict_words(set: &SetSummary, rows: &[Row<'_>]) -> (Text, Vec<Text>) {
    let missing = set.suite.iter().flat_map(|suite| &suite.rows);
    let missing = missing.filter(|row| row.points.is_empty()).map(|row| row.name.clone());
    let missing = match missing.collect::<Vec<_>>().as_slice() {
        [] => String::new(),
        names => format!(" Not measured: {}.", list(names)),
    };
    let (reason, points) = frame::reason(set.verdict, &set.warnings, rows);
    let runs = frame::sentence(&set::runs_by_verdict(set));
    match warm_words(rows) {
        Some(warm) if Verdict::Degraded <= set.verdict => {
            (vec![Span::Plain(format!("{runs} {warm}{missing} ")), evidence()], points)
        }
        _ => (plain(format!("{runs} {reason}{missing}")), points),
    }
}

fn evidence() -> Span {
    Span::Link { text: "The evidence".to_owned(), to: "cache-evidence".to_owned() }
}

/// The number of rows whose prompts were in the prefix cache.
fn warm_words(rows: &[Row<'_>]) -> Option<String> {
    let found = rows.iter().filter_map(|row| row.contaminated).filter(|found| !found.suspected);
    let shares: Vec<Option<f64>> = found.map(|found| found.cached_share).collect();
    let known = || shares.iter().flatten().copied();
    let range = known().min_by(f64::total_cmp).zip(known().max_by(f64::total_cmp));
    let range = match range {
        Some((low, high)) if low < high => {
            format!(" ({} to {} of their input)", percent(low), percent(high))
        }
        Some((share, _)) => format!(" ({} of their input)", percent(share)),
        None => String::new(),
    };
    (!shares.is_empty()).then(|| fill("warm-rows", &[&shares.len(), &rows.len(), &range]))
}

fn headline(set: &SetSummary, rows: &[Row<'_>]) -> Vec<Card> {
    let mut cards = scaling_cards(set, rows);
    let has_scaling = !cards.is_empty();
    let one_user = |row: &&Row<'_>| row.scenario.and_then(|asked| asked.concurrency) == Some(1);
    let alone = rows.iter().find(one_user).map(|row| ("One user: ", row));
    if let Some((who, row)) = alone.or_else(|| rows.first().map(|row| ("First scenario: ", row))) {
        let latencies = [("TTFT mean", metric::TTFT.mean()), ("TPOT mean", metric::TPOT.mean())];
        cards.extend(latencies.into_iter().filter_map(|(name, quantity)| {
            cells::latency_card(&format!("{who}{name}"), row, quantity, row.name.clone())
        }));
    }
    if !has_scaling {
        cards.extend(cells::highest_output_card(rows));
    }
    cards.extend(cells::lowest_cost_card(rows));
    cards.push(cells::requests_card(rows));
    cards
}

/// A requested length: a number, or the text of a distribution.
fn length_cell(text: &str) -> Cell {
    text.parse().map_or_else(|_| Cell::text(text), Cell::count)
}

fn performance(rows: &[Row<'_>]) -> Table {
    let length = |get: fn(&SuiteRow) -> Option<&String>| {
        move |row: &&Row<'_>| {
            let unknown = || missing("it differs between the requests of the data");
            row.scenario.and_then(get).map_or_else(unknown, |text| length_cell(text))
        }
    };
    let columns = Columns::new("Scenario", |row: &&Row<'_>| name(row))
        .left("Category", |row| {
            let category = row.scenario.map(|asked| asked.category.as_str());
            known(category, "it is no scenario of a suite")
        })
        .right("Input (tok)", length(|asked| asked.input_tokens.as_ref()))
        .right("Output (tok)", length(|asked| asked.output_tokens.as_ref()))
        .right("Concurrency", |row| concurrency(row));
    let quantities = [
        ("Output Throughput (tok/s)", metric::OUTPUT_THROUGHPUT.quantity()),
        ("TTFT mean (ms)", metric::TTFT.mean()),
        ("TPOT mean (ms)", metric::TPOT.mean()),
        ("TPOT p99 (ms)", metric::TPOT.p99()),
    ];
    let cost = metric::COST_PER_MILLION_OUTPUT_TOKENS.quantity();
    let columns = quantity_columns(columns, quantity_cell, quantities)
        .right("Cost (per M output tok)", move |row| quantity_cell(row, cost))
        .only_if(rows.iter().any(|row| row.value(cost).is_some()));
    columns.table("performance-summary", "All scenarios", rows)
}

fn name(row: &Row<'_>) -> Cell {
    cells::reserved(row, Cell::text(row.name.clone()))
}

fn concurrency(row: &Row<'_>) -> Cell {
    match row.scenario.and_then(|asked| asked.concurrency) {
        Some(users) => Cell::count(users.into())
            .detailed(row.rate().map(|rate| format!("at most; requests come at {rate}"))),
        // An open loop has a rate instead.
        None => row.rate().map_or_else(|| missing("an open loop without a cap"), Cell::text),
    }
}

fn prefill_decode(rows: &[Row<'_>]) -> Table {
    let speeds = [
        ("Prefill (PP) tok/s", metric::PP.quantity()),
        ("Token Generation (TG) tok/s", metric::TG.quantity()),
    ];
    let caption = "Prompt tokens over TTFT, and tokens of one stream over time";
    let columns = quantity_columns(
        Columns::new("Scenario", |row: &&Row<'_>| name(row)),
        quantity_cell,
        speeds,
    );
    columns.table("prefill-decode", caption, rows)
}

/// `None` where no scenario has several levels of concurrency.
fn scaling_section(set: &SetSummary, rows: &[Row<'_>], narrative: &Narrative) -> Option<Section> {
    let (condition, own) = scaled(set, rows)?;
    let prompts = set.suite.as_ref().map(|suite| suite.prompts);
    let found = condition.findings.as_ref().map(|found| {
        let per_user = findings::words_or_reason(&found.per_user_spot, findings::per_user_spot);
        let found = [
            ("Sweet spot", findings::words_or_reason(&found.sweet_spot, findings::sweet_spot)),
            ("Knee", findings::words_or_reason(&found.knee, findings::knee)),
            ("Best level for each user", per_user),
            ("Peak throughput (scaling)", findings::words_or_reason(&found.peak, findings::peak)),
        ];
        found.map(|(label, words)| labelled(label, &words))
    });
    let series = [Series { name: condition.name.clone(), rows: own.clone() }];
    Some(
        section("scaling", "Concurrency Scaling", warm(&own, prompts))
            .with(found.into_iter().flatten().map(Block::Paragraph))
            .with([scaling_table(&own)])
            .with(set::level_charts(&series, &own, "scaling"))
            .with(frame::texts(&narrative.scaling)),
    )
}

/// A notice that the numbers below are those of a warm cache: known levels and suspected levels.
fn warm(rows: &[&Row<'_>], prompts: Option<Prompts>) -> Option<Block> {
    let levels = |suspected: bool| -> Vec<String> {
        let is_so =
            |row: &&&Row<'_>| row.contaminated.is_some_and(|found| found.suspected == suspected);
        rows.iter()
            .filter(is_so)
            .map(|row| row.level.map_or_else(|| row.name.clone(), |it| level_name(it.level)))
            .collect()
    };
    let all = rows.len();
    let (known, suspected) = (levels(false), levels(true));
    let known_text = fill("warm-levels", &[&known.len(), &all, &list(&known)]);
    let suspected_text = fill("suspected-levels", &[&suspected.len(), &all, &list(&suspected)]);
    let texts = [(&known, known_text), (&suspected, suspected_text)];
    let texts = texts.into_iter().filter(|(levels, _)| !levels.is_empty());
    let words: String = texts.map(|(_, text)| text + " ").collect();
    let remedy = match prompts {
        Some(Prompts::Fresh) => text("warm-remedy-fresh"),
        Some(Prompts::Same) | None => text("warm-remedy-same"),
    };
    (!words.is_empty()).then(|| Block::Notice {
        mood: if known.is_empty() { Mood::Doubt } else { Mood::Bad },
        text: vec![Span::Plain(words), evidence()],
        points: Vec::new(),
        remedy: Some(plain(remedy)),
    })
}

/// The scenario with several levels of concurrency, and its rows.
fn scaled<'a, 'r>(
    set: &'a SetSummary,
    rows: &'r [Row<'r>],
) -> Option<(&'a ConditionSummary, Vec<&'r Row<'r>>)> {
    let place = set.suite.as_ref()?.scaling?;
    let is_own = |row: &&Row<'_>| row.scenario.is_some_and(|asked| asked.condition == place);
    Some((set.conditions.get(place as usize)?, rows.iter().filter(is_own).collect()))
}

/// The sweet spot, the knee and the peak as headlines.
fn scaling_cards(set: &SetSummary, rows: &[Row<'_>]) -> Vec<Card> {
    let Some((condition, own)) = scaled(set, rows) else { return Vec::new() };
    let Some(found) = condition.findings.as_ref() else { return Vec::new() };
    let spots = cells::spot_cards(None, found, |level| choice_reservation(&own, level));
    let peak = found.peak.found().map(|peak| {
        let (value, unit) = (number(peak.throughput.value), findings::unit(&peak.quantity));
        let detail = format!("at {}", level_name(peak.level));
        let doubt = choice_reservation(&own, peak.level);
        card("Peak of the scaling levels", value, unit, detail, doubt)
    });
    peak.into_iter().chain(spots).collect()
}

/// Why a choice among levels is not reliable: a reservation about the chosen level, or a warm cache at
/// the others.
fn choice_reservation(rows: &[&Row<'_>], chosen: Level) -> Option<String> {
    let is_chosen = |row: &&&Row<'_>| row.level.is_some_and(|level| level.level == chosen);
    let own = rows.iter().find(is_chosen).and_then(|row| row.reservation());
    let is_warm = || rows.iter().any(|row| row.contaminated.is_some_and(|it| !it.suspected));
    own.or_else(|| is_warm().then(|| "other levels had a warm prefix cache".to_owned()))
}

fn scaling_table(rows: &[&Row<'_>]) -> Table {
    let columns =
        Columns::number("Concurrency", |row: &&Row<'_>| cells::reserved(row, concurrency(row)));
    let quantities = [
        ("Output Throughput (tok/s)", metric::OUTPUT_THROUGHPUT.quantity()),
        ("Per-user Throughput (tok/s)", metric::PER_USER_THROUGHPUT.quantity()),
        ("TTFT p99 (ms)", metric::TTFT.p99()),
        ("TPOT p99 (ms)", metric::TPOT.p99()),
    ];
    let caption = "The same workload at rising concurrency";
    quantity_columns(columns, quantity_cell, quantities)
        .table("concurrency-scaling", caption, rows.iter().copied())
        .noted(["Per-user throughput is output throughput over concurrency."])
}

fn scenario(row: &Row<'_>, narrative: &Narrative) -> Section {
    let purpose = row.scenario.map_or(NOTHING, |asked| asked.purpose.as_str());
    let heading = |words: &str| Block::Paragraph(vec![strong(words)]);
    let reservation = row.reservation().map(|reservation| Block::Notice {
        mood: Mood::Doubt,
        text: plain(frame::sentence(&reservation)),
        points: Vec::new(),
        remedy: Some(plain("See its warnings in the section “Validity”.")),
    });
    let texts = frame::row_texts(narrative, &row.name);
    let texts = texts.map(|texts| [heading("Interpretation:"), texts]);
    let purpose = Block::Paragraph(labelled("Purpose", purpose));
    section(&row.id(), row.name.clone(), [purpose, heading("Key metrics:")])
        .with([Block::List(key_metrics(row))])
        .with(reservation)
        .with(texts.into_iter().flatten())
        .with(row.drawn().map(|run| figures(row, run)).unwrap_or_default())
}

fn key_metrics(row: &Row<'_>) -> Vec<Text> {
    let asked = row.scenario;
    let lengths =
        asked.map_or([None; 2], |it| [it.input_tokens.as_ref(), it.output_tokens.as_ref()]);
    let [input, output] =
        lengths.map(|it| it.map_or_else(|| NOTHING.to_owned(), |it| length_cell(it).text));
    let load = match (asked.and_then(|asked| asked.concurrency), row.rate()) {
        (Some(users), None) => format!("Concurrency: {}", count(users.into())),
        (None, None) => format!("Concurrency: {NOTHING}"),
        (None, Some(rate)) => format!("Rate: {rate}"),
        (Some(cap), Some(rate)) => format!("Rate: {rate}, at most {} in flight", count(cap.into())),
    };
    let tally = row.tally();
    let requests = asked.and_then(|asked| asked.requests).unwrap_or(tally.scheduled);
    let runs = match row.level.map(|level| level.points.len() + level.left_out.len()) {
        None | Some(0 | 1) => String::new(),
        Some(runs) => format!(" in each of {}", counted(runs as u64, "run")),
    };
    let value = |quantity: Quantity| number(row.value(quantity));
    let interval = match uncertainty(&row.quantity(&metric::OUTPUT_THROUGHPUT)) {
        interval if interval.is_empty() => interval,
        interval => format!("; {interval}"),
    };
    let [throughput, peak, pp, tg] =
        [&metric::OUTPUT_THROUGHPUT, &metric::PEAK_OUTPUT_THROUGHPUT, &metric::PP, &metric::TG]
            .map(|metric: &'static Metric| value(metric.quantity()));
    let mut lines = vec![
        format!("Input/Output: {input} / {output} tokens"),
        load,
        format!("Prompts: {}{runs}", count(requests)),
        format!("Output throughput: {throughput} tok/s (peak {peak}){interval}"),
    ];
    let latencies = [
        ("TTFT", &metric::TTFT),
        ("TPOT", &metric::TPOT),
        ("ITL", &metric::ITL),
        ("E2E", &metric::E2E),
    ];
    lines.extend(latencies.map(|(name, metric): (&str, &'static Metric)| {
        let values = [metric.mean(), metric.p50(), metric.p99()].map(value).join(" / ");
        let tail = row.quantity(metric.p99());
        let few = (!tail.certified && tail.mean.is_some())
            .then(|| format!("; the p99: {}", uncertified(metric.p99().statistic())));
        format!("{name} mean/median/p99: {values} ms{}", few.unwrap_or_default())
    }));
    lines.push(format!("PP/TG (derived): {pp} / {tg} tok/s"));
    lines.extend(server(row));
    if tally.ok != tally.scheduled {
        let [ok, scheduled, failed, cancelled, not_sent] =
            [tally.ok, tally.scheduled, tally.failed, tally.cancelled, tally.not_sent].map(count);
        lines.push(fill("outcomes", &[&ok, &scheduled, &failed, &cancelled, &not_sent]));
    }
    lines.into_iter().map(plain).collect()
}

/// The server's gauges and counters, the worst of the runs that count.
fn server(row: &Row<'_>) -> Option<String> {
    let most = |get: fn(&ServerSide) -> Option<f64>| {
        row.runs.iter().filter_map(|run| get(run.server.as_ref()?)).max_by(f64::total_cmp)
    };
    let kv = most(|server| server.kv_usage.map(|found| found.max));
    let waiting = most(|server| server.waiting.map(|found| found.max));
    let preempted = most(|server| server.preemptions.map(|found| found.total));
    let cached = row.scenario.and_then(|asked| asked.cached_share);
    let parts = [
        kv.map(|share| format!("KV use up to {}", percent(share))),
        waiting.map(|number| format!("waiting up to {}", whole(number))),
        preempted.map(|number| format!("preemptions {}", whole(number))),
        cached.map(|share| format!("from the prefix cache {} of the input", percent(share))),
    ];
    parts.into_iter().flatten().try_join(", ").map(|parts| format!("Server: {parts}"))
}

/// The most informative charts are open, and the others folded.
fn figures(row: &Row<'_>, run: &Summary) -> Vec<Block> {
    /// A p99 of so many times the median is worth a look.
    const LONG_TAIL: f64 = 3.0;
    let id = row.id();
    let own = [row];
    let has_tail = |metric: &'static Metric| {
        let ends = row.value(metric.p50()).zip(row.value(metric.p99()));
        ends.is_some_and(|(middle, tail)| LONG_TAIL * middle <= tail)
    };
    let waited = run.server.as_ref().and_then(|server| server.waiting);
    let charts = [
        (has_tail(charts::first_token_metric(&own)), charts::first_tokens(&own, &id)),
        (false, charts::token_gaps(&own, &id)),
        (waited.is_some_and(|waiting| 0.0 < waiting.max), charts::course(run, &id)),
        (false, charts::gpus(run, &id)),
        (false, charts::requests(run, &id)),
        (has_tail(&metric::ITL), charts::gaps(run, &id)),
    ];
    // With the run that is drawn, where the chart does not name it.
    let which = row.which_run();
    let (mut open, mut folded) = (Vec::new(), Vec::new());
    for (is_open, chart) in charts {
        let Some(mut chart) = chart else { continue };
        if !chart.n.ends_with(&which) {
            chart.n += &which;
        }
        if is_open { &mut open } else { &mut folded }.push(Block::from(chart));
    }
    let summary = format!("{} of {}", counted(folded.len() as u64, "more chart"), row.name);
    open.extend(Block::folded(summary, folded));
    open
}
