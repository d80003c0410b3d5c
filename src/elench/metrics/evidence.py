"""What a metric shows of its work: named values, each of a kind that `elench.show.evidence` knows how to present."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

KINDS = {
    "weights": "[[word, weight 0–1], …]: how much each word counts",
    "logprobs": "[[token, log-probability], …]",
    "gains": "[[token, change of its log-probability], …]: positive values support the score",
    "matches": "[[token, best token of the other text, similarity 0–1, …], …]; further columns are named in the kind",
    "alignment": "[[i, j, similarity], …] between two entries of kind weights, named in the kind",
    "questions": "[{question, answer, other, weight, verdict, direction, span, other_span}, …]; sibling `against`",
    "sentences": "[{sentence, passage, verdict, probabilities}, …]; supported, contradicted or not found",
    "edges": "[{wanted, found, similarity}, …]: dependency edges and their best counterparts",
    "notes": "[{what, text, side}, …]: a negation, number or name that occurs on one side only",
    "contributions": "[{metric, score, z, adds}, …]: what each metric adds to a calibrated score",
    "evidence": "evidence of another score, with kinds of its own",
}
"""Kinds of entries. An entry without a kind is a number, a text, or a list of words, and is shown as such."""


def with_kinds(evidence: Mapping[str, Any], **kinds: str | Sequence[str]) -> dict[str, Any]:
    """Evidence that says of which kind its entries are: `with_kinds({"words": rows}, words="weights")`.

    A kind with arguments is a sequence: `matches=("matches", "layer")` names a fourth column.
    """
    for name, kind in kinds.items():
        first = kind if isinstance(kind, str) else kind[0]
        if first not in KINDS:
            raise ValueError(f"evidence entry {name!r}: no kind {first!r}; one of {', '.join(KINDS)}")
    return {**evidence, "kinds": {name: kind if isinstance(kind, str) else list(kind) for name, kind in kinds.items()}}


class Evidence(Mapping[str, object]):
    """Evidence worked out only when someone looks at it, so that scoring a million records stays fast: the result of
    `explain(*given)`, a module-level function."""

    def __init__(self, explain: Callable[..., dict[str, Any]], *given: Any) -> None:
        self.explain, self.given = explain, given
        self.content: dict[str, Any] | None = None

    def _looked(self) -> dict[str, object]:
        if self.content is None:
            self.content = self.explain(*self.given)
        return self.content

    def __getitem__(self, key: str) -> Any:
        return self._looked()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._looked())

    def __len__(self) -> int:
        return len(self._looked())

    def __reduce__(self) -> tuple[object, ...]:
        return dict, (self._looked(),)  # what travels to another process is the plain content

    def __repr__(self) -> str:
        return repr(self._looked())
