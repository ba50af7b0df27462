//! Entry point of `cargo fuzz run sse`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    fuzz_targets::sse(data);
});
