//! Results as a spreadsheet reads them: one row each, every figure with its interval.

use inferometer_analysis::Estimate;
use inferometer_analysis::sheet::{Sheet, SheetRate};

use super::lines::{Line, lines};
use super::table::quantities;
use super::words::mark_words;
use crate::pages::csv::{Field, line};

const FACTS: [&str; 15] = [
    "configuration",
    "model",
    "tool",
    "source",
    "line",
    "started",
    "request_rate",
    "max_concurrency",
    "planned",
    "completed",
    "failed",
    "duration (s)",
    "input tokens",
    "output tokens",
    "marks",
];

pub fn of_sheets(sheets: &[Sheet]) -> String {
    let lines = lines(sheets);
    let all: Vec<&Sheet> = lines.iter().flat_map(Line::sheets).collect();
    let quantities = quantities(&all);
    let mut head: Vec<Field> = FACTS.map(|name| Field::Text(name.to_owned())).into();
    for (title, _) in &quantities {
        for part in ["", " low", " high"] {
            head.push(Field::Text(format!("{title}{part}")));
        }
    }
    let mut text = line(&head);
    for (of, sheet) in lines.iter().flat_map(|of| of.sheets().map(move |sheet| (of, sheet))) {
        let mut fields = facts(&of.name, sheet);
        for (_, quantity) in &quantities {
            fields.extend(figures(quantity.of(sheet)));
        }
        text += &line(&fields);
    }
    text
}

fn facts(name: &str, sheet: &Sheet) -> Vec<Field> {
    let text = |text: Option<&str>| Field::Text(text.unwrap_or_default().to_owned());
    let number = |value: Option<u64>| Field::Number(value.map(|value| value as f64));
    let rate = match sheet.request_rate {
        Some(SheetRate::PerSecond(rate)) => Field::Number(Some(rate)),
        Some(SheetRate::Unlimited) => text(Some("inf")),
        None => Field::Number(None),
    };
    let marks: Vec<String> = sheet.marks.iter().map(mark_words).collect();
    vec![
        text(Some(name)),
        text(sheet.model.as_deref()),
        text(Some(sheet.source.tool.told())),
        text(Some(&sheet.source.name)),
        number(sheet.source.line.map(u64::from)),
        text(sheet.started.as_deref()),
        rate,
        number(sheet.max_concurrency.map(u64::from)),
        number(sheet.requests_planned),
        number(sheet.completed),
        number(sheet.failed),
        Field::Number(sheet.duration_s),
        number(sheet.input_tokens),
        number(sheet.output_tokens),
        text(Some(&marks.join("; "))),
    ]
}

fn figures(found: Option<Estimate>) -> [Field; 3] {
    let interval = found.and_then(|found| found.interval);
    [
        Field::Number(found.map(|found| found.value)),
        Field::Number(interval.map(|interval| interval.low)),
        Field::Number(interval.map(|interval| interval.high)),
    ]
}
