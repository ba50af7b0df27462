//! What the server and its GPUs report.

use super::{AIPERF, Better, Headline, Metric, Source, Unit, WITHIN_NONE};
use crate::record::Measured;

/// What these metrics have in common.
const TELEMETRY: Metric = Metric {
    name: "",
    key: "",
    title: "",
    definition: "",
    unit: Unit::TokensPerSecond,
    better: Better::Higher,
    headline: Headline::Never,
    formula: "",
    null_when: "",
    interval: WITHIN_NONE,
    elsewhere: &[],
    source: Source::Telemetry(Measured::gpu_power),
};

const MATRICES: &str = "deployment matrices";

const NO_ENERGY: &str = "nothing is known of the server's GPUs, none of those that were read did \
    anything, or they tell no energy and their power for less than nine tenths of the window";

/// Prompt TPS (server).
pub static SERVER_PROMPT_THROUGHPUT: Metric = Metric {
    name: "server_prompt_throughput",
    title: "Prompt TPS (server)",
    definition: "prompt tokens by the server's counter / time between its first and last scrape",
    formula: "what the server's counter of prompt tokens grew by, from the last scrape before the \
            load to the first after it / the time between these two; prompts from a cache count too",
    null_when: "the server has no such counter, it was not read on both sides of the load, or \
            several servers answered by turns",
    elsewhere: &[(
        MATRICES,
        "prompt TPS: the same difference over the time of polling, failed requests included",
    )],
    source: Source::Telemetry(Measured::server_prompt_throughput),
    ..TELEMETRY
};

/// Generation TPS (server).
pub static SERVER_GENERATION_THROUGHPUT: Metric = Metric {
    name: "server_generation_throughput",
    title: "Generation TPS (server)",
    definition: "generated tokens by the server's counter / the same time",
    formula: "what the server's counter of generated tokens grew by / the same time; what it wrote \
            for requests that failed, or for other clients, is in it",
    null_when: "the server has no such counter, it was not read on both sides of the load, or \
            several servers answered by turns",
    elsewhere: &[(
        MATRICES,
        "generation TPS: the same difference over the time of polling, so a slow drain lowers it",
    )],
    source: Source::Telemetry(Measured::server_generation_throughput),
    ..TELEMETRY
};

/// GPU power.
pub static GPU_POWER: Metric = Metric {
    name: "gpu_power",
    title: "GPU power",
    definition: "energy of the server's GPUs / window, all that were in use together",
    unit: Unit::Watts,
    better: Better::Neither,
    formula: "energy of all GPUs that were in use, over the window / window; energy by each \
            device's own counter, else as the area under its power with straight lines between looks",
    null_when: NO_ENERGY,
    elsewhere: &[(AIPERF, "the mean of the readings of each GPU, by its exporter")],
    source: Source::Telemetry(Measured::gpu_power),
    ..TELEMETRY
};

/// Energy per output token.
pub static ENERGY_PER_OUTPUT_TOKEN: Metric = Metric {
    name: "energy_per_output_token",
    title: "Energy per output token",
    definition: "energy of the server's GPUs over the window / output tokens of ok requests",
    unit: Unit::JoulesPerToken,
    better: Better::Lower,
    formula: "energy of all GPUs that were in use, over the window / output tokens of ok requests; \
            the energy of failed requests and of prompts is in it, that of the rest of the machine is \
            not",
    null_when: NO_ENERGY,
    source: Source::Telemetry(Measured::energy_per_output_token),
    ..TELEMETRY
};

/// Output tokens per joule.
pub static OUTPUT_TOKENS_PER_JOULE: Metric = Metric {
    name: "output_tokens_per_joule",
    title: "Output tokens per joule",
    definition: "the inverse: output tokens of ok requests / energy of the server's GPUs",
    unit: Unit::TokensPerJoule,
    formula: "output tokens of ok requests / energy of all GPUs that were in use, over the window",
    null_when: NO_ENERGY,
    source: Source::Telemetry(Measured::output_tokens_per_joule),
    ..TELEMETRY
};
