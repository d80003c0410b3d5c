"""KPQA: how well the metrics agree with human judgements, and how fast the keyphrase weights come.

    python benchmarks/kpqa.py figures --data DIR [--answers 800] -o docs/results/kpqa.md
    python benchmarks/kpqa.py speed --data DIR [--answers 1000] -o docs/results/kpqa.md
    python benchmarks/kpqa.py unlike --data DIR [--answers 1000]

DIR holds judgements/kpqa_marco.jsonl, kpqa_semeval.jsonl and evouna_nq.jsonl. `figures` runs `elench score` and
`elench meta` and puts their numbers beside the paper's Table 3, AUC on a seeded part of evouna_nq, and Figure 1.
`speed` weighs the answers of kpqa_marco in batches and one pair at a time, in the same run; it adds to the file.
`unlike` measures the cosine of unlike words that bertscore-kpqa[form=ours] rescales by: the mean best cosine of content
words between statements of different articles in the training corpus (DIR/corpora/squad11_train.jsonl.gz).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from sides import cpu_seconds, in_torch, machine, one_thread

PLAIN = ("bleu[n=1]", "rouge-l", "bertscore[layer=1]")
WEIGHTED = ("bleu1-kpqa", "rouge-l-kpqa", "bertscore-kpqa")
OFF = tuple(f"{name}[question=off]" for name in WEIGHTED)
OTHER_FORMS = tuple(f"{name}[form={form}]" for form in ("code", "ours") for name in WEIGHTED)
PAPER = {
    "bleu[n=1]": (0.349, 0.329, 0.359, 0.452), "rouge-l": (0.309, 0.301, 0.566, 0.580),
    "bertscore[layer=1]": (0.463, 0.456, 0.630, 0.602), "bleu1-kpqa": (0.675, 0.634, 0.362, 0.462),
    "rouge-l-kpqa": (0.698, 0.642, 0.742, 0.687), "bertscore-kpqa": (0.673, 0.655, 0.741, 0.676),
    "bleu1-kpqa[question=off]": (0.629, 0.589, None, None), "rouge-l-kpqa[question=off]": (0.671, 0.640, None, None),
    "bertscore-kpqa[question=off]": (0.657, 0.649, None, None),
}  # fmt: skip
"""Tables 3 and 4 of the paper: Pearson and Spearman on MS-MARCO, then on SemEval."""


def elench(*arguments: str) -> str:
    """What a elench command prints."""
    return subprocess.run(
        [sys.executable, "-m", "elench", *arguments], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def correlations(records: Path, specs: Iterable[str], folder: Path) -> dict[str, dict[str, Any]]:
    """Rows of `elench meta` by metric, after `elench score`."""
    scores = folder / f"{records.stem}.scores.jsonl"
    elench("score", str(records), "-m", ",".join(specs), "-o", str(scores))
    found = json.loads(elench("meta", str(records), "--scores", str(scores), "--no-baselines", "--format", "json"))
    return {row["metric"]: row for row in found["rows"]}


def line(*cells: Any) -> str:
    return "| " + " | ".join(str(c) for c in cells) + " |"


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def correlation_table(data: Path, folder: Path) -> list[str]:
    """Pearson and Spearman on both files, the paper's beside them."""
    specs = ("novel-f1", *PLAIN, *WEIGHTED, *OFF, *OTHER_FORMS)
    files = [data / "judgements" / f"kpqa_{name}.jsonl" for name in ("marco", "semeval")]
    marco, semeval = (correlations(path, specs, folder) for path in files)
    lines = [
        line("metric", "MARCO r [95 %]", "ρ", "paper r / ρ", "SemEval r [95 %]", "ρ", "paper r / ρ", "n"),
        line(*["---"] * 8),
    ]
    for spec in specs:
        cells: list[Any] = [f"`{spec}`"]
        paper = PAPER.get(spec, (None,) * 4)
        for row, (r, rho) in ((marco[spec], paper[:2]), (semeval[spec], paper[2:])):
            values, low, high = row["values"], row["low"], row["high"]
            cells += [
                f"**{values['pearson']:.3f}** [{low['pearson']:.3f}, {high['pearson']:.3f}]",
                number(values["spearman"]),
                f"{number(r)} / {number(rho)}",
            ]
        lines.append(line(*cells, f"{marco[spec]['n']} + {semeval[spec]['n']}"))
    return lines


