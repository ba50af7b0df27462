//! Who wins how surely, what failed, and what the whole is worth.

use inferometer_model::deployment::{Departure, DepartureEnding};
use inferometer_model::spec::{FixedPrompt, Lengths, Source};

use super::*;
use crate::judge::Severity;
use crate::judge::Warning;
use crate::statistics::draws::Draws;

fn certainty(made: &Made) -> Certainty {
    winner(&made.summary(), MatrixFigure::GenerationTps).certainty
}

#[test]
fn a_winner_is_certain_when_every_other_is_behind_by_more_than_chance() {
    let mut made = Made::new();
    made.measured("gpu-small", Strategy::Tensor, &[600.0, 602.0, 598.0, 601.0, 599.0]);
    made.measured("gpu-medium", Strategy::Tensor, &[550.0, 552.0, 548.0, 551.0, 549.0]);
    assert_eq!(certainty(&made), Certainty::Certain);
    let found = winner(&made.summary(), MatrixFigure::GenerationTps).clone();
    let ahead = found.ahead.unwrap();
    assert!((ahead.share - 50.0 / 550.0).abs() < 1e-9);
    assert!(ahead.interval.unwrap().contains(ahead.share) && 0.0 < ahead.interval.unwrap().low);
    // A third that might be faster, though its mean is far below.
    made.measured("gpu-large", Strategy::Tensor, &[100.0, 900.0, 200.0, 800.0, 500.0]);
    assert_eq!(certainty(&made), Certainty::Undecided);
}

#[test]
fn a_narrow_lead_that_convinces_alone_is_not_enough_among_many_questions() {
    let question = |made: &mut Made, context: u32| {
        for (preset, runs) in
            [("gpu-small", [104.0, 102.0, 103.5]), ("gpu-medium", [100.0, 99.0, 101.0])]
        {
            let cell = made.cell(preset, 0, context, Strategy::Tensor);
            for generation in runs {
                made.ran(cell, at_once(10), run([40.0, generation, 7.0, 60.0, 5.0], 0));
            }
        }
    };
    let mut made = Made::new();
    question(&mut made, 2_048);
    let alone = winner(&made.summary(), MatrixFigure::GenerationTps).clone();
    assert_eq!(alone.certainty, Certainty::Certain, "{alone:?}");
    for context in 1..12 {
        question(&mut made, 2_048 + context);
    }
    let among = winner(&made.summary(), MatrixFigure::GenerationTps).clone();
    assert_eq!((among.certainty, among.ahead), (Certainty::Undecided, alone.ahead));
}

#[test]
fn one_run_and_runs_without_spread_are_told_apart_and_neither_is_certain() {
    let mut made = Made::new();
    made.measured("gpu-small", Strategy::Tensor, &[600.0]);
    made.measured("gpu-medium", Strategy::Tensor, &[300.0, 301.0]);
    assert_eq!(certainty(&made), Certainty::OneRun);
    let mut made = Made::new();
    made.measured("gpu-small", Strategy::Tensor, &[600.0, 600.0]);
    made.measured("gpu-medium", Strategy::Tensor, &[300.0, 300.0]);
    let matrix = made.summary();
    for found in &matrix.winners {
        assert_eq!(found.certainty, Certainty::NoSpread, "{found:?}");
        assert!(found.ahead.as_ref().is_none_or(|it| it.interval.is_none()), "{found:?}");
    }
    // Rounding in the last digit is no spread.
    let mut made = Made::new();
    let last = 600.0_f64.next_up();
    made.measured("gpu-small", Strategy::Tensor, &[600.0, last, 600.0]);
    made.measured("gpu-medium", Strategy::Tensor, &[600.0, 600.0, 600.0]);
    made.measured("gpu-large", Strategy::Tensor, &[300.0, 300.0_f64.next_up(), 300.0]);
    assert_eq!(certainty(&made), Certainty::NoSpread);
    // A third that was measured once leaves more open.
    made.measured("gpu-xlarge", Strategy::Tensor, &[100.0]);
    assert_eq!(certainty(&made), Certainty::OneRun);
}

