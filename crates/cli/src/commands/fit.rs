//! `inferometer fit`: a profile whose engine gives the figures that were measured. Results become rows:
//! our own runs, other tools' results, and tables that were typed in.

use std::path::Path;
use std::process::ExitCode;

use inferometer_analysis::tool_result::{LatencyKind, ResultRate, ToolResult};
use inferometer_engine::profile::Profile;
use inferometer_interchange::{PublishedRow, PublishedTable, read_file};
use inferometer_model::Segment;
use inferometer_model::import::ImportReading;
use inferometer_model::spec::EngineTable;
use inferometer_model::whole::to_u32;
use inferometer_report::document::{
    Badge, Block, Cell, Columns, Document, Lead, Mood, Section, Table, Text, plain, terminal,
};
use inferometer_report::escape::{self, terminal_line};
use inferometer_report::fmt::{self, NOTHING, number};
use inferometer_report::terminal::Style;
use inferometer_runner::fit::{
    Coefficient, Draws, FIGURES, Figures, Fit, FitQuality, FitVerdict, Fitting, Row, RowLoad,
    RowRequest, TOLERANCES, is_in_part, knees, own_seed, row_of_run,
};
use inferometer_runner::learn::{Learned, Learning};
use inferometer_store::{RunStore, Stored, read_at_most, write_output};
use serde_json::{Value, json};

use crate::arguments::FitArguments;
use crate::failure::{Failure, Result};
use crate::{embedded, output, results};

pub(crate) fn run(arguments: &FitArguments) -> Result<ExitCode> {
    let talk = output::talk_unless(arguments.quiet);
    if arguments.learn {
        return learn(arguments, talk);
    }
    let input = spread("--input-spread", arguments.input_spread)?;
    let spreads = (input, spread("--output-spread", arguments.output_spread)?);
    let store = super::store(&arguments.store)?;
    let mut rows = Vec::new();
    for result in &arguments.results {
        rows.extend(read_rows(result, &store, spreads)?);
    }
    let base = arguments.engine.clone();
    if [&base.profile, &base.hardware, &base.model].iter().all(|name| name.is_none()) {
        return Err(Failure::usage("the measured server is not named")
            .hint("name it with --profile, or with --hardware and --engine-model"));
    }
    check_save(arguments)?;
    let server =
        |choice: &EngineTable| Profile::compose(choice).map_err(|error| embedded::refusal(&error));
    let servers = rows.iter().map(|row| server(&row.server.over(&base)));
    let fitting = Fitting {
        base: server(&base)?,
        servers: servers.collect::<Result<_, _>>()?,
        free: free(&arguments.free, rows.len())?,
        source: arguments.source.clone().unwrap_or_else(|| names(&arguments.results)),
        leave_one_out: !arguments.no_leave_one_out,
        rows,
    };
    fitting.check()?;
    let found = fitting.fit(talk)?;
    let name = arguments.name.clone();
    let name = name.unwrap_or_else(|| format!("{}-fitted", fitting.base.name));
    let profile = fitting.profile(&found, name)?;
    let verdict = show(&fitting, &found, &profile, arguments.json)?;
    let Some(path) = &arguments.save else { return Ok(ExitCode::SUCCESS) };
    let hint = "free other coefficients, remove contradictory rows, or save it with --force";
    save(path, &profile, (&verdict, hint), arguments.force, talk)
}

/// Prints a fit and returns the verdict on it.
pub(crate) fn show(
    fitting: &Fitting,
    fit: &Fit,
    profile: &Profile,
    as_json: bool,
) -> Result<FitVerdict> {
    let verdict = fitting.judge(fit);
    output::result(&if as_json {
        format!("{:#}\n", json(fitting, fit, profile, &verdict))
    } else {
        page(fitting, fit, profile, &verdict)
    })?;
    Ok(verdict)
}

