//! Flags of data that was not chosen. The other client takes them without a word.

use crate::arguments::ServeDataArguments;

/// One line for each flag that changes nothing with this data.
pub(super) fn found(said: &ServeDataArguments, name: &str) -> Vec<String> {
    let random = &["random"][..];
    let prefixes = &["prefix_repetition"][..];
    let traces = &["timed_trace"][..];
    let files = &["sharegpt", "custom"][..];
    let flags = [
        (said.input_len.is_some(), "input-len", random),
        (said.random_input_len.is_some(), "random-input-len", random),
        (said.random_output_len.is_some(), "random-output-len", random),
        (said.random_range_ratio.is_some(), "random-range-ratio", random),
        (said.random_prefix_len.is_some(), "random-prefix-len", random),
        (
            said.output_len.is_some(),
            "output-len",
            &["random", "sharegpt", "custom", "prefix_repetition"],
        ),
        (said.skip_chat_template, "skip-chat-template", &["custom"]),
        (said.disable_shuffle, "disable-shuffle", files),
        (said.custom_output_len.is_some(), "custom-output-len", &["custom"]),
        (said.sharegpt_output_len.is_some(), "sharegpt-output-len", &["sharegpt"]),
        (said.prefix_repetition_prefix_len.is_some(), "prefix-repetition-prefix-len", prefixes),
        (said.prefix_repetition_suffix_len.is_some(), "prefix-repetition-suffix-len", prefixes),
        (said.prefix_repetition_num_prefixes.is_some(), "prefix-repetition-num-prefixes", prefixes),
        (said.prefix_repetition_output_len.is_some(), "prefix-repetition-output-len", prefixes),
        (said.timed_trace_chunk_hash_size.is_some(), "timed-trace-chunk-hash-size", traces),
        (said.timed_trace_sec_multiplier.is_some(), "timed-trace-sec-multiplier", traces),
    ];
    let strays = flags.into_iter().filter(|(is_set, _, of)| *is_set && !of.contains(&name));
    strays.map(|(_, flag, _)| format!("--{flag} changes nothing with {name} data")).collect()
}
