//! Entry point of `cargo fuzz run experiment`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    fuzz_targets::experiment(data);
});
