"""QRelScore and QAScore against their readable second implementations, run as the published programs run.

    python benchmarks/qrelscore.py [--items 60] [--slow 6]

Same weights, same run, one thread. The slow side (transformers) scores one item at a time with one pass per mask, on
--slow items spread over the passages; its rate per item is what counts. The causal model stays in float32 in int8 runs.
"at most" is the ratio that the fast side would reach if its float32 products with weights ran at the rate of plain
products, measured in the same run, and everything else cost nothing.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click
from sides import counted_operations, cpu_seconds, machine, one_thread, product_rate

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


def masked_folder() -> Path:
    """The shipped masked language model as a transformers checkpoint, for the slow side."""
    from transformers import AutoTokenizer

    from elench.models.base import ModelChoice, resolve
    from elench.models.shipped import load_shipped
    from elench.models.torch_networks import build_masked

    identity = resolve(ModelChoice("masked"))
    folder = Path(tempfile.mkdtemp()) / "masked"
    load_shipped(identity, build_masked).save_pretrained(folder)
    AutoTokenizer.from_pretrained(identity.base).save_pretrained(folder)
    return folder


@click.command()
@click.option("--items", "count", default=60, show_default=True)
@click.option("--slow", default=6, show_default=True, help="Items that the slow side scores.")
@click.option("--only", default="", help="Metrics whose name begins so.")
def main(count: int, slow: int, only: str) -> None:
    """Print items per CPU second of both sides and the ratio, in float32 and int8."""
    one_thread()
    from tests.metrics.second_qascore import SecondQAScore
    from tests.metrics.second_qrelscore import SecondQRelScore

    import elench
    from elench.models.base import ModelChoice, ModelSet
    from elench.models.checkpoints import find

    encoder, causal = (find(ModelChoice(role)).folder for role in ("encoder", "causal"))
    made = items(count)
    few = made[:: max(1, count // slow)][:slow]
    relevance, answers = SecondQRelScore(encoder, causal), SecondQAScore(masked_folder(), causal)
    sides = {
        "qrelscore": lambda r: relevance.score(r["question"], r["context"]),
        "qrel-lrm": lambda r: relevance.lrm(r["question"], r["context"]),
        "qrel-grg": lambda r: relevance.grg(r["question"], r["context"]),
        "qascore[form=causal]": lambda r: answers.causal(r["context"], r["question"], r["answer"]),
        "qascore": lambda r: sum(answers.paper(r["context"], r["question"], r["answer"])),
    }
    click.echo(f"n = {count} items, {len(few)} on the slow side; {machine()}")
    for spec, one in sides.items():
        if only and not spec.startswith(only):
            continue
        one(few[0])
        slow_values, spent = cpu_seconds(lambda one=one: [one(r) for r in few])
        rate = len(few) / spent
        line = f"{spec:21} one at a time {rate:6.2f} items/s"
        for dtype in ("float32", "int8"):
            models = ModelSet(dtype=dtype)
            with counted_operations() as operations:
                elench.score(made[:1], spec, models=models, cache=False)  # load
                operations.count = 0.0
                fast, seconds = cpu_seconds(lambda s=spec, m=models: elench.score(made, s, models=m, cache=False))
            gap = max(abs(v - (fast[spec, r["id"]] or 0.0)) for v, r in zip(slow_values, few, strict=True))
            line += f"   {dtype} {count / seconds:7.2f}: {count / seconds / rate:5.1f} times (apart {gap:.0e})"
            if dtype == "float32":
                line += f", at most {count / operations.least_seconds(product_rate()) / rate:.1f}"
        click.echo(line)


if __name__ == "__main__":
    main()