#[test]
fn strategies_of_runs_without_spread_have_no_interval() {
    let mut made = Made::new();
    made.measured("H100X2", Strategy::Tensor, &[500.0, 500.0]);
    made.measured("H100X2", Strategy::Pipeline, &[400.0, 400.0]);
    let found = made.summary().strategies[0].rows[0].generation_speedup.clone().unwrap();
    assert_eq!((found.share, found.interval), (0.25, None));
}

#[test]
fn strategies_on_one_gpu_are_the_same_deployment() {
    let mut made = Made::new();
    made.measured("gpu-small", Strategy::Tensor, &[600.0, 601.0]);
    assert_eq!(certainty(&made), Certainty::Alone);
    made.measured("gpu-small", Strategy::Pipeline, &[700.0, 701.0]);
    let matrix = made.summary();
    let found = winner(&matrix, MatrixFigure::GenerationTps);
    // The tensor row stands for both, though the other was faster by chance.
    assert_eq!((found.row, found.runner_up, &found.ahead), (0, None, &None));
    assert_eq!(found.certainty, Certainty::Alone);
    assert!(matrix.strategies[0].rows[0].same_deployment);
    // On two they are two.
    made.measured("gpu-medium", Strategy::Tensor, &[400.0, 402.0]);
    made.measured("gpu-medium", Strategy::Pipeline, &[450.0, 452.0]);
    let matrix = made.summary();
    let found = winner(&matrix, MatrixFigure::GenerationTps);
    assert_eq!(found.runner_up, Some(3));
    assert!(!matrix.strategies[0].rows[1].same_deployment);
}

#[test]
fn one_gpu_is_not_the_best_of_pipeline_parallel_where_its_tensor_twin_is_there() {
    let mut made = Made::new();
    made.measured("gpu-small", Strategy::Pipeline, &[900.0]);
    made.measured("H100X2", Strategy::Pipeline, &[400.0]);
    let best = |made: &Made, strategy: Strategy| {
        let matrix = made.summary();
        let section = matrix.sections.iter().find(|it| it.strategy == Some(strategy)).unwrap();
        let is_it = |found: &&Highest| found.figure == MatrixFigure::GenerationTps;
        let highest = section.highest.iter().find(is_it).unwrap();
        assert_eq!(section.rows.len(), 2, "every row stays in its section");
        preset_of(&matrix, highest.row).to_owned()
    };
    assert_eq!(best(&made, Strategy::Pipeline), "gpu-small");
    made.measured("gpu-small", Strategy::Tensor, &[890.0]);
    made.measured("H100X2", Strategy::Tensor, &[500.0]);
    assert_eq!(best(&made, Strategy::Pipeline), "H100X2");
    assert_eq!(best(&made, Strategy::Tensor), "gpu-small");
    let matrix = made.summary();
    let found = winner(&matrix, MatrixFigure::GenerationTps);
    assert_eq!((found.row, found.value, found.runner_up), (2, 890.0, Some(3)));
}

#[test]
fn one_price_among_others_without_is_no_contest() {
    let mut made = Made::new();
    made.matrix.presets[0].price_per_hour = Some(36.0);
    made.measured("gpu-small", Strategy::Tensor, &[100.0, 101.0, 99.0]);
    made.measured("gpu-small", Strategy::Pipeline, &[102.0, 101.0, 103.0]);
    made.measured("gpu-medium", Strategy::Tensor, &[300.0, 301.0, 302.0]);
    let matrix = made.summary();
    let cost = winner(&matrix, MatrixFigure::Cost);
    assert_eq!((cost.certainty, cost.runner_up), (Certainty::Alone, None));
    assert_eq!((preset_of(&matrix, cost.row), &cost.ahead), ("gpu-small", &None));
    assert_eq!(certainty(&made), Certainty::Certain);
}

#[test]
fn a_row_that_failed_every_request_has_no_speed_and_says_why() {
    let mut made = Made::new();
    let cell = made.cell("gpu-small", 0, 2_048, Strategy::Tensor);
    made.ran(cell, at_once(10), run([0.0, 0.0, 7.0, 60.0, 5.0], 100));
    let matrix = made.summary();
    let row = &matrix.rows[0];
    assert_eq!(row.ending, RowEnding::WithErrors);
    let speeds =
        [&row.prompt_tps, &row.generation_tps, &row.client_prompt_tps, &row.client_generation_tps];
    for found in speeds {
        assert_eq!((found.mean, found.n), (None, 0));
        assert_eq!(found.reason.as_deref(), Some("no request succeeded"));
    }
}

