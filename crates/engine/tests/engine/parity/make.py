"""Writes steps.jsonl: what vLLM's scheduler does with some hundreds of small workloads.

    python make.py > steps.jsonl

Run it with the Python of an environment that has vLLM; neither GPU nor weights are needed. The file
in this folder was made with vLLM 0.32.0 (V1 engine, async_scheduling off). The workloads are drawn
from fixed seeds, so another version of vLLM answers the same questions.

Each line is one workload:

    family     what it is about
    config     the options, in the words of our SchedulerConfig
    requests   [moment of arrival, [[seed, tokens] of the prompt ...], seed of the answer, max_tokens,
               priority, moment at which its client leaves or null]
    steps      [moment, [request, tokens, ...], [preempted ...], [admitted, cached tokens, ...],
               blocks free once the step was put together, times]

A moment is the number of steps' lengths since the start: who comes at moment k may be in the step
that begins then, who leaves at moment k leaves while that step runs. A line of `steps` stands for
`times` steps at consecutive moments, of which all but the first preempt and admit nobody.
"""

import json
import random
import sys

from oracle import Oracle


def config(draw, **fixed):
    """Options drawn from what the families have in common, then what is particular to one."""
    block_size = fixed.pop("block_size", draw.choice([16] * 8 + [8, 32]))
    blocks = 1 + fixed.pop("room", draw.randint(40, 400))
    max_model_len = min(fixed.pop("max_model_len", 4096), (blocks - 1) * block_size)
    max_num_seqs = draw.choice([1, 2, 3, 4, 6, 8, 16])
    chosen = {
        "block_size": block_size,
        "blocks": blocks,
        "max_num_seqs": max_num_seqs,
        "max_num_batched_tokens": max(draw.choice([16, 48, 64, 100, 256, 1000]), max_num_seqs),
        "max_model_len": max_model_len,
        "long_prefill_token_threshold": 0,
        "chunked_prefill": True,
        "prefix_caching": draw.random() < 0.8,
        "reserve_full_prompt": draw.random() < 0.8,
        "watermark": draw.choice([0.0, 0.0, 0.0, 0.05, 0.2]),
        "policy": "fcfs",
    }
    chosen.update(fixed)
    return chosen


def request(draw, at, prompt, tokens, priority=0, abort=None):
    return {
        "at": at,
        "prompt": prompt,
        "answer": draw.getrandbits(32),
        "max_tokens": tokens,
        "priority": priority,
        "abort": abort,
    }


def alone(draw, tokens):
    """A prompt that nobody else has."""
    return [(draw.getrandbits(32), max(tokens, 1))]


def arrivals(draw, count, span):
    """Some together, some after a while."""
    moments = sorted(draw.randint(0, span) for _ in range(count))
    return [0] * draw.randint(1, count) if draw.random() < 0.2 else moments


def fitting(requests, options):
    """Without what a server refuses: a prompt must leave room for one token."""
    limit = options["max_model_len"]
    return [r for r in requests if sum(tokens for _, tokens in r["prompt"]) < limit]


def mixed(draw):
    options = config(draw)
    moments = arrivals(draw, draw.randint(3, 12), 60)
    return options, [
        request(draw, at, alone(draw, draw.randint(1, 300)), draw.randint(1, 50)) for at in moments
    ]


def storm(draw):
    """More answers than blocks for them."""
    options = config(draw, room=draw.randint(8, 24))
    options["max_num_seqs"] = draw.choice([4, 6, 8, 16])
    options["max_num_batched_tokens"] = draw.choice([16, 64, 256])
    moments = arrivals(draw, draw.randint(4, 12), 20)
    return options, [
        request(draw, at, alone(draw, draw.randint(1, 90)), draw.randint(20, 120))
        for at in moments
    ]


def long_prompts(draw):
    """Prompts of many chunks, with and without a bound for one prompt's share."""
    threshold = draw.choice([0, 8, 20, 33, 64, 200])
    options = config(
        draw, room=draw.randint(60, 250), long_prefill_token_threshold=threshold
    )
    moments = arrivals(draw, draw.randint(1, 8), 30)
    return options, [
        request(draw, at, alone(draw, draw.choice([5, 60, 500, 1500])), draw.randint(1, 30))
        for at in moments
    ]