/// Writes a profile, unless its errors make it useless; the hint says what to do then.
pub(crate) fn save(
    path: &Path,
    profile: &Profile,
    (verdict, hint): (&FitVerdict, &'static str),
    force: bool,
    talk: impl Fn(&str),
) -> Result<ExitCode> {
    if verdict.quality == FitQuality::Unusable && !force {
        return Err(Failure::invalid("the profile is unusable and was not saved").hint(hint));
    }
    write_output(path, profile.to_toml().as_bytes())?;
    talk(&format!("the profile is in {}", escape::terminal(&path.display().to_string())));
    Ok(ExitCode::SUCCESS)
}

/// What to do about a law that does not hold.
pub(crate) const LAW_HINT: &str =
    "measure longer or other loads, look at what is left out, or save it with --force";

/// Learns a law from the steps of stored runs; the runs of a set are all taken.
fn learn(arguments: &FitArguments, talk: impl Fn(&str)) -> Result<ExitCode> {
    check_save(arguments)?;
    let store = super::store(&arguments.store)?;
    let mut runs = Vec::new();
    for result in &arguments.results {
        match store.find(result).map_err(Failure::from_usage)? {
            Stored::Run(run) => runs.push(run.path().to_owned()),
            Stored::Set(set) => {
                let points = set.points().map_err(Failure::from_usage)?.into_iter();
                runs.extend(points.map(|number| set.point(number).path().to_owned()));
            }
            Stored::Import(..) => {
                return Err(Failure::usage(format!("{result} is an import, which shows no steps"))
                    .hint("fit its figures without --learn"));
            }
        }
    }
    let learning = Learning {
        runs,
        server: EngineTable { profile: None, ..arguments.engine.clone() },
        name: arguments.name.clone().unwrap_or_else(|| "learned".to_owned()),
        source: arguments.source.clone().unwrap_or_else(|| names(&arguments.results)),
    };
    let Learned { fitting, fit, notes } = learning.learn(&talk)?;
    let verdict = show(&fitting, &fit, &fitting.base, arguments.json)?;
    for note in &notes {
        talk(&format!("note: {}", escape::terminal(note)));
    }
    let Some(path) = &arguments.save else { return Ok(ExitCode::SUCCESS) };
    let profile = fitting.profile(&fit, fitting.base.name.clone())?;
    save(path, &profile, (&verdict, LAW_HINT), arguments.force, talk)
}

fn quality_name(quality: FitQuality) -> (&'static str, Mood) {
    match quality {
        FitQuality::Usable => ("usable", Mood::Good),
        FitQuality::Poor => ("poor", Mood::Doubt),
        FitQuality::Unusable => ("unusable", Mood::Bad),
    }
}

/// What the verdict on a fit rests on.
fn verdict_reason(verdict: &FitVerdict) -> String {
    let rows = if verdict.is_unseen { "rows that the fit had not seen" } else { "the fitted rows" };
    let worst = verdict.worst.as_ref().map_or_else(
        || "no figure can be compared".to_owned(),
        |(error, figure, row)| {
            let (title, target) = (TITLES[*figure], 100.0 * TOLERANCES[*figure]);
            let error = percent(Some(*error), true);
            let row = terminal_line(row, 60);
            let target = inferometer_model::fmt::whole(target);
            format!("the worst error in {rows} is {error} ({title} at {row}; target {target} %)")
        },
    );
    let unseen = if verdict.is_unseen { "" } else { "; no row was left out to show more" };
    worst + unseen
}

fn spread(flag: &str, typed: Option<f64>) -> Result<f64> {
    let spread = typed.unwrap_or_default();
    if (0.0..=10.0).contains(&spread) {
        return Ok(spread);
    }
    Err(Failure::usage(format!("{flag} is {spread}; it lies between 0 and 10")))
}

/// Whether the profile can be saved is checked before the work begins.
fn check_save(arguments: &FitArguments) -> Result<()> {
    let Some(path) = &arguments.save else { return Ok(()) };
    let shown = path.display();
    if arguments.free == ["none"] {
        return Err(Failure::usage("--free none fits nothing that --save could store"));
    }
    if path.exists() {
        return Err(Failure::usage(format!("--save {shown} exists already"))
            .hint("name another file, or remove it"));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if folder.is_some_and(|folder| !folder.is_dir()) {
        return Err(Failure::usage(format!("--save {shown}: the folder does not exist")));
    }
    Ok(())
}

fn free(names: &[String], rows: usize) -> Result<Vec<&'static Coefficient>> {
    match (names, Coefficient::by_default(rows)) {
        ([], free) if free.is_empty() => {
            Err(Failure::usage("one row cannot determine a coefficient")
                .hint("give results of at least two loads, or --free none to try the profile"))
        }
        ([], free) => Ok(free),
        ([none], _) if none == "none" => Ok(Vec::new()),
        _ => names.iter().map(|name| Coefficient::find(name)).collect(),
    }
}

/// File names without their folders: a profile's file is passed on. The name of what is stored,
/// such as `ID/3`, has none.
fn names(results: &[String]) -> String {
    let name = |result: &String| {
        let path = Path::new(result.split('@').next().unwrap_or_default());
        let name = if path.exists() { path.file_name()? } else { path.as_os_str() };
        Some(name.to_string_lossy().into_owned())
    };
    results.iter().filter_map(name).collect::<Vec<_>>().join(", ")
}

/// How lengths of input and output scatter where a result says only their sums: standard deviation
/// over mean.
type Spreads = (f64, f64);

const FILE_BYTES_MAX: u64 = 64 << 20;
/// No length is more than so many times the mean.
const LENGTH_MAX: f64 = 5.0;
const REQUESTS_MAX: u64 = 1_000_000;
/// A server that gave this share of the rate kept up with it.
const KEPT_UP: f64 = 0.95;

/// All rows of one result: `PLACE`, or `PLACE@key=value,…` where its server was set otherwise. A place
/// that is no file may be the id of a stored run or import.
fn read_rows(result: &str, store: &RunStore, spreads: Spreads) -> Result<Vec<Row>> {
    let (name, settings) = result.split_once('@').unwrap_or((result, ""));
    // Settings of the server, with the keys of a profile's `[serve]`.
    let server: EngineTable = toml::from_str(&settings.replace(',', "\n")).map_err(|error| {
        let message = error.message();
        Failure::usage(format!("`@{settings}` is not a setting of a server: {message}"))
            .hint("such as results.jsonl@max_num_seqs=4096,generation=\"v0\"")
    })?;
    let is_usable = |found: &Stored| !matches!(found, Stored::Set(_));
    let stored =
        if Path::new(name).is_file() { None } else { store.find_usable(name, is_usable).ok() };
    let mut rows = match stored {
        Some(Stored::Run(run)) => vec![row_of_run(run.path())?],
        Some(Stored::Import(import, number)) => {
            let results = results::from_import(&import, number)?;
            rows_of_results(results.iter(), spreads)
                .map_err(|error| Failure::usage(error).about(import.id()))?
        }
        Some(Stored::Set(_)) | None if Path::new(name).is_dir() => {
            vec![row_of_run(Path::new(name))?]
        }
        Some(Stored::Set(_)) | None => rows_of_file(Path::new(name), spreads)?,
    };
    for row in &mut rows {
        row.server = server.clone();
    }
    Ok(rows)
}

fn rows_of_file(path: &Path, spreads: Spreads) -> Result<Vec<Row>> {
    let bytes = &read_at_most(path, FILE_BYTES_MAX)
        .map_err(Failure::from_usage)?
        .ok_or_else(|| Failure::usage(format!("there is no {}", path.display())))?;
    let named = |error: String| Failure::usage(format!("{}: {error}", path.display()));
    if path.extension().is_some_and(|end| end == "toml") {
        let text = str::from_utf8(bytes).map_err(|_| named("is not text".to_owned()))?;
        let table = PublishedTable::read(text).map_err(|error| named(error.to_string()))?;
        for row in &table.rows {
            check_count(row.requests, &format!("`{}`", row.name)).map_err(named)?;
        }
        return Ok(table.rows.iter().enumerate().map(row_of_published).collect());
    }
    let found = read_file(&path.display().to_string(), bytes, &ImportReading::default())
        .map_err(|error| named(error.to_string()))?;
    if let Some(broken) = found.broken().next() {
        return Err(named(format!("line {}: {}", broken.line, broken.reason))
            .hint("a fit needs every row; remove the broken ones"));
    }
    rows_of_results(found.results(), spreads).map_err(named)
}

fn rows_of_results<'a>(
    results: impl Iterator<Item = &'a ToolResult>,
    spreads: Spreads,
) -> Result<Vec<Row>, String> {
    results.enumerate().map(|(number, result)| row_of_result(number, result, spreads)).collect()
}

