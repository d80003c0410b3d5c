"""Shared prefixes: questions on one passage, scored together and one by one in transformers, same numbers.

python benchmarks/shared_prefix.py [--questions 15] [--tokens 200]
"""

from __future__ import annotations

import argparse

from sides import cpu_seconds, in_torch, machine, one_thread
from texts import mixed_texts


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--questions", type=int, default=15)
    options.add_argument("--tokens", type=int, default=200)
    given = options.parse_args()
    one_thread()
    from elench.models.base import ModelSet
    from elench.requests import Continue

    models = ModelSet()
    model, other = models["causal"], in_torch(models.identity("causal"))
    passage = " ".join(mixed_texts(40, 3))
    while len(model.tokens.ids([passage])[0]) > given.tokens:  # type: ignore[attr-defined]
        passage = passage.rpartition(" ")[0]
    questions = [" " + t for t in mixed_texts(given.questions, 4, typical=10, longest=15)]
    asked = [Continue(f"{passage}\nQuestion:", question) for question in questions]
    model.answer(asked[:1])
    other.answer(asked[:1])
    ours, together = cpu_seconds(lambda: model.answer(asked))
    alone, apart = cpu_seconds(lambda: [model.answer([request])[0] for request in asked])
    theirs, slow = cpu_seconds(lambda: [other.answer([request])[0] for request in asked])
    gap = max(
        abs(x - y) for p, q in zip(ours, theirs, strict=True) for x, y in zip(p.logprobs, q.logprobs, strict=True)
    )
    targets = sum(len(x.logprobs) for x in alone)
    print(f"n = {given.questions} questions ({targets} tokens) on {given.tokens} tokens, {model.name}; {machine()}")
    print(f"shared                      {together:6.2f} s")
    print(f"one by one, ONNX Runtime    {apart:6.2f} s, {apart / together:.1f} times")
    print(f"one by one, transformers    {slow:6.2f} s, {slow / together:.1f} times; largest difference {gap:.1e}")


if __name__ == "__main__":
    main()
