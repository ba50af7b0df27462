//! Recorded sessions in the forms of several programs, sound and broken.

use std::fs;

use inferometer_model::Release;
use inferometer_model::spec::SessionKind;

use super::*;
use crate::counter::PromptCounter;

fn read_text(text: &str, history: History) -> Result<(Sessions, FileFacts), SessionsError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.json");
    fs::write(&path, text).unwrap();
    read(&SessionsSpec { path, kind: None, history }, &PromptCounter::default())
}

fn sessions(text: &str) -> Sessions {
    read_text(text, History::Real).unwrap().0
}

/// Why a file is refused, without the name of its folder.
fn refusal(text: &str) -> String {
    let error = read_text(text, History::Real).unwrap_err().to_string();
    error.split_once("sessions.json").unwrap().1.to_owned()
}

fn kind(text: &str) -> String {
    read_text(text, History::Real).unwrap().1.kind
}

fn prompts(sessions: Sessions) -> SessionPrompts {
    let text = Arc::new(TextMaker::Estimating(None));
    SessionPrompts { seed: 7, text, sessions: Arc::new(sessions) }
}

/// What the first requests say, each as `role: text` joined by bars.
fn said(prompts: &SessionPrompts, count: u64) -> Vec<String> {
    let mut turn = 0;
    (0..count)
        .map(|id| {
            turn = if prompts.sessions.firsts.contains(&id) { 0 } else { turn + 1 };
            let alone = PlannedRequest::alone(RequestId(id), Release::WhenSlotFree);
            let (node, _) = prompts.sessions.node(RequestId(id));
            let session = SessionPlace { context: node.context, ..SessionPlace::default() };
            let content = prompts.content(&PlannedRequest { turn, session, ..alone });
            match content.prompt {
                Prompt::Text(text) => text,
                Prompt::Messages(messages) => {
                    let messages = messages
                        .iter()
                        .map(|message| format!("{}: {}", message.role(), message.text()));
                    messages.collect::<Vec<_>>().join(" | ")
                }
            }
        })
        .collect()
}

fn graph(sessions: &Sessions) -> Vec<(Vec<u16>, Option<u16>)> {
    sessions.nodes.iter().map(|node| (node.waits_for.clone(), node.context)).collect()
}

/// A task, two sub-agents beside each other, and an answer that waits for both.
const FAN_OUT: &str = r#"
{"session":"a","id":"plan","input_tokens":100,"output_tokens":20,"prefix":"system","prefix_tokens":50}
{"session":"a","id":"left","after":["plan"],"context":null,"input_tokens":30,"output_tokens":5,"prefix":"system","prefix_tokens":50}
{"session":"a","id":"right","after":["plan"],"context":null,"input_tokens":40,"output_tokens":5,"delay":0.5}
{"session":"a","id":"sum","after":["plan","left","right"],"input_tokens":12,"output_tokens":9,"delay":1.5}
{"session":"b","id":1,"messages":[{"role":"user","content":"hello there"}],"answer":"well met"}
{"session":"b","id":2,"messages":[{"role":"user","content":"bye"}]}
"#;

#[test]
fn our_own_format_says_who_waits_for_whom() {
    let (found, facts) = read_text(FAN_OUT, History::Real).unwrap();
    assert_eq!((facts.kind.as_str(), facts.items), ("requests", 2));
    let expected = [
        (vec![], None),
        (vec![0], None),
        (vec![0], None),
        (vec![0, 1, 2], Some(0)),
        (vec![], None),
        (vec![0], Some(0)),
    ];
    assert_eq!(graph(&found), expected);
    let lengths: Vec<_> =
        found.nodes.iter().map(|it| (it.input_tokens, it.output_tokens)).collect();
    assert_eq!(lengths, [(150, 20), (80, 5), (40, 5), (12, 9), (2, 2), (1, OUTPUT_TOKENS)]);
    let shared: Vec<u32> = found.nodes.iter().map(|node| node.shared_tokens).collect();
    assert_eq!(shared, [0, 50, 0, 0, 0, 0], "the system prompt is sent for the second time");
    assert_eq!(found.nodes[3].delay, Duration::from_millis(1_500));
    assert!(found.nodes[0].continues && !found.nodes[1].continues);
    assert!(found.starts.is_none());
    let said = said(&prompts(found), 6);
    assert_eq!(said[4..], ["user: hello there", "user: bye"]);
    assert!(said[0].starts_with("system: ") && said[0].contains(" | user: "));
    let system = |text: &str| text.split_once(" | ").unwrap().0.to_owned();
    assert_eq!(system(&said[0]), system(&said[1]));
}

