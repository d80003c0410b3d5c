"""Train the support model (`elench train support`): is a claim supported, contradicted or not found in a text?

Entailment pairs (SNLI, MNLI and others), checked claims (FEVER and others), claims made from SQuAD's paragraphs,
where a right claim and a wrong one differ by one name, number, negation or answer, and sentences of judged summaries.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import numpy.typing as npt

from elench.metrics.grounding import NEAREST
from elench.stats.roc import auc
from elench.train.claims import (
    CONTRADICTED,
    LABELS,
    NOT_FOUND,
    SUPPORTED,
    UNSUPPORTED,
    ClaimMaker,
    Paragraph,
    paragraphs,
)
from elench.train.examples import read_paragraphs
from elench.train.judged_summaries import FILES, draw, judged_claims
from elench.train.loop import schedule_of, started_from, taught_by
from elench.train.options import destination, family_option, start_option, teacher_option
from elench.train.pairs import (
    ClassifierTask,
    PairEncoder,
    Teacher,
    TextPair,
    classifier_options,
    predict,
    ship,
    train_classifier,
)
from elench.train.paraphrases import FILE as PARAPHRASES

if TYPE_CHECKING:
    from torch.nn import Module

LIMITS = (320, 80)
"""Most tokens of the text and of the claim."""
NLI = {"entailment": SUPPORTED, "contradiction": CONTRADICTED, "neutral": NOT_FOUND}
FACTS = {"supported": SUPPORTED, "refuted": CONTRADICTED, "not_enough": NOT_FOUND}
TEST = ("snli-dev", "mnli-dev")
"""Sources of the entailment file that are only tested on."""
LEFT_OUT = ("help-negation", "rte")
"""Unreliable, or without the difference between contradicted and not found."""
SHARES = {"nli": 0.40, "facts": 0.10, "made": 0.36, "judged": 0.14}
NLI_SHARES = {"snli": 0.38, "mnli": 0.42}
"""Of the entailment pairs; the small sources share the rest by their size."""
JUDGED = (
    "; sentences of judged summaries, three sources in four: SummEdits (Apache-2.0), XSum's (CC BY 4.0), without "
    "sources of AggreFact, QAGS, SummEval or PolyTope"
)
BAD_AT = {
    "embedded": "two names that changed places, a wrong name or answer of the same kind from the same text; free "
    "paraphrase of text in lower case; arithmetic",
    "large": "a wrong answer of the same kind from the same text, of which it misses one in five; claims about several "
    "studies at once; arithmetic",
}
ROUND = 30000
HELD_OUT = 6


def entailment(data: Path) -> tuple[list[TextPair], list[TextPair]]:
    """Entailment pairs to train on and to test on."""
    train: list[TextPair] = []
    test: list[TextPair] = []
    for row in _rows(data / "nli.jsonl.gz"):
        source = row["source"]
        if source in LEFT_OUT or row["label"] not in NLI:
            continue
        pair = TextPair(row["premise"], row["hypothesis"], NLI[row["label"]], source)
        (test if source in TEST else train).append(pair)
    return train, test


def checked_claims(data: Path) -> tuple[list[TextPair], list[TextPair]]:
    """Claims with evidence to train on; a twentieth of the claims is kept back."""
    parts: tuple[list[TextPair], list[TextPair]] = ([], [])
    for row in _rows(data / "fact_checking.jsonl.gz"):
        kept = zlib.crc32(row["claim"].encode()) % 20 == 0
        parts[kept].append(TextPair(row["evidence"], row["claim"], FACTS[row["label"]], row["source"]))
    return parts


def _rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def chances(kinds: Sequence[str], shares: Mapping[str, float]) -> npt.NDArray[np.float64]:
    """How probable each item is to be drawn, so that the named kinds have their shares and the others the rest."""
    named = [kind if kind in shares else "" for kind in kinds]
    counts = Counter(named)
    whole = {**shares, "": 1.0 - sum(shares.values())}
    weights: npt.NDArray[np.float64] = np.array([whole[kind] / counts[kind] for kind in named])
    weights /= weights.sum()
    return weights


class PairMixture:
    """A round's pairs: entailment, checked claims and freshly made claims in fixed shares."""

    def __init__(self, data: Path, paraphrases: Path | None, judgements: Path | None) -> None:
        self.paraphrases = paraphrases
        self.judged, self.judged_test = judged_claims(judgements) if judgements else ([], [])
        self.nli, nli_test = entailment(data)
        self.nli_chances = chances([pair.kind for pair in self.nli], NLI_SHARES)
        self.facts, facts_test = checked_claims(data)
        examples = read_paragraphs(data / "squad11_train.jsonl.gz")
        kept = set(sorted({e.group for e in examples})[:HELD_OUT])
        self.kept = paragraphs([e for e in examples if e.group in kept])
        self.known = paragraphs([e for e in examples if e.group not in kept])
        self.test = nli_test + facts_test

    def maker(self, known: Sequence[Paragraph]) -> ClaimMaker:
        """Claims of paragraphs, with the paraphrases that are on disk by now."""
        found: dict[str, str] = {}
        if self.paraphrases is not None and (self.paraphrases / PARAPHRASES).exists():
            for line in (self.paraphrases / PARAPHRASES).read_text(encoding="utf-8").split("\n"):
                if line.endswith("}"):
                    row = json.loads(line)
                    found |= {row["sentence"]: row["paraphrase"]} if row["paraphrase"] else {}
        return ClaimMaker(known, found)

    def __call__(self, rng: np.random.Generator, epoch: int) -> list[TextPair]:
        sizes = {kind: round(share * ROUND) for kind, share in SHARES.items()}
        nli = [self.nli[int(i)] for i in rng.choice(len(self.nli), sizes["nli"], replace=False, p=self.nli_chances)]
        facts = [self.facts[int(i)] for i in rng.choice(len(self.facts), sizes["facts"], replace=False)]
        judged = draw(self.judged, sizes["judged"], rng) if self.judged else []
        return nli + facts + self.made(self.maker(self.known), sizes["made"], rng) + judged

    @staticmethod
    def made(maker: ClaimMaker, n: int, rng: np.random.Generator) -> list[TextPair]:
        return [TextPair(c.premise, c.claim, c.label, c.kind) for c in maker.draw(n, rng)]

    def tests(self, most: int, seed: int = 1) -> list[TextPair]:
        """What the figures are computed on: at most this many pairs of each source, and made claims."""
        rng, groups = np.random.default_rng(seed), defaultdict(list)
        judged = [claim.pair(NEAREST[-1]) for claim in self.judged_test]
        for pair in [*self.test, *judged, *self.made(self.maker(self.kept), 4 * most, rng)]:
            groups[pair.kind].append(pair)
        return [g[int(i)] for g in groups.values() for i in rng.permutation(len(g))[:most]]