/// Rows of a table were measured one after the other on one server, by a client that draws the
/// same prompts each time; with lengths that vary its draws, and so its prompts, are others.
fn row_of_published((number, row): (usize, &PublishedRow)) -> Row {
    let mut draws = Draws::new(number as u64, 1);
    let varies = 0.0 < row.range_ratio;
    let request = |index: u64| {
        let mut length = |mean: u32| {
            let factor = 1.0 + row.range_ratio * (2.0 * draws.unit() - 1.0);
            if varies { whole(f64::from(mean) * factor) } else { mean }
        };
        let (tokens, output_tokens) = (length(row.input_tokens), length(row.output_tokens));
        let seed = if varies { own_seed(number, index) } else { index };
        RowRequest { prompt: Segment { seed, tokens }, output_tokens }
    };
    Row {
        name: row.name.clone(),
        requests: (0..row.requests).map(request).collect(),
        load: RowLoad::Closed { slots: row.concurrency, tests_first: true },
        figures: [row.output_throughput, row.ttft_mean_ms, row.tpot_mean_ms],
        server: EngineTable::default(),
        continues: 0 < number,
    }
}

fn row_of_result(number: usize, result: &ToolResult, spreads: Spreads) -> Result<Row, String> {
    let missing = |what: &str| format!("line {}: the result has no {what}", line_of(result));
    let completed = result.completed.filter(|n| 0 < *n).ok_or_else(|| missing("completed"))?;
    let input = result.input_tokens.ok_or_else(|| missing("total input tokens"))?;
    let output = result.output_tokens.ok_or_else(|| missing("total output tokens"))?;
    check_count(completed, &format!("line {}", line_of(result)))?;
    let (name, load) = row_load(result)?;
    let name = match result.requests_planned.filter(|planned| completed < *planned) {
        Some(planned) => format!("{name}, {completed} of {planned}"),
        None => name,
    };
    let mean = |kind| result.latency(kind)?.mean_ms;
    // What did not complete is taken not to have been served: its tokens are in no sum.
    let inputs = lengths(completed, input, spreads.0, 2);
    let outputs = lengths(completed, output, spreads.1, 3);
    let requests = inputs.into_iter().zip(outputs).zip(0..);
    let requests = requests.map(|((tokens, output_tokens), index)| {
        let prompt = Segment { seed: own_seed(number, index), tokens };
        RowRequest { prompt, output_tokens }
    });
    Ok(Row {
        name,
        requests: requests.collect(),
        load,
        // Other tools write zero for what they do not know.
        figures: [result.output_throughput, mean(LatencyKind::Ttft), mean(LatencyKind::Tpot)]
            .map(|figure| figure.filter(|figure| 0.0 < *figure)),
        server: EngineTable::default(),
        continues: false,
    })
}

