#!/usr/bin/env bash
# The first minutes of a new user, in an environment without Rust and without a home folder of theirs:
# install the wheel, play the suite `quick`, measure a server, compare two runs. Prints the seconds of each step.
#
#   newcomer.sh WHEEL [URL]     URL of a server to measure; without it the embedded engine serves
#
# PYTHON names the interpreter (python3).
set -euo pipefail

wheel=$(realpath "$1")
url=${2:-}
python=$("${PYTHON:-python3}" -c "import sys; print(sys.executable)")
home=$(mktemp -d)
cd "$home"
engine=
clean_up() {
    if [ -n "$engine" ]; then kill "$engine" 2>/dev/null || true; fi
    rm -rf "$home"
}
trap clean_up EXIT

clean() { env -i HOME="$home" LANG=C.UTF-8 PATH="$home/venv/bin:/usr/bin:/bin" "$@"; }

# 4 is a run that is not valid, as on a machine that is busy with other work; 10 is a comparison that found
# a difference. Both are results.
allow() {
    local allowed=$1 code=0
    shift
    clean "$@" || code=$?
    case " 0 $allowed " in
        *" $code "*) if [ "$code" != 0 ]; then echo "($2 ended with $code)" >&2; fi ;;
        *) echo "$* ended with $code" >&2; return 1 ;;
    esac
}

now() { "$python" -c 'import time; print(time.time())'; }
seconds_since() { awk -v now="$(now)" -v begun="$1" 'BEGIN { printf "%.1f", now - begun }'; }
started=$(now)
step() {
    local name=$1 begun
    shift
    begun=$(now)
    "$@" >"$home/$name.log" 2>&1 || { cat "$home/$name.log" >&2; echo "the step $name failed" >&2; exit 1; }
    echo "$name: $(seconds_since "$begun") s"
}

install() {
    clean "$python" -m venv venv
    clean pip install --quiet --no-index "$wheel"
    clean inferometer --version
}

suite() {
    allow 4 inferometer suite quick --output runs
    local report
    report=$(find runs -name report.html -size +10k | head -1)
    test -n "$report"
    grep -q '</html>' "$report"
}

server() {
    mkfifo input
    clean inferometer engine --port 0 --until-stdin-closes <input >engine.log 2>&1 &
    engine=$!
    exec 3>input
    for _ in $(seq 100); do
        url=$(grep -o 'http://[0-9.:]*' engine.log || true)
        if [ -n "$url" ]; then return 0; fi
        sleep 0.1
    done
    cat engine.log
    return 1
}

run() { allow 4 inferometer run "$url" --requests 100 --concurrency 8 --output "$1"; }
compare() { allow "4 10" inferometer compare "base=$(echo base/2*)" "new=$(echo new/2*)"; }

step install install
step suite suite
if [ -z "$url" ]; then step server server; fi
step first-run run base
step second-run run new
step compare compare
# `inferometer ui` belongs here, as soon as the command exists.

total=$(seconds_since "$started")
echo "total: $total s"
awk -v total="$total" 'BEGIN { exit !(total < 180) }' || { echo "more than three minutes" >&2; exit 1; }
