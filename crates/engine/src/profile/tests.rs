//! Facts of the data, and servers that start or refuse to.

use super::catalogue::catalogue;
use super::*;
use crate::scheduler::{Generation, Policy, StepShape, StepTime};

fn choice(hardware: &str, model: &str, tp: u32) -> EngineTable {
    EngineTable {
        hardware: Some(hardware.into()),
        model: Some(model.into()),
        tp: Some(tp),
        ..EngineTable::default()
    }
}

fn refusal(choice: &EngineTable) -> String {
    Profile::compose(choice).expect_err("no such server").to_string()
}

#[test]
fn parameters_counted_from_the_architecture_are_those_published() {
    for model in &catalogue().models {
        let count = model.count();
        let off = count.total() / model.parameters - 1.0;
        assert!(off.abs() < 0.02, "{}: {:.4e} is off by {off:.4}", model.name, count.total());
        assert_eq!(model.active_parameters.is_some(), model.moe.is_some(), "{}", model.name);
        if let Some(active) = model.active_parameters {
            // Some makers count the tables of words, and some do not.
            let counts = [count.active(), count.active() - count.vocabulary()];
            let off = counts.map(|count| (count / active - 1.0).abs()).into_iter().reduce(f64::min);
            assert!(off.unwrap() < 0.02, "{}: {counts:?} are off by {off:?}", model.name);
        }
    }
}

#[test]
fn every_gpu_and_model_has_a_source() {
    let known = catalogue();
    let gpus = known.hardware.iter().map(|gpu| (&gpu.name, &gpu.source));
    let models = known.models.iter().map(|model| (&model.name, &model.source));
    let without: Vec<&String> =
        gpus.chain(models).filter(|it| it.1.trim().is_empty()).map(|it| it.0).collect();
    assert!(without.is_empty(), "{without:?}");
}

#[test]
fn an_own_gpu_and_model_are_written_and_read_again() {
    let known = catalogue();
    let gpu = Gpu { name: "mine".into(), bandwidth: 3e12, ..known.gpu("h100").unwrap().clone() };
    let model = Model { name: "own".into(), ..known.model("qwen3-0.6b").unwrap().clone() };
    let file = ProfileFile {
        name: "a-file".to_owned(),
        gpu: Some(Gpu { aliases: Vec::new(), ..gpu }),
        model: Some(Model { aliases: Vec::new(), id: "own/own".into(), ..model }),
        serve: choice("mine", "own", 1),
        ..ProfileFile::default()
    };
    let written = toml::to_string(&file).unwrap();
    let read = Profile::from_toml(&written, "the test").unwrap();
    assert_eq!((read.gpu.name.as_str(), read.model.name.as_str()), ("mine", "own"));
    let again = Profile::from_toml(&read.to_toml(), "what was written").unwrap();
    assert_eq!((&again.gpu, &again.model), (&read.gpu, &read.model));
    assert_eq!((again.machine(), &again.scheduler), (read.machine(), &read.scheduler));
    // Steps that wait for the memory take as long as its bandwidth says.
    let slower = written.replace("bandwidth = 3000000000000.0", "bandwidth = 1500000000000.0");
    assert_ne!(slower, written);
    let slower = Profile::from_toml(&slower, "the test").unwrap();
    let decode = StepShape { decodes: 1, decode_context: 100, ..StepShape::default() };
    let [fast, slow] = [&read, &slower].map(|profile| profile.step_model(0).step_ns(&decode));
    assert!(fast < slow, "{fast} {slow}");
}

#[test]
fn every_name_leads_to_one_thing() {
    let known = catalogue();
    let mut names: Vec<String> = Vec::new();
    for model in &known.models {
        names.extend([model.name.clone(), model.id.clone()]);
        names.extend(model.aliases.clone());
    }
    for gpu in &known.hardware {
        names.push(gpu.name.clone());
        names.extend(gpu.aliases.clone());
    }
    names.extend(known.profiles.iter().map(|profile| profile.name.clone()));
    let mut lower: Vec<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
    lower.sort();
    lower.dedup();
    assert_eq!(lower.len(), names.len());
}

