//! The other client takes `--num_prompts` for `--num-prompts`, and scripts rely on it.

use std::ffi::OsString;

/// The same command line; behind `bench`, flags have dashes where they were typed with underscores.
pub(crate) fn with_dashes(typed: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut typed: Vec<OsString> = typed.collect();
    if typed.get(1).is_some_and(|command| command == "bench") {
        typed.iter_mut().skip(2).for_each(dash);
    }
    typed
}

fn dash(argument: &mut OsString) {
    let Some(flag) = argument.to_str().and_then(|text| text.strip_prefix("--")) else { return };
    let (name, value) =
        flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if !is_name {
        return;
    }
    let name = name.replace('_', "-");
    let value = value.map_or_else(String::new, |value| format!("={value}"));
    *argument = format!("--{name}{value}").into();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dashed(words: &str) -> String {
        let typed = words.split(' ').map(OsString::from);
        let dashed = with_dashes(typed).into_iter().map(|word| word.into_string().unwrap());
        dashed.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn names_get_dashes_and_values_stay() {
        assert_eq!(
            dashed("i bench serve --num_prompts 3 --dataset_name=prefix_repetition my_model"),
            "i bench serve --num-prompts 3 --dataset-name=prefix_repetition my_model"
        );
        assert_eq!(dashed("i run --num_prompts 3"), "i run --num_prompts 3");
    }
}
