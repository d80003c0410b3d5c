"""What int8 costs in agreement with people: the same records scored in float32 and in int8, Pearson's r of each.

    python benchmarks/int8_agreement.py JUDGEMENTS [--records 300] [--only kpqa_marco]

JUDGEMENTS is the folder of rated files; records are drawn with a seed. No answer is cached.
"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

FILES = {
    "kpqa_marco": ("correctness", ("bertscore", "rouge-l-kpqa", "bertscore-kpqa")),
    "qgeval_squad": ("answer_consistency", ("qrel-lrm", "qascore", "roundtrip")),
    "qags_cnndm": ("consistency", ("support", "questeval")),
}
"""Rated files, the dimension that people rated, and metrics whose models run in int8."""


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--records", "count", default=300, show_default=True)
@click.option("--only", default="", help="Files whose name begins so.")
def main(folder: Path, count: int, only: str) -> None:
    """Print a Markdown table, one line per file and metric."""
    import elench
    from elench.models.base import ModelSet
    from elench.records.record import read_records

    click.echo(
        "| file | metric | n | r float32 | r int8 | difference | r of the two | int8 model |\n|---|---|---|---|---|---|---|---|"
    )
    for name, (dimension, specs) in FILES.items():
        if not name.startswith(only):
            continue
        every = [r for r in read_records(folder / f"{name}.jsonl") if dimension in r.human]
        chosen = sorted(np.random.default_rng(0).choice(len(every), min(count, len(every)), replace=False))
        records = [every[i] for i in chosen]
        rated = np.array([r.human[dimension] for r in records])
        for spec in specs:
            values, signature = [], ""
            for dtype in ("float32", "int8"):
                result = elench.score(records, spec, models=ModelSet(dtype=dtype), cache=False)
                values.append(np.array([np.nan if v is None else v for v in result.values(spec)]))
                signature = result.session.signature(elench.metric(spec))
            both = ~np.isnan(values[0]) & ~np.isnan(values[1])
            full, small = (float(np.corrcoef(v[both], rated[both])[0, 1]) for v in values)
            same = float(np.corrcoef(values[0][both], values[1][both])[0, 1])
            roles = ", ".join(p.split("=")[0] for p in signature.split(" | ")[2:] if p.endswith("/int8"))
            click.echo(
                f"| {name} ({dimension}) | `{spec}` | {both.sum()} | {full:.3f} | {small:.3f} | {small - full:+.3f} | {same:.4f} | {roles} |"
            )


if __name__ == "__main__":
    main()
