"""Learns a server with `inferometer profile`, plays loads that the probe did not contain, simulates each
of them with the profile, and prints a Markdown table of the errors, misses included.

python3 predict.py PROGRAM FOLDER [--probe-time TIME] [--scale S] TARGET…

TARGET is a URL or --serve COMMAND, with further flags of `run`. A scale below one shortens prompts and
answers and lowers the rates for slow servers.
"""

import json
import math
import pathlib
import subprocess
import sys

CLOSED = [(3, 24, 700, 96), (6, 48, 1500, 64), (12, 100, 256, 128), (24, 150, 400, "60..140"),
          (48, 240, 128, 128), (64, 256, 1000, 100)]
OPEN = [(2, 30, 512, 128), (5, 70, 800, 96), (8, 100, "100..900", 100), (12, 140, 300, "40..160")]
# Our own definitions: the first event of some servers has no token, and vLLM's TTFT ends there.
FIGURES = [("output tok/s", "output_throughput", "output_throughput", 0.10),
           ("mean TPOT ms", "tpot_ms", "tpot", 0.10), ("mean TTFT ms", "ttft_ms", "ttft", 0.20)]


def option(words, name, default):
    if name not in words:
        return default
    place = words.index(name)
    value = words[place + 1]
    del words[place : place + 2]
    return value


def scaled(length, scale):
    ends = [max(4, round(int(end) * scale)) for end in str(length).split("..")]
    return str(ends[0]) if len(ends) == 1 else f"uniform:{ends[0]}..{ends[1]}"


def loads(scale, most):
    lengths = lambda prompt, answer: ["--input-tokens", scaled(prompt, scale),
                                      "--output-tokens", scaled(answer, scale)]
    for slots, requests, prompt, answer in CLOSED:
        if slots <= most:
            requests = max(2 * slots, round(requests * scale))
            yield ["--concurrency", str(slots), "--requests", str(requests), *lengths(prompt, answer)]
    for rate, requests, prompt, answer in OPEN:
        yield ["--rate", f"{rate * scale:g}", "--requests", str(max(20, round(requests * scale))),
               *lengths(prompt, answer)]


def last_line(done):
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return lines[-1] if lines else "no output"


def main():
    program, folder, *words = sys.argv[1:]
    probe_time = option(words, "--probe-time", "2m")
    scale = float(option(words, "--scale", "1"))
    most = int(option(words, "--most", "64"))
    folder = pathlib.Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    profile = folder / "learned.toml"
    profile.unlink(missing_ok=True)

    def inferometer(*arguments):
        done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True)
        if done.returncode != 0 and not done.stdout.strip():
            raise RuntimeError(last_line(done))
        return done

    def summary(*arguments):
        done = inferometer(*arguments, "--json", "--quiet")
        try:
            return json.loads(done.stdout)
        except ValueError:
            raise RuntimeError(f"exit code {done.returncode}: {last_line(done)}") from None

    levels = ",".join(str(2**n) for n in range(7) if 2**n <= most)
    lengths = ["--input-tokens", scaled("32..2048", scale), "--output-tokens", scaled("32..192", scale)]
    probe = inferometer("profile", *words, "--save", str(profile), "--force", "--probe-time", probe_time,
                        "--concurrencies", levels, *lengths)
    print(probe.stdout, probe.stderr, file=sys.stderr)
    print("| load | figure | measured | predicted (95 %) | error | inside |\n|---|---|---:|---:|---:|---|")
    near = inside = count = 0
    for load in loads(scale, most):
        shown = "`" + " ".join(load) + "`"
        try:
            measured = summary("run", *words, *load)
            predicted = summary("simulate", "--profile", str(profile), *load)
        except RuntimeError as why:
            print(f"| {shown} | failed: {why} | | | | |")
            continue
        widths = predicted["run"]["simulated"]["prediction"]["half_width"]
        for title, key, name, target in FIGURES:
            was, would = (summary["metrics"][key] for summary in (measured, predicted))
            was, would = (it.get("mean", it.get("value")) for it in (was, would))
            width = 1 + (widths.get(name) or 0)
            error, within = would / was - 1, abs(math.log(would / was)) <= math.log(width)
            near, inside, count = near + (abs(error) <= target), inside + within, count + 1
            print(f"| {shown} | {title} | {was:.4g} | {would:.4g} ({would / width:.4g} to "
                  f"{would * width:.4g}) | {100 * error:+.1f} % | {'yes' if within else 'no'} |", flush=True)
    print(f"\n{near} of {count} figures within the target (throughput and TPOT 10 %, TTFT 20 %); "
          f"{inside} of {count} measured values inside the stated interval.")


main()
