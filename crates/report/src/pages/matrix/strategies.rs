//! Tensor against pipeline parallel: both side by side, and how much faster one is.

use inferometer_analysis::matrix::{MatrixFigure, Speedup, StrategyRow, StrategyTable};

use super::view::{self, View};
use super::{OPEN_MAX, folded, signed_percent, table, winners};
use crate::chart::{Bar, BarGroup, Bars, Chart, Measure, Plot, ScaleKind};
use crate::document::{Block, Cell, Column, Section, Span, Table, Text, plain};
use crate::pages::cells::missing;
use crate::pages::{charts, frame};

pub(super) fn section(view: View<'_>) -> Option<Section> {
    let tables = &view.matrix.strategies;
    if tables.is_empty() {
        return None;
    }
    let mut blocks = vec![Block::Paragraph(plain(
        "The speed-up is tensor parallel over pipeline parallel less one: above zero, tensor parallel is \
         faster. On one GPU both are the same deployment, and their difference shows how much chance \
         there is. There is none where either side has errors.",
    ))];
    let fold = OPEN_MAX < tables.len();
    for (place, one) in tables.iter().enumerate() {
        let summary = format!("{}: generation {}", title(view, one), span_words(one));
        let mut inner = vec![Block::Table(self::table(view, one, place))];
        inner.extend(chart(view, one, place).map(charts::figure));
        blocks.extend(folded(fold, summary, inner));
    }
    Some(frame::section("strategies", "Tensor against pipeline parallel", blocks))
}

fn title(view: View<'_>, table: &StrategyTable) -> String {
    let mut parts = vec![view.model(table.model)];
    parts.extend(table.context.map(view::context_words));
    parts.extend(view::flags_words(&table.flags.iter().cloned().collect()));
    parts.extend(view.level(table.level));
    parts.join(", ")
}

/// Speed-ups that say something: of two deployments, and without errors.
fn told(table: &StrategyTable) -> impl Iterator<Item = &Speedup> {
    let rows = table.rows.iter().filter(|row| !row.same_deployment);
    rows.filter_map(|row| row.generation_speedup.as_ref())
}

fn span_words(table: &StrategyTable) -> String {
    let low = told(table).map(|found| found.share).reduce(f64::min);
    let high = told(table).map(|found| found.share).reduce(f64::max);
    match low.zip(high) {
        None => "not compared".to_owned(),
        Some((low, high)) if low.to_bits() == high.to_bits() => signed_percent(low),
        Some((low, high)) => format!("{} to {}", signed_percent(low), signed_percent(high)),
    }
}

/// For the summary: over all pairs how far the two are apart.
pub(super) fn sentence(view: View<'_>) -> Option<Text> {
    let all = || view.matrix.strategies.iter().flat_map(told);
    let pairs = all().count();
    let low = all().map(|found| found.share).reduce(f64::min)?;
    let high = all().map(|found| found.share).reduce(f64::max)?;
    let known = |is: fn(&Speedup) -> bool| all().filter(|found| is(found)).count();
    let faster = known(|found| found.interval.is_some_and(|interval| 0.0 < interval.low));
    let slower = known(|found| found.interval.is_some_and(|interval| interval.high < 0.0));
    let surely = if all().all(|found| found.interval.is_none()) {
        let mut rows = view.matrix.strategies.iter().flat_map(|table| &table.rows);
        let pair = rows.find(|row| !row.same_deployment && row.generation_speedup.is_some());
        pair.map_or(winners::ONE_RUN, |pair| unknown(view, pair)).to_owned()
    } else {
        format!(
            "by intervals of their own, tensor is faster in {faster}, pipeline in {slower}, and the rest is open"
        )
    };
    Some(vec![
        Span::Strong("Tensor against pipeline parallel:".to_owned()),
        Span::Plain(format!(
            " generation {} to {} over {pairs} pairs on several GPUs; {surely}.",
            signed_percent(low),
            signed_percent(high)
        )),
    ])
}

