"""Options that say how records are read, the same for every command that reads a record file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elench.errors import UsageError

if TYPE_CHECKING:
    from elench.records.record import Record
    from elench.records.source import Source

Command = Callable[..., Any]
FILE = click.Path(path_type=Path)


def map_option(command: Command) -> Command:
    """--map; FILE (or FILES) reaches the command as an opened `Source`."""

    @wraps(command)
    def run(*args: Any, mapping: str | None, **given: Any) -> Any:
        judge = given.pop("judge", None)
        if "files" in given:
            given["files"] = tuple(open_input(path, mapping, judge) for path in given["files"])
        else:
            given["file"] = open_input(given["file"], mapping, judge)
        return command(*args, **given)

    return _map(run)


def judge_option(command: Command) -> Command:
    """--judge; goes above @map_option, which takes it."""
    return click.option(
        "--judge", type=click.Choice(["question", "answer", "summary"]),
        help="Which text is judged; default: each record's `judge`, else what the references fit.",
    )(command)  # fmt: skip


def _map(command: Command) -> Command:
    return click.option(
        "--map", "mapping", metavar="FIELD=COLUMN,…",
        help="Which columns hold the fields, such as answer=prediction,references=gold.",
    )(command)  # fmt: skip


def input_options(command: Command) -> Command:
    """FILE, or --text with --references; --predictions, --map, --judge. The command gets one opened `file`."""

    @wraps(command)
    def run(
        *args: Any, inputs: tuple[Path, ...], text: Path | None, references: tuple[Path, ...], context: Path | None,
        questions: Path | None, predictions: Path | None, mapping: str | None, judge: str | None, any_language: bool,
        **given: Any,
    ) -> Any:  # fmt: skip
        beside = {"--references": references, "--context": context, "--questions": questions}
        if text:
            from elench.records.joining import from_text_files

            if mapping or predictions:
                raise UsageError(f"--text cannot be combined with {'--map' if mapping else '--predictions'}")
            if inputs and not references:
                raise UsageError(f"--text {text}: what is {inputs[0]}? Name it with --references or --context")
            file = from_text_files(text, (*references, *inputs), context, questions, judge)
        elif alone := [name for name, value in beside.items() if value]:
            raise UsageError(f"{alone[0]} needs --text: --text outputs.txt {alone[0]} {_first(beside[alone[0]])}")
        elif len(inputs) != 1:
            wanted = "no file given" if not inputs else f"one file at a time, not {len(inputs)}"
            raise UsageError(f"{wanted}: name a record file, - for standard input, or --text FILE --references FILE")
        else:
            file = open_input(inputs[0], mapping, judge, predictions)
        return command(*args, file=replace(file, any_language=any_language), **given)

    for option in (
        click.option("--any-language", is_flag=True, help="Let metrics made for English score other languages too."),
        click.option("--predictions", type=FILE, help="A system's answers by id, for FILE with the gold answers."),
        click.option("--questions", type=FILE, help="With --text: the question of each line."),
        click.option("--context", type=FILE, help="With --text: the source of each line."),
        click.option("--references", type=FILE, multiple=True, help="With --text: a reference for each line."),
        click.option("--text", type=FILE, help="Plain text, one output per line, instead of FILE."),
    ):
        run = option(run)
    return click.argument("inputs", nargs=-1, type=FILE, metavar="FILE")(judge_option(_map(run)))


def _first(value: object) -> object:
    return value[0] if isinstance(value, tuple) else value


def open_input(path: Path, mapping: str | None, judge: str | None = None, predictions: Path | None = None) -> Source:
    """Open a record file and say what was recognised in it."""
    from elench.records.mapping import parse_map
    from elench.records.source import as_source
    from elench.records.spreadsheets import sheet_note

    source = as_source(path, parse_map(mapping), judge)
    if source.path.suffix.lower() == ".xlsx" and (note := sheet_note(source.path)):
        click.echo(f"elench: {source}: {note}", err=True)
    if source.recognised:
        click.echo(f"elench: {source}: {source.recognised.announcement()}", err=True)
    if predictions:
        from elench.records.joining import with_predictions

        source = with_predictions(source, predictions)
    return source.for_metrics(())


def valid_records(file: Path | Source) -> list[Record]:
    """The records of a file; lines that are not one are set aside, as `elench score` does, and named on stderr."""
    from elench.records.record import Record, Reject
    from elench.records.source import as_source

    source = as_source(file)
    rows = list(source.read())
    records = [row for row in rows if isinstance(row, Record)]
    if bad := [row for row in rows if isinstance(row, Reject)]:
        first = f"{source}:{bad[0].line}: {bad[0].reason}"
        if not records:
            raise UsageError(f"{first}; no line is a valid record")
        click.echo(f"elench: {first}; {set_aside(len(bad))}", err=True)
    return records


def set_aside(bad: int) -> str:
    """How many lines of a file were not valid records."""
    return "1 bad line was set aside" if bad == 1 else f"{bad:,} bad lines were set aside"
