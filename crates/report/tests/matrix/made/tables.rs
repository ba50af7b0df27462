//! What follows from the rows of a made-up matrix: sections, comparisons, loads, winners.

use super::{
    Certainty, Highest, Interval, Level, LoadTable, MatrixFigure, MatrixRow, MatrixSection,
    NonZeroU32, PRESETS, Plan, RowEnding, Speedup, Strategy, StrategyRow, StrategyTable, Winner,
};

fn mean(row: &MatrixRow, figure: MatrixFigure) -> Option<f64> {
    match figure {
        MatrixFigure::PromptTps => row.prompt_tps.mean,
        MatrixFigure::GenerationTps => row.generation_tps.mean,
        MatrixFigure::Latency => row.latency_s.mean,
        MatrixFigure::Ttft => row.ttft_ms.mean,
        MatrixFigure::Cost => row.cost_per_million.mean,
        MatrixFigure::Energy => row.energy_per_token_j.mean,
    }
}

const FIGURES: [MatrixFigure; 4] = [
    MatrixFigure::PromptTps,
    MatrixFigure::GenerationTps,
    MatrixFigure::Latency,
    MatrixFigure::Cost,
];

/// Clean rows, the best first.
fn ranked(rows: &[MatrixRow], places: &[u32], figure: MatrixFigure) -> Vec<(u32, f64)> {
    let clean = places.iter().filter(|place| rows[**place as usize].ending == RowEnding::Clean);
    let mut found: Vec<(u32, f64)> =
        clean.filter_map(|place| Some((*place, mean(&rows[*place as usize], figure)?))).collect();
    found.sort_by(|one, other| one.1.total_cmp(&other.1));
    if matches!(figure, MatrixFigure::PromptTps | MatrixFigure::GenerationTps) {
        found.reverse();
    }
    found
}

fn places(rows: &[MatrixRow], is: impl Fn(&MatrixRow) -> bool) -> Vec<u32> {
    (0_u32..).zip(rows).filter(|(_, row)| is(row)).map(|(place, _)| place).collect()
}

fn levels(plan: &Plan) -> Vec<Level> {
    let level = |level: &u32| Level::Concurrency(NonZeroU32::new(*level).unwrap());
    plan.levels.iter().map(level).collect()
}

pub(super) fn sections(plan: &Plan, rows: &[MatrixRow]) -> Vec<MatrixSection> {
    let mut sections = Vec::new();
    for context in &plan.contexts {
        for model in 0..u32::try_from(plan.models).unwrap() {
            for strategy in &plan.strategies {
                for level in levels(plan) {
                    let own = places(rows, |row| {
                        row.context == *context
                            && row.model == model
                            && row.strategy == *strategy
                            && row.level == level
                    });
                    let highest = FIGURES.into_iter().filter_map(|figure| {
                        let (row, value) = *ranked(rows, &own, figure).first()?;
                        Some(Highest { figure, row, value })
                    });
                    let of = |place: &u32| &rows[*place as usize];
                    let errors = own.iter().filter(|place| 0 < of(place).errors);
                    let is_failed =
                        |place: &&u32| matches!(of(place).ending, RowEnding::Failed { .. });
                    sections.push(MatrixSection {
                        context: *context,
                        model,
                        strategy: *strategy,
                        flags: Vec::new(),
                        level,
                        highest: highest.collect(),
                        errors: errors.map(|place| (*place, of(place).errors)).collect(),
                        failed: own.iter().filter(is_failed).copied().collect(),
                        rows: own.clone(),
                    });
                }
            }
        }
    }
    sections
}

