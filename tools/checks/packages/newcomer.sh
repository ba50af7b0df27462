#!/usr/bin/env bash
# The first minutes of a new user, in an environment without Rust and without a home folder of theirs:
# install the wheel, play the suite `quick`, open its report, measure a server, compare two runs, and look at
# them in `inferometer ui`. Prints the seconds of each step.
#
#   newcomer.sh WHEEL [URL]     URL of a server to measure; without it the embedded engine serves
#
# PYTHON names the interpreter (python3). The report is opened in Chromium, where there is one.
set -euo pipefail

wheel=$(realpath "$1")
url=${2:-}
python=$("${PYTHON:-python3}" -c "import sys; print(sys.executable)")
home=$(mktemp -d)
cd "$home"
engine=
ui=
report=
clean_up() {
    for process in $engine $ui; do kill "$process" 2>/dev/null || true; done
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
    report=$(find runs -name report.html -size +10k | head -1)
    test -n "$report"
    grep -q '</html>' "$report"
}

# Without a message on the console of the page; a page without a title was not read.
open_report() {
    local browser
    browser=$(command -v chromium chromium-browser google-chrome | head -1 || true)
    if [ -z "$browser" ]; then echo "there is no Chromium"; return 0; fi
    HOME=$home timeout 60 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
        --user-data-dir="$home/browser" --enable-logging=stderr --dump-dom "file://$PWD/$report" \
        >page.html 2>console.log
    grep -q '<title>..*</title>' page.html
    if grep CONSOLE console.log; then return 1; fi
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

fetch() { "$python" -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())' "$1"; }

# The list and the page of a run, as a browser asks for them.
browse() {
    env -i HOME="$home" PATH="$home/venv/bin:/usr/bin:/bin" inferometer ui new --port 0 >ui.log 2>&1 &
    ui=$!
    local address="" id
    for _ in $(seq 100); do
        address=$(grep -o 'http://[0-9.:]*' ui.log | head -1 || true)
        if [ -n "$address" ]; then break; fi
        sleep 0.1
    done
    id=$(basename new/2*)
    fetch "$address/" >list.html
    grep -q "$id" list.html
    fetch "$address/view?id=$id" >view.html
    grep -q "$id" view.html
    kill "$ui"
    wait "$ui" || true
    ui=
}

step install install
step suite suite
step report open_report
if [ -z "$url" ]; then step server server; fi
step first-run run base
step second-run run new
step compare compare
step ui browse

total=$(seconds_since "$started")
echo "total: $total s"
awk -v total="$total" 'BEGIN { exit !(total < 180) }' || { echo "more than three minutes" >&2; exit 1; }
