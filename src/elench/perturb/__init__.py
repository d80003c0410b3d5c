"""Breaking good text on purpose: adversarial sets that show what a metric can and cannot see (QRelScore §3.4)."""

from __future__ import annotations

import zlib
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from elench.errors import Unscored, UsageError
from elench.perturb.edit import Edit, Scene
from elench.perturb.kinds import NEGATIVES
from elench.perturb.paraphrase import POSITIVES
from elench.records.record import Record
from elench.requests import Failure, Parse, together

if TYPE_CHECKING:
    from elench.models.base import ModelSet

KINDS = {**POSITIVES, **NEGATIVES}
"""Name → how it is done. Positives keep the meaning, negatives change it."""


@dataclass(frozen=True)
class Skipped:
    """A record that a kind could not change, and why."""

    id: str
    kind: str
    reason: str


def perturb(
    records: Iterable[Record],
    kinds: Sequence[str],
    seed: int = 0,
    paraphrases: Mapping[str, str] | None = None,
    models: ModelSet | None = None,
) -> Iterator[Record | Skipped]:
    """Every kind applied to every record's judged text; each new record says what was done where, and to which record.

    Where the record had no references, the text that was there becomes one: reference-based metrics can be tried.
    """
    from elench.engine.session import Session  # here, so that a study can borrow a bad reference without the engine
    from elench.engine.windows import reason

    for kind in kinds:
        if kind not in KINDS:
            raise UsageError(f"no kind is called {kind!r}; kinds: {', '.join(KINDS)}")
    everything = list(records)
    passages = [r.context or r.judged_text for r in everything]

    def changes(record: Record) -> list[Coroutine[Any, Any, Record]]:
        scene = _scene(record, passages, paraphrases or {})
        return [_apply(record, kind, scene, seed) for kind in kinds]

    session = Session(models) if models else Session()
    for record, results in session.map(everything, changes):
        for kind, found in zip(kinds, results, strict=True):
            yield Skipped(record.id, kind, reason(found.error)) if isinstance(found, Failure) else found


def _scene(record: Record, passages: Sequence[str], paraphrases: Mapping[str, str]) -> Scene:
    paraphrase = record.extra.get("paraphrase") or paraphrases.get(record.id)
    return Scene(record.judged_text, record.context or "", paraphrase, passages)


async def _apply(record: Record, kind: str, scene: Scene, seed: int) -> Record:
    name, text = record.judged, record.judged_text
    if not text.strip():
        raise Unscored(f"empty {name}")
    # The generator depends on the record and the kind alone, so that no other record changes the outcome.
    rng = np.random.default_rng([seed, zlib.crc32(f"{record.id}\0{record.system}\0{kind}".encode())])
    parsed, context = await together(Parse(text), Parse(scene.context))
    edit: Edit | None = await KINDS[kind](replace(scene, parsed=parsed, context_parsed=context), rng)
    if edit is None:
        raise Unscored(f"nothing for {kind} to change")
    if edit.text.split() == text.split():
        raise Unscored(f"{kind} would change nothing")
    return _changed(record, name, text, kind, edit)


def _changed(record: Record, name: str, text: str, kind: str, edit: Edit) -> Record:
    mark: dict[str, Any] = {
        "of": record.id, "kind": kind, "label": "positive" if kind in POSITIVES else "negative", "field": name,
        "at": list(edit.at), "from": edit.removed, "to": edit.added, "how": edit.how,
    }  # fmt: skip
    references = record.references or (text,)
    changes: dict[str, Any] = {name: edit.text, "judge": name, "references": references}
    extra = {**record.extra, "perturbed": mark}
    return replace(record, id=f"{record.id}#{kind}", human={}, ratings={}, peers={}, extra=extra, **changes)