#[test]
fn keys_and_values_take_what_they_are_known_to_take() {
    let per_token = |name: &str, tp| {
        let model = catalogue().model(name).unwrap();
        model.kv_numbers(tp) * model.layers * 2
    };
    assert_eq!(per_token("llama-3.1-8b", 1), 128 * 1024);
    assert_eq!(per_token("llama-3.1-70b", 8), 40 * 1024);
    // More GPUs than heads: each holds one.
    assert_eq!(per_token("llama-3.1-70b", 16), 40 * 1024);
    assert_eq!(per_token("deepseek-v3", 1), 576 * 61 * 2);
    assert_eq!(per_token("deepseek-v3", 8), 576 * 61 * 2);
}

/// Llama 3.1 8B in bfloat16 on 80 GiB at 0.92: about 28,500 blocks.
#[test]
fn blocks_are_counted_as_a_server_counts_them() {
    let profile = Profile::named(DEFAULT).unwrap();
    let blocks = f64::from(profile.scheduler.blocks);
    assert!((blocks / 28_500.0 - 1.0).abs() < 0.03, "{blocks}");
    assert!((profile.memory.block - 2.0 * MIB).abs() < 1.0);
    assert!((profile.memory.weights / GIB - 14.96).abs() < 0.02);
    assert!((profile.max_concurrency() - blocks / 8192.0).abs() < 1e-9);
    let text = profile.describe();
    assert!(text.contains("79.11 GiB x 0.92 = 72.78 GiB; weights 14.96"), "{text}");
    assert!(text.contains("maximum concurrency for 131,072 tokens per request: 3.4"), "{text}");
}

#[test]
fn settings_default_as_in_vllm() {
    let scheduler =
        |hardware, model| Profile::compose(&choice(hardware, model, 1)).expect(hardware).scheduler;
    let bounds = |hardware| {
        let scheduler = scheduler(hardware, "qwen3-4b");
        (scheduler.max_num_batched_tokens, scheduler.max_num_seqs)
    };
    assert_eq!(bounds("mi300x"), (16_384, 1024));
    assert_eq!(bounds("b200"), (16_384, 1024));
    assert_eq!(bounds("h100"), (8192, 1024));
    assert_eq!(bounds("a100-80gb"), (2048, 256));
    assert_eq!(bounds("mi100"), (2048, 256));
    let v1 = scheduler("h100", "qwen3-4b");
    assert_eq!((v1.block_size, v1.max_model_len), (16, 40_960));
    assert!(v1.chunked_prefill && v1.prefix_caching && v1.async_scheduling);
    assert_eq!((v1.policy, v1.generation), (Policy::Fcfs, Generation::V1));
}

#[test]
fn the_older_generation_keeps_prompts_whole() {
    let v0 = EngineTable {
        generation: Some(EngineGeneration::V0),
        num_scheduler_steps: Some(20),
        gpu_memory_utilization: Some(0.98),
        ..choice("mi300x", "llama-3.1-70b", 4)
    };
    let profile = Profile::compose(&v0).unwrap();
    let scheduler = &profile.scheduler;
    assert_eq!(scheduler.generation, Generation::V0 { scheduler_steps: 20 });
    assert_eq!((scheduler.max_num_batched_tokens, scheduler.max_num_seqs), (131_072, 256));
    assert!(!scheduler.chunked_prefill && !scheduler.prefix_caching);
    assert_eq!(profile.machine().scheduler_steps, 20);
    let steps = EngineTable { generation: None, ..v0.clone() };
    assert!(refusal(&steps).contains("--generation v0"));
    let chunks = EngineTable { enable_chunked_prefill: Some(true), ..v0.clone() };
    assert!(refusal(&chunks).contains("--enable-chunked-prefill"));
    let short = EngineTable { max_num_batched_tokens: Some(4096), ..v0 };
    assert!(refusal(&short).contains("4096 is less than the 131072 tokens"));
}

