#!/bin/bash
# Written by `inferometer run --on slurm`: {workers} workers share one load.
{options}
export WORKERS_START=$(date -u -d '+{start_in} seconds' +%Y-%m-%dT%H:%M:%SZ)
# One worker that ends takes no other with it, and none is waited for without an end.
exec srun --ntasks={workers} --kill-on-bad-exit=0 --wait={apart} \
  --output={folder}/worker-%t.jsonl --error={folder}/worker-%t.jsonl \
  bash -c 'exec "$@" --stripe "$SLURM_PROCID/{workers}" --start-at "$WORKERS_START"' \
  worker {program} run --no-config --progress json {flags} \
  --experiment {folder}/experiment.toml --output {folder}/runs
