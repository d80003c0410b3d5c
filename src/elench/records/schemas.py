"""Files of other tools, recognised by their column names: ragas, deepeval, Hugging Face SQuAD, lm-eval, KILT."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from elench.errors import UsageError
from elench.records.fields import CHECKS
from elench.records.mapping import ABSENT, ALIASES, normalised, translate, value_at
from elench.records.spreadsheets import with_lists

Columns = Mapping[str, tuple[str, ...]]
"""Field → columns that may hold it; the first one that a file has counts."""


@dataclass(frozen=True)
class Schema:
    """How another tool names things. Column names are compared in lower case with underscores."""

    name: str
    marks: tuple[tuple[str, ...], ...]
    """Each group must be met by one of its columns."""
    columns: Columns
    adapt: Callable[[Mapping[str, object]], dict[str, object]] | None = field(default=None, compare=False)
    """For files whose rows need more than other names."""
    separator: str = ""
    """What separates the passages of a context that a table holds as one cell."""


@dataclass(frozen=True)
class Recognised:
    """What was made of a file's columns: a tool's schema, or plain other spellings of our own names."""

    name: str
    mapping: Mapping[str, str]
    """Field → column, as written in the file."""
    adapt: Callable[[Mapping[str, object]], dict[str, object]] | None = None
    separator: str = ""
    gold: bool = False
    """The file holds gold answers; a system's may be elsewhere."""

    def rename(self, row: Mapping[str, object], asked: Mapping[str, str]) -> dict[str, object]:
        """The row under the names of a record's fields; what was asked for (--map) counts more."""
        given = self._adapted(row, asked) if self.adapt else translate(row, self.with_asked(asked))
        given = with_lists(given)
        context = given.get("context")
        if self.separator and isinstance(context, str) and "context" not in asked and self.separator in context:
            given["context"] = context.split(self.separator)
        return given

    def with_asked(self, asked: Mapping[str, str]) -> dict[str, str]:
        """The mapping with what was asked for; a column that was asked for elsewhere is not used twice."""
        taken = set(asked.values())
        return {**{name: column for name, column in self.mapping.items() if column not in taken}, **asked}

    def _adapted(self, row: Mapping[str, object], asked: Mapping[str, str]) -> dict[str, object]:
        """The row as the schema reads it, with the columns asked for; a mapped answer is a prediction."""
        assert self.adapt is not None
        values = {name: value_at(row, column) for name, column in asked.items()}
        values = {name: value for name, value in values.items() if value is not ABSENT}
        moved = {column for column in asked.values() if column in row}
        rest = {name: value for name, value in row.items() if name not in moved or name in KEPT}
        prediction = {"prediction": values["answer"]} if "answer" in values else {}
        return {**self.adapt({**rest, **prediction}), **values}

    def announcement(self) -> str:
        pairs = ", ".join(f"{column} → {name}" for name, column in self.mapping.items())
        return f"{self.name} recognised" + (f": {pairs}" if pairs else "")


def recognise(rows: Sequence[Mapping[str, object]]) -> Recognised | None:
    """The schema of a file's first rows; None when its columns are elench's own names, or unknown ones."""
    columns = list(dict.fromkeys(str(name) for row in rows for name in row))
    spelling = {normalised(column): column for column in reversed(columns)}
    for schema in SCHEMAS:
        if all(any(mark in spelling for mark in group) for group in schema.marks):
            if schema.adapt is _kilt and not any(isinstance(row.get("output"), list) for row in rows):
                continue  # `output` may be what a system wrote
            if schema.adapt:
                return Recognised(schema.name, {}, schema.adapt, gold=schema.adapt in (_squad, _kilt))
            mapping = _mapping(schema.columns, spelling, rows)
            return Recognised(schema.name, {k: v for k, v in mapping.items() if k != v}, separator=schema.separator)
    own = {
        name: spelling[variant]
        for name in CHECKS
        if name not in columns
        for variant in (name, *SPELLINGS.get(name, ()))
        if variant in spelling
    }
    return Recognised("column names", own) if own else None


SPELLINGS = {"references": ("reference",), "context": ("contexts",)}


