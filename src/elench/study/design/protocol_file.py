"""Read a protocol from its TOML file; a mistake is named with file, line, field and remedy."""

from __future__ import annotations

import re
import sys
from importlib.resources import files
from pathlib import Path

from elench.errors import UsageError
from elench.study.design.criterion import COMPARATIVE, POINTS, SCALES, Criterion
from elench.study.design.protocol import (
    LANGUAGES,
    PAPER_FILTER,
    SHOWABLE,
    Consent,
    FilterRule,
    FlagRule,
    KnownItem,
    Pay,
    ProlificCodes,
    Protocol,
    Question,
    TaskRule,
)
from elench.study.design.toml_fields import Fields
from elench.study.design.toml_lines import toml_lines

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib

SHIPPED = ("qg-crowd", "qg-expert", "qa-correctness", "qg-similarity", "qgeval", "summeval", "rag-pairwise")
NAME = re.compile(r"[a-z][a-z0-9_]*")


def load_protocol(name_or_path: str) -> Protocol:
    """A shipped protocol by name, or your own by the path of its TOML file."""
    if name_or_path in SHIPPED:
        text = files("elench.study.design").joinpath("protocols", f"{name_or_path}.toml").read_text("utf-8")
        return parse_protocol(text, f"{name_or_path}.toml")
    path = Path(name_or_path)
    if not path.is_file():
        raise UsageError(f"no protocol {name_or_path!r}: use one of {', '.join(SHIPPED)}, or give a TOML file")
    return parse_protocol(path.read_text("utf-8"), str(path))


def with_paper_filter(protocol: Protocol) -> Protocol:
    """The protocol with the published quality control; its text, kept in the study folder, says so, too."""
    text, count = re.subn(r"(?ms)^\[filter\].*?(?=^\[|\Z)", '[filter]\nqc = "paper"\n\n', protocol.text)
    if count != 1 or not protocol.filter.judges_raters:
        raise UsageError(f"--qc paper: protocol {protocol.name} does not judge raters by bad references")
    return parse_protocol(text, protocol.name)


