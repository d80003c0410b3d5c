"""`elench check`: what is in a file, and what can judge it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from elench.cli._input import input_options
from elench.cli._options import format_option

if TYPE_CHECKING:
    from elench.evaluate.contents import Contents
    from elench.records.source import Source

PLURAL = {"question": "questions", "answer": "answers", "summary": "summaries", "": "records"}


@click.command()
@input_options
@format_option("text", "json")
def command(file: Source, form: str) -> None:
    """Show what is in FILE, which metrics can judge it, and what to type next."""
    from elench.evaluate.contents import inspect

    found = inspect(file)
    if form == "json":
        click.echo(json.dumps(found.to_object(), indent=2, ensure_ascii=False))
    else:
        for line in describe(found, file):
            click.echo(line)
    if not found.records:
        raise click.exceptions.Exit(2)


def describe(found: Contents, source: Source) -> Iterator[str]:
    """The report, line by line."""
    from elench.records.mapping import as_option
    from elench.text.languages import NAMES

    yield f"{found.file}: {found.records:,} record{'s' * (found.records != 1)}"
    if found.recognised:
        yield f"  {found.recognised}"
    if found.rejected:
        yield f"  {found.rejected:,} lines are not valid records; the first, {found.first_reject}"
    if not found.records:
        yield f"  {source.missing(['answer'])}" if source.columns else "  no columns found"
        return
    fields = ", ".join(_counted(name, n, found.records) for name, n in found.fields.items())
    yield f"  fields: {fields or 'none'}"
    if found.other_fields:
        yield f"  also, passed through: {_some(found.other_fields)}"
    if guess := source.guess():
        yield f"  some of these look like fields of a record: try {as_option({**source.mapping, **guess})}"
    if found.fields.get("references"):
        yield f"  references per record: {found.references:g}"
    if found.passages:
        yield f"  passages per context: {found.passages:g}"
    if found.systems:
        yield f"  systems: {len(found.systems)} ({_some(found.systems)})"
    if found.groups:
        yield f"  groups (records about one context): {found.groups:,}"
    if found.human:
        yield "  human ratings: " + ", ".join(_counted(name, n, found.records) for name, n in found.human.items())
    total = sum(found.languages.values())
    shares = [f"{NAMES[code]} {100 * n / total:.0f} %" for code, n in list(found.languages.items())[:4]]
    yield f"  language (of {total:,}): {', '.join(shares)}"
    yield f"judging {_judging(found)}"
    yield from _metrics(found)
    yield from _commands(found, source)


def _judging(found: Contents) -> str:
    if "" in found.judging:
        return f"cannot be determined: {found.decided}"
    return " and ".join(f"{n:,} {PLURAL[name]}" for name, n in found.judging.items()) + f" ({found.decided})"


def _metrics(found: Contents) -> Iterator[str]:
    from elench.metrics import all_metrics

    size = max(found.able.values(), default=0)
    for title, with_models in (("metrics without a model", False), ("metrics with a model", True)):
        names = [
            name if n == size else f"{name} ({n} of {sum(found.languages.values())})"
            for name, n in found.able.items()
            if bool(all_metrics()[name]().roles) == with_models
        ]
        if names:
            yield f"{title} that can judge it: {', '.join(names)}"
    reasons: dict[str, list[str]] = {}
    for name, reason in found.unable.items():
        reasons.setdefault(reason.removeprefix(f"{name} "), []).append(name)
    for reason, names in reasons.items():
        yield f"not {', '.join(names)}: {reason}"


def _commands(found: Contents, source: Source) -> Iterator[str]:
    from elench.records.mapping import as_option

    option = f" {as_option(source.mapping)}" if source.mapping else ""
    option += f" --judge {source.judge}" if source.judge else ""
    suggestions = {judged: names for judged, names in found.suggestions.items() if names}
    if not suggestions:
        lacking = [name for name in ("references", "context", "answer") if name not in found.fields]
        yield source.missing(lacking[:1] or ["answer"])
        return
    yield "next:"
    for judged, names in suggestions.items():
        choice = f" --judge {judged}" if "" in found.judging else ""
        yield f"  elench score {found.file}{option}{choice} -m {','.join(names)} -o scores.jsonl"
    if found.human:
        yield f"  elench meta {found.file}{option} --scores scores.jsonl"
    if len(found.systems) > 1:
        yield f"  elench compare {found.file}{option} -m {','.join(next(iter(suggestions.values())))}"


def _counted(name: str, n: int, total: int) -> str:
    return name if n == total else f"{name} ({n:,})"


def _some(names: tuple[str, ...], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
