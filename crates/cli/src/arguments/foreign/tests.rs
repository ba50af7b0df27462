//! Pasted commands of other tools, and what they must become.

use super::*;

/// A pasted command, what it is here, and words of the notes beside it.
const PASTED: &[(&str, &str, &[&str])] = &[
    (
        "aiperf profile -m M --url localhost:8000 --concurrency 4 --streaming --isl 128 --osl 64",
        "run http://localhost:8000 --model M --concurrency 4 --input-tokens 128 --output-tokens 64",
        &[],
    ),
    (
        "aiperf profile --model M --url http://h:1 --endpoint-type chat --request-rate 5 --concurrency 32 \
         --benchmark-duration 60 --streaming --isl 100 --ui none --goodput ttft:100",
        "run http://h:1 --api chat --model M --rate 5 --max-concurrency 32 --duration 60s \
         --input-tokens 100",
        &["--goodput is left out: write each as an SLO"],
    ),
    (
        "genai-perf profile -m M --endpoint-type nim_rankings --service-kind openai --request-count=10 \
         -u h:8000",
        "run http://h:8000 --model M --requests 10 --concurrency 1 --input-tokens 550 --no-stream",
        &["--service-kind is left out", "`nim_rankings` is not known"],
    ),
    (
        "guidellm benchmark --target http://h:8000 --rate-type concurrent --rate 4 --max-seconds 30 \
         --data prompt_tokens=256,output_tokens=128",
        "run http://h:8000 --input-tokens 256 --output-tokens 128 --concurrency 4 --duration 30s",
        &[],
    ),
    (
        "guidellm benchmark run --target http://h:8000 --profile constant --rate 1,2,4 --max-requests 100 \
         --data '{\"prompt_tokens\": 256}' --output-path out.json",
        "sweep http://h:8000 --input-tokens 256 --arrivals constant --rates 1,2,4 --requests 100",
        &["--output-path is left out"],
    ),
    ("guidellm benchmark --target http://h:8000", "sweep http://h:8000", &[]),
    (
        "guidellm run --backend kind=openai_http,target=http://h:1,model=M --profile \
         kind=concurrent,streams=4 --constraint kind=max_requests,count=50 --data kind=json_file,path=p.jsonl",
        "run http://h:1 --dataset p.jsonl --concurrency 4 --model M --requests 50",
        &[],
    ),
    (
        "vllm bench serve --backend openai-chat --base-url http://h:8000 --num-prompts 100 --max-concurrency 8",
        "bench serve --backend openai-chat --base-url http://h:8000 --num-prompts 100 --max-concurrency 8",
        &[],
    ),
    (
        "python3 benchmarks/benchmark_serving.py --num-prompts 10 --request-rate inf",
        "bench serve --num-prompts 10 --request-rate inf",
        &[],
    ),
    (
        "python -m sglang.bench_serving --base-url http://h:30000 --num-prompts 50 --random-input-len 100 \
         --max-concurrency 4 --flush-cache",
        "run http://h:30000 --requests 50 --input-tokens 100 --concurrency 4",
        &["--flush-cache is left out"],
    ),
    (
        "k6 run --vus 10 --duration 1m30s --quiet script.js",
        "run URL --concurrency 10 --duration 1m30s --quiet",
        &["`script.js` is not read here"],
    ),
    (
        "k6 run -u5 -i 20 --rps 3 x.js",
        "run URL --max-concurrency 5 --requests 20 --rate 3",
        &["x.js"],
    ),
    (
        "oha -n 100 -c 10 -m POST -d '{}' --no-tui http://h:8000/v1/completions",
        "run http://h:8000/v1/completions --requests 100 --concurrency 10 --progress lines",
        &["-d is left out: the body is made here"],
    ),
    ("oha --insecure http://h:8000", "run http://h:8000 --concurrency 50 --requests 200", &[]),
    (
        "hey -z 10s -c 20 -q 5 -m POST -T application/json -disable-keepalive http://h:8000",
        "run http://h:8000 --duration 10s --concurrency 20 --connections new",
        &["-q is left out: it counts for each worker there"],
    ),
    (
        "wrk -t2 -c100 -d30 --latency http://h:8000",
        "run http://h:8000 --client-cores 2 --concurrency 100 --duration 30s",
        &[],
    ),
    (
        "ab -n 100 -c 10 -k http://h:8000/",
        "run http://h:8000/ --requests 100 --concurrency 10",
        &[],
    ),
    (
        "locust --headless -f file.py -u 20 -r 5 -t 1m -H http://h:8000",
        "run http://h:8000 --concurrency 20 --duration 1m",
        &["-f is left out", "-r is left out: users start together"],
    ),
    (
        "python token_benchmark_ray.py --model m --num-concurrent-requests 2 --mean-input-tokens 100 \
         --mean-output-tokens 10 --max-num-completed-requests 5",
        "run URL --model m --concurrency 2 --input-tokens 100 --output-tokens 10 --requests 5",
        &[],
    ),
    (
        "aiperf profile -m M -u h:1 --api-key sk-secret --what-is-this 3 --streaming --concurrency 1 --isl 9",
        "run http://h:1 --model M --concurrency 1 --input-tokens 9",
        &[
            "--api-key is left out: put the key into a file",
            "--what-is-this has no known equivalent",
        ],
    ),
    (
        "aiperf profile -m M -u h:1 --streaming --concurrency 1,2,4 --isl 128 --request-count 20",
        "sweep http://h:1 --model M --concurrencies 1,2,4 --input-tokens 128 --requests 20",
        &[],
    ),
    (
        "aiperf profile -u h:1 -u h:2 --streaming --request-rate 1,2 --concurrency 8 --isl 128,512 --osl 8",
        "sweep http://h:1 --rates 1,2 --max-concurrency 8 --output-tokens 8",
        &["several are: sweep --target", "--input-tokens 128,512 is left out: each is a run"],
    ),
    (
        "aiperf profile -u h:1 --streaming --request-rate 4 --concurrency 1,2 --input-file t.jsonl \
         --custom-dataset-type mooncake_trace",
        "run http://h:1 --rate 4 --trace t.jsonl",
        &["--custom-dataset-type is left out", "1,2 is left out: with a rate"],
    ),
    (
        "genai-perf profile -m A B --model-selection-strategy round_robin -u h:1 --streaming --isl 100 \
         --num-system-prompts 3 --system-prompt-length 50 --session-turns-mean 4 --session-turn-delay-mean 1500 \
         -g time_to_first_token:300 request_latency:900 -b 1 -s 999 --generate-plots --concurrency 2 \
         --server-metrics-url h:9/metrics --tokenizer T --tokenizer-revision main --osl 9 \
         --output-tokens-mean-deterministic --image-width-mean 64 -p 4000",
        "run http://h:1 --model A --input-tokens 150 --prefixes 3 --prefix-tokens 50 --turns 4 \
         --turn-think-time 1500ms --concurrency 2 --metrics-url http://h:9/metrics --tokenizer T --output-tokens 9 \
         --pin-output always",
        &[
            "--model-selection-strategy is left out",
            "-g is left out: write each as an SLO",
            "-b is left out: a request has one input",
            "-s is left out: a run has a length",
            "--tokenizer-revision is left out",
            "--image-width-mean is left out",
            "-p is left out",
            "--model B is left out",
        ],
    ),
    ("k6 run -u 5 --stage 10s:5 s.js", "run URL --concurrency 5 --duration 10s", &["`s.js`"]),
    (
        "k6 run --stage 10s:5 s.js",
        "run URL --concurrency 5 --duration 10s",
        &["grow to the end", "`s.js`"],
    ),
    (
        "k6 run -s 10s:20 -s 1m:20 -s 5s:0 -p --no-setup --no-teardown -w --discard-response-bodies \
         --http-debug=full s.js",
        "run URL --concurrency 20 --ramp-up 10s --duration 70s",
        &["leave in the end", "-w is left out", "--http-debug is left out", "`s.js`"],
    ),
    (
        "k6 run --stage 10s:5,20s:10,5s:0 --rps 7 --insecure-skip-tls-verify s.js",
        "run URL --duration 20s --rate 7 --insecure",
        &["leave in the end", "stages are levels", "`s.js`", "5,10 is left out: with a rate"],
    ),
    (
        "guidellm run --backend kind=openai_http,target=http://h:1 --profile kind=concurrent --override \
         profile.streams 1,2,4 --constraint kind=max_duration,seconds=30",
        "sweep http://h:1 --concurrencies 1,2,4 --duration 30s",
        &[],
    ),
    (
        "vllm bench serve --num_prompts 10 --what-is-this 3 4 --goodput ttft:100 tpot:50",
        "bench serve --num_prompts 10 --goodput ttft:100 tpot:50",
        &["--what-is-this 3 4 is left out: unexpected argument"],
    ),
];

