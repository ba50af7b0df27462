//! What prompts are counted with, and what is written down of them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use inferometer_model::endpoint::Api;
use inferometer_model::spec::{
    AdapterChoice, BodyTable, ImageSize, LoadTable, MixTable, PerSecond, SourceName, SourceTable,
    TargetTable, WorkloadTable,
};
use inferometer_model::{Message, Plan, Prompt, RequestId, SpecDraft, TokenCounter as _};
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::plan::{make_plan, make_warm_up};
use crate::prompts::REQUESTS_OPEN_ENDED;

/// A model's directory: a tokenizer of words between special tokens, and a chat template.
fn model(template: &str) -> TempDir {
    let words = crate::text::WORDS.iter().take(256).copied();
    let words = ["?", "<s>", "<user>", "<system>", "<bot>", "<end>"].into_iter().chain(words);
    let vocabulary: serde_json::Map<String, serde_json::Value> =
        words.zip(0_u32..).map(|(word, id)| (word.to_owned(), id.into())).collect();
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": null, "pre_tokenizer": { "type": "WhitespaceSplit" },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                { "SpecialToken": { "id": "<s>", "type_id": 0 } },
                { "Sequence": { "id": "A", "type_id": 0 } },
            ],
            "pair": [
                { "Sequence": { "id": "A", "type_id": 0 } },
                { "Sequence": { "id": "B", "type_id": 1 } },
            ],
            "special_tokens": { "<s>": { "id": "<s>", "ids": [1], "tokens": ["<s>"] } },
        },
        "decoder": null,
        "model": { "type": "WordLevel", "unk_token": "?", "vocab": vocabulary },
    });
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
    let config = json!({ "bos_token": "<s>", "chat_template": template });
    fs::write(folder.path().join("tokenizer_config.json"), config.to_string()).unwrap();
    folder
}

/// Four tokens around a user's words, and two more around a system message's.
const TEMPLATE: &str = "{{ bos_token }}{% for m in messages %}{{ ' <' + m.role + '> ' }}\
    {{ m.content }}{{ ' <end>' }}{% endfor %}{% if add_generation_prompt %}{{ ' <bot>' }}{% endif %}";

fn counted(model: &Path, source: SourceTable) -> SpecDraft {
    let workload = WorkloadTable {
        source,
        tokenizer: Some(model.to_str().unwrap().to_owned()),
        count: Some(Counting::WithTemplate),
        ..WorkloadTable::default()
    };
    SpecDraft { workload, ..SpecDraft::default() }
}

fn plan_of(draft: SpecDraft) -> (Arc<dyn Plan>, Inputs) {
    let spec = draft.resolve().unwrap();
    let inputs = Inputs::gather(&spec).unwrap();
    (make_plan(&spec, &inputs).0, inputs)
}

/// The tokens of a prompt as the model sees it, without any of the code that made it.
fn seen(model: &Path, prompt: &Prompt) -> usize {
    let tokenizer = Tokenizer::open(model.to_str().unwrap()).unwrap();
    let messages = match prompt {
        Prompt::Text(text) => vec![Message::new("user", text.as_str())],
        Prompt::Messages(messages) => messages.clone(),
    };
    tokenizer.count(&tokenizer.render_chat(&messages, true).unwrap().unwrap())
}

#[test]
fn a_template_is_counted_where_a_server_renders_one() {
    let model = model(TEMPLATE);
    for api in Api::all() {
        let draft = counted(model.path(), SourceTable::default());
        let target = TargetTable { api: Some(api), ..TargetTable::default() };
        let spec = SpecDraft { target, ..draft }.resolve().unwrap();
        let renders = [Api::Chat, Api::Responses, Api::Messages, Api::OllamaChat].contains(&api);
        match Inputs::gather(&spec) {
            Ok(_) => assert!(renders, "{api:?}"),
            Err(error) => {
                assert!(!renders, "{api:?}: {error}");
                assert!(error.to_string().contains("chat, responses, messages, ollama-chat"));
            }
        }
    }
}

