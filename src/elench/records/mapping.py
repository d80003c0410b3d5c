"""Which column of a file holds which field of a record: `--map answer=prediction,references=gold`, and good guesses."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from elench.errors import UsageError
from elench.records.fields import CHECKS, PASSAGE_KEYS

ABSENT = object()
TEXT_FIELDS = ("question", "answer", "summary", "references", "context")

ALIASES: dict[str, tuple[str, ...]] = {
    "references": (
        "reference", "references", "gold", "golds", "gold_answer", "gold_answers", "golden_answer", "golden_answers",
        "ground_truth", "ground_truths", "groundtruth", "target", "targets", "expected", "expected_output",
        "expected_answer", "reference_answer", "reference_answers", "correct_answer", "correct_answers", "ref", "refs",
        "reference_summary", "gold_summary", "target_summary", "reference_question", "gold_question", "highlights",
        "answers", "label", "truth", "ideal",
    ),
    "answer": (
        "answer", "prediction", "predictions", "predicted_answer", "predicted", "pred", "response", "generated_answer",
        "model_answer", "system_answer", "prediction_text", "model_output", "system_output", "actual_output", "output",
        "completion", "generated_text", "generation", "candidate", "hypothesis", "hyp", "generated", "result", "reply",
        "outputs", "sampled",
    ),
    "summary": (
        "summary", "generated_summary", "predicted_summary", "system_summary", "model_summary", "candidate_summary",
        "decoded", "claim",
    ),
    "question": (
        "question", "query", "user_input", "generated_question", "predicted_question", "input", "prompt", "instruction",
        "user_query", "q", "inputs", "problem",
    ),
    "context": (
        "context", "contexts", "passage", "passages", "retrieved_contexts", "retrieval_context", "document",
        "documents", "paragraph", "article", "source", "source_text", "source_document", "evidence", "sources", "text",
        "doc", "src", "body", "story", "dialogue",
    ),
    "id": ("id", "_id", "uid", "qid", "question_id", "example_id", "doc_id", "sample_id", "query_id", "index"),
    "system": ("system", "model", "model_name", "system_name", "method", "run", "generator", "app_id"),
    "group": ("group", "group_id", "title", "document_id", "passage_id", "context_id"),
}  # fmt: skip
"""Column names in use for each field, likeliest first; only a suggestion is made from them."""

KNOWN_COLUMNS = {alias for name, aliases in ALIASES.items() if name not in ("id", "group") for alias in aliases}
"""Names that show that an object or a row is about records."""


def parse_map(text: str | None) -> dict[str, str]:
    """`answer=prediction,references=gold` as {field: column}; UsageError names what is wrong."""
    mapping: dict[str, str] = {}
    for part in filter(None, (p.strip() for p in (text or "").split(","))):
        name, equals, column = (s.strip() for s in part.partition("="))
        if not (name and equals and column):
            raise UsageError(f"--map {part}: write FIELD=COLUMN, such as answer=prediction")
        if name not in CHECKS:
            near = difflib.get_close_matches(name, CHECKS, n=1)
            swapped = f"; did you mean {column}={name}?" if column in CHECKS else ""
            hint = swapped or (f"; did you mean {near[0]}?" if near else "")
            raise UsageError(f"--map {part}: no field is called {name!r}; fields: {', '.join(CHECKS)}{hint}")
        if name in mapping:
            raise UsageError(f"--map: field {name!r} is given twice")
        mapping[name] = column
    return mapping


def normalised(column: str) -> str:
    """A column name in lower case with underscores: `Retrieval Context` and `retrievalContext` are one."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column.strip())
    return re.sub(r"[\s\-_]+", "_", apart).strip("_").lower()


def value_at(row: Mapping[str, object], column: str) -> object:
    """What a column holds: a key, a path into objects and lists (`answers.text`), or several columns (`ref1+ref2`)."""
    if column in row:
        return row[column]
    if "+" in column:
        found = [value_at(row, part.strip()) for part in column.split("+")]
        return [v for v in found if v is not ABSENT and v not in (None, "")] or ABSENT
    value: Any = row
    for step in column.split("."):
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, (list, tuple)) and re.fullmatch(r"-?\d{1,9}", step):
            if not -len(value) <= int(step) < len(value):
                return ABSENT
            value = value[int(step)]
        elif isinstance(value, (list, tuple)) and value and all(isinstance(v, Mapping) and step in v for v in value):
            value = [v[step] for v in value]
        else:
            return ABSENT
    return value


def translate(row: Mapping[str, Any], mapping: Mapping[str, str]) -> dict[str, Any]:
    """The row with its columns under the names of the record's fields; a column that moved is not kept twice."""
    moved = {part.strip() for column in mapping.values() for part in (column, *column.split("+"))}
    out = {name: value for name, value in row.items() if name not in moved and name not in mapping}
    for name, column in mapping.items():
        value = value_at(row, column)
        if value is not ABSENT:
            out[name] = value
        elif name in row and name not in moved:
            out[name] = row[name]
    return out