def whole_prompts(draw):
    """Chunked prefill is off: a prompt waits until it has a step's budget to itself."""
    length = draw.choice([100, 300, 600])
    options = config(draw, room=draw.randint(length // 8 + 2, 120), max_model_len=length)
    options["chunked_prefill"] = False
    options["max_num_batched_tokens"] = length + draw.choice([0, 1, 50, 200])
    options["max_model_len"] = min(options["max_model_len"], length)
    moments = arrivals(draw, draw.randint(3, 10), 25)
    return options, [
        request(draw, at, alone(draw, draw.randint(1, length - 1)), draw.randint(1, 60))
        for at in moments
    ]


def shared(draw):
    """Prompts that begin alike, in a cache that is large enough or not."""
    options = config(draw, room=draw.choice([20, 30, 60, 300]))
    options["prefix_caching"] = True
    stems = [(draw.getrandbits(32), draw.choice([16, 40, 64, 128, 200])) for _ in range(3)]
    made = []
    for at in arrivals(draw, draw.randint(4, 14), 80):
        stem = draw.choice(stems)
        # The first tokens of a run are a run: a shorter piece of the same stem.
        piece = (stem[0], stem[1] - draw.choice([0, 0, 1, 16, 30]) % stem[1])
        rest = alone(draw, draw.randint(1, 60)) if draw.random() < 0.8 else []
        made.append(request(draw, at, [piece, *rest], draw.randint(1, 40)))
    return options, made


def repeated(draw):
    """The same prompts again and again, of whole blocks and nearly so."""
    options = config(draw, room=draw.choice([16, 24, 40, 120]))
    options["prefix_caching"] = True
    size = options["block_size"]
    lengths = [draw.randint(1, 6) * size + draw.choice([-1, 0, 0, 1]) for _ in range(3)]
    prompts = [alone(draw, length) for length in lengths]
    return options, [
        request(draw, at, draw.choice(prompts), draw.randint(1, 40))
        for at in arrivals(draw, draw.randint(4, 14), 90)
    ]


def turns(draw):
    """Conversations: the next prompt holds the answer to the one before."""
    options = config(draw, room=draw.choice([24, 40, 80, 300]))
    options["prefix_caching"] = True
    made = []
    for _ in range(draw.randint(1, 4)):
        at, history = draw.randint(0, 20), []
        for _ in range(draw.randint(2, 4)):
            history = history + alone(draw, draw.randint(1, 60))
            made.append(request(draw, at, history, draw.randint(4, 40)))
            history = history + [(made[-1]["answer"], made[-1]["max_tokens"])]
            at += draw.randint(30, 90)
    return options, sorted(made, key=lambda r: r["at"])


def priorities(draw):
    options = config(draw, room=draw.choice([10, 16, 24, 60]), policy="priority")
    options["max_num_seqs"] = draw.choice([2, 4, 8])
    levels = draw.choice([2, 3, 10])
    return options, [
        request(
            draw,
            at,
            alone(draw, draw.randint(1, 100)),
            draw.randint(5, 90),
            priority=draw.randint(-1, levels),
        )
        for at in arrivals(draw, draw.randint(4, 12), 40)
    ]


def refunds(draw):
    """A long prompt of low priority gives way within the step: what it had of the budget is free."""
    options = config(draw, room=draw.randint(8, 20), policy="priority", reserve_full_prompt=False)
    options["max_num_seqs"] = draw.choice([4, 6])
    options["max_num_batched_tokens"] = draw.choice([10, 20, 40])
    options["long_prefill_token_threshold"] = draw.choice([4, 7, 16])
    made = [request(draw, 0, alone(draw, draw.randint(60, 200)), 9, priority=9)]
    for at in arrivals(draw, draw.randint(4, 9), 15):
        prompt = alone(draw, draw.randint(5, 120))
        made.append(request(draw, at, prompt, draw.randint(5, 60), priority=draw.randint(0, 9)))
    return options, made


def leaving(draw):
    """Clients that go away: out of the queue, out of a prompt, out of an answer."""
    options, made = draw.choice([mixed, storm, long_prompts, shared, priorities])(draw)
    for facts in made:
        if draw.random() < 0.5:
            facts["abort"] = facts["at"] + draw.choice([0, 1, 2, 5, 10, 30, 60])
    return options, made


def full_length(draw):
    """Answers that end at the model's length."""
    length = draw.choice([32, 33, 64, 100])
    options = config(draw, room=draw.randint(14, 40), max_model_len=length)
    return options, [
        request(draw, at, alone(draw, draw.randint(1, length)), 1000)
        for at in arrivals(draw, draw.randint(2, 8), 30)
    ]


def everything(draw):
    """All rules at once, in a pool that is too small for them."""
    options = config(
        draw,
        room=draw.randint(10, 40),
        policy=draw.choice(["fcfs", "priority"]),
        long_prefill_token_threshold=draw.choice([0, 0, 10, 40]),
    )
    options["max_num_seqs"] = draw.choice([3, 5, 8, 12])
    options["max_num_batched_tokens"] = draw.choice([16, 40, 128])
    stems = [(draw.getrandbits(32), draw.choice([16, 33, 64, 100])) for _ in range(2)]
    made = []
    for at in arrivals(draw, draw.randint(6, 14), 60):
        stem = [draw.choice(stems)] if draw.random() < 0.6 else []
        prompt = [*stem, *alone(draw, draw.randint(1, 60))]
        facts = request(draw, at, prompt, draw.randint(1, 90), priority=draw.randint(0, 2))
        if draw.random() < 0.15:
            facts["abort"] = at + draw.randint(0, 60)
        made.append(facts)
    return options, made


FAMILIES = [
    (mixed, 40),
    (storm, 60),
    (long_prompts, 40),
    (whole_prompts, 30),
    (shared, 50),
    (repeated, 40),
    (turns, 40),
    (priorities, 60),
    (refunds, 40),
    (leaving, 60),
    (full_length, 20),
    (everything, 80),
]


def folded(steps):
    """Equal steps at consecutive moments as one line."""
    lines = []
    for moment, scheduled, preempted, admitted, free in steps:
        last = lines[-1] if lines else None
        quiet = scheduled and not preempted and not admitted
        if quiet and last and last[0] + last[5] == moment and [last[1], last[4]] == [scheduled, free]:
            last[5] += 1
        else:
            lines.append([moment, scheduled, preempted, admitted, free, 1])
    return lines


def main():
    oracle = Oracle()
    for family, count in FAMILIES:
        for number in range(count):
            options, made = family(random.Random(f"{family.__name__} {number}"))
            requests = fitting(made, options)
            line = {
                "family": f"{family.__name__} {number}",
                "config": options,
                "requests": [list(facts.values()) for facts in requests],
                "steps": folded(oracle.steps(options, requests)),
            }
            print(json.dumps(line, separators=(",", ":")))
            print(line["family"], len(requests), len(line["steps"]), file=sys.stderr)


if __name__ == "__main__":
    main()
