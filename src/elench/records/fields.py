"""Checks of a record's fields: what each may hold, and what to type instead when it holds something else."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from elench.errors import UsageError

JUDGES = ("question", "answer", "summary")
TEXTS = ("question", "answer", "summary")
NAMES = ("id", "group", "system")
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?\s*")
PASSAGE_KEYS = ("text", "page_content", "content", "passage", "contents")
"""Where retrieval tools put the text of a passage that is an object."""


def check_fields(given: Mapping[str, object]) -> dict[str, Any]:
    """The known fields of a JSON object, checked and converted; UsageError names the field and says what to do."""
    return {name: CHECKS[name](name, given[name]) for name in given if name in CHECKS}


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", tuple: "a list", str: "a string", bool: "true/false"}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return "null" if value is None else names.get(type(value), "a number")


def _wrong(name: str, wanted: str, value: object) -> UsageError:
    inside = ""
    if name in (*TEXTS, "references") and isinstance(value, Mapping) and value:
        inside = f" with {', '.join(map(str, value))[:80]}: name a part of it, --map {name}={name}.PART"
    elif name in TEXTS and isinstance(value, (list, tuple)):
        chat = bool(value) and isinstance(value[-1], Mapping) and "content" in value[-1]
        inside = f": name the item to read, --map {name}={name}.{'-1.content' if chat else '0'}"
        inside += f"; if these are references, --map references={name}" if name == "answer" and not chat else ""
    return UsageError(f"field '{name}' must be {wanted}, not {_kind(value)}{inside}")


def _name(name: str, value: object) -> str | None:
    """A name: text, or a number used as one."""
    value = number_text(value)
    if value is None:
        return None
    if not isinstance(value, str):
        raise _wrong(name, "a string or a number", value)
    if name == "id" and not value:
        raise UsageError("field 'id' is empty: give every record an id, or leave the field out to number them")
    return _text(name, value)


def _text(name: str, value: object) -> str | None:
    """A text; a number is read as it prints, since answers may be years or amounts."""
    value = number_text(value)
    if value is not None and not isinstance(value, str):
        raise _wrong(name, "a string", value)
    if value and not _encodes(value):
        raise UsageError(f"field '{name}' contains an unpaired surrogate: repair the escape \\ud8xx")
    return value


def number_text(value: object) -> Any:
    """A number as text, 3.0 as 3; anything else as it is."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)) or not -1e300 < value < 1e300:
        return value
    return str(int(value) if value == int(value) else value)


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _context(name: str, value: object) -> str | tuple[str, ...] | None:
    """One text, or a list of passages: texts, objects that hold one, or HotpotQA's titles with their sentences."""
    if isinstance(value, Mapping) and isinstance(value.get("sentences"), (list, tuple)):
        value = value["sentences"]
    if not isinstance(value, (list, tuple)):
        if value is not None and not isinstance(value, str):
            raise _wrong(name, "a string or a list of passages", value)
        return _text(name, value)
    passages = []
    for i, item in enumerate(value):
        if isinstance(item, Mapping):
            item = next((item[key] for key in PASSAGE_KEYS if isinstance(item.get(key), str)), item)
        if isinstance(item, (list, tuple)):  # [title, sentences], or sentences
            sentences = item[1] if len(item) == 2 and isinstance(item[1], (list, tuple)) else item
            item = " ".join(s.strip() for s in sentences) if all(isinstance(s, str) for s in sentences) else item
        if not isinstance(item, str):
            raise _wrong(f"{name}[{i}]", f"a string or an object with {' or '.join(PASSAGE_KEYS[:2])}", item)
        passages.append(_text(f"{name}[{i}]", item) or "")
    return tuple(passages)


def _references(name: str, value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value := number_text(value), str):
        value = [value]
    if not isinstance(value, (list, tuple)):
        raise _wrong(name, "a string or a list of strings", value)
    return tuple(_reference(f"{name}[{i}]", item) for i, item in enumerate(value))


def _reference(name: str, item: object) -> str:
    text = _text(name, item)
    if text is None:
        raise _wrong(name, "a string", item)
    return text


def _judge(name: str, value: object) -> str | None:
    if value is not None and value not in JUDGES:
        shown = repr(value)[:40]
        raise UsageError(
            f"field '{name}' must be one of {', '.join(JUDGES)}, not {shown}; rename it if it means something else"
        )
    return None if value is None else str(value)


def _number(name: str, value: object) -> float:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _wrong(name, "a number", value)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        shown = value if isinstance(value, float) else "one of hundreds of digits"
        raise UsageError(f"field '{name}' must be a finite number, not {shown}; leave it out if it is missing")
    return number


def _numbers(name: str, value: object) -> dict[str, float]:
    """{dimension: number}; null means missing."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _wrong(name, "an object {name: number}", value)
    return {str(k): _number(f"{name}.{k}", v) for k, v in value.items() if v is not None}


def _human(name: str, value: object) -> dict[str, float]:
    """As `_numbers`; several ratings of one dimension belong into `ratings`."""
    several = next((k for k, v in value.items() if isinstance(v, list)), None) if isinstance(value, Mapping) else None
    if several is not None:
        raise UsageError(f"field 'human.{several}' must be a number, not a list: single ratings go into 'ratings'")
    return _numbers(name, value)


def _ratings(name: str, value: object) -> dict[str, tuple[float | None, ...]]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _wrong(name, "an object {dimension: [numbers]}", value)
    checked: dict[str, tuple[float | None, ...]] = {}
    for dimension, numbers in value.items():
        if numbers is None:
            continue
        if not isinstance(numbers, (list, tuple)):
            raise _wrong(f"{name}.{dimension}", "a list of numbers", numbers)
        checked[str(dimension)] = tuple(
            None if n is None else _number(f"{name}.{dimension}[{i}]", n) for i, n in enumerate(numbers)
        )
    return checked


CHECKS: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(NAMES, _name),
    **dict.fromkeys(TEXTS, _text),
    "context": _context,
    "references": _references,
    "judge": _judge,
    "human": _human,
    "peers": _numbers,
    "ratings": _ratings,
}
"""Every field of a record, in no particular order, with its check."""
