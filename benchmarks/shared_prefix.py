"""Shared prefixes: 15 questions on one passage of 200 tokens, scored together and one by one, same numbers.

python benchmarks/shared_prefix.py [--questions 15] [--tokens 200] [--threads 1] [--rounds 3]
"""

from __future__ import annotations

import argparse
import time

from texts import mixed_texts


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--questions", type=int, default=15)
    options.add_argument("--tokens", type=int, default=200)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()

    import torch

    from elench.models.base import ModelSet
    from elench.requests import Continue

    torch.set_num_threads(given.threads)
    model = ModelSet()["causal"]
    words = " ".join(mixed_texts(40, 3)).split()
    passage = " ".join(words)
    while len(model.tokenizer(passage)["input_ids"]) > given.tokens:  # type: ignore[attr-defined]
        passage = passage.rpartition(" ")[0]
    questions = [" " + t for t in mixed_texts(given.questions, 4, typical=10, longest=15)]
    asked = [Continue(f"{passage}\nQuestion:", question) for question in questions]
    model.answer(asked[:1])
    together = alone = 0.0
    for _ in range(given.rounds):
        start = time.process_time()
        a = model.answer(asked)
        middle = time.process_time()
        b = [model.answer([request])[0] for request in asked]
        together, alone = together + middle - start, alone + time.process_time() - middle
    apart = max(abs(x - y) for p, q in zip(a, b, strict=True) for x, y in zip(p.logprobs, q.logprobs, strict=True))
    targets = sum(len(x.logprobs) for x in a)
    print(f"n = {given.questions} questions ({targets} tokens) on {given.tokens} tokens x {given.rounds}, {model.name}")
    print(f"one by one  {alone / given.rounds:6.2f} CPU s   shared {together / given.rounds:6.2f} CPU s")
    print(f"ratio       {alone / together:6.2f}         largest difference {apart:.1e}")


if __name__ == "__main__":
    main()
