//! Entry point of `cargo fuzz run threshold`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    fuzz_targets::threshold(data);
});
