"""Records with what people said about them: `human` and `ratings` filled, ready for `elench meta`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from elench.errors import UsageError
from elench.records.record import Record
from elench.study.analyse.quality import judge_raters
from elench.study.analyse.scores import Judged, judgements, kept_sittings
from elench.study.analyse.sittings import collect
from elench.study.collect.store import Store


def rated_records(store: Store, raw: bool = False, unfiltered: bool = False) -> list[Record]:
    """The study's records that kept raters judged, in the order of the study's records file.

    `ratings` holds one number per rater (z where the protocol standardises, unless `raw`), `human` their means and,
    where there are several criteria on one scale, `overall`. Ratings that came with the input records are replaced.
    """
    study = store.study
    sittings = collect(store)
    verdicts = judge_raters(study, sittings)
    passed = None if unfiltered else {rater for rater, verdict in verdicts.items() if verdict.passed}
    z = study.protocol.standardise and not raw
    found = judgements(study, kept_sittings(sittings, passed), z, raw=not z)
    if not found:
        raise UsageError("no kept rating yet: nothing to export as records (see `elench study status`)")
    given: dict[tuple[str, str], list[Judged]] = {}
    for j in sorted(found, key=lambda j: j.rater):
        given.setdefault((j.record, j.system), []).append(j)
    comparable = z or study.protocol.one_scale
    names = [criterion.name for criterion in study.protocol.criteria]
    return [
        _rated(replace(record, judge=study.protocol.judge), names, given[key], comparable)
        for key, record in study.records.items()
        if key in given
    ]


def _rated(record: Record, names: Sequence[str], judged: Sequence[Judged], comparable: bool) -> Record:
    """A record with the ratings of its raters and their means; an overall mean only of comparable criteria."""
    ratings = {
        name: tuple(round(j.values[k], 6) if np.isfinite(j.values[k]) else None for j in judged)
        for k, name in enumerate(names)
    }
    known = {name: [value for value in values if value is not None] for name, values in ratings.items()}
    human = {name: float(np.mean(values)) for name, values in known.items() if values}
    if comparable and len(human) == len(names) > 1:
        human["overall"] = float(np.mean(list(human.values())))
    return replace(record, human={name: round(value, 6) for name, value in human.items()}, ratings=ratings)
