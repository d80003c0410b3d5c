"""Write the records of a judged file that elench's own models did not learn from, to measure them on.

python benchmarks/kept_back.py DATA/judgements/summedits.jsonl KEPT.jsonl
elench score KEPT.jsonl -m "support,support[reduce=min]" -o OUT.jsonl        # with --models large, too
elench auc KEPT.jsonl --scores OUT.jsonl --human consistent
"""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
def main(file: Path, out: Path) -> None:
    """Copy the lines that were kept back, as they are."""
    from elench.evaluate.kept_back import is_kept_back

    lines = file.read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    kept = [
        line
        for line, row in zip(lines, rows, strict=True)
        if is_kept_back(file.stem, row.get("question") or "", row.get("group") or "")
    ]
    out.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
    click.echo(f"{out}: {len(kept)} of {len(lines)} records")


if __name__ == "__main__":
    main()