#[test]
fn recorded_answers_make_prompts_whole() {
    let (found, _) = read_text(FAN_OUT, History::Recorded).unwrap();
    assert!(found.nodes.iter().all(|node| node.context.is_none() && !node.continues));
    let lengths: Vec<u32> = found.nodes.iter().map(|node| node.input_tokens).collect();
    // The last request of the first session carries the task, an answer of 20 tokens, and its own.
    assert_eq!(lengths, [150, 80, 40, 150 + 20 + 12, 2, 2 + 2 + 1]);
    let shared: Vec<u32> = found.nodes.iter().map(|node| node.shared_tokens).collect();
    assert_eq!(shared, [0, 50, 0, 150, 0, 2]);
    let prompts = prompts(found);
    let said = said(&prompts, 6);
    assert_eq!(said[5], "user: hello there | assistant: well met | user: bye");
    assert_eq!(said[3].split_whitespace().count(), 182);
}

#[test]
fn lists_of_messages_are_cut_at_answers() {
    let text = r#"{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"a b"},{"role":"assistant","content":"c d e"},{"role":"tool","content":"f"},{"role":"user","content":"g"},{"role":"assistant","content":"h"}]}
{"messages":[{"role":"user","content":"alone"}]}"#;
    assert_eq!(kind(text), "messages");
    let found = sessions(text);
    assert_eq!(graph(&found), [(vec![], None), (vec![0], Some(0)), (vec![], None)]);
    let outputs: Vec<u32> = found.nodes.iter().map(|node| node.output_tokens).collect();
    assert_eq!(outputs, [3, 1, OUTPUT_TOKENS]);
    let said = said(&prompts(found), 3);
    assert_eq!(said, ["system: be brief | user: a b", "user: f | user: g", "user: alone"]);
}

#[test]
fn share_gpt_is_read_with_all_turns() {
    let text = r#"[
        {"id":"x","conversations":[{"from":"human","value":"one"},{"from":"gpt","value":"two words"},
         {"from":"human","value":"three"},{"from":"gpt","value":"four"},{"from":"human","value":"five"}]},
        {"id":"y","conversations":[{"from":"gpt","value":"nobody asked"}]}]"#;
    let (found, facts) = read_text(text, History::Real).unwrap();
    assert_eq!((facts.kind.as_str(), facts.items, found.nodes.len()), ("share-gpt", 1, 3));
    assert_eq!(facts.dropped["no turn of a user"], 1);
    assert_eq!(graph(&found)[2], (vec![1], Some(1)));
    assert_eq!(said(&prompts(found), 3), ["user: one", "user: three", "user: five"]);
}

/// As `AIPerf`'s guide to custom data sets writes them.
#[test]
fn turns_of_aiperf_are_read() {
    let text = r#"{"session_id": "chat_1", "turns": [{"role": "system", "text": "be terse"}, {"text": "What is machine learning?", "output_length": 50, "timestamp": 1000}, {"text": "Can you give me an example?", "delay": 2000}]}
{"session_id": "chat_2", "turns": [{"text": "Explain neural networks.", "timestamp": 250}]}"#;
    assert_eq!(kind(text), "turns");
    let found = sessions(text);
    assert_eq!(found.starts, Some(vec![0, 750_000_000]), "the second one came first");
    assert_eq!(found.nodes[1].output_tokens, 50);
    assert_eq!(found.nodes[2].delay, Duration::from_secs(2));
    let said = said(&prompts(found), 3);
    assert_eq!(said[1], "system: be terse | user: What is machine learning?");
}

