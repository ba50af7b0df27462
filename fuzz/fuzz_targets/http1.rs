//! Entry point of `cargo fuzz run http1`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    fuzz_targets::http1(data);
});