#[test]
fn a_model_that_does_not_fit_is_refused_with_the_arithmetic() {
    let text = refusal(&choice("h100", "llama-3.1-70b", 1));
    for part in [
        "Llama 3.1 70B (bfloat16) does not fit 1 x NVIDIA H100 SXM 80 GB (tp 1, pp 1)",
        "72.78 GiB  (79.11 GiB x 0.92 utilisation)",
        "131.42 GiB",
        "left for the KV cache",
        "131,072 tokens need",
        "--tp 4",
        "--quantization int4 --max-model-len",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let longest = text.split("int4 --max-model-len ").nth(1).and_then(|len| len.parse().ok());
    let proposed = EngineTable {
        quantization: Some(Quantization::Int4.into()),
        max_model_len: longest,
        ..choice("h100", "llama-3.1-70b", 1)
    };
    assert!(longest > Some(50_000) && Profile::compose(&proposed).is_ok(), "{longest:?}");
    let fits = Profile::compose(&choice("h100", "llama-3.1-70b", 4)).unwrap();
    assert_eq!((&*fits.name, fits.gpus()), ("h100-llama-3.1-70b-tp4", 4));
    assert!(fits.scheduler.blocks > 8192);
}

#[test]
fn a_context_that_does_not_fit_names_the_longest_that_does() {
    let asked = choice("v100", "llama-3.1-8b", 1);
    let text = refusal(&asked);
    let longest: u32 = text
        .split("--max-model-len ")
        .nth(1)
        .and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok())
        .expect(&text);
    let with = |len| EngineTable { max_model_len: Some(len), ..asked.clone() };
    assert_eq!(Profile::compose(&with(longest)).unwrap().scheduler.max_model_len, longest);
    assert!(refusal(&with(longest + 1)).contains("does not fit"));
}

#[test]
fn the_largest_models_need_a_whole_server() {
    for (hardware, model, too_few, enough) in [
        ("mi300x", "llama-3.1-405b", 4, 8),
        ("h200", "llama-3.1-405b", 4, 8),
        ("mi325x", "llama-3.1-405b", 2, 4),
        ("h200", "deepseek-v3", 4, 8),
    ] {
        let text = refusal(&choice(hardware, model, too_few));
        assert!(text.contains(&format!("--tp {enough}")), "{text}");
        Profile::compose(&choice(hardware, model, enough)).expect(model);
    }
    let h100 = refusal(&choice("h100", "llama-3.1-405b", 8));
    assert!(h100.contains("--tp 16") && h100.contains("--quantization fp8"), "{h100}");
}

#[test]
fn types_that_the_hardware_lacks_are_refused() {
    let v100 = choice("v100", "llama-3.2-3b", 1);
    let asked = EngineTable { dtype: Some(Dtype::Bfloat16.into()), ..v100.clone() };
    let text = refusal(&asked);
    assert!(text.contains("NVIDIA V100") && text.contains("--dtype half"), "{text}");
    let auto =
        Profile::compose(&EngineTable { max_model_len: Some(8192), ..v100.clone() }).unwrap();
    assert_eq!(auto.numbers.dtype, Dtype::Half);
    assert!(
        refusal(&EngineTable { dtype: Some(Dtype::Fp8.into()), ..v100 })
            .contains("cannot multiply in fp8")
    );
    let mi100 = choice("mi100", "qwen3-4b", 1);
    let cache = EngineTable { kv_cache_dtype: Some(KvCacheDtype::Fp8.into()), ..mi100.clone() };
    assert!(refusal(&cache).contains("fp8 (KV cache)"));
    assert!(refusal(&choice("mi210", "deepseek-v3", 8)).contains("published in fp8"));
    let a100 = EngineTable {
        quantization: Some(Quantization::Fp8.into()),
        ..choice("a100", "qwen3-8b", 1)
    };
    let unpacked = Profile::compose(&a100).unwrap();
    assert!((unpacked.machine().linear_flops - 312e12).abs() < 1.0);
    let cache = EngineTable { kv_cache_dtype: Some(KvCacheDtype::Fp8.into()), ..a100 };
    assert!(refusal(&cache).contains("fp8 (KV cache)"));
    // The MI100 multiplies half as fast in bfloat16 as in half.
    let flops = |dtype: Dtype| {
        let asked = EngineTable { dtype: Some(dtype.into()), ..mi100.clone() };
        Profile::compose(&asked).unwrap().machine().linear_flops
    };
    assert!((flops(Dtype::Half) / flops(Dtype::Bfloat16) - 2.0).abs() < 1e-9);
}

