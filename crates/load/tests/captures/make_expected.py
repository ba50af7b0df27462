#!/usr/bin/env python3
"""Computes expected.json from the captured server replies beside this script.

Each NAME.raw holds every byte one server sent for one request: status line, headers, chunk
framing, body. The servers are vLLM 0.32 (vllm-*), transformers serve 5.22 (tf-*),
llama-cpp-python 0.3.36 (lcp-*) and the llama.cpp server that comes with it (llama-*), each with
the same small random model, so the texts are noise, rich in characters that span several tokens.

This is an oracle: it shares no code with the crate it tests, uses the standard library only, and
works on whole files, so none of the incremental parsing under test is repeated here. What no
capture contains (compression, trailers, malformed JSON) makes it fail rather than guess.

Usage: python3 make_expected.py          rewrites expected.json
       python3 make_expected.py --check  exits 1 if expected.json is not what it would write
"""

import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

import dialects

HERE = Path(__file__).resolve().parent

# What the bytes do not tell: which API was asked, whether a stream was asked for, and why the
# capture is kept. The requests of the err-* captures were streamed chat requests, except that
# err-404 asked for a path the server does not have.
CAPTURES = {
    # name: (api, stream, note)
    "lcp-chat": ("chat", True, "empty deltas are held-back tokens, unmarked; no usage"),
    "lcp-chat-logprobs": ("chat", True, "empty deltas marked by logprobs; finish chunk unmarked"),
    "lcp-chat-mct": ("chat", True, "five pings before the first data"),
    "lcp-chat-nostream": ("chat", False, ""),
    "lcp-cmpl": ("completions", True, 'non-ASCII escaped; finish chunk has text ""'),
    "lcp-cmpl-nostream": ("completions", False, ""),
    "lcp-conc4-2": ("completions", True, "cut: one delta, then [DONE]; no finish, no final chunk"),
    "lcp-conc4-3": ("completions", True, "cut: one empty delta, then [DONE]; no finish, no end"),
    "lcp-err-404": ("chat", True, "unknown path; detail as a string"),
    "lcp-err-json": ("chat", True, "invalid JSON sent; plain-text body"),
    "lcp-err-long": ("chat", True, "prompt over the context: 200 and a stream without any event"),
    "lcp-err-model": ("chat", True, "unknown model name accepted and echoed"),
    "lcp-err-neg": ("chat", True, "max_tokens -5 accepted"),
    "lcp-err-nomsg": ("chat", True, "request without messages accepted"),
    "lcp-models": ("models", False, "lists tiny"),
    "llama-completion": ("llama-completion", True, "several tokens at once, one id of them"),
    "llama-completion-err": ("llama-completion", True, "a field of the wrong type"),
    "llama-completion-nostream": ("llama-completion", False, ""),
    "llama-completion-stop": ("llama-completion", True, "ended by a stop word, which is cut off"),
    "llama-completion-tokens": ("llama-completion", True, "ignore_eos; token ids asked for"),
    "llama-embeddings": ("embeddings", False, ""),
    "llama-embeddings-batch": ("embeddings", False, "two inputs"),
    "llama-messages": ("messages", True, "no message_start, so no count of the input"),
    "llama-messages-err": ("messages", True, "request without messages"),
    "llama-messages-nostream": ("messages", False, "8 of 9 input tokens from the cache"),
    "llama-messages-sys": ("messages", True, "16 of 30 input tokens from the cache"),
    "llama-rerank": ("rerank", False, ""),
    "llama-responses": ("responses", True, "response.created several times; limit not told"),
    "llama-responses-items": ("responses", True, "items without a type are refused"),
    "llama-responses-nostream": ("responses", False, ""),
    "tf-chat": ("chat", True, "role chunk before prefill; usage on the finish chunk; no [DONE]"),
    "tf-chat-ignoreeos": ("chat", True, "ignore_eos and min_tokens refused; detail as a string"),
    "tf-chat-logprobs": ("chat", True, "logprobs ignored; three events in one HTTP chunk"),
    "tf-chat-nostream": ("chat", False, ""),
    "tf-cmpl": ("completions", True, 'finish chunk has text "" and usage; no [DONE]'),
    "tf-cmpl-nostream": ("completions", False, ""),
    "tf-err-404": ("chat", True, "unknown path; detail as a string"),
    "tf-err-json": ("chat", True, "invalid JSON sent; detail as a list"),
    "tf-err-long": ("chat", True, "28,003 prompt tokens accepted on a 4,096-token model"),
    "tf-err-model": ("chat", True, "unknown model name; detail as a string"),
    "tf-err-neg": ("chat", True, "role chunk, then an error event; error is a string"),
    "tf-err-nomsg": ("chat", True, "request without messages; plain-text body"),
    "tf-responses": ("responses", True, "no event names; several events in one HTTP chunk"),
    "tf-models": ("models", False, "500 while the server has no hub cache folder"),
    "vllm-chat": ("chat", True, "empty deltas are held-back tokens, unmarked"),
    "vllm-chat-contusage": ("chat", True, "token ids and usage throughout; marked empty finish"),
    "vllm-chat-greedy": ("chat", True, "empty unmarked finish chunk"),
    "vllm-chat-logprobs": ("chat", True, "empty deltas marked by logprobs; text on the finish"),
    "vllm-chat-n2": ("chat", True, "two interleaved choices; choice 1 ends on an empty finish"),
    "vllm-chat-nostream": ("chat", False, ""),
    "vllm-chat-stop": ("chat", True, "stop string: stop_reason beside finish_reason"),
    "vllm-chat-usage": ("chat", True, "usage in its own chunk with empty choices"),
    "vllm-cmpl": ("completions", True, "finish chunk carries text"),
    "vllm-cmpl-ids": ("completions", True, "prompt sent as token ids"),
    "vllm-cmpl-logprobs": ("completions", True, "first and finish chunk empty, marked by logprobs"),
    "vllm-cmpl-nostream": ("completions", False, ""),
    "vllm-cmpl-usage": ("completions", True, "usage in its own chunk with empty choices"),
    "vllm-embeddings": ("embeddings", False, "usage says zero completion tokens"),
    "vllm-embeddings-base64": ("embeddings", False, "two vectors in Base64"),
    "vllm-err-404": ("chat", True, "unknown path; detail as a string"),
    "vllm-err-json": ("chat", True, "invalid JSON sent; error as an object"),
    "vllm-err-long": ("chat", True, "prompt over the context; error as an object"),
    "vllm-err-model": ("chat", True, "unknown model name; error as an object"),
    "vllm-err-neg": ("chat", True, "max_tokens -5; error as an object"),
    "vllm-err-nomsg": ("chat", True, "request without messages; error as an object"),
    "vllm-messages": ("messages", True, "8 tokens in 4 deltas"),
    "vllm-messages-nostream": ("messages", False, ""),
    "vllm-models": ("models", False, "lists tiny"),
    "vllm-rerank": ("rerank", False, ""),
    "vllm-responses": ("responses", True, "response.completed although incomplete"),
    "vllm-responses-logprobs": ("responses", True, "logprobs of some tokens only"),
    "vllm-responses-nostream": ("responses", False, ""),
}

