//! Entry point of `cargo fuzz run sessions`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    fuzz_targets::sessions(data);
});
