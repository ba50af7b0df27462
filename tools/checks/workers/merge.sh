#!/bin/bash
# How long it takes to merge eight stripes of a million requests, and how much memory.
#
#   tools/checks/workers/merge.sh PROGRAM FOLDER [REQUESTS]
set -euo pipefail

program=$(realpath "$1")
mkdir -p "$2"
cd "$2"
requests=${3:-1000000}
rm -rf runs w? stdin
pids=()
trap 'for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done; wait 2>/dev/null || true' EXIT
export INFEROMETER_NO_CONFIG=1
mkfifo stdin
"$program" engine --mode echo --port 0 --until-stdin-closes <stdin >engine.txt &
pids+=($!)
exec 9>stdin
until grep -q http engine.txt; do sleep 0.1; done
url=$(grep -o 'http://[0-9.:]*' engine.txt | head -1)
start=$(date -u -d '+10 seconds' +%Y-%m-%dT%H:%M:%SZ)
workers=()
for index in $(seq 0 7); do
    "$program" run "$url" -c 64 -n "$requests" --no-stream --isl 8 --osl 1 --seed 5 --stripe "$index/8" \
        --start-at "$start" --quiet --telemetry off --output "w$index" >"worker-$index.txt" 2>&1 &
    workers+=($!)
done
for pid in "${workers[@]}"; do wait "$pid" || true; done
ls -d w?/*/ >/dev/null
python3 - "$program" "$requests" <<'END'
import json
import resource
import subprocess
import sys
import time

program, requests = sys.argv[1], int(sys.argv[2])
began = time.monotonic()
words = [program, "merge", *(f"w{index}" for index in range(8)), "--json"]
merged = json.loads(subprocess.run(words, check=False, stdout=subprocess.PIPE).stdout)
took = time.monotonic() - began
used = resource.getrusage(resource.RUSAGE_CHILDREN)
memory_mb, cpu = used.ru_maxrss / 1024, used.ru_utime + used.ru_stime
assert merged["scheduled"] == requests, merged["scheduled"]
print(f"merged {requests} requests of 8 workers in {took:.1f} s ({cpu:.1f} s of CPU) with {memory_mb:.0f} MB")
assert took < 10 * max(1, requests / 1e6), "too slow"
assert memory_mb < 300, "too much memory"
END