/// As SGLang's `agentic-trace` data set reads them.
#[test]
fn agentic_traces_of_sglang_are_read() {
    let text = r#"{"metadata": {"name": "swe"}, "conversations": [[
        {"messages": [{"role": "system", "content": "tools"}, {"role": "user", "content": "fix it"}], "prompt_tokens": 73821},
        {"messages": [{"role": "user", "content": "the tool said no"}], "prompt_tokens": 74894}]]}"#;
    assert_eq!(kind(text), "agentic-trace");
    let found = sessions(text);
    assert_eq!(graph(&found), [(vec![], None), (vec![0], Some(0))]);
    assert_eq!(found.nodes[0].output_tokens, 220);
}

#[test]
fn chats_of_bailian_are_linked_to_their_parents() {
    let text = r#"{"chat_id": 159, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 40, "output_length": 10, "type": "text", "turn": 1, "hash_ids": [1, 2, 3]}
{"chat_id": 160, "parent_chat_id": -1, "timestamp": 61.5, "input_length": 40, "output_length": 10, "type": "text", "turn": 1, "hash_ids": [1, 2, 9]}
{"chat_id": 161, "parent_chat_id": 159, "timestamp": 63.114, "input_length": 70, "output_length": 5, "type": "text", "turn": 2, "hash_ids": [1, 2, 4, 5, 6]}
{"chat_id": 162, "parent_chat_id": 7, "timestamp": 64, "input_length": 8, "output_length": 5, "type": "text", "turn": 4}"#;
    let (found, facts) = read_text(text, History::Real).unwrap();
    assert_eq!((facts.kind.as_str(), facts.items), ("bailian", 3));
    assert_eq!(graph(&found), [(vec![], None), (vec![0], Some(0)), (vec![], None), (vec![], None)]);
    let lengths: Vec<u32> = found.nodes.iter().map(|node| node.input_tokens).collect();
    assert_eq!(lengths, [40, 20, 40, 8], "70 tokens less the 50 that were said before");
    assert_eq!(found.nodes[1].delay, Duration::from_secs(2));
    assert_eq!(found.nodes[2].shared_tokens, 32, "two blocks of 16 tokens");
    assert_eq!(found.starts.as_ref().unwrap()[1], 386_000_000);
    assert!(found.notes[0].starts_with("1 of the recorded chats"), "{:?}", found.notes);
}

