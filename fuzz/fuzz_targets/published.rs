//! Entry point of `cargo fuzz run published`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    fuzz_targets::published(data);
});