#[test]
fn special_tokens_are_counted_where_the_prompt_is_all_that_the_model_sees() {
    let model = model(TEMPLATE);
    for api in Api::all() {
        let workload = WorkloadTable {
            tokenizer: Some(model.path().to_str().unwrap().to_owned()),
            ..WorkloadTable::default()
        };
        let target = TargetTable { api: Some(api), ..TargetTable::default() };
        let draft = SpecDraft { target, workload, ..SpecDraft::default() };
        let shortest = plan_of(draft).1.text().shortest();
        let renders = [Api::Chat, Api::Responses, Api::Messages, Api::OllamaChat].contains(&api);
        let is_raw = !renders && api != Api::OllamaGenerate;
        assert_eq!(shortest, if is_raw { 2 } else { 1 }, "{api:?}");
    }
}

#[test]
fn a_fixed_prompt_and_a_data_set_are_counted_as_the_model_sees_them() {
    let model = model(TEMPLATE);
    let prompt = Some("the of and".to_owned());
    let (plan, _) = plan_of(counted(model.path(), SourceTable { prompt, ..Default::default() }));
    assert_eq!(plan.request(RequestId(0)).unwrap().input_tokens, 3 + 4);
    let data = model.path().join("data.jsonl");
    let lines = "{\"prompt\":\"the of\"}\n{\"messages\":[{\"role\":\"system\",\
        \"content\":\"and to\"},{\"role\":\"user\",\"content\":\"in\"}]}";
    fs::write(&data, lines).unwrap();
    let source = SourceTable { dataset: Some(data), keep_order: Some(true), ..Default::default() };
    let (plan, _) = plan_of(counted(model.path(), source));
    let tokens = [0, 1].map(|id| plan.request(RequestId(id)).unwrap().input_tokens);
    assert_eq!(tokens, [2 + 4, 3 + 6]);
}

#[test]
fn the_first_turn_of_a_conversation_is_as_long_as_asked_with_its_system_message() {
    let model = model(TEMPLATE);
    let source = SourceTable {
        turns: Some(2.into()),
        input_tokens: Some("uniform:8..40".parse().unwrap()),
        prefix_tokens: Some(20),
        ..SourceTable::default()
    };
    let (plan, inputs) = plan_of(counted(model.path(), source));
    for id in (0..100).step_by(2) {
        let request = plan.request(RequestId(id)).unwrap();
        let content = plan.content(&request);
        assert_eq!(seen(model.path(), &content.prompt), request.input_tokens as usize);
    }
    assert_eq!(inputs.materials().notes, Vec::<String>::new());
}

#[test]
fn a_template_that_refuses_a_system_message_is_no_surprise_later() {
    let model = model(&format!(
        "{{% if messages[0].role == 'system' %}}{{{{ raise_exception('no') }}}}{{% endif %}}{TEMPLATE}"
    ));
    let source =
        SourceTable { turns: Some(2.into()), prefix_tokens: Some(9), ..SourceTable::default() };
    let spec = counted(model.path(), source).resolve().unwrap();
    let error = Inputs::gather(&spec).unwrap_err().to_string();
    assert!(error.contains("refuses a system message"), "{error}");
}

#[test]
fn a_prompt_shorter_than_its_frame_is_recorded_as_it_is_sent_and_noted() {
    let model = model(TEMPLATE);
    let short = |prefix_tokens, turns| SourceTable {
        input_tokens: Some("uniform:1..9".parse().unwrap()),
        prefix_tokens,
        turns,
        ..SourceTable::default()
    };
    for (source, least) in [(short(None, None), 5), (short(Some(3), Some(1.into())), 3 + 6 + 1)] {
        let (plan, inputs) = plan_of(counted(model.path(), source));
        for id in 0..50 {
            let request = plan.request(RequestId(id)).unwrap();
            assert!(least <= request.input_tokens);
            let tokens = seen(model.path(), &plan.content(&request).prompt);
            assert_eq!(tokens, request.input_tokens as usize);
        }
        let notes = &inputs.materials().notes;
        assert!(notes[0].contains(&format!("shorter than {least} tokens")), "{notes:?}");
    }
}

