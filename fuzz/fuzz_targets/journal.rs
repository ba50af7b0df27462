//! Entry point of `cargo fuzz run journal`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    fuzz_targets::journal(data);
});
