//! Traces that are made here in every dialect, whole and broken.

use std::fmt::Write as _;
use std::fs;

use inferometer_model::spec::Ticks;
use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use super::*;

mod ticks;

const AS_RECORDED: Replay = Replay { speed: 1.0, ticks: Ticks::Keep };

struct Made {
    _folder: TempDir,
    spec: TraceSpec,
}

fn made(name: &str, content: impl AsRef<[u8]>) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    Made { spec: TraceSpec { path, kind: None, keep: 1.0 }, _folder: folder }
}

impl Made {
    fn read(&self) -> Trace {
        read(&self.spec, Some(&AS_RECORDED), 1).unwrap()
    }

    fn refused(&self) -> String {
        read(&self.spec, None, 1).unwrap_err().to_string()
    }

    fn with_kind(mut self, kind: TraceKind) -> Self {
        self.spec.kind = Some(kind);
        self
    }
}

/// Moment, input and output of every entry.
fn entries(trace: &Trace) -> Vec<(u64, u32, u32)> {
    let entries = trace.entries.iter();
    entries
        .map(|entry| (entry.at_ns.cast_unsigned(), entry.input_tokens, entry.output_tokens))
        .collect()
}

fn hash_ids(trace: &Trace, entry: usize) -> &[u64] {
    let blocks = &trace.entries[entry].blocks;
    &trace.hash_ids[blocks.start as usize..blocks.end as usize]
}

fn dropped(trace: &Trace) -> Vec<(&str, u64)> {
    trace.facts.dropped.iter().map(|(reason, count)| (reason.as_str(), *count)).collect()
}

#[test]
fn mooncake_has_milliseconds_and_blocks_of_512() {
    let trace = made(
        "trace.jsonl",
        r#"{"timestamp": 27482, "input_length": 600, "output_length": 52, "hash_ids": [46, 47]}
{"timestamp": 30535.25, "input_length": 512, "output_length": 26, "hash_ids": [46]}

{"timestamp": 30536, "input_length": 0, "output_length": 26, "hash_ids": []}
{"timestamp": 30537, "input_length": 9, "output_length": 0, "hash_ids": [3]}
{"timestamp": 30538, "input_length": 4000000000, "output_length": 1}
"#,
    )
    .read();
    assert_eq!(entries(&trace), [(0, 600, 52), (3_053_250_000, 512, 26)]);
    assert_eq!((hash_ids(&trace, 0), hash_ids(&trace, 1)), ([46, 47].as_slice(), [46].as_slice()));
    assert_eq!((trace.block_tokens, trace.facts.kind.as_str()), (512, "mooncake"));
    assert_eq!(
        dropped(&trace),
        [("longer than any context", 1), ("no input tokens", 1), ("no output tokens", 1)]
    );
    assert_eq!(trace.facts.items, 2);
}

#[test]
fn bailian_has_seconds_and_blocks_of_16() {
    let line = |chat: i64, at: f64| {
        json!({ "chat_id": chat, "parent_chat_id": -1, "timestamp": at, "input_length": 20,
                "output_length": 8, "type": "text", "turn": 1, "hash_ids": [chat, 12] })
    };
    let text = [line(5, 61.114), line(6, 61.3)].map(|line| line.to_string()).join("\n");
    let trace = made("trace.jsonl", text).read();
    assert_eq!(entries(&trace), [(0, 20, 8), (186_000_000, 20, 8)]);
    assert_eq!((trace.block_tokens, trace.facts.kind.as_str()), (16, "bailian"));
    // Without chats it is the blocks that tell.
    let bare = json!({ "timestamp": 1, "input_length": 40, "output_length": 8,
                       "hash_ids": [1, 2, 3] });
    assert_eq!(made("trace", bare.to_string()).read().facts.kind, "bailian");
}

