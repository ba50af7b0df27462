//! The result of a fit as a page and as a JSON document.

use inferometer_engine::profile::Profile;
use inferometer_report::document::{
    Block, Cell, Columns, Document, Section, Table, Text, plain, terminal,
};
use inferometer_report::escape::terminal_line;
use inferometer_report::fmt::{NOTHING, number};
use inferometer_report::terminal::Style;
use inferometer_runner::fit::{Figures, Fit, Fitting, Knee, Part, Row, TOLERANCES, knees};
use serde_json::{Value, json};

const TITLES: [&str; 3] = ["tok/s", "TTFT ms", "TPOT ms"];

pub(crate) fn page(fitting: &Fitting, fit: &Fit, profile: &Profile) -> String {
    let coefficients = fitting.free.iter().map(|free| {
        let value = format!("{:.4e}", free.read(&fit.coefficients));
        (free.name().to_string(), plain(value))
    });
    let played: Vec<Figures> = fit.rows.iter().map(|row| row.played).collect();
    let mut totals = vec![total("fitted", fitting, &played, |_| true)];
    let left_out: Option<Vec<Figures>> = fit.rows.iter().map(|row| row.left_out).collect();
    totals.extend(left_out.map(|it| total("each row left out", fitting, &it, |_| true)));
    if let Some(part) = &fit.part {
        let seen = (0..fitting.rows.len()).filter(|row| Part::has_seen(*row)).count();
        let own = format!("a fit on {seen} rows, those");
        totals.push(total(&own, fitting, &part.played, Part::has_seen));
        let unseen = |row| !Part::has_seen(row);
        totals.push(total("and the rows that it has not seen", fitting, &part.played, unseen));
    }
    let knees = knees(&fitting.rows, &played).into_iter().map(|Knee { measured, played }| {
        let agree = if measured == played { "the same row" } else { "another row" };
        let [measured, played] = [measured, played].map(|row| &fitting.rows[row].name);
        Block::Paragraph(plain(format!(
            "knee of the throughput: measured at {measured}, played at {played}: {agree}"
        )))
    });
    let caption = "Measured values, those of the fitted profile, and the error; left out: the error of a \
                   fit without the row.";
    let blocks = [
        vec![Block::Facts(coefficients.collect())],
        vec![Block::Paragraph(plain(caption)), Block::Table(table(fitting, fit))],
        vec![Block::Facts(totals)],
        knees.collect(),
    ];
    let sections = blocks.map(|blocks| Section::new("", blocks)).into();
    let document = Document::new(format!("{}: {}", profile.name, fitting.source), sections);
    terminal::render(&document, Style::Plain)
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
            .right(title, move |(row, ..)| Cell::text(number(row.figures.values()[index])))
            .right("played", move |(_, played, _)| Cell::text(number(played.values()[index])))
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
    let rows = fitting.rows.iter().zip(&fit.rows);
    let table = columns.table("", "", rows.map(|(row, found)| (row, found.played, found.left_out)));
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
        Some(error) if is_signed => format!("{:+.0}%", 100.0 * error),
        Some(error) => format!("{:.0}%", 100.0 * error),
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
        let is_ttft = Figures::NAMES[index] == "ttft_mean_ms";
        let rows = rows
            .filter(|(number, (row, _))| counts(*number) && !(is_ttft && row.load.is_saturated()));
        let errors = rows.filter_map(|(_, (row, played))| row.errors(played)[index]);
        let errors: Vec<f64> = errors.map(f64::abs).collect();
        let n = errors.len();
        let mean = (0 < n).then(|| errors.iter().sum::<f64>() / n as f64);
        let worst = errors.iter().copied().reduce(f64::max);
        let close = errors.iter().filter(|error| **error <= TOLERANCES[index]).count();
        format!(
            "{title}: mean {}, worst {}, {close} of {n} within {:.0}%",
            percent(mean, false),
            percent(worst, false),
            100.0 * TOLERANCES[index],
        )
    };
    let parts: Vec<String> = TITLES.into_iter().enumerate().map(part).collect();
    (label.to_owned(), plain(parts.join("; ")))
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