#[test]
fn quantised_weights_leave_room_for_blocks() {
    let of = |quantization: Quantization| {
        let asked = EngineTable {
            quantization: Some(quantization.into()),
            ..choice("h100", "qwen3-32b", 1)
        };
        Profile::compose(&asked).unwrap()
    };
    let (fp8, int4) = (of(Quantization::Fp8), of(Quantization::Int4));
    assert!((fp8.memory.weights / int4.memory.weights - 1.8).abs() < 0.1);
    assert!(int4.scheduler.blocks > fp8.scheduler.blocks);
    assert_eq!(&*fp8.name, "h100-qwen3-32b-fp8");
    assert!((fp8.machine().linear_flops / int4.machine().linear_flops - 2.0).abs() < 0.01);
    let narrow = EngineTable {
        kv_cache_dtype: Some(KvCacheDtype::Fp8.into()),
        quantization: Some(Quantization::Fp8.into()),
        ..choice("h100", "qwen3-32b", 1)
    };
    let narrow = Profile::compose(&narrow).unwrap();
    assert!((fp8.memory.block / narrow.memory.block - 2.0).abs() < 1e-9);
}

#[test]
fn layouts_that_do_not_divide_are_refused() {
    let text = refusal(&choice("h100", "deepseek-r1-distill-qwen-1.5b", 8));
    assert!(text.contains("12 attention heads") && text.contains("1, 2, 4, 6, 12"), "{text}");
    // 24 heads are 3 x 8, but 8 key-value heads are not.
    let text = refusal(&choice("h100", "llama-3.2-3b", 3));
    assert!(text.contains("8 key-value heads"), "{text}");
    let deep = EngineTable { pp: Some(33), ..choice("h100", "llama-3.1-8b", 1) };
    assert!(refusal(&deep).contains("--pp 33 is more than the 32 layers"));
    let none = EngineTable { tp: Some(0), ..EngineTable::default() };
    assert!(refusal(&none).contains("--tp 0"));
}

#[test]
fn settings_out_of_range_are_refused_by_flag() {
    let base = EngineTable::default;
    let cases = [
        (
            EngineTable { gpu_memory_utilization: Some(1.2), ..base() },
            "--gpu-memory-utilization 1.2",
        ),
        (EngineTable { max_model_len: Some(200_000), ..base() }, "at most 131072"),
        (EngineTable { block_size: Some(0), ..base() }, "--block-size 0"),
        (EngineTable { num_gpu_blocks_override: Some(1), ..base() }, "--num-gpu-blocks-override 1"),
        (
            EngineTable { num_gpu_blocks_override: Some(u32::MAX), ..base() },
            "--num-gpu-blocks-override 4294967295",
        ),
        (EngineTable { max_num_seqs: Some(9000), ..base() }, "--max-num-seqs 9000"),
        (EngineTable { noise: Some(2.0), ..base() }, "noise = 2"),
    ];
    for (choice, part) in cases {
        let text = refusal(&choice);
        assert!(text.contains(part), "{part} in {text}");
    }
    let blocks = EngineTable { num_gpu_blocks_override: Some(500), ..base() };
    assert_eq!(Profile::compose(&blocks).unwrap().scheduler.blocks, 500);
}