# Captures from which whole HTTP chunks were deleted in the middle of the body, each of them one
# event with a content delta and nothing else. The framing is still that of the server.
SHORTENED = {
    "lcp-chat-mct": "476 of 566 HTTP chunks deleted",
    "lcp-err-neg": "168 of 228 HTTP chunks deleted",
}


# ---- HTTP ---------------------------------------------------------------------------------------


def must(condition: bool, what: str) -> None:
    """Stops at what no capture contains, so that nothing is guessed (`python3 -O` drops assert)."""
    if not condition:
        raise ValueError(what)


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes
    clean_end: bool


def parse_reply(raw: bytes) -> Reply:
    head, separator, rest = raw.partition(b"\r\n\r\n")
    must(separator != b"", "the header section does not end")
    status_line, *lines = head.decode("latin-1").split("\r\n")
    match = re.fullmatch(r"HTTP/1\.1 (\d{3})(?: .*)?", status_line)
    must(match is not None, f"status line {status_line!r}")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()

    must("content-encoding" not in headers, "a compressed body")
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body, clean_end = dechunk(rest)
    else:
        length = int(headers["content-length"])
        must(len(rest) <= length, "bytes after the body")
        body, clean_end = rest, len(rest) == length
    return Reply(int(match[1]), headers, body, clean_end)


def dechunk(data: bytes) -> tuple[bytes, bool]:
    """The payload, and whether the final zero-length chunk was there and complete."""
    payload = bytearray()
    position = 0
    while True:
        line_end = data.find(b"\r\n", position)
        if line_end < 0:
            return bytes(payload), False
        size_line = data[position:line_end]
        must(re.fullmatch(rb"[0-9A-Fa-f]+", size_line) is not None, f"chunk size {size_line!r}")
        size = int(size_line, 16)
        start = line_end + 2
        if size == 0:
            must(data[start:] in (b"\r\n", b"\r", b""), "trailers, or bytes after the final chunk")
            return bytes(payload), data[start:] == b"\r\n"
        payload += data[start : start + size]
        position = start + size + 2
        if position > len(data):
            return bytes(payload), False
        must(data[position - 2 : position] == b"\r\n", "a chunk does not end where it should")