fn line_of(result: &ToolResult) -> u32 {
    result.source.line.unwrap_or(0)
}

fn row_load(result: &ToolResult) -> Result<(String, RowLoad), String> {
    let refuse = |why: &str| Err(format!("line {}: {why}", line_of(result)));
    if result.burstiness.is_some_and(|burstiness| (burstiness - 1.0).abs() > 1e-9) {
        return refuse("its arrivals are not Poisson arrivals, which a fit needs");
    }
    match (result.max_concurrency, result.request_rate) {
        (Some(_), Some(ResultRate::PerSecond(_))) => refuse(
            "it has a rate and a cap on the requests in flight, which a fit does not support",
        ),
        (Some(slots), Some(ResultRate::Unlimited) | None) => {
            Ok((format!("concurrency {slots}"), RowLoad::Closed { slots, tests_first: true }))
        }
        (None, Some(ResultRate::PerSecond(rate))) => {
            let kept_up = result.request_throughput.map(|got| KEPT_UP * rate <= got);
            let took_s = result.duration_s;
            Ok((format!("rate {rate}"), RowLoad::Poisson { rate, took_s, kept_up }))
        }
        (None, Some(ResultRate::Unlimited)) => Ok(("all at once".to_owned(), RowLoad::AtOnce)),
        (None, None) => refuse("it has neither a rate nor a concurrency"),
    }
}

/// A trial holds all requests of a row at once.
fn check_count(requests: u64, whose: &str) -> Result<(), String> {
    if requests <= REQUESTS_MAX {
        return Ok(());
    }
    Err(format!("{whose} has {requests} requests; a row may have {REQUESTS_MAX}"))
}

