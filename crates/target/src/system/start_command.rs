//! What a start command says of the layout.

/// GPUs that the model is spread over, by the flags of the engines that we know.
pub fn gpus_used(command: &str) -> Option<u32> {
    let words: Vec<&str> = command.split(|c: char| c.is_whitespace() || c == '=').collect();
    let after = |flags: &[&str]| {
        let place = words.iter().position(|word| flags.contains(word))?;
        let value = words[place + 1..].iter().find(|word| !word.is_empty())?;
        value.parse::<u32>().ok().filter(|count| 0 < *count)
    };
    let factors = [
        after(&["--tensor-parallel-size", "-tp", "--tp", "--tp-size", "--tp_size", "--num-shard"]),
        after(&["--pipeline-parallel-size", "-pp", "--pp", "--pp-size", "--pp_size"]),
        after(&["--data-parallel-size", "-dp", "--dp", "--dp-size"]),
    ];
    factors
        .iter()
        .any(Option::is_some)
        .then(|| factors.into_iter().flatten().fold(1, u32::saturating_mul))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_read_and_silence_is_none() {
        assert_eq!(gpus_used("vllm serve m --tensor-parallel-size 4 \\\n --port 1"), Some(4));
        assert_eq!(gpus_used("vllm serve m -tp=2 --pipeline-parallel-size=3"), Some(6));
        assert_eq!(gpus_used("vllm serve m"), None);
        assert_eq!(gpus_used("x --tp many"), None);
        assert_eq!(gpus_used("x --tp"), None);
    }
}
