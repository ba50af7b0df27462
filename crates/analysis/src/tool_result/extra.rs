//! Figures that only `vllm bench serve` has, by the keys of its JSON and the labels of its block.
//!
//! The reader and the printer of that block share this table, so that what one knows, the other
//! does too.

/// One figure of a block, and how it is printed there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtraFigure {
    pub key: &'static str,
    /// Without its colon.
    pub label: &'static str,
    pub printed: Printed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Printed {
    /// With two decimals.
    Decimal,
    Whole,
}

/// Tokens of one prompt and of one answer, where a table has them instead of totals.
pub const INPUT_LENGTH: &str = "input_length";
pub const OUTPUT_LENGTH: &str = "output_length";
/// Output tokens per second of one request, over its own time.
pub const USER_THROUGHPUT: &str = "user_output_throughput";
/// The key of the hardware in a result's metadata.
pub const HARDWARE: &str = "hardware";

/// Instead of generated tokens, where nothing is generated. The count has no line in a block.
pub const INPUTS: ExtraFigure = whole("total_input_sequences", "Total input sequences");
/// Above the latencies, between the other figures.
pub const INPUT_THROUGHPUT: ExtraFigure =
    decimal("input_sequence_throughput", "Input throughput (inputs/s)");
pub const REAL_TIME_FACTOR: ExtraFigure = decimal("rtfx", "RTFx (Inverse Real-Time Factor)");

/// Small requests that were sent beside the load.
pub const PROBES: [ExtraFigure; 5] = [
    whole("probe_completed", "Probe requests completed"),
    whole("probe_failed", "Probe requests failed"),
    decimal("probe_median_e2el_ms", "Median probe E2EL (ms)"),
    decimal("probe_p99_e2el_ms", "P99 probe E2EL (ms)"),
    decimal("probe_max_e2el_ms", "Max probe E2EL (ms)"),
];

pub const DIFFUSION: [ExtraFigure; 6] = [
    decimal("diffusion_committed_throughput", "Committed throughput (tok/s)"),
    decimal("diffusion_steps_per_canvas", "Denoising steps per canvas"),
    decimal("diffusion_committed_per_step", "Committed per denoising step"),
    whole("diffusion_committed_tokens", "Committed tokens"),
    whole("diffusion_denoising_steps", "Denoising steps"),
    whole("diffusion_canvas_positions", "Canvas positions evaluated"),
];

pub const SPECULATION: [ExtraFigure; 5] = [
    decimal("spec_decode_acceptance_rate", "Acceptance rate (%)"),
    decimal("spec_decode_acceptance_length", "Acceptance length"),
    whole("spec_decode_num_drafts", "Drafts"),
    whole("spec_decode_draft_tokens", "Draft tokens"),
    whole("spec_decode_accepted_tokens", "Accepted tokens"),
];

/// A list in the JSON: each position is one figure here, a share that the block prints in per cent.
pub const POSITIONS: &str = "spec_decode_per_position_acceptance_rates";
/// Stands above the positions, without a value.
pub const POSITIONS_LABEL: &str = "Per-position acceptance (%)";

/// Statistics of the wait for the client's own cap, by the end of their keys and labels.
pub const CLIENT_QUEUE: (&str, &str) = ("client_queue_time_ms", "Client Queue Time (ms)");

/// The key of the share of drafts that were accepted at a position, from zero.
pub fn position_key(position: usize) -> String {
    format!("{POSITIONS}.{position}")
}

/// All but the positions and the statistics.
pub fn known() -> impl Iterator<Item = ExtraFigure> {
    [INPUTS, INPUT_THROUGHPUT, REAL_TIME_FACTOR]
        .into_iter()
        .chain(PROBES)
        .chain(DIFFUSION)
        .chain(SPECULATION)
}

const fn decimal(key: &'static str, label: &'static str) -> ExtraFigure {
    ExtraFigure { key, label, printed: Printed::Decimal }
}

const fn whole(key: &'static str, label: &'static str) -> ExtraFigure {
    ExtraFigure { key, label, printed: Printed::Whole }
}
