"""Append-only output with a journal: after kill -9 at any moment, `--resume` finishes the very same file."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from quaestor.errors import UsageError


def beside(out: Path, ending: str) -> Path:
    """The file that goes with OUT.jsonl: OUT.meta.json, OUT.rejects.jsonl, OUT.journal.jsonl."""
    return out.with_name(out.stem + ending)


def input_print(path: Path) -> dict[str, Any]:
    """What tells that the input is still the same file: its size and the hash of its beginning."""
    with path.open("rb") as file:
        return {
            "file": path.name,
            "bytes": path.stat().st_size,
            "sha256": hashlib.sha256(file.read(1 << 20)).hexdigest(),
        }


class Journal:
    """Two growing files (scores, rejects) and, after each window, one journal line that says how far both are good."""

    def __init__(self, out: Path, header: dict[str, Any], resume: bool) -> None:
        self.path = beside(out, ".journal.jsonl")
        self.rejects_path = beside(out, ".rejects.jsonl")
        self.rows = 0
        """Input rows (records and rejects) that are done."""
        self.rejected = 0
        self.state: dict[str, Any] | None = None
        good = self._recover(header) if resume and self.path.exists() else None
        if resume and good is None and out.exists() and not self.path.exists():
            raise UsageError(
                f"{out}: cannot resume: there is no journal ({self.path.name}) beside it; run without --resume"
            )
        if good is None:
            self.files: list[BinaryIO] = [out.open("wb"), self.rejects_path.open("wb")]
            self.journal: BinaryIO = self.path.open("wb")
            self._write(self.journal, [header])
        else:
            self.rows, self.rejected, self.state = good["rows"], good["rejected"], good["state"]
            self.files = [out.open("r+b"), self.rejects_path.open("r+b")]
            for file, size in zip(self.files, good["bytes"], strict=True):
                file.truncate(size)
                file.seek(size)
            self.journal = self.path.open("r+b")
            self.journal.truncate(good["journal"])
            self.journal.seek(good["journal"])

    def _recover(self, header: dict[str, Any]) -> dict[str, Any] | None:
        """The last whole line of the journal; refuses when the run it belongs to was another one."""
        end, last, first = 0, None, None
        for raw in self.path.read_bytes().splitlines(keepends=True):
            if not raw.endswith(b"\n"):
                break
            end += len(raw)
            line = json.loads(raw)
            if first is None:
                first = line
            else:
                last = {**line, "journal": end}
        if first is not None and first != json.loads(json.dumps(header)):
            differs = ", ".join(k for k in header if first.get(k) != json.loads(json.dumps(header[k])))
            raise UsageError(
                f"{self.path}: cannot resume: the interrupted run had another {differs}; run without --resume"
            )
        return last

    def append(
        self, scored: Sequence[dict[str, Any]], rejects: Sequence[dict[str, Any]], state: dict[str, Any]
    ) -> None:
        """A window is done: write its lines, then say so."""
        for file, lines in zip(self.files, (scored, rejects), strict=True):
            self._write(file, lines)
        self.rows += len(scored) + len(rejects)
        self.rejected += len(rejects)
        sizes = [file.tell() for file in self.files]
        self._write(self.journal, [{"rows": self.rows, "rejected": self.rejected, "bytes": sizes, "state": state}])

    @staticmethod
    def _write(file: BinaryIO, lines: Sequence[dict[str, Any]]) -> None:
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        file.write(text.encode(errors="backslashreplace"))  # half a surrogate pair becomes its JSON escape
        file.flush()

    def close(self) -> None:
        for file in (*self.files, self.journal):
            file.close()

    def finish(self, meta_path: Path, meta: dict[str, Any]) -> None:
        """The run is complete: sync, write the meta file in one step, drop the journal and an empty reject file."""
        for file in self.files:
            file.flush()
            os.fsync(file.fileno())
        self.close()
        draft = meta_path.with_suffix(".tmp")
        draft.write_text(json.dumps(meta, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        draft.replace(meta_path)
        self.path.unlink()
        if not self.rejected:
            self.rejects_path.unlink()