/// Eight equal presets, five runs each, twelve questions: how often a matrix calls any of them best.
#[test]
fn equal_deployments_are_seldom_called_certain() {
    const MATRICES: u64 = 400;
    let mut made = Made::new();
    for context in 0..12 {
        for (preset, _) in PRESETS {
            made.cell(preset, 0, context, Strategy::Tensor);
        }
    }
    let mut rows = made.summary().rows;
    let mut alarms = 0;
    for number in 0..MATRICES {
        let mut draws = Draws::new(23, number);
        for row in &mut rows {
            let runs: Vec<f64> = (0..5).map(|_| 500.0 + 10.0 * draws.normal()).collect();
            row.generation_tps = crate::set::fixture::across(&runs);
            (row.ending, row.verdict) = (RowEnding::Clean, Some(Verdict::Valid));
        }
        let (levels, presets) = (&made.matrix.levels, &made.matrix.presets);
        let all = Table { rows: &rows, levels, presets, tps_by: TpsBy::Server };
        let winners = super::super::winners(all);
        assert_eq!(winners.len(), 12);
        alarms += u64::from(winners.iter().any(|it| it.certainty == Certainty::Certain));
    }
    assert!(alarms * 40 <= MATRICES, "{alarms} of {MATRICES}");
}

#[test]
fn what_failed_is_a_row_with_its_reason_and_without_figures() {
    let mut made = Made::new();
    made.runs = 2;
    made.measured("gpu-small", Strategy::Tensor, &[600.0, 601.0]);
    let unfit = made.cell("gpu-medium", 0, 2_048, Strategy::Tensor);
    made.failed(unfit, DeploymentStage::Start, Some(LikelyCause::OutOfMemory));
    made.failed(unfit, DeploymentStage::Start, Some(LikelyCause::OutOfMemory));
    let partly = made.measured("gpu-large", Strategy::Tensor, &[900.0]);
    made.failed(partly, DeploymentStage::Died, None);
    made.cell("gpu-xlarge", 0, 2_048, Strategy::Tensor);
    let again = made.cell("mi210x1", 0, 2_048, Strategy::Tensor);
    made.failed(again, DeploymentStage::Ready, None);
    // The same point, measured after all.
    let point = made.failures.last().unwrap().point;
    let summary = run([40.0, 100.0, 7.0, 60.0, 5.0], 0);
    made.results.push(PointResult { point, summary });
    let matrix = made.summary();
    let [small, medium, large, xlarge, mi210] = matrix.rows.as_slice() else { panic!("five") };
    assert_eq!((&small.ending, small.points.len()), (&RowEnding::Clean, 2));
    assert!(medium.is_failed() && medium.verdict.is_none());
    assert_eq!((medium.generation_tps.mean, medium.failed_points.len()), (None, 2));
    assert!(medium.generation_tps.reason.is_some());
    assert!(matches!(&large.ending, RowEnding::Partly { failure }
        if failure.stage == DeploymentStage::Died));
    assert_eq!((large.generation_tps.mean, large.may_win()), (Some(900.0), false));
    assert_eq!(xlarge.ending, RowEnding::Missing);
    assert_eq!((&mi210.ending, mi210.failed_points.len()), (&RowEnding::Clean, 0));
    assert_eq!(matrix.sections[0].failed, [1]);
    assert_eq!(preset_of(&matrix, winner(&matrix, MatrixFigure::GenerationTps).row), "gpu-small");
}

fn keys(set: &SetSummary) -> Vec<(&str, Severity)> {
    let own = |notice: &&Warning| notice.key.starts_with("cells-") || notice.key == "one-run";
    set.warnings.iter().filter(own).map(|it| (it.key.as_str(), it.severity)).collect()
}

