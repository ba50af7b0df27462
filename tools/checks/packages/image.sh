#!/usr/bin/env bash
# Builds the image from a program that is built already, saves it as an archive and measures with it.
#
#   image.sh PROGRAM ARCHIVE VERSION
#
# With docker or podman where their engine works, else with buildah alone, which needs no engine.
set -euo pipefail

program=$1 archive=$2 version=$3
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

context=$work/context
certificates=/etc/ssl/certs/ca-certificates.crt
mkdir -p "$context/image/usr/bin" "$context/image/etc/ssl/certs" "$context/owned/data"
mkdir -m 1777 "$context/image/tmp"
cp "$program" "$context/image/usr/bin/inferometer"
if [ -f "$certificates" ]; then cp "$certificates" "$context/image/etc/ssl/certs/"; fi
# The last stage alone: the first would build the program again.
sed -e '1,/^FROM scratch/{/^FROM scratch/!d;}' -e 's/--from=build //' "$root/deploy/Containerfile" >"$context/Containerfile"

name=inferometer:$version
measure=(run --requests 20 --concurrency 4 --output-tokens 8)
rm -f "$archive"
for engine in docker podman; do
    if ! "$engine" info >/dev/null 2>&1; then continue; fi
    "$engine" build --quiet --tag "$name" --file "$context/Containerfile" "$context" >/dev/null
    "$engine" save --output "$archive" "$name"
    "$engine" run --rm "$name" --version
    code=0
    "$engine" run --rm --read-only --tmpfs /data:mode=1777 "$name" "${measure[@]}" --quiet >"$work/page" || code=$?
    # A run on a busy machine may be invalid, and is a run.
    if [ "$code" != 0 ] && [ "$code" != 4 ]; then cat "$work/page"; exit 1; fi
    echo "image: built and run with $engine"
    exit 0
done
if ! command -v buildah >/dev/null; then
    echo "image: skipped, because neither docker nor podman works here and buildah is not installed"
    exit 0
fi

store() { buildah --root "$work/root" --runroot "$work/run" --storage-driver vfs "$@"; }
store build --quiet --isolation chroot --format docker --tag "$name" --file "$context/Containerfile" "$context" >/dev/null
store push --quiet "$name" "docker-archive:$archive:$name"
user=$(store inspect --type image --format '{{.Docker.Config.User}}' "$name")
if [ "$user" != 65532:65532 ]; then echo "the image runs as $user" >&2; exit 1; fi
container=$(store from --isolation chroot "$name")
store run "$container" -- /usr/bin/inferometer --version
code=0
store run "$container" -- /usr/bin/inferometer "${measure[@]}" --quiet >"$work/page" || code=$?
if [ "$code" != 0 ] && [ "$code" != 4 ]; then cat "$work/page"; exit 1; fi
folder=$(store mount "$container")
owner=$(stat -c %u "$folder"/data/2*)
if [ "$(stat -c %u "$folder")" != 0 ]; then echo "the root of the image is not of root" >&2; exit 1; fi
if [ "$owner" != 65532 ]; then echo "the results belong to $owner" >&2; exit 1; fi
echo "image: built and run with buildah; $(stat -c %s "$archive") bytes"
