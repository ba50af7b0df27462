//! Entry point of `cargo fuzz run tokenizer`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    fuzz_targets::tokenizer(data);
});