#[test]
fn unknown_names_are_answered_with_the_nearest() {
    let text = refusal(&choice("mi30x", "llama-3.1-8b", 1));
    assert!(text.contains("unknown hardware `mi30x`") && text.contains("mi300x"), "{text}");
    let text = refusal(&choice("h100", "lama-3.1-8b", 1));
    assert!(text.contains("unknown model") && text.contains("llama-3.1-8b"), "{text}");
    let text = Profile::named("h100-lama-3.1-70b").unwrap_err().to_string();
    assert!(text.contains("unknown profile") && text.contains("h100-llama-3.1-70b"), "{text}");
    assert!(matches!(Profile::named("nowhere/my.toml"), Err(ProfileError::Read { .. })));
}

#[test]
fn a_composed_name_can_be_read_back() {
    for name in [
        "h100-llama-3.1-8b",
        "mi300x-llama-3.1-70b-tp4",
        "mi100-devstral-small-24b-int4-tp4",
        "v100-sxm2-32gb-qwen3-8b-tp2-pp2",
        "h100-pcie-qwen3-8b-fp8",
        "mi325x-deepseek-v3-tp4-int4",
    ] {
        assert_eq!(Profile::named(name).expect(name).name, name);
    }
    let by_hub = Profile::compose(&choice("H100", "meta-llama/Llama-3.1-8B-Instruct", 1)).unwrap();
    assert_eq!(by_hub.name, DEFAULT);
}

#[test]
fn a_profile_survives_its_file() {
    let asked = EngineTable { max_num_seqs: Some(64), ..choice("mi100", "devstral-small-24b", 4) };
    let coefficients = Coefficients {
        eta_small: Some(0.1),
        small_tokens_max: 50,
        link_latency_s: Some(3e-5),
        ..Coefficients::default()
    };
    let mut profile = Profile::compose(&asked).unwrap().with_coefficients(coefficients).unwrap();
    profile.fitted = Some(Fitted {
        source: "a table".into(),
        rows: 8,
        free: vec!["eta_small".into()],
        residuals: [("c 1 tpot".to_owned(), -0.03)].into(),
        leave_one_out: [("c 1 tpot".to_owned(), 0.05)].into(),
    });
    let text = profile.to_toml();
    let read = Profile::from_toml(&text, "a file").unwrap();
    assert_eq!(read.name, profile.name);
    assert_eq!(read.scheduler, profile.scheduler);
    assert_eq!(read.coefficients(), profile.coefficients());
    assert_eq!(read.fitted, profile.fitted);
    assert_eq!(read.to_toml(), text);
}

#[test]
fn files_that_cannot_be_are_refused() {
    let file = |rest: &str| {
        let text =
            format!("name = \"x\"\n[serve]\nhardware = \"h100\"\nmodel = \"qwen3-8b\"\n{rest}");
        Profile::from_toml(&text, "x.toml").map(|profile| profile.name)
    };
    assert_eq!(file("").unwrap(), "x");
    let text = file("[coefficients]\neta_memory = 1.4\n").unwrap_err().to_string();
    assert!(text.contains("coefficients of x: eta_memory = 1.4 exceeds the hardware"), "{text}");
    let text = file("[coefficients]\neta_memry = 0.4\n").unwrap_err().to_string();
    assert!(text.contains("x.toml") && text.contains("eta_memry"), "{text}");
    assert!(file("profile = \"y\"\n").unwrap_err().to_string().contains("another profile"));
    let bare = Profile::from_toml("name = \"x\"\n[serve]\n", "x.toml").unwrap_err().to_string();
    assert!(bare.contains("`hardware` and `model`"), "{bare}");
}