pub(super) fn strategies(plan: &Plan, rows: &[MatrixRow]) -> Vec<StrategyTable> {
    let mut tables = Vec::new();
    for context in &plan.contexts {
        for model in 0..u32::try_from(plan.models).unwrap() {
            for level in levels(plan) {
                let pair = |preset: u32| {
                    let side = |strategy| {
                        places(rows, |row| {
                            row.context == *context
                                && row.model == model
                                && row.preset == preset
                                && row.level == level
                                && row.strategy == Some(strategy)
                        })
                    };
                    strategy_row(
                        plan,
                        rows,
                        preset,
                        (side(Strategy::Tensor)[0], side(Strategy::Pipeline)[0]),
                    )
                };
                tables.push(StrategyTable {
                    context: *context,
                    model,
                    flags: Vec::new(),
                    level,
                    rows: (0..u32::try_from(plan.presets).unwrap()).map(pair).collect(),
                });
            }
        }
    }
    tables
}

fn strategy_row(
    plan: &Plan,
    rows: &[MatrixRow],
    preset: u32,
    (tensor, pipeline): (u32, u32),
) -> StrategyRow {
    let of = |place: u32| &rows[place as usize];
    let clean = [tensor, pipeline].iter().all(|place| of(*place).ending == RowEnding::Clean);
    let speedup = |figure| {
        let share = mean(of(tensor), figure)? / mean(of(pipeline), figure)? - 1.0;
        let interval = Interval::new(share - 0.05, share + 0.05).filter(|_| 1 < plan.runs);
        Some(Speedup { share, interval }).filter(|_| clean)
    };
    StrategyRow {
        preset,
        tensor: Some(tensor),
        pipeline: Some(pipeline),
        same_deployment: PRESETS[preset as usize].1 == 1,
        prompt_speedup: speedup(MatrixFigure::PromptTps),
        generation_speedup: speedup(MatrixFigure::GenerationTps),
    }
}

pub(super) fn loads(plan: &Plan, rows: &[MatrixRow]) -> Vec<LoadTable> {
    let mut tables = Vec::new();
    if plan.levels.len() < 2 {
        return tables;
    }
    for context in &plan.contexts {
        for model in 0..u32::try_from(plan.models).unwrap() {
            for strategy in &plan.strategies {
                let of_preset = |preset: u32| {
                    let own = places(rows, |row| {
                        row.context == *context
                            && row.model == model
                            && row.preset == preset
                            && row.strategy == *strategy
                    });
                    (preset, own)
                };
                tables.push(LoadTable {
                    context: *context,
                    model,
                    strategy: *strategy,
                    flags: Vec::new(),
                    presets: (0..u32::try_from(plan.presets).unwrap()).map(of_preset).collect(),
                });
            }
        }
    }
    tables
}

pub(super) fn winners(plan: &Plan, rows: &[MatrixRow]) -> Vec<Winner> {
    let mut winners = Vec::new();
    for model in 0..u32::try_from(plan.models).unwrap() {
        for level in levels(plan) {
            for context in &plan.contexts {
                let own = places(rows, |row| {
                    row.model == model && row.level == level && row.context == *context
                });
                winners.extend(FIGURES.into_iter().filter_map(|figure| {
                    winner(plan, &ranked(rows, &own, figure), (figure, *context, model, level))
                }));
            }
        }
    }
    winners
}

fn winner(
    plan: &Plan,
    ranked: &[(u32, f64)],
    (figure, context, model, level): (MatrixFigure, Option<u32>, u32, Level),
) -> Option<Winner> {
    let (row, value) = *ranked.first()?;
    let next = ranked.get(1);
    let share = next.map(|next| (value / next.1 - 1.0).abs());
    let certainty = match (share, plan.runs) {
        (None, _) => Certainty::Alone,
        (Some(_), 1) => Certainty::OneRun,
        (Some(share), _) if share < 0.05 => Certainty::Undecided,
        (Some(_), _) => Certainty::Certain,
    };
    let interval = |share: f64| Interval::new(share - 0.04, share + 0.04).filter(|_| 1 < plan.runs);
    Some(Winner {
        figure,
        context,
        model,
        level,
        row,
        value,
        runner_up: next.map(|next| next.0),
        ahead: share.map(|share| Speedup { share, interval: interval(share) }),
        certainty,
    })
}
