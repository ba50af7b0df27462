//! What a fit found, as a page and as a JSON document.

use std::fmt::Write as _;

use inferometer_engine::profile::Profile;
use inferometer_report::escape;
use inferometer_report::fmt::number;
use serde_json::{Value, json};

use inferometer_runner::fit::{Figures, Fit, Fitting, Knee, Part, Row, TOLERANCES, knees};

const TITLES: [&str; 3] = ["tok/s", "TTFT ms", "TPOT ms"];

pub(crate) fn page(fitting: &Fitting, fit: &Fit, profile: &Profile) -> String {
    let name = escape::terminal(&profile.name);
    let mut text = format!("{name}: {}\n\n", escape::terminal(&fitting.source));
    for free in &fitting.free {
        let _ =
            writeln!(text, "  {:<20} {}", free.name(), significant(free.read(&fit.coefficients)));
    }
    text += "\nMeasured, as the fitted profile plays it, and the error; left out: the error of a fit \
             that has not seen the row.\n";
    let _ = writeln!(text, "{}", heads());
    for (row, found) in fitting.rows.iter().zip(&fit.rows) {
        let left_out = found.left_out.as_ref().map(|figures| row.errors(figures));
        text += &line(row, &found.played, left_out.as_ref());
    }
    text += &remarks(fitting);
    let played: Vec<Figures> = fit.rows.iter().map(|row| row.played).collect();
    text += &totals("fitted", fitting, &played, |_| true);
    let left_out: Option<Vec<Figures>> = fit.rows.iter().map(|row| row.left_out).collect();
    if let Some(left_out) = left_out {
        text += &totals("each row left out", fitting, &left_out, |_| true);
    }
    if let Some(part) = &fit.part {
        let seen = (0..fitting.rows.len()).filter(|row| Part::has_seen(*row)).count();
        let what = format!("a fit on {seen} of the rows alone, those");
        text += &totals(&what, fitting, &part.played, Part::has_seen);
        text += &totals("  and the rows that it has not seen", fitting, &part.played, |row| {
            !Part::has_seen(row)
        });
    }
    text + &knee_lines(fitting, &played)
}

/// What the marks in the table mean, where there are any.
fn remarks(fitting: &Fitting) -> String {
    let mut text = "\n".to_owned();
    if fitting.rows.iter().any(Row::is_throughput_given) {
        text += "  given: arrivals are stretched to the row's duration, so its throughput is no \
                 finding\n";
    }
    if fitting.rows.iter().any(|row| row.load.is_saturated()) {
        text += "  *: more came than was served; its TTFT tells how long the run was, and is in no \
                 total\n";
    }
    text
}

fn heads() -> String {
    let columns = TITLES
        .map(|title| format!("  {:>9} {:>9} {:>6} {:>8}", title, "played", "error", "left out"));
    format!("  {:<28}{}", "", columns.concat())
}

fn line(row: &Row, played: &Figures, left_out: Option<&[Option<f64>; 3]>) -> String {
    let mark = if row.load.is_saturated() { " *" } else { "" };
    let mut text = format!("  {:<28}", escape::terminal(&short(&row.name)) + mark);
    let errors = row.errors(played);
    let unseen = left_out.copied().unwrap_or_default();
    let figures = row.figures.values().into_iter().zip(played.values());
    let given = [row.is_throughput_given(), false, false];
    let errors = errors.into_iter().zip(unseen).zip(given);
    for ((theirs, ours), ((error, unseen), given)) in figures.zip(errors) {
        let _ = write!(
            text,
            "  {:>9} {:>9} {:>6} {:>8}",
            number(theirs),
            number(ours),
            if given { "given".to_owned() } else { signed(error) },
            signed(unseen)
        );
    }
    text + "\n"
}

fn short(name: &str) -> String {
    name.chars().take(26).collect()
}

fn signed(error: Option<f64>) -> String {
    error.map_or_else(|| "–".to_owned(), |error| format!("{:+.0}%", 100.0 * error))
}