fn table(view: View<'_>, table: &StrategyTable, place: usize) -> Table {
    let heads = [
        "Pipeline prompt TPS",
        "Tensor prompt TPS",
        "Pipeline generation TPS",
        "Tensor generation TPS",
        "Prompt speed-up",
        "Generation speed-up",
    ];
    let row = |row: &StrategyRow| {
        let of = |side: Option<u32>, figure| match side.and_then(|side| view.row(side)) {
            Some(found) => self::table::repeated(found, view.figure(found, figure)),
            None => missing("not in the matrix"),
        };
        vec![
            Cell::text(view.preset(row.preset)),
            of(row.pipeline, MatrixFigure::PromptTps),
            of(row.tensor, MatrixFigure::PromptTps),
            of(row.pipeline, MatrixFigure::GenerationTps),
            of(row.tensor, MatrixFigure::GenerationTps),
            speedup(view, row, row.prompt_speedup.as_ref()),
            speedup(view, row, row.generation_speedup.as_ref()),
        ]
    };
    Table {
        id: format!("strategies-{place}"),
        caption: title(view, table),
        columns: [Column::left("Preset")].into_iter().chain(heads.map(Column::right)).collect(),
        rows: table.rows.iter().map(row).collect(),
        notes: Vec::new(),
    }
}

const SAME: &str = "one GPU: both are the same deployment, and what differs is chance";

/// Why a pair has no interval.
fn unknown(view: View<'_>, row: &StrategyRow) -> &'static str {
    let runs = [row.tensor, row.pipeline].map(|side| view.row(side?).map(|row| row.points.len()));
    let is_repeated = runs.into_iter().flatten().all(|runs| 1 < runs);
    if is_repeated { winners::NO_SPREAD } else { winners::ONE_RUN }
}

fn speedup(view: View<'_>, row: &StrategyRow, found: Option<&Speedup>) -> Cell {
    let Some(found) = found else { return missing("one side has errors or no result") };
    let reason = if row.same_deployment { SAME } else { unknown(view, row) };
    winners::share(found, row.same_deployment || found.interval.is_none(), reason)
}

fn chart(view: View<'_>, table: &StrategyTable, place: usize) -> Option<Chart> {
    told(table).next()?;
    let bar = |series: &str, row: &StrategyRow, found: Option<&Speedup>| Bar {
        series: series.to_owned(),
        value: found.map(|found| found.share * 100.0),
        interval: found
            .and_then(|found| found.interval)
            .map(|interval| (interval.low * 100.0, interval.high * 100.0)),
        hollow: row.same_deployment,
        failed: false,
        note: match found {
            None => Some("one side has errors or no result".to_owned()),
            Some(_) => row.same_deployment.then(|| SAME.to_owned()),
        },
    };
    let group = |row: &StrategyRow| BarGroup {
        label: view.preset(row.preset),
        bars: vec![
            bar("prompt", row, row.prompt_speedup.as_ref()),
            bar("generation", row, row.generation_speedup.as_ref()),
        ],
    };
    let has_interval = told(table).any(|found| found.interval.is_some());
    Some(Chart {
        id: format!("strategies-{place}-chart"),
        title: format!("Speed-up of tensor over pipeline parallel: {}", title(view, table)),
        finding: format!("Generation on several GPUs: {}.", span_words(table)),
        n: if has_interval {
            "The thin bars are 95 %; one that crosses zero leaves open which is faster. Outlines: one \
             GPU, where both are the same deployment."
        } else {
            "No interval is known. Outlines: one GPU, where both are the same \
             deployment."
        }
        .to_owned(),
        plot: Plot::Bars(Bars {
            y: Measure {
                label: "Tensor over pipeline".to_owned(),
                unit: "%".to_owned(),
                scale: ScaleKind::Linear,
            },
            groups: table.rows.iter().map(group).collect(),
        }),
    })
}
