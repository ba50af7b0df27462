//! What each level of a sweep costs in power and energy, where the GPUs told it.

use inferometer_analysis::set::{ConditionSummary, LevelSummary};

use super::levels::{is_open, level_head, titled};
use crate::fmt::across;
use crate::table::Table;
use crate::terminal::Style;

const QUANTITIES: [&str; 3] = ["gpu_power", "energy_per_output_token", "output_tokens_per_joule"];

/// Empty where no level has a figure.
pub(super) fn energy(condition: &ConditionSummary, name: Option<&str>, style: Style) -> String {
    let known = |level: &LevelSummary| {
        QUANTITIES.iter().any(|name| level.quantity(name).is_some_and(|it| it.mean.is_some()))
    };
    if !condition.levels.iter().any(known) {
        return String::new();
    }
    let row = |level: &LevelSummary| {
        let quantities = QUANTITIES.iter().map(|name| across(level.quantity(name)));
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
