"""A protocol: what raters are asked, how tasks are composed, which raters are kept. One TOML file, checked strictly."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from quaestor.errors import UsageError
from quaestor.study.fields import Fields

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib

SHOWABLE = ("context", "question", "answer", "summary", "reference")
POINTS = {"3-point": 3, "5-point": 5, "yes-no": 2}
SHIPPED = ("qg-crowd", "qg-expert", "qa-correctness", "qg-similarity")

Compose = Literal["passage", "pool"]
FilterKind = Literal["wilcoxon", "z", "none"]


@dataclass(frozen=True)
class Criterion:
    """One thing raters judge: a statement and its scale."""

    name: str
    statement: str
    scale: str
    """slider | 3-point | 5-point | yes-no | choice"""
    labels: tuple[str, ...]
    """The two ends of a slider, or one label per point, in the order shown."""
    values: tuple[float, ...]
    """The number behind each label; a slider has (0, 100)."""
    examples: tuple[str, ...] = ()

    @property
    def slider(self) -> bool:
        return self.scale == "slider"

    @property
    def low(self) -> float:
        return min(self.values)

    @property
    def high(self) -> float:
        return max(self.values)

    def parse(self, text: str) -> int:
        """The answer in a form field: a slider's position (0 to 100) or the place of the chosen label (from 0)."""
        if not re.fullmatch(r"\d{1,3}", text.strip(), re.ASCII):
            raise ValueError(f"{self.name}: {text[:20]!r} is not a rating")
        answer = int(text)
        if answer > (100 if self.slider else len(self.values) - 1):
            raise ValueError(f"{self.name}: {answer} is not on the scale")
        return answer

    def value(self, answer: int) -> float:
        """The number that an answer counts."""
        return float(answer) if self.slider else self.values[answer]


@dataclass(frozen=True)
class TaskRule:
    """How a task is composed."""

    compose: Compose
    """passage: every system once, about one passage; pool: `items` items from all over the file."""
    items: int
    raters: int
    bad_references: float
    """Share of the non-human systems that get a bad reference in a task; the human system always does."""
    repeats: float
    """Share of the non-human systems that are shown twice; the human system always is."""
    minutes: float
    """After this long an unfinished task goes back to the pool."""
    max_per_rater: int


@dataclass(frozen=True)
class FilterRule:
    """Which ratings are kept."""

    kind: FilterKind
    alpha: float = 0.05
    pairs: str = "ratings"
    """What the wilcoxon filter pairs: single ratings, as in the paper, or items (mean over the criteria)."""
    z: float = 1.0
    most: int = 5


@dataclass(frozen=True)
class QualificationItem:
    """An item with known answers."""

    shown: dict[str, str]
    expected: dict[str, float]


@dataclass(frozen=True)
class Protocol:
    """A whole protocol as read from its file."""

    name: str
    title: str
    source: str
    judge: str
    show: tuple[str, ...]
    highlight: bool
    instructions: tuple[str, ...]
    criteria: tuple[Criterion, ...]
    task: TaskRule
    filter: FilterRule
    standardise: bool
    """Report scores as z within each rater (eq. 13 of QAScore) instead of raw means."""
    pay: float
    currency: str
    pass_mark: float
    qualification: tuple[QualificationItem, ...]
    prolific_code: str
    text: str
    """The file itself, kept word for word in the study folder."""

    def criterion(self, name: str) -> Criterion:
        return next(c for c in self.criteria if c.name == name)


def load_protocol(name_or_path: str) -> Protocol:
    """A shipped protocol by name, or an own one by the path of its TOML file."""
    if name_or_path in SHIPPED:
        text = files("quaestor.study").joinpath("protocols", f"{name_or_path}.toml").read_text("utf-8")
        return parse_protocol(text, f"{name_or_path}.toml")
    path = Path(name_or_path)
    if not path.is_file():
        raise UsageError(f"no protocol {name_or_path!r}: shipped are {', '.join(SHIPPED)}, or give a TOML file")
    return parse_protocol(path.read_text("utf-8"), str(path))