#[test]
fn a_cell_that_does_not_fit_is_a_result_and_other_failures_are_reservations() {
    let mut made = Made::new();
    made.measured("gpu-small", Strategy::Tensor, &[600.0]);
    let unfit = made.cell("gpu-medium", 0, 2_048, Strategy::Tensor);
    made.failed(unfit, DeploymentStage::Ended, Some(LikelyCause::OutOfMemory));
    let set = made.set();
    assert_eq!(keys(&set), [("cells-unfit", Severity::Note), ("one-run", Severity::Note)]);
    assert_eq!(set.verdict, Verdict::Valid, "{:?}", set.warnings);
    let died = made.cell("gpu-large", 0, 2_048, Strategy::Tensor);
    made.failed(died, DeploymentStage::Died, Some(LikelyCause::OutOfMemory));
    let set = made.set();
    assert_eq!(keys(&set)[0], ("cells-failed", Severity::Degraded));
    assert_eq!(set.verdict, Verdict::Degraded);
    let text = &set.warnings.iter().find(|it| it.key == "cells-failed").unwrap().text;
    assert!(text.contains("1 of 3 cells") && text.contains("gpu-large 0 (died"), "{text}");
}

#[test]
fn a_model_that_cannot_be_divided_so_is_a_result_too() {
    let mut made = Made::new();
    made.measured("gpu-small", Strategy::Tensor, &[600.0]);
    let undivided = made.cell("gpu-xlarge", 0, 2_048, Strategy::Tensor);
    made.failed(undivided, DeploymentStage::Start, Some(LikelyCause::CannotSpread));
    let set = made.set();
    assert_eq!(keys(&set), [("cells-not-divided", Severity::Note), ("one-run", Severity::Note)]);
    assert_eq!(set.verdict, Verdict::Valid, "{:?}", set.warnings);
}

#[test]
fn a_cell_that_fits_at_times_is_a_reservation() {
    let mut made = Made::new();
    made.runs = 3;
    let partly = made.measured("gpu-small", Strategy::Tensor, &[600.0, 601.0]);
    made.failed(partly, DeploymentStage::Start, Some(LikelyCause::OutOfMemory));
    assert_eq!(keys(&made.set()), [("cells-failed", Severity::Degraded)]);
    // One that ran out of memory and was lost by something else too.
    let mut made = Made::new();
    made.runs = 2;
    made.measured("gpu-small", Strategy::Tensor, &[600.0, 601.0]);
    let lost = made.cell("gpu-medium", 0, 2_048, Strategy::Tensor);
    made.failed(lost, DeploymentStage::Start, Some(LikelyCause::OutOfMemory));
    made.failed(lost, DeploymentStage::Ready, None);
    assert_eq!(keys(&made.set()), [("cells-failed", Severity::Degraded)]);
    let stage = made.summary().rows[1].ending.failure().map(|failure| failure.stage);
    assert_eq!(stage, Some(DeploymentStage::Ready));
}

#[test]
fn a_matrix_says_that_each_server_is_new_and_keeps_few_quantities_of_a_cell() {
    let mut made = Made::new();
    made.measured("gpu-small", Strategy::Tensor, &[600.0]);
    let set = made.set();
    assert!(set.asked.restarted);
    let quantities = &set.conditions[0].levels[0].quantities;
    assert!(quantities.contains_key("output_throughput"));
    assert!(quantities.values().all(|across| across.mean.is_some()));
    // No goal was set, and a matrix does not say so once more for each cell.
    let kept = ["e2e.p99", "e2e.max", "send_lag.mean", "attainment"];
    assert_eq!(kept.map(|name| quantities.contains_key(name)), [true, false, false, false]);
    let bytes = serde_json::to_vec_pretty(&set.conditions[0]).unwrap().len();
    assert!(bytes < 15_000, "{bytes} bytes for each cell");
}

#[test]
fn a_matrix_on_the_embedded_engine_says_so_and_how_fast_it_was_run() {
    let mut made = Made::new();
    made.measured("gpu-small", Strategy::Tensor, &[600.0]);
    let run = &mut made.results[0].summary.run;
    (run.embedded, run.engine_speed) = (true, Some(20.0));
    let subject = made.set().conditions[0].subject.clone().unwrap();
    assert_eq!((subject.embedded, subject.engine_speed), (true, Some(20.0)));
}

