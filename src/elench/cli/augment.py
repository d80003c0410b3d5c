"""`elench augment`: question/answer pairs made from texts, filtered, scored, in SQuAD format."""

from __future__ import annotations

from pathlib import Path

import click

from elench.cli._input import valid_records
from elench.cli._options import metrics_from, model_options, models_for


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="A SQuAD JSON file.")
@click.option("-m", "--metric", "spec", default="roundtrip", show_default=True, help="What the pairs are scored with.")
@click.option("--threshold", type=float, default=0.5, show_default=True, help="Pairs that score below are left out.")
@click.option("--per-text", type=click.IntRange(1), default=8, show_default=True, help="Answers asked about per text.")
@click.option("--beams", type=click.IntRange(1), default=1, show_default=True, help="Questions per answer.")
@model_options
def command(
    file: Path, out: Path, spec: str, threshold: float, per_text: int, beams: int, family: str, model: tuple[str, ...],
    dtype: str, device: str | None, pull: bool,
) -> None:  # fmt: skip
    """Ask questions about the contexts of FILE and keep those worth training on (QRelScore §3.3)."""
    from elench.adapters.augment import augment, write_squad

    texts = list(dict.fromkeys(r.context for r in valid_records(file) if r.context and r.context.strip()))
    if not texts:
        raise click.UsageError(f"{file}: no record has a context")
    models = models_for(metrics_from((spec,)), family, model, dtype, device, pull, ("parser", "asker"))
    pairs, counts = augment(texts, spec, threshold, per_text, beams, models)
    write_squad(pairs, out)
    reasons = ", ".join(f"{n} {why}" for why, n in counts.items())
    click.echo(f"{out}: {len(pairs)} pairs on {len(texts)} texts; {reasons}")