def auc_table(data: Path, answers: int, folder: Path) -> list[str]:
    """How often a right answer of evouna_nq outscores a wrong one."""
    from elench.stats.roc import auc

    rows = (data / "judgements" / "evouna_nq.jsonl").read_text(encoding="utf-8").splitlines()
    chosen = sorted(np.random.default_rng(0).choice(len(rows), min(answers, len(rows)), replace=False))
    part, scores = folder / "evouna.jsonl", folder / "evouna.scores.jsonl"
    part.write_text("".join(rows[i] + "\n" for i in chosen), encoding="utf-8")
    specs = ("f1", "em", "novel-f1", *PLAIN, *WEIGHTED)
    elench("score", str(part), "-m", ",".join(specs), "-o", str(scores))
    right = [json.loads(rows[i])["human"]["correct"] > 0.5 for i in chosen]
    found = [json.loads(text)["scores"] for text in scores.read_text(encoding="utf-8").splitlines()]
    lines = [line("metric", "AUC", "right", "wrong", "unscored"), line(*["---"] * 5)]
    for spec in specs:
        pairs = [(s[spec], r) for s, r in zip(found, right, strict=True) if s.get(spec) is not None]
        good, bad = (np.array([v for v, r in pairs if r == wanted]) for wanted in (True, False))
        lines.append(line(f"`{spec}`", f"{auc(good, bad):.3f}", len(good), len(bad), len(found) - len(pairs)))
    return lines


def figure_one() -> list[str]:
    """The paper's Figure 1: a wrong number in an otherwise equal sentence."""
    from elench import score
    from elench.metrics.kpqa import EXAMPLE

    result = score([EXAMPLE], [*PLAIN, *WEIGHTED])
    lines = [line("version", "plain", "KPQA", "paper plain", "paper KPQA"), line(*["---"] * 5)]
    papers = ((0.778, 0.057), (0.713, 0.127), (None, None))
    for plain, weighted, (theirs, drop) in zip(PLAIN, WEIGHTED, papers, strict=True):
        a, b = result.values(plain)[0], result.values(weighted)[0]
        lines.append(line(f"`{plain}` → `{weighted}`", number(a), number(b), number(theirs), number(drop)))
    return lines


def figures(data: Path, answers: int, out: Path | None) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts = [
            "# KPQA: figures",
            "Made by `python benchmarks/kpqa.py figures --data DIR` (it runs `elench score` and `elench meta`) on "
            "a 2-core CPU machine, no GPU, with the shipped keyphrase model and the embedded encoder.",
            "## Correlation with human correctness",
            "\n".join(correlation_table(data, folder)),
            "r: Pearson, with the bootstrap interval of `elench meta` over questions; ρ: Spearman. Without MS-MARCO "
            "in its training data, as ours, the paper has r = .573, .598 and .602 on MARCO (Table 4).",
            "The default computes the equations, `form=code` the authors' program. `form=ours` goes beyond them: words are "
            "equal by root; the common subsequence of ROUGE-L is the heaviest, not the longest; in BERTScore different "
            "numbers are unlike, and cosines are rescaled by that of unlike words (.25: the mean best cosine of content "
            "words between answers to different training questions, MiniLM, layer 1). These choices were made with these "
            "two files in view, so their gain here is optimistic; no file with ratings was trained on, and evouna_nq below "
            "was scored once, after them.",
            "## AUC of `correct` on evouna_nq",
            f"A seeded part of {answers} of the 15,095 answers.",
            "\n".join(auc_table(data, answers, folder)),
            "## Figure 1 of the paper",
            "\n".join(figure_one()),
        ]
    text = "\n\n".join(parts) + "\n"
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
    print(text)


