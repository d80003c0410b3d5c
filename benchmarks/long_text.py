"""Memory on a very long text: each model role asked about one text of 10,000 words.

python benchmarks/long_text.py [--words 10000] [--roles encoder,causal,parser]
"""

from __future__ import annotations

import argparse
import resource

from texts import mixed_texts


def peak() -> float:
    """Most memory this process ever held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--words", type=int, default=10_000)
    options.add_argument("--roles", default="encoder,causal,parser")
    given = options.parse_args()

    from elench.models.base import ModelSet
    from elench.requests import Continue, Embed, Parse, Relate, Request

    text = " ".join(" ".join(mixed_texts(given.words // 8, 5)).split()[: given.words])
    question = "Who built the lighthouse on the point, and when?"
    asked: dict[str, list[Request[object]]] = {
        "encoder": [Embed(text), Relate(question, text)],  # type: ignore[list-item]
        "causal": [Continue(question + " ", text)],  # type: ignore[list-item]
        "parser": [Parse(text)],  # type: ignore[list-item]
    }
    models = ModelSet()
    for role in given.roles.split(","):
        model = models[role]
        for request in asked[role]:
            before = peak()
            model.answer([request])
            print(f"{role:8} {type(request).__name__:9} n = {len(text.split())} words: peak {peak():.0f} MB, "
                  f"{peak() - before:.0f} MB above the start", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
