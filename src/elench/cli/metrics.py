"""`elench metrics`: all metrics with one sentence each, or the card of one."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("name", required=False)
@click.option("--markdown", is_flag=True, help="Print the card as Markdown.")
@click.option("--write", type=click.Path(path_type=Path), metavar="FOLDER", help="Write all cards as Markdown files.")
def command(name: str | None, markdown: bool, write: Path | None) -> None:
    """List all metrics, or print the card of NAME: what it judges and reads, parameters, source, limits, example."""
    from elench.metrics import metric
    from elench.show.cards import card_markdown, print_card, print_list, write_cards

    if write is not None:
        write_cards(write)
    elif name is None:
        print_list()
    elif markdown:
        click.echo(card_markdown(type(metric(name))))
    else:
        print_card(type(metric(name)))
