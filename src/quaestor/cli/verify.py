"""`quaestor verify`: proves an installation by recomputing shipped scores."""

from __future__ import annotations

import click


@click.command()
@click.option("--tolerance", default=1e-4, show_default=True, help="Largest difference that passes.")
@click.option("--record", is_flag=True, hidden=True, help="Write the expected values anew (developers).")
def command(tolerance: float, record: bool) -> None:
    """Run shipped inputs through every metric that can run here and compare with shipped values."""
    from rich.console import Console
    from rich.markup import escape

    from quaestor.verification import recompute, record_expected

    if record:
        record_expected()
    console = Console(highlight=False)
    counts = {"ok": 0, "wrong": 0, "skipped": 0}
    for check in recompute(tolerance):
        counts[check.verdict] += 1
        colour = {"ok": "green", "wrong": "red", "skipped": "yellow"}[check.verdict]
        console.print(f"[{colour}]{check.verdict:8}[/] {escape(check.spec):40} {escape(check.detail)}")
    console.print(f"{counts['ok']} metrics verified, {counts['wrong']} wrong, {counts['skipped']} skipped")
    if counts["wrong"]:
        raise click.exceptions.Exit(1)
