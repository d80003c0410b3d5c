"""The report's single items: where metrics and people disagree most, and what made a score."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from quaestor.records import Record
from quaestor.report import Run
from quaestor.report.page import note, section, table

SHOWN = 8
"""Items per metric."""


def disagreements(run: Run) -> Iterator[tuple[str, str]]:
    """The records whose metric score is farthest from their human rating, both as z-scores."""
    from quaestor.report.tables import judgements

    ratings = judgements(run)
    if ratings is None:
        return
    lines = {(line["id"], line.get("system")): line for line in run.lines}
    parts: list[str] = []
    overall = _mean(_z(ratings.human), axis=1)
    if not np.isfinite(overall).any():
        parts.append(note("The human ratings do not vary, so no record is farther from people than the rest."))
    for k, spec in enumerate(ratings.metrics):
        if ratings.kinds[spec] != "metric":
            continue
        scores = _z(ratings.scores[:, [k]])[:, 0]
        gap = scores - overall
        order = [int(i) for i in np.argsort(-np.abs(np.nan_to_num(gap)))[:SHOWN] if np.isfinite(gap[i])]
        items = []
        for i in order:
            record = ratings.records[i]
            side = "metric higher than people" if gap[i] > 0 else "people higher than metric"
            rated = zip(ratings.dimensions, ratings.human[i], strict=True)
            human = ", ".join(f"{name} {value:.3g}" for name, value in rated if np.isfinite(value))
            head = f"<b>{escape(record.id)}</b> {escape(record.system or '')}: {side} by {abs(gap[i]):.1f} σ"
            line = lines[(record.id, record.system)]
            shown = f"<p>score {line['scores'][spec]:.4f}; people: {escape(human)}</p>"
            body = texts(record) + evidence(line.get("evidence", {}).get(spec), record, spec)
            items.append(f"<details><summary>{head}</summary>{shown}{body}</details>")
        if items:
            parts.append(f"<h3>{escape(spec)}</h3>" + "".join(items))
        elif np.isfinite(overall).any():
            parts.append(note(f"{spec}: {_why_none(ratings.scores[:, k], scores)}"))
    yield section("Worst disagreements with people", note("z-scores; the mean over the human dimensions."), *parts)


def _why_none(given: Any, standard: Any) -> str:
    """Why a metric has no gap to people on any record."""
    if not np.isfinite(given).any():
        return "no rated record has a score."
    if not np.isfinite(standard).any():
        return "every rated record has the same score, so none is farther from people than the rest."
    return "no record has both a score and a rating that varies."


def _z(values: Any) -> Any:
    """Distance from the column's mean in deviations; NaN for a column that does not vary (but for rounding)."""
    mean = _mean(values, axis=0)
    centred = values - mean
    deviation = np.sqrt(_mean(centred**2, axis=0))
    return centred / np.where(deviation > 1e-12 * np.abs(mean), deviation, np.nan)


def _mean(values: Any, axis: int) -> Any:
    """The mean of what is there; NaN, without a warning, where nothing is."""
    count = np.isfinite(values).sum(axis=axis)
    return np.where(count > 0, np.nansum(values, axis=axis) / np.maximum(count, 1), np.nan)


def examples(run: Run) -> Iterator[tuple[str, str]]:
    """For every explained metric its highest and lowest scores, with the evidence."""
    parts = []
    for spec in run.specs:
        scored = [x for x in run.lines if x["scores"].get(spec) is not None and spec in x.get("evidence", {})]
        if not scored:
            continue
        scored.sort(key=lambda x: -x["scores"][spec])
        half = SHOWN // 2
        chosen = scored if len(scored) <= SHOWN else scored[:half] + scored[-half:]
        items = []
        for line in chosen:
            head = f"<b>{line['scores'][spec]:.4f}</b> {escape(line['id'])} {escape(line.get('system') or '')}"
            record = run.record(line)
            body = (texts(record) if record else "") + evidence(line["evidence"][spec], record, spec)
            items.append(f"<details><summary>{head}</summary>{body}</details>")
        parts.append(f"<h3>{escape(spec)}</h3>" + "".join(items))
    if parts:
        yield section("Evidence", note(f"Highest and lowest scores of each metric, at most {SHOWN}."), *parts)


def texts(record: Record) -> str:
    """The texts of a record, whole."""
    rows = [
        [name, f'<span class="text">{escape(value)}</span>']
        for name in ("context", "question", "answer", "summary")
        if (value := getattr(record, name))
    ]
    several = len(record.references) > 1
    rows += [
        [f"reference {k}" if several else "reference", f'<span class="text">{escape(r)}</span>']
        for k, r in enumerate(record.references[:3], 1)
    ]
    return table(("", ""), rows, "wrap")