#[test]
fn pasted_commands_are_translated_to_commands_that_parse() {
    for (pasted, wanted, notes) in PASTED {
        let failure = translate(&shlex::split(pasted).unwrap()).expect(pasted);
        let hint = failure.hint.clone().unwrap();
        assert_eq!(hint, format!("write: inferometer {wanted}"), "{pasted}");
        let words = shlex::split(hint.strip_prefix("write: ").unwrap()).unwrap();
        let words = bench::with_dashes(words.into_iter().map(OsString::from));
        let parsed = Arguments::try_parse_from(&words);
        assert!(parsed.is_ok(), "{hint}: {parsed:?}");
        assert_eq!(failure.exit, crate::failure::Exit::Usage);
        assert_eq!(failure.shown.len(), notes.len(), "{pasted}: {:?}", failure.shown);
        for (note, wanted) in failure.shown.iter().zip(*notes) {
            assert!(note.contains(wanted), "{note}");
        }
        assert!(!format!("{failure:?}").contains("sk-secret"), "{failure:?}");
    }
}

#[test]
fn what_is_no_measurement_of_another_tool_is_left_alone() {
    for own in ["run http://h:1", "runs", "", "python script.py", "-m", "bench serve"] {
        assert!(translate(&shlex::split(own).unwrap()).is_none(), "{own}");
    }
    for (pasted, wanted) in [
        ("aiperf validate", "inferometer aiperf profile"),
        ("aiperf plot", "inferometer report latest --open"),
        ("genai-perf compare --files a.json b.json", "inferometer import"),
        ("vllm --version", "inferometer vllm bench serve"),
        ("vllm bench latency --model m", "not a load test of a server"),
        ("vllm bench throughput --model m", "--rate inf"),
        ("vllm serve m", "inferometer run --serve"),
        ("llama-bench -m model.gguf", "start llama-server"),
        ("trtllm-bench -m M throughput", "start trtllm-serve"),
    ] {
        let failure = translate(&shlex::split(pasted).unwrap()).unwrap();
        let hint = failure.hint.unwrap();
        assert!(hint.contains(wanted) && !hint.contains("bench serve bench"), "{pasted}: {hint}");
    }
}

