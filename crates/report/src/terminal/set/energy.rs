//! What each level of a sweep costs in power and energy, where the GPUs told it.

use inferometer_analysis::set::{ConditionSummary, LevelSummary};
use inferometer_analysis::{Metric, metric};

use super::levels::{is_open, level_head, titled};
use crate::fmt::across;
use crate::table::Table;
use crate::terminal::Style;

static QUANTITIES: [&Metric; 3] =
    [&metric::GPU_POWER, &metric::ENERGY_PER_OUTPUT_TOKEN, &metric::OUTPUT_TOKENS_PER_JOULE];

/// Empty where no level has a figure.
pub(super) fn energy(condition: &ConditionSummary, name: Option<&str>, style: Style) -> String {
    let known = |level: &LevelSummary| {
        QUANTITIES.iter().any(|metric| level.quantity(*metric).is_some_and(|it| it.mean.is_some()))
    };
    if !condition.levels.iter().any(known) {
        return String::new();
    }
    let row = |level: &LevelSummary| {
        let quantities = QUANTITIES.iter().map(|metric| across(level.quantity(*metric)));
        [crate::fmt::level(level.level)].into_iter().chain(quantities).collect()
    };
    let table = Table {
        title: titled(name, "GPU power and energy"),
        heads: vec![level_head(is_open(condition)), "power (W)", "J per token", "tokens per J"],
        rows: condition.levels.iter().map(row).collect(),
        remarks: vec![
            "output tokens of ok requests; the GPUs that were in use, and nothing else".to_owned(),
        ],
    };
    table.to_terminal(style)
}
