//! Entry point of `cargo fuzz run server`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    fuzz_targets::server(data);
});