def speed(data: Path, answers: int, out: Path | None) -> None:
    one_thread()
    from elench.models.base import ModelSet
    from elench.models.keyphrases import WINDOW
    from elench.records.record import read_records

    records = list(read_records(data / "judgements" / "kpqa_marco.jsonl"))[:answers]
    wanted = [(r.question or "", text) for r in records for text in (r.answer or "", *r.references)]
    distinct = list(dict.fromkeys(wanted))
    some, few = wanted[:: max(1, len(wanted) // 100)], wanted[:: max(1, len(wanted) // 20)]
    other = in_torch(ModelSet().identity("keyphrases"))
    other.weigh(some[:2])
    alone, slow = cpu_seconds(lambda: [other.weigh([pair])[0] for pair in some])
    slow *= len(wanted) / len(some)
    wide = cpu_seconds(lambda: [padded(other, *pair, WINDOW) for pair in few])[1] * len(wanted) / len(few)
    said = [f"{len(records)} answers, their references: {len(wanted)} pairs, {len(distinct)} distinct; {machine()}."]
    for dtype in ("float32", "int8"):
        model: Any = ModelSet(dtype=dtype)["keyphrases"]
        model.weigh(distinct[:8])
        batched, fast = cpu_seconds(lambda m=model: dict(zip(distinct, m.weigh(distinct), strict=True)))
        both = ((one.weights, batched[pair].weights) for pair, one in zip(some, alone, strict=True))
        apart = max(abs(a - b) for left, right in both for a, b in zip(left, right, strict=True))
        said.append(
            f"- in batches, each distinct pair once, {dtype}: {fast:.1f} s; {slow / fast:.1f} times one pair at a time in "
            f"transformers (n = {len(some)}), {wide / fast:.1f} times the same padded to the paper's {WINDOW} pieces "
            f"(n = {len(few)}); largest difference of a weight {apart:.1e}"
        )
    print("\n".join(said))
    if out:
        with out.open("a", encoding="utf-8") as file:
            file.write("\n".join(["", "## Speed of the weights", "", *said]) + "\n")


def padded(model: Any, question: str, answer: str, window: int) -> None:
    """One pair padded to the pieces the paper works at."""
    from elench.models.keyphrases import collate, lay_out

    tokens = model.tokens
    (row, *_) = lay_out([(question, answer)], tokens)[0].rows(window)
    made = collate([row], tokens.cls, tokens.sep)
    width = window - len(made.rows[0])
    rows = [[*made.rows[0], *[tokens.pad] * width]]
    types, facts = (np.pad(values, ((0, 0), (0, width))) for values in (made.types, made.facts))
    model.network.keyphrase_logits(rows, types, facts)


def unlike(data: Path, pairs: int) -> None:
    from elench.metrics.formulas import unit
    from elench.metrics.kpqa import BertscoreKpqa
    from elench.models.base import ModelSet
    from elench.requests import Embed
    from elench.text.roots import is_stop_word, words_of
    from elench.train.examples import read_squad
    from elench.train.keyphrase_examples import statement

    rng = np.random.default_rng(0)
    examples = read_squad(data / "corpora" / "squad11_du_test.json")
    metric, encoder = BertscoreKpqa(), ModelSet()["encoder"]
    best: list[float] = []
    while pairs:
        ours, theirs = (examples[int(i)] for i in rng.choice(len(examples), 2, replace=False))
        if ours.group == theirs.group:
            continue
        said, other = (statement(e.question, e.answers[0], rng)[0] for e in (ours, theirs))
        found = encoder.answer([Embed(said, metric.layer), Embed(other, metric.layer)])
        likeness = unit(metric.vectors(found[0], said)) @ unit(metric.vectors(found[1], other)).T
        content = [not is_stop_word(word) for word, _ in words_of(said)]
        best += likeness.max(1)[content].tolist()
        pairs -= 1
    low, high = np.percentile([np.mean(rng.choice(best, len(best))) for _ in range(1000)], [2.5, 97.5])
    print(
        f"mean best cosine of {len(best)} content words at layer {metric.layer}: {np.mean(best):.3f} [{low:.3f}, {high:.3f}]"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["figures", "speed", "unlike"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--answers", type=int, default=0, help="default: 800 for AUC, else 1,000")
    parser.add_argument("-o", "--out", type=Path)
    given = parser.parse_args()
    if given.what == "figures":
        figures(given.data, given.answers or 800, given.out)
    elif given.what == "speed":
        speed(given.data, given.answers or 1000, given.out)
    else:
        unlike(given.data, given.answers or 1000)


if __name__ == "__main__":
    main()
