#!/bin/bash
# Two workers leave their runs in an S3 server of moto, started here, and a merge fetches them.
#
#   tools/checks/workers/object-store.sh PROGRAM FOLDER
set -euo pipefail

program=$(realpath "$1")
mkdir -p "$2"
cd "$2"
rm -rf runs w? merged stdin
pids=()
trap 'for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done; wait 2>/dev/null || true' EXIT
if ! python/bin/python -c 'import moto.server, boto3' 2>/dev/null; then
    python3 -m venv python
    python/bin/pip install --quiet 'moto[server]' boto3
fi
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
port=$(free_port)
python/bin/moto_server -H 127.0.0.1 -p "$port" >moto.log 2>&1 &
pids+=($!)
export AWS_ALLOW_HTTP=true AWS_ENDPOINT_URL=http://127.0.0.1:$port AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=secret-of-a-test
export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1 no_proxy=127.0.0.1
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do sleep 0.1; done
python/bin/python -c 'import boto3; boto3.client("s3").create_bucket(Bucket="runs")'

export INFEROMETER_NO_CONFIG=1
mkfifo stdin
"$program" engine --mode echo --port 0 --until-stdin-closes <stdin >engine.txt &
pids+=($!)
exec 9>stdin
until grep -q http engine.txt; do sleep 0.1; done
url=$(grep -o 'http://[0-9.:]*' engine.txt | head -1)
start=$(date -u -d '+5 seconds' +%Y-%m-%dT%H:%M:%SZ)
workers=()
# Enough for a journal of several parts.
for index in 0 1; do
    "$program" run "$url" -c 16 -n "${REQUESTS:-200000}" --no-stream --isl 8 --osl 1 --seed 5 --stripe "$index/2" \
        --start-at "$start" --quiet --telemetry off --output "w$index" --results s3://runs/load \
        >"worker-$index.txt" 2>&1 &
    workers+=($!)
done
for pid in "${workers[@]}"; do wait "$pid" || true; done
ls -l w?/*/requests.journal
rm -r w0 w1
"$program" merge s3://runs/load --output merged --json >merged.json || true
if grep -rq secret-of-a-test merged; then
    echo "a key was stored" >&2
    exit 1
fi
python/bin/python - "${REQUESTS:-200000}" <<'END'
import json
import sys

import boto3

with open("merged.json", encoding="utf-8") as file:
    merged = json.load(file)
objects = boto3.client("s3").list_objects_v2(Bucket="runs")["Contents"]
assert {found["Key"].split("/")[1] for found in objects} == {"0-of-2", "1-of-2"}, objects
assert [merged[key] for key in ("scheduled", "attempted")] == [int(sys.argv[1])] * 2
assert [worker["loss"] for worker in merged["client"]["workers"]] == [None, None]
size = sum(found["Size"] for found in objects)
print(f"{len(objects)} objects with {size / 1e6:.1f} MB, merged to {merged['attempted']} requests")
END