#[test]
fn a_warm_up_carries_what_the_run_carries() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data.jsonl");
    fs::write(&data, "{\"prompt\":\"the of\",\"body\":{\"top_k\":7}}").unwrap();
    let body = BodyTable {
        images: Some(1),
        image_size: Some(ImageSize(4, 4).into()),
        lora: Some(vec!["a".to_owned(), "b".to_owned()]),
        lora_choice: Some(AdapterChoice::RoundRobin.into()),
        ..BodyTable::default()
    };
    let source = SourceTable { dataset: Some(data), ..SourceTable::default() };
    let workload = WorkloadTable { source, body, ..WorkloadTable::default() };
    let load = LoadTable {
        warm_up: Some(inferometer_model::spec::WarmUp::Requests(4)),
        ..LoadTable::default()
    };
    let spec = SpecDraft { workload, load, ..SpecDraft::default() }.resolve().unwrap();
    let inputs = Inputs::gather(&spec).unwrap();
    let (run, _) = make_plan(&spec, &inputs);
    let warm_up = make_warm_up(&spec, &inputs).unwrap();
    let [warm, measured] =
        [warm_up, run].map(|plan| plan.content(&plan.request(RequestId(1)).unwrap()));
    assert_eq!(warm.model.as_deref(), Some("b"));
    assert_eq!(warm.fields, measured.fields);
    assert_eq!(warm.fields["top_k"], 7);
    assert_eq!(warm.images.len(), 1);
    assert_ne!(warm.images, measured.images, "no cache may know the run's");
    assert_ne!(warm.prompt, measured.prompt);
}

#[test]
fn a_trace_that_ends_before_the_requests_do_is_noted() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.csv");
    let rows = "Timestamp,Request tokens,Response tokens\n0,5,5\n1,5,5\n";
    fs::write(&trace, rows).unwrap();
    let notes = |load| {
        let source = SourceTable { trace: Some(trace.clone()), ..SourceTable::default() };
        let workload = WorkloadTable { source, ..WorkloadTable::default() };
        plan_of(SpecDraft { workload, load, ..SpecDraft::default() }).1.materials().notes.join(" ")
    };
    let requests = |requests| LoadTable { requests: Some(requests), ..LoadTable::default() };
    let said = "the trace has 2 requests, and not 3";
    assert!(notes(requests(3)).contains(said));
    assert!(!notes(requests(2)).contains("fewer than"));
    // A closed loop begins again.
    assert!(!notes(LoadTable { concurrency: Some(1), ..requests(3) }).contains("fewer than"));
}

fn vllm_lengths(load: LoadTable, mix: bool) -> Arc<dyn Plan> {
    let model = model(TEMPLATE);
    let random = SourceTable {
        source: Some(SourceName::VllmRandom),
        input_tokens: Some("uniform:5..5000".parse().unwrap()),
        ..SourceTable::default()
    };
    let mut workload = WorkloadTable {
        tokenizer: Some(model.path().to_str().unwrap().to_owned()),
        ..WorkloadTable::default()
    };
    if mix {
        let part = |source| MixTable { source, ..MixTable::default() };
        workload.mix = vec![part(SourceTable::default()), part(random)];
    } else {
        workload.source = random;
    }
    plan_of(SpecDraft { workload, load, ..SpecDraft::default() }).0
}

#[test]
fn lengths_of_the_other_program_do_not_repeat_within_a_plan() {
    let first_differs = |plan: &dyn Plan, period: u64| {
        (0..50).any(|id| {
            let tokens = |id| plan.request(RequestId(id)).unwrap().input_tokens;
            tokens(id) != tokens(id + period)
        })
    };
    let period = REQUESTS_OPEN_ENDED;
    let both = LoadTable {
        requests: Some(2 * period),
        duration: Some(Duration::from_secs(1).into()),
        ..LoadTable::default()
    };
    assert!(first_differs(vllm_lengths(both, false).as_ref(), period));
    let open = LoadTable {
        rate: Some(PerSecond(1e5)),
        duration: Some(Duration::from_secs(1).into()),
        ..LoadTable::default()
    };
    let plan = vllm_lengths(open, false);
    assert!(period < plan.bounds().requests.unwrap());
    assert!(first_differs(plan.as_ref(), period));
}

#[test]
fn in_a_mix_the_other_programs_prompts_are_its_own_sequence() {
    let load = LoadTable { requests: Some(100), ..LoadTable::default() };
    let mixed = vllm_lengths(load.clone(), true);
    let of_part = (0..100).map(|id| mixed.request(RequestId(id)).unwrap());
    let of_part: Vec<_> = of_part.filter(|request| request.part == 1).collect();
    let requests = Some(of_part.len() as u64);
    let alone = vllm_lengths(LoadTable { requests, ..load }, false);
    for (id, request) in (0..).zip(&of_part) {
        let expected = alone.request(RequestId(id)).unwrap();
        assert_eq!(request.input_tokens, expected.input_tokens);
        assert_eq!(mixed.content(request).prompt, alone.content(&expected).prompt);
    }
}