def parse_protocol(text: str, where: str) -> Protocol:
    """Read and check a protocol; `where` names the file in messages."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where}: not valid TOML: {error}") from None
    top = Fields(table, where, toml_lines(text))
    asked = _criteria(top)
    task, rule = _task(top.table("task"), asked), _filter(top.table("filter"))
    if rule.judges_raters and not task.bad_references:
        raise top.wrong(
            "filter",
            f"the {rule.kind} filter compares ordinary items with bad references, "
            'and task.bad_references is 0: set it (the paper\'s share is 0.5) or filter.kind = "none"',
        )
    qualification = top.table("qualification", optional=True)
    check = top.table("check", optional=True)
    raters = top.table("raters", optional=True)
    protocol = Protocol(
        name=top.text("name"),
        title=top.text("title"),
        source=top.text("source", ""),
        language=top.choice("language", LANGUAGES, "en"),
        judge=top.choice("judge", ("question", "answer", "summary")),
        show=top.choices("show", SHOWABLE),
        highlight=top.flag("highlight", True),
        instructions=top.texts("instructions", least=1),
        asked=asked,
        task=task,
        filter=rule,
        flags=_flags(top.table("flags", optional=True)),
        standardise=top.flag("standardise", False),
        reward=_pay(top.table("pay", optional=True)),
        consent=_consent(top.table("consent", optional=True)),
        training=tuple(_known_item(item, asked) for item in top.tables("training")),
        check=tuple(_question(item, with_answer=True) for item in check.tables("questions")),
        attempts=check.whole("attempts", 2, low=1),
        pass_mark=qualification.number("pass", 0.8, low=0, high=1),
        qualification=tuple(_known_item(item, asked) for item in qualification.tables("items")),
        before=tuple(_question(item) for item in top.tables("before")),
        after=tuple(_question(item) for item in top.tables("after")),
        one_person=raters.flag("one_person", True),
        prolific=_prolific(top.table("prolific", optional=True)),
        text=text,
    )
    for fields in (top, qualification, check, raters):
        fields.refuse_rest()
    if protocol.judge not in protocol.show:
        raise top.wrong("show", f"raters judge the {protocol.judge}, so it must be shown")
    if protocol.comparative and rule.kind == "permutation":
        raise top.wrong("filter", 'a scale that compares outputs side by side needs kind = "wilcoxon"')
    if protocol.comparative and (protocol.training or protocol.qualification):
        raise top.wrong("training", "training and qualification items need a scale that rates one output at a time")
    return protocol


def _criteria(top: Fields) -> tuple[Criterion, ...]:
    asked: list[Criterion] = []
    tables = top.tables("criteria", least=1)
    for fields in tables:
        criterion = _criterion(fields)
        if criterion.name in {c.name for c in asked}:
            raise fields.wrong("name", f"{criterion.name!r} is defined twice")
        asked.append(criterion)
    if not any(c.measures for c in asked):
        raise top.wrong("criteria", "all are free text: at least one must have a scale")
    if len({c.comparative for c in asked if c.measures}) > 1:
        raise top.wrong(
            "criteria", f"{', '.join(COMPARATIVE)} compare outputs and cannot be mixed with scales that rate one output"
        )
    return tuple(asked)


def _criterion(fields: Fields) -> Criterion:
    name = fields.text("name")
    if not NAME.fullmatch(name):
        raise fields.wrong("name", f"{name!r} must be lower-case letters, digits and _, starting with a letter")
    scale = fields.choice("scale", SCALES)
    bare = scale in ("text", "spans", "ranking", "best-worst", "preference")
    labels = fields.texts("labels", least=0 if bare else 2)
    values: tuple[float, ...] = (0.0, 1.0)
    if scale == "slider":
        values = (0.0, 100.0)
        if len(labels) != 2:
            raise fields.wrong("labels", "a slider has two: its left and its right end")
    elif scale == "preference":
        if len(labels) not in (0, 2, 3):
            raise fields.wrong("labels", "a preference has three: first, about the same, second (or two without a tie)")
    elif not bare:
        values = _point_values(fields, scale, labels)
    criterion = Criterion(
        name,
        fields.text("statement"),
        scale,
        labels,
        values,
        fields.texts("examples"),
        fields.flag("required", scale != "text"),
    )
    fields.refuse_rest()
    return criterion


def _point_values(fields: Fields, scale: str, labels: tuple[str, ...]) -> tuple[float, ...]:
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
    return values


def _task(fields: Fields, asked: tuple[Criterion, ...]) -> TaskRule:
    compare = next((c.scale for c in asked if c.comparative), None)
    compose = fields.choice("compose", ("passage", "pool"))
    rule = TaskRule(
        compose=compose,  # type: ignore[arg-type]
        items=fields.whole("items", 20, low=1),
        raters=fields.whole("raters", 1, low=1),
        bad_references=fields.number("bad_references", 0.0, low=0, high=1),
        repeats=fields.number("repeats", 0.0, low=0, high=1),
        outputs=fields.whole("outputs", 1 if compare is None else 2, low=1),
        minutes=fields.number("minutes", 120.0, low=1),
        takes=fields.number("takes", 0.0, low=0),
        max_per_rater=fields.whole("max_per_rater", 1000, low=1),
    )
    if compare is None and rule.outputs != 1:
        raise fields.wrong("outputs", f"more than one needs a scale that compares: {', '.join(COMPARATIVE)}")
    if compare == "preference" and rule.outputs != 2:
        raise fields.wrong("outputs", "a preference compares 2")
    if compare == "best-worst" and rule.outputs < 3:
        raise fields.wrong("outputs", "best-worst needs at least 3")
    if compare is not None and (compose != "pool" or rule.repeats):
        raise fields.wrong("compose", 'a scale that compares needs compose = "pool" and no repeats')
    if compare is None and compose == "pool" and (rule.bad_references or rule.repeats):
        raise fields.wrong("compose", 'bad references and repeats need compose = "passage"')
    if rule.bad_references + rule.repeats > 1:
        raise fields.wrong("repeats", "bad_references and repeats are shares of the systems: together at most 1")
    fields.refuse_rest()
    return rule


def _filter(fields: Fields) -> FilterRule:
    if fields.text("qc", "") and fields.choice("qc", ("paper",)) == "paper":
        fields.refuse_rest()
        return PAPER_FILTER
    kind = fields.choice("kind", ("permutation", "wilcoxon", "z", "none"))
    alpha = fields.number("alpha", 0.01 if kind == "permutation" else 0.05, low=0, high=1)
    rule = FilterRule(
        kind=kind,  # type: ignore[arg-type]
        alpha=alpha,
        later=fields.number("later", alpha / 5, low=0, high=alpha),
        doubt=fields.number("doubt", 0.1, low=0, high=1),
        controls=fields.whole("controls", 6, low=1),
        pairs=fields.choice("pairs", ("ratings", "items"), "ratings"),
        patience=fields.whole("patience", 1, low=1),
        z=fields.number("z", 1.0, low=0),
        most=fields.whole("most", 5, low=0),
    )
    fields.refuse_rest()
    return rule


def _flags(fields: Fields) -> FlagRule:
    rule = FlagRule(
        seconds=fields.number("seconds", 3.0, low=0),
        straight=fields.number("straight", 0.8, low=0, high=1),
        repeat_r=fields.number("repeat_r", 0.0, low=-1, high=1),
    )
    fields.refuse_rest()
    return rule


def _pay(fields: Fields) -> Pay:
    pay = Pay(
        per_task=fields.number("per_task", 0.0, low=0),
        currency=fields.text("currency", "USD"),
        failed=fields.choice("failed", ("full", "none"), "full") == "full",
        bonus=fields.number("bonus", 0.0, low=0),
    )
    fields.refuse_rest()
    return pay


def _consent(fields: Fields) -> Consent | None:
    if fields.empty:
        return None
    consent = Consent(fields.texts("text", least=1), fields.text("contact"), fields.text("withdrawal"))
    fields.refuse_rest()
    return consent


def _prolific(fields: Fields) -> ProlificCodes:
    codes = ProlificCodes(
        fields.text("completed", ""), fields.text("screened_out", ""), fields.text("failed_check", "")
    )
    fields.refuse_rest()
    return codes


def _question(fields: Fields, with_answer: bool = False) -> Question:
    name = fields.text("name")
    if not NAME.fullmatch(name):
        raise fields.wrong("name", f"{name!r} must be lower-case letters, digits and _, starting with a letter")
    choices = fields.texts("choices", least=2 if with_answer else 0)
    right = fields.text("right") if with_answer else ""
    if with_answer and right not in choices:
        raise fields.wrong("right", f"{right!r} is not one of the choices: {', '.join(choices)}")
    question = Question(name, fields.text("question"), choices, right)
    fields.refuse_rest()
    return question


def _known_item(fields: Fields, asked: tuple[Criterion, ...]) -> KnownItem:
    expected_fields = fields.table("expected")
    expected: dict[str, tuple[float, float]] = {}
    for criterion in asked:
        if (label := expected_fields.text(criterion.name, "")) == "":
            continue
        if criterion.slider:
            ends = {"low": (0.0, 40.0), "high": (60.0, 100.0)}
            if label not in ends:
                raise expected_fields.wrong(criterion.name, f"{label!r} is not low or high")
            expected[criterion.name] = ends[label]
            continue
        if label not in criterion.labels:
            raise expected_fields.wrong(criterion.name, f"{label!r} is not one of {', '.join(criterion.labels)}")
        value = criterion.values[criterion.labels.index(label)]
        expected[criterion.name] = (value, value)
    expected_fields.refuse_rest()
    if not expected:
        raise fields.wrong("expected", "names the right answer of at least one criterion")
    shown = {name: text for name in SHOWABLE if (text := fields.text(name, ""))}
    item = KnownItem(shown, expected, fields.text("explanation", ""))
    fields.refuse_rest()
    return item
