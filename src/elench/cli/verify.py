"""`elench verify`: checks an installation by recomputing recorded scores."""

from __future__ import annotations

import click


@click.command()
@click.option("--tolerance", default=1e-4, show_default=True, help="Largest difference that passes.")
@click.option("--record", is_flag=True, hidden=True, help="Rewrite the expected values (developers).")
def command(tolerance: float, record: bool) -> None:
    """Check this installation: run shipped inputs through every metric and compare with recorded values.

    It says nothing about whether a metric is right: for that see docs/results and the metrics' cards.
    """
    from rich.console import Console
    from rich.markup import escape

    from elench.evaluate.verify import recompute, record_expected

    if record:
        record_expected()
    console = Console(highlight=False)
    counts = {"ok": 0, "wrong": 0, "skipped": 0}
    for check in recompute(tolerance):
        counts[check.verdict] += 1
        colour = {"ok": "green", "wrong": "red", "skipped": "yellow"}[check.verdict]
        console.print(f"[{colour}]{check.verdict:8}[/] {escape(check.spec):40} {escape(check.detail)}")
    console.print(f"{counts['ok']} metrics verified, {counts['wrong']} wrong, {counts['skipped']} skipped")
    console.print("This checks the installation, not the truth of the metrics: see docs/results for that.")
    if counts["wrong"]:
        raise click.exceptions.Exit(1)
