"""What is in a file of records, and which metrics can judge it: `elench check`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from elench.errors import MissingExtra, Unscored, UsageError
from elench.metrics import all_metrics
from elench.metrics.base import Metric
from elench.records.judging import SAMPLE, decide
from elench.records.record import Record, Reject
from elench.records.source import Source

PREFERRED = {
    "question": ("qrelscore", "qa-overlap", "answerable", "qascore", "qsts", "rouge-l", "bleu", "wellformed", "length"),
    "answer": ("equivalent", "support", "bertscore-kpqa", "novel-f1", "f1", "rouge-l", "length"),
    "summary": ("support", "questeval", "bertscore", "rouge-l", "source-overlap", "length"),
}
"""What to suggest first, where it can judge the file."""
SUGGESTED = 4
PER_SHAPE = 20
"""Records with other fields than the first thousand are looked at too, up to this many of each kind."""
FIELDS = (
    "context",
    "question",
    "answer",
    "summary",
    "references",
    "judge",
    "system",
    "group",
    "human",
    "ratings",
    "peers",
)


@dataclass(frozen=True)
class Contents:
    """What a file holds."""

    file: str
    records: int = 0
    rejected: int = 0
    first_reject: str = ""
    fields: Mapping[str, int] = field(default_factory=dict)
    """How many records have each field."""
    other_fields: tuple[str, ...] = ()
    judging: Mapping[str, int] = field(default_factory=dict)
    """How many records judge a question, an answer, a summary; "" where it cannot be determined."""
    decided: str = ""
    """How it is known what is judged: stated by the records, or decided for the file; or why it is not known."""
    systems: tuple[str, ...] = ()
    groups: int = 0
    references: float = 0.0
    """References per record that has any."""
    passages: float = 0.0
    """Passages per record whose context is a list."""
    human: Mapping[str, int] = field(default_factory=dict)
    languages: Mapping[str, int] = field(default_factory=dict)
    able: Mapping[str, int] = field(default_factory=dict)
    """Metric → how many of the records looked at (the first thousand, and some of each other kind) it can judge."""
    unable: Mapping[str, str] = field(default_factory=dict)
    """Metric → why it cannot judge any."""
    suggestions: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What may be judged → the metrics to begin with."""
    recognised: str = ""

    def to_object(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value not in ("", {}, ())}


def inspect(source: Source) -> Contents:
    """Read the whole file once and say what is in it."""
    seen = _Counts()
    for item in source.read():
        seen.add(item)
    sample = seen.sample
    how, judging = _judged(source, sample, seen.judges)
    able, unable, suggestions = _metrics_for(sample, judging)
    return Contents(
        file=source.name, records=seen.records, rejected=seen.rejected, first_reject=seen.first_reject,
        fields={name: seen.fields[name] for name in FIELDS if seen.fields[name]},
        other_fields=tuple(seen.others), judging=judging, decided=how, systems=tuple(seen.systems),
        groups=len(seen.groups), references=round(seen.references / max(seen.fields["references"], 1), 2),
        passages=round(seen.passages / max(seen.listed, 1), 2), human=dict(seen.human),
        languages=dict(Counter(record.language() for record in sample).most_common()), able=able, unable=unable,
        suggestions=suggestions,
        recognised=source.recognised.announcement() if source.recognised else "",
    )  # fmt: skip


