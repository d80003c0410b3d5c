"""QRelScore and QAScore against their readable second implementations, run as the published programs run.

    python benchmarks/qrelscore.py [--items 300] [--slow 15]

Same weights, same run, one thread count. The slow side scores one item at a time with one pass per mask, on --slow items
spread over the passages; its rate per item is what counts. QAScore's paper form needs a masked language model, which is
not at hand offline: MiniLM with a head of tied, untrained weights has the same cost.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


def items(count: int, per_passage: int = 15) -> list[dict[str, str]]:
    """Questions about passages of the shipped sample: each asks for a run of words, which is its answer."""
    from elench.records.record import read_records

    sample = Path(__file__).resolve().parent.parent / "sample" / "records.jsonl"
    passages = list(dict.fromkeys(r.context for r in read_records(sample) if r.context))
    made: list[dict[str, str]] = []
    for k in range(count):
        number = k // per_passage
        words = passages[number % len(passages)].split()
        words = words[
            (7 * (number // len(passages))) % 20 :
        ]  # other passages of the same kind, so that none occurs twice
        at = (k % per_passage) * 4 + 2
        question = f"What does the text say about {' '.join(words[at : at + 3])} and {words[at + 5]}?"
        made.append(
            {"id": str(k), "context": " ".join(words), "question": question, "answer": " ".join(words[at : at + 2])}
        )
    return made


def masked_folder(encoder: Path) -> Path:
    """MiniLM with a masked-language-model head whose output weights are the word embeddings."""
    import torch
    from transformers import AutoConfig, AutoTokenizer, BertForMaskedLM

    folder = Path(tempfile.mkdtemp()) / "masked"
    torch.manual_seed(0)
    BertForMaskedLM.from_pretrained(encoder, config=AutoConfig.from_pretrained(encoder)).save_pretrained(folder)
    AutoTokenizer.from_pretrained(encoder).save_pretrained(folder)
    return folder


@click.command()
@click.option("--items", "count", default=300, show_default=True)
@click.option("--slow", default=15, show_default=True, help="Items that the slow side scores.")
@click.option("--threads", default=0, help="0: torch's default.")
@click.option("--only", default="", help="Metrics whose name begins so.")
def main(count: int, slow: int, threads: int, only: str) -> None:
    """Print items per second of both sides and the ratio."""
    import torch
    from tests.metrics.second_qascore import SecondQAScore
    from tests.metrics.second_qrelscore import SecondQRelScore

    import elench
    from elench.models.base import ModelChoice, ModelSet
    from elench.models.checkpoints import find

    if threads:
        torch.set_num_threads(threads)
    encoder, causal = (find(ModelChoice(role)).folder for role in ("encoder", "causal"))
    masked = masked_folder(encoder)
    made = items(count)
    few = made[:: max(1, count // slow)][:slow]
    models = ModelSet({"masked": str(masked)})
    relevance, answers = SecondQRelScore(encoder, causal), SecondQAScore(masked, causal)
    sides = {
        "qrelscore": lambda r: relevance.score(r["question"], r["context"]),
        "qrel-lrm": lambda r: relevance.lrm(r["question"], r["context"]),
        "qrel-grg": lambda r: relevance.grg(r["question"], r["context"]),
        "qascore[form=causal]": lambda r: answers.causal(r["context"], r["question"], r["answer"]),
        "qascore[form=paper]": lambda r: sum(answers.paper(r["context"], r["question"], r["answer"])),
    }
    for spec, one in sides.items():
        if only and not spec.startswith(only):
            continue
        elench.score(made[:1], spec, models=models, cache=False)  # load
        started = time.perf_counter()
        fast = elench.score(made, spec, models=models, cache=False)
        fast_rate = count / (time.perf_counter() - started)
        started = time.perf_counter()
        slow_values = [one(r) for r in few]
        slow_rate = len(few) / (time.perf_counter() - started)
        gap = max(abs(v - (fast[spec, r["id"]] or 0.0)) for v, r in zip(slow_values, few, strict=True))
        click.echo(
            f"{spec:22} fast {fast_rate:8.2f} items/s (n={count})   second {slow_rate:7.2f} items/s (n={len(few)})   "
            f"ratio {fast_rate / slow_rate:6.1f}   largest difference {gap:.1e}"
        )


if __name__ == "__main__":
    main()