#[test]
fn hash_ids_that_do_not_fit_are_said() {
    let trace = made(
        "trace.jsonl",
        r#"{"timestamp": 0, "input_length": 600, "output_length": 52, "hash_ids": [46]}
{"timestamp": 1, "input_length": 512, "output_length": 26, "hash_ids": [46]}
{"timestamp": 2, "input_length": 512, "output_length": 26}"#,
    )
    .read();
    let note = "1 of 2 requests have more or fewer hash ids than blocks of 512 tokens";
    assert!(trace.notes.iter().any(|said| said.contains(note)), "{:?}", trace.notes);
}

#[test]
fn azure_has_dates_with_seven_digits_or_zones() {
    let old = "TIMESTAMP,ContextTokens,GeneratedTokens\n\
               2023-11-16 18:17:03.9799600,374,44\n\
               2023-11-16 18:17:04.0319600,396,109\n";
    assert_eq!(entries(&made("a.csv", old).read()), [(0, 374, 44), (52_000_000, 396, 109)]);
    let new = "TIMESTAMP,ContextTokens,GeneratedTokens,NumImages\n\
               2024-10-15 23:59:59.5+00:00,374,44,0\n\
               2024-10-16 00:00:00+00:00,10,0,7\n\
               2024-10-16 00:00:00.000001+00:00,396,109,3\n";
    let trace = made("a.csv", new).read();
    assert_eq!(entries(&trace), [(0, 374, 44), (500_001_000, 396, 109)]);
    assert!(
        trace.notes.iter().any(|note| note.contains("2 of the recorded requests had 10 images"))
    );
    assert_eq!(dropped(&trace), [("no output tokens", 1)]);
    assert!(trace.hash_ids.is_empty());
}

#[test]
fn burst_gpt_columns_are_found_by_their_names() {
    let old = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
               5,ChatGPT,472,18,490,Conversation log\n\
               45,ChatGPT,1087,0,1087,Conversation log\n\
               118.5,GPT-4,417,276,693,API log\n";
    let trace = made("burst.csv", old).read();
    assert_eq!(entries(&trace), [(0, 472, 18), (113_500_000_000, 417, 276)]);
    assert_eq!(dropped(&trace), [("failed (no response tokens)", 1)]);
    let new = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
               5,a,9.25,ChatGPT,472,18,490,Conversation log\n";
    let trace = made("burst.csv", new).read();
    assert_eq!(entries(&trace), [(0, 472, 18)]);
    assert_eq!(trace.facts.kind, "burstgpt");
}

#[test]
fn moments_out_of_order_are_sorted_and_said() {
    let text = "Timestamp,Request tokens,Response tokens\n7,1,1\n5,2,1\n7,3,1\n6,4,1\n";
    let trace = made("burst.csv", text).read();
    let second = 1_000_000_000;
    assert_eq!(
        entries(&trace),
        [(0, 2, 1), (second, 4, 1), (2 * second, 1, 1), (2 * second, 3, 1)]
    );
    assert!(trace.notes[0].starts_with("2 of the recorded requests were earlier"));
}