def parse_protocol(text: str, where: str) -> Protocol:
    """Read and check a protocol; `where` names the file in messages."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where}: not valid TOML: {error}") from None
    top = Fields(table, where)
    criteria = tuple(_criterion(fields) for fields in top.tables("criteria", least=1))
    names = [c.name for c in criteria]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise UsageError(f"{where}: criteria: {', '.join(sorted(repeated))} is defined twice")
    task = _task(top.table("task"))
    rule = _filter(top.table("filter"))
    if rule.kind == "wilcoxon" and not task.bad_references:
        raise UsageError(
            f"{where}: filter: the wilcoxon filter compares ordinary items with bad references, "
            f'and task.bad_references is 0: set it (the paper\'s share is 0.5) or filter.kind = "none"'
        )
    pay = top.table("pay", optional=True)
    qualification = top.table("qualification", optional=True)
    protocol = Protocol(
        name=top.text("name"),
        title=top.text("title"),
        source=top.text("source", ""),
        judge=top.choice("judge", ("question", "answer", "summary")),
        show=top.choices("show", SHOWABLE),
        highlight=top.flag("highlight", True),
        instructions=top.texts("instructions", least=1),
        criteria=criteria,
        task=task,
        filter=rule,
        standardise=top.flag("standardise", False),
        pay=pay.number("per_task", 0.0, low=0),
        currency=pay.text("currency", "USD"),
        pass_mark=qualification.number("pass", 0.8, low=0, high=1),
        qualification=tuple(_qualification(item, criteria) for item in qualification.tables("items")),
        prolific_code=top.text("prolific_code", ""),
        text=text,
    )
    for fields in (top, pay, qualification):
        fields.refuse_rest()
    if protocol.judge not in protocol.show:
        raise UsageError(f"{where}: show: raters judge the {protocol.judge}, so it must be shown")
    return protocol


def _criterion(fields: Fields) -> Criterion:
    name = fields.text("name")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise fields.wrong("name", f"{name!r} must be lower-case letters, digits and _, starting with a letter")
    scale = fields.choice("scale", ("slider", "choice", *POINTS))
    labels = fields.texts("labels", least=2)
    if scale == "slider":
        values: tuple[float, ...] = (0.0, 100.0)
        if len(labels) != 2:
            raise fields.wrong("labels", "a slider has two: its left and its right end")
    else:
        if scale in POINTS and len(labels) != POINTS[scale]:
            raise fields.wrong("labels", f"scale {scale} needs {POINTS[scale]}, not {len(labels)}")
        first = 0 if scale in ("yes-no", "choice") else 1
        default = tuple(float(first + place) for place in range(len(labels)))
        if scale == "yes-no":
            default = default[::-1]  # yes is shown first and counts 1
        values = fields.numbers("values", default)
        if len(values) != len(labels):
            raise fields.wrong("values", f"{len(values)} values for {len(labels)} labels")
        if len(set(values)) < 2:
            raise fields.wrong("values", "all choices count the same")
    criterion = Criterion(name, fields.text("statement"), scale, labels, values, fields.texts("examples"))
    fields.refuse_rest()
    return criterion


def _task(fields: Fields) -> TaskRule:
    compose = fields.choice("compose", ("passage", "pool"))
    rule = TaskRule(
        compose=compose,  # type: ignore[arg-type]
        items=fields.whole("items", 20, low=1),
        raters=fields.whole("raters", 1, low=1),
        bad_references=fields.number("bad_references", 0.0, low=0, high=1),
        repeats=fields.number("repeats", 0.0, low=0, high=1),
        minutes=fields.number("minutes", 120.0, low=1),
        max_per_rater=fields.whole("max_per_rater", 1000, low=1),
    )
    if compose == "pool" and (rule.bad_references or rule.repeats):
        raise fields.wrong("compose", 'bad references and repeats need compose = "passage"')
    if rule.bad_references + rule.repeats > 1:
        raise fields.wrong("repeats", "bad_references and repeats are shares of the systems: together at most 1")
    fields.refuse_rest()
    return rule


def _filter(fields: Fields) -> FilterRule:
    rule = FilterRule(
        kind=fields.choice("kind", ("wilcoxon", "z", "none")),  # type: ignore[arg-type]
        alpha=fields.number("alpha", 0.05, low=0, high=1),
        pairs=fields.choice("pairs", ("ratings", "items"), "ratings"),
        z=fields.number("z", 1.0, low=0),
        most=fields.whole("most", 5, low=0),
    )
    fields.refuse_rest()
    return rule


def _qualification(fields: Fields, criteria: tuple[Criterion, ...]) -> QualificationItem:
    expected_fields = fields.table("expected")
    expected: dict[str, float] = {}
    for criterion in criteria:
        if (label := expected_fields.text(criterion.name, "")) == "":
            continue
        if criterion.slider or label not in criterion.labels:
            raise expected_fields.wrong(criterion.name, f"{label!r} is not one of {', '.join(criterion.labels)}")
        expected[criterion.name] = criterion.values[criterion.labels.index(label)]
    expected_fields.refuse_rest()
    if not expected:
        raise fields.wrong("expected", "names the right answer of at least one criterion")
    shown: dict[str, Any] = {name: text for name in SHOWABLE if (text := fields.text(name, ""))}
    fields.refuse_rest()
    return QualificationItem(shown, expected)
