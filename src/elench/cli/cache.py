"""`elench cache`: how much is kept between runs, and clearing it."""

from __future__ import annotations

import click


@click.group()
def command() -> None:
    """Answers of models that are kept on disk between runs."""


@command.command()
def info() -> None:
    """Where the answers are kept, how many, how large, and the limit (ELENCH_CACHE_SIZE)."""
    from elench.models.cache import AnswerCache, size_limit
    from elench.models.catalog import cache_folder

    path = cache_folder() / "answers.sqlite"
    click.echo(f"folder   {cache_folder()}")
    if path.exists():
        cache = AnswerCache(path)
        click.echo(f"answers  {cache.count():,}")
        cache.close()
    size = sum(f.stat().st_size for f in path.parent.glob(f"{path.name}*")) if path.parent.exists() else 0
    click.echo(f"size     {size / 1e6:.1f} MB of at most {size_limit() / 1e6:.0f} MB")
    models = sum(f.stat().st_size for f in (cache_folder() / "models").rglob("*") if f.is_file())
    click.echo(f"models   {models / 1e6:.1f} MB (not counted; see: elench models list)")


@command.command()
def clear() -> None:
    """Remove all kept answers; models stay."""
    from elench.models.cache import clear as remove

    click.echo(f"freed {remove() / 1e6:.1f} MB")