# ---- Server-sent events -------------------------------------------------------------------------


@dataclass
class Sse:
    events: list[tuple[str, str]]  # (event name, data), events without data left out
    comments: int


def parse_sse(body: bytes) -> Sse:
    """Follows the WHATWG rules, which drop an event that no blank line ends."""
    text = body.decode("utf-8").removeprefix("\ufeff")
    lines = re.split(r"\r\n|\n|\r", text)
    lines.pop()  # what follows the last line end: nothing, or a line that was cut

    events: list[tuple[str, str]] = []
    comments = 0
    name, data = "", []
    for line in lines:
        if line == "":
            if data:
                events.append((name, "\n".join(data)))
            name, data = "", []
        elif line.startswith(":"):
            comments += 1
        else:
            key, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if key == "data":
                data.append(value)
            elif key == "event":
                name = value
    return Sse(events, comments)


# ---- The OpenAI dialect -------------------------------------------------------------------------


OPENAI = ("chat", "completions")


@dataclass
class Choice:
    text: str = ""
    reasoning: str = ""
    finish_reason: str | None = None


@dataclass
class Result:
    choices: dict[int, Choice] = field(default_factory=dict)
    usage: dict[str, int] | None = None
    output_events: int = 0
    silent_events: int = 0
    role_events: int = 0
    marked_tokens: int | None = None
    done: bool = False
    error: str | None = None
    # Per choice, the completion tokens of the last usage that came with it.
    running_usage: dict[int, int] = field(default_factory=dict)

    def choice(self, index: int) -> Choice:
        return self.choices.setdefault(index, Choice())


def take_usage(result: Result, reply: dict) -> None:
    usage = reply.get("usage")
    if usage is not None:
        result.usage = {key: usage[key] for key in ("prompt_tokens", "completion_tokens")}


def reasoning_of(part: dict) -> str:
    # vLLM renamed the field; a server that sends both sends the same text twice.
    return part.get("reasoning") or part.get("reasoning_content") or ""


def has_tool_call(delta: dict) -> bool:
    return bool(delta.get("tool_calls") or delta.get("function_call"))


def logprob_entries(entry: dict) -> int:
    logprobs = entry.get("logprobs") or {}
    # Chat lists objects under "content", completions parallel arrays.
    return len(logprobs.get("content") or logprobs.get("tokens") or [])


def usage_growth(result: Result, chunk: dict, entry: dict) -> int:
    """How many tokens continuous usage says this entry brought.

    transformers sends its only usage on the finish chunk. That is a total, not a mark: usage
    counts as continuous only if it came before the finish reason.
    """
    usage = chunk.get("usage")
    if usage is None:
        return 0
    index = entry["index"]
    before = result.running_usage.get(index)
    if before is None and entry.get("finish_reason") is not None:
        return 0
    result.running_usage[index] = usage["completion_tokens"]
    return max(0, usage["completion_tokens"] - (before or 0))


def take_entry(result: Result, api: str, chunk: dict, entry: dict) -> None:
    """One entry of one chunk's `choices`: it is an output, role, finish, usage or silent event."""
    choice = result.choice(entry["index"])
    if api == "chat":
        delta = entry["delta"]
        text = delta.get("content") or ""
    else:
        delta = {"text": entry["text"]}
        text = entry["text"]
    reasoning = reasoning_of(delta)
    choice.text += text
    choice.reasoning += reasoning

    finish_reason = entry.get("finish_reason")
    if finish_reason is not None:
        choice.finish_reason = finish_reason

    # The growth is taken even where a better mark wins, or it would be counted later.
    growth = usage_growth(result, chunk, entry)
    tokens = len(entry.get("token_ids") or []) or logprob_entries(entry) or growth
    if tokens:
        result.marked_tokens = (result.marked_tokens or 0) + tokens

    if text or reasoning or has_tool_call(delta) or tokens:
        # Also where the entry carries a finish reason or a role besides.
        result.output_events += 1
    elif finish_reason is not None:
        pass  # finish-only
    elif "role" in delta:
        result.role_events += 1
    elif not delta and chunk.get("usage") is not None:
        pass  # usage-only
    else:
        result.silent_events += 1


def error_text(error: object) -> str:
    """`error` is a string or an object with a message; `detail` a string or a list of objects."""
    if isinstance(error, str):
        return error
    if isinstance(error, list):
        return "; ".join(item["msg"] for item in error)
    return error["message"]


