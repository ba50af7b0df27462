"""Compares the run of four workers with that of one client: `compare.py PROGRAM FOLDER`."""

import json
import subprocess
import sys

program, folder = sys.argv[1:]


def read(name):
    with open(f"{folder}/{name}.json", encoding="utf-8") as file:
        summary = json.load(file)
    words = [program, "export", summary["run"]["id"], "--format", "vllm-detailed", "--to", "-"]
    words += ["--output", f"{folder}/runs"]
    text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return summary, json.loads(text)


merged, of_workers = read("merged")
single, of_one = read("single")
assert merged["workload"]["fingerprint"] == single["workload"]["fingerprint"]
assert merged["plan"]["fingerprint"] == single["plan"]["fingerprint"]
assert [merged[key] for key in ("scheduled", "attempted")] == [1200, 1200]
assert [worker["stripe"] for worker in merged["client"]["workers"]] == ["0/4", "1/4", "2/4", "3/4"]
# In the order of the plan: what was asked, and when it left.
for key in ("input_lens", "output_lens"):
    assert len(set(of_one[key])) > 10 and of_workers[key] == of_one[key], key
begins = [[time - of["start_times"][0] for time in of["start_times"]] for of in (of_workers, of_one)]
apart = sorted(abs(a - b) for a, b in zip(*begins, strict=True))
print(f"requests leave {1e3 * apart[600]:.2f} ms apart (median), {1e3 * apart[-1]:.2f} ms at most")
assert apart[600] < 0.02 and apart[-1] < 0.5, "at the planned times"
for name in ("ttft", "e2e"):
    both = [found["metrics"][f"{name}_ms"]["p50"] for found in (merged, single)]
    print(f"{name} p50: {both[0]:.2f} ms of four workers, {both[1]:.2f} ms of one client")
    assert abs(both[0] / both[1] - 1) < 0.1, name
print("the merged run is the plan of one client, request for request")
