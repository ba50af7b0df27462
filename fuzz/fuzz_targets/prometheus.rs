//! Entry point of `cargo fuzz run prometheus`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    fuzz_targets::prometheus(data);
});