def read_stream(api: str, sse: Sse) -> Result:
    result = Result()
    if api not in OPENAI:
        dialects.read_stream(api, sse, result)
        return result
    for name, data in sse.events:
        if data == "[DONE]":
            result.done = True
            continue
        must(not result.done, "data after [DONE]")
        must(name == "", "a named event")
        chunk = json.loads(data)
        if chunk.get("error") is not None:
            result.error = error_text(chunk["error"])
            continue
        take_usage(result, chunk)
        for entry in chunk["choices"]:
            take_entry(result, api, chunk, entry)
    return result


def read_whole(api: str, body: bytes) -> Result:
    """A reply that is not a stream. It has no events, so all event counts stay zero."""
    result = Result()
    if api not in OPENAI:
        dialects.read_whole(api, body, result)
        return result
    reply = json.loads(body)
    take_usage(result, reply)
    for entry in reply["choices"]:
        choice = result.choice(entry["index"])
        if api == "chat":
            choice.text = entry["message"].get("content") or ""
            choice.reasoning = reasoning_of(entry["message"])
        else:
            choice.text = entry["text"]
        choice.finish_reason = entry["finish_reason"]
    return result


def http_error_text(reply: Reply) -> str:
    text = reply.body.decode("utf-8")
    if not reply.headers["content-type"].startswith("application/json"):
        return text.strip()
    body = json.loads(text)
    return error_text(body["error"] if "error" in body else body["detail"])


# ---- The expected values ------------------------------------------------------------------------


def outcome_of(stream: bool, reply: Reply, result: Result) -> str:
    if not 200 <= reply.status < 300:
        return "rejected" if reply.status in (429, 503) else "http_error"
    media_type = reply.headers["content-type"].partition(";")[0]
    if media_type != ("text/event-stream" if stream else "application/json"):
        return "protocol_error"
    if result.error is not None:
        return "stream_error"
    # [DONE] decides nothing: transformers never sends it, llama-cpp-python also where it cut.
    finished = bool(result.choices) and all(
        choice.finish_reason is not None for choice in result.choices.values()
    )
    return "ok" if finished and reply.clean_end else "truncated"


def expected(name: str, raw: bytes) -> dict:
    api, stream, note = CAPTURES[name]
    reply = parse_reply(raw)
    sse = Sse([], 0)
    result = Result()
    if reply.status != 200:
        result.error = http_error_text(reply)
    elif api == "models":
        models = json.loads(reply.body)["data"]
        must([model["id"] for model in models] == ["tiny"], "another model")
    elif stream:
        sse = parse_sse(reply.body)
        result = read_stream(api, sse)
    else:
        result = read_whole(api, reply.body)

    if api == "models" and reply.status == 200:
        outcome = "ok" if reply.clean_end else "truncated"
    else:
        outcome = outcome_of(stream, reply, result)

    # Choices by index; an index that never appeared below one that did would be an empty one.
    count = max(result.choices, default=-1) + 1
    choices = [result.choices.get(index, Choice()) for index in range(count)]
    return {
        "api": api,
        "stream": stream,
        "status": reply.status,
        "content_type": reply.headers["content-type"],
        "texts": [choice.text for choice in choices],
        "reasoning": [choice.reasoning for choice in choices],
        "finish_reasons": [choice.finish_reason for choice in choices],
        "usage": result.usage,
        "data_events": len(sse.events),
        "comments": sse.comments,
        "output_events": result.output_events,
        "silent_events": result.silent_events,
        "role_events": result.role_events,
        "marked_tokens": result.marked_tokens,
        "done": result.done,
        "clean_end": reply.clean_end,
        "outcome": outcome,
        "error_message": result.error,
        "shortened": name in SHORTENED,
        "note": "; ".join(filter(None, (note, SHORTENED.get(name)))),
    }


def main() -> int:
    raws = {path.stem: path.read_bytes() for path in HERE.glob("*.raw")}
    if raws.keys() != CAPTURES.keys():
        print("table and files differ:", *sorted(raws.keys() ^ CAPTURES.keys()), file=sys.stderr)
        return 1
    values = {name: expected(name, raws[name]) for name in sorted(raws)}
    # ASCII only: the texts are full of control characters and unusual scripts.
    text = json.dumps(values, indent=2, ensure_ascii=True) + "\n"
    path = HERE / "expected.json"
    if sys.argv[1:] == ["--check"]:
        same = path.read_text(encoding="utf-8") == text
        print("expected.json is", "current" if same else "out of date")
        return 0 if same else 1
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