/// So many lengths with this sum, all alike or log-normal; the same for every row, as a dataset's
/// are.
fn lengths(count: u64, sum: u64, spread: f64, purpose: u64) -> Vec<u32> {
    let mean = sum as f64 / count as f64;
    if spread <= 0.0 {
        return (0..count).map(|_| whole(mean)).collect();
    }
    let mut draws = Draws::new(0, purpose);
    let sigma = libm::sqrt(libm::log(1.0 + spread * spread));
    let mut factors: Vec<f64> = (0..count).map(|_| libm::exp(sigma * draws.normal())).collect();
    for _ in 0..8 {
        let cut: f64 = factors.iter().map(|factor| factor.min(LENGTH_MAX)).sum();
        let scale = count as f64 / cut;
        for factor in &mut factors {
            *factor *= scale;
        }
    }
    factors.iter().map(|factor| whole(mean * factor.min(LENGTH_MAX))).collect()
}

fn whole(tokens: f64) -> u32 {
    to_u32(tokens.round()).max(1)
}

const TITLES: [&str; 3] = ["tok/s", "TTFT ms", "TPOT ms"];

fn page(fitting: &Fitting, fit: &Fit, profile: &Profile, verdict: &FitVerdict) -> String {
    let coefficients = fitting.free.iter().map(|free| {
        let value = fmt::number(free.value(&fit.coefficients));
        (free.name.to_owned(), plain(value))
    });
    let mut totals = vec![total("fitted", fitting, &fit.played, |_| true)];
    let left_out = fit.left_out.iter();
    totals.extend(left_out.map(|it| total("each row left out", fitting, it, |_| true)));
    if let Some(part) = &fit.part {
        let seen = (0..fitting.rows.len()).filter(|row| is_in_part(*row)).count();
        let label = format!("a fit on {seen} rows: these rows");
        totals.push(total(&label, fitting, part, is_in_part));
        let unseen = |row| !is_in_part(row);
        totals.push(total("and the rows that it has not seen", fitting, part, unseen));
    }
    let knees = knees(&fitting.rows, &fit.played).into_iter().map(|(measured, played)| {
        let agree = if measured == played { "the same row" } else { "another row" };
        let [measured, played] = [measured, played].map(|row| &fitting.rows[row].name);
        Block::Paragraph(plain(format!(
            "knee of the throughput: measured at {measured}, predicted at {played}: {agree}"
        )))
    });
    let caption = "Measured values, values of the fitted profile, and the error; left out: the error of \
                   a fit without the row.";
    let blocks = [
        vec![Block::Facts(coefficients.collect())],
        vec![Block::Paragraph(plain(caption)), Block::Table(table(fitting, fit))],
        vec![Block::Facts(totals)],
        knees.collect(),
    ];
    let sections = blocks.map(|blocks| Section::new("", blocks)).into();
    let (word, mood) = quality_name(verdict.quality);
    let text = plain(verdict_reason(verdict));
    let badge = Badge { mood, word: word.to_owned(), text, points: Vec::new() };
    let lead = Lead { verdict: Some(badge), ..Lead::default() };
    let document = Document::new(format!("{}: {}", profile.name, fitting.source), sections);
    terminal::render(&Document { lead, ..document }, Style::Plain)
}