#[test]
fn a_broken_line_is_refused_by_its_number() {
    let good = r#"{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [1]}"#;
    for (line, reason) in [
        (r#"{"timestamp": 0, "input_len"#, "EOF while parsing a string"),
        (r#"{"timestamp": 0, "output_length": 1}"#, "missing field `input_length`"),
        (r#"{"timestamp": "x", "input_length": 1, "output_length": 1}"#, "`timestamp` is \"x\""),
        (r#"{"timestamp": 0, "input_length": -1, "output_length": 1}"#, "invalid value"),
        ("7", "invalid type"),
    ] {
        let refused = made("t.jsonl", format!("{good}\n{good}\n{line}\n{good}")).refused();
        assert!(refused.contains("t.jsonl, line 3: ") && refused.contains(reason), "{refused}");
        assert!(!refused.contains("at line"), "{refused}");
    }
    for (row, reason) in [
        ("soon,1,1", "`Timestamp` is `soon`, not a number of seconds"),
        ("1,x,1", "`Request tokens` is `x`, not a whole number"),
        ("1,1", "2 fields where the header has 3"),
    ] {
        let table = format!("Timestamp,Request tokens,Response tokens\n1,1,1\n{row}\n");
        let refused = made("t.csv", table).refused();
        assert!(refused.contains("t.csv, line 3: ") && refused.contains(reason), "{refused}");
    }
    let date = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-16-11 18:17:03,1,1\n";
    let date = made("t.csv", date).refused();
    assert!(date.contains("line 2: `TIMESTAMP` is `2023-16-11 18:17:03`"), "{date}");
}

#[test]
fn a_trace_of_another_kind_or_of_none_is_refused() {
    let column = "TIMESTAMP,ContextTokens\n2023-11-16 18:17:03,1\n";
    let column = made("t.csv", column).refused();
    assert!(column.contains("no column `GeneratedTokens`"), "{column}");
    for text in ["hello\n", "{\"prompt\": \"a\"}\n", "a,b\n1,2\n", "[1]"] {
        let unknown = made("t.csv", text).refused();
        assert!(unknown.contains("cannot detect the kind of the trace"), "{unknown}");
    }
    let azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,1,1\n";
    let wrong = made("t.csv", azure).with_kind(TraceKind::BurstGpt).refused();
    assert!(wrong.contains("no column `Request tokens`"), "{wrong}");
    let wrong = made("t.csv", azure).with_kind(TraceKind::Mooncake).refused();
    assert!(wrong.contains("line 1: "), "{wrong}");
    for empty in ["", "\n \n"] {
        assert!(made("t.jsonl", empty).refused().ends_with("is empty"));
    }
    let nothing = "Timestamp,Request tokens,Response tokens\n1,5,0\n";
    let nothing = made("t.csv", nothing).refused();
    assert!(nothing.contains("left out: 1 × failed (no response tokens)"), "{nothing}");
    let mut bytes = azure.as_bytes().to_vec();
    bytes.extend_from_slice(b"\xc3");
    let refused = made("t.csv", &bytes).refused();
    assert!(refused.contains(&format!("byte {} (from 0)", azure.len())), "{refused}");
}

#[test]
fn what_does_not_fit_into_memory_is_refused() {
    let line = r#"{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [1, 2]}"#;
    let made = made("t.jsonl", [line, line, line].join("\n"));
    let refused = |entries, blocks| {
        let bounds = Bounds { bytes: 1_000, entries, blocks };
        read_within(&made.spec, None, 1, bounds).unwrap_err().to_string()
    };
    assert!(refused(2, 100).contains("more than 2 requests"));
    assert!(refused(100, 5).contains("more than 5 hash ids"));
}

/// Requests in seconds, as one of the dialects has them.
fn seconds(moments: impl IntoIterator<Item = f64>) -> Made {
    let mut text = String::from("Timestamp,Request tokens,Response tokens\n");
    for (number, moment) in moments.into_iter().enumerate() {
        writeln!(text, "{moment:.6},{},1", number + 1).unwrap();
    }
    made("t.csv", text)
}

#[test]
fn thinning_keeps_the_asked_share_and_says_so() {
    let mut made = seconds((0..20_000).map(f64::from));
    made.spec.keep = 0.25;
    let trace = made.read();
    // Four standard deviations: sqrt(20,000 * 1/4 * 3/4) is 61.
    assert!(trace.entries.len().abs_diff(5_000) < 245, "{}", trace.entries.len());
    assert_eq!(trace.entries[0].at_ns, 0);
    let left_out = trace.facts.dropped["not drawn (keep 0.25)"];
    assert_eq!(left_out + trace.facts.items, 20_000);
    let other = read(&made.spec, None, 2).unwrap();
    assert_ne!(entries(&other), entries(&trace));
    made.spec.keep = 1e-9;
    let nothing = made.refused();
    assert!(nothing.contains("20000 × not drawn (keep 0.000000001)"), "{nothing}");
}

#[test]
fn moments_at_the_ends_of_the_clock_are_borne() {
    let text = "Timestamp,Request tokens,Response tokens\n-9000000000,1,1\n9000000000,2,1\n9000000000,3,1\n";
    for ticks in [Ticks::Auto, Ticks::Keep, Ticks::Uniform, Ticks::Poisson] {
        let trace =
            read(&made("t.csv", text).spec, Some(&Replay { speed: 0.01, ticks }), 1).unwrap();
        assert_eq!(trace.entries.len(), 3);
        assert!(trace.entries.is_sorted_by_key(|entry| entry.at_ns));
    }
}

#[test]
fn a_long_first_line_and_a_byte_order_mark_tell_the_kind_as_well() {
    let ids: Vec<u64> = (0..20_000).collect();
    let line =
        json!({ "timestamp": 1, "input_length": 320_000, "output_length": 8, "hash_ids": ids });
    assert_eq!(made("t", format!("{line}\n")).read().facts.kind, "bailian");
    let table = "\u{feff}\"TIMESTAMP\",\"ContextTokens\",\"GeneratedTokens\"\r\n\
                 2023-11-16 18:17:03,1,1\r\n";
    assert_eq!(entries(&made("t", table).read()), [(0, 1, 1)]);
}

#[test]
fn without_a_replay_moments_stay_as_recorded() {
    let trace = read(&seconds([1.0, 1.0, 1.0, 2.0, 2.0, 2.0]).spec, None, 1).unwrap();
    let moments: Vec<_> = trace.entries.iter().map(|entry| entry.at_ns).collect();
    assert_eq!(moments, [0, 0, 0, 1_000_000_000, 1_000_000_000, 1_000_000_000]);
    assert!(trace.notes.is_empty());
}

fn is_most_common_gap(trace: &Trace, gap_ns: i64) -> bool {
    let mut moments: Vec<i64> = trace.entries.iter().map(|entry| entry.at_ns).collect();
    moments.dedup();
    let gaps: Vec<i64> = moments.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let count = |gap: i64| gaps.iter().filter(|other| **other == gap).count();
    gaps.iter().all(|gap| *gap == gap_ns || count(*gap) < count(gap_ns)) && 0 < count(gap_ns)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is asked of a recording: no request is lost or made up, their order stays, each
    /// stays in its tick, and a speed divides all moments.
    #[test]
    fn requests_stay_in_their_order_and_in_their_tick(
        mut counts in proptest::collection::vec(0_usize..8, 2..40),
        speed in 0.1_f64..20.0,
        keep in prop_oneof![Just(1.0), 0.3_f64..1.0],
        seed in 0_u64..100,
        ticks in prop_oneof![Just(Ticks::Auto), Just(Ticks::Uniform), Just(Ticks::Poisson)],
    ) {
        // Two ticks at the beginning, shared by several.
        (counts[0], counts[1]) = (9, 9);
        let moments = counts.iter().enumerate().flat_map(|(tick, count)| {
            std::iter::repeat_n(3.0 * tick as f64, *count)
        });
        let mut made = seconds(moments);
        made.spec.keep = keep;
        let recorded = read(&made.spec, None, seed).unwrap();
        // Where most ticks are empty, the grid cannot be told from a wider one.
        prop_assume!(is_most_common_gap(&recorded, 3_000_000_000));
        let spread = read(&made.spec, Some(&Replay { speed: 1.0, ticks }), seed).unwrap();
        let replay = Replay { speed, ticks };
        let played = read(&made.spec, Some(&replay), seed).unwrap();
        prop_assert_eq!(entries(&played), entries(&read(&made.spec, Some(&replay), seed).unwrap()));
        prop_assert_eq!(played.entries.len(), recorded.entries.len());
        prop_assert!(played.entries.is_sorted_by_key(|entry| entry.at_ns));
        let all = recorded.entries.iter().zip(&spread.entries).zip(&played.entries);
        for ((recorded, spread), played) in all {
            prop_assert_eq!(recorded.input_tokens, spread.input_tokens);
            prop_assert_eq!(recorded.input_tokens, played.input_tokens);
            let within = recorded.at_ns..recorded.at_ns + 3_000_000_000;
            prop_assert!(within.contains(&spread.at_ns), "{} in {within:?}", spread.at_ns);
            let expected = spread.at_ns as f64 / speed;
            prop_assert!((played.at_ns as f64 - expected).abs() <= 1.0);
        }
    }
}