#[test]
fn a_matrix_in_which_everything_failed_is_invalid() {
    let mut made = Made::new();
    for (preset, _) in PRESETS {
        let cell = made.cell(preset, 0, 2_048, Strategy::Tensor);
        made.failed(cell, DeploymentStage::Start, None);
    }
    let set = made.set();
    assert_eq!(set.verdict, Verdict::Invalid);
    let text = &set.warnings.iter().find(|it| it.key == "cells-failed").unwrap().text;
    assert!(text.contains("8 of 8 cells") && text.ends_with("and 4 more"), "{text}");
    assert!(set.matrix.unwrap().winners.is_empty());
}

#[test]
fn errors_and_missing_cells_are_told_once_however_many() {
    let mut made = Made::new();
    for section in &SECTIONS {
        for line in section.lines {
            made.line(section.model, section.context, line);
        }
    }
    made.cell("gpu-small", 3, 2_048, Strategy::Tensor);
    let set = made.set();
    let expected = [
        ("cells-missing", Severity::Degraded),
        ("cells-with-errors", Severity::Degraded),
        ("one-run", Severity::Note),
    ];
    assert_eq!(keys(&set), expected);
    assert_eq!(set.verdict, Verdict::Degraded);
    assert!(set.warnings.len() < 12, "{:?}", set.warnings);
    assert!(set.warnings.iter().all(|notice| !notice.remedy.is_empty()));
    let errors = set.warnings.iter().find(|it| it.key == "cells-with-errors").unwrap();
    assert!(errors.remedy.contains("matrix --resume SET --retry-failed"), "{}", errors.remedy);
    let again = SetSummary::from_json_bytes(&set.to_json_bytes()).unwrap();
    assert_eq!(again.matrix, set.matrix);
}

#[test]
fn one_prompt_for_all_is_told_where_the_cache_may_answer_it() {
    let mut made = Made::new();
    made.measured("gpu-small", Strategy::Tensor, &[600.0]);
    let told = |made: &Made, is_fixed: bool| {
        let mut manifest = made.manifest();
        if is_fixed {
            let (prompt, output) = ("Say something.".to_owned(), Lengths::Fixed(9));
            manifest.study.conditions[0].spec.workload.source =
                Source::Fixed(FixedPrompt { prompt, output });
        }
        let set = SetSummary::summarize_matrix(&manifest, &made.results, &[], &[]);
        set.warnings.into_iter().find(|notice| notice.key == "same-prompt").map(|it| it.text)
    };
    let share = |made: &mut Made, share: Option<f64>| {
        let run = &mut made.results[0].summary;
        run.workload.audit.cache.share = share;
        run.server.as_mut().unwrap().prefix_hit_share = None;
    };
    share(&mut made, Some(0.8));
    assert_eq!(told(&made, false), None);
    assert!(told(&made, true).unwrap().contains("up to 80 %"));
    share(&mut made, Some(0.0));
    assert_eq!(told(&made, true), None);
    share(&mut made, None);
    assert!(told(&made, true).unwrap().contains("do not report"));
}

#[test]
fn a_server_that_leaves_something_behind_degrades_the_matrix() {
    let mut made = Made::new();
    made.measured("gpu-small", Strategy::Tensor, &[600.0]);
    let gone = Departure {
        ending: DepartureEnding::OnRequest,
        took: Duration::from_secs(1),
        port_closed: true,
        left: Vec::new(),
        gpu_memory: Some((1 << 30, (1 << 30) + 1)),
        troubles: Vec::new(),
    };
    let of = |departure: Departure| {
        let record = DeploymentRecord {
            condition: 0,
            repetition: 0,
            facts: None,
            departure: Some(departure),
            drained_after_s: None,
            log: None,
        };
        SetSummary::summarize_matrix(&made.manifest(), &made.results, &[], &[record]).verdict
    };
    assert_eq!(of(gone.clone()), Verdict::Valid);
    assert_eq!(of(Departure { port_closed: false, ..gone.clone() }), Verdict::Degraded);
    let left = vec![(7, "server".to_owned())];
    assert_eq!(of(Departure { left, ..gone.clone() }), Verdict::Degraded);
    assert_eq!(of(Departure { gpu_memory: Some((0, 9 << 30)), ..gone }), Verdict::Degraded);
}
