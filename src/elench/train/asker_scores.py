"""How good an asker is: does a reader give the answer back, and how near are its questions to people's?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from elench.engine.scoring import score
from elench.models.base import Model
from elench.records.record import Record
from elench.requests import Ask, Read, Reading
from elench.text.answers import exact, f1
from elench.train.asker import LONGEST, corpora
from elench.train.examples import Example, read_squad


def likeness(questions: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """BLEU-4 of the questions over the whole set, and their mean BERTScore, against people's."""
    pairs = zip(questions, references, strict=True)
    records = [Record(str(i), question=q, references=tuple(r), judge="question") for i, (q, r) in enumerate(pairs)]
    means = score(records, ["bleu", "bertscore"]).summary()
    return {"bleu4": float(means["bleu"]["corpus"] or 0.0), "bertscore": float(means["bertscore"]["mean"] or 0.0)}


def score_examples(
    asker: Model[Ask, tuple[str, ...]], reader: Model[Read, Reading], examples: Sequence[Example]
) -> tuple[dict[str, float], list[str]]:
    """Figures of an asker on passages with human questions, and the questions it wrote.

    Round trip: share of questions to which the reader, on the whole text, gives the answer back: the same words
    (`same`), or F1 of at least .5 (`half`); for the human questions as well, which is the most the reader allows.
    """
    written = [v[0] if v else "" for v in asker.answer_all([Ask(e.context, e.answers[0], e.start) for e in examples])]
    human: dict[tuple[str, str], list[str]] = {}
    for e in examples:
        human.setdefault((e.context, e.answers[0]), []).append(e.question)
    row: dict[str, float] = {"n": len(examples)}
    row |= likeness(written, [human[e.context, e.answers[0]] for e in examples])
    for who, questions in (("", written), ("human_", [e.question for e in examples])):
        readings = reader.answer_all([Read(q, e.context) for q, e in zip(questions, examples, strict=True)])
        found = [(r.answer, e.answers[0]) for r, e in zip(readings, examples, strict=True)]
        row[f"{who}same"] = float(np.mean([exact(a, gold) for a, gold in found]))
        row[f"{who}half"] = float(np.mean([f1(a, gold) >= 0.5 for a, gold in found]))
    row["ends_in_mark"] = float(np.mean([q.endswith("?") for q in written]))
    row["names_answer"] = float(
        np.mean([e.answers[0].lower() in q.lower() for q, e in zip(written, examples, strict=True)])
    )
    return row, written


def report(
    asker: Model[Ask, tuple[str, ...]], reader: Model[Read, Reading], data: Path, most: int, show: int, seed: int
) -> str:
    """The figures on the articles kept back and on XQuAD (SQuAD dev, never trained on), and some of the questions."""
    rng = np.random.default_rng(seed)
    lines = [f"asker {asker.name}@{asker.sha256[:12]}, reader {reader.name}@{reader.sha256[:12]}"]
    for name, examples in (("kept back", corpora(data)[1]), ("xquad_en", read_squad(data / "xquad_en.json"))):
        usable = [e for e in examples if e.start >= 0 and len(e.answers[0].split()) <= LONGEST]
        chosen = [usable[i] for i in sorted(rng.permutation(len(usable))[:most])]
        row, written = score_examples(asker, reader, chosen)
        lines.append(f"{name}: " + "  ".join(f"{k} {v:.3f}" if k != "n" else f"n {v}" for k, v in row.items()))
        for i in sorted(rng.permutation(len(chosen))[:show]):
            lines.append(f"  [{chosen[i].answers[0]}] {written[i]}   | human: {chosen[i].question}")
    return "\n".join(lines)
