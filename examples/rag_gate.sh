#!/usr/bin/env bash
# Nightly gate for a RAG system. Exit code: 0 pass, 1 worse, 2 undecided (too few items) or bad input.
#   examples/rag_gate.sh TODAY.jsonl [FOLDER]
# FOLDER keeps the last accepted run. METRICS and DROP may be set, such as METRICS=f1 DROP=f1=-0.02 (no models needed).
set -euo pipefail
records=${1:-sample/rag.jsonl}
folder=${2:-gate-runs}
metrics=${METRICS:-support,equivalent,context-recall}
drop=${DROP:-support=-0.02}

mkdir -p "$folder"
rm -f "$folder"/today.*    # left by a run that did not pass
elench score "$records" -m "$metrics" -o "$folder/today.jsonl"
if [ ! -e "$folder/accepted.jsonl" ]; then
    echo "first run: nothing to compare with"
else
    elench gate "$folder/today.jsonl" --baseline "$folder/accepted.jsonl" --min-effect "$drop" \
        --summary "${GITHUB_STEP_SUMMARY:-$folder/summary.md}"
fi
mv "$folder/today.jsonl" "$folder/accepted.jsonl"
mv "$folder/today.meta.json" "$folder/accepted.meta.json"
