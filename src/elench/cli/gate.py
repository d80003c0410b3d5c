"""`elench gate`: stop a build that made the output worse."""

from __future__ import annotations

from pathlib import Path

import click

from elench.cli._options import alpha_option, draws_option, format_option, seed_option


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--baseline", type=click.Path(path_type=Path), help="The run to compare with, such as last night's.")
@click.option("--min-effect", multiple=True, metavar="METRIC=-DROP", help="The smallest drop that matters.")
@click.option("--fail-under", multiple=True, metavar="METRIC=MEAN", help="Fail when the mean is below this.")
@alpha_option
@draws_option(2000)
@seed_option
@format_option("text", "markdown", "json")
@click.option("--summary", type=click.Path(path_type=Path), help="Append the Markdown summary to this file.")
def command(
    run: Path, baseline: Path | None, min_effect: tuple[str, ...], fail_under: tuple[str, ...], alpha: float,
    draws: int, seed: int, form: str, summary: Path | None,
) -> None:  # fmt: skip
    """Is RUN worse than the baseline? Exit code 0: pass; 1: worse, significantly and by more than --min-effect, or
    below --fail-under; 2: undecided, and it says about how many items would decide."""
    from elench.errors import UsageError
    from elench.evaluate.gate import gate, parse_numbers
    from elench.runs import Run
    from elench.show.report import find_records
    from elench.show.tables import render

    if baseline is None and not fail_under:
        raise UsageError("give --baseline RUN, or --fail-under METRIC=MEAN, or both")
    new = Run.read(run)
    records = find_records(new)
    new = new.with_records(records.read()) if records else new
    drops = {spec: abs(value) for spec, value in parse_numbers(min_effect, "--min-effect").items()}
    limits = parse_numbers(fail_under, "--fail-under")
    old = Run.read(baseline) if baseline else None
    found = gate(new, old, drops, limits, alpha=alpha, draws=draws, seed=seed)
    notes = [*found.notes, "Intervals: bootstrap-t over groups of records; p: two-sided, Holm over the metrics."]

    def shown(style: str) -> str:
        grids = [found.grid()] if found.changes else []
        rendered = render(grids, notes if grids else [], style, 120, found.to_object())
        head = found.sentences()
        if style == "json":
            return rendered
        if style == "markdown":
            return "\n".join([f"**{head[0]}**", "", *(f"- {line}" for line in head[1:]), "", rendered])
        return "\n".join([*head, rendered])

    click.echo(shown(form).rstrip("\n"))
    if summary:
        with summary.open("a", encoding="utf-8") as file:
            file.write(shown("markdown") + "\n")
    raise click.exceptions.Exit(found.exit_code)
