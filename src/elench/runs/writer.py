"""Writes a run: append-only, with a journal, so that after kill -9 at any moment `--resume` finishes the same file."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from elench.errors import UsageError
from elench.metrics.base import Metric
from elench.records import formats
from elench.runs.summary import Outcome, Summary


def beside(out: Path, ending: str) -> Path:
    """The file that goes with OUT.jsonl: OUT.meta.json, OUT.rejects.jsonl, OUT.journal.jsonl."""
    return out.with_name(out.stem + ending)


class RunWriter:
    """Two growing files (lines, rejects) and, after each window, one journal line that says how far both are good.

    CSV and Parquet are written as JSONL first (OUT.csv.part.jsonl) and converted when the run is complete.
    """

    def __init__(self, out: Path, metrics: Sequence[Metric], header: dict[str, Any], resume: bool = False) -> None:
        self.out, self.header = out, header
        self.lines_path = out if out.suffix == ".jsonl" else _part(out)
        self.journal_path, self.rejects_path = beside(out, ".journal.jsonl"), beside(out, ".rejects.jsonl")
        self.specs, self.explain = [str(m) for m in metrics], bool(header.get("explain"))
        self.rows = 0
        """Input rows (records and rejects) that are done."""
        good = self._recover() if resume and self.journal_path.exists() else None
        if resume and good is None and out.exists() and not self.journal_path.exists():
            raise UsageError(
                f"{out}: cannot resume: there is no journal ({self.journal_path.name}) beside it; run without --resume"
            )
        self.summary = Summary(metrics, good["state"], good["changes"]) if good else Summary(metrics)
        paths = (self.lines_path, self.rejects_path, self.journal_path)
        self.files: list[BinaryIO] = [path.open("r+b") if good else path.open("wb") for path in paths]
        if good:
            self.rows = good["rows"]
            for file, size in zip(self.files, good["bytes"], strict=True):  # cut off what came after the last window
                file.truncate(size)
                file.seek(size)
        else:
            beside(out, ".meta.json").unlink(missing_ok=True)  # of an earlier run; this one is not complete yet
            _append(self.files[2], [header])

    def _recover(self) -> dict[str, Any] | None:
        """The last whole line of the journal; refuses when the run it belongs to was another one."""
        end, last, first = 0, None, None
        changes = []
        for raw in self.journal_path.read_bytes().splitlines(keepends=True):
            if not raw.endswith(b"\n"):
                break
            end += len(raw)
            line = json.loads(raw)
            if first is None:
                first = line
            else:
                changes.append(line["clusters"])
                last = {**line, "bytes": [*line["bytes"], end], "changes": changes}
        if first is not None and (differs := _differences(first, self.header)):
            raise UsageError(
                f"{self.out}: cannot resume: {' and '.join(differs)} changed since the run was interrupted; "
                "run without --resume"
            )
        return last

    def append(self, outcomes: Sequence[Outcome]) -> None:
        """A window is done: write its lines, then say so in the journal."""
        rejects = [o.reject for o in outcomes if o.reject]
        _append(self.files[0], [o.to_object(self.specs, self.explain) for o in outcomes if not o.reject])
        _append(self.files[1], [{"line": r.line, "reason": r.reason, "record": r.raw} for r in rejects])
        for outcome in outcomes:
            self.summary.add(outcome)
        self.rows += len(outcomes)
        sizes = [file.tell() for file in self.files[:2]]
        state, clusters = self.summary.state(), self.summary.clusters.changes()
        _append(self.files[2], [{"rows": self.rows, "bytes": sizes, "state": state, "clusters": clusters}])

    def finish(self, header: dict[str, Any]) -> None:
        """The run is complete: sync, convert, write the meta file in one step, drop the journal."""
        for file in self.files:
            file.flush()
            os.fsync(file.fileno())
        self.close()
        if self.lines_path != self.out:
            columns = [f"{kind}.{spec}" for kind in ("scores", "unscored") for spec in self.specs]
            blank: dict[str, Any] = dict.fromkeys(["id", "system", *columns], "")
            if any(sums.counts for sums in self.summary.whole.values()):
                blank["counts"] = ""  # every row of a table has every column
            lines = (row for _, row in formats.read_jsonl(self.lines_path) if isinstance(row, dict))
            rows = ({**blank, **formats.flatten(line)} for line in lines)
            draft = self.out.with_name(f"{self.out.stem}.draft{self.out.suffix}")
            formats.WRITERS[self.out.suffix](rows, draft)
            draft.replace(self.out)
        meta_path = beside(self.out, ".meta.json")
        draft = meta_path.with_suffix(".tmp")
        draft.write_text(json.dumps(header, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        draft.replace(meta_path)
        self.journal_path.unlink()
        _part(self.out).unlink(missing_ok=True)
        if not self.summary.rejected:
            self.rejects_path.unlink()

    def close(self) -> None:
        for file in self.files:
            file.close()


def finished(out: Path, header: dict[str, Any]) -> dict[str, Any] | None:
    """The meta file of a run that is complete already, when it was the same run; refuses when it was another one."""
    meta_path = beside(out, ".meta.json")
    if not (out.exists() and meta_path.exists()) or beside(out, ".journal.jsonl").exists():
        return None
    meta: dict[str, Any] = json.loads(meta_path.read_text(encoding="utf-8"))
    if differs := _differences(meta, header):
        raise UsageError(f"{out}: a finished run; {' and '.join(differs)} changed since: run without --resume")
    _part(out).unlink(missing_ok=True)  # left behind by a kill in the very last step
    return meta


def _part(out: Path) -> Path:
    return out.with_name(out.name + ".part.jsonl")


def _differences(before: dict[str, object], header: dict[str, object]) -> list[str]:
    return [name for name, value in json.loads(json.dumps(header)).items() if before.get(name) != value]


def _append(file: BinaryIO, lines: Sequence[dict[str, Any]]) -> None:
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    file.write(text.encode(errors="backslashreplace"))  # an unpaired surrogate becomes its JSON escape
    file.flush()
