#!/bin/bash
# Starts a Slurm of two nodes on this machine and measures with four of its tasks as workers, then with
# one client, and compares: the plan request for request, the latencies within noise.
#
#   tools/checks/workers/slurm.sh PROGRAM FOLDER
#
# Everything listens and stores below FOLDER, and ends with this script.
set -euo pipefail

here=$(realpath "$(dirname "$0")")
program=$(realpath "$1")
rm -rf "$2"
mkdir -p "$2"
folder=$(realpath "$2")
cd "$folder"
pids=()
# slurmd puts its steps into groups of their own; they end with it.
trap 'for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done; wait 2>/dev/null || true' EXIT

for tool in sbatch srun squeue slurmctld slurmd munged mungekey; do
    if ! PATH="$PATH:/usr/sbin" command -v "$tool" >/dev/null; then
        apt-get install -y --no-install-recommends slurm-wlm munge >install.log 2>&1
        break
    fi
done
export PATH="$PATH:/usr/sbin"

mkdir -p munge ctl n1 n2
chmod 0755 . munge
mungekey --create --keyfile "$folder/munge/key"
munged --foreground --force --key-file "$folder/munge/key" --socket "$folder/munge/socket" \
    --pid-file "$folder/munge/pid" --log-file "$folder/munge/log" --seed-file "$folder/munge/seed" \
    2>munge/errors &
pids+=($!)

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
host=$(hostname -s)
cores=$(nproc)
cat >slurm.conf <<END
ClusterName=check
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
StateSaveLocation=$folder/ctl
SlurmdSpoolDir=$folder/%n
SlurmctldPidFile=$folder/ctl/pid
SlurmdPidFile=$folder/%n/pid
SlurmctldLogFile=$folder/ctl/log
SlurmdLogFile=$folder/%n/log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MinJobAge=60
MpiDefault=none
ReturnToService=2
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$(free_port) CPUs=$cores State=UNKNOWN
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$(free_port) CPUs=$cores State=UNKNOWN
PartitionName=check Nodes=n1,n2 Default=YES MaxTime=00:30:00 State=UP OverSubscribe=FORCE:4
END
export SLURM_CONF="$folder/slurm.conf"
slurmctld -D 2>ctl/errors &
pids+=($!)
for node in n1 n2; do
    slurmd -D -N "$node" 2>"$node/errors" &
    pids+=($!)
done
for _ in $(seq 120); do
    if [ "$(sinfo --noheader --format=%D --states=idle 2>/dev/null)" = 2 ]; then break; fi
    sleep 0.5
done
sinfo

mkfifo stdin
"$program" engine --mode paced --port 0 --until-stdin-closes --ttft 50ms <stdin >engine.txt &
pids+=($!)
exec 9>stdin
until grep -q http engine.txt; do sleep 0.1; done
url=$(grep -o 'http://[0-9.:]*' engine.txt | head -1)

cat >experiment.toml <<END
[target]
url = "$url"
[workload]
input_tokens = "uniform:32..96"
output_tokens = "uniform:8..24"
seed = 11
[load]
rate = 40
requests = 1200
[slurm]
workers = 4
nodes = 2
partition = "check"
time_limit = "00:10:00"
start_in = "15s"
END
export INFEROMETER_NO_CONFIG=1
code=0
"$program" run experiment.toml --on slurm --output runs --format json >merged.json || code=$?
echo "four workers: exit code $code"
code=0
"$program" run experiment.toml --output runs --format json --progress none >single.json || code=$?
echo "one client: exit code $code"
"$program" verify --output runs "$(python3 -c 'import json; print(json.load(open("merged.json"))["run"]["id"])')"
python3 "$here/compare.py" "$program" "$folder"

# Each level of a sweep is a job of its own.
code=0
"$program" sweep experiment.toml --rates 20,40 --requests 200 --on slurm --output swept --json >swept.json || code=$?
echo "a sweep of two levels: exit code $code, $(find swept -name job.sbatch | wc -l) jobs"
[ "$(find swept -name job.sbatch | wc -l)" = 2 ]
"$program" verify --output swept latest

# Starts the job, and waits until its workers have sent a part of the plan.
begin() {
    "$program" run experiment.toml --on slurm --output "$1" --format json --progress lines >"$1.json" 2>"$1.txt" &
    job=$!
    until grep -qE "4 of 4 workers send, 0 are done: [2-9][0-9][0-9] ok" "$1.txt"; do
        kill -0 "$job" || { cat "$1.txt"; exit 1; }
        sleep 0.2
    done
}
# What the merged run says of each worker; the run exits with 4.
ended() {
    code=0
    wait "$job" || code=$?
    echo "$1: exit code $code"
    [ "$code" = 4 ]
    python3 - "$1.json" "$2" <<'END'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    merged = json.load(file)
losses = [worker["loss"] for worker in merged["client"]["workers"]]
print(f"{sys.argv[1]}: {losses}, {merged['attempted']} of {merged['scheduled']} requests were sent")
assert losses == json.loads(sys.argv[2]), losses
assert merged["scheduled"] == 1200 and merged["run"]["partial"]
END
}
begin killed
kill -KILL "$(pgrep -f -- "$folder/killed/.*--stripe 2/4")"
ended killed '[null, null, "died", null]'
# A preemption ends a job as scancel does.
begin preempted
scancel "$(squeue --noheader --format=%A | head -1)"
ended preempted '["was stopped", "was stopped", "was stopped", "was stopped"]'
