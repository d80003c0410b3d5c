"""The figures of docs/results/qsts.md: the paper's tables and people's judgements, ours beside theirs.

    python benchmarks/qsts_tables.py JUDGEMENTS [--qqp 800] [--firs 400]

JUDGEMENTS is the folder with qqp_dev, firs_train, simqg_a and qgeval_squad (.jsonl). Of the two large files every k-th
record is taken; 0 takes all.
"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
from scipy.stats import pearsonr, rankdata, spearmanr

import elench
from elench.records.record import Record, read_records

PAIRS = [
    ("What was the title of Bob Dylan's first album?", "What was Bob Dylan's first album called?", 0.928),
    ("What was the name of Vincent's brother", "Who was Vincent's brother?", 0.874),
    ("Where in Germany was the composer Beethoven born?", "Which city in Germany is the place of birth of Beethoven?", 0.548),
    ("Who was Columbus?", "Where is Columbus?", 0.0),
    ("What was the name of Vincent's brother?", "What was the name of Vincent's painting?", 0.0),
    ("When did Freddie Mercury die?", "How did Freddie Mercury die?", 0.0),
]  # fmt: skip
OURS = [
    "qsts",
    "qsts[class=off]",
    "qsts[form=ours]",
    "qsts[symmetric=on]",
    "qsts[form=code]",
]


def taken(path: Path, n: int) -> list[Record]:
    records = list(read_records(path))
    return records[:: max(1, len(records) // n)][:n] if n else records


def values(records: list[Record], specs: list[str]) -> dict[str, np.ndarray]:
    """Scores of records that every metric could score."""
    result = elench.score(records, specs)
    table = np.array([[np.nan if v is None else v for v in result.values(str(elench.metric(s)))] for s in specs])
    return dict(zip(specs, table, strict=True))


def auc(scores: np.ndarray, positive: np.ndarray) -> float:
    """Chance that a positive stands above a negative, ties half."""
    ranks, n = rankdata(scores), positive.sum()
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * (len(scores) - n)))


def human(records: list[Record], name: str) -> np.ndarray:
    return np.array([r.human[name] for r in records])


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--qqp", default=800, show_default=True)
@click.option("--firs", default=400, show_default=True)
def main(folder: Path, qqp: int, firs: int) -> None:
    print("Table 1: paper, ours")
    pairs = [Record(id=str(i), question=c, references=(r,), judge="question") for i, (r, c, _) in enumerate(PAIRS)]
    for (reference, candidate, theirs), ours in zip(PAIRS, values(pairs, ["qsts"])["qsts"], strict=True):
        print(f"  {theirs:.3f} {ours:.3f}  {reference} | {candidate}")

    records = taken(folder / "simqg_a.jsonl", 0)
    free = [f"qsts[against=context,class={c}]" for c in ("off", "reference")]
    found = values(records, [*OURS, *free])
    print(
        f"Table 4, simqg_a against the passage (n={len(records)}): right side of .5 without / with class; the paper's"
    )
    for name, right, theirs in (
        ("similar", True, "66.1 / 56.4"), ("fluency", False, "30.7 / 76.9"),
        ("relevant", False, "56.3 / 81.3"), ("answerable", False, "40.0 / 66.6"),
    ):  # fmt: skip
        chosen = (human(records, name) >= 0.5) == right
        shares = [100 * np.mean((found[s][chosen] >= 0.5) == right) for s in free]
        print(f"  {name} {'>=' if right else '<'} .5: {shares[0]:.1f} / {shares[1]:.1f} (n={chosen.sum()}); {theirs}")
    print(f"simqg_a, Spearman with `similar` (n={len(records)})")
    for spec in OURS:
        print(f"  {spec}: {spearmanr(found[spec], human(records, 'similar')).statistic:.3f}")

    records = taken(folder / "qgeval_squad.jsonl", 0)
    found = values(records, OURS)
    found["QSTS of the data set's authors"] = np.array([r.peers["QSTS"] for r in records])
    rated = human(records, "answer_consistency")
    print(f"qgeval_squad, answer_consistency (n={len(records)}): Spearman, Pearson")
    for spec, scores in found.items():
        print(f"  {spec}: {spearmanr(scores, rated).statistic:.3f}, {pearsonr(scores, rated).statistic:.3f}")

    records = taken(folder / "firs_train.jsonl", firs)
    print(f"Table 3, FIRS (n={len(records)}), paper .866: mean, deviation")
    for spec, scores in values(records, OURS).items():
        print(f"  {spec}: {scores.mean():.3f} ± {scores.std():.3f}")

    records = taken(folder / "qqp_dev.jsonl", qqp)
    same = human(records, "duplicate") > 0.5
    print(f"Table 3, QQP (n={len(records)}, {same.sum()} duplicates), paper .754 - .388: duplicates, others, gap, AUC")
    found = values(records, [*OURS, "bleu", "bertscore"])
    for spec, scores in found.items():
        up, down = scores[same].mean(), scores[~same].mean()
        print(f"  {spec}: {up:.3f} - {down:.3f} = {up - down:.3f}, {auc(scores, same):.3f}")
    up, down = found["qsts[class=off]"][same].mean(), found["qsts"][~same].mean()
    print(f"  as in the paper (class of duplicates taken as known): {up:.3f} - {down:.3f} = {up - down:.3f}")


if __name__ == "__main__":
    main()
