"""`elench models`: which models there are, fetching them, checking them."""

from __future__ import annotations

import sys

import click

from elench.cli._options import FAMILIES, table_width


@click.group()
def command() -> None:
    """List, fetch and check models. Only `pull` uses the network."""


@command.command("list")
def list_() -> None:
    """All models of the catalog and elench's own: role, size, licence, source, whether they are on this machine."""
    import json

    from elench.grid import Grid
    from elench.models.catalog import cache_folder, catalog
    from elench.models.checkpoints import installed
    from elench.models.shipped import SHIPPED
    from elench.show.tables import render

    rows = []
    for entry in catalog():
        found = installed(entry.name, entry)
        size = f"{entry.bytes / 1e6:.0f} MB" if entry.bytes else ""
        source = found.source if found else " or ".join(filter(None, (entry.hub and f"hub {entry.hub}", entry.wheel)))
        sha256 = found.sha256[:12] if found else entry.sha256[:12] if entry.files else ""
        here = "yes" if found else "no"
        rows.append((entry.role, entry.name, entry.family, size, entry.licence, here, source, sha256))
    for card in sorted(SHIPPED.rglob("card.json"), key=lambda path: (len(path.parts), path)):
        own = card.parent
        weights = sum(f.stat().st_size for f in own.glob("weights.*"))
        size = f"{weights / 1e6:.0f} MB" if weights > 5e5 else f"{weights / 1e3:.0f} kB"
        family = "embedded" if own.parent == SHIPPED else own.parent.name
        licence = str(json.loads(card.read_text(encoding="utf-8")).get("licence", ""))
        rows.append((own.name, "elench's own", family, size, licence, "yes", "shipped", ""))
    header = ("role", "model", "family", "size", "licence", "here", "from", "sha256")
    width = table_width() if sys.stdout.isatty() else 200
    click.echo(render([Grid("", header, tuple(rows), "lllrllll")], [], "text", width))
    click.echo(f"kept in {cache_folder() / 'models'}; any hub name or folder can take a role: --model encoder=NAME")


@command.command()
@click.argument("names", nargs=-1)
@click.option("--models", "--family", "family", default="embedded", show_default=True, type=click.Choice(FAMILIES))
def pull(names: tuple[str, ...], family: str) -> None:
    """Fetch models by catalog or hub name; without a name, the whole family.

    The large family includes the embedded one, which plays the roles it has no model for.
    """
    from elench.models.catalog import catalog
    from elench.models.pull import pull as fetch

    families = ("embedded", "large") if family == "large" else (family,)
    for name in names or [e.name for e in catalog() if e.family in families]:
        found = fetch(name, lambda line: click.echo(line, err=True))
        click.echo(f"{found.name}  {found.sha256[:12]}  {found.source}")


@command.command()
@click.argument("names", nargs=-1)
def verify(names: tuple[str, ...]) -> None:
    """Compare each file of the models here (or of those named) with its hash; exit code 1 if one fails."""
    from elench.models.catalog import catalog
    from elench.models.checkpoints import installed
    from elench.models.pull import verify as check

    chosen = names or [e.name for e in catalog() if installed(e.name, e)]
    wrong = {name: check(name) for name in chosen}
    for name, faults in wrong.items():
        click.echo(f"{name}: {'; '.join(faults) if faults else 'ok'}")
    bad = sum(map(bool, wrong.values()))
    click.echo(f"{len(wrong) - bad} of {len(wrong)} models are intact")
    if bad:
        click.echo("remove the folder of a wrong model and fetch it again: elench models pull NAME", err=True)
        raise click.exceptions.Exit(1)
