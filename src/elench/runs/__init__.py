"""What was scored: a run in memory or on disk, read by `Run.read`, written by `RunWriter`.

    run = Run.read("out.jsonl")                  # OUT.jsonl (or .csv, .parquet), OUT.meta.json, OUT.rejects.jsonl
    run.corpus_score("bleu")                     # from the counts of the run: what `elench score` printed
    run.corpus_score("bleu", system="careful")
    run.values("f1")                             # one number per outcome, None where unscored
    run = run.with_records("in.jsonl")           # outcome.record is the Record that was scored

`elench.score(...)` gives back a `Result`, which is a Run too.
"""

from __future__ import annotations

from elench.runs.run import Run
from elench.runs.summary import Outcome, Summary
from elench.runs.writer import RunWriter, beside

__all__ = ["Outcome", "Run", "RunWriter", "Summary", "beside"]
