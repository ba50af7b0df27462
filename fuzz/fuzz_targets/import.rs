//! Entry point of `cargo fuzz run import`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    fuzz_targets::import(data);
});
