//! Entry point of `cargo fuzz run answer`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    fuzz_targets::answer(data);
});