/// Enough digits to write the number down again.
fn significant(number: f64) -> String {
    format!("{number:.4e}")
}

/// Mean and worst error of each figure, and how many came close enough.
fn totals(
    what: &str,
    fitting: &Fitting,
    played: &[Figures],
    counts: impl Fn(usize) -> bool,
) -> String {
    let mut text = format!("  {what:<44}");
    for (index, title) in TITLES.iter().enumerate() {
        let errors: Vec<f64> = errors_of(fitting, played, index, &counts).collect();
        let n = errors.len() as f64;
        let mean = (0.0 < n).then(|| errors.iter().map(|error| error.abs()).sum::<f64>() / n);
        let worst = errors.iter().map(|error| error.abs()).reduce(f64::max);
        let close = errors.iter().filter(|error| error.abs() <= TOLERANCES[index]).count();
        let _ = write!(
            text,
            "  {title}: mean {}, worst {}, {close} of {} within {:.0}%;",
            plain(mean),
            plain(worst),
            errors.len(),
            100.0 * TOLERANCES[index],
        );
    }
    text.trim_end_matches(';').to_owned() + "\n"
}

fn plain(error: Option<f64>) -> String {
    error.map_or_else(|| "–".to_owned(), |error| format!("{:.0}%", 100.0 * error))
}

/// Errors of one figure; TTFT only where the queue did not grow.
fn errors_of(
    fitting: &Fitting,
    played: &[Figures],
    index: usize,
    counts: &impl Fn(usize) -> bool,
) -> impl Iterator<Item = f64> {
    let rows = fitting.rows.iter().zip(played).enumerate();
    rows.filter(move |(number, (row, _))| {
        counts(*number) && !(Figures::NAMES[index] == "ttft_mean_ms" && row.load.is_saturated())
    })
    .filter_map(move |(_, (row, played))| row.errors(played)[index])
}

fn knee_lines(fitting: &Fitting, played: &[Figures]) -> String {
    let mut text = String::new();
    for Knee { measured, played } in knees(&fitting.rows, played) {
        let agree = if measured == played { "the same row" } else { "another row" };
        let name = |row: usize| escape::terminal(&fitting.rows[row].name);
        let _ = writeln!(
            text,
            "  knee of the throughput: measured at {}, played at {}: {agree}",
            name(measured),
            name(played)
        );
    }
    text
}

pub(crate) fn json(fitting: &Fitting, fit: &Fit, profile: &Profile) -> Value {
    let figures = |figures: &Figures| -> Value {
        let named = Figures::NAMES.into_iter().zip(figures.values());
        named.map(|(name, value)| (name.to_owned(), json!(value))).collect()
    };
    let rows: Vec<Value> = fitting
        .rows
        .iter()
        .zip(&fit.rows)
        .enumerate()
        .map(|(number, (row, found))| {
            let part = fit.part.as_ref().map(|part| {
                json!({ "seen": Part::has_seen(number), "figures": figures(&part.played[number]) })
            });
            json!({
                "name": row.name,
                "saturated": row.load.is_saturated(),
                "throughput_given": row.is_throughput_given(),
                "measured": figures(&row.figures),
                "played": figures(&found.played),
                "left_out": found.left_out.as_ref().map(figures),
                "part": part,
            })
        })
        .collect();
    let played: Vec<Figures> = fit.rows.iter().map(|row| row.played).collect();
    let knees = knees(&fitting.rows, &played).into_iter();
    let name = |row: usize| &fitting.rows[row].name;
    let knees: Vec<Value> = knees
        .map(|knee| json!({ "measured": name(knee.measured), "played": name(knee.played) }))
        .collect();
    json!({
        "schema": "inferometer.fit/1",
        "profile": profile.name,
        "source": fitting.source,
        "coefficients": fit.coefficients,
        "free": fitting.free.iter().map(|free| free.name()).collect::<Vec<_>>(),
        "evaluations": fit.evaluations,
        "rows": rows,
        "knees": knees,
    })
}
