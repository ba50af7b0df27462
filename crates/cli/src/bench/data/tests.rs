//! Data sets of the other client, as workloads of ours.

use clap::Parser;

use super::*;

#[derive(Parser)]
#[command(allow_negative_numbers = true)]
struct Typed {
    #[command(flatten)]
    data: ServeDataArguments,
}

const BESIDE: Context =
    Context { api: Api::Completions, has_tokenizer: true, requests: 1000, self_timed: None };

#[track_caller]
fn data(typed: &str, beside: Context) -> Result<Data, String> {
    let words = std::iter::once("bench").chain(typed.split_whitespace());
    let said = Typed::try_parse_from(words).unwrap().data;
    Data::from_arguments(&said, beside).map_err(|failure| format!("{failure:?}"))
}

fn written(lengths: Option<Lengths>) -> String {
    lengths.unwrap().to_string()
}

#[test]
fn random_is_drawn_as_there_and_has_its_defaults() {
    let found = data("", BESIDE).unwrap();
    assert!(found.goes_on && !found.recorded && found.notes.is_empty());
    assert_eq!(found.source.source.unwrap(), SourceName::VllmRandom);
    assert_eq!(written(found.source.input_tokens), "1024");
    assert_eq!(written(found.source.output_tokens), "128");
    let ratio = r#"--random-range-ratio {"input":0.25,"output":0.5} --input-len 64"#;
    let found = data(ratio, BESIDE).unwrap().source;
    assert_eq!(found.input_tokens.unwrap(), Lengths::Around { mean: 64, share: 0.25 });
    assert_eq!(found.output_tokens.unwrap(), Lengths::Around { mean: 128, share: 0.5 });
    for wrong in ["1", "-0.1", "x", "nan"] {
        let typed = format!("--random-range-ratio={wrong}");
        assert!(data(&typed, BESIDE).unwrap_err().contains("range-ratio"), "{wrong}");
    }
}

#[test]
fn without_a_tokenizer_our_words_are_as_long() {
    let beside = Context { has_tokenizer: false, ..BESIDE };
    let typed = "--random-prefix-len 100 --random-input-len 300 --random-range-ratio 0.2";
    let found = data(typed, beside).unwrap();
    assert!(found.source.source.is_none() && found.notes.len() == 1);
    let around = found.source.input_tokens.unwrap();
    assert_eq!((around.least(), around.most()), (340, 460));
}

#[test]
fn prefixes_share_the_requests() {
    let beside = Context { requests: 25, ..BESIDE };
    let none = "--dataset-name prefix_repetition --prefix-repetition-num-prefixes 0";
    assert!(data(none, beside).unwrap_err().contains("above 0"));
    let found = data("--dataset-name prefix_repetition", beside).unwrap();
    assert_eq!(found.requests, Some(20));
    assert_eq!(written(found.source.input_tokens), "512");
    assert_eq!((found.source.prefix_tokens, found.source.prefixes), (Some(256), Some(10)));
    let few = Context { requests: 9, ..BESIDE };
    assert!(data("--dataset-name prefix_repetition", few).unwrap_err().contains("fewer"));
}

#[test]
fn custom_prompts_are_never_put_into_a_template_here() {
    let file = "--dataset-name custom --dataset-path d.jsonl";
    assert!(data(file, BESIDE).unwrap_err().contains("--skip-chat-template"));
    let raw = data(&format!("{file} --skip-chat-template"), BESIDE).unwrap();
    assert_eq!(written(raw.source.output_tokens), "256");
    let chat = Context { api: Api::Chat, ..BESIDE };
    let templated = data(&format!("{file} --custom-output-len -1"), chat).unwrap();
    assert!(templated.source.output_tokens.is_none() && templated.notes[0].contains("once"));
    assert!(data("--dataset-name custom", chat).unwrap_err().contains("--dataset-path"));
}

#[test]
fn traces_keep_their_moments_unless_told_otherwise() {
    let file = "--dataset-name timed_trace --dataset-path t.jsonl";
    let found = data(file, BESIDE).unwrap();
    assert!(found.recorded && found.goes_on);
    assert_eq!(found.source.trace_kind.unwrap(), TraceKind::Bailian);
    let mooncake =
        format!("{file} --timed-trace-chunk-hash-size 512 --timed-trace-sec-multiplier 0.001");
    let untimed = Context { self_timed: Some(false), ..BESIDE };
    let found = data(&mooncake, untimed).unwrap();
    assert!(!found.recorded);
    assert_eq!(found.source.trace_kind.unwrap(), TraceKind::Mooncake);
    assert!(data(&format!("{file} --timed-trace-chunk-hash-size 64"), BESIDE).is_err());
    assert!(data("", untimed).unwrap_err().contains("timed_trace"));
}

#[test]
fn one_model_of_burst_gpt_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b.csv");
    let header = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n";
    let typed = format!("--dataset-name burstgpt --dataset-path {}", path.display());
    std::fs::write(&path, format!("{header}5,GPT-4,472,18,490,Conversation log\n")).unwrap();
    let found = data(&typed, BESIDE).unwrap();
    assert_eq!(found.source.trace_kind.unwrap(), TraceKind::BurstGpt);
    std::fs::write(&path, format!("{header}5,ChatGPT,472,18,490,Conversation log\n")).unwrap();
    assert!(data(&typed, BESIDE).unwrap_err().contains("awk"));
}

#[test]
fn other_data_and_stray_flags_are_told() {
    for name in REFUSALS.datasets.iter().flat_map(Refusal::names) {
        assert!(data(&format!("--dataset-name {name}"), BESIDE).unwrap_err().contains(name));
    }
    assert!(data("--dataset-name nosuch", BESIDE).unwrap_err().contains("not known"));
    assert!(data("--dataset-path x", BESIDE).unwrap_err().contains("makes its own"));
    let stray = data("--dataset-name prefix_repetition --random-input-len 5", BESIDE).unwrap();
    assert!(stray.notes.iter().any(|note| note.contains("--random-input-len")));
}
