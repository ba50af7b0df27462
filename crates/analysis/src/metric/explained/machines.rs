//! The words of what the server and its GPUs tell.

use super::{AIPERF, Explained, WITHIN_NONE};

const MATRICES: &str = "deployment matrices";

const NO_ENERGY: &str = "nothing is known of the server's GPUs, none of those that were read did \
    anything, or they tell no energy and their power for less than nine tenths of the window";

pub(super) static EXPLAINED: &[Explained] = &[
    Explained {
        metric: "server_prompt_throughput",
        formula: "what the server's counter of prompt tokens grew by, from the last scrape before the \
            load to the first after it / the time between these two; prompts from a cache count too",
        null_when: "the server has no such counter, it was not read on both sides of the load, or \
            several servers answered by turns",
        doubt: WITHIN_NONE,
        elsewhere: &[(
            MATRICES,
            "prompt TPS: the same difference over the time of polling, failed requests included",
        )],
    },
    Explained {
        metric: "server_generation_throughput",
        formula: "what the server's counter of generated tokens grew by / the same time; what it wrote \
            for requests that failed, or for other clients, is in it",
        null_when: "the server has no such counter, it was not read on both sides of the load, or \
            several servers answered by turns",
        doubt: WITHIN_NONE,
        elsewhere: &[(
            MATRICES,
            "generation TPS: the same difference over the time of polling, so a slow drain lowers it",
        )],
    },
    Explained {
        metric: "gpu_power",
        formula: "energy of all GPUs that were in use, over the window / window; energy by each \
            device's own counter, else as the area under its power with straight lines between looks",
        null_when: NO_ENERGY,
        doubt: WITHIN_NONE,
        elsewhere: &[(AIPERF, "the mean of the readings of each GPU, by its exporter")],
    },
    Explained {
        metric: "energy_per_output_token",
        formula: "energy of all GPUs that were in use, over the window / output tokens of ok requests; \
            the energy of failed requests and of prompts is in it, that of the rest of the machine is \
            not",
        null_when: NO_ENERGY,
        doubt: WITHIN_NONE,
        elsewhere: &[],
    },
    Explained {
        metric: "output_tokens_per_joule",
        formula: "output tokens of ok requests / energy of all GPUs that were in use, over the window",
        null_when: NO_ENERGY,
        doubt: WITHIN_NONE,
        elsewhere: &[],
    },
];
