"""Drives vLLM's own scheduler with a model runner that computes nothing, and writes down its steps.

Needs the package of vLLM (no GPU, no weights); see make.py for the command.
"""

import json
import pathlib
import tempfile

import torch
from vllm.config import CacheConfig, ModelConfig, SchedulerConfig, VllmConfig
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus
from vllm.v1.structured_output import StructuredOutputManager

WORD = (1 << 64) - 1
VOCABULARY = 32_000
SPECIAL_TOKENS = 16
STEPS_MAX = 5_000
MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "max_position_embeddings": 65_536,
    "vocab_size": VOCABULARY,
}


def mix(x):
    """As in scheduler/tokens.rs."""
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & WORD
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & WORD
    return x ^ (x >> 31)


def token(seed, index):
    """As in scheduler/tokens.rs."""
    drawn = mix(seed ^ ((index + 1) * 0x9E3779B97F4A7C15 & WORD))
    return SPECIAL_TOKENS + ((drawn >> 32) * (VOCABULARY - SPECIAL_TOKENS) >> 32)


class Watched(Scheduler):
    """The scheduler, with the order of its preemptions."""

    victims = ()

    def _preempt_request(self, request, *rest, **named):
        self.victims = (*self.victims, int(request.request_id))
        return super()._preempt_request(request, *rest, **named)

    def take_victims(self):
        victims, self.victims = self.victims, ()
        return list(victims)


class Oracle:
    """Runs workloads, each on a scheduler of its own."""

    def __init__(self):
        init_none_hash(sha256)
        self.folder = tempfile.TemporaryDirectory()
        config = pathlib.Path(self.folder.name) / "config.json"
        config.write_text(json.dumps(MODEL))

    def scheduler(self, config):
        model = ModelConfig(
            model=self.folder.name,
            skip_tokenizer_init=True,
            dtype="float32",
            max_model_len=config["max_model_len"],
        )
        rules = SchedulerConfig(
            max_model_len=config["max_model_len"],
            is_encoder_decoder=False,
            max_num_seqs=config["max_num_seqs"],
            max_num_batched_tokens=config["max_num_batched_tokens"],
            long_prefill_token_threshold=config["long_prefill_token_threshold"],
            enable_chunked_prefill=config["chunked_prefill"],
            scheduler_reserve_full_isl=config["reserve_full_prompt"],
            watermark=config["watermark"],
            policy=config["policy"],
            async_scheduling=False,
        )
        cache = CacheConfig(
            block_size=config["block_size"],
            enable_prefix_caching=config["prefix_caching"],
        )
        whole = VllmConfig(scheduler_config=rules, model_config=model, cache_config=cache)
        cache.num_gpu_blocks = config["blocks"]
        spec = FullAttentionSpec(
            block_size=config["block_size"], num_kv_heads=1, head_size=1, dtype=torch.float32
        )
        made = Watched(
            vllm_config=whole,
            kv_cache_config=KVCacheConfig(
                num_blocks=config["blocks"],
                kv_cache_tensors=[],
                kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)],
            ),
            structured_output_manager=StructuredOutputManager(whole),
            block_size=config["block_size"],
        )
        # A platform may overrule what it is asked for: the log would then tell of another server.
        assert rules.enable_chunked_prefill == config["chunked_prefill"]
        assert rules.max_num_batched_tokens == config["max_num_batched_tokens"]
        assert cache.enable_prefix_caching == config["prefix_caching"]
        assert made.max_num_scheduled_tokens == config["max_num_batched_tokens"]
        assert made.max_model_len == config["max_model_len"]
        assert made.scheduler_reserve_full_isl == config["reserve_full_prompt"]
        return made

    def steps(self, config, requests):
        """What was in each step: [moment, scheduled, preempted, admitted, blocks left free]."""
        scheduler = self.scheduler(config)
        hasher = get_request_block_hasher(config["block_size"], sha256)
        log, moment, coming = [], 0, list(range(len(requests)))
        while True:
            while coming and requests[coming[0]]["at"] <= moment:
                number = coming.pop(0)
                scheduler.add_request(request_of(number, requests[number], hasher))
            if scheduler.get_num_unfinished_requests() == 0:
                if not coming:
                    return log
                moment = requests[coming[0]]["at"]
                continue
            log.append(step(scheduler, requests, moment))
            # A step that computes nothing takes no time.
            moment += 1 if log[-1][1] else 0
            assert len(log) < STEPS_MAX, "this workload never ends"


def request_of(number, facts, hasher):
    prompt = [token(seed, index) for seed, tokens in facts["prompt"] for index in range(tokens)]
    sampling = SamplingParams(max_tokens=facts["max_tokens"], ignore_eos=True)
    return Request(
        request_id=f"{number:06}",
        prompt_token_ids=prompt,
        sampling_params=sampling,
        pooling_params=None,
        # On a server no two arrive at once, and that matters: vLLM lets equals of one moment take
        # blocks from each other for ever.
        arrival_time=facts["at"] + number / 1e6,
        priority=facts["priority"],
        block_hasher=hasher,
    )


def step(scheduler, requests, moment):
    before = {request.request_id for request in scheduler.running}
    output = scheduler.schedule()
    scheduled = output.num_scheduled_tokens
    admitted = [
        (int(name), scheduler.requests[name].num_computed_tokens - tokens)
        for name, tokens in scheduled.items()
        if name not in before
    ]
    free = scheduler.kv_cache_manager.block_pool.get_num_free_blocks()
    line = [
        moment,
        [number for name, tokens in scheduled.items() for number in (int(name), tokens)],
        scheduler.take_victims(),
        [number for pair in admitted for number in pair],
        free,
    ]
    sampled = [answer(scheduler.requests[name], requests) for name in scheduled]
    # As the engine core does: who left while the step ran is gone before its tokens are looked at.
    if scheduled:
        for number, facts in enumerate(requests):
            if facts["abort"] == moment:
                scheduler.finish_requests(f"{number:06}", RequestStatus.FINISHED_ABORTED)
    names = list(scheduled)
    scheduler.update_from_output(
        output,
        ModelRunnerOutput(
            req_ids=names,
            req_id_to_index={name: index for index, name in enumerate(names)},
            sampled_token_ids=sampled,
        ),
    )
    return line


def answer(request, requests):
    """One token from each request whose known tokens are all computed."""
    if request.num_computed_tokens < request.num_tokens:
        return []
    facts = requests[int(request.request_id)]
    return [token(facts["answer"], request.num_output_tokens)]