/// Efficiencies were measured for one system; on another they would be guesses in disguise.
#[test]
fn coefficients_do_not_move_to_another_system() {
    let text = "name = \"mine\"\n[serve]\nhardware = \"h100\"\nmodel = \"qwen3-8b\"\n\
                [coefficients]\neta_memory = 0.9\n[fitted]\nsource = \"a table\"\nrows = 4\n";
    let file = ProfileFile::read(text, "mine.toml").unwrap();
    let with = |choice: &EngineTable| compose::over(file.clone(), choice).unwrap();
    let shares = |profile: &Profile| (profile.coefficients().eta_memory, profile.fitted.is_some());
    let same = with(&EngineTable { max_num_seqs: Some(8), ..EngineTable::default() });
    assert_eq!((&*same.name, shares(&same)), ("mine", (0.9, true)));
    let moved = with(&EngineTable { hardware: Some("h200".into()), ..EngineTable::default() });
    assert_eq!((&*moved.name, shares(&moved)), ("h200-qwen3-8b", (0.75, false)));
}

#[test]
fn a_fit_that_is_carried_over_is_not_claimed() {
    let text = "name = \"mine\"\n[serve]\nhardware = \"h100\"\nmodel = \"qwen3-8b\"\n\
                [coefficients]\neta_memory = 0.9\n[fitted]\nsource = \"a table\"\nrows = 4\n";
    let file = ProfileFile::read(text, "mine.toml").unwrap();
    let with = |choice: &EngineTable| compose::over(file.clone(), choice).unwrap();
    let own =
        with(&EngineTable { tp: Some(1), enforce_eager: Some(false), ..EngineTable::default() });
    assert!(own.describe().contains("step times fitted to 4 rows: a table"));
    for other in [
        EngineTable { tp: Some(2), ..EngineTable::default() },
        EngineTable { pp: Some(2), ..EngineTable::default() },
        EngineTable { generation: Some(EngineGeneration::V0), ..EngineTable::default() },
        EngineTable { enforce_eager: Some(true), ..EngineTable::default() },
        EngineTable {
            enable_chunked_prefill: Some(false),
            max_model_len: Some(8192),
            ..EngineTable::default()
        },
    ] {
        let carried = with(&other);
        assert!((carried.coefficients().eta_memory - 0.9).abs() < 1e-12);
        let text = carried.describe();
        assert!(text.contains("carried over from a fit of another layout or schedule"), "{text}");
        assert!(!carried.to_toml().contains("[fitted]"));
    }
}

#[test]
fn what_is_listed_can_be_played() {
    let listing = catalogue();
    assert_eq!(listing.profiles[0].name, DEFAULT);
    assert_eq!((listing.hardware.len(), listing.models.len()), (16, 19));
    for row in &listing.profiles {
        let profile = Profile::named(&row.name).expect(&row.name);
        let names = (profile.gpu.name, profile.model.name);
        assert_eq!(names, (row.serve.hardware.clone().unwrap(), row.serve.model.clone().unwrap()));
    }
}

#[test]
fn a_large_gpu_captures_larger_batches() {
    let graphs = |hardware| {
        let profile = Profile::compose(&choice(hardware, "qwen3-8b", 1)).unwrap();
        profile.machine().graphs_max
    };
    assert_eq!((graphs("h200"), graphs("b200")), (512, 1024));
}

#[test]
fn a_mesh_gives_a_small_group_fewer_links() {
    let mesh = &catalogue().gpu("mi300x").unwrap().link;
    assert!((mesh.bandwidth_within(8) - 448e9).abs() < 1.0);
    assert!((mesh.bandwidth_within(2) - 64e9).abs() < 1.0);
    assert!((catalogue().gpu("h100").unwrap().link.bandwidth_within(2) - 450e9).abs() < 1.0);
}