def figures(model: Module, encoder: PairEncoder, pairs: Sequence[TextPair]) -> dict[str, dict[str, Any]]:
    """Accuracy by source, and the confusion table (rows: truth) of the two entailment sources."""
    chances = predict(model, encoder(pairs))
    by_kind: dict[str, list[tuple[int, int]]] = defaultdict(list)
    supported: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for pair, row in zip(pairs, chances, strict=True):
        guess = int(row.argmax())
        by_kind[pair.kind].append((int(pair.target), min(guess, 1) * UNSUPPORTED if pair.kind in FILES else guess))
        supported[pair.kind][pair.target != SUPPORTED].append(float(row[SUPPORTED]))
    found: dict[str, dict[str, Any]] = {}
    for kind, rows in sorted(by_kind.items()):
        found[kind] = {"n": len(rows), "accuracy": round(sum(a == b for a, b in rows) / len(rows), 3)}
        if kind in FILES:
            found[kind]["auc"] = round(auc(*supported[kind]), 3)
        if kind in TEST:
            found[kind]["confusion"] = [[rows.count((a, b)) for b in range(3)] for a in range(3)]
    return found


@click.command()
@classifier_options(lr=2.5e-4, batch=48)
@click.option(
    "--paraphrases", type=click.Path(file_okay=False, path_type=Path), help="Folder of `elench train paraphrases`."
)
@click.option(
    "--judgements", type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of judged summaries, to train on the sentences of three in four sources.",
)  # fmt: skip
@family_option
@start_option
@teacher_option
@click.option("--most", type=click.IntRange(1), default=2000, show_default=True, help="Test pairs of each source.")
def command(
    data: Path, out: Path | None, minutes: float, steps: int, seed: int, threads: int, resume: bool, lr: float,
    batch: int, paraphrases: Path | None, judgements: Path | None, family: str, start: Path | None,
    teacher: Path | None, most: int, pack_only: bool,
) -> None:  # fmt: skip
    """Train the support model and print its accuracy on what was kept back, with a confusion table."""
    out = destination(out)
    schedule = schedule_of(minutes, steps, lr, batch, seed, threads, pack_only)
    mixture = PairMixture(data, paraphrases, judgements)
    taught = Teacher.from_folder(teacher, LABELS, LIMITS) if teacher else None
    task = ClassifierTask(len(LABELS), LIMITS, mixture, start, whole=True, family=family, teacher=taught)
    model, encoder, run, base = train_classifier(task, schedule, out, seed=seed, resume=resume)
    shown = figures(model, encoder, mixture.tests(most))
    facts = {
        "name": "elench support",
        "task": "is a claim supported, contradicted or not found in a text? English",
        "data": "SNLI (CC BY-SA 4.0), MNLI (OANC), SciTail (Apache-2.0), ConjNLI, counterfactual NLI (MIT), HELP; "
        "FEVER, Fool-me-twice, Climate-FEVER (CC BY-SA 3.0, Apache-2.0); claims made from SQuAD v1.1 train "
        "(CC BY-SA 4.0) with right and wrong answers and changed sentences" + (JUDGED if judgements else ""),
        "shares": SHARES,
        **started_from(start),
        **taught_by(teacher),
        "licence": "CC BY-SA 4.0 (from the training data)",
        "bad at": BAD_AT[family],
        **{f"kept back, {kind}": row for kind, row in shown.items()},
    }
    kind = "fp16" if family == "embedded" else "int8"
    ship(model, base, out, run, schedule, {"labels": list(LABELS), "limits": list(LIMITS)}, facts, kind, family)
    for kind, row in shown.items():
        area = f"  AUC of supported {row['auc']:.3f}" if "auc" in row else ""
        click.echo(f"{kind:20s} n {row['n']:5d}  accuracy {row['accuracy']:.3f}{area}")
        for truth, line in zip(LABELS, row.get("confusion", []), strict=False):
            click.echo(f"    {truth:14s} " + "  ".join(f"{name} {n}" for name, n in zip(LABELS, line, strict=True)))