/// Every template is a flag of `run`, with a value that it takes.
#[test]
fn every_translation_is_a_flag_of_ours() {
    let value = |template: &str| match template.split(' ').next().unwrap() {
        "--api" => "chat".to_owned(),
        "--arrivals" => "poisson".to_owned(),
        "--metadata" => "a=b".to_owned(),
        "--extra-body" => "{}".to_owned(),
        "--pin-output" => "always".to_owned(),
        _ if template.contains("{time}") => "5s".to_owned(),
        _ if template.contains("{ms}") => "5ms".to_owned(),
        _ => "5".to_owned(),
    };
    for (tool, names, template) in
        TOOLS.iter().flat_map(|tool| tool.flags.iter().map(move |(n, t)| (&tool.name, n, t)))
    {
        if template.is_empty() || template.starts_with('!') || template == "{url}" {
            continue;
        }
        let value = value(template);
        let own = template.replace("{time}", &value).replace("{ms}", &value).replace("{}", &value);
        let words = ["inferometer", "run"].into_iter().chain(own.split(' '));
        let parsed = Arguments::try_parse_from(words);
        assert!(parsed.is_ok(), "{tool} {names}: {template}: {parsed:?}");
    }
}

#[test]
fn flags_of_other_tools_have_the_right_hint() {
    let run = |flag: &str| flag_hint(flag, |_| true);
    for (flag, wanted) in [
        ("--vus", "`--vus` (k6): --concurrency VALUE"),
        ("--request-count", "--requests VALUE"),
        ("--benchmark-duration", "--duration TIME"),
        ("--random-input-len", "(vLLM, SGLang): --input-tokens VALUE"),
        ("--target", "the URL, behind the command"),
        ("--streaming", "--stream"),
        ("--save-result", "inferometer export latest --format vllm"),
        ("--warmup", "`--warmup` (GuideLLM): steady state is found"),
    ] {
        let hint = run(flag).expect(flag);
        assert!(hint.contains(wanted), "{hint}");
    }
    assert_eq!(run("--nonsense"), None);
    // Nothing is said of flags that the command does not have.
    for flag in ["--vus", "--target", "--streaming", "--save-result", "--warmup", "--ui"] {
        assert_eq!(flag_hint(flag, |own| own == "--output"), None, "{flag}");
    }
}

/// docs/translations.md is this table.
#[test]
fn the_documentation_has_every_translation() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/translations.md");
    let intro = "# Flags of other tools\n\n<!-- Written by `cargo xtask docs`. -->\n\n\
        Paste a command of one of these tools behind `inferometer`, and the answer is the same \
        measurement as a command of ours. These are the flags that it knows.\n";
    let page = format!("{intro}{}", document());
    if std::env::var_os("INFEROMETER_REWRITE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(stored, page, "run `cargo xtask docs`");
}
