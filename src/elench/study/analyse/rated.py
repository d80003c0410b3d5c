"""Records with what people said about them: `human` and `ratings` filled, ready for `elench meta`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from elench.errors import UsageError
from elench.records.record import Record
from elench.study.analyse.quality import judge_raters
from elench.study.analyse.scores import judgements, kept_sittings
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
    raters = {name: place for place, name in enumerate(sorted({j.rater for j in found}))}
    names = [criterion.name for criterion in study.protocol.criteria]
    given: dict[tuple[str, str], list[tuple[int, tuple[float, ...]]]] = {}
    for j in found:
        given.setdefault((j.record, j.system), []).append((raters[j.rater], j.values))
    records = []
    for key, record in study.records.items():
        if key not in given:
            continue
        rows = [values for _, values in sorted(given[key], key=lambda pair: pair[0])]
        ratings = {
            name: tuple(round(row[k], 6) if np.isfinite(row[k]) else None for row in rows)
            for k, name in enumerate(names)
        }
        human = {
            name: float(np.mean([value for value in values if value is not None]))
            for name, values in ratings.items()
            if any(value is not None for value in values)
        }
        if len(names) > 1 and len(human) == len(names) and (z or study.protocol.one_scale):
            human["overall"] = float(np.mean(list(human.values())))
        rounded = {name: round(value, 6) for name, value in human.items()}
        records.append(replace(record, judge=study.protocol.judge, human=rounded, ratings=ratings))
    return records