def evidence(found: Mapping[str, Any] | None, record: Record | None, spec: str = "") -> str:
    """Evidence as a person reads it: questions beside two texts, warm words, or plain lines."""
    if not found:
        return ""
    if "questions" in found and record and record.summary:
        return asked(found, record, spec)
    if "answer_words" in found:
        sides = (("answer", found["answer_words"]), ("reference", found["reference_words"]))
        return "".join(f"<p>{label}: {warm(words)}</p>" for label, words in sides)
    rows = [[escape(str(name)), f'<span class="text">{escape(brief(value))}</span>'] for name, value in found.items()]
    return table(("evidence", ""), rows, "wrap")


def warm(words: Sequence[Sequence[Any]]) -> str:
    """Words whose background is the warmer the more they count."""
    ground = "background:color-mix(in srgb,var(--warm) {:.0f}%,transparent)"
    return " ".join(
        f'<span title="{weight:.3f}" style="{ground.format(min(max(weight, 0), 1) * 70)}">{escape(str(word))}</span>'
        for word, weight in words
    )


def asked(found: Mapping[str, Any], record: Record, spec: str = "") -> str:
    """QuestEval's questions with both answers and verdicts, beside both texts compared, with the answers marked.

    When it cannot be told which text the summary was compared with, nothing is marked.
    """
    compared = held_against(found.get("against"), record, spec)
    label, source = compared or ("other text", "")
    order = {"contradicted": 0, "missing": 1, "supported": 2}
    rows = []
    source_marks: list[tuple[Any, bool]] = []
    summary_marks: list[tuple[Any, bool]] = []
    for q in sorted(found["questions"], key=lambda q: (order.get(q["verdict"], 3), -q["weight"])):
        of_summary = q["direction"] == "precision"
        rows.append([
            "summary" if of_summary else label, escape(q["question"]), escape(q["answer"]),
            escape(q["other"] or "—"), f"{q['weight']:.2f}",
            f'<span class="{escape(q["verdict"])}">{escape(q["verdict"])}</span>',
        ])  # fmt: skip
        bad = q["verdict"] != "supported"
        own, other = (summary_marks, source_marks) if of_summary else (source_marks, summary_marks)
        own.append((q.get("span"), bad))
        other.append((q.get("other_span"), bad and bool(q["other"])))
    head = ("asked of", "question", "its answer", "the other text says", "weight", "verdict")
    if compared is None:
        told = "No answers are marked: the score file does not say which text the summary was compared with."
        return note(told) + table(head, rows, "wrap")
    pair = (
        f'<div class="two"><div><b>{label}</b><p class="text">{marked(source, source_marks)}</p></div>'
        f'<div><b>summary</b><p class="text">{marked(record.summary or "", summary_marks)}</p></div></div>'
    )
    return pair + table(head, rows, "wrap")


def held_against(told: Any, record: Record, spec: str) -> tuple[str, str] | None:
    """Name and words of the text that a summary was compared with; None when that cannot be told for certain.

    The evidence says "source" or "reference K", the K-th of the record's references. Older score files give a number
    that does not count blank references: only without an `against` parameter is that the source for certain.
    """
    if told == "source" or (told in (None, 0) and "against=" not in spec):
        return ("source", record.context) if record.context else None
    if isinstance(told, str) and (found := re.fullmatch(r"reference ([1-9]\d*)", told)):
        k = int(found[1])
        return (told, record.references[k - 1]) if k <= len(record.references) else None
    return None


def marked(text: str, marks: Sequence[tuple[Any, bool]]) -> str:
    """The text with spans marked, bad ones in the warm colour; overlapping spans merge."""
    colours = [0] * (len(text) + 1)
    for span, bad in marks:
        if span:
            for i in range(max(0, span[0]), min(len(text), span[1])):
                colours[i] = max(colours[i], 2 if bad else 1)
    out, start = [], 0
    for i in range(1, len(text) + 1):
        if i == len(text) or colours[i] != colours[start]:
            piece = escape(text[start:i])
            tag = {0: piece, 1: f"<mark>{piece}</mark>", 2: f'<mark class="bad">{piece}</mark>'}
            out.append(tag[colours[start]])
            start = i
    return "".join(out)


def brief(value: Any) -> str:
    """A value of the evidence in a line."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{k}: {brief(v)}" for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return "; ".join(" ".join(brief(x) for x in v) if isinstance(v, (list, tuple)) else brief(v) for v in value)
    return str(value)