/// Spans as the protocol writes them, and as inference-perf's traces have them.
#[test]
fn spans_are_linked_by_their_times_and_their_messages() {
    let messages = |texts: &[(&str, &str)]| {
        let list: Vec<_> = texts
            .iter()
            .map(|(role, text)| {
                serde_json::json!({"role": role, "parts": [{"type": "text", "content": text}]})
            })
            .collect();
        serde_json::Value::from(list).to_string()
    };
    let span = |id: &str, start: u64, end: u64, said: &[(&str, &str)]| {
        serde_json::json!({
            "traceId": "t", "spanId": id, "name": "chat m",
            "startTimeUnixNano": (start * 1_000_000).to_string(),
            "endTimeUnixNano": (end * 1_000_000).to_string(),
            "attributes": [
                {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
                {"key": "gen_ai.input.messages", "value": {"stringValue": messages(said)}},
                {"key": "gen_ai.usage.output_tokens", "value": {"intValue": "7"}},
            ],
        })
    };
    let first = [("system", "s"), ("user", "task")];
    let last = [("system", "s"), ("user", "task"), ("assistant", "go"), ("user", "found it")];
    let tool = serde_json::json!({
        "traceId": "t", "spanId": "tool", "startTimeUnixNano": "1", "endTimeUnixNano": "2",
        "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}}],
    });
    let spans = [
        span("main", 0, 100, &first),
        tool,
        span("left", 150, 300, &[("user", "look left")]),
        span("right", 150, 400, &[("user", "look right")]),
        span("end", 450, 500, &last),
    ];
    let text = serde_json::json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]});
    let (found, facts) = read_text(&text.to_string(), History::Real).unwrap();
    assert_eq!(facts.kind, "otel");
    assert_eq!(facts.dropped["a span that is no call to a model"], 1);
    let expected = [(vec![], None), (vec![0], None), (vec![0], None), (vec![1, 2], Some(0))];
    assert_eq!(graph(&found), expected);
    let delays: Vec<u128> = found.nodes.iter().map(|node| node.delay.as_millis()).collect();
    assert_eq!(delays, [0, 50, 50, 50]);
    assert_eq!(found.nodes[3].output_tokens, 7);
    assert_eq!(said(&prompts(found), 4)[3], "user: found it", "the answer is the server's own");
    let (found, _) = read_text(&text.to_string(), History::Recorded).unwrap();
    assert_eq!(
        said(&prompts(found), 4)[3],
        "system: s | user: task | assistant: go | user: found it"
    );
    // The same as a list of plain objects, with names as Python writes them.
    let plain = r#"[{"trace_id": "t", "span_id": "1", "start_time": "2026-01-01T00:00:00Z", "end_time": "2026-01-01T00:00:01Z", "attributes": {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 10}},
        {"trace_id": "t", "span_id": "2", "start_time": "2026-01-01T00:00:03Z", "end_time": "2026-01-01T00:00:04Z", "attributes": {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 130, "gen_ai.usage.output_tokens": 10}}]"#;
    let found = sessions(plain);
    assert_eq!(graph(&found), [(vec![], None), (vec![0], Some(0))]);
    assert_eq!((found.nodes[1].input_tokens, found.nodes[1].delay.as_secs()), (20, 2));
}