class _Counts:
    """One pass over the file; bounded by the sample, the names of systems and the hashes of groups."""

    def __init__(self) -> None:
        self.records = self.rejected = self.references = self.passages = self.listed = 0
        self.first_reject = ""
        self.fields: Counter[str] = Counter()
        self.human: Counter[str] = Counter()
        self.judges: Counter[str] = Counter()
        self.others: dict[str, None] = {}
        self.systems: dict[str, None] = {}
        self.groups: set[int] = set()
        self.sample: list[Record] = []
        self.shapes: Counter[tuple[Any, ...]] = Counter()

    def add(self, item: Record | Reject) -> None:
        if isinstance(item, Reject):
            self.rejected += 1
            self.first_reject = self.first_reject or f"line {item.line}: {item.reason}"
            return
        self.records += 1
        self.fields.update(name for name in FIELDS if getattr(item, name))
        self.judges[item.judge or ""] += 1
        self.references += len(item.references)
        self.listed, self.passages = self.listed + bool(item.passages), self.passages + len(item.passages)
        self.human.update({**item.ratings, **item.human}.keys())
        self.others.update(dict.fromkeys(item.extra))
        if item.system is not None:
            self.systems[item.system] = None
        if item.group is not None:
            self.groups.add(hash(item.group))
        shape = (item.judge, *(bool(getattr(item, name)) for name in FIELDS[:5]))
        self.shapes[shape] += 1
        if len(self.sample) < SAMPLE or self.shapes[shape] <= PER_SHAPE:
            self.sample.append(item)


def _judged(source: Source, sample: Sequence[Record], stated: Counter[str]) -> tuple[str, dict[str, int]]:
    """What is judged, and how that is known."""
    found = {name: count for name, count in stated.items() if name}
    if not stated[""]:
        return "stated by the records" if not source.judge else "as asked for", found
    try:
        assumed = source.assumed or decide(sample, list(_any_metric()), source.name)
    except UsageError as error:
        return str(error), {**found, "": stated[""]}
    if assumed is None:
        return "no question, answer or summary", {**found, "": stated[""]}
    found[assumed] = found.get(assumed, 0) + stated[""]
    alone = {name for record in sample for name in PREFERRED if getattr(record, name) is not None} == {assumed}
    fit = "the only text there is" if alone else "what the references fit"
    return fit if alone or any(r.references for r in sample) else "what the fields suggest", found


def _metrics_for(
    sample: Sequence[Record], judging: Mapping[str, int]
) -> tuple[dict[str, int], dict[str, str], dict[str, list[str]]]:
    """Able and unable metrics, and those to begin with; for each possible choice where it is open what is judged."""
    if "" not in judging:
        known = max(judging, key=lambda name: judging[name], default=None)
        able, unable = abilities([replace(record, assumed=record.assumed or known) for record in sample])
        return able, unable, {name: suggested(name, able) for name in judging}
    able, unable, suggestions = {}, {}, {}
    for choice in PREFERRED:
        if any(getattr(record, choice) is not None for record in sample):
            own, without = abilities([replace(record, judge=record.judge or choice) for record in sample])
            suggestions[choice] = suggested(choice, own)
            able = {name: max(own.get(name, 0), able.get(name, 0)) for name in (*able, *own)}
            unable |= without
    return able, {name: why for name, why in unable.items() if name not in able}, suggestions


def _any_metric() -> Iterable[Metric]:
    yield all_metrics()["length"]()


def abilities(records: Sequence[Record]) -> tuple[dict[str, int], dict[str, str]]:
    """Which metrics can judge the records, and why the others cannot; no model is loaded for it."""
    able: dict[str, int] = {}
    unable: dict[str, str] = {}
    for name, cls in all_metrics().items():
        try:
            metric = cls()
        except (UsageError, MissingExtra, TypeError):  # a metric that needs a parameter, such as a profile
            continue
        reasons = [why_not(metric, record) for record in records]
        if count := reasons.count(""):
            able[name] = count
        elif reasons:
            unable[name] = Counter(reasons).most_common(1)[0][0]
    return able, unable


def why_not(metric: Metric, record: Record) -> str:
    """Why a metric cannot judge a record; empty when it can."""
    try:
        for name in metric.needed(record):
            if name == "references":
                metric.given_references(record)
            else:
                metric.text(record, name)
    except Unscored as reason:
        return str(reason)
    return ""


def suggested(judged: str, able: Iterable[str]) -> list[str]:
    """The metrics to begin with."""
    known = set(able)
    return [name for name in PREFERRED.get(judged, ()) if name in known][:SUGGESTED]