def _mapping(columns: Columns, spelling: Mapping[str, str], rows: Sequence[Mapping[str, object]]) -> dict[str, str]:
    filled = {name for name, column in spelling.items() if any(row.get(column) not in (None, "", []) for row in rows)}
    mapping: dict[str, str] = {}
    for name in CHECKS:
        candidates = columns.get(name, (name,))
        found = next((c for c in candidates if c in filled), None) or next(
            (c for c in candidates if c in spelling), None
        )
        if found and not (name == "id" and _repeats(spelling[found], rows)):
            mapping[name] = spelling[found]
    return mapping


def _repeats(column: str, rows: Sequence[Mapping[str, object]]) -> bool:
    values = [str(row[column]) for row in rows if row.get(column) not in (None, "")]
    return len(set(values)) < len(values)


def _printed(text: str) -> Any:
    """A value that a table's cell holds as Python prints it; None when it is not one."""
    plain = re.sub(r"array\((\[[^\]]*\])(?:,\s*dtype=\w+)?\)", r"\1", text)  # pandas prints numpy arrays
    try:
        return ast.literal_eval(plain.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


# --- files whose rows need more than other names ---------------------------------------------------------------------


def _first(row: Mapping[str, object], *names: str) -> Any:
    return next((row[name] for name in names if row.get(name) not in (None, "", [])), None)


def _predicted(row: Mapping[str, object]) -> Any:
    """What a system answered; it may be empty, which is how SQuAD v2's programs say "no answer"."""
    names = (*PREDICTIONS, "answer")
    found = _first(row, *names)
    return "" if found is None and any(row.get(name) == "" for name in names) else found


def _kept(row: Mapping[str, object], used: Iterable[str], fields: Mapping[str, object]) -> dict[str, object]:
    """The fields that are there, and the row's other columns."""
    present = {name: value for name, value in fields.items() if value is not None}
    return {**{k: v for k, v in row.items() if k not in used and k not in fields}, **present}


PREDICTIONS = tuple(name for name in ALIASES["answer"] if name not in ("answer", "output"))
"""Columns that may hold what a system answered, beside the gold answers."""
KEPT = ("answers", "output", "doc")
"""Columns that a schema reads even when --map names them, too."""


def _squad(row: Mapping[str, object]) -> dict[str, object]:
    """Gold answers are the references of a prediction; without one, the first of them is the question's answer."""
    answers = row.get("answers")
    if isinstance(answers, str) and answers.lstrip().startswith(("{", "[")):  # a table's cell
        answers = _printed(answers)
        if answers is None:
            raise UsageError("field 'answers' cannot be read from this cell; write JSONL or Parquet instead")
    texts = answers.get("text") if isinstance(answers, Mapping) else answers
    if isinstance(texts, list):
        texts = [t.get("text") if isinstance(t, Mapping) else t for t in texts]
    prediction = _predicted(row)
    first = texts[0] if isinstance(texts, list) and texts else None
    fields: dict[str, object] = {"answer": first} if prediction is None else {"answer": prediction, "references": texts}
    if prediction is not None and "judge" not in row:
        fields["judge"] = "answer"
    return _kept(row, PREDICTIONS if prediction is not None else (), fields)


def _lm_eval(row: Mapping[str, object]) -> dict[str, object]:
    """One sample: the document's question and passage, the filtered response, the target."""
    doc = row.get("doc")
    document = doc if isinstance(doc, Mapping) else {}
    answer, targets = _lm_eval_answer(row)
    question = _first(document, "question", "query", "input", "problem", "prompt")
    context = _first(document, "context", "passage", "paragraph", "article", "support", "document")
    rule = row.get("filter")
    metrics = row.get("metrics")
    names = metrics if isinstance(metrics, list) else []
    peers = {n: float(v) for n in names if isinstance(n, str) and isinstance(v := row.get(n), (int, float))}
    fields = {
        "id": row.get("doc_id"),
        "question": question if isinstance(question, str) else None,
        "context": context if isinstance(context, (str, list)) else None,
        "answer": answer,
        "references": [str(t) for t in targets if isinstance(t, (str, int, float))] or None,
        "system": rule if rule not in (None, "none") else None,
        "peers": peers or None,
        "judge": "answer",
    }
    used = ("resps", "filtered_resps", "arguments", "target", "filter", "doc_id", *peers)
    return _kept(row, used, fields)


def _lm_eval_answer(row: Mapping[str, object]) -> tuple[str | None, list[Any]]:
    """What the model answered, and the targets. Where choices were compared by likelihood: the likeliest choice."""
    target = row.get("target")
    targets = target if isinstance(target, list) else [target]
    responses = row.get("filtered_resps") or row.get("resps")
    likelihoods = _likelihoods(responses)
    if likelihoods:
        choices = _continuations(row.get("arguments"))
        if len(choices) != len(likelihoods):
            return None, targets
        if len(choices) == 1:  # one text whose likelihood was asked for: known only where greedy decoding gives it
            return (choices[0] if likelihoods[0][1] else None), targets
        best = max(range(len(choices)), key=lambda i: likelihoods[i][0])
        named = [choices[int(str(t))] if str(t).isdigit() and int(str(t)) < len(choices) else t for t in targets]
        return choices[best], named
    while isinstance(responses, list) and responses and isinstance(responses[0], (list, str)):
        responses = responses[0]
    return (responses if isinstance(responses, str) else None), targets


def _likelihoods(responses: Any) -> list[tuple[float, bool]]:
    """(log-likelihood, is it what greedy decoding gives) per choice; empty for generated text."""
    found = []
    for item in responses if isinstance(responses, list) else []:
        while isinstance(item, list) and len(item) == 1:
            item = item[0]
        if not isinstance(item, list) or len(item) != 2 or str(item[1]) not in ("True", "False"):
            return []
        try:
            found.append((float(item[0]), str(item[1]) == "True"))
        except (TypeError, ValueError):
            return []
    return found


def _continuations(arguments: Any) -> list[str]:
    """The text after the prompt in each request: {"arg_0": prompt, "arg_1": text}, before lm-eval 0.4.3 a pair."""
    requests = list(arguments.values()) if isinstance(arguments, Mapping) else arguments
    texts = [
        item.get("arg_1") if isinstance(item, Mapping) else item[1] if isinstance(item, list) and len(item) > 1 else ""
        for item in (requests if isinstance(requests, list) else [])
    ]
    return [text.strip() for text in texts if isinstance(text, str)]


def _kilt(row: Mapping[str, object]) -> dict[str, object]:
    """`output` lists gold answers with their provenance; a prediction column holds what is judged."""
    output = row.get("output")
    entries = output if isinstance(output, list) else []
    golds = [e["answer"] for e in entries if isinstance(e, Mapping) and isinstance(e.get("answer"), str)]
    prediction = _predicted(row)
    fields = {"question": row.get("input"), "references": golds or None, "answer": prediction, "judge": "answer"}
    return _kept(row, ("input", "output", *PREDICTIONS), fields)


SCHEMAS: tuple[Schema, ...] = (
    Schema(
        "lm-evaluation-harness samples",
        (("doc",), ("target",), ("filtered_resps", "resps")), {}, _lm_eval,
    ),
    Schema(
        "ragas",
        (("user_input",), ("response", "retrieved_contexts", "reference")),
        {
            "question": ("user_input",), "answer": ("response",), "references": ("reference",),
            "context": ("retrieved_contexts", "reference_contexts"),
        },
    ),
    Schema(
        "deepeval",
        (("input",), ("actual_output",)),
        {
            "question": ("input",), "answer": ("actual_output",), "references": ("expected_output",),
            "context": ("retrieval_context", "context"), "id": ("id", "name"),
        },
        separator="|",
    ),
    Schema(
        "ragas (before 0.2)",
        (("question",), ("answer",), ("contexts", "ground_truth", "ground_truths")),
        {"references": ("ground_truth", "ground_truths", "reference"), "context": ("contexts", "context")},
    ),
    Schema("SQuAD", (("question",), ("context",), ("answers",)), {}, _squad),
    Schema("KILT", (("input",), ("output",), ("id",)), {}, _kilt),
)  # fmt: skip
"""Most particular first."""
