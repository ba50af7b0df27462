//! Entry point of `cargo fuzz run claim`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    fuzz_targets::claim(data);
});