def named_columns(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The columns that hold something, and the parts of the objects in them, each with the name it is known by:
    {"Gold Answer": "gold_answer", "inputs.question": "question", "messages.-1.content": "answer"}."""
    found: dict[str, str] = {}
    for row in rows:
        for column, value in row.items():
            found.update(_parts(str(column), value))
    return found


def _parts(path: str, value: Any, depth: int = 3) -> Iterable[tuple[str, str]]:
    if value in (None, "", [], {}):
        return
    if isinstance(value, Mapping) and depth > 0:
        for name, inner in value.items():
            yield from _parts(f"{path}.{name}", inner, depth - 1)
    elif isinstance(value, list) and all(speakers := [_speaker(turn) for turn in value]):
        last = {speaker: place - len(value) for place, speaker in enumerate(speakers)}
        yield from ((f"{path}.{place}.content", speaker) for speaker, place in last.items())
    elif isinstance(value, list) and isinstance(value[0], Mapping) and not set(PASSAGE_KEYS) & set(value[0]):
        yield from _parts(path, value[0], depth - 1)
    else:
        yield path, _known_name(path)


_SPEAKERS = {"assistant": "answer", "ai": "answer", "user": "question", "human": "question", "system": "system_prompt"}


def _speaker(turn: Any) -> str:
    """What a turn of a conversation is: question or answer; nothing for what is not a turn."""
    spoken = isinstance(turn, Mapping) and isinstance(turn.get("content"), str)
    return _SPEAKERS.get(str(turn.get("role", turn.get("type"))), "") if spoken else ""


def _known_name(path: str) -> str:
    """`inputs.question` is known as question, `output.value` as output, `reference_outputs.x` as reference."""
    parts = [normalised(part) for part in path.split(".")]
    if len(parts) > 1 and parts[-1] in ("label", "type", "name", "id", "title", "score"):
        return path
    if len(parts) > 1 and any(re.match(r"reference|expected|gold|ground_truth|target|assert", part) for part in parts):
        return "reference"
    while len(parts) > 1 and parts[-1] in ("value", "content", "text", "raw"):
        parts.pop()
    return parts[-1]


def suggest(columns: Mapping[str, str], wanted: Iterable[str]) -> dict[str, str]:
    """For each wanted field the likeliest of the `named_columns`, by the names in use elsewhere, then by spelling."""
    free = {name: column for column, name in reversed(list(columns.items())) if len(column) <= 60}
    found: dict[str, str] = {}
    wanted = list(wanted)
    for name in sorted(wanted, key=lambda n: list(ALIASES).index(n) if n in ALIASES else len(ALIASES)):
        match = next((alias for alias in ALIASES.get(name, ()) if alias in free), None)
        if match is None and name in TEXT_FIELDS:
            match = next(iter(difflib.get_close_matches(name, free, n=1, cutoff=0.75)), None)
        if match is not None:
            found[name] = free.pop(match)
        elif name == "references" and (numbered := [c for c in free if re.fullmatch(r"(ref|reference|gold)_?\d", c)]):
            found[name] = "+".join(free.pop(c) for c in sorted(numbered))
    return {name: found[name] for name in wanted if name in found}


def system_hint(row: Any) -> str:
    """What to type where a row has a column that may name the system, for messages about one id read twice."""
    names = {normalised(str(name)): name for name in row} if isinstance(row, Mapping) else {}
    column = next((names[name] for name in ALIASES["system"][1:] if name in names), None)
    return f"; if {column!r} names the system: {as_option({'system': column})}" if column else ""


_OUTPUT = re.compile(
    r"(prediction|predicted|pred|response|generated|completion)s?"
    r"|(predicted|model|system|generated)_(answer|summary|question|text|output)|prediction_text"
)
"""Names of columns that hold what a system wrote."""


def predicted_beside(columns: Iterable[str], fields: Iterable[str]) -> dict[str, str]:
    """What to map where a file has `answer` and `prediction`: the prediction is judged, the answer is its reference."""
    known = set(fields)
    gold = next((name for name in ("answer", "summary") if name in known), None)
    outputs = [column for column in columns if _OUTPUT.fullmatch(normalised(column))]
    if gold is None or "references" in known or len(outputs) != 1:
        return {}
    return {gold: outputs[0], "references": gold}


def as_option(mapping: Mapping[str, str]) -> str:
    """What to type: `--map answer=prediction,references=gold`."""
    text = ",".join(f"{name}={column}" for name, column in mapping.items())
    return f"--map '{text}'" if re.search(r"[^\w.,=+-]", text) else f"--map {text}"