/// Each row: measured and played values with their errors.
fn table(fitting: &Fitting, fit: &Fit) -> Table {
    type Pair<'a> = (&'a Row, Figures, Option<Figures>);
    let mut columns = Columns::new("", |(row, ..): &Pair<'_>| {
        let mark = if row.load.is_saturated() { " *" } else { "" };
        Cell::text(terminal_line(&row.name, 26) + mark)
    });
    for (index, title) in TITLES.into_iter().enumerate() {
        columns = columns
            .right(title, move |(row, ..)| Cell::text(number(row.figures[index])))
            .right("played", move |(_, played, _)| Cell::text(number(played[index])))
            .right("error", move |(row, played, _)| {
                let is_given = index == 0 && row.is_throughput_given();
                let error = percent(row.errors(played)[index], true);
                Cell::text(if is_given { "given".to_owned() } else { error })
            })
            .right("left out", move |(row, _, left_out)| {
                let error = left_out.and_then(|left_out| row.errors(&left_out)[index]);
                Cell::text(percent(error, true))
            });
    }
    let left_out = |number: usize| fit.left_out.as_ref().map(|all| all[number]);
    let rows = fitting.rows.iter().zip(&fit.played).enumerate();
    let rows = rows.map(|(number, (row, played))| (row, *played, left_out(number)));
    let table = columns.table("", "", rows);
    let given =
        "given: arrivals are stretched to the row's duration, so its throughput is not a result";
    let saturated = "*: saturated; its TTFT depends on the length of the run and is in no total";
    let is_saturated = |row: &Row| row.load.is_saturated();
    let notes = [
        fitting.rows.iter().any(Row::is_throughput_given).then(|| plain(given)),
        fitting.rows.iter().any(is_saturated).then(|| plain(saturated)),
    ];
    Table { notes: notes.into_iter().flatten().collect(), ..table }
}

fn percent(error: Option<f64>, is_signed: bool) -> String {
    match error {
        None => NOTHING.to_owned(),
        Some(error) if is_signed => format!("{} %", fmt::signed_percent(error)),
        Some(error) => fmt::percent(error),
    }
}

/// Mean and worst error of each figure, and how many rows are within the tolerance.
fn total(
    label: &str,
    fitting: &Fitting,
    played: &[Figures],
    counts: impl Fn(usize) -> bool,
) -> (String, Text) {
    let part = |(index, title): (usize, &str)| {
        let rows = fitting.rows.iter().zip(played).enumerate();
        // The TTFT of a row whose queue grows is not compared.
        let is_ttft = FIGURES[index] == "ttft_mean_ms";
        let rows = rows
            .filter(|(number, (row, _))| counts(*number) && !(is_ttft && row.load.is_saturated()));
        let errors = rows.filter_map(|(_, (row, played))| row.errors(played)[index]);
        let errors: Vec<f64> = errors.map(f64::abs).collect();
        let n = errors.len();
        let mean = (0 < n).then(|| errors.iter().sum::<f64>() / n as f64);
        let worst = errors.iter().copied().reduce(f64::max);
        let close = errors.iter().filter(|error| **error <= TOLERANCES[index]).count();
        format!(
            "{title}: mean {}, worst {}, {close} of {n} within {}",
            percent(mean, false),
            percent(worst, false),
            fmt::percent(TOLERANCES[index]),
        )
    };
    let parts: Vec<String> = TITLES.into_iter().enumerate().map(part).collect();
    (label.to_owned(), plain(parts.join("; ")))
}

/// The document of a fit.
fn json(fitting: &Fitting, fit: &Fit, profile: &Profile, verdict: &FitVerdict) -> Value {
    let figures = |figures: &Figures| -> Value {
        let named = FIGURES.into_iter().zip(figures);
        named.map(|(name, value)| (name.to_owned(), json!(value))).collect()
    };
    let rows: Vec<Value> = fitting
        .rows
        .iter()
        .zip(&fit.played)
        .enumerate()
        .map(|(number, (row, played))| {
            let part = fit.part.as_ref().map(
                |part| json!({ "seen": is_in_part(number), "figures": figures(&part[number]) }),
            );
            json!({
                "name": row.name,
                "saturated": row.load.is_saturated(),
                "throughput_given": row.is_throughput_given(),
                "measured": figures(&row.figures),
                "played": figures(played),
                "left_out": fit.left_out.as_ref().map(|all| figures(&all[number])),
                "part": part,
            })
        })
        .collect();
    let knees = knees(&fitting.rows, &fit.played).into_iter();
    let name = |row: usize| &fitting.rows[row].name;
    let knees: Vec<Value> = knees
        .map(|(measured, played)| json!({ "measured": name(measured), "played": name(played) }))
        .collect();
    json!({
        "schema": "inferometer.fit/1",
        "profile": profile.name,
        "source": fitting.source,
        "verdict": quality_name(verdict.quality).0,
        "reason": verdict_reason(verdict),
        "coefficients": fit.coefficients,
        "free": fitting.free.iter().map(|free| free.name).collect::<Vec<_>>(),
        "evaluations": fit.evaluations,
        "rows": rows,
        "knees": knees,
    })
}
