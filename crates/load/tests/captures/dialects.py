"""What the captures of other APIs than OpenAI's chat and completions should say.

Part of the oracle: it reads whole documents with the standard library, knows only what the
captures contain, and shares no code with the crate it tests.
"""

import json

FINISHES = {
    "end_turn": "stop",
    "eos": "stop",
    "word": "stop",
    "limit": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
}


def must(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(what)


def usage(prompt: int | None, completion: int | None) -> dict:
    return {"prompt_tokens": prompt, "completion_tokens": completion}


def take_output(result, text: str, tokens: int = 0) -> None:
    result.choice(0).text += text
    if text or tokens:
        result.output_events += 1
    else:
        result.silent_events += 1


# ---- Responses ----------------------------------------------------------------------------------


def end_response(result, response: dict) -> None:
    counts = response["usage"]
    result.usage = usage(counts["input_tokens"], counts["output_tokens"])
    details = response.get("incomplete_details")
    must(details is not None or response["status"] == "completed", response["status"])
    result.choice(0).finish_reason = FINISHES[details["reason"]] if details else "stop"


def stream_responses(result, events: list[dict]) -> None:
    for event in events:
        match event["type"]:
            case "response.created":
                result.choice(0)
                result.role_events += 1
            case "response.output_text.delta":
                take_output(result, event["delta"])
            case "response.completed":
                end_response(result, event["response"])
            case "error" | "response.failed" | "response.incomplete":
                raise ValueError("no capture had it when this was written")
            case other:
                silent = ("added", "done", "in_progress")
                must(other.rpartition(".")[2] in silent, other)


def whole_responses(result, reply: dict) -> None:
    for item in reply["output"]:
        must(item["type"] == "message", item["type"])
        result.choice(0).text += "".join(part["text"] for part in item["content"])
    end_response(result, reply)


# ---- Messages -----------------------------------------------------------------------------------


def input_tokens(counts: dict) -> int | None:
    if "input_tokens" not in counts:
        return None
    return counts["input_tokens"] + counts.get("cache_read_input_tokens", 0)


def stream_messages(result, events: list[dict]) -> None:
    prompt = None
    for event in events:
        match event["type"]:
            case "message_start":
                result.choice(0)
                result.role_events += 1
                prompt = input_tokens(event["message"]["usage"])
                result.usage = usage(prompt, None)
            case "content_block_start":
                must(event["content_block"] == {"type": "text", "text": ""}, "a block with text")
            case "content_block_delta":
                must(event["delta"]["type"] == "text_delta", event["delta"]["type"])
                take_output(result, event["delta"]["text"])
            case "message_delta":
                result.choice(0).finish_reason = FINISHES[event["delta"]["stop_reason"]]
                counts = event["usage"]
                total = input_tokens(counts)
                result.usage = usage(prompt if total is None else total, counts["output_tokens"])
            case "message_stop":
                result.done = True
            case other:
                must(other == "content_block_stop", other)


def whole_messages(result, reply: dict) -> None:
    choice = result.choice(0)
    for block in reply["content"]:
        must(block["type"] == "text", block["type"])
        choice.text += block["text"]
    choice.finish_reason = FINISHES[reply["stop_reason"]]
    result.usage = usage(input_tokens(reply["usage"]), reply["usage"]["output_tokens"])


# ---- llama.cpp's completion ---------------------------------------------------------------------


def stream_llama(result, events: list[dict]) -> None:
    before = 0
    for event in events:
        total = event["tokens_predicted"]
        result.usage = usage(event["tokens_evaluated"], total)
        result.marked_tokens = total
        # An end that brings nothing is neither output nor silent.
        if event["stop"]:
            result.choice(0).finish_reason = FINISHES[event["stop_type"]]
        if not event["stop"] or event["content"] or before < total:
            take_output(result, event["content"], total - before)
        before = total


def whole_llama(result, reply: dict) -> None:
    stream_llama(result, [reply])
    result.output_events = 0


# ---- Vectors and scores -------------------------------------------------------------------------


def whole_list(result, reply: dict, items: list, body: str) -> None:
    must(len(items) > 0, "an empty list")
    # Such an answer has no text; all of it is what was generated.
    result.choice(0).text = body
    result.choice(0).finish_reason = "stop"
    result.usage = usage(reply["usage"]["prompt_tokens"], None)


STREAMS = {
    "responses": stream_responses,
    "messages": stream_messages,
    "llama-completion": stream_llama,
}
WHOLES = {
    "responses": whole_responses,
    "messages": whole_messages,
    "llama-completion": whole_llama,
}


def read_stream(api: str, sse, result) -> None:
    events = []
    for name, data in sse.events:
        event = json.loads(data)
        must(name in ("", event.get("type")), f"event {name} says {event.get('type')}")
        events.append(event)
    STREAMS[api](result, events)


def read_whole(api: str, body: bytes, result) -> None:
    text = body.decode("utf-8")
    reply = json.loads(text)
    if api in ("embeddings", "rerank"):
        whole_list(result, reply, reply["data" if api == "embeddings" else "results"], text)
    else:
        WHOLES[api](result, reply)