#[test]
fn a_broken_file_is_refused_with_the_line_and_the_reason() {
    let line =
        |id: &str, rest: &str| format!(r#"{{"session":"s","id":"{id}","input_tokens":5{rest}}}"#);
    let cases = [
        (
            vec![
                line("a", r#","after":["c"]"#),
                line("b", r#","after":["a"]"#),
                line("c", r#","after":["b"]"#),
            ],
            ", line 1: the requests of the session `s` wait for each other in a circle: `a` waits \
             for `c` waits for `b` waits for `a`",
        ),
        (
            vec![line("a", r#","after":["a"]"#)],
            "wait for each other in a circle: `a` waits for `a`",
        ),
        (
            vec![line("a", ""), line("b", r#","after":["x"]"#)],
            ", line 2: the request `b` waits for `x`, and its session `s` has no request of that id",
        ),
        (
            vec![line("a", ""), line("a", "")],
            ", line 2: the session `s` has a request `a` already: line 1",
        ),
        (
            vec![line("a", ""), line("b", ""), line("c", r#","after":["a"],"context":"b""#)],
            ", line 3: the request `c` goes on from `b` without waiting for it; name `b` in `after`",
        ),
        (vec![line("a", r#","delay":-1"#)], ", line 1: `delay` and `at` are seconds"),
        (vec![line("a", r#","delay":1e300"#)], ", line 1: `delay` and `at` are seconds"),
        (vec![line("a", r#","output_tokens":0"#)], ", line 1: `output_tokens` must be above zero"),
        (
            vec![r#"{"session":"s","id":1,"messages":[]}"#.to_owned()],
            ", line 1: `messages` is empty",
        ),
        (vec![line("a", r#","afer":[]"#)], ", line 1: unknown field `afer`"),
        (
            vec![line("a", r#","prefix":"p""#)],
            ", line 1: `prefix` and `prefix_tokens` belong together",
        ),
        (vec![r#"{"session":"s","input_tokens":5}"#.to_owned()], ", line 1: missing field `id`"),
        (vec![r#"{"session":"s","id":1}"#.to_owned()], "either `messages` or `input_tokens`"),
        (vec![line("a", ""), "{".to_owned()], ", line 2: EOF while parsing"),
        (
            vec![r#"{"chat_id":1,"timestamp":1,"input_length":5,"output_length":5}"#.to_owned(); 2],
            ", line 2: there is a chat 1 already",
        ),
        (
            vec![
                r#"[{"traceId":"t","spanId":"1","attributes":{"gen_ai.operation.name":"chat"}}]"#
                    .to_owned(),
            ],
            ", item 1: the span has no start time",
        ),
        (
            vec![r#"{"session_id":"s","turns":[{"image":"x"}]}"#.to_owned()],
            ", line 1: turn 1 has no `text`",
        ),
        (vec![r#"{"foo":1}"#.to_owned()], "it begins with `{\"foo\":1}`"),
        (vec![String::new()], "it is empty"),
    ];
    for (lines, expected) in cases {
        let found = refusal(&lines.join("\n"));
        assert!(found.contains(expected), "{found}\n{expected}");
    }
    let deep = format!(r#"{{"resourceSpans":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    assert!(refusal(&deep).contains("recursion limit"), "{}", refusal(&deep));
    let long: String = (0..=TURNS_MAX).map(|id| line(&id.to_string(), "") + "\n").collect();
    assert!(refusal(&long).contains("a session has at most 10000 requests"));
}

#[test]
fn a_session_as_deep_as_it_may_be_is_linked() {
    let line = |id: u32| format!(r#"{{"session":"s","id":{id},"input_tokens":5}}"#);
    let text: String = (0..TURNS_MAX).map(|id| line(id) + "\n").collect();
    let found = read_text(&text, History::Recorded).unwrap().0;
    let last = found.nodes.last().unwrap();
    assert_eq!(last.waits_for, [9_998]);
    assert_eq!(last.input_tokens, 5 * 10_000 + OUTPUT_TOKENS * 9_999);
}

#[test]
fn kinds_may_be_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    fs::write(&path, r#"{"turns":[],"messages":[{"role":"user","content":"hi"}]}"#).unwrap();
    let kind = Some(SessionKind::Messages);
    let spec = SessionsSpec { path, kind, history: History::Real };
    assert_eq!(read(&spec, &PromptCounter::default()).unwrap().1.kind, "messages");
}

#[test]
fn agents_start_sub_agents_and_wait_for_them() {
    use inferometer_model::spec::{Agents, Lengths, SharedPrefix, Think};
    let spec = Agents {
        steps: Lengths::Fixed(2),
        tools: Lengths::Fixed(3),
        tool_time: Think::Fixed(Duration::from_millis(10)),
        task: Lengths::Fixed(100),
        growth: Lengths::Fixed(40),
        output: Lengths::Fixed(8),
        prefix: Some(SharedPrefix { tokens: 64, count: 1, zipf: 0.0 }),
        fan_out: 1.0,
        subagents: Lengths::Fixed(2),
        subagent_steps: Lengths::Fixed(2),
    };
    let found = draw_agents(&spec, 3);
    assert_eq!(found.firsts[..2], [0, 6], "nobody would wait for sub-agents of the last step");
    let expected = [
        (vec![], None),
        (vec![0], None),
        (vec![1], Some(1)),
        (vec![0], None),
        (vec![3], Some(3)),
        (vec![0, 2, 4], Some(0)),
    ];
    assert_eq!(graph(&found)[..6], expected);
    let node = &found.nodes[5];
    assert_eq!((node.input_tokens, node.delay), (40, Duration::from_millis(30)));
    assert_eq!((found.nodes[0].input_tokens, found.nodes[0].shared_tokens), (164, 0));
    assert_eq!((found.nodes[1].shared_tokens, found.nodes[6].shared_tokens), (64, 64));
}
