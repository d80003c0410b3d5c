"""A progress bar with rate and time left on a terminal; silence in a pipe."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any


class ProgressBar:
    """Counts scored (record, metric) pairs; the total is the number of lines of the file."""

    def __init__(self, name: str, rows: int, done: int, metrics: int) -> None:
        self.metrics = metrics
        self.in_window = 0
        self.finished = done * metrics
        self.bar: Any = None
        if sys.stderr.isatty():
            from rich import progress
            from rich.console import Console

            self.bar = progress.Progress(
                progress.TextColumn("{task.description}"), progress.BarColumn(), progress.MofNCompleteColumn(),
                progress.TextColumn("{task.fields[rate]}"), progress.TimeRemainingColumn(),
                console=Console(stderr=True), transient=True, refresh_per_second=4,
            )  # fmt: skip
            self.task = self.bar.add_task(name, total=rows * metrics or None, completed=self.finished, rate="")

    def __enter__(self) -> ProgressBar:
        if self.bar:
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar:
            self.bar.stop()

    def one_done(self) -> None:
        """One metric has finished with one record."""
        if self.bar:
            self.in_window += 1
            if self.in_window % 64 == 0:
                self._show(self.finished + self.in_window)

    def window_done(self, rows: int) -> None:
        self.finished += rows * self.metrics
        self.in_window = 0
        if self.bar:
            self._show(self.finished)

    def _show(self, completed: int) -> None:
        speed = self.bar.tasks[self.task].speed
        rate = f"{speed / self.metrics:.1f} records/s" if speed else ""
        self.bar.update(self.task, completed=completed, rate=rate)
