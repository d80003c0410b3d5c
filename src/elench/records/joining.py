"""Records made of several files: lines of plain text side by side, or gold answers and a file of predictions."""

from __future__ import annotations

import atexit
import json
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from elench.errors import UsageError
from elench.records.encoding import lines_of, read_text
from elench.records.mapping import ALIASES, normalised
from elench.records.record import Record, Reject
from elench.records.source import Source, as_source, listed, require_file

_IDS = ("id", *ALIASES["id"])
_TEXTS = (*ALIASES["answer"][1:], "answer")


def from_text_files(
    text: Path, references: Sequence[Path] = (), context: Path | None = None, question: Path | None = None,
    judge: str | None = None,
) -> Source:  # fmt: skip
    """One record per line: line n of each file belongs together. Files of different length are refused."""
    judged = judge or ("answer" if question or not context else "summary")
    if question and judged == "question":
        raise UsageError(f"{text}: holds the judged questions already; leave out --questions")
    others = {name: path for name, path in (("context", context), ("question", question)) if path}
    texts = {path: _read(path) for path in (text, *references, *others.values())}
    if len({len(lines) for lines in texts.values()}) > 1:
        counts = ", ".join(f"{path} {len(lines)}" for path, lines in texts.items())
        raise UsageError(f"the files have different numbers of lines: {counts}")
    if not texts[text]:
        raise UsageError(f"{text}: the file is empty: no records in it")
    rows = (
        {
            "id": str(i + 1),
            judged: texts[text][i],
            **{name: texts[path][i] for name, path in others.items()},
            **({"references": [texts[path][i] for path in references]} if references else {}),
            **({"judge": judge} if judge else {}),
        }
        for i in range(len(texts[text]))
    )
    origin = {
        "text": str(text), "references": [str(path) for path in references], "context": context and str(context),
        "questions": question and str(question), "judge": judge,
    }  # fmt: skip
    return replace(as_source(spooled(rows)), name=str(text), assumed=judged, origin=origin)


def _read(path: Path) -> list[str]:
    require_file(path)
    return list(lines_of(path))


def with_predictions(gold: Source, predictions: Path) -> Source:
    """The records of a gold file with a system's predictions as answers, and the gold answers as references."""
    answers = read_predictions(predictions)
    found, without, rows = 0, 0, []
    for item in gold.read():
        if isinstance(item, Reject):
            raise UsageError(f"{gold}:{item.line}: {item.reason}")
        prediction = answers.get(item.id)
        found, without = found + (prediction is not None), without + (prediction is None)
        rows.append({**_gold(item), **({} if prediction is None else {"answer": prediction})})
    if not found:
        example = next(iter(answers), "none")
        raise UsageError(f"{predictions}: no id of this file (such as {example!r}) is in {gold}")
    if without:
        example = next(row["id"] for row in rows if "answer" not in row)
        raise UsageError(
            f"{predictions}: {without} of {len(rows)} records of {gold} have no prediction, such as {example!r}; "
            "add an empty one where the system gave none"
        )
    origin = {**gold.origin, "predictions": str(predictions)} if gold.origin else {}
    return replace(
        as_source(spooled(rows)), name=f"{gold} + {predictions}", assumed="answer", origin=origin, mapping=gold.mapping
    )


def reopen(origin: Mapping[str, Any], mapping: Mapping[str, str], found: Callable[[str], Path | None]) -> Source | None:
    """The records that `Source.origin` describes; `found` says where a file is now. None when one is gone."""
    named = [origin.get(name) for name in ("file", "text", "context", "questions", "predictions")]
    names = [name for name in (*named, *origin.get("references", ())) if name]
    places = {name: found(name) for name in names}
    if not names or None in places.values():
        return None
    paths = {name: path for name, path in places.items() if path is not None}
    if text := origin.get("text"):
        references = [paths[name] for name in origin.get("references", ())]
        context, questions = (paths.get(origin.get(key) or "") for key in ("context", "questions"))
        return from_text_files(paths[text], references, context, questions, origin.get("judge"))
    source = as_source(paths[origin["file"]], mapping)
    predictions = origin.get("predictions")
    return with_predictions(source, paths[predictions]) if predictions else source


def _gold(record: Record) -> dict[str, Any]:
    """A record whose gold answers are references: its own, those of SQuAD's `answers`, or its answer."""
    row = record.to_object()
    answers = row.pop("answers", None)
    if isinstance(answers, Mapping):
        answers = answers.get("text")
    texts = [a.get("text") if isinstance(a, Mapping) else a for a in answers] if isinstance(answers, list) else []
    own = row.pop("answer", None)
    if not row.get("references"):
        golds = [t for t in texts if isinstance(t, str)] or ([own] if own else [])
        row["references"] = list(dict.fromkeys(golds))
    return {**row, "judge": "answer"}


def read_predictions(path: Path) -> dict[str, str]:
    """{id: text} from {id: text} as the SQuAD script takes it, or from rows that have an id and a prediction."""
    require_file(path)
    if path.suffix.lower() == ".json":
        try:
            document = json.loads(read_text(path))
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{path}: not valid JSON: {error}") from None
        if isinstance(document, dict):
            return {str(key): _prediction(value, f"{path}: {key}") for key, value in document.items()}
    answers: dict[str, str] = {}
    for line, row in Source(path, str(path)).rows():
        if isinstance(row, Reject):
            raise UsageError(f"{path}:{line}: {row.reason}")
        names = {normalised(name): name for name in row}
        key = next((row[names[name]] for name in _IDS if name in names), None)
        text = next((row[names[name]] for name in _TEXTS if name in names), None)
        if key is None or text is None:
            raise UsageError(f"{path}:{line}: needs an id and a prediction; fields found: {listed(list(row))}")
        answers[str(key)] = _prediction(text, f"{path}:{line}")
    return answers


def _prediction(value: object, where: str) -> str:
    """A text, the first of several, or KILT's list of {answer}."""
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, Mapping):
        value = value.get("answer", value.get("text"))
    if not isinstance(value, str):
        raise UsageError(f"{where}: the prediction must be a string")
    return value


def spooled(rows: Iterable[Mapping[str, object]]) -> Path:
    """Rows as a temporary JSONL file, removed at exit, because rows may be read more than once."""
    with tempfile.NamedTemporaryFile("w", prefix="elench-", suffix=".jsonl", delete=False, encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")
    path = Path(file.name)
    atexit.register(path.unlink, missing_ok=True)
    return path
