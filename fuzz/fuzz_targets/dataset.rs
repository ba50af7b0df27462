//! Entry point of `cargo fuzz run dataset`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    fuzz_targets::dataset(data);
});
